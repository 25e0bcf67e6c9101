#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What bpf_loc_arg() of cairn/loc.bpf.h costs, beside reading the same register from the context.

    loc.py [ROUNDS]      default: 7

Programs of one object run at the same calls, and the kernel's own statistics tell how long each ran.
Each figure is the median of the rounds. The aim is at most 5 ns for an argument beyond a plain
register read. All programs store what they read. Needs root.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(SOURCE, "build"))
HOLDER = os.path.join(BUILD, "tests", "live", "loc_programs")
STATISTICS = "/proc/sys/kernel/bpf_stats_enabled"
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7
AIM = 5
TARGET = r"""
volatile long sink;
__attribute__((noinline, noipa)) void take(long a, int b, unsigned c, long d)
{ sink += a + b + c + d; }
int main(void) { for (int i = 0; i < 100000; i++) take(i, 2, 3, 4); return 0; }
"""
PROGRAMS = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <cairn/loc.bpf.h>
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } records SEC(".maps");
char LICENSE[] SEC("license") = "Dual BSD/GPL";
unsigned long out[4];
/* Of the calling convention of x86-64. */
#define WORD(i) ({ __u64 v; asm volatile("%0 = *(u64 *)(%1 + " #i " * 8)" : "=r"(v) : "r"(ctx)); v; })

SEC("uloc") int empty(void *ctx) { return 0; }
SEC("uloc") int cookie(void *ctx) { out[0] = bpf_get_attach_cookie(ctx); return 0; }
SEC("uloc") int plain_1(void *ctx) { out[0] = WORD(14); return 0; }
SEC("uloc") int plain_4(void *ctx)
{
	out[0] = WORD(14);
	out[1] = (int)WORD(13);
	out[2] = (unsigned)WORD(12);
	out[3] = WORD(11);
	return 0;
}
SEC("uloc") int loc_1(void *ctx)
{
	unsigned long a;
	int e = bpf_loc_arg(ctx, 0, &a);

	out[0] = a;
	return e;
}
SEC("uloc") int loc_4(void *ctx)
{
	unsigned long a, b, c, d;
	int e = bpf_loc_arg(ctx, 0, &a) | bpf_loc_arg(ctx, 1, &b) | bpf_loc_arg(ctx, 2, &c) |
		bpf_loc_arg(ctx, 3, &d);

	out[0] = a;
	out[1] = b;
	out[2] = c;
	out[3] = d;
	return e;
}
SEC("uloc") int BPF_LOC_PROG(prog_4, long a, int b, unsigned c, long d)
{
	out[0] = a;
	out[1] = b;
	out[2] = c;
	out[3] = d;
	return 0;
}
"""
NAMES = "empty cookie plain_1 plain_4 loc_1 loc_4 prog_4".split()


def make(folder):
    paths = [os.path.join(folder, name) for name in ("target", "programs.o")]
    for path, text, command in ((paths[0], TARGET, [
            "gcc", "-O2", "-g"
    ]), (paths[1], PROGRAMS, [
            "clang", "-O2", "-g", "-target", "bpf", "-I",
            os.path.join(SOURCE, "include"), "-idirafter",
            f"/usr/include/{os.uname().machine}-linux-gnu", "-c"
    ])):
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([*command, path + ".c", "-o", path], check=True)
    return paths


def measure(target, programs, names):
    """{program: nanoseconds of a run}"""
    wanted = [
        word for name in names for word in ("-t", name, target + ":take", "0")
    ]
    r = subprocess.run([HOLDER, "-1p", *wanted, programs, target],
                       capture_output=True,
                       text=True,
                       check=False)
    if r.returncode:
        sys.exit(f"loc_programs: {r.returncode} {r.stderr}")
    return {
        name: int(ns) / int(n)
        for name, n, ns in re.findall(r"^(\w+): (\d+) runs, (\d+) ns$",
                                      r.stderr, re.M)
    }


def rounds(target, programs):
    """{program: median}. Each is the first at a call in turn, which finds the caches cold."""
    found = [
        measure(target, programs,
                NAMES[i % len(NAMES):] + NAMES[:i % len(NAMES)])
        for i in range(ROUNDS)
    ]
    return {
        name: statistics.median(one[name] for one in found)
        for name in NAMES
    }


def report(ns):
    for name in NAMES:
        print(
            f"{name:8} {ns[name]:6.1f} ns, {ns[name] - ns['empty']:5.1f} beyond an empty program"
        )
    one = ns["loc_1"] - ns["plain_1"]
    four = (ns["loc_4"] - ns["plain_4"]) / 4
    parameters = (ns["prog_4"] - ns["plain_4"]) / 4
    print(
        f"beyond a plain register read: bpf_loc_arg() {one:.1f} ns for the only argument, {four:.1f} "
        f"ns for each of four; BPF_LOC_PROG() {parameters:.1f} ns for each of four (aim: {AIM})"
    )
    print(
        f"reading the cookie, which a program does once: {ns['cookie'] - ns['empty']:.1f} ns"
    )


def main():
    if os.geteuid() or not os.path.exists(STATISTICS):
        print(
            "skipped: needs root and the kernel's statistics of BPF programs")
        return
    with open(STATISTICS, encoding="ascii") as file:
        before = file.read()
    with tempfile.TemporaryDirectory() as folder:
        paths = make(folder)
        try:
            with open(STATISTICS, "w", encoding="ascii") as file:
                file.write("1\n")
            report(rounds(*paths))
        finally:
            with open(STATISTICS, "w", encoding="ascii") as file:
                file.write(before)


if __name__ == "__main__":
    main()
