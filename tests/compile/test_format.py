#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All C of the tree is written as the repository's .clang-format has it; licence lines of all."""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from claims import SOURCE, Skip, claim, claim_each, expect, main, need, run  # noqa: E402

# Each version of clang-format breaks some lines in another way. Debian 12 has this one.
VERSION = "14"
FOLDERS = ["agent", "bench", "cli", "examples", "fuzz", "include", "src", "tests"]


def clang_format():
    program = need("clang-format")
    found = re.search(r"version (\d+)", run(program, "--version", check=True).out)
    if not found or found.group(1) != VERSION:
        raise Skip(
            f"this clang-format is version {found.group(1) if found else '?'}; the tree is formatted by {VERSION}"
        )
    return program


def sources(where):
    return sorted(
        path for end in "ch"
        for path in glob.glob(os.path.join(SOURCE, where, "**", f"*.{end}"), recursive=True))


@claim_each(*FOLDERS)
def c_is_formatted(where):
    files = sources(where)
    expect(files, where)
    r = run(clang_format(), "--dry-run", "-Werror", *files)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", r.err, re.M)))
    expect(r.status == 0,
           f"clang-format -i {' '.join(os.path.relpath(path, SOURCE) for path in wrong)}",
           r.err[:2000])


LICENCE_LINE = r"^(#|/\*) SPDX-License-Identifier: \(?[\w.-]+( (OR|AND|WITH) [\w.-]+)*\)?( \*/)?$"


@claim_each(*FOLDERS, "scripts")
def a_licence_line_has_nothing_else(where):
    paths = [
        path for end in ("c", "h", "py", "sh")
        for path in glob.glob(os.path.join(SOURCE, where, "**", f"*.{end}"), recursive=True)
    ]
    wrong = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            head = "".join(file.readlines()[:2])
        if not re.search(LICENCE_LINE, head, re.M):
            wrong.append(path)
    expect(paths and not wrong, wrong)


@claim
def what_is_not_formatted_is_a_table():
    """A region without formatting ends, and has an initializer or a list of macros; no function
    hides in it."""
    for where in FOLDERS:
        for path in sources(where):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            regions = re.findall(r"clang-format off \*/\n(.*?)/\* clang-format (on|off)",
                                 text + "/* clang-format off", re.S)
            for region, end in regions:
                expect(end == "on", path, "a region does not end")
                expect("\n{\n" not in region and len(region.splitlines()) < 200, path, region[:300])


main()
