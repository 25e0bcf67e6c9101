#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace -o NAME.ctf, read by babeltrace2 and held against the JSON lines of the same run:
every event, with its time, thread, site, depth and values."""

import json
import os
import re

from claims import claim, claim_each, compile_c, expect, folder, main, need, run
from exports import PROGRAM, TELLING, VALUES
from tracing import trace

ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\033"
}
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}(),:=]|[^\s{}(),:="]+)')


def unquoted(text):
    unescape = lambda m: chr(int(m[1][1:], 16)) if m[1][
        0] == "x" else ESCAPES.get(m[1], m[1])
    return re.sub(r"\\(x[0-9a-f]{2}|.)", unescape, text[1:-1])


def read_value(tokens):
    """A value of babeltrace2's text: a number, a string, a label, or what is in braces."""
    token = tokens.pop()
    if token == "(":
        label = unquoted(tokens.pop())
        while tokens.pop() != ")":
            pass
        return label
    if token != "{":
        return unquoted(token) if token[0] == '"' else token
    found = {}
    while tokens[-1] != "}":
        if tokens[-2] == "=":
            name = tokens.pop()
            tokens.pop()
            found[name] = read_value(tokens)
        else:
            found[""] = read_value(tokens)
        if tokens[-1] == ",":
            tokens.pop()
    tokens.pop()
    return found


def read_line(line):
    """(time, name, context, fields)"""
    m = re.match(r"\[(\d+)\] \(\S+\) (.*?): (\{.*)", line)
    tokens = TOKEN.findall(m[3])[::-1]
    context = read_value(tokens)
    tokens.pop()
    return int(m[1]), m[2], context, read_value(tokens)


def typed(label, text):
    readers = {
        "truth": lambda t: t == "1",
        "i": int,
        "u": int,
        "real": float,
        "text": str,
        "empty": lambda t: "",
        "json": json.loads
    }
    return readers[label](text)


def names_of(args):
    """The names that values have as members."""
    found = []
    taken = {"site", "depth", "duration_ns"}
    for i, text in enumerate(args):
        plain = name = re.sub(r"[^A-Za-z0-9]", "_", text)
        while {name, name + "_is"} & taken:
            name, i = f"{plain}_{i}", i + len(args)
        taken |= {name, name + "_is"}
        found.append(name)
    return found


def same(got, value):
    """babeltrace2 prints six digits of a float."""
    return f"{got:g}" == f"{value:g}" if isinstance(got,
                                                    float) else got == value


def check(event, line, has_calls):
    time, name, context, fields = line
    moment = {
        "entry": ":entry",
        "return": ":return"
    }.get(event.get("call") if has_calls else None, "")
    expect(time == event["time_ns"] and name == event["function"] + moment,
           event, line)
    expect(
        (int(context["vpid"]), int(context["vtid"]),
         context["procname"]) == (event["pid"], event["tid"], event["comm"]),
        event, context)
    expect(fields["site"] == event["site"], event, fields)
    if has_calls:
        expect(int(fields["depth"]) == event["depth"], event, fields)
        expect(
            int(fields["duration_ns"]) == event.get("duration_ns", 0), event,
            fields)
    for key, (text, value) in zip(names_of(event["args"]),
                                  event["args"].items()):
        got = typed(fields[key + "_is"], fields[key][""])
        expect(same(got, value), text, value, got, fields)


@claim_each((VALUES, "half", "top"),
            ("--graph", VALUES, "down(n, $ret)", "top(n, n, n:hex)", "half"),
            ("down(n, $ret, $duration)", ))
def babeltrace_reads_what_the_json_lines_have(words):
    out, lines = f"{folder()}/run.ctf", f"{folder()}/run.json"
    program = compile_c("ctf", PROGRAM, flags=("-O2", "-g", "-pthread"))
    trace("--json",
          "-o",
          lines,
          "-o",
          out,
          "-o",
          f"{folder()}/both.pftrace",
          "-c",
          program,
          *words,
          check=True)
    *events, summary = map(json.loads, open(lines, encoding="utf-8"))
    expect(
        summary["lost"] == 0
        and sorted(os.listdir(out)) == ["metadata", "stream"], summary)
    read = run(need("babeltrace2"), "--clock-cycles", out, check=True)
    expect("discarded" not in read.err, read.err)
    found = [read_line(line) for line in read.out.split("\n") if line]
    # Those of one moment keep their order.
    events.sort(key=lambda e: e["time_ns"])
    expect(len(found) == len(events) > 20, len(found), len(events))
    for event, line in zip(events, found):
        check(event, line, "--graph" in words)


# Parameters with the names of other members, and of their tags.
CLASHES = r"""
__attribute__((noipa)) void f(int depth, int site) { (void)depth; (void)site; }
__attribute__((noipa)) void g(int a, int a_is) { (void)a; (void)a_is; }
__attribute__((noipa)) void h(int a_is, int a, int a_1) { (void)a; (void)a_is; (void)a_1; }
int main(void)
{
	for (int i = 0; i < 30; i++)
		f(i, i + 100), g(i, i + 200), h(i, i + 300, i + 400);
	return 0;
}
"""


@claim_each((), ("--graph", ))
def names_that_are_taken_get_others(words):
    out, lines = f"{folder()}/clash.ctf", f"{folder()}/clash.json"
    program = compile_c("clashes", CLASHES, flags=("-O2", "-g"))
    trace("--json",
          "-o",
          lines,
          "-o",
          out,
          "-c",
          program,
          *words,
          "f(depth, site, depth + 1)",
          "g(a, a_is)",
          "h(a_is, a, a_1)",
          check=True)
    *events, _ = map(json.loads, open(lines, encoding="utf-8"))
    read = run(need("babeltrace2"), "--clock-cycles", out, check=True)
    found = [read_line(line) for line in read.out.split("\n") if line]
    events.sort(key=lambda e: e["time_ns"])
    expect(len(found) == len(events) >= 90, len(found), len(events))
    for event, line in zip(events, found):
        check(event, line, bool(words))


@claim
def what_is_missing_is_in_the_trace():
    out, lines = f"{folder()}/some.ctf", f"{folder()}/some.json"
    program = compile_c("telling", TELLING, flags=("-O2", "-g"))
    trace("--json",
          "-o",
          lines,
          "-o",
          out,
          "--graph",
          "--ring",
          "4",
          "--sample",
          "1/2",
          "-c",
          f"{program} 20000",
          "leaf(a, $ret)",
          check=True)
    *_, last = open(lines, encoding="utf-8")
    summary = json.loads(last)
    metadata = open(f"{out}/metadata", encoding="utf-8").read()
    found = dict(
        re.findall(r"^\t(\w+) = (\d+);",
                   metadata.split("env {")[1].split("}")[0], re.M))
    names = ("sample", "undrawn", "lost", "entries_lost")
    expect(found == {n: str(summary[n]) for n in names}, found, summary)
    read = run(need("babeltrace2"), out, check=True)
    # Of a trace's first packet it does not tell the number.
    expect("may have discarded events" in read.err and summary["lost"],
           read.err[-500:])


@claim
def times_are_those_of_the_wall_clock():
    out, lines = f"{folder()}/wall.ctf", f"{folder()}/wall.json"
    program = compile_c("ctf", PROGRAM, flags=("-O2", "-g", "-pthread"))
    trace("--json",
          "--time",
          "wall",
          "-o",
          lines,
          "-o",
          out,
          "-c",
          program,
          "top()",
          check=True)
    first = json.loads(open(lines, encoding="utf-8").readline())
    read = run(need("babeltrace2"),
               "--clock-date",
               "--no-delta",
               out,
               check=True).lines()[0]
    expect(read[1:19] == first["wall"].replace("T", " ")[:18], read, first)


@claim
def a_directory_of_others_and_a_bad_place_are_left_alone():
    program = compile_c("ctf", PROGRAM, flags=("-O2", "-g", "-pthread"))
    for name in ("precious", "metadata", "stream"):
        other = f"{folder()}/other-{name}.ctf"
        os.makedirs(other)
        with open(f"{other}/{name}", "w", encoding="utf-8") as file:
            file.write("x")
        r = trace("-o", other, "-c", program, "top()")
        expect(
            r.status == 3 and other in r.err and "attached" not in r.err
            and os.listdir(other) == [name]
            and open(f"{other}/{name}", encoding="utf-8").read() == "x", r)
    empty = f"{folder()}/empty.ctf"
    os.makedirs(empty)
    for _ in range(2):
        trace("-o", empty, "-c", program, "top()", check=True)
        expect(
            sorted(os.listdir(empty)) == ["metadata", "stream"],
            "not replaced")
    for path in (f"{folder()}/no/such/a.ctf", f"{folder()}/file.ctf"):
        with open(f"{folder()}/file.ctf", "w", encoding="utf-8"):
            pass
        r = trace("-o", path, "-c", program, "top()")
        expect(r.status == 2 and path in r.err and "attached" not in r.err, r)
    r = trace("-o", f"{folder()}/count.ctf", "-c", program, "--count", "top")
    expect(r.status == 2 and "for events" in r.err, r)


main()
