#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn bind: the accessors of each language read the same bytes, and print what C reads through
the struct itself.

bindings.py has the programs that do it; here is what is compared, and what else holds.
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bindings import RUNNERS, java_tools, rustc  # noqa: E402
from claims import (cairn, claim, claim_each, claim_each_of_many, expect, folder,  # noqa: E402
                    main, need, plainly, run, write)
from records import PREAMBLE, Structs, c_values  # noqa: E402

STRUCTS, RECORDS = 12, 6


def bit_fields(prefix):
    """Structs of bit-fields of any width that begin anywhere: those of 58 bits and more may touch
    nine bytes."""
    return "".join(
        f"struct {prefix}{shift}_{width} {{ unsigned long long : {shift}; unsigned long long a : {width}; "
        f"long long b : {65 - width}; char last; }} __attribute__((packed));\n"
        for shift in (1, 4, 7)
        for width in (1, 8, 31, 33, 58, 63, 64))


def here():
    """Structs of this machine in either byte order, as its compiler describes them."""
    structs, swapped = Structs(STRUCTS, "here"), Structs(STRUCTS // 2, "swapped",
                                                         order="big-endian", prefix="sw")
    structs.append(bit_fields("sb") + swapped.text.replace(PREAMBLE, ""))
    source = write("here.c", structs.text + "".join(f"struct {n} v_{n};\n" for n in structs.names))
    structs.path = os.path.join(folder(), "here.o")
    run(need("gcc"), "-w", "-g", "-c", "-o", structs.path, source, check=True)
    layouts = structs.fields()
    fields = [f for layout in layouts.values() for f in layout["fields"]]
    expect(
        any(f["big_endian"] and "bits" in f for f in fields)
        and any(f["size"] == 9 for f in fields), layouts)
    data = structs.records(layouts, RECORDS)
    return structs, layouts, data, (), c_values(structs, layouts, data)[1]


def elsewhere():
    """Declarations laid out for a machine of the other byte order, and what C reads on its
    emulator."""
    words = ("--abi", "s390x")
    structs = Structs(STRUCTS, "elsewhere")
    structs.append(bit_fields("sb"))
    layouts = structs.fields(*words)
    data = structs.records(layouts, RECORDS)
    compiler = shutil.which("s390x-linux-gnu-gcc")
    runner = shutil.which("qemu-s390x") or shutil.which("qemu-s390x-static")
    if compiler and runner:
        return structs, layouts, data, words, c_values(structs, layouts, data, compiler,
                                                       ("-static",), (runner,))[1]
    # Without them all languages are still compared with one another.
    return structs, layouts, data, words, RUNNERS["python"](structs, data, words)


_truth = {}


# The others' functions for the other byte order are in what is here, too;
# tests/truth/bindings_against_c.py has all of them.
@claim_each(
    *plainly(*(f"{lang}, here" for lang in RUNNERS), "c, elsewhere", "python, elsewhere",
             "go, elsewhere", "java, elsewhere"))
def accessors_read_and_write_what_the_compiler_does(case):
    lang, place = case.split(", ")
    if place not in _truth:
        _truth[place] = here() if place == "here" else elsewhere()
    structs, layouts, data, words, truth = _truth[place]
    compare(lang, place, structs, layouts, truth, RUNNERS[lang](structs, data, words))


@claim_each("rust", "python", "go", "java", "typescript")
def what_the_language_can_say_is_in_its_struct(lang):
    """The drivers compare what is in there; this is that it is."""
    structs = (_truth.get("here") or here())[0]
    count = {True: 0, False: 0}
    for layout in structs.fields("--lang", lang).values():
        for f in layout["fields"]:
            count[bool(f["in_struct"])] += 1
            if lang in ("java", "typescript"):
                expect(f["in_struct"], layout["struct"], f)
            elif "bits" in f or (f["big_endian"] and f["size"] > 1
                                 and f["kind"] in ("int", "float")):
                expect(not f["in_struct"], layout["struct"], f)
            elif lang == "rust" or (lang == "python" and f["size"] < 16):
                expect(f["in_struct"], layout["struct"], f)
    # Go has no unions, and packs nothing.
    print(f"# {lang}: {count[True]} of {sum(count.values())} members")
    expect(lang != "go" or count[True] > 30, count)


def compare(lang, abi, structs, layouts, truth, said):
    count = 0
    for name in structs.names:
        fields = {f["name"]: f for f in layouts[name]["fields"]}
        for n, (a, b) in enumerate(zip(truth[name], said[name])):
            expect(len(a) == len(b), name, n, len(a), len(b))
            for x, y in zip(a, b):
                count += 1
                # A NaN may be made quiet on the way through a language.
                quiet = fields[x[0].split()[0]]["kind"] == "float" and int(x[1]) ^ int(y[1]) in (
                    1 << 22, 1 << 51)
                expect(x == y or quiet, name, n, x, y, fields[x[0].split()[0]])
    print(f"# {lang}, {abi}: {count} values equal")


EVENT = (
    "struct peer { unsigned short port; unsigned char address[4]; };\n"
    "struct event { unsigned int pid; struct peer peers[2]; char comm[16]; long double wide; unsigned kind : 3;\n"
    "  int peers_port; unsigned long tail[]; };\n")


@claim
def c_compares_a_struct_of_the_user_at_compile_time():
    need("gcc")
    path = write("event.h", EVENT)
    cairn("bind", "--lang", "c", path, "event", "-o", os.path.join(folder(), "event_bind.h"),
          check=True)
    for text, status in ((EVENT, 0), (EVENT.replace("unsigned int pid;", "unsigned long pid;"), 1)):
        source = write(
            "assert.c", text + "#define EVENT_TYPE struct event\n#include \"event_bind.h\"\n"
            "int main(void) { return 0; }\n")
        r = run("gcc", "-fsyntax-only", source)
        expect(r.status == status, r)
        expect(not status or "offset of" in r.err, r)


@claim
def rust_compares_a_struct_of_the_user_at_compile_time_and_needs_core_only():
    need("rustc")
    path = write("event.h", EVENT)
    cairn("bind", "--lang", "rust", path, "peer", "-o", os.path.join(folder(), "peer.rs"),
          check=True)
    for port, status in (("u16", 0), ("u32", 1)):
        source = write(
            "lib.rs", "#![no_std]\n#[macro_use]\npub mod peer;\n#[repr(C)]\n"
            f"pub struct Mine {{ port: {port}, address: [u8; 4] }}\npeer_assert!(Mine, port = 0, address = 2);\n"
        )
        r = run("rustc", "--edition", "2021", "--crate-type", "lib", "--emit", "metadata", "-A",
                "dead_code", "--out-dir", folder(), source)
        if not status and r.status and ("rustup" in r.err or "offset_of" in r.err):
            raise Skip("needs Rust 1.77: " + r.err.splitlines()[0])
        expect((r.status != 0) == (status != 0), r)


@claim
def records_that_are_too_short_and_indices_beyond_the_end_are_refused():
    path = write("event.h", EVENT)
    cairn("bind", "--lang", "python", path, "event", "-o", os.path.join(folder(), "event.py"),
          check=True)
    code = (
        "import event\ntry:\n  event.Event(bytes(10)); print('taken')\nexcept ValueError as e: print('short')\n"
        "e = event.Event(bytearray(event.Event.SIZE + 16))\ne.set_tail(1, 77)\nprint(e.get_tail(1), e.pid)\n"
        "for bad in (lambda: e.get_tail(100), lambda: e.get_peers_port(2), lambda: e.get_peers_port(-1)):\n"
        "  try:\n    bad(); print('taken')\n  except IndexError: print('refused')\n")
    r = run(sys.executable, "-c", code, cwd=folder(), check=True)
    expect(r.lines() == ["short", "77 0", "refused", "refused", "refused"], r)
    # Two members that would have one name: the later one has a number.
    names = [
        f["name"] for f in cairn("bind", "--json", path, "event", check=True).objects()[0]["fields"]
    ]
    expect("peers_port" in names and "peers_port_2" in names, names)


FLEXIBLE = """
struct list { unsigned n; struct { short a; int b; } in[]; };
struct all { unsigned n; unsigned bits : 3; float f; double d; char text[4]; _Bool yes; int m[2][3]; unsigned char tail[]; };
"""


@claim
def a_python_module_with_a_flexible_array_is_imported_and_reads_it():
    path = write("flexible.h", FLEXIBLE)
    cairn("bind", "--lang", "python", path, "list", "all", "-o",
          os.path.join(folder(), "flexible.py"), check=True)
    write("flexible_use.py", "import flexible, struct\n"
          "r = flexible.List(bytearray(struct.pack('<Ihxxihxxi', 2, 3, 4, 5, 6)))\n"
          "print([(r.get_in_a(i), r.get_in_b(i)) for i in range(r.n)])\n"
          "try:\n    r.get_in_a(2)\nexcept IndexError:\n    print('refused')\n")
    r = run(sys.executable, os.path.join(folder(), "flexible_use.py"))
    expect(r.status == 0 and r.out == "[(3, 4), (5, 6)]\nrefused\n", r)


TAKEN = "".join(f"struct {name} {{ char t[4]; int n; }};\n" for name in (
    "self", "record", "string", "objects", "some", "data_view", "new_one", "one"))
# Words of some language; names that come out equal; and what a linter knows the meaning of.
MEMBERS = [
    "type", "self", "crate", "match", "fn", "async", "yield", "None", "True", "lambda", "pass",
    "final", "native", "func", "go", "chan", "range", "constructor", "view", "bytes", "SIZE", "new",
    "len", "next", "into_it", "from_it", "as_mut", "eq", "clone", "getClass", "hashCode",
    "read_byte", "ReadByte", "MaxLen", "max_len", "maxLen", "MAX_LEN", "set_size", "size", "get_x",
    "x", "__pad", "_1", "_", "__proto__", "HTTPPort", "a__b", "std", "core", "mro", "name", "value",
    "at", "rec", "i0", "b", "v", "r"
]
TAKEN += ("struct words {\n" + "".join(f"  int {name};\n" for name in MEMBERS)
          + "  struct { short a[2]; } _a[2], a_[2];\n" + "".join(f"  unsigned {name}_bits : 3;\n"
                                                                 for name in MEMBERS)
          + "  char in[3][2][2][2][2][2][2][2];\n};\n" + "enum words2 { " + ", ".join(
              f"{name}2" if name in ("next", "x", "at") else name for name in MEMBERS) + " };\n"
          "struct w2 { enum words2 e; };\n")


def strictly(lang, path):
    """The bindings of a file, as a tool takes them that reports all that it knows to report."""
    if lang == "c":
        for compiler, more in (("gcc", "-Wconversion"), ("clang", "-Wextra")):
            if shutil.which(compiler):
                run(compiler, "-fsyntax-only", "-x", "c", "-std=c11", "-pedantic", "-Wall",
                    "-Wextra", "-Werror", "-Wno-sign-conversion", "-Wno-unused-function",
                    "-Wno-pragma-once-outside-header", more, path, check=True)
    elif lang == "rust":
        compiler = rustc()
        lints = ("-D", "clippy::all") if compiler == "clippy-driver" else ()
        run(compiler, "--edition", "2021", "-D", "warnings", *lints, "--crate-type", "lib",
            "--emit", "metadata", "-o", os.path.join(folder(), "strict.rmeta"), path, check=True)
    elif lang == "java":
        javac, _ = java_tools()
        run(*javac, "-Xlint:all", "-Werror", "-d", os.path.join(folder(), "classes"), path,
            check=True)
    elif lang == "python":
        run(sys.executable, "-W", "error", path, check=True)
        if shutil.which("mypy"):
            run("mypy", "--strict", "--cache-dir", os.path.join(folder(), "mypy"), path, check=True)
    elif lang == "go":
        need("go")
        run("go", "vet", path, check=True, seconds=200, env=dict(os.environ, GOTOOLCHAIN="local"))
        expect(not run("gofmt", "-l", path, check=True).out, "gofmt would change the file")
    else:
        # A library without the browser's types, as in a worker of its own.
        run(need("tsc"), "--strict", "--skipLibCheck", "--noImplicitReturns", "--noEmit",
            "--target", "es2020", "--lib", "es2020", "--typeRoots",
            os.path.join(folder(), "no-types"), path, check=True, seconds=200)

FILES = {
    "c": "made.h", "rust": "made.rs", "java": "Records.java", "python": "made.py", "go": "made.go",
    "typescript": "made.ts"
}


def made(lang, path, *types):
    out = os.path.join(folder(), FILES[lang])
    cairn("bind", "--lang", lang, path, *types, "-o", out, check=True)
    return out


@claim_each(*RUNNERS)
def names_that_are_words_of_a_language_or_come_out_equal_are_no_warning(lang):
    path = write("taken.h", TAKEN)
    out = made(lang, path, "*", "enum words2")
    text = open(out, encoding="utf-8").read()
    for name in ("Self_", "Record_", "String_", "Objects_", "Some_"):
        expect(lang == "c" or re.search(rf"(class|struct|type) {name}\b", text), name, text)
    strictly(lang, out)
    # All are there, by names that are different.
    for o in cairn("bind", "--lang", lang, "--json", path, "words", "enum words2",
                   check=True).objects():
        if "fields" in o:
            pairs = [{f["get"], f["set"]} for f in o["fields"]]
            expect(len(pairs) == 2 * len(MEMBERS) + 3, len(pairs))
            for n, one in enumerate(pairs):
                expect(not any(one & other for other in pairs[:n]), one)
        else:
            expect(len({c["constant"] for c in o["constants"]}) == len(MEMBERS), o)


@claim_each(*RUNNERS)
def names_are_those_of_the_language(lang):
    path = write("event.h", EVENT)
    fields = cairn("bind", "--lang", lang, "--json", path, "event",
                   check=True).objects()[0]["fields"]
    named = {f["path"]: (f["get"], f["set"]) for f in fields}
    wanted = {
        "c": ("get_pid", "set_pid", "get_peers_port", "set_peers_port"), "rust":
        ("pid", "set_pid", "peers_port", "set_peers_port"), "java":
        ("getPid", "setPid", "getPeersPort", "setPeersPort"), "go":
        ("Pid", "SetPid", "PeersPort", "SetPeersPort"), "python":
        ("get_pid", "set_pid", "get_peers_port", "set_peers_port"), "typescript":
        ("pid", "pid", "getPeersPort", "setPeersPort")
    }[lang]
    expect((*named["pid"], *named["peers[0].port"]) == wanted, named)


ENUMS = """
enum color { RED, GREEN = -5, BLUE = 7, AZURE = 7, LOWEST = -2147483647 - 1, HIGHEST = 2147483647 };
enum shade { S_RED, S_MOST = 0xffffffff };
enum __attribute__((packed)) tiny { T_A, T_B = 255 };
enum __attribute__((packed)) small { M_A = -128, M_B = 127 };
enum wide { W_A = 1, W_B = 0x123456789abcdef, W_C = 0xffffffffffffffff };
enum deep { D_A = -1, D_B = (-9223372036854775807LL - 1), D_C = 9223372036854775807LL };
typedef enum { LOW = 1, HIGH } level;
struct has { enum color color; enum shade shade; enum tiny tiny; enum small small; enum wide wide; enum deep deep; level level;
  enum { INNER = 3 } inner; enum color bits : 9; enum { INNER_2 = 3 } loose : 4; };
"""
VALUES = {
    "color": {"RED": 0, "GREEN": -5, "BLUE": 7, "AZURE": 7, "LOWEST": -2**31, "HIGHEST":
              2**31 - 1}, "shade": {"S_RED": 0, "S_MOST":
                                    2**32 - 1}, "tiny": {"T_A": 0, "T_B": 255}, "small":
    {"M_A": -128, "M_B": 127}, "wide": {"W_A": 1, "W_B": 0x123456789abcdef, "W_C": 2**64 - 1},
    "deep": {"D_A": -1, "D_B": -2**63, "D_C": 2**63 - 1}, "level": {"LOW": 1, "HIGH": 2},
    "has_inner": {"INNER": 3}, "has_loose": {"INNER_2": 3}
}


def enum_program(lang, enums):
    """A program that prints each constant: what it is called, and its number. (text, suffix, a
    function that runs it)"""
    every = [(e, c) for e in enums for c in e["constants"]]

    def lines(form):
        return "".join(
            form.format(e=e["class"], m=e.get("module"), c=c["constant"], n=c["name"])
            for e, c in every)

    def built(*command):
        run(*command, check=True, seconds=200)
        return [os.path.join(folder(), "constants")]

    out = os.path.join(folder(), "constants")
    if lang == "c":
        text = lines(
            '\tprintf({c} < 0 ? "{n} %lld\\n" : "{n} %llu\\n", (unsigned long long){c});\n')
        source = write(
            "constants.c", '#include <stdio.h>\n#include "made.h"\nint main(void)\n{\n' + text
            + "\treturn 0;\n}\n")
        return built(need("gcc"), "-w", "-o", out, source)
    if lang == "rust":
        source = write(
            "constants.rs", "mod made;\nfn main() {\n"
            + lines('    println!("{n} {{}}", made::{m}::{c});\n') + "}\n")
        rustc()
        return built("rustc", "--edition", "2021", "-D", "warnings", "-C", "debuginfo=0", "-o", out,
                     source)
    if lang == "python":
        return [
            sys.executable,
            write("constants.py", "from made import *\n" + lines("print('{n}', int({e}.{c}))\n"))
        ]
    if lang == "java":
        javac, java = java_tools()
        text = "{ static String s(long v) { return Long.toString(v); }\n  public static void main(String[] a) {\n"
        # Of unsigned 64 bits there is no type.
        text += "".join(
            f'    System.out.println("{c["name"]} " + ' +
            (f'Long.toUnsignedString(Records.{e["class"]}.{c["constant"]})' if e["size"] == 8
             and not e["signed"] else f's(Records.{e["class"]}.{c["constant"]})') + ");\n"
            for e, c in every)
        run(*javac, "-Xlint:all", "-Werror", "-d", folder(), made_path(lang),
            write("Constants.java", "class Constants " + text + "} }\n"), check=True, seconds=200)
        return [*java, "-cp", folder(), "Constants"]
    if lang == "go":
        where = os.path.join(folder(), "constants-go")
        os.makedirs(os.path.join(where, "records"), exist_ok=True)
        shutil.copy(made_path(lang), os.path.join(where, "records", "made.go"))
        write("constants-go/go.mod", "module bound\n\ngo 1.18\n")
        write(
            "constants-go/main.go",
            'package main\n\nimport (\n\t"bound/records"\n\t"fmt"\n)\n\nfunc main() {\n'
            + lines('\tfmt.Println("{n}", records.{c})\n') + "}\n")
        run(need("go"), "build", "-o", out, ".", cwd=where, check=True, seconds=200, env=dict(
            os.environ, GOTOOLCHAIN="local"))
        return [out]
    source = write(
        "constants.ts",
        'import * as made from "./made";\ndeclare const console: { log(text: string): void };\n'
        + lines("console.log(`{n} ${{made.{e}.{c}}}`);\n"))
    run(need("tsc"), "--strict", "--skipLibCheck", "--target", "es2020", "--lib", "es2020",
        "--module", "commonjs", "--typeRoots", os.path.join(folder(), "no-types"), "--outDir",
        folder(), source, check=True, seconds=200)
    return [need("node"), os.path.join(folder(), "constants.js")]


def made_path(lang):
    return os.path.join(folder(), FILES[lang])


@claim_each(*RUNNERS)
def enumerators_are_constants_of_their_values(lang):
    path = write("enums.h", ENUMS)
    enums = [
        o for o in cairn("bind", "--lang", lang, "--json", path, "has", check=True).objects()
        if "constants" in o
    ]
    expect({e["name"]: {c["name"]: c["value"]
                        for c in e["constants"]}
            for e in enums} == VALUES, enums)
    out = made(lang, path, "has")
    # javac is as strict below.
    if lang != "java":
        strictly(lang, out)
    said = run(*enum_program(lang, enums), check=True).lines()
    expect(said == [f"{name} {value}" for e in enums for name, value in VALUES[e["name"]].items()],
           said)
    # An enum alone; and in the debug information of a compiler.
    expect(cairn("bind", "--lang", lang, path, "enum color", check=True).out.count("GREEN") == 1)
    need("gcc")
    source = write("enums.c", ENUMS + "struct has has;\n")
    run("gcc", "-w", "-g", "-c", "-o", os.path.join(folder(), "enums.o"), source, check=True)
    again = [
        o for o in cairn("bind", "--lang", lang, "--json", os.path.join(folder(), "enums.o"), "has",
                         check=True).objects() if "constants" in o
    ]
    expect(again == enums, again, enums)


@claim
def a_constant_is_what_the_accessor_returns():
    compiler = rustc()
    path = write("enums.h", ENUMS)
    made("rust", path, "has")
    # Types that differ do not compile.
    source = write(
        "compare.rs", "mod made;\nuse made::*;\nfn main() {\n    let mut b = [0u8; 64];\n"
        "    let mut h = Has::new(&mut b[..]).unwrap();\n    h.set_bits(color::GREEN);\n    h.set_deep(deep::D_B);\n"
        "    h.set_loose(has_loose::INNER_2);\n    h.set_small(small::M_A);\n"
        "    assert!(h.bits() == color::GREEN && h.deep() == deep::D_B && h.loose() == 3 && h.small() == small::M_A);\n}\n"
    )
    program = os.path.join(folder(), "compare")
    run(compiler and "rustc", "--edition", "2021", "-o", program, source, check=True)
    run(program, check=True)


@claim
def a_java_class_holds_a_struct_of_thousands_of_members():
    javac, java = java_tools()
    n = 3000
    text = ("struct big {\n" + "".join(
        f"  int member_{i} : 7;\n" if i % 10 == 9 else f"  long member_{i};\n"
        for i in range(n)) + "};\n"
            "enum many { " + ", ".join(f"CONSTANT_{i}" for i in range(9000)) + " };\n")
    path = write("big.h", text)
    records = made("java", path, "big", "enum many")
    write(
        "Big.java",
        "import java.lang.foreign.*;\nclass Big { public static void main(String[] a) {\n"
        "  MemorySegment s = Arena.ofAuto().allocate(Records.Big.LAYOUT);\n"
        f"  Records.Big.setMember0(s, 5); Records.Big.setMember{n - 1}(s, -3); Records.Big.setMember{n - 2}(s, 7);\n"
        f"  System.out.println(Records.Big.getMember0(s) + Records.Big.getMember{n - 1}(s) * 10 + Records.Big.getMember{n - 2}(s)\n"
        "    + \" \" + Records.Many.CONSTANT_0 + \" \" + Records.Many.CONSTANT_8999);\n} }\n")
    run(*javac, "-Xlint:all", "-Werror", "-d", folder(), records, os.path.join(
        folder(), "Big.java"), check=True, seconds=300)
    r = run(*java, "-cp", folder(), "Big", check=True)
    expect(r.out.split() == ["-18", "0", "8999"], r)


@claim_each(*RUNNERS)
def flexible_arrays_are_no_warning(lang):
    path = write(
        "loose.h", "struct loose { int n; struct { unsigned char c; short s[2]; } in[]; };\n"
        "struct bytes { int n; unsigned char tail[]; };\nstruct text { int n; char tail[]; };\n")
    strictly(lang, made(lang, path, "loose", "bytes", "text"))


@claim_each(*RUNNERS)
def an_index_that_wraps_around_is_refused(lang):
    """An element of a flexible array beyond the end, whose offset is that of a member when it is
    cut to 64 bits."""
    path = write("tail.h",
                 "struct tail { unsigned long n; struct { unsigned long a[2]; } in[]; };\n")
    made(lang, path, "tail")
    far = 1 << 60
    if lang == "c":
        use = write("wrap.c", '#include "made.h"\nint main(void) { unsigned char r[40] = {0}; '
                    f"return (int)tail_get_in_a(r, sizeof(r), {far}ul, 0) + 1; }}\n")
        run(need("gcc"), "-w", "-o", os.path.join(folder(), "wrap"), use, check=True)
        expect(run(os.path.join(folder(), "wrap")).status == -6)
        return
    if lang == "rust":
        rustc()
        use = write(
            "wrap.rs",
            f"mod made;\nfn main() {{ let r = [0u8; 40]; made::Tail::new(&r[..]).unwrap().in_a({far}, 0); }}\n"
        )
        # Overflows of sums and products are not looked for in a release.
        run("rustc", "--edition", "2021", "-O", "-A", "dead_code", "-o",
            os.path.join(folder(), "wrap"), use, check=True)
        expect(run(os.path.join(folder(), "wrap")).status == 101)
        return
    if lang == "python":
        r = run(sys.executable, "-c", f"import made\nmade.Tail(bytes(40)).get_in_a({far}, 0)\n",
                cwd=folder())
        expect("IndexError" in r.err, r)
        return
    if lang == "java":
        javac, java = java_tools()
        use = write(
            "Wrap.java", "class Wrap { public static void main(String[] a) {\n"
            f"  for (long i : new long[] {{ {far}L, -1 }}) try {{\n"
            "    Records.Tail.getInA(java.lang.foreign.MemorySegment.ofArray(new byte[40]), i, 0);\n"
            "  } catch (IndexOutOfBoundsException e) { System.out.println(\"refused\"); }\n} }\n")
        run(*javac, "-d", folder(), made_path(lang), use, check=True)
        expect(run(*java, "-cp", folder(), "Wrap").lines() == ["refused", "refused"])
        return
    if lang == "go":
        where = os.path.join(folder(), "wrap-go")
        os.makedirs(where, exist_ok=True)
        cairn("bind", "--lang", "go", "--package", "main", path, "tail", "-o",
              os.path.join(where, "made.go"), check=True)
        write("wrap-go/go.mod", "module wrap\n\ngo 1.18\n")
        write(
            "wrap-go/main.go",
            f"package main\n\nfunc main() {{ t, _ := NewTail(make([]byte, 40)); t.InA({far}, 0) }}\n"
        )
        run(need("go"), "build", "-o", "wrap", ".", cwd=where, check=True, env=dict(
            os.environ, GOTOOLCHAIN="local"), seconds=200)
        expect("elements" in run(os.path.join(where, "wrap")).err)
        return
    use = write(
        "wrap.ts",
        f'import {{ Tail }} from "./made";\nnew Tail(new DataView(new ArrayBuffer(40))).getInA({far}, 0);\n'
    )
    run(need("tsc"), "--strict", "--skipLibCheck", "--target", "es2020", "--lib", "es2020",
        "--module", "commonjs", "--typeRoots", os.path.join(folder(), "no-types"), "--outDir",
        folder(), use, check=True)
    expect("RangeError" in run(need("node"), os.path.join(folder(), "wrap.js")).err)


@claim_each("rust", "python", "go")
def a_struct_that_is_laid_out_in_another_way_is_refused(lang):
    path = write("event.h", EVENT)
    out = made(lang, path, "peer")
    strictly(lang, out)
    text = open(out, encoding="utf-8").read()
    for old, new in {
            "rust": [("pub port: u16", "pub port: u32"),
                     ("pub address: [u8; 4]", "pub address: [u8; 5]"), ("[u8; 4]", "[u16; 2]")],
            "python": [('"port", ctypes.c_uint16', '"port", ctypes.c_uint32'),
                       ("(ctypes.c_uint8) * 4", "(ctypes.c_uint8) * 5")], "go":
        [("Port uint16", "Port uint32"), ("Address [4]uint8", "Address [5]uint8")]
    }[lang]:
        changed = text.replace(old, new)
        if lang == "rust":
            changed = changed.replace(
                "pub port: u16", "pub port: u16, pub other: u8") if new == "[u16; 2]" else changed
        expect(changed != text, old, text)
        write(os.path.basename(out), changed)
        if lang == "go":
            r = run("go", "vet", out, env=dict(os.environ, GOTOOLCHAIN="local"), seconds=200)
            expect(r.status != 0 and "invalid argument: index" in r.err, r)
        elif lang == "rust":
            r = run("rustc", "--edition", "2021", "-A", "warnings", "--crate-type", "lib", "--emit",
                    "metadata", "-o", os.devnull, out)
            expect(r.status != 0 and "assertion failed" in r.err, r)
        else:
            r = run(sys.executable, out)
            expect(r.status != 0 and "AssertionError" in r.err, r)


STRANGE = """
struct __attribute__((packed)) odd { char c; unsigned long long n; float f; unsigned short h[3]; };
union either { unsigned a; struct { unsigned short lo, hi; } halves; char text[6]; };
struct __attribute__((packed)) five { unsigned n; char c; };
struct outer { char c; struct five five; struct odd odd; union either either[2]; unsigned bits : 5, more : 20; unsigned long last; };
"""


@claim_each("rust", "python", "go", "java", "typescript")
def packed_structs_unions_and_bit_fields_are_in_it_or_it_says_why_not(lang):
    path = write("strange.h", STRANGE)
    out = made(lang, path, "outer", "either", "odd")
    strictly(lang, out)
    text = open(out, encoding="utf-8").read()
    objects = cairn("bind", "--lang", lang, "--json", path, "outer", "either", "odd",
                    check=True).objects()
    fields = {(o["name"], f["path"]): f["in_struct"] for o in objects for f in o["fields"]}
    if lang == "go":
        expect(
            "No FiveStruct: its size is no multiple" in text
            and "No EitherStruct: Go has no unions" in text, text)
        expect(
            fields["outer", "last"] and fields["outer", "odd.c"] and not fields["outer", "odd.n"],
            fields)
        expect(not fields["outer", "five.n"], fields)
    else:
        expect(all(fields[key] for key in fields if "bits" not in key and "more" not in key[1]),
               fields)
        expect(bool(fields["outer", "bits"]) == (lang in ("java", "typescript")), fields)
    expect(lang != "rust" or ("#[repr(C, packed)]" in text and "pub union EitherStruct" in text),
           text)
    # More members than a constructor of Java takes arguments.
    wide = write(
        "wide.h", "struct wide {" + "".join(f" int m{i};" for i in range(300))
        + " }; struct has { struct wide w; int n; };\n")
    text = open(made(lang, wide, "has", "wide"), encoding="utf-8").read()
    expect(("No WideStruct: a record has up to 254 components" in text) == (lang == "java"), text)
    strictly(lang, made_path(lang))


@claim_each_of_many("g++", "clang++")
def the_c_header_is_usable_from_cxx(compiler):
    need(compiler)
    path = write("flexible.h", FLEXIBLE)
    cairn("bind", "--lang", "c", path, "list", "all", "-o", os.path.join(
        folder(), "flexible_bind.h"), check=True)
    use = write(
        "use.cc", '#include "flexible.h"\n#define ALL_TYPE struct all\n#include "flexible_bind.h"\n'
        "int main() { unsigned char r[64] = {0}; all_set_bits(r, 5); return all_get_bits(r) == 5 ? 0 : 1; }\n"
    )
    out = os.path.join(folder(), "use_cxx")
    run(compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-D_Bool=bool",
        "-Wno-unused-function", "-o", out, use, check=True)
    expect(run(out).status == 0)
    # And it still compares.
    wrong = write(
        "wrong.cc",
        open(use, encoding="utf-8").read().replace("ALL_TYPE struct all", "ALL_TYPE struct list"))
    expect(run(compiler, "-std=c++17", "-c", "-o", os.devnull, wrong).status != 0)


@claim
def bad_command_lines_are_usage_errors():
    path = write("event.h", EVENT)
    for words in (["bind"], ["bind", "--lang", "cobol", path, "event"], [
            "bind", "--lang", "c", path
    ], ["bind", "--lang", "c", "/no/such/file",
            "event"], ["bind", path,
                       "event"], ["bind", "--lang", "c", path, "event", "-o", "/no/such/folder/x"]):
        r = cairn(*words)
        expect(r.status == 2 and r.err and not r.out, r)


@claim
def one_name_that_no_type_has_is_enough_for_nothing_to_be_written():
    path = write("event.h", EVENT)
    out = os.path.join(folder(), "never")
    for names in (["event", "nosuch"], ["nosuch", "event"], ["nosuch"]):
        r = cairn("bind", "--lang", "c", path, *names, "-o", out)
        expect(
            r.status == 1 and r.err == "cairn: no type is named nosuch\n"
            and not os.path.exists(out), r)
        r = cairn("bind", "--json", path, *names)
        expect(r.status == 1 and not r.objects(), r)
        expect(r.errors() == [{"error": "no type is named nosuch", "status": 1}], r)


@claim
def a_package_is_a_name_of_its_language():
    path = write("event.h", EVENT)
    expect("package made\n" in cairn("bind", "--lang", "go", "--package", "made", path, "event",
                                     check=True).out)
    for lang, package in (("go", "a.b"), ("go", "func"), ("java", "1a"), ("java", "a..b")):
        expect(
            cairn("bind", "--lang", lang, "--package", package, path, "event").status != 0, lang,
            package)


SHARED = """\
typedef enum { ONE = 1, TWO } level;
enum named { SMALL, LARGE = 300 };
struct %s { level l; enum named n; int more[%d]; };
struct %s %s;
"""


@claim
def an_enum_of_several_units_is_written_once():
    need("gcc")
    for number, name in enumerate(("first", "second"), 1):
        write(f"{name}.c", SHARED % (name, number, name, "of_" + name))
    out = os.path.join(folder(), "shared.so")
    run("gcc", "-g", "-shared", "-o", out,
        *(os.path.join(folder(), f"{n}.c") for n in ("first", "second")), check=True)
    r = cairn("bind", "--lang", "c", out, "first", "second", "--no-sidecar", check=True)
    expect(
        r.out.count("ONE = 1") == 1 and r.out.count("LARGE = 300") == 1 and "level_2" not in r.out,
        r)
    types = [[f.get("enum")
              for f in o["fields"][:2]]
             for o in cairn("bind", "--json", out, "first", "second", "--no-sidecar",
                            check=True).objects()
             if "fields" in o]
    expect(types == [["level", "named"], ["level", "named"]], types)


main()
