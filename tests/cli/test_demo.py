#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make demo: something real of each thing that Cairn is for, or the reason why there is nothing."""

import os
import re

from claims import CAIRN, SOURCE, Skip, claim, expect, main, need, need_root, run

# The parts in their order, and a line that each shows if it is not left out.
PARTS = [
    ("sites", r"  0x[0-9a-f]+  inlined in \w+\+0x[0-9a-f]+"),
    ("trace", r" put put inlined in work\+0x[0-9a-f]+: idx=61, s=7$"),
    ("trace", r" server store inlined in main\+0x[0-9a-f]+: \*request=\{.*\.key = \"\w+\""),
    ("stack", r"^#\d+ +0x[0-9a-f]{16}  level_\d_of_\d+\+0x\w+  \[jit: example, generation \d+\]$"),
    ("layout", r"^\t/\* XXX 7 bytes hole, try to pack \*/$"),
    ("decode", r"^\{\.e_ident = \{127, 69, 76, 70, .*\.e_phnum = \d+"),
    ("btf", r"^\tunsigned int priority: 3;$"),
]


def demo(*before):
    """The text of each part of the demo."""
    r = run(*before, os.path.join(SOURCE, "scripts/demo.sh"), CAIRN)
    expect(r.status == 0, r)
    parts = re.split(r"^== ", r.out, flags=re.M)[1:]
    expect([part.split(":")[0] for part in parts] == [name for name, _ in PARTS] + ["More"], r)
    return parts


@claim
def each_part_shows_a_real_line_or_the_reason_why_there_is_none():
    parts = demo()
    for part, (name, line) in zip(parts, PARTS):
        expect(re.search(line, part, re.M) or "(left out: " in part, name, part)


@claim
def each_part_is_its_command_and_one_or_two_sentences():
    parts = demo()
    for part in parts[:-1]:
        title = part.splitlines()[0]
        expect(1 <= len(re.findall(r"\.(?: |$)", title)) <= 3 and len(title.split()) <= 35, title)
        expect(re.search(r"^\$ (.* \| )?cairn \w+ ", part, re.M) or "(left out: " in part, part)


@claim
def what_this_machine_allows_is_not_left_out():
    for tool in ("bpftool", "setpriv"):
        need(tool)
    need_root()
    if '"what":"single probes (uprobe)","ok":true' not in run(CAIRN, "doctor", "--json").out:
        raise Skip("no uprobes here")
    parts = demo()
    expect(all("(left out: " not in part for part in parts[1:]), *parts)


@claim
def without_privileges_it_says_what_is_missing_and_shows_the_rest():
    need_root()
    nobody = [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups",
              "--bounding-set=-all"]
    if run(*nobody, need("test"), "-r", CAIRN).status:
        raise Skip("other users cannot read this folder")
    parts = demo(*nobody)
    for part, (name, line) in zip(parts, PARTS):
        if name == "trace":
            expect("(left out: " in part, part)
        elif name in ("layout", "decode"):
            expect(re.search(line, part, re.M), part)
    expect("may not set uprobes" in parts[1] and "fix: sudo cairn doctor" in parts[1], parts[1])


if __name__ == "__main__":
    main()
