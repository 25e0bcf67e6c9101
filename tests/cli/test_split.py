#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs built with -gsplit-dwarf: cairn gives the same answers as on the same program built
without."""

import os
import re
import shutil
import signal
import subprocess

from claims import (Skip, cairn, claim, claim_each, claim_each_of_many, expect, folder, main, need,
                    need_root, run)

SOURCES = {
    "a.c": """\
#include <stdio.h>
#include <stdlib.h>
struct pt { int x, y; };
static int table[16];
static inline __attribute__((always_inline)) int scale(struct pt *p, int by)
{
	p->x *= by;
	p->y *= by;
	return p->x + p->y;
}
static inline __attribute__((always_inline)) int look(int *at, unsigned n)
{
	return at[n & 15];
}
int other(struct pt *p, long n);
__attribute__((noinline)) int work(struct pt *p, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++) {
		s += scale(p, i);
		if (s > 1000)
			s = other(p, s) + look(table, n);
	}
	return s;
}
int main(int argc, char **argv)
{
	struct pt p = {argc, atoi(argv[0])};
	table[argc & 15] = argc;
	printf("%d\\n", work(&p, argc * 3));
	return 0;
}
""",
    "b.c": """\
struct pt { int x, y; };
extern int counter;
int counter;
static int helper(struct pt *p, long k)
{
	counter++;
	return p->x * k + p->y;
}
int other(struct pt *p, long n);
int other(struct pt *p, long n)
{
	int r = 0;
	for (long i = 0; i < n; i++)
		r ^= helper(p, i);
	return r;
}
""",
    "a.cc": """\
#include <cstdlib>
namespace ns {
template <typename T> struct box {
	T value;
	int get(int by) const { return int(value) * by; }
};
}
int other(const ns::box<long> &b, int n);
__attribute__((noinline)) int work(const ns::box<long> &b, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += b.get(i) + other(b, i);
	return s;
}
int main(int argc, char **argv)
{
	ns::box<long> b{argc + std::atoi(argv[0])};
	return work(b, argc);
}
""",
    "b.cc": """\
namespace ns {
template <typename T> struct box {
	T value;
	int get(int by) const { return int(value) * by; }
};
}
int other(const ns::box<long> &b, int n);
int other(const ns::box<long> &b, int n) { return b.get(n + 3); }
""",
}

C_BUILDS = [
    f"{cc} {flags}" for cc in ("gcc", "clang")
    for flags in ("-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -O1", "-gdwarf-4 -ffunction-sections")
]
CXX_BUILDS = [f"{cc} {flags}" for cc in ("g++", "clang++")
              for flags in ("-gdwarf-4", "-gdwarf-5", "-gdwarf-4 -fdebug-types-section",
                            "-gdwarf-5 -fdebug-types-section")]


def build(flags):
    """Builds the program whole and split in a folder of its own, which it returns."""
    compiler, *rest = flags.split()
    need(compiler)
    where = os.path.join(folder(), flags.replace(" ", "_"))
    if os.path.isdir(where):
        return where
    os.mkdir(where)
    end = ".cc" if "++" in compiler else ".c"
    names = ["a" + end, "b" + end]
    for name in names:
        with open(os.path.join(where, name), "w", encoding="utf-8") as file:
            file.write(SOURCES[name])
    for out, split in (("whole", []), ("split", ["-gsplit-dwarf"])):
        for name in names:
            run(compiler, "-O2", "-g", *rest, *split, "-c", name, cwd=where, check=True)
        run(compiler, "-o", out, *(name.replace(end, ".o") for name in names), cwd=where,
            check=True)
    return where


def sites(where, program):
    """What is known of every site, but where in the debug information it stands."""
    known = cairn("sites", "--sites", "--json", program, cwd=where, check=True)
    expect(not known.err, known)
    objects = known.objects()
    for o in objects:
        for volatile in ("die", "path", "debug_path", "file"):
            o.pop(volatile, None)
    return objects


def same_as_whole(where, program="split"):
    whole = sites(where, "whole")
    expect(len(whole) > 4, whole)
    split = sites(where, program)
    for ours, theirs in zip(split, whole):
        expect(ours == theirs, "split:", ours, "whole:", theirs)
    expect(len(split) == len(whole), split, whole)


@claim_each_of_many(*C_BUILDS, *CXX_BUILDS)
def split_programs_give_the_sites_of_whole_ones(flags):
    same_as_whole(build(flags))


@claim_each(*C_BUILDS, *CXX_BUILDS)
def split_programs_give_the_btf_of_whole_ones(flags):
    where = build(flags)
    blobs = {}
    for program in ("whole", "split"):
        made = cairn("btf", "encode", "--global-vars", "-o", program + ".btf", program, cwd=where,
                     check=True)
        expect(not made.err, made)
        for end in (".btf", ".btf.inline"):
            with open(os.path.join(where, program + end), "rb") as file:
                blobs[program, end] = file.read()
    for end in (".btf", ".btf.inline"):
        expect(len(blobs["whole", end]) > 200, end, len(blobs["whole", end]))
        expect(blobs["split", end] == blobs["whole", end], *(
            cairn("btf", "dump", program + ".btf", cwd=where) for program in ("split", "whole")))


def pack(where, tool):
    """The program with its package and without any .dwo file; skips what the tool cannot pack."""
    need(tool)
    packed = os.path.join(where, "packed-" + tool)
    os.makedirs(packed)
    # LLVM 14's never ends on many files of GCC's DWARF 5; what it packs takes a tenth of this.
    made = run("prlimit", "--cpu=1", tool, "-e", "split", "-o", os.path.join(packed, "split.dwp"),
               cwd=where)
    if made.status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Skip(f"{tool} hangs")
    if made.status:
        raise Skip(f"{tool} cannot pack it: {(made.err.strip() or str(made.status))[:200]}")
    shutil.copy(os.path.join(where, "split"), packed)
    hidden = where + ".hidden"
    os.mkdir(hidden)
    for name in os.listdir(where):
        if name.endswith(".dwo"):
            shutil.move(os.path.join(where, name), hidden)
    return os.path.join("packed-" + tool, "split"), hidden


def packaged(flags, tool):
    where = build(flags)
    program, hidden = pack(where, tool)
    try:
        same_as_whole(where, program)
    finally:
        for name in os.listdir(hidden):
            shutil.move(os.path.join(hidden, name), where)
        os.rmdir(hidden)


@claim_each_of_many(*C_BUILDS, *CXX_BUILDS)
def packages_of_llvm_dwp_are_read(flags):
    packaged(flags, "llvm-dwp")


@claim_each(*C_BUILDS, *CXX_BUILDS)
def packages_of_gnu_dwp_are_read(flags):
    packaged(flags, "dwp")


def moved(name, *left_out):
    """A copy of a split program and its .dwo files in another folder; the first folder is gone."""
    where = build("gcc -gdwarf-5")
    there = os.path.join(folder(), name)
    os.mkdir(there)
    for file in ("split", "a.dwo", "b.dwo"):
        if file not in left_out:
            shutil.copy(os.path.join(where, file), there)
    return where, there


@claim
def dwo_files_are_found_beside_a_program_that_was_moved():
    where, there = moved("moved")
    os.rename(where, where + ".away")
    try:
        sites = cairn("sites", "--json", os.path.join(there, "split"), "scale", check=True)
        expect(len(sites.objects()) == 1 and not sites.err, sites)
    finally:
        os.rename(where + ".away", where)


@claim
def a_missing_dwo_is_named_and_the_others_are_read():
    where, there = moved("missing", "a.dwo")
    os.rename(where, where + ".away")
    try:
        program = os.path.join(there, "split")
        helper = cairn("sites", "--json", program, "helper", check=True)
        expect(helper.objects()[0]["container"] == "other", helper)
        for word in ("1 .dwo file ", os.path.join(where, "a.dwo") + ": No such file",
                     os.path.join(there, "a.dwo")):
            expect(word in helper.err, word, helper)
        scale = cairn("sites", program, "scale")
        expect(scale.status == 1 and "a.dwo" in scale.err, scale)
    finally:
        os.rename(where + ".away", where)


@claim
def why_no_sidecar_is_kept_is_one_line():
    where, there = moved("unkept", "a.dwo")
    os.rename(where, where + ".away")
    try:
        kept = dict(os.environ, XDG_CACHE_HOME=os.path.join(there, "cache"), CAIRN_CACHE="keep")
        r = cairn("addr", os.path.join(there, "split"), "0x1000", env=kept)
        expect("not kept in the cache: " in r.err and "a.dwo" not in r.err and "\\x0a" not in r.err,
               r)
    finally:
        os.rename(where + ".away", where)


@claim
def trace_refuses_what_it_could_miss_calls_of():
    where, there = moved("untraced", "a.dwo")
    os.rename(where, where + ".away")
    try:
        program = os.path.join(there, "split")
        whole = cairn("trace", "--dry-run", "-c", os.path.join(where + ".away", "whole"),
                      "other(n)")
        expect(whole.status == 0 and not whole.err, whole)
        plan = cairn("trace", "--dry-run", "-c", program, "other(n)")
        expect(plan.status == 1 and "a.dwo" in plan.err and "--best-effort" in plan.err, plan)
        some = cairn("trace", "--dry-run", "--best-effort", "-c", program, "other(n)")
        expect(some.status == 0 and "1 .dwo file " in some.err and "  1 site in " in some.out, some)
        unknown = cairn("trace", "--dry-run", "-c", program, "scale")
        expect(unknown.status and "a.dwo" in unknown.err, unknown)
    finally:
        os.rename(where + ".away", where)


@claim
def trace_attaches_nothing_where_calls_could_be_missed():
    need_root()
    where, there = moved("unattached", "b.dwo")
    os.rename(where, where + ".away")
    try:
        program = os.path.join(there, "split")
        none = cairn("trace", "--json", "-c", program, "work(n)")
        expect(
            none.status and not none.objects() and "calls could be missed" in none.err
            and "b.dwo" in none.err, none)
        some = cairn("trace", "--json", "--best-effort", "-c", program, "work(n)")
        expect(some.status == 0 and "\n1 site attached\n" in some.err and "b.dwo" in some.err, some)
    finally:
        os.rename(where + ".away", where)


RANGES = """\
#include <stdio.h>
#include <stdlib.h>
static volatile long sink;
static inline __attribute__((always_inline)) void note(int *p, int n)
{
	if (__builtin_expect(p[n] < 0, 0)) {
		sink += n;
		abort();
	}
	sink = p[n] * n;
}
__attribute__((noinline)) int walk(int *p, int n)
{
	for (int i = 0; i < n; i++) {
		note(p, i);
		if (__builtin_expect(p[i] == 77, 0)) {
			printf("x");
			note(p, n);
			exit(1);
		}
	}
	return n;
}
int main(int c, char **v) { int a[3] = {c, 2, 3}; return walk(a, 3) + (v == NULL); }
"""


def ranges_with_the_skeleton(assembly):
    """As GCC before 11 has them: all in .debug_rnglists, and DW_AT_rnglists_base in the skeleton.
    """
    assembly = assembly.replace('.section\t.debug_rnglists.dwo,"e",@progbits',
                                '.section\t.debug_rnglists,"",@progbits')
    start = assembly.index(".Lskeleton_debug_info0:")
    end = assembly.index("\t.section", start)
    size = re.search(r"\.long\t(0x[0-9a-f]+)", assembly[start:end])
    die = assembly[start:end].replace(size.group(0), f".long\t{int(size.group(1), 16) + 4:#x}",
                                      1) + "\t.long\t.Ldebug_ranges1\n"
    assembly = assembly[:start] + die + assembly[end:]
    end = assembly.index("\t.byte\t0\n\t.byte\t0\n\t.byte\t0\n",
                         assembly.index(".Lskeleton_debug_abbrev0:"))
    return assembly[:end] + "\t.uleb128 0x74\n\t.uleb128 0x17\n" + assembly[end:]


@claim
def ranges_of_gcc_before_11_are_with_the_skeleton():
    need("gcc")
    where = os.path.join(folder(), "ranges")
    os.mkdir(where)
    for name in ("new", "old"):
        source = os.path.join(where, name + ".c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(RANGES)
        run("gcc", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-S", source, "-o", f"{name}.s", cwd=where,
            check=True)
    with open(os.path.join(where, "old.s"), encoding="utf-8") as file:
        text = file.read()
    if ".debug_rnglists.dwo" not in text or ".Ldebug_ranges1" not in text:
        raise Skip("this gcc has other range lists")
    with open(os.path.join(where, "old.s"), "w", encoding="utf-8") as file:
        file.write(ranges_with_the_skeleton(text))
    told = []
    for name in ("new", "old"):
        run("gcc", "-c", f"{name}.s", "-o", f"{name}.o", cwd=where, check=True)
        run("objcopy", "--extract-dwo", f"{name}.o", f"{name}.dwo", cwd=where, check=True)
        run("objcopy", "--strip-dwo", f"{name}.o", cwd=where, check=True)
        run("gcc", f"{name}.o", "-o", name, cwd=where, check=True)
        program = os.path.join(where, name)
        cairn("sidecar", program, "-o", program + ".packed", check=True)
        r = cairn("sites", program, "--no-sidecar", "note", "walk", "main", check=True)
        expect(not r.err and "inlined in walk" in r.out, r)
        expect(
            cairn("sites", program, "--sidecar", program + ".packed", "note", "walk", "main",
                  check=True).out == r.out, r)
        told.append(r.out.replace(f"{name}.c", "FILE"))
        has = run("readelf", "-SW", os.path.join(where, f"{name}.dwo"), check=True).out
        expect((".debug_rnglists.dwo" in has) == (name == "new"), has)
    expect(told[0] == told[1], *told)


MIXED_MAIN = "int walk_new(int *, int);\nint walk_old(int *, int);\nint main(int c, char **v) { int a[3] = {c, 2, 3}; return walk_new(a, 3) + walk_old(a, 3) + (v == 0); }\n"


@claim
def a_package_of_units_of_old_and_new_gcc_has_the_ranges_of_both():
    need("gcc")
    dwp = need("llvm-dwp")
    where = os.path.join(folder(), "mixed")
    os.mkdir(where)
    for name in ("new", "old"):
        with open(os.path.join(where, name + ".c"), "w", encoding="utf-8") as file:
            text = re.sub(r"\b(note|walk|sink)\b", rf"\1_{name}", RANGES).partition("int main(")[0]
            # Other code, so that one list is not as good as the other.
            file.write(
                text.replace("== 77", "== 1000077").replace("printf(\"x\")", "printf(\"%d\", p[n])"
                                                            ) if name == "old" else text)
        run("gcc", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-S", f"{name}.c", "-o", f"{name}.s",
            cwd=where, check=True)
    with open(os.path.join(where, "main.c"), "w", encoding="utf-8") as file:
        file.write(MIXED_MAIN)
    with open(os.path.join(where, "old.s"), encoding="utf-8") as file:
        text = file.read()
    if ".debug_rnglists.dwo" not in text or ".Ldebug_ranges1" not in text:
        raise Skip("this gcc has other range lists")
    with open(os.path.join(where, "old.s"), "w", encoding="utf-8") as file:
        file.write(ranges_with_the_skeleton(text))
    for name in ("new", "old"):
        run("gcc", "-c", f"{name}.s", "-o", f"{name}.o", cwd=where, check=True)
        run("objcopy", "--extract-dwo", f"{name}.o", f"{name}.dwo", cwd=where, check=True)
        run("objcopy", "--strip-dwo", f"{name}.o", cwd=where, check=True)
    # In either order: the package's list of the other unit begins at 0, or after this one's
    # nothing.
    for order in (("new", "old"), ("old", "new")):
        program = os.path.join(where, "-".join(order))
        run("gcc", "main.c", *(f"{n}.o" for n in order), "-o", program, cwd=where, check=True)
        names = ("note_new", "walk_new", "note_old", "walk_old")
        loose = cairn("sites", program, "--no-sidecar", *names, check=True)
        expect(
            not loose.err and "inlined in walk_new" in loose.out
            and "inlined in walk_old" in loose.out, loose)
        try:
            run(dwp, *(f"{n}.dwo" for n in order), "-o", program + ".dwp", cwd=where, check=True,
                seconds=5)
        except subprocess.TimeoutExpired as hang:
            raise Skip("llvm-dwp hangs") from hang
        expect(".debug_rnglists.dwo" in run("readelf", "-SW", program + ".dwp", check=True).out)
        kept = [os.path.join(where, f"{n}.dwo") for n in order]
        for path in kept:
            os.rename(path, path + ".away")
        packed = cairn("sites", program, "--no-sidecar", *names, check=True)
        for path in kept:
            os.rename(path + ".away", path)
        expect(packed.out == loose.out and not packed.err, packed, loose)


@claim
def a_dwo_of_another_build_is_refused():
    where, there = moved("stale")
    shutil.copy(os.path.join(there, "b.dwo"), os.path.join(there, "a.dwo"))
    os.rename(where, where + ".away")
    try:
        scale = cairn("sites", os.path.join(there, "split"), "scale")
        expect(scale.status == 1 and "a.dwo" in scale.err and "another build" in scale.err, scale)
    finally:
        os.rename(where + ".away", where)


@claim
def what_clang_left_in_the_skeleton_is_given_without_its_dwo():
    where = build("clang -gdwarf-5 -O1")
    hidden = where + ".dwo"
    os.mkdir(hidden)
    for name in ("a.dwo", "b.dwo"):
        shutil.move(os.path.join(where, name), hidden)
    try:
        run("clang", "-O2", "-g", "-gsplit-dwarf", "-fsplit-dwarf-inlining", "-c", "b.c", "-o",
            "c.o", cwd=where, check=True)
        run("clang", "-o", "left", "a.o", "c.o", cwd=where, check=True)
        for name in os.listdir(where):
            if name.endswith(".dwo"):
                os.remove(os.path.join(where, name))
        helper = cairn("sites", "--json", "left", "helper", cwd=where, check=True)
        expect(helper.objects()[0]["kind"] == "inlined" and ".dwo" in helper.err, helper)
    finally:
        for name in os.listdir(hidden):
            shutil.move(os.path.join(hidden, name), where)


main()
