#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random expressions of cairn trace, computed in the kernel, against what the program computes."""

import collections
import json
import os
import random

from claims import Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need_root

N_EXPRS = 120
N_CALLS = 24
VALUES = ("0", "1", "-1", "7", "200", "-5", "0x7fffffff", "0x80000000u",
          "0xffffffffu", "1L << 40", "-(1L << 62)", "~0UL",
          "0x123456789abcdefL", "40000", "-129")
NAMES = ("l", "ul", "i", "u", "h", "c", "r->a[i & 3]", "*(r->a + (u & 3))",
         "r->s", "r->b")
TYPES = ("char", "unsigned char", "short", "unsigned short", "int", "unsigned",
         "long", "size_t", "int8_t", "uint32_t", "_Bool")

PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
struct rec { int a[4]; short s; unsigned b : 5; double d; float f; };
static FILE *out;
__attribute__((noinline, noclone, noipa)) void
probed(long l, unsigned long ul, int i, unsigned u, short h, unsigned char c, struct rec *r)
{
	__asm__ volatile("" : : "r"(l), "r"(ul), "r"(i), "r"(u), "r"(h), "r"(c), "r"(r) : "memory");
}
static void show(long l, unsigned long ul, int i, unsigned u, short h, unsigned char c, struct rec *r)
{
%s
	fputc('\n', out);
	probed(l, ul, i, u, h, c, r);
}
int main(int argc, char **argv)
{
	struct rec r = {{1, -2, 0x7fffffff, -0x7fffffff}, -300, 21, -0.0, 1.5f};
	out = fopen(argv[1], "w");
%s
	fclose(out);
	return 0;
}
"""


def expression(rng, depth):
    if not depth or rng.random() < 0.15:
        return rng.choice(NAMES) if rng.random() < 0.8 else rng.choice(
            ("0", "1", "100", "0xff", "2147483648", "4294967295u", "'a'",
             "sizeof(l)"))
    one, other = expression(rng, depth - 1), expression(rng, depth - 1)
    kind = rng.randrange(9)
    if kind == 0:
        return f"{rng.choice('-~!')}({one})"
    if kind == 1:
        return f"({rng.choice(TYPES)})({one})"
    if kind == 2:
        return f"(({one}) {rng.choice('/%')} (({other}) & 7 | 1))"
    if kind == 3:
        return f"(({one}) {rng.choice(('<<', '>>'))} (({other}) & 31))"
    if kind == 4:
        return rng.choice(
            ("(r->d == 0)", "(r->d < 1e-300)", "(r->f > 1.25)", "(-1 <= r->f)",
             "(r->f != 1.5)", "(r->d != r->d)", "(&r->a[3] - r->a)"))
    if kind == 5:
        return f"(({one}) ? {rng.choice(NAMES[:6])} : {rng.choice(NAMES[:6])})"
    ops = ("+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=",
           "&&", "||")
    return f"(({one}) {rng.choice(ops)} ({other}))"


def program():
    """Its path, and the expressions."""
    rng = random.Random(20)
    exprs = []
    while len(exprs) < N_EXPRS:
        text = expression(rng, 3)
        if len(text) < 115 and text not in exprs:
            exprs.append(text)
    shows = "\n".join(f'\tfprintf(out, "%llx ", (unsigned long long)({e}));'
                      for e in exprs)
    calls = "\n".join(
        f"\tshow({', '.join(rng.choice(VALUES) for _ in range(6))}, &r);"
        for _ in range(N_CALLS))
    path = compile_c("exprs",
                     PROGRAM % (shows, calls),
                     flags=("-O2", "-g", "-w", "-fwrapv"))
    return path, exprs


def traced(*probes):
    need_root()
    path, _ = program()
    out, log = (os.path.join(folder(), name) for name in ("events", "log"))
    r = cairn("trace", "--json", "-o", out, "-c", f"{path} {log}", *probes)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect(r.status == 0, r.err[-2000:])
    with open(out, encoding="utf-8") as file:
        *events, summary = map(json.loads, file)
    with open(log, encoding="utf-8") as file:
        computed = [[int(word, 16) for word in line.split()] for line in file]
    expect(all(p["lost"] == 0 for p in summary["probes"]), summary)
    return events, summary, computed


@claim_each("uprobe_multi", "uprobe")
def values_in_events_are_what_the_program_computes(backend):
    _, exprs = program()
    # A long one and a short one have room in a program together.
    by_length = sorted(exprs, key=len)
    groups = list(zip(by_length, reversed(by_length)))[:N_EXPRS // 2]
    probes = [
        f"probed({', '.join('0 + ' + e for e in group)})" for group in groups
    ]
    events, _, computed = traced("--backend", backend, *probes)
    calls = collections.Counter()
    for e in events:
        for text, value in e["args"].items():
            text = text[len("0 + "):]
            wanted = computed[calls[text]][exprs.index(text)]
            expect(int(value) % (1 << 64) == wanted, text, value, hex(wanted))
            calls[text] += 1
    expect(calls == {text: N_CALLS for text in exprs}, calls)


ENUMS = r"""
enum err { FAIL = -1, GOOD, MORE };
enum kind { ONE = 1, LARGE = 0xf0000000 };
struct s { enum err e; };
__attribute__((noipa)) enum err probed(int n, enum err e, enum kind k, struct s *s)
{
	__asm__ volatile("" ::: "memory");
	return s->e;
}
int main(void)
{
	for (int i = 0; i < 8; i++) {
		struct s s = {i % 3 - 1};
		probed(i, i % 3 - 1, i & 1 ? LARGE : ONE, &s);
	}
	return 0;
}
"""


@claim_each(("e < 0", 3), ("e < GOOD", 3), ("e != FAIL", 5), ("s->e < 0", 3),
            ("-e > 0", 3), ("k > 0", 8), ("k > ONE", 4), ("$ret < 0", 3),
            ("e + 0L < 0", 3))
def an_enumeration_has_a_sign_though_nothing_else_reads_its_type(asked):
    condition, wanted = asked
    path = compile_c("enums", ENUMS, "gcc", ("-O2", "-g"))
    need_root()
    r = cairn("trace", "--json", "-c", path, f"probed if {condition}")
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    *events, summary = r.objects()
    expect(r.status == 0 and len(events) == wanted and summary["lost"] == 0,
           len(events), r)


@claim
def conditions_hold_where_the_program_computes_something_else_than_0():
    _, exprs = program()
    _, summary, computed = traced(*(f"probed() if {e}" for e in exprs))
    held = [p["events"] for p in summary["probes"]]
    wanted = [sum(1 for call in computed if call[i]) for i in range(N_EXPRS)]
    expect(held == wanted,
           [(e, h, w) for e, h, w in zip(exprs, held, wanted) if h != w][:5])


if __name__ == "__main__":
    main()
