#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every member of many structs, read and written by the bindings of each language, and what C reads
in the same bytes.

    tests/truth/bindings_against_c.py [STRUCTS] [RECORDS]

Random structs of either byte order, of this machine and of s390x, and structs of the running kernel
as `bpftool` writes them, up to task_struct. The members of the struct that each language has beside
the accessors are compared, too (tests/cli/bindings.py).
"""

import os
import random
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from bindings import RUNNERS, java_tools  # noqa: E402
# noqa: E402
from claims import Skip, claim, claim_each, expect, folder, main, need, run, write, cairn
from records import PREAMBLE, PRINTERS, Structs, c_values  # noqa: E402

STRUCTS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
RECORDS = int(sys.argv[2]) if len(sys.argv) > 2 else 10
VMLINUX = "/sys/kernel/btf/vmlinux"
KERNEL = [
    "task_struct", "sk_buff", "inode", "tcp_sock", "file", "dentry", "super_block", "mm_struct",
    "page", "bpf_insn", "iphdr", "tcphdr", "perf_event_attr", "thread_struct", "pt_regs", "bpf_prog"
]


class Kernel(Structs):
    """Structs of the running kernel that are in its BTF."""

    def __init__(self):
        self.random = random.Random("kernel")
        self.path = VMLINUX
        self.text = run(need("bpftool"), "btf", "dump", "file", VMLINUX, "format", "c",
                        check=True).out
        self.names = [name for name in KERNEL if re.search(rf"^struct {name} {{", self.text, re.M)]
        expect(len(self.names) > 8, self.names)

    @property
    def operands(self):
        return [self.path, *(f"struct {name}" for name in self.names)]


    def fields(self, *words):
        """Without what has no end in the record itself."""
        layouts = super().fields(*words)
        for layout in layouts.values():
            layout["fields"] = [
                f for f in layout["fields"] if f["size"] and all(d["count"] for d in f["dims"])
            ]
        return layouts


def of_another_size(structs, layouts):
    """bpftool loses an attribute of some structs, and the compiler then lays them out in another
    way."""
    source = write(
        "sizes.c", structs.text + "int printf(const char *, ...);\nint main(void)\n{\n" + "".join(
            f'\tprintf("%lu\\n", sizeof(struct {name}));\n'
            for name in structs.names) + "\treturn 0;\n}\n")
    program = os.path.join(folder(), "sizes")
    run(need("gcc"), "-w", "-o", program, source, check=True)
    sizes = run(program, check=True).lines()
    return [
        name for name, size in zip(structs.names, sizes, strict=True)
        if layouts[name]["size"] != int(size)
    ]


def kernel():
    if not os.path.exists(VMLINUX):
        raise Skip("the kernel has no BTF")
    structs = Kernel()
    layouts = structs.fields()
    odd = of_another_size(structs, layouts)
    print("# bpftool's text of these has another size:", *odd)
    structs.names = [name for name in structs.names if name not in odd]
    expect(len(odd) < 4 and len(structs.names) > 8, odd)
    data = structs.records(layouts, 2)
    # The kernel's types have the names that the C library's have.
    printers = (
        "int printf(const char *, ...);\nint puts(const char *);\nextern void *stdin;\n"
        "unsigned long fread(void *, unsigned long, unsigned long, void *);\nvoid *memcpy(void *, const void *, unsigned long);\n"
        + re.sub(r"#include.*\n", "", PRINTERS))
    return structs, layouts, data, (), c_values(structs, layouts, data, printers=printers)[1]


def here():
    structs, swapped = Structs(STRUCTS, "here"), Structs(STRUCTS, "swapped", order="big-endian",
                                                         prefix="sw")
    structs.append(swapped.text.replace(PREAMBLE, ""))
    source = write("here.c", structs.text + "".join(f"struct {n} v_{n};\n" for n in structs.names))
    structs.path = os.path.join(folder(), "here.o")
    run(need("gcc"), "-w", "-g", "-c", "-o", structs.path, source, check=True)
    layouts = structs.fields()
    data = structs.records(layouts, RECORDS)
    return structs, layouts, data, (), c_values(structs, layouts, data)[1]


def elsewhere():
    words = ("--abi", "s390x")
    structs = Structs(STRUCTS, "elsewhere")
    layouts = structs.fields(*words)
    data = structs.records(layouts, RECORDS)
    compiler = shutil.which("s390x-linux-gnu-gcc")
    runner = shutil.which("qemu-s390x") or shutil.which("qemu-s390x-static")
    if compiler and runner:
        return structs, layouts, data, words, c_values(structs, layouts, data, compiler,
                                                       ("-static",), (runner,))[1]
    return structs, layouts, data, words, RUNNERS["c"](structs, data, words)


PLACES = {"here": here, "elsewhere": elsewhere, "kernel": kernel}
_truth = {}


@claim_each(*(f"{lang}, {place}" for place in PLACES for lang in RUNNERS))
def every_member_is_what_c_reads(case):
    lang, place = case.split(", ")
    if place not in _truth:
        _truth[place] = PLACES[place]()
    structs, layouts, data, words, truth = _truth[place]
    said, count = RUNNERS[lang](structs, data, words), 0
    for name in structs.names:
        kinds = {f["name"]: f["kind"] for f in layouts[name]["fields"]}
        for a, b in zip(truth[name], said[name], strict=True):
            for x, y in zip(a, b, strict=True):
                count += 1
                # A number that is none may be made quiet on the way through a language.
                quiet = kinds[x[0].split()[0]] == "float" and int(x[1]) ^ int(y[1]) in (1 << 22,
                                                                                        1 << 51)
                expect(x == y or quiet, name, x, y)
    print(f"# {lang}, {place}: {count} values of {len(structs.names)} structs equal")


@claim
def a_java_class_holds_30000_members():
    javac, java = java_tools()
    n = 30000
    path = write("big.h",
                 "struct big {\n" + "".join(f"  long member_{i};\n" for i in range(n)) + "};\n")
    cairn("bind", "--lang", "java", path, "big", "-o", os.path.join(folder(), "Records.java"),
          check=True)
    write(
        "Big.java",
        "import java.lang.foreign.*;\nclass Big { public static void main(String[] a) {\n"
        "  MemorySegment s = Arena.ofAuto().allocate(Records.Big.LAYOUT);\n"
        f"  Records.Big.setMember{n - 1}(s, -3); System.out.println(Records.Big.getMember{n - 1}(s));\n}} }}\n"
    )
    run(*javac, "-Xlint:all", "-Werror", "-d", folder(), os.path.join(folder(), "Records.java"),
        os.path.join(folder(), "Big.java"), check=True, seconds=600)
    expect(run(*java, "-cp", folder(), "Big", check=True, seconds=300).out == "-3\n")


if __name__ == "__main__":
    main()
