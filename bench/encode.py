#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Encoding a kernel's BTF beside pahole, in one run: types only, as pahole does, and with the places of all functions.

Runs alternate, so that what else the machine does falls on both. Only ratios of one run mean something.
Processor time is printed, too: on a machine that others use it is what compares.
"""
import os
import resource
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import sites  # noqa: E402

BUILD = os.environ.get("CAIRN_BUILD", os.path.join(os.path.dirname(HERE), "build"))
DISTIL = os.path.join(BUILD, "bench", "distil")
RUNS = int(os.environ.get("CAIRN_BENCH_RUNS", "5"))


def measure(cmd):
    """Seconds, processor seconds, highest private memory in kB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, kb = sites.run(cmd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, kb


def main():
    vmlinux = os.path.realpath(os.environ.get("CAIRN_VMLINUX", os.path.join(sites.LAB, "in/vmlinux")))
    if not os.path.exists(vmlinux) or not os.access(DISTIL, os.X_OK):
        sites.skip("no kernel with DWARF: set CAIRN_VMLINUX, or fetch the lab's inputs")
    pahole, seen, mounted = sites.pahole_command(vmlinux)
    try:
        version = subprocess.run(pahole + ["--version"], capture_output=True, text=True, check=True).stdout.strip()
        programs = {
            f"pahole {version} -j2": pahole + ["-J", "-j2", "--btf_features=default", "--btf_encode_detached=/dev/null", seen],
            "cairn types -j1": [DISTIL, vmlinux, "1", "types"],
            "cairn types -j2": [DISTIL, vmlinux, "2", "types"],
            "cairn all -j2": [DISTIL, vmlinux, "2", "all"],
        }
        results = {name: [] for name in programs}
        for cmd in programs.values():
            measure(cmd)
        for _ in range(RUNS):
            for name, cmd in programs.items():
                results[name].append(measure(cmd))
    finally:
        if mounted:
            subprocess.run(["umount", mounted], check=False)
    peer = next(iter(results.values()))
    for name, runs in results.items():
        wall, cpu, kb = (statistics.median(r[i] for r in runs) for i in range(3))
        ratio = statistics.median(p[0] / r[0] for p, r in zip(peer, runs))
        cpu_ratio = statistics.median(p[1] / r[1] for p, r in zip(peer, runs))
        print(f"{name}: {wall:.2f} s wall, {cpu:.2f} s processor, {kb / 1024:.0f} MB private; "
              f"pahole / this = {ratio:.1f} wall, {cpu_ratio:.1f} processor")


if __name__ == "__main__":
    main()
