#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""BPF programs with cairn/loc.bpf.h: their arguments at bodies and inlined copies, and refusals.

The traced program logs its own calls. More functions, and more compilers: tests/truth/loc.py.
"""

import os
import shutil
import sys

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

import loc_calls  # noqa: E402
# noqa: E402
from claims import (BUILD, SOURCE, Skip, claim, claim_each, claim_plainly, expect, folder, main, need,
                    need_root, run)

HOLDER = os.path.join(BUILD, "tests", "live", "loc_programs")

# Nothing needs "gone", and no instruction computes it in the first copy.
PROGRAM = r"""
volatile long sink;
volatile double real;
struct wide { long a, b; };
__attribute__((noinline, noipa)) void body(int a, long b) { sink += a + b; }
__attribute__((noinline, noipa)) void takes_wide(struct wide w) { sink += w.a + w.b; }
static inline __attribute__((always_inline)) void copy(int a, int gone) { body(a, 5); }
int main(int argc, char **argv)
{
	struct wide w = {argc, 3};
	int a = (int)sink - 9;
	copy(a, (int)(real * 1.5));
	copy(a, 4);
	takes_wide(w);
	return 0;
}
"""
PROGRAMS = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <cairn/loc.bpf.h>
#include "loc_record.h"
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 16); } records SEC(".maps");
char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __attribute__((always_inline)) int send(void *ctx, unsigned int id, long a, long b)
{
	struct loc_record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r)
		return 0;
	r->id = id;
	r->n = bpf_loc_arg_cnt(ctx);
	r->cookie = bpf_loc_cookie(ctx);
	for (int i = 0; i < 2; i++) {
		__builtin_memset(&r->args[i], 0, sizeof(r->args[i]));
		__builtin_memcpy(r->args[i].bytes, i ? &b : &a, 8);
	}
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("uloc")
int BPF_LOC_PROG(two, int a, long b)
{
	return send(ctx, 2, a, b);
}

SEC("uloc")
int BPF_LOC_PROG(one, int a)
{
	return send(ctx, 1, a, 0);
}

/* Another kind of attachment: there is no row. */
SEC("uloc")
int narrow(struct pt_regs *ctx)
{
	char small = 1;
	int e = bpf_loc_arg(ctx, 1, &small);

	return send(ctx, 3, e, small);
}
"""


def compile_programs(source, name, *options):
    need("clang")
    path = os.path.join(folder(), name)
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write(source)
    run("clang",
        "-O2",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-target",
        "bpf",
        "-idirafter",
        f"/usr/include/{os.uname().machine}-linux-gnu",
        "-I",
        os.path.join(SOURCE, "include"),
        "-I",
        os.path.join(SOURCE, "tests", "live"),
        *options,
        "-c",
        path + ".c",
        "-o",
        path + ".o",
        check=True)
    return path + ".o"


def compile_target(source, name):
    path = os.path.join(folder(), name)
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write(source)
    run(need("gcc"), "-O2", "-g", path + ".c", "-o", path, check=True)
    return path


def hold(*arguments):
    need_root()
    if not os.path.exists(HOLDER):
        raise Skip("tests/live/loc_programs is not built")
    r = run(HOLDER, *arguments)
    if r.status == 77:
        raise Skip("BPF objects cannot be loaded here")
    return r


_made = {}


def made():
    if not _made:
        _made["target"] = compile_target(PROGRAM, "target")
        _made["programs"] = compile_programs(PROGRAMS, "programs")
    return _made["target"], _made["programs"]


def attach(target, program="two", programs=None, cookie="0"):
    path, own = made()
    return hold("-t", program, target.replace("FILE", path), cookie, programs
                or own, path)


@claim
def a_program_has_the_arguments_of_bodies_and_copies():
    functions = loc_calls.functions(4, 3, (12, 1, 0, 4))
    path = os.path.join(folder(), "calls")
    compile_target(loc_calls.program(functions, 9), "calls")
    header = os.path.join(SOURCE, "tests", "live", "loc_record.h")
    programs = compile_programs(loc_calls.bpf_object(functions, path, header),
                                "calls.bpf")
    log = os.path.join(folder(), "log")
    r = hold(programs, path, log)
    expect(r.status == 0, r)
    with open(log, encoding="utf-8") as file:
        right, unavailable, wrong, bad = loc_calls.compare(
            file.read().splitlines(), r.lines())
    expect(not wrong and right > 3 * unavailable, right, unavailable, wrong,
           bad)


@claim
def the_parameters_and_the_cookie_reach_the_program():
    r = attach("FILE:body", cookie="77")
    expect(
        r.status == 0 and r.lines()
        == ["2 2 77 =" + "f7" + "ff" * 7 + "00" * 8 + " =05" + "00" * 15] * 2,
        r)


@claim
def a_value_is_never_cut():
    r = attach("FILE:body", "narrow")
    expect(
        r.status == 0 and r.lines()
        == ["3 2 0 =f9" + "ff" * 7 + "00" * 8 + " =" + "00" * 16] * 2, r)


@claim
def programs_of_one_object_and_at_one_address_do_not_disturb_each_other():
    path, programs = made()
    r = hold("-t", "one", f"{path}:body", "1", "-t", "two", f"{path}:body",
             "2", "-t", "narrow", f"{path}:takes_wide", "3", programs, path)
    seen = sorted(line.split()[:3] for line in r.lines())
    expect(
        r.status == 0 and seen
        == [["1", "2", "1"]] * 2 + [["2", "2", "2"]] * 2 + [["3", "1", "3"]],
        r)


REFUSED = {
    "FILE:nowhere": "nowhere",
    "/nonexistent/file:f": "/nonexistent/file",
    "FILE:body(a)": "without a list",
    "FILE:bod*": "is a pattern",
    "FILE": "the target is PATH:FUNC",
    "FILE:main+1": "the name of a function is wanted",
    "FILE:takes_wide": "the program takes 2 arguments",
    "FILE:copy": "gone is unavailable",
}


@claim_each(*REFUSED)
def a_target_is_refused_with_the_reason(target):
    r = attach(target)
    expect(r.status == 3 and REFUSED[target] in r.err and not r.out, r)


@claim
def a_wide_argument_is_no_parameter():
    r = attach("FILE:takes_wide", "one")
    expect(r.status == 3 and "has 16 bytes" in r.err, r)


@claim
def without_debug_information_nothing_is_attached():
    path, _ = made()
    stripped = path + ".stripped"
    run(need("strip"), "-g", path, "-o", stripped, check=True)
    r = attach(f"{stripped}:body")
    expect(r.status == 3 and "debug information" in r.err, r)


@claim
def a_table_may_be_too_small():
    small = compile_programs(PROGRAMS, "small", "-DBPF_LOC_TABLE_ENTRIES=3")
    r = attach("FILE:body", programs=small)
    expect(r.status == 3 and "3 more entries are needed" in r.err, r)


@claim
def a_best_effort_leaves_sites_out_and_says_so():
    path, _ = made()
    text = PROGRAMS.replace('SEC("uloc")',
                            f'SEC("uloc.best_effort/{path}:copy")', 1)
    r = hold(compile_programs(text, "best"), path)
    expect(
        r.status == 0 and len(r.lines()) == 1
        and "1 of 2 sites are left out" in r.err, r)
    r = hold(compile_programs(text.replace(".best_effort", ""), "all"), path)
    expect(r.status == 3 and "gone is unavailable" in r.err and not r.out, r)


@claim
def a_kernel_without_kprobes_has_no_kloc():
    if os.path.exists("/sys/bus/event_source/devices/kprobe"):
        raise Skip("this kernel has kprobes: tests/kernels/loc.py")
    text = PROGRAMS.replace('SEC("uloc")', 'SEC("kloc/vfs_write")', 1)
    r = hold(compile_programs(text, "kernel"), "true")
    expect(r.status == 3 and "no kprobes" in r.err and not r.out, r)


@claim
def a_copy_without_the_second_argument_has_the_first():
    r = attach("FILE:copy", "one")
    expect(r.status == 0 and len(r.lines()) == 2 and not r.err, r)


@claim_plainly
def the_example_of_the_document_prints_what_it_shows():
    need_root()
    for tool in ("pkg-config", "clang", "cc"):
        need(tool)
    with open(os.path.join(SOURCE, "docs", "libbpf.md"),
              encoding="utf-8") as file:
        lines = file.read().split("```console\n")[1].split(
            "```")[0].splitlines()
    commands = [
        line[2:].replace("sudo ", "") for line in lines
        if line.startswith("$ ")
    ]
    into = os.path.join(folder(), "example")
    os.mkdir(into)
    for name in ("words.c", "allocs.c", "allocs.bpf.c"):
        shutil.copy(os.path.join(SOURCE, "examples", name), into)
    environment = dict(os.environ,
                       LD_LIBRARY_PATH=os.path.join(BUILD, "src"),
                       PKG_CONFIG_PATH=into)
    # As it is installed, with the folders of the build.
    with open(os.path.join(into, "cairn.pc"), "w", encoding="utf-8") as file:
        file.write(
            f"Name: cairn\nDescription: cairn\nVersion: 0\nCflags: -I{SOURCE}/include\n"
            f"Libs: -L{BUILD}/src -lcairn\n")
    for command in commands:
        command = command.replace(
            "clang ", "clang -idirafter "
            f"/usr/include/{os.uname().machine}-linux-gnu ")
        r = run("sh", "-c", command, cwd=into, env=environment, check=True)
    expect(r.lines() == [line for line in lines if not line.startswith("$ ")],
           r)


if __name__ == "__main__":
    main()
