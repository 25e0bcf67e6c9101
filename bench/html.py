#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How long the flame graph's page takes to answer: zoom, search and resize, in headless Chromium.

    html.py [FRAMES]      50,000, in stacks of 4 to 60 frames

Each is done 20 times, on other frames, for other patterns and widths. A time ends when a pixel was
read back, so that drawing is within it. The aim is a median of 100 ms.
"""

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

CAIRN = os.path.abspath(
    os.environ.get("CAIRN", os.path.join(os.environ.get("CAIRN_BUILD", "build"), "cairn")))
FRAMES = int(sys.argv[1]) if len(sys.argv) > 1 else 50000
AIM_MS = 100
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--window-size=1280,900"]

MEASURE = """<script>
const times = {};
function timed(what, act) {
  const start = performance.now();
  act();
  pen.getImageData(0, 0, 1, 1);
  (times[what] = times[what] || []).push(performance.now() - start);
}
const wide = tree.order.filter(n => n && tree.children[n].length);
for (let i = 0; i < 20; i++) {
  go(0);
  timed("zoom", () => go(wide[Math.floor(i * wide.length / 20)]));
  go(0);
  timed("out", () => go(0));
  $("search").value = ["f" + i, ".*" + i + "$", "call_" + i + "|leaf", "(a|e).*" + i][i % 4];
  timed("search", search);
  canvas.parentNode.style.width = 400 + 40 * i + "px";
  timed("resize", () => window.dispatchEvent(new Event("resize")));
}
document.body.textContent = "MEASURED " + JSON.stringify({times, frames: tree.order.length}) + " END";
</script>"""


def folded(n_frames):
    """Stacks of a program whose functions call each other deep and wide, until there are enough."""
    pick, seen, lines = random.Random(1), set(), []
    stack = ["main"]
    while len(seen) < n_frames:
        depth = pick.randint(4, 60)
        stack = stack[:pick.randint(1, min(len(stack), depth))]
        while len(stack) < depth:
            stack.append(f"{pick.choice(('call', 'leaf', 'each'))}_{pick.randint(0, 3000)}")
        seen.update(tuple(stack[:i + 1]) for i in range(len(stack)))
        lines.append(";".join(stack) + f" {pick.randint(1, 50)}\n")
    return "".join(lines)


def measure(folder):
    path, page = os.path.join(folder, "a.folded"), os.path.join(folder, "a.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(folded(FRAMES))
    subprocess.run([CAIRN, "profile", "show", path, "-o", page], stdout=subprocess.DEVNULL,
                   check=True)
    with open(page, encoding="utf-8") as file:
        html = file.read()
    with open(page, "w", encoding="utf-8") as file:
        file.write(html.replace("</html>", MEASURE + "</html>"))
    r = subprocess.run(["chromium", *FLAGS, f"--user-data-dir={folder}/profile", "--dump-dom",
                        "file://" + page], capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r"MEASURED (\{.*\}) END", r.stdout)
    if not found:
        sys.exit(f"html: the page gave no figures: {r.stdout[-200:]}{r.stderr[-200:]}")
    return json.loads(found.group(1)), len(html)


def main():
    if not shutil.which("chromium"):
        print("html: chromium is not installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="cairn-html-") as folder:
        found, size = measure(folder)
    print(f"{found['frames']:,} frames, a page of {size / 1e6:.1f} MB")
    is_slow = False
    for what, times in found["times"].items():
        median = statistics.median(times)
        is_slow |= median > AIM_MS
        print(f"{what:7} {median:6.1f} ms (least {min(times):.1f}, most {max(times):.1f}, of"
              f" {len(times)}; the aim is {AIM_MS})")
    return is_slow


if __name__ == "__main__":
    sys.exit(main())
