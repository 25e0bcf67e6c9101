#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile of processes that lose their main thread, and of files that are written again while
they are sampled."""

import collections
import json
import os
import shutil
import signal
import subprocess
import time

from claims import CAIRN, Running, claim, compile_c, expect, folder, main
from profiling import profile, wait_until_sampling
from receiver import SECONDS

# The main thread ends, and another one goes on; for so many rounds.
NO_MAIN = """\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static volatile unsigned long sink;
static unsigned long n;
static pthread_t first;
__attribute__((noinline)) void burn(void) { for (unsigned long i = 0; i < n; i++) sink += i; __asm__ volatile(""); }
static void *work(void *arg)
{
	pthread_join(first, NULL);
	puts("alone");
	fflush(stdout);
	burn();
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t other;
	n = strtoul(argv[1], NULL, 0);
	first = pthread_self();
	pthread_create(&other, NULL, work, NULL);
	pthread_exit(NULL);
}
"""
FLAGS = ("-O2", "-g", "-pthread", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")


def stacks_of(path):
    """(samples, end, functions from the outermost on) of each stack without the kernel's part."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            o = json.loads(line)
            if "stack" in o:
                names = [
                    f.get("function") for f in reversed(o["stack"]) if f.get("code") != "kernel"
                ]
                yield o["values"]["samples"], o["labels"].get("end", "complete"), names


@claim
def threads_go_on_being_sampled_when_the_main_one_has_ended():
    out = os.path.join(folder(), "alone.json")
    r = profile("-c", f"{compile_c('no-main', NO_MAIN, flags=FLAGS)} 1500000000", "-F", "499", "-o",
                out, "--no-cache", seconds=240)
    expect(r.status == 0 and "alone" in r.out, r)
    found = list(stacks_of(out))
    burns = sum(n for n, end, names in found
                if end == "complete" and names[-1:] == ["burn"] and "work" in names)
    expect(burns > 50 and burns >= 0.8 * sum(n for n, _, _ in found), found)


@claim
def a_process_whose_main_thread_has_ended_is_attached_to_and_its_end_is_seen():
    out = os.path.join(folder(), "attached.json")
    with Running(compile_c("no-main", NO_MAIN, flags=FLAGS), "1000000000000000") as program:
        expect(program.process.stdout.readline() == "alone\n", "it ended")
        words = [
            CAIRN, "profile", "-p",
            str(program.pid), "-F", "499", "-o", out, "--no-cache", "--json"
        ]
        # The runner's checks for what is permitted here.
        profile("-p", str(program.pid), "--duration", "200ms", "--no-cache")
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as profiler:
            wait_until_sampling(profiler.pid)
            time.sleep(2)
            program.process.kill()
            try:
                text, err = profiler.communicate(timeout=2 * SECONDS)
            finally:
                profiler.kill()
    expect(profiler.returncode == 0, text, err)
    found = list(stacks_of(out))
    burns = sum(n for n, end, names in found
                if end == "complete" and names[-1:] == ["burn"] and "work" in names)
    expect(burns > 0 and burns >= 0.8 * sum(n for n, _, _ in found), found, text)


# Programs whose functions are at the same addresses, with frames of another size.
SPIN = """\
#include <stdlib.h>
static volatile unsigned long sink;
__attribute__((noinline)) void NAMEinner(unsigned long n, volatile char *p)
{
	volatile char room[ROOM];
	room[n % ROOM] = *p;
	for (unsigned long i = 0; i < n; i++) sink += i;
	*p = room[n % ROOM];
}
__attribute__((noinline)) void NAMEouter(unsigned long n)
{
	volatile char room[ROOM];
	room[0] = 1;
	for (int i = 0; i < 4; i++) NAMEinner(n, room);
	sink += room[0];
}
int main(int argc, char **argv)
{
	for (;;) NAMEouter(strtoul(argv[1], NULL, 0));
}
"""


def spinning(name, room):
    text = SPIN.replace("NAME", name).replace("ROOM", str(room))
    return compile_c(
        f"spin-{name}", text,
        flags=("-O2", "-g", "-fomit-frame-pointer", "-Wl,--build-id=" + BUILD_ID[name]))


# The second one has the build-id of the first: nothing but the content tells them apart.
BUILD_ID = {"one": "0x1919", "two": "0x1919", "three": "none"}


# Runs a program once for each pair of lines, between them.
SHELL = 'while read go; do "$0" 100000 >/dev/null & read stop; kill $!; wait $! 2>/dev/null; echo over; done'


class Windows(Running):
    """cairn profile --continuous of a shell and its children, and the stacks of the windows that it
    has written."""

    def __init__(self, pid, where):
        profile("-p", str(pid), "--duration", "100ms", "--no-cache")
        self.where, self.seen = where, set()
        self.process = subprocess.Popen([
            CAIRN, "profile", "-p",
            str(pid), "--continuous", "--window", "400ms", "-F", "499", "-o",
            os.path.join(where, "w.json"), "--no-cache"
        ], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # Its first window is over: what is started from now on is followed.
        self.said = self.process.stdout.readline()

    def wait_for(self, function):
        """Until a whole stack of that function was written; the windows from then on are others'.
        All stacks with it."""
        end = time.monotonic() + SECONDS
        found = []
        while time.monotonic() < end and self.process.poll() is None:
            for name in sorted(set(os.listdir(self.where)) - self.seen):
                if name.endswith(".json"):
                    self.seen.add(name)
                    found += stacks_of(os.path.join(self.where, name))
            if any(end == "complete" and function in names for _, end, names in found):
                return found
            time.sleep(0.1)
        raise AssertionError(f"no window has {function}: {self.said} {found[-20:]}")


@claim
def a_program_that_is_written_again_in_place_has_the_rows_and_names_of_what_runs():
    """As `cp` over a program between two runs of it: the same inode, and here the same build-id."""
    where = os.path.join(folder(), "again")
    os.mkdir(where)
    path = os.path.join(folder(), "program")
    shutil.copy(spinning("one", 64), path)
    inode = os.stat(path).st_ino
    shell = subprocess.Popen(["sh", "-c", SHELL, path], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        with Windows(shell.pid, where) as windows:
            for i, (name, room) in enumerate((("one", 64), ("two", 8000), ("three", 300))):
                if i:
                    shutil.copyfile(spinning(name, room), path)
                    expect(os.stat(path).st_ino == inode, "the copy is another file")
                shell.stdin.write("go\n")
                shell.stdin.flush()
                windows.wait_for(name + "inner")
                # What was sampled from now on is of this program alone.
                found = windows.wait_for(name + "inner")
                shell.stdin.write("stop\n")
                shell.stdin.flush()
                expect(shell.stdout.readline() == "over\n", "the shell ended")
                check_program(found, name)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()


def check_program(found, name):
    """Each stack in a program's function is whole: main, outer, inner."""
    ends = collections.Counter()
    for n, end, names in found:
        own = [f for f in names if f and f.endswith(("inner", "outer"))]
        if own or "main" in names:
            ends[end] += n
            expect(
                end == "complete"
                and own in ([name + "outer", name + "inner"], [name + "outer"], []), name, end,
                names)
    expect(ends["complete"] > 5, name, ends)


if __name__ == "__main__":
    main()
