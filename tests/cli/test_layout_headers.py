#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout of headers as they are, on ABIs that are not this machine's: clang and gcc are the
judges."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from claims import (Skip, cairn, claim, claim_each, claim_each_of_many, expect,  # noqa: E402
                    folder, main, need, run)

HERE = "/usr/include/x86_64-linux-gnu"
TRIPLES = {
    "x86-64": "x86_64-linux-gnu", "i386": "i686-linux-gnu", "x32": "x86_64-linux-gnux32", "bpf":
    "bpfel", "arm": "arm-linux-gnueabihf", "s390x": "s390x-linux-gnu", "aarch64":
    "aarch64-linux-gnu", "windows-x64": "x86_64-pc-windows-msvc"
}


def write(name, text):
    path = os.path.join(folder(), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def assert_agrees(compiler, text, objects):
    """Sizes, alignments and offsets of @objects as a compiler has them; @compiler is its command.
    """
    lines = []
    for o in objects:
        name = f"{o['kind']} {o['name']}"
        lines.append(f"_Static_assert(sizeof({name}) == {o['size']}, \"\");")
        # Debug information does not say it.
        if "align" in o:
            lines.append(f"_Static_assert(_Alignof({name}) == {o['align']}, \"\");")
        lines += [
            f"_Static_assert(__builtin_offsetof({name}, {m['name']}) == {m['offset']}, \"{m['name']}\");"
            for m in o["members"]
            if m["name"] and "bits" not in m
        ]
    source = write("asserts.c", text + "\n".join(lines) + "\n")
    need(compiler[0])
    r = run(*compiler, "-w", "-fsyntax-only", source)
    expect(r.status == 0 and objects, compiler, r)
    return len(lines)


def clang(abi):
    # The list of functions that a libc lacks is all that is missing here for i386 and BPF.
    stubs = os.path.dirname(os.path.dirname(write("stand-in/gnu/stubs.h", "")))
    words = ["clang", f"--target={TRIPLES[abi]}"]
    return words if abi == "x86-64" else [*words, "-idirafter", stubs, "-idirafter", HERE]


# ---- real headers

HEADERS = {
    "stdlib.h":
    "size_t n; div_t d; lldiv_t l; struct random_data r; struct drand48_data e;", "stdio.h":
    "FILE f; fpos_t p; off_t o; va_list *v; struct _IO_FILE *g;", "math.h":
    "float_t f; double_t d; _Float64 g; _Float32x h;", "stdint.h":
    "int8_t c; int64_t a; intptr_t p; uint_fast16_t f; intmax_t m; uint_least32_t l;",
    "linux/types.h":
    "__u8 c; __u64 a; __kernel_size_t n; __kernel_long_t l; __aligned_u64 u; __kernel_fd_set s;",
}


@claim_each(*HEADERS)
def a_header_is_read_for_every_abi_that_its_machine_serves(name):
    need("clang")
    if not os.path.isdir(HERE):
        raise Skip(f"there is no {HERE}")
    text = f"#include <{name}>\nstruct probe {{ char first; {HEADERS[name]} }};\n"
    path = write("probe.h", text)
    for abi in ("x86-64", "i386", "x32", "bpf"):
        r = cairn("layout", "--abi", abi, path, "probe", "--json")
        told = f"note: for {abi}, {path} includes headers of this machine ({HERE})"
        expect(r.status == 0 and (told in r.err) == (abi != "x86-64"), abi, r)
        assert_agrees(clang(abi), text, r.objects())
    r = cairn("layout", "--abi", "x86-64,i386,bpf", path, "probe", "--json")
    expect(r.status == 1 and [o["abi"] for o in r.objects()][0] == ["x86-64", "i386"], r)
    r = cairn("layout", "--abi", "i386", "--via-compiler", path, "probe", "--json")
    expect(r.status == 0 and "includes headers of this machine" in r.err, r)
    assert_agrees(clang("i386"), text, r.objects())


@claim_each("arm", "s390x", "aarch64")
def of_another_machine_the_size_of_long_is_right(abi):
    need("clang")
    if os.path.isdir(f"/usr/{TRIPLES[abi]}/include") or not os.path.isdir(HERE):
        raise Skip(f"headers of {abi} are installed, or this machine's are elsewhere")
    text = "#include <stdint.h>\n#include <linux/types.h>\nstruct probe { char c; %s p; %s m; %s f; %s a; %s l; };\n"
    path = write("probe.h",
                 text % ("intptr_t", "intmax_t", "int_fast16_t", "__u64", "__kernel_ulong_t"))
    r = cairn("layout", "--abi", abi, path, "probe", "--json")
    expect(r.status == 0 and "declarations that differ between machines are as on x86-64" in r.err,
           r)
    plain = "struct probe { char c; %s p; %s m; %s f; %s a; %s l; };\n"
    # int_fast16_t is the libc's choice: long there.
    assert_agrees(
        ["clang", f"--target={TRIPLES[abi]}"], plain
        % ("__INTPTR_TYPE__", "__INTMAX_TYPE__", "__INTPTR_TYPE__", "long long", "unsigned long"),
        r.objects())


@claim
def windows_has_headers_of_its_own():
    need("clang")
    r = cairn("layout", "--abi", "windows-x64",
              write("w.h", "#include <stdlib.h>\nstruct s { int x; };\n"))
    expect(r.status == 2 and "for windows-x64; -I DIR names folders of headers" in r.err, r)
    own = os.path.dirname(write("own/stdlib.h", "typedef unsigned long long size_t;\n"))
    r = cairn("layout", "--abi", "windows-x64", "-I", own, "--json",
              write("w.h", "#include <stdlib.h>\nstruct s { char c; size_t n; };\n"), check=True)
    expect(r.objects()[0]["size"] == 16 and not r.err, r)


@claim
def a_refusal_names_the_way_through_the_compiler():
    text = "struct s { char a[_Generic(1, int: 3, default: 5)]; };\n"
    r = cairn("layout", write("generic.h", text))
    expect(r.status == 4 and "generic.h:1:" in r.err and '"cairn layout --via-compiler"' in r.err,
           r)
    need("clang")
    r = cairn("layout", "--via-compiler", write("generic.h", text), "--json", check=True)
    expect(r.objects()[0]["size"] == 3, r)


@claim
def several_abis_are_compared_with_the_first():
    path = write("e.h", "struct e { long a; long long b; }; struct same { int x; };\n")
    r = cairn("layout", path, "--abi", "bpf,i386,x86-64,arm")
    expect(r.status == 1 and "struct e: 16 bytes on bpf, 12 on i386" in r.out, r)
    expect(
        "struct e: 16 bytes on bpf, 16 on arm" in r.out and "x86-64" not in r.out
        and "same" not in r.out, r)
    r = cairn("layout", path, "nothing", "--abi", "bpf,i386,arm")
    expect(r.status == 1 and r.err.count("nothing") == 1, r)
    for words in (["--diff", path], ["--lock", path]):
        r = cairn("layout", *words, path, "--abi", "bpf,i386")
        expect(r.status == 2 and "take one ABI" in r.err, r)
    r = cairn("layout", path, "--html", "--abi", "bpf,i386,arm")
    expect(r.status == 2 and "--html two" in r.err, r)


# ---- types that one compiler has, or that an ABI lacks

# struct n { char c; TYPE t; } for each; the compilers that know them.
GCC = [
    "_Decimal32", "_Decimal64", "_Decimal128", "_Float128", "_Float64x", "_Complex _Float128",
    "_Complex int", "unsigned char _Complex", "_Complex long long"
]
CLANG = [
    "_BitInt(7)", "unsigned _BitInt(1)", "_BitInt(17)", "unsigned _BitInt(33)", "_Complex short",
    "__float128"
]


def structs(types):
    return "".join(f"struct s{i} {{ char c; {kind} t; }};\n" for i, kind in enumerate(types))


@claim_each("x86-64", "i386")
def types_of_gcc_are_laid_out_as_by_gcc(abi):
    text = structs(GCC)
    r = cairn("layout", "--abi", abi, write("gcc.h", text), "--json", check=True)
    expect(len(r.objects()) == len(GCC), r)
    assert_agrees(["gcc", "-m64" if abi == "x86-64" else "-m32"], text, r.objects())


@claim_each("x86-64", "i386", "s390x", "arm", "windows-x64")
def types_of_clang_are_laid_out_as_by_clang(abi):
    types = CLANG[:-1] if abi in ("s390x", "arm", "windows-x64") else CLANG
    text = structs(types)
    r = cairn("layout", "--abi", abi, write("clang.h", text), "--json", check=True)
    expect(len(r.objects()) == len(types), r)
    assert_agrees(["clang", f"--target={TRIPLES[abi]}"], text, r.objects())


@claim_each("_Decimal64 bpf", "_Float128 arm", "__float128 aarch64", "_BitInt(9) bpf",
            "__ibm128 x86-64", "__int128 i386")
def what_an_abi_lacks_is_refused_with_its_name(case):
    kind, abi = case.split()
    r = cairn("layout", "--abi", abi, write("none.h", f"struct s {{\n\tchar c; {kind} t;\n}};\n"))
    expect(r.status == 4 and f"none.h:2:10: the ABI {abi} has no {kind.split('(')[0]}" in r.err, r)


@claim_each_of_many("gcc", "clang")
def such_types_of_debug_information_are_laid_out_for_another_abi(compiler):
    need(compiler)
    types = GCC[:-2] if compiler == "gcc" else [
        "_Complex int", "_BitInt(17)", "unsigned _BitInt(40)"
    ]
    text = structs(types)
    source = write("types.c", text + "".join(f"struct s{i} v{i};\n" for i in range(len(types))))
    compiled = os.path.join(folder(), "types.o")
    run(compiler, "-g", "-c", "-o", compiled, source, check=True)
    for abi in ("i386", "x32"):
        theirs = cairn("layout", "--no-sidecar", "--abi", abi, compiled, "--json",
                       check=True).objects()
        ours = cairn("layout", "--abi", abi, write("types.h", text), "--json", check=True).objects()
        places = [[(o["name"], o["size"], [m["offset"]
                                           for m in o["members"]])
                   for o in side]
                  for side in (ours, theirs)]
        expect(sorted(places[0]) == sorted(places[1]), abi, *places)


@claim
def which_bits_of_a_bit_int_are_its_value_is_not_guessed():
    need("clang")
    text = "struct s { _BitInt(17) x; int y; };\n"
    source = write(
        "bits.c", text + """#include <stdio.h>
#include <string.h>
__attribute__((noinline)) void set(struct s *s, int v) { s->x = v; s->y = v; }
int main(void) { struct s s; memset(&s, 0xaa, sizeof(s)); set(&s, -1); return fwrite(&s, sizeof(s), 1, stdout) != 1; }
""")
    program, record = os.path.join(folder(), "bits"), os.path.join(folder(), "record")
    run("clang", "-O2", "-g", "-o", program, source, check=True)
    run("sh", "-c", 'exec "$0" > "$1"', program, record, check=True)
    with open(record, "rb") as file:
        stored = int.from_bytes(file.read(4), "little")
    expect(stored & 0x1ffff == 0x1ffff, hex(stored))
    for words in (["--no-sidecar", program], [write("bits.h", text)]):
        r = cairn("decode", *words, "s", record, check=True)
        expect(r.out.strip() == f"{{.x = {stored:#x}, .y = -1}}", r)


@claim_each("x86-64", "i386")
def the_proof_knows_what_lies_in_a_struct(abi):
    """As v4l2_dv_timings_cap: packed costs nothing, and takes the alignment all the same. And types
    without a word of their own."""
    text = """struct in { unsigned long long a; int b[6]; } __attribute__((packed));
struct out { int x, pad, r[2]; union { struct in in; int raw[32]; }; char c; _Complex int d; _Decimal64 e; };
"""
    need("gcc")
    r = cairn("layout", "--abi", abi, write("out.h", text), "out", "-R", "--verify")
    expect(r.status == 0 and "/* verified: size and offsets are those of " in r.out, r)


MS_STRUCT = """
struct A { long long a : 31; int b; unsigned long : 0; } __attribute__((ms_struct));
struct B { int a : 2 __attribute__((packed)); } __attribute__((ms_struct));
#pragma pack(push, 1)
struct C { short c : 14 __attribute__((aligned(4))); char d; } __attribute__((ms_struct));
struct D { char a; _Alignas(32) int d; } __attribute__((ms_struct));
#pragma pack(pop)
struct E { char a; double b[2]; long long c : 3; short : 0; char d; } __attribute__((ms_struct));
"""


@claim_each("gcc -m32", "gcc", "clang --target=i686-linux-gnu",
            "clang --target=arm-linux-gnueabihf", "clang")
def ms_struct_is_laid_out_as_by(compiler):
    abi = "i386" if "32" in compiler or "686" in compiler else "arm" if "arm" in compiler else "x86-64"
    r = cairn("layout", "--abi", abi, write("ms.h", MS_STRUCT), "--json", check=True)
    objects = r.objects()
    expect(len(objects) == 5, r)
    if compiler.startswith("gcc"):
        # A bit-field that is packed does not raise the alignment there.
        del objects[1]["align"]
    assert_agrees(compiler.split(), MS_STRUCT, objects)


@claim
def arrays_of_elements_aligned_to_more_than_they_have_are_refused():
    text = "typedef short high __attribute__((aligned(8)));\nstruct s { high a[3]; };\n"
    r = cairn("layout", write("high.h", text))
    expect(
        r.status == 4
        and "high.h:2:18: an array of elements of 2 bytes that are aligned to 8" in r.err, r)
    need("gcc")
    expect(run("gcc", "-fsyntax-only", write("high.c", text)).status != 0)


main()
