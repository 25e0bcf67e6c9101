#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile --event: calls of functions, weighed by an argument, and tracepoints, against what
programs log themselves."""

import collections
import gzip
import json
import os
import re
import signal
import subprocess
import time

from claims import (CAIRN, Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect,
                    folder, main, need, need_root, path_of, run)
from profile_formats import ctf_events, ctf_folded, firefox_folded
from profiling import folded_lines, profile

# Each function notes that it runs; a call of the wrapper is logged with all of them, and what it
# asks for.
LOGGED = """\
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define INLINE static inline __attribute__((always_inline))
#define FUNCTION(name) int here __attribute__((cleanup(leave), unused)) = enter(name)

static __thread const char *stack[64];
static __thread int depth;

struct entry { char stack[400]; unsigned long n, bytes; };
struct log { struct entry entries[100]; int n; };
static __thread struct log own;

static int enter(const char *name) { stack[depth++] = name; return 0; }
static void leave(int *unused) { depth--; __asm__ volatile("" : : "r"(unused)); }

/* Not inlined: nothing of it is in the functions that are looked at. */
NOINLINE void note(const char *name, unsigned long bytes)
{
	char text[400] = "";
	int i;

	for (i = 0; i < depth; i++)
		strcat(strcat(text, stack[i]), ";");
	strcat(text, name);
	for (i = 0; i < own.n && strcmp(own.entries[i].stack, text); i++)
		;
	if (i == own.n)
		strcpy(own.entries[own.n++].stack, text);
	own.entries[i].n++;
	own.entries[i].bytes += bytes;
}

/* Compilers leave out a malloc() whose memory nobody sees. */
static void *volatile kept;

/* What is probed. */
INLINE void *wrapper(size_t size)
{
	void *p = malloc(size);
	kept = p;
	return p;
}

/* In it the wrapper is inlined twice. */
INLINE void *twice(size_t n)
{
	free(wrapper(n));
	return wrapper(n + 1);
}

NOINLINE void direct(size_t n) { FUNCTION("direct"); note("wrapper_[i]", n); free(wrapper(n)); }
NOINLINE void constant(void) { FUNCTION("constant"); note("wrapper_[i]", 48); free(wrapper(48)); }
NOINLINE void nested(size_t n)
{
	FUNCTION("nested");
	note("twice_[i];wrapper_[i]", n);
	note("twice_[i];wrapper_[i]", n + 1);
	free(twice(n));
}
NOINLINE void recursive(int levels, size_t n)
{
	FUNCTION("recursive");
	if (levels) {
		recursive(levels - 1, n);
		return;
	}
	note("wrapper_[i]", n * 3);
	free(wrapper(n * 3));
}
NOINLINE void looped(const size_t *sizes, int n)
{
	FUNCTION("looped");
	for (int i = 0; i < n; i++) {
		size_t size = sizes[i];
		note("wrapper_[i]", size);
		free(wrapper(size));
	}
}
static int by_size(const void *a, const void *b)
{
	FUNCTION("qsort;msort_with_tmp.part.0;by_size");
	const size_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}
static void (*volatile through)(size_t) = direct;
NOINLINE void indirect(size_t n) { FUNCTION("indirect"); through(n); }

NOINLINE void work(int n)
{
	FUNCTION("work");
	for (int i = 1; i <= n; i++) {
		size_t sizes[3] = {(size_t)i % 7, 10, 1000 + (size_t)i};
		direct((size_t)i);
		constant();
		nested((size_t)i * 2);
		recursive(i % 4, (size_t)i);
		looped(sizes, 3);
		indirect(5);
	}
}

static void print_own(FILE *out)
{
	for (int i = 0; i < own.n; i++)
		fprintf(out, "%s %lu %lu\\n", own.entries[i].stack, own.entries[i].n, own.entries[i].bytes);
}

static int n_calls;
static void *start(void *out)
{
	FUNCTION("start");
	work(n_calls);
	flockfile(out);
	print_own(out);
	funlockfile(out);
	return NULL;
}

/* FILE N [THREADS]; waits for a line first if there is a fourth word. */
int main(int argc, char **argv)
{
	FUNCTION("main");
	FILE *out = fopen(argv[1], "w");
	pthread_t threads[64];
	int n_threads = argc > 3 ? atoi(argv[3]) : 0;

	setvbuf(out, NULL, _IOLBF, 4096);
	n_calls = atoi(argv[2]);
	if (argc > 4) {
		puts("ready");
		fflush(stdout);
		getchar();
	}
	work(n_calls);
	print_own(out);
	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, start, out);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	fclose(out);
	return 0;
}
"""

LOGGED_FLAGS = ("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread",
                "-Wno-unused-function")


def logged(compiler):
    return compile_c("logged." + compiler, LOGGED, compiler, LOGGED_FLAGS)


def truth_of(path):
    """By stack: the number of calls, and the sum of what they asked for."""
    sums = collections.defaultdict(lambda: [0, 0])
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, n, size = line.rsplit(" ", 2)
            sums[stack][0] += int(n)
            sums[stack][1] += int(size)
    return {stack: tuple(both) for stack, both in sums.items()}


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return dict(folded_lines(file))


def from_own(stack):
    """A stack without the frames before main() or a thread's start."""
    return re.sub(r"^.*?;(?=main;|start;)", "", stack)


def own_sums(folded):
    sums = collections.Counter()
    for stack, value in folded.items():
        sums[from_own(stack)] += value
    return dict(sums)


def summary(r):
    found = [o for o in r.objects() if o.get("summary")]
    expect(len(found) == 1, r)
    return found[0]


ENDS = ("folded", "json", "pb.gz", "firefox.json", "html", "ctf")


def calls_profile(program, log, event, *words, n="300", threads="0"):
    """A run of the logged program with its output files: the result, and their paths."""
    out = {end: path_of(f"{os.path.basename(log)}.{end}") for end in ENDS}
    r = profile("-c", f"{program} {log} {n} {threads}", "--event", event, "--json", *words,
                *(word for path in out.values() for word in ("-o", path)))
    expect(r.status == 0, r)
    return r, out


# ---- calls ----

@claim
def the_calls_and_the_bytes_of_each_stack_are_those_that_the_program_logged():
    log = path_of("calls")
    r, out = calls_profile(logged("gcc"), log, "wrapper(size:bytes)")
    s, truth = summary(r), truth_of(log)
    expect(len(truth) >= 9 and s["lost"] == 0, s, truth)
    expect(s["samples"] == sum(n for n, _ in truth.values()), s, truth)
    expect((s["value"], s["unit"], s["hz"]) == ("size", "bytes", 0) and s["without_value"] == {}, s)
    expect(
        own_sums(lines_of(out["folded"])) == {stack: size
                                              for stack, (_, size) in truth.items()},
        lines_of(out["folded"]), truth)


@claim_each_of_many("gcc", "clang")
def without_a_number_the_calls_are_counted(compiler):
    log = path_of("counted." + compiler)
    r, out = calls_profile(logged(compiler), log, "wrapper")
    s, truth = summary(r), truth_of(log)
    expect((s["value"], s["unit"]) == ("hits", "count") and s["sum"] == s["samples"], s)
    expect(
        own_sums(lines_of(out["folded"])) == {stack: n
                                              for stack, (n, _) in truth.items()},
        lines_of(out["folded"]), truth)


@claim
def every_format_has_the_same_stacks_and_sums_and_their_unit():
    log = path_of("formats")
    r, out = calls_profile(logged("gcc"), log, "wrapper(size:bytes)")
    folded = lines_of(out["folded"])
    total = sum(folded.values())
    expect(total == summary(r)["sum"] > 0, r)
    with open(out["firefox.json"], encoding="utf-8") as file:
        firefox = json.load(file)
    expect(all(t["samples"]["weightType"] == "bytes" for t in firefox["threads"]))
    expect(firefox_folded(firefox) == folded, firefox_folded(firefox), folded)
    expect(ctf_folded(ctf_events(out["ctf"])) == folded, folded)
    with open(os.path.join(out["ctf"], "metadata"), encoding="utf-8") as file:
        expect('unit = "bytes"' in file.read())
    with open(out["html"], encoding="utf-8") as file:
        expect('"value":"size","unit":"bytes"' in file.read())
    with open(out["json"], encoding="utf-8") as file:
        objects = [json.loads(line) for line in file]
    expect(
        sum(o["values"]["size"] for o in objects if "stack" in o) == total, objects[0], objects[-1])
    again = path_of("again.folded")
    shown = cairn("profile", "show", out["pb.gz"], "--json", "-o", again, check=True)
    expect(
        lines_of(again) == folded
        and (summary(shown)["value"], summary(shown)["unit"]) == ("size", "bytes"), shown)
    hits = cairn("profile", "show", out["pb.gz"], "--value", "hits", "--json", check=True)
    expect(summary(hits)["sum"] == summary(r)["samples"] and summary(hits)["unit"] == "count", hits)


@claim
def pprof_reads_the_hits_and_the_bytes():
    go = need("go")
    log = path_of("pprof")
    r, out = calls_profile(logged("gcc"), log, "wrapper(size:bytes)")
    raw = run(go, "tool", "pprof", "-raw", out["pb.gz"],
              env={**os.environ, "HOME": folder(), "PPROF_TMPDIR": folder()})
    expect(raw.status == 0 and "hits/count size/bytes" in raw.out, raw)
    expect("PeriodType: size bytes" in raw.out and summary(r)["sum"], raw)


@claim
def an_expression_weighs_and_a_condition_chooses():
    log = path_of("chosen")
    r, out = calls_profile(logged("gcc"), log, "wrapper(size * 3 + 1) if size > 200")
    s, truth = summary(r), truth_of(log)
    sizes = own_sums(lines_of(out["folded"]))
    n_all = sum(n for n, _ in truth.values())
    expect(s["samples"] + s["filtered"] == n_all and s["filtered"] > 0 and s["undecided"] == 0, s)
    expect(s["value"] == "size * 3 + 1" and s["unit"] == "count", s)
    direct = sum(i * 3 + 1 for i in range(201, 301))
    expect(
        sizes["main;work;direct;wrapper_[i]"] == direct
        and not any("constant" in stack for stack in sizes), sizes)


@claim
def threads_that_preempt_each_other_mix_no_stacks():
    log = path_of("threads")
    r, out = calls_profile(logged("gcc"), log, "wrapper(size:bytes)", n="2000", threads="12")
    s, truth = summary(r), truth_of(log)
    expect(s["samples"] + s["lost"] == sum(n for n, _ in truth.values()), s)
    found = own_sums(lines_of(out["folded"]))
    if s["lost"] == 0:
        expect(found == {stack: size for stack, (_, size) in truth.items()}, found, truth)
    # A stack that never was would not be in the log.
    expect(all(found[stack] <= truth[stack][1] for stack in found), found, truth)


@claim
def a_process_that_runs_is_followed_with_its_calls_from_then_on():
    need_root()
    log, out = path_of("running"), path_of("running.folded")
    with subprocess.Popen([logged("gcc"), log, "200", "2", "wait"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as child:
        try:
            expect(child.stdout.readline() == "ready\n")
            with subprocess.Popen([
                    CAIRN, "profile", "-p",
                    str(child.pid), "--event", "wrapper(size:bytes)", "--json", "-o", out
            ], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as profiler:
                # It has attached when the kernel shows a breakpoint at the probed code, or says why
                # not.
                wait_for_probe(child.pid, profiler)
                child.stdin.write("go\n")
                child.stdin.flush()
                said = profiler.communicate(timeout=120)
        finally:
            child.kill()
    expect(profiler.returncode == 0, said)
    truth = truth_of(log)
    expect(
        own_sums(lines_of(out)) == {stack: size
                                    for stack, (_, size) in truth.items()}, lines_of(out), truth,
        said)


def wait_for_probe(pid, profiler, program="logged"):
    """Until the process's code differs from its file's, and stays as it is for half a second: the
    kernel puts one breakpoint after the other."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        line = next(line for line in file if os.path.basename(program) in line and " r-xp " in line)
    lo, hi = (int(n, 16) for n in line.split()[0].split("-"))
    offset = int(line.split()[2], 16)
    with open(line.split()[-1], "rb") as file:
        file.seek(offset)
        code = was = file.read(hi - lo)
    until, since = time.monotonic() + 60, 0
    while time.monotonic() < until and profiler.poll() is None:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(lo)
            now = memory.read(len(code))
        if now != was:
            was, since = now, time.monotonic()
        if since and time.monotonic() > since + 0.5:
            return
        time.sleep(0.02)
    if profiler.poll() == 3:
        raise Skip(" ".join(profiler.stderr.read().split()))
    expect(False, "no breakpoint appeared", profiler.poll())


# ---- more calls than can be read ----

# Processes that call all the time, for some seconds, from a byte on, by one of 65,536 ways: a stack
# that is new takes longest to be read.
EAGER = """\
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int ticks;
__attribute__((noinline)) void tick(int n) { ticks += n; __asm__ volatile(""); }
static void way(int depth, unsigned seed);
#define WAY(name) __attribute__((noinline, noclone)) static void name(int depth, unsigned seed) \\
	{ way(depth, seed); ticks++; __asm__ volatile(""); }
WAY(north) WAY(east) WAY(south) WAY(west)
static inline __attribute__((always_inline)) void way(int depth, unsigned seed)
{
	static void (*const ways[4])(int, unsigned) = {north, east, south, west};
	if (depth)
		ways[seed & 3](depth - 1, seed >> 2);
	else
		tick(1);
}
int main(int argc, char **argv)
{
	unsigned seed = 1;
	char go;
	int n = argc == 3 ? atoi(argv[1]) : 0;

	if (read(0, &go, 1) != 1)
		return 1;
	for (int i = 0; i < n; i++)
		if (!fork())
			for (alarm((unsigned)atoi(argv[2]));;)
				way(8, (seed = seed * 1103515245 + 12345) >> 8);
	while (wait(NULL) > 0)
		;
	return 0;
}
"""
EAGER_SECONDS = 20


@claim
def a_run_ends_in_time_though_calls_come_faster_than_they_are_read():
    """It used to read until nothing was left, which was never: --duration and Ctrl-C were not
    seen."""
    need_root()
    program, out = compile_c("eager", EAGER), path_of("eager.folded")
    n = 2 * os.cpu_count()
    with subprocess.Popen([program, str(n), str(EAGER_SECONDS)], stdin=subprocess.PIPE,
                          start_new_session=True) as child:
        try:
            with subprocess.Popen([
                    CAIRN, "profile", "-a", "--event", program + ":tick", "--duration", "2",
                    "--json", "-o", out
            ], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as profiler:
                wait_for_probe(child.pid, profiler, program)
                # Its thread that reads gets a hundredth of a processor.
                os.setpriority(os.PRIO_PROCESS, profiler.pid, 19)
                child.stdin.write(b"g")
                child.stdin.flush()
                said = profiler.communicate(timeout=120)
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    expect(profiler.returncode == 0, said)
    s = json.loads(next(line for line in said[0].splitlines() if line.startswith('{"summary"')))
    # What ends with those who call was not ended by us.
    expect(s["samples"] > 0 and s["duration_ns"] < (EAGER_SECONDS - 1) * 1e9, s)


# ---- numbers that are not there ----

UNWEIGHED = """\
#include <stddef.h>
struct box { long n; };
static volatile int ticks;
static volatile double number = 5.0;
static inline __attribute__((always_inline)) void tick(long hidden) { ticks++; (void)hidden; }
__attribute__((noinline)) void in_constant(void) { tick(7); __asm__ volatile(""); }
/* The number is computed by nobody, and no description can say how it would be. */
__attribute__((noinline)) void in_lost(void)
{
	double d = number;

	tick((long)(d * 3.0));
	tick((long)(d * 5.0));
	__asm__ volatile("");
}
__attribute__((noinline)) void open_box(struct box *box) { if (box) ticks += (int)box->n; __asm__ volatile(""); }
__attribute__((noinline)) void add(long n) { ticks += (int)n; __asm__ volatile(""); }
int main(void)
{
	struct box box = {3};
	for (int i = 0; i < 100; i++) {
		in_constant();
		in_lost();
		open_box(i % 4 ? &box : NULL);
		add(i % 10 ? i : -i - 1);
		add(i == 5 ? 0x7fffffffffffffff : 1);
	}
	return 0;
}
"""


@claim
def a_call_whose_number_is_unknown_counts_with_its_reason_and_weighs_nothing():
    path = compile_c("unweighed", UNWEIGHED)
    pb, out = path_of("unweighed.pb.gz"), path_of("unweighed.folded")
    r = profile("-c", path, "--event", "tick(hidden)", "--json", "-o", pb, "-o", out)
    s = summary(r)
    expect(r.status == 0 and s["samples"] == 300 and s["sum"] == 700, r)
    expect(
        s["without_value"] == {"optimised-out": 200}
        or s["without_value"] == {"no-description": 200}, s)
    # It has no value, so the stack has none; it is not one of 0.
    expect(all("in_lost" not in stack for stack in lines_of(out)), lines_of(out))
    with gzip.open(pb) as file:
        words = file.read()
    expect(b"unavailable" in words and list(s["without_value"])[0].encode() in words, words)
    hits = cairn("profile", "show", pb, "--value", "hits", "--json", check=True)
    expect(summary(hits)["sum"] == 300, hits)
    text = profile("-c", path, "--event", "tick(hidden)")
    expect(re.search(r"^200 hits in no sum of hidden: .*optimised out", text.out, re.M), text)


@claim
def memory_that_cannot_be_read_is_no_zero():
    r = profile("-c", compile_c("unweighed", UNWEIGHED), "--event", "open_box(box->n)", "--json")
    s = summary(r)
    expect(
        r.status == 0 and (s["samples"], s["sum"]) == (100, 225)
        and s["without_value"] == {"unreadable": 25}, r)


@claim
def numbers_that_are_negative_or_too_large_for_a_sum_are_counted():
    r = profile("-c", compile_c("unweighed", UNWEIGHED), "--event", "add(n)", "--json")
    s = summary(r)
    known = sum(i for i in range(100) if i % 10) + 99
    # Of the largest number only the first would have had room, and it was not the first.
    expect(r.status == 0 and s["samples"] == 200 and s["sum"] == known, r)
    expect(s["without_value"] == {"too-large": 11}, r)


@claim
def of_a_condition_that_reads_no_memory_the_calls_are_counted_as_undecided():
    r = profile("-c", compile_c("unweighed", UNWEIGHED), "--event", "open_box if box->n == 3",
                "--json")
    s = summary(r)
    expect(r.status == 0 and (s["samples"], s["undecided"], s["filtered"]) == (75, 25, 0), r)


# ---- periods ----

@claim
def each_nth_call_weighs_n():
    program = f"{need('taskset')} -c 0 {logged('gcc')} {path_of('period')} 300"
    r = profile("-c", program, "--event", f"{logged('gcc')}:wrapper", "--period", "7", "--json")
    n = sum(n for n, _ in truth_of(path_of("period")).values())
    s = summary(r)
    expect(r.status == 0 and (s["samples"], s["sum"]) == (n // 7, n // 7 * 7), r)


@claim
def each_nth_page_fault_weighs_n():
    r = profile("-c", f"{logged('gcc')} {path_of('faults')} 10", "--event", "page-faults",
                "--period", "5", "--json")
    s = summary(r)
    expect(r.status == 0 and s["sum"] == 5 * s["samples"] > 20, r)


# ---- sites that are refused ----

@claim
def a_site_that_cannot_be_probed_refuses_all_unless_the_rest_will_do():
    path = compile_c("unweighed", UNWEIGHED)
    r = profile("-c", path, "--event", "tick if hidden > 3")
    expect(r.status == 1 and "--best-effort" in r.err and "of 3 sites cannot be probed" in r.err, r)
    r = profile("-c", path, "--event", "tick if hidden > 3", "--best-effort", "--json")
    expect(r.status == 0 and summary(r)["samples"] == 100, r)
    expect(
        len(
            re.findall(r"^  tick inlined in in_lost\S* .*: the condition is unavailable", r.err,
                       re.M)) == 2, r)


# ---- tracepoints ----

POINT = """\
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((noinline)) void ask(void) { syscall(SYS_getpgid, 0); __asm__ volatile(""); }
int main(int argc, char **argv) { for (int n = atoi(argv[1]); n; n--) ask(); return argc > 2; }
"""


def tracepoint(*words, **kwargs):
    r = profile(*words, **kwargs)
    if r.status in (2, 3) and re.search("tracefs|not permitted", r.err):
        raise Skip(" ".join(r.err.split()))
    return r


@claim_each("syscalls:sys_enter_getpgid", "tracepoint:syscalls:sys_enter_getpgid")
def a_tracepoint_counts_each_event_with_its_whole_stack(event):
    out = path_of("point.folded")
    r = tracepoint("-c", f"{compile_c('point', POINT)} 500", "--event", event, "--json", "-o", out)
    s = summary(r)
    expect(r.status == 0 and (s["samples"], s["sum"], s["lost"]) == (500, 500, 0), r)
    expect((s["value"], s["unit"]) == ("syscalls:sys_enter_getpgid", "count"), s)
    folded = lines_of(out)
    expect(sum(n for stack, n in folded.items() if ";main;ask;" in stack) == 500, folded)
    expect(all("bpf" not in stack.rsplit(";", 1)[1] for stack in folded), folded)


WITHOUT = "umount -a -t tracefs; umount -a -t debugfs; exec \"$0\" \"$@\""


def without_tracefs(*words):
    need_root()
    r = run(need("unshare"), "--mount", "sh", "-c", WITHOUT, CAIRN, "profile", *words)
    if "unshare" in r.err or os.path.exists("/sys/kernel/tracing") is False:
        raise Skip(" ".join(r.err.split()) or "no tracefs")
    if "not permitted" in r.err:
        raise Skip(" ".join(r.err.split()))
    return r


@claim
def without_tracefs_a_tracepoint_is_found_by_its_name():
    r = without_tracefs("-c", f"{compile_c('point', POINT)} 500", "--event",
                        "raw_syscalls:sys_enter", "--json")
    s = summary(r)
    expect(r.status == 0 and s["samples"] >= 500 and s["value"] == "raw_syscalls:sys_enter", r)


@claim
def without_tracefs_one_of_a_system_call_names_the_command_that_mounts_it():
    r = without_tracefs("-c", f"{compile_c('point', POINT)} 5", "--event",
                        "syscalls:sys_enter_getpgid")
    expect(r.status == 3 and "sudo mount -t tracefs" in r.err, r)


@claim
def a_tracepoint_that_is_not_there_is_refused():
    r = tracepoint("-c", "true", "--event", "sched:no_such_event")
    expect(
        r.status == 2 and "no tracepoint sched:no_such_event" in r.err
        and "/events has a directory" in r.err, r)


# ---- what is refused ----

REFUSED = {
    "two numbers": (["-c", "{p} x 1", "--event",
                     "wrapper(size, size)"], "a hit has one number"), "an unknown unit":
    (["-c", "{p} x 1", "--event",
      "wrapper(size:pages)"], "only the units :bytes and :ns"), "an unknown argument": ([
          "-c", "{p} x 1", "--event", "wrapper(sise)"
      ], "sise"), "an unknown function": (["-c", "{p} x 1", "--event",
                                           "wraper"], "wrapper"), "a number with a period":
    (["-c", "{p} x 1", "--event", "wrapper(size)", "--period",
      "2"], "a sum of numbers needs each hit"), "a function of everything without its file":
    (["-a", "--event", "wrapper"], "a function PATH:FUNC"), "a period of a rate":
    (["-a", "--period", "3"], "--period: for events that are counted"), "a rate of calls": ([
        "-a", "--event", "./x:f", "-F", "10"
    ], "each of these events is a sample"), "best effort of a rate":
    (["-a", "--best-effort"], "--best-effort: for a probe"),
}


@claim_each(*REFUSED)
def an_event_without_sense_is_refused(what):
    words, message = REFUSED[what]
    need_root()
    r = cairn("profile", *(word.replace("{p}", logged("gcc")) for word in words))
    expect(r.status in (1, 2) and message in r.err and not r.out, r)


if __name__ == "__main__":
    main()
