#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace --format and --time. Fields are held against Python's own format() of what the
program logged; times against each other and against the program's clocks."""

import datetime
import json
import os
import random
import re
import time

from claims import (CAIRN, claim, claim_each, compile_c, expect, folder, main,
                    need, need_root, run)
from tracing import trace

PROGRAM = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum color { RED, GREEN = 5 };
struct pair { int low : 5; unsigned high : 9; enum color color; };
static volatile int sink;
static const char *const words[] = {"", "a", "zwölf", "a longer text of some words", "x y"};
__attribute__((noinline)) void hit(int i, unsigned u, long l, const char *s, const double *d,
				   const float *f, const struct pair *p, short h)
{
	sink += i + (int)u + (int)l + s[0] + (int)*d + (int)*f + p->low + h;
}
static inline __attribute__((always_inline)) int half(int unused, int n) { return n / 2; }
__attribute__((noinline)) void dirty(char *s) { sink += s[0]; }
static void *again(void *n)
{
	for (int i = 0; i < 200; i++)
		dirty("thread");
	return n;
}
int main(int argc, char **argv)
{
	FILE *log = argc > 1 ? fopen(argv[1], "w") : NULL;
	pthread_t threads[2];
	srandom(7);
	for (int n = 0; n < 120; n++) {
		int i = n < 3 ? n - 1 : (int)(random() * 5);
		unsigned u = (unsigned)random() * 3u >> random() % 32;
		long l = (random() << 33 | random()) >> random() % 63;
		double d = (double)(random() - (1 << 30)) / (random() % 1000 + 1);
		float f = (float)d / 3;
		struct pair p = {(int)(random() % 32) - 16, (unsigned)random() % 512, n % 2 ? GREEN : RED};
		const char *s = words[n % 5];
		if (log)
			fprintf(log, "%d\t%u\t%ld\t%s\t%.17g\t%.17g\t%d\t%u\t%d\t%d\n", i, u, l, s, d, f,
				p.low, p.high, p.color, (short)l);
		hit(i, u, l, s, &d, &f, &p, (short)l);
	}
	for (int n = 0; n < 3; n++)
		sink += half(n, sink);
	dirty("\033[31m\"\\\n");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, again, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""
EXPRESSIONS = ("i", "u", "l", "s", "*d", "*f", "p->low", "p->high", "p->color",
               "h")


def program():
    return compile_c("formats", PROGRAM, flags=("-O2", "-g", "-pthread"))


def log_of(path):
    rows = []
    for line in open(path, encoding="utf-8"):
        row = line.rstrip("\n").split("\t")
        rows.append([
            int(v) if i not in (3, 4, 5) else v if i == 3 else float(v)
            for i, v in enumerate(row)
        ])
    return rows


def draw_spec(what, draw):
    """A spec for one of EXPRESSIONS, in which Python means the same."""
    fill = draw.choice(("", draw.choice(
        ("<", ">", "^")), draw.choice("*~ä}x") + draw.choice("<>^")))
    fill = fill.replace("}", "+")  # which would end the field
    width = draw.choice(("", "1", "9", "24"))
    if what == "s":
        return f"{fill}{width}{draw.choice(('', '.0', '.3', '.40'))}s"
    sign, zero = draw.choice(("", "+")), draw.choice(("", "0"))
    if what in ("*d", "*f"):
        return f"{fill}{sign}{zero}{width}{draw.choice(('', '.0', '.3', '.12'))}{draw.choice('feg')}"
    kind = draw.choice("dxXb")
    alternate = draw.choice(("", "#")) if kind != "d" else ""
    return f"{fill}{sign if kind == 'd' else ''}{alternate}{zero}{width}{kind}"


BITS = {"i": 32, "p->low": 5, "l": 64, "h": 16}


def shown(what, value, spec):
    """As printf, hexadecimal has the bits of a negative number."""
    if spec[-1] in "xXb" and value < 0:
        value += 1 << BITS[what]
    return format(value, spec)


@claim
def fields_are_what_python_formats_of_the_programs_own_log():
    draw = random.Random(41)
    fields = [(what, draw_spec(what, draw)) for what in EXPRESSIONS * 6][:60]
    text = "|".join(f"{{{what}:{spec}}}" for what, spec in fields)
    log = f"{folder()}/formats.log"
    r = trace("-c", f"{program()} {log}", "--format", text, "hit", check=True)
    rows = log_of(log)
    lines = r.out.splitlines()
    expect(len(lines) == len(rows) == 120, len(lines), len(rows), r.err)
    for line, row in zip(lines, rows):
        values = dict(zip(EXPRESSIONS, row))
        # A float is exact as a double, which the log has 9 digits of.
        for got, (what, spec) in zip(line.split("|"), fields):
            expect(got == shown(what, values[what], spec), what, spec,
                   values[what], got)


@claim
def a_field_without_a_spec_is_what_the_events_own_line_shows():
    names = [
        *EXPRESSIONS, "*p", "d", "i + 1", "u > 5", "s:hex", "buf(s, 3)",
        "str(s)", "&p->color"
    ]
    text = ", ".join(f"{name.split(':')[0]}={{{name}}}" for name in names)
    own = trace("-c", program(), f"hit({', '.join(names)})",
                check=True).out.splitlines()
    by_format = trace("-c",
                      program(),
                      "--format",
                      "{$time} {$pid}/{$tid} {$comm} {$func} {$site}: " + text,
                      "hit",
                      check=True)
    lines = by_format.out.splitlines()
    expect(len(own) == len(lines) == 120, by_format)
    # What differs from run to run.
    mask = lambda line: re.sub(r"0x[0-9a-f]{6,}|^ *\d+\.\d+ \d+/\d+", "-",
                               line.replace(":hex=", "="))
    for a, b in zip(own, lines):
        expect(mask(a).replace("s (2)=", "s=") == mask(b), mask(a), mask(b))


@claim
def what_is_not_available_shows_its_reason_in_short():
    fields = "{half.n}".replace("half.", "")
    listed = trace("-c", program(), "--json", "half",
                   check=True).out.splitlines()
    shorts = trace("-c",
                   program(),
                   "--format",
                   "{unused}|" + fields,
                   "half",
                   check=True)
    events = [json.loads(line)["args"] for line in listed if '"args"' in line]
    as_text = lambda v: f"<{v['unavailable']}>" if isinstance(v, dict
                                                              ) else str(v)
    expect(len(events) == 3, listed)
    got = shorts.out.splitlines()
    expect(
        got == [
            "|".join((as_text(e["unused"]), as_text(e["n"]))) for e in events
        ], got, events)
    # And what cannot be read.
    r = trace("-c",
              program(),
              "--format",
              "{((struct pair *)8)->color:>22}|{((struct pair *)0)->high:>4}",
              "-n",
              "1",
              "hit",
              check=True)
    expect(r.out.startswith(" " * 10) or "unreadable" in r.out, r)


@claim
def text_is_safe_for_a_terminal_and_may_stand_without_quotes():
    r = trace("-c",
              program(),
              "-n",
              "1",
              "--format",
              r"{{}}\t{s} {s:s} {s[0]:c} {s[0]:d} {$comm:>13}",
              "dirty",
              check=True)
    expect(
        r.out ==
        '{}\t"\\033[31m\\"\\\\\\n" \\033[31m"\\\\\\n \\033 27   formats-gcc\n',
        r.out)


@claim
def a_probe_with_a_list_has_its_values_and_those_of_the_format():
    """The list is needed everywhere; what only the format has may be unavailable."""
    r = trace("-c",
              program(),
              "--format",
              "{n:3} {n} {unused}",
              "half(n)",
              check=True)
    expect(len(r.out.splitlines()) == 3, r)
    r = trace("-c", program(), "--format", "{n:3}", "half(unused)")
    expect(r.status == 1 and "unused is unavailable" in r.err, r)


@claim_each(
    ("{i", 2, "a } is missing"), ("{i:9q}", 4, "d u x X o b c s f e g"),
    ("{s:d}", 3, "it is no integer"), ("{*d:x}", 4, "f, e or g"),
    ("{i:.2f}", 3, "d, u, x"), ("i %d", 2, "{EXPR:x}"), ("}", 0, "}}"),
    ("{nope}", 1, "nope"), ("a\\q", 1, "\\n, \\t"), ("{$tim}", 1, "$time"),
    ("{i:2000}", 3, "1000"), ("{i:.3}", 3, "floats and text"),
    ("{}", 1, "missing here"), ("{p:s}", 3, ":str"),
    ("{$comm:hex}", 1, ":hex"), ("{i:+}{*d:+}", 9, "need a letter"),
    ("{$duration > $time}", 13, "$time"))
def a_bad_format_has_a_caret_the_reason_and_what_works(case):
    text, at, word = case
    r = trace("-c", program(), "--format", text, "hit")
    lines = r.err.splitlines()
    expect(r.status == 2 and word in r.err and not r.out, r)
    where = next(i for i, line in enumerate(lines) if line.strip() == "^")
    indent = lines[where - 1].index(text.replace("\\", "\\"))
    expect(lines[where].index("^") - indent == at, lines)


@claim
def a_format_is_for_events_as_text():
    for words in (("--json", ), ("--count", )):
        r = trace("-c", program(), "--format", "{i}", *words, "hit")
        expect(r.status == 2 and "--format is for" in r.err, r)
    r = trace("-c", program(), "--time", "wall", "--count", "hit")
    expect(r.status == 2 and "--time is for" in r.err, r)


def events_of(kind, *words):
    r = trace("-c", program(), "--time", kind, *words, "dirty()", check=True)
    return r.out.splitlines()


@claim
def deltas_are_between_the_events_of_one_thread():
    last, n = {}, 0
    for line in events_of("delta", "--json"):
        e = json.loads(line)
        if "time_ns" not in e:
            continue
        before = last.get(e["tid"])
        expect(
            e["delta_ns"] == (None if before is None else e["time_ns"] -
                              before), e, before)
        last[e["tid"]] = e["time_ns"]
        n += 1
    expect(n == 401 and len(last) == 3, n, len(last))
    firsts = [
        line for line in events_of("delta") if line.startswith("           - ")
    ]
    expect(len(firsts) == 3, firsts)


@claim
def wall_clock_times_are_iso_8601_of_the_run():
    before = time.time()
    lines = events_of("wall", "--json")
    after = time.time()
    for line in lines:
        e = json.loads(line)
        if "wall" not in e:
            continue
        # Python reads microseconds.
        wall = datetime.datetime.fromisoformat(
            re.sub(r"(\.\d{6})\d{3}", r"\1", e["wall"]))
        expect(before - 1 < wall.timestamp() < after + 1, e["wall"], before,
               after)
    text = events_of("wall")[0].split()[0]
    expect(before - 1 < datetime.datetime.fromisoformat(text).timestamp(),
           text)


@claim
def a_time_can_be_printed_by_a_format_in_each_kind():
    for kind in ("relative", "monotonic"):
        r = trace("-c",
                  program(),
                  "--time",
                  kind,
                  "--format",
                  "{$time} {$time:d} {$delta} {$delta:>12}",
                  "dirty",
                  check=True)
        for line in r.out.splitlines():
            seconds, ns, delta, *unit = line.split()
            expect(int(ns) // 1000 == round(float(seconds) * 1e6), line)
            expect(delta == "-" or unit[0] == "ns", line)
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    expect(0 < now - float(seconds) < 60, seconds, now)


def on_a_terminal(*words, **env):
    """What a terminal gets."""
    words = " ".join(f"'{w}'" for w in words)
    r = run("script",
            "-qec",
            f"{CAIRN} trace -c {program()} {words} 2>/dev/null",
            "/dev/null",
            env={
                **os.environ, "TERM": "xterm",
                **env
            })
    return r.out.replace("\r", "")


@claim
def colours_are_for_terminals_that_want_them():
    """Without them it is the same text."""
    need_root()
    need("script")
    colour, off = re.compile(r"\033\[\d+m"), "\033[0m"
    for words in (("half", ), ("--graph", "half", "hit(i)")):
        shown = on_a_terminal(*words)
        expect(
            f"\033[1mhalf{off}" in shown and "\033[31m<unavailable" in shown
            and "\033[2m" in shown, shown)
        plain = trace("-c", program(), *words, check=True).out
        mask = lambda text: re.sub(r"\d+", "0",
                                   re.sub(r" +", " ", colour.sub("", text)))
        expect(
            mask(shown).splitlines()[-3:] == mask(plain).splitlines()[-3:],
            shown[-400:], plain[-400:])
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            expect(not colour.search(on_a_terminal(*words, **env)), env)
        for more in (("--json", ), ("-o", f"{folder()}/plain")):
            expect(not colour.search(on_a_terminal(*more, *words)), more)


main()
