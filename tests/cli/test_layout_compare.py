#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout --check, --diff, --lock, and --abi of what was compiled."""

import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import (CAIRN, SOURCE, Skip, cairn, claim, claim_each, claim_each_of_many, expect,
                    folder, main, need, run, write)

EXAMPLES = os.path.join(SOURCE, "examples")
READERS = ["event.h", "Event.java", "event.rs", "event.go", "event.py"]


def example(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        return file.read()


def bpf(name, text, target="bpf"):
    """A BPF object of C text."""
    need("clang")
    path = os.path.join(folder(), name)
    run("clang", "-target", target, "-g", "-O2", "-I", EXAMPLES, "-c", "-x", "c", "-o", path,
        write(name + ".c", text), check=True)
    return path


def event_object():
    path = os.path.join(folder(), "event.bpf.o")
    return path if os.path.exists(path) else bpf("event.bpf.o", example("event.bpf.c"))


def check(obj, decls, *words):
    return cairn("layout", "--check", obj, "--against", decls, *words)


def changes(result):
    """(type, member, change, offsets in bits, sizes) of all that differs."""
    return [(o["name"], c["name"], c["change"], c.get("bit_offset"), c.get("size"))
            for o in result.objects() for c in o["differing"]]


# ---- the examples

@claim_each(*READERS)
def every_reader_of_the_examples_agrees_with_the_bpf_program(name):
    r = check(event_object(), os.path.join(EXAMPLES, name))
    expect(
        r.status == 0 and r.out.count("the same in") >= 4 and "struct access: 312 bytes" in r.out,
        r)


@claim
def the_object_that_make_builds_is_the_one_of_the_examples():
    built = os.path.join(os.path.dirname(CAIRN), "examples", "event.bpf.o")
    expect(os.path.exists(built), built)
    r = check(built, os.path.join(EXAMPLES, "Event.java"))
    expect(r.status == 0 and "struct access: 312 bytes, the same in access" in r.out, r)
    r = cairn("layout", "--lint", built, "--json")
    expect(
        r.status == 1 and ("padded_event", "padding-leak") in {(o["type"], o["rule"])
                                                               for o in r.objects()}, r)
    # What is behind a member whose type has another size there is mended in that type.
    expect([o["mend"] for o in r.objects() if o["member"] == "at"] == ["mend its type, which "
                                                                       "has another size there"], r)


@claim
def a_struct_format_is_checked_by_its_name():
    r = check(event_object(), os.path.join(EXAMPLES, "event.py"), "event=EVENT_FORMAT")
    expect(r.status == 0 and r.out.startswith("struct event: 276 bytes, the same in EVENT_FORMAT"),
           r)
    text = example("event.py").replace('"<I256s16s"', '">I256s"')
    r = check(event_object(), write("format.py", text), "event=EVENT_FORMAT", "--json")
    expect(
        r.status == 1 and [c[1:3] for c in changes(r)] == [("e_pid", "byte-order"),
                                                           ("e_comm", "removed")], r)


# What is wrong, in which file, and what is told of it first.
DEFECTS = [
    ("event.rs", "pub pid: u32", "pub pid: i32", "event", "e_pid", "sign", [0, 0]),
    ("event.rs", "pub failed: u8,\n", "pub failed: u8,\n    pub extra: [u8; 4],\n", "access",
     "extra", "added", [None, 2376]),
    ("event.rs", "#[repr(C)]\n#[derive(Clone, Copy)]\npub struct Position",
     "#[repr(C, packed)]\n#[derive(Clone, Copy)]\npub "
     "struct Position", "position", None, "tail", [0, 0]),
    ("event.go", "TaskCommLen = 16", "TaskCommLen = 32", "event", "e_comm", "length", [2080, 2080]),
    ("event.go", "Offset uint64\n\tWhence uint8", "Whence uint8\n\tOffset uint64", "position",
     "offset", "moved", [0, 64]),
    ("event.py", '("pid", c_uint32)', '("pid", c_uint64)', "event", "e_pid", "resized", [0, 0]),
    ("event.py", "class Access(Structure):\n", "class Access(Structure):\n    _pack_ = 1\n",
     "access", "at", "moved", [2240, 2240 - 8 * 0]),
    ("Event.java", ", @Size(7) byte[] pad", "", "position", None, "tail", [0, 0]),
    ("Event.java", "@EnumMember(value = 2) KIND_READ", "KIND_READ", "kind", None, None, None),
    ("event.h", "unsigned long long when_ns", "double when_ns", "access", "when_ns", "type", [
        2432, 2432
    ]),
]


@claim_each(*(str(i) for i in range(len(DEFECTS))))
def a_deliberate_defect_is_found_at_its_member(number):
    name, old, new, kind, member, change, offsets = DEFECTS[int(number)]
    text = example(name)
    expect(old in text, f"{name} has no more {old}")
    r = check(event_object(), write("wrong" + os.path.splitext(name)[1], text.replace(old, new, 1)),
              kind, "--json")
    expect(r.status == 1, r)
    first = changes(r)[0]
    if change and not (name == "event.py" and "_pack_" in new):
        expect(first[:3] == (kind, member, change) and first[3] == offsets, first, r)


@claim
def a_consumer_on_32_bits_is_checked_on_its_abi():
    r = check(event_object(), os.path.join(EXAMPLES, "event.h"), "padded_event", "--abi",
              "x86-64,i386", "--json")
    expect(r.status == 1, r)
    expect([(o["abi"], o["same"]) for o in r.objects()] == [("x86-64", True), ("i386", False)], r)
    expect(changes(r)[0] == ("padded_event", "l", "moved", [64, 32], [8, 4]), r)


@claim
def what_cannot_be_laid_out_is_told_with_its_line_and_fails():
    text = example("event.rs").replace("#[repr(C)]\n#[derive(Clone, Copy)]\npub struct Event",
                                       "pub struct Event")
    r = check(event_object(), write("norepr.rs", text))
    expect(r.status == 1 and "norepr.rs:" in r.err and "without #[repr(C)]" in r.err, r)
    r = check(event_object(), write("norepr.rs", text), "event", "--json")
    expect(r.status == 1 and "without #[repr(C)]" in r.objects()[0]["problem"], r)
    r = check(event_object(),
              write("syntax.go", "package p\ntype Event struct {\n\tPid uint32 uint32\n}\n"))
    expect(
        r.status == 4 and "syntax.go:3:13: expected the end of a field" in r.err and "^" in r.err,
        r)


@claim
def types_that_do_not_meet_are_told():
    r = check(event_object(), write("other.go", "package p\ntype Other struct{ A uint32 }\n"))
    expect(r.status == 1 and "Compilers keep a type that something global has" in r.err, r)
    r = check(event_object(), os.path.join(EXAMPLES, "event.go"), "nothing")
    expect(r.status == 1 and "nothing is no type of" in r.err, r)
    r = check(event_object(), os.path.join(EXAMPLES, "event.go"), "event=Nothing")
    expect(r.status == 1 and "Nothing is no type of" in r.err, r)
    r = check(event_object(), os.path.join(EXAMPLES, "event.bpf.c"))
    expect(r.status == 0, r)
    r = check(event_object(), event_object())
    expect(r.status == 2 and "neither C nor Java" in r.err, r)


# ---- unions, in languages that have another word for them, or none

UNIONS = """
struct event { unsigned pid; union { unsigned saddr4; unsigned char saddr6[16]; }; union { int x; float f; } u; unsigned tail; };
struct two { union { unsigned long long a; void *p; struct { int lo; int hi; }; }; struct { int b; int c; }; };
enum kind { A, B };
struct inner { char c; int n; };
struct holder { enum kind k; struct inner in; int v; };
"""
BINDGEN = """
#[repr(C)] pub struct event { pub pid: u32, pub __bindgen_anon_1: event__bindgen_ty_1, pub u: event__bindgen_ty_2,
                              pub tail: u32 }
#[repr(C)] pub union event__bindgen_ty_1 { pub saddr4: u32, pub saddr6: [u8; 16] }
#[repr(C)] pub union event__bindgen_ty_2 { pub x: i32, pub f: f32 }
#[repr(C)] pub struct two { pub __bindgen_anon_1: two__bindgen_ty_1, pub __bindgen_anon_2: two__bindgen_ty_2 }
#[repr(C)] pub union two__bindgen_ty_1 { pub a: u64, pub p: *mut u8, pub __bindgen_anon_1: two__bindgen_ty_1_1 }
#[repr(C)] pub struct two__bindgen_ty_1_1 { pub lo: i32, pub hi: i32 }
#[repr(C)] pub struct two__bindgen_ty_2 { pub b: i32, pub c: i32 }
#[repr(transparent)] pub struct kind(pub u32);
#[repr(C)] pub struct inner(pub i8, pub i32);
#[repr(C)] pub struct Held(pub inner);
#[repr(transparent)] pub struct Value(pub i32);
#[repr(C)] pub struct holder { pub k: kind, pub held: Held, pub v: Value }
"""
GO = "package p\ntype Event struct { Pid uint32; %s; Tail uint32 }\n"
GO_TWO = "package p\ntype Two struct { %s }\n"
# A reader's way to say the same.
SAME = {
    "bindgen.rs": BINDGEN,
    "one_arm.go": GO % "Saddr6 [16]byte; U int32",
    "the_other_arm.go": GO % "Saddr4 uint32; _ [12]byte; U float32",
    "bytes.go": GO % "Anon0 [16]byte; U [4]byte",
    "arm_in_bytes.go": GO % "Saddr4 [16]byte; U [4]byte",
    "bpf2go.go": GO % "Anon0 struct { Saddr4 uint32; _ [12]byte }; U struct { X int32 }",
    "names_of_its_own.go": GO % "Address [16]byte; F float32",
    "word.go": GO_TWO % "A uint64; B int32; C int32",
    "halves.go": GO_TWO % "Lo int32; Hi int32; Anon1 struct { B int32; C int32 }",
    "bytes_and_struct.go": GO_TWO % "Anon0 [8]byte; Anon1 struct { B int32; C int32 }",
}
# And what is no way to say it: the members that are told of.
NOT_SAME = {
    "sign.rs": (BINDGEN.replace(
        "saddr4: u32", "saddr4: i32"), {("saddr4", "sign")}), "arm_is_missing.rs": (BINDGEN.replace(
            "pub saddr4: u32, ", ""), {("saddr4", "removed")}), "named_arm_is_missing.rs":
    (BINDGEN.replace(", pub f: f32", ""), {("u.f", "removed")}), "kind.rs": (BINDGEN.replace(
        "kind(pub u32)",
        "kind(pub f32)"), {(None, "type"), ("k", "type")}), "in_tuple.rs": (BINDGEN.replace(
            "inner(pub i8, pub i32)", "inner(pub i8, pub u32)"), {("n", "sign"), ("in.n", "sign")}),
    "short.go": (GO % "Anon0 [12]byte; U [4]byte", {("saddr4", "resized"), ("u", "moved"),
                                                    ("tail", "moved")}), "no_padding.go":
    (GO % "Saddr4 uint32; U int32", {("u", "moved"), ("tail", "moved")}), "both_arms.go":
    (GO % "Saddr4 uint32; Saddr6 [16]byte; U int32", {("saddr6", "moved"), ("u", "moved"),
                                                      ("tail", "moved")}), "no_arm_has_it.go":
    (GO % "Saddr6 [16]byte; U uint16; _ uint16",
     {("u", "resized")}), "sign_of_the_arm.go": (GO % "Saddr4 int32; _ [12]byte; U int32", {
         ("saddr4", "sign")
     }), "half.go": (GO_TWO % "Lo int32; _ int32; B int32; C int32", {("hi", "removed")}),
    "half_struct.go": (GO_TWO % "A uint64; B int32; _ int32", {("c", "removed")}),
}


def unions_object():
    return write("unions.h", UNIONS)


@claim_each(*SAME)
def a_reader_may_say_a_union_in_its_own_way(name):
    r = check(unions_object(), write(name, SAME[name]), "--json")
    expect(r.status == 0 and r.objects() and all(o["same"] for o in r.objects()), r)
    n = SAME[name].count("type ") or 5
    expect(len(r.objects()) == n, len(r.objects()), r)


@claim_each(*NOT_SAME)
def what_differs_in_a_union_is_told_all_the_same(name):
    text, told = NOT_SAME[name]
    r = check(unions_object(), write(name, text), "--json")
    found = {c[1:3] for c in changes(r)}
    expect(r.status == 1 and found == told, found, r)


@claim
def a_member_may_be_ignored_and_nothing_else_is():
    text = BINDGEN.replace("saddr4: u32", "saddr4: i32").replace(", pub f: f32", "")
    path = write("ignore.rs", text)
    for words, told, n in ((["saddr4"], {("u.f", "removed")}, 1), (["saddr4", "u.f"], set(), 2), ([
            "saddr4", "u"
    ], set(), 2), (["saddr", "u.", "f", ""], {("saddr4", "sign"), ("u.f", "removed")}, 0)):
        r = check(unions_object(), path, "event", "--json",
                  *(w for word in words for w in ("--ignore", word)))
        o = r.objects()[0]
        expect({c[1:3] for c in changes(r)} == told and o["ignored"] == n, words, r)
        expect(r.status == (1 if told else 0) and o["same"] == (not told), words, r)
    r = check(unions_object(), path, "event", "--ignore", "saddr4", "--ignore", "u")
    expect(
        "the same in" in r.out
        and "    ignored: 2 differences in members that --ignore names\n" in r.out, r)
    # What an ignored member moves is told.
    r = check(unions_object(), write("ignore.go", GO % "Anon0 [12]byte; U [4]byte"), "--json",
              "--ignore", "saddr4")
    expect({c[1:3] for c in changes(r)} == {("u", "moved"), ("tail", "moved")}, r)
    r = cairn("layout", "--ignore", "a", unions_object())
    expect(r.status == 2 and "--ignore belongs to --check" in r.err, r)


# ---- how records arrive

MAP = "struct { int (*type)[%d]; int (*max_entries)[64]; } m __attribute__((section(\".maps\"), used));\n"


@claim
def ring_perf_and_map_each_have_their_own_length():
    text = "struct r { unsigned long long a; int b; } r;\n"
    reader = write("short.go",
                   "package p\ntype R struct {\n\tA uint64\n\tB [4]byte\n\tC [16]byte\n}\n")
    for kind, word, line in [(27, "ring", "ring buffer: a record has 16 bytes, "
                                          "16 less than are read"),
                             (4, "perf", "perf buffer: a sample has 20 bytes, of "
                                         "which 16 are the struct"),
                             (1, "map", "map: a value has 16 bytes, 16 less than are read")]:
        obj = bpf("ways.o", text + MAP % kind)
        r = check(obj, reader)
        expect(
            r.status == 1 and f"    {line}\n" in r.out
            and r.out.count("    map:") == (word == "map"), r)
        o = check(obj, reader, "--json").objects()[0]["record"]
        expect(o == {"bytes": 16, "read": 32, "exact": True, "perf_bytes": 20, "ways": [word]}, o)
    obj = bpf("flexible.o",
              "struct r { unsigned long long a; int b; char c[]; }; struct r *r;\n" + MAP % 27)
    r = check(obj, write("exact.go", "package p\ntype R struct {\n\tA uint64\n\tB int32\n}\n"),
              "--json")
    expect(r.status == 0 and r.objects()[0]["record"]["exact"] is False, r)


# ---- the seed's structs and hello-ebpf's defects: C's answer is a compiler's, of this moment

def of_compiler(text, expressions, compiler="gcc", flags=()):
    need(compiler)
    program = os.path.join(folder(), "truth")
    lines = "".join(f'printf("%zu\\n", (size_t)({e}));' for e in expressions)
    run(
        compiler, *flags, "-w", "-o", program,
        write(
            "truth.c", "#include <stdio.h>\n#include <stddef.h>\n" + text + "int main(void) {"
            + lines + "}\n"), check=True)
    return [int(line) for line in run(program, check=True).lines()]


@claim_each_of_many("gcc", "clang")
def the_article_s_structs_are_as_compiled(compiler):
    text = example("event.h")
    asked = [
        "offsetof(struct event, e_pid)", "offsetof(struct event, e_filename)",
        "offsetof(struct event, e_comm)", "sizeof(struct event)", "sizeof(struct padded_event)"
    ]
    expect(of_compiler(text, asked, compiler) == [0, 4, 260, 276, 32], compiler)
    objects = {
        o["name"]: o
        for o in cairn("layout", event_object(), "--json", check=True).objects()
    }
    event, padded = objects["event"], objects["padded_event"]
    expect([m["offset"] for m in event["members"]] == [0, 4, 260] and event["size"] == 276, event)
    expect((padded["size"], padded["holes"], padded["sum_holes"]) == (32, 2, 11), padded)
    better = "struct padded_event { char c; int i; long l; void *x; };\n"
    expect(of_compiler(better, ["sizeof(struct padded_event)"], compiler) == [24], compiler)
    r = cairn("layout", os.path.join(EXAMPLES, "event.h"), "padded_event", "--packable", check=True)
    expect(r.out == "padded_event\t32\t24\t8\n", r)


class Case:
    def __init__(self, c, java, asked, truth, first, *words, target="bpf", maps=1):
        self.c, self.java, self.asked, self.truth, self.first = c, java, asked, truth, first
        self.words, self.target, self.maps = words, target, maps


CASES = {
    "D1 no padding at the end":
    Case(
        "struct t { unsigned char a; unsigned long long b; int c; unsigned long long d; _Bool e; };",
        "@Type record T(@Unsigned byte a, @Unsigned long b, int c, @Unsigned long d, boolean e) {}",
        ["sizeof(struct t)"], [40], (None, "tail", [0, 0], [40, 33])),
    "D2 nested struct advances by its unpadded size":
    Case(
        "struct inner { unsigned a; unsigned char b; }; struct t { struct inner i; unsigned char c; };",
        "@Type record Inner(@Unsigned int a, @Unsigned byte b) {} @Type record T(Inner i, @Unsigned byte c) {}",
        ["offsetof(struct t, c)", "sizeof(struct t)"], [8, 12], ("i", "tail", [0, 0], [8, 5]),
        "c                        8 1 byte             5 1 byte             moved"),
    "D3 a map's value is longer than what Java allocates":
    Case("struct t { unsigned long long a; unsigned char b; };",
         "@Type record T(@Unsigned long a, @Unsigned byte b) {}", ["sizeof(struct t)"], [16],
         (None, "tail", [0, 0], [16, 9]),
         "map: the kernel copies 16 bytes into a value of 9, 7 after it"),
    "D4 what follows @Offset overlaps":
    Case("struct t { char __padding0[4]; int a; int b; };",
         "@Type record T(@Offset(4) int a, int b) {}", ["offsetof(struct t, b)"], [8],
         ("b", "moved", [64, 32], [4, 4])), "D5 TypedEnum of Short has 2 bytes":
    Case(
        "enum e { A, B }; struct t { enum e kind; };",
        "@Type(name = \"e\") enum E implements TypedEnum<E, Short> { A, B } @Type record T(E kind) {}",
        ["sizeof(struct t)"], [4],
        ("kind", "resized", [0, 0], [4, 2])), "D6 unions without padding at the end":
    Case("struct t { union { int a; long long b; }; union { int c; }; };",
         "@Type record T(@InlineUnion(1) int a, @InlineUnion(1) long b, @InlineUnion(2) int c) {}",
         ["sizeof(struct t)"], [16],
         (None, "tail", [0, 0], [16, 12])), "D7 Int128 swaps its halves":
    Case("struct t { char a; __int128 b; };", "@Type record T(byte a, Int128 b) {}",
         ["offsetof(struct t, b)", "sizeof(struct t)"], [16, 32],
         ("b", "type", [128, 128], [16, 16])), "D8 a record that is shorter is read all the same":
    Case("struct t { int a; };", "@Type record T(int a, int b) {}", ["sizeof(struct t)"], [4],
         ("b", "added-at-end", [None, 32], [None, 4]),
         "ring buffer: a record has 4 bytes, 4 less than are read",
         maps=27), "D9 bit-fields are whole members":
    Case("struct t { unsigned char a : 4, b : 4; unsigned char c; };",
         "@Type record T(@Unsigned byte a, @Unsigned byte b, @Unsigned byte c) {}",
         ["offsetof(struct t, c)", "sizeof(struct t)"], [1, 2],
         ("a", "bits", [0, 0], [1, 1])), "D10 values are of this machine's byte order":
    Case("struct t { int a; char b; };", "@Type record T(int a, byte b, @Size(3) byte[] pad) {}",
         ["sizeof(struct t)"], [8], ("a", "byte-order", [0, 0], [4, 4]), target="bpfeb"),
}


@claim_each(*CASES)
def a_defect_of_hello_ebpf_is_found_in_java_s_source(name):
    case = CASES[name]
    for compiler in ("gcc", "clang"):
        expect(of_compiler(case.c, case.asked, compiler) == case.truth, compiler, case.truth)
    obj = bpf("case.o", case.c + " struct t t;\n" + MAP % case.maps, case.target)
    java = write("T.java", "class P {\n    " + case.java + "\n}\n")
    r = check(obj, java, "t", "--json")
    expect(r.status == 1 and changes(r), r)
    expect(changes(r)[0][1:] == case.first, changes(r), r)
    sizes = [int(m) for m in case.truth if case.asked[case.truth.index(m)] == "sizeof(struct t)"]
    expect(not sizes or r.objects()[0]["size"][0] == sizes[0], r)
    r = check(obj, java, "t")
    for words in case.words:
        expect(words in r.out, r)


# ---- diff

OLD = """enum kind { A, B, C };
struct inner { int x, y; };
struct r { int a; enum kind kind; struct inner in; char name[16]; unsigned flags : 3, more : 5; char pad0; short s; };
struct gone { int x; };
"""
NEW = """enum kind { A, B = 5, D };
struct inner { int x, z; };
struct r { int a; enum kind kind; struct inner in; char name[24]; unsigned flags : 4, more : 4; unsigned short s; long end; };
struct fresh { int x; };
"""


@claim
def diff_tells_what_a_reader_of_the_old_would_get_wrong():
    r = cairn("layout", "--diff", write("old.h", OLD), write("new.h", NEW), "--json")
    expect(r.status == 1, r)
    of_r = {c[1]: c[2] for c in changes(r) if c[0] == "r"}
    expect(
        of_r == {
            "kind.B": "enumerator", "kind.C": "removed", "kind.D": "added", "in.y": "renamed",
            "name": "length", "flags": "moved", "more": "moved", "pad0": "removed", "s": "moved",
            "end": "added-at-end"
        }, of_r)
    objects = {o["name"]: o for o in r.objects()}
    expect(objects["gone"]["size"] == [4, None] and objects["fresh"]["size"] == [None, 4], r)
    r = cairn("layout", "--diff", write("old.h", OLD), write("new.h", NEW), "struct r")
    expect(
        "struct r: 36 bytes in" in r.out and "array length changed: char [16], char [24]" in r.out,
        r)
    r = cairn("layout", "--diff", write("old.h", OLD), write("old2.h", OLD))
    expect(r.status == 0 and not r.out, r)


# What is done to a struct of three, and what it is called.
EVOLUTIONS = [
    ("int a; char b; int c;", [("b", "b2", "renamed", [32, 32])], "int a; char b2; int c;"),
    ("int a; char b; int c;", [("d", "d", "added-in-padding", [None, 40])],
     "int a; char b; char d; int c;"),
    ("int a; char b; int c;", [("d", "d", "added-at-end", [None,
                                                           96])], "int a; char b; int c; int d;"),
    ("int a; char b; int c;", [("c", "c", "removed", [64, None])], "int a; char b;"),
    ("int a; char b; int c;", [("c", "c", "sign", [64, 64])], "int a; char b; unsigned c;"),
    ("int a; char b; int c;", [("c", "c", "type", [64, 64])], "int a; char b; float c;"),
    ("int a; int b;", [("b", "b", "moved", [32, 64]), (None, None, None, None)], "int a; long b;"),
    ("long a; char b;", [(None, None, "tail", [0, 0])],
     "long a; char b; } __attribute__((packed)); struct x { int y;"),
    ("struct { int p; } i; int j;", [("i.q", "q", "added-at-end", [None, 32]),
                                     ("j", "j", "moved", [32,
                                                          64])], "struct { int p, q; } i; int j;"),
    ("struct { short p; char q; } i[2];", [("i[].q", "q", "moved", [16, 32])],
     "struct { int p; char q; } i[2];"),
]


@claim_each(*(str(i) for i in range(len(EVOLUTIONS))))
def each_change_has_its_name(number):
    old, wanted, new = EVOLUTIONS[int(number)]
    r = cairn("layout", "--diff", write("a.h", f"struct s {{ {old} }};\n"),
              write("b.h", f"struct s {{ {new} }};\n"), "struct s", "--json")
    expect(r.status == 1, r)
    found = {c["name"]: (c["change"], c["bit_offset"]) for c in r.objects()[0]["differing"]}
    for path, name, change, offsets in wanted:
        if change:
            key = path if name != "b2" else "b"
            expect(found.get(key) == (change, offsets), found, r)


@claim_each_of_many("gcc", "clang")
def any_two_sources_are_compared(compiler):
    need(compiler)
    program = os.path.join(folder(), "prog-" + compiler)
    header = write("same.h", OLD)
    run(
        compiler, "-g", "-o", program,
        write("prog.c",
              '#include "same.h"\nstruct r r; struct gone g;\nint main(void) { return 0; }\n'),
        check=True)
    r = cairn("layout", "--diff", header, program, "r", "gone", "inner")
    expect(r.status == 0, r)
    r = cairn("layout", "--diff", bpf("same.o", OLD + "struct r r; struct gone g;\n"), program, "r",
              "gone", "inner")
    expect(r.status == 0, r)
    r = cairn("layout", "--diff", program, write("other.h", NEW), "r")
    expect(r.status == 1 and "enumerator has another value" in r.out, r)


# ---- lock

@claim
def a_lock_file_is_written_holds_and_tells_what_drifted():
    lock, header = os.path.join(folder(), "layout.lock"), write("locked.h", OLD)
    r = cairn("layout", header, "r", "--lock", lock)
    expect(r.status == 2 and "--update writes it" in r.err, r)
    cairn("layout", header, "r", "--lock", lock, "--update", check=True)
    with open(lock, encoding="utf-8") as file:
        text = file.read()
    expect(text.startswith("# cairn layout lock 1\nabi x86-64\n"), text)
    for line in ("inner enum kind u32", "\tB 1", "struct r 36", "\t0 a s32", "\t4 kind enum kind",
                 "\t8 in struct inner", "\t16 name s8[16]", "\t32:0+3 flags u32"):
        expect(line + "\n" in text, line, text)
    r = cairn("layout", header, "--lock", lock)
    expect(r.status == 0 and not r.out and not r.err, r)
    write("locked.h", NEW)
    r = cairn("layout", header, "--lock", lock)
    expect(r.status == 1 and "array length changed" in r.out and "layouts have drifted" in r.err, r)
    r = cairn("layout", header, "--lock", lock, "--json")
    expect(("r", "s", "moved") in [c[:3] for c in changes(r)], r)
    cairn("layout", header, "--lock", lock, "--update", check=True)
    cairn("layout", header, "--lock", lock, check=True)
    write("locked.h", NEW.replace("struct r ", "struct q "))
    r = cairn("layout", header, "--lock", lock)
    expect(r.status == 1 and "struct r: only in" in r.out, r)


@claim
def a_lock_file_is_the_same_from_declarations_and_debug_information():
    need("gcc")
    locks = [os.path.join(folder(), name) for name in ("h.lock", "dwarf.lock")]
    header = write("lock2.h", OLD)
    program = os.path.join(folder(), "lock2")
    run("gcc", "-g", "-o", program,
        write("lock2.c", '#include "lock2.h"\nstruct r r;\nint main(void) { return 0; }\n'),
        check=True)
    for source, lock in zip((header, program), locks):
        cairn("layout", source, "r", "--lock", lock, "--update", check=True)
    texts = [open(lock, encoding="utf-8").read() for lock in locks]
    expect(texts[0] == texts[1], *texts)


@claim
def a_damaged_lock_file_is_told_with_its_line():
    header = write("lock3.h", "struct r { int a; };\n")
    for text, status, said in [
        ("struct r 4\n", 4, ":1: expected"), ("# cairn layout lock 9\n", 3, "later version"),
        ("# cairn layout lock 1\n\nstruct r 4\n\t0 a what\n", 4, ":4: expected a type"),
        ("# cairn layout lock 1\n\nstruct r 4\n\tx a u32\n", 4, ":4: expected an offset"),
        ("# cairn layout lock 1\n\t0 a u32\n", 4, ":2: a member of nothing")
    ]:
        r = cairn("layout", header, "--lock", write("bad.lock", text))
        expect(r.status == status and said in r.err, r)


# ---- other ABIs

ATTRIBUTES = """
typedef long long low __attribute__((aligned(4)));
struct plain { char c; long l; int i; void *x; long double d; };
struct packed { char c; long l; struct plain p; } __attribute__((packed));
struct aligned { char c; int i __attribute__((aligned(16))); char d; } __attribute__((aligned(64)));
struct bits { char a; int b : 20; int : 0; int c : 10; long long d : 40; unsigned char e : 3; };
union u { long l; char c[12]; struct packed p; };
#pragma pack(push, 2)
struct two { char c; long long l; short s; int b : 3, d : 30; };
#pragma pack(pop)
struct holds { struct packed p; struct aligned a; struct bits b[3]; union u u; struct two t; enum { X = 1 } e; _Bool f; size_t n; };
struct flexible { int n; short s; char data[]; };
struct mixed { char a; int b __attribute__((packed)); long c; double f; float g; unsigned long long h; };
"""
NAMES = ["plain", "packed", "aligned", "bits", "u", "two", "holds", "flexible", "mixed"]


def layouts(result):
    return {
        o["name"]: (o["size"], [(m["name"], m.get("bit_offset", 8 * m["offset"]), m["size"])
                                for m in o["members"]])
        for o in result.objects()
    }


@claim_each_of_many("gcc", "clang", "bpf")
def compiled_structs_are_laid_out_for_another_abi_as_their_declarations_are(compiler):
    # BPF's long double is 8 bytes there and named like the others'.
    text = "typedef unsigned long size_t;\n" + ATTRIBUTES
    uses = "".join(f"{'union' if n == 'u' else 'struct'} {n} v_{n};\n" for n in NAMES
                   if n != "flexible") + "struct flexible *v_f;\n"
    if compiler == "bpf":
        obj = bpf("abis.o", text + uses)
    else:
        need(compiler)
        obj = os.path.join(folder(), "abis-" + compiler)
        run(compiler, "-g", "-o", obj,
            write("abis.c", text + uses + "int main(void) { return 0; }\n"), check=True)
    header = write("abis.h", text)
    for abi in ("i386", "arm", "aarch64", "x86-64", "riscv32", "s390x", "bpf"):
        theirs = layouts(cairn("layout", header, *NAMES, "--abi", abi, "--json", check=True))
        ours = layouts(cairn("layout", obj, *NAMES, "--abi", abi, "--json", check=True))
        for name in NAMES:
            expect(ours[name] == theirs[name], abi, name, ours[name], theirs[name])


@claim
def what_was_deduced_is_said():
    need("gcc")
    obj = os.path.join(folder(), "deduced")
    run(
        "gcc", "-g", "-o", obj,
        write(
            "deduced.c", "struct packed { char c; long l; } __attribute__((packed)) p;\n"
            "int main(void) { return 0; }\n"), check=True)
    r = cairn("layout", obj, "packed", "--abi", "i386", check=True)
    expect(
        "/* size: 5, cachelines: 1" in r.out
        and "/* deduced from the offsets: packed */\n" in r.out, r)
    o = cairn("layout", obj, "packed", "--abi", "i386", "--json", check=True).objects()[0]
    expect(o["abi"] == "i386" and o["deduced"] == ["packed"] and o["guess"] is False, o)


@claim
def a_deduced_member_and_a_guess_inside_are_said():
    need("gcc")
    obj = os.path.join(folder(), "deduced-inside")
    run(
        "gcc", "-g", "-o", obj,
        write(
            "inside.c",
            "struct o { char c; struct { char d; long l; } __attribute__((packed)) in; } o;\n"
            "struct g { struct { char d; __int128 i; } in; } g;\nint main(void) { return 0; }\n"),
        check=True)
    r = cairn("layout", obj, "o", "g", "--abi", "i386", check=True)
    expect("/* deduced from the offsets: 1 member of a deduced layout */\n" in r.out, r)
    expect("/* a guess: so is the layout of a member */\n" in r.out, r)
    of = {
        o["name"]: o
        for o in cairn("layout", obj, "o", "g", "--abi", "i386", "--json", check=True).objects()
    }
    expect(of["o"]["deduced"] == ["1 member of a deduced layout"] and of["o"]["guess"] is False, of)
    expect(of["g"]["guess"] is True, of)


def raw_btf(name, types):
    """A blob of 32-bit words; types are lists of words whose first is a name."""
    strings, words = b"\0", []
    for type_name, *rest in types:
        words.append(len(strings) if type_name else 0)
        strings += type_name.encode() + b"\0" if type_name else b""
        for word in rest:
            if isinstance(word, str):
                words.append(len(strings))
                strings += word.encode() + b"\0"
            else:
                words.append(word)
    body = struct.pack(f"<{len(words)}I", *words)
    header = struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(body), len(body), len(strings))
    path = os.path.join(folder(), name)
    with open(path, "wb") as file:
        file.write(header + body + strings)
    return path


@claim
def width_of_pointers_in_raw_btf_is_deduced():
    pointer = ["", 2 << 24, 0]
    for how, types, size, members in [
            ("long", [["long unsigned int", 1 << 24, 4, 32], pointer], 8, (0, 32)),
            ("long", [["long unsigned int", 1 << 24, 8, 64], pointer], 16, (0, 64)),
            ("spacing", [["int", 1 << 24, 4, 1 << 24 | 32], pointer], 8, (0, 32)),
            ("end", [["int", 1 << 24, 4, 1 << 24 | 32], pointer], 16, (0, 64))]:
        record = ["s", 4 << 24 | 2, size, "a", 2, members[0], "b", 2, members[1]]
        o = cairn("layout", raw_btf("raw.btf", types + [record]), "s", "--json",
                  check=True).objects()[0]
        expect([m["size"] for m in o["members"]] == [size // 2] * 2, how, o)


@claim
def two_abis_of_a_compiled_file_differ_with_exit_status_1():
    r = cairn("layout", event_object(), "padded_event", "--abi", "x86-64,i386")
    expect(r.status == 1 and "struct padded_event: 32 bytes on x86-64, 16 on i386" in r.out, r)
    r = cairn("layout", event_object(), "event", "--abi", "x86-64,i386")
    expect(r.status == 0 and not r.out, r)
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("this kernel has no BTF")
    r = cairn("layout", "--running", "list_head", "--abi", "x86-64,i386")
    expect(r.status == 1 and re.search(r"struct list_head: 16 bytes on x86-64, 8 on i386", r.out),
           r)


@claim
def random_structs_of_other_languages_are_as_their_compilers_have_them():
    r = run(sys.executable, os.path.join(SOURCE, "tests", "truth", "layout_languages.py"),
            "--count", "250", seconds=300)
    for line in r.lines():
        if line.startswith("skip"):
            print(line)
    expect(r.status == 0, r)


main()
