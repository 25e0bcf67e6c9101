#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Walks of one's own stack beside libunwind, glibc and frame pointers; tables: made, and searched.

    make bench-unwind

46 frames of different functions without frame pointers. Each program is another process, since
libunwind replaces what glibc has. UNWIND_FILE is what tables are made of (libLLVM or libjvm when
there is one).
"""

import glob
import os
import subprocess
import sys

BUILD = os.environ.get("CAIRN_BUILD", "build")
HERE = os.path.join(BUILD, "bench")
FILES = [os.environ["UNWIND_FILE"]] if "UNWIND_FILE" in os.environ else \
    glob.glob("/usr/lib/*/libLLVM-*.so.1")[:1] + glob.glob("/usr/lib/jvm/*/lib/server/libjvm.so")[:1]


def run(*command):
    print(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout, end="",
        flush=True)


def eh_frame_bytes(path):
    """Size of .eh_frame, as readelf has it."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True,
                         check=False).stdout
    for line in out.splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == ".eh_frame":
            return int(words[5], 16)
    return 0


def main():
    run(os.path.join(HERE, "bench_unwind"), "walk")
    run(os.path.join(HERE, "bench_frame_pointers"))
    libunwind = os.path.join(HERE, "bench_libunwind")
    if os.access(libunwind, os.X_OK):
        run(libunwind)
    else:
        print("libunwind: not measured, libunwind-dev is missing")
    for path in FILES:
        print(f"{path}: .eh_frame {eh_frame_bytes(path)} bytes")
    run(os.path.join(HERE, "bench_unwind"), "table", *FILES)


if __name__ == "__main__":
    sys.exit(main())
