#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiled structs laid out for another ABI, compared with their declarations laid out for it.

    layout_retarget.py [--count N] [--seed N]

Random declarations are compiled with debug information (DWARF of gcc and clang, BTF of clang -target bpf); what
`cairn layout OBJECT --abi B` says is compared with `cairn layout HEADER --abi B`, which layout_against_clang.py holds against the
compilers. Plain declarations must be equal, all of them. With attributes and bit-fields without names, of which
offsets prove only that there was something, the share that is equal is counted, and has not to fall.
"""
import argparse
import os
import random
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from common import claim, finish, have, run, skip  # noqa: E402
from layout_against_clang import Maker, ask_cairn  # noqa: E402

PER_FILE = 200
TARGETS = ["i386", "arm", "s390x", "riscv32", "aarch64", "x86-64", "bpf"]
# What was equal when this was written, less one hundredth.
WITH_ATTRIBUTES = {"gcc": 0.92, "clang": 0.91, "bpf": 0.85}


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
    command = ["clang", "-target", "bpf"] if how == "bpf" else [how]
    code, _, err = run(command + ["-g", "-w", "-fno-eliminate-unused-debug-types", "-c", "-o", out, source], timeout=300)
    if code != 0:
        raise RuntimeError(err[:2000])
    return out


def compare(folder, text, how):
    header = os.path.join(folder, "decl.i")
    with open(header, "w", encoding="utf-8") as file:
        file.write(text)
    obj, equal, total, shown = compile_records(folder, text, how), 0, 0, False
    for abi in TARGETS:
        # Clang leaves the width of full-width bit-fields out of its DWARF, which then lie over their neighbours.
        theirs, ours = ask_cairn(header, abi), ask_cairn(obj, abi, sums=how != "clang")
        for name, (size, _, members) in theirs.items():
            total += 1
            mine = ours.get(name)
            same = mine and mine[0] == size and mine[2] == members
            equal += bool(same)
            if not same and not shown and not os.environ.get("QUIET"):
                shown = True
                body = re.search(rf"(#pragma pack[^\n]*\n)?{name} {{.*", text)
                print(f"# {how} to {abi}: {body.group(0)}\n#   {mine}\n#   {(size, members)}")
    return equal, total


def attempt(maker, how, args, says):
    rng, equal, total, done = random.Random(f"{args.seed} {how} {maker.__name__}"), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="cairn-retarget-") as folder:
        while done < args.count:
            n = min(PER_FILE, args.count - done)
            made = maker(rng, "bpf" if how == "bpf" else "x86-64", "gcc" if how == "gcc" else "clang")
            # BTF has no kind for these, and one unit of each for __int128's bit-fields.
            if how == "bpf":
                made.scalars = [s for s in made.scalars if "_Complex" not in s and "_Atomic" not in s]
            # A typedef's own alignment is another attribute; those of members and structs are measured.
            made.scalars = [s for s in made.scalars if s not in ("low", "low2", "high")]
            if maker is Plain:
                # BTF has arrays for them.
                if how == "bpf":
                    made.scalars = [s for s in made.scalars if s not in ("v8", "v16", "v32")]
            # i386 and arm have no 128-bit integers; their long is not wide enough for some bit-fields.
            made.scalars = [s for s in made.scalars if "__int128" not in s]
            # Nor has arm the floats that x86 has: 80 bits, decimal.
            made.scalars = [s for s in made.scalars if not re.search("_Decimal|_Float64x|_Float128|__float128|_BitInt", s)]
            # And bpf has no _BitInt.
            made.bit_types = [b for b in made.bit_types if "_BitInt" not in b[0]]
            # Neither DWARF nor BTF says of a struct that it is laid out as Microsoft's compiler does.
            text = re.sub(r" ?__attribute__\(\(ms_struct\)\)", "", made.text(n))
            e, t = compare(folder, text, how)
            equal, total, done = equal + e, total + t, done + n
    share = equal / total if total else 0
    claim(f"{how}, {says}: {equal} of {total} layouts equal ({100 * share:.1f} %)",
          equal == total if maker is Plain else share >= WITH_ATTRIBUTES[how])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for how in ("gcc", "clang", "bpf"):
        tool = "clang" if how == "bpf" else how
        if have(tool):
            skip(f"compiled structs of {how} on other ABIs", f"{tool} is not installed")
            continue
        attempt(Plain, how, args, "plain")
        attempt(Maker, how, args, "with attributes")
    finish()


if __name__ == "__main__":
    main()
