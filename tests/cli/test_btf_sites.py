#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Answers from .BTF and .BTF.inline of a stripped file: sites, addr, trace; and which BTF is
refused."""
import hashlib
import json
import os
import shutil
import struct

from claims import (Skip, cairn, claim, claim_each_of_many, compile_c, expect, main, need,
                    need_root, path_of, run)

# weigh() is inlined twice. Its arguments are printed, so that a trace can be compared with them.
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int mix(int a, long b) { __asm__ volatile("" : "+r"(a)); return a + (int)b; }
static inline __attribute__((always_inline)) int weigh(int size, int step)
{
	__asm__ volatile("" : "+r"(size), "+r"(step));
	return mix(size, step) * step;
}
__attribute__((noinline)) int first(int n)
{
	printf("weigh %d %d\\n", n, n + 5);
	return weigh(n, n + 5);
}
__attribute__((noinline)) int second(int n)
{
	printf("weigh %d %d\\n", n * 3, 7);
	return weigh(n * 3, 7);
}
int main(int argc, char **argv)
{
	int sum = 0;
	for (int i = 1; i <= 4; i++)
		sum += first(i) + second(i);
	return sum == 12345;
}
"""


def stripped(compiler="gcc", *options):
    """(the program with its debug information, the same with BTF instead of it)"""
    whole = compile_c("whole." + compiler, PROGRAM, compiler=compiler)
    bare = path_of("bare." + compiler + "".join(options))
    cairn("btf", "encode", "--embed", whole, "-o", bare, check=True)
    need("strip")
    run("strip", *(options or ("--strip-debug",)), bare, check=True)
    return whole, bare


def inlined(path, *words):
    return [(s["addr"], [a["loc"] for a in s["args"]])
            for s in cairn("sites", path, "weigh", "--json", "--no-cache", *words,
                           check=True).objects() if s["kind"] == "inlined"]


@claim_each_of_many("gcc", "clang")
def a_stripped_file_has_the_sites_of_its_debug_information(compiler):
    need(compiler)
    whole, bare = stripped(compiler)
    told = inlined(bare)
    expect(len(told) == 2 and told == inlined(whole, "--no-sidecar"), told)
    expect(told == inlined(stripped(compiler, "--strip-all")[1]), "without symbols")


@claim
def the_text_says_what_is_not_known():
    r = cairn("sites", stripped()[1], "weigh", check=True)
    expect("inlined in first+0x" in r.out and "not checked: BTF does not record" in r.out, r)
    expect("called at" not in r.out and "2 sites: 0 bodies, 2 inlined" in r.out, r)


@claim
def a_body_without_a_symbol_is_said_to_be_lost():
    r = cairn("sites", stripped("gcc", "--strip-all")[1], "mix")
    expect(r.status == 3 and "No symbol says where its code is" in r.err, r)


@claim
def files_beside_the_program_answer_too():
    whole, bare = stripped()
    alone = path_of("alone")
    run("objcopy", "-R", ".BTF", "-R", ".BTF.inline", bare, alone, check=True)
    expect(cairn("sites", alone, "weigh", "--no-cache").status == 3, "nothing there")
    cairn("btf", "encode", whole, "-o", alone + ".btf", check=True)
    expect(inlined(alone) == inlined(bare), inlined(alone))
    for name in (".btf", ".btf.inline"):
        os.rename(alone + name, path_of("moved" + name))
    for name in ("moved.btf", "moved.btf.inline"):
        expect(inlined(alone, "--btf=" + path_of(name)) == inlined(bare), name)
    # The types in the file, the sites beside it.
    half = path_of("half")
    run("objcopy", "-R", ".BTF.inline", bare, half, check=True)
    shutil.copy(path_of("moved.btf.inline"), half + ".inline")
    expect(inlined(half) == inlined(bare), inlined(half))


@claim
def btf_can_be_asked_where_there_is_debug_information():
    whole, bare = stripped()
    both = path_of("both")
    cairn("btf", "encode", "--embed", whole, "-o", both, check=True)
    rules = {s["rule"] for s in cairn("sites", both, "weigh", "--json", "--btf",
                                      check=True).objects()}
    expect(rules == {"btf"}, rules)
    rules = {s["rule"] for s in cairn("sites", both, "weigh", "--json", "--no-cache",
                                      check=True).objects()}
    expect("btf" not in rules, rules)


@claim
def another_builds_btf_is_refused():
    whole = stripped()[0]
    other = compile_c("other", PROGRAM.replace("noinline))", "noinline, aligned(64)))"),
                      flags=("-O1", "-g"))
    cairn("btf", "encode", other, "-o", path_of("other.btf"), check=True)
    r = cairn("sites", whole, "weigh", "--btf=" + path_of("other.btf"))
    expect(r.status != 0 and "another build's" in r.err, r)


@claim
def the_v1_dialect_is_refused_with_the_way_out():
    whole = stripped()[0]
    cairn("btf", "encode", "--dialect", "v1", whole, "-o", path_of("v1.btf"), check=True)
    r = cairn("sites", whole, "weigh", "--btf=" + path_of("v1.btf"))
    expect(r.status == 3 and "cairn btf convert --dialect n" in r.err, r)


@claim
def a_missing_base_and_a_wrong_one_are_refused():
    whole = stripped()[0]
    cairn("btf", "encode", whole, "-o", path_of("base.btf"), check=True)
    os.rename(path_of("base.btf.inline"), path_of("gone.btf.inline"))
    r = cairn("sites", whole, "weigh", "--btf=" + path_of("gone.btf"))
    expect(r.status == 3 and "gone.btf" in r.err, r)
    wrong = compile_c("wrong", "struct q { char c[3]; } q; int main(void) { return q.c[0]; }\n")
    cairn("btf", "encode", wrong, "-o", path_of("gone.btf"), check=True)
    r = cairn("sites", whole, "weigh", "--btf=" + path_of("gone.btf"))
    expect(r.status != 0 and r.err, r)


@claim
def functions_are_named_without_their_file():
    r = cairn("sites", stripped()[1], "whole.c:weigh")
    expect(r.status == 3 and "name weigh alone" in r.err, r)


@claim
def another_symbol_of_a_function_finds_it():
    text = PROGRAM + 'extern int mix2(int, long) __attribute__((alias("mix")));\n'
    whole, bare = compile_c("alias", text), path_of("alias.bare")
    cairn("btf", "encode", "--embed", whole, "-o", bare, check=True)
    run("strip", "--strip-debug", bare, check=True)
    r = cairn("sites", bare, "mix2", check=True)
    expect("mix2 is mix\n" in r.err and "int a" in r.out and "%rdi" in r.out, r)


@claim
def addr_tells_the_copies_that_begin_there():
    bare = stripped()[1]
    at = inlined(bare)[0][0]
    answer = cairn("addr", bare, at, "--json", "--no-cache", check=True).objects()[0]
    expect(answer["sites"] == ["weigh"] and answer["frames"][0]["function"] == "first", answer)
    expect("site of weigh" in cairn("addr", bare, at, "--no-cache", check=True).out, at)
    after = hex(int(at, 16) + 1)
    expect(cairn("addr", bare, after, "--json", "--no-cache").objects()[0]["sites"] == [], after)


def linked(name, link, types):
    """The program without debug information, whose sites are in a module."""
    whole, bare, section = compile_c("whole.gcc", PROGRAM), path_of(name), path_of(name + ".link")
    with open(section, "wb") as file:
        file.write(link)
    run("objcopy", "--strip-debug", "--add-section", ".BTF=" + types, "--add-section",
        ".BTF.inline.link=" + section, whole, bare, check=True)
    return bare


def link_of(blob):
    """struct btf_link: the module, the SHA-256 of its .BTF.inline, and the size."""
    return (b"btf_vmlinux_inline".ljust(56, b"\0") + hashlib.sha256(blob).digest() +
            struct.pack("<I", len(blob)))


@claim
def a_link_leads_to_the_sites_of_a_module():
    need("objcopy")
    whole, types = compile_c("whole.gcc", PROGRAM), path_of("types-of-it")
    cairn("btf", "encode", whole, "-o", types, check=True)
    with open(types + ".inline", "rb") as file:
        blob = file.read()
    bare = linked("linked", link_of(blob), types)
    r = cairn("sites", bare, "weigh")
    expect(r.status == 3 and "in module btf_vmlinux_inline: .BTF.inline.link names it" in r.err, r)
    wanted = inlined(whole, "--no-sidecar")
    module = path_of("module.ko")
    run("objcopy", "--add-section", f".BTF.inline={types}.inline",
        compile_c("empty.o", "int empty;\n", flags=("-c", )), module, check=True)
    alone = path_of("sites-alone")
    shutil.copy(types + ".inline", alone)
    for file in (types, types + ".inline", module, alone):
        expect(inlined(bare, "--btf=" + file) == wanted, file)
    # Other sites, of the same types.
    changed = blob[:-2] + bytes([blob[-2] ^ 1]) + blob[-1:]
    other = linked("linked-other", link_of(changed), types)
    for file in (types, module, alone):
        r = cairn("sites", other, "weigh", "--btf=" + file)
        expect(r.status == 3 and all(hashlib.sha256(b).hexdigest() in r.err
                                     for b in (blob, changed)), file, r)
    for bad in (link_of(blob)[:-1], link_of(blob) + b"\0", b"x" * 56 + link_of(blob)[56:],
                b"\0" * 92, b"x"):
        r = cairn("sites", linked("linked-bad", bad, types), "weigh")
        expect("expected 92 bytes" in r.err and r.status != 0, bad, r)


@claim
def a_copy_with_other_sections_keeps_the_link():
    need("objcopy")
    whole, types = compile_c("whole.gcc", PROGRAM), path_of("types-kept")
    cairn("btf", "encode", whole, "-o", types, check=True)
    with open(types + ".inline", "rb") as file:
        link = link_of(file.read())
    section, with_link, made, left = (path_of(n) for n in ("a.link", "with", "made", "left"))
    with open(section, "wb") as file:
        file.write(link)
    run("objcopy", "--add-section", ".BTF.inline.link=" + section, whole, with_link, check=True)
    cairn("btf", "encode", "--embed", with_link, "-o", made, check=True)
    run("objcopy", "--dump-section", ".BTF.inline.link=" + left, made, path_of("null"), check=True)
    with open(left, "rb") as file:
        expect(file.read() == link)
    # Its own sites answer, which no module has to be asked for.
    run("strip", "--strip-debug", made, check=True)
    expect(inlined(made) == inlined(whole, "--no-sidecar"))


@claim
def a_trace_of_a_stripped_program_has_the_values_that_it_prints():
    need_root()
    bare = stripped()[1]
    r = cairn("trace", "--json", "--no-cache", "-c", bare, "weigh")
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    lines = r.out.splitlines()
    printed = [line.split()[1:] for line in lines if line.startswith("weigh ")]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    values = [[str(v) for v in e["args"].values()] for e in events if "args" in e]
    expect(len(values) == 8 and values == printed, values, printed, r)


main()
