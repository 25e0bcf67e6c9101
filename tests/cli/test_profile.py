#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile show and diff: against pprof's own tool, and what is damaged or hostile."""

import collections
import json
import os
import re
import zlib

from claims import CAIRN, cairn, claim, claim_each, expect, folder, main, need, run
from profiles import FOLDED, field, number

# Work in several functions, some inlined, some recursive, in several goroutines, and memory.
GO = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strings"
	"sync"
	"time"
)

type node struct{ left, right *node }

func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{grow(depth - 1), grow(depth - 1)}
}

func mixed(x uint64) uint64 { return x*2862933555777941757 + 3037000493 }

func burn(n int) (sum uint64) {
	for i := 0; i < n; i++ {
		sum = mixed(sum + uint64(i))
	}
	return sum
}

func words(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(burn(50), i)
	}
	sort.Strings(list)
	return strings.Join(list, " ")
}

func main() {
	runtime.MemProfileRate = 512
	cpu, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(cpu)
	var wait sync.WaitGroup
	end := time.Now().Add(time.Second)
	for i := 0; i < 2; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for time.Now().Before(end) {
				grow(10)
				burn(100000)
				words(200)
			}
		}()
	}
	wait.Wait()
	pprof.StopCPUProfile()
	cpu.Close()
	heap, _ := os.Create(os.Args[2])
	pprof.WriteHeapProfile(heap)
	heap.Close()
}
"""


def write(name, text):
    path = os.path.join(folder(), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def go(*words):
    environment = dict(os.environ, GOCACHE=os.path.join(folder(), "go-cache"), HOME=folder(),
                       GO111MODULE="off")
    return run(need("go"), *words, env=environment, check=True)


def go_profiles():
    """The processor's and the heap's profile of one run of a Go program."""
    paths = [os.path.join(folder(), name) for name in ("cpu.pb.gz", "heap.pb.gz")]
    if not all(os.path.exists(path) for path in paths):
        program = os.path.join(folder(), "burner")
        go("build", "-o", program, write("burner.go", GO))
        run(program, *paths, check=True)
    return paths


def raw_of_pprof(path):
    """What pprof's own reader finds: names of values, samples, {id: [function of a location]}, and
    its text."""
    text = go("tool", "pprof", "-raw", path).out
    head, rest = text.split("Samples:\n", 1)
    samples, rest = rest.split("Locations\n", 1)
    locations, _ = rest.split("Mappings\n", 1)
    values, *rows = samples.splitlines()
    functions, at = {}, None
    for line in locations.splitlines():
        start = re.match(r" *(\d+): 0x[0-9a-f]+ (?:M=\d+ )?", line)
        at = int(start.group(1)) if start else at
        functions.setdefault(at, [])
        name = re.match(r" *(.*?) \S*:\d+ s=\d+", line[start.end():] if start else line)
        functions[at] += [name.group(1)] if name else []
    found = []
    for row in rows:
        match = re.match(r"((?:\s+-?\d+)+): ?([\d ]*)$", row)
        if match:
            found.append(([int(word) for word in match.group(1).split()], [
                int(word) for word in match.group(2).split()
            ]))
    return [value.split("/")[0]
            for value in re.sub(r"\[dflt\]", "", values).split()], found, functions, head, text


def top_of_pprof(path, value):
    """{function: (self, total)}, added up here from what pprof's own reader finds."""
    values, samples, functions, *_ = raw_of_pprof(path)
    rows = collections.defaultdict(lambda: [0, 0])
    for numbers, stack in samples:
        names = [name for at in stack for name in functions[at]]
        for name in set(names):
            rows[name][1] += numbers[values.index(value)]
        rows[names[0]][0] += numbers[values.index(value)]
    return {name: tuple(row) for name, row in rows.items()}


def top_of_cairn(path, value):
    *shares, summary = cairn("profile", "show", path, "--value", value, "--json",
                             check=True).objects()
    expect(summary["summary"] and summary["functions"] == len(shares), summary)
    rows = collections.defaultdict(lambda: (0, 0))
    for share in shares:
        self, total = rows[share["function"]]
        rows[share["function"]] = (self + share["self"], total + share["total"])
    return rows


@claim_each("cpu samples", "cpu cpu", "heap alloc_objects", "heap alloc_space", "heap inuse_space")
def all_functions_have_the_shares_that_pprof_reads(which):
    kind, value = which.split()
    path = go_profiles()[kind == "heap"]
    ours, theirs = top_of_cairn(path, value), top_of_pprof(path, value)
    # Its reader drops samples whose values are all 0.
    ours = {name: row for name, row in ours.items() if any(row) or name in theirs}
    expect(len(theirs) > 20 and ours == theirs, which, *((name, ours.get(name), theirs.get(name))
           for name in set(ours) | set(theirs) if ours.get(name) != theirs.get(name)))


@claim_each("cpu", "heap")
def a_profile_that_cairn_writes_is_the_same_to_pprof(kind):
    """All of it: samples, labels, locations, lines, mappings. What a mapping claims to know is new:
    it is what is there."""
    path, again = go_profiles()[kind == "heap"], os.path.join(folder(), kind + "-again.pb.gz")
    cairn("profile", "show", path, "-o", again, check=True)
    texts = [
        re.sub(r"(\[(FN|FL|LN|IN)\])+$|\[dflt\]", "",
               raw_of_pprof(file)[-1], flags=re.M) for file in (path, again)
    ]
    expect(texts[0] == texts[1] and len(texts[0]) > 2000, kind, texts[0][:2000], texts[1][:2000])


@claim
def pprof_reads_folded_stacks_that_cairn_converted():
    out = os.path.join(folder(), "folded.pb.gz")
    cairn("profile", "show", write("a.folded", FOLDED), "-o", out, check=True)
    theirs = top_of_pprof(out, "samples")
    expect(theirs["put"] == (61, 61) and theirs["work"] == (10, 76) and theirs["main"] == (0, 80),
           theirs)
    expect("put (inline)" in go("tool", "pprof", "-top", out).out)


@claim
def folded_stacks_come_back_unchanged():
    path, out, again = (os.path.join(folder(), name)
                        for name in ("b.folded", "b.pb.gz", "c.folded"))
    write("b.folded", FOLDED)
    cairn("profile", "show", path, "-o", out, check=True)
    cairn("profile", "show", out, "-o", again, check=True)
    with open(again, encoding="utf-8") as file:
        expect(sorted(file.read().splitlines()) == sorted(FOLDED.splitlines()))


COMMENTS = ["5 samples lost", "version 12", "ends with a point 7.", "<b>&\u00e9", "number 3 #"]
# What readers of folded stacks take for a stack: flamegraph.pl, inferno and speedscope.
STACK = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)\s*$")


@claim
def comments_come_back_and_are_no_stacks():
    folded, out, again = (os.path.join(folder(), "comments" + end)
                          for end in (".folded", ".pb.gz", ".again.folded"))
    write("comments.folded", "".join(f"# {c} #\n" for c in COMMENTS) + "#\n" + FOLDED)
    cairn("profile", "show", folded, "-o", out, check=True)
    r = cairn("profile", "show", out, "-o", again, "--json", check=True)
    expect(r.objects()[-1]["comments"] == COMMENTS, r)
    with open(again, encoding="utf-8") as file:
        lines = file.read().splitlines()
    expect(sorted(line for line in lines if STACK.match(line)) == sorted(FOLDED.splitlines()), lines)
    expect(
        cairn("profile", "show", again, "--json", check=True).objects()[-1]["comments"] == COMMENTS,
        lines)
    expect(go("tool", "pprof", "-comments", out).out.splitlines() == COMMENTS)
    text = cairn("profile", "show", again, check=True)
    expect(all(c in text.lines() for c in COMMENTS), text)


@claim
def text_and_json_have_the_same_functions():
    path = write("d.folded", FOLDED)
    text = cairn("profile", "show", path, "--top", "100", check=True)
    shares = cairn("profile", "show", path, "--json", check=True).objects()[:-1]
    rows = [
        re.match(r"\s*(\d+)\s+([\d.]+)%\s+([\d.]+)%  (\S+)", line).groups()
        for line in text.lines()[3:]
    ]
    expect(
        rows == [(str(
            s["self"]), f"{s['self_percent']:.2f}", f"{s['total_percent']:.2f}", s["function"])
                 for s in shares], text)
    expect(
        "put (inlined)" in text.out and "sys_read [kernel]" in text.out
        and "jitted [jit]" in text.out, text)


@claim
def a_share_that_grew_is_found():
    after = FOLDED.replace("work 10", "work 110").replace("main;other;main;other 4\n",
                                                          "") + "main;fresh 1\n"
    before, after = write("e.folded", FOLDED), write("f.folded", after)
    r = cairn("profile", "diff", before, after, check=True)
    expect(re.search(r"\+45\.84%\s+10\.00%\s+55\.84%  work$", r.out, re.M), r)
    expect(
        re.search(r"^ *-4\.00% .* other \(gone\)$", r.out, re.M)
        and re.search(r"fresh \(new\)$", r.out, re.M), r)
    *rows, summary = cairn("profile", "diff", before, after, "--json", check=True).objects()
    expect(
        rows[0]["function"] == "work" and rows[0]["change_percent"] == 45.84
        and summary["after"] == 197, rows[0], summary)
    fresh = next(row for row in rows if row["function"] == "fresh")
    expect(fresh["before"] is None and fresh["after"] == 1, fresh)
    # The same profile has no change.
    r = cairn("profile", "diff", before, before, check=True)
    expect(len(r.lines()) == 3, r)


@claim
def values_that_a_profile_does_not_have_are_named():
    r = cairn("profile", "show", write("g.folded", FOLDED), "--value", "cpu")
    expect(r.status == 2 and 'has no values "cpu", but: samples' in r.err, r)
    r = cairn("profile", "diff", go_profiles()[0], os.path.join(folder(), "g.folded"))
    expect(r.status == 2 and "has no values" in r.err, r)


@claim
def what_is_no_profile_is_refused():
    for path, status in ((CAIRN, 4), ("/dev/null", 4), (folder(), 2), (os.path.join(
            folder(), "missing"), 2)):
        r = cairn("profile", "show", path)
        expect(r.status == status and r.err and not r.out, r)
    r = cairn("profile", "show", write("h.folded", FOLDED), "-o", "x.svg")
    expect(r.status == 2 and "NAME.html, NAME.folded, NAME.pb.gz, NAME.json," in r.err, r)


@claim
def names_of_a_hostile_profile_are_quoted():
    path = write("i.folded", "main;\x1b[31mred\x07 5\n")
    r = cairn("profile", "show", path)
    expect(r.status in (0, 4) and "\x1b" not in r.out + r.err, r)
    out = os.path.join(folder(), "i.pb.gz")
    cairn("profile", "show", write("j.folded", "main;f\u202e 5\n"), "-o", out, check=True)
    expect("\u202e" not in cairn("profile", "show", out, check=True).out)
    expect(
        json.loads(cairn("profile", "show", out, "--json", check=True).lines()[0])["function"] ==
        "f\u202e")


@claim
def a_bomb_is_refused():
    """1 MiB that inflates to more than 1 GiB."""
    path = os.path.join(folder(), "bomb.gz")
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = squeeze.compress(bytes(1 << 20)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same zeros are the same bytes.
    again = squeeze.compress(bytes(1 << 20)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    with open(path, "wb") as file:
        file.write(start + again * 1200)
    r = cairn("profile", "show", path, seconds=120)
    expect(r.status in (3, 4) and "more than 1 GiB" in r.err, r)


@claim
def a_stack_of_a_million_frames_is_read_in_a_moment():
    path, out = write("deep.folded", "f;" * 1000000 + "g 1\n"), os.path.join(folder(), "deep.pb.gz")
    expect(
        cairn("profile", "show", path, "-o", out, "--json", check=True, seconds=30).objects()[-1]
        ["functions"] == 2)
    expect(
        cairn("profile", "show", out, "-o", os.path.join(folder(), "deep.html"), "--json",
              check=True, seconds=30).objects()[0]["self"] == 1)


@claim
def a_pipe_is_read_to_its_end():
    path = write("k.folded", FOLDED)
    r = run(
        "sh", "-c",
        f"(head -2 {path}; sleep .3; tail -n +3 {path}) | {CAIRN} profile show /dev/stdin --json",
        check=True)
    expect(r.objects()[-1]["sum"] == 100, r)


@claim
def json_has_each_label_also_if_a_key_comes_twice():
    strings = [b"", b"cpu", b"count", b"f", b"span", b"one", b"two", b"bytes"]
    labels = [(4, 2, 5), (4, 2, 6), (7, 3, 4096)]
    message = field(1, field(1, 1) + field(2, 2))
    message += field(
        2,
        field(1, number(1)) + field(2, number(9)) + b"".join(
            field(3,
                  field(1, key) + field(kind, value)) for key, kind, value in labels))
    message += field(4, field(1, 1) + field(4, field(1, 1))) + field(5, field(1, 1) + field(2, 3))
    message += b"".join(field(6, text) for text in strings)
    path, out = os.path.join(folder(), "labels.pb"), os.path.join(folder(), "labels.json")
    with open(path, "wb") as file:
        file.write(message)
    cairn("profile", "show", path, "-o", out, check=True)
    with open(out, encoding="utf-8") as file:
        stack, last = [json.loads(line) for line in file]
    expect(stack == {"stack": [{"function": "f"}], "values": {"cpu": 9},
                     "labels": {"span": "one", "span#2": "two", "bytes": 4096}}, stack)
    expect(last["summary"] and last["stacks"] == 1 and last["units"] == {"cpu": "count"}, last)


main()
