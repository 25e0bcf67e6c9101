#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make bench-layout: cairn layout beside the newest pahole, in turns, each the best of several
runs.

Time is that of the processor, user and system: wall times on a shared machine say little. The aims
are the project's: sizes of all structs from DWARF in 1/20 of the time and 1/10 of the memory, one
struct from BTF as a whole process in 1/4.
"""
import os
import shutil
import subprocess
import sys
import tempfile

CAIRN = os.environ.get("CAIRN", os.path.join(os.path.dirname(__file__), "../build/cairn"))
LAB = os.environ.get("CAIRN_LAB") or os.path.expanduser("~/.cache/cairn-lab")
ROOT = os.path.join(LAB, "sid")
VMLINUX = os.path.join(LAB, "in", "vmlinux")
RUNNING = "/sys/kernel/btf/vmlinux"


def once(command):
    """Milliseconds of processor time and KiB of memory of a whole process."""
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            os.execvp(command[0], command)
        except OSError:
            os._exit(127)
    _, status, used = os.wait4(pid, 0)
    return (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss, os.waitstatus_to_exitcode(status)


def side_by_side(name, ours, theirs, runs, aims):
    best = [[float("inf"), float("inf")], [float("inf"), float("inf")]]
    for _ in range(runs):
        for k, command in enumerate((ours, theirs)):
            if not command:
                continue
            took, memory, status = once(command)
            if status:
                print(f"not ok {name}: {' '.join(command)} ended with {status}")
                return False
            best[k] = [min(best[k][0], took), min(best[k][1], memory)]
    line = f"{name}: cairn {best[0][0]:.1f} ms, {best[0][1] / 1024:.1f} MiB"
    if theirs:
        line += (
            f"; pahole {best[1][0]:.1f} ms, {best[1][1] / 1024:.1f} MiB; time 1/{best[1][0] / max(best[0][0], .1):.1f}, "
            f"memory 1/{best[1][1] / best[0][1]:.1f}")
    held = all(best[1][k] >= aim * best[0][k]
               for k, aim in enumerate(aims)
               if aim) if theirs else best[0][0] <= aims[0]
    print(f"{'ok' if held else 'not ok'} {line}")
    return held


def visible(path, folder):
    """The file inside the lab's root."""
    inside = os.path.join(folder, os.path.basename(path))
    shutil.copyfile(path, inside)
    return inside[len(ROOT):]


def main():
    if os.geteuid() or not os.path.exists(os.path.join(
            ROOT, "usr/bin/pahole")) or not os.path.exists(VMLINUX):
        print("skip layout: the lab has no pahole or no vmlinux, or this is not root")
        return 77
    held = True
    pahole = ["chroot", ROOT, "pahole", "-j1"]
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "tmp"), prefix="bench-") as folder:
        inside = visible(VMLINUX, folder)
        held &= side_by_side("sizes from DWARF", [CAIRN, "layout", "--sizes", VMLINUX],
                             [*pahole, "-F", "dwarf", "--sizes", inside], 3, (20, 10))
        sidecar = os.path.join(folder, "vmlinux.cairn")
        subprocess.run([CAIRN, "sidecar", VMLINUX, "-o", sidecar], check=True,
                       stdout=subprocess.DEVNULL)
        held &= side_by_side("sizes from a sidecar (aim 20 ms)",
                             [CAIRN, "layout", "--sizes", sidecar], None, 20, (20,))
        if os.path.exists(RUNNING):
            held &= side_by_side(
                "one struct from BTF", [CAIRN, "layout", "--running", "task_struct"],
                [*pahole, "-F", "btf", "-C", "task_struct",
                 visible(RUNNING, folder)], 20, (4, None))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
