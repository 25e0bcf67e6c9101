#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiled structs laid out for another ABI, compared with their declarations laid out for it.

    layout_retarget.py [--count N] [--seed N]

Random declarations are compiled with debug information (DWARF of gcc, of clang and of clang -target
bpf, BTF of the last without its DWARF); what `cairn layout OBJECT --abi B` says is compared with
`cairn layout HEADER --abi B`, which layout_against_clang.py holds against the compilers. Plain
declarations must be equal, all of them. With attributes and bit-fields without names, of which
offsets prove only that there was something, the share that is equal is counted, and has not to
fall. Each of the others has to say that it was deduced, or that it is a guess; or the attributes
that make the difference changed nothing on the ABI that compiled them: it is then what the
declaration without these gives.
"""
import argparse
import json
import os
import random
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from common import CAIRN, claim, finish, have, run, skip  # noqa: E402
from layout_against_clang import Maker, ask_cairn  # noqa: E402

PER_FILE = 200
TARGETS = ["i386", "arm", "s390x", "riscv32", "aarch64", "x86-64", "bpf"]
# What was equal when this was written, less one hundredth.
WITH_ATTRIBUTES = {"gcc": 0.91, "clang": 0.90, "bpf": 0.85, "btf": 0.85}
CLANG_BPF = ("bpf", "btf")
WIDTHS = {
    "char": 8, "signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32,
    "unsigned": 32, "long long": 64, "unsigned long long": 64, "enum e": 32, "enum small": 8
}


class Plain(Maker):
    """No attributes, and nothing that debug information does not have a member for."""

    def attributes(self, member):
        return ""

    def bit_field(self):
        while True:
            text = super().bit_field()
            if re.search(r"\bm\d+ :", text):
                return text

    def record(self, i):
        text = super().record(i)
        return re.sub(r"#pragma[^\n]*\n", "", text)


def compile_records(folder, text, how):
    """The object; records are used by pointers, so that the compiler keeps them."""
    names = re.findall(r"^((?:struct|union) S\d+) {", text, re.M)
    uses = "".join(f"{name} *used{i};\n" for i, name in enumerate(names))
    source, out = os.path.join(folder, f"{how}.c"), os.path.join(folder, f"{how}.o")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text + uses)
    command = ["clang", "-target", "bpf"] if how in CLANG_BPF else [how]
    code, _, err = run(
        command + ["-g", "-w", "-fno-eliminate-unused-debug-types", "-c", "-o", out, source],
        timeout=300)
    if code != 0:
        raise RuntimeError(err[:2000])
    if how == "btf":
        code, _, err = run(["llvm-strip", "--strip-debug", out])
        if code != 0:
            raise RuntimeError(err[:2000])
    return out


REMOVABLE = re.compile(
    r"\b(?:packed|aligned\(\d+\))|(?<=[;{] )(?:(?!\bm\d)[\w ])+ : \d+;|^#pragma pack\(push.*\n|^#pragma pack\(pop\)\n",
    re.M)


def without(text, match):
    """The text without an attribute, or a bit-field without a name, or a pragma and its end."""
    if not match.group(0).startswith("#pragma"):
        # An attribute's comma may stay: the list is empty there.
        return text[:match.start()] + text[match.end():]
    end = text.index("#pragma pack(pop)\n", match.end())
    return text[:match.start()] + text[match.end():end] + text[end:].replace(
        "#pragma pack(pop)\n", "", 1)


def told(folder, text, abi):
    path = os.path.join(folder, "told.i")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return {name: (size, members) for name, (size, _, members) in ask_cairn(path, abi).items()}


def made_of(text):
    """What stands before the records, and the declaration of each."""
    head = text[:re.search(r"^(?:#pragma|struct S|union S)", text, re.M).start()]
    found = re.finditer(
        r"^(?:#pragma pack\(push.*\n)?((?:struct|union) S\d+) \{.*\n(?:#pragma pack\(pop\)\n)?",
        text, re.M)
    return head, {m.group(1): m.group(0) for m in found}


def with_parts(text, name):
    """The declarations that one needs: itself, and those of what it contains."""
    (head, declared), needed = made_of(text), [name]
    for part in needed:
        needed += [
            p for p in re.findall(r"(?:struct|union) S\d+", declared[part]) if p not in needed
        ]
    return head + "".join(words for part, words in declared.items() if part in needed)


def is_written(text, match):
    """An alignment, which debug information has, but of bit-fields."""
    return match.group(0).startswith("aligned") and not re.search(r" : \d+[^;]*$",
                                                                  text[:match.start()])


def without_idle(folder, text, how, name, with_align):
    """ A declaration without each attribute, bit-field without a name and pragma that changes
    nothing where it is compiled, but with @with_align for alignments, which debug information may
    have.
    """
    abi = "bpf" if how in CLANG_BPF else "x86-64"
    text = with_parts(text, name)
    start = len(made_of(text)[0])
    wanted, at, before = told(folder, text, abi), start, None
    while True:
        match = REMOVABLE.search(text, at)
        if not match:
            if text == before:
                return text
            at, before = start, text
            continue
        at = match.end()
        if match.group(0).startswith("#pragma pack(pop)") or (with_align
                                                              and is_written(text, match)):
            continue
        less = without(text, match)
        try:
            if told(folder, less, abi) == wanted:
                text, at = less, match.start()
        except RuntimeError:  # nothing but a bit-field without a name is no struct
            pass


class Idle:
    """Declarations of one file without what changes nothing, made when they are asked for."""

    def __init__(self, folder, text, how):
        self.folder, self.text, self.how, self.made = folder, text, how, {}

    def gives(self, name, abi, layout):
        """Debug information may have the alignment, or not."""
        for with_align in (False, True):
            if (name, with_align) not in self.made:
                self.made[name, with_align] = without_idle(self.folder, self.text, self.how, name,
                                                           with_align)
            if told(self.folder, self.made[name, with_align], abi)[name] == layout:
                return True
        return False


def marked(obj, abi):
    """Names of layouts that say of themselves that they were deduced, or are a guess."""
    code, out, err = run([CAIRN, "layout", "--json", "--abi", abi, obj])
    if code != 0:
        raise RuntimeError(err[:2000])
    rows = [json.loads(line) for line in out.splitlines()]
    return {f"{o['kind']} {o['name']}" for o in rows if o.get("deduced") or o.get("guess")}


class Result:
    def __init__(self):
        self.equal = self.total = self.marked = self.idle = 0
        self.open = []


def compare(folder, text, how, ret, is_plain):
    header = os.path.join(folder, "decl.i")
    with open(header, "w", encoding="utf-8") as file:
        file.write(text)
    obj = compile_records(folder, text, how)
    idle = Idle(folder, text, how)
    for abi in TARGETS:
        theirs, ours = ask_cairn(header, abi), ask_cairn(obj, abi)
        says = set() if is_plain else marked(obj, abi)
        for name, (size, _, members) in theirs.items():
            ret.total += 1
            mine = ours.get(name, (None, None, None))[::2]
            if mine == (size, members):
                ret.equal += 1
            elif name in says:
                ret.marked += 1
            elif not is_plain and idle.gives(name, abi, mine):
                ret.idle += 1
            else:
                body = re.search(rf"(#pragma pack[^\n]*\n)?{name} {{.*", text)
                ret.open.append(
                    f"# {how} to {abi}: {body.group(0)}\n#   {mine}\n#   {(size, members)}")


def narrowed(match):
    """A bit-field that has not all bits of its type."""
    base, name, width = match.groups()
    return f"{base}{name or ''} : {min(int(width), WIDTHS.get(base, 2) - 1)}"


def attempt(maker, how, args, says):
    rng, done, ret = random.Random(f"{args.seed} {how} {maker.__name__}"), 0, Result()
    is_bpf = how in CLANG_BPF
    with tempfile.TemporaryDirectory(prefix="cairn-retarget-") as folder:
        while done < args.count:
            n = min(PER_FILE, args.count - done)
            made = maker(rng, "bpf" if is_bpf else "x86-64", "gcc" if how == "gcc" else "clang")
            # BTF has no kind for these, and one unit of each for __int128's bit-fields.
            if is_bpf:
                made.scalars = [
                    s for s in made.scalars if "_Complex" not in s and "_Atomic" not in s
                ]
            # A typedef's own alignment is another attribute; those of members and structs are
            # measured.
            made.scalars = [s for s in made.scalars if s not in ("low", "low2", "high")]
            # BTF has arrays for vectors, and an alignment of nothing.
            if how == "btf":
                made.scalars = [s for s in made.scalars if s not in ("v8", "v16", "v32", "v256")]
            # i386 and arm have no 128-bit integers; their long is not wide enough for some
            # bit-fields.
            made.scalars = [s for s in made.scalars if "__int128" not in s]
            # Nor has arm the floats that x86 has: 80 bits, decimal.
            made.scalars = [
                s for s in made.scalars
                if not re.search("_Decimal|_Float64x|_Float128|__float128|_BitInt", s)
            ]
            # And bpf has no _BitInt.
            made.bit_types = [b for b in made.bit_types if "_BitInt" not in b[0]]
            # Neither DWARF nor BTF says of a struct that it is laid out as Microsoft's compiler
            # does.
            text = re.sub(r" ?__attribute__\(\(ms_struct\)\)", "", made.text(n))
            # Without a number it is another one on each ABI; the debug information has the number.
            text = re.sub(r"\baligned\b(?!\()", "aligned(16)", text)
            # Clang 14 leaves it out of its DWARF: docs/findings/clang-full-width-bit-field.md
            if how in ("clang", "bpf"):
                text = re.sub(r"(?<=[;{] )([\w ]+?)( m\d+)? : (\d+)", narrowed, text)
            compare(folder, text, how, ret, maker is Plain)
            done += n
    share = ret.equal / ret.total if ret.total else 0
    claim(f"{how}, {says}: {ret.equal} of {ret.total} layouts equal ({100 * share:.1f} %)",
          ret.equal == ret.total if maker is Plain else share >= WITH_ATTRIBUTES[how])
    for text in ret.open[:5]:
        print(text)
    if maker is Maker:
        claim(
            f"{how}, {says}: {ret.marked} others say that they were deduced or guessed, {ret.idle} are those without what "
            f"changed nothing when compiled, {len(ret.open)} are neither", not ret.open)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for how in ("gcc", "clang", "bpf", "btf"):
        tools = have(how) if how in ("gcc", "clang") else have("clang", "llvm-strip")
        if tools:
            skip(f"compiled structs of {how} on other ABIs", f"{tools[0]} is not installed")
            continue
        attempt(Plain, how, args, "plain")
        attempt(Maker, how, args, "with attributes")
    finish()


if __name__ == "__main__":
    main()
