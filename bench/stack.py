#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack beside eu-stack: processes of 100 threads, some 40 deep, with and without inlined
calls and lines.

Two programs: a recursion in a unit of 20 lines, which is the least that a reader of DWARF can have
to do, and nested queries in SQLite, whose unit has 250,000 lines. What both tools need is
installed: their debug information is in them, that of libc where libc6-dbg puts it; eu-stack reads
it each time, cairn once, into sidecars. That first time is told apart. What is compared is told:
options, and how many frames each printed.

Processor time of the tool, user and system, as the kernel accounts it (wait4), and elapsed time; of
each the best of the rounds, which are taken in turn. And how long the threads stood still for
cairn.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../tests/truth"))

import common  # pylint: disable=wrong-import-position
import sources  # pylint: disable=wrong-import-position

BUILD = os.environ.get("CAIRN_BUILD", "build")
CAIRN = os.environ.get("CAIRN", os.path.join(BUILD, "cairn"))
ROUNDS = 15
# Of a command that takes longer than this, in all.
SECONDS = 60
RECURSION = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
volatile int sink;
static inline __attribute__((always_inline)) void wait_here(void) { pause(); sink++; }
static inline __attribute__((always_inline)) int less(int n) { sink += n; return n - 1; }
__attribute__((noinline)) static void deep(int n) { if (n <= 0) wait_here(); else deep(less(n)); sink++; }
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


class Times:
    """The best of each kind."""

    def __init__(self):
        self.cpu_ms = self.wall_ms = self.stopped_ms = 1e12
        self.n_rounds, self.frames = 0, 0

    def run(self, command, env):
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                                   text=True)
        # Threads would take part in the times: one pipe is read to its end, the other has a line or
        # two.
        out = process.stdout.read()
        err = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        self.wall_ms = min(self.wall_ms, (time.monotonic() - start) * 1e3)
        self.cpu_ms = min(self.cpu_ms, (usage.ru_utime + usage.ru_stime) * 1e3)
        match = re.search(r"stopped for ([\d.]+) ms", err)
        self.stopped_ms = min(self.stopped_ms, float(match.group(1))) if match else self.stopped_ms
        self.frames = len(re.findall(r"^#", out, re.M))
        self.n_rounds += 1


def build(folder, name):
    path = os.path.join(folder, name)
    if name == "recursion":
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(RECURSION)
        return common.compile_c([path + ".c"], path,
                                ["-O2", "-g", "-pthread", "-fno-optimize-sibling-calls"])
    made = os.path.join(common.lab("src", "sqlite3"), "made")
    # Its shell is not needed, but what the shell is made from.
    sources.sqlite("gcc")
    kept = os.path.join(common.lab("bin"), "stack-queries")
    if not os.path.exists(kept):
        common.compile_c(
            [os.path.join(HERE, "stack_queries.c"),
             os.path.join(made, "sqlite3.c"), "-lm", "-ldl"], kept,
            ["-O2", "-g", "-w", "-pthread", "-I", made], "gcc", 900)
    return kept


def wait_until_all_wait(pid):
    """A thread that has come to rest is the same at every look."""
    before = None
    for _ in range(200):
        now = []
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
                now.append(file.read())
        if now == before and not any(line.startswith("running") for line in now):
            return
        before = now
        time.sleep(0.1)


def compare(name, folder):
    path = build(folder, name)
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache-" + name), CAIRN_CACHE="keep")
    process = subprocess.Popen([path], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    pid = str(process.pid)
    kinds = {
        "cairn stack -s": [CAIRN, "stack", "-s", pid], "eu-stack": ["eu-stack", "-p", pid],
        "cairn stack": [CAIRN, "stack", pid], "eu-stack -i -s": ["eu-stack", "-i", "-s", "-p", pid]
    }
    times = {kind: Times() for kind in ("first", "first -s", *kinds)}
    try:
        wait_until_all_wait(pid)
        times["first -s"].run(kinds["cairn stack -s"], env)
        times["first"].run(kinds["cairn stack"], env)
        for _ in range(ROUNDS):
            for kind, command in kinds.items():
                t = times[kind]
                if not t.n_rounds or t.n_rounds * t.wall_ms < SECONDS * 1e3:
                    t.run(command, env)
    finally:
        process.kill()
        process.wait()
    print(f"{name}: 100 threads")
    print(f"  {'':16} {'processor ms':>13} {'elapsed ms':>11} {'frames':>7} {'rounds':>7}")
    for kind in kinds:
        t = times[kind]
        print(f"  {kind:16} {t.cpu_ms:13.2f} {t.wall_ms:11.2f} {t.frames:7} {t.n_rounds:7}")
    for what, ours, theirs in (("names", "cairn stack -s", "eu-stack"),
                               ("inlined calls and lines", "cairn stack", "eu-stack -i -s")):
        a, b = times[ours], times[theirs]
        print(
            f"  {what}: {b.cpu_ms / a.cpu_ms:.1f} times by processor time, {b.wall_ms / a.wall_ms:.1f} by elapsed time; "
            f"the threads stood still for {a.stopped_ms:.2f} ms")
    print(
        f"  the first time, without sidecars: names {times['first -s'].cpu_ms:.1f} ms, inlined calls and lines {times['first'].cpu_ms:.1f} ms\n"
    )


def main():
    if not shutil.which("eu-stack"):
        print("eu-stack is not installed: make bench-stack installs it as root (Debian: elfutils)")
        return 77
    if not re.search(
            r"\.debug",
            subprocess.run(["eu-stack", "-l", "-p", str(os.getpid())], capture_output=True,
                           text=True, check=False).stdout):
        print("no debug information of libc here: both have less to read (Debian: libc6-dbg)")
    with tempfile.TemporaryDirectory(prefix="cairn-bench-stack-") as folder:
        for name in ("recursion", "SQLite"):
            try:
                compare(name, folder)
            except sources.Unavailable as reason:
                print(f"{name}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
