#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""docs/conformance.md names tests that exist; each row names one, or says that none shows it."""

import ast
import glob
import os
import re

from claims import SOURCE, claim, expect, main

STATES = ["works", "partly", "not", "untested"]
NOT_SHOWN = "not shown by a test"
CLAIM = re.compile(r"(test_\w+):(\w+)")
TRUTH = re.compile(r"truth/(\w+)")


def rows():
    """(number of the line, its cells) of each row of the tables."""
    with open(os.path.join(SOURCE, "docs/conformance.md"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if line.startswith("| ") and cells[0] != "point":
                yield number, cells


def names_of(cell):
    return re.findall(r"`([^`]*)`", cell)


def texts_of(test):
    for path in glob.glob(os.path.join(SOURCE, "tests", "*", test + ".*")):
        if path.endswith((".c", ".py")):
            with open(path, encoding="utf-8") as file:
                yield path, file.read()


def is_claim(function):
    names = (getattr(d, "func", d) for d in function.decorator_list)
    return any(getattr(name, "id", "").startswith("claim") for name in names)


def registered(path, text, name):
    """Whether the file has the claim, and its runner gets it."""
    if path.endswith(".py"):
        return any(isinstance(node, ast.FunctionDef) and node.name == name and is_claim(node)
                   for node in ast.parse(text).body)
    return re.search(rf"(cmocka_unit_test\w*|CLAIM)\({name}[,)]", text)


def is_there(reference):
    truth, claimed = TRUTH.fullmatch(reference), CLAIM.fullmatch(reference)
    if truth:
        return os.access(os.path.join(SOURCE, "tests", reference + ".py"), os.X_OK)
    return claimed and any(registered(path, text, claimed.group(2))
                           for path, text in texts_of(claimed.group(1)))


@claim
def each_named_test_exists():
    missing = [f"{number}: {name}" for number, cells in rows() for name in names_of(cells[2])
               if not is_there(name)]
    expect(not missing, *missing)
    expect(sum(len(names_of(cells[2])) for _, cells in rows()) > 100, "the table was not read")


@claim
def a_test_that_is_not_there_is_noticed():
    for name in ("test_sframe:version_9_is_read", "test_none:version_1_is_read", "truth/none",
                 "version_1_is_read", "test_sframe:assert_rows"):
        expect(not is_there(name), name)
    for name in ("test_sframe:version_1_is_read", "test_layout:clang_lays_out_on_request",
                 "truth/structs"):
        expect(is_there(name), name)


@claim
def each_row_has_a_state_and_a_test_or_says_that_none_shows_it():
    for number, cells in rows():
        expect(len(cells) == 3 and cells[1] in STATES, number, cells)
        shown = bool(names_of(cells[2]))
        expect(shown != (NOT_SHOWN in cells[2]), number, cells)
        expect(shown or cells[1] in ("not", "untested"), number, "no test shows it", cells)


if __name__ == "__main__":
    main()
