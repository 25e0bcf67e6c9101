#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile beside perf record: what a frame costs, what the sampled program loses, and what
the tool takes itself.

The program is a recursion of known depth that does a fixed amount of work, built without frame
pointers for cairn and perf's DWARF mode, and with them for perf's own walk (--call-graph fp). Each
round runs all in turn; medians of the rounds, with the least and the most.
    frame     time of the walk in the kernel, as the program itself counts it: the slope between
              depths of 20 and 200; of compiled code, and of a JIT's (bench_made.c)
    costly    time of a sample of a process that is made to cost as much as possible
    first     from the start to the first sample
    slowdown  processor time of the program against the mean of the two runs without a tool before
              and after it: a machine's speed drifts
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

HERE = os.path.dirname(os.path.abspath(__file__))
CAIRN = os.path.abspath(
    os.environ.get("CAIRN", os.path.join(os.environ.get("CAIRN_BUILD", "build"), "cairn")))
ROUNDS = int(os.environ.get("ROUNDS", "9"))
MADE = os.path.join(os.path.dirname(CAIRN), "bench", "bench_made")
RATES = (99, 999, 4999)
SOURCE = r"""
#include <stdlib.h>
volatile unsigned long sink;
static void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) int descend(int depth, unsigned long n)
{
	if (!depth) { spin(n); return 1; }
	int r = descend(depth - 1, n);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}
int main(int argc, char **argv)
{
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


def program_time(prefix, command, folder):
    """(processor time of the program, of the tool around it)"""
    log = os.path.join(folder, "time")
    wrapped = [os.path.join(folder, "timed"), log] + command
    all_of_it = cpu_of(prefix + wrapped) if prefix else cpu_of(wrapped)
    with open(log, encoding="ascii") as file:
        own = float(file.read())
    return own, all_of_it - own


# A program's processor time, without that of whoever starts it: what a tool takes is the rest.
TIMED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct rusage u;
	int status;
	FILE *log;

	if (argc < 3 || !fork())
		return argc < 3 || execvp(argv[2], argv + 2);
	wait(&status);
	getrusage(RUSAGE_CHILDREN, &u);
	log = fopen(argv[1], "w");
	fprintf(log, "%.6f", u.ru_utime.tv_sec + u.ru_stime.tv_sec +
			     (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
	fclose(log);
	return status != 0;
}
"""


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


def tools(folder, rate, plain, pointers):
    out = os.path.join(folder, "out")
    found = {
        "cairn": ([CAIRN, "profile", "-F",
                   str(rate), "-o", out + ".pb.gz", "-c"], plain, out + ".pb.gz")
    }
    if shutil.which("perf"):
        record = [
            "perf", "record", "-q", "-e", "cpu-clock", "-F",
            str(rate), "-o", out + ".data", "--call-graph"
        ]
        found["perf fp"] = (record + ["fp", "--"], pointers, out + ".data")
        found["perf dwarf"] = (record + ["dwarf", "--"], plain, out + ".data")
    return found


def run_tool(name, prefix, command, folder):
    if name == "cairn":
        # One word for the whole command.
        log = os.path.join(folder, "time")
        words = " ".join([os.path.join(folder, "timed"), log] + command)
        all_of_it = cpu_of(prefix + [words])
        with open(log, encoding="ascii") as file:
            own = float(file.read())
        return own, all_of_it - own
    return program_time(prefix, command, folder)


def compare(folder, plain, pointers):
    work = ["42", "6000"]

    def alone(binary):
        return program_time([], [binary] + work, folder)[0]

    for rate in RATES:
        rows = {}
        for _ in range(ROUNDS):
            for name, (prefix, binary, out) in tools(folder, rate, plain, pointers).items():
                before = alone(binary)
                own, tool = run_tool(name, prefix, [binary] + work, folder)
                base = (before + alone(binary)) / 2
                rows.setdefault(name, []).append(
                    (100 * (own / base - 1), tool, os.path.getsize(out)))
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
        timed = os.path.join(folder, "timed")
        with open(timed + ".c", "w", encoding="ascii") as file:
            file.write(TIMED)
        subprocess.run(["gcc", "-O2", timed + ".c", "-o", timed], check=True)
        plain, pointers = os.path.join(folder, "plain"), os.path.join(folder, "pointers")
        subprocess.run(["gcc", "-g", "-O2", "-fomit-frame-pointer", source, "-o", plain],
                       check=True)
        subprocess.run(["gcc", "-g", "-O2", "-fno-omit-frame-pointer", source, "-o", pointers],
                       check=True)
        show_walk(plain)
        compare(folder, plain, pointers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
