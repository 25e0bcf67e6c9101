#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Decoding beside bpftool's map dump, and events per second.

    make bench-decode

A hash of struct event { u32; char[256]; char[16] } is filled and dumped to JSON by both, in turns:
processor time of the whole process (user and system; what a loaded machine does not change), per
value, with that of an empty map taken off. Then build/bench/bench_decode: records in memory to
JSON. Skipped, exit status 77, without root, clang or bpftool. CAIRN_BPFTOOL is another bpftool,
BENCH_RUNS how often (5), BENCH_VALUES how many values (50,000).
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

RUNS = int(os.environ.get("BENCH_RUNS", "5"))
VALUES = int(os.environ.get("BENCH_VALUES", "50000"))
CAIRN = os.environ.get("CAIRN", "build/cairn")
BUILD = os.environ.get("CAIRN_BUILD", "build")

PROGRAM = r"""
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct event { unsigned int e_pid; char e_filename[256]; char e_comm[16]; };
#define MAP(NAME, N) \
	struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, N); \
		 __type(key, unsigned int); __type(value, struct event); } NAME SEC(".maps")
MAP(full, 1 << 20);
MAP(empty, 1 << 20);
SEC("socket") int nothing(void *ctx) { return 0; }
char _license[] SEC("license") = "GPL";
"""


def skip(why):
    print(why)
    sys.exit(77)


def processor_seconds(command):
    """User and system time of a process, which has to succeed; its output goes to a file, as a dump
    does."""
    with tempfile.TemporaryFile() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(
            f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compile_program(path):
    arch = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True,
                          check=False).stdout.strip()
    subprocess.run([
        "clang", "-target", "bpf", "-g", "-O2", "-idirafter", f"/usr/include/{arch}", "-c", "-x",
        "c", "-o", path, "-"
    ], input=PROGRAM, text=True, check=True)


def same(ours, theirs, number):
    """Both say the same of the map: the benchmark is of equal work."""
    a = subprocess.run([*ours, number], capture_output=True, check=True).stdout
    b = subprocess.run([*theirs, number], capture_output=True, check=True).stdout
    ours_by_key = {e["key"]: e["value"] for e in map(json.loads, a.splitlines())}
    # bpftool has the decoded entries under "formatted" when it prints bytes as well.
    theirs_by_key = {e["key"]: e["value"] for e in (f.get("formatted", f) for f in json.loads(b))}
    if ours_by_key != theirs_by_key:
        sys.exit("cairn and bpftool do not agree on the map")
    return len(ours_by_key)


def main():
    bpftool = os.environ.get("CAIRN_BPFTOOL") or shutil.which("bpftool") or "/usr/sbin/bpftool"
    helper = os.path.join(BUILD, "tests", "live", "decode_maps")
    for tool in (bpftool, helper):
        if not os.access(tool, os.X_OK):
            skip(f"{tool} is missing")
    if os.geteuid() or not shutil.which("clang"):
        skip("needs root and clang")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.bpf.o")
        compile_program(path)
        process = subprocess.Popen([helper, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        ids = dict(
            line.split() for line in iter(process.stdout.readline, "\n") if len(line.split()) == 2)
        if not ids:
            skip("BPF objects cannot be loaded here")
        process.stdin.write(f"name full {VALUES}\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "ok":
            sys.exit("the map could not be filled")
        ours, theirs = [CAIRN, "decode", "--json",
                        "--map"], [bpftool, "--json", "map", "dump", "id"]
        n = same(ours, theirs, ids["full"])
        best = {}
        for _ in range(RUNS):
            for name, command in (("cairn", ours), ("bpftool", theirs)):
                for which in ("full", "empty"):
                    took = processor_seconds([*command, ids[which]])
                    best[name, which] = min(best.get((name, which), 1e9), took)
        process.stdin.close()
        process.wait()
    version = subprocess.run([bpftool, "version"], capture_output=True, text=True,
                             check=False).stdout.split("\n")[0]
    print(f"{n} values of 276 bytes of a hash to JSON, equal in both; best of {RUNS}; {version}")
    each = {
        name: (best[name, "full"] - best[name, "empty"]) / n * 1e6
        for name in ("cairn", "bpftool")
    }
    print(
        f"cairn {each['cairn']:.2f} us of processor time per value, bpftool {each['bpftool']:.2f} us; "
        f"bpftool / cairn = {each['bpftool'] / each['cairn']:.1f}")
    out = subprocess.run([os.path.join(BUILD, "bench", "bench_decode")], capture_output=True,
                         text=True, check=True).stdout
    print(out, end="")
    if min(float(x) for x in re.findall(r"([\d.]+) million per second", out)) < 2:
        sys.exit("fewer than 2 million events per second and core")


main()
