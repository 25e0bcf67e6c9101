#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile as people use it: what it refuses, real processes of known behaviour, and its
files."""

import collections
import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

from claims import (CAIRN, IS_SANITIZED, Skip, cairn, claim, claim_each, compile_c, expect, folder,
                    main, need, need_root, path_of, run, write)
from profiling import folded_lines, profile, wait_until_sampling

# three() takes about three quarters of all the time, in what is inlined into it; a processor may run
# one of the two loops faster. So the program says what it was. 20 levels of recursion lead there.
KNOWN = """\
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double in_three, in_one;
static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}
/* Of no fixed length: a call as long as the time between two samples would be met at the same place again and again. */
static unsigned int length = 100000;
__attribute__((noinline)) void three(void) { spin(3 * (unsigned long)length); __asm__ volatile(""); }
__attribute__((noinline)) void one(void) { spin(length); __asm__ volatile(""); }
__attribute__((noinline)) void descend(int levels)
{
	if (levels > 1) {
		descend(levels - 1);
	} else {
		double begin = used(), between;
		three();
		between = used();
		one();
		in_three += between - begin;
		in_one += used() - between;
	}
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	unsigned int random = 1;

	for (int n = atoi(argv[1]); n; n--) {
		random = random * 1103515245u + 12345u;
		length = 20000 + (random >> 8) % 160000;
		descend(20);
	}
	if (getenv("KNOWN_SHARE")) {
		FILE *file = fopen(getenv("KNOWN_SHARE"), "w");
		fprintf(file, "%.6f\\n", in_three / (in_three + in_one));
		fclose(file);
	}
	if (argc > 2)
		puts("done");
	return argc > 2 ? atoi(argv[2]) : 0;
}
"""

# A loop in code that is made at run time, with a frame pointer, and a name in a perf map.
JIT = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0x40, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
__attribute__((noinline)) void run(void (*made)(void)) { made(); __asm__ volatile(""); }
int main(int argc, char **argv)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	memcpy(p, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx %zx made;here\\n", (unsigned long)p, sizeof(code));
	fclose(map);
	for (long n = atol(argv[1]); n; n--)
		run((void (*)(void))p);
	unlink(path);
	return 0;
}
"""


# Two threads with names, each in its own instance of a template.
THREADS = """\
#include <pthread.h>
#include <thread>
static volatile unsigned long sink;
namespace deep {
template <typename T> struct Burner {
	__attribute__((noinline)) void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink = sink + (T)i; }
};
}
template <typename T> static void work(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	deep::Burner<T>().spin(300000000);
}
int main() {
	std::thread first(work<int>, "first"), second(work<short>, "second");
	first.join();
	second.join();
}
"""


def known():
    return compile_c("known", KNOWN,
                     flags=("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"))


def paths():
    return {
        end: os.path.join(folder(), "known." + end)
        for end in ("folded", "pb.gz", "json", "html")
    }


ONCE = {}


def known_run():
    """One run of the known program, written in all formats: its result."""
    if "run" not in ONCE:
        words = [word for path in paths().values() for word in ("-o", path)]
        os.environ["KNOWN_SHARE"] = os.path.join(folder(), "known.share")
        ONCE["run"] = profile("-c", f"{known()} 4000", "-F", "999", "--json", *words)
        del os.environ["KNOWN_SHARE"]
        expect(ONCE["run"].status == 0, ONCE["run"])
    return ONCE["run"]


def summary(r):
    found = [o for o in r.objects() if o.get("summary")]
    expect(len(found) == 1, r)
    return found[0]


def functions(r):
    return {o["function"]: o for o in r.objects() if "function" in o}


def folded(path):
    with open(path, encoding="utf-8") as file:
        return [(stack.split(";"), n) for stack, n in folded_lines(file)]


# ---- what it refuses ----

REFUSED = {
    "no target": ([], "nothing to profile"), "two targets": (["-p", "1", "-a"], "choose one"),
    "a command and all": (["-c", "true", "--cgroup", "/sys/fs/cgroup"], "choose one"),
    "no process id": (["-p", "1x"], "not a process id: 1x"), "no format":
    (["-a", "-o", "x.txt"], "x.txt: the name says the format"), "two events": ([
        "-a", "--off-cpu", "--event", "cycles"
    ], "choose one"), "an unknown event": (["-a", "--event", "naps"], "--event takes cpu, "),
    "a rate of events": (["-a", "--event", "page-faults", "-F",
                          "10"], "each of these events is a sample"), "a rate that is too high": ([
                              "-a", "-F", "100001"
                          ], "at most 100000"), "a rate of nothing":
    (["-a", "-F", "0"], "a number of at least 1"), "a ring of no power of two": ([
        "-a", "--ring", "3"
    ], "a power of two"), "a word": (["shwo"], "not expected: shwo"),
}


@claim_each(*REFUSED)
def a_command_line_without_sense_is_refused(what):
    words, message = REFUSED[what]
    r = cairn("profile", *words)
    expect(r.status == 2 and message in r.err and not r.out, r)


@claim
def a_process_that_is_not_there_is_an_answer():
    r = profile("-p", "2147483646", "--duration", "1")
    expect(r.status == 1 and "2147483646" in r.err, r)


@claim
def a_command_that_is_not_there_is_a_usage_error():
    r = cairn("profile", "-c", "/no/such/command")
    expect(r.status == 2 and "/no/such/command" in r.err, r)


@claim
def without_permission_the_command_that_has_it_is_shown():
    words = [CAIRN, "profile", "-a", "--duration", "1"]
    if os.geteuid() == 0:
        words = [
            need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
            *words
        ]
    r = run(*words)
    expect(r.status == 3 and "not permitted" in r.err and "sudo" in r.err, r)


# ---- real processes ----

def standard_error(share, n):
    return math.sqrt(share * (1 - share) / n)


@claim
def functions_have_the_shares_of_the_time_that_they_take():
    r = known_run()
    s, f = summary(r), functions(r)
    expect(s["samples"] > 300 and s["lost"] == 0, s)
    three, one = f["three"]["total"], f["one"]["total"]
    share = three / (three + one)
    with open(os.path.join(folder(), "known.share"), encoding="ascii") as file:
        truth = float(file.read())
    # A chance of one in a million that this fails.
    expect(abs(share - truth) < 5 * standard_error(truth, s["samples"]), share, truth, s)
    # All of it is in the inlined function, which is one of its own.
    expect(f["spin"]["inlined"] == f["spin"]["self"] > 0.9 * s["sum"], f["spin"], s)
    expect(f["three"]["self"] + f["one"]["self"] < 0.02 * s["sum"], f["three"], f["one"], s)


@claim
def the_time_to_the_first_sample_is_said_if_there_was_one():
    began = time.monotonic_ns()
    r = profile("-c", f"{known()} 200", "-F", "999", "--json")
    took, s = time.monotonic_ns() - began, summary(r)
    # The program runs for most of the rest, and is hit within its first milliseconds.
    expect(0 < s["first_sample_ns"] < took - s["sum"] / 2, s, took)
    r = profile("-c", "sleep 0.1", "-F", "1", "--json")
    expect(r.status == 1 and "first_sample_ns" not in summary(r), r)


@claim
def stacks_have_each_level_of_a_recursion():
    known_run()
    stacks = [(stack, n)
              for stack, n in folded(paths()["folded"])
              if "spin_[i]" in stack and "main" in stack]
    expect(stacks, "no stack of the program")
    for stack, _ in stacks:
        expect(stack.count("descend") == 20, stack)
        at = stack.index("main")
        expect(stack[at + 1:at + 21] == ["descend"] * 20 and stack[at + 21] in ("three", "one"),
               stack)


@claim
def the_shares_of_complete_assumed_and_cut_stacks_are_those_of_the_stacks():
    s = summary(known_run())
    expect(sum(s["ends"].values()) == s["samples"], s)
    cut = collections.Counter()
    with open(paths()["json"], encoding="utf-8") as file:
        stacks = [json.loads(line) for line in file]
    for o in stacks[:-1]:
        end = o["labels"].get("end", "complete")
        cut[end] += o["values"]["samples"]
        last = o["stack"][-1]["function"]
        expect((last == f"[cut: {end}]") == (end not in ("complete", "assumed")), o)
    ends = {end: n for end, n in s["ends"].items() if n}
    ends["complete"] = ends.get("complete", 0) + ends.pop("kernel-thread", 0)
    expect(dict(cut) == ends, cut, ends)


@claim
def a_process_that_runs_already_is_sampled_until_it_is_told_to_end():
    need_root()
    with subprocess.Popen([known(), "1000000"], stdout=subprocess.DEVNULL) as target:
        out = os.path.join(folder(), "running.folded")
        words = [CAIRN, "profile", "-p", str(target.pid), "-F", "499", "-o", out]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as p:
            wait_until_sampling(p.pid)
            time.sleep(2)
            p.send_signal(signal.SIGINT)
            text, err = p.communicate(timeout=60)
        alive = target.poll() is None
        target.kill()
    if p.returncode == 3:
        raise Skip(" ".join(err.split()))
    expect(alive, "the profiled process ended with the profiler")
    expect(p.returncode == 0 and "descend" in text, p.returncode, text, err)
    expect(any("three" in stack for stack, _ in folded(out)), text)


@claim
def stacks_of_a_process_that_runs_are_whole_from_the_first_one_on():
    """Its libraries' tables are made before it is sampled, in two seconds at most."""
    need_root()
    out = os.path.join(folder(), "first.json")
    script = "import ctypes.util, decimal, hashlib, json, re, sqlite3, ssl\nprint('here', flush=True)\n" \
             "while True: re.findall('a+b', json.dumps(list(range(3000))))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                          text=True) as target:
        if target.stdout.readline() != "here\n":
            raise Skip("this python has not all modules")
        begun = time.monotonic()
        r = profile("-p", str(target.pid), "-F", "499", "--duration", "1s", "-o", out, "--json",
                    "--no-cache", seconds=240)
        took = time.monotonic() - begun
        target.kill()
    s = summary(r)
    expect(r.status == 0 and s["samples"] > 0, r)
    # A machine that is so busy that they take longer has waited for them.
    expect(s["ends"]["not-ready"] == 0 or took > 3, s["ends"], took)


@claim
def stacks_of_a_command_with_large_libraries_are_whole_from_its_exec_on():
    need("clang")
    text = "".join(f"int f{i}(int a) {{ return a * {i} % (a + {i + 1}); }}\n" for i in range(300))
    source = write("many.c", text)
    command = f"clang -O2 -c -o {path_of('many.o')} {source}"
    r = profile("-c", command, "-F", "1999", "--json")
    s = summary(r)
    # A good part of it is over before the unwind table of its libLLVM could be made.
    expect(s["samples"] > 20, s)
    # Under sanitizers making it takes longer than a start may wait for it.
    expect(IS_SANITIZED or s["ends"]["not-ready"] <= 0.02 * s["samples"], s)


@claim
def several_processes_are_sampled_at_once():
    need_root()
    out = os.path.join(folder(), "several.json")
    with subprocess.Popen([known(), "1000000"], stdout=subprocess.DEVNULL) as one:
        with subprocess.Popen([known(), "1000000"], stdout=subprocess.DEVNULL) as two:
            r = profile("-p", str(one.pid), "-p", str(two.pid), "--duration", "2", "-o", out)
            two.kill()
        one.kill()
    expect(r.status == 0, r)
    with open(out, encoding="utf-8") as file:
        pids = {json.loads(line).get("labels", {}).get("pid") for line in file}
    expect(pids - {None} == {one.pid, two.pid}, pids, one.pid, two.pid)


@claim
def samples_say_which_thread_and_names_are_those_of_the_source():
    path = compile_c("threads", THREADS, compiler="g++",
                     flags=("-x", "c++", "-O2", "-g", "-pthread"))
    out = os.path.join(folder(), "threads.json")
    r = profile("-c", path, "-o", out, "--json")
    expect(r.status == 0, r)
    threads = collections.defaultdict(collections.Counter)
    with open(out, encoding="utf-8") as file:
        for line in file:
            o = json.loads(line)
            for frame in o.get("stack", ()):
                threads[frame["function"]][o["labels"]["thread"]] += o["values"]["samples"]
    for name, thread in (("deep::Burner<int>::spin", "first"), ("deep::Burner<short>::spin",
                                                                "second")):
        expect(set(threads[name]) == {thread}, name, dict(threads))
        expect(name in functions(r), name, r)
    r = profile("-c", path, "--no-demangle", "--json")
    expect("spin" in functions(r) or any("4spin" in (name or "") for name in functions(r)), r)
    expect(not any("Burner<" in (name or "") for name in functions(r)), r)


@claim
def it_ends_after_the_duration():
    need_root()
    with subprocess.Popen([known(), "1000000"], stdout=subprocess.DEVNULL) as target:
        r = profile("-p", str(target.pid), "--duration", "300ms", "--json")
        target.kill()
    expect(r.status == 0 and summary(r)["duration_ns"] >= 300000000, r)


@claim
def a_command_that_runs_longer_than_the_profile_is_told_to_end():
    # It holds the pipe that its output goes to: without its end this would last for minutes.
    r = profile("-c", f"{known()} 100000000", "--duration", "500ms", "--json")
    expect(r.status == 0 and "signal" not in r.err and summary(r)["samples"] > 0, r)


@claim
def a_command_that_takes_its_time_to_end_is_waited_for():
    script = os.path.join(folder(), "last.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write("trap 'sleep 1; echo last words; exit 9' TERM\nwhile :; do :; done\n")
    r = profile("-c", f"bash {script}", "--duration", "500ms")
    expect(r.status == 0 and "last words\n" in r.out and "exit status" not in r.err, r)


@claim
def the_commands_output_and_exit_status_are_kept():
    r = profile("-c", f"{known()} 400 7")
    expect(r.status == 0 and "done\n" in r.out and "exit status 7" in r.err, r)


@claim
def a_run_without_a_sample_is_an_answer():
    r = profile("-c", "sleep 0.1", "-F", "1", "--no-kernel")
    expect(r.status in (0, 1), r)
    expect((r.status == 1) == ("0 samples" in r.out) == ("no sample was taken" in r.err), r)


@claim
def code_made_at_run_time_has_its_name_and_its_caller():
    out = os.path.join(folder(), "jit.folded")
    r = profile("-c", f"{compile_c('made', JIT)} 60000", "-F", "999", "-o", out)
    expect(r.status == 0, r)
    stacks = folded(out)
    inside = sum(n for stack, n in stacks
                 if stack[-1] == "made:here_[j]" and stack[-3:-1] == ["main", "run"])
    expect(inside > 0.8 * sum(n for _, n in stacks), stacks, r)


@claim
def the_kernel_can_be_left_out():
    out = os.path.join(folder(), "kernel.folded")
    program = ["dd", "if=/dev/zero", "of=/dev/null", "bs=16M", "count=400"]
    r = profile("-c", " ".join(program), "-F", "999", "-o", out)
    expect(r.status == 0 and any(stack[-1].endswith("_[k]") for stack, _ in folded(out)), r)
    r = profile("-c", " ".join(program), "-F", "999", "--no-kernel", "-o", out)
    expect(r.status == 0 and not any("_[k]" in name for stack, _ in folded(out) for name in stack),
           r)


def blocked(take):
    """A run of sleep. A waking that the kernel's events leave out is told: once more then."""
    for _ in range(9):
        r = take("-c", "sleep 0.5", "--off-cpu", "--json")
        s = summary(r)
        if s["sum"] >= 400000000:
            break
        expect(s["lost"] and (s["samples"] or r.status == 1 and "lost" in r.err), r)
    return r


@claim
def time_blocked_is_where_a_thread_waits():
    out = os.path.join(folder(), "blocked.folded")
    r = blocked(lambda *words: profile(*words, "-o", out))
    s = summary(r)
    expect(r.status == 0, r)
    expect(s["event"] == "off-cpu" and s["hz"] == 0 and s["unit"] == "nanoseconds", s)
    waits = [(stack, n) for stack, n in folded(out) if any("nanosleep" in name for name in stack)]
    expect(sum(n for _, n in waits) >= 400000000, folded(out))
    # The way to the program that samples is not a part of what waits.
    expect(not any("bpf_" in stack[-1] for stack, _ in waits), waits)


@claim
def time_blocked_is_counted_in_a_pid_namespace():
    need_root()
    space = ("unshare", "--pid", "--fork", "--mount-proc")
    if run(*space, "true").status:
        raise Skip("this user can make no pid namespace")
    r = blocked(lambda *words: run(*space, CAIRN, "profile", *words))
    expect(r.status == 0 and summary(r)["sum"] >= 400000000, r)


@claim
def page_faults_are_counted_one_by_one():
    r = profile("-c", f"{known()} 1", "--event", "page-faults", "--json")
    s = summary(r)
    expect(r.status == 0 and s["value"] == "page-faults" and s["sum"] == s["samples"] > 10, r)


# Cuts its library off when it is done with it, as an update in place does.
CUT = """\
#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*work)(void) = (void (*)(void))dlsym(library, "work");
	for (int i = 0; i < 40; i++) work();
	if (truncate(argv[1], 64)) return 1;
	_exit(0);
}
"""
LIBRARY = "volatile unsigned long sink; void work(void) { for (unsigned long i = 0; i < 20000000; i++) sink += i; }\n"


@claim
def a_file_that_is_cut_off_costs_its_names_and_no_more():
    library = compile_c("cut-library", LIBRARY, flags=("-O1", "-g", "-shared", "-fPIC"))
    out = os.path.join(folder(), "cut.folded")
    r = profile("-c", f"{compile_c('cut', CUT, flags=('-O1', '-g', '-ldl'))} {library}", "-F",
                "999", "-o", out)
    expect(r.status == 0 and "became shorter" in r.err and os.path.getsize(library) == 64, r)
    stacks = folded(out)
    expect(
        any("main" in stack for stack, _ in stacks)
        and not any("work" in stack for stack, _ in stacks), stacks)
    expect(any("cut-library" in name for stack, _ in stacks for name in stack), stacks)


@claim
def everything_that_runs_is_sampled():
    need_root()
    with subprocess.Popen([known(), "1000000"], stdout=subprocess.DEVNULL) as target:
        r = profile("-a", "--duration", "2", "--json", "-o", path_of("all.json"), "-o",
                    path_of("all.pb.gz"), seconds=240)
        target.kill()
    expect(r.status == 0 and "spin" in functions(r), r)
    # Threads by name are the samples by their labels, each number of them.
    selves, tids = collections.Counter(), collections.defaultdict(set)
    with open(path_of("all.json"), encoding="utf-8") as file:
        for o in map(json.loads, file):
            if "stack" in o:
                selves[o["labels"]["thread"]] += o["values"]["cpu"]
                tids[o["labels"]["thread"]].add(o["labels"]["tid"])
    threads = summary(r)["threads"]
    expect({t["name"]: t["self"] for t in threads} == dict(selves), threads, selves)
    expect({t["name"]: t["threads"] for t in threads} == {n: len(t) for n, t in tids.items()},
           threads, tids)
    expect([t["self"] for t in threads] == sorted(selves.values(), reverse=True), threads)
    expect(len(threads) > 1 and sum(selves.values()) == summary(r)["sum"], threads)
    r = run(CAIRN, "profile", "show", path_of("all.pb.gz"), "--json")
    expect(summary(r)["threads"] == threads, summary(r), threads)
    r = run(CAIRN, "profile", "show", path_of("all.pb.gz"), "--top", "100000")
    table = r.out.split("name of thread\n")[1].split("\n\n")[0].splitlines()
    shown = [re.match(r" *\S+ \S+ +[0-9.]+% +(\d+)  (.*)", line).groups() for line in table]
    expect(shown == [(str(t["threads"]), t["name"]) for t in threads], shown, threads)


RENAMED = """\
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
static long used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noinline)) void burn(void)
{
	for (long begin = used(); used() - begin < 300000000;)
		for (int i = 0; i < 20000; i++) sink += i;
}
int main(int argc, char **argv)
{
	const char *names[] = {"one", "two", "three", argv[0]};
	for (int i = argv[1][0] - '0'; i < 3; i++) {
		prctl(PR_SET_NAME, names[i]);
		burn();
		if (argc > 2 && i < 2)
			execl(argv[0], argv[0], i ? "2" : "1", "again", NULL);
	}
	return 0;
}
"""


@claim_each("prctl", "exec")
def the_time_of_a_thread_is_that_of_the_name_that_it_had(how):
    need_root()
    again = ["again"] if how == "exec" else []
    path = compile_c("renamed", RENAMED, flags=("-O2", "-g"))
    r = profile("-c", " ".join((path, "0", *again)), "-F", "999", "--json", "--no-kernel",
                "-o", path_of("renamed.json"))
    expect(r.status == 0, r)
    times = {t["name"]: t["self"] for t in summary(r)["threads"]}
    expect(all(0.2e9 < times.get(name, 0) < 0.4e9 for name in ("one", "two", "three")), times)
    expect(sum(times.values()) == summary(r)["sum"], times)


def on_terminal(*words):
    """(exit status, what was written) of cairn profile with a terminal as its standard error."""
    need_root()
    ours, theirs = os.openpty()
    written = b""
    with subprocess.Popen([CAIRN, "profile", *words], stdout=subprocess.DEVNULL,
                          stderr=theirs) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                written += chunk
        status = process.wait(timeout=60)
    os.close(ours)
    return status, written.decode(errors="replace")


@claim
def a_terminal_shows_samples_losses_and_the_time_left():
    with subprocess.Popen([known(), "1000000"], stdout=subprocess.DEVNULL) as target:
        status, text = on_terminal("-p", str(target.pid), "--duration", "2")
        target.kill()
    if status == 3:
        raise Skip(text)
    lines = text.split("\r\x1b[K")
    expect(
        status == 0 and any(
            re.fullmatch(r"\d+ samples?, \d+ lost, [12] s left; Ctrl-C ends", line)
            for line in lines), text)
    expect("samples" not in lines[-1], "the line was not taken away", text)
    status, text = on_terminal("-c", f"{known()} 500")
    expect(status == 0 and " lost; Ctrl-C ends" in text and "left" not in text, text)


@claim
def sidecars_that_were_made_are_kept_unless_that_is_not_wanted():
    cache = os.path.join(folder(), "cache")
    environment = dict(os.environ, XDG_CACHE_HOME=cache)
    environment.pop("CAIRN_CACHE", None)
    out = os.path.join(folder(), "kept.folded")
    r = profile("-c", f"{known()} 500", "--no-cache", "-o", out, env=environment)
    expect(r.status == 0 and not os.path.exists(os.path.join(cache, "cairn")), r)
    expect(any("spin_[i]" in stack for stack, _ in folded(out)), r)
    # The command has ended by then, and with it the path through which its files were opened.
    r = profile("-c", f"{known()} 500", "-o", out, env=environment)
    identity = re.search(r"Build ID: (\w+)",
                         run(need("readelf"), "-n", known(), check=True).out).group(1)
    expect(r.status == 0 and identity + ".cairn" in os.listdir(os.path.join(cache, "cairn")), r)
    expect(any("spin_[i]" in stack for stack, _ in folded(out)), r)


# ---- its files ----

@claim
def the_folded_file_agrees_with_the_summary():
    r = known_run()
    s, f = summary(r), functions(r)
    stacks = folded(paths()["folded"])
    expect(sum(n for _, n in stacks) == s["sum"], s)
    own, total = collections.Counter(), collections.Counter()
    for stack, n in stacks:
        names = [re.sub(r"_\[[ikj]\]$", "", name) for name in stack]
        own[names[-1]] += n
        for name in set(names):
            total[name] += n
    for name in ("spin", "three", "one", "descend"):
        expect((own[name], total[name]) == (f[name]["self"], f[name]["total"]), name, own[name],
               total[name], f[name])


@claim
def pprofs_own_tool_agrees_with_the_summary():
    r = known_run()
    environment = dict(os.environ, GOCACHE=os.path.join(folder(), "go-cache"), HOME=folder(),
                       GO111MODULE="off")
    out = run(need("go"), "tool", "pprof", "-top", "-unit=ns", "-nodefraction=0", paths()["pb.gz"],
              env=environment, check=True).out
    rows = {}
    for line in out.splitlines():
        match = re.match(
            r"\s*(\d+)(?:ns)?\s+\S+%\s+\S+%\s+(\d+)(?:ns)?\s+\S+%\s+(.+?)(?: \(inline\))?$", line)
        if match:
            rows[match.group(3)] = (int(match.group(1)), int(match.group(2)))
    for name in ("spin", "three", "one", "descend"):
        f = functions(r)[name]
        expect(rows.get(name) == (f["self"], f["total"]), name, f, out)
    expect("File: known" in out, out)


@claim
def the_json_file_agrees_with_the_summary():
    s = summary(known_run())
    with open(paths()["json"], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    last = lines.pop()
    expect(last["summary"] and last["stacks"] == len(lines), last)
    expect(last["units"] == {"samples": "count", "cpu": "nanoseconds"}, last)
    expect(sum(o["values"]["samples"] for o in lines) == s["samples"], s)
    expect(sum(o["values"]["cpu"] for o in lines) == s["sum"], s)
    frames = [frame for o in lines for frame in o["stack"]]
    spins = [frame for frame in frames if frame["function"] == "spin"]
    expect(
        spins and all(f["inlined"] and f["file"].endswith("known.c") and "address" not in f
                      for f in spins), spins[:3])
    threes = [frame for frame in frames if frame["function"] == "three"]
    expect(
        threes and all("inlined" not in f and f["module"].endswith("/known-gcc") for f in threes),
        threes[:3])
    expect({o["labels"]["thread"] for o in lines} <= {"known-gcc", "cairn"}, lines[0])


@claim
def the_page_has_the_functions_and_says_what_was_profiled():
    known_run()
    with open(paths()["html"], encoding="utf-8") as file:
        text = file.read()
    expect("descend" in text and "spin" in text, text[:2000])
    expect("cairn profile -c" in text, text[:2000])


@claim
def if_a_file_cannot_be_written_the_others_are():
    good = os.path.join(folder(), "good.folded")
    r = profile("-c", f"{known()} 500", "-o", "/no/such/folder/x.html", "-o", good)
    expect(r.status == 2 and "/no/such/folder" in r.err, r)
    expect("function" in r.out and folded(good), "the summary or the other file is missing", r)


@claim
def a_full_disk_keeps_the_summary_and_the_other_files():
    link = os.path.join(folder(), "full.folded")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink("/dev/full", link)
    good = os.path.join(folder(), "good2.folded")
    r = profile("-c", f"{known()} 500", "-o", link, "-o", good)
    expect(r.status == 3 and "No space left" in r.err, r)
    expect("function" in r.out and folded(good), r)


def has_maps(pid):
    """Whether it has begun to load its BPF programs."""
    with contextlib.suppress(OSError):
        fds = f"/proc/{pid}/fd"
        return any("bpf" in os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds))
    return False


@claim
def a_start_that_others_held_up_is_told():
    need_root()
    p = subprocess.Popen([CAIRN, "profile", "-c", "sleep 0.1"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not has_maps(p.pid):
        time.sleep(0.001)
    p.send_signal(signal.SIGSTOP)
    time.sleep(4.5)
    p.send_signal(signal.SIGCONT)
    _, err = p.communicate()
    expect(p.returncode in (0, 1) and "sampling began after" in err and "nice -n -10" in err, err)


if __name__ == "__main__":
    main()
