#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn decode: records of files, in the forms they come in. Maps: tests/live; truth of values:
tests/truth."""

import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import (CAIRN, Skip, cairn, claim, claim_each_of_many, compile_c, expect, folder, main,
                    need, run, write)

EVENT = "struct event { unsigned int e_pid; char e_filename[256]; char e_comm[16]; };\n"


def event(pid, filename=b"/etc/passwd", comm=b"cat"):
    return pid.to_bytes(4, "little") + filename.ljust(256, b"\0") + comm.ljust(16, b"\0")


def decode(*words, data=b""):
    done = subprocess.run([CAIRN, "decode", *words], input=data, capture_output=True, check=False,
                          timeout=120)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


@claim
def strings_of_a_record_are_not_in_it_and_raw_shows_their_structs():
    need("g++")
    source, path = os.path.join(folder(), "record.cpp"), os.path.join(folder(), "record")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <memory>\n#include <string_view>\n"
                   "struct record { int id; std::string_view name; std::unique_ptr<int> at; } r;\n"
                   "int main() { return r.id; }\n")
    run("g++", "-std=c++17", "-g", "-o", path, source, check=True)
    data = struct.pack("<iiQQQ", 7, 0, 5, 0x1000, 0x20)
    for sidecar in ((), ("--no-sidecar",)):
        r = decode(*sidecar, path, "record", data=data)
        expect(
            r.out ==
            "{.id = 7, .name = <unavailable: 5 bytes at 0x1000 are not here>, .at = 0x20}\n", r)
        r = decode(*sidecar, "--json", path, "record", data=data)
        expect(
            json.loads(r.out) == {
                "id": 7, "name": {"unavailable": "5 bytes at 0x1000 are not here"}, "at": "0x20"
            }, r)
        r = decode(*sidecar, "--raw", path, "record", data=data)
        expect("._M_len = 5, ._M_str = 0x1000" in r.out and "._M_head_impl = 0x20" in r.out, r)
    expect(cairn("sidecar", path, "-o", path + ".cairn").status == 0)
    r = decode(path, "record", data=data)
    expect(
        r.out == "{.id = 7, .name = <unavailable: 5 bytes at 0x1000 are not here>, .at = 0x20}\n",
        r)


@claim
def raw_records_follow_one_another():
    path, records = write("event.h", EVENT), b"".join(map(event, range(5000)))
    for r in (decode(path, "event", "--json", data=records),
              decode(path, "struct event", write("records", records), "--json")):
        expect(r.returncode == 0 and not r.err, r.err)
        found = [json.loads(line) for line in r.out.splitlines()]
        expect(
            found == [{"e_pid": i, "e_filename": "/etc/passwd", "e_comm": "cat"}
                      for i in range(5000)], found[:2])
    r = decode(path, "event", data=event(7))
    expect(r.out == '{.e_pid = 7, .e_filename = "/etc/passwd", .e_comm = "cat"}\n', r.out)


@claim
def a_record_that_is_cut_is_told_and_the_others_are_shown():
    path = write("event.h", EVENT)
    r = decode(path, "event", "--json", data=event(1) + event(2)[:100])
    record, error = [json.loads(o) for o in r.out.splitlines()]
    expect(r.returncode == 4 and record["e_pid"] == 1 and error["status"] == 4, r.out)
    expect("record 2: the input ends in it: 100 of 276 bytes, at offset 276" in r.err, r.err)
    lines = "\n".join(e.hex() for e in (event(1), event(2)[:275], event(3) + b"\0" * 4, event(4)))
    r = decode(path, "event", "--json", "--format", "hex", data=lines.encode())
    found = [json.loads(o) for o in r.out.splitlines()]
    expect([o["e_pid"] for o in found[:2]] == [1, 4] and r.returncode == 4, r.out)
    expect(len(found) == 4 and all(set(o) == {"error", "status"} for o in found[2:]), r.out)
    expect(
        "record 2: 275 bytes, but the type has 276" in r.err
        and "record 3: 280 bytes, 4 more" in r.err, r.err)
    r = decode(path, "event", "--format", "hex", data=b"01\n")
    expect(r.returncode == 4 and "record 1: 1 byte, but the type has 276" in r.err, r.err)
    r = decode(path, "event", "--json", "--format", "hex", "--perf", data=lines.encode())
    found = [json.loads(o) for o in r.out.splitlines()]
    expect([o["e_pid"] for o in found if "error" not in o] == [1, 3, 4], r.out)


@claim
def raw_perf_records_are_filled_up_to_eight_with_their_length():
    # 276 + 4 is a multiple of 8; 278 + 4 is filled up by 6.
    path = write("two.h", EVENT + "struct more { struct event e; short s; };\n")
    r = decode(path, "event", "--perf", "--json", data=event(1) + event(2))
    expect([json.loads(o)["e_pid"] for o in r.out.splitlines()] == [1, 2] and not r.returncode,
           r.out, r.err)
    r = decode(path, "more", "--perf", data=2 * (event(1) + b"\1\0" + b"\0" * 6))
    expect(len(r.out.splitlines()) == 2 and not r.returncode, r.out, r.err)


@claim
def hexadecimal_lines_may_have_blanks_colons_and_0x():
    path = write("pair.h", "struct pair { unsigned short a, b; };\n")
    lines = "# a comment\n01000200\n01 00 02 00\n01:00:02:00\n0x01 0x00 0x02 0x00\n\n\"0x01\",\"0x00\",\"0x02\",\"0x00\"\n"
    r = decode(path, "pair", "--format", "hex", data=lines.encode())
    expect(r.out == "{.a = 1, .b = 2}\n" * 5 and r.returncode == 0, r.out, r.err)
    r = decode(path, "pair", "--format", "hex", data=b"0100 02\n0100020\nxyz\n")
    expect(r.returncode == 4 and not r.out and r.err.count("record") == 3, r.err)


@claim
def a_member_of_json_objects_is_replaced_by_its_value():
    path = write("pair.h", "struct pair { unsigned short a; float b; } __attribute__((packed));\n")
    lines = (
        '{"time": 7, "data": "01000000c03f", "more": [1, {"data": "}"}]}\n'
        '{"x":"\\"data\\"","data":[1,0,0,0,192,63]}\r\n{"data":["0x01","0x00","0x00","0x00","0xc0","0x3f"]}\n'
    )
    r = decode(path, "pair", "--format", "json", "--json", data=lines.encode())
    found = [json.loads(o) for o in r.out.splitlines()]
    value = {"a": 1, "b": 1.5}
    expect(
        found == [{"time": 7, "data": value, "more": [1, {"data": "}"}]},
                  {"x": '"data"', "data": value}, {"data": value}], r.out, r.err)
    r = decode(path, "pair", "--format", "json", "--field", "raw",
               data=b'{"raw":"01000000c03f"}\n{"data":"00"}\n[1]\n{"raw":"1"\n')
    expect(r.out == "{.a = 1, .b = 1.5}\n" and r.returncode == 4 and r.err.count("record") == 3,
           r.out, r.err)


@claim
def flexible_arrays_take_what_is_left():
    path = write("flex.h", "struct flex { int n; short k; char text[]; };\n")
    r = decode(path, "flex", data=b"\1\0\0\0\2\0hello")
    expect(r.out == '{.n = 1, .k = 2, .text = "hello"}\n' and not r.returncode, r.out, r.err)
    r = decode(path, "flex", "--size", "8", data=b"\1\0\0\0\2\0ab\3\0\0\0\4\0cd")
    expect(
        r.out.splitlines() == ['{.n = 1, .k = 2, .text = "ab"}', '{.n = 3, .k = 4, .text = "cd"}'],
        r.out, r.err)
    r = decode(path, "flex", data=b"\1\0\0\0\2")
    expect(r.returncode == 4 and "5 bytes, but the type has 6 before its flexible array" in r.err,
           r.err)


@claim
def the_byte_order_is_that_of_the_abi():
    path = write("be.h", "struct be { unsigned a : 4; unsigned b : 12; short c; };\n")
    expect(
        decode(path, "be", "--abi", "s390x",
               data=b"\x12\x34\xff\xfe").out == "{.a = 1, .b = 564, .c = -2}\n", "BE")
    expect(
        decode(path, "be", data=b"\x41\x23\xfe\xff").out == "{.a = 1, .b = 564, .c = -2}\n", "LE")


@claim
def numbers_and_enums_in_the_other_byte_order_are_what_the_program_wrote():
    need("gcc")
    text = '''#include <stdio.h>
enum color { RED = 1, GREEN = 0x102 };
struct inner { short native; };
struct __attribute__((scalar_storage_order("big-endian"))) wire {
  unsigned short len; int temp; unsigned long id; float f; double d; enum color c, more[2]; _Bool ok;
  unsigned hi : 4, mid : 9; int lo : 5; enum color small : 10; short list[2]; struct inner in; char text[5]; void *p; __int128 big; };
struct wire w;
int main(void) { static int x; w = (struct wire){.len = 0x1234, .temp = -5, .id = 0x0102030405060708, .f = 1.5f, .d = -2.25,
  .c = GREEN, .more = {RED, GREEN}, .ok = 1, .hi = 10, .mid = 0x155, .lo = -3, .small = GREEN, .list = {1, -2}, .in = {7}, .text = "hey",
  .big = -9}; w.p = (void *)((char *)0x1234 + x); return fwrite(&w, sizeof(w), 1, stdout) != 1; }
'''
    truth = (
        "{.len = 4660, .temp = -5, .id = 72623859790382856, .f = 1.5, .d = -2.25, .c = GREEN, .more = {RED, GREEN}, .ok = true, "
        ".hi = 10, .mid = 341, .lo = -3, .small = GREEN, .list = {1, -2}, .in = {.native = 7}, .text = \"hey\", .p = 0x1234, .big = -9}\n"
    )
    for version in "345":
        program = compile_c("order", text, "gcc", ["-O2", "-gdwarf-" + version])
        data = subprocess.run([program], capture_output=True, check=True, timeout=10).stdout
        r = decode(program, "wire", data=data)
        expect(r.out == truth, version, r.out, r.err)


@claim
def arms_padding_and_limits_are_options():
    path = write(
        "arms.h",
        "enum proto { TCP = 6, UDP = 17 }; struct p { char c; enum proto proto; union { int tcp; short udp; } l4; int v[4]; };\n"
    )
    data = b"c\1\2\3" + b"\x11\0\0\0" + b"\5\0\0\0" + b"\1\0\0\0" * 4
    r = decode(path, "p", "-d", "l4=tcp:proto=TCP", "-d", "l4=udp:proto=17", "--padding", "-n", "2",
               data=data)
    expect(
        r.out ==
        "{.c = 'c', <padding 1> = 010203, .proto = UDP, .l4 = {.udp = 5}, .v = {1, 1, ...}}\n",
        r.out, r.err)
    for choice, why in (("l4=sctp", "no union l4 with an arm sctp"), ("l4", "write UNION=ARM"),
                        ("l4=tcp:proto=ICMP", "no value"),
                        ("l4=tcp:nothing=1", "no member nothing"), ("l4=tcp:v=1", "no integer")):
        r = decode(path, "p", "-d", choice, data=data)
        expect(r.returncode == 2 and why in r.err and not r.out, choice, r.err)
    expect(
        decode(path, "p", "--hex",
               data=data).out.startswith("{.c = 'c', .proto = UDP, .l4 = {.tcp = 0x5, .udp = 0x5}"),
        "hex")


@claim_each_of_many("gcc", "clang")
def types_come_from_debug_information_and_bpf_objects(compiler):
    text = EVENT + "struct event the_event;\n"
    program = compile_c("decode", text + "int main(void) { return the_event.e_pid; }\n", compiler)
    expect(decode(program, "event", data=event(3)).out.startswith("{.e_pid = 3,"), compiler)
    need("clang")
    path = os.path.join(folder(), "event.bpf.o")
    run("clang", "-target", "bpf", "-g", "-O1", "-c", "-o", path,
        write("event.c", text + "int f(void) { return the_event.e_pid; }\n"), check=True)
    expect(decode(path, "event", data=event(4)).out.startswith("{.e_pid = 4,"), "BPF")


SCALARS = """typedef unsigned long long u64; typedef u64 dma_t; typedef char tag_t[4]; typedef struct event *event_p;
enum color { RED = 7 }; typedef enum color shade; typedef _Bool flag; typedef void nothing; typedef double real;
struct event { dma_t a; tag_t b; event_p c; shade d; flag e; real f; unsigned long g; nothing *h; } the_event;
"""
# Type, its bytes, its value. Spellings differ from those of the debug information.
SCALAR_VALUES = (("u64", "0200000000000000", "2"), ("dma_t", "0300000000000080",
                                                    "9223372036854775811"),
                 ("tag_t", "61626300", '"abc"'), ("event_p", "1000000000000000", "0x10"),
                 ("shade", "07000000", "RED"), ("flag", "01", "true"), ("real", "000000000000f83f",
                                                                        "1.5"),
                 ("unsigned long", "ffffffffffffffff",
                  "18446744073709551615"), ("long unsigned int", "0100000000000000", "1"),
                 ("unsigned long long", "0100000000000000", "1"), ("bool", "00", "false"),
                 ("_Bool", "01", "true"), ("char", "41", "'A'"), ("double", "0000000000000840",
                                                                  "3"))


def holds_scalars(path, what, *words):
    for name, data, value in SCALAR_VALUES:
        r = decode(path, name, "--format", "hex", *words, data=data.encode())
        expect(r.returncode == 0 and r.out == value + "\n", what, name, r.out, r.err)
    for name in ("struct u64", "u6?", "unsigned float", "long long long", "unsigned short", "u64x",
                 "short unsigned"):
        r = decode(path, name, "--format", "hex", *words, data=b"01")
        expect(r.returncode == 1 and f"no type is named {name}" in r.err and not r.out, what, name,
               r.out, r.err)
    r = decode(path, "nothing", "--format", "hex", *words, data=b"01")
    expect(r.returncode == 1 and not r.out, what, r.out, r.err)
    r = cairn("layout", path, "dma_t")
    expect(
        r.status == 1 and "dma_t has no members: it is" in r.err and "8 bytes" in r.err
        and not r.out, what, r)


@claim_each_of_many("gcc", "clang")
def typedefs_and_base_types_have_values(compiler):
    program = compile_c("scalars", SCALARS + "int main(void) { return 0; }\n", compiler)
    holds_scalars(program, compiler)
    sidecar = os.path.join(folder(), "scalars.cairn")
    run(CAIRN, "sidecar", program, "-o", sidecar, check=True)
    holds_scalars(sidecar, "sidecar")
    btf = os.path.join(folder(), "scalars.btf")
    run(CAIRN, "btf", "encode", program, "-o", btf, check=True)
    holds_scalars(btf, "BTF")
    holds_scalars(write("scalars.h", SCALARS), "C")


@claim
def the_kernel_s_u64_is_a_type():
    kernel = "/sys/kernel/btf/vmlinux"
    if not os.path.exists(kernel):
        raise Skip("the kernel has no BTF")
    r = decode(kernel, "u64", data=(258).to_bytes(8, "little"))
    expect(r.out == "258\n" and r.returncode == 0, r.out, r.err)


@claim
def bad_command_lines_are_usage_errors():
    path = write("event.h", EVENT)
    for words in ([], [path], ["/no/such/file", "event"], [path, "event", "/no/such/file"], [
            path, "event", "--ring", "--perf"
    ], [path, "event", "--consume"], [path, "event", "--format", "csv"], [
            path, "event", "--size", "0"
    ], [path, "event", "--abi", "pdp11"], [path, "event", "x",
                                           "y"], ["--map", "x", path, "event", "more"]):
        r = cairn("decode", *words)
        expect(r.status in (2, 1 if "--map" in words else 2) and r.err and not r.out, r)
    expect(decode(path, "nothing").returncode == 1, "a type that is not there")


@claim
def hostile_types_end():
    # A struct in itself is refused by the parser of C; arrays beyond memory are cut at the record.
    path = write(
        "huge.h",
        "struct huge { int a[1 << 28]; union { int x[1 << 20]; char y[1 << 20]; } u[100]; };\n")
    r = decode(path, "huge", "--format", "hex", data=b"01000000\n")
    expect(r.returncode == 4 and not r.out and "4 bytes, but the type has" in r.err, r.err)


main()
