# SPDX-License-Identifier: BSD-2-Clause
"""What tests of cairn profile share."""

import contextlib
import os
import time

from claims import Skip, cairn, need_root


def profile(*words, **kwargs):
    """cairn profile, or skip where profiling is not possible."""
    need_root()
    r = cairn("profile", *words, **kwargs)
    if r.status == 3 and ("BTF" in r.err or "kernel" in r.err and "not permitted" not in r.err):
        raise Skip(" ".join(r.err.split()))
    return r


def folded_lines(lines):
    """(stack, its number) of each line of a .folded file; a comment says what was lost."""
    return [(stack, int(n)) for stack, n in (line.rsplit(" ", 1) for line in lines if line[0] != "#")]


def is_sampling(pid):
    """Whether it has an event for each processor, beside those of the reports."""
    found = 0
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found += os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:[perf_event]"
    return found >= 2 * os.cpu_count()


def wait_until_sampling(pid):
    """Of a cairn profile: for a minute at most."""
    for _ in range(1200):
        if is_sampling(pid):
            return
        time.sleep(0.05)
