#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lists in different files that have to have the same entries."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from claims import SOURCE, claim, expect, main  # noqa: E402


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


@claim
def a_sidecar_keeps_every_operation_that_locations_know():
    """What is not in the list ends the copy of an expression: sidecar and DWARF would then
    disagree."""
    text = read("src", "facts", "loc", "expr.c")
    # Those that have a reason and no value end an expression in both.
    refusing = re.search(r"\n[a-z][^;{]*\n\{[^}]*?return CAIRN_UNAVAIL_IMPLICIT_POINTER;[^}]*\}",
                         text).group()
    known = set(re.findall(r"\bcase (DW_OP_\w+)", text.replace(refusing, "")))
    kept = read("src", "store", "sidecar", "reduced_expr.c").split("all_operands[256] = {",
                                                                   1)[1].split("};", 1)[0]
    listed = set(re.findall(r"\b(DW_OP_\w+)", kept))
    expect(len(known) > 40 and len(listed) > 60, len(known), len(listed))
    # Ranges of numbered operations are named by their ends.
    numbered = {op for op in known if re.match(r"DW_OP_(lit|reg|breg)\d+$", op)}
    expect(known - numbered <= listed, sorted(known - numbered - listed))


main()
