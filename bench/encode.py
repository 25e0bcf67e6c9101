#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Encoding a kernel's BTF beside pahole, in one run: types only, as pahole does, and with the sites
of all functions.

Then the JVM, 21 million DIEs of C++, of which pahole makes no BTF that could be compared: beside
the newest llvm-dwarfdump, which counts what its debug information has, and a bare walk over all
DIEs with libdw.

Runs alternate, so that what else the machine does falls on both. Only ratios of one run mean
something. Processor time is printed, too: on a machine that others use it is what compares.
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
DISTIL = os.path.join(BUILD, "bench", "btfgen")
WALK = os.path.join(BUILD, "bench", "libdw_walk")
RUNS = int(os.environ.get("CAIRN_BENCH_RUNS", "5"))


def measure(cmd):
    """Seconds, processor seconds, highest private memory in kB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, kb = sites.run(cmd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, kb


def compare(programs, runs):
    """Medians of runs that take turns; ratios are to the first program."""
    results = {name: [] for name in programs}
    for _ in range(runs):
        for name, cmd in programs.items():
            results[name].append(measure(cmd))
    first = next(iter(results))
    for name, mine in results.items():
        wall, cpu, kb = (statistics.median(r[i] for r in mine) for i in range(3))
        ratio = statistics.median(p[0] / r[0] for p, r in zip(results[first], mine))
        cpu_ratio = statistics.median(p[1] / r[1] for p, r in zip(results[first], mine))
        print(
            f"{name}: {wall:.2f} s wall, {cpu:.2f} s processor, {kb / 1024:.0f} MB private; "
            f"{first.split()[0]} / this = {ratio:.1f} wall, {cpu_ratio:.1f} processor", flush=True)


def kernel():
    vmlinux = os.path.realpath(
        os.environ.get("CAIRN_VMLINUX", os.path.join(sites.LAB, "in/vmlinux")))
    if not os.path.exists(vmlinux) or not os.access(DISTIL, os.X_OK):
        sites.skip("no kernel with DWARF: set CAIRN_VMLINUX, or fetch the lab's inputs")
    pahole, seen, mounted = sites.pahole_command(vmlinux)
    try:
        version = subprocess.run(pahole + ["--version"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        programs = {
            f"pahole {version} -j2":
            pahole
            + ["-J", "-j2", "--btf_features=default", "--btf_encode_detached=/dev/null", seen],
            "cairn types -j1": [DISTIL, vmlinux, "1", "types"], "cairn types -j2":
            [DISTIL, vmlinux, "2", "types"], "cairn all -j2": [DISTIL, vmlinux, "2", "all"],
        }
        for cmd in programs.values():
            measure(cmd)
        compare(programs, RUNS)
    finally:
        if mounted:
            subprocess.run(["umount", mounted], check=False)


def jvm():
    """Once for each three runs of the kernel: it takes ten times as long."""
    program, debug = (os.path.realpath(os.path.join(sites.LAB, "in", name))
                      for name in ("libjvm.so", "libjvm.debug"))
    if not os.path.exists(debug):
        print("no libjvm in the lab")
        return
    programs = {}
    llvm = os.path.join(sites.LAB, "sid", "usr/bin/llvm-dwarfdump")
    if os.access(llvm, os.X_OK):
        # The chroot's program with its own libraries; the file need not be inside.
        sid = os.path.join(sites.LAB, "sid")
        libs = ":".join(
            os.path.join(sid, d)
            for d in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/llvm-21/lib"))
        programs["llvm-dwarfdump --statistics"] = [
            os.path.join(sid, "lib64/ld-linux-x86-64.so.2"), "--library-path", libs,
            os.path.realpath(llvm), "--statistics", debug
        ]
    if os.access(WALK, os.X_OK):
        programs["libdw walk, tags"] = [WALK, debug, "tags"]
        programs["libdw walk, attributes"] = [WALK, debug, "attributes"]
    programs["cairn types -j2"] = [DISTIL, program, "2", "types", debug]
    programs["cairn all -j2"] = [DISTIL, program, "2", "all", debug]
    print(f"libjvm: {os.path.getsize(debug) >> 20} MB of debug information")
    compare(programs, max(1, RUNS // 3))


def main():
    kernel()
    jvm()


if __name__ == "__main__":
    main()
