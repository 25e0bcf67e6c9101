#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace --sample 1/N: every N-th hit on average, whatever the rhythm of the program, and none
uncounted."""

import json
import os

from claims import CAIRN, claim, claim_each, compile_c, expect, folder, main, run
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


main()
