#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sites of one function from a kernel's .BTF.inline, beside libbpf that opens the .BTF and finds the
name, in one run.

    btf_inline.py [VMLINUX...]     default: the lab's kernels

The kernel's debug information is encoded and stripped first, so that nothing else can answer. Times
are medians of processor time, of new handles in one process whose files are in memory. Functions that have hundreds
of places take longer: the code around each is decoded.
"""
import glob
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(TOP, "build"))
CAIRN = os.environ.get("CAIRN", os.path.join(BUILD, "cairn"))
LAB = os.environ.get("CAIRN_LAB") or os.path.expanduser("~/.cache/cairn-lab")
ROUNDS = os.environ.get("BENCH_RUNS", "15")
ASKED = ("vfs_read", "tcp_ack", "__fput", "pipe_empty", "kmalloc", "list_add")
AIM_MS = 5


def kernels():
    found = [
        os.path.join(LAB, "in/vmlinux"),
        *glob.glob(os.path.join(LAB, "kernels/*/vmlinux"))
    ]
    return sys.argv[1:] or [path for path in found if os.path.exists(path)]


def measure(vmlinux, folder):
    bare = os.path.join(folder, "vmlinux")
    subprocess.run(["strip", "--strip-debug", "-o", bare, vmlinux], check=True)
    subprocess.run([CAIRN, "btf", "encode", vmlinux, "-o", bare + ".btf"],
                   check=True,
                   stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    command = [
        os.path.join(BUILD, "bench/bench_btf_inline"), bare, bare + ".btf",
        ROUNDS, *ASKED
    ]
    out = subprocess.run(command, check=True, capture_output=True,
                         text=True).stdout
    print(
        f"{os.path.realpath(vmlinux)} (aim: {AIM_MS} ms to open, {AIM_MS} ms a function)"
    )
    print(
        f"  {'function':12} {'sites':>5} {'open':>8} {'find':>8}   libbpf: open, find"
        "   ours beside libbpf's")
    for line in out.splitlines():
        name, sites, *times = line.split()
        opened, found, peer_opened, peer_found = (int(t) / 1000 for t in times)
        ratio = (opened + found) / max(peer_opened + peer_found, 0.001)
        print(f"  {name:12} {sites:>5} {opened:5.1f} ms {found:5.1f} ms"
              f"   {peer_opened:5.1f} ms {peer_found:5.1f} ms   {ratio:.1f}")


def main():
    found = kernels()
    if not found:
        print("no kernel with debug information: make deps, or name one")
        sys.exit(77)
    for vmlinux in found:
        with tempfile.TemporaryDirectory() as folder:
            measure(vmlinux, folder)


if __name__ == "__main__":
    main()
