#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks on pages that are not in memory: the task reads them before it returns to its program."""

import json
import os
import platform

from claims import Skip, claim, compile_c, expect, main, need_root, path_of
from profiling import folded_lines, profile

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "samples",
                      "dropped_stack.c")
DEPTH = 40


def can_wait():
    """Whether the kernel calls a program when a task may wait: Linux 6.18."""
    version = platform.release().split("-")[0].split(".")
    return (int(version[0]), int(version[1])) >= (6, 18)


def sampled():
    """(the summary, [(functions of a stack from the outermost on, nanoseconds)])"""
    with open(SOURCE, encoding="ascii") as file:
        program = compile_c("late", file.read(), flags=("-g", "-O2", "-pthread"))
    folded = path_of("late.folded")
    r = profile("--json", "-F", "499", "-o", folded, "-c", f"{program} 800 2")
    expect(r.status == 0, r.err)
    summary = json.loads(next(line for line in r.out.splitlines() if '"summary"' in line))
    with open(folded, encoding="ascii") as file:
        return summary, [(s.split(";"), n) for s, n in folded_lines(file)]


@claim
def pages_that_are_not_in_memory_do_not_cut_a_stack():
    need_root()
    if not can_wait():
        raise Skip("the kernel is older than 6.18: such stacks are cut")
    summary, stacks = sampled()
    expect(summary["samples"] > 200 and summary["lost"] == 0, summary)
    # Others may keep the processors busy while the pages are dropped.
    expect(summary["late"] > 0.2 * summary["samples"], summary)
    burned = [(s, n) for s, n in stacks if any(f.startswith("burn") for f in s)]
    whole = sum(n for s, n in burned if sum(f.startswith("descend") for f in s) == DEPTH)
    n = sum(n for _, n in burned)
    # A page may be dropped again before the thread reads it: up to 5 in 100 of these were. Without
    # the wait nearly all of those that are late would be cut.
    expect(whole >= 0.9 * n, (whole, n, summary))


@claim
def no_stack_has_more_frames_than_the_program():
    need_root()
    for stack, n in sampled()[1]:
        depth = sum(f.startswith("descend") for f in stack)
        expect(depth <= DEPTH, (depth, n))
        if depth and not any("[cut" in f for f in stack):
            expect(depth == DEPTH or not any(f.startswith("burn") for f in stack), (depth, stack))


if __name__ == "__main__":
    main()
