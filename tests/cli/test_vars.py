#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The variables in scope at lines: their values in events against gdb's at the same instructions."""

import collections
import json
import os

from claims import (CAIRN, SOURCE, WITHOUT_LEAKS, Skip, cairn, claim, claim_each, claim_each_of_many,
                    compile_c, expect, folder, main, need, need_root, run)

PROGRAM = r"""
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
__attribute__((noinline)) void change(int *n) { *n += (int)sink & 3; }
__attribute__((noinline)) long pick(const struct pair *p, long n)
{
	long best = -1;
	bool odd = false;
	for (long i = 0; i < n; i++)
		if (p[i].a > best)
			best = p[i].a;
		else if (p[i].b & 1)
			odd = !odd;
	return odd ? best : -best;
}
__attribute__((noinline)) int by_address(int n)
{
	int own = n * 2, unused = 7;
	change(&own);
	own = own + 1;
	unused = own;
	change(&own);
	sink = unused;
	return own;
}
__attribute__((noinline)) long shadow(long n)
{
	long v = n + 1;
	static int calls;
	if (n & 1) {
		short v = (short)(n * 5);
		sink = v;
		for (unsigned char v = 0; v < 3; v++)
			sink += v;
	}
	calls++;
	return v + calls;
}
__attribute__((noinline)) long one(long n)
{
	long r = mix(n, 3);
	struct pair both = { r, (int)n };
	if (r & 1)
		r = mix(r, n & 7);
	both.a += r;
	both.b ^= 5;
	return both.a + both.b;
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
		t += one(i) + shadow(i) + by_address((int)i);
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
BUILDS = ("gcc -O0", "gcc -O1", "gcc -O2", "gcc -O3", "gcc -Og", "gcc -Os", "clang -O0",
          "clang -O1", "clang -O2")
HITS = 25


def program(build):
    compiler, *flags = build.split()
    name = "vars" + "".join(flags).replace("-", "_")
    return compile_c(name, PROGRAM, compiler, flags=[*flags, "-g", "-no-pie"])


def specs_of(path, text):
    file = os.path.basename(path).rsplit("-", 1)[0] + ".c"
    return [f"{file}:{n}" for n in range(1, text.count("\n") + 1)]


def key_of(place):
    return f"{os.path.basename(place['file'])}:{place['line']}@{place['addr']}"


def places_of(path, specs):
    r = cairn("sites", path, "--json", "--vars", *specs)
    return [o for o in r.objects() if "addr" in o and not o["hazard"]]


def gdb_values(path, args, places):
    """{(key, name): [value, ...]} in the order of the hits."""
    task = {"path": path, "args": args, "hits": HITS, "pie": "DYN" in run("readelf", "-h", path).out,
            "places": [{"key": key_of(p), "addr": int(p["addr"], 16), "function": p["function"],
                        "names": [v["name"] for v in p["vars"] if v["loc"]]} for p in places]}
    files = {name: os.path.join(folder(), name) for name in ("VARS_IN", "VARS_OUT")}
    with open(files["VARS_IN"], "w", encoding="utf-8") as file:
        json.dump(task, file)
    script = os.path.join(SOURCE, "tests/cli/gdb_vars.py")
    r = run(need("gdb"), "-nx", "-batch", "-x", script, path,
            env={**os.environ, **files, "ASAN_OPTIONS": WITHOUT_LEAKS})
    if "Python scripting is not supported" in r.err:
        raise Skip("gdb has no Python")
    found = collections.defaultdict(list)
    with open(files["VARS_OUT"], encoding="utf-8") as file:
        for key, values in json.load(file):
            for name, value in values.items():
                found[key, name].append(value)
    return found


def traced_values(path, args, names):
    """The same from events; @names is {(FILE:LINE, name)}."""
    need_root()
    probes = sorted(f"{path}:{line}({name})" for line, name in names)
    found = collections.defaultdict(list)
    out = os.path.join(folder(), "events")
    for i in range(0, len(probes), 200):
        # setarch: what is computed from addresses is then what it is under gdb.
        r = run("setarch", "-R", CAIRN, "trace", "--no-sidecar", "--best-effort", "--no-move",
                "--json", "-o", out, "-c", " ".join([path, *args]), *probes[i:i + 200])
        if r.status == 3 and "CONFIG_" in r.err:
            raise Skip(" ".join(r.err.split()))
        with open(out, encoding="utf-8") as file:
            *events, summary = map(json.loads, file)
        expect(all(p["lost"] == 0 for p in summary["probes"]), summary)
        for e in events:
            for name, value in e["args"].items():
                found[f"{e['function']}@{e['address']}", name].append(value)
    return found


def compare(path, args, specs, least):
    places = places_of(path, specs)
    gdb = gdb_values(path, args, places)
    names = {(key.split("@")[0], name) for (key, name), values in gdb.items()
             if any(isinstance(value, int) for value in values)}
    ours = traced_values(path, args, names)
    n, wrong = 0, []
    for at, values in gdb.items():
        for theirs, mine in zip(values, ours.get(at, [])):
            if theirs is None or not isinstance(mine, (int, bool)):
                continue
            n += 1
            if theirs != int(mine):
                wrong.append((at, theirs, mine))
    expect(not wrong, wrong[:10], n)
    expect(n >= least, n)
    return places


@claim_each_of_many(*BUILDS)
def values_at_every_line_are_those_that_gdb_reads(build):
    path = program(build)
    compare(path, [], specs_of(path, PROGRAM), 1000)


@claim_each("cursor.c")
def values_in_a_real_program_are_those_that_gdb_reads(file):
    target = compile_c("target", "int f(int n) { return n; } int main(void) { return f(0); }")
    found = [os.path.join(where, file) for where, _, files in os.walk(os.path.join(SOURCE, "src"))
             if file in files]
    with open(found[0], encoding="utf-8") as text:
        n = text.read().count("\n")
    if not places_of(CAIRN, [f"{file}:{n}" for n in range(1, n)]):
        raise Skip("the program has no lines")
    compare(os.path.realpath(CAIRN), ["sites", "-j", "1", "--no-sidecar", target, "f"],
            [f"{file}:{n}" for n in range(1, n)], 50)


def variables(path, spec, function):
    return [{v["name"]: v for v in p["vars"]} for p in places_of(path, [spec])
            if p["function"] == function]


def line_of(text):
    return PROGRAM.split("\n").index(text) + 1


@claim
def a_variable_in_memory_of_optimised_code_is_withheld_unless_it_is_a_spill():
    for build in BUILDS:
        path = program(build)
        is_optimised = "-O0" not in build
        at = variables(path, f"by_address:{line_of(chr(9) + 'sink = unused;')}", "by_address")
        expect(at, build)
        for place in at:
            expect(bool(place["own"]["unavailable"]) == is_optimised, build, place["own"])
        at = variables(path, f"shadow:{line_of(chr(9) + 'calls++;')}", "shadow")
        for place in at:
            calls = place.get("calls", {"unavailable": "no-description"})
            expect(bool(calls["unavailable"]) == is_optimised, build, calls)


@claim_each("gcc -O0", "clang -O0")
def a_name_is_the_innermost_variable_and_not_there_at_its_declaration(build):
    path = program(build)
    for text, kind in [("\t\tsink = v;", "short"), ("\t\t\tsink += v;", "unsigned char"),
                       ("\tcalls++;", "long")]:
        for place in variables(path, f"shadow:{line_of(text)}", "shadow"):
            expect(place["v"]["type"].startswith(kind) and place["v"]["loc"], text, place["v"])
    for place in variables(path, f"shadow:{line_of(chr(9) + 'long v = n + 1;')}", "shadow"):
        expect(place["v"]["unavailable"] == "not-stored-yet", place["v"])


@claim
def variables_are_names_in_conditions_and_members_of_structs():
    need_root()
    path = program("gcc -O0")
    out = os.path.join(folder(), "events")
    probe = f"one:{line_of(chr(9) + 'both.a += r;')}(both.a, both, r) if both.b > 7 && r != 3"
    r = cairn("trace", "--json", "-o", out, "-c", path, probe)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        *events, _ = map(json.loads, file)
    expect([e["args"]["both"]["b"] for e in events] == [8, 9], events)
    expect(all(e["args"]["both"]["a"] == e["args"]["both.a"] for e in events), events)


@claim
def what_is_not_in_scope_is_answered():
    path = program("gcc -O0")
    line = line_of("\tboth.a += r;")
    r = cairn("trace", "--dry-run", "-c", path, f"one:{line}(best)")
    expect(r.status == 2 and "best" in r.err and "both" in r.err, r)
    r = cairn("sites", path, "--vars")
    expect(r.status == 2 and "needs FUNC:LINE" in r.err, r)
    r = cairn("sites", path, "--vars", f"one:{line}")
    expect("struct pair both  *(%rbp" in r.out and "1 line at 1 place" in r.out, r)


main()
