#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn sidecar and cairn addr, and that a sidecar answers what the debug information answers."""

import json
import os
import re
import shutil
import subprocess
import time

from claims import (CAIRN, WITHOUT_LEAKS, Skip, cairn, claim, claim_each_of_many, compile_c, expect,
                    folder, main, need, need_root, run)

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
enum colour { RED, GREEN = 7 };
typedef struct { int x, y; } point;
struct node { struct node *next; int (*compare)(const char *, enum colour); point at[3]; };
static volatile long sink;
static int table[40];
static inline __attribute__((always_inline)) long add(long left, int right, const int *where)
{
	sink = left + *where;
	return left + right;
}
static inline __attribute__((always_inline)) long visit(struct node *n, enum colour c, unsigned char flags)
{
	return add(n->at[1].x, (int)c + flags, &table[3]) + 1;
}
__attribute__((noinline)) long walk(struct node *n, enum colour c, double weight)
{
	long sum = 0;
	for (; n; n = n->next)
		sum += visit(n, c, (unsigned char)sum) * (long)weight;
	return sum;
}
int main(int argc, char **argv)
{
	struct node a = {NULL, NULL, {{argc, 1}, {2, atoi(argv[0])}}}, b = {&a, NULL, {{3, 4}}};
	printf("%ld\\n", walk(&b, argc > 2 ? RED : GREEN, argc * 1.5));
	return 0;
}
"""


def environment(**more):
    return {
        **os.environ, "XDG_CACHE_HOME": os.path.join(folder(), "xdg"), "CAIRN_CACHE": "keep", **more
    }


def program(compiler, name):
    built = compile_c("sidecar", PROGRAM, compiler, ("-O2", "-g", "-Wl,--build-id"))
    path = os.path.join(folder(), name)
    shutil.copy(built, path)
    return path


def sites(*words):
    return cairn("sites", *words, env=environment())


@claim_each_of_many("gcc", "clang")
def a_stripped_program_gives_the_same_sites_from_its_sidecar(compiler):
    path = program(compiler, "same-" + compiler)
    questions = [("--json", "--sites"), ("--sites",), ("--json",), (), ("add",), ("add", "--json"),
                 ("visit", "walk"), ("sidecar.c:walk",), ("w*",)]
    before = [sites(path, *q) for q in questions]
    expect(before[0].out and not before[0].status, before[0])
    cairn("sidecar", path, check=True, env=environment())
    run("strip", path, check=True)
    for question, told in zip(questions, before):
        now = sites(path, *question)
        if "--json" in question and "--sites" not in question and "add" not in question:
            # The summary names the file that the debug information came from.
            now.out, told.out = (r.out.rsplit("\n", 2)[0] for r in (now, told))
        if question == ():
            now.out, told.out = (r.out.replace(path, "") for r in (now, told))
        expect(now.status == told.status and now.out == told.out, question, told, now)


@claim
def btf_with_sites_is_in_the_sidecar_on_request_and_is_what_encode_gives():
    path, btf = program("gcc", "inline-btf"), os.path.join(folder(), "inline.btf")
    cairn("sidecar", path, "--btf-inline", check=True, env=environment())
    cairn("btf", "encode", path, "-o", btf, check=True)
    cairn("btf", "check", path + ".cairn", check=True)
    cairn("btf", "check", path + ".cairn", "--section", ".BTF.inline", check=True)
    for inside, beside in (((), (btf,)), (("--section", ".BTF.inline"), ("-B", btf,
                                                                         btf + ".inline"))):
        told = cairn("btf", "dump", path + ".cairn", *inside, check=True).out
        expect(told and told == cairn("btf", "dump", *beside, check=True).out, inside)
    expect("LOCSEC" in told, told)
    run("strip", path, check=True)
    expect(
        "struct node {" in cairn("btf", "dump", "--format", "c", path + ".cairn", check=True).out)
    expect(sites(path, "visit").status == 0)


PARTS = """\
#include <stdio.h>
#include <stdlib.h>
static volatile long sink;
/* GCC inlines the test and splits the rest off, as rare.part.0. */
static int rare(int *p, int n)
{
	if (!p)
		return 0;
	for (int i = 0; i < n; i++) {
		sink += p[i] * n + printf("%d\\n", p[i]);
		p[i] = abs(p[i] - (int)sink);
		sink ^= rand() + n * p[n - 1 - i];
	}
	printf("%ld %d\\n", sink, n);
	return (int)sink;
}
/* The C library's object files have a function of this name, too. */
static __attribute__((noinline)) void _init(int n) { sink += n; }
static __attribute__((noinline)) void hidden(int *n) { asm volatile("lock; incl %0" : "+m"(*n)); sink = *n; }
int main(int argc, char **argv)
{
	int a[2] = {argc, 2};
	_init(argc); hidden(a);
	return rare(argc > 1 ? a : NULL, 2) + rare(argc > 2 ? a : NULL, 1) + rare(argc > 3 ? a : NULL, argc & 1);
}
"""


@claim
def a_stripped_program_has_the_functions_of_its_sidecar():
    built = compile_c("parts", PARTS, "gcc", ("-O2", "-g", "-fno-pie", "-no-pie", "-Wl,--build-id"))
    path, debug = (os.path.join(folder(), n) for n in ("parts-stripped", "parts.debug"))
    run("objcopy", "--only-keep-debug", built, debug, check=True)
    run("strip", built, "-o", path, check=True)
    sidecar = path + ".sidecar"
    cairn("sidecar", path, "--debug-file", debug, "-o", sidecar, check=True, env=environment())
    cairn("sidecar", "--check", sidecar, path, check=True)
    for words in (("*",), ("*", "--json"), ("--hazards",), ("--hazards", "--json"), ("*.part.*",),
                  ("_init",), ("*init",), ("rare.part.0",)):
        told = sites(path, "--debug-file", debug, *words)
        now = sites(path, "--sidecar", sidecar, *words)
        expect(told.status == 0 and (now.status, now.out) == (told.status, told.out), words, told,
               now)
        if words[0] == "*.part.*":
            expect(
                "rare(int *p, int n)" in now.out and "split-off part rare.part.0" in now.out
                and "(?)" not in now.out, now)
        if words == ("*init",):
            expect("_init(?)" in now.out and "_init(int n)" in now.out, now)
        if words == ("--hazards",):
            expect("hidden" in now.out and "lock prefix" in now.out, now)
    # The one beside the program is found.
    os.replace(sidecar, path + ".cairn")
    expect(sites(path, "--hazards").out == sites(path, "--debug-file", debug, "--hazards").out)
    expect("hidden" not in sites(path, "--hazards", "--no-sidecar").out)


NAMES = """\
#include <stdio.h>
#include <stdlib.h>
static volatile int sink;
__attribute__((noinline)) int internal(int a) { sink = a; return a + 1; }
extern __typeof(internal) exported __attribute__((alias("internal")));
static int fast(int a) { sink = a; return a; }
static int slow(int a) { sink = a + 1; return a; }
static void *resolve(void) { return sink ? (void *)fast : (void *)slow; }
int chosen(int a) __attribute__((ifunc("resolve")));
asm(".text; .globl bare; .type bare, @function; bare: ret; .size bare, .-bare");
int main(int argc, char **argv) { printf("%d\\n", exported(argc) + chosen(argc) + abs(argc)); return 0; }
"""


@claim
def names_that_only_symbols_have_and_suggestions_come_from_the_sidecar_alone():
    path = os.path.join(folder(), "named")
    shutil.copy(compile_c("names", NAMES, "gcc", ("-O2", "-g", "-Wl,--build-id")), path)
    questions = ("exported", "chosen", "bare", "b*r?", "ex*ted", "ch*", "*", "printf", "exportde",
                 "intrenal", "chos", "nothing-like-it")
    before = {q: sites(path, q) for q in questions}
    for name, told in (("exported", "exported is internal"), ("chosen", "is an indirect function"),
                       ("bare", "body"), ("printf", "takes it from a shared library"),
                       ("exportde", "Did you mean: exported"),
                       ("intrenal", "Did you mean: internal"), ("chos", "chosen")):
        expect(told in before[name].out + before[name].err, name, before[name])
    cairn("sidecar", path, check=True, env=environment())
    cairn("sidecar", "--check", path + ".cairn", check=True)
    run("strip", path, check=True)

    def plain(text, file):
        return re.sub(r" \((debug information|sidecar): .*\)", "", text.replace(file, "FILE"))

    for file in (path, path + ".cairn"):
        for q in questions:
            now, was = sites(file, q), before[q]
            expect((now.status, plain(now.out, file), plain(now.err, file)) ==
                   (was.status, plain(was.out, path), plain(was.err, path)), q, was, now)


def frames_of_walk(asked, path, *options):
    """What addr says about each byte of walk."""
    body = next(o for o in sites(path, "walk", "--json").objects() if o["kind"] == "out-of-line")
    start = int(body["addr"], 16)
    done = subprocess.run([CAIRN, "addr", asked, *options], input="".join(
        f"{start + i:#x}\n" for i in range(150)), capture_output=True, text=True, env=environment(),
                          check=False)
    expect(done.returncode in (0, 1), done)
    return done.stdout


@claim_each_of_many("gcc", "clang")
def trace_fetches_the_same_from_a_stripped_program(compiler):
    path = program(compiler, "trace-" + compiler)
    words = ("trace", "--dry-run", "-v", "--best-effort", "-c", path, "walk",
             "visit(n->next, *n, c, n->at[1].y)", "add")
    before = cairn(*words, env=environment())
    expect(before.status in (0, 1) and "walk" in before.out + before.err, before)
    cairn("sidecar", path, check=True, env=environment())
    run("strip", path, check=True)
    now = cairn(*words, env=environment())
    expect((now.status, now.out, now.err) == (before.status, before.out, before.err), before, now)


def traced(path, *options):
    """Events of a run, without what differs from run to run."""
    r = cairn("trace", "--json", *options, "-c", path, "walk(n->at[1].x, c)", "visit",
              env=environment())
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect(r.status == 0, r)
    events = [json.loads(line) for line in r.lines() if line.startswith("{")]
    return [[(k, v)
             for k, v in e.items()
             if k in ("function", "kind", "site", "args", "addr")]
            for e in events[:-1]]


@claim_each_of_many("gcc", "clang")
def a_stripped_program_is_traced_live_with_nothing_but_its_sidecar(compiler):
    need_root()
    path = program(compiler, "live-" + compiler)
    before = traced(path, "--no-sidecar")
    expect(
        len(before) >= 2 and "GREEN" in json.dumps(before) and "inlined" in json.dumps(before),
        before)
    cairn("sidecar", path, check=True, env=environment())
    run("strip", path, check=True)
    now = traced(path)
    # Addresses of the program's memory are others each time.
    expect(
        re.sub("0x[0-9a-f]+", "", json.dumps(now)) == re.sub("0x[0-9a-f]+", "", json.dumps(before)),
        before, now)


AMBIGUOUS = """\
struct thing { int first, second; };
static volatile long sink;
__attribute__((noinline)) int use(struct thing *t) { sink = t->first; return t->second; }
int other(void);
int main(void) { struct thing t = {1, 2}; return use(&t) + other(); }
"""
OTHER = """\
struct thing { short a, b, c, d; };
static volatile long sink;
__attribute__((noinline)) int more(struct thing *t) { sink = t->a; return t->d; }
int other(void) { struct thing t = {1, 2, 3, 4}; return more(&t); }
"""


@claim
def structs_of_one_name_keep_their_own_members():
    first, second = (os.path.join(folder(), n) for n in ("ambiguous.c", "other.c"))
    path = os.path.join(folder(), "ambiguous")
    for name, text in ((first, AMBIGUOUS), (second, OTHER)):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    need("gcc")
    run("gcc", "-O2", "-g", "-Wl,--build-id", "-o", path, first, second, check=True)
    words = ("trace", "--dry-run", "-v", "-c", path, "use(t->second)", "more(t->d)", "main")
    before = cairn(*words, "--no-sidecar", env=environment())
    expect(before.status == 0, before)
    cairn("sidecar", path, check=True, env=environment())
    now = cairn(*words, env=environment())
    expect((now.status, now.out, now.err) == (before.status, before.out, before.err), before, now)
    run("strip", path, check=True)
    alone = cairn(*words, env=environment())
    expect((alone.status, alone.out, alone.err) == (before.status, before.out, before.err), before,
           alone)


@claim
def a_sidecar_alone_answers():
    path = program("gcc", "alone")
    cairn("sidecar", path, check=True, env=environment())
    r = sites(path + ".cairn", "visit", "--json")
    expect(r.status == 0 and len(r.objects()) == 1 and r.objects()[0]["container"] == "walk", r)
    expect("    inlined into walk at " in frames_of_walk(path + ".cairn", path), r)
    r = cairn("sidecar", path + ".cairn", env=environment())
    expect(r.status == 2 and "sidecar" in r.err and "name the program" in r.err, r)
    r = cairn("btf", "encode", path + ".cairn", "-o", path + ".btf", env=environment())
    expect(r.status == 0 and "only types are written" in r.err, r)


@claim
def addr_tells_the_chain_with_lines_outwards():
    path = program("gcc", "chain")
    add = sites(path, "add", "--json").objects()[0]
    chains = {tuple((f["name"], f["line"]) for f in o["frames"])
              for o in map(json.loads, frames_of_walk(path, path, "--json").splitlines())}
    outer = (("visit", add["call"]["line"]), ("walk", add["chain"][1]["line"]))
    expect(any(c and c[0][0] == "add" and c[1:] == outer for c in chains), outer, chains)


@claim
def addr_reads_addresses_from_standard_input():
    path = program("gcc", "input")
    where = [o["addr"] for o in sites(path, "add", "walk", "--json").objects()]
    done = subprocess.run([CAIRN, "addr", path], input="\n".join(where) + "\n\n",
                          capture_output=True, text=True, env=environment(), check=False)
    expect(done.returncode == 0 and len(re.findall("^0x", done.stdout, re.M)) == len(where), done)
    done = subprocess.run([CAIRN, "addr", path], input="0x10\nnonsense\n", capture_output=True,
                          text=True, env=environment(), check=False)
    expect(done.returncode == 2 and "line 2: nonsense" in done.stderr, done)


@claim
def addr_of_a_process_finds_its_files():
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            mapped = None
            while not mapped:  # until it runs sleep
                time.sleep(0.01)
                with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
                    mapped = next((line for line in file if " r-xp " in line and "/sleep" in line),
                                  None)
            r = cairn("addr", process.pid, hex(int(mapped.split("-")[0], 16) + 0x40), "--json",
                      env=environment())
            expect(r.status in (0, 1) and r.objects()[0]["path"].endswith("/sleep"), r)
        finally:
            process.kill()


@claim
def an_address_of_nothing_is_said_and_exits_with_1():
    path = program("gcc", "nothing")
    r = cairn("addr", path, "0x10", env=environment())
    expect(r.status == 1 and r.out == "0x10  ?\n", r)


@claim
def what_is_asked_twice_comes_from_the_cache():
    path = program("gcc", "twice")
    cache = os.path.join(folder(), "xdg-twice")
    walk = sites(path, "walk", "--json").objects()[0]["addr"]
    env = environment(XDG_CACHE_HOME=cache)
    first = cairn("addr", path, walk, env=env)
    kept = os.listdir(os.path.join(cache, "cairn"))
    expect(len(kept) == 1 and kept[0].endswith(".cairn"), kept)
    run("strip", path, check=True)
    expect(cairn("addr", path, walk, env=env).out == first.out)
    r = cairn("sidecar", "--prune", "--max", "1", "--json", env=env)
    expect(r.objects()[0]["kept"] == 1, r)


@claim
def a_sidecar_of_another_build_is_refused_with_both_ids():
    path = program("gcc", "mine")
    other = compile_c("other", PROGRAM.replace("RED", "BLUE"), "gcc",
                      ("-O1", "-g", "-Wl,--build-id"))
    cairn("sidecar", other, "-o", path + ".other", check=True, env=environment())
    r = cairn("addr", path, "0x10", "--sidecar", path + ".other", env=environment())
    expect(r.status == 3 and "expected" in r.err and "build-id" in r.err, r)


@claim
def a_damaged_sidecar_is_refused_with_status_4():
    path = program("gcc", "damaged")
    cairn("sidecar", path, check=True, env=environment())
    with open(path + ".cairn", "r+b") as file:
        file.truncate(os.path.getsize(path + ".cairn") // 2)
    for words in (("addr", path + ".cairn", "0x10"), ("sidecar", "--check", path + ".cairn")):
        r = cairn(*words, env=environment())
        expect(r.status == 4 and "damaged.cairn" in r.err, r)


@claim
def one_thread_is_wanted_and_none_is_started():
    need("strace")
    units, log = [], os.path.join(folder(), "threads.log")
    for i in range(8):
        unit = os.path.join(folder(), f"unit{i}.c")
        with open(unit, "w", encoding="utf-8") as file:
            file.write(
                f"struct later; typedef struct {{ int x[{i + 1}]; }} t{i}; struct s{i} {{ struct later *to; t{i} a; }};\n"
                f"__attribute__((noinline)) int f{i}(struct s{i} *p) {{ struct inner {{ int y; }} in = {{p->a.x[0]}};"
                f" return in.y; }}\n" + ("int main(void) { return 0; }\n" if not i else ""))
        units.append(unit)
    path = os.path.join(folder(), "eight-units")
    run("gcc", "-O2", "-g", *units, "-o", path, check=True)
    out = os.path.join(folder(), "threads.out")
    for words in (["sidecar", path, "-o", out], ["btf", "encode", path, "-o", out]):
        for jobs, wanted in (("1", False), ("3", True)):
            r = run("strace", "-f", "-o", log, "-e", "trace=clone,clone3", CAIRN, *words, "-j",
                    jobs, env=environment(ASAN_OPTIONS=WITHOUT_LEAKS, CAIRN_CACHE="off"))
            expect(r.status == 0, r)
            with open(log, encoding="utf-8") as told:
                told = told.read()
            expect(("CLONE_THREAD" in told) == wanted, words, jobs, told)


@claim
def pack_is_the_same_for_any_number_of_threads_and_passes_its_check():
    path = program("gcc", "threads")
    made = []
    for jobs in ("1", "2", "8"):
        out = os.path.join(folder(), "threads-" + jobs)
        cairn("sidecar", path, "-o", out, "-j", jobs, check=True, env=environment())
        cairn("sidecar", "--check", out, check=True)
        with open(out, "rb") as file:
            made.append(file.read())
    expect(made[0] == made[1] == made[2])


@claim_each_of_many("gcc", "clang")
def unwind_rows_of_a_sidecar_are_those_of_its_program(compiler):
    path = program(compiler, "rows")
    cairn("sidecar", path, check=True, env=environment())
    rows = cairn("unwind", "dump", path, check=True)
    expect(
        "rsp+8" in rows.out
        and cairn("unwind", "dump", path + ".cairn", check=True).out == rows.out, rows)


@claim
def an_object_file_has_no_unwind_rows_in_its_sidecar():
    path = compile_c("unwound_object", "int f(int x) { return x; }", flags=("-g", "-c"))
    cairn("sidecar", path, check=True, env=environment())
    r = cairn("unwind", "dump", path + ".cairn")
    expect(r.status == 1 and "no unwind rows" in r.err, r)


@claim
def ordinary_tools_read_the_file():
    need("readelf")
    path = program("gcc", "elf")
    r = cairn("sidecar", path, "-v", check=True, env=environment())
    expect(".cairn.code" in r.out and ".cairn.sites" in r.out, r)
    told = run("readelf", "-n", path + ".cairn", check=True)
    wanted = run("readelf", "-n", path, check=True).out.split("Build ID: ")[1].split()[0]
    expect(wanted in told.out and not told.err, told)


@claim
def a_full_disk_leaves_what_was_there():
    path = program("gcc", "full")
    cairn("sidecar", path, check=True, env=environment())
    with open(path + ".cairn", "rb") as file:
        before = file.read()
    r = run("bash", "-c", f"trap '' XFSZ; ulimit -f 1; exec {CAIRN} pack {path}", env=environment())
    expect(r.status == 3 and r.err, r)
    with open(path + ".cairn", "rb") as file:
        expect(file.read() == before)


main()
