#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace in a file whose debug information describes some functions with their parameters, some
without them, and some not at all."""

import json
import os

from claims import cairn, claim, claim_each, expect, folder, main, run
from tracing import trace

# One unit with types, one of an assembler, and one without debug information. The program writes
# down each call: what was passed, and what was returned.
MIXED = {
    "main.c": r"""
#include <stdio.h>
long summed(long a, const char *s, int n);
long hidden(short n, void *p);
__attribute__((noinline, noclone)) int typed(int first, ...) { return first; }
int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	for (int i = 0; i < 50; i++) {
		char text[16];
		sprintf(text, "t%d", i);
		fprintf(out, "summed %ld %s %d ", i * 0x100000001, text, -i);
		fprintf(out, "%ld\n", summed(i * 0x100000001, text, -i));
		fprintf(out, "hidden %d %d %ld\n", -i, i * 3, hidden((short)-i, (void *)(i * 3l)));
		typed(i, i);
	}
	fclose(out);
	return 0;
}
""",
    "hidden.c":
    "__attribute__((noinline, noclone)) long hidden(short n, void *p) { return n + (long)p; }\n",
    "summed.s":
    """.text
.globl summed
.type summed,@function
summed:
	movslq %edx,%rdx
	lea (%rdi,%rdx),%rax
	movzbl (%rsi),%ecx
	add %rcx,%rax
	ret
.size summed,.-summed
""",
}


def mixed():
    path = os.path.join(folder(), "mixed")
    if os.path.exists(path):
        return path
    for name, text in MIXED.items():
        with open(path + name, "w", encoding="utf-8") as file:
            file.write(text)
        level = () if name == "hidden.c" else ("-g", )
        run("gcc",
            *level,
            "-O1",
            "-c",
            "-o",
            f"{path}{name}.o",
            path + name,
            check=True)
    run("gcc", "-o", path, *(f"{path}{name}.o" for name in MIXED), check=True)
    return path


def shown(value):
    return str(value["string"] if isinstance(value, dict) else value)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


@claim_each("debug information", "sidecar")
def functions_without_described_parameters_have_the_registers_of_their_entry(
        of):
    path, log, out = mixed(), *(os.path.join(folder(), name)
                                for name in ("log", "events"))
    by = ("--no-sidecar", "--no-cache")
    if of == "sidecar":
        cairn("sidecar", path, "-o", path + ".cairn", check=True)
        by = ("--sidecar", path + ".cairn")
    r = trace(
        *by, "--json", "-o", out, "-c", f"{path} {log}",
        "summed((long)$arg1, str($arg2), (int)$arg3, (long)$ret) if (int)$arg3 <= 0",
        "hidden((short)$arg1, (long)$arg2, (long)$ret)")
    expect(r.status == 0, r)
    events = [e for e in map(json.loads, lines_of(out)) if "args" in e]
    logged = [line.split() for line in lines_of(log)]
    for name in ("summed", "hidden"):
        seen = [[shown(v) for v in e["args"].values()] for e in events
                if e["function"] == name]
        wanted = [words[1:] for words in logged if words[0] == name]
        expect(seen == wanted and len(seen) == 50, name, seen[:3], wanted[:3])
    expect(
        r.err.count("its parameters are not known; its arguments are $arg1 to "
                    "$arg6, the registers") == 2, r)


@claim
def registers_are_those_of_entries_and_of_functions_whose_parameters_are_not_known(
):
    for probe, words in (
        ("summed(n)", "it is assembler code"), ("hidden(n)",
                                                "only the symbol table knows"),
        ("summed($arg7)", "summed has no $arg7; it has: $arg1, "),
        ("summed+3($arg1)", "$arg1"), ("typed($arg2)",
                                       "typed has no $arg2; it has: first, ..."
                                       )):
        r = cairn("trace", "--no-sidecar", "--dry-run", f"{mixed()}:{probe}")
        expect(r.status != 0 and words in r.err, probe, r)
    text = cairn("sites", "--no-cache", mixed(), "summed", check=True)
    expect("summed(?)" in text.out and "assembler code" in text.out, text)


if __name__ == "__main__":
    main()
