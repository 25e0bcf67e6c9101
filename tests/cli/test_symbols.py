#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace without debug information: symbols, imported functions, and expressions over what the
calling convention passes in registers."""

import collections
import json
import os
import re

from claims import (Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect, folder,
                    main, need, need_root, run)
from tracing import trace

# It writes down each call with what it passed.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
static volatile long sink;
static FILE *out;
NOINLINE long work(long a, const char *s, int b, unsigned char c, void *p, unsigned long n)
{
	sink += a + b + c + (long)n;
	return s[0] + (long)p;
}
NOINLINE void twice(int n) { sink += n; }
static NOINLINE long hidden(short h) { return sink += h; }
int main(int argc, char **argv)
{
	const char *texts[] = {"one", "two", "a longer string", ""};
	out = fopen(argv[1], "w");
	for (long i = 0; i < 300; i++) {
		const char *s = texts[i % 4];
		work(i * 0x100000001 - 5, s, (int)-i, (unsigned char)(200 + i), (void *)(i << 40), ~i);
		fprintf(out, "work %ld %s %ld %d %d %ld %lu\n", i * 0x100000001 - 5, s, strlen(s),
			(int)-i, (unsigned char)(200 + i), i << 40, ~i);
		if (i % 3 == 0) {
			twice((int)i);
			fprintf(out, "twice %ld\n", i);
		}
		hidden((short)-i);
		size_t n = 16 + i % 7 * 100;
		void *p = malloc(n);
		fprintf(out, "malloc %zu\n", n);
		free(p);
		fprintf(out, "free %ld\n", (long)p);
	}
	fclose(out);
	return 0;
}
"""
BUILDS = ("gcc -O2", "gcc -O0 -fcf-protection", "gcc -O2 -no-pie -Wl,-z,lazy",
          "clang -O2", "clang -O2 -fuse-ld=lld", "gcc -O2 -fuse-ld=mold",
          "gcc -O2 -fuse-ld=gold")


def program(build="gcc -O2", strip=False):
    compiler, *flags = build.split()
    name = "symbols" + re.sub(r"\W", "_", build)
    try:
        path = compile_c(name, PROGRAM, compiler, flags=flags)
    except AssertionError as failed:
        raise Skip(f"{build} does not link here") from failed
    if strip:
        run("strip", "-o", path + ".bare", path, check=True)
        path += ".bare"
    return path


def log_path():
    return os.path.join(folder(), "log")


def events_of(command, *words, **kwargs):
    out = os.path.join(folder(), "events")
    r = trace("--json", "-o", out, "-c", command, *words, **kwargs)
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        *events, summary = map(json.loads, file)
    expect(all(p["lost"] == 0 for p in summary["probes"]), summary)
    return events, r


def logged(name):
    with open(log_path(), encoding="utf-8") as file:
        lines = [line[:-1].split(" ") for line in file]
    return [words[1:] for words in lines if words[0] == name]


def of_work(words):
    """What is traced of a line of the log, whose text may have blanks."""
    text = " ".join(words[1:-5])
    return [words[0], text, *words[-4:]]


def shown(value):
    return str(value["string"]
               if isinstance(value, dict) and "string" in value else value)


@claim_each_of_many(*BUILDS)
def registers_of_a_symbol_are_what_the_program_passed(build):
    path = program(build)
    events, r = events_of(
        f"{path} {log_path()}",
        "work((long)$arg1, str($arg2), (int)$arg3, (unsigned char)$arg4, (long)$arg5, $arg6)",
        "twice((int)$arg1)")
    work = [[shown(v) for v in e["args"].values()] for e in events
            if e["function"] == "work"]
    expect(work == [of_work(words) for words in logged("work")], work[:3],
           logged("work")[:3])
    twice = [
        str(e["args"]["(int)$arg1"]) for e in events
        if e["function"] == "twice"
    ]
    expect(twice == [words[0] for words in logged("twice")], twice[:5])
    expect(r.err.count("inlined copies cannot be known") == 1, r)


@claim_each_of_many(*BUILDS)
def an_imported_function_is_traced_where_the_file_calls_it(build):
    path = program(build, strip=True)
    events, r = events_of(f"{path} {log_path()}", "malloc($arg1)",
                          "free((long)$arg1)")
    for name in ("malloc", "free"):
        seen = [
            str(list(e["args"].values())[0]) for e in events
            if e["function"] == name
        ]
        expect(seen == [words[0] for words in logged(name)], name, seen[:5], r)
    expect(
        all(e["site"].startswith(e["function"]) or e["function"] +
            "@plt" in e["site"] for e in events), events[:2])
    expect("only its calls by" in r.err, r)


@claim
def conditions_and_aggregates_take_registers():
    path = program()
    command = f"{path} {log_path()}"
    events, _ = events_of(
        command,
        'work($arg2:str) if str($arg2) == "two" && (int)$arg3 % 2 == 0 '
        '&& $pid > 0 && $comm != "nobody"')
    wanted = [
        w for w in map(of_work, logged("work"))
        if w[1] == "two" and int(w[2]) % 2 == 0
    ]
    # The texts are by turns, so that all numbers of one are odd.
    expect(len(events) == len(wanted) == 0, len(events), len(wanted))
    events, _ = events_of(command,
                          'work() if str($arg2) == "two" && (int)$arg3 <= -9')
    wanted = [
        w for w in map(of_work, logged("work"))
        if w[1] == "two" and int(w[2]) <= -9
    ]
    expect(len(events) == len(wanted) > 50, len(events), len(wanted))
    out = os.path.join(folder(), "sums")
    r = trace("--json", "-o", out, "-c", command, "--count", "--sum",
              "(int)$arg3 * 3", "--by", "str($arg2),(unsigned char)$arg4 & 3",
              "work")
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        *_, table, _ = map(json.loads, file)
    sums = collections.defaultdict(lambda: [0, 0])
    for words in map(of_work, logged("work")):
        row = sums[words[1], int(words[3]) & 3]
        row[0] += 1
        row[1] += int(words[2]) * 3
    rows = {
        tuple(
            shown(v) if i == 0 else v
            for i, v in enumerate(row["by"].values())):
        [row["count"], row["sum"]["(int)$arg3 * 3"]]
        for row in table["rows"]
    }
    expect(rows == dict(sums), rows, dict(sums))


@claim
def bytes_at_an_address_are_as_many_as_an_expression_says():
    path = program()
    events, _ = events_of(
        f"{path} {log_path()}",
        "work(buf($arg2, 2 + ($arg3 & 1)), str($arg2, 5)) if *(char *)$arg2")
    wanted = []
    for words in map(of_work, logged("work")):
        if words[1]:
            text = (words[1] + "\0").encode()[:2 + (int(words[2]) & 1)]
            wanted.append([text.hex(), words[1][:5]])
    seen = [[shown(v) for v in e["args"].values()] for e in events]
    expect(seen == wanted, seen[:4], wanted[:4])


@claim
def bpftrace_counts_the_same():
    need_root()
    path = program()
    command = f"{path} {log_path()}"
    # Of a file that only this test runs: it counts the calls of every process.
    theirs = run(
        need("bpftrace"), "-e",
        f"uprobe:{path}:work /arg3 % 2 == 0/ {{ @[arg3 & 255] = count(); }}",
        "-c", command)
    counts = {
        int(k): int(n)
        for k, n in re.findall(r"^@\[(\d+)\]: (\d+)$", theirs.out, re.M)
    }
    if not counts:
        raise Skip("bpftrace does not trace it here: " + theirs.err[:200])
    out = os.path.join(folder(), "counts")
    r = trace("--json", "-o", out, "-c", command, "--count", "--by",
              "$arg4 & 255", "work if $arg4 % 2 == 0")
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        *_, table, _ = map(json.loads, file)
    expect({row["by"]["$arg4 & 255"]: row["count"]
            for row in table["rows"]} == counts, table, counts)


LIBRARY = r"""
namespace ns { struct Point { long x; long add(long n); long add(const char *s); long only(int n); }; }
static volatile long sink;
long ns::Point::add(long n) { return sink += x + n; }
long ns::Point::add(const char *s) { return sink += s[0]; }
long ns::Point::only(int n) { return sink += n; }
"""
CALLER = r"""
namespace ns { struct Point { long x; long add(long n); long add(const char *s); long only(int n); }; }
int main()
{
	ns::Point p = {5};
	for (int i = 0; i < 40; i++) {
		p.only(i);
		p.add(3L);
		p.add("text");
	}
}
"""


def library():
    need("g++")
    path = os.path.join(folder(), "libpoint.so")
    for name, text in (("point.cc", LIBRARY), ("caller.cc", CALLER)):
        with open(os.path.join(folder(), name), "w", encoding="utf-8") as file:
            file.write(text)
    run("g++",
        "-O2",
        "-shared",
        "-fPIC",
        "-s",
        "-o",
        path,
        os.path.join(folder(), "point.cc"),
        check=True)
    run("g++",
        "-O2",
        "-o",
        os.path.join(folder(), "caller"),
        os.path.join(folder(), "caller.cc"),
        path,
        check=True)
    return path, os.path.join(folder(), "caller")


@claim
def a_name_of_cplusplus_stands_for_its_symbol():
    path, caller = library()
    for name in ("ns::Point::only", "Point::only", "_ZN2ns5Point4onlyEi"):
        events, _ = events_of(caller,
                              f"{path}:{name}((int)$arg2, *(long *)$arg1)")
        seen = [list(e["args"].values()) for e in events]
        expect(seen == [[i, 5] for i in range(40)], name, seen[:3])
    r = cairn("trace", "--dry-run", f"{path}:ns::Point::add")
    expect(
        r.status == 1 and "has 2 functions ns::Point::add" in r.err
        and "_ZN2ns5Point3addEl" in r.err and "_ZN2ns5Point3addEPKc" in r.err,
        r)
    events, _ = events_of(caller, f"{path}:_ZN2ns5Point3add*")
    expect(
        collections.Counter(e["function"] for e in events) == {
            "_ZN2ns5Point3addEl": 40,
            "_ZN2ns5Point3addEPKc": 40
        }, events[:2])


@claim
def a_library_of_the_system_without_debug_information_is_traced():
    need_root()
    library_path = next(
        (p for p in ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                     "/lib64/libcrypto.so.3") if os.path.exists(p)), None)
    if not library_path:
        raise Skip("no libcrypto.so.3 here")
    text = os.path.join(folder(), "data")
    with open(text, "wb") as file:
        file.write(b"x" * 100001)
    command = f"{need('openssl')} dgst -sha512 {text}"
    out = os.path.join(folder(), "crypto")
    r = trace("--json", "-o", out, "-c", command,
              "libcrypto.so.3:SHA512_Update($arg3)")
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        *events, _ = map(json.loads, file)
    if not events:
        raise Skip("openssl calls another function for it")
    expect(
        sum(e["args"]["$arg3"] for e in events) == 100001,
        [e["args"] for e in events][:5])


# A function whose debug information has no parameters: compiled with -g1.
@claim
def functions_with_lines_alone_have_registers_too():
    path = compile_c("symbols_lines", PROGRAM, flags=("-O2", "-g1"))
    events, _ = events_of(f"{path} {log_path()}", "hidden((short)$arg1)",
                          "twice((int)$arg1)")
    seen = [
        str(e["args"]["(int)$arg1"]) for e in events
        if e["function"] == "twice"
    ]
    expect(seen == [words[0] for words in logged("twice")], seen[:5])
    expect([
        e["args"]["(short)$arg1"] for e in events if e["function"] == "hidden"
    ] == [-i for i in range(300)], events[:2])


# Each call returns how many bytes it wrote to where it was told.
FILLING = r"""
#include <stdio.h>
#include <string.h>
struct place { long at[8]; };
static volatile long sink;
__attribute__((noinline, noclone, noipa)) long fill(char *to, int n, struct place *p)
{
	for (int i = 0; i < n % 7; i++)
		to[i] = (char)('a' + (n + i) % 26);
	sink += p->at[n & 7];
	return n % 7;
}
int main(int argc, char **argv)
{
	char buf[16];
	struct place p = {{3, 1, 4, 1, 5, 9, 2, 6}};
	FILE *out = fopen(argv[1], "w");
	for (int n = 0; n < 200; n++) {
		long r = fill(buf, n, &p);
		fprintf(out, "fill %ld %ld ", r, r * 2 - n);
		for (long i = 0; i < r; i++)
			fprintf(out, "%02x", buf[i]);
		fprintf(out, "\n");
	}
	fclose(out);
	return 0;
}
"""


@claim_each("-O2", "-O2 -g")
def what_a_function_returns_is_a_number_like_the_others(flags):
    # Without -g it is what is in the register.
    path = compile_c("filling" + flags.replace(" ", ""),
                     FILLING,
                     flags=flags.split())
    to, n = ("to", "n") if "-g" in flags else ("$arg1", "(int)$arg2")
    events, _ = events_of(
        f"{path} {log_path()}",
        f"fill((long)$ret, $ret * 2 - {n}, buf({to}, $ret)) if $ret != 6")
    seen = [[shown(v) for v in e["args"].values()] for e in events]
    # $ret * 2 - n of a word is one without a sign.
    wanted = [[r, d if "-g" in flags else str(int(d) % (1 << 64)), text]
              for r, d, text in logged("fill") if r != "6"]
    expect(seen == wanted and len(seen) > 100, seen[:4], wanted[:4])


@claim
def an_index_that_is_returned_needs_memory_that_is_returned():
    path = compile_c("filling-O2-g", FILLING, flags=("-O2", "-g"))
    r = cairn("trace", "--dry-run", f"{path}:fill(p->at[$ret])")
    expect(r.status != 0 and "needs a pointer that is $ret" in r.err, r)


REFUSED = [
    ("wrok", 3,
     "has no symbol wrok (perhaps you mean: work), and no debug information"),
    ("work(n)", 2, "$arg1 to $arg6 are the registers"),
    ("work($arg7)", 2, "has no $arg7; it has: $arg1"),
    ("work($arg1->x)", 2, "is not a pointer"),
    ("work((struct rec *)$arg1)", 2, "struct rec is not a type of C"),
    ("work((float)$arg1)", 2, "cannot calculate with them"),
    ("work(str((int)$arg1))", 2, "needs a pointer"),
    ("work($arg1.x)", 2, "has no members"),
    ("work($retval)", 2, "there is no $retval here; there are $pid"),
    ("work(strlen($arg2))", 2, "functions cannot be called"),
    ("main.c:work", 3, "no symbol main.c:work"),
]


@claim
def what_is_refused_says_where_why_and_what_works():
    path = program()
    for probe, status, text in REFUSED:
        r = cairn("trace", "--dry-run", f"{path}:{probe}")
        expect(r.status == status and text in r.err and not r.out, probe, r)
        expect(status != 2 or "^" in r.err, r)


@claim
def a_call_without_a_stub_is_not_seen_and_another_name_is_offered():
    path = compile_c("symbols_direct",
                     PROGRAM,
                     flags=("-O2", "-fno-plt", "-s"))
    r = cairn("trace", "--dry-run", f"{path}:malloc")
    expect(r.status == 1 and "without a stub: write LIBRARY:malloc" in r.err,
           r)


OVERLOADS = r"""
#include <cstddef>
#include <cstdio>
static FILE *out;
static volatile long sink;
#define LOG(...) (fprintf(out, __VA_ARGS__), sink++)
namespace ns {
struct T {
	int v;
	__attribute__((noinline)) int get(int n) { LOG("get %d\n", n); return v + n; }
	__attribute__((noinline)) int get(int n) const { LOG("get_const %d\n", n); return v - n; }
};
__attribute__((noinline)) void f() { LOG("none\n"); }
__attribute__((noinline)) void f(int n) { LOG("int %d\n", n); }
__attribute__((noinline)) void f(int n, ...) { LOG("more %d\n", n); }
__attribute__((noinline)) void f(const char *s) { LOG("text %s\n", s); }
__attribute__((noinline)) void f(int n, char const *s) { LOG("both %d %s\n", n, s); }
__attribute__((noinline)) void f(size_t n) { LOG("size %zu\n", n); }
__attribute__((noinline)) void f(const T &t) { LOG("reference %d\n", t.v); }
__attribute__((noinline)) void f(T *t) { LOG("pointer %d\n", t->v); }
}
int main(int argc, char **argv)
{
	out = fopen(argv[1], "w");
	for (int i = 0; i < 5; i++) {
		ns::T t = {i * 10};
		const ns::T &fixed = t;
		ns::f();
		((void (*)(int))ns::f)(i);
		((void (*)(int, ...))ns::f)(i + 3, 1.5);
		ns::f(i & 1 ? "odd" : "even");
		ns::f(i * 2, "both");
		ns::f((size_t)i << 40);
		ns::f(t);
		ns::f(&t);
		sink += t.get(i) + fixed.get(i * 3);
	}
	fclose(out);
	return 0;
}
"""
BY_TYPES = (("none", "ns::f()()"), ("int", "ns::f(int)(n)"),
            ("more", "ns::f(int, ...)(n)"), ("text", "ns::f(const char *)(s)"),
            ("both", "ns::f(int, char const*)(n, $arg2)"),
            ("size", "ns::f(unsigned long)(n)"), ("size", "f(size_t)($arg1)"),
            ("reference", "ns::f(ns::T const&)(t.v)"), ("pointer",
                                                        "ns::f(ns::T*)(t->v)"),
            ("get", "ns::T::get(int)(n)"), ("get_const",
                                            "T::get(int) const(n)"))


def overloads():
    return compile_c("overloads",
                     OVERLOADS,
                     "g++",
                     flags=("-O1", "-g", "-x", "c++"))


@claim
def functions_of_one_name_are_told_apart_by_their_parameters():
    path = overloads()
    for name, probe in BY_TYPES:
        events, _ = events_of(f"{path} {log_path()}", f"{path}:{probe}")
        found = [[shown(v) for v in e["args"].values()] for e in events]
        expect(found == logged(name) and len(found) == 5, probe, found,
               logged(name))


@claim
def parameters_that_no_function_has_are_refused_with_those_that_there_are():
    path = overloads()
    for probe, words in (("ns::f(double)", ("(int)", "(int, ...)",
                                            "(const char *)", "(size_t)")),
                         ("ns::f(n)", ("8 functions", "FUNC(TYPES)")),
                         ("ns::T::get(int, int) const", ("(int) const", ))):
        r = trace("--dry-run", f"{path}:{probe}")
        expect(r.status == 1 and all(w in r.err for w in words), probe, r)
    run("strip", "-o", path + ".bare", path, check=True)
    r = trace("--dry-run", f"{path}.bare:ns::f(int)")
    expect(r.status and "by their symbols" in r.err, r)


@claim
def a_stub_is_named_as_disassemblers_name_it():
    path = program(strip=True)
    events, _ = events_of(f"{path} {log_path()}", "malloc@plt($arg1)")
    sizes = [shown(v) for e in events for v in e["args"].values()]
    expect(sizes == [n for n, in logged("malloc")], sizes[:3])
    r = trace("--dry-run", f"{path}:nothing@plt")
    expect(r.status and "nothing@plt" in r.err, r)


VERSIONS = r"""
static volatile int sink;
__attribute__((noinline, noclone)) void work_old(int n) { sink = n; }
__attribute__((noinline, noclone)) void work_new(int n) { sink = n + 1; }
__asm__(".symver work_old,work@V1");
__asm__(".symver work_new,work@@V2");
"""
VERSION_CALLER = r"""
#include <stdio.h>
void work(int n);
void first(int n);
__asm__(".symver first,work@V1");
int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	for (int i = 0; i < 6; i++) {
		first(i * 2);
		fprintf(out, "V1 %d\n", i * 2);
		work(-i);
		fprintf(out, "V2 %d\n", -i);
	}
	fclose(out);
	return 0;
}
"""


@claim_each("-g", "-s")
def versions_of_a_symbol_are_told_apart(flag):
    at = os.path.join(folder(), "versions" + flag)
    os.makedirs(at, exist_ok=True)
    for name, text in (("lib.c", VERSIONS), ("main.c", VERSION_CALLER), (
            "map",
            "V1 { global: work; local: *; };\nV2 { global: work; } V1;\n")):
        with open(os.path.join(at, name), "w", encoding="utf-8") as file:
            file.write(text)
    run("gcc",
        "-O2",
        flag,
        "-fPIC",
        "-shared",
        "-Wl,--version-script=map",
        "-o",
        "libversions.so",
        "lib.c",
        cwd=at,
        check=True)
    run("gcc",
        "-O2",
        "-o",
        "main",
        "main.c",
        "./libversions.so",
        cwd=at,
        check=True)
    for version in ("V1", "V2"):
        for spec in (f"work@{version}", f"work@@{version}"):
            events, _ = events_of(f"{at}/main {log_path()}",
                                  f"{at}/libversions.so:{spec}((int)$arg1)",
                                  cwd=at)
            found = [[shown(v) for v in e["args"].values()] for e in events]
            expect(found == logged(version) and len(found) == 6, spec, found)
    r = cairn("trace", "--dry-run", f"{at}/libversions.so:work@V3")
    expect(r.status and "work@V3" in r.err, r)
    # The bare name is what the program was linked with: the default version.
    defaults = re.findall(
        r" work@@(V\d)$",
        run("nm", "-D", "--with-symbol-versions", f"{at}/libversions.so").out,
        re.M)
    events, _ = events_of(f"{at}/main {log_path()}",
                          f"{at}/libversions.so:work((int)$arg1)",
                          cwd=at)
    found = [[shown(v) for v in e["args"].values()] for e in events]
    expect(
        len(defaults) == 1 and found == logged(defaults[0]) and found,
        defaults, found)


def nearest(path, name):
    r = cairn("trace", "--dry-run", f"{path}:{name}")
    suggested = re.search(
        r"has no symbol \S+ \(perhaps you mean: ([^)]*)\), and no debug",
        r.err)
    return r, suggested[1].split(", ") if suggested else []


@claim
def a_slip_in_a_symbol_is_answered_by_the_names_that_are_near():
    path = compile_c(
        "slips",
        "int zmalloc(int n) { return n; }\nint other(void) { return 2; }\n"
        "int main(int c, char **v) { return zmalloc(c) + other() > 9; }\n",
        "gcc", ("-O0", ))
    for slip in ("zmaloc", "zmlaloc", "zmallocc", "smalloc"):
        r, names = nearest(path, slip)
        expect(r.status and names[:1] == ["zmalloc"], slip, r)
    r, names = nearest(path, "nothing_like_it")
    expect(
        r.status and not names
        and "has no symbol nothing_like_it, and no debug" in r.err, r)


@claim
def a_library_without_so_is_answered_by_its_name():
    for command in ((), ("-c", "true")):
        for spec, library in (("libc:malloc", "libc.so.6"),
                              ("libm:pow", r"libm\.so(\.6)?")):
            r = cairn("trace", "--dry-run", *command, spec)
            wanted = rf"the library's name is ({library}); write \1:{spec.split(':')[1]}$"
            expect(r.status == 2 and re.search(wanted, r.err, re.M), command,
                   spec, r)
    r = cairn("trace", "--dry-run", "libthere_is_none:f")
    expect(r.status and "library's name" not in r.err, r)


@claim
def the_default_version_is_what_the_dynamic_linker_gives():
    """Of libm, with and without its debug information."""
    libm = "/lib/x86_64-linux-gnu/libm.so.6"
    bare = os.path.join(folder(), "libbare.so.6")
    run(need("objcopy"),
        "--remove-section=.note.gnu.build-id",
        "--remove-section=.gnu_debuglink",
        libm,
        bare,
        check=True)
    symbols = run("nm", "-D", "--with-symbol-versions", libm, check=True).out
    for path in (libm, bare):
        for name in ("pow", "exp", "log"):
            at = re.search(rf"^0*(\w+) \w {name}@@", symbols, re.M)
            r = cairn("trace", "--dry-run", f"{path}:{name}")
            if at and "indirect" not in r.err:
                expect(re.search(rf"^  0x{at[1]}  entry", r.out, re.M), path,
                       name, r)


if __name__ == "__main__":
    main()
