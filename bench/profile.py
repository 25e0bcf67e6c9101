#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile beside perf record: what a frame costs, what the sampled program loses, and what
the tool takes itself.

The program is a recursion of known depth that does a fixed amount of work, built without frame
pointers for cairn and perf's DWARF mode, and with them for perf's own walk (--call-graph fp). Each
round runs all in turn; medians of the rounds, with the least and the most.

The program runs on, and notes the processor time of each piece of its work, which is as long as
some samples are apart. A tool is attached for a second. Neighbours on the machine slow many pieces
down by more than a tool does, and never make one faster. So the fast pieces of that second (one of
ten is faster) are compared with those just before and just after it.
    frame     time of the walk in the kernel, as the program itself counts it: the slope between
              depths of 20 and 200; of compiled code, and of a JIT's (bench_made.c)
    costly    time of a sample of a process that is made to cost as much as possible
    first     from the start to the first sample
    slowdown  a fast piece while a tool samples, against the mean of those before and after
    own       processor time of the tool, whose sidecars are there after the first round; data:
              bytes that it wrote
"""
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CAIRN = os.path.abspath(
    os.environ.get("CAIRN", os.path.join(os.environ.get("CAIRN_BUILD", "build"), "cairn")))
ROUNDS = int(os.environ.get("ROUNDS", "9"))
MADE = os.path.join(os.path.dirname(CAIRN), "bench", "bench_made")
RATES = (99, 999, 4999)
# Of the work in a piece: 0.1 ms each.
MOST_CALLS, LEAST_CALLS = 200, 20
# Seconds: that a tool is attached for, in which it certainly samples, and of which pieces are taken.
ATTACHED, UNTIL_IT_SAMPLES, WINDOW = 1.6, 0.6, 0.8
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) int descend(int depth, unsigned long n)
{
	if (!depth) { spin(n); return 1; }
	int r = descend(depth - 1, n);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}
static long long now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}
/* When each piece ended, and the processor time that it took. */
static void work_on(FILE *log, int depth, int n)
{
	for (;;) {
		long long from = now(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < n; i++) descend(depth, 200000);
		fprintf(log, "%lld %lld\n", now(CLOCK_MONOTONIC), now(CLOCK_THREAD_CPUTIME_ID) - from);
		fflush(log);
	}
}
int main(int argc, char **argv)
{
	if (argc > 3) work_on(fopen(argv[3], "w"), atoi(argv[1]), atoi(argv[2]));
	for (int i = 0; i < atoi(argv[2]); i++) descend(atoi(argv[1]), 200000);
	return 0;
}
"""


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(words):
    """Processor time of a command and its children."""
    before = children_cpu()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return children_cpu() - before


def spread(values, form):
    return f"{form % statistics.median(values)} ({form % min(values)} to {form % max(values)})"


def summary_of(*words):
    r = subprocess.run([CAIRN, "profile", "--json", "--no-cache", "-F", "999", *words],
                       capture_output=True,
                       text=True,
                       check=True)
    return next(json.loads(line) for line in reversed(r.stdout.splitlines()) if '"summary"' in line)


def ns_of(*words):
    s = summary_of(*words)
    return s["walk_ns"] / s["samples"]


def frame_cost(commands):
    """ns a frame, us a sample: from the commands of depth 20 and 200."""
    shallow, deep = (ns_of(*words) for words in commands)
    slope = (deep - shallow) / 180
    return slope, (shallow - 20 * slope) / 1000


def show_walk(plain):
    compiled = [frame_cost([("-c", f"{plain} {n} 4000") for n in (20, 200)]) for _ in range(ROUNDS)]
    print(f"a frame takes {spread([c[0] for c in compiled], '%.0f ns')} in the kernel, a sample "
          f"{spread([c[1] for c in compiled], '%.1f us')} more; the aims are 60 ns and 5 us")
    made = [
        frame_cost([("--duration", "1s", "-c", f"{MADE} {n}") for n in (20, 200)])
        for _ in range(ROUNDS)
    ]
    print(f"a frame of a JIT takes {spread([c[0] for c in made], '%.0f ns')}; the aim is 150 ns")
    costly = [ns_of("--duration", "1s", "-c", f"{MADE} costly") / 1e3 for _ in range(ROUNDS)]
    print(f"a costly process: {spread(costly, '%.0f us')} a sample, of 4,096 reads at most")
    first = [
        summary_of("-c", f"{plain} 20 1000")["first_sample_ns"] / 1e6 for _ in range(2 * ROUNDS)
    ]
    print(f"the first sample comes after {spread(first, '%.0f ms')}; the aim is 150 ms")


def tools(folder, rate):
    """By name: the command for a process (its number follows), which program, what it writes."""
    out = os.path.join(folder, "out")
    found = {
        "cairn": ([CAIRN, "profile", "-F", str(rate), "-o", out + ".pb.gz", "--duration",
                   f"{ATTACHED}s", "-p"], "plain", out + ".pb.gz")
    }
    if shutil.which("perf"):
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(rate), "-o", out + ".data"]
        for mode, binary in (("fp", "pointers"), ("dwarf", "plain")):
            found["perf " + mode] = (["timeout", "-s", "INT", str(ATTACHED)] + record +
                                     ["--call-graph", mode, "-p"], binary, out + ".data")
    return found


class Steady:
    """The program at work, and its pieces so far."""

    def __init__(self, binary, rate, folder):
        self.log = os.path.join(folder, "pieces")
        n = max(MOST_CALLS * RATES[0] // rate, LEAST_CALLS)
        self.process = subprocess.Popen([binary, "42", str(n), self.log])
        # Where it runs, the tool does not; processors differ in speed, too.
        os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})

    def fast_piece(self, since):
        """Its time, among the pieces that ended @since this moment, and lie in it as a whole."""
        with open(self.log, encoding="ascii") as file:
            pieces = [tuple(map(int, line.split())) for line in file if line.endswith("\n")]
        times = [cpu for end, cpu in pieces if end - 2 * cpu > since]
        return statistics.quantiles(times, n=10)[0]

    def end(self):
        self.process.kill()
        self.process.wait()


def wait_and_measure(steady):
    since = time.monotonic_ns()
    time.sleep(WINDOW)
    return steady.fast_piece(since)


def run_tool(command, steady):
    """(processor time of the tool, a fast piece while it sampled)"""
    before = children_cpu()
    with subprocess.Popen(command + [str(steady.process.pid)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as tool:
        time.sleep(UNTIL_IT_SAMPLES)
        attached = wait_and_measure(steady)
        if tool.poll() is not None:
            raise SystemExit(f"{command[0]} ended before it was measured")
    return children_cpu() - before, attached


def measure(command, binary, out, rate, folder):
    """(slowdown in percent, seconds of the tool, bytes)"""
    steady = Steady(binary, rate, folder)
    try:
        time.sleep(0.2)
        before = wait_and_measure(steady)
        own, attached = run_tool(command, steady)
        after = wait_and_measure(steady)
    finally:
        steady.end()
    return 100 * (2 * attached / (before + after) - 1), own, os.path.getsize(out)


def compare(folder, binaries):
    for rate in RATES:
        rows = {}
        for _ in range(ROUNDS):
            for name, (command, binary, out) in tools(folder, rate).items():
                rows.setdefault(name, []).append(measure(command, binaries[binary], out, rate, folder))
        for name, values in rows.items():
            slow, tool, size = zip(*values)
            print(
                f"{rate:5} Hz  {name:10}  slowdown {spread(slow, '%+.1f %%'):28}  own {spread(tool, '%.2f s'):26}  "
                f"data {statistics.median(size) / 1024:.0f} KiB")
        if "perf dwarf" in rows:
            of = {n: statistics.median(v[2] for v in rows[n]) for n in rows}
            print(
                f"          data of perf dwarf is {of['perf dwarf'] / of['cairn']:.0f} times cairn's"
            )


def main():
    if os.geteuid() != 0 or re.search(
            r'"what":"bpf\(2\)","ok":false',
            subprocess.run([CAIRN, "doctor", "--json"], capture_output=True, text=True,
                           check=False).stdout):
        print("profile: left out: it needs root and bpf(2)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "deep.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(SOURCE)
        plain, pointers = os.path.join(folder, "plain"), os.path.join(folder, "pointers")
        subprocess.run(["gcc", "-g", "-O2", "-fomit-frame-pointer", source, "-o", plain],
                       check=True)
        subprocess.run(["gcc", "-g", "-O2", "-fno-omit-frame-pointer", source, "-o", pointers],
                       check=True)
        show_walk(plain)
        compare(folder, {"plain": plain, "pointers": pointers})
    return 0


if __name__ == "__main__":
    sys.exit(main())
