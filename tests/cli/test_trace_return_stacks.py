#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of calls that are followed to their end, held against the calls that a program notes."""

import collections
import json

import tracing
from claims import claim_each, claim_each_of_many, compile_c, expect, main, need, path_of

# Each call notes which calls are in progress, the outermost first. The functions recurse, so that
# return probes have replaced the return addresses of callers.
PROGRAM = r"""
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
enum { DEPTH = 12, MAX = 2000 };
static int now[DEPTH + 4], n_now, n_calls;
static struct { int n, functions[DEPTH + 4]; } calls[MAX];
static jmp_buf point;
static unsigned seed = 7;
volatile long sink;
#define NO __attribute__((noinline, noclone))
#define IN static inline __attribute__((always_inline))
static NO unsigned draw(unsigned n) { seed = seed * 1103515245 + 12345; return (seed >> 16) % n; }
static NO int note(int function)
{
	now[n_now++] = function;
	calls[n_calls].n = n_now;
	for (int i = 0; i < n_now; i++)
		calls[n_calls].functions[i] = now[i];
	return n_calls++;
}
#define CALL(f, k) ({ int id_ = note(k), was_ = n_now; long r_ = f(id_); n_now = was_ - 1; r_; })
long first(int id), second(int id), third(int id);
IN long copy(int id) { sink = id; for (int i = 0; i < (id & 3); i++) sink += i; return sink; }
static NO long some(void)
{
	if (n_now >= DEPTH || n_calls >= MAX - 20)
		return 1;
	switch (draw(4)) {
	case 0: return CALL(first, 0) + 1;
	case 1: return CALL(second, 1) + 1;
	case 2: return CALL(third, 2) + 1;
	default: if (!draw(5)) longjmp(point, 1); return 2;
	}
}
NO long first(int id) { long r = some() + CALL(copy, 3); sink = id; return r + some(); }
NO long second(int id) { long r = id; for (int i = draw(3); i >= 0; i--) r += some(); return r; }
NO long third(int id) { long r = some(); sink = r + id; return r; }
int main(int argc, char **argv)
{
	while (n_calls < MAX - 40) {
		setjmp(point);
		n_now = 0;
		if (n_calls < MAX - 40)
			CALL(first, 0);
	}
	FILE *out = fopen(argv[1], "w");
	for (int i = 0; i < n_calls; i++) {
		fprintf(out, "[");
		for (int k = 0; k < calls[i].n; k++)
			fprintf(out, "%s%d", k ? "," : "", calls[i].functions[k]);
		fprintf(out, "]\n");
	}
	return fclose(out);
}
"""

NAMES = ("first", "second", "third", "copy")


def run_trace(compiler, *words):
    need(compiler)
    path = compile_c("return-stacks", PROGRAM, compiler, ("-O2", "-g"))
    log = path_of("return-stacks.log")
    r = tracing.trace(
        "--no-cache", "--json", "--assume-unmodified", *words, "-c",
        f"{path} {log}",
        *(f"{f}(id, $duration)"
          if "--stack" in words else f"{f} if $duration > 0" for f in NAMES))
    expect(r.status == 0, r)
    with open(log, encoding="utf-8") as file:
        calls = [[NAMES[f] for f in json.loads(line)] for line in file]
    *rows, summary = [json.loads(line) for line in r.out.splitlines()]
    expect(summary["lost"] == 0 and summary["stacks_lost"] == 0, summary)
    return rows, summary, calls


def functions_of(stack):
    """The traced functions, the outermost first."""
    names = [
        f["function"] for frame in stack["frames"] for f in frame["functions"]
    ]
    expect(stack["end"] == "outermost" and names[-1] == "_start", stack)
    return [n for n in reversed(names) if n in NAMES]


@claim_each(*[(c, b) for c in ("gcc", "clang")
              for b in ("auto", "uprobe_multi")])
def stacks_are_those_of_the_entries(which):
    compiler, backend = which
    events, summary, calls = run_trace(compiler, "--stack", "--backend",
                                       backend)
    seen = set()
    for event in events:
        number, stack = event["args"]["id"], functions_of(event["stack"])
        expect(stack == calls[number], event, calls[number])
        expect(isinstance(event["args"]["$duration"], int), event)
        seen.add(number)
    expect(
        len(seen) == len(events)
        and len(seen) + summary["unwound"] == len(calls), summary)
    expect({e["function"]
            for e in events} == set(NAMES) and summary["unwound"] > 10,
           summary)
    expect(max(len(calls[n]) for n in seen) > 8, "no deep stack")


@claim_each_of_many("gcc", "clang")
def calls_are_counted_by_the_stacks_of_their_entries(compiler):
    (table, summary), = [run_trace(compiler, "--count", "--by", "$stack")[:2]]
    events, _, calls = run_trace(compiler, "--stack")
    expected = collections.Counter(
        tuple(calls[e["args"]["id"]]) for e in events)
    counted = collections.Counter()
    for row in table[0]["rows"]:
        counted[tuple(functions_of(row["by"]["$stack"]))] += row["count"]
    expect(counted == expected, counted - expected, expected - counted,
           summary)


main()
