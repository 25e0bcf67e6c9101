#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to say what code there is: rows, objects, functions beside their peers, and the
agent's start.

    make bench-codectl

Processor time, the best of several rounds; peers run in the same minute. System calls are counted
by strace, as the difference between many rows and few. The agent's start is measured in pairs: a
program without it, then with it.
"""

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

BUILD = os.environ.get("CAIRN_BUILD", "build")
BENCH = os.path.join(BUILD, "bench", "bench_codectl")
AGENT = os.path.abspath(os.path.join(BUILD, "agent", "libcairn-agent.so"))
FUNCTIONS = os.environ.get("CODECTL_FUNCTIONS", "100000")
PAIRS = 200
FEW, MANY = 50000, 1000000


def bench(*words):
    print(
        subprocess.run([BENCH, *words], capture_output=True, text=True, check=True).stdout, end="",
        flush=True)


def system_calls(rows):
    out = subprocess.run(
        ["strace", "-f", "-c", BENCH, "rows", str(rows)], capture_output=True, text=True,
        check=True).stderr
    return int(re.search(r"^100\.00\s+\S+\s+\S+\s+(\d+)", out, re.M).group(1))


def count_system_calls():
    if not shutil.which("strace"):
        print("system calls: not counted, strace is missing")
        return
    few, many = system_calls(FEW), system_calls(MANY)
    # Two passes over the addresses, five rounds.
    print(
        f"system calls for {10 * MANY} rows instead of {10 * FEW}: {many - few} more, all for memory: {(many - few) / (10 * (MANY - FEW)):.6f} per row"
    )


def cpu_ms(command, env):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def start(command, pairs):
    plain = dict(os.environ)
    with_agent = plain | {"LD_PRELOAD": AGENT}
    cpu_ms(command, plain), cpu_ms(command, with_agent)
    a, b = [], []
    for _ in range(pairs):
        a.append(cpu_ms(command, plain))
        b.append(cpu_ms(command, with_agent))
    added = [y - x for x, y in zip(a, b)]
    print(
        f"start of {' '.join(command)[:40]}: {statistics.median(a):.2f} ms, the agent adds {statistics.median(added):.2f} ms"
        f" (medians of {pairs} pairs, processor time)")


def main():
    bench("rows", str(MANY))
    count_system_calls()
    bench("objects")
    bench("functions", FUNCTIONS)
    start(["/bin/true"], PAIRS)
    start([sys.executable, "-S", "-c", "import ssl"], PAIRS // 4)
    for program in ("/usr/bin/gdb",):
        if os.access(program, os.X_OK):
            start([program, "--version"], PAIRS // 8)


if __name__ == "__main__":
    sys.exit(main())
