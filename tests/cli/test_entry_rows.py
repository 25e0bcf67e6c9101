#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Copies that the compiler duplicated: every entry row of the line table is a place."""

import json
import os
import re

from claims import cairn, claim, compile_c, expect, folder, main, need, run

# GCC unrolls the loop and duplicates the copy of step in it; peek is threaded through both arms.
PROGRAM = """\
volatile int sink;
static inline __attribute__((always_inline)) void step(int n)
{
	sink = n;
	sink = n * 3;
}
static inline __attribute__((always_inline)) int peek(int n)
{
	sink = n;
	return n & 1;
}
__attribute__((noinline)) void four(int n)
{
	for (int i = 0; i < 4; i++)
		step(n + i);
}
__attribute__((noinline)) void many(int n)
{
	for (int i = 0; i < n; i++)
		if (peek(i))
			step(i);
		else
			step(-i);
}
int main(void)
{
	four(1);
	many(9);
	return 0;
}
"""


def program():
    need("gcc")
    return compile_c("rows", PROGRAM, "gcc", ("-O3", "-funroll-loops", "-g"))


def marker_rows(path, line):
    """Addresses of the is_stmt rows of a line, by readelf."""
    need("readelf")
    rows = []
    for text in run("readelf", "--debug-dump=decodedline", path, check=True).out.splitlines():
        fields = text.split()
        if len(fields) >= 4 and fields[1] == str(line) and fields[-1] == "x" and re.match(r"0x", fields[2]):
            rows.append(int(fields[2], 16))
    return sorted(rows)


def places(path, function):
    out = cairn("sites", path, function, "--json", check=True).out
    return [json.loads(text) for text in out.splitlines()]


@claim
def every_entry_row_of_an_inlined_function_is_a_place():
    path = program()
    for function in ("step", "peek"):
        line = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f" {function}(int n)"))
        found = sorted(int(p["addr"], 16) for p in places(path, function))
        expect(found == marker_rows(path, line), function, found, marker_rows(path, line))


@claim
def further_entries_say_that_they_are_and_keep_their_die():
    found = places(program(), "step")
    further = [p for p in found if p["rule"] == "entry-row"]
    expect(further, "no copy was duplicated: the program no longer shows it", found)
    dies = {p["die"] for p in found if p["rule"] != "entry-row"}
    expect(all(p["die"] in dies for p in further), found)


MACRO = """\
volatile int sink;
#define MAKE(name) static inline __attribute__((always_inline)) void name(int n) { sink = n; sink = n * 3; sink = n; }
MAKE(made)
int main(int argc, char **argv)
{
	for (int i = 0; i < 4; i++)
		made(argc + i);
	return 0;
}
"""


@claim
def rows_of_a_function_from_a_macro_are_not_taken_for_entries():
    need("gcc")
    path = compile_c("macro", MACRO, "gcc", ("-O2", "-g"))
    found = places(path, "made")
    expect(len(found) == 1 and found[0]["rule"] != "entry-row", found)


if __name__ == "__main__":
    main()
