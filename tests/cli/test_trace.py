#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace as people use it: command lines, streams, exit statuses, signals."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

from claims import (CAIRN, MAY_HAVE_CHANGED, SOURCE, TAKE_VALUES, Skip, cairn, claim, claim_each,
                    claim_each_of_many, compile_c, expect, folder, main, need, need_root, run)
from tracing import trace

COMPILERS = ("gcc", "clang")

# add is called 10 times: 5 times inlined in one(), 5 times in two(). In two() hidden is only in a
# register that no probe can read.
PROGRAM = """\
#include <stdio.h>
enum colour { RED, GREEN = 5 };
struct rec { unsigned int flag : 1; unsigned int kind : 3; enum colour colour; char name[8]; short pair[2]; };
static volatile long sink;
static inline __attribute__((always_inline)) void add(long number, const struct rec *rec, const char *text)
{
	sink = number;
	__asm__ volatile("" : : "r"(rec), "r"(text) : "memory");
}
__attribute__((noinline)) void one(long n, const struct rec *r)
{
	add(n, r, "one");
}
__attribute__((noinline)) void two(long n, const struct rec *r)
{
	sink = 0;
	add(n + 100, r, "two");
}
int main(void)
{
	struct rec r = { 1, 5, GREEN, "seven", { -1, 2 } };

	for (long i = 0; i < 5; i++) {
		one(i, &r);
		two(i, &r);
	}
	puts("done");
	return 3;
}
"""

# Runs until it is told to stop.
LOOP = """\
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t stop;
static void on_term(int sig) { stop = 1; }
__attribute__((noinline)) void tick(long n) { __asm__ volatile("" : : "r"(n) : "memory"); }
int main(int argc, char **argv)
{
	signal(SIGTERM, on_term);
	for (long n = 0; !stop; n++) {
		tick(n);
		if (argc > 1)
			usleep(1000);
	}
	return 0;
}
"""


def program(compiler="gcc"):
    return compile_c("traced", PROGRAM, compiler)


@contextlib.contextmanager
def looping(*args):
    path = compile_c("looping", LOOP)
    with subprocess.Popen([path, *args]) as process:
        try:
            yield process, path
        finally:
            process.kill()


def trace_in_pid_namespace(program_path, how, *words):
    """What cairn trace says in a pid namespace of its own of a process that @how starts there."""
    need_root()
    # The shell's child is the program only after its exec: its name tells.
    find = "pgrep -P $parent -x looping-gcc" if how else "pgrep -P $$ -x looping-gcc"
    script = (
        f"{how} {program_path} slow & parent=$!; "
        f"while ! pid=$({find}); do sleep .05; done; "
        f"timeout -s INT 20 {CAIRN} trace -p $pid {' '.join(words)}; echo status $?; kill -9 $pid")
    r = run(need("unshare"), "--pid", "--fork", "--mount-proc", "sh", "-c", script)
    if "unshare: " in r.err or "status 3" in r.out and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    return r


@claim
def a_process_in_a_pid_namespace_inside_the_tracers_is_refused():
    path = compile_c("looping", LOOP)
    r = trace_in_pid_namespace(path, "unshare --pid --fork", "tick", "-n", "3")
    expect("status 3" in r.out and "is in another pid namespace than this one" in r.err, r)
    # From outside of both, and from the same one, it is traced.
    r = trace_in_pid_namespace(path, "", "tick", "-n", "3")
    expect("status 0" in r.out and "3 events" in r.err and "child processes, if there were "
                                                           "any, were not traced" in r.err, r)


@claim
def children_that_cannot_be_followed_are_announced():
    r = trace_in_pid_namespace(compile_c("looping", LOOP), "", "-f", "tick", "-n", "3")
    expect("status 0" in r.out and "children are not traced" in r.err, r)


@claim
def a_command_in_a_pid_namespace_that_starts_another_is_told_to_be_half_seen():
    need_root()
    path = compile_c("looping", LOOP)
    r = run(need("unshare"), "--pid", "--fork", "--mount-proc", CAIRN, "trace", "--no-sidecar",
            "-c", f"unshare --pid --fork timeout 1 {path} slow", f"{path}:tick")
    if "unshare: " in r.err or r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect("0 events" in r.err and "child processes, if there were any, were not traced" in r.err,
           r)
    # Where the kernel reports them they are counted.
    r = trace("--no-sidecar", "-c", f"sh -c 'timeout 1 {path} slow; true'", f"{path}:tick")
    expect("1 child process was not traced" in r.err and "if there were any" not in r.err, r)


@claim
def what_the_first_screen_of_the_readme_shows_is_true():
    with open(os.path.join(SOURCE, "examples", "put.c"), encoding="utf-8") as file:
        path = compile_c("put", file.read(), "gcc")
    r = trace("--no-sidecar", "-c", path, "put")
    expect(r.status == 0 and re.search(r" put inlined in work\+0x\w+: idx=61, s=7\n", r.out), r)


@claim_each_of_many(*COMPILERS)
def a_command_is_traced_from_its_first_call_to_its_last(compiler):
    r = trace("--json", *TAKE_VALUES[compiler], "-c", program(compiler), "add")
    expect(r.status == 0, r)
    events = [json.loads(line) for line in r.lines() if line.startswith("{")]
    *events, summary = events
    numbers = [n for i in range(5) for n in (i, i + 100)]
    expect([e["args"]["number"] for e in events] == numbers, r)
    # A compiler may not say where a constant string is: then that is said, and nothing else.
    for event, text in zip(events, ["one", "two"] * 5):
        expect(event["args"]["text"] in (text, {"unavailable": "not live here"}), event)
    expect(all(e["kind"] == "inlined" for e in events), r)
    expect((summary["summary"], summary["events"], summary["lost"],
            summary["missed"]) == (True, 10, 0, 0), summary)
    expect("the command ended with exit status 3" in r.err, r)


@claim
def what_clang_may_have_changed_is_unavailable_until_asked_for():
    path = program("clang")
    *events, _ = [
        json.loads(line)
        for line in trace("--json", "-c", path, "add").lines()
        if line.startswith("{")
    ]
    expect(len(events) == 10, events)
    for event in events:
        expect(event["args"]["number"] == {"unavailable": MAY_HAVE_CHANGED}, event)
    r = trace("-c", path, "add(number)")
    expect(r.status == 1 and not r.out and MAY_HAVE_CHANGED in r.err, r)


@claim_each_of_many(*COMPILERS)
def structs_bit_fields_and_enumerators_are_shown_by_their_types(compiler):
    r = trace(*TAKE_VALUES[compiler], "-o", os.path.join(folder(), "events"), "-n", "1", "-c",
              program(compiler), "one(*r, r->kind, r->colour, r->pair[0], r->name)")
    with open(os.path.join(folder(), "events"), encoding="utf-8") as file:
        line = file.read()
    for part in [
            '*r={.flag = 1, .kind = 5, .colour = GREEN, .name = "seven", .pair = {-1, 2}}',
            "r->kind=5", "r->colour=GREEN", "r->pair[0]=-1", 'r->name="seven"'
    ]:
        expect(part in line, part, line, r)


@claim
def a_condition_is_decided_before_events_are_made():
    r = trace("--json", "-c", program(), "add(number) if number >= 100 && rec->kind == 5")
    *events, summary = [json.loads(line) for line in r.lines() if line.startswith("{")]
    expect([e["args"]["number"] for e in events] == [100, 101, 102, 103, 104], r)
    expect((summary["events"], summary["filtered"]) == (5, 5), summary)


@claim
def events_go_to_stdout_and_talk_to_stderr():
    r = trace("-c", program(), "one")
    lines = r.lines()
    expect(len(lines) == 6 and lines.count("done") == 1, r)
    expect(
        all(
            re.match(r" +\d+\.\d{6} \d+/\d+ traced-gcc one entry( of one)?: n=\d, r=0x", line)
            for line in lines
            if line != "done"), r)
    expect(
        "1 site attached" in r.err and "one: 5 events, 0 lost" in r.err and "attached in" in r.err,
        r)


@claim
def events_that_cannot_be_written_are_said_and_fail():
    for words in (("-o", "/dev/full", "-c", program(), "one"), ("--json", "-o", "/dev/full", "-c",
                                                                program(), "one")):
        r = trace(*words)
        expect(
            r.status == 3 and r.err.count("cannot write the events: No space left on device") == 1,
            r)
    r = run("sh", "-c", f"'{CAIRN}' trace -c '{program()}' one >/dev/full")
    expect(r.status == 3 and r.err.count("No space left on device") == 1, r)


@claim
def a_full_output_ends_the_trace_of_a_process_that_goes_on():
    with looping("slowly") as (process, _):
        r = trace("-p", process.pid, "-o", "/dev/full", "tick")
        expect(r.status == 3 and "cannot write the events" in r.err and process.poll() is None, r)


@claim
def n_ends_after_so_many_events():
    with looping("slowly") as (process, _):
        r = trace("-p", process.pid, "-n", "3", "tick")
        expect(r.status == 0 and len(r.lines()) == 3 and process.poll() is None, r)


@claim
def duration_ends_after_so_long():
    with looping("slowly") as (process, _):
        start = time.monotonic()
        r = trace("-p", process.pid, "--duration", "300ms", "tick")
        took = time.monotonic() - start
        expect(r.status == 0 and took >= 0.3 and len(r.lines()) > 10, took, r)


@claim
def the_end_of_the_process_ends_the_trace():
    with looping("slowly") as (process, _):
        with subprocess.Popen([CAIRN, "trace", "--max-slowdown", "off", "-p", str(process.pid),
                               "tick"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
            tracer.stdout.readline()
            process.terminate()
            out, err = tracer.communicate(timeout=20)
        expect(tracer.returncode == 0 and "0 lost" in err, out[-500:], err)


@claim_each("SIGINT", "SIGTERM")
def a_signal_detaches_and_prints_the_summary(name):
    need_root()
    with looping("slowly") as (process, _):
        with subprocess.Popen([CAIRN, "trace", "--max-slowdown", "off", "-p", str(process.pid),
                               "tick"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
            out = tracer.stdout.readline()
            tracer.send_signal(getattr(signal, name))
            rest, err = tracer.communicate(timeout=60)
            out += rest
        expect(tracer.returncode == 0, tracer.returncode, err)
        expect(re.search(r"tick: \d+ events?, 0 lost", err) and out.endswith("\n"), out[-200:], err)
        expect(process.poll() is None, "the traced process has ended")


def first_byte_of_tick(process, path):
    site, = cairn("sites", "--json", path, "tick", check=True).objects()
    with open(f"/proc/{process.pid}/maps", encoding="ascii") as file:
        base = next(int(line.split("-")[0], 16) for line in file if path in line)
    with open(f"/proc/{process.pid}/mem", "rb") as file:
        file.seek(base + int(site["addr"], 16))
        return file.read(1)


@claim
def a_killed_tracer_leaves_no_probe():
    need_root()
    with looping("slowly") as (process, path):
        before = first_byte_of_tick(process, path)
        with subprocess.Popen([CAIRN, "trace", "--max-slowdown", "off", "-p", str(process.pid),
                               "tick"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tracer:
            tracer.stdout.readline()
            expect(first_byte_of_tick(process, path) == b"\xcc", "no breakpoint was set")
            tracer.kill()
        for _ in range(50):
            if first_byte_of_tick(process, path) == before:
                break
            time.sleep(0.1)
        expect(first_byte_of_tick(process, path) == before, "a breakpoint was left behind")
        expect(process.poll() is None, "the traced process has ended")


@claim
def lost_events_are_counted_and_can_be_a_failure():
    with looping() as (process, _):
        r = trace("-p", process.pid, "--duration", "1", "--ring", "4", "--fail-on-loss", "-o",
                  "/dev/null", "tick")
    lost = re.search(r"tick: (\d+) events, (\d+) lost", r.err)
    expect(lost, r)
    if lost.group(2) == "0":
        raise Skip("this machine is so quick that nothing was lost")
    expect(r.status == 5, r)


@claim
def events_and_losses_together_are_the_calls():
    path = compile_c("million", """\
__attribute__((noinline)) void tick(long n) { __asm__ volatile("" : : "r"(n) : "memory"); }
int main(void) { for (long n = 0; n < 200000; n++) tick(n); return 0; }
""")
    r = trace("--json", "--ring", "64", "-c", path, "tick", "-o",
              os.path.join(folder(), "million.json"))
    expect(r.status == 0, r)
    numbers = []
    with open(os.path.join(folder(), "million.json"), encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            if "args" in event:
                numbers.append(event["args"]["n"])
    expect(
        event["events"] == len(numbers)
        and event["events"] + event["lost"] + event["missed"] == 200000, event)
    expect(numbers == sorted(set(numbers)), "an event came twice, or out of order")


# hidden is in a vector register in one of the two copies.
HALF = """\
static volatile double sink;
static inline __attribute__((always_inline)) void note(double hidden, long number)
{
	sink = hidden;
	__asm__ volatile("" : : "r"(number) : "memory");
}
__attribute__((noinline)) void in_vector(double d, long n) { note(d, n); }
__attribute__((noinline)) void in_constant(long n) { note(2.5, n); }
int main(void) { for (long i = 0; i < 4; i++) { in_vector(1.5, i); in_constant(i); } return 0; }
"""


# What the linker makes of one() and two() is one function, in which both copies of shared() begin
# at one address.
TWINS = """\
volatile int sink;
static inline __attribute__((always_inline)) void shared(int n) { sink = n; }
__attribute__((noinline)) void one(int n) { shared(n + 1); sink = 2; }
__attribute__((noinline)) void two(int m) { shared(m + 1); sink = 2; }
int main(void) { one(1); two(2); one(3); return 0; }
"""


@claim_each("gold", "lld")
def a_call_in_functions_that_the_linker_merged_is_one_event(linker):
    need("ld." + linker)
    path = compile_c(
        "twins." + linker, TWINS, "gcc",
        ("-O2", "-g", "-fno-ipa-icf", "-ffunction-sections", "-fuse-ld=" + linker, "-Wl,--icf=all"))
    addresses = {
        line.split()[0]
        for line in run(need("nm"), path, check=True).lines()
        if line.split()[-1] in ("one", "two")
    }
    expect(len(addresses) == 1, "nothing was merged", addresses)
    r = trace("--json", "-c", path, "shared")
    values = [o["args"]["n"] for o in r.objects() if "args" in o]
    expect(values == [2, 3, 4], r)


@claim
def a_listed_argument_that_is_unavailable_somewhere_refuses_everything():
    path = compile_c("half", HALF)
    r = trace("-c", path, "note(hidden)")
    expect(r.status == 1 and not r.out, r)
    expect(
        re.search(r"^  note inlined in in_vector\S* \(0x\w+\): ", r.err, re.M)
        and "in_constant" not in r.err, r)


@claim
def best_effort_attaches_the_rest_and_says_what_is_missing():
    path = compile_c("half", HALF)
    r = trace("--json", "--best-effort", "-c", path, "note(hidden, number)")
    *events, summary = r.objects()
    expect([e["args"]["number"] for e in events] == [0, 1, 2, 3], r)
    expect(all("in_constant" in e["site"] and e["args"]["hidden"] == 2.5 for e in events), r)
    expect((summary["attached"], summary["refused"]) == (1, 1) and "in_vector" in r.err, r)


@claim
def an_argument_that_is_not_listed_is_shown_as_unavailable_with_the_reason():
    path = compile_c("half", HALF)
    r = trace("-c", path, "note")
    expect(r.status == 0 and len(r.lines()) == 8, r)
    expect(len(re.findall(r"hidden=<unavailable: [^>]+>, number=\d", r.out)) == 4, r)
    expect(len(re.findall(r"hidden=2\.5, number=\d", r.out)) == 4, r)


@claim
def dry_run_shows_the_plan_without_privileges():
    path = program()
    words = [CAIRN, "trace", "--dry-run", "-c", path, "add(number)"]
    if os.geteuid() == 0:
        os.chmod(folder(), 0o755)
        words = [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", *words]
    r = run(*words)
    expect(
        r.status == 0
        and len(re.findall(r"^  0x\w+  inlined in (?:one|two)\+0x", r.out, re.M)) == 2, r)
    expect("number: %rdi" in r.out and "program 0" not in r.out and "done" not in r.out, r)
    expect("program 0" in run(*words, "-v").out, r)


@claim
def without_permission_it_says_what_would_help():
    path = program()
    words = [CAIRN, "trace", "-c", path, "add"]
    if os.geteuid() == 0:
        os.chmod(folder(), 0o755)
        words = [
            need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
            "--bounding-set=-all", *words
        ]
    r = run(*words)
    expect(r.status == 3 and not r.out and "sudo " in r.err, r)


@claim
def what_is_not_there_is_answered_with_no():
    path = program()
    for words, said in [(["-c", path, "nowhere"], "nowhere"), (["-p", "999999999",
                                                                "f"], "999999999"),
                        (["-p", os.getpid(), "libnosuch.so.7:f"], "libnosuch.so.7")]:
        r = trace(*words)
        expect(r.status == 1 and said in r.err and not r.out, r)


@claim
def sites_and_trace_say_the_same_of_a_file_that_does_not_do():
    bare = compile_c("bare", PROGRAM, flags=("-O2",))
    damaged = os.path.join(folder(), "damaged")
    with open(damaged, "wb") as file:
        file.write(b"\177ELF")
    for path, status in [(program(), 0), (bare, 3), ("/no/such/file", 2), (folder(), 2),
                         (damaged, 4)]:
        sites = cairn("sites", path, "add")
        traced = cairn("trace", "--dry-run", "-c", "true", f"{path}:add")
        expect((sites.status, traced.status) == (status, status), sites, traced)
        # A file without debug information may have symbols.
        said = traced.err
        if path == bare:
            expect(said.startswith(f"cairn: {bare} has no symbol add, and no debug "), traced)
            said = "cairn: " + said.split("\n", 1)[1]
        expect(status == 0 or sites.err == said, sites, traced)
    r = cairn("trace", "--dry-run", "-c", "true", "libnosuch.so.7:f")
    expect(r.status == 2 and "libnosuch.so.7" in r.err, r)


def kernel_function():
    with open("/proc/kallsyms", encoding="utf-8") as file:
        for line in file:
            _, kind, name = line.split()[:3]
            if kind == "T" and name == "vfs_read":
                return name
    raise Skip("/proc/kallsyms does not show functions")


@claim
def what_other_tools_call_a_probe_is_told_what_it_is():
    path = program()
    for probe, status, words in [("kprobe:tcp_ack", 3, "is a kernel function"),
                                 ("uretprobe:x:add", 3, "a function's return"),
                                 ("add%return", 1, "cairn has sites of calls only: add")]:
        r = cairn("trace", "--dry-run", "-c", path, probe)
        expect(r.status == status and words in r.err and not r.out, probe, r)
        if status == 1:
            r = cairn("sites", path, probe)
            expect(r.status == 1 and words in r.err and not r.out, probe, r)
    for spec, words in [("main.c:7", "is a line: cairn sites FILE --lines main.c:7"),
                        ("add+0x4", "cairn addr tells what is there")]:
        r = cairn("sites", path, spec)
        expect(r.status == 1 and words in r.err and not r.out, spec, r)
    r = cairn("trace", "--dry-run", path)
    expect(r.status == 2 and f"Write {path}:FUNC" in r.err, r)
    r = cairn("trace", "--dry-run", "add")
    expect(r.status == 2 and "which file? Write PATH:add" in r.err, r)


@claim
def a_function_of_the_kernel_is_told_from_a_mistyped_one():
    name = kernel_function()
    r = cairn("trace", "--dry-run", name)
    expect(r.status == 2 and f"{name} is a function of the kernel" in r.err, r)
    r = cairn("trace", "--dry-run", "-c", program(), name)
    expect(r.status == 1 and f"write kernel:{name}" in r.err, r)


@claim
def a_process_without_an_executable_is_told_from_none():
    with subprocess.Popen(["true"]) as process:
        # A zombie until it is waited for.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for words in (["sites", process.pid, "f"], ["trace", "--dry-run", "-p", process.pid, "f"]):
            r = cairn(*words)
            expect(r.status == 2 and "zombie" in r.err, r)


@claim
def a_probe_that_makes_no_sense_is_a_usage_error():
    for probe in ["add(", "add(nothing)", "add(number->x)", "add() if", "add(rec->nothing)"]:
        r = trace("-c", program(), probe)
        expect(r.status == 2 and r.err and not r.out, r)


def library_of(name):
    return compile_c(name, PROGRAM, flags=("-O2", "-g", "-fPIC", "-shared"))


def mapped_in(r):
    """What the summary says of the file of each probe."""
    return [p["mapped"] for p in r.objects()[-1]["probes"]]


@claim
def a_library_that_the_command_never_loads_is_said():
    library = library_of("unloaded")
    for command in (f"{need('sleep')} 0.3", "true"):
        r = trace("--json", "-c", command, f"{library}:one")
        expect(
            r.status == 0 and re.search(
                rf"^no event of \S+:one: process \d+ never mapped {library}$", r.err, re.M), r)
        expect(mapped_in(r) == [False], r)
    # A file that is loaded and not called is no such case.
    for command in ("sleep 0.3", "true"):
        r = trace("--json", "-c", f"env LD_PRELOAD={library} {command}", f"{library}:one")
        expect("no event of" not in r.err and mapped_in(r) == [True], r)


@claim
def a_library_that_is_there_for_a_moment_is_seen():
    library = library_of("brief")
    path = compile_c(
        "opens", """\
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *open_it(void *path) { void *it = dlopen(path, RTLD_NOW); return it && !dlclose(it) ? path : NULL; }
int main(int argc, char **argv)
{
	pthread_t thread;
	void *got = NULL;
	if (*argv[1] == 'c' && fork() == 0)
		_exit(!open_it(argv[2]));
	if (*argv[1] == 't')
		return pthread_create(&thread, NULL, open_it, argv[2]) || pthread_join(thread, &got) || !got;
	if (*argv[1] == 'm')
		return !open_it(argv[2]);
	wait(NULL);
	return 0;
}
""", flags=("-O2", "-g", "-pthread"))
    for who, options, mapped in (("main", [], True), ("thread", [], True), ("child", [], False),
                                 ("child", ["-f"], True)):
        r = trace("--json", *options, "-c", f"{path} {who} {library}", f"{library}:one")
        expect(r.status == 0 and mapped_in(r) == [mapped], who, options, r)
        expect(mapped != ("never mapped" in r.err), who, options, r)


@claim
def when_more_is_mapped_than_can_be_noted_the_mappings_are_looked_at():
    library = library_of("after-many")
    path = compile_c("maps", """\
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 20000; i++)
		munmap(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	usleep(500000);
	return 0;
}
""")
    r = trace("--json", "-c", path, f"{library}:one")
    expect(
        re.search(rf"^no event of \S+:one: {library} was never seen among the files", r.err, re.M)
        and mapped_in(r) == [False], r)
    r = trace("--json", "-c", f"env LD_PRELOAD={library} {path}", f"{library}:one")
    expect("no event of" not in r.err and mapped_in(r) == [True], r)


@claim
def a_command_is_split_as_a_shell_does():
    path = compile_c(
        "words", """\
#include <stdio.h>
__attribute__((noinline)) void word(const char *text) { __asm__ volatile("" : : "r"(text) : "memory"); }
int main(int argc, char **argv) { for (int i = 1; i < argc; i++) word(argv[i]); return 0; }
""")
    r = trace("--json", "-c",
              f"""{path} plain 'two words' "a \\"quoted\\" one" back\\ slash '' x''y""", "word")
    words = [e["args"]["text"] for e in r.objects()[:-1]]
    expect(words == ["plain", "two words", 'a "quoted" one', "back slash", "", "xy"], words, r)


@claim
def a_command_that_a_signal_ends_is_said():
    path = compile_c("aborting", """\
#include <stdlib.h>
__attribute__((noinline)) void last(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }
int main(int c, char **v) { last(c); abort(); }
""")
    r = trace("-c", path, "last")
    expect(r.status == 0 and len(r.lines()) == 1 and "ended by signal 6" in r.err, r)


@claim
def doctor_tries_tracing_and_says_how_it_went():
    findings = cairn("doctor", "--json").objects()
    for finding in findings:
        expect(
            set(finding) == {"what", "ok", "detail", "fix"} and isinstance(finding["ok"], bool),
            finding)
    if os.geteuid() == 0:
        os.chmod(folder(), 0o755)
        r = run(need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups",
                "--bounding-set=-all", CAIRN, "doctor")
        expect(r.status == 1 and "fix: sudo cairn doctor" in r.out, r)


if __name__ == "__main__":
    main()
