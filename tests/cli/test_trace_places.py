#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace at instructions and copies where a probe would do harm, or where events would not be calls."""

import json
import os
import re

from claims import cairn, claim, compile_c, expect, main, need_root, Skip


def trace(*words):
    """cairn trace of the debug information, or skip where tracing is not possible."""
    need_root()
    r = cairn("trace", "--no-sidecar", *words)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    return r


# ---- instructions ----

PUSHF = """\
__attribute__((naked,noinline)) unsigned long flags(void) { __asm__("pushfq; popfq; xor %eax, %eax; ret"); }
int main(void) { return flags(); }
"""


@claim
def what_shows_the_single_step_is_refused_and_the_program_lives():
    path = compile_c("pushf", PUSHF, flags=("-O1", "-g"))
    r = trace("-c", path, "flags")
    expect(r.status == 1 and "the kernel's single step" in r.err, r)
    hazards = cairn("sites", "--hazards", path, "--json").objects()
    expect(("sees-step", "flags") in [(h["hazard"], h["symbol"]) for h in hazards], hazards)
    expect("left out: " in cairn("sites", path, "flags", "--emit", "bpftrace").out, path)


# clear's arguments are in the registers that rep stosb counts in; SETUP stands between their loading and the instruction.
REP = """\
static inline __attribute__((always_inline)) void clear(char *p, long n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : : "memory");
}
__attribute__((noinline)) void wipe(char *p, long n)
{
	__asm__ volatile("" : "+D"(p), "+c"(n));
	__asm__ volatile(SETUP : "+c"(n) : : "rdx");
	clear(p, n);
}
int main(void)
{
	char b[64];
	for (long i = 0; i < 3; i++)
		wipe(b, 20 + i);
	return 0;
}
"""


def repeats(name, setup):
    path = compile_c(name, REP.replace("SETUP", f'"{setup}"'))
    place = cairn("sites", "--no-sidecar", "--json", path, "clear").objects()[0]
    expect(place["hazard"] == "repeats", place)
    hazards = cairn("sites", "--hazards", path, "--json").objects()
    expect(("repeats", "wipe") in [(h["hazard"], h["symbol"]) for h in hazards], hazards)
    return path


@claim
def a_repeated_string_instruction_is_probed_before_it_and_gives_one_event():
    path = repeats("ahead", "xor %%edx, %%edx")
    r = trace("--json", "-c", path, "clear")
    *events, summary = r.objects()
    expect([e["args"]["n"] for e in events] == [20, 21, 22] and summary["refused"] == 0, r)
    r = trace("--no-move", "-c", path, "clear")
    expect(r.status == 1 and "one event for each repetition" in r.err, r)


@claim
def a_repeated_string_instruction_is_refused_where_nothing_before_it_will_do():
    r = trace("-c", repeats("at_once", "dec %%rcx"), "clear")
    expect(r.status == 1 and "one event for each repetition" in r.err, r)


if __name__ == "__main__":
    main()
