# SPDX-License-Identifier: BSD-2-Clause
"""Pages in headless Chromium."""

import json
import os
import re

from claims import IS_SANITIZED, Skip, expect, folder, need, run, write

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars"
]


def chromium(*words):
    if IS_SANITIZED:
        raise Skip("what a browser makes of a page is claimed of the plain build")
    profile = os.path.join(folder(), f"profile-{len(os.listdir(folder()))}")
    os.mkdir(profile)
    return run(need("chromium"), *FLAGS, f"--user-data-dir={profile}", *words, seconds=100)


def result_of_page(html, width, *flags):
    """What a script of the page gives to parent.postMessage(), as JSON.

    The page is in a frame: the browser's own window cannot be as narrow as a phone.
    """
    inner = write(f"inner-{width}.html", html)
    outer = write(
        f"outer-{width}.html",
        "<script>addEventListener('message', e => document.body.textContent = 'MEASURED "
        "' + e.data + ' END')"
        f"</script><body><iframe src='{os.path.basename(inner)}' style='width:{width}px;height:900px;border:0'>"
    )
    r = chromium(*flags, "--virtual-time-budget=3000", "--dump-dom", "file://" + outer)
    found = re.search(r"MEASURED (\{.*\}) END", r.out)
    expect(found, r)
    return json.loads(
        found.group(1).replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
