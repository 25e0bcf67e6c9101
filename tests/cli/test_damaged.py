#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The whole program on files that are damaged, or made to do harm, and on processes and files that
go away under it."""

import os
import shutil
import subprocess
import time

from claims import (CAIRN, Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need,
                    need_root, run)

SMALL = """\
static volatile int sink;
static inline __attribute__((always_inline)) void f(int n) { sink = n; }
void g(int n) { f(n); f(n + 1); }
"""

# Debug information that no compiler writes: a unit with one function g, and what @inside adds to it
# and @after to the unit.
ASSEMBLY = """\
	.text
g:	nop
	nop
	nop
	ret
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11, 1, 0x25, 8, 3, 8, 0x11, 1, 0x12, 7, 0, 0	# unit: producer, name, low_pc, high_pc
	.uleb128 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0		# function with code
	.uleb128 3, 0x2e, 1, 3, 8, 0x20, 0x0b, 0, 0			# function that is inlined
	.uleb128 4, 0x0b, 1, 0x11, 1, 0x12, 7, 0, 0			# block
	.uleb128 5, 0x1d, 0, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0		# copy: origin
	.uleb128 6, 0x2e, 0, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0		# body: origin
	.uleb128 7, 0x13, 1, 3, 8, 0x0b, 7, 0, 0			# struct: name, byte_size
	.uleb128 8, 0x16, 0, 3, 8, 0x49, 0x13, 0, 0			# typedef: name, type
	.uleb128 9, 5, 0, 3, 8, 0x49, 0x13, 2, 0x18, 0, 0		# parameter: name, type, location
	.uleb128 10, 0x0d, 0, 3, 8, 0x49, 0x13, 0x38, 7, 0, 0		# member: name, type, site
	.byte 0
	.section .debug_info,"",@progbits
unit:	.long end - version
version: .short 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.asciz "GNU C17 12.2.0 -O2 -g"
	.asciz "made.c"
	.quad g, 4
	.uleb128 2
	.asciz "g"
	.quad g, 4
%s
	.byte 0
%s
	.byte 0
end:
"""


def made(name, inside="", after=""):
    path = os.path.join(folder(), name)
    with open(path + ".s", "w", encoding="ascii") as file:
        file.write(ASSEMBLY % (inside, after))
    run(need("as"), "-o", path + ".o", path + ".s", check=True)
    return path + ".o"


def ends_well(r):
    """With a documented status, what went wrong said, and not by a signal."""
    return r.status in (0, 1, 3, 4) and (r.status == 0 or r.err.strip())


@claim
def a_file_cut_anywhere_gives_an_answer_or_an_error():
    with open(compile_c("small.o", SMALL, flags=("-O2", "-g", "-c")), "rb") as file:
        whole = file.read()
    path = os.path.join(folder(), "cut.o")
    for n in sorted({len(whole) * i // 97 for i in range(97)} | {0, 1, 63, 64, len(whole) - 1}):
        with open(path, "wb") as file:
            file.write(whole[:n])
        r = cairn("sites", path, "--sites", "--json")
        expect(ends_well(r) and r.status != 0, f"cut at {n}", r)


@claim
def a_file_with_any_bit_flipped_gives_an_answer_or_an_error():
    with open(compile_c("small.o", SMALL, flags=("-O2", "-g", "-c")), "rb") as file:
        whole = file.read()
    path = os.path.join(folder(), "flipped.o")
    for i in range(150):
        at = len(whole) * i // 150
        with open(path, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 1 << i % 8]) + whole[at + 1:])
        r = cairn("sites", path, "--sites", "--json")
        expect(ends_well(r), f"bit {i % 8} of byte {at}", r)


@claim
def copies_whose_origins_go_in_a_ring_are_refused_or_left_out():
    path = made(
        "ring",
        "one:\t.uleb128 5\n\t.long two - unit\n\t.quad g, 2\ntwo:\t.uleb128 5\n\t.long one - unit\n\t.quad g + 2, 1",
        "three:\t.uleb128 6\n\t.long three - unit\n\t.quad g, 1")
    for words in ((), ("g",), ("--sites",)):
        r = cairn("sites", path, *words, seconds=20)
        expect(ends_well(r), r)


@claim
def types_that_refer_to_themselves_are_told_as_such():
    path = made(
        "types", "\t.uleb128 9\n\t.asciz \"n\"\n\t.long t - unit\n\t.byte 1, 0x55",
        "t:\t.uleb128 8\n\t.asciz \"t\"\n\t.long u - unit\nu:\t.uleb128 8\n\t.asciz \"u\"\n\t.long t - unit"
    )
    r = cairn("sites", path, "g", seconds=20)
    expect(ends_well(r) and "t n" in r.out, r)
    for words in (("layout", path, "t"), ("btf", "encode", path, "-o",
                                          os.path.join(folder(), "types.btf"))):
        expect(ends_well(cairn(*words, seconds=20)), words)


@claim
def a_struct_of_2_to_the_63_bytes_is_shown_and_not_made_room_for():
    path = made(
        "huge", "\t.uleb128 9\n\t.asciz \"n\"\n\t.long s - unit\n\t.byte 1, 0x55",
        "s:\t.uleb128 7\n\t.asciz \"s\"\n\t.quad 0x8000000000000000\n\t.uleb128 10\n\t.asciz \"m\"\n\t.long s - unit\n"
        "\t.quad 0x7fffffffffffffff\n\t.byte 0")
    for words in (("sites", path, "g"), ("layout", path, "s")):
        r = cairn(*words, seconds=20)
        expect(ends_well(r), r)


@claim
def a_million_scopes_in_one_another_are_walked():
    depth = 1000000
    copy = "\t.uleb128 5\n\t.long f - unit\n\t.quad g + 1, 1"
    path = made(
        "deep", f"\t.rept {depth}\n\t.uleb128 4\n\t.quad g, 4\n\t.endr\n{copy}\n\t.skip {depth}, 0",
        "f:\t.uleb128 3\n\t.asciz \"f\"\n\t.byte 1\n\t.byte 0")
    r = cairn("sites", path, "f", "--json", seconds=60)
    expect(
        r.status == 0 and [(o["kind"], o["section"], o["section_off"])
                           for o in r.objects()] == [("inlined", ".text", 1)], r)


LOOP = """\
#include <unistd.h>
__attribute__((noinline)) void tick(long n) { __asm__ volatile("" : : "r"(n) : "memory"); }
int main(void)
{
	for (long n = 0; n < 20000; n++) {
		tick(n);
		usleep(500);
	}
	return 0;
}
"""


def start(path, log):
    return subprocess.Popen([CAIRN, "trace", "--max-slowdown", "off", "--json", "-o", log, "-p",
                             str(path), "tick"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def outcome(tracer, log):
    try:
        err = tracer.communicate(timeout=60)[1]
    finally:
        tracer.kill()
    if tracer.returncode == 3:
        raise Skip(" ".join(err.split())[:200])
    with open(log, encoding="utf-8") as file:
        return tracer.returncode, err, file.read()


@claim_each(0, 1, 3, 10, 30, 100)
def a_process_that_ends_while_it_is_attached_to_ends_the_trace(milliseconds):
    need_root()
    log = os.path.join(folder(), f"ends.{milliseconds}")
    open(log, "w", encoding="utf-8").close()
    with subprocess.Popen([compile_c("ending", LOOP)]) as process:
        try:
            tracer = start(process.pid, log)
            time.sleep(milliseconds / 1000)
        finally:
            process.kill()
    status, err, _ = outcome(tracer, log)
    # It was there and has ended, or it was no more when it was looked for.
    expect(status in (0, 1, 2), status, err)
    expect(status == 0 or err.strip(), status, err)


@claim
def a_file_replaced_while_it_is_traced_changes_nothing_for_the_process():
    need_root()
    original = compile_c("replaced", LOOP)
    path, log = os.path.join(folder(), "under"), os.path.join(folder(), "under.log")
    shutil.copy(original, path)
    with subprocess.Popen([path]) as process:
        try:
            tracer = start(process.pid, log)
            deadline = time.monotonic() + 30
            while tracer.poll() is None and time.monotonic() < deadline and not (
                    os.path.exists(log) and os.path.getsize(log)):
                time.sleep(0.05)
            shutil.copy(need("true"), path + ".new")
            os.rename(path + ".new", path)
            before = os.path.getsize(log) if os.path.exists(log) else 0
            while tracer.poll() is None and time.monotonic() < deadline and os.path.getsize(
                    log) < before + 4096:
                time.sleep(0.05)
        finally:
            process.kill()
    status, err, events = outcome(tracer, log)
    expect(status == 0 and len(events) > before, status, err)
    expect(all('"function":"tick"' in line for line in events.splitlines() if '"args"' in line),
           events[-2000:])


if __name__ == "__main__":
    main()
