#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""When cairn profile takes its samples: the processors' timers do not expire together."""

import json
import os

from claims import Skip, claim, compile_c, expect, main, need_root, path_of
from profiling import profile

# A thread on each of two processors, busy for 0.6 seconds each.
BUSY = """\
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static void *work(void *name)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(atoi(name), &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	pthread_setname_np(pthread_self(), name);
	while (used() < 0.6)
		;
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t other;

	pthread_create(&other, NULL, work, argv[1]);
	work(argv[2]);
	pthread_join(other, NULL);
	return argc - 3;
}
"""
HZ = 499
INTERVAL = 1e9 / HZ


def times_of(thread):
    """Of its samples, in nanoseconds from the beginning of the profile."""
    samples, at, times = thread["samples"], 0, []
    if "time" in samples:
        return [t * 1e6 for t in samples["time"]]
    for delta in samples["timeDeltas"]:
        at += delta
        times.append(at * 1e6)
    return times


def phase_of(times):
    """Where in an interval the timer expires: the densest tenth of it. An interrupt may be late."""
    phases = sorted(t % INTERVAL for t in times)
    around = phases + [p + INTERVAL for p in phases]
    within = [
        sum(p <= q < p + INTERVAL / 10 for q in around[i:i + len(phases)])
        for i, p in enumerate(phases)
    ]
    most = max(within)
    return phases[within.index(most)], most


@claim
def the_timers_of_two_processors_expire_at_different_times():
    need_root()
    processors = sorted(os.sched_getaffinity(0))[:2]
    if len(processors) != 2 or os.cpu_count() > 4:
        raise Skip("this machine has not two processors, or so many that the parts are small")
    out = path_of("busy.firefox.json")
    busy = compile_c("busy", BUSY, flags=("-O2", "-pthread"))
    r = profile("-c", f"{busy} {processors[0]} {processors[1]}", "-F", str(HZ), "-o", out)
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        threads = {t["name"]: times_of(t) for t in json.load(file)["threads"]}
    (first, n_first), (second, n_second) = (phase_of(threads[str(p)]) for p in processors)
    distance = abs(first - second)
    distance = min(distance, INTERVAL - distance) / INTERVAL
    expect(n_first > 100 and n_second > 100, threads)
    expect(distance > 0.6 / os.cpu_count(), (first, second, INTERVAL))


if __name__ == "__main__":
    main()
