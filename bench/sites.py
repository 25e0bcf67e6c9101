#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`cairn sites VMLINUX FUNC` beside pahole encoding the same kernel's BTF: both read all of its
DWARF.

Needs a kernel with DWARF: CAIRN_VMLINUX, or in/vmlinux in the lab folder (CAIRN_LAB,
~/.cache/cairn-lab). The newest pahole is taken from the lab's chroot (sid/) when it is there, else
the system's. Runs take turns, so that a machine whose speed drifts does not favour one. Prints
medians and their ratio.
"""

import os
import shutil
import statistics
import subprocess
import sys
import threading
import time

RUNS = int(os.environ.get("BENCH_RUNS", "5"))
FUNCTIONS = ["list_add", "kmalloc", "tcp_ack"]  # inlined 534 times, inlined everywhere, a body only
LAB = os.environ.get("CAIRN_LAB", os.path.expanduser("~/.cache/cairn-lab"))
os.environ["CAIRN_CACHE"] = "off"  # the debug information is to be read each time
CAIRN = os.environ.get("CAIRN", "build/cairn")


def skip(why):
    print(why)
    sys.exit(77)


def pahole_command(vmlinux):
    sid = os.path.join(LAB, "sid")
    if os.access(os.path.join(sid, "usr/bin/pahole"), os.X_OK) and os.geteuid() == 0:
        inside = os.path.join(sid, "srv", "bench-vmlinux")
        if not os.path.exists(inside):
            open(inside, "w", encoding="ascii").close()
        if not os.path.ismount(inside):
            subprocess.run(["mount", "--bind", vmlinux, inside], check=True)
        return ["chroot", sid, "pahole"], "/srv/bench-vmlinux", inside
    if shutil.which("pahole"):
        return ["pahole"], vmlinux, None
    skip("no pahole: set up the lab's peers, or install dwarves")


def watch_anonymous(pid, peak):
    """Highest RssAnon: private memory, without the mapped file's pages."""
    try:
        while True:
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                for line in status:
                    if line.startswith("RssAnon:"):
                        peak[0] = max(peak[0], int(line.split()[1]))
            time.sleep(0.002)
    except OSError:
        pass


def run(cmd):
    """Seconds, and highest private memory in kB."""
    start = time.monotonic()
    process = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = [0]
    watcher = threading.Thread(target=watch_anonymous, args=(process.pid, peak))
    watcher.start()
    err = process.communicate()[1]
    took = time.monotonic() - start
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"{' '.join(cmd)}: exit {process.returncode}: {err.decode(errors='replace')}")
    return took, peak[0]


def main():
    vmlinux = os.path.realpath(os.environ.get("CAIRN_VMLINUX", os.path.join(LAB, "in/vmlinux")))
    if not os.path.exists(vmlinux):
        skip("no kernel with DWARF: set CAIRN_VMLINUX, or fetch the lab's inputs")
    pahole, seen, mounted = pahole_command(vmlinux)
    try:
        version = subprocess.run(pahole + ["--version"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        encode = pahole + ["-j2", "--btf_features=default", "--btf_encode_detached=/dev/null", seen]
        ours = {f: [CAIRN, "sites", vmlinux, f, "-j2"] for f in FUNCTIONS}
        for cmd in [encode, *ours.values()]:
            run(cmd)
        peer, times, peak = [], {f: [] for f in FUNCTIONS}, 0
        for _ in range(RUNS):
            peer.append(run(encode)[0])
            for f in FUNCTIONS:
                took, kb = run(ours[f])
                times[f].append(took)
                peak = max(peak, kb)
    finally:
        if mounted:
            subprocess.run(["umount", mounted], check=False)
    print(
        f"pahole {version} -j2, BTF of the kernel: {statistics.median(peer):.2f} s (median of {RUNS})"
    )
    for f in FUNCTIONS:
        ratios = [p / t for p, t in zip(peer, times[f])]
        print(
            f"cairn sites -j2, {f}: {statistics.median(times[f]):.3f} s; pahole / cairn = {statistics.median(ratios):.1f}"
        )
    print(f"cairn, highest private memory: {peak / 1024:.0f} MB")


if __name__ == "__main__":
    main()
