#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Readers of cairn trace and cairn profile that stop reading: the first Ctrl-C ends the run, and what
was dropped is told. Pipes are real ones."""

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import threading
import time

from claims import CAIRN, claim, claim_each, compile_c, expect, folder, main, need_root, run

PROGRAM = r"""
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) void tick(int n) { sink = n; }
int main(void)
{
	for (int i = 0;; i++) {
		tick(i);
		if (i % 50 == 0)
			usleep(1000);
	}
}
"""
SECONDS = 100  # in which a busy machine does what takes a moment


@contextlib.contextmanager
def ticking():
    with subprocess.Popen([compile_c("ticking", PROGRAM)]) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(is_so, what):
    end = time.monotonic() + SECONDS
    while not is_so():
        expect(time.monotonic() < end, "timed out", what)
        time.sleep(0.01)


class Run:
    """A command whose output goes to a pipe that is not read."""

    def __init__(self, words, fifo=None):
        self.err = os.path.join(folder(), "readers.err")
        self.fd, out = os.pipe()
        if fifo:
            os.close(self.fd)
            self.fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            os.set_blocking(self.fd, True)
            os.close(out)
            out = os.open(fifo, os.O_WRONLY)
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [CAIRN, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if fifo else out,
                stderr=err)
        self.out = out

    def fill(self):
        """From now on the command cannot write; returns what the pipe holds."""
        fcntl.fcntl(self.out, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(self.out, False)
        n = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                n += os.write(self.out, b"x" * 64)
        os.set_blocking(self.out, True)
        os.close(self.out)
        return n

    def wait_until_full(self):
        """Then it cannot be written, as this end of our own tells."""
        ready = select.poll()
        ready.register(self.out, select.POLLOUT)
        wait_until(lambda: not ready.poll(0), "a full pipe")
        os.close(self.out)

    def end(self, number=signal.SIGINT):
        """One signal; returns the status, and what was said. A reader that reads is a thread."""
        self.process.send_signal(number)
        status = self.process.wait(SECONDS)
        with open(self.err, encoding="utf-8") as file:
            return status, file.read()

    def rest(self):
        with os.fdopen(self.fd, "rb") as file:
            return file.read().decode()


def trace_words(*words):
    need_root()
    return ("trace", "--max-slowdown", "off", "--no-cache", *words)


def stopped(how, fifo):
    """A run whose reader has stopped; returns the number of events that were dropped."""
    with ticking() as process:
        words = trace_words("-p", process.pid, *(("-o", fifo) if fifo else ()),
                            *(("--json", ) if how == "--json" else ()), "tick")
        r = Run(words, fifo)
        r.wait_until_full()
        time.sleep(0.2)
        status, said = r.end()
        expect(process.poll() is None, said)
    *lines, _ = r.rest().split("\n")
    dropped = re.search(
        rf"the reader of {fifo or 'standard output'} does not read: (\d+) events? dropped\n",
        said)
    total = re.search(r"^tick: (\d+) events, (\d+) lost", said, re.M)
    expect(status == (3 if dropped else 0) and total, status, said)
    expect(
        said.count("cairn: ") == (1 if dropped else 0)
        and "detached in" in said, said)
    # What is there is whole, and from the first one on: with what was dropped it is all.
    seen = [
        json.loads(line)["args"]["n"] if how == "--json" else int(
            re.search(r"n=(\d+)$", line)[1]) for line in lines
        if '"summary"' not in line
    ]
    n = int(dropped[1]) if dropped else 0
    expect(len(seen) + n == int(total[1]), len(seen), said)
    expect(
        total[2] != "0" or seen == list(range(seen[0], seen[0] + len(seen))),
        seen[:5], said)
    return n


@claim_each("--json", "text", "-o FIFO")
def the_first_signal_ends_a_trace_whose_reader_stopped(how):
    fifo = os.path.join(folder(), "fifo") if how == "-o FIFO" else None
    if fifo:
        os.mkfifo(fifo)
    # A machine that is busy may not have come to an event after the last one that found room.
    expect(any(stopped(how, fifo) for _ in range(20)),
           "nothing was ever dropped")


@claim
def a_reader_that_goes_on_gets_all():
    with ticking() as process:
        r = Run(trace_words("-p", process.pid, "--json", "tick"))
        r.wait_until_full()
        got = []
        reader = threading.Thread(target=lambda: got.append(r.rest()))
        reader.start()
        status, said = r.end()
        reader.join()
    *events, summary = map(json.loads, got[0].splitlines())
    expect(status == 0 and "dropped" not in said, status, said)
    expect(len(events) == summary["events"], len(events), summary)


def ended_by_time():
    """The exit status of a run whose reader never reads."""
    with ticking() as process:
        r = Run(trace_words("-p", process.pid, "--duration", "500ms", "tick"))
        os.close(r.out)
        status = r.process.wait(SECONDS)
        os.close(r.fd)
    with open(r.err, encoding="utf-8") as file:
        said = file.read()
    expect(status in (0, 3) and (status == 3) == ("does not read: " in said),
           status, said)
    return status


@claim
def a_time_that_is_over_ends_a_trace_whose_reader_stopped():
    # A busy machine may not have filled the pipe by then.
    expect(any(ended_by_time() == 3 for _ in range(20)),
           "nothing was ever dropped")


# Its processor time is in the file of its argument, so that it is known to have been sampled.
BUSY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile int sink;
int main(int argc, char **argv)
{
	for (;;) {
		for (int i = 0; i < 100000000; i++)
			sink = i;
		FILE *file = fopen(argv[1], "w");
		fprintf(file, "%ld", (long)clock());
		fclose(file);
	}
}
"""
PROFILE_WAYS = {
    "text": (),
    "--json": ("--json", ),
    "--continuous": ("--continuous", "--window", "100ms", "-o"),
}


def profiled(how):
    """A run that has samples, and whose pipe is full; what the pipe holds."""
    need_root()
    words, busy = PROFILE_WAYS[how], os.path.join(folder(), "busy.time")
    with contextlib.suppress(FileNotFoundError):
        os.remove(busy)
    if how == "--continuous":
        words += (os.path.join(folder(), "windows.folded"), )
    r = Run(("profile", "-c", f"{compile_c('busy', BUSY)} {busy}", *words))
    n = r.fill()
    wait_until(lambda: os.path.exists(busy), "the command")
    expect(r.process.poll() is None, "it has ended by itself")
    return r, n


@claim_each(*PROFILE_WAYS)
def the_first_signal_ends_a_profile_whose_reader_stopped(how):
    r, n = profiled(how)
    status, said = r.end()
    dropped = re.search(
        r"the reader of standard output does not read: (\d+) bytes dropped\n",
        said)
    expect(status == 3 and dropped and int(dropped[1]) > 50, status, said)
    expect(r.rest() == "x" * n, "the pipe has other bytes")


@claim_each(*PROFILE_WAYS)
def a_reader_of_a_profile_that_goes_on_gets_all(how):
    r, n = profiled(how)
    got = []
    reader = threading.Thread(target=lambda: got.append(r.rest()))
    reader.start()
    status, said = r.end()
    reader.join()
    text = got[0][n:]
    expect(status == 0 and "dropped" not in said, status, said)
    expect(text.endswith("\n") and len(text) > 50, text)
    if how == "--json":
        expect([json.loads(line) for line in text.splitlines()], text)


@claim
def a_full_device_is_said_once():
    with ticking() as process:
        for words in (("--json", ), ("--json", "--count"), ()):
            words = trace_words(*words, "--duration", "300ms", "-p",
                                process.pid, "tick")
            r = run("sh", "-c",
                    f"exec '{CAIRN}' {' '.join(map(str, words))} >/dev/full")
            expect(
                r.status == 3 and r.err.count("cairn: ") == 1
                and "No space left" in r.err, r)


if __name__ == "__main__":
    main()
