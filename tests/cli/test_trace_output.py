#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where cairn trace writes its events: files that begin anew at a size, disks that are full, places
that cannot be written."""

import glob
import json
import os
import re

from claims import CAIRN, Skip, claim, claim_each, compile_c, expect, folder, main, run
from tracing import trace

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static volatile int sink;
__attribute__((noinline)) void tick(int n, const char *s) { sink = n + s[0]; }
int main(int argc, char **argv)
{
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 3); i++)
		tick(i, "some text");
	if (argc > 2)
		fclose(fopen(argv[2], "w"));
	return 0;
}
"""


def program():
    return compile_c("tick", PROGRAM)


def numbers(text):
    """The numbers of the events, of which each line must be whole."""
    found = []
    for line in text.splitlines(keepends=True):
        m = re.fullmatch(
            r" +\d+\.\d{6} \d+/\d+ tick-gcc tick entry: n=(\d+), s=\"some text\"\n",
            line)
        expect(m, repr(line))
        found.append(int(m[1]))
    return found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@claim
def files_rotate_between_events_and_none_is_missing():
    path, n = f"{folder()}/rotated", 20000
    trace("-o",
          path,
          "--rotate",
          "100K,40",
          "-c",
          f"{program()} {n}",
          "tick",
          check=True)
    names = sorted(glob.glob(path + "*"),
                   key=lambda name: -int(name[len(path) + 1:] or 0))
    expect(len(names) > 10 and names[-1] == path, names)
    expect(
        sum((numbers(read(name)) for name in names), []) == list(range(n)),
        names)
    for name in names[:-1]:
        expect(100 << 10 <= os.path.getsize(name) < (100 << 10) + 100, name,
               os.path.getsize(name))


@claim
def what_an_earlier_run_has_left_is_kept_as_an_old_file():
    path = f"{folder()}/again"
    for n in (5, 7):
        trace("-o", path, "--rotate", "1M", "-c", f"{program()} {n}", "tick", check=True)
    expect([numbers(read(name)) for name in (path + ".1", path)] == [list(range(5)), list(range(7))],
           glob.glob(path + "*"))


@claim
def only_as_many_old_files_as_wanted_are_kept():
    path = f"{folder()}/few.json"
    trace("-o",
          path,
          "--rotate",
          "20K,2",
          "--json",
          "-c",
          f"{program()} 2000",
          "tick",
          check=True)
    expect(
        sorted(glob.glob(path + "*")) == [path, path + ".1", path + ".2"],
        glob.glob(path + "*"))
    lines = [
        json.loads(line) for i in (".2", ".1", "")
        for line in read(path + i).splitlines()
    ]
    found = [line["args"]["n"] for line in lines if "args" in line]
    expect(found == list(range(2000 - len(found), 2000)), found[:3],
           len(found))
    expect(lines[-1]["events"] == 2000, lines[-1])


@claim_each("64M,", "64M,0", "M", "-5", "64Q", "99999999999T", "1M,2,3")
def a_size_that_is_none_is_refused(size):
    r = trace("-o", f"{folder()}/none", "--rotate", size, "-c", program(),
              "tick")
    expect(r.status == 2 and "SIZE[,COUNT]" in r.err, r)


@claim
def rotation_needs_a_file_with_a_size():
    for words in ((), ("-o", "/dev/null"), ("-o", f"{folder()}/table",
                                            "--count")):
        r = trace(*words, "--rotate", "1M", "-c", program(), "tick")
        expect(r.status == 2 and "--rotate" in r.err, r)


@claim_each((), ("--json", ))
def a_full_disk_is_told_and_keeps_whole_events(words):
    """By a limit of the file's size, and where that is possible by a small file system."""
    path = f"{folder()}/limited"
    command = f"{CAIRN} trace {' '.join(words)} -o {path} -c '{program()} 20000' tick"
    r = run("sh", "-c", f"trap '' XFSZ; ulimit -f 64; exec {command}")
    expect(r.status == 3 and r.err.count("File too large") == 1, r)
    text = read(path)
    found = [json.loads(line)["args"]["n"]
             for line in text.splitlines()] if words else numbers(text)
    expect(found == list(range(len(found))) and text.endswith("\n"),
           len(found), text[-200:])
    expect(30 << 10 < len(text) <= 64 << 10, len(text))


@claim_each("-o /dev/full", "--json -o /dev/full", ">/dev/full")
def the_reason_is_told_once_however_many_events_there_are(words):
    command = f"{CAIRN} trace --no-cache -c '{program()} 20000' tick {words}"
    r = run("sh", "-c", command)
    expect(r.status == 3 and r.err.count("cannot write") == 1, r)
    expect("cannot write the events: No space left on device" in r.err, r)


@claim
def a_full_file_system_does_as_well():
    where = f"{folder()}/small"
    os.makedirs(where, exist_ok=True)
    script = (
        f"mount -t tmpfs -o size=128k none {where} || exit 77; {CAIRN} trace -o {where}/out -c "
        f"'{program()} 20000' tick >&2; s=$?; cat {where}/out; exit $s")
    r = run("unshare", "-m", "sh", "-c", script)
    if r.status in (77, 1):
        raise Skip("no file system can be mounted here")
    expect(r.status == 3 and "No space left on device" in r.err, r.status,
           r.err)
    found = numbers(r.out)
    expect(found == list(range(len(found))) and len(found) > 1000, len(found))


@claim_each("events", "who.folded")
def a_place_that_cannot_be_written_is_found_before_the_command_runs(name):
    mark = f"{folder()}/ran"
    by = ("--by", "$stack") if "." in name else ()
    for path in (f"{folder()}/no/such/{name}",
                 *([] if by else ["/proc/" + name])):
        r = trace("-o", path, *by, "-c", f"{program()} 3 {mark}", "tick")
        expect(
            r.status in (1, 2) and name in r.err and not os.path.exists(mark),
            r)


main()
