#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""$ret and $duration, held against what programs log of their own calls: recursion, tail calls,
longjmp(), signal handlers and threads, by both ways of following a call to its return."""

import collections
import json
import os
import re

import tracing
from claims import (Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect, folder,
                    main, need, run)

BACKENDS = ("auto", "uprobe_multi", "uprobe")
COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O1", "-O2", "-O3")

# Every call has a number, which is its first argument, and the program's clock is read before the
# call, at its first and last statement, and after it. What a call does is drawn.
WALK = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { MAX = 400000, POINTS = 8, LEVELS = 12 };
enum { WALK, GUARDED, TAIL, LEAF, EVEN, ODD, HANDLED, QUIET, N_FUNCTIONS };
static const char *const names[] = { "walk", "guarded", "tail", "leaf", "even", "odd", "handled", "quiet" };
struct call { long value, within; uint64_t before, first, last, after; int function; bool is_back; };
static struct call *calls;
static long n_calls = 1;
static long n_wanted;
static bool may_die;
static __thread uint64_t seed;
static __thread sigjmp_buf *points[POINTS];
static __thread int n_points;
static volatile long sink;
static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static long next(int function, long within)
{
	long id = __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
	if (id >= MAX)
		abort();
	calls[id].function = function;
	calls[id].within = within;
	calls[id].before = now();
	return id;
}
static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}
static long done(long id, long value)
{
	calls[id].after = now();
	calls[id].value = value;
	calls[id].is_back = true;
	return value;
}
#define CALL(f, n, ...) ({ long id_ = next(n, 0); done(id_, f(id_, __VA_ARGS__)); })
#define F __attribute__((noinline)) 
#define FIRST calls[id].first = now()
#define LAST calls[id].last = now()
long walk(long id, int level);
F long leaf(long id, long n) { FIRST; long r = sink = n * 7 - 3; LAST; return r; }
F long tail(long id, long n) { FIRST; return leaf(next(LEAF, id), n + 1); }
long odd(long id, long n);
F long even(long id, long n) { FIRST; if (n <= 0) return -n; return odd(next(ODD, id), n - 1); }
F long odd(long id, long n) { FIRST; if (n <= 0) return 100 - n; return even(next(EVEN, id), n - 1); }
F int handled(long id, int n) { FIRST; int r = -n; sink = r; LAST; return r; }
F void quiet(long id, int n) { FIRST; for (int i = 0; i < n; i++) sink = i; LAST; }
F short guarded(long id, int level)
{
	sigjmp_buf point;
	volatile short r = -7;

	FIRST;
	points[n_points++] = &point;
	if (!sigsetjmp(point, 1)) {
		r = CALL(walk, WALK, level - 1);
		n_points--;
	}
	LAST;
	return r;
}
static void jump(void)
{
	n_points -= 1 + draw(n_points);
	siglongjmp(*points[n_points], 1);
}
static void on_signal(int n)
{
	CALL(handled, HANDLED, n + draw(1000));
	if (n_points && !draw(6))
		jump();
}
F long walk(long id, int level)
{
	FIRST;
	long r = id * 3;
	for (int i = 0; i < 3; i++) {
		switch (draw(9)) {
		case 0: case 1: if (level > 0) r += CALL(walk, WALK, level - 1); break;
		case 2: if (level > 0 && n_points < POINTS) r ^= CALL(guarded, GUARDED, level - 1); break;
		case 3: r -= CALL(tail, TAIL, r); break;
		case 4: r += CALL(even, EVEN, draw(7)); break;
		case 5: if (!draw(4)) raise(SIGUSR1); break;
		case 6: if (n_points && !draw(8)) jump(); break;
		case 7: { long q = next(QUIET, 0); quiet(q, draw(50)); done(q, 0); } break;
		default: if (may_die && !draw(300)) syscall(SYS_exit, 0);
		}
	}
	LAST;
	return r;
}
static void *thread(void *arg)
{
	seed = (long)arg * 77 + 5;
	while (__atomic_load_n(&n_calls, __ATOMIC_RELAXED) < n_wanted) {
		n_points = 0;
		CALL(walk, WALK, LEVELS);
	}
	return 0;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[2]);
	pthread_t threads[64];
	FILE *out;

	n_wanted = atol(argv[3]);
	calls = calloc(MAX, sizeof(*calls));
	signal(SIGUSR1, on_signal);
	if (n == 1)
		thread((void *)(long)argc);
	may_die = n > 1;
	for (long i = 0; i < n && n > 1; i++)
		pthread_create(&threads[i], 0, thread, (void *)i);
	for (int i = 0; i < n && n > 1; i++)
		pthread_join(threads[i], 0);
	out = fopen(argv[1], "w");
	for (long i = 1; i < n_calls; i++)
		fprintf(out, "[%ld, \"%s\", %ld, %ld, %lu, %lu, %lu, %lu, %d]\n", i, names[calls[i].function], calls[i].value,
			calls[i].within, calls[i].before, calls[i].first, calls[i].last, calls[i].after, calls[i].is_back);
	return fclose(out);
}
"""

Call = collections.namedtuple(
    "Call", "id function value within before first last after is_back")
FUNCTIONS = ("walk", "guarded", "tail", "leaf", "even", "odd", "handled",
             "quiet")


def trace(*words, status=0):
    r = tracing.trace("--no-cache", *words)
    expect(r.status == status, r)
    return r


def objects(r):
    return [json.loads(line) for line in r.out.splitlines()]


def log_path():
    return os.path.join(folder(), "walk.log")


def logged():
    """The calls by number; of a tail call the value and the end are those of the caller's."""
    with open(log_path(), encoding="utf-8") as file:
        calls = {c[0]: Call(*c) for c in map(json.loads, file)}
    for i, c in calls.items():
        first = c
        while first.within:
            first = calls[first.within]
        calls[i] = c._replace(value=first.value,
                              after=first.after,
                              is_back=first.is_back)
    return calls


def walk(compiler, level, n_threads, n_calls, *words, probes=None):
    path = compile_c("walk", WALK, compiler, (level, "-g", "-pthread"))
    probes = probes or [
        f"{f}(id, $duration)" if f == "quiet" else f"{f}(id, $ret, $duration)"
        for f in FUNCTIONS
    ]
    sample = ("--assume-unmodified", ) if compiler == "clang" else ()
    r = trace("--json", "--ring", "65536", *sample, *words, "-c",
              f"{path} {log_path()} {n_threads} {n_calls}", *probes)
    *events, summary = objects(r)
    return events, summary, logged()


def check_call(call, event):
    args = event["args"]
    expect(event["function"] == call.function, call, event)
    if call.function != "quiet":
        expect(args["$ret"] == call.value, call, event)
    least = call.last - call.first if call.last else 0
    expect(least <= args["$duration"] <= call.after - call.before, call, event)


def check_all(events, summary, calls):
    """An event for each call that returned, and a count for each of the others."""
    seen = set()
    for event in events:
        call = calls[event["args"]["id"]]
        expect(call.is_back and call.id not in seen,
               "no such return, or a second one", call, event)
        seen.add(call.id)
        check_call(call, event)
    back = {c.id for c in calls.values() if c.is_back}
    expect(summary["lost"] == 0 and summary["missed"] == 0, summary)
    missing = len(back) - len(seen)
    expect(missing <= summary["too_deep"] + summary["apart"], missing, summary)
    others = sum(summary[k]
                 for k in ("unwound", "unfinished", "too_deep", "apart"))
    expect(len(seen) + others == len(calls), len(seen), len(calls), summary)
    return seen


@claim_each_of_many(*[(c, l, b) for c in COMPILERS for l in LEVELS
              for b in BACKENDS[:2]])
def calls_have_the_programs_results_and_times(which):
    compiler, level, backend = which
    need(compiler)
    events, summary, calls = walk(compiler, level, 1, 20000, "--backend",
                                  backend)
    seen = check_all(events, summary, calls)
    expect(
        len(seen) > len(calls) // 2 and summary["unwound"] > 10, len(seen),
        summary)


@claim
def single_uprobes_do_as_well():
    events, summary, calls = walk("gcc", "-O2", 1, 3000, "--backend", "uprobe")
    check_all(events, summary, calls)
    expect(summary["backend"] == "uprobe", summary)


@claim_each(*BACKENDS[:2])
def threads_that_end_within_calls_are_counted(backend):
    events, summary, calls = walk("gcc", "-O2", 64, 60000, "--backend",
                                  backend)
    check_all(events, summary, calls)
    expect(summary["unfinished"] > 10, summary)


# ---- types ----

TYPES = r"""
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
enum colour { RED, GREEN = 5, BLUE = -7 };
enum wide { LOW, HIGH = 0x123456789abcdefll };
struct one { int a; };
struct pair { long a; char b; };
struct mixed { long a; double b; };
struct floats { double a, b; };
struct large { long a; int b; char text[12]; short c; };
struct odd { signed char a[3]; };
struct bits { unsigned a : 3; int b : 5; long c : 50; };
union either { int a; unsigned b; };
struct node { int n; const char *name; struct node *next; };
static struct node last = { 3, "last", 0 }, first = { -2, "first", &last };
volatile long sink;
#define F(type, name, ...) __attribute__((noinline)) type name(int i) { sink = i; __VA_ARGS__; }
F(signed char, schar, return -i - 3)
F(unsigned char, uchar, return 250 + i)
F(char, letter, return 'a' + i)
F(short, int16, return -300 * i)
F(unsigned short, uint16, return 65535 - i)
F(int, int32, return i ? -2147483647 - 1 + i : -1)
F(unsigned, uint32, return 4294967295u - i)
F(long, int64, return -1234567890123l * i)
F(unsigned long, uint64, return ~0ul - i)
F(__int128, int128, return (__int128)-1 - i)
F(bool, truth, return i & 1)
F(enum colour, colour, return i == 0 ? RED : i == 1 ? GREEN : BLUE)
F(enum wide, wide, return i ? HIGH : LOW)
F(void *, address, return i ? (void *)(0x10000ul * i) : 0)
F(const char *, text, return i ? i == 1 ? "one" : "caf\303\251 \"q\"" : 0)
F(struct node *, node, return i ? i == 1 ? &first : &last : 0)
F(struct one, one, struct one r = { -i - 1 }; return r)
F(struct pair, pair, struct pair r = { -5 * i, 'p' + i }; return r)
F(struct large, large, struct large r = { 1l << 40 | i, -i, "within", 7 }; return r)
F(struct odd, odd, struct odd r = { { 1, i, -1 } }; return r)
F(struct bits, bits, struct bits r = { i + 1, -i, -1l << 33 | i }; return r)
F(union either, either, union either r = { 0x01020304 * i }; return r)
F(struct mixed, mixed, struct mixed r = { i, .5 }; return r)
F(struct floats, floats, struct floats r = { i, .5 }; return r)
F(double, number, return i)
F(float, small, return i)
F(long double, longer, return i)
F(void, nothing, )
__attribute__((noinline)) static int own(int i) { sink = i; return i * 11 + 2; }
int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		schar(i), uchar(i), letter(i), int16(i), uint16(i), int32(i), uint32(i), int64(i), uint64(i), int128(i), truth(i);
		colour(i), wide(i), address(i), text(i), node(i), one(i), pair(i), large(i), odd(i), bits(i), either(i);
		mixed(i), floats(i), number(i), small(i), longer(i), nothing(i);
		sink = own(i) + argc;
	}
	return argv[0] == 0;
}
"""

TOP = 2**64
RESULTS = {
    "schar": ["-3", "-4", "-5"],
    "uchar": ["250", "251", "252"],
    "letter": ["'a'", "'b'", "'c'"],
    "int16": ["0", "-300", "-600"],
    "uint16": ["65535", "65534", "65533"],
    "int32": ["-1", "-2147483647", "-2147483646"],
    "uint32": ["4294967295", "4294967294", "4294967293"],
    "int64": ["0", "-1234567890123", "-2469135780246"],
    "uint64": [str(TOP - 1), str(TOP - 2),
               str(TOP - 3)],
    "int128": ["-1", "-2", "-3"],
    "truth": ["false", "true", "false"],
    "colour": ["RED", "GREEN", "BLUE"],
    "wide": ["LOW", "HIGH", "HIGH"],
    "address": ["0x0", "0x10000", "0x20000"],
    "text": ["NULL", '"one"', '"caf\u00e9 \\"q\\""'],
    "one": ["{.a = -1}", "{.a = -2}", "{.a = -3}"],
    "pair":
    ["{.a = 0, .b = 'p'}", "{.a = -5, .b = 'q'}", "{.a = -10, .b = 'r'}"],
    "large": [
        f'{{.a = {2**40 + i}, .b = {-i}, .text = "within", .c = 7}}'
        for i in range(3)
    ],
    "odd": ["{.a = {1, 0, -1}}", "{.a = {1, 1, -1}}", "{.a = {1, 2, -1}}"],
    "bits":
    [f"{{.a = {i + 1}, .b = {-i}, .c = {-2**33 + i}}}" for i in range(3)],
    "either": [f"{{.a = {n}, .b = {n}}}" for n in (0, 16909060, 33818120)],
    "own": ["2", "13", "24"],
}
UNAVAILABLE = ("mixed", "floats", "number", "small", "longer")


def types(compiler, level, backend, *probes, status=0, words=()):
    path = compile_c("types", TYPES, compiler, (level, "-g"))
    return trace("--backend",
                 backend,
                 *words,
                 "-c",
                 path,
                 *probes,
                 status=status)


def results(r, function):
    pattern = re.compile(rf" {function} return[^:]*: \$ret=(.*)$", re.M)
    return pattern.findall(r.out)


@claim_each_of_many(*[(c, l, b) for c in COMPILERS for l in ("-O0", "-O2")
              for b in BACKENDS])
def results_have_the_types_of_the_functions(which):
    compiler, level, backend = which
    need(compiler)
    names = [n for n in RESULTS if n != "own"]
    r = types(compiler, level, backend, *(f"{n}($ret)" for n in names))
    for name in names:
        expect(
            results(r, name) == RESULTS[name], name, results(r, name), r.err)


@claim_each_of_many(*COMPILERS)
def members_of_what_a_result_points_to_are_fetched_at_the_return(compiler):
    need(compiler)
    r = types(compiler, "-O2", "auto",
              "node($ret->n, $ret->name, $ret->next->n, i)")
    expect(
        "$ret->n=<unreadable" in r.out
        and '$ret->n=-2, $ret->name="first", $ret->next->n=3, i=1' in r.out, r)


@claim_each(*UNAVAILABLE)
def results_in_registers_that_cannot_be_read_are_refused(name):
    r = types("gcc", "-O2", "auto", f"{name}($ret)", status=1)
    expect("vector register" in r.err or "register" in r.err, r)


@claim
def a_void_function_has_a_duration_and_no_result():
    r = types("gcc", "-O2", "auto", "nothing($ret)", status=2)
    expect("nothing returns nothing: it is void" in r.err and "^" in r.err, r)
    r = types("gcc", "-O2", "auto", "nothing($duration, i)")
    expect(
        len(
            re.findall(r"nothing return: \$duration=\d+ ns, i=[012]$", r.out,
                       re.M)) == 3, r)


@claim
def a_local_function_has_a_result_if_its_compiler_cannot_have_removed_it():
    r = types("gcc", "-O2", "auto", "own($ret)")
    expect(results(r, "own") == RESULTS["own"], r)
    need("clang")
    r = types("clang", "-O2", "auto", "own($ret)", status=1)
    expect("may have removed the result" in r.err, r)
    r = types("clang", "-O2", "auto", "own($duration)")
    expect(r.out.count("$duration=") == 3, r)


# ---- conditions, sums, places ----


def wrapped(n, bits=64):
    return (n + 2**(bits - 1)) % 2**bits - 2**(bits - 1)


@claim_each(*BACKENDS[:2])
def conditions_take_arguments_of_the_entry_and_results(backend):
    probe = "walk(id, level, $ret) if level > 2 && $ret > id * 3 - level && $duration > 100"
    events, summary, calls = walk("gcc",
                                  "-O1",
                                  1,
                                  20000,
                                  "--backend",
                                  backend,
                                  probes=[probe])
    mine = [c for c in calls.values() if c.function == "walk"]
    seen = {e["args"]["id"]: e["args"] for e in events}
    for call in mine:
        args = seen.pop(call.id, None)
        if not call.is_back or call.after - call.before < 100:
            expect(args is None, call, args)
        elif args:
            expect(
                args["$ret"] == call.value > call.id * 3 - args["level"]
                and args["level"] > 2, call, args)
    expect(not seen and len(events) > 100 and summary["filtered"] > 100, seen,
           summary)
    expect(
        summary["events"] + sum(summary[k]
                                for k in ("filtered", "unwound", "unfinished",
                                          "too_deep", "apart")) == len(mine),
        summary)


@claim_each(*[(b, p) for b in BACKENDS[:2] for p in (1, 8)])
def sums_are_those_of_the_log(which):
    backend, n_threads = which
    sums = ("--count", "--sum", "$ret", "--max", "$ret - id", "--min",
            "id * 2 + $ret", "--hist", "$ret", "--by", "$tid")
    objs, summary, calls = walk("gcc",
                                "-O2",
                                n_threads,
                                30000,
                                "--backend",
                                backend,
                                *sums,
                                probes=["even", "guarded"])
    objs = [o for o in objs if "rows" in o]
    for function in ("even", "guarded"):
        mine = [
            c for c in calls.values() if c.function == function and c.is_back
        ]
        rows = [r for r in objs[-1]["rows"] if r["function"] == function]
        lost = sum(summary[k] for k in ("too_deep", "apart"))
        expect(summary["lost"] == 0 and lost == 0, summary)
        expect(sum(r["count"] for r in rows) == len(mine), len(mine), rows)
        expect(
            sum(r["sum"]["$ret"] for r in rows) == sum(c.value for c in mine),
            rows)
        expect(
            max(r["max"]["$ret - id"]
                for r in rows) == max(c.value - c.id for c in mine), rows)
        expect(
            min(r["min"]["id * 2 + $ret"]
                for r in rows) == min(c.id * 2 + c.value for c in mine), rows)


@claim_each(*BACKENDS[:2])
def a_histogram_of_durations_lies_between_the_programs_own(backend):
    objs, _, calls = walk("gcc",
                          "-O2",
                          1,
                          20000,
                          "--backend",
                          backend,
                          "--hist",
                          "$duration",
                          "--count",
                          probes=["walk"])
    mine = [c for c in calls.values() if c.function == "walk" and c.is_back]
    row = objs[-1]["rows"][0]
    expect(row["count"] == len(mine), row, len(mine))
    bounds = [(b["min"], b["count"]) for b in row["hist"]["$duration"]]
    for limit in (1 << k for k in range(6, 40)):
        n = sum(count for start, count in bounds if start < limit)
        expect(
            sum(c.after - c.before < limit
                for c in mine) <= n <= sum(c.last - c.first < limit
                                           for c in mine), limit, n)


DEEP = r"""
#include <stdlib.h>
volatile long sink;
__attribute__((noinline)) int deep(int n) { int r = n ? deep(n - 1) + 1 : 0; sink = r; return r; }
static inline __attribute__((always_inline)) int twice(int n) { sink = n; return n * 2; }
__attribute__((noinline)) int user(int n) { return twice(n + 1) + 1; }
int (*volatile indirect)(int) = twice;
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	sink = deep(n);
	for (int i = 0; i < 4; i++)
		sink = user(i) + indirect(i);
	return 0;
}
"""


@claim_each(*BACKENDS)
def what_is_nested_too_deep_is_counted(backend):
    path = compile_c("deep", DEEP, "gcc", ("-O1", "-g"))
    r = trace("--backend", backend, "--json", "-c", f"{path} 199",
              "deep(n, $ret)")
    *events, summary = objects(r)
    expect(
        sorted(e["args"]["n"] for e in events) == list(range(136, 200)), r.out)
    expect(all(e["args"]["n"] == e["args"]["$ret"] for e in events), r.out)
    expect(
        summary["too_deep"] == 136
        and "136 calls did not return: 136 nested" in r.err, r)


@claim_each(*BACKENDS[:2])
def events_of_inlined_copies_say_that_they_have_no_result(backend):
    path = compile_c("deep", DEEP, "gcc", ("-O1", "-g"))
    command = ("--backend", backend, "-c", f"{path} 1")
    r = trace(*command, "twice(n, $ret, $duration)")
    expect(
        len(
            re.findall(
                r"inlined in user\+0x\w+: n=\d, \$ret=<unavailable: an inlined copy leaves "
                r"its result where no convention says>, \$duration=\d+ ns",
                r.out)) == 4, r)
    r = trace(*command, "twice(n, $ret)")
    expect(
        r.out.count(
            "$ret=<unavailable: an inlined copy leaves its result where no convention says>"
        ) == 4, r)
    r = trace(*command, "twice(n, $ret, $duration)")
    for n in range(4):
        expect(
            re.search(
                rf"twice return: n={n}, \$ret={2 * n}, \$duration=\d+ ns",
                r.out), r)
    r = trace(*command, "twice if $ret > 2", status=1)
    expect("an inlined copy leaves its result where no convention says" in r.err, r)
    r = trace(*command, "twice if $ret > 2 && $duration > 0", status=1)
    expect(
        "an inlined copy leaves its result where no convention says" in r.err,
        r)
    r = trace(*command, "--best-effort", "--sum", "$ret", "twice")
    expect("1 of 2 sites" in r.err and re.search(r"^ +12$", r.out, re.M), r)


# ---- where a return probe would do harm ----

THROWS = r"""
extern "C" __attribute__((noinline)) int thrower(int n) { if (n & 1) throw n; return n; }
int main() { int caught = 0; for (int i = 0; i < 10; i++) try { thrower(i); } catch (int) { caught++; } return caught; }
"""

# A thread on several stacks: a signal's, and two coroutines'.
STACKS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
volatile long sink;
static ucontext_t coroutine, back, low;
__attribute__((noinline)) int inner(int n) { sink = n; return n + 1; }
static void on_signal(int n) { inner(n); }
__attribute__((noinline)) int outer(int n) { raise(SIGUSR1); sink = n; return n * 2; }
__attribute__((noinline)) int waits(int n) { swapcontext(&coroutine, &back); sink = n; return n; }
static void body(void) { for (int i = 0;; i++) waits(i); }
static void calls(void) { for (int i = 0; i < 20; i++) outer(i); }
static void make(ucontext_t *c, char *stack, void (*f)(void))
{
	getcontext(c);
	c->uc_stack.ss_sp = stack;
	c->uc_stack.ss_size = 1 << 18;
	c->uc_link = &back;
	makecontext(c, f, 0);
}
int main(int argc, char **argv)
{
	char *mem = mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t s = { .ss_sp = mem + (3 << 20), .ss_size = 1 << 16 };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&s, 0);
	sigaction(SIGUSR1, &sa, 0);
	make(&low, mem, calls);
	make(&coroutine, mem, body);
	if (!strcmp(argv[1], "signal"))
		return swapcontext(&back, &low);
	for (int i = 0; i < 20; i++) {
		swapcontext(&back, &coroutine);
		outer(i);
	}
	return 0;
}
"""


def stacks_path():
    return compile_c("stacks", STACKS, "gcc", ("-O1", "-g"))


@claim_each(("signal", {
    "outer": 20,
    "inner": 0,
    "waits": 0
}, 20), ("coroutine", {
    "outer": 0,
    "inner": 0,
    "waits": 19
}, 40))
def calls_on_another_stack_are_left_alone(which):
    how, wanted, apart = which
    r = trace("--json", "-c", f"{stacks_path()} {how}", "outer(n, $ret)",
              "inner(n, $ret)", "waits(n, $ret)")
    *events, summary = objects(r)
    if summary["backend"] != "uprobe_session":
        raise Skip("this kernel has no sessions")
    expect("ended by signal" not in r.err, r)
    expect(
        collections.Counter(e["function"]
                            for e in events) == collections.Counter(
                                {k: v
                                 for k, v in wanted.items() if v}), r.out)
    expect(summary["apart"] == apart and "would do harm" in r.err, r)


# A copy is in progress, or the function around it is entered on the other stack.
COPIES_AND_STACKS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
volatile long sink;
static int enters;
__attribute__((noipa)) int inner(int n) { sink += n; return n + 1; }
static inline __attribute__((always_inline)) void signals(int n)
{
	sink += n;
	pthread_kill(pthread_self(), SIGUSR1);
	sink ^= n;
}
static inline __attribute__((always_inline)) void plain(int n) { sink += n; __asm__("nop"); sink ^= n; }
__attribute__((noipa)) int around(int n) { signals(n); sink *= 3; return n; }
__attribute__((noipa)) int perhaps(int is_wanted, int n)
{
	if (is_wanted) plain(n);
	sink *= 3; sink ^= sink << 3; sink += 7;
	return n;
}
static void on_signal(int n) { if (enters) perhaps(enters - 1, n); sink += inner(n); }
__attribute__((noipa)) int outer(int n) { int r = around(n); sink += r; return r; }
static char *mem;
static void *run(void *arg)
{
	stack_t s = { .ss_sp = mem + (8 << 20), .ss_size = 1 << 20 };
	sigaltstack(&s, 0);
	for (int i = 0; i < 5; i++)
		outer(i);
	return 0;
}
int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	pthread_attr_t a;
	pthread_t t;
	enters = argv[1][0] - '0';
	mem = mmap(0, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGUSR1, &sa, 0);
	pthread_attr_init(&a);
	pthread_attr_setstack(&a, mem, 1 << 20);
	pthread_create(&t, &a, run, 0);
	return pthread_join(t, 0);
}
"""


@claim_each("0", "1", "2")
def nor_is_a_call_forgotten_for_a_copy_on_another_stack(enters):
    path = compile_c("copies_and_stacks", COPIES_AND_STACKS, "gcc",
                     ("-O2", "-g"))
    probes = [
        "signals($duration)", "plain($duration)", "outer($duration)",
        "inner($duration)"
    ]
    for asked in (probes, probes[1:]):
        r = trace("--json", "--best-effort", "-c", f"{path} {enters}", *asked)
        *events, summary = objects(r)
        if summary["backend"] != "uprobe_session":
            raise Skip("this kernel has no sessions")
        expect("ended by signal" not in r.err, r)
        found = collections.Counter(e["function"] for e in events)
        expect(found["outer"] == 5 and not found["inner"], found, r.err)
        expect(summary["apart"] >= 5, summary)


@claim_each(*BACKENDS[1:])
def without_sessions_a_program_with_several_stacks_is_refused(backend):
    r = trace("--backend",
              backend,
              "-c",
              f"{stacks_path()} signal",
              "outer($ret)",
              status=3)
    expect("uses several stacks in a thread" in r.err, r)


# The same log as WALK's, of functions that throw, pass, catch and rethrow.
CXX = r"""
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <time.h>
enum { MAX = 200000 };
enum { WALK, GUARDED, PASSES, GONE, SUM, N_FUNCTIONS };
static const char *const names[] = { "walk", "guarded", "passes", "gone", "sum" };
struct call { long value, within; uint64_t before, first, last, after; int function; bool is_back; };
static call *calls;
static long n_calls = 1, n_alive;
static uint64_t seed = 99;
static volatile long sink;
static uint64_t now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static long next(int function) { long id = n_calls++; calls[id].function = function; calls[id].before = now(); return id; }
static unsigned draw(unsigned n) { seed = seed * 6364136223846793005u + 1442695040888963407u; return (seed >> 33) % n; }
static long done(long id, long value) { calls[id].after = now(); calls[id].value = value; calls[id].is_back = true; return value; }
#define CALL(f, n, ...) ({ long id_ = next(n); done(id_, f(id_, __VA_ARGS__)); })
#define F __attribute__((noinline))
#define FIRST calls[id].first = now()
#define LAST calls[id].last = now()
struct alive { std::string text; alive(int n) : text(n, 'x') { n_alive++; } ~alive() { n_alive--; sink = text.size(); } };
struct error { int n; };
struct point { long x; F long sum(long id, long n) { FIRST; long r = x + n; sink = r; LAST; return r; } };
long walk(long id, int level);
F long gone(long id, int n) { FIRST; if (n % 3 == 0) throw error{n}; sink = n; LAST; return n; }
F short passes(long id, int level)
{
	FIRST;
	alive a(level + 20);
	short r = CALL(walk, WALK, level - 1) + CALL(gone, GONE, draw(9));
	LAST;
	return r + a.text.size();
}
F int guarded(long id, int level)
{
	FIRST;
	try {
		alive a(level);
		int r = CALL(passes, PASSES, level - 1);
		LAST;
		return r + 1;
	} catch (const error &e) {
		if (e.n == 6 && level > 8)
			throw;
		LAST;
		return -e.n;
	}
}
F long walk(long id, int level)
{
	FIRST;
	long r = id;
	for (int i = 0; i < 3; i++) {
		switch (draw(6)) {
		case 0: if (level > 0) r += CALL(passes, PASSES, level - 1); break;
		case 1: case 2: if (level > 0) r ^= CALL(guarded, GUARDED, level - 1); break;
		case 3: { point p = { r }; long q = next(SUM); r -= done(q, p.sum(q, r)); break; }
		default: if (!draw(5)) r += CALL(gone, GONE, draw(100));
		}
	}
	LAST;
	return r;
}
int main(int argc, char **argv)
{
	long n = atol(argv[3]);
	calls = (call *)calloc(MAX, sizeof(*calls));
	while (n_calls < n)
		try { CALL(walk, WALK, 12); } catch (const error &) { }
	FILE *out = fopen(argv[1], "w");
	for (long i = 1; i < n_calls; i++)
		fprintf(out, "[%ld, \"%s\", %ld, %ld, %lu, %lu, %lu, %lu, %d]\n", i, names[calls[i].function], calls[i].value,
			calls[i].within, calls[i].before, calls[i].first, calls[i].last, calls[i].after, calls[i].is_back);
	fclose(out);
	return n_alive != 0;
}
"""


def compile_cxx(name, text, compiler, level):
    path = os.path.join(folder(), f"{name}-{compiler}{level}")
    with open(path + ".cc", "w", encoding="utf-8") as file:
        file.write(text)
    run(compiler, level, "-g", "-o", path, path + ".cc", check=True)
    return path


@claim_each_of_many(*[(c, l) for c in ("g++", "clang++") for l in LEVELS])
def calls_that_exceptions_pass_are_followed_by_their_returns(which):
    compiler, level = which
    need(compiler)
    path = compile_cxx("throws", CXX, compiler, level)
    sample = ("--assume-unmodified", ) if compiler == "clang++" else ()
    probes = [
        f"{f}(id, $ret, $duration)"
        for f in ("walk", "guarded", "passes", "gone", "point::sum")
    ]
    r = trace("--json", "--ring", "65536", *sample, "-c",
              f"{path} {log_path()} 1 20000", *probes)
    expect("the command ended" not in r.err, r.err)
    *events, summary = objects(r)
    for event in events:
        event["function"] = event["function"].replace("point::", "")
    calls = logged()
    seen = check_all(events, summary, calls)
    expect(
        len(seen) > len(calls) // 3 and summary["unwound"] > 100, len(seen),
        summary)


@claim_each(*BACKENDS)
def a_function_that_throws_goes_on_as_without_a_probe(backend):
    need("g++")
    path = compile_cxx("thrower", THROWS, "g++", "-O1")
    r = trace("--backend", backend, "-c", path, "thrower(n, $ret)")
    expect(
        re.findall(r"n=(\d), \$ret=(\d)",
                   r.out) == [(str(n), str(n)) for n in range(0, 10, 2)], r)
    expect(
        "the command ended with exit status 5" in r.err
        and "5 calls did not return" in r.err, r)


LEAVES = r"""
#include <string>
volatile int sink;
extern "C" {
__attribute__((noinline)) int last(int n) { sink = n; return n + 1; }
__attribute__((noinline)) int tail(int n) { sink = n; return last(n * 2); }
__attribute__((noinline)) int by_pointer(int (*f)(int), int n) { sink = n; return f(n); }
__attribute__((noinline)) std::string words(int n) { return std::string(n, 'x'); }
}
int main() { try { if (tail(3) + by_pointer(last, 4) + words(3).size() > 1000) throw 1; } catch (int) { return 1; } return 0; }
"""


@claim
def what_is_left_otherwise_than_by_a_return_is_refused_if_it_may_throw():
    need("g++")
    path = compile_cxx("leaves", LEAVES, "g++", "-O2")
    for probe, why in (("tail($duration)",
                        "it goes on in another function by the jump at 0x"),
                       ("by_pointer($ret)",
                        "it may go on in another function by the jump at 0x"),
                       ("words($ret)",
                        "no documented calling convention confirms it")):
        r = trace("-c", path, probe, status=1)
        expect(why in r.err, r)
    r = trace("-c", path, "last(n, $ret)", "words($duration)")
    expect(
        "n=6, $ret=7" in r.out and "n=4, $ret=5" in r.out
        and "words return: $duration=" in r.out, r)


@claim
def go_functions_are_refused():
    need("go")
    path = os.path.join(folder(), "gone")
    with open(path + ".go", "w", encoding="utf-8") as file:
        file.write(
            "package main\n//go:noinline\nfunc add(a int) int { return a + 1 }\n"
            "func main() { println(add(2)) }\n")
    run("go", "build", "-o", path, path + ".go")
    r = trace("-c", path, "main.add($ret)", status=2)
    expect("Go moves its stacks" in r.err, r)


# Returns 0 if setjmp(), getcontext() and dlsym() do what they should.
OWN_RETURNS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>
static jmp_buf point;
static ucontext_t context;
static volatile int n, m;
__attribute__((noinline)) static void jump(void) { if (n++ < 3) longjmp(point, n); }
int main(void)
{
	int how = setjmp(point);

	jump();
	getcontext(&context);
	if (m++ < 2)
		setcontext(&context);
	return !(how == 3 && n == 4 && m == 3 && dlsym(RTLD_NEXT, "malloc"));
}
"""


@claim
def functions_that_use_their_return_address_are_refused():
    path = compile_c("own-returns", OWN_RETURNS, "gcc", ("-O1", "-g"))
    libc = next(word for word in run("ldd", path).out.split()
                if word.endswith("libc.so.6") and word.startswith("/"))
    for name in ("_setjmp", "__sigsetjmp", "getcontext", "dlsym"):
        r = trace("-c", path, f"{libc}:{name}($duration)", status=2)
        expect("uses its return address" in r.err, r)
        r = trace("-c", path, f"{libc}:{name}")
        expect("the command ended" not in r.err, r)


NOPPED = r"""
#include <sys/wait.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) int nopped(int n) { sink = n; return n + 1; }
int main(void)
{
	int status;

	for (int i = 0; i < 3; i++)
		sink = nopped(i);
	if (!fork())
		_exit(nopped(41));
	wait(&status);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 42;
}
"""


@claim
def children_of_a_program_with_a_probe_on_a_long_nop_live():
    path = compile_c("nopped", NOPPED, "gcc",
                     ("-O1", "-g", "-pg", "-mfentry", "-mnop-mcount",
                      "-fno-pie", "-no-pie"))
    for words, n in ((("-f", ), 4), ((), 3)):
        r = trace(*words, "-c", path, "nopped(n)")
        expect("the command ended" not in r.err and r.out.count(" n=") == n, r)
    r = trace("-c", path, "nopped($ret)", status=1)
    expect("ends children" in r.err, r)
    r = trace("--no-move", "-c", path, "nopped", status=1)
    expect("ends children" in r.err, r)


POINTERS = r"""
struct box { char *text; long n; };
static struct box box = { "text", 4 };
__attribute__((noinline)) long use(int i, struct box *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	return i;
}
int main(void)
{
	for (int i = 0; i < 9; i++)
		use(i, i == 5 ? 0 : i == 6 ? (struct box *)0xdead000000000000 : &box);
	return 0;
}
"""


@claim
def pointers_that_cannot_be_read_have_no_address_of_an_earlier_call():
    path = compile_c("pointers", POINTERS, "gcc", ("-O1", "-g"))
    for more in ("", ", $ret"):
        r = trace("--json", "-c", path,
                  f"use(i, p->text, buf(p->text, p->n){more})")
        for event in objects(r):
            args = event.get("args", {})
            for name in ("p->text", "buf(p->text, p->n)"):
                is_bad = args.get("i") in (5, 6)
                expect(
                    not args or (args[name] == {
                        "unreadable": "memory cannot be read"
                    }) == is_bad, r)


@claim
def places_and_probes_of_profiles_have_no_return():
    path = compile_c("types", TYPES, "gcc", ("-O0", "-g"))
    r = trace("-c", path, "own+1($duration)", status=2)
    expect("only a function returns" in r.err, r)
    r = cairn("profile", "-c", path, "--event", "own($ret)")
    expect(r.status == 2 and "when it begins" in r.err, r)


main()
