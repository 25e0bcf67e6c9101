#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file that becomes shorter while it is read is told, with exit status 4, and kills no verb."""

import os
import random
import shutil
import subprocess
import time

from claims import BUILD, CAIRN, IS_SANITIZED, cairn, claim, claim_each, expect, folder, main

# Sanitizers make the library four times as large; one of its tests has the size that it has without.
LARGE = os.path.join(BUILD, "tests/unit/test_sites" if IS_SANITIZED else "src/libcairn.so.0")
# Sanitizers make each of them several times slower.
N_CUTS = 2 if IS_SANITIZED else 12


def copy(name):
    path = os.path.join(folder(), name)
    shutil.copyfile(LARGE, path)
    return path


def derived(kind):
    """A file of that kind made of the large one."""
    path = os.path.join(folder(), "large." + kind)
    if not os.path.exists(path):
        words = ("sidecar", LARGE, "-o", path) if kind == "cairn" else ("btf", "encode", LARGE,
                                                                        "-o", path)
        expect(cairn(*words, seconds=120).status == 0, words)
    return path


# More text than a pipe holds, so that nothing is read on before somebody takes it.
WRITERS = {
    "sites": (None, lambda p: ("sites", p, "*", "--no-sidecar")),
    "sites --json": (None, lambda p: ("sites", p, "--sites", "--json", "--no-sidecar")),
    "layout": (None, lambda p: ("layout", p)),
    "layout --html": (None, lambda p: ("layout", "--html", p)),
    "btf dump": ("btf", lambda p: ("btf", "dump", p)),
    "sites of a sidecar": ("cairn", lambda p: ("sites", p, "*")),
}


@claim_each(*WRITERS)
def a_file_that_is_cut_while_its_answer_waits_is_told(verb):
    kind, words = WRITERS[verb]
    path = os.path.join(folder(),
                        "cut-" + verb.replace(" ", "-") + (".cairn" if kind == "cairn" else ""))
    shutil.copyfile(derived(kind) if kind else LARGE, path)
    with subprocess.Popen([CAIRN, *words(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        first = process.stdout.read(1)
        # It waits for room in the pipe.
        while first and process.poll() is None:
            with open(f"/proc/{process.pid}/wchan", encoding="utf-8") as file:
                if "pipe" in file.read():
                    break
            time.sleep(.01)
        os.truncate(path, 0)
        out, err = process.communicate(timeout=100)
    expect(first and process.returncode == 4, process.returncode, err, len(out))
    expect(b"became shorter" in err and os.fsencode(path) in err, err[-500:])


@claim_each("sites", "layout", "btf dump", "sites of a sidecar")
def a_file_that_is_cut_inside_its_last_page_is_told(verb):
    """What is gone reads as zeros there, and raises no signal."""
    kind, words = WRITERS[verb]
    path = os.path.join(folder(),
                        "last-" + verb.replace(" ", "-") + (".cairn" if kind == "cairn" else ""))
    shutil.copyfile(derived(kind) if kind else LARGE, path)
    size = os.path.getsize(path)
    with subprocess.Popen([CAIRN, *words(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        first = process.stdout.read(1)
        os.truncate(path, size - (size % 4096 or 4096) // 2 - 1)
        out, err = process.communicate(timeout=100)
    expect(first and process.returncode == 4, process.returncode, err, len(out))
    expect(b"became shorter" in err and os.fsencode(path) in err, err[-500:])


def contents(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


VERBS = {
    "sites": lambda p: ("sites", p, "--no-sidecar"),
    "layout": lambda p: ("layout", "--sizes", p),
    "sidecar": lambda p: ("sidecar", p, "-o", p + ".out"),
    "btf encode": lambda p: ("btf", "encode", p, "-o", p + ".out"),
    "btf encode --embed": lambda p: ("btf", "encode", p, "--embed", "-o", p + ".out"),
    "unwind encode": lambda p: ("unwind", "encode", p, "-o", p + ".out"),
    "unwind check": lambda p: ("unwind", "check", p),
    "addr": lambda p: ("addr", p, "0x20000", "0x30000"),
}


@claim_each(*VERBS)
def a_file_that_is_cut_at_any_moment_kills_no_verb(verb):
    chance = random.Random(verb)
    path = copy("any-" + verb.replace(" ", "-"))
    began = time.monotonic()
    before = cairn(*VERBS[verb](path), seconds=120).status
    took = time.monotonic() - began
    whole = contents(path + ".out")
    statuses = []
    for _ in range(N_CUTS):
        path = copy("any-" + verb.replace(" ", "-"))
        if os.path.exists(path + ".out"):
            os.unlink(path + ".out")
        with subprocess.Popen([CAIRN, *VERBS[verb](path)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            time.sleep(chance.random() * took)
            os.truncate(path, chance.choice((0, 4096, 100000)))
            err = process.communicate(timeout=100)[1]
        statuses.append(process.returncode)
        # At these addresses of the sanitizers' program addr may have no answer, whole or cut.
        answered = (0, before) if verb == "addr" else (0,)
        expect(process.returncode >= 0 and (process.returncode in answered or err), verb, statuses,
               err)
        # Also when several threads met the end at once.
        expect(err.count(b"became shorter") <= 1 and b"cairn: cairn:" not in err, verb, err)
        # It may have been cut after all was read and written.
        expect(contents(path + ".out") in (whole, None), verb, statuses, err)
    expect([name for name in os.listdir(folder()) if name.endswith(".tmp")] == [],
           os.listdir(folder()))


@claim
def another_bus_error_ends_it_as_ever():
    with subprocess.Popen([CAIRN, "sites", LARGE, "*", "--no-sidecar"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        process.stdout.read(1)
        process.send_signal(7)
        expect(process.wait() == -7, process.returncode)


if __name__ == "__main__":
    main()
