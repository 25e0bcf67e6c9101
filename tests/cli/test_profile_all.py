#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile of machines and processes that do not wait for it: storms of short processes, and
processes with very many mappings."""

import collections
import json
import os
import re
import subprocess
import threading

from cgroups import cgroup
from claims import (CAIRN, IS_SANITIZED, Skip, cairn, claim, compile_c, expect, folder, main,
                    need_root, run)
from profiling import profile

# Some milliseconds of processor time; for ever without an argument.
SHORT = """\
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static long used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noinline)) void spin(long ms)
{
	for (long begin = used(); !ms || used() - begin < ms * 1000000;)
		for (int i = 0; i < 20000; i++) sink += i;
}
int main(int argc, char **argv) { spin(argc > 1 ? atol(argv[1]) : 0); return 0; }
"""

# Maps its own code thousands of times, each between memory that is not code, and then maps and
# spins in turn.
MANY = """\
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
int main(int argc, char **argv)
{
	long n = atol(argv[1]), rounds = atol(argv[2]);
	int fd = open("/proc/self/exe", O_RDONLY);
	char *base = mmap(NULL, n * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (long i = 0; i < n; i++)
		if (mmap(base + i * 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			return 77;
	if (rounds < 0) puts("mapped");
	fflush(stdout);
	for (long k = 0; rounds < 0 || k < rounds; k++) {
		mmap(base + k % n * 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
		spin(500000);
	}
	return 0;
}
"""
# Burns time at the beginning of its stack, and then 900 calls further in.
DEEP = """\
static volatile unsigned long sink;
static void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void descend(int depth)
{
	if (depth) descend(depth - 1); else spin(1000000);
	__asm__ volatile("");
}
int main(void)
{
	spin(500000000);
	for (int i = 0; i < 500; i++) descend(900);
	return 0;
}
"""
FLAGS = ("-O2", "-g", "-fomit-frame-pointer")


def summary(r):
    return next(o for o in r.objects() if o.get("summary"))


def stacks_of(path, thread):
    """(samples, end, functions, whether the innermost is the kernel's) of a thread's stacks."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            o = json.loads(line)
            if o.get("labels", {}).get("thread") == thread:
                yield (o["values"]["samples"], o["labels"].get("end", "complete"), [
                    f.get("function") for f in o["stack"]
                ], o["stack"][0].get("code") == "kernel")


def has_tree_of_mappings():
    """Linux 6.1 and later: the program finds mappings by itself."""
    return tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 1)


@claim
def processes_of_a_few_milliseconds_are_known_as_they_run():
    if not has_tree_of_mappings():
        raise Skip("the kernel has no tree of mappings before 6.1")
    path, out = compile_c("short", SHORT, flags=FLAGS), os.path.join(folder(), "storm.json")
    over = threading.Event()

    def storm():
        while not over.is_set():
            subprocess.run([path, "3"], check=True)

    storms = threading.Thread(target=storm)
    # Its file is known from the beginning.
    with subprocess.Popen([path]) as first:
        storms.start()
        try:
            r = profile("-a", "-F", "999", "--duration", "4", "-o", out, "--json", "--no-cache",
                        seconds=240)
        finally:
            over.set()
            storms.join()
            first.kill()
    expect(r.status == 0, r)
    ends, pids = collections.Counter(), set()
    with open(out, encoding="utf-8") as file:
        for line in file:
            o = json.loads(line)
            if o.get("labels", {}).get("thread") == "short-gcc" and o["labels"][
                    "pid"] != first.pid and o["stack"][0].get("code") != "kernel":
                ends[o["labels"].get("end", "complete")] += o["values"]["samples"]
                pids.add(o["labels"]["pid"])
    expect(len(pids) > 20, "few processes were met", len(pids), ends)
    expect(ends["no-process"] + ends["no-mapping"] <= 0.05 * sum(ends.values()), ends)


@claim
def samples_that_find_no_room_are_counted_and_shown():
    path = compile_c("deep", DEEP, flags=FLAGS)
    # The frames of the deep stacks take 7 KiB, and the ring has 4.
    r = profile("-c", path, "--ring", "4", "-F", "999", "--json", "--fail-on-loss", "--no-cache",
                seconds=240)
    s = summary(r)
    expect(r.status == 5 and s["lost"] > 0 < s["samples"] == sum(s["ends"].values()), r)
    expect(f"{s['lost']} sample" in r.err, r)
    files = [os.path.join(folder(), "lossy." + end) for end in ("folded", "pb.gz", "json", "html")]
    r = profile("-c",
                path,
                "--ring",
                "4",
                "-F",
                "999",
                "--no-cache",
                *(word for file in files for word in ("-o", file)),
                seconds=240)
    lost = re.search(r"samples?, ([1-9]\d*) lost", r.out)
    expect(r.status == 0 and lost, r)
    told = f"{lost[1]} sample{'s' if lost[1] != '1' else ''} lost"
    for file in files[:2]:
        shown = cairn("profile", "show", file, "--json", check=True).objects()[-1]
        expect(told in shown["comments"], file, shown["comments"], told)
        expect(told in cairn("profile", "show", file, check=True).lines()[1:3], file, told)
    with open(files[0], encoding="utf-8") as file:
        expect(file.readline() == f"# {told}\n", told)
    with open(files[2], encoding="utf-8") as file:
        expect(told in json.loads(file.readlines()[-1])["comments"], told)
    with open(files[3], encoding="utf-8") as file:
        expect(f", {told}" in re.search("<title>(.*)</title>", file.read())[1], told)


@claim
def only_the_processes_of_a_cgroup_are_sampled():
    path, out = compile_c("short", SHORT, flags=FLAGS), os.path.join(folder(), "cgroup.json")
    with cgroup() as inside:
        with subprocess.Popen([path]) as one, subprocess.Popen([path]) as other:
            try:
                with open(os.path.join(inside, "cgroup.procs"), "w", encoding="ascii") as file:
                    file.write(str(one.pid))
                r = profile("--cgroup", inside, "-F", "499", "--duration", "2", "-o", out, "--json",
                            "--no-cache", seconds=240)
            finally:
                one.kill()
                other.kill()
        expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        pids = {json.loads(line).get("labels", {}).get("pid") for line in file} - {None}
    expect(pids == {one.pid}, pids, one.pid, other.pid)


@claim
def a_profiler_in_a_pid_namespace_knows_its_processes_by_their_numbers_there():
    need_root()
    path, out = compile_c("short", SHORT, flags=FLAGS), os.path.join(folder(), "namespace.json")
    unshare = ["unshare", "-p", "-f", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        raise Skip("a pid namespace cannot be made here")
    r = run(*unshare, CAIRN, "profile", "-c", f"{path} 1000", "-F", "499", "-o", out, "--json",
            "--no-cache", seconds=240)
    expect(r.status == 0, r)
    stacks = list(stacks_of(out, "short-gcc"))
    spins = sum(n for n, _, names, _ in stacks if "spin" in names)
    whole = sum(n for n, end, names, _ in stacks
                if end == "complete" and "spin" in names and "main" in names)
    expect(whole >= 0.8 * spins > 0, stacks)


@claim
def a_process_with_very_many_mappings_is_sampled_with_the_others():
    need_root()
    path, out = compile_c("many", MANY, flags=FLAGS), os.path.join(folder(), "many.json")
    with subprocess.Popen([path, "20000", "-1"], stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "mapped\n":
            process.kill()
            raise Skip("20,000 mappings are not allowed here (vm.max_map_count)")
        r = profile("-p", str(process.pid), "-F", "499", "--duration", "3", "-o", out, "--json",
                    "--no-cache", seconds=240)
        process.kill()
    expect(r.status == 0 and summary(r)["left_out"] == 0, r)
    whole = sum(n for n, end, names, _ in stacks_of(out, "many-gcc")
                if end == "complete" and "spin" in names and "main" in names)
    spins = sum(n for n, _, names, _ in stacks_of(out, "many-gcc") if "spin" in names)
    expect(spins and whole == spins, whole, spins, r)


@claim
def a_process_that_makes_very_many_mappings_while_it_is_sampled_costs_no_more_than_itself():
    out = os.path.join(folder(), "making.json")
    r = profile("-c", f"{compile_c('many', MANY, flags=FLAGS)} 20000 1500", "-F", "499", "-o", out,
                "--json", "--no-cache", seconds=240)
    if "exit status 77" in r.err:
        raise Skip("20,000 mappings are not allowed here (vm.max_map_count)")
    expect(r.status == 0 and summary(r)["left_out"] == 0, r)
    spins = [(n, end) for n, end, names, _ in stacks_of(out, "many-gcc") if "spin" in names]
    whole = sum(n for n, end in spins if end == "complete")
    # The reports of so many mappings may be more than the ring has room for; the mappings are read
    # then. How long that takes under sanitizers, or on a busy machine, is no property of the
    # profile.
    expect((whole > 0 if IS_SANITIZED else whole >= 0.5 * sum(n for n, _ in spins) > 0), spins, r)


if __name__ == "__main__":
    main()
