#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout: types that only debug information has (of BPF objects, too), types of functions,
names without scopes."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import (CAIRN, Skip, cairn, claim, claim_each_of_many, compile_c, expect, folder, main,
                    need, run, write)

# Nothing but a local variable leads to struct event: BTF has what maps, functions and variables of
# the file lead to.
BPF = """typedef unsigned int u32; typedef unsigned long long u64;
struct event { int pid; char comm[16]; u64 at; };
static void *(*reserve)(u64, u64) = (void *)131;
static void (*submit)(void *, u64) = (void *)132;
__attribute__((section("tp/x"))) int handle(void *ctx)
{
	struct inner { int a; short b; } in;
	struct event *e = reserve(sizeof(*e), 0);
	if (!e) return 0;
	in.a = (int)(long)ctx; in.b = 3; e->pid = in.a + in.b; e->at = 1;
	asm volatile("" :: "r"(&in) : "memory");
	submit(e, 0);
	return 0;
}
"""

CPP = """namespace ns {
	struct Job { int id; char k; }; enum Color { RED = 3 };
	struct Outer { struct Nested { short q; } n; int run(int v); };
	int Outer::run(int v) { struct inner { int a; char b; struct deep { long z; } d; } x = {v, 1, {2}}; asm volatile("" :: "r"(&x) : "memory"); return x.a; }
	namespace { __attribute__((noinline)) int hid(int v) { struct h { long a; } x = {v}; asm volatile("" :: "r"(&x) : "memory"); return x.a; } }
}
__attribute__((noinline)) static int f(int v)
{
	struct inner { int zz; } x = {v};
	{ enum E { E1, E2 } e = v ? E1 : E2; asm volatile("" :: "r"(&x), "r"(&e) : "memory"); }
	return x.zz;
}
int main(int c, char **v)
{
	ns::Job j = {c, 1}; ns::Color k = ns::RED; ns::Outer o;
	asm volatile("" :: "r"(&j), "r"(&k), "r"(&o) : "memory");
	return o.run(c) + ns::hid(c) + f(c);
}
"""


def bpf_object():
    need("clang")
    path = os.path.join(folder(), "event.bpf.o")
    run("clang", "-target", "bpf", "-g", "-O2", "-c", "-o", path, write("event.bpf.c", BPF),
        check=True)
    return path


@claim
def of_bpf_objects_types_of_local_variables_are_found():
    path = bpf_object()
    need("pahole")
    for name in ("event", "inner"):
        oracle = run("pahole", "-F", "dwarf", "-C", name, path)
        if not oracle.out:
            raise Skip("pahole does not read DWARF of BPF objects")
        r = cairn("layout", path, name)
        expect(r.status == 0 and r.out.strip() == oracle.out.strip(), r, oracle)
    r = cairn("layout", path, "handle::inner", "--json")
    expect([(o["name"], o["size"]) for o in r.objects()] == [("inner", 8)], r)


@claim
def btf_of_bpf_objects_is_read_where_it_is_asked_for_or_alone():
    path = bpf_object()
    r = cairn("layout", path, "event", "--btf")
    expect(r.status == 1 and "no type is named event" in r.err, r)
    text = BPF + "struct event shared;\n"
    run("clang", "-target", "bpf", "-g", "-O2", "-c", "-o", path, write("event.bpf.c", text),
        check=True)
    both = cairn("layout", path, "event", check=True).out
    expect(cairn("layout", path, "event", "--btf", check=True).out == both, both)
    run(need("llvm-strip"), "-g", path, check=True)
    expect(cairn("layout", path, "event", check=True).out == both, both)


@claim
def code_of_bpf_objects_is_refused():
    for words in (["sites", bpf_object(), "handle"], ["sidecar",
                                                      bpf_object()], ["addr",
                                                                      bpf_object(), "0"]):
        r = cairn(*words)
        expect(r.status not in (0, 1) and "BPF" in r.err and not r.out, r)


@claim
def debug_information_of_arm64_objects_is_relocated():
    need("clang")
    path = os.path.join(folder(), "arm64.o")
    text = "struct event { int pid; char c; long at; }; int f(struct event *e) { struct in { short s; } i = {e->c}; return i.s; }\n"
    if run("clang", "-target", "aarch64-linux-gnu", "-g", "-O0", "-c", "-o", path,
           write("arm64.c", text)).status:
        raise Skip("clang has no AArch64")
    r = cairn("layout", path, "event", "f::in", "--sizes", check=True)
    expect(r.out.split() == ["event", "16", "1", "in", "2", "0"], r)


@claim_each_of_many("g++", "clang++")
def names_may_lack_their_scopes(compiler):
    need(compiler)
    program = os.path.join(folder(), "scopes-" + compiler)
    run(compiler, "-O1", "-g", "-o", program, write("scopes.cc", CPP), check=True)
    sidecar = program + ".cairn"
    run(CAIRN, "sidecar", program, "-o", sidecar, check=True)
    for name, found in (("Job", ["ns::Job 8"]), ("ns::Job", ["ns::Job 8"]), ("struct Job", [
            "ns::Job 8"
    ]), ("Nested",
         ["ns::Outer::Nested 2"]), ("Outer::Nested", ["ns::Outer::Nested 2"]), ("enum Color", [
             "ns::Color 4"
         ]), ("union Job", []), ("b", []), ("s::Job", []), ("run::inner", [
             "inner 16"
         ]), ("ns::Outer::run::inner", ["inner 16"]), ("f::inner", ["inner 4"]), ("inner", [
             "inner 16", "inner 4"
         ]), ("deep", ["deep 8"]), ("inner::deep", ["deep 8"]), ("hid::h", ["h 8"]), ("f::E", [
             "E 4"
         ]), ("f::*", ["inner 4", "E 4"]), ("g::inner", [])):
        r = cairn("layout", program, "--json", name)
        expect(
            sorted(f"{o['name']} {o['size']}" for o in r.objects()) == sorted(found)
            and r.status == (not found), name, r)
        packed = cairn("layout", sidecar, "--json", name)
        expect((packed.out, packed.status) == (r.out, r.status), name, r, packed)
    every = cairn("layout", program, check=True).out
    expect("struct ns::Job {" in every and "zz" not in every, every)


@claim_each_of_many("gcc", "clang")
def types_of_functions_of_c_are_those_that_pahole_finds(compiler):
    need("pahole")
    text = """#include <stdio.h>
__attribute__((noinline)) static int f(int v) { struct fin { char c; long l; } x = {1, v}; asm volatile("" :: "r"(&x) : "memory"); return x.l; }
int main(int n, char **v) { typedef struct { short a; int b; } local_t; local_t y = {1, n}; asm volatile("" :: "r"(&y) : "memory"); return f(n) + y.b; }
"""
    program = compile_c("locals", text, compiler)
    for name in ("fin",):
        oracle = run("pahole", "-F", "dwarf", "-C", name, program, check=True)
        r = cairn("layout", program, "f::" + name)
        expect(oracle.out.strip() == r.out.strip() and r.out, r, oracle)
    r = cairn("layout", program, "main::local_t", "--json")
    expect(r.objects()[0]["size"] == 8, r)
    r = cairn("decode", program, "local_t", write("bytes", "abcdefgh"))
    expect(re.fullmatch(r"{\.a = 25185, \.b = 1751606885}\n", r.out), r)


SHARED = """namespace space {
	struct Area { int minx, miny, maxx, maxy; };
	class Held { public: Area area; const Area *next; struct Part { Area *of; long n; } part; Held(int); virtual ~Held(); };
	template <typename T> struct Pair { T first; Held *second; };
	typedef Pair<Area> Areas;
}
"""


@claim
def names_keep_their_scopes_in_the_units_of_dwz():
    need("g++"), need("dwz")
    write("shared.h", SHARED)
    units = [
        write(
            f"unit{n}.cc", f'#include "shared.h"\nspace::Areas areas{n}; space::Held *held{n};\n'
            f"long take{n}(space::Held::Part *p) {{ return p->n + p->of->minx; }}\n")
        for n in (1, 2)
    ]
    path = os.path.join(folder(), "units.so")
    run("g++", "-g", "-shared", "-fPIC", *units, "-o", path, check=True)

    def structs(*words):
        r = cairn("layout", *words)
        expect(r.status == 0, r)
        return sorted(r.out.split("\n}"))

    before = structs("--no-sidecar", path)
    expect(any("space::Held::Part" in text for text in before), before)
    run("dwz", path, check=True)
    expect("DW_TAG_partial_unit" in run("readelf", "--debug-dump=info", path, check=True).out,
           "dwz made no unit")
    expect(structs("--no-sidecar", path) == before, before, structs("--no-sidecar", path))
    run(CAIRN, "sidecar", path, "-o", path + ".cairn", check=True)
    expect(structs(path + ".cairn") == before, before)


main()
