#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace --count and the like: equal to what the program itself has counted, and to the events
summed up here."""

import collections
import contextlib
import fractions
import json
import os
import pty
import re
import subprocess

import claims
import tracing
from claims import (CAIRN, Skip, cairn, claim, claim_each, claim_each_of_many, compile_c, folder,
                    main, need, need_root, run)

COMPILERS = ("gcc", "clang")
THREADS = 4
ROUNDS = 2000

# Each thread logs its own calls and their arguments, after the fact, so that nothing of the traced
# code depends on the log.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define THREADS 4
enum colour { RED, GREEN = 5, BLUE = -7 };
struct rec { unsigned int kind : 3; int low : 5; enum colour colour; char name[8]; const char *text; long *far; };
struct call { int n; uint64_t u; bool b; char c; enum colour colour; const char *s; int r; short h; unsigned char y; };
static const char *const texts[] = { "a", "bb", "a longer one", "", NULL, "caf\303\251 \"q\"",
	"0123456789012345678901234567890123456789012345678901234567890123456789",
	"012345678901234567890123456789012345678901234567890123456789012" };
static long there = -12;
static struct rec recs[4] = { { 1, -3, RED, "seven", "one", &there }, { 2, 4, GREEN, "eight888", "two", 0 },
	{ 3, -16, BLUE, "", "three", &there }, { 7, 15, 3, "x", 0, (long *)8 } };
static int rounds;
static volatile long sink;
__attribute__((noinline)) void hit(int n, uint64_t u, bool b, char c, enum colour colour, const char *s,
	const struct rec *r, short h, unsigned char y)
{
	sink = n;
	__asm__ volatile("" : : "r"(u), "r"(b), "r"(c), "r"(colour), "r"(s), "r"(r), "r"(h), "r"(y) : "memory");
}
static inline __attribute__((always_inline)) void in(long n)
{
	sink = n;
	__asm__ volatile("" : : "r"(n) : "memory");
}
__attribute__((noinline)) void in_one(long n) { in(n); }
__attribute__((noinline)) void in_two(long n) { sink = 0; in(n + 1); }
static struct call make(uint64_t *seed, int i)
{
	uint64_t x = *seed = *seed * 6364136223846793005u + 1442695040888963407u;
	int shift = (int)(x >> 58) & 31;

	x ^= x >> 29;
	return (struct call){ .n = i % 97 == 0 ? 0 : (int)((int32_t)x >> shift), .u = i % 11 ? x << 1 >> shift : ~(uint64_t)i,
		.b = x >> 7 & 1, .c = (char)('a' + x % 26), .colour = recs[x >> 9 & 3].colour, .s = texts[x >> 12 & 7],
		.r = x >> 9 & 3, .h = (short)x, .y = (unsigned char)(x >> 3) };
}
struct thread { uint64_t seed; int tid; struct call *calls; };
static void *thread(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < rounds; i++) {
		struct call c = t->calls[i] = make(&t->seed, i);
		hit(c.n, c.u, c.b, c.c, c.colour, c.s, &recs[c.r], c.h, c.y);
		in_one(c.n);
		if (i % 3)
			in_two(c.n);
	}
	t->tid = gettid();
	return 0;
}
static void text(FILE *out, const char *name, const char *s)
{
	fprintf(out, s ? ", \"%s\": \"" : ", \"%s\": null", name);
	for (; s && *s; s++)
		fprintf(out, *s == '"' ? "\\%c" : "%c", *s);
	if (s && !*s)
		fputc('"', out);
}
static void write_log(FILE *out, const struct thread *t)
{
	for (int i = 0; i < rounds; i++) {
		const struct call *c = &t->calls[i];
		const struct rec *r = &recs[c->r];
		fprintf(out, "{\"i\": %d, \"tid\": %d, \"n\": %d, \"u\": %llu, \"b\": %d, \"c\": \"%c\", \"colour\": %d, "
			"\"h\": %d, \"y\": %d, \"kind\": %u, \"low\": %d", i, t->tid, c->n, (unsigned long long)c->u, c->b,
			c->c, c->colour, c->h, c->y, r->kind, r->low);
		fprintf(out, ", \"far\": %s", r->far == &there ? "-12" : "null");
		fprintf(out, ", \"name\": \"%.8s\"", r->name);
		text(out, "s", c->s);
		text(out, "text", r->text);
		fputs("}\n", out);
	}
}
int main(int argc, char **argv)
{
	struct thread threads[THREADS];
	pthread_t ids[THREADS];
	FILE *out;

	rounds = atoi(argv[2]);
	for (int i = 0; i < THREADS; i++)
		threads[i] = (struct thread){ .seed = 77 * (i + 1), .calls = calloc(rounds, sizeof(struct call)) };
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], 0, thread, &threads[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], 0);
	out = fopen(argv[1], "w");
	for (int i = 0; i < THREADS; i++)
		write_log(out, &threads[i]);
	return fclose(out);
}
"""

SAMPLES = {"gcc": (), "clang": ("--assume-unmodified",)}


def expect(condition, *shown):
    """Tables are long."""
    if not condition:
        claims.expect(condition, *(str(item)[:2000] for item in shown))


def log_path():
    return os.path.join(folder(), "calls.log")


def command(compiler="gcc", rounds=ROUNDS):
    path = compile_c("summed", PROGRAM, compiler, ("-O2", "-g", "-pthread"))
    return f"{path} {log_path()} {rounds}"


def calls():
    """What the program itself has called."""
    with open(log_path(), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def trace(*words, compiler="gcc", status=0, **kwargs):
    r = tracing.trace("--no-cache", *words, **kwargs)
    expect(r.status == status, r)
    return r


def tables(r):
    """Averages stay as exact as they are printed."""
    objects = [json.loads(line, parse_float=fractions.Fraction) for line in r.out.splitlines()]
    return [o for o in objects if "rows" in o]


def table(*words, compiler="gcc", **kwargs):
    """The last table, and the program's own calls."""
    words = (*words[:-1], *SAMPLES[compiler], words[-1])
    r = trace("--json", "-c", command(compiler), *words, **kwargs)
    expect("failed" not in r.err and " 0 lost" in r.err, r)
    return tables(r)[-1], calls()


# ---- the same, summed up here ----


def power_of(n):
    """The bucket of a number, as its two bounds."""
    if not n:
        return 0, 0
    low = 1 << (abs(n).bit_length() - 1)
    high = 2 * low - 1
    if n > 0:
        return low, high
    return (-low if low == 1 << 63 else -high), -low


def step_of(n, first, end, step):
    if n < first:
        return None, first - 1
    if n >= end:
        return end, None
    at = first + (n - first) // step * step
    return at, at + step - 1


def buckets_of(numbers, bucket):
    found = collections.Counter(map(bucket, numbers))
    return {f"{low}..{high}": count for (low, high), count in found.items()}


def filled(buckets):
    return {f"{b['min']}..{b['max']}": b["count"] for b in buckets if b["count"]}


def average(numbers):
    exact = fractions.Fraction(sum(numbers), len(numbers))
    rounded = (abs(exact) * 10**6 + fractions.Fraction(1, 2)) // 1
    return rounded * (-1 if exact < 0 else 1) / fractions.Fraction(10**6)


def same_row(row, numbers, name, lhist=None):
    """Every aggregate of the numbers called @name."""
    expect(row["count"] == len(numbers), row, len(numbers))
    numbers = [n for n in numbers if n is not None]
    expect(row.get("unreadable", {}).get(name, 0) == row["count"] - len(numbers), row, name)
    expect(row["sum"][name] == sum(numbers), row["sum"], name, sum(numbers))
    if not numbers:
        expect(row["avg"][name] is row["min"][name] is row["max"][name] is None, row)
        return
    shown = fractions.Fraction(row["avg"][name])
    expect(shown == average(numbers), row["avg"], average(numbers))
    expect(row["min"][name] == min(numbers), row["min"], min(numbers))
    expect(row["max"][name] == max(numbers), row["max"], max(numbers))
    expect(filled(row["hist"][name]) == buckets_of(numbers, power_of), row["hist"],
           buckets_of(numbers, power_of))
    if lhist:
        wanted = buckets_of(numbers, lambda n: step_of(n, *lhist))
        expect(filled(row["lhist"][name]) == wanted, row["lhist"], wanted)


def everything(name, lhist=None):
    words = []
    for kind in ("sum", "avg", "min", "max", "hist"):
        words += [f"--{kind}", name]
    return words + (["--lhist", f"{name},{lhist[0]},{lhist[1]},{lhist[2]}"] if lhist else [])


def groups(wanted, key):
    found = collections.defaultdict(list)
    for call in wanted:
        found[key(call)].append(call)
    return found


def same_table(found, wanted, key_of_row, key_of_call, name, number=None, lhist=None):
    number = number or (lambda call: call[name])
    by_key = groups(wanted, key_of_call)
    expect(len(found["rows"]) == len(by_key) and not found["others"], len(found["rows"]),
           sorted(by_key, key=str))
    for row in found["rows"]:
        key = key_of_row(row["by"])
        expect(key in by_key, key, list(by_key))
        same_row(row, [number(call) for call in by_key[key]], name, lhist)
    expect(found["count"] == len(wanted), found["count"], len(wanted))


# ---- claims ----


def as_int(n):
    """As the processor computes with int."""
    return (n + (1 << 31)) % (1 << 32) - (1 << 31)


NUMBERS = {
    "n": (lambda call: call["n"], (-1000, 1000, 100)),
    "u": (lambda call: call["u"], (-1 << 60, 1 << 62, 1 << 60)),
    "h": (lambda call: call["h"], (-100, 100, 1)),
    "y": (lambda call: call["y"], (0, 256, 16)),
    "b": (lambda call: call["b"], (0, 2, 1)),
    "c": (lambda call: ord(call["c"]), None),
    "r->low": (lambda call: call["low"], (-16, 16, 4)),
    "r->kind": (lambda call: call["kind"], None),
    "colour": (lambda call: call["colour"], None),
    "*r->far": (lambda call: call["far"], (-20, 0, 10)),
    "n * 3 - h": (lambda call: as_int(call["n"] * 3 - call["h"]), None),
    "u >> 60": (lambda call: call["u"] >> 60, (0, 16, 1)),
    "-n": (lambda call: -call["n"], None),
    "y > 100": (lambda call: int(call["y"] > 100), None),
}


@claim_each_of_many(*COMPILERS)
def every_aggregate_of_every_kind_of_number_is_what_the_program_counted(compiler):
    for name, (number, lhist) in NUMBERS.items():
        found, wanted = table(*everything(name, lhist), "hit", compiler=compiler)
        expect(len(found["rows"]) == 1 and "by" not in found["rows"][0], found)
        same_row(found["rows"][0], [number(call) for call in wanted], name, lhist)


KEYS = {
    "$tid": ("$tid", lambda call: call["tid"]),
    "u": ("u", lambda call: call["u"]),
    "h": ("h", lambda call: call["h"]),
    "b": ("b", lambda call: bool(call["b"])),
    "c": ("c", lambda call: call["c"]),
    "r->low": ("r->low", lambda call: call["low"]),
    "r->kind": ("r->kind", lambda call: call["kind"]),
    "n % 7": ("n % 7", lambda call: abs(call["n"]) % 7 * (-1 if call["n"] < 0 else 1)),
    "colour": ("colour", lambda call: {0: "RED", 5: "GREEN", -7: "BLUE", 3: 3}[call["colour"]]),
    "r->name": ("r->name", lambda call: call["name"]),
    "y:hex": ("y", lambda call: hex(call["y"])),
}


def quantile(numbers, thousandths):
    """The number with the rank of this share, rounded up."""
    return sorted(numbers)[max(0, -(-len(numbers) * thousandths // 1000) - 1)]


def expect_quantiles(found, numbers, shown):
    """As exact as is promised, of all numbers that the program has logged."""
    for name, thousandths in (("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)):
        exact = quantile(numbers, thousandths)
        expect(abs(found[name] - exact) <= abs(exact) // 32, name, found, exact, shown)
        expect(abs(exact) >= 32 or found[name] == exact, name, found, exact, shown)
    expect(found["max"] == max(numbers), found, max(numbers), shown)


@claim
def quantiles_are_those_of_the_programs_numbers_within_their_error():
    names = ["n", "u"]
    words = [w for name in names for w in ("--quantiles", name)]
    found, logged = table(*words, "--by", "$tid", "hit")
    expect(len(found["rows"]) == THREADS, found)
    for row in found["rows"]:
        own = [c for c in logged if c["tid"] == row["by"]["$tid"]]
        for name in names:
            expect_quantiles(row["quantiles"][name], [c[name] for c in own], row)
    found, logged = table("--quantiles", "h", "--quantiles", "y", "--hist", "y", "hit")
    for name in ("h", "y"):
        expect_quantiles(found["rows"][0]["quantiles"][name], [c[name] for c in logged], found)


@claim
def intervals_have_the_quantiles_of_their_own_numbers():
    r = trace("--json", "--every", "10ms", "--clear", "-c", command(rounds=4 * ROUNDS),
              "--quantiles", "y", "--lhist", "y,0,256,1", "hit")
    found, logged = tables(r), calls()
    expect(sum(t["count"] for t in found) == len(logged) and len(found) > 1, r)
    for one in (row for t in found for row in t["rows"]):
        numbers = [b["min"] for b in one["lhist"]["y"] for _ in range(b["count"])]
        expect_quantiles(one["quantiles"]["y"], numbers, one)


@claim
def text_has_a_column_for_each_quantile():
    r = trace("-c", command(), "--quantiles", "y", "--by", "b", "hit")
    expect(re.search(r"^b +p50\(y\) +p90\(y\) +p99\(y\) +p99\.9\(y\) +max\(y\)$", r.out, re.M), r)
    expect("within 1/32 (3.2 %)" in r.err, r)
    r = trace("-c", command(), "--quantiles", "y", "--hist", "y", "hit")
    expect(re.search(r"^count \d+, p50\(y\) \d+, .*max\(y\) 255$", r.out, re.M), r)


@claim_each_of_many(*COMPILERS)
def rows_by_every_kind_of_key_are_what_the_program_counted(compiler):
    for by, (name, key) in KEYS.items():
        words = ("--max-keys", "20000", *everything("n"), "--by", by, "hit")
        found, wanted = table(*words, compiler=compiler)
        same_table(found, wanted, lambda row: row[name], key, "n")


@claim
def strings_of_every_length_are_keys_also_null_and_cut_ones():
    found, wanted = table(*everything("n"), "--by", "s,r->text:str", "hit")
    by_key = groups(wanted, lambda call: (*shown(call["s"], 63), *shown(call["text"], 63)))
    expect(len(found["rows"]) == len(by_key), found)
    for row in found["rows"]:
        key = (*shown_in(row, "s"), *shown_in(row, "r->text"))
        same_row(row, [call["n"] for call in by_key[key]], "n")
    # Cut to two characters, several are one.
    found, wanted = table(*everything("n"), "--str-len", "2", "--by", "s", "hit")
    by_key = groups(wanted, lambda call: shown(call["s"], 2))
    expect(len(found["rows"]) == len(by_key) == 7, found)
    for row in found["rows"]:
        same_row(row, [call["n"] for call in by_key[shown_in(row, "s")]], "n")


def shown(text, most):
    """At most so many bytes of it, and whether it goes on."""
    if text is None:
        return None, False
    return text.encode()[:most].decode(), len(text.encode()) > most


def shown_in(row, name):
    text = row["by"][name]
    return None if text == {"unreadable": "NULL"} else text, name in row.get("truncated", [])


@claim_each_of_many(*COMPILERS)
def events_summed_up_here_are_the_same(compiler):
    words = (*SAMPLES[compiler], "--ring", "65536", "-c", command(compiler))
    r = trace("--json", *words, "hit(n, u, h, y, c, colour, b) if h < 0 && y")
    events = [o for o in map(json.loads, r.out.splitlines()) if "args" in o]
    expect(events and " 0 lost" in r.err, r.err)
    found, _ = table(*everything("u"), *everything("n")[:4], "--by", "c,colour",
                     "hit if h < 0 && y", compiler=compiler)
    by_key = groups(events, lambda e: (e["args"]["c"], e["args"]["colour"]))
    expect(len(by_key) == len(found["rows"]), found)
    for row in found["rows"]:
        of = by_key[(row["by"]["c"], row["by"]["colour"])]
        same_row(row, [e["args"]["u"] for e in of], "u")
        expect(row["sum"]["n"] == sum(e["args"]["n"] for e in of), row)


@claim_each_of_many(*COMPILERS)
def inlined_copies_have_rows_by_site_and_by_function(compiler):
    found, wanted = table(*everything("n"), "--by", "$site", "in", compiler=compiler)
    sites = {re.sub(r"\+.*", "", row["by"]["$site"]): row for row in found["rows"]}
    copies = {s: row for s, row in sites.items() if "in_" in s}
    expect(set(copies) == {"inlined in in_one", "inlined in in_two"}, sites)
    same_row(copies["inlined in in_one"], [call["n"] for call in wanted], "n")
    same_row(copies["inlined in in_two"], [call["n"] + 1 for call in wanted if call["i"] % 3], "n")
    found, wanted = table("--sum", "n", "--by", "n > 0", "in_*", compiler=compiler)
    of = {(row["function"], row["by"]["n > 0"]): row for row in found["rows"]}
    for name, keep in (("in_one", lambda call: True), ("in_two", lambda call: call["i"] % 3)):
        for positive in (0, 1):
            numbers = [call["n"] for call in wanted if keep(call) and (call["n"] > 0) == positive]
            row = of[(name, positive)]
            expect((row["count"], row["sum"]["n"]) == (len(numbers), sum(numbers)), row)


@claim
def functions_without_keys_are_counted_each_for_itself():
    found, wanted = table("--count", "in_*")
    by_name = {row["function"]: row["count"] for row in found["rows"]}
    expect(by_name == {"in_one": len(wanted),
                       "in_two": sum(1 for call in wanted if call["i"] % 3)}, by_name)


@claim
def keys_beyond_the_limit_are_others_and_nothing_is_lost():
    need_root()
    rounds = 2 * ROUNDS
    r = trace("--json", "--max-keys", "1000", *everything("n"), "--by", "u,n,$tid", "-c",
              command(rounds=rounds), "hit")
    found, wanted = tables(r)[-1], calls()
    keys = groups(wanted, lambda call: (call["u"], call["n"], call["tid"]))
    expect(len(keys) > 11000, len(keys))
    expect(len(found["rows"]) == 1000 and len(found["others"]) == 1, len(found["rows"]))
    rest = list(wanted)
    inside = set()
    for row in found["rows"]:
        key = (row["by"]["u"], row["by"]["n"], row["by"]["$tid"])
        same_row(row, [call["n"] for call in keys[key]], "n")
        inside.add(key)
    rest = [call for key, of in keys.items() if key not in inside for call in of]
    same_row(found["others"][0], [call["n"] for call in rest], "n")
    expect("others: more than 1000 keys" in r.err, r.err)


@claim
def maps_that_processors_share_are_as_right():
    # So many long histograms do not fit once per processor.
    lhist = (-1000, 1000, 2)
    found, wanted = table("--max-keys", "60000", *everything("n", lhist), "--by", "c", "hit")
    same_table(found, wanted, lambda row: row["c"], lambda call: call["c"], "n", lhist=lhist)


@claim
def single_uprobes_are_as_right():
    found, wanted = table("--backend", "uprobe", *everything("n"), "--by", "colour,$tid", "hit")
    names = {0: "RED", 5: "GREEN", -7: "BLUE", 3: 3}
    same_table(found, wanted, lambda row: (row["colour"], row["$tid"]),
               lambda call: (names[call["colour"]], call["tid"]), "n")


@claim_each("--clear", "")
def intervals_have_every_hit_once(clear):
    words = [clear] if clear else []
    rounds = 12 * ROUNDS
    r = trace("--every", "40ms", *words, "--count", *everything("n"), "--by", "c,$tid", "-c",
              command(rounds=rounds), "hit")
    found, wanted = tables(r), calls()
    expect(len(found) > 2, r.out[:300])
    summary = json.loads(r.out.splitlines()[-1])
    expect(summary["events"] == len(wanted) == summary["probes"][0]["events"], summary,
           len(wanted))
    expect(summary["lost"] == summary["failed"] == 0, summary)
    by_key = groups(wanted, lambda call: (call["c"], call["tid"]))
    last = rows_of(found[-1:]) if not clear else rows_of(found)
    expect(set(last) == set(by_key), len(last), len(by_key))
    for key, rows in last.items():
        numbers = [call["n"] for call in by_key[key]]
        expect(sum(row["count"] for row in rows) == len(numbers), key, rows)
        expect(sum(row["sum"]["n"] for row in rows) == sum(numbers), key)
        expect(min(row["min"]["n"] for row in rows) == min(numbers), key)
        expect(max(row["max"]["n"] for row in rows) == max(numbers), key)
        both = collections.Counter()
        for row in rows:
            both.update(filled(row["hist"]["n"]))
        expect(both == buckets_of(numbers, power_of), key)
    counts = [t["count"] for t in found]
    expect(sum(counts) == len(wanted) if clear else counts == sorted(counts), counts)
    for before, after in zip(found, found[1:]):
        expect(after["from_ns"] == (before["to_ns"] if clear else before["from_ns"]), after)


def rows_of(found):
    rows = collections.defaultdict(list)
    for one in found:
        for row in one["rows"]:
            rows[(row["by"]["c"], row["by"]["$tid"])].append(row)
    return rows


@claim
def what_the_kernel_knows_is_a_key():
    found, wanted = table("--count", "--by", "$pid,$tid,$comm,$cpu,$cgroup,$site", "hit")
    tids = collections.Counter()
    for row in found["rows"]:
        by = row["by"]
        expect(by["$comm"] == "summed-gcc" and by["$site"] == "entry", row)
        expect(0 <= by["$cpu"] < os.cpu_count() and by["$cgroup"] > 0, row)
        tids[by["$tid"]] += row["count"]
    expect(len({row["by"]["$pid"] for row in found["rows"]}) == 1, found)
    expect(tids == collections.Counter(call["tid"] for call in wanted), tids)


@claim
def text_shows_the_largest_rows_first_and_counts_the_others():
    r = trace("--count", "--avg", "n", "--by", "colour", "--top", "2", "-c", command(), "hit")
    lines = r.out.splitlines()
    expect(re.fullmatch(r"colour +count +avg\(n\)", lines[0]) and len(lines) == 4, r)
    counts = [int(line.split()[1]) for line in lines[1:3]]
    expect(counts == sorted(counts, reverse=True) and lines[3] == "and 2 rows more", r)
    expect(re.search(r"^hit: \d+ hits, 0 lost$", r.err, re.M), r.err)
    r = trace("--hist", "y", "-c", command(), "hit")
    expect(re.search(r"^hist\(y\):\n\[0\] +\d+ \|@* *\|$", r.out, re.M), r.out)
    expect(re.search(r"^\[128, 256\) +\d+ \|@{52}\|$", r.out, re.M), r.out)


def on_terminal(*words):
    """What is written to a terminal of 24 lines."""
    master, slave = pty.openpty()
    process = subprocess.Popen([CAIRN, "trace", "--no-cache", *words], stdin=subprocess.DEVNULL,
                               stdout=slave, stderr=subprocess.DEVNULL)
    os.close(slave)
    text = b""
    with contextlib.suppress(OSError):
        while part := os.read(master, 1 << 16):
            text += part
    os.close(master)
    expect(process.wait() == 0, text)
    return text.decode().replace("\r\n", "\n")


@claim
def on_a_terminal_the_table_is_refreshed_in_its_place():
    need_root()
    text = on_terminal("--every", "30ms", "--by", "colour", "-c", command(rounds=4 * ROUNDS), "hit")
    screens = text.split("\033[H\033[J")
    expect(len(screens) > 2 and not screens[0], text)
    for screen in screens[2:]:
        lines = screen.splitlines()
        expect(re.fullmatch(r"\d+\.\d s, \d+ hits", lines[0]), screen)
        expect(re.fullmatch(r"colour +count", lines[1]), screen)
    total = sum(int(line.split()[1]) for line in screens[-1].splitlines()[2:])
    expect(total == len(calls()), screens[-1])


@claim
def bpftrace_has_the_same_counts_and_buckets():
    need_root()
    bpftrace = need("bpftrace")
    path = command()
    script = (f"uprobe:{path.split()[0]}:hit /pid == cpid/ {{ @h = hist(arg0 & 0xffff); "
              "@c = count(); }")
    r = run(bpftrace, "-f", "json", "-e", script, "-c", path)
    data = {}
    for line in r.out.splitlines():
        if line.startswith("{"):
            data.update(json.loads(line).get("data") or {})
    if "@h" not in data:
        raise Skip("bpftrace cannot trace here: " + r.err[:200])
    ours, _ = table("--count", "--hist", "n & 65535", "hit")
    theirs = {b["min"]: b["count"] for b in data["@h"] if b["count"]}
    row = ours["rows"][0]
    mine = {b["min"]: b["count"] for b in row["hist"]["n & 65535"] if b["count"]}
    expect(mine == theirs, mine, theirs)
    expect(row["count"] == data["@c"], row, data)


REFUSED = [
    (("--sum", "lenn"), "hit", "has no parameter lenn", "lenn\n"),
    (("--sum", "*r"), "hit", "cannot be part of an aggregate", "^"),
    (("--count", "--by", "*r"), "hit", "cannot be a key: it has members; name one", "^"),
    (("--count", "--by", "$pit"), "hit", "there is no $pit; there are $pid", "^"),
    (("--count", "--by", "n,$callers"), "hit", "there is no $callers; there are $pid", "^"),
    (("--count", "--by", "$stack,$caller"), "hit", "$stack has the caller; name one of them", ""),
    (("--count", "--by", "n,"), "hit", "is missing here", "^"),
    (("--count", "--by", "n,n"), "hit", "n is a key already", "^"),
    (("--count", "--by", "n:str"), "hit", ":str needs a pointer or an array", "^"),
    (("--count", "--by", "$site + 1"), "hit", "$site is a key of --by, alone", "^"),
    (("--count", "--by", "buf(s, 3)"), "hit", "buf() is no key; str() is", "^"),
    (("--count", "--by", "str(s, 3)"), "hit", "as long as --str-len says", "^"),
    (("--lhist", "n,0,100"), "hit", "EXPR,FROM,TO,STEP", "^"),
    (("--lhist", "n,0,100,7"), "hit", "write n,0,98,7", ""),
    (("--lhist", "n,5,5,1"), "hit", "TO must be larger than FROM", ""),
    (("--lhist", "n,0,10,0"), "hit", "STEP must be at least 1", ""),
    (("--lhist", "n,0,1000000,1"), "hit", "the limit is 1000; take a longer STEP", ""),
    (("--sum", "n", "--sum", "n"), "hit", "asked for twice", ""),
    (("--count",), "hit(n)", "name this one in --by, --sum", "^"),
    (("--count", "-n", "5"), "hit", "-n has nothing to count", ""),
    (("--top", "5"), "hit", "--count, --sum EXPR", ""),
    (("--count", "--clear"), "hit", "--every TIME", ""),
    (("--count", "--str-len", "600", "--by", "s"), "hit", "--str-len makes strings shorter", ""),
    (("--count", "--by", ",".join(f"n + {i}" for i in range(17))), "hit", "too many keys", "^"),
    (tuple(w for i in range(9) for w in ("--sum", f"n + {i}")), "hit", "at most 8 of --count", ""),
]


@claim
def what_is_refused_says_where_why_and_what_works():
    path = command().split()[0]
    for words, probe, text, mark in REFUSED:
        r = cairn("trace", "--no-cache", *words, f"{path}:{probe}")
        expect(r.status == 2 and text in r.err and mark in r.err, words, r)
        expect(not r.out, r)


@claim
def a_dry_run_shows_where_numbers_and_keys_are_read():
    path = command().split()[0]
    r = cairn("trace", "--no-cache", "--dry-run", "--verbose", "--sum", "n", "--by", "s,$tid",
              f"{path}:hit if h > 0")
    expect(r.status == 0 and "n: %rdi" in r.out and "store" in r.out, r)


if __name__ == "__main__":
    main()
