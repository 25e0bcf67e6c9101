#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tables whose sites need registers only: equal to the events, and to what the program was made to
call, for functions of all types in one table."""

import collections
import json
import subprocess

import tracing
from claims import CAIRN, claim, compile_c, expect, main

TYPES = {
    "char": (8, True),
    "signed char": (8, True),
    "unsigned char": (8, False),
    "short": (16, True),
    "unsigned short": (16, False),
    "int": (32, True),
    "unsigned int": (32, False),
    "long": (64, True),
    "unsigned long": (64, False),
    "bool": (1, False),
    "enum signed_one": (32, True),
    "enum unsigned_one": (32, False),
}
BITS = (0, 1, 5, 0x7f, 0x80, 0xfff9, 0x8000, 0xffffffff, 0x80000000, 1 << 63,
        (1 << 64) - 1)
REPEAT = 3
# Of the functions by their number: a condition that is one comparison, that has two, none.
CONDITIONS = (("v > 1", lambda v, w: v > 1), ("v != w && w < 6",
                                              lambda v, w: v != w and w < 6),
              (None, lambda v, w: True))


def value(bits, of):
    """The low bits, in a type."""
    n, is_signed = TYPES[of]
    bits = int(bits != 0) if of == "bool" else bits & ((1 << n) - 1)
    return bits - (1 << n) if is_signed and bits >> (n - 1) else bits


def function(of):
    return "of_" + of.replace(" ", "_")


def calls(of):
    """[(v, w)], in a varying number of each."""
    values = [value(bits, of) for bits in BITS]
    return [(v, values[(i * 7 + k) % len(values)])
            for i, v in enumerate(values) for k in range(2)
            for _ in range(1 + i % REPEAT)]


def source():
    text = (
        "#include <stdbool.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
        "enum signed_one { BELOW = -7, FIVE = 5 };\nenum unsigned_one { NONE, ABOVE = 9 };\n"
        "volatile long sink;\n")
    for of in TYPES:
        text += (
            f"__attribute__((noinline, noclone, noipa)) void {function(of)}({of} v, {of} w)\n"
            "{ sink = (long)v; __asm__ volatile(\"\" : : \"r\"(w) : \"memory\"); }\n"
        )
    text += "static void all(void)\n{\n"
    for of in TYPES:
        for pair in calls(of):
            v, w = (f"({of})0x{n & (1 << 64) - 1:x}ul" for n in pair)
            text += f"\t{function(of)}({v}, {w});\n"
    # A child that shares the memory is another process; so is one that has a copy of it.
    return text + ("}\nint main(int argc, char **argv)\n{\n\tif (argc > 1) {\n"
                   "\t\tif (!vfork()) { of_int(1, 2); _exit(0); }\n"
                   "\t\tif (!fork()) { of_int(1, 2); _exit(0); }\n"
                   "\t\twait(0); wait(0);\n\t}\n\tall();\n\treturn 0;\n}\n")


def command(*words):
    return " ".join(
        [compile_c("short", source(), "gcc", ("-O2", "-g")), *words])


def objects(*words):
    r = tracing.trace("--no-cache", "--json", *words)
    expect(r.status == 0 and "failed" not in r.err and " 0 lost" in r.err, r)
    return [json.loads(line) for line in r.out.splitlines()]


def table(*words):
    return next(o for o in objects(*words) if "rows" in o)


def check_numbers(rows, wanted):
    """{function: [v]}"""
    expect({row["function"] for row in rows} == set(wanted), rows, wanted)
    for row in rows:
        numbers = wanted[row["function"]]
        expect(
            row["count"] == len(numbers) and row["sum"]["v"] == sum(numbers),
            row, numbers)
        expect(
            row["min"]["v"] == min(numbers)
            and row["max"]["v"] == max(numbers), row, numbers)
        middle = sorted(numbers)[(len(numbers) - 1) // 2]
        expect(
            abs(row["quantiles"]["v"]["p50"] - middle) <= abs(middle) // 32,
            row, numbers)


NUMBERS = [
    w for kind in ("sum", "min", "max", "quantiles")
    for w in (f"--{kind}", "v")
]


@claim
def numbers_of_all_types_are_those_of_the_calls():
    wanted = {function(of): [v for v, _ in calls(of)] for of in TYPES}
    check_numbers(table("-c", command(), *NUMBERS, *wanted)["rows"], wanted)


@claim
def keys_of_all_types_in_one_table_are_those_of_events():
    names = [function(of) for of in TYPES]
    found = table("-c", command(), "--sum", "v", "--by", "v,w", *names)
    events = [
        o
        for o in objects("-c", command(), *(f"{name}(v, w)" for name in names))
        if "args" in o
    ]
    wanted = collections.Counter(
        (o["function"], json.dumps(o["args"])) for o in events)
    rows = {(r["function"], json.dumps(r["by"])): r["count"]
            for r in found["rows"]}
    expect(rows == wanted and len(rows) == len(found["rows"]), rows, wanted)
    expect(sum(wanted.values()) == sum(len(calls(of)) for of in TYPES), wanted)


def check_conditions(conditions):
    """Function i has condition i, and so on from the first."""
    probes, wanted = [], {}
    for i, of in enumerate(TYPES):
        text, holds = conditions[i % len(conditions)]
        probes.append(function(of) + (f" if {text}" if text else ""))
        numbers = [v for v, w in calls(of) if holds(v, w)]
        if numbers:
            wanted[function(of)] = numbers
    found = objects("-c", command(), *NUMBERS, *probes)
    check_numbers(next(o for o in found if "rows" in o)["rows"], wanted)
    n_filtered = sum(p["filtered"] for p in found[-1]["probes"])
    n_calls = sum(len(calls(of)) for of in TYPES)
    expect(n_filtered == n_calls - sum(map(len, wanted.values())), found[-1])


@claim
def conditions_of_one_comparison_hold_for_the_same_calls():
    check_conditions([
        CONDITIONS[0], ("w", lambda v, w: w != 0),
        ("v <= 0", lambda v, w: v <= 0)
    ])


@claim
def sites_that_need_the_interpreter_are_beside_those_that_do_not():
    check_conditions(CONDITIONS)


@claim
def a_child_is_another_process_also_before_it_has_its_own_memory():
    n = len(calls("int"))
    for words, wanted in (((), n), (("-f", ), n + 2)):
        found = table("-c", command("fork"), *words, "--count", "--by", "$pid",
                      "of_int")
        expect(
            sum(row["count"] for row in found["rows"]) == wanted, words, found,
            wanted)
        expect(len(found["rows"]) == (3 if words else 1), words, found)


@claim
def several_processes_that_are_named_are_told_from_others():
    program = compile_c(
        "waiting",
        source().replace("\tall();", "\tgetchar(); all();").replace(
            "#include <unistd.h>", "#include <stdio.h>\n#include <unistd.h>"),
        "gcc", ("-O2", "-g"))
    processes = [
        subprocess.Popen([program], stdin=subprocess.PIPE) for _ in range(3)
    ]
    try:
        check_named(processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def check_named(processes):
    """Of three two are traced."""
    pids = [str(p.pid) for p in processes[:2]]
    with tracing_of(pids) as tracer:
        line = tracer.stderr.readline()
        while line and "attached" not in line:
            line = tracer.stderr.readline()
        for process in processes:
            process.communicate(b"\n")
        out = tracer.communicate(timeout=60)[0]
    found = next(o for o in map(json.loads, out.splitlines()) if "rows" in o)
    counts = {str(row["by"]["$pid"]): row["count"] for row in found["rows"]}
    expect(counts == dict.fromkeys(pids, len(calls("int"))), counts, pids)


def tracing_of(pids):
    words = [w for pid in pids for w in ("-p", pid)]
    return subprocess.Popen([
        CAIRN, "trace", "--no-cache", "--json", *words, "--count", "--by",
        "$pid", "of_int"
    ],
                            stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL,
                            text=True)


if __name__ == "__main__":
    main()
