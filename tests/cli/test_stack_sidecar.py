#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack from sidecars: rows, symbols, inlined calls and lines are those of the file and its
debug information."""

import json
import os
import re
import shutil
import time

from claims import CAIRN, Running, cairn, claim, compile_c, expect, folder, main, run
from sidecars import seal

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
volatile int sink;
int ends[2];
static inline __attribute__((always_inline)) long take(void) { char c; return read(ends[0], &c, 1); }
__attribute__((noinline)) static void deep(int n) { if (n <= 0) sink += take(); else deep(n - 1); sink++; }
static void *thread(void *arg) { deep(5); return arg; }
int main(void)
{
	pthread_t t[3];
	prctl(PR_SET_PDEATHSIG, 9);
	sink += pipe(ends);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, thread, 0);
	puts("ready");
	fflush(stdout);
	deep(7);
}
"""


def are_reading(pid):
    """Whether all four threads stand where they will stay: in read(2), which is system call 0."""
    folder_of_threads = f"/proc/{pid}/task"
    calls = []
    for tid in os.listdir(folder_of_threads):
        with open(os.path.join(folder_of_threads, tid, "syscall"), encoding="ascii") as file:
            calls.append(file.read().split()[0])
    return calls == ["0"] * 4


class Waiting(Running):
    """A process of PATH whose threads all wait."""

    def __init__(self, path):
        super().__init__(path)
        self.process.stdout.readline()
        for _ in range(2000):
            if are_reading(self.pid):
                return
            time.sleep(0.01)
        self.__exit__()
        raise AssertionError("its threads do not get where they wait")


def program():
    path = os.path.join(folder(), "deep-gcc")
    flags = ("-O2", "-g", "-pthread", "-fno-optimize-sibling-calls")
    return path if os.path.exists(path) else compile_c("deep", PROGRAM, flags=flags)


def cache(name):
    """An environment with a cache of its own, and where that is."""
    path = os.path.join(folder(), name)
    return {**os.environ, "XDG_CACHE_HOME": path, "CAIRN_CACHE": "keep"}, os.path.join(
        path, "cairn")


@claim
def what_a_sidecar_tells_is_what_the_file_tells():
    env, where = cache("same")
    with Waiting(program()) as p:
        for words in ((), ("-s",), ("--json",)):
            plain = cairn("stack", "--no-cache", *words, p.pid)
            first = cairn("stack", *words, p.pid, env=env)
            second = cairn("stack", *words, p.pid, env=env)
            expect(plain.status == first.status == second.status == 0, plain, first, second)
            without_times = [re.sub(r'"stopped_ns":\d+', "", r.out) for r in (plain, first, second)]
            expect(without_times[0] == without_times[1] == without_times[2], plain, first, second)
            expect("deep" in plain.out and (words or "(inlined)" in plain.out), plain)
    expect(any(name.endswith(".cairn") for name in os.listdir(where)), os.listdir(where))


@claim
def arguments_that_a_sidecar_cannot_have_are_said_to_be_missing():
    path = os.path.join(folder(), "deep-stripped")
    shutil.copy(program(), path)
    cairn("sidecar", path, check=True)
    run("strip", path, check=True)
    with Waiting(program()) as p:
        whole = cairn("stack", "--args", p.pid)
        expect("(n=" in whole.out and "deep-gcc: no arguments" not in whole.err, whole)
    with Waiting(path) as p:
        r = cairn("stack", "--args", p.pid)
        expect(r.status == 0 and "deep" in r.out and "(n=" not in r.out, r)
        said = [line for line in r.err.splitlines() if "deep-stripped: no arguments: its debug "
                                                       "information is not here" in line]
        expect(len(said) == 1, r)


def with_debug_file(name):
    """What strip leaves of the program, whose debug file is found beside it; and the same without
    that link."""
    path, bare = os.path.join(folder(), name), os.path.join(folder(), name + "-bare")
    run("objcopy", "--only-keep-debug", program(), path + ".debug", check=True)
    run("strip", program(), "-o", bare, check=True)
    run("objcopy", f"--add-gnu-debuglink={path}.debug", bare, path, check=True)
    return path, bare


@claim
def a_stripped_program_loses_nothing_of_its_debug_file_to_a_sidecar():
    """With a sidecar no debug file is looked for: names and lines, and arguments, are those that it
    gives."""
    path, _ = with_debug_file("deep-linked")
    env, where = cache("linked")
    with Waiting(path) as p:
        for words in ((), ("--args",), ("--json",), ("--args", "--json")):
            told = []
            for more, around in ((("--no-cache",), {**env, "CAIRN_CACHE":
                                                    "off"}), ((), env), ((), env)):
                r = cairn("stack", *more, *words, p.pid, env=around)
                expect(r.status == 0 and "deep-linked: no arguments" not in r.err, r)
                told.append(re.sub(r'"stopped_ns":\d+|stopped for .*', "", r.out))
            expect(told[0] == told[1] == told[2], *told)
            expect(
                "deep.c" in told[0]
                and ("--args" not in words or '"n"' in told[0] or "(n=" in told[0]), told[0])
        frames = json.loads(cairn("stack", "--json", p.pid).out.splitlines()[0])["frames"]
        at = [frame["pc"] for frame in frames if frame["path"] == path][0]
        codes = [
            cairn("code", p.pid, "--at", at, env={**env, "CAIRN_CACHE": how}, check=True).out
            for how in ("off", "keep")
        ]
        expect(codes[0] == codes[1] and path in codes[0], *codes)
    expect(any(name.endswith(".cairn") for name in os.listdir(where)), os.listdir(where))


@claim
def arguments_are_said_to_be_missing_with_what_a_walk_left_in_the_cache():
    path, bare = with_debug_file("deep-walked")
    env, _ = cache("walked")
    with Waiting(path) as p:
        for _ in range(2):
            expect(cairn("stack", p.pid, env=env).status == 0)
    with Waiting(bare) as p:
        r = cairn("stack", "--args", p.pid, env=env)
        expect(r.status == 0 and "deep.c:" in r.out and "(n=" not in r.out, r)
        expect(
            r.err.count("deep-walked-bare: no arguments: its debug information is not here") == 1,
            r)


def frames_without_addresses(r):
    """What is told of each frame in the program itself: libc is where the loader put it."""
    told = [
        re.sub(r"0x[0-9a-f]+", "ADDRESS", line)
        for line in r.out.splitlines()
        if line.startswith("#") and "deep" in line
    ]
    return [line.replace("deep-fetched", "deep-gcc") for line in told]


@claim
def arguments_come_from_the_debug_file_that_a_debuginfod_client_keeps():
    path, env = os.path.join(folder(), "deep-fetched"), {**os.environ, "CAIRN_CACHE": "off"}
    env["DEBUGINFOD_CACHE_PATH"] = os.path.join(folder(), "client")
    env.pop("DEBUGINFOD_URLS", None)
    shutil.copy(program(), path)
    build_id = run("readelf", "-n", path, check=True).out.split("Build ID: ")[1].split()[0]
    os.makedirs(os.path.join(env["DEBUGINFOD_CACHE_PATH"], build_id))
    run("objcopy", "--only-keep-debug", path,
        os.path.join(env["DEBUGINFOD_CACHE_PATH"], build_id, "debuginfo"), check=True)
    run("strip", path, check=True)
    with Waiting(program()) as p:
        told = frames_without_addresses(cairn("stack", "--args", p.pid, env=env))
    with Waiting(path) as p:
        now = cairn("stack", "--args", "--debuginfod", p.pid, env=env)
        expect(
            frames_without_addresses(now) == told and sum("(n=" in line for line in told) > 20,
            told, now)
        expect("found the debug file in the debuginfod client's cache: " in now.err, now)
        # Nobody asked for it.
        r = cairn("stack", "--args", p.pid, env=env)
        expect("(n=" not in r.out and "found" not in r.err, r)


@claim
def names_alone_make_no_sidecar():
    env, where = cache("none")
    with Waiting(program()) as p:
        r = cairn("stack", "-s", p.pid, env=env)
    expect(r.status == 0 and not os.path.exists(where), r)


@claim
def every_thread_and_every_round_is_numbered_on_its_own():
    """What is said of an address is found once; its number and where it is are each frame's."""
    with Waiting(program()) as p:
        r = cairn("stack", "--no-cache", "-n", "2", "-i", "1ms", p.pid)
    stacks = re.split(r"^thread .*\n", r.out, flags=re.M)[1:]
    expect(r.status == 0 and len(stacks) == 8, r)
    for text in stacks:
        numbers = [int(n) for n in re.findall(r"^#(\d+) ", text, re.M)]
        expect(numbers == list(range(len(numbers))), text)
        expect(len(re.findall(r"^#\d+ +0x[0-9a-f]{16}  deep\+0x", text, re.M)) >= 3, text)
    expect(sorted(stacks[:4]) == sorted(stacks[4:]), r)


@claim
def a_stripped_file_is_told_by_the_sidecar_beside_it():
    path = os.path.join(folder(), "stripped")
    shutil.copy(program(), path)
    run(CAIRN, "sidecar", "-o", path + ".cairn", program(), check=True)
    run("strip", "--strip-all", path, check=True)
    with Waiting(path) as p:
        r = cairn("stack", "--no-cache", p.pid)
        expect(
            r.status == 0
            and re.search(r"  deep\+0x[0-9a-f]+ at .*deep\.c:\d+:\d+  stripped$", r.out, re.M), r)
        os.unlink(path + ".cairn")
        r = cairn("stack", "--no-cache", p.pid)
        own = [line for line in r.out.splitlines() if line.endswith("  stripped")]
        expect(r.status == 0 and own and not any(" at " in line for line in own), r)


@claim
def damaged_rows_of_a_sidecar_end_a_stack_and_nothing_else():
    env, where = cache("damaged")
    with Waiting(program()) as p:
        good = cairn("stack", p.pid, env=env)
        expect(good.status == 0, good)
        ids = run("readelf", "-n", program(), check=True).out
        path = os.path.join(where, re.search(r"Build ID: (\w+)", ids).group(1) + ".cairn")
        table = run("readelf", "-SW", path, check=True).out
        off, size = (int(
            n, 16) for n in re.search(r" \.cairn\.cfi +PROGBITS +\w+ (\w+) (\w+)", table).groups())
        with open(path, "rb") as file:
            whole = file.read()
        # The header refuses to be anything else; of rows and rules any value may be there.
        for at in range(off, off + size, 7):
            with open(path, "wb") as file:
                file.write(seal(whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:]))
            r = cairn("stack", "-s", p.pid, env=env)
            expect(r.status in (0, 1) and len(re.findall("^thread ", r.out, re.M)) == 4, at - off,
                   r)


main()
