#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout: structs from C, BTF and DWARF; pahole's text; ABIs compared."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import (SOURCE, Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect,
                    folder, main, need, run)
from records import accounted_bits  # noqa: E402

EVENT = "struct event { unsigned int e_pid; char e_filename[256]; char e_comm[16]; };\n"
PADDED = "struct padded_event { char c; long l; int i; void *x; };\n"
RUNNING = "/sys/kernel/btf/vmlinux"

# Headers with many structs, whatever else they have; each is preprocessed and laid out by the
# compiler and by us.
HEADERS = [
    "stdio.h", "stdlib.h", "sys/socket.h", "netinet/in.h", "pthread.h", "signal.h", "sys/stat.h",
    "sys/epoll.h", "netdb.h", "time.h", "linux/bpf.h", "linux/perf_event.h", "linux/if.h",
    "linux/btrfs.h", "linux/kvm.h", "linux/io_uring.h", "linux/videodev2.h", "linux/nl80211.h",
    "linux/if_ether.h", "linux/tcp.h", "sound/asound.h", "elf.h", "netinet/ip.h", "netinet/tcp.h",
    "linux/ipv6.h", "linux/cdrom.h", "linux/hdreg.h"
]


def header(text, name="decl.h"):
    path = os.path.join(folder(), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


@claim
def the_article_s_event_is_276_bytes():
    o = cairn("layout", header(EVENT), "--json", check=True).objects()[0]
    expect((o["name"], o["size"], o["align"]) == ("event", 276, 4), o)
    expect([m["offset"] for m in o["members"]] == [0, 4, 260], o)


@claim
def an_offset_that_only_run_time_knows_is_a_question_mark():
    source = os.path.join(folder(), "virtual.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write("struct A { int a; virtual ~A() {} };\nstruct B : virtual A { int b; } v;\n")
    run(need("g++"), "-g", "-c", source, "-o", source + ".o", check=True)
    shown = cairn("layout", source + ".o", "B", check=True).out
    line = next(i for i in shown.splitlines() if "<ancestor>" in i)
    expect(re.search(r"/\* +\? +16 \*/$", line), shown)
    expect(re.search(r" b; +/\* +8 +4 \*/", shown), shown)
    base = cairn("layout", source + ".o", "B", "--json", check=True).objects()[0]["members"][0]
    expect(base["dynamic"] is True, base)


@claim
def padded_event_has_two_holes_and_can_be_24_bytes():
    r = cairn("layout", header(PADDED), check=True)
    expect("/* sum members: 21, holes: 2, sum holes: 11 */" in r.out, r)
    r = cairn("layout", header(PADDED + EVENT), "--packable", check=True)
    expect(r.out == "padded_event\t32\t24\t8\n", r)
    r = cairn("layout", header(PADDED + EVENT), "--sizes", check=True)
    expect(r.out == "padded_event\t32\t2\nevent\t276\t0\n", r)


@claim
def two_abis_differ_with_exit_status_1():
    text = "struct event { int a, b; unsigned c; unsigned long long d; char e; }; struct same { int x; };\n"
    r = cairn("layout", header(text), "--abi", "bpf,i386")
    expect(r.status == 1, r)
    expect("struct event: 32 bytes on bpf, 24 on i386" in r.out and "same" not in r.out, r)
    expect("d " in r.out and "16 8 bytes" in r.out and "12 8 bytes" in r.out, r)
    r = cairn("layout", header(text), "same", "--abi", "bpf,i386")
    expect(r.status == 0 and not r.out, r)
    r = cairn("layout", header(text), "--abi", "bpf,i386", "--json")
    differing = {o["name"]: o["differing"] for o in r.objects()}
    kind = ["long long unsigned int"] * 2
    expect(
        differing == {
            "event": [{
                "name": "d", "change": "moved", "bit_offset": [128, 96], "size": [8, 8], "type":
                kind
            }, {
                "name": "e", "change": "moved", "bit_offset": [192, 160], "size": [1, 1], "type":
                ["char", "char"]
            }], "same": []
        }, r)


@claim
def a_header_with_an_error_is_shown_with_line_column_and_caret():
    r = cairn("layout", header("struct a {\n\tint x;\n\tint y[;\n};\n"))
    expect(r.status == 4, r)
    expect("decl.h:3:8: expected an expression\n    \tint y[;\n    \t      ^\n" in r.err, r)


@claim
def bad_command_lines_are_usage_errors():
    path = header(EVENT)
    for words in (["layout"], ["layout", "/no/such/file"], ["layout", path, "--abi", "pdp11"], [
            "layout", path, "--html", "--abi", "arm,bpf,i386"
    ], ["layout", path, "--cacheline",
            "0"], ["layout", path, "--check"], ["layout", path, "--against",
                                                path], ["layout", path,
                                                        "--update"], ["layout", "--diff", path]):
        r = cairn(*words)
        expect(r.status == 2 and r.err.endswith("\n") and "\\x0a" not in r.err and not r.out, r)
    r = cairn("layout", path, "nothing")
    expect(r.status == 1 and "no type is named nothing" in r.err, r)


@claim
def near_names_of_types_are_offered_whatever_the_types_are_read_from():
    text = "struct task_info { int a; long b; } ti; typedef unsigned long count_t; count_t ct;\n"
    program = compile_c("near",
                        text + "namespace ns { struct Job { int id; } job; }\nint main() {}\n",
                        "g++", ("-g", "-x", "c++"))
    btf, records = os.path.join(folder(), "near.btf"), os.path.join(folder(), "near.records")
    cairn("btf", "encode", program, "-o", btf, "--dialect", "none", "--global-vars", check=True)
    sidecar = os.path.join(folder(), "near.cairn")
    cairn("sidecar", program, "-o", sidecar, check=True)
    with open(records, "wb") as file:
        file.write(bytes(16))
    for source in ([program, "--no-cache"], [btf], [program, "--sidecar", sidecar], [header(text)]):
        for name, near in (("task_inof", "task_info"), ("struct taskinfo", "task_info"),
                           ("cuont_t", "count_t"), ("task_in", "task_info"),
                           ("nothing_like_it", None), ("task_inf?", None), ("Jbo", "ns::Job")):
            if name == "Jbo" and source[0] in (btf, header(text)):
                continue
            for r in (cairn("layout", *source,
                            name), cairn("decode", source[0], name, records, *source[1:]),
                      cairn("bind", "--lang", "c", source[0], name) if len(source) == 1 else None):
                if r is None or (name == "task_inf?" and r.status == 0):
                    continue
                expect(r.status == 1 and f"no type is named {name}" in r.err, r)
                offered = [line for line in r.err.splitlines() if line.startswith("Did you mean: ")]
                expect(offered == [f"Did you mean: {near}"] if near else not offered, r)


@claim
def names_kinds_typedefs_and_patterns_select():
    text = EVENT + "typedef struct { int x; } named; union u { int i; }; enum e { A = 3 };\n"
    for pattern, found in [("event", ["event"]), ("struct event", ["event"]), ("union event", []),
                           ("named", ["named"]), ("enum e", ["e"]), ("*e*", ["event", "named",
                                                                             "e"]), ("u", ["u"])]:
        r = cairn("layout", header(text), pattern, "--json")
        expect([o["name"] for o in r.objects()] == found, pattern, r)
        expect(r.status == (0 if found else 1), r)


@claim
def preprocessor_sees_directories_and_macros():
    need("cc")
    header("struct inner { char c[SIZE]; };\n", "inner.h")
    path = header("#include <inner.h>\nstruct outer { struct inner i; };\n", "outer.h")
    r = cairn("layout", path, "outer", "-I", folder(), "-D", "SIZE=7", "--sizes", check=True)
    expect(r.out == "outer\t7\t0\n", r)
    # A command line, as make and meson take it.
    for cc in ("env cc", "  env   X=1 cc -DSIZE=7 ", " "):
        more = () if "SIZE" in cc else ("-D", "SIZE=7")
        r = cairn("layout", path, "outer", "-I", folder(), *more, "--sizes",
                  env={**os.environ, "CC": cc}, check=True)
        expect(r.out == "outer\t7\t0\n", cc, r)


@claim_each_of_many("gcc", "clang")
def debug_information_and_declarations_agree(compiler):
    text = (EVENT + PADDED
            + "struct bits { int a : 3; unsigned b : 7; char c; struct padded_event p[2]; } bits;\n"
            "struct event event; struct padded_event padded;\n")
    program = compile_c("layout", text + "int main(void) { return bits.a; }\n", compiler)
    for name in ("event", "padded_event", "bits"):
        ours = cairn("layout", header(text), name, check=True).out
        theirs = cairn("layout", program, name, check=True).out
        # Clang calls a long int long.
        expect(
            theirs == ours if compiler == "gcc" else theirs.split() == ours.replace(
                "long int", "long").split(), theirs, ours)

ABIS = [
    "x86-64", "x32", "i386", "aarch64", "aarch64be", "arm", "riscv64", "riscv32", "s390x",
    "ppc64le", "ppc64", "mips", "mipsel", "mips64", "mips64el", "bpf", "bpfeb", "windows-x64",
    "windows-x86"
]

# One of everything whose place depends on the machine; code and data are to be left behind.
EVERYTHING = EVENT + PADDED + """typedef unsigned long long u64;
typedef struct { char a; u64 b; } nameless_t;
enum e { A, B };
struct only_declared;
struct bits { char c; int x : 3; unsigned y : 7, : 0; u64 z : 33; char d; short : 2; };
struct s { char c; long l; double d; long double ld; void *p; enum e e; nameless_t n; struct { int z; }; struct bits b[2];
	struct s *next; char f[]; };
union u { struct bits b; char c[3]; };
static inline int code(struct s *s) { __asm__("this is no instruction of any machine"); return s->e; }
int (*data)(struct s *) = code;
"""


def places(objects):
    """What two ways of laying types out have to agree on."""
    return {
        o["name"]: (o["kind"], o["size"], [(m["name"], m["offset"], m["size"], m.get("bit_offset"),
                                            m.get("bits")) for m in o["members"]])
        for o in objects
    }


@claim_each(*ABIS)
def clang_lays_out_on_request(abi):
    need("clang")
    path = header(EVERYTHING, "everything.c")
    r = cairn("layout", path, "--via-compiler", "--abi", abi, "--json")
    if "unable to create target" in r.err or "No available targets" in r.err:
        raise Skip(f"this clang does not know {abi}")
    ours, theirs = places(cairn("layout", path, "--abi", abi, "--json",
                                check=True).objects()), places(r.objects())
    expect(r.status == 0 and len(theirs) == 6, r)
    expect(ours == theirs, ours, theirs)


@claim
def what_clang_cannot_lay_out_is_told_by_clang():
    need("clang")
    r = cairn("layout", header("struct broken {"), "--via-compiler")
    expect(r.status == 2 and "error" in r.err, r)
    r = cairn("layout", header("int nothing;\n"), "--via-compiler")
    expect(r.status == 1 and "defines no struct" in r.err, r)
    r = cairn("layout", header(EVENT + "struct two { long l; int i; };"), "--via-compiler", "--abi",
              "arm,bpf")
    expect(r.status == 1 and "struct two: 8 bytes on arm, 16 on bpf" in r.out, r)


@claim_each_of_many("gcc", "clang")
def a_typedef_is_a_name_in_debug_information_too(compiler):
    need(compiler)
    text = (
        "typedef struct { char a; long b; } nameless_t; typedef struct tag { int x; } named_t; typedef named_t again_t;\n"
        "typedef struct never never_t; nameless_t n; again_t a; never_t *p; int main(void) { return a.x; }\n"
    )
    program = compile_c("typedefs", text, compiler)
    for pattern, size in [("nameless_t", 16), ("named_t", 4), ("again_t", 4), ("tag", 4)]:
        objects = cairn("layout", program, pattern, "--json", check=True).objects()
        expect([(o["name"], o["size"]) for o in objects] == [(pattern, size)], pattern, objects)
    objects = cairn("layout", program, "*_t", "--json", check=True).objects()
    expect([o["name"] for o in objects] == ["nameless_t"], objects)
    for pattern in ("never_t", "struct nameless_t"):
        r = cairn("layout", program, pattern)
        expect(r.status == 1 and "no type is named" in r.err, r)


@claim
def a_sidecar_is_a_source_of_types():
    program = compile_c("sidecar", EVENT + PADDED + "struct event e; struct padded_event p;\n"
                        "int main(void) { return e.e_pid + p.c; }\n")
    sidecar = os.path.join(folder(), "types.cairn")
    cairn("sidecar", program, "-o", sidecar, check=True)
    expect(
        cairn("layout", sidecar, "event", check=True).out == cairn("layout", program, "event",
                                                                   check=True).out)
    r = cairn("layout", sidecar, "--sizes", check=True)
    expect("padded_event\t32\t2\n" in r.out and "event\t276\t0\n" in r.out, r)


@claim
def reorganised_structs_are_proven_by_the_compilers():
    need("gcc")
    r = cairn("layout", header(PADDED), "--reorganize", "--verify", check=True)
    expect("/* saved 8 bytes and 0 cachelines: the smallest there is */" in r.out, r)
    expect("/* verified: size and offsets are those of gcc" in r.out and "size: 24," in r.out, r)
    o = cairn("layout", header(PADDED), "-R", "--verify", "--json", check=True).objects()[0]
    expect((o["size_before"], o["size"], o["proven"]) == (32, 24, True) and "gcc" in o["verified"],
           o)
    expect([m["name"] for m in o["members"]] == ["c", "i", "l", "x"], o)


@claim
def weights_come_from_a_file():
    csv = header("member,hits\nhot,100\nother,event,3\npadded,warm,50\n", "hits.csv")
    text = "struct padded { char hot; char cold[120]; int warm; };\n"
    o = cairn("layout", header(text), "-R", "--weights", csv, "--json", check=True).objects()[0]
    expect((o["hot_lines_before"], o["hot_lines"]) == (2, 1), o)
    for bad in ("a,b,c,d\n", "member,hits\nx,y\n", "x\n"):
        r = cairn("layout", header(text), "-R", "--weights", header(bad, "bad.csv"))
        expect(r.status == 2 and "bad.csv:" in r.err, r)


@claim
def bpf_objects_show_their_btf():
    need("clang")
    path = os.path.join(folder(), "event.bpf.o")
    run("clang", "-target", "bpf", "-g", "-O1", "-c", "-x", "c", "-o", path,
        header(EVENT + "struct event e; int f(void) { return e.e_pid; }\n"), check=True)
    r = cairn("layout", path, "event", check=True)
    expect("/* size: 276, cachelines: 5, members: 3 */" in r.out, r)


@claim
def running_kernel_adds_up():
    if not os.path.exists(RUNNING):
        raise Skip("this kernel has no BTF")
    objects = cairn("layout", "--running", "--json", check=True).objects()
    structs = [o for o in objects if o["kind"] == "struct"]
    expect(
        len(structs) > 1000 and any("bits" in m for o in structs for m in o["members"]),
        len(structs))
    for o in structs:
        expect(accounted_bits(o) == 8 * o["size"], o)


def members_of(o, path=""):
    """(path, member) of all that C can name, those of anonymous structs and of structs of members
    too."""
    for m in o.get("members", []):
        inner = path + m["name"] if m["name"] else path
        if m["name"]:
            yield inner, m
        yield from members_of(m, inner + "." if m["name"] else path)


def c_name(o):
    return o["name"] if o["typedef"] else f"{o['kind']} {o['name']}"


def asserts(objects):
    """What a compiler has to agree with."""
    for o in objects:
        if o["kind"] == "enum":
            continue
        name = c_name(o)
        yield f"_Static_assert(sizeof({name}) == {o['size']}, \"{name}\");"
        yield f"_Static_assert(_Alignof({name}) == {o['align']}, \"{name}\");"
        for path, m in members_of(o):
            if "bits" not in m:
                yield f"_Static_assert(__builtin_offsetof({name}, {path}) == {m['offset']}, \"{name}.{path}\");"


def bit_field_program(objects):
    """C that sets each bit-field alone, and prints which bits of the struct that changed: first and
    number, as expected."""
    body, count = "", 0
    for o in objects:
        for path, m in members_of(o):
            if "bits" not in m:
                continue
            count += 1
            body += (
                f"\t{{ union {{ {c_name(o)} s; unsigned char b[{o['size']}]; }} u; __builtin_memset(&u, 0, sizeof(u)); "
                f"u.s.{path} = ~0ull;\n\t  bad += look(u.b, {o['size']}, {m['bit_offset']}, {m['bits']}, "
                f"\"{c_name(o)}.{path}\"); }}\n")
    text = """
static int look(const unsigned char *b, int n, int first, int width, const char *name)
{
	int bad = 0;
	for (int i = 0; i < 8 * n; i++)
		bad |= (b[i / 8] >> i % 8 & 1) != (i >= first && i < first + width);
	if (bad)
		__builtin_printf("%s is not at bit %d\\n", name, first);
	return bad;
}
int main(void)
{
	int bad = 0;
"""
    return text + body + "\treturn bad != 0;\n}\n", count


@claim_each(*HEADERS)
def every_struct_of_a_header_is_laid_out_as_by_the_compiler(name):
    need("gcc")
    source = header(f"#include <{name}>\n", "unit.c")
    done = run("gcc", "-E", "-o", os.path.join(folder(), "unit.i"), source)
    if done.status:
        raise Skip(f"{name} is not installed")
    path = os.path.join(folder(), "unit.i")
    whole = cairn("layout", path, "--json", "--expand")
    expect(whole.status == 0, whole)
    objects = whole.objects()
    tags = {o["name"] for o in cairn("layout", path, "struct *", "--json").objects()}
    tags |= {o["name"] for o in cairn("layout", path, "union *", "--json").objects()}
    seen = set()
    for o in objects:
        # A typedef may have the name of a struct; the struct comes first or alone.
        o["typedef"] = o["name"] not in tags or o["name"] in seen
        seen.add(o["name"])
    lines = list(asserts(objects))
    program, n_bits = bit_field_program(objects)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    checked, out = os.path.join(folder(), "checked.c"), os.path.join(folder(), "checked")
    with open(checked, "w", encoding="utf-8") as file:
        file.write(text + "\n# 1 \"asserts\"\n" + "\n".join(lines) + "\n" + program)
    run("gcc", "-w", "-fpreprocessed", "-x", "c", "-o", out, checked, check=True)
    r = run(out)
    expect(r.status == 0, r)
    print(f"# {name}: {len(objects)} types, {len(lines)} assertions, {n_bits} bit-fields")


@claim
def random_declarations_are_laid_out_as_by_clang():
    need("clang")
    r = run(sys.executable, os.path.join(SOURCE, "tests", "truth", "layout_against_clang.py"),
            "--count", "600", "--abi", "x86-64", "--abi", "i386", "--abi", "arm", seconds=300)
    expect(r.status == 0, r)


main()
