#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Records decoded by cairn, and what the program prints that has the structs.

    tests/truth/decode_against_c.py [STRUCTS] [RECORDS]

Random structs (bit-fields, packed, unions, arrays, enums, 128 bits), RECORDS random records of
each. C reads each through its struct, compiled by gcc and by clang, and for s390x by a cross
compiler run under qemu; cairn decodes the same bytes by the program's DWARF, and by the header for
the ABI.
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from claims import Skip, cairn, claim, claim_each, expect, folder, main, need  # noqa: E402
from records import Structs, c_values, differences, parse_decoded  # noqa: E402

STRUCTS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
RECORDS = int(sys.argv[2]) if len(sys.argv) > 2 else 20


def decode_all(structs, data, file, *words):
    out = ""
    for name in structs.names:
        path = os.path.join(folder(), "one.bin")
        with open(path, "wb") as raw:
            raw.write(b"".join(data[name]))
        out += cairn("decode", file, f"struct {name}", path, "--json", *words, check=True).out
    return parse_decoded(out, structs.names, data)


def compare(structs, layouts, values, decoded, what):
    wrong, count = differences(layouts, values, decoded)
    expect(not wrong, *wrong[:5], f"{len(wrong)} of {count} members differ")
    print(f"# {what}: {sum(map(len, values.values()))} records, {count} values, 0 differences")


@claim_each("gcc", "clang")
def records_are_decoded_as_the_program_prints_them(compiler):
    need(compiler)
    structs = Structs(STRUCTS, f"x86-{compiler}")
    layouts = structs.fields()
    data = structs.records(layouts, RECORDS)
    program, values = c_values(structs, layouts, data, compiler)
    compare(structs, layouts, values, decode_all(structs, data, structs.path),
            f"{compiler}, by the header")
    compare(structs, layouts, values, decode_all(structs, data, program), f"{compiler}, by DWARF")


# A static program needs no libraries of that machine to run.
FOREIGN = {
    "s390x": ("s390x-linux-gnu-gcc", "qemu-s390x"), "aarch64":
    ("aarch64-linux-gnu-gcc", "qemu-aarch64"), "ppc64": ("powerpc64-linux-gnu-gcc", "qemu-ppc64"),
    "mips": ("mips-linux-gnu-gcc", "qemu-mips")
}


@claim_each(*FOREIGN)
def records_of_another_machine_are_decoded_as_it_prints_them(abi):
    compiler, qemu = FOREIGN[abi]
    need(compiler)
    runner = shutil.which(qemu) or shutil.which(qemu + "-static")
    if not runner:
        raise Skip(f"{qemu} is not installed")
    structs = Structs(STRUCTS, abi, wide=abi != "mips")
    layouts = structs.fields("--abi", abi)
    data = structs.records(layouts, RECORDS)
    _, values = c_values(structs, layouts, data, compiler, ("-static",), (runner,))
    compare(structs, layouts, values, decode_all(structs, data, structs.path, "--abi", abi),
            f"{abi}, by the header")


main()
