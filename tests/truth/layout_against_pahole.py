#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The text of cairn layout, compared with the newest pahole's over all structs of a kernel's BTF
and of its DWARF.

Members, holes and padding of each struct have to add up to its size. What differs is listed in
KNOWN and explained in docs/accuracy.md, "Layouts"; another difference fails.
"""
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
from common import CAIRN, claim, finish, lab_input, skip  # noqa: E402
from records import accounted_bits  # noqa: E402

LAB = os.path.join(os.environ.get("CAIRN_LAB") or os.path.expanduser("~/.cache/cairn-lab"), "sid")
RUNNING = "/sys/kernel/btf/vmlinux"
# By the name of the struct: they are in the kernels that were looked at; others have some of them.
KNOWN = {"struct parsed_partitions"}


def blocks(text):
    """Each struct's text by its name; of several of one name the first."""
    found = {}
    for block in re.split(r"(?m)^(?=(?:struct|union|class) \S+ \{$)", text):
        if block.strip():
            found.setdefault(block.split(" {", 1)[0], block.rstrip())
    return found


def pahole(path, form):
    """Its output for a file, which is made visible inside the lab's root."""
    with tempfile.TemporaryDirectory(dir=os.path.join(LAB, "tmp"), prefix="layout-") as folder:
        inside = os.path.join(folder, "input")
        shutil.copyfile(path, inside)
        done = subprocess.run(["chroot", LAB, "pahole", "-F", form, inside[len(LAB):]],
                              capture_output=True, text=True, errors="replace", check=False)
    return done.stdout


def compare(name, path, form, command):
    theirs = blocks(pahole(path, form))
    ours = blocks(
        subprocess.run([CAIRN, "layout", *command], capture_output=True, text=True,
                       errors="replace", check=True).stdout)
    differ = [key for key in theirs if theirs[key] != ours.get(key)]
    unknown = [key for key in differ if key not in KNOWN and "Force padding" not in theirs[key]]
    for key in unknown[:10]:
        print("\n".join(
            difflib.unified_diff(theirs[key].split("\n"),
                                 ours.get(key, "").split("\n"), "pahole", "cairn", lineterm="",
                                 n=1)))
    print(
        f"# {name}: {len(theirs)} structs and unions, {len(differ)} differ: {' '.join(sorted(differ))}"
    )
    claim(f"{name}: text as pahole's", len(theirs) > 1000 and not unknown)
    claim(f"{name}: no struct is missing", not set(theirs) - set(ours))


def add_up(name, command):
    lines = subprocess.run([CAIRN, "layout", "--json", *command], capture_output=True, text=True,
                           check=True).stdout
    structs = [o for o in map(json.loads, lines.splitlines()) if o["kind"] == "struct"]
    wrong = [o["name"] for o in structs if accounted_bits(o) != 8 * o["size"]]
    with_bits = sum(any("bits" in m for m in o["members"]) for o in structs)
    print(
        f"# {name}: {len(structs)} structs, {with_bits} with bit-fields, do not add up: {' '.join(wrong[:20])}"
    )
    claim(f"{name}: members, holes and padding are the size", len(structs) > 1000 and not wrong)


def main():
    if os.geteuid() or not os.path.exists(os.path.join(LAB, "usr/bin/pahole")):
        skip("text as pahole's", "the lab has no pahole, or this is not root")
        finish()
    if os.path.exists(RUNNING):
        compare("running kernel, BTF", RUNNING, "btf", ["--running"])
        add_up("running kernel, BTF", ["--running"])
    else:
        skip("running kernel, BTF", "this kernel has none")
    vmlinux = lab_input("vmlinux")
    if vmlinux:
        compare("vmlinux, DWARF", vmlinux, "dwarf", [vmlinux])
        add_up("vmlinux, DWARF", [vmlinux])
    else:
        skip("vmlinux, DWARF", "the lab has no vmlinux")
    finish()


main()
