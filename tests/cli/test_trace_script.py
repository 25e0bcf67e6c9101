#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One-liners of bpftrace that cairn trace takes as they are: the results are those of the program, and
bpftrace's own."""

import collections
import json

from claims import Skip, cairn, claim, claim_each, compile_c, expect, main, need, need_root, run
from tracing import trace

# Calls that are known: 300 of them, with three texts.
PROGRAM = """\
#include <stdio.h>
/* Written to, so that they are in memory: bpftrace does not read a page that is not. */
static char names[3][16] = { "One", "Two", "A longer one" };
__attribute__((noinline)) long work(unsigned n, const char *name, unsigned long size)
{
	__asm__ volatile("" : : "r"(n), "r"(name), "r"(size) : "memory");
	return n * 3;
}
int main(void)
{
	for (int i = 0; i < 3; i++)
		*(volatile char *)names[i] |= ' ';
	for (unsigned i = 0; i < 300; i++)
		work(i, names[i % 3], i * 7);
	return 0;
}
"""
CALLS = [(i, ("one", "two", "a longer one")[i % 3], i * 7) for i in range(300)]


def program():
    return compile_c("scripted", PROGRAM)


def stripped():
    path = program() + ".stripped"
    run(need("strip"), "--strip-debug", "-o", path, program(), check=True)
    return path


def table(script):
    r = trace("--json", "--no-sidecar", "-c", script.split(":")[1], script)
    expect(r.status == 0, r)
    return r.objects()[0]["rows"]


@claim_each("with debug information", "without")
def counts_are_those_of_the_program(how):
    path = program() if how != "without" else stripped()
    head = f"uprobe:{path}:work"
    rows = table(head + " /arg0 >= 100 && comm == \"scripted-gcc%s\"/ { @[str(arg1)] = count(); "
                 "@[str(arg1)] = sum(arg2) }" % ("" if how != "without" else ".st"))
    wanted = collections.defaultdict(list)
    for n, name, size in CALLS[100:]:
        wanted[name].append(size)
    found = {list(r["by"].values())[0]: (r["count"], list(r["sum"].values())[0]) for r in rows}
    expect(found == {name: (len(s), sum(s)) for name, s in wanted.items()}, found)


@claim
def returns_are_counted_and_have_their_result():
    path = program()
    rows = table(f"uretprobe:{path}:work {{ @ = count(); }}")
    expect(rows[0]["count"] == 300, rows)
    rows = table(f"uretprobe:{path}:work /retval > 30/ {{ @[func] = max(retval); }}")
    expect((rows[0]["count"], rows[0]["max"]["$ret"]) == (289, 299 * 3), rows)


def bpftrace(script, path):
    """The maps that bpftrace shows in the end."""
    need_root()
    r = run(need("bpftrace"), "-f", "json", "-e", script, "-c", path)
    maps = {}
    for line in r.out.splitlines():
        if line.startswith("{"):
            maps.update(json.loads(line).get("data") or {})
    if not any(name.startswith("@") for name in maps):
        raise Skip("bpftrace cannot trace here: " + r.err[:200])
    return maps


@claim
def bpftrace_has_the_same_results():
    path = program()
    script = (f"uprobe:{path}:work /arg0 % 2 == 0/ {{ @c[str(arg1)] = count(); "
              "@s[str(arg1)] = sum(arg2); @m[str(arg1)] = max(arg0); @h[str(arg1)] = hist(arg2); "
              "@l[str(arg1)] = lhist(arg0, 0, 200, 50); }")
    theirs, rows = bpftrace(script, path), table(script)
    expect(len(rows) == 3, rows)

    def filled(buckets):
        return {(b.get("min"), b.get("max")): b["count"] for b in buckets if b["count"]}

    for row in rows:
        key, = row["by"].values()
        own = [next(iter(row[kind].values())) for kind in ("sum", "max", "hist", "lhist")]
        expect((row["count"], own[0], own[1]) == tuple(theirs[m][key] for m in ("@c", "@s", "@m")),
               row, theirs)
        expect({low: n
                for (low, _), n in filled(own[2]).items()
                } == {low: n
                      for (low, _), n in filled(theirs["@h"][key]).items()}, row, theirs)
        expect(
            sorted(filled(own[3]).values()) == sorted(filled(theirs["@l"][key]).values()), row,
            theirs)


@claim
def printf_prints_bpftraces_lines():
    path = program()
    script = (f"uprobe:{path}:work /arg0 < 5/ {{ printf(\"%-12s|%4d %x 100%% {{}} %08lx\\n\", "
              "str(arg1), arg0, arg2, arg2); }")
    r = trace("--no-sidecar", "-c", path, script)
    wanted = [f"{name:<12}|{n:4d} {size:x} 100% {{}} {size:08x}" for n, name, size in CALLS[:5]]
    expect(r.status == 0 and r.lines() == wanted, r)
    theirs = run(need("bpftrace"), "-e", script, "-c", path).lines()
    if not any("|" in line for line in theirs):
        raise Skip("bpftrace cannot trace here")
    expect([line for line in theirs if "|" in line] == wanted, theirs)


@claim
def what_is_not_taken_is_named_and_nothing_is_attached():
    head = f"uprobe:{program()}:work"
    for script, text in ((head + " { @[kstack] = count(); }", "kstack is not taken"),
                         (head + " { @t[tid] = nsecs; }", "nsecs"), ("kprobe:f { @ = count(); }",
                                                                     "kprobe is not taken"),
                         (head + " { @ = sum(arg4); }", "has no $arg5; it has: "),
                         (head + " { @ = count(); } END { clear(@); }", "a second block")):
        r = cairn("trace", "--dry-run", "-c", program(), script)
        expect(r.status == 2 and text in r.err and "^" in r.err, script, r)
    r = cairn("trace", "--count", "-c", program(), head + " { @ = count(); }")
    expect(r.status == 2 and "says itself what is shown" in r.err, r)


main()
