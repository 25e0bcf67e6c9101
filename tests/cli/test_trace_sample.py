#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace --sample 1/N: every N-th hit on average, whatever the rhythm of the program, and none
uncounted. --max-slowdown: what the overload guard says and counts."""

import json
import os
import signal
import subprocess

from claims import CAIRN, claim, claim_each, compile_c, expect, folder, main, need_root, run
from tracing import trace

CALLS = 40000
# Each fourth call has n % 4 == 0: what takes each fourth hit in turn sees only one kind.
PROGRAM = """\
static volatile long sink;
static inline __attribute__((always_inline)) void beat(long n) { sink = n; __asm__ volatile("" : : "r"(n) : "memory"); }
__attribute__((noinline)) long twice(long n) { beat(n); return 2 * n; }
__attribute__((noinline)) void once(long n) { beat(n); }
int main(void)
{
	for (long n = 0; n < %d; n++) {
		if (n %% 4)
			once(n);
		else
			twice(n);
	}
	return 0;
}
""" % CALLS


def program():
    return compile_c("rhythm", PROGRAM)


def is_near(found, expected, share):
    """Within five standard deviations of @found draws of a probability: one in a million fails."""
    return abs(found - expected) <= 5 * (expected * (1 - share))**0.5


@claim
def hits_are_drawn_at_every_site_and_the_others_are_counted():
    r = trace("--json", "--no-sidecar", "--sample", "1/4", "--count", "--by", "$site", "-c",
              program(), "beat")
    table, summary = r.objects()
    expect(r.status == 0 and table["sample"] == summary["sample"] == 4, r)
    expect(summary["events"] + summary["undrawn"] == CALLS and not summary["lost"], summary)
    counts = {("twice" in row["by"]["$site"]): row["count"] for row in table["rows"]}
    expect(set(counts) == {False, True}, table)
    expect(is_near(counts[True], CALLS / 4 / 4, 1 / 4), counts)
    expect(is_near(counts[False], CALLS * 3 / 4 / 4, 1 / 4), counts)
    # Never shown as if they were all.
    expect("1/4 of the hits were taken" in r.err and "left out by sampling" in r.err, r)


@claim_each("events", "returns", "conditions")
def a_share_of_events_is_one_of_n(how):
    probe = {"events": "beat", "returns": "twice(n, $ret)", "conditions": "beat if n % 4 == 3"}[how]
    calls = CALLS if how != "returns" else CALLS // 4
    out = os.path.join(folder(), how)
    r = trace("--json", "--no-sidecar", "--sample", "1/16", "-o", out, "-c", program(), probe)
    with open(out, encoding="utf-8") as file:
        *events, summary = map(json.loads, file)
    expect(r.status == 0 and summary["sample"] == 16 and not summary["lost"], r)
    expect(summary["events"] + summary["undrawn"] + summary["filtered"] == calls, summary)
    expect(is_near(len(events) + summary["filtered"], calls / 16, 1 / 16), summary)
    numbers = [e["args"]["n"] for e in events]
    expect(numbers == sorted(set(numbers)), "an event came twice, or out of order")
    if how == "returns":
        expect(all(e["args"]["$ret"] == 2 * e["args"]["n"] for e in events), r)
        expect(not summary["unwound"] and not summary["unfinished"], summary)
    if how == "conditions":
        expect(is_near(len(events), calls / 4 / 16, 1 / 16), summary)


@claim
def all_hits_are_one_of_one():
    r = trace("--json", "--no-sidecar", "--sample", "1/1", "--count", "-c", program(), "beat")
    table, summary = r.objects()
    expect(table["count"] == CALLS and "sample" not in table and "sample" not in summary, r)
    expect("of the hits were taken" not in r.err, r)


@claim
def what_is_no_share_is_refused():
    for text in ("0", "1/0", "2/3", "1/x", "1/", "1/4x", "0.5", "1/-4", "1/4194305", "1/ 4"):
        r = run(CAIRN, "trace", "--sample", text, "-c", "true", "main")
        expect(r.status == 2 and "write 1/N" in r.err, text, r)


# Begins when it is told to, so that all its calls come after the probes are set. A call takes some
# work of its own.
HOT = """\
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t go;
static volatile long sink;
static void on_usr1(int sig) { go = 1; }
__attribute__((noinline)) void beat(long n) { __asm__ volatile("" : : "r"(n) : "memory"); }
int main(int argc, char **argv)
{
	long calls = atol(argv[1]), work = atol(argv[2]);
	signal(SIGUSR1, on_usr1);
	puts("ready");
	fflush(stdout);
	while (!go)
		usleep(1000);
	for (long n = 0; n < calls; n++) {
		beat(n);
		for (long i = 0; i < work; i++)
			sink += i;
	}
	return 0;
}
"""


def begin_hot(calls, work):
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        [compile_c("hot", HOT), str(calls), str(work)], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    return process


def end_hot(process):
    process.kill()
    process.communicate()


def trace_hot(calls, work, *words, beside=None):
    """What the trace of a process says that makes so many calls. @beside  the calls of another one
    that is traced, too, and ends after them."""
    need_root()
    processes = [begin_hot(calls, work)] + ([begin_hot(beside, 0)] if beside else [])
    try:
        command = [CAIRN, "trace", "--json", "--no-sidecar", "-o", os.path.join(folder(), "hot")]
        command += [word for p in processes for word in ("-p", str(p.pid))]
        with subprocess.Popen(command + list(words), stderr=subprocess.PIPE, text=True) as tracer:
            said = ""
            while "attached" not in said:
                line = tracer.stderr.readline()
                expect(line, "it ended", said)
                said += line
            for process in processes:
                process.send_signal(signal.SIGUSR1)
            said += tracer.communicate(timeout=100)[1]
        with open(os.path.join(folder(), "hot"), encoding="utf-8") as file:
            for line in file:
                pass
        return tracer.returncode, json.loads(line), said
    finally:
        for process in processes:
            end_hot(process)


@claim
def a_process_that_is_slowed_down_too_much_is_let_go_and_that_is_said():
    # A call of a nanosecond cannot bear a trap of a microsecond, on any machine.
    status, summary, said = trace_hot(10**8, 0, "--fail-on-loss", "--count", "beat")
    expect(status == 5 and summary["given_up_ns"] > 0 and summary["slowdown_percent"] > 10, said,
           summary)
    expect(0 < summary["events"] < 10**8 and "the probes are removed" in said, said)
    expect("later hits were not counted" in said and "--max-slowdown sets the limit, 10%" in said,
           said)


@claim
def the_guard_goes_on_when_one_of_several_processes_ends():
    status, summary, said = trace_hot(10**8, 0, "--fail-on-loss", "--count", "beat", beside=1000)
    expect(status == 5 and summary["given_up_ns"] > 0 and summary["slowdown_percent"] > 10, said,
           summary)
    # Both were seen, and nothing was said of a process that is not there any more.
    expect(1000 < summary["events"] < 10**8 and "cannot be measured" not in said, summary, said)
    # Without too many hits nothing is done, whoever ends first.
    status, summary, said = trace_hot(1000, 0, "--max-slowdown", "1000000000%", "--fail-on-loss",
                                      "--count", "beat", beside=50)
    expect(status == 0 and summary["events"] == 1050 and "given_up_ns" not in summary, said)


@claim
def without_a_limit_every_call_is_counted():
    for words in (("--max-slowdown", "off"), ("--max-slowdown", "1000000000%")):
        status, summary, said = trace_hot(40000, 0, *words, "--count", "beat")
        expect(status == 0 and summary["events"] == 40000 and "slowed down" not in said, said)
        expect("given_up_ns" not in summary and "sample" not in summary, summary)


@claim
def what_the_guard_leaves_out_is_counted():
    # Whether it acts, and how, is a matter of the machine; what it says must be true.
    status, summary, said = trace_hot(30000, 15000, "--max-slowdown", "15%", "--stack",
                                      "--fail-on-loss", "beat")
    seen = summary["events"] + summary["lost"] + summary["missed"] + summary.get("undrawn", 0)
    if "given_up_ns" in summary:
        expect(seen < 30000 and "the probes are removed" in said, said)
    else:
        expect(seen == 30000, summary, said)
    expect(("sample" in summary) == ("sample_since_ns" in summary), summary)
    expect(("sample" in summary) == ("of the hits since" in said), said)
    acted = "sample" in summary or "given_up_ns" in summary
    expect(acted == ("slowed down by about" in said), said)
    expect(status == (5 if acted or summary["lost"] or summary["stacks_lost"] else 0), status, said)


@claim
def what_is_no_limit_is_refused():
    for text in ("10", "x%", "-1%", "0%", "%", "10%%", "nan%", "on"):
        r = run(CAIRN, "trace", f"--max-slowdown={text}", "-p", "1", "main")
        expect(r.status == 2 and "write a percentage" in r.err, text, r)


main()
