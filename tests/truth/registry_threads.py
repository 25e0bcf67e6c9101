#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writers and readers of a registry in one process, built with ThreadSanitizer by GCC and Clang.

    registry_threads.py [SECONDS]     10 for each compiler

Regions are not closed while others read: that unmaps their tables, and is for readers from outside,
who get an error for it.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("CAIRN_SOURCE", os.path.join(HERE, "..", ".."))


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "10"
    failed = False
    for compiler in ("gcc", "clang"):
        name = f"nothing_is_unordered_between_writers_and_readers[{compiler}]"
        if not shutil.which(compiler):
            print(f"skip {name}: {compiler} is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="cairn-threads-") as folder:
            out = os.path.join(folder, "threads")
            # The order that fences make is not known to it, and matters to none of the accesses,
            # which are all atomic.
            quiet = ["-Wno-tsan"] if compiler == "gcc" else []
            subprocess.run([
                compiler, "-std=gnu11", "-O1", "-g", "-fsanitize=thread", *quiet, "-D_GNU_SOURCE",
                "-I",
                os.path.join(SOURCE, "include"), "-I", SOURCE, "-o", out,
                os.path.join(HERE, "registry",
                             "threads.c"), *sorted(glob.glob(os.path.join(SOURCE, "agent", "*.c")))
            ], check=True)
            # The sanitizer's shadow memory has no place under every layout that the kernel chooses.
            r = subprocess.run(["setarch", "-R", out, seconds], capture_output=True, text=True,
                               check=False)
        print(r.stdout, end="")
        good = r.returncode == 0 and "WARNING: ThreadSanitizer" not in r.stderr
        print(f"{'ok' if good else 'not ok'} {name}")
        if not good:
            print(r.stderr[:6000])
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
