#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles in the Firefox Profiler's processed format: every index, every sample, and its own code
as the judge."""

import collections
import gzip
import json
import os
import re
import resource
import signal

from claims import (Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need, path_of,
                    run, write)
from profile_formats import firefox_folded as folded_of, ns
from profiles import FOLDED, pprof
from profiling import folded_lines, profile

# Two threads with a name each; what they call is inlined, and one calls the kernel all the time.
THREADS = """\
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}
__attribute__((noinline)) void descend(int levels)
{
	if (levels > 1)
		descend(levels - 1);
	else
		spin(100000);
	__asm__ volatile("");
}
static void *work(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 4000; i++) {
		descend(10);
		for (int k = 0; k < 100; k++)
			(void)getppid();
	}
	return NULL;
}
int main(void)
{
	pthread_t first, second;

	pthread_create(&first, NULL, work, "first \\"one\\"");
	pthread_create(&second, NULL, work, "second");
	pthread_join(first, NULL);
	pthread_join(second, NULL);
}
"""

NAMES = [
    b'a "quoted" one', b"line\nbreak\ttab", b"bad\xff\xfeutf8", b"back\\slash",
    "\u2028\u202e\U0001f600".encode(), b"", b"a;b"
]


def threads_program():
    return compile_c("firefox-threads", THREADS,
                     flags=("-O2", "-g", "-pthread", "-fno-optimize-sibling-calls"))


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=lambda text: text)


def converted(name, content, *words):
    """What is written of a profile, beside its folded stacks."""
    path = write(name, content)
    out, stacks = path_of(name + ".firefox.json"), path_of(name + ".folded")
    cairn("profile", "show", path, "-o", out, "-o", stacks, *words, check=True)
    with open(stacks, encoding="utf-8") as file:
        return load(out), file.read()


def check_table(table, columns):
    """All columns and no others, each as long as the table says; a column's check is a limit, a
    set, or a function."""
    expect(set(table) == {*columns, "length"}, set(table) ^ {*columns, "length"})
    for name, check in columns.items():
        expect(len(table[name]) == table["length"], name, len(table[name]), table["length"])
        for value in table[name]:
            good = value in check if isinstance(check, set) else check(value) if callable(
                check) else type(value) is int and 0 <= value < check
            expect(good, name, value)


def check(p):
    """Every index of every table, as src/types/profile.ts of github.com/firefox-devtools/profiler
    has them in version 70."""
    meta, shared, libs = p["meta"], p["shared"], p["libs"]
    expect(set(p) == {"meta", "libs", "shared", "threads"}, set(p))
    expect(
        meta["preprocessedProfileVersion"] == 70 and meta["version"] == 36
        and meta["symbolicated"] is True, meta)
    expect(
        meta["product"] and meta["stackwalk"] == 1 and meta["processType"] == 0
        and meta["markerSchema"] == [], meta)
    expect(ns(meta["interval"]) > 0 and ns(meta["startTime"]) >= 0, meta)
    expect(sum(category["color"] == "grey" for category in meta["categories"]) == 1, meta)
    expect(all(category["subcategories"][0] == "Other" for category in meta["categories"]), meta)
    strings = shared["stringArray"]
    expect(
        all(isinstance(text, str) for text in strings) and len(set(strings)) == len(strings),
        strings)
    frames, functions, symbols = shared["frameTable"], shared["funcTable"], shared["nativeSymbols"]
    check_table(shared["stackTable"],
                {"frame": frames["length"], "prefixOffset": lambda n: type(n) is int and n >= 0})
    expect(all(offset <= i for i, offset in enumerate(shared["stackTable"]["prefixOffset"])))
    check_table(
        frames, {
            "address": lambda n: type(n) is int and -1 <= n < 1 << 31, "lib":
            lambda n: type(n) is int and -1 <= n < len(libs), "inlineDepth":
            lambda n: type(n) is int and n >= 0, "category": len(
                meta["categories"]), "subcategory": 2, "func": functions["length"], "nativeSymbol":
            lambda n: n is None or 0 <= n < symbols["length"], "innerWindowID": {None}, "line":
            lambda n: n is None or n > 0, "column": {None}, "originalLocation": {None}
        })
    for category, subcategory in zip(frames["category"], frames["subcategory"]):
        expect(subcategory < len(meta["categories"][category]["subcategories"]), category,
               subcategory)
    for depth, subcategory in zip(frames["inlineDepth"], frames["subcategory"]):
        expect((depth > 0) == (subcategory == 1), depth, subcategory)
    check_table(
        functions, {
            "name": len(strings), "isJS": {False}, "relevantForJS": {False}, "resource":
            lambda n: type(n) is int and -1 <= n < shared["resourceTable"]["length"], "source":
            lambda n: n is None or 0 <= n < shared["sources"]["length"], "lineNumber":
            lambda n: n is None or n > 0, "columnNumber": {None}, "originalLocation": {None}
        })
    check_table(shared["resourceTable"], {"name": len(strings), "host": {None}, "type": {1}})
    check_table(
        symbols,
        {"libIndex": len(libs), "address": 1 << 31, "name": len(strings), "functionSize": {None}})
    check_table(
        shared["sources"], {
            "id": {None}, "filename": len(strings), "startLine": {1}, "startColumn": {1},
            "sourceMapURL": {None}, "content": {None}
        })
    check_table(shared["sourceLocationTable"], {"source": 0, "line": 0, "column": 0})
    for frame, symbol in enumerate(frames["nativeSymbol"]):
        if symbol is not None:
            expect(
                symbols["libIndex"][symbol] == frames["lib"][frame]
                and symbols["address"][symbol] <= frames["address"][frame], frame)
    for lib in libs:
        expect(
            set(lib) == {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"},
            lib)
    expect(p["threads"], "no thread")
    for thread in p["threads"]:
        check_thread(thread, shared["stackTable"]["length"])


def check_thread(thread, n_stacks):
    samples = thread["samples"]
    expect(
        isinstance(thread["pid"], str) and isinstance(thread["tid"], int)
        and isinstance(thread["isMainThread"], bool), thread)
    expect(samples["weightType"] in ("samples", "tracing-ms", "bytes"), samples["weightType"])
    check_table(
        {key: value
         for key, value in samples.items()
         if key != "weightType"},
        {"stack": n_stacks, "time": lambda t: ns(t) is not None, "weight": lambda w: w is not None})
    times = [ns(time) for time in samples["time"]]
    expect(times == sorted(times), "times do not go on")
    expect(all(value == ([] if key != "length" else 0) for key, value in thread["markers"].items()),
           thread["markers"])


def lines_of(folded):
    return dict(folded_lines(folded.splitlines()))


# ---- profiles of other tools ----

@claim
def folded_stacks_are_the_same_in_it():
    p, folded = converted("a.folded", FOLDED)
    check(p)
    expect(
        folded_of(p) == lines_of(folded) and sum(folded_of(p).values()) == 100, folded_of(p),
        folded)


@claim
def a_compressed_one_has_the_same_bytes():
    path = write("b.folded", FOLDED)
    out = [path_of("b.firefox.json"), path_of("b.firefox.json.gz")]
    cairn("profile", "show", path, "-o", out[0], "-o", out[1], check=True)
    with open(out[0], "rb") as plain, gzip.open(out[1]) as compressed:
        expect(plain.read() == compressed.read())


@claim
def any_name_is_text_in_it():
    samples = [([i], i + 1) for i in range(len(NAMES))]
    p, _ = converted("names.pb",
                     pprof(NAMES, samples, threads=[(7, 7, b'a "thread"\xff\n'), (7, 9, b"other")]))
    check(p)
    shared = p["shared"]
    found = collections.Counter()
    for thread in p["threads"]:
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            found[shared["stringArray"][shared["funcTable"]["name"][shared["frameTable"]["func"][
                shared["stackTable"]["frame"][stack]]]]] += weight
    expect(
        found == {
            name.decode("utf-8", "replace"): value
            for name, (_, value) in zip(NAMES, samples)
        }, found)
    expect([(t["pid"], t["tid"], t["isMainThread"]) for t in p["threads"]] == [("7", 7, True),
                                                                               ("7", 9, False)],
           p["threads"])
    expect([t["name"] for t in p["threads"]] == ['a "thread"\ufffd\n', "other"], p["threads"])
    expect([lib["path"] for lib in p["libs"]] == ["/x/lib\ufffd.so"], p["libs"])


@claim
def a_profile_without_samples_has_a_thread_without_samples():
    p, folded = converted("none.pb", pprof([b"f"], []))
    check(p)
    expect(
        len(p["threads"]) == 1 and p["threads"][0]["samples"]["length"] == 0 and not folded,
        p["threads"])


@claim_each((1 << 63) - 1, -(1 << 63), 0, -5)
def values_of_any_size_are_exact(value):
    for unit, kind in ((b"count", "samples"), (b"bytes", "bytes"), (b"nanoseconds", "tracing-ms")):
        p, folded = converted("huge.pb", pprof([b"f", b"g"], [([0, 1], value)], unit))
        check(p)
        expect(p["threads"][0]["samples"]["weightType"] == kind, p["threads"])
        expect(
            folded_of(p) == lines_of(folded) == ({"g;f": value} if value else {}), folded_of(p),
            folded)


@claim
def samples_without_a_time_follow_each_other_and_are_counted():
    p, _ = converted("times.pb",
                     pprof([b"f", b"g"], [([0], 5000000), ([1], 2500000)], b"nanoseconds"))
    samples = p["threads"][0]["samples"]
    expect([ns(t) for t in samples["time"]] == [0, 5000000]
           and [ns(w) for w in samples["weight"]] == [5000000, 2500000], samples)
    text = p["meta"]["extra"][0]["entries"][2]["value"]
    expect(text.startswith("0 have their own; 2 sums of samples without a time follow each other"),
           text)


@claim
def a_stack_of_many_frames_is_written():
    p, folded = converted("deep.folded", "f;" * 200000 + "g 1\n")
    expect(
        p["shared"]["stackTable"]["length"] == 200001 and p["shared"]["frameTable"]["length"] == 2,
        len(folded))


def small_files_only():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))


@claim
def a_disk_that_is_full_leaves_what_was_there():
    path, out = write("c.folded", "\n".join(
        f"main;f{i} {i + 1}" for i in range(2000))), path_of("full.firefox.json")
    for before in (None, "what was there"):
        if before:
            write("full.firefox.json", before)
        r = cairn("profile", "show", path, "-o", out, preexec_fn=small_files_only)
        expect(r.status == 3 and "full.firefox.json" in r.err, r)
        expect(os.path.exists(out) == bool(before), "half a file")
        if before:
            with open(out, encoding="utf-8") as file:
                expect(file.read() == before)
    expect(not [name for name in os.listdir(folder()) if "tmp" in name], os.listdir(folder()))


# ---- runs ----

RUN = {}


def threads_run():
    if not RUN:
        out = {end: path_of("run." + end) for end in ("folded", "firefox.json", "json")}
        r = profile("-c", threads_program(), "-F", "499", "--json",
                    *(word for path in out.values() for word in ("-o", path)))
        expect(r.status == 0, r)
        RUN.update(out, result=r)
    return RUN


@claim
def the_stacks_of_a_run_are_those_of_its_folded_stacks():
    r = threads_run()
    p = load(r["firefox.json"])
    check(p)
    with open(r["folded"], encoding="utf-8") as file:
        expect(folded_of(p) == lines_of(file.read()), folded_of(p))
    expect(any("descend;" * 9 + "descend;spin_[i]" in stack for stack in folded_of(p)),
           folded_of(p))


@claim
def each_sample_of_a_run_has_its_time_and_each_thread_its_name():
    r = threads_run()
    p, summary = load(r["firefox.json"]), r["result"].objects()[-1]
    by_thread = collections.Counter()
    with open(r["json"], encoding="utf-8") as file:
        for line in list(file)[:-1]:
            o = json.loads(line)
            by_thread[o["labels"]["pid"], o["labels"]["tid"]] += o["values"]["samples"]
    found = {(int(t["pid"]), t["tid"]): t["samples"]["length"] for t in p["threads"]}
    expect(found == by_thread and sum(found.values()) == summary["samples"], found, by_thread)
    expect({"first \"one\"", "second"} <= {t["name"]
                                           for t in p["threads"]},
           [t["name"] for t in p["threads"]])
    expect(len({t["processName"] for t in p["threads"]}) == 1, p["threads"])
    period = 1000000000 // 499 + (1000000000 % 499 >= 250)
    end = ns(p["meta"]["profilingEndTime"])
    expect(ns(p["meta"]["interval"]) == period, p["meta"])
    for thread in p["threads"]:
        expect(all(ns(w) % period == 0 for w in thread["samples"]["weight"]), thread)
        expect(all(0 <= ns(t) <= end for t in thread["samples"]["time"]), thread)


@claim
def files_are_known_by_their_build_ids_and_symbols_by_their_addresses():
    p = load(threads_run()["firefox.json"])
    program, shared = os.path.realpath(threads_program()), p["shared"]
    (at, lib), = [(i, lib) for i, lib in enumerate(p["libs"]) if lib["path"] == program]
    notes = run(need("readelf"), "-n", program, check=True).out
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    parts = bytes.fromhex(build_id)
    guid = (parts[3::-1] + parts[5:3:-1] + parts[7:5:-1] + parts[8:16]).hex().upper()
    expect(lib["codeId"] == build_id and lib["breakpadId"] == guid + "0", lib, build_id)
    # The first segment of such a program begins at 0, so that an address is an offset.
    symbols = {
        line.split()[2]: int(line.split()[0], 16)
        for line in run(need("nm"), program, check=True).lines()
        if len(line.split()) == 3
    }
    found = {
        shared["stringArray"][name]: address
        for library, address, name in
        zip(shared["nativeSymbols"]["libIndex"], shared["nativeSymbols"]["address"],
            shared["nativeSymbols"]["name"])
        if library == at
    }
    expect("descend" in found and "work" in found, found)
    expect(found == {name: symbols[name] for name in found}, found)


@claim
def the_lines_of_inlined_functions_are_those_of_their_source():
    p = load(threads_run()["firefox.json"])
    frames, functions, strings = p["shared"]["frameTable"], p["shared"]["funcTable"], p["shared"][
        "stringArray"]
    found = set()
    for i, function in enumerate(frames["func"]):
        if strings[functions["name"][function]] == "spin" and frames["inlineDepth"][i]:
            source = strings[p["shared"]["sources"]["filename"][functions["source"][function]]]
            found.add((os.path.basename(source), functions["lineNumber"][function]))
            expect(frames["line"][i] in range(5, 10), frames["line"][i])
            expect(
                strings[p["shared"]["nativeSymbols"]["name"][frames["nativeSymbol"][i]]] ==
                "descend", i)
    expect(found == {("firefox-threads.c", 5)}, found)


@claim
def windows_and_time_blocked_have_times_too():
    out = path_of("off.firefox.json")
    r = profile("-c", "sh -c 'sleep 0.2; sleep 0.2'", "--off-cpu", "-o", out, "-o",
                path_of("off.folded"))
    expect(r.status == 0, r)
    p = load(out)
    check(p)
    with open(path_of("off.folded"), encoding="utf-8") as file:
        expect(folded_of(p) == lines_of(file.read()))
    expect(
        p["meta"]["extra"][0]["entries"][2]["value"].endswith("of their thread")
        and "; 0 sums" in p["meta"]["extra"][0]["entries"][2]["value"], p["meta"])
    r = profile("-c", threads_program(), "--continuous", "--window", "300ms", "--duration", "2",
                "-o", path_of("win.firefox.json"))
    expect(r.status == 0, r)
    windows = [
        name for name in os.listdir(folder())
        if re.fullmatch(r"win\.\d{8}T\d{6}\.\d{3}Z\.firefox\.json", name)
    ]
    expect(windows, os.listdir(folder()))
    for name in windows:
        check(load(path_of(name)))


# ---- the Firefox Profiler itself ----

JUDGE = """\
globalThis.window = globalThis.self = globalThis;
const { ProfileQuerier } = require(process.argv[2]);
const log = console.log;
console.log = () => {};
(async () => {
  const q = await ProfileQuerier.load(process.argv[3]);
  for (const process of (await q.profileInfo(true)).processes)
    for (const thread of process.threads) {
      const answer = await q.threadFunctions(thread.threadHandle, undefined, true);
      log(JSON.stringify({ name: thread.name, pid: process.pid, tid: thread.tid, functions: answer.functions }));
    }
  process.exit(0);
})().catch(e => { console.error(e); process.exit(1); });
"""


def judge():
    """What `yarn build-profile-query` makes in a clone of github.com/firefox-devtools/profiler, or
    the like: a file that exports ProfileQuerier."""
    path = os.environ.get("CAIRN_FIREFOX_PROFILER")
    if not path:
        raise Skip("CAIRN_FIREFOX_PROFILER does not name a build of the Firefox "
                   "Profiler's profile-query")
    return need("node"), write("judge.js", JUDGE), os.path.abspath(path)


@claim
def the_firefox_profiler_computes_the_same_shares():
    node, script, library = judge()
    path = threads_run()["firefox.json"]
    threads = run(node, script, library, path, check=True).objects()
    shares = [o for o in threads_run()["result"].objects() if "function" in o]
    for key, theirs in (("self", "selfSamples"), ("total", "totalSamples")):
        found, ours = collections.Counter(), collections.Counter()
        for thread in threads:
            for function in thread["functions"]:
                found[function["name"]] += round(function[theirs] * 1e6)
        for share in shares:
            ours[share["function"]] += share[key]
        expect(set(found) == set(ours), set(found) ^ set(ours))
        for name, value in ours.items():
            # Sums of floating-point numbers, in nanoseconds.
            expect(abs(found[name] - value) <= 1000, name, key, found[name], value)


if __name__ == "__main__":
    main()
