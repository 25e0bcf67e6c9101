#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn unwind: rows of a file against readelf, and SFrame. Rows of every address: tests/unit; of
running programs: tests/truth."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import (Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect, folder,
                    main, need, run)

PROGRAM = """
int use(void *p, ...);
__attribute__((noinline)) int framed(int n) { char b[n]; return use(b); }
__attribute__((noinline)) int realigned(int n, ...) { _Alignas(64) char b[128]; return use(b, n, __builtin_alloca(n)); }
__attribute__((noinline)) int use(void *p, ...) { __asm__ volatile("" :: "r"(p) : "memory"); return p ? framed(3) : 0; }
int main(int argc, char **argv) { return argc > 1 ? realigned(argc, argv) : use(0); }
"""


def program(*flags):
    return compile_c("program.c", PROGRAM, flags=("-O2", *flags))


@claim
def rows_are_those_that_readelf_prints():
    path = program()
    r = cairn("unwind", "dump", path, "--json", check=True)
    rows = [json.loads(line) for line in r.lines()]
    expect(len(rows) > 10, rows)
    text = run(need("readelf"), "--debug-dump=frames-interp", path, check=True).out
    wanted = {
        int(at, 16): cfa
        for at, cfa in re.findall(r"^([0-9a-f]{16}) (r\w+[+-]\d+) ", text, re.M)
    }
    expect(len(wanted) > 10, text)
    for at, cfa in wanted.items():
        if at == 0:  # the row of a CIE
            continue
        row = [row for row in rows if int(row["lo"], 16) <= at < int(row["hi"], 16)]
        # The outermost frame's CFA is of no use, and is not kept.
        expect(len(row) == 1 and row[0]["cfa"] in (cfa, "outermost"), hex(at), cfa, row)


@claim_each_of_many("gcc", "clang")
def rows_of_debug_frame_are_taken_where_there_is_no_other(compiler):
    path = compile_c("debug-frame.c", PROGRAM, compiler,
                     ("-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"))
    text = run(need("readelf"), "--debug-dump=frames-interp", path, check=True).out
    section = text[text.find("Contents of the .debug_frame"):] if ".debug_frame" in text else ""
    wanted = {
        int(at, 16): cfa
        for at, cfa in re.findall(r"^([0-9a-f]{16}) (r\w+[+-]\d+) ", section, re.M)
        if int(at, 16)
    }
    if not wanted:
        raise Skip(f"{compiler} writes no .debug_frame here")
    rows = [
        json.loads(line) for line in cairn("unwind", "dump", path, "--json", check=True).lines()
    ]
    for at, cfa in wanted.items():
        row = [row for row in rows if int(row["lo"], 16) <= at < int(row["hi"], 16)]
        expect(len(row) == 1 and row[0]["cfa"] == cfa, hex(at), cfa, row)


@claim
def the_text_has_the_same_rows():
    path = program()
    text = cairn("unwind", "dump", path, check=True).lines()
    rows = cairn("unwind", "dump", path, "--json", check=True).lines()
    expect(len([line for line in text if line[0] != "#"]) == len(rows), text[:5])
    expect(any("*(rbp-8)" in line for line in text), text)


@claim_each("2", "3")
def what_was_encoded_is_dumped(version):
    path, out = program(), os.path.join(folder(), "out.sframe")
    r = cairn("unwind", "encode", "--sframe", version, path, "-o", out, "--json", check=True)
    told = json.loads(r.out)
    expect(told["functions"] > 3 and told["bytes"] > 100, told)
    r = cairn("unwind", "dump", "--sframe", out, check=True)
    expect(f"SFRAME_VERSION_{version}" in r.out, r)
    expect(r.out.count("func idx") == told["functions"], r)
    # Only version 3 has the function that realigns its stack.
    expect(("(fp-8)" in r.out) == (version == "3"), r)


@claim
def a_copy_has_the_section_and_still_runs():
    path, out = program(), os.path.join(folder(), "copy")
    cairn("unwind", "encode", "--embed", path, "-o", out, check=True)
    expect(run(out).status == run(path).status, out)
    expect("SFRAME_VERSION_3" in cairn("unwind", "dump", "--sframe", out, check=True).out, out)


@claim_each("", "3", "2")
def readelf_prints_the_same(version):
    """binutils 2.46 prints version 3, 2.41 to 2.45 version 2; what a linker wrote, where the
    assembler can."""
    if version:
        path = os.path.join(folder(), "out.sframe")
        cairn("unwind", "encode", "--sframe", version, program(), "-o", path, check=True)
    else:
        path = os.path.join(folder(), "linked")
        source = os.path.join(folder(), "linked.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        r = run("gcc", "-O2", "-Wa,--gsframe-3", source, "-o", path)
        if r.status:
            raise Skip("this assembler writes no SFrame of version 3")
    r = run(need("readelf"), "--sframe", path)
    wanted = f"SFRAME_VERSION_{version or 3}"
    if r.status or wanted not in r.out or "Warning" in r.err:
        raise Skip(f"this readelf does not print {wanted}")
    if not re.search(r"func idx \[0\]: pc = 0x\w+, size = \d+ bytes", r.out):
        raise Skip("this readelf prints functions in another shape")
    expect(
        cairn("unwind", "dump", "--sframe", path, check=True).out.rstrip() == r.out.rstrip(), r.out)

CALLS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) { printf("%d", argc); puts(getenv("HOME")); return strlen(argv[0]) + atoi(argv[0]); }
"""


def functions_of(path):
    """{address: its rows} of a section, as dump prints them"""
    found = {}
    for part in cairn("unwind", "dump", "--sframe", path, check=True).out.split("func idx")[1:]:
        found[int(re.search(r"pc = (0x\w+)", part).group(1),
                  16)] = [line.split() for line in part.splitlines()[1:] if line.strip()]
    return found


@claim
def a_linkage_table_is_encoded_as_ld_does():
    source, path, out = (os.path.join(folder(), name)
                         for name in ("calls.c", "calls", "calls.sframe"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(CALLS)
    if run(need("gcc"), "-O2", "-Wa,--gsframe", "-Wl,-z,lazy", source, "-o", path).status:
        raise Skip("this assembler writes no SFrame")
    plt = re.search(r" \.plt +PROGBITS +(\w+) \w+ (\w+)",
                    run(need("readelf"), "-SW", path, check=True).out)
    lo = int(plt.group(1), 16)
    theirs = {
        at: rows
        for at, rows in functions_of(path).items()
        if lo <= at < lo + int(plt.group(2), 16)
    }
    if len(theirs) != 2:
        raise Skip("this linker writes no SFrame of .plt")
    for version in "2", "3":
        cairn("unwind", "encode", "--sframe", version, path, "-o", out, check=True)
        ours = functions_of(out)
        expect({at: ours.get(at) for at in theirs} == theirs, theirs, ours)


@claim
def a_debug_file_shows_its_rows_and_is_not_encoded():
    path = compile_c("separate", PROGRAM, "gcc",
                     ("-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"))
    debug = path + ".debug"
    run(need("objcopy"), "--only-keep-debug", path, debug, check=True)
    rows = cairn("unwind", "dump", "--json", debug, check=True).objects()
    # Those of .debug_frame; the .eh_frame of the start files is not in it.
    whole = cairn("unwind", "dump", "--json", path, check=True).objects()
    def cfas(of, at):
        return [row["cfa"] for row in of if int(row["lo"], 16) <= int(at, 16) < int(row["hi"], 16)]

    expect(
        len(rows) > 10 and all(cfas(whole, row["lo"]) == [row["cfa"]] for row in rows), rows, whole)
    r = cairn("unwind", "encode", debug, "-o", os.path.join(folder(), "debug.sframe"))
    expect(r.status == 3 and "no code" in r.err, r)


@claim
def entries_that_are_left_out_are_counted():
    source, path = (os.path.join(folder(), name) for name in ("columns.s", "columns.o"))
    with open(source, "w", encoding="utf-8") as file:
        file.write("""
            .globl f, g, h
            f: .cfi_startproc; nop; ret; .cfi_endproc
            g: .cfi_startproc; .cfi_return_column 15; nop; ret; .cfi_endproc
            h: .cfi_startproc; .cfi_return_column 77; nop; ret; .cfi_endproc
        """)
    run(need("as"), source, "-o", path, check=True)
    r = cairn("unwind", "dump", "--json", path, check=True)
    expect("1 entry is left out of the call frame information" in r.err, r)
    rows = r.objects()
    expect([row["saved"].get("ra") for row in rows] == [None, "r15"], rows)


ARM = """
int use(void *, ...);
struct record { char c; long l; } r;
int framed(int n) { char b[n]; return use(b, &r) + 1; }
int saving(int a) { return use(0) + use(&a); }
"""


@claim
def programs_for_arm64_have_rows_types_and_sframe():
    compiler = need("aarch64-linux-gnu-gcc")
    source, path, out = (os.path.join(folder(), name) for name in ("arm.c", "arm.so", "arm.sframe"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(ARM)
    run(compiler, "-O2", "-g", "-mbranch-protection=standard", "-fPIC", "-shared", source, "-o",
        path, check=True)
    rows = [
        json.loads(line) for line in cairn("unwind", "dump", path, "--json", check=True).lines()
    ]
    text = run(need("readelf"), "--debug-dump=frames-interp", path, check=True).out
    wanted = {
        int(at, 16): cfa
        for at, cfa in re.findall(r"^([0-9a-f]{16}) ((?:sp|x\d+)[+-]\d+) ", text, re.M)
    }
    expect(len(wanted) > 10, text)
    for at, cfa in wanted.items():
        row = [row for row in rows if int(row["lo"], 16) <= at < int(row["hi"], 16)]
        expect(at == 0 or (len(row) == 1 and row[0]["cfa"] in (cfa, "outermost")), hex(at), cfa,
               row)
    expect(any(row["ra_signed"] and row["saved"].get("x30") for row in rows), rows)
    cairn("unwind", "encode", path, "-o", out, check=True)
    expect("c-8[s]" in cairn("unwind", "dump", "--sframe", out, check=True).out, out)
    expect("7 bytes hole" in cairn("layout", path, "record", check=True).out)
    for words in (("sites", path), ("sites", "--hazards", path), ("btf", "encode", path, "-o",
                                                                  out)):
        r = cairn(*words)
        expect(r.status == 3 and "arm64" in r.err and "x86-64 only" in r.err, r)
    cairn("btf", "encode", "--dialect", "none", path, "-o", out, check=True)


@claim
def a_file_without_a_section_and_one_that_is_none_are_said():
    r = cairn("unwind", "dump", "--sframe", program())
    expect(r.status == 1 and "no section .sframe" in r.err, r)
    r = cairn("unwind", "dump", __file__)
    expect(r.status == 4 and "ELF" in r.err, r)
    r = cairn("unwind", "encode", "/nonexistent")
    expect(r.status == 2, r)
    r = cairn("unwind", "encode", "--sframe", "1", program())
    expect(r.status == 2, r)


main()
