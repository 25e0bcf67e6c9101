#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How long "make demo" takes once everything is built. Its parts are to be read in 20 seconds."""

import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CAIRN = os.path.abspath(
    os.environ.get("CAIRN", os.path.join(os.environ.get("CAIRN_BUILD", "build"), "cairn")))
ROUNDS = 5


def seconds():
    start = time.monotonic()
    subprocess.run([os.path.join(HERE, "../scripts/demo.sh"), CAIRN], stdout=subprocess.DEVNULL,
                   check=True)
    return time.monotonic() - start


def main():
    took = sorted(seconds() for _ in range(ROUNDS))
    print(f"demo: {took[0]:.1f} s, {statistics.median(took):.1f} s, {took[-1]:.1f} s"
          f" (least, median, most of {ROUNDS}); the aim is 20 s")
    return took[0] >= 20


if __name__ == "__main__":
    sys.exit(main())
