#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""BTF of BTF: dedup, merge, distil; and what Clang leaves open in the objects of BPF programs."""
import json
import os

from claims import cairn, claim, compile_c, expect, main, need, path_of, run, write

BASE = """\
enum big { HUGE = 1ull << 40 }; struct one { int a; struct one *next; }; struct two; struct user { struct two *t; };
int f(struct one *o, struct user *u, enum big *b) { return o->a + !u->t + !b; }
"""
MODULE = """\
enum big { HUGE = 1ull << 40 }; struct one { int a; struct one *next; }; struct two { long l; }; struct user { struct two *t; };
struct own { struct one one; enum big big; struct user *u; };
long g(struct own *o, struct two *t) { return o->one.a + o->u->t->l + t->l; }
"""
PROGRAM = """\
enum res { OK, FAIL = -1 }; enum size { SMALL, LARGE = 0xffffffff };
struct event { enum res res; int pid; };
int counter; struct event last; const volatile int limit = 3;
__attribute__((section("xdp"))) int prog(void *ctx) { last.pid = counter += limit; last.res = FAIL; return 0; }
enum size size(void) { return LARGE; }
char _license[] __attribute__((section("license"))) = "GPL";
"""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def encoded(name, source, *options):
    need("gcc")
    run("gcc", "-g", "-c", "-o", path_of(name + ".o"), write(name + ".c", source), check=True)
    cairn("btf", "encode", *options, path_of(name + ".o"), "-o", path_of(name + ".btf"), check=True)
    return path_of(name + ".btf")


def records(path, *options):
    return cairn("btf", "dump", "--json", *options, path, check=True).objects()


def bpf_object():
    need("clang")
    source = write("program.bpf.c", PROGRAM)
    run("clang", "-target", "bpf", "-g", "-O2", "-c", "-o", path_of("program.bpf.o"), source,
        check=True)
    return source, path_of("program.bpf.o")


@claim
def merge_writes_the_types_of_several_files_each_once():
    a, b, out = encoded("one", BASE), encoded("module", MODULE), path_of("all.btf")
    said = cairn("btf", "merge", "--json", a, b, "-o", out, check=True).objects()[0]
    names = [r["name"] for r in records(out)]
    # The base's declaration of struct two has become the module's definition.
    for name in ("one", "two", "user", "own", "f", "g", "big"):
        expect(names.count(name) == 1, name, names)
    expect(
        said["records"] == len(names) < said["records_before"] == len(records(a)) + len(records(b)),
        said)
    expect(all(r["kind"] != "FWD" for r in records(out)))
    cairn("btf", "check", "--kernel=all", out, check=True)
    cairn("btf", "merge", a, a, "-o", path_of("same.btf"), check=True)
    cairn("btf", "dedup", a, "-o", path_of("once.btf"), check=True)
    expect(read(path_of("same.btf")) == read(path_of("once.btf")))


@claim
def bpftool_reads_what_merge_writes():
    need("bpftool")
    out = path_of("all.btf")
    cairn("btf", "merge", encoded("one", BASE), encoded("module", MODULE), "-o", out, check=True)
    theirs = json.loads(run("bpftool", "-j", "btf", "dump", "file", out, check=True).out)["types"]
    expect([t["name"]
            for t in theirs
            if t["kind"] == "STRUCT"] == [r["name"] for r in records(out) if r["kind"] == "STRUCT"])


@claim
def dedup_on_a_base_keeps_what_the_base_only_declares():
    base, out = encoded("one", BASE), path_of("split.btf")
    module = encoded("module", MODULE)
    cairn("btf", "merge", base, module, "-o", path_of("all.btf"), check=True)
    cairn("btf", "encode", "-B", base, path_of("module.o"), "-o", path_of("on_base.btf"),
          check=True)
    cairn("btf", "dedup", "-B", base, path_of("on_base.btf"), "-o", out, check=True)
    own = [r["name"] for r in records(out, "-B", base) if r["kind"] == "STRUCT"]
    expect(sorted(own) == ["own", "two", "user"], own)


@claim
def distil_writes_the_least_of_a_base():
    base, out = encoded("one", BASE), path_of("small.btf")
    module = encoded("module", MODULE, "-B", base)
    cairn("btf", "distil", "-B", base, module, "-o", out, check=True)
    kept = {r["name"]: r for r in records(out + ".base")}
    expect(kept["big"]["kind"] == "ENUM" and kept["big"]["size"] == 8 and not kept["big"]["vlen"],
           kept)
    expect(kept["one"]["kind"] == "STRUCT" and not kept["one"]["vlen"] and "user" not in kept, kept)
    cairn("btf", "check", "-B", out + ".base", out, check=True)
    r = cairn("btf", "distil", base, "-o", out)
    expect(r.status == 2 and "is not split from a base" in r.err, r)


@claim
def what_cannot_be_merged_is_refused():
    base, out = encoded("one", BASE), path_of("never.btf")
    module = encoded("module", MODULE, "-B", base)
    for arguments, text in ((("merge", base), "needs -o OUT"), (("dedup", base, base, "-o", out),
                                                                "Try: cairn btf merge"),
                            (("merge", "-B", base, base, module, "-o", out), "is not split BTF"),
                            (("merge", path_of("absent"), "-o", out), "No such file")):
        r = cairn("btf", *arguments)
        expect(r.status in (2, 3) and text in r.err and not os.path.exists(out), r)


@claim
def an_object_of_clang_is_sound_before_it_is_linked():
    need("bpftool")
    _, program = bpf_object()
    expect(any(r["kind"] == "DATASEC" and r["size"] == 0 for r in records(program)))
    cairn("btf", "check", program, check=True)
    r = cairn("btf", "check", "--kernel=all", program)
    expect(r.status == 1 and "before the object is linked" in r.out, r)
    # And once it is, there is a size.
    run("bpftool", "gen", "object", path_of("linked.o"), program, check=True)
    expect(all(r["size"] for r in records(path_of("linked.o")) if r["kind"] == "DATASEC"))


@claim
def a_negative_enumerator_of_an_old_clang_is_no_difference():
    """Clang 14 writes -1 as 4294967295, and nothing that tells the two apart."""
    need("llvm-strip")
    source, program = bpf_object()
    run("llvm-strip", "-g", program, check=True)
    host = compile_c("host",
                     PROGRAM.replace('section("xdp")', "unused") + "int main(void) { return 0; }\n",
                     "gcc", ("-g", "-w"))
    for arguments in (("--diff", host, program, "event"), ("--check", program, "--against",
                                                           source)):
        r = cairn("layout", *arguments)
        expect(r.status == 0 and "4294967295" not in r.out, r)
    # A value that is neither stays a difference.
    other = write("other.c", PROGRAM.replace("FAIL = -1", "FAIL = -2"))
    r = cairn("layout", "--check", program, "--against", other)
    expect(r.status == 1 and "FAIL" in r.out, r)


PLUS = """\\
namespace ns { struct plain { int a; }; template <typename T> struct holder { T value; plain p; }; }
ns::holder<int> h; int f(ns::holder<int> *p) { return p->value; }
int main() { return f(&h); }
"""


@claim
def names_that_are_no_identifiers_are_told_once_with_their_number():
    need("g++")
    program, out = path_of("plus"), path_of("plus.btf")
    run("g++", "-g", "-o", program, write("plus.cc", PLUS), check=True)
    cairn("btf", "encode", program, "-o", out, check=True)
    r = cairn("btf", "dump", "--format", "c", "-t", "struct ns::holder<int>", out, check=True)
    warned = [line for line in r.err.splitlines() if "no identifier" in line]
    expect(len(warned) == 1 and "2 names are" in warned[0] and r.out.count("/* ns::") >= 2, r)
    r = cairn("bind", "--lang", "c", program, "struct ns::holder<int>", check=True)
    expect(r.err.count("no identifier") == 1 and "1 name is" in r.err, r)
    # C has nothing to tell.
    base = encoded("one", BASE)
    expect(not cairn("btf", "dump", "--format", "c", base, check=True).err)
    expect(not cairn("bind", "--lang", "rust", path_of("one.o"), "struct one", check=True).err)


if __name__ == "__main__":
    main()
