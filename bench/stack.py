#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack beside eu-stack: 100 threads, 40 deep, with and without inlined calls and lines.

Processor time of the tool, user and system, in microseconds as the kernel accounts it (wait4), and how long the threads stood still. Best of 15 rounds,
taken in turn. Sidecars are made before: the first use is not measured.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("CAIRN_BUILD", "build")
CAIRN = os.environ.get("CAIRN", os.path.join(BUILD, "cairn"))
ROUNDS = 15
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
volatile int sink;
static inline __attribute__((always_inline)) int add(int n) { sink += n; return n - 1; }
__attribute__((noinline)) static void deep(int n) { if (n <= 0) pause(); else deep(add(n)); sink++; }
static void *thread(void *arg) { deep(36); return arg; }
int main(void)
{
	pthread_t t;
	prctl(PR_SET_PDEATHSIG, 9);
	for (int i = 0; i < 99; i++)
		pthread_create(&t, 0, thread, 0);
	puts("ready");
	fflush(stdout);
	deep(36);
}
"""


def cpu_us(command, env):
    """Of one run, and its stderr."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True)
    err = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    return (usage.ru_utime + usage.ru_stime) * 1e6, err


def main():
    if not shutil.which("eu-stack"):
        print("eu-stack is not installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="cairn-bench-stack-") as folder:
        path = os.path.join(folder, "threads")
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        subprocess.run(["gcc", "-O2", "-g", "-pthread", "-fno-optimize-sibling-calls", "-o", path, path + ".c"], check=True)
        env = dict(os.environ, CAIRN_CACHE=os.path.join(folder, "cache"))
        os.mkdir(env["CAIRN_CACHE"])
        process = subprocess.Popen([path], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(0.2)
        pid = str(process.pid)
        try:
            subprocess.run([CAIRN, "stack", pid], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            time.sleep(3)
            kinds = {"cairn stack -s": [CAIRN, "stack", "-s", pid], "eu-stack": ["eu-stack", "-p", pid],
                     "cairn stack": [CAIRN, "stack", pid], "eu-stack -i -s": ["eu-stack", "-i", "-s", "-p", pid]}
            best, stopped = dict.fromkeys(kinds, 1e12), 1e12
            for _ in range(ROUNDS):
                for name, command in kinds.items():
                    us, err = cpu_us(command, env)
                    best[name] = min(best[name], us)
                    match = re.search(r"stopped for ([\d.]+) ms", err)
                    stopped = min(stopped, float(match.group(1))) if match else stopped
        finally:
            process.kill()
            process.wait()
    for name, us in best.items():
        print(f"{name:16} {us:10.0f} us")
    print(f"without inlined calls {best['eu-stack'] / best['cairn stack -s']:.1f} times, with them and lines {best['eu-stack -i -s'] / best['cairn stack']:.1f} times; "
          f"the threads stood still for {stopped:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
