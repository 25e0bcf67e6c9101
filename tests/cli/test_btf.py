#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn btf dump, check, convert and encode, beside bpftool and pahole."""

import ctypes
import errno
import os
import re
import resource
import signal
import struct
import subprocess

from claims import (CAIRN, Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, expect,
                    folder, main, need, path_of, plainly, run, write)
from layout_asserts import layout_asserts, records_of

KERNEL = "/sys/kernel/btf/vmlinux"
COMPILERS = ("gcc", "clang")

# What layouts can be made of: packed, aligned, bit-fields of every kind, nameless and flexible
# members.
LAYOUTS = """\
#include <stdarg.h>
struct packed1 { char a; int b; short c; long d; } __attribute__((packed));
struct packed2 { char a; struct packed1 p; int b:3; int c:30; long long d:40; char e; } __attribute__((packed));
struct al64 { int a; char b __attribute__((aligned(64))); int c; };
struct al16 { char x; } __attribute__((aligned(16)));
struct has_al { char a; struct al64 b; char c; };
struct bits { int a:1; int:0; int b:2; unsigned c:31; char d:3; _Bool e:1; short f:9; long g:50; long h:20; int:5; int i:7; };
struct bits2 { char a; int b:24; short s; unsigned long long x:33, y:31; char z; };
struct bits3 { int a:20; char c; int b:10; long:40; int d:3; };
struct mid { char a; int b __attribute__((packed)); long c; };
struct wide { char a; __int128 b; long double c; double d; float f; };
union u { char a[7]; struct { int x; char y; } s; long z:5; };
union ual { char a[7]; int b; } __attribute__((aligned(32)));
union upk { char a[7]; long b; } __attribute__((packed));
struct flex { int n; struct { short a, b; } items[]; };
struct empty {};
struct withempty { struct empty e; int a; struct empty e2; int z[0]; long b; };
struct self { struct self *next, **pp; struct self *(*fn)(struct self *, int (*cb)(struct self **, ...)); };
typedef struct tself { struct tself *n; } tself_t;
typedef struct { int a; struct { int b; union { char c; long d; }; struct { short q; } named[3]; }; } anon_t;
enum small { SA, SB } __attribute__((packed));
enum neg { NA = -1, NB = 5 };
enum big { BA = 0xffffffffULL, BB = 0x123456789abcdefULL };
enum sbig { CA = -5000000000LL, CB = 7 };
struct enums { enum small s:2; enum small t; enum neg n:4; enum big b; enum sbig sb; };
struct fwd;
typedef int arr_t[3][4];
struct decl { int (*a[3])(void); int (*(*b)[4])(struct fwd *, ...); char *const *volatile c; const volatile int *d;
	arr_t *e; arr_t f; void (*(*g)(int, void (*)(int)))(double); int *restrict r; const struct { int q; } *anon;
	int (*h)(const arr_t, struct { int z; } *); enum { IN1, IN2 } inl; enum { ARR1 } arrenum[2]; };
struct page_gap { int a; char b __attribute__((aligned(4096))); };
struct va { va_list ap; };
struct aligned_bf { int a:3; long b __attribute__((aligned(32))); int c:5; };
struct half { char a; short b:4; char c; int d:1; } __attribute__((packed, aligned(2)));
struct nestpack { struct { char a; long b; } __attribute__((packed)) in; union { char c; int d; } __attribute__((packed)) un; int e; };
struct reserved { int a; char res[200]; long:64; long:64; long x; };
#define USE(n, t) t use_##n;
USE(1, struct packed2) USE(2, struct has_al) USE(3, struct al16) USE(4, struct bits) USE(5, struct bits2)
USE(6, struct bits3) USE(7, struct mid) USE(8, struct wide) USE(9, union u) USE(10, union ual) USE(11, union upk)
USE(12, struct flex *) USE(13, struct withempty) USE(14, struct self) USE(15, tself_t) USE(16, anon_t)
USE(17, struct enums) USE(18, struct decl) USE(19, struct page_gap) USE(20, struct va) USE(21, struct aligned_bf)
USE(22, struct half) USE(23, struct nestpack) USE(24, struct reserved)
int main(void) { return 0; }
"""

INLINED = """\
#include <stdlib.h>
struct pair { int a; long b; };
static volatile long sink;
static inline __attribute__((always_inline)) long add(long left, int right) { sink = left; return left + right; }
__attribute__((noinline)) long once(long number) { return add(number, 7); }
__attribute__((noinline)) long both(struct pair *p) { return add(p->b, p->a) * 3; }
int main(int argc, char **argv)
{
	struct pair p = { argc, atol(argv[argc - 1]) };
	return (int)(once(p.b) + both(&p));
}
"""

CPLUSPLUS = """\
#include <map>
#include <memory>
#include <string>
#include <vector>
struct Base { Base() {} int a; char b; };
struct Derived : Base { char c; int d:3; virtual ~Derived() {} };
struct Tail : Base { char in_the_padding; };
enum class Colour : unsigned char { red, green };
template <class T> struct Box { T value; Box<T> *next; };
std::vector<std::string> words; std::map<int, std::unique_ptr<Derived>> tree; Box<Colour> box; Tail tail;
int main(int argc, char **argv)
{
	words.push_back(argv[0]);
	tree[argc] = std::make_unique<Derived>();
	return tail.in_the_padding + (box.value == Colour::green);
}
"""

RUST = """\
use std::collections::HashMap;
#[derive(Debug)] enum Shape { Dot(u8), Line { x: u64, y: [u8; 3] }, None }
struct Owner<'a> { shape: Shape, name: &'a str, list: Vec<Option<Box<Shape>>>, pair: (u8, u32, bool), f: fn(u8) -> [u8; 4], big: i128 }
fn four(x: u8) -> [u8; 4] { [x; 4] }
fn main() {
    let mut map = HashMap::new();
    map.insert("a".to_string(), Shape::Dot(1));
    let o = Owner { shape: Shape::Line { x: 1, y: [1, 2, 3] }, name: "x", list: vec![None, Some(Box::new(Shape::None))],
        pair: (1, 2, true), f: four, big: 5 };
    println!("{:?} {:?} {} {} {:?} {:?} {}", map, o.shape, o.name, o.list.len(), o.pair, (o.f)(3), o.big);
}
"""


def kernel():
    if not os.path.exists(KERNEL):
        raise Skip("the running kernel has no BTF")
    return KERNEL


def read(path):
    with open(path, "rb") as file:
        return file.read()


def encoded(name, program):
    """The program's types, by pahole."""
    pahole, objcopy = need("pahole"), need("objcopy")
    copy, out = path_of(name + ".copy"), path_of(name + ".btf")
    write(name + ".copy", read(program))
    run(pahole, "-J", copy, check=True)
    run(objcopy, "--dump-section", f".BTF={out}", copy, path_of("null"), check=True)
    return out


def layouts(compiler):
    return encoded("layouts-" + compiler,
                   compile_c("layouts", LAYOUTS, compiler, ("-g", "-O1", "-w")))


def records_by_bpftool(path):
    return records_of(run(need("bpftool"), "-j", "btf", "dump", "file", path, check=True).out)


def refused(compiler, text):
    """What the compiler says against it, "" when it compiles."""
    source = write("claims.c", text)
    return run(need(compiler), "-w", "-fsyntax-only", source).err


# ---- dump ----

@claim
def records_of_the_kernel_are_bpftools_text():
    wanted = run(need("bpftool"), "btf", "dump", "file", kernel(), check=True)
    got = cairn("btf", "dump", kernel(), check=True)
    expect(got.out == wanted.out, "not the same text")


@claim_each_of_many(*COMPILERS)
def records_of_a_program_are_bpftools_text(compiler):
    path = layouts(compiler)
    wanted = run(need("bpftool"), "btf", "dump", "file", path, check=True)
    got = cairn("btf", "dump", path, check=True)
    expect(got.out == wanted.out and len(got.out) > 1000, got)


@claim
def json_has_bpftools_keys_and_values():
    wanted = records_by_bpftool(kernel())
    got = cairn("btf", "dump", "--json", kernel(), check=True).objects()
    expect(len(got) == len(wanted), len(got), len(wanted))

    def named(thing):
        if isinstance(thing, dict):
            return {
                key: "(anon)" if key == "name" and value is None else named(value)
                for key, value in thing.items()
            }
        return [named(item) for item in thing] if isinstance(thing, list) else thing
    for record in got:
        # bpftool 7.1 extends the sign of enumerators that have none.
        if record["kind"] == "ENUM" and record["encoding"] == "UNSIGNED":
            for value in wanted[record["id"]]["values"]:
                value["val"] &= 0xffffffff
        expect(named(record) == wanted[record["id"]], record, wanted[record["id"]])


@claim_each(*plainly(*COMPILERS))
def c_of_the_kernel_compiles_with_every_size_and_offset(compiler):
    lines, structs = layout_asserts(records_by_bpftool(kernel()))
    expect(structs > 1000, structs)
    text = cairn("btf", "dump", "--format", "c", kernel(), check=True).out
    said = refused(compiler, text + "\n".join(lines) + "\n")
    expect(not said, said[:3000])


@claim_each_of_many(*(f"{made} {read_by}" for made in COMPILERS for read_by in COMPILERS))
def every_kind_of_layout_is_kept(how):
    made, read_by = how.split()
    path = layouts(made)
    lines, structs = layout_asserts(records_by_bpftool(path))
    expect(structs > 25, structs)
    text = cairn("btf", "dump", "-f", "c", path, check=True).out
    said = refused(read_by, text + "\n".join(lines) + "\n")
    expect(not said, said[:3000], text)


@claim
def an_assertion_that_is_wrong_does_not_compile():
    lines, _ = layout_asserts(records_by_bpftool(layouts("gcc")))
    wrong = [line.replace("mid, c, 8)", "mid, c, 9)") for line in lines]
    expect(wrong != lines)
    text = cairn("btf", "dump", "-f", "c", layouts("gcc"), check=True).out
    expect("static assertion failed" in refused("gcc", text + "\n".join(wrong) + "\n"), wrong)


def bit_fields(path):
    """{struct: [(member, first bit, bits)]} of the bit-fields of structs with a name."""
    found = {}
    for record in records_by_bpftool(path).values():
        if record["kind"] not in ("STRUCT", "UNION") or record["name"] == "(anon)":
            continue
        fields = [(m["name"], m["bits_offset"], m["bitfield_size"])
                  for m in record["members"]
                  if m.get("bitfield_size")]
        if fields:
            found[record["name"]] = fields
    return found


@claim
def bit_fields_stay_where_they_were():
    wanted = bit_fields(layouts("gcc"))
    expect(len(wanted) >= 7, wanted)
    text = cairn("btf", "dump", "-f", "c", layouts("gcc"), check=True).out
    again = compile_c("again", text + "\nint main(void) { return 0; }\n", "gcc",
                      ("-g", "-w", "-fno-eliminate-unused-debug-types"))
    got = bit_fields(encoded("again", again))
    expect(got == wanted, got, wanted)


@claim_each_of_many("g++", "clang++", "rustc")
def types_of_other_languages_compile_as_c(compiler):
    need(compiler)
    rust = compiler == "rustc"
    source = write("other.rs" if rust else "other.cc", RUST if rust else CPLUSPLUS)
    program, out = path_of("other-" + compiler), path_of("other.btf")
    run(compiler, "-g", "-O", *(() if rust else ("-std=c++17",)), "-o", program, source, check=True)
    cairn("btf", "encode", program, "-o", out, check=True)
    text = cairn("btf", "dump", "-f", "c", out, check=True).out
    expect(text.count("struct ") > 100, text)
    for reader in COMPILERS:
        said = refused(reader, text)
        expect(not said, said[:3000])
    if not rust:
        tail = 'AT(struct Tail, in_the_padding, 5); _Static_assert(sizeof(struct Tail) == 8, "");'
        said = refused("gcc", f"{text}{layout_asserts({})[0][0]}\n{tail}\n")
        expect(not said, said[:3000])


@claim
def selected_types_come_with_what_they_need_only():
    path = layouts("gcc")
    text = cairn("btf", "dump", "-f", "c", "-t", "struct has_al", path, check=True).out
    expect("struct has_al {" in text and "struct al64 {" in text and "packed1" not in text, text)
    raw = cairn("btf", "dump", "-t", "has_al", path, check=True).out
    expect(len(raw.splitlines()) == 4 and "STRUCT 'has_al'" in raw, raw)
    r = cairn("btf", "dump", "-t", "no_such_type", "-t", "al64", path)
    expect(r.status == 1 and "al64" in r.out and "no_such_type" in r.err, r)


# ---- chains ----

def split_files():
    """Types of a program, and its sites, split from them."""
    program = compile_c("inlined", INLINED)
    out = path_of("inlined.btf")
    cairn("btf", "encode", program, "-o", out, check=True)
    return out, out + ".inline"


@claim
def a_base_is_needed_and_its_order_is_explained():
    main_btf, inline = split_files()
    r = cairn("btf", "dump", inline)
    expect(r.status == 4 and "needs its base (-B BASE" in r.err and not r.out, r)
    r = cairn("btf", "dump", "-B", main_btf, inline)
    expect(r.status == 0 and "LOCSEC" in r.out, r)
    # The wrong order: the first base is split itself.
    r = cairn("btf", "dump", "-B", inline, "-B", main_btf, inline)
    expect(r.status == 4 and "parents first" in r.err and not r.out, r)
    # A file that is not split on a base.
    r = cairn("btf", "dump", "-B", main_btf, main_btf)
    expect(r.status == 2 and "is not split" in r.err and "parent first" in r.err and not r.out, r)


@claim
def a_chain_of_three_is_read_parent_first():
    kernel_like, _ = split_files()
    module_like, out = compile_c("module", INLINED.replace("pair", "couple")), path_of("module.btf")
    cairn("btf", "encode", "-B", kernel_like, module_like, "-o", out, check=True)
    inline = out + ".inline"
    chain = ("-B", kernel_like, "-B", out)
    for words in [("check", "-B", kernel_like, out), ("check", *chain, inline),
                  ("dump", "--format", "c", *chain, inline)]:
        cairn("btf", *words, check=True)
    text = cairn("btf", "dump", *chain, inline, check=True).out
    expect("name='add' func_type_id=" in text, text)
    # What the parent has is not written again, and C gets it from there.
    expect("INT 'int'" not in cairn("btf", "dump", "-B", kernel_like, out, check=True).out)
    text = cairn("btf", "dump", "-f", "c", "-B", kernel_like, out, check=True).out
    expect(not refused("gcc", text) and "struct couple {" in text, text)
    for wrong in [("-B", out, "-B", kernel_like), ("-B", kernel_like), ("-B", out)]:
        r = cairn("btf", "dump", *wrong, inline)
        expect(r.status in (2, 4) and not r.out and "parent" in r.err, r)


@claim
def a_base_that_does_not_match_is_refused():
    _, inline = split_files()
    r = cairn("btf", "dump", "-B", layouts("gcc"), inline)
    expect(r.status == 4 and "not the base that this was split from" in r.err and not r.out, r)


# ---- check ----

@claim
def a_program_without_btf_is_told_how_to_get_it():
    program = compile_c("plain", "int main(void) { return 0; }\n", "gcc")
    r = cairn("btf", "dump", program)
    expect(r.status == 3 and r.err.endswith(f"Try: cairn btf encode {program}\n"), r)


@claim
def sound_files_are_called_sound():
    for path in (kernel(), layouts("gcc"), layouts("clang")):
        r = cairn("btf", "check", path, check=True)
        expect(r.out.endswith("sound\n"), r)


@claim
def a_broken_reference_is_named_with_its_record_and_offset():
    data = bytearray(read(layouts("gcc")))
    header_len, type_off = struct.unpack_from("<II", data, 4)
    records = records_by_bpftool(layouts("gcc"))
    # Records before the first pointer have known sizes: look for its words instead.
    number = next(n for n, r in sorted(records.items()) if r["kind"] == "PTR")
    words = struct.pack("<III", 0, 2 << 24, records[number]["type_id"])
    at = data.index(words, header_len + type_off)
    struct.pack_into("<I", data, at + 8, 0x7000000)
    path = write("broken.btf", bytes(data))
    r = cairn("btf", "check", path)
    expect(r.status == 1 and "at offset 0x" in r.out and "1 broken rule\n" in r.out, r)
    lines = cairn("btf", "check", "--json", path).objects()
    expect(lines[-1]["broken"] == 1 and lines[0]["offset"] == hex(at), lines, hex(at))


# ---- convert ----

@claim
def conversion_there_and_back_gives_the_same_bytes():
    for path in (kernel(), layouts("gcc")):
        there, back = path_of("there.btf"), path_of("back.btf")
        cairn("btf", "convert", "--endian", "big", "--layout", path, "-o", there, check=True)
        expect(read(there)[:2] == b"\xeb\x9f", read(there)[:8])
        cairn("btf", "convert", "--endian", "little", "--no-layout", there, "-o", back, check=True)
        expect(read(back) == read(path), path)


@claim
def locations_survive_the_other_dialect_where_it_can_say_them():
    main_btf, inline = split_files()
    v1, n = path_of("v1"), path_of("n")
    r = cairn("btf", "convert", "--dialect", "v1", "--json", "-B", main_btf, inline, "-o", v1,
              check=True)
    expect(r.objects()[0]["out"] == v1, r)
    text = cairn("btf", "dump", "--dialect", "v1", "-B", main_btf, v1, check=True).out
    expect("func_proto_type_id=" in text and " 'add' " in text, text)
    cairn("btf", "convert", "--from", "v1", "--dialect", "n", "-B", main_btf, v1, "-o", n,
          check=True)
    expect("name='add' func_type_id=" in cairn("btf", "dump", "-B", main_btf, n, check=True).out)


@claim
def a_downgrade_is_read_by_the_bpftool_here_and_tells_its_losses():
    out = path_of("old.btf")
    r = cairn("btf", "convert", "--downgrade", layouts("gcc"), "-o", out, check=True)
    text = run(need("bpftool"), "btf", "dump", "file", out, check=True).out
    expect("ENUM64" not in text and "STRUCT 'has_al'" in text, text)
    enums = sum(
        record["kind"] == "ENUM64" for record in records_by_bpftool(layouts("gcc")).values())
    if enums:
        expect(f"lost: {enums} enums with values of 64 bits" in r.out, r)


@claim
def a_result_that_cannot_be_written_leaves_the_old_one():
    out = write("kept.btf", "old")

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = subprocess.run(
        [CAIRN, "btf", "convert", layouts("gcc"), "-o", out], preexec_fn=small_files,
        capture_output=True, text=True, check=False)
    expect(done.returncode == 3 and out in done.stderr and read(out) == b"old", done)
    before = sorted(os.listdir(folder()))
    r = cairn("btf", "convert", layouts("gcc"), "-o", "/dev/full")
    expect(r.status == 3 and "No space left" in r.err, r)
    expect(sorted(os.listdir(folder())) == before, before)


@claim_each(*plainly("encode", "embed", "convert"))
def a_writer_killed_at_any_call_leaves_each_file_old_or_new(verb):
    need("strace")
    site = path_of("killed-" + verb)
    os.makedirs(site, exist_ok=True)
    out, program = os.path.join(site, "out"), compile_c("inlined", INLINED)
    words = {
        "encode": ("encode", "-j1", program), "embed": ("encode", "-j1", "--embed", program),
        "convert": ("convert", layouts("gcc"))
    }
    names = ["out", "out.inline"] if verb == "encode" else ["out"]
    cairn("btf", *words[verb], "-o", out, check=True)
    new = {name: read(os.path.join(site, name)) for name in names}
    killed = 0
    for call in ("write", "pwrite64", "fsync", "linkat", "rename", "renameat", "unlink",
                 "unlinkat"):
        for when in (1, 2, 3):
            for name in names:
                write(os.path.join(site, name), b"old")
            r = run("strace", "-f", "-o", "/dev/null", "-e",
                    f"inject={call}:signal=KILL:when={when}", CAIRN, "btf", *words[verb], "-o", out)
            killed += r.status != 0
            there = {
                name: read(os.path.join(site, name))
                for name in names
                if os.path.exists(os.path.join(site, name))
            }
            # Never one of each, which would be sites of other types.
            expect(
                "out" in there
                and (all(there[name] == b"old" for name in there) or all(there[name] == new[name]
                                                                         for name in there)), call,
                when, sorted(there))
            shown = [
                name for name in os.listdir(site) if not name.startswith(".") and name not in names
            ]
            expect(not shown, call, when, shown)
    if not killed:
        raise Skip("strace does not inject signals here")


@claim_each("encode", "embed")
def an_encoding_that_does_not_fit_the_disk_leaves_the_old_files(how):
    program, out = compile_c("inlined", INLINED), path_of("small-" + how)
    words = ("--embed",) if how == "embed" else ()
    for name in (out, out + ".inline"):
        write(name, "old")
    before = sorted(os.listdir(folder()))
    r = run(
        "bash", "-c",
        f"trap '' XFSZ; ulimit -f 0; exec {CAIRN} btf encode {' '.join(words)} {program} -o {out}")
    expect(r.status == 3 and out in r.err, r)
    expect(
        read(out) == read(out + ".inline") == b"old" and sorted(os.listdir(folder())) == before,
        before)


# ---- the running kernel ----

def kernel_takes(path):
    """Whether BPF_BTF_LOAD does."""
    data = read(path)
    if os.uname().machine != "x86_64" or os.geteuid() != 0:
        raise Skip("BPF_BTF_LOAD needs root on x86-64")
    libc, bytes_ = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(data, len(data))
    attributes = ctypes.create_string_buffer(
        struct.pack("<QQIII", ctypes.addressof(bytes_), 0, len(data), 0, 0), 64)
    fd = libc.syscall(321, 18, attributes, 28)
    if fd < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise Skip("BPF_BTF_LOAD: " + os.strerror(ctypes.get_errno()))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


@claim_each_of_many(*COMPILERS)
def the_kernel_takes_types_of_c_programs(compiler):
    out = path_of("loaded.btf")
    cairn("btf", "encode", "--global-vars",
          compile_c("layouts", LAYOUTS, compiler, ("-g", "-O1", "-w")), "-o", out, check=True)
    cairn("btf", "check", "--kernel", out, check=True)
    expect(kernel_takes(out))


@claim
def what_the_kernel_refuses_is_told_by_the_check_with_kernel_only():
    need("g++")
    source, out = write("other.cc", CPLUSPLUS), path_of("other.btf")
    run("g++", "-g", "-O", "-std=c++17", "-o", path_of("other"), source, check=True)
    cairn("btf", "encode", path_of("other"), "-o", out, check=True)
    cairn("btf", "check", out, check=True)
    r = cairn("btf", "check", "--kernel", out)
    expect(r.status == 1 and "std::" in r.out, r)
    expect(not kernel_takes(out))


@claim
def the_check_for_a_kernel_takes_a_version():
    """--layout is what Linux takes from 7.1 on."""
    need("gcc")
    source, out = write("version.c", "int f(int a) { return a; }\n"), path_of("version.btf")
    run("gcc", "-g", "-c", "-o", path_of("version.o"), source, check=True)
    cairn("btf", "encode", "--layout", path_of("version.o"), "-o", out, check=True)
    for version, status in (("7.1", 0), ("7.2.1-rc3", 0), ("6.18", 1), ("6.18.44-cloud", 1), ("all",
                                                                                              1)):
        r = cairn("btf", "check", f"--kernel={version}", out)
        expect(r.status == status and ("from Linux 7.1 on" in r.out) == bool(status), (version, r))
    for version in ("5.15", "6", "six", "6.1x", "", "6.300"):
        r = cairn("btf", "check", f"--kernel={version}", out)
        expect(r.status == 2 or not version, (version, r))


GO = """\
package main
import "os"
type Pair[T any] struct { A, B T; next *Pair[T]; f func(T) T }
//go:noinline
func sum(p *Pair[int]) int { return p.f(p.A + p.B) }
func main() { os.Exit(sum(&Pair[int]{1, 2, nil, func(i int) int { return i - 3 }})) }
"""


def go_program():
    program = path_of("go-program")
    if not os.path.exists(program):
        environment = dict(os.environ, HOME=folder(), GOCACHE=path_of("go-cache"),
                           GOFLAGS="-mod=mod")
        subprocess.run(
            ["go", "build", "-o", program, write("g.go", GO)], env=environment, check=True,
            capture_output=True)
    return program


OVERLOADS = """\
namespace ns {
int over(int a) { return a; }
int over(double a) { return (int)a; }
struct C { int m(int) const; int m(double) const; };
int C::m(int a) const { return a + 1; }
int C::m(double a) const { return (int)a + 1; }
int alone(int a) { return a; }
}
int main(int n, char **) { ns::C c; return ns::over(n) + ns::over(1.5 * n) + c.m(n) + c.m(2.5 * n) + ns::alone(n); }
"""


@claim_each_of_many("g++", "clang++")
def overloaded_functions_are_known_by_their_symbols(compiler):
    need(compiler)
    program, out = path_of("overloads-" + compiler), path_of("overloads.btf")
    run(compiler, "-g", "-O1", "-fno-inline", "-o", program, write("overloads.cc", OVERLOADS),
        check=True)
    told = cairn("btf", "encode", program, "-o", out, check=True)
    expect("several prototypes" not in told.out, told)
    found = {r["name"] for r in records_by_bpftool(out).values() if r["kind"] == "FUNC"}
    expect(
        {"_ZN2ns4overEi", "_ZN2ns4overEd", "_ZNK2ns1C1mEi", "_ZNK2ns1C1mEd", "ns::alone", "main"
         } <= found, found)

CHANGED = """\
#define NI __attribute__((noinline))
#define HIDE(x) asm volatile("" :: "r"(x) : "memory")
struct big { long v[5]; };
struct two { long a, b; };
struct mix { long a; double b; };
static NI int constant(int a, int b, int c) { return a * c - a - c; }
static NI long first(long a, long b) { return b * b + 7; }
static NI long last(long a, long b) { return a * 3; }
static NI long stack(long a, long b, long c, long d, long e, long f, long g, long h) { return a + b * c - d * e + f * h; }
static NI long half(struct two s, long n) { return s.b * n; }
static NI double mixed_half(struct mix m, double n) { return m.b + n; }
static NI double middle(double a, double b, double c) { return a * c; }
static NI long slot(long a, long b) { HIDE(&b); return a + b; }
static NI long kept(long a, long b) { return a * b + 7; }
static NI long kept_changes(long n, long m) { n |= 1; m *= n; HIDE(n); return m + n; }
static NI long kept_slot(long a, long b) { HIDE(&b); return a - b; }
static NI long kept_memory(struct big s, long n) { return s.v[1] * n + s.v[3]; }
static NI double kept_mixed(struct mix m, int n) { return m.a * m.b + n; }
static NI struct big kept_result(long a, long b) { struct big r = {{a, b, a * b, a - b, 3}}; return r; }
static NI int kept_callback(void *ctx, int unused, int n) { return n + 3; }
int (*volatile callback)(void *, int, int) = kept_callback;
NI long kept_external(long a, long b) { return b * b + 9; }
int main(int n, char **v)
{
	struct two t = {n, n * 2};
	struct mix m = {n, n * 1.5};
	struct big s = kept_result(n, n + 1);
	return constant(n, 2, n + 3) + constant(n + 4, 2, n * 3) + first(3, n) + first(n, n + 1) + last(n, n * 9) + last(n + 1, n)
	 + stack(n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7) + stack(n, n * 2, n * 3, n * 4, n * 5, n * 6, n * 7, n * 8)
	 + half(t, n * 7) + mixed_half(m, n) + middle(n, 3, n * 2.5) + slot(n, 5) + slot(n + 1, 5) + kept(n, n + 9) + kept(n + 3, n)
	 + kept_changes(n, n + 2) + kept_slot(n, n * 2) + kept_slot(n * 2, n) + kept_memory(s, n) + kept_mixed(m, n)
	 + callback(v, 3, n) + kept_external(n, n + 3);
}
"""


def functions_of(program):
    """Those of the main part, and what was counted as lost."""
    out = path_of("functions.btf")
    told = cairn("btf", "encode", program, "-o", out, check=True).out
    lost = re.findall(r"lost: (\d+) functions with parameters that the compiler changed", told)
    return {r["name"]
            for r in records_by_bpftool(out).values()
            if r["kind"] == "FUNC"}, int(lost[0]) if lost else 0


@claim
def functions_whose_parameters_clang_changed_are_not_in_main():
    names = set(re.findall(r"^(?:static )?NI (?:struct )?\w+ (\w+)\(", CHANGED, re.M))
    kept = {name for name in names if name.startswith("kept")} | {"main"}
    found, lost = functions_of(compile_c("changed", CHANGED, "clang", ("-g", "-O2", "-w")))
    expect(found == kept and lost == len(names - kept) == 8, found ^ kept, lost)


@claim_each_of_many("-O0", "-O2")
def functions_of_another_convention_of_clang_are_not_in_main(level):
    text = ("__attribute__((ms_abi, noinline)) int foreign(int a, int b) { return a - b; }\n"
            "__attribute__((noinline)) int plain(int a, int b) { return a - b; }\n"
            "int main(int n, char **v) { return foreign(n, 2) + plain(n, 3); }\n")
    found, lost = functions_of(compile_c("foreign", text, "clang", ("-g", level)))
    expect(found == {"plain", "main"} and lost == 1, found, lost)


@claim_each_of_many("gcc -O2", "gcc -O0", "clang -O0")
def functions_with_the_parameters_of_their_prototypes_are_in_main(how):
    compiler, level = how.split()
    program = compile_c("unchanged", CHANGED, compiler, ("-g", "-w", level))
    symbols = {line.split()[-1] for line in run("nm", program, check=True).out.splitlines()}
    found, lost = functions_of(program)
    # GCC says by the symbol's name what it changed: "first.isra.0".
    expect(
        lost == 0
        and found == {name
                      for name in symbols
                      if re.search(rf"\b{name}\([^\n]*\n?{{", CHANGED)}, found, lost)


@claim_each("gcc -g1", "clang -gline-tables-only", "as -g")
def functions_without_a_described_prototype_are_not_in_main(how):
    compiler, level = how.split()
    text = "static inline __attribute__((always_inline)) int one(int a) { return a + 1; }\nint silent(int a) { return one(a); }\n"
    source = write("silent.c", text)
    if compiler == "as":
        source = write(
            "silent.s",
            ".text\n.globl silent\n.type silent,@function\nsilent: lea 1(%rdi),%eax\n ret\n.size silent,.-silent\n"
        )
        compiler = "gcc"
    loud = write(
        "loud.c",
        "int silent(int); void loud(void) {}\nint main(int n, char **v) { loud(); return silent(n); }\n"
    )
    silent, said, program = path_of("silent.o"), path_of("loud.o"), path_of("silent")
    run(need(compiler), level, "-O1", "-c", "-o", silent, source, check=True)
    run("gcc", "-g", "-c", "-o", said, loud, check=True)
    run("gcc", "-o", program, silent, said, check=True)
    out = path_of("silent.btf")
    told = cairn("btf", "encode", program, "-o", out, check=True).out
    found = {r["name"] for r in records_by_bpftool(out).values() if r["kind"] == "FUNC"}
    expect(found == {"loud", "main"}, found, told)
    expect("lost: 1 functions whose parameters the debug information does not describe" in told,
           told)

UNSIZED = """\
pub struct W([u8]);
pub struct D { n: u16, t: W }
#[inline(never)] pub fn f(d: &D, c: &std::ffi::CStr) -> usize { d.n as usize + d.t.0.len() + c.to_bytes().len() }
fn main() {
    let d: &D = unsafe { std::mem::transmute::<(&[u8; 4], usize), &D>((&[1, 0, 2, 3], 1usize)) };
    println!("{}", f(d, std::ffi::CStr::from_bytes_with_nul(b"abc\\0").unwrap()));
}
"""
DISCRIMINATED = """\
with Ada.Command_Line;
procedure Records is
   type Buf (Size : Natural) is record
      Head : Integer;
      Data : String (1 .. Size);
   end record;
   B : Buf (Ada.Command_Line.Argument_Count + 3);
   procedure Use_It (X : in out Buf) is
   begin
      X.Head := X.Size;
   end Use_It;
begin
   Use_It (B);
end Records;
"""


@claim_each("rustc", "gnatmake")
def members_beyond_their_type_are_left_out_and_counted(compiler):
    need(compiler)
    program, out = path_of("records"), path_of("records.btf")
    if compiler == "rustc":
        run(compiler, "-g", "-o", program, write("records.rs", UNSIZED), check=True)
    else:
        run("sh", "-c", 'cd "$1" && exec gnatmake -q -g "$2" -o "$3"', "sh", folder(),
            write("records.adb", DISCRIMINATED), program, check=True)
    told = cairn("btf", "encode", program, "-o", out, check=True).out
    expect("members that reach beyond the size" in told, told)
    cairn("btf", "check", out, check=True)


def kernel_form_of(program):
    """Its BTF as encode writes it, and converted for the kernel."""
    out, kernel = path_of("plain.btf"), path_of("kernel.btf")
    cairn("btf", "encode", program, "-o", out, check=True)
    r = cairn("btf", "convert", "--kernel", "--json", out, "-o", kernel, check=True)
    cairn("btf", "check", "--kernel", kernel, check=True)
    return out, kernel, r.objects()[0]["lost"]


@claim
def the_kernel_takes_types_of_a_c_plus_plus_program_in_its_form():
    need("g++")
    run("g++", "-g", "-O", "-std=c++17", "-o", path_of("other"), write("other.cc", CPLUSPLUS),
        check=True)
    plain, kernel, lost = kernel_form_of(path_of("other"))
    expect(lost["names"] > 100, lost)
    expect(not kernel_takes(plain) and kernel_takes(kernel))


@claim
def the_kernel_takes_types_of_a_rust_program_in_its_form():
    need("rustc")
    run("rustc", "-g", "-O", "-o", path_of("other"), write("other.rs", RUST), check=True)
    plain, kernel, lost = kernel_form_of(path_of("other"))
    expect(lost["names"] > 100 and lost["member_orders"], lost)
    expect(not kernel_takes(plain) and kernel_takes(kernel))


@claim
def the_kernel_takes_types_of_a_go_program_in_its_form():
    need("go")
    plain, kernel, lost = kernel_form_of(go_program())
    expect(lost["names"] > 100, lost)
    expect(not kernel_takes(plain) and kernel_takes(kernel))


@claim
def the_kernel_form_of_a_c_program_is_its_own():
    plain, kernel, lost = kernel_form_of(compile_c("layouts", LAYOUTS, "gcc", ("-g", "-O1", "-w")))
    expect(not any(lost.values()), lost)
    expect(read(plain) == read(kernel))


# ---- encode ----

TAGGED = """\
#define TAG(x) __attribute__((btf_decl_tag(x)))
struct s { int a TAG("one") TAG("two"); int b; int *c TAG("three"); struct { int x; } in TAG("four"); } TAG("whole");
typedef struct s named TAG("typedef");
named TAG("variable") TAG("second") variable;
TAG("function") TAG("again") __attribute__((noinline)) int first(int n TAG("n"), struct s *p TAG("p")) { return p->a + n; }
static inline TAG("inlined") int small(int by TAG("by")) { return by * 3; }
int main(int argc, char **argv) { struct s s = {small(argc)}; return first(argc, &s); }
"""


def tags_in(records):
    return {(r["name"], records[r["type_id"]]["name"], r["component_idx"])
            for r in records.values()
            if r["kind"] == "DECL_TAG"}


@claim
def tags_are_on_types_members_functions_parameters_and_variables():
    out = path_of("tagged.btf")
    told = cairn("btf", "encode", compile_c("tagged", TAGGED, "clang"), "-o", out, "--global-vars",
                 check=True)
    tags = tags_in(records_by_bpftool(out))
    expect(
        tags == {("one", "s", 0), ("two", "s", 0), ("three", "s", 2), ("four", "s", 3),
                 ("whole", "s", -1), ("typedef", "named", -1), ("variable", "variable", -1),
                 ("second", "variable", -1), ("function", "first", -1), ("again", "first", -1),
                 ("n", "first", 0), ("p", "first", 1)}, tags)
    expect("lost:" not in told.out, told)
    inlined = cairn("btf", "dump", "--json", "-B", out, out + ".inline", check=True).objects()
    tags = tags_in({r["id"]: r for r in inlined})
    expect(tags == {("inlined", "small", -1), ("by", "small", 0)}, tags)


@claim
def the_kernel_takes_tags_of_functions():
    expect(kernel_takes(path_of("tagged.btf")))


@claim
def types_of_a_go_program_are_sound():
    need("go")
    program, out = go_program(), path_of("go.btf")
    told = cairn("btf", "encode", program, "-o", out, check=True)
    cairn("btf", "check", out, check=True)
    expect("function values, written as pointers" in told.out, told)
    pairs = [
        r for r in records_by_bpftool(out).values()
        if r["kind"] == "STRUCT" and r["name"].startswith("main.Pair[")
    ]
    expect(len(pairs) == 1 and pairs[0]["size"] == 32, pairs)
    expect([(m["name"], m["bits_offset"]) for m in pairs[0]["members"]] == [("A", 0), ("B", 64),
                                                                            ("next", 128),
                                                                            ("f", 192)], pairs)



# 2^32 elements in two ways, of which no number of 32 bits tells; 2^32 - 1, of which one does; a
# prime; none.
LARGE = """\
struct whole { long n; char bytes[0x100000000UL]; } *whole;
char (*rows)[0x100000000UL], (*table)[3][0x200000000UL], (*most)[0xffffffffUL], (*prime)[4294967311UL], (*none)[0];
typedef struct { char bytes[0x100000000UL]; } nameless;
nameless *n;
int f(struct whole *w) { return w->bytes[3]; }
"""


@claim_each_of_many(*COMPILERS)
def what_has_more_elements_than_btf_counts_is_told_as_lost_and_never_as_none(compiler):
    program, out = compile_c("large", LARGE, compiler,
                             flags=("-g", "-O1", "-c")), path_of(f"large_{compiler}.btf")
    told = cairn("btf", "encode", program, "-o", out)
    expect(told.status == 0 and "more bytes or elements than BTF can count" in told.out + told.err,
           told)
    sound = cairn("btf", "check", out)
    expect(sound.status == 0, sound)
    raw = cairn("btf", "dump", out)
    expect(
        "FWD 'whole'" in raw.out and "STRUCT" not in raw.out
        and "TYPEDEF 'nameless' type_id=0" in raw.out, raw)
    counts = {int(n) for n in re.findall(r"ARRAY .*nr_elems=(\d+)", raw.out)}
    # char[2][2^31]; char[3][4][2^31]; char[2^32 - 1]; the prime, which is not said, and none.
    expect(counts == {0, 2, 3, 4, 2**31, 2**32 - 1}, raw)
    shown = cairn("layout", program, "whole")
    expect("bytes[4294967296];" in shown.out and "/* size: 4294967304" in shown.out, shown)


# An array of a class that is only declared has no size that could be told; nor has one of a class
# without a name, of which Clang says that much only.
UNKNOWN_ELEMENTS = """\
struct unknown;
struct holder { unknown (*row)[4]; unknown (*const *deep)[2][3]; static struct { int z; } inner[3]; int n; } held;
auto *inner = &holder::inner;
typedef const unknown name;
name (*named)[5];
int f(unknown (&r)[6]) { return (void *)held.row == &r; }
"""


@claim_each_of_many("g++", "clang++")
def an_array_of_what_is_only_declared_is_void_and_told_as_lost(compiler):
    need(compiler)
    program, out = path_of(f"unknown_{compiler}.o"), path_of(f"unknown_{compiler}.btf")
    run(compiler, "-g", "-O1", "-c", "-o", program, write("unknown.cc", UNKNOWN_ELEMENTS),
        check=True)
    told = cairn("btf", "encode", "--global-vars", program, "-o", out, check=True)
    # The row, the table through two pointers, and the reference; Clang's class without a name, GCC
    # says it.
    expect(
        f"lost: {4 if compiler == 'g++' else 5} arrays of types that are only declared, or too large, written as void"
        in told.out + told.err, told)
    cairn("btf", "check", out, check=True)
    holder = next(r for r in cairn("btf", "dump", "--json", out, check=True).objects()
                  if r["name"] == "holder")
    expect([(m["name"], m["bits_offset"]) for m in holder["members"]] == [("row", 0), ("deep", 64),
                                                                          ("n", 128)], holder)
    arrays = [r["nr_elems"] for r in records_by_bpftool(out).values() if r["kind"] == "ARRAY"]
    expect(arrays == ([3] if compiler == "g++" else []), arrays)


@claim_each_of_many(*COMPILERS)
def encoded_types_and_sites_are_sound_and_those_of_sites(compiler):
    program = compile_c("inlined", INLINED, compiler)
    out = path_of("encoded-" + compiler)
    r = cairn("btf", "encode", program, "-o", out, "--json", check=True)
    told = r.objects()[0]
    expect(
        told["types"]["bytes"] == os.path.getsize(out)
        and told["inline"]["path"] == out + ".inline", told)
    cairn("btf", "check", out, check=True)
    cairn("btf", "check", "-B", out, out + ".inline", check=True)
    records = cairn("btf", "dump", "--json", "-B", out, out + ".inline", check=True).objects()
    located = sorted((r["name"], loc["offset"]) for r in records if r["kind"] == "LOCSEC"
                     for loc in r["locs"] if loc["name"] == "add")
    sites = cairn("sites", "--json", program, "add", check=True).objects()
    wanted = sorted((s["section"], s["section_off"]) for s in sites if s["kind"] == "inlined")
    expect([off for _, off in located] == [off for _, off in wanted] and len(located) >= 2, located,
           wanted)
    pair = [
        r for r in cairn("btf", "dump", "--json", "-t", "struct pair", out, check=True).objects()
    ]
    expect(
        len(pair) == 1 and pair[0]["size"] == 16
        and [m["bits_offset"] for m in pair[0]["members"]] == [0, 64], pair)


def records_by_layout(path):
    """How many records there are for a reader that knows the kinds up to 19, and of others what the
    layout section tells."""
    data = read(path)
    magic, _, _, header, types, types_len, _, _ = struct.unpack_from("<HBBIIIII", data)
    expect(magic == 0xeb9f and header == 32, header)
    layout, layout_len = struct.unpack_from("<II", data, 24)
    fixed = {1: 4, 3: 12, 14: 4, 17: 4}
    element = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
    at, n = header + types, 0
    while at < header + types + types_len:
        info = struct.unpack_from("<I", data, at + 4)[0]
        kind, vlen = info >> 24 & 0x7f, info & 0xffffff
        sizes = fixed.get(kind, 0), element.get(kind, 0)
        if kind > 19:
            expect(4 * kind < layout_len, kind)
            sizes = data[header + layout + 4 * kind], data[header + layout + 4 * kind + 1]
        at, n = at + 12 + sizes[0] + sizes[1] * vlen, n + 1
    expect(at == header + types + types_len, at)
    return n


@claim_each("n", "v1")
def a_reader_that_knows_no_location_records_steps_over_them_by_the_layout(dialect):
    program, out = compile_c("inlined", INLINED), path_of("stepped-" + dialect)
    cairn("btf", "encode", "--dialect", dialect, program, "-o", out, check=True)
    records = cairn("btf", "dump", "--json", "-B", out, out + ".inline", check=True).objects()
    expect(records_by_layout(out + ".inline") == len(records) > 3, records)
    # libbpf looks in the blob and in its base: with a layout there, either will do.
    cairn("btf", "encode", "--layout", "--dialect", dialect, program, "-o", out, check=True)
    data = read(out)
    layout, layout_len = struct.unpack_from("<II", data, 24)
    entries = [
        tuple(data[32 + layout + 4 * k:32 + layout + 4 * k + 2]) for k in range(layout_len // 4)
    ]
    expect(
        entries[20:] == ([(4, 4), (0, 4), (0, 12)] if dialect == "n" else [(8, 0), (0, 4),
                                                                           (0, 16)]), entries)

FOLDED = {
    "clone.c":
    "static __attribute__((noinline)) int foo(int unused, int a) { return a * 3 + 17; }\n"
    "int use_foo(int n) { return foo(1, n) ^ foo(2, n + 1); }\n", "plain.c":
    "__attribute__((noinline)) int bar(int a) { return a * 3 + 17; }\n", "main.c":
    "int bar(int), use_foo(int); int main(int c, char **v) { return use_foo(c) + bar(c * 5); }\n"
}


@claim
def a_clone_folded_with_another_function_is_a_site_and_told_as_a_clone():
    need("ld.lld")
    program, out = path_of("folded"), path_of("folded.btf")
    sources = [write(name, text) for name, text in FOLDED.items()]
    run(need("gcc"), "-O2", "-g", "-ffunction-sections", "-fno-ipa-icf", "-fuse-ld=lld",
        "-Wl,--icf=all", *sources, "-o", program, check=True)
    at = {}
    for line in run(need("nm"), program, check=True).out.splitlines():
        at[line.split()[-1]] = line.split()[0]
    clone = next((name for name in at if name.startswith("foo.")), None)
    if not clone or at[clone] != at["bar"]:
        raise Skip("this compiler and linker do not fold them")
    cairn("btf", "encode", program, "-o", out, check=True)
    expect("FUNC 'foo'" not in cairn("btf", "dump", out, check=True).out)
    records = cairn("btf", "dump", "--json", "-B", out, out + ".inline", check=True).objects()
    expect([loc["name"] for r in records if r["kind"] == "LOCSEC"
            for loc in r["locs"]] == ["foo"], records)
    # foo's second parameter is in the first register there: by the convention of a plain foo it
    # would be in the second.
    args = cairn("sites", "--json", program, "foo", check=True).objects()[0]["args"]
    expect(args[1]["name"] == "a" and args[1]["loc"] in (None, "%rdi"), args)


@claim
def an_embedded_copy_runs_and_has_the_same_btf():
    program, out, copy = compile_c("inlined", INLINED), path_of("beside"), path_of("embedded")
    cairn("btf", "encode", program, "-o", out, check=True)
    cairn("btf", "encode", "--embed", program, "-o", copy, check=True)
    expect(run(copy, "5").status == run(program, "5").status)
    expect(cairn("btf", "dump", copy, check=True).out == cairn("btf", "dump", out, check=True).out)
    expect(cairn("btf", "dump", "--section", ".BTF.inline", "-B", copy, copy, check=True).out ==
           cairn("btf", "dump", "-B", out, out + ".inline", check=True).out)
    wanted = cairn("btf", "dump", out, check=True).out
    expect(run(need("bpftool"), "btf", "dump", "file", copy, check=True).out == wanted)


@claim
def sites_of_an_earlier_run_are_not_taken_for_those_of_this_one():
    program, out = compile_c("inlined", INLINED), path_of("leftover")
    expect(not cairn("btf", "encode", program, "-o", out, check=True).err)
    r = cairn("btf", "encode", "--dialect", "none", program, "-o", out, check=True)
    expect(out + ".inline is left from an earlier run" in r.err and out + ".inline" not in r.out, r)


@claim
def encoding_gives_the_same_bytes_with_any_number_of_threads():
    program = compile_c("inlined", INLINED)
    results = set()
    for jobs in ("1", "2", "8"):
        out = path_of("jobs" + jobs)
        cairn("btf", "encode", "-j", jobs, program, "-o", out, check=True)
        results.add((read(out), read(out + ".inline")))
    expect(len(results) == 1, len(results))


@claim
def variables_are_encoded_when_they_are_asked_for():
    program = compile_c("layouts", LAYOUTS, "gcc", ("-g", "-O1", "-w"))
    out = path_of("vars")
    cairn("btf", "encode", program, "-o", out, check=True)
    expect("VAR 'use_1'" not in cairn("btf", "dump", out, check=True).out)
    cairn("btf", "encode", "--global-vars", program, "-o", out, check=True)
    expect("VAR 'use_1'" in cairn("btf", "dump", out, check=True).out)
    cairn("btf", "encode", "--global-vars=split", program, "-o", out, check=True)
    expect("VAR 'use_1'" not in cairn("btf", "dump", out, check=True).out)
    expect("VAR 'use_1'" in cairn("btf", "dump", "-B", out, out + ".vars", check=True).out)


if __name__ == "__main__":
    main()
