#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of hits: as `cairn stack` has them of the stopped process, as the program itself logs its
calls, and as keys that are counted."""

import collections
import json
import os
import re
import subprocess
import time

from claims import (BUILD, Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect,
                    folder, main, need, need_root, run)
from profiling import folded_lines

# Each call of stop() waits until somebody says to go on: its stack can be taken meanwhile, from the
# other side. Ways lead there through inlined copies, a signal's handler, threads and qsort().
STOPS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) long stop(long n)
{
	char c;

	printf("%ld %ld\n", n, (long)syscall(SYS_gettid));
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		exit(0);
	return sink += n;
}
static inline __attribute__((always_inline)) long within(long n) { return stop(n) + 1; }
__attribute__((noinline)) static long deep(long n, long id)
{
	volatile char room[64];

	room[n & 63] = 1;
	return n ? deep(n - 1, id) + room[n & 63] : within(id) * 3;
}
__attribute__((noinline)) static long odd(long n) { return within(n) + within(n + 1) * 2; }
static void handler(int s) { sink += within(100 + s); }
static int compare(const void *a, const void *b)
{
	static int n;
	if (!n++)
		within(7);
	return *(const int *)a - *(const int *)b;
}
static void *thread(void *arg) { return (void *)(deep(3, (long)arg) + odd(20)); }
int main(void)
{
	int some[] = { 3, 2, 1 };
	pthread_t t;

	deep(0, 1);
	deep(9, 2);
	odd(3);
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	qsort(some, 3, sizeof(*some), compare);
	pthread_create(&t, 0, thread, (void *)10);
	pthread_join(t, 0);
	return sink == 0;
}
"""

CPP = r"""
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>
static volatile long sink;
extern "C" __attribute__((noinline)) long stop(long n)
{
	char c;

	printf("%ld %ld\n", n, (long)syscall(SYS_gettid));
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		exit(0);
	return sink += n;
}
namespace ns {
template <typename T> struct Box {
	T value;
	__attribute__((noinline)) long open(long n) const { return stop(n + (long)value) + 1; }
};
struct Base {
	virtual ~Base() {}
	virtual long run(long n) = 0;
};
struct Derived : Base {
	std::vector<long> list;
	long run(long n) override
	{
		for (long x : list)
			n += Box<long>{x}.open(n);
		return n;
	}
};
__attribute__((noinline)) long thrown(long n)
{
	try {
		if (n > 0)
			throw std::runtime_error(std::to_string(n));
	} catch (const std::exception &e) {
		return stop(atol(e.what()) + 100) * 2;
	}
	return 0;
}
}
int main()
{
	ns::Derived d;
	std::function<long(long)> f = [&](long n) { return d.run(n) + ns::Box<int>{7}.open(n); };

	d.list = { 1, 2 };
	f(10);
	ns::thrown(5);
	return 0;
}
"""

PROGRAMS = {
    "c":
    ("stops", STOPS, "gcc", ("-O2", "-g", "-fomit-frame-pointer", "-pthread")),
    "c-O0": ("stops-O0", STOPS, "gcc", ("-O0", "-g", "-pthread")),
    "clang": ("stops-clang", STOPS, "clang",
              ("-O2", "-g", "-fomit-frame-pointer", "-pthread")),
    "c++": ("stops-cpp", CPP, "g++", ("-x", "c++", "-O2", "-g")),
}


def objects(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def wait_for(text, path):
    for _ in range(600):
        with open(path, encoding="utf-8") as file:
            if text in file.read():
                return
        time.sleep(0.05)
    raise AssertionError(
        f"{text!r} is not in {open(path, encoding='utf-8').read()!r}")


class Tracing:
    """A trace of a process that runs; its events are in a file."""

    def __init__(self, pid, *words):
        self.out = os.path.join(folder(), "events.json")
        self.err = os.path.join(folder(), "trace.err")
        with open(self.err, "w", encoding="utf-8") as err:
            self.process = subprocess.Popen([
                os.path.join(BUILD, "cairn"), "trace", "--json", "-o",
                self.out, "-p",
                str(pid), *words
            ],
                                            stderr=err,
                                            stdin=subprocess.DEVNULL)
        wait_for("attached", self.err)

    def end(self):
        expect(
            self.process.wait(60) == 0,
            open(self.err, encoding="utf-8").read())
        *events, summary = objects(self.out)
        return events, summary


def frames(stack, after=None):
    """What a stack says of its frames; @after: only those outside of this function."""
    found = []
    for f in stack["frames"]:
        names = [(g["function"], g["name"], g["file"], g["line"], g["column"])
                 for g in f["functions"]]
        found.append((f["pc"], f["signal"], f["assumed"], f["path"],
                      f.get("offset"), tuple(names)))
    if after:
        names = [any(n[1] == after for n in f[-1]) for f in found]
        found = found[names.index(True) + 1:]
    return found


def stopped_stacks(pid, tid):
    r = cairn("stack", "--json", pid)
    return next(t for t in r.objects() if t["tid"] == tid)


@claim_each_of_many(*PROGRAMS)
def stacks_are_those_of_the_stopped_process(which):
    need_root()
    name, text, compiler, flags = PROGRAMS[which]
    exe = compile_c(name, text, compiler, flags)
    with subprocess.Popen([exe],
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          text=True) as p:
        # The first stop is before the trace.
        p.stdout.readline()
        tracing = Tracing(p.pid, "--stack", "stop")
        p.stdin.write("x")
        p.stdin.flush()
        wanted = []
        for line in p.stdout:
            number, tid = map(int, line.split())
            wanted.append((number, tid, stopped_stacks(p.pid, tid)))
            p.stdin.write("x")
            p.stdin.flush()
        p.stdin.close()
        events, summary = tracing.end()
    expect(
        len(wanted) >= 3 and len(events) == len(wanted), len(events),
        len(wanted))
    expect(summary["stacks_lost"] == summary["stacks_cut"] == 0, summary)
    for event, (number, tid, stack) in zip(events, wanted):
        expect((event["args"]["n"], event["tid"]) == (number, tid),
               event["args"], number)
        own = event["stack"]
        expect(own["end"] == stack["end"] == "outermost", number, own["end"],
               own["why"], stack)
        expect(own["frames"][0]["functions"][0]["name"] == "stop",
               own["frames"][0])
        mine, theirs = frames(own, "stop"), frames(stack, "stop")
        expect(mine == theirs and mine, number, "\n".join(map(str, mine)),
               "is not", "\n".join(map(str, theirs)))


@claim
def code_of_a_jit_is_in_stacks_by_its_name():
    need_root()
    exe = os.path.join(BUILD, "examples", "jit")
    if not os.path.exists(exe):
        raise Skip("the example of a JIT is not built")
    out = os.path.join(folder(), "jit.json")
    r = cairn("trace", "--json", "-o", out, "--stack", "-c", f"{exe} 3",
              "call_back")
    expect(r.status == 0, r)
    *events, _ = objects(out)
    whole, since_known, named = 0, 0, 0
    for event in events:
        since_known += whole > 0 or event["stack"]["end"] == "outermost"
        made = [f for f in event["stack"]["frames"] if not f["path"]]
        if event["stack"]["end"] != "outermost":
            continue
        whole += 1
        names = [f["functions"][0]["name"] for f in made if f["functions"]]
        parts = [
            re.fullmatch(r"level_(\d+)_of_(\d+)", n).groups() for n in names
        ]
        # Each of the eight calls the one before it, of the same generation.
        expect(len(made) == 8, event["stack"])
        expect([int(level) for level, _ in parts
                ] == sorted(int(level) for level, _ in parts), names)
        expect(len({generation for _, generation in parts}) <= 1, names)
        named += len(names) == 8
        expect(
            event["stack"]["frames"][-1]["functions"][0]["function"] ==
            "_start", event["stack"])
    # Those of the first 20 ms, on a busy machine of 200, come before the registry is known.
    expect(whole > 20 and whole > 0.5 * since_known, len(events), since_known, whole)
    # The code is replaced every 20 ms, and has a name only until then.
    if not named:
        raise Skip(f"none of {whole} stacks had code that was there when its name was asked for")
    expect(
        all(f["functions"] or "was replaced" in f["unnamed"]
            or "no registry" in f["unnamed"] for event in events
            for f in event["stack"]["frames"]), events[0])


# A program that draws what it calls, in threads, and in a handler that a timer runs again and again.
# It writes the calls down that lead to each leaf.
DRAWN = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
enum { THREADS = 4, DEPTH = 64, MAX = 200000 };
static __thread const char *way[DEPTH];
static __thread int depth;
static __thread unsigned seed;
static char (*log_)[96];
static int n_log;
static volatile long sink;
static void note(long id)
{
	char *to = log_[id];
	for (int i = 0; i < depth; i++)
		to = stpcpy(stpcpy(to, i ? ";" : ""), way[i]);
}
__attribute__((noinline)) long leaf(long id) { sink += id; return id; }
static long call_leaf(void)
{
	long id = __atomic_fetch_add(&n_log, 1, __ATOMIC_RELAXED);
	if (id >= MAX)
		return 0;
	note(id);
	return leaf(id);
}
static unsigned draw(unsigned n) { seed = seed * 1103515245 + 12345; return (seed >> 16) % n; }
#define ENTER(name) way[depth++] = name
#define LEAVE(x) ({ long r_ = (x); depth--; r_; })
static long any(int n);
__attribute__((noinline)) static long red(int n) { ENTER("red"); return LEAVE(any(n) + 1); }
__attribute__((noinline)) static long green(int n) { ENTER("green"); return LEAVE(any(n) * 3 + 1); }
__attribute__((noinline)) static long blue(int n) { ENTER("blue"); return LEAVE(any(n) + any(n - 1)); }
static inline __attribute__((always_inline)) long gray(int n) { ENTER("gray"); return LEAVE(any(n) ^ 5); }
__attribute__((noinline)) static long any(int n)
{
	if (n <= 0 || depth > 12)
		return call_leaf();
	switch (draw(4)) {
	case 0: return red(n - 1);
	case 1: return green(n - 1);
	case 2: return blue(n - 1);
	}
	return gray(n - 1) + 1;
}
static void handler(int s)
{
	const char *kept[DEPTH];
	int n = depth;

	memcpy(kept, way, sizeof(kept));
	ENTER("handler");
	sink += green(1);
	depth = n;
	memcpy(way, kept, sizeof(kept));
}
static void *thread(void *arg)
{
	seed = (unsigned)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		ENTER("thread");
		sink += any(5);
		depth = 0;
	}
	return 0;
}
int main(int argc, char **argv)
{
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
	pthread_t t[THREADS];
	FILE *f;

	log_ = calloc(MAX, sizeof(*log_));
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &every, 0);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, thread, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, 0);
	f = fopen(argv[1], "w");
	for (int i = 0; i < n_log && i < MAX; i++)
		fprintf(f, "%s\n", log_[i]);
	return fclose(f);
}
"""
OWN = {"red", "green", "blue", "gray", "handler", "thread"}


def drawn(compiler, rounds):
    exe = compile_c(
        f"drawn-{rounds}", DRAWN, compiler,
        ("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls",
         f"-DROUNDS={rounds}", "-pthread"))
    return exe, os.path.join(folder(), "drawn.log")


def way_of(stack):
    """The program's own functions, from the outermost one, as it logs them."""
    names = [
        g["name"] for f in reversed(stack["frames"])
        for g in reversed(f["functions"])
    ]
    return ";".join(n for n in names if n in OWN)


def log_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


@claim_each_of_many("gcc", "clang")
def no_stack_never_was(compiler):
    need_root()
    exe, log = drawn(compiler, 200)
    r = cairn("trace", "--json", "--stack", "--ring", "65536", "-c",
              f"{exe} {log}", "leaf")
    expect(r.status == 0, r)
    *events, summary = r.objects()
    wanted = log_of(log)
    expect(
        len(events) + summary["lost"] + summary["missed"] == len(wanted),
        summary, len(wanted))
    whole = 0
    for event in events:
        way, stack = wanted[event["args"]["id"]], event["stack"]
        if stack["end"] in ("outermost", "assumed"):
            whole += 1
            expect(way_of(stack) == way, way, way_of(stack), stack)
        else:
            # What is there of it was there.
            expect(way.endswith(way_of(stack)), way, stack)
    expect(whole > 0.95 * len(events) > 500, whole, len(events), summary)
    expect(any("handler" in way for way in wanted), "no signal came")


@claim_each_of_many("gcc", "clang")
def counts_by_stack_are_those_of_the_events_and_of_the_program(compiler):
    need_root()
    exe, log = drawn(compiler, 400)
    r = cairn("trace", "--json", "--by", "$stack", "-c", f"{exe} {log}",
              "leaf")
    expect(r.status == 0, r)
    table, summary = r.objects()
    wanted = collections.Counter(log_of(log))
    found, cut = collections.Counter(), 0
    for row in table["rows"]:
        stack = row["by"]["$stack"]
        if stack["end"] in ("outermost", "assumed"):
            found[way_of(stack)] += row["count"]
        else:
            cut += row["count"]
    expect(summary["stacks_cut"] == cut, summary, cut)
    others = sum(row["count"] for row in table["others"])
    total = sum(found.values()) + cut + others
    expect(total + summary["lost"] + summary["missed"] == sum(wanted.values()),
           summary, others)
    expect(not +(found - wanted), "stacks that were not so often:",
           +(found - wanted))
    expect(cut < 0.05 * total, cut, total)
    if not cut and not others and not summary["lost"] + summary["missed"]:
        expect(found == wanted)


@claim
def stacks_beyond_the_limit_are_among_the_others():
    need_root()
    exe, log = drawn("gcc", 200)
    r = cairn("trace", "--json", "--by", "$stack", "--max-keys", "5", "-c",
              f"{exe} {log}", "leaf")
    expect(r.status == 0, r)
    table, summary = r.objects()
    expect(len(table["rows"]) == 5 and table["others"][0]["count"] > 0, table)
    expect(
        table["count"] + summary["lost"] + summary["missed"] == len(
            log_of(log)), summary)


CALLERS = r"""
#include <stdio.h>
static volatile long sink;
__attribute__((noinline)) long leaf(long n) { return sink += n; }
static inline __attribute__((always_inline)) long copied(long n) { return leaf(n) + leaf(n + 1); }
__attribute__((noinline)) static long one(long n)
{
	return copied(n) + 1;
}
__attribute__((noinline)) static long two(long n)
{
	return copied(n)
		+ leaf(n) * 2;
}
int main(void)
{
	for (int i = 0; i < 10; i++)
		sink ^= one(i);
	for (int i = 0; i < 7; i++)
		sink ^= two(i);
	return 0;
}
"""


@claim
def callers_are_counted_also_those_of_inlined_copies():
    need_root()
    exe = compile_c("callers", CALLERS)
    r = cairn("trace", "--json", "--by", "$caller", "-c", exe, "leaf",
              "copied")
    expect(r.status == 0, r)
    found = collections.Counter()
    for row in r.objects()[0]["rows"]:
        found[row["function"],
              re.sub(r" at .*:", ":", row["by"]["$caller"])] += row["count"]
    expect(
        found == {
            ("copied", "one:8"): 10,
            ("copied", "two:12"): 7,
            ("leaf", "copied:5, inlined in one"): 20,
            ("leaf", "copied:5, inlined in two"): 14,
            ("leaf", "two:13"): 7
        }, found)
    text = cairn("trace", "--by", "$caller", "-c", exe, "copied")
    expect(re.search(r"one at \S*callers.c:8 +10\n", text.out), text)


@claim
def frames_are_as_many_as_are_wanted_and_text_is_that_of_cairn_stack():
    need_root()
    exe = compile_c("callers", CALLERS)
    r = cairn("trace", "--stack=2", "-n", "1", "-c", exe, "copied if n == 3")
    expect(r.status == 0, r)
    lines = r.out.split("\n")
    expect(
        re.fullmatch(r"#0  0x[0-9a-f]{16}  copied at \S+:5:\d+ \(inlined\)",
                     lines[1]), r)
    expect(
        re.fullmatch(r"#1 {22}one\+0x[0-9a-f]+ at \S+:8:\d+  callers-gcc",
                     lines[2]), r)
    expect(
        re.fullmatch(
            r"#2  0x[0-9a-f]{16}  main\+0x[0-9a-f]+ at \S+  callers-gcc",
            lines[3]), r)
    expect(lines[4] == "    2 frames", r)
    r = cairn("trace", "--stack=0", "-c", exe, "leaf")
    expect(r.status == 2 and "number of frames is 1 or more" in r.err, r)
    r = cairn("trace", "--stack", "--by", "n", "-c", exe, "leaf")
    expect(r.status == 2 and "the key $stack counts by stack" in r.err, r)


def folded(path):
    found = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for stack, n in folded_lines(file):
            found[stack] += n
    return found


@claim_each("hits", "sum")
def rows_by_stack_are_written_as_a_profile(what):
    need_root()
    exe = compile_c("callers", CALLERS)
    words = ["--sum", "n"] if what == "sum" else []
    out = {
        end: os.path.join(folder(), "who." + end)
        for end in ("folded", "pb.gz", "html")
    }
    for path in out.values():
        r = cairn("trace", "--by", "$stack", *words, "-o", path, "-c", exe,
                  "leaf")
        expect(r.status == 0 and r.out == "", r)
    found = collections.Counter()
    for stack, n in folded(out["folded"]).items():
        found[";".join(stack.split(";")[3:])] += n
    ways = {
        "main;one;copied_[i];leaf": 20,
        "main;two;copied_[i];leaf": 14,
        "main;two;leaf": 7
    }
    if what == "sum":
        one, two = sum(range(10)), sum(range(7))
        ways = dict(zip(ways, (2 * one + 10, 2 * two + 7, two)))
    expect(found == ways, found)
    shown = cairn("profile", "show", "--json", out["pb.gz"]).objects()
    summary = next(o for o in shown if o.get("summary"))
    expect(summary["sum"] == sum(ways.values()), summary)
    expect("leaf" in open(out["html"], encoding="utf-8").read())
    r = cairn("trace", "--by", "n", "-o", out["pb.gz"], "-c", exe, "leaf")
    expect(r.status == 2 and "is for stacks" in r.err, r)
    r = cairn("trace", "--by", "$stack", "--every", "1", "-o", out["html"],
              "-c", exe, "leaf")
    expect(r.status == 2 and "is written once" in r.err, r)
    for option in (["--hist", "n"], ["--avg", "n"], ["--quantiles", "n"],
                   ["--sum", "n", "--sum", "n + 1"]):
        r = cairn("trace", "--by", "$stack", *option, "-o", out["html"], "-c",
                  exe, "leaf")
        expect(r.status == 2 and "no place for" in r.err, r)


def deepest(name):
    """Bytes of stack of each BPF function of a program."""
    objdump = need("llvm-objdump")
    r = run(objdump,
            "-d",
            "--no-show-raw-insn",
            os.path.join(BUILD, "src", name + ".bpf.o"),
            check=True)
    found, held, function = {}, set(), None
    for line in r.out.splitlines():
        begin = re.match(r"[0-9a-f]+ <(?!LBB)(.*)>:", line)
        if begin:
            function, held = begin.group(1), set()
            found[function] = 0
        depth = re.search(r"r10 - (\d+)", line)
        if depth:
            found[function] = max(found[function], int(depth.group(1)))
        moved = re.search(r"\b(r\d) (=|\+=) (\S+)$", line.strip())
        if not moved:
            continue
        register, how, what = moved.groups()
        if how == "+=" and register in held:
            found[function] = max(found[function], -int(what))
        (held.add if (how, what) == ("=", "r10") else held.discard)(register)
    return found


@claim_each("trace", "profile")
def what_runs_at_a_probe_needs_no_stack_that_a_processors_hits_share(name):
    found = deepest(name)
    # These run where no hit comes in between: an interrupt, the scheduler, a task's own return.
    for other in ("on_sample", "on_sample_late", "on_switch", "on_return",
                  "walk_late"):
        found.pop(other, None)
    expect(found["step_by_rule"] > 0 and "learn_segment" in found, found)
    expect(all(d < 64 for d in found.values()),
           {n: d
            for n, d in found.items() if d >= 64})


if __name__ == "__main__":
    main()
