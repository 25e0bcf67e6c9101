#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace --graph against what programs log of their own calls: recursion, longjmp(), tail
calls, threads, and calls that do not end. Every call is compared, with its depth and its caller."""

import collections
import json
import re

from claims import claim, claim_each, compile_c, expect, folder, main
from exports import TELLING
from tracing import trace

# A call logs its number, its function, the call around it, and the depth, before it is made. What
# it does is drawn. longjmp() takes the program back to where it noted the calls in progress.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#define F __attribute__((noinline))
enum { MAX = 30000, STACK = 64, LEVELS = 9 };
struct call { int tid, depth; long within, value; const char *name; int is_back; };
static struct call calls[MAX + STACK];
static long n_calls = 1, n_wanted;
static __thread long stack[STACK];
static __thread int depth;
static __thread sigjmp_buf *points[4];
static __thread int depths[4], n_points;
static __thread unsigned long seed;
static volatile long sink;
static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}
static long begin(const char *name)
{
	long id = __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
	if (id >= MAX + STACK - 1)
		abort();
	calls[id] = (struct call){gettid(), depth, depth ? stack[depth - 1] : 0, 0, name, 0};
	stack[depth++] = id;
	return id;
}
static long end(long id, long value)
{
	depth--;
	calls[id].value = value;
	calls[id].is_back = 1;
	return value;
}
#define CALL(f, ...) ({ long id_ = begin(#f); end(id_, f(id_, __VA_ARGS__)); })
long walk(long id, int level);
F long leaf(long id, long n) { return sink = n * 7 - id; }
static inline __attribute__((always_inline)) void inner(long within) { sink = within; sink = 2; }
F int guarded(long id, int level)
{
	sigjmp_buf point;
	volatile int r = -7;
	depths[n_points] = depth;
	points[n_points++] = &point;
	if (!sigsetjmp(point, 1)) {
		r = (int)CALL(walk, level - 1);
		n_points--;
	} else {
		depth = depths[n_points];
	}
	return r;
}
F long tail(long id, long n) { return leaf(begin("leaf"), n); }
F long walk(long id, int level)
{
	long r = id * 3;
	for (int i = 0; i < 3; i++) {
		switch (draw(6)) {
		case 0: case 1: if (level > 0) r += CALL(walk, level - 1); break;
		case 2: if (level > 0 && n_points < 4) r ^= CALL(guarded, level - 1); break;
		case 3: r -= CALL(leaf, r); break;
		case 4: inner(stack[depth - 1]); break;
		default:
			if (!draw(9)) {
				long t = begin("tail"), v = tail(t, r);
				/* The leaf returned with it. */
				calls[stack[depth - 1]].value = v;
				calls[stack[depth - 1]].is_back = 1;
				depth--;
				end(t, v);
			} else if (n_points && !draw(8)) {
				n_points -= 1 + draw(n_points);
				siglongjmp(*points[n_points], 1);
			}
		}
	}
	return r;
}
static void *thread(void *arg)
{
	seed = (long)arg * 77 + 5;
	while (__atomic_load_n(&n_calls, __ATOMIC_RELAXED) < n_wanted) {
		n_points = depth = 0;
		CALL(walk, LEVELS);
	}
	return 0;
}
F void last(long id) { sink = id; exit(0); }
static FILE *out;
static void put(void)
{
	for (long i = 1; i < n_calls; i++)
		fprintf(out, "%ld %d %d %ld %ld %s %d\n", i, calls[i].tid, calls[i].depth, calls[i].within,
			calls[i].value, calls[i].name, calls[i].is_back);
	fclose(out);
}
int main(int argc, char **argv)
{
	int n = atoi(argv[2]);
	pthread_t threads[8];
	n_wanted = atol(argv[3]);
	out = fopen(argv[1], "w");
	atexit(put);
	if (n == 1)
		thread((void *)1L);
	for (long i = 0; i < n && n > 1; i++)
		pthread_create(&threads[i], 0, thread, (void *)i);
	for (int i = 0; i < n && n > 1; i++)
		pthread_join(threads[i], 0);
	depth = 0;
	last(begin("last"));
	return 1;
}
"""
PROBES = ("walk(id, $ret)", "leaf(id, $ret)", "guarded(id, $ret)",
          "tail(id, $ret)", "last(id)")
Call = collections.namedtuple("Call", "id tid depth within value name is_back")


def trace_calls(n_threads, n_calls, *words, flags=("-O2", ), probes=PROBES):
    path = compile_c("calls" + "".join(flags),
                     PROGRAM,
                     flags=(*flags, "-g", "-pthread",
                            "-fno-optimize-sibling-calls"
                            if "-O0" in flags else "-foptimize-sibling-calls"))
    log = f"{folder()}/calls.log"
    r = trace("-c",
              f"{path} {log} {n_threads} {n_calls}",
              "--graph",
              "--ring",
              "65536",
              *words,
              *probes,
              check=True)
    rows = [line.split() for line in open(log, encoding="utf-8")]
    calls = [Call(*map(int, row[:5]), row[5], row[6] == "1") for row in rows]
    return r, {c.id: c for c in calls}


def check_events(events, calls):
    """Each call has an entry with its depth and caller, and a return if it came back."""
    stacks, seen, back = collections.defaultdict(list), set(), set()
    for e in events:
        stack, call = stacks[e["tid"]], calls[e["args"]["id"]]
        expect(
            call.tid == e["tid"] and call.name == e["function"]
            and call.depth == e["depth"], e, call)
        if e["call"] == "entry":
            del stack[e["depth"]:]
            expect(
                call.id not in seen
                and (stack[-1] if stack else 0) == call.within, e, call)
            expect(
                "unavailable" in e["args"]["$ret"]
                if "$ret" in e["args"] else True, e)
            stack.append(call.id)
            seen.add(call.id)
        else:
            expect(stack[call.depth] == call.id and call.is_back, e, call)
            expect(e["args"]["$ret"] == call.value and e["duration_ns"] > 0, e,
                   call)
            del stack[call.depth:]
            back.add(call.id)
    expect(seen == set(calls), len(seen), len(calls))
    expect(back == {c.id for c in calls.values() if c.is_back}, len(back))


@claim_each(("-O0", 1, ()), ("-O2", 1, ("--backend", "uprobe_multi")),
            ("-O2", 8, ()))
def each_call_has_its_depth_and_its_caller(case):
    level, n_threads, words = case
    r, calls = trace_calls(n_threads, 4000, "--json", *words, flags=(level, ))
    *events, summary = map(json.loads, r.out.splitlines())
    expect(summary["lost"] == 0, summary)
    check_events(events, calls)
    expect(sum(not c.is_back for c in calls.values()) > 20, "no longjmp()")
    expect(any(c.name == "tail" for c in calls.values()), "no tail call")


LINE = re.compile(r"( {11}|[ .\d]{8} (?:us|ms| s| m)) \[ *(\d+)\] \| ( *)(.*)")


def read_tree(text):
    """The calls of a tree: (function, id, depth, result or None, caller's id)."""
    stack, out = [], []
    for line in text.splitlines()[1:]:
        duration, _, indent, rest = LINE.fullmatch(line).groups()
        depth = len(indent) // 2
        end = re.fullmatch(
            r"}(?: = (-?\d+);)? /\* (\w+)(: its return was not seen)? \*/",
            rest)
        if end:
            call = stack.pop()
            expect(
                call["name"] == end[2]
                and call["depth"] == depth == len(stack), line, call)
            expect((end[3] is None) == (duration.strip() != ""), line)
            call["value"] = int(end[1]) if end[1] else None
            continue
        begin = re.fullmatch(r"(\w+)\(id=(\d+)\)(?: = (-?\d+))?( {|;)", rest)
        expect(begin and depth == len(stack), line, len(stack))
        call = {
            "name": begin[1],
            "id": int(begin[2]),
            "depth": depth,
            "within": stack[-1]["id"] if stack else 0,
            "value": begin[3] and int(begin[3])
        }
        out.append(call)
        if begin[4] == " {":
            stack.append(call)
    expect(not stack, stack)
    return out


@claim
def the_tree_is_the_programs_own():
    r, calls = trace_calls(1, 3000)
    expect(r.out.startswith("# DURATION     TID     FUNCTION\n"), r.out[:200])
    tree = read_tree(r.out)
    expect(len(tree) == len(calls), len(tree), len(calls))
    for shown in tree:
        call = calls[shown["id"]]
        expect(
            shown == {
                "name": call.name,
                "id": call.id,
                "depth": call.depth,
                "within": call.within,
                "value": call.value if call.is_back else None
            }, shown, call)
    expect(
        "last(id=" in r.out
        and "} /* last: its return was not seen */" in r.out, r.out[-300:])


@claim
def inlined_copies_are_hits_within_the_calls_around_them():
    r, calls = trace_calls(1,
                           1000,
                           "--json",
                           "--time",
                           "delta",
                           probes=("walk(id)", "inner(within)"))
    *events, _ = map(json.loads, r.out.splitlines())
    within, n = [], 0
    for e in events:
        if "call" in e:
            del within[e["depth"]:]
            within += [e["args"]["id"]] if e["call"] == "entry" else []
            continue
        del within[e["depth"]:]
        expect(within and within[-1] == e["args"]["within"], e, within)
        n += 1
    expect(n > 100, n)
    r, _ = trace_calls(1,
                       1000,
                       "--time",
                       "wall",
                       "-n",
                       "40",
                       probes=("walk(id)", "inner(within)"))
    expect(
        "; /* inlined in walk+0x" in r.out
        and re.match(r"# +TIME   DURATION", r.out), r.out[:300])


def joined_of(text):
    """(function, argument, result) of each call whose line or block has both."""
    found, stacks = [], []
    for line in text.splitlines()[1:]:
        _, _, indent, rest = LINE.fullmatch(line).groups()
        depth = len(indent) // 2
        begin = re.fullmatch(r"(\w+)\(a=(-?\d+)\)(?: = (-?\d+);| {)", rest)
        end = re.fullmatch(r"}(?: = (-?\d+);)? /\* (\w+)(: its .*)? \*/", rest)
        if begin and begin[3]:
            found.append((begin[1], int(begin[2]), int(begin[3])))
        elif begin:
            del stacks[depth:]
            stacks += [None] * (depth - len(stacks)) + [begin]
        elif not end[3]:
            expect(stacks[depth][1] == end[2], line)
            found.append((end[2], int(stacks[depth][2]), int(end[1])))
    return found


@claim
def after_losses_a_call_has_its_own_result_and_counts_once():
    program = compile_c("telling", TELLING, flags=("-O2", "-g"))
    n, out, lines = 20000, f"{folder()}/lossy.txt", f"{folder()}/lossy.json"
    r = trace("--graph",
              "--ring",
              "4",
              "-o",
              out,
              "-c",
              f"{program} {n}",
              "leaf(a, $ret)",
              "mid(a, $ret)",
              check=True)
    joined = joined_of(open(out, encoding="utf-8").read())
    expect(len(joined) > 100, len(joined))
    for name, argument, result in joined:
        times = 10 if name == "mid" else 1
        expect(result == times * argument, name, argument, result)
    for name, calls in (("leaf", 2 * n), ("mid", n)):
        m = re.search(
            name + r"\(.*: (\d+) events, (\d+) lost, and the entries of (\d+)",
            r.err)
        expect(m and int(m[1]) + int(m[2]) == calls, r.err)
        expect(0 < int(m[2]) and 0 < int(m[3]) <= calls, r.err)
    r = trace("--graph",
              "--ring",
              "4",
              "--json",
              "-o",
              lines,
              "-c",
              f"{program} {n}",
              "leaf(a, $ret)",
              check=True)
    *events, summary = map(json.loads, open(lines, encoding="utf-8"))
    entries = sum(e["call"] == "entry" for e in events)
    expect(
        summary["events"] + summary["lost"] == 2 * n ==
        entries + summary["entries_lost"]
        and summary["events"] == len(events) - entries, summary)


@claim
def lost_events_and_what_cannot_be_followed_are_told():
    r, calls = trace_calls(8, 20000, "--ring", "4")
    shown = sum(" {" in line or line.endswith(";")
                for line in r.out.splitlines())
    expect(shown < len(calls) and re.search(r", [1-9]\d* lost", r.err), shown,
           r.err)
    expect(
        "its entry was not seen" in r.out
        and "its return was not seen" in r.out, r.out[-500:])
    path = compile_c("calls-O2",
                     PROGRAM,
                     flags=("-O2", "-g", "-pthread",
                            "-foptimize-sibling-calls"))
    r = trace("-c", path, "--graph", "walk if $duration > 5")
    expect(r.status == 3 and "when it begins" in r.err, r)
    for words in (("--stack", ), ("--format", "x"), ("--count", )):
        r = trace("-c", path, "--graph", *words, "walk")
        expect(r.status == 2 and "--graph" in r.err, r)


main()
