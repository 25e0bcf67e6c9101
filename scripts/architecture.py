#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draw the picture of docs/architecture.md: architecture.py [--check]

The rooms come from LAYERS, and the arrows from the #include lines of src/. An arrow that follows
from others is left out: if code uses unwind, and unwind uses cfi, only the two short arrows are
drawn. With --check nothing is written; the exit status is 1 when the page has another picture.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by scripts/architecture.py -->\n", "<!-- end of the picture -->\n"
PRIVATE = re.compile(r'^\s*#\s*include\s+"(\w+)/', re.M)
PUBLIC = re.compile(r'^\s*#\s*include\s+<(cairn/[\w/]+\.h)>', re.M)
# Public headers that are not called as their module is.
OWNERS = {
    "addr": "base", "api": "base", "backtrace": "unwind", "binary": "elf", "bpfmap": "decode",
    "btf/sites": "btfsites", "err": "base", "file": "base", "from_dwarf": "btfgen",
    "hazards": "insn", "location": "loc", "stack": "unwind", "text": "base"
}


def rooms():
    """[(floor, module)] in the order of LAYERS, without the program."""
    lines = (TOP / "LAYERS").read_text(encoding="utf-8").split()
    return [tuple(line.split("/")) for line in lines if "/" in line]


def owner(header):
    """The module that a public header belongs to: cairn/layout/compare.h to layout; None: to the
    agent or to nobody."""
    parts = header.removesuffix(".h").split("/")[1:]
    return OWNERS.get("/".join(parts)) or OWNERS.get(parts[-1], parts[0])


def public_headers(text, seen):
    for header in set(PUBLIC.findall(text)) - seen:
        seen.add(header)
        public_headers((TOP / "include" / header).read_text(encoding="utf-8"), seen)
    return seen


def uses(floor, module, earlier):
    """The earlier modules whose headers @module includes, private ones, and public ones also
    through others."""
    found = set()
    for path in (TOP / "src" / floor / module).rglob("*.[ch]"):
        text = path.read_text(encoding="utf-8")
        found |= set(
            PRIVATE.findall(text)) | {owner(header)
                                      for header in public_headers(text, set())}
    return found & earlier


def closure(direct):
    """All that each module uses, over any number of arrows."""
    everything = {}
    for module in direct:  # the order of LAYERS: what is used comes earlier
        everything[module] = set(
            direct[module]).union(*(everything[used] for used in direct[module]))
    return everything


def picture():
    order = rooms()
    direct = {
        module: uses(floor, module, {m
                                     for _, m in order[:i]})
        for i, (floor, module) in enumerate(order)
    }
    everything = closure(direct)
    lines, last = [], None
    for floor, module in order:
        short = [m for _, m in order if m in direct[module]
                 and not any(m in everything[other] for other in direct[module] - {m})]
        if last and floor != last:
            lines.append("")
        lines.append(
            f"{floor if floor != last else '':8}{module:10}{'◄── ' + ', '.join(short) if short else ''}"
            .rstrip())
        last = floor
    return "\n".join(["```", *lines, "```", ""])


def main():
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    now = before + BEGIN + picture() + END + rest.split(END)[1]
    if now == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{PAGE}: the picture is not current; run scripts/architecture.py")
        return 1
    PAGE.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
