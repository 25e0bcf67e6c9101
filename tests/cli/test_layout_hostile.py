#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout, decode and bind on what nobody should have written: errors that say where, exit
codes, an end, no crash."""

import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from claims import (cairn, claim, claim_each, claim_each_of_many, compile_c, expect,  # noqa: E402
                    folder, main)

# C that compilers refuse: the column of the fault, and the reason.
REFUSED = {
    "struct a { int x; struct a self; };": (28, "struct a is not complete here"),
    "struct a { struct b { struct a in; } b; };": (32, "struct a is not complete here"),
    "union u { int x; union u v[2]; };": (27, "elements whose size is not known"),
    "struct s { char a[1ul << 60]; };": (18, "more than 2^40 bytes"),
    "struct s { int a : 33; };": (16, "a bit-field of 33 bits in a type of 32"),
    "struct s { int a : 0; };": (16, "cannot have a name"),
    "struct s { int x; } __attribute__((aligned(3)));": (45, "a power of 2"),
    "struct s { int x; } __attribute__((aligned(1ul << 40)));": (53, "a power of 2"),
    "typedef int v __attribute__((vector_size(7)));": (46, "does not hold whole elements"),
    "struct s { short double x; };": (12, "these words make no type"),
    "struct s { signed unsigned x; };": (12, "these words make no type"),
    "struct s { int x; int x; };": (23, "a second member of this name"),
    "struct s { int a[]; int b; };": (16, "a flexible array that is not the last member"),
    "struct s { int x; }; struct s { long y; };": (29, "defined a second time"),
    "struct s { int a[-1]; };": (18, "cannot have -1 elements"),
    "struct s { int x int y; };": (18, "expected ';'"),
    "struct s { int f(void); };": (16, "cannot be a function"),
}


def header(text, name="hostile.h"):
    path = os.path.join(folder(), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


@claim_each(*(str(i) for i in range(len(REFUSED))))
def c_that_no_compiler_takes_is_refused_with_line_column_and_caret(number):
    text, (column, why) = list(REFUSED.items())[int(number)]
    r = cairn("layout", header("\n" + text + "\n"))
    expect(r.status == 4 and not r.out, r)
    first, line, caret, way = r.err.splitlines()
    expect("--via-compiler" in way, r)
    expect(f"hostile.h:2:{column}: " in first and why in first, r)
    expect(line == "    " + text and caret == " " * (column + 3) + "^", r)


@claim
def sizes_beyond_2_31_bits_are_right_or_refused():
    r = cairn("layout", header("struct s { int a[1u << 28]; char c; long b; };"), "--json",
              check=True)
    o = r.objects()[0]
    expect(o["size"] == (1 << 30) + 16 and o["members"][2]["offset"] == (1 << 30) + 8, o)
    program = compile_c(
        "large",
        "struct s { char a[3ul << 30]; int b; char c[3ul << 30]; int d; } *p;\nint main(void) { return p != 0; }\n"
    )
    o = cairn("layout", program, "s", "--json", check=True).objects()[0]
    expect(
        o["size"] == (6 << 30) + 8
        and [m["offset"] for m in o["members"]] == [0, 3 << 30, (3 << 30) + 4, (6 << 30) + 4], o)
    # BTF has 32 bits for a size and for an offset in bits.
    r = cairn("btf", "encode", program, "-o", os.path.join(folder(), "large.btf"))
    expect(r.status == 0 and "of more bytes or elements than BTF can count" in r.out + r.err, r)
    r = cairn("bind", "--lang", "c", program, "s")
    expect(r.status == 4 and "beyond 4 GiB" in r.err, r.status, r.err)
    r = cairn("decode", program, "s", os.devnull)
    expect(r.status == 2 and "no record has" in r.err, r)


# ---- BTF, by hand ----

class Btf:
    def __init__(self):
        self.types, self.strings, self.n = bytearray(), bytearray(b"\0"), 0

    def name(self, text):
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1 if text else 0

    def add(self, kind, name, size, words=(), vlen=0):
        self.types += struct.pack("<III", self.name(name), kind << 24 | vlen, size) + struct.pack(
            f"<{len(words)}I", *words)
        self.n += 1
        return self.n

    def write(self, name):
        path = os.path.join(folder(), name)
        head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(self.types), len(self.types),
                           len(self.strings))
        with open(path, "wb") as file:
            file.write(head + self.types + self.strings)
        return path


# Far more than any of them takes.
SECONDS = 20

INT, ARRAY, STRUCT, UNION, TYPEDEF = 1, 3, 4, 5, 8


def number(btf):
    return btf.add(INT, "int", 4, [1 << 24 | 32])


def struct_in_itself():
    btf = Btf()
    i = number(btf)
    btf.add(STRUCT, "s", 8, [btf.name("x"), i, 0, btf.name("self"), 2, 32], 2)
    return btf.write("self.btf")


def structs_in_a_ring():
    btf = Btf()
    i = number(btf)
    array = btf.add(ARRAY, "", 0, [3, i, 4])
    btf.add(STRUCT, "s", 64, [btf.name("x"), i, 0, btf.name("next"), 4, 32], 2)
    btf.add(STRUCT, "t", 60, [btf.name("y"), i, 0, btf.name("back"), array, 32], 2)
    return btf.write("ring.btf")


def unions_that_repeat(name):
    """Twelve of each in each other: a million million members in the same four bytes."""
    btf = Btf()
    inner = number(btf)
    for _ in range(12):
        words = []
        for _ in range(12):
            words += [0, inner, 0]
        inner = btf.add(UNION, name, 4, words, 12)
    btf.add(STRUCT, "s", 4, [btf.name("u"), inner, 0], 1)
    return btf.write("unions.btf")


def typedefs_without_end():
    btf = Btf()
    last = number(btf)
    for i in range(100_000):
        last = btf.add(TYPEDEF, f"t{i}", last)
    btf.add(STRUCT, "s", 4, [btf.name("x"), last, 0], 1)
    return btf.write("chain.btf")


def members_beyond_the_end():
    btf = Btf()
    i = number(btf)
    far = btf.add(ARRAY, "", 0, [i, i, 0xFFFFFFFF])
    btf.add(STRUCT, "s", 8,
            [btf.name("x"), i, 0xFFFFFFF8,
             btf.name("far"), far, 0,
             btf.name("x"), i, 0], 3)
    return btf.write("far.btf")


HOSTILE = {
    "a struct in itself": struct_in_itself,
    "structs in a ring": structs_in_a_ring,
    "unions that repeat": lambda: unions_that_repeat("u"),
    "unions without a name that repeat": lambda: unions_that_repeat(""),
    "100,000 typedefs": typedefs_without_end,
    "members beyond the end": members_beyond_the_end,
}
COMMANDS = {
    "layout": ["layout", "FILE", "s"], "expand": ["layout", "FILE", "s", "--expand"], "json":
    ["layout", "FILE", "s", "--expand",
     "--json"], "html": ["layout", "FILE", "s", "--expand",
                         "--html"], "lint": ["layout", "--lint", "FILE", "s"], "reorganize":
    ["layout", "FILE", "s", "--reorganize"], "abi": ["layout", "FILE", "s", "--abi", "bpf,i386"],
    "diff": ["layout", "--diff", "FILE", "FILE"], "decode": ["decode", "FILE", "s", "RECORD"],
    "bind": ["bind", "--lang", "java", "FILE",
             "s"], "check": ["btf", "check", "FILE"], "c": ["btf", "dump", "FILE", "--format", "c"],
}


_made = {}


@claim_each_of_many(*(f"{what}: {command}" for what in HOSTILE for command in COMMANDS))
def hostile_btf_ends_in_an_answer_or_an_error(case):
    what, command = case.split(": ")
    record = os.path.join(folder(), "record")
    with open(record, "wb") as file:
        file.write(bytes(64))
    if what not in _made:
        _made[what] = HOSTILE[what]()
    path = _made[what]
    words = [path if w == "FILE" else record if w == "RECORD" else w for w in COMMANDS[command]]
    r = cairn(*words, seconds=SECONDS)
    # 3 would be "no memory".
    expect(r.status in (0, 1, 2, 4), r.status, r.err[-500:])
    expect(r.status in (0, 1) or r.err, "an error without a word")
    expect(len(r.out) < 200 << 20, len(r.out))


main()
