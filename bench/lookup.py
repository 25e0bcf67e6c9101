#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Making a sidecar and looking addresses up, beside llvm-gsymutil and llvm-symbolizer of the lab,
in one run.

    lookup.py [FILE]       default: the lab's vmlinux; 100,000 random addresses of its .text

Each command runs three times, in turn with the others; the best wall time, its processor time and
peak memory are shown. Then what each section of the whole sidecar takes, and how long `cairn sites`
takes from it for the functions with most and few sites.
"""
import os
import random
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(TOP, "build"))
CAIRN = os.environ.get("CAIRN", os.path.join(BUILD, "cairn"))
LAB = os.environ.get("CAIRN_LAB") or os.path.expanduser("~/.cache/cairn-lab")
SID = os.path.join(LAB, "sid")
N, ROUNDS = 100_000, 3
ASKED, STARTS = ("kmalloc", "list_add", "tcp_ack"), 100


def peer(name):
    """A program of the lab, run by its own loader, so that paths mean what they mean here."""
    path = os.path.realpath(os.path.join(SID, "usr/bin", name))
    if not os.path.exists(path):
        path = os.path.join(SID, "usr/lib/llvm-21/bin", name)
    libs = ":".join(
        os.path.join(SID, d) for d in ("usr/lib/x86_64-linux-gnu", "usr/lib/llvm-21/lib"))
    return [os.path.join(SID, "lib64/ld-linux-x86-64.so.2"), "--library-path", libs, path]


def once(command, stdin):
    """(wall seconds, processor seconds, peak MB)"""
    with open(stdin or os.devnull, "rb") as source:
        start = time.monotonic()
        child = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise RuntimeError(f"{command}: exit status {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def text_of(path):
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True,
                         check=True).stdout
    words = next(line.split("]", 1)[1].split() for line in out.splitlines() if "] .text " in line)
    return int(words[2], 16), int(words[2], 16) + int(words[4], 16)


def show_sections(path, whole):
    print(f"the whole sidecar of {path}:")
    print(
        subprocess.run([CAIRN, "sidecar", "-v", "-j2", path, "-o", whole], capture_output=True,
                       text=True, check=True).stdout, end="")


def show_starts(sidecar):
    """`cairn sites` as a whole process; a function that this file does not have is left out."""
    for function in ASKED:
        command = [CAIRN, "sites", sidecar, function]
        sites = sum(
            line.startswith("  0x") for line in subprocess.run(
                command, capture_output=True, text=True, check=False).stdout.splitlines())
        if sites:
            walls = sorted(once(command, None)[0] for _ in range(STARTS))
            print(
                f"cairn sites {function}: {sites} sites, {walls[0] * 1e3:.2f} ms at best of {STARTS}, median {walls[STARTS // 2] * 1e3:.2f}"
            )


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(LAB, "in", "vmlinux")
    if not os.path.exists(path):
        print(f"skip lookup: {path} is not there: run the lab's inputs")
        return
    lo, hi = text_of(path)
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        addresses = os.path.join(folder, "addresses")
        with open(addresses, "w", encoding="ascii") as file:
            file.writelines(f"{rng.randrange(lo, hi):#x}\n" for _ in range(N))
        lines, gsym = os.path.join(folder, "lines.cairn"), os.path.join(folder, "gsym")
        whole = os.path.join(folder, "whole.cairn")
        commands = {
            "make: cairn sidecar --lines -j2":
            ([CAIRN, "sidecar", "--lines", "-j2", path, "-o", lines], None)
        }
        if os.path.exists(SID):
            commands["make: llvm-gsymutil"] = (
                peer("llvm-gsymutil") + ["--convert", path, "-o", gsym], None)
        commands[f"{N} addresses: cairn addr"] = ([CAIRN, "addr", lines], addresses)
        if os.path.exists(SID):
            with open(os.path.join(folder, "gsym_addresses"), "w", encoding="ascii") as file, \
                    open(addresses, encoding="ascii") as source:
                file.writelines(f"{line.strip()} {gsym}\n" for line in source)
            commands[f"{N} addresses: llvm-gsymutil"] = (
                peer("llvm-gsymutil") + ["--addresses-from-stdin"],
                os.path.join(folder, "gsym_addresses"))
            commands[f"{N} addresses: llvm-symbolizer"] = (
                peer("llvm-symbolizer") + ["--no-demangle", "--inlines", "--obj=" + path],
                addresses)
        best = {}
        for _ in range(ROUNDS):
            for name, (command, stdin) in commands.items():
                best[name] = min(best.get(name, (1e9,)), once(command, stdin))
        for name, (wall, cpu, peak) in best.items():
            print(f"{name:42} {wall:7.3f} s wall  {cpu:7.3f} s processor  {peak:7.0f} MB")
        for name in (lines, gsym):
            if os.path.exists(name):
                print(f"size {os.path.basename(name):20} {os.path.getsize(name):12,}")
        subprocess.run(
            [os.path.join(BUILD, "bench", "bench_lookup"), lines,
             hex(lo), hex(hi)], check=True)
        show_sections(path, whole)
        show_starts(whole)


main()
