#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""$duration of inlined copies, held against what a program logs of its own calls."""

import json
import re

import tracing
from claims import claim, claim_each, cairn, compile_c, expect, main, need, path_of, run

# Every call has a number. Its bounds are the clock's readings around it and in it: the program
# notes how many there were at its first and last statement. Some calls are left by longjmp().
PROGRAM = r"""
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { MAX = 100000, READS = 400000 };
static struct { int function; volatile long first, last; } calls[MAX];
static uint64_t reads[READS];
static volatile long n_reads, n_calls = 1, sink;
static jmp_buf point;
static uint64_t seed = 88172645463325252ull;
#define NO __attribute__((noinline, noclone))
#define IN static inline __attribute__((always_inline))
#define FIRST calls[id].first = n_reads
#define LAST calls[id].last = n_reads
static NO void tick(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	reads[n_reads++] = t.tv_sec * 1000000000ull + t.tv_nsec;
}
static NO unsigned draw(unsigned n)
{
	seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17;
	return (seed >> 33) % n;
}
static NO long next(int function)
{
	long id = n_calls++;
	calls[id].function = function;
	tick();
	return id;
}
static NO void leave(void) { if (!draw(3)) longjmp(point, 1); }
static NO long walk(long n);
IN long leaf(long id, long n) { FIRST; sink = n * 7; LAST; return n + 1; }
IN long loop(long id, long n) { FIRST; for (int i = 0; i < (n & 7); i++) sink += i * n; LAST; return sink; }
IN long early(long id, long n)
{
	FIRST;
	if (n & 1) { LAST; return n; }
	tick();
	if (n & 2) { LAST; return 3; }
	LAST;
	leave();
	return n * 3;
}
IN long deep(long id, long n) { FIRST; long r = n > 0 ? walk(n - 1) : 5; LAST; return r; }
IN long outer(long id, long n) { FIRST; n += leaf(next(0), n); n ^= loop(next(1), n); LAST; tick(); LAST; return n; }
IN long cases(long id, long n)
{
	FIRST;
	switch (n & 7) {
	case 0: sink = 5; break; case 1: tick(); break; case 2: sink += n; break;
	case 3: n *= 3; break; case 4: LAST; return 4; case 5: sink -= n; break; default: tick();
	}
	LAST;
	return n;
}
/* Nothing says how large the table is. */
IN long open_cases(long id, long n)
{
	FIRST;
	switch (n) {
	case 0: sink = 5; break; case 1: tick(); break; case 2: sink += n; break;
	case 3: n *= 3; break; case 4: LAST; return 4; case 5: sink -= n; break;
	default: __builtin_unreachable();
	}
	LAST;
	return n;
}
long (*volatile body)(long, long) = loop;
static NO long one(long n)
{
	long r = leaf(next(0), n);
	if (draw(2))
		r += early(next(2), n);
	for (int i = draw(5); i > 0; i--)
		r ^= loop(next(1), r);
	return r;
}
static NO long two(long n)
{
	long r = n;
	while (draw(3)) {
		if (r & 1)
			r += outer(next(4), n);
		r++;
	}
	return n & 4 ? early(next(2), r) : loop(next(1), r);
}
static NO long walk(long n)
{
	long r = n & 1 ? one(n) : two(n);
	r += body(next(1), n);
	if (draw(3))
		return deep(next(3), n);
	return r;
}
static NO long switched(long n) { return cases(next(5), n) + 1; }
static NO long open_switched(long n) { return open_cases(next(6), n) + 1; }
static NO long caught(long n)
{
	jmp_buf here;
	volatile long r = 1;
	if (!setjmp(here))
		r = n;
	if (n & 1)
		early(next(2), n & ~2);
	tick();
	return r;
}
int main(int argc, char **argv)
{
	FILE *out;
	long wanted = atol(argv[2]);
	tick();
	while (n_calls < wanted) {
		if (setjmp(point))
			tick();
		walk(draw(9));
		switched(draw(9));
		open_switched(n_calls % 6);
		caught(draw(9));
	}
	tick();
	out = fopen(argv[1], "w");
	fprintf(out, "{\"reads\": [");
	for (long i = 0; i < n_reads; i++)
		fprintf(out, "%s%lu", i ? "," : "", reads[i]);
	fprintf(out, "], \"calls\": [");
	for (long i = 1; i < n_calls; i++)
		fprintf(out, "%s[%d,%ld,%ld]", i > 1 ? "," : "", calls[i].function, calls[i].first, calls[i].last);
	fprintf(out, "]}\n");
	return fclose(out);
}
"""

FUNCTIONS = ("leaf", "loop", "early", "deep", "outer", "cases", "open_cases")
N_CALLS = 3400


def program(compiler, level="-O2"):
    need(compiler)
    return compile_c(f"copies{level}", PROGRAM, compiler, (level, "-g"))


def log_path():
    return path_of("copies.log")


def trace(path, *words, status=0, cache="--no-cache"):
    r = tracing.trace(cache, "--best-effort", "--json", "--ring", "65536",
                      "--assume-unmodified", "-c",
                      f"{path} {log_path()} {N_CALLS}", *words)
    expect(r.status == status, r)
    return r


def logged():
    """By number: the function, the least and the largest duration."""
    with open(log_path(), encoding="utf-8") as file:
        log = json.load(file)
    reads, calls = log["reads"], {}
    for number, (function, first, last) in enumerate(log["calls"], 1):
        if last:
            least = reads[last - 1] - reads[first] if last > first else 0
            calls[number] = (FUNCTIONS[function], least,
                             reads[last] - reads[first - 1])
    return calls


def objects(r):
    return [json.loads(line) for line in r.out.splitlines()]


def check(events, calls):
    """Returns the calls that have a duration, and the reasons why others have none."""
    seen, reasons = {}, {}
    for event in events:
        number, duration = event["args"]["id"], event["args"]["$duration"]
        if isinstance(duration, dict):
            reasons[event["function"]] = duration["unavailable"]
            continue
        function, least, largest = calls[number]
        expect(number not in seen and function == event["function"],
               "no such call, or a second one", event)
        expect(least <= duration <= largest, event, least, largest)
        seen[number] = duration
    return seen, reasons


@claim_each(("gcc", "-O1"), ("gcc", "-O2"), ("clang", "-O2"))
def durations_of_copies_are_those_that_the_program_logs(which):
    r = trace(program(*which), *(f"{f}(id, $duration)" for f in FUNCTIONS))
    *events, summary = objects(r)
    calls = logged()
    seen, reasons = check(events, calls)
    functions = {calls[n][0] for n in seen}
    expect({"leaf", "loop", "early", "outer", "cases"} <= functions, functions,
           r.err)
    expect(len(seen) > len(calls) // 2, len(seen), len(calls), r.err)
    expect(summary["lost"] == 0 and summary["unwound"] > 4, summary)
    # A call has its event, or is counted.
    others = summary["unwound"] + summary["unfinished"] + summary["too_deep"]
    expect(len(events) + others >= len(calls), len(events), summary)
    expect(
        reasons["open_cases"].startswith(
            "where the inlined copy ends is not known: "), reasons)


@claim
def a_copy_without_a_known_end_is_listed_with_the_reason():
    path = program("gcc")
    why = (
        r"\$duration: where the inlined copy ends is not known: it has a jump whose targets are "
        r"not known, at 0x\w+")
    r = trace(path, "open_cases(id, $duration)")
    summary = objects(r)[-1]
    expect(
        re.search("at 1 of these sites:\n +open_cases inlined in open_switched.*" + why,
                  r.err), r.err)
    expect(summary["without_end"] == 1, summary)
    r = cairn("trace", "--no-cache", "--dry-run", "--json", "-c", path,
              "open_cases(id, $duration)")
    (site, ) = objects(r)
    expect(re.fullmatch(why, "$duration: " + site["unavailable"]["$duration"]),
           site)
    for words in (("open_cases if $duration > 5", ), ("--hist", "$duration",
                                                 "open_cases")):
        r = tracing.trace("--no-cache", "-c", path, *words)
        expect(r.status == 1 and "a jump whose targets are not known" in r.err,
               r)


@claim
def a_container_that_longjmp_may_lead_into_is_refused():
    r = trace(program("gcc"), "early($duration)")
    expect("longjmp() may lead into the function around it" in r.err, r.err)


# Copies whose end a longjmp() may skip, each in a function of its own; and the caller's code in a
# copy, which may take long. None of it is run.
TRAPS = r"""
#include <setjmp.h>
#include <sys/syscall.h>
extern int _setjmp(jmp_buf) __attribute__((noplt));
int save(void *) __attribute__((returns_twice));
__asm__("save: xor %eax, %eax; ret");
int (*volatile pointer)(jmp_buf) __attribute__((returns_twice));
static jmp_buf point;
static void *label[5];
volatile long g;
#define NO __attribute__((noinline, noclone))
NO void work(int n) { __asm__ volatile("" ::: "memory"); if (n) longjmp(point, 1); }
NO void slow(void) { __asm__ volatile("" ::: "memory"); }
NO int more(void) { return ++g % 3 == 2; }
#define COPY(name) static inline __attribute__((always_inline)) \
	void name(int n) { g += n * 3; work(n); g ^= 5; }
COPY(by_slot) COPY(by_pointer) COPY(by_assembler) COPY(by_builtin) COPY(by_loop) COPY(no_jump)
#define IN(name, first) NO void in_##name(int n) { if (!first) name(n); else slow(); g *= 3; g ^= g << 3; }
IN(by_slot, _setjmp(point)) IN(by_pointer, pointer(point)) IN(by_assembler, save(label))
IN(by_builtin, __builtin_setjmp(label)) IN(no_jump, more())
int again(jmp_buf) __asm__("_setjmp") __attribute__((returns_twice));
NO void in_by_loop(int n)
{
	for (volatile int i = 0; i < n; i++) {
		by_loop(i == 1);
		do { g++; if (again(point)) slow(); } while (more());
	}
}
static inline __attribute__((always_inline)) long waits(long *p) { long a = *p; return (a * 31) ^ (a >> 3); }
static inline __attribute__((always_inline)) long repeats(long *p) { long a = *p; return (a * 31) ^ (a >> 3); }
NO long in_waits(long *p)
{
	long m = waits(p), r;
	__asm__ volatile("syscall" : "=a"(r) : "0"(SYS_getppid) : "rcx", "r11", "memory");
	return m;
}
NO long in_repeats(long *p, char *to, long n)
{
	long m = repeats(p);
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(1) : "memory");
	return m;
}
int main(int argc, char **argv)
{
	char to[8];
	in_by_slot(0); in_by_pointer(0); in_by_assembler(0); in_by_builtin(0); in_by_loop(0); in_no_jump(0);
	return in_waits((long *)to) + in_repeats((long *)to, to, 8);
}
"""

THROWS = r"""
volatile long g;
static inline __attribute__((always_inline)) void copy(volatile long *p) { g += 3; *p = 4; g ^= 5; }
__attribute__((noinline)) void check(long n) { if (n > 99) throw 1; }
__attribute__((noinline)) void around(volatile long *p)
{
	try { copy(p); check(*p); } catch (int) { g = 7; }
	g *= 3;
}
int main() { around(&g); }
"""


def reasons_of(path, *functions):
    """By function: why its only copy has no known end; None: it has one."""
    r = cairn("trace", "--no-cache", "--dry-run", "--json",
              "--assume-unmodified", "-c", path,
              *(f"{f}($duration)" for f in functions))
    sites = objects(r)
    expect(len(sites) == len(functions), r)
    return {
        s["function"]: s.get("unavailable", {}).get("$duration")
        for s in sites
    }


@claim
def copies_that_longjmp_may_leave_in_any_way_are_refused():
    need("gcc")
    path = compile_c("traps", TRAPS, "gcc", ("-O2", "-g", "-w"))
    jumps = ("by_slot", "by_pointer", "by_assembler", "by_builtin", "by_loop")
    gaps = ("waits", "repeats")
    reasons = reasons_of(path, *jumps, *gaps, "no_jump")
    for f in jumps:
        expect("longjmp() may lead into" in (reasons[f] or ""), f, reasons)
    for f in gaps:
        expect("may wait or repeat" in (reasons[f] or ""), f, reasons)
    expect(reasons["no_jump"] is None, reasons)


@claim_each((("-fnon-call-exceptions", ), False),
            (("-gno-record-gcc-switches", "-fnon-call-exceptions"), False),
            ((), True))
def copies_without_calls_are_refused_where_any_instruction_may_throw(which):
    flags, is_known = which
    need("g++")
    path = compile_c("throws", THROWS, "g++",
                     ("-x", "c++", "-O2", "-g") + flags)
    why = reasons_of(path, "copy")["copy"]
    expect(why is None if is_known else "an exception may be caught" in why,
           why)


@claim
def a_result_is_not_known_beside_a_duration():
    r = trace(program("gcc"), "leaf(id, $ret, $duration)")
    event = objects(r)[0]
    expect(
        event["args"]["$ret"]["unavailable"]
        == "an inlined copy leaves its result where no "
        "convention says" and event["args"]["$duration"] > 0, event)


@claim
def a_histogram_has_bodies_and_copies():
    path = program("gcc")
    table, summary = objects(trace(path, "--hist", "$duration", "loop"))
    calls = logged()
    count = sum(c[0] == "loop" for c in calls.values())
    expect(table["count"] == count and summary["unwound"] == 0, table, count)
    expect(summary["attached"] > 3 and summary["refused"] == 0, summary)


@claim
def conditions_choose_calls_by_their_duration():
    r = trace(program("gcc"),
              "outer(id, $duration) if $duration > 4000 && n != 3",
              "loop(id, $duration) if $duration < 3000")
    *events, summary = objects(r)
    seen, _ = check(events, logged())
    expect(seen and summary["filtered"] > 0, summary)
    for event in events:
        d = event["args"]["$duration"]
        expect(d > 4000 if event["function"] == "outer" else d < 3000, event)


@claim
def single_uprobes_do_as_well():
    *events, summary = objects(
        trace(program("gcc"), "--backend", "uprobe", "leaf(id, $duration)",
              "early(id, $duration)"))
    seen, _ = check(events, logged())
    expect(seen and summary["backend"] == "uprobe", summary)


@claim
def a_sidecar_leaves_it_to_the_debug_information():
    path = program("gcc")
    sidecar = path_of("copies.cairn")
    r = cairn("sidecar", path, "-o", sidecar, "--args")
    expect(r.status == 0, r)
    stripped = path_of("copies-stripped")
    run("strip", "-o", stripped, path, check=True)
    r = tracing.trace("--json", "--sidecar", sidecar, "-c",
                      f"{stripped} {log_path()} 100", "leaf(id, $duration)")
    expect("only the debug information says which code is the copy's" in r.err,
           r)


main()
