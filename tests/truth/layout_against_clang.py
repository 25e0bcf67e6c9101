#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Layouts of random declarations, compared with those that Clang and GCC give them.

    layout_against_clang.py [--count N] [--seed N] [--keep]

N declarations (50,000 when it is not given) are spread over the ABIs. Clang tells its record
layouts itself (-fdump-record-layouts): size, alignment, and the place of every member and
bit-field. GCC tells size, alignment and offsets of what is no bit-field through constants that it
compiles. Clang's -fdump-record-layouts-complete is no witness: it lays a struct out before it has
read the attributes behind the brace. The newest Clang of the lab is taken if there is one. Of each
struct members, holes and padding have to add up to its size.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
from common import CAIRN, claim, finish, skip  # noqa: E402
from records import accounted_bits  # noqa: E402

LAB = os.path.join(os.environ.get("CAIRN_LAB") or os.path.expanduser("~/.cache/cairn-lab"), "sid")

# What each ABI is called by Clang; those that GCC has here, by its option.
ABIS = {
    "x86-64": "x86_64-linux-gnu", "x32": "x86_64-linux-gnux32", "i386": "i686-linux-gnu", "aarch64":
    "aarch64-linux-gnu", "aarch64be": "aarch64_be-linux-gnu", "arm": "arm-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu", "riscv32": "riscv32-linux-gnu", "s390x": "s390x-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu", "ppc64": "powerpc64-linux-gnu", "mips": "mips-linux-gnu",
    "mips64el": "mips64el-linux-gnuabi64", "bpf": "bpfel", "bpfeb": "bpfeb", "windows-x64":
    "x86_64-pc-windows-msvc", "windows-x86": "i686-pc-windows-msvc",
}
GCC = {"x86-64": "-m64", "i386": "-m32"}
# Without the registers for them, GCC aligns vectors less than Clang does.
GCC_FLAGS = ["-mavx"]
NO_INT128 = {"i386", "arm", "riscv32", "mips", "windows-x86"}
PER_FILE = 500

SCALARS = [
    "char", "signed char", "unsigned char", "_Bool", "short", "unsigned short", "int", "unsigned",
    "long", "unsigned long", "long long", "unsigned long long", "float", "double", "long double",
    "void *", "float _Complex", "double _Complex", "_Atomic long long", "_Atomic short",
    "_Atomic(char *)", "enum e", "enum small", "enum wide", "v8", "v16", "v32", "low", "low2",
    "high", "int (*)(void)", "_Complex int", "long long _Complex", "unsigned char _Complex",
    "_Float32", "_Float64"
]
INT128 = ["__int128", "unsigned __int128"]
# Not for BPF. Clang before 18 aligns those of more than 64 bits to 8 on aarch64, where the AAPCS64
# says 16.
BIT_INTS = [("_BitInt(17)", 17), ("unsigned _BitInt(1)", 1), ("unsigned _BitInt(33)", 33),
            ("_BitInt(64)", 64)]
LONG_BIT_INTS = [("_BitInt(65)", 65), ("unsigned _BitInt(128)", 128)]
GNU_FLOATS = ["__float128", "_Complex __float128"]
GCC_ONLY = [
    "_Float64x", "_Float128", "_Complex _Float64x", "_Decimal32", "_Decimal64", "_Decimal128"
]
BIT_TYPES = [("char", 8), ("signed char", 8), ("unsigned char", 8), ("_Bool", 1), ("short", 16),
             ("unsigned short", 16), ("int", 32), ("unsigned", 32), ("long long", 64),
             ("unsigned long long", 64), ("enum e", 32), ("enum small", 8)]
PRELUDE = """
enum e { E_A, E_B = 7 };
enum __attribute__((packed)) small { S_A, S_B = 100 };
enum wide { W_A, W_B = 0x100000000 };
typedef int v8 __attribute__((vector_size(8)));
typedef float v16 __attribute__((vector_size(16)));
typedef long long v32 __attribute__((vector_size(32)));
typedef long long low __attribute__((aligned(2)));
typedef low low2;
typedef short high __attribute__((aligned(8)));
"""
# Of GCC and the glibc for Clang.
CLANG_PRELUDE = """typedef float _Float32; typedef double _Float64;
typedef int v256 __attribute__((vector_size(256)));
"""


class Maker:
    """Declarations of one file; later ones contain earlier ones."""

    def __init__(self, rng, abi, compiler):
        self.rng, self.abi, self.compiler = rng, abi, compiler
        self.windows = abi.startswith("windows")
        self.scalars = SCALARS + (INT128 if abi not in NO_INT128 else [])
        bit_ints = BIT_INTS + ([] if abi.startswith("aarch64") else LONG_BIT_INTS)
        if compiler == "gcc" or abi.startswith("bpf"):
            bit_ints = []
        if compiler == "clang":
            # GCC does not align it to its size.
            self.scalars = self.scalars + ["v256"]
        # ms_struct aligns to the size, which is 12 there.
        self.bit_types = BIT_TYPES + [b for b in bit_ints if (abi, b[0]) != ("i386", "_BitInt(65)")]
        self.scalars += [name for name, _ in bit_ints]
        if abi in ("x86-64", "x32", "i386"):
            self.scalars += GNU_FLOATS[:1 if compiler == "gcc" else 2] + (GCC_ONLY if compiler
                                                                          == "gcc" else [])
        if self.windows:
            # What Microsoft's compiler has no words for, Clang makes up.
            self.scalars = [s for s in self.scalars if s != "enum wide"]
        if (abi, compiler) == ("i386", "gcc"):
            # In a union, GCC aligns them to 4: docs/findings/gcc-i386-atomic-in-union.md
            self.scalars = [
                s for s in self.scalars if s not in ("_Atomic long long", "v8", "_Decimal64")
            ]
        self.records = []  # names that later ones may contain
        self.numbers = 0

    def name(self):
        self.numbers += 1
        return f"m{self.numbers}"

    def attributes(self, member):
        rng, found = self.rng, []
        if rng.random() < 0.06 and not self.windows:
            found.append("packed")
        if rng.random() < 0.08:
            found.append(f"aligned({rng.choice([1, 2, 4, 8, 16, 32])})")
        # With two of them, GCC takes the last and Clang the larger.
        if not member and rng.random() < 0.02 and "aligned" not in " ".join(found):
            found.append("aligned")
        return f" __attribute__(({', '.join(found)}))" if found else ""

    def bit_field(self):
        rng = self.rng
        base, bits = rng.choice(self.bit_types)
        kind = rng.random()
        if kind < 0.1:
            return f"{base} : 0;"
        width = rng.randint(1, bits)
        if kind < 0.2:
            return f"{base} : {width};"
        attributes = self.attributes(
            True) if self.compiler == "clang" and rng.random() < 0.3 else ""
        if self.windows:
            attributes = ""
        return f"{base} {self.name()} : {width}{attributes};"

    def member(self, depth, last):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.3:
            return self.bit_field()
        if kind < 0.38 and depth < 3:
            word = rng.choice(["struct", "union"])
            name = "" if rng.random() < 0.6 else " " + self.name()
            return f"{word} {{ {self.members(depth + 1)} }}{name}{self.attributes(True)};"
        if kind < 0.5 and self.records:
            return f"{rng.choice(self.records)} {self.name()}{self.array()}{self.attributes(True)};"
        kind = rng.choice(self.scalars)
        if kind == "int (*)(void)":
            return f"int (*{self.name()})(void){self.attributes(True)};"
        if last and depth == 0 and kind != "high" and rng.random() < 0.1:
            return f"{kind} {self.name()}[];"
        # The compilers refuse arrays of elements that are aligned to more than their size.
        array = "" if kind == "high" else self.array()
        return f"{kind} {self.name()}{array}{self.attributes(True)};"

    def array(self):
        kind = self.rng.random()
        if kind < 0.75:
            return ""
        if kind < 0.8:
            return "" if self.windows else "[0]"
        return f"[{self.rng.randint(1, 5)}]" + (f"[{self.rng.randint(1, 3)}]"
                                                if kind > 0.96 else "")

    def members(self, depth):
        n = self.rng.randint(1, 7 if depth == 0 else 4)
        made = [self.member(depth, i == n - 1 and n > 1) for i in range(n)]
        # A struct of unnamed bit-fields only is not C.
        made.insert(0 if self.rng.random() < 0.5 else len(made) - 1, f"char {self.name()};")
        return " ".join(made)

    def record(self, i):
        rng = self.rng
        word = "union" if rng.random() < 0.15 else "struct"
        pack = rng.choice([1, 2, 4, 8, 16]) if rng.random() < 0.15 else 0
        body = self.members(0)
        if word == "union":
            body = re.sub(r"\b(\w+)\[\];", r"\1[2];", body)
        # GCC's differs, see place_ms_struct.c.
        may_be_ms = self.compiler == "clang" and not self.windows
        ms = " __attribute__((ms_struct))" if may_be_ms and rng.random() < 0.1 else ""
        text = f"{word} S{i} {{ {body} }}{self.attributes(False)}{ms};"
        if "[];" not in body:
            self.records.append(f"{word} S{i}")
        return f"#pragma pack(push, {pack})\n{text}\n#pragma pack(pop)\n" if pack else text + "\n"

    def text(self, count):
        return PRELUDE + (CLANG_PRELUDE if self.compiler == "clang" else "") + "".join(
            self.record(i) for i in range(count))


# ---- the compilers' answers: {name: (size, align, {member: offset in bits})} ----

PLACE = re.compile(r"^ *(\d+)(?::(\d+|-)(?:-(\d+))?)? \| ( *)(.*)$")
SIZES = re.compile(r"sizeof=(\d+),.*?\balign=(\d+)", re.S)


def parse_dump(text):
    found = {}
    for part in text.split("*** Dumping AST Record Layout")[1:]:
        lines = [line for line in part.splitlines() if "|" in line]
        first = PLACE.match(lines[0])
        name = first.group(5).strip() if first else ""
        if not re.fullmatch(r"(struct|union) S\d+", name):
            continue
        members = {}
        for line in lines[1:]:
            match = PLACE.match(line)
            if not match or len(match.group(4)) != 2:
                continue
            member = re.search(r"\b(m\d+)$", match.group(5))
            bit = int(match.group(2)) if match.group(2) not in (None, "-") else 0
            if member:
                members[member.group(1)] = int(match.group(1)) * 8 + bit
        size = SIZES.search(" ".join(lines))
        found[name] = (int(size.group(1)), int(size.group(2)), members)
    return found


def clang_command():
    for name in ("clang-21", "clang-20", "clang-19"):
        if os.path.exists(os.path.join(LAB, "usr/bin", name)) and os.geteuid() == 0:
            return ["chroot", LAB, name]
    return ["clang"]


def ask_clang(text, abi):
    command = clang_command() + [
        f"--target={ABIS[abi]}", "-w", "-Wno-incompatible-ms-struct", "-fsyntax-only", "-Xclang",
        "-fdump-record-layouts", "-x", "c", "-"
    ]
    # Only what is used is laid out.
    names = re.findall(r"^((?:struct|union) S\d+) {", text, re.M)
    text += f"unsigned long used[] = {{{', '.join(f'sizeof({name})' for name in names)}}};\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{abi}: {done.stderr[:2000]}")
    return parse_dump(done.stdout)


def direct_members(body):
    """Names of members that stand at the outermost level and are no bit-fields."""
    depth, out = 0, ""
    for c in body:
        depth += c == "{"
        out += c if depth == 0 else ""
        depth -= c == "}"
    found = []
    for part in out.split(";"):
        part = re.sub(r"__attribute__\(\(.*?\)\)(?=\s*($|:))", "", part)
        names = re.findall(r"\bm\d+\b", part)
        if names and ":" not in part:
            found.append(names[-1])
    return found


def ask_gcc(text, option, names):
    """@names: {struct: [members that have an offset]}"""
    lines, order = [text, "const unsigned long long answers[] = {"], []
    for struct, members in names.items():
        order.append((struct, members))
        lines.append(f"sizeof({struct}), _Alignof({struct}),")
        lines += [f"__builtin_offsetof({struct}, {member})," for member in members]
    lines.append("};")
    done = subprocess.run(["gcc", option, *GCC_FLAGS, "-w", "-S", "-o", "-", "-x", "c", "-"],
                          input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    section = done.stdout.split("answers:", 1)[1]
    # Eight bytes each; on i386 as two words.
    word, step = ("long", 2) if option == "-m32" else ("quad", 1)
    flat = []
    for what, n in re.findall(rf"\.({word}|zero)\s+(\d+)", section):
        flat += [int(n)] if what == word else [0] * (int(n) * step // 8)
    numbers = flat[::step]
    found, at = {}, 0
    for struct, members in order:
        size, align = numbers[at:at + 2]
        at += 2
        found[struct] = (size, align, {m: 8 * numbers[at + i] for i, m in enumerate(members)})
        at += len(members)
    return found


# ---- ours ----

def ask_cairn(path, abi, sums=True):
    done = subprocess.run([CAIRN, "layout", "--json", "--abi", abi, path], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{abi}: {done.stderr}{done.stdout[-500:]}")
    found = {}
    for line in done.stdout.splitlines():
        o = json.loads(line)
        if re.fullmatch(r"S\d+", o.get("name") or ""):
            if sums and o["kind"] == "struct" and accounted_bits(o) != 8 * o["size"]:
                raise RuntimeError(f"{abi}: its parts do not add up: {line}")
            members = {
                m["name"]: m.get("bit_offset", 8 * m["offset"])
                for m in o["members"]
                if m["name"]
            }
            found[f"{o['kind']} {o['name']}"] = (o["size"], o.get("align"), members)
    return found


def differences(ours, theirs, only_theirs):
    for name, (size, align, members) in theirs.items():
        mine = ours.get(name)
        if mine is None:
            yield name, "missing", None, None
            continue
        if mine[:2] != (size, align):
            yield name, "size, alignment", mine[:2], (size, align)
            continue
        wrong = {m: (mine[2].get(m), at) for m, at in members.items() if mine[2].get(m) != at}
        if wrong:
            yield name, "offsets", {m: w[0]
                                    for m, w in wrong.items()}, {m: w[1]
                                                                 for m, w in wrong.items()}


def show(text, name, what, ours, theirs):
    body = re.search(rf"(#pragma pack[^\n]*\n)?{name} {{.*", text)
    print(f"# {name}: {what}: {ours}, the compiler says {theirs}\n{body.group(0) if body else ''}")


def compare_file(folder, rng, abi, compiler, count, keep):
    text = Maker(rng, abi, compiler).text(count)
    path = os.path.join(folder, f"{abi}-{compiler}.i")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    ours = ask_cairn(path, abi)
    if compiler == "clang":
        theirs = ask_clang(text, abi)
    else:
        bodies = dict(re.findall(r"^((?:struct|union) S\d+) {(.*)}[^}]*;$", text, re.M))
        theirs = ask_gcc(text, GCC[abi],
                         {name: direct_members(body)
                          for name, body in bodies.items()})
    found = list(differences(ours, theirs, compiler == "gcc"))
    for name, what, mine, wanted in found[:3]:
        show(text, name, what, mine, wanted)
    if found and keep:
        kept = f"/tmp/layout-{abi}-{compiler}.i"
        with open(kept, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"# kept: {kept}")
    return len(theirs), len(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the files that differ")
    parser.add_argument("--abi", action="append", help="only these")
    args = parser.parse_args()
    runs = [(abi, "clang") for abi in ABIS] + [(abi, "gcc") for abi in GCC]
    runs = [run for run in runs if not args.abi or run[0] in args.abi]
    each = max(1, -(-args.count // len(runs)))
    print(
        f"# {' '.join(clang_command())}, {each} declarations for each of {len(runs)} ABIs and compilers",
        flush=True)
    for abi, compiler in runs:
        rng = random.Random(f"{args.seed} {abi} {compiler}")
        total = wrong = 0
        with tempfile.TemporaryDirectory(prefix="cairn-layout-") as folder:
            while total < each:
                try:
                    n, bad = compare_file(folder, rng, abi, compiler, min(PER_FILE, each - total),
                                          args.keep)
                except FileNotFoundError as missing:
                    skip(f"layouts of {abi} as {compiler}", f"{missing.filename} is not installed")
                    break
                total, wrong = total + n, wrong + bad
            else:
                claim(f"layouts of {abi} as {compiler}: {total} compared, {wrong} differ",
                      not wrong)
    finish()


if __name__ == "__main__":
    main()
