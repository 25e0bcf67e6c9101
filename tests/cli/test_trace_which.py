#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which processes cairn trace is of: several, children, containers, cgroups, names, libraries that
are loaded later."""

import contextlib
import json
import os
import shutil
import re
import shutil
import signal
import subprocess
import time

from cgroups import cgroup
from claims import (CAIRN, Skip, claim, claim_each, compile_c, expect, folder, main, need,
                    need_root, run)
from tracing import trace

# tick() gets the number of the process that calls it: each event tells twice who made it.
PROGRAM = """\
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void tick(int pid) { __asm__ volatile("" : : "r"(pid) : "memory"); }
static void (*plug)(int);
static volatile sig_atomic_t step;
static void on_usr1(int sig) { step = 1; }
int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	signal(SIGUSR1, on_usr1);
	puts("ready");
	if (!strcmp(mode, "write"))
		for (int i = 0; i < 3; i++) {
			tick(getpid());
			puts("out");
			fputs("err\\n", stderr);
		}
	fflush(stdout);
	while (strcmp(mode, "write")) {
		if (step && !strcmp(mode, "load")) {
			void *lib = dlopen(argv[2], RTLD_NOW);
			plug = lib ? dlsym(lib, "plug") : 0;
		} else if (step && !strcmp(mode, "fork")) {
			fork();
		} else if (step && !strcmp(mode, "exec")) {
			execl(argv[2], argv[2], NULL);
		}
		step = 0;
		tick(getpid());
		if (plug)
			plug(getpid());
		usleep(2000);
	}
	return 0;
}
"""
PLUG = """\
__attribute__((noinline)) void plug(int pid) { __asm__ volatile("" : : "r"(pid) : "memory"); }
"""


def program():
    return compile_c("ticking", PROGRAM)


def plug_library():
    path = os.path.join(folder(), "libplug.so")
    if not os.path.exists(path):
        shutil.copy(compile_c("plug", PLUG, flags=("-O2", "-g", "-shared", "-fPIC")), path)
    return path


@contextlib.contextmanager
def ticking(*args, path=None, before=()):
    """A process that ticks, and with its children is ended in the end."""
    with subprocess.Popen([*before, path or program(), *args],
                          stdout=subprocess.PIPE,
                          text=True,
                          start_new_session=True) as process:
        try:
            expect(process.stdout.readline() == "ready\n", "it does not run", args)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def tracing(*words):
    """A trace with its events in JSON; sites are attached."""
    need_root()
    with subprocess.Popen([CAIRN, "trace", "--json", "--no-sidecar", *map(str, words)],
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          text=True) as tracer:
        said = ""
        while not re.search(r"sites? attached", said):
            line = tracer.stderr.readline()
            said += line
            if "CONFIG_" in said:
                raise Skip(" ".join(said.split()))
            expect(line, "it ended", said)
        tracer.said = said
        try:
            yield tracer
        finally:
            tracer.kill()


def pids_of(r):
    """By whom events were, as the tracer and as the program says."""
    events = [o for o in r.objects() if "args" in o]
    for event in events:
        expect(event["args"]["pid"] == event["pid"], event)
    return {event["pid"] for event in events}


def some_events(tracer, is_enough):
    """Events until @is_enough(pids)."""
    seen = {}
    deadline = time.monotonic() + 30
    while not is_enough(set(seen)):
        expect(time.monotonic() < deadline, "waited in vain", seen)
        event = json.loads(tracer.stdout.readline())
        expect(event["args"]["pid"] == event["pid"], event)
        seen[event["pid"]] = event
    return set(seen)


@claim
def several_processes_are_traced_and_no_others():
    with ticking() as one, ticking() as two, ticking():
        for words in (("-p", f"{one.pid},{two.pid}"), ("-p", one.pid, "-p", two.pid),
                      ("-p", f"{one.pid},{one.pid}", "--pid", two.pid)):
            r = trace("--json", "--no-sidecar", *words, "-n", "40", "tick")
            expect(r.status == 0 and pids_of(r) == {one.pid, two.pid}, r)


@claim
def the_trace_ends_when_the_last_of_its_processes_has_ended():
    with ticking() as one, ticking() as two, tracing("-p", f"{one.pid},{two.pid}", "tick") as t:
        some_events(t, {one.pid, two.pid}.__le__)
        one.kill()
        one.wait()
        time.sleep(0.2)
        expect(t.poll() is None, "it ended with the first")
        two.kill()
        two.wait()
        out, err = t.communicate(timeout=20)
        expect(t.returncode == 0 and json.loads(out.splitlines()[-1])["lost"] == 0, err)


@claim
def the_name_of_the_program_that_a_process_runs_is_a_path():
    with ticking() as one, ticking() as two:
        name = os.path.basename(program())
        r = trace("--json", "-p", f"{one.pid},{two.pid}", "-n", "40", name + ":tick")
        expect(r.status == 0 and pids_of(r) == {one.pid, two.pid}, r)
        words = ("trace", "--dry-run", "-p", one.pid)
        expect(run(CAIRN, *words, name + ":tick").status == 0)
        r = run(CAIRN, *words, name + "x:tick")
        expect(r.status != 0 and f"{name}x:tick" in r.err, r)
        # A line of a function that has the program's name, not a line of the program.
        r = run(CAIRN, *words, name + ":5")
        expect("of which function" not in r.err, r)
    copy = os.path.join(folder(), "replaced")
    shutil.copy(program(), copy)
    with ticking(path=copy) as one:
        os.unlink(copy)
        r = trace("--json", "-p", one.pid, "-n", "3", "replaced:tick")
        expect(r.status == 0 and pids_of(r) == {one.pid}, r)
    r = run(CAIRN, "trace", "--dry-run", "-c", program(), name + ":tick")
    expect(r.status == 0 and f"1 site in {program()}" in r.out, r)
    expect("which file?" in run(CAIRN, "trace", "--dry-run", name + ":tick").err)


@claim
def what_is_no_process_is_refused():
    for words in ("1,x", "x", "1,", ",1", "0", "-1", "99999999999", "1 2"):
        r = run(CAIRN, "trace", f"--pid={words}", "tick")
        expect(r.status == 2 and "not a process id" in r.err, words, r)
    with ticking() as one:
        r = trace("-p", f"{one.pid},4194304", "tick")
        expect(r.status == 1 and "there is no process 4194304" in r.err, r)
        r = trace("-p", f"{one.pid},{os.getpid()}", "tick")
        expect(r.status == 1 and "run different programs" in r.err, r)
    for words in (("-p", "1", "--comm", "x"), ("-c", "true", "--cgroup", "/"), ("-f", ),
                  ("--command-output", "x", "-p", "1")):
        expect(run(CAIRN, "trace", *words, "tick").status == 2, words)


@claim
def children_of_all_named_processes_are_followed():
    with ticking("fork") as one, ticking("fork") as two, ticking("fork") as other:
        other.send_signal(signal.SIGUSR1)
        one.send_signal(signal.SIGUSR1)
        child = wait_for_child(one)
        with tracing("-f", "-p", f"{one.pid},{two.pid}", "tick") as t:
            expect("1 child process that runs already is traced, too" in t.stderr.readline(), t)
            two.send_signal(signal.SIGUSR1)
            grandchild = wait_for_child(two)
            os.kill(child, signal.SIGUSR1)
            wanted = {one.pid, two.pid, child, grandchild}
            pids = some_events(t, lambda seen: wanted < seen)
            expect(len(pids) == 5 and other.pid not in pids, pids, wanted)
        with tracing("-p", f"{one.pid},{two.pid}", "--duration", "300ms", "tick") as t:
            out, err = t.communicate(timeout=20)
            pids = {json.loads(line)["pid"] for line in out.splitlines() if '"args"' in line}
            expect(pids == {one.pid, two.pid}, pids, err)


def wait_for_child(process):
    for _ in range(200):
        found = run(need("pgrep"), "-P", str(process.pid)).out.split()
        if found:
            return int(found[0])
        time.sleep(0.01)
    raise AssertionError("no child")


@claim
def without_processes_all_that_map_the_file_are_traced_and_that_is_said():
    with ticking() as one, ticking() as two:
        r = trace("--json", "--no-sidecar", "-n", "40", f"{program()}:tick")
        expect(r.status == 0 and {one.pid, two.pid} <= pids_of(r), r)
        expect("all processes that map the probed files are traced" in r.err, r)


@claim
def processes_are_traced_by_name_also_those_that_start_later():
    other = os.path.join(folder(), "another-name")
    with contextlib.suppress(FileExistsError):
        os.symlink(program(), other)
    name = os.path.basename(program())[:15]
    with ticking() as one, ticking(path=other) as stranger, \
            tracing("--comm", name, f"{program()}:tick") as t:
        some_events(t, {one.pid}.__le__)
        with ticking() as late, ticking("exec", other) as leaves:
            pids = some_events(t, {one.pid, late.pid, leaves.pid}.__le__)
            expect(stranger.pid not in pids, pids)
            # Its name is another one once it has executed another program.
            leaves.send_signal(signal.SIGUSR1)
            leaves.stdout.readline()
            t.send_signal(signal.SIGINT)
            t.communicate(timeout=20)
        r = trace("--json", "--no-sidecar", "--comm", "another-name", "-n", "5",
                  f"{program()}:tick")
        expect(pids_of(r) == {stranger.pid} and "processes with the name another-name" in r.err, r)
    r = trace("--comm", "sixteen-bytes-it", f"{program()}:tick")
    expect(r.status != 0 and "1 to 15 bytes" in r.err, r)


def move(process, directory):
    with open(os.path.join(directory, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write(str(process.pid))


@claim
def processes_of_a_cgroup_are_traced_and_of_those_below_it():
    probe = f"{program()}:tick"
    with cgroup("inner") as inside:
        inner = os.path.join(inside, "inner")
        with ticking() as one, ticking("fork") as two, ticking():
            move(one, inside)
            move(two, inner)
            with tracing("--cgroup", inside, probe) as t:
                pids = some_events(t, {one.pid, two.pid}.__le__)
                two.send_signal(signal.SIGUSR1)
                child = wait_for_child(two)
                pids = some_events(t, {one.pid, two.pid, child}.__le__)
                expect(pids == {one.pid, two.pid, child}, pids)
            r = trace("--json", "--no-sidecar", "--cgroup", inner, "-n", "20", probe)
            expect(pids_of(r) == {two.pid, child} and f"in {inner} are traced" in r.err, r)
            # In a namespace of cgroups the root is out of reach.
            view = os.path.join(folder(), "view")
            os.makedirs(view, exist_ok=True)
            enter = ("sh", "-c", f"echo $$ >{inside}/cgroup.procs; exec unshare --cgroup --mount "
                     f"sh -c 'mount -t cgroup2 none {view} && exec \"$@\"' sh \"$@\"", "sh")
            r = run(*enter, CAIRN, "trace", "--json", "--no-sidecar", "--cgroup", f"{view}/inner",
                    "-n", "20", probe)
            expect(r.status == 0 and pids_of(r) == {two.pid, child}, r)
            os.kill(child, signal.SIGKILL)
        wait_until_empty(inside, inner)
    for path in (folder(), "/no/such"):
        r = trace("--cgroup", path, probe)
        expect(r.status != 0 and path in r.err, r)


@claim
def a_cgroup_that_is_made_again_is_followed():
    with cgroup("inner") as inside:
        inner = os.path.join(inside, "inner")
        with tracing("--cgroup", inner, f"{program()}:tick") as t:
            with ticking() as one:
                move(one, inner)
                some_events(t, {one.pid}.__le__)
            wait_until_empty(inner)
            os.rmdir(inner)
            os.mkdir(inner)
            with ticking() as two:
                move(two, inner)
                some_events(t, {two.pid}.__le__)
        wait_until_empty(inner)


def wait_until_empty(*directories):
    for directory in directories:
        for _ in range(200):
            with open(os.path.join(directory, "cgroup.procs"), encoding="ascii") as file:
                if not file.read():
                    break
            time.sleep(0.01)


@claim
def a_path_is_looked_up_in_the_mounts_of_the_process():
    need_root()
    # The same path is another file inside.
    outside = os.path.join(folder(), "place")
    inside = os.path.join(folder(), "inside")
    for path in (outside, inside):
        os.makedirs(path, exist_ok=True)
        shutil.copy(program(), os.path.join(path, "served"))
        shutil.copy(plug_library(), os.path.join(path, "libplug.so"))
    script = f"mount --bind {inside} {outside} && exec {outside}/served load {outside}/libplug.so"
    if run(need("unshare"), "--mount", "true").status:
        raise Skip("a mount namespace cannot be made here")
    with ticking(path="unshare", *("--mount", "sh", "-c", script)) as one, \
            ticking(path=f"{outside}/served"):
        for head in ("", f"{outside}/served:", f"/proc/{one.pid}/root{outside}/served:"):
            r = trace("--json", "--no-sidecar", "-p", one.pid, "-n", "5", f"{head}tick")
            expect(r.status == 0 and pids_of(r) == {one.pid}, head, r)
        # What is not loaded yet is that of the process, too.
        expect_loaded_later(one, f"{outside}/libplug.so")


@claim
def a_process_with_another_root_has_its_own_files():
    need_root()
    root = os.path.join(folder(), "root")
    os.makedirs(root, exist_ok=True)
    needed = [
        word for line in run("ldd", program(), check=True).lines() for word in line.split()
        if word.startswith("/")
    ]
    for path in needed:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    os.makedirs(root + "/usr/lib", exist_ok=True)
    shutil.copy(plug_library(), root + "/usr/lib/libplug.so")
    shutil.copy(program(), root + "/served")
    with ticking("load", "/usr/lib/libplug.so", path="/served",
                 before=(need("chroot"), root)) as one:
        for head in ("", "/served:"):
            r = trace("--json", "--no-sidecar", "-p", one.pid, "-n", "5", f"{head}tick")
            expect(r.status == 0 and pids_of(r) == {one.pid}, r)
        expect_loaded_later(one, "libplug.so")


def expect_loaded_later(process, name):
    with tracing("-p", process.pid, f"{name}:plug(pid)") as t:
        expect(
            f"not loaded yet; its calls are seen once process {process.pid} has loaded it"
            in t.said, t.said)
        process.send_signal(signal.SIGUSR1)
        some_events(t, {process.pid}.__le__)
    # Now it is.
    r = trace("--json", "--no-sidecar", "-p", process.pid, "-n", "5", f"{name}:plug")
    expect(r.status == 0 and pids_of(r) == {process.pid} and "not loaded" not in r.err, r)


@claim
def a_library_that_is_never_loaded_is_told_from_a_function_that_is_never_called():
    with ticking() as one:
        r = trace("--json", "-p", one.pid, "--duration", "300ms", f"{plug_library()}:plug")
        expect(r.status == 0 and "was never seen among the files that process" in r.err, r)
        expect(r.objects()[-1]["probes"][0]["mapped"] is False, r)
        # A program that it does not run is refused.
        r = trace("-p", one.pid, f"{shutil.which('true')}:main")
        expect(r.status == 1 and "does not map" in r.err, r)


@claim_each("text", "json")
def the_output_of_a_command_is_kept_apart(how):
    out = os.path.join(folder(), "out")
    r = trace(*(["--json"] if how == "json" else []), "--no-sidecar", "--command-output", out, "-c",
              f"{program()} write", "tick")
    with open(out, encoding="ascii") as file:
        expect(sorted(file.read().split()) == ["err"] * 3 + ["out"] * 3 + ["ready"], r)
    expect(r.status == 0 and "out\n" not in r.out and "\nerr" not in r.err, r)
    expect(len(r.lines()) == (4 if how == "json" else 3), r)


main()
