#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile -a of very many processes, and of one with very many mappings among them: what it
takes, that nothing is lost without a word, and that it ends.

tests/truth/profile_many.py runs it at full size: 5,000 processes, and 65,000 mappings in one.
"""

import collections
import contextlib
import json
import os
import subprocess
import time

from claims import (CAIRN, IS_SANITIZED, Skip, claim, compile_c, expect, main, need_root, path_of)
from profiling import profile, wait_until_sampling

N_PROCESSES, N_MAPPINGS = (int(n) for n in os.environ.get("CROWD", "300:4000").split(":"))
SECONDS = 4 + N_PROCESSES // 500

# Processes that work for a millisecond in turn, below five levels of recursion, until their parent
# ends; the first one has mapped its code very often. In the middle of the run every second one is
# ended.
CROWD = """\
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static long used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noinline)) void spin(void)
{
	for (long begin = used(); used() - begin < 1000000;)
		for (int i = 0; i < 20000; i++) sink += i;
}
__attribute__((noinline)) void descend(int levels)
{
	if (levels) descend(levels - 1); else spin();
	__asm__ volatile("");
}
static void map_often(long n)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *base = mmap(NULL, n * 8192, PROT_NONE, flags, -1, 0);
	flags = MAP_PRIVATE | MAP_FIXED;
	for (long i = 0; i < n; i++)
		if (mmap(base + i * 8192, 4096, PROT_READ | PROT_EXEC, flags, fd, 0) == MAP_FAILED)
			_exit(77);
}
static void be_one(long number, long n)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, number ? "crowd-one" : "crowd-first");
	usleep(number * 5000);
	for (;;) {
		descend(5);
		usleep(number ? n * 5000 : 1000);
	}
}
int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	pid_t *pids = calloc(n, sizeof(*pids));
	int ready[2];
	char byte;

	pipe(ready);
	for (long i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			if (!i) map_often(atol(argv[2]));
			if (!i) write(ready[1], "r", 1);
			be_one(i, n);
		}
		if (pids[i] < 0) return 77;
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) return 77;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) == 1)
		for (long i = 1; i < n; i += 2) kill(pids[i], SIGKILL);
	return argc - 3;
}
"""


@contextlib.contextmanager
def crowd():
    path = compile_c("crowd", CROWD, flags=("-O2", "-g", "-fomit-frame-pointer"))
    with subprocess.Popen([path, str(N_PROCESSES), str(N_MAPPINGS)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "ready\n":
            raise Skip(f"{N_PROCESSES} processes or {N_MAPPINGS} mappings are not allowed here")
        try:
            yield process
        finally:
            process.kill()


def sample_all(seconds, out, in_the_middle):
    """(summary, kilobytes of memory at most) of a run."""
    words = ["-a", "-F", "999", "--duration", str(seconds), "-o", out, "--json", "--no-cache"]
    with open(path_of("crowd.text"), "w+", encoding="utf-8") as text:
        tracer = subprocess.Popen([CAIRN, "profile", *words], stdout=text)
        wait_until_sampling(tracer.pid)
        time.sleep(seconds / 2)
        in_the_middle()
        _, status, used = os.wait4(tracer.pid, 0)
        tracer.returncode = os.waitstatus_to_exitcode(status)
        text.seek(0)
        expect(tracer.returncode == 0, tracer.returncode, text.read()[-500:])
        text.seek(0)
        return next(o for o in map(json.loads, text) if o.get("summary")), used.ru_maxrss


@claim
def a_crowd_is_sampled_within_bounds_and_the_run_ends():
    need_root()
    profile("-c", "true", "--json")
    out = path_of("crowd.json")
    without, memory_without = sample_all(1, path_of("without.json"), lambda: None)
    with crowd() as process:

        def end_half():
            process.stdin.write("x")
            process.stdin.flush()

        s, memory = sample_all(SECONDS, out, end_half)
    ends, pids, whole_of = collections.Counter(), collections.Counter(), collections.Counter()
    with open(out, encoding="utf-8") as file:
        for o in map(json.loads, file):
            names = [f.get("function") for f in o.get("stack", [])]
            if o.get("labels", {}).get("thread", "").startswith("crowd-") and "spin" in names:
                n, end = o["values"]["samples"], o["labels"].get("end", "complete")
                is_whole = end == "complete" and names.count("descend") == 6 and "main" in names
                ends[(o["labels"]["thread"], "whole" if is_whole else end)] += n
                pids[o["labels"]["pid"]] += n if end != "not-ready" else 0
                whole_of[o["labels"]["pid"]] += n if is_whole else 0
    more = memory - memory_without, s["kernel_bytes"] - without["kernel_bytes"]
    shown = (dict(ends), len(pids), s, f"{memory} KiB", f"{more[0]} KiB more",
             f"{more[1]} bytes more in the kernel")
    if os.environ.get("CROWD"):
        print("#", *shown)
    # None of the crowd is left out. The summary counts those of the whole machine, and the tests that
    # run beside this one have processes that describe more code than there is room for.
    blind = [pid for pid, n in pids.items() if n > 4 and not whole_of[pid]]
    expect(not blind, blind, *shown)
    expect(s["left_out"] == 0 or not os.environ.get("CROWD"), *shown)
    expect(sum(s["ends"].values()) == s["samples"], *shown)
    whole = sum(n for (_, end), n in ends.items() if end == "whole")
    # The program's unwind table is one of many, and may be made late on a busy machine.
    late = sum(n for (_, end), n in ends.items() if end == "not-ready")
    expect(whole >= 0.95 * (sum(ends.values()) - late), *shown)
    # Under sanitizers it may be made after the end.
    expect(IS_SANITIZED or whole > 0, *shown)
    expect(IS_SANITIZED or ends["crowd-first", "whole"] > 0, *shown)
    expect(len(pids) > N_PROCESSES / 50, *shown)
    # What each process and each mapping may take; others run here, too.
    expect(IS_SANITIZED or more[0] < 100000 + 16 * N_PROCESSES + N_MAPPINGS, *shown)
    expect(more[1] < 16e6 + 4096 * N_PROCESSES + 200 * N_MAPPINGS, *shown)


if __name__ == "__main__":
    main()
