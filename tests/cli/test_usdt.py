#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""USDT probes: every probe of real programs against readelf's reading, and events against what the
program itself wrote down."""

import glob
import json
import os
import re
import signal
import subprocess
import time

from claims import (CAIRN, Running, Skip, cairn, claim, claim_each, claim_each_of_many, compile_c,
                    expect, folder, main, need, need_root, run)
from tracing import trace

PROGRAMS = {
    "python3": ["/usr/bin/python3.1?"],
    "postgres": ["/usr/lib/postgresql/*/bin/postgres"],
    "libjvm": ["/usr/lib/jvm/*/lib/server/libjvm.so"],
    "libstdc++": ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6"],
}

# ---- listing ----


def readelf_notes(path):
    """(provider, name, address, semaphore, arguments) of each note, as readelf -n reads it."""
    text = run(need("readelf"), "-nW", path).out
    notes = re.findall(
        r"stapsdt\s+0x\S+\s.*?Provider: (.*?)\n\s+Name: (.*?)\n\s+Location: 0x(\w+), Base: "
        r"0x\w+, Semaphore: 0x(\w+)\n\s+Arguments: ?(.*?)\n", text)
    return sorted((p, n, int(at, 16), int(semaphore, 16), args.strip())
                  for p, n, at, semaphore, args in notes)


@claim_each_of_many(*PROGRAMS)
def every_probe_of_a_real_program_is_listed_as_readelf_reads_it(name):
    found = [path for pattern in PROGRAMS[name] for path in glob.glob(pattern)]
    if not found:
        raise Skip(f"{name} is not installed")
    for path in found:
        notes = readelf_notes(path)
        r = cairn("sites", path, "--usdt", "--json")
        listed = [(s["provider"], s["name"], int(s["addr"], 16), int(s["semaphore"] or "0", 16),
                   " ".join(a["note"] for a in s["args"])) for s in r.objects()]
        expect(notes or r.status == 1, path, r)
        # Several notes of one probe at one instruction are one site if they are equal.
        expect(sorted(listed) == sorted(set(notes)), path,
               sorted(set(listed).symmetric_difference(notes))[:5])
        for site in r.objects():
            for arg in site["args"]:
                expect(arg["size"] in (1, 2, 4, 8) or arg["unavailable"], path, site)
                expect((arg["loc"] is None) != (arg["unavailable"] is None), path, site)
        if name in ("python3", "libstdc++"):
            expect(all(a["loc"] for s in r.objects() for a in s["args"]), path)


# ---- a program that logs its own probes ----

# One note per copy of the macro. SEM is the address of a semaphore or 0.
PROGRAM = r"""
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define NOTE(sem, name, args, ...) __asm__ volatile( \
	"990: nop\n" \
	".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n" \
	".4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n" \
	"993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte " sem "\n" \
	".asciz \"suite\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n" \
	"994: .balign 4\n.popsection\n" \
	".ifndef _.stapsdt.base\n" \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n" \
	"_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n" \
	: : __VA_ARGS__)
/* In a section with bytes in the file, as SystemTap's. */
__attribute__((section(".probes"), used)) volatile unsigned short busy_semaphore = 0;
int32_t counter;
static const char *const words[] = {"zero", "one", "two", "three"};

static inline __attribute__((always_inline)) void probe(uint64_t v, const char *word)
{
	int8_t s1 = (int8_t)v; uint8_t u1 = (uint8_t)v; int16_t s2 = (int16_t)v;
	uint16_t u2 = (uint16_t)v; int32_t s4 = (int32_t)v; uint32_t u4 = (uint32_t)v;
	volatile int32_t in_memory = (int32_t)(v >> 3);
	volatile uint8_t byte_in_memory = (uint8_t)(v >> 5);
	NOTE("0", "all", "-1@%0 1@%1 -2@%2 2@%3 -4@%4 4@%5 -8@%6 8@%6 -4@%7 1@%8 8@%9 -4@%10",
	     "r"(s1), "r"(u1), "r"(s2), "r"(u2), "r"(s4), "r"(u4), "r"(v), "m"(in_memory),
	     "m"(byte_in_memory), "r"(word), "i"(-7));
	printf("all %d %u %d %u %d %u %ld %lu %d %u %s %d\n", s1, u1, s2, u2, s4, u4, (long)v,
	       (unsigned long)v, in_memory, byte_in_memory, word, -7);
}

__attribute__((noinline)) static void several(long i)
{
	if (i & 1)
		NOTE("0", "differs", "-4@%0", "r"((int32_t)-i));
	else
		NOTE("0", "differs", "8@%0", "r"(i << 40));
	printf("differs %ld\n", i & 1 ? -i : i << 40);
}

__attribute__((noinline)) static void guarded(long i)
{
	counter = (int32_t)i * 3;
	if (busy_semaphore) {
		NOTE("busy_semaphore", "busy", "8@%0 -4@counter(%%rip)", "r"(i));
		printf("busy %ld %d\n", i, counter);
	}
}

int main(int argc, char **argv)
{
	uint64_t v = 0x9e3779b97f4a7c15;
	if (argc > 1) {
		for (int i = 0; i < 20000; i++) {
			if (write(1, busy_semaphore ? (busy_semaphore > 1 ? "2" : "1") : "0", 1) < 0)
				return 1;
			guarded(i);
			usleep(1000);
		}
		return 0;
	}
	for (long i = 0; i < 300; i++) {
		probe(v, words[i & 3]);
		if (i % 3 == 0)
			probe(~v, words[0]);
		several(i);
		guarded(i);
		v = v * 6364136223846793005u + 1442695040888963407u;
	}
	return 0;
}
"""
BUILDS = ("gcc -O0", "gcc -O2", "gcc -O3", "clang -O0", "clang -O2", "gcc -O2 -no-pie")


def program(build="gcc -O2"):
    compiler, *flags = build.split()
    name = "usdt" + "".join(flags).replace("-", "_")
    # No debug information: the notes are all that is needed.
    return compile_c(name, PROGRAM, compiler, flags=flags)


def events_of(path, *words):
    """What was traced, the summary, and the tracer's own result, whose output is the program's."""
    out = os.path.join(folder(), "events")
    r = trace("--json", "-o", out, "-c", path, *words)
    expect(r.status == 0, r.err)
    with open(out, encoding="utf-8") as file:
        *events, summary = map(json.loads, file)
    expect(all(p["lost"] == 0 for p in summary["probes"]), summary)
    return events, summary, r


def shown(value):
    return value["string"] if isinstance(value, dict) and "string" in value else value


@claim_each_of_many(*BUILDS)
def every_event_has_the_values_that_the_program_wrote_down(build):
    path = program(build)
    values = ", ".join(f"$arg{i}" for i in range(1, 11)) + ", $arg11:str, $arg12"
    events, _, r = events_of(path, f"usdt:suite:all({values})", "usdt:suite:differs",
                             "usdt:suite:busy")
    seen = [" ".join([e["function"].split(":")[1]] + [str(shown(v)) for v in e["args"].values()])
            for e in events]
    logged = r.out.splitlines()
    expect(len(logged) == 1000, len(logged))
    expect(seen == logged,
           [(a, b) for a, b in zip(seen, logged) if a != b][:5], len(seen))


@claim_each("uprobe_multi", "uprobe")
def a_condition_over_arguments_decides_in_the_kernel(backend):
    events, summary, r = events_of(program(), "--backend", backend,
                                   "usdt:suite:differs($arg1) if $arg1 < -290",
                                   "usdt:suite:busy if $arg1 % 100 == 7 && $arg2 > 30")
    expect([e["args"]["$arg1"] for e in events] == [107, 207, -291, -293, -295, -297, -299],
           r.out, r.err)
    expect([p["filtered"] for p in summary["probes"]] == [295, 298], summary)


@claim
def arguments_are_keys_and_numbers_of_aggregates():
    path = program()
    events, _, _ = events_of(path, "usdt:suite:all($arg3, $arg11:str)")
    out = os.path.join(folder(), "sums")
    r = trace("--json", "-o", out, "-c", path, "--count", "--sum", "$arg3", "--by", "$arg11:str",
              "usdt:suite:all")
    expect(r.status == 0, r.err)
    with open(out, encoding="utf-8") as file:
        *_, table, _ = map(json.loads, file)
    of = {}
    for event in events:
        key, number = shown(event["args"]["$arg11"]), event["args"]["$arg3"]
        n, total = of.get(key, (0, 0))
        of[key] = (n + 1, total + number)
    rows = {shown(row["by"]["$arg11"]): (row["count"], row["sum"]["$arg3"])
            for row in table["rows"]}
    expect(len(of) > 1 and rows == of, of, rows)


class Guarded(Running):
    """The program that prints its semaphore every millisecond."""

    def __init__(self):
        super().__init__(program(), "loop")

    def state(self):
        """What it printed last, after a while, of the numbers alone."""
        time.sleep(0.2)
        printed = os.read(self.process.stdout.fileno(), 1 << 20).decode()
        return re.sub(r"busy.*\n", "", printed)[-1]


def attached(pid, *words):
    need_root()
    tracer = subprocess.Popen([CAIRN, "trace", "--max-slowdown", "off", "--json", "-p", str(pid),
                               *words],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in tracer.stderr:
        if "attached" in line:
            return tracer
    raise Skip("tracing is not possible here")


def end(tracer):
    tracer.send_signal(signal.SIGINT)
    tracer.communicate(timeout=60)


@claim_each("uprobe_multi", "uprobe")
def the_semaphore_is_set_while_a_tracer_is_attached_and_no_longer(backend):
    need_root()
    words = ("--backend", backend, "usdt:suite:busy")
    with Guarded() as guarded, Guarded() as other:
        expect(guarded.state() == "0")
        first = attached(guarded.pid, *words)
        expect(guarded.state() == "1")
        second = attached(guarded.pid, *words)
        # The kernel counts instructions with probes, and not tracers.
        expect(guarded.state() == "1")
        end(second)
        expect(guarded.state() == "1")
        # One that dies takes its count with it.
        first.kill()
        first.wait()
        first.stderr.close()
        expect(guarded.state() == "0")
        expect(other.state() == "0")


@claim
def a_pattern_becomes_a_probe_for_each_name():
    events, _, r = events_of(program(), "usdt:suite:*f*()")
    expect("1 probe, 2 sites" in r.err and len(events) == 300, r.err, events[:3])
    r = cairn("trace", "--dry-run", "--json", "-c", program(), "usdt:s*:*")
    expect(r.status == 0 and {o["function"] for o in r.objects()} ==
           {"suite:all", "suite:differs", "suite:busy"}, r)


@claim
def bpftrace_reads_the_same_values():
    need_root()
    path = program("gcc -O2 -no-pie")
    script = "usdt:%s:suite:all { @[arg1, arg3, arg5] = count(); }" % path
    theirs = run(need("bpftrace"), "-e", script, "-c", path)
    # It shows 32 bits without a sign as if they had one.
    keys = sorted([int(word) % (1 << 32)
                   for word in key.split(", ")]
                  for key in re.findall(r"^@\[(.*)\]: 1$", theirs.out, re.M))
    if not keys:
        raise Skip("bpftrace does not trace it here: " + theirs.err[:200])
    events, _, _ = events_of(path, "usdt:suite:all($arg2, $arg4, $arg6)")
    ours = sorted(list(e["args"].values()) for e in events)
    expect(ours == keys and len(ours) == 400, list(zip(ours, keys))[:3], len(ours), len(keys))


# ---- what is wrong ----


@claim
def a_probe_that_is_not_there_is_answered_with_what_helps():
    path = program()
    for probe, status, words in [
        ("usdt:suite:bussy", 1, "perhaps you mean busy"),
        ("usdt:other:busy", 1, "has no USDT probe other:busy"),
        ("usdt:busy", 2, "usdt:FILE:PROVIDER:NAME"),
        ("usdt:", 2, "usdt:FILE:PROVIDER:NAME"),
        ("usdt::", 2, "usdt:FILE:PROVIDER:NAME"),
        ("usdt:/usr/bin/true:suite:busy", 1, "has no USDT probes"),
        ("usdt:/no/such/file:suite:busy", 2, "No such file"),
        ("usdt:suite:busy($arg3)", 2, "$arg3"),
        ("usdt:suite:busy($arg1->x)", 2, "$arg1"),
        ("usdt:suite:all($arg1:str)", 2, ":str needs a pointer"),
    ]:
        r = cairn("trace", "--dry-run", "-c", path, probe)
        expect(r.status == status and words in r.err and not r.out, probe, r)
    r = cairn("trace", "--dry-run", "usdt:suite:busy")
    expect(r.status == 2 and "which file?" in r.err, r)
    r = cairn("sites", path, "--usdt", "suite:x*")
    expect(r.status == 1 and "matches suite:x*" in r.err, r)
    r = cairn("sites", "/usr/bin/true", "--usdt")
    expect(r.status == 1 and "has no USDT probes" in r.err, r)
    r = cairn("sites", path, "--usdt", "--hazards")
    expect(r.status == 2, r)


@claim
def functions_and_usdt_probes_go_together():
    path = compile_c("usdt_both", PROGRAM, flags=("-O2", "-g"))
    events, _, r = events_of(path, "several", "usdt:suite:differs", "usdt:suite:all()")
    functions = [e["function"] for e in events]
    expect(
        functions.count("several") == 300 and functions.count("suite:differs") == 300 and
        functions.count("suite:all") == 400, r.err)


main()
