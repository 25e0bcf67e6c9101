#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What btf encode chooses: which definition of a function, units of which languages; and what it
says is missing."""
import os
import shutil

from claims import cairn, claim, claim_each, expect, folder, main, need, path_of, run, write

WEAK = """\
struct regs { long ax; };
long __attribute__((weak)) sys_foo(const struct regs *__unused) { return -38; }
long __attribute__((weak)) sys_bar(int a) { return a; }
long __attribute__((weak)) sys_keep(const struct regs *__unused) { return -38; }
int main(void) { struct regs r = {1}; return sys_foo(&r) + sys_bar(1) + sys_keep(&r); }
"""
STRONG = """\
struct regs { long ax; };
struct only_here { long a, b; };
long sys_foo(const struct regs *regs) { return regs->ax; }
long sys_bar(struct only_here *r, int b) { return r->a + b; }
"""
CPLUSPLUS = """\
struct plus { int a; };
extern "C" int in_plus(struct plus *p) { return p->a; }
"""


def program(name, compiler, *flags):
    """The weak file comes first."""
    need(compiler)
    objects = []
    for part, text in (("weak", WEAK), ("strong", STRONG)):
        source = write(f"{name}.{part}.c", text)
        objects.append(path_of(f"{name}.{part}.o"))
        run(compiler, "-g", *flags, "-c", "-o", objects[-1], source, check=True, cwd=folder())
    run(compiler, *objects, "-o", path_of(name), check=True, cwd=folder())
    return path_of(name)


def prototypes(path):
    """{name: [names of parameters]} of all FUNCs."""
    records = {r["id"]: r for r in cairn("btf", "dump", "--json", path, check=True).objects()}
    return {
        r["name"]: [p["name"] for p in records[r["type_id"]]["params"]]
        for r in records.values()
        if r["kind"] == "FUNC"
    }


@claim_each("gcc -O0", "gcc -O2", "clang -O0", "clang -O2")
def an_overridden_weak_definition_gives_no_prototype(how):
    out, (compiler, level) = path_of("weak.btf"), how.split()
    r = cairn("btf", "encode", program("weak", compiler, level), "-o", out, check=True)
    expect("several prototypes" not in r.out, r)
    found = prototypes(out)
    expect(
        found["sys_foo"] == ["regs"] and found["sys_bar"] == ["r", "b"]
        and found["sys_keep"] == ["__unused"], found)


@claim
def a_weak_definition_of_an_object_is_its_own():
    """Nothing was linked: each has its symbol."""
    out = path_of("object.btf")
    cairn("btf", "encode", program("weak", "gcc", "-O2") + ".weak.o", "-o", out, check=True)
    expect(prototypes(out)["sys_foo"] == ["__unused"])


@claim
def a_missing_dwo_file_is_said_and_counted():
    need("gcc")
    path = program("split", "gcc", "-gsplit-dwarf", "-O1")
    out = path_of("split.btf")
    r = cairn("btf", "encode", "--json", path, "-o", out, check=True)
    expect(r.objects()[0]["missing_dwo"] == 0 and not r.err, r)
    for name in os.listdir(folder()):
        if name.endswith(".dwo") and "strong" in name:
            os.remove(path_of(name))
    r = cairn("btf", "encode", "--json", path, "-o", out, check=True)
    expect(
        r.objects()[0]["missing_dwo"] == 1
        and "1 .dwo file of split debug information not found" in r.err, r)
    expect("strong" in r.err, r)
    # Asked again, too: no sidecar answers that was made without it.
    for _ in range(2):
        r = cairn("layout", path)
        expect("types that only they describe are not known" in r.err and "only_here" not in r.out,
               r)
    r = cairn("sidecar", path, "-o", path_of("split.cairn"), check=True)
    expect("1 .dwo file" in r.err, r)
    r = cairn("sidecar", "--keep", path)
    expect(r.status != 0 and "1 .dwo file" in r.err, r)


def two_languages():
    need("g++")
    need("gcc")
    run("gcc", "-g", "-std=c11", "-c", "-o", path_of("a.o"), write("a.c", STRONG), check=True)
    run("g++", "-g", "-std=c++14", "-c", "-o", path_of("b.o"), write("b.cc", CPLUSPLUS), check=True)
    run("g++", "-shared", path_of("a.o"), path_of("b.o"), "-o", path_of("both.so"), check=True)
    return path_of("both.so")


@claim
def units_are_chosen_by_their_language():
    path, out = two_languages(), path_of("both.btf")
    for arguments, names, n in ((("--lang", "c11"), {
            "sys_foo", "sys_bar"
    }, 1), (("--lang", "c++14,rust"), {"in_plus"}, 1), (("--lang-exclude", "c++14"), {
            "sys_foo", "sys_bar"
    }, 1), (("--lang-exclude", "c11,c++14"), set(), 2), (("--lang-exclude", "rust"), {
            "sys_foo", "sys_bar", "in_plus"
    }, 0)):
        r = cairn("btf", "encode", "--json", *arguments, path, "-o", out, check=True)
        expect(
            set(prototypes(out)) == names and r.objects()[0]["left_out_units"] == n, (arguments, r))


@claim
def pahole_chooses_the_same_units():
    need("pahole")
    if "--lang_exclude" not in run("pahole", "--help").out:
        return
    path, out = two_languages(), path_of("both.btf")
    for lang in ("c11", "c++14"):
        cairn("btf", "encode", "--lang-exclude", lang, path, "-o", out, check=True)
        ours = {
            r["name"]
            for r in cairn("btf", "dump", "--json", out, check=True).objects()
            if r["kind"] == "STRUCT"
        }
        theirs = run("pahole", f"--lang_exclude={lang}", "--sizes", path, check=True).out
        expect(ours == {line.split("\t")[0]
                        for line in theirs.splitlines()
                        if line}, (ours, theirs))


@claim
def a_language_that_there_is_not_is_refused():
    path, out = two_languages(), path_of("never.btf")
    for arguments in (("--lang", "klingon"), ("--lang-exclude", "c11,"), ("--lang", ""),
                      ("--lang", "c11", "--lang-exclude", "rust")):
        r = cairn("btf", "encode", *arguments, path, "-o", out)
        expect(r.status == (0 if arguments[-1] == "c11," else 2), (arguments, r))
    expect("these are:\nada83" in cairn("btf", "encode", "--lang", "klingon", path, "-o", out).err)


@claim
def units_that_refer_to_one_another_are_not_torn_apart():
    need("dwz")
    path = two_languages()
    shutil.copy(path, path_of("small.so"))
    run("dwz", path_of("small.so"))
    r = cairn("btf", "encode", "--lang-exclude", "c++14", path_of("small.so"), "-o",
              path_of("small.btf"))
    expect(r.status == 0 or "refer to one another" in r.err, r)


if __name__ == "__main__":
    main()
