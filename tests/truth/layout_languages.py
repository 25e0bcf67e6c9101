#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random structs in Rust, Go and Python: where their own compilers put members, and where `cairn
layout` says.

    layout_languages.py [--count N] [--seed N] [--lang LANG] [--keep FOLDER]

Rust tells by core::mem::offset_of!, Go by unsafe.Offsetof, compiled for eleven machines and read
from the listing, Python by the offset and size of each ctypes field and by struct.calcsize.
"""
import argparse
import ctypes
import json
import os
import random
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from common import CAIRN, claim, finish, have, run, skip  # noqa: E402

PER_FILE = 250


def ours(path, abi):
    """Name to (size, {member: (bit offset, bits)})."""
    code, out, err = run([CAIRN, "layout", path, "--abi", abi, "--json"])
    if code != 0:
        raise RuntimeError(f"cairn layout {path}: {err}")
    found = {}
    for line in out.splitlines():
        o = json.loads(line)
        if o["kind"] != "enum":
            found[o["name"]] = (o["size"], {
                m["name"]: (m.get("bit_offset", 8 * m["offset"]), m.get("bits", 0))
                for m in o["members"]
                if m["name"] not in ("_", None)
            })
    return found


def compare(path, abi, theirs):
    """How many are not equal; the first is shown."""
    mine, wrong = ours(path, abi), 0
    for name, layout in theirs.items():
        if mine.get(name) != layout:
            wrong += 1
            if wrong == 1:
                print(f"# {abi} {path} {name}\n#   theirs {layout}\n#   ours   {mine.get(name)}")
    return wrong


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# ---- Rust

RUST = [
    "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "u128", "i128", "usize", "isize", "f32",
    "f64", "bool", "*const u8", "*mut core::ffi::c_void", "Alias", "Small", "Wide",
    "core::ffi::c_long", "Option<extern \"C\" fn(i32)>", "core::mem::MaybeUninit<u32>", "[u8; N]",
    "[[u16; 2]; N - 3]", "core::ffi::c_char"
]
RUST_PRELUDE = """#![allow(dead_code, unused, improper_ctypes_definitions)]
const N: usize = 4 + 1;
type Alias = u16;
#[repr(u8)]
#[derive(Clone, Copy)]
enum Small { A, B = 7 }
#[repr(C)]
#[derive(Clone, Copy)]
enum Wide { A, B = 70000 }
"""


def rust_struct(rng, name, plain, aligned):
    reprs, kind = ["C"], rng.random()
    packed = kind < 0.25
    if packed:
        reprs.append(rng.choice(["packed", "packed(2)", "packed(4)", "packed(8)"]))
    elif kind < 0.4:
        reprs.append(f"align({rng.choice([1, 2, 8, 16, 64])})")
        aligned.add(name)
    fields = []
    for i in range(rng.randint(0, 7)):
        pool = [p for p in plain if not (packed and p in aligned)]
        kind = rng.choice(pool) if pool and rng.random() < 0.25 else rng.choice(RUST)
        if kind in aligned:
            aligned.add(name)
        if rng.random() < 0.2:
            kind = f"[{kind}; {rng.randint(0, 5)}]"
        fields.append((f"m{i}", kind))
    word = "union" if fields and rng.random() < 0.15 else "struct"
    body = "".join(
        f"    /* {i} */ pub {m}: {kind}, // {kind}\n" for i, (m, kind) in enumerate(fields))
    return f"#[repr({', '.join(reprs)})]\n#[derive(Clone, Copy)]\npub {word} {name} {{\n{body}}}\n", fields


def rust_file(folder, rng, count):
    text, main, names, aligned = [RUST_PRELUDE], [], [], set()
    for i in range(count):
        name = f"S{i}"
        declaration, fields = rust_struct(rng, name, names, aligned)
        text.append(declaration)
        names.append(name)
        main.append(f'    println!("{name} {{}}", core::mem::size_of::<{name}>());')
        main.extend(f'    println!("{name}.{m} {{}}", core::mem::offset_of!({name}, {m}));'
                    for m, _ in fields)
    path = write(folder, "structs.rs", "".join(text) + "fn main() {\n" + "\n".join(main) + "\n}\n")
    program = os.path.join(folder, "rust")
    code, _, err = run(["rustc", "--edition", "2021", "-A", "warnings", "-o", program, path],
                       timeout=600)
    if code != 0:
        raise RuntimeError(err[-3000:])
    return path, parse_lines(run([program])[1])


def parse_lines(text):
    found = {}
    for line in text.splitlines():
        name, value = line.rsplit(" ", 1)
        if "." in name:
            name, member = name.split(".")
            found[name][1][member] = (8 * int(value), 0)
        else:
            found[name] = (int(value), {})
    return found


def try_rust(args, folder):
    if have("rustc"):
        return skip("Rust's structs", "rustc is not installed")
    total = wrong = 0
    rng = random.Random(f"{args.seed} rust")
    while total < args.count:
        n = min(PER_FILE, args.count - total)
        path, theirs = rust_file(folder, rng, n)
        wrong += compare(path, "x86-64", theirs)
        total += n
    return claim(f"Rust's structs: {total} compared with rustc, {wrong} differ", not wrong)


# ---- Go

GO = [
    "uint8", "int8", "byte", "uint16", "int16", "uint32", "int32", "rune", "uint64", "int64", "int",
    "uint", "uintptr", "float32", "float64", "complex64", "complex128", "bool", "string", "*int32",
    "[]byte", "map[string]int", "func(int) (a, b int)", "interface{}", "chan int", "error",
    "unsafe.Pointer", "Kind", "[N]uint16", "[N - 2][1 << 1]uint8", "[0]uint64",
    "struct {\n\t\tA uint8\n\t\tB uint32 `tag:\"b\"`\n\t}", "struct{}"
]
GO_ABIS = {
    "amd64": "x86-64", "386": "i386", "arm": "arm", "arm64": "aarch64", "mips": "mips", "mipsle":
    "mipsel", "ppc64": "ppc64", "ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x",
    "mips64": "mips64"
}
GO_PRELUDE = """package main

import "unsafe"

const N = 5

type Kind uint16

const (
	A Kind = iota
	B
)

var _ unsafe.Pointer

func use() { type inside struct { x int } }
"""
def go_struct(rng, name, names):
    fields, lines = [], []
    if names and rng.random() < 0.15:
        lines.append(f"\t{rng.choice(names)}")
    for i in range(rng.randint(0, 7)):
        kind = rng.choice(names) if names and rng.random() < 0.2 else rng.choice(GO)
        if rng.random() < 0.2:
            kind = f"[{rng.randint(0, 4)}]{kind}"
        what = rng.random()
        if what < 0.1:
            lines.append(f"\t_ {kind}")
        elif what < 0.2:
            lines.append(f"\tM{i}, N{i} {kind}")
            fields += [f"M{i}", f"N{i}"]
        else:
            lines.append(f"\tM{i} {kind}" + (" `json:\"m\"`" if rng.random() < 0.2 else "") +
                         " // said")
            fields.append(f"M{i}")
    return f"type {name} struct {{\n" + "\n".join(lines) + "\n}\n", fields


def go_file(folder, rng, count):
    text, names, fields = [GO_PRELUDE], [], {}
    for i in range(count):
        declaration, members = go_struct(rng, f"S{i}", names)
        text.append(declaration)
        names.append(f"S{i}")
        fields[f"S{i}"] = members
    return write(folder, "structs.go", "\n".join(text)), fields


def go_table(folder, path, fields, arch):
    """Sizes and offsets as constants, compiled for a machine that need not be this one, and read
    from the listing."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    keys, values = [], []
    for name, members in fields.items():
        keys.append(name)
        values.append(f"uint64(unsafe.Sizeof({name}{{}}))")
        for m in members:
            keys.append(f"{name}.{m}")
            values.append(f"uint64(unsafe.Offsetof({name}{{}}.{m}))")
    program = write(folder, "table.go",
                    text + "\nvar Table = [...]uint64{\n" + ",\n".join(values) + ",\n}\n")
    code, out, err = run([
        "go", "tool", "compile", "-p", "main", "-S", "-o",
        os.path.join(folder, "table.o"), program
    ], timeout=600, env=dict(os.environ, GOARCH=arch))
    if code != 0:
        raise RuntimeError(f"go tool compile for {arch}: {(err + out)[-2000:]}")
    data, inside = bytearray(), False
    for line in out.splitlines():
        if not line.startswith("\t"):
            inside = line.startswith("main.Table ")
        elif inside and line.startswith("\t0x"):
            # An address, sixteen columns of bytes, and the same as text.
            data += bytes.fromhex(line[8:56])
    # Zeros at the end are not listed.
    data = bytes(data).ljust(8 * len(keys), b"\0")[:8 * len(keys)]
    big = arch in ("mips", "mips64", "ppc64", "s390x")
    numbers = struct.unpack(f"{'>' if big else '<'}{len(keys)}Q", data)
    return parse_lines("\n".join(f"{key} {number}" for key, number in zip(keys, numbers)))


def try_go(args, folder):
    if have("go"):
        return skip("Go's structs", "go is not installed")
    total, wrong = 0, 0
    rng = random.Random(f"{args.seed} go")
    while total < args.count:
        n = min(PER_FILE, args.count - total)
        path, fields = go_file(folder, rng, n)
        for arch, abi in GO_ABIS.items():
            wrong += compare(path, abi, go_table(folder, path, fields, arch))
        total += n
    return claim(
        f"Go's structs: {total} compared with its compiler on each of {len(GO_ABIS)} machines, {wrong} differ",
        not wrong)


# ---- Python

CTYPES = [
    "c_bool", "c_char", "c_byte", "c_ubyte", "c_short", "c_ushort", "c_int", "c_uint", "c_long",
    "c_ulong", "c_longlong", "c_ulonglong", "c_int8", "c_uint8", "c_int16", "c_uint16", "c_int32",
    "c_uint32", "c_int64", "c_uint64", "c_size_t", "c_ssize_t", "c_float", "c_double",
    "c_longdouble", "c_void_p", "c_char_p", "POINTER(c_int)", "c_char * 16", "c_uint16 * N",
    "pid_t", "(c_char * 3) * 2", "c_char * 2 * 3"
]
BITS = [("c_ubyte", 8), ("c_byte", 8), ("c_ushort", 16), ("c_int", 32), ("c_uint", 32),
        ("c_ulonglong", 64), ("c_long", 64)]
SWAPPABLE = [
    "c_short", "c_ushort", "c_int32", "c_uint32", "c_int64", "c_uint64", "c_double", "c_ubyte",
    "c_uint16 * 3"
]
PYTHON_PRELUDE = """from ctypes import *
import ctypes
import struct

N = 4 + 3
pid_t = ctypes.c_int


"""


def python_class(rng, name, names):
    base, kinds = "Structure", CTYPES
    if rng.random() < 0.12:
        base = "Union"
    elif rng.random() < 0.1:
        base, kinds = "ctypes.BigEndianStructure", SWAPPABLE
    bits_too = base == "Structure" and rng.random() < 0.5
    lines = []
    if rng.random() < 0.25:
        lines.append(f"    _pack_ = {rng.choice([1, 2, 4, 8])}")
    fields = []
    for i in range(rng.randint(0, 7)):
        if bits_too and rng.random() < 0.5:
            kind, most = rng.choice(BITS)
            fields.append(f'("m{i}", {kind}, {rng.randint(1, most)})')
            continue
        kind = rng.choice(kinds)
        if names and base != "ctypes.BigEndianStructure" and rng.random() < 0.2:
            kind = rng.choice(names) + (" * 2" if rng.random() < 0.3 else "")
        fields.append(f'("m{i}", {kind})')
    lines.append("    _fields_ = [" + ",\n                ".join(fields) + "]")
    return f"class {name}({base}):\n" + "\n".join(
        lines) + "\n\n\n", base != "ctypes.BigEndianStructure"


def python_file(folder, rng, count):
    text, names, texts = [PYTHON_PRELUDE], [], {}
    for i in range(count):
        declaration, native = python_class(rng, f"S{i}", names)
        text.append(declaration)
        texts[f"S{i}"] = declaration
        if native:
            names.append(f"S{i}")
    formats = {}
    for i in range(count // 2):
        order = rng.choice(["", "@", "=", "<", ">", "!"])
        letters = "xcbB?hHiIlLqQefds" + ("nNP" if order in ("", "@") else "")
        body = "".join(
            rng.choice(["", str(rng.randint(0, 5)), " "]) + rng.choice(letters)
            for _ in range(rng.randint(1, 8)))
        formats[f"F{i}"] = order + body
        text.append(f'F{i} = struct.Struct("{order + body}")\n')
    return write(folder, "structs.py", "".join(text)), texts, formats


def of_ctypes(path, names, formats):
    scope, found = {}, {}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), scope)  # pylint: disable=exec-used
    for name in names:
        kind, members = scope[name], {}
        for field in kind._fields_:
            at = getattr(kind, field[0])
            bits = at.size >> 16 if len(field) > 2 else 0
            members[field[0]] = (8 * at.offset + (at.size & 0xffff if bits else 0), bits)
        found[name] = (ctypes.sizeof(kind), members)
    for name, text in formats.items():
        found[name] = (struct.calcsize(text), {})
    return found


def try_python(args, folder):
    if sys.version_info >= (3, 14):
        return skip("Python's structs", "3.14 places bit-fields as C does")
    total = wrong = 0
    rng = random.Random(f"{args.seed} python")
    while total < args.count:
        n = min(PER_FILE, args.count - total)
        path, texts, formats = python_file(folder, rng, n)
        theirs = of_ctypes(path, texts, formats)
        mine = ours(path, "x86-64")
        for name in formats:
            mine[name] = (mine[name][0], {}) if name in mine else None
        bad = [name for name in theirs if mine.get(name) != theirs[name]]
        if bad and not wrong:
            print(texts.get(bad[0]))
            print(
                f"# {bad[0]}\n#   theirs {theirs[bad[0]]}\n#   ours   {mine.get(bad[0])}\n#   {formats.get(bad[0])}"
            )
        wrong += len(bad)
        total += n
    return claim(f"Python's structs and formats: {total} compared with ctypes, {wrong} differ",
                 not wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lang", action="append", choices=["rust", "go", "python"])
    parser.add_argument("--keep", help="a folder for the files")
    args = parser.parse_args()
    for name, attempt in [("rust", try_rust), ("go", try_go), ("python", try_python)]:
        if args.lang and name not in args.lang:
            continue
        with tempfile.TemporaryDirectory(prefix="cairn-languages-") as folder:
            attempt(args, args.keep or folder)
    finish()


if __name__ == "__main__":
    main()
