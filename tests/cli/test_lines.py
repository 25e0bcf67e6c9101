#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lines and offsets: their places against another reader's line table, and their hits against
gdb's at the same addresses."""

import collections
import functools
import json
import os
import re

from claims import (CAIRN, IS_SANITIZED, Skip, cairn, claim, claim_each_of_many, compile_c, expect,
                    folder, main, need, need_root, run)

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static volatile long sink;
struct pair { long a; int b; };
static inline __attribute__((always_inline)) long mix(long a, long b)
{
	long s = a * 3;
	for (long i = 0; i < b; i++) {
		s += i ^ a;
		sink = s;
	}
	return s;
}
__attribute__((noinline)) long pick(const struct pair *p, long n)
{
	long best = -1;
	for (long i = 0; i < n; i++)
		if (p[i].a > best)
			best = p[i].a;
		else if (p[i].b & 1)
			sink = best;
	return best;
}
__attribute__((noinline)) long one(long n)
{
	long r = mix(n, 3);
	if (r & 1)
		r = mix(r, n & 7);
	return r;
}
static long tail(long n)
{
	sink = n;
	return n < 2 ? n : tail(n - 1) + tail(n - 2);
}
int main(int argc, char **argv)
{
	struct pair pairs[8];
	long t = 0;
	for (long i = 0; i < 10; i++)
		t += one(i);
	for (int i = 0; i < 8; i++) {
		pairs[i].a = i * 7 % 5;
		pairs[i].b = i;
	}
	for (long i = 1; i < 9; i++)
		t += pick(pairs, i);
	t += tail(9);
	printf("%ld\n", t + mix(argc, 2));
	return 0;
}
"""
BUILDS = ("gcc -O0", "gcc -O2", "gcc -O3", "gcc -Og", "clang -O0", "clang -O2")


def program(build):
    compiler, *flags = build.split()
    name = "lines" + "".join(flags).replace("-", "_")
    # At its own address, which gdb and the events name alike.
    return compile_c(name, PROGRAM, compiler, flags=[*flags, "-g", "-no-pie"])


@functools.lru_cache
def dumped(path):
    return run(need("llvm-dwarfdump"), "--debug-line", path).out


def statements(path, file):
    """(line, address) of the rows of a file that begin a statement, by LLVM's reader."""
    text = dumped(path)
    found, names = set(), {}
    for line in text.splitlines():
        entry = re.match(r"file_names\[\s*(\d+)\]:", line)
        if line.startswith("Line table prologue"):
            names = {}
        elif entry:
            number = int(entry.group(1))
        elif re.match(r"\s+name: \"", line):
            names[number] = line.split('"')[1]
        row = re.match(r"0x(\w+)\s+(\d+)\s+\d+\s+(\d+)\s+\d+\s+\d+(?:\s+\d+)?(.*)", line)
        if row and "is_stmt" in row.group(4) and "end_sequence" not in row.group(4):
            if os.path.basename(names.get(int(row.group(3)), "")) == file and int(row.group(2)):
                found.add((int(row.group(2)), int(row.group(1), 16)))
    return found


def places(path, *specs):
    r = cairn("sites", path, "--json", "--lines", *specs)
    return [o for o in r.objects() if "addr" in o]


@claim_each_of_many(*BUILDS)
def the_lines_of_a_file_are_those_whose_rows_begin_a_statement(build):
    path = program(build)
    file = os.path.basename(path).rsplit("-", 1)[0] + ".c"
    rows = statements(path, file)
    lines = range(1, PROGRAM.count("\n") + 1)
    found = {(p["line"], int(p["addr"], 16)) for p in places(path, *(f"{file}:{n}" for n in lines))}
    expect(found <= rows, sorted(found - rows)[:5])
    expect({line for line, _ in found} == {line for line, _ in rows}, build)
    # All lines of a function are a part of them.
    for function in ("mix", "pick", "one", "tail", "main"):
        of_function = {(p["line"], int(p["addr"], 16)) for p in places(path, function)}
        expect(of_function and of_function <= found, function, sorted(of_function - found)[:5])
        for p in places(path, function):
            expect(p["function"] == function, p)


def of_sanitizers(path):
    """Where the functions are that a sanitizer adds: they have lines, and no debug information."""
    r = run(need("nm"), "-S", path)
    found = re.findall(r"^(\w+) (\w+) t _sub_[DI]_", r.out, re.M)
    return [range(int(at, 16), int(at, 16) + int(size, 16)) for at, size in found]


@claim
def the_lines_of_a_real_program_are_those_whose_rows_begin_a_statement():
    added = of_sanitizers(CAIRN)
    for file in ("arena.c", ) if IS_SANITIZED else ("arena.c", "sites_text.c"):
        rows = {(line, at) for line, at in statements(CAIRN, file)
                if not any(at in own for own in added)}
        if not rows:
            raise Skip("the program has no lines")
        lines = sorted({line for line, _ in rows})
        got = places(CAIRN, *(f"{file}:{n}" for n in range(1, lines[-1] + 1)))
        found = {(p["line"], int(p["addr"], 16)) for p in got}
        expect(found <= rows, file, sorted(found - rows)[:5])
        expect({line for line, _ in found} == set(lines), file,
               set(lines) - {line for line, _ in found})


def hits_of_gdb(path, addresses):
    """How often gdb's breakpoints at addresses are hit."""
    script = os.path.join(folder(), "hits.gdb")
    with open(script, "w", encoding="utf-8") as file:
        file.write("set pagination off\nset confirm off\nset breakpoint pending on\n")
        for number, address in enumerate(addresses, 1):
            file.write(f"break *{address:#x}\nignore {number} 100000000\n")
        file.write("run >/dev/null\ninfo breakpoints\n")
    r = run(need("gdb"), "-nx", "-batch", "-x", script, path)
    hits = collections.Counter()
    at = None
    for line in r.out.splitlines():
        row = re.match(r"\d+\s+breakpoint\s+keep\s+y\s+0x(\w+)", line)
        if row:
            at = int(row.group(1), 16)
        already = re.search(r"breakpoint already hit (\d+) time", line)
        if already:
            hits[at] = int(already.group(1))
    expect("exited normally" in r.out, r)
    return hits


def events_of(path, *words):
    need_root()
    out = os.path.join(folder(), "events")
    r = cairn("trace", "--json", "-o", out, "-c", path, *words)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect(r.status == 0, r.err)
    with open(out, encoding="utf-8") as file:
        *events, summary = map(json.loads, file)
    expect(all(p["lost"] == 0 for p in summary["probes"]), summary)
    return events


@claim_each_of_many(*BUILDS)
def every_line_has_as_many_events_as_gdb_has_hits(build):
    path = program(build)
    file = os.path.basename(path).rsplit("-", 1)[0] + ".c"
    got = places(path, *(f"{file}:{n}" for n in range(1, PROGRAM.count("\n") + 1)))
    lines = sorted({p["line"] for p in got if not p["hazard"]} -
                   {p["line"] for p in got if p["hazard"]})
    addresses = sorted({int(p["addr"], 16) for p in got if p["line"] in lines})
    hits = hits_of_gdb(path, addresses)
    # Unmoved, so that each event is one of its own instruction.
    events = events_of(path, "--no-move", *(f"{file}:{n}" for n in lines))
    counts = collections.Counter((e["function"], int(e["address"], 16)) for e in events)
    expected = {(f"{file}:{p['line']}", int(p["addr"], 16)): hits[int(p["addr"], 16)]
                for p in got if p["line"] in lines and hits[int(p["addr"], 16)]}
    expect(dict(counts) == expected,
           [(k, counts[k], expected.get(k)) for k in set(counts) | set(expected)
            if counts[k] != expected.get(k)][:5])
    # Moved to cheaper instructions there are as many.
    moved = collections.Counter((e["function"], e["address"])
                                for e in events_of(path, *(f"{file}:{n}" for n in lines)))
    expect(sum(moved.values()) == sum(counts.values()), len(moved), len(counts))


@claim_each_of_many("gcc -O0", "clang -O2")
def an_offset_is_counted_from_the_symbol_and_needs_no_debug_information(build):
    path = program(build)
    stripped = path + "-stripped"
    run("strip", "-g", "-o", stripped, path, check=True)
    at = [p for p in places(path, "pick") if not p["chain"] and p["container_off"] > 0]
    all_hits = hits_of_gdb(path, [int(p["addr"], 16) for p in at])
    expect(sum(all_hits.values()) > 50, all_hits)
    for place in at:
        off = place["container_off"]
        hits = all_hits[int(place["addr"], 16)]
        for spelled in (f"pick+{off}", f"pick+{off:#x}"):
            events = events_of(stripped, "--no-move", spelled)
            expect(len(events) == hits, place, len(events), hits)
            expect(all(e["site"] == f"in pick+{off:#x}" for e in events), events[:1])


@claim
def a_line_that_is_not_there_is_answered_with_what_helps():
    path = program("gcc -O2")
    for probe, status, words in [
        ("pick:999", 1, "no statement of pick begins at line 999"),
        ("nothing:5", 1, "has no function nothing"),
        ("nothing.c:5", 1, "no file of that name"),
        ("12", 1, "has no function 12"),
        (":12", 1, "has no function :12"),
        ("pick+0x99999", 1, "is not in the code of pick"),
        ("nothing+4", 1, "no symbol nothing"),
        ("pick+1", 1, "not the start of an instruction"),
        ("pick:17(x)", 2, "has no parameter x"),
    ]:
        r = cairn("trace", "--dry-run", "-c", path, probe)
        expect(r.status == status and words in r.err + r.out, probe, r)
    r = cairn("sites", path, "--lines")
    expect(r.status == 2 and "needs a function" in r.err, r)
    r = cairn("sites", path, "--lines", "pick:999", "nothing")
    expect(r.status == 1 and "no statement of pick" in r.err and "no function" in r.err, r)


@claim
def a_sidecar_does_not_stand_between_a_line_and_the_debug_information():
    path = program("gcc -O2")
    run(CAIRN, "sidecar", path, "-o", path + ".cairn", check=True)
    r = cairn("trace", "--dry-run", "-c", path, "mix:10")
    os.unlink(path + ".cairn")
    expect(r.status == 0 and "inlined in one" in r.out, r)


main()
