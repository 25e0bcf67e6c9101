#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles as traces in CTF 1.8: read here by their format, and by babeltrace2 with its filter
debug-info."""

import collections
import os
import pwd
import re
import resource
import shutil
import signal
import struct

from claims import (cairn, claim, claim_each, compile_c, expect, folder, main, need, need_root,
                    path_of, run, write)
from profile_formats import ctf_events as events, ctf_folded as folded_of, frames_of, samples_of
from profiles import FOLDED, pprof
from profiling import folded_lines, profile

PROGRAM = """\
#include <unistd.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void spin(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}
__attribute__((noinline)) void descend(int levels)
{
	if (levels > 1)
		descend(levels - 1);
	else
		spin(200000);
	__asm__ volatile("");
}
int main(void)
{
	for (int i = 0; i < 4000; i++) {
		descend(10);
		(void)getppid();
	}
}
"""

NAMES = [
    b'a "quoted" one', b"line\nbreak\ttab", b"bad\xff\xfeutf8", b"back\\slash",
    "\u2028\U0001f600".encode(), b"", b"a;b"
]


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return dict(folded_lines(file))


def converted(name, content):
    path, out, stacks = write(name, content), path_of(name + ".ctf"), path_of(name + ".folded")
    cairn("profile", "show", path, "-o", out, "-o", stacks, check=True)
    return out, lines_of(stacks)


def babeltrace(path, *words):
    return run(need("babeltrace2"), *words, path, check=True).lines()


# ---- profiles of other tools ----

@claim
def folded_stacks_are_the_same_in_it():
    out, folded = converted("a.folded", FOLDED)
    expect(
        folded_of(events(out)) == folded and sum(folded.values()) == 100, folded_of(events(out)),
        folded)
    expect(sorted(os.listdir(out)) == ["metadata", "stream"], os.listdir(out))


@claim
def any_name_is_text_in_it():
    values = [([i], i + 1) for i in range(len(NAMES))]
    out, _ = converted(
        "names.pb", pprof(NAMES, values, threads=[(7, 7, b'a "thread"\xff\n'), (7, 9, b"other")]))
    found = events(out)
    names = {frame["stack"]: frame["function"] for frame in frames_of(found)}
    expect({names[s["stack"]].decode(): s["value"]
            for s in samples_of(found)} == {
                name.decode("utf-8", "replace") or "-": value
                for name, (_, value) in zip(NAMES, values)
            }, names)
    expect({(s["vpid"], s["vtid"], s["thread"].decode())
            for s in samples_of(found)} == {(7, 7, 'a "thread"\ufffd\n'), (7, 9, "other")}, found)
    # A path is as the file system has it.
    expect([members[2] for name, *_, members in found if name == "bin_info"] == [b"/x/lib\xff.so"],
           found)
    if shutil.which("babeltrace2"):
        # The text has a line break where a name has one.
        lines = babeltrace(out)
        expect(sum("cairn:sample: " in line for line in lines) == len(NAMES), *lines)


@claim
def babeltrace_reads_a_title_of_any_bytes():
    path = os.path.join(folder(), 'a "title"\\ \n* \u00e9.folded')
    with open(path, "w", encoding="utf-8") as file:
        file.write(FOLDED)
    out = path_of("title.ctf")
    cairn("profile", "show", path, "-o", out, check=True)
    expect(sum("cairn:sample: " in line for line in babeltrace(out)) == 5)


@claim
def a_profile_without_samples_is_a_trace_without_events():
    out, folded = converted("none.pb", pprof([b"f"], []))
    expect(not events(out) and not folded)
    expect(babeltrace(out) == [])


@claim_each((1 << 63) - 1, -(1 << 63), 0, -5)
def values_of_any_size_are_exact(value):
    out, folded = converted("huge.pb", pprof([b"f", b"g"], [([0, 1], value)]))
    found = events(out)
    expect(folded_of(found) == folded == ({"g;f": value} if value else {}), found)
    expect(all(s["has_time"] == 0 and s["cpu"] == -1 for s in samples_of(found)), found)
    if value:
        expect(any(f" value = {value}," in line for line in babeltrace(out)))


# ---- the directory ----

def small_files_only():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))


@claim
def a_disk_that_is_full_leaves_what_was_there():
    path, out = write("c.folded",
                      "\n".join(f"main;f{i} {i + 1}" for i in range(2000))), path_of("full.ctf")
    before = set(os.listdir(folder()))
    r = cairn("profile", "show", path, "-o", out, preexec_fn=small_files_only)
    expect(r.status == 3 and "full.ctf" in r.err and set(os.listdir(folder())) == before, r,
           os.listdir(folder()))
    cairn("profile", "show", write("d.folded", FOLDED), "-o", out, check=True)
    there = events(out)
    r = cairn("profile", "show", path, "-o", out, preexec_fn=small_files_only)
    expect(r.status == 3 and events(out) == there, r)
    expect(set(os.listdir(folder())) == before | {"full.ctf", "d.folded"}, os.listdir(folder()))


@claim
def a_trace_is_replaced_and_nothing_else_is():
    path, out = write("e.folded", FOLDED), path_of("again.ctf")
    cairn("profile", "show", write("f.folded", "one 1\n"), "-o", out, check=True)
    cairn("profile", "show", path, "-o", out, check=True)
    expect(sum(folded_of(events(out)).values()) == 100)
    with open(os.path.join(out, "notes"), "w", encoding="ascii") as file:
        file.write("mine")
    before = set(os.listdir(folder()))
    r = cairn("profile", "show", write("f.folded", "one 1\n"), "-o", out)
    expect(r.status == 3 and "notes" in r.err and sum(folded_of(events(out)).values()) == 100, r)
    plain = write("plain.ctf", "mine")
    r = cairn("profile", "show", path, "-o", plain)
    expect(r.status == 2 and open(plain, encoding="ascii").read() == "mine", r)
    r = cairn("profile", "show", path, "-o", path_of("missing/x.ctf"))
    expect(r.status == 2 and "missing" in r.err, r)
    expect(set(os.listdir(folder())) == before | {"plain.ctf"}, os.listdir(folder()))


@claim
def root_writes_no_trace_where_a_link_of_another_user_leads():
    need_root()
    nobody = pwd.getpwnam("nobody")
    os.chmod(folder(), 0o755)
    where, mine = path_of("theirs"), path_of("mine.ctf")
    os.makedirs(where)
    os.chown(where, nobody.pw_uid, nobody.pw_gid)
    path = write("g.folded", FOLDED)
    cairn("profile", "show", write("h.folded", "mine 1\n"), "-o", mine, check=True)
    os.symlink(mine, os.path.join(where, "x.ctf"))
    os.chown(os.path.join(where, "x.ctf"), nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    r = cairn("profile", "show", path, "-o", os.path.join(where, "x.ctf"))
    expect(r.status in (2, 3) and folded_of(events(mine)) == {"mine": 1}, r)
    expect(os.listdir(where) == ["x.ctf"], os.listdir(where))
    # A directory of root's that is there is replaced, and nothing else is written.
    cairn("profile", "show", path, "-o", os.path.join(where, "y.ctf"), check=True)
    cairn("profile", "show", path, "-o", os.path.join(where, "y.ctf"), check=True)
    expect(sorted(os.listdir(where)) == ["x.ctf", "y.ctf"], os.listdir(where))


# ---- runs ----

RUN = {}


def program():
    return compile_c("ctf-program", PROGRAM, flags=("-O2", "-g", "-fno-optimize-sibling-calls"))


def program_run():
    if not RUN:
        out = {end: path_of("run." + end) for end in ("folded", "ctf")}
        r = profile("-c", program(), "-F", "499", "--json",
                    *(word for path in out.values() for word in ("-o", path)))
        expect(r.status == 0, r)
        RUN.update(out, result=r)
    return RUN


@claim
def the_samples_of_a_run_are_those_of_its_folded_stacks():
    r = program_run()
    found = events(r["ctf"])
    expect(folded_of(found) == lines_of(r["folded"]), folded_of(found))
    samples = samples_of(found)
    expect(len(samples) == r["result"].objects()[-1]["samples"], len(samples), r["result"])
    expect(all(s["has_time"] == 1 and 0 <= s["cpu"] < os.cpu_count() for s in samples), samples[:5])
    expect(all(len(s["callchain"]) == 0 or s["ip"] == s["callchain"][0] for s in samples),
           samples[:5])
    expect({s["thread"]
            for s in samples
            if b"ctf" in s["thread"]} == {os.path.basename(program())[:15].encode()},
           {s["thread"]
            for s in samples})


@claim
def babeltrace_reads_all_events_of_a_run():
    r = program_run()
    found, lines = events(r["ctf"]), babeltrace(r["ctf"])
    expect(len(lines) == len(found), len(lines), len(found))
    theirs = []
    for line in lines:
        if "cairn:sample: " in line:
            chain = re.search(r"callchain = \[(.*?)\]\s*\}$", re.sub(r"\[\d+\] = ", "",
                                                                     line)).group(1)
            theirs.append((*(int(re.search(rf"\b{key} = (-?\d+)", line).group(1))
                             for key in ("vpid", "vtid", "stack", "value", "cpu")),
                           tuple(int(word, 16) for word in chain.replace(",", " ").split())))
    ours = [(s["vpid"], s["vtid"], s["stack"], s["value"], s["cpu"], s["callchain"])
            for s in samples_of(found)]
    expect(theirs == ours, theirs[:3], ours[:3])


@claim
def the_filter_debug_info_finds_the_same_functions():
    path = program_run()["ctf"]
    lines = run(need("babeltrace2"), path, "--component=filter.lttng-utils.debug-info",
                check=True).lines()
    checked = collections.Counter()
    for line in lines:
        frame = re.search(
            r'cairn:frame: .*ip = 0x([0-9A-F]+), debug_info = \{ bin = "(.*?)", func = "(.*?)", src = "(.*?)" \} \}.*'
            r'inlined = (\d).*function = "(.*?)", linkage = "(.*?)".*line = (\d+), module = "(.*?)", offset = 0x([0-9A-F]+)',
            line)
        if not frame or os.path.realpath(program()) != frame.group(9):
            continue
        ip, name, func, _, inlined, function, _, _, _, offset = frame.groups()
        expect(
            name == f"{os.path.basename(program())}+0x{int(ip, 16) & (1 << 40) - 1:x}"
            and int(ip, 16) & (1 << 40) - 1 == int(offset, 16), line)
        # It names the function that is out of line, from DWARF or a symbol with a type.
        if inlined == "0" and func:
            expect(func.split("+")[0] == function, func, function)
            checked[function] += 1
    expect(checked["descend"] >= 10 and checked["main"], checked, *lines[:20])


@claim
def each_window_is_a_trace_and_old_ones_are_removed():
    r = profile("-c", "sh -c 'while :; do :; done'", "--continuous", "--window", "300ms", "--keep",
                "2", "--duration", "3", "-o", path_of("win.ctf"))
    expect(r.status == 0, r)
    windows = [name for name in os.listdir(folder()) if name.startswith("win.")]
    expect(
        1 <= len(windows) <= 2
        and all(re.fullmatch(r"win\.\d{8}T\d{6}\.\d{3}Z\.ctf", name) for name in windows), windows)
    for name in windows:
        expect(samples_of(events(path_of(name))), name)


if __name__ == "__main__":
    main()
