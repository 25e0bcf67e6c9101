#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A sidecar is bound to the code that it describes: a build-id is what a file says of itself."""

import os
import re
import shutil
import time

from claims import (Running, Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need,
                    run)

BUILD_ID = "1234567890abcdef1234567890abcdef12345678"
MAIN = """
#include <unistd.h>
volatile int asked;
int main(int c, char **v)
{
	int s = 0;
	for (int i = 0; i < 10; i++)
		s += target(i, c);
	if (c > 1) { write(1, "ready\\n", 6); waiting(); }
	return s & 1;
}
"""
WAITING = "__attribute__((noinline)) void waiting(void) { pause(); asked++; }\n"
GOOD = (
    "#include <unistd.h>\nextern volatile int asked;\n"
    "__attribute__((noinline)) int target(int a, int b) { return a * 3 + b; }\n" + WAITING + MAIN)
EVIL = (
    "#include <unistd.h>\nextern volatile int asked;\n"
    'asm(".text\\n.fill 8,1,0x90");\n'
    "__attribute__((noinline)) int target(int a, int b) { return a * 3 + b; }\n" + WAITING + MAIN)
FLAGS = ("-g", "-O2", "-Wl,--build-id=0x" + BUILD_ID)
OF_ANOTHER = "this sidecar is of another file than"


def environment(name="xdg"):
    return {**os.environ, "XDG_CACHE_HOME": os.path.join(folder(), name), "CAIRN_CACHE": "keep"}


def good():
    return compile_c("good", GOOD, flags=FLAGS)


def evil():
    return compile_c("evil", EVIL, flags=FLAGS + ("-fno-align-functions",))


def sidecar(path, name):
    out = os.path.join(folder(), name)
    cairn("sidecar", path, "-o", out, check=True)
    return out


def stripped(path, *tool):
    out = path + ".stripped"
    run(*(tool or ("strip",)), path, "-o", out, check=True)
    return out


def traced(*words, **kwargs):
    r = cairn("trace", *words, **kwargs)
    if "permi" in r.err.lower() and r.status == 3:
        raise Skip("tracing is not permitted here")
    return r


def address_of(path, function):
    return next(
        s["addr"] for s in cairn("sites", path, function, "--json", "--no-sidecar").objects())


def wait_for_right(cached):
    end = time.monotonic() + 30
    while cairn("sidecar", "--check", cached, good()).status and time.monotonic() < end:
        time.sleep(0.02)


@claim
def what_is_in_the_cache_under_its_build_id_is_not_believed():
    env = environment("poisoned")
    right = cairn("sites", good(), "target", "--no-sidecar")
    os.makedirs(os.path.join(env["XDG_CACHE_HOME"], "cairn"), mode=0o700)
    # However it came there.
    cached = os.path.join(env["XDG_CACHE_HOME"], "cairn", BUILD_ID + ".cairn")
    shutil.copy(sidecar(evil(), "evil.packed"), cached)
    r = cairn("sites", good(), "target", env=env)
    expect(r.status == 0 and r.out == right.out and OF_ANOTHER in r.err, r)
    # The debug information answered, and a right one is made in the background; another poisoned
    # one comes after it.
    wait_for_right(cached)
    shutil.copy(sidecar(evil(), "evil.packed"), cached)
    r = traced("-c", good(), "target", env=env)
    expect(r.status == 0 and "10 events, 0 lost" in r.err and OF_ANOTHER in r.err, r)
    wait_for_right(cached)
    r = cairn("sites", good(), "target", env=env)
    expect(r.out == right.out and not r.err, r)


@claim
def a_sidecar_that_a_person_names_is_refused():
    other = sidecar(evil(), "evil-named.packed")
    for words in (("sites", good(), "target", "--sidecar", other), ("sites", good(), "--sidecar",
                                                                    other, "--sites"),
                  ("sites", good(), "--sidecar", other), ("addr", good(), "--sidecar", other,
                                                          address_of(good(), "target"))):
        r = cairn(*words)
        expect(r.status and OF_ANOTHER in r.err and "evil.c" not in r.out, r)
    r = traced("-c", stripped(good()), "target", "--sidecar", other)
    expect(r.status and OF_ANOTHER in r.err and "events" not in r.err, r)
    r = traced("-c", good(), "target", "--sidecar", other)
    expect("10 events" in r.err and OF_ANOTHER in r.err, r)


@claim
def a_sidecar_beside_the_program_is_not_believed():
    path = os.path.join(folder(), "beside")
    shutil.copy(good(), path)
    sidecar(evil(), "beside.cairn")
    right = cairn("sites", path, "target", "--no-sidecar")
    at = address_of(path, "target")
    named = cairn("addr", path, at, "--sidecar", sidecar(good(), "beside-good.packed")).out
    try:
        for words, out in ((("sites", path, "target"), right.out), (("addr", path, at), named)):
            r = cairn(*words)
            expect(r.status == 0 and r.out == out and OF_ANOTHER in r.err, r)
        r = traced("-c", path, "target")
        expect("10 events" in r.err and OF_ANOTHER in r.err, r)
        # Without debug information there is no answer.
        run("strip", path, check=True)
        r = cairn("sites", path, "target")
        expect(r.status == 3 and OF_ANOTHER in r.err and not r.out, r)
        r = traced("-c", path, "target")
        expect(r.status and "events" not in r.err, r)
        r = cairn("addr", path, at)
        expect("evil.c" not in r.out and OF_ANOTHER in r.err, r)
    finally:
        os.unlink(path + ".cairn")


@claim
def a_stack_is_walked_and_named_without_it():
    path = os.path.join(folder(), "walked")
    shutil.copy(good(), path)
    with Running(path, "wait") as p:
        p.process.stdout.readline()
        time.sleep(0.2)
        right = cairn("stack", p.pid)
        sidecar(evil(), "walked.cairn")
        r = cairn("stack", p.pid)
        expect("waiting" in right.out and r.out == right.out and r.status == right.status, r, right)
        expect(OF_ANOTHER in r.err and r.err.count(OF_ANOTHER) < 4, r)
        at = next(word for line in right.lines() if "waiting" in line for word in line.split()
                  if word.startswith("0x"))
        r = cairn("addr", p.pid, at)
        expect("evil.c" not in r.out and OF_ANOTHER in r.err, r)
    os.unlink(path + ".cairn")


@claim
def a_library_of_libcs_build_id_does_not_answer_for_libc():
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", libc).out).group(1)
    fake = compile_c("fake", "int tcache_get(int q) { return q; }\n",
                     flags=("-g", "-O2", "-shared", "-fPIC", "-Wl,--build-id=0x" + build_id))
    other = sidecar(fake, "fake.packed")
    r = cairn("sites", libc, "tcache_get", "--sidecar", other)
    expect(r.status and OF_ANOTHER in r.err and "fake.c" not in r.out, r)
    env = environment("libc")
    os.makedirs(os.path.join(env["XDG_CACHE_HOME"], "cairn"), mode=0o700)
    shutil.copy(other, os.path.join(env["XDG_CACHE_HOME"], "cairn", build_id + ".cairn"))
    env["CAIRN_CACHE"] = "read"
    r = cairn("sites", libc, "tcache_get", env=env)
    expect("fake.c" not in r.out and OF_ANOTHER in r.err, r)


# ---- what is the same build, and what is not ----

LINKS = {
    "pie": ("gcc", ()),
    "no-pie": ("gcc", ("-no-pie",)),
    "one-segment": ("gcc", ("-Wl,-z,noseparate-code",)),
    "static": ("gcc", ("-static",)),
    "lld": ("clang", ("-fuse-ld=lld",)),
    "lld-one-segment": ("clang", ("-fuse-ld=lld", "-Wl,-z,noseparate-code")),
    "shared": ("gcc", ("-shared", "-fPIC")),
}


@claim_each(*LINKS)
def what_strip_and_objcopy_leave_is_the_same_build(link):
    compiler, flags = LINKS[link]
    if "-fuse-ld=lld" in flags:
        need("ld.lld")
    path = compile_c("kept-" + link, GOOD, compiler, FLAGS + flags)
    packed = sidecar(path, link + ".packed")
    right = cairn("sites", path, "target", "--no-sidecar").out
    expect(cairn("sidecar", "--check", packed, path).status == 0)
    tools = [("strip",), ("strip", "-g"), ("objcopy", "--remove-section=.comment"),
             ("objcopy", "--compress-debug-sections")]
    tools += [(tool,) for tool in ("eu-strip", "llvm-strip") if shutil.which(tool)]
    for tool in tools:
        out = path + ".tool"
        r = run(*tool, *(("-o", out, path) if "strip" in tool[0] else (path, out)))
        if r.status and tool[0] == "llvm-strip":
            continue  # does not take all that ld links
        expect(r.status == 0, r)
        r = cairn("sidecar", "--check", packed, out)
        expect(r.status == 0 and not r.err, tool, r)
        r = cairn("sites", out, "target", "--sidecar", packed)
        expect(r.out == right and not r.err, tool, r)
        if tool != ("strip",) and tool[0] not in ("eu-strip", "llvm-strip"):
            expect(
                cairn("sidecar", "--check", sidecar(out, "again.packed"), path).status == 0, tool)
    debug = path + ".debug"
    run("objcopy", "--only-keep-debug", path, debug, check=True)
    r = cairn("sites", debug, "target", "--sidecar", packed)
    expect(r.status == 0 and not r.err, r)
    if shutil.which("eu-strip"):
        run("eu-strip", path, "-o", path + ".eu", "-f", debug, check=True)
        r = cairn("sites", debug, "target", "--sidecar", packed)
        expect(r.status == 0 and not r.err, r)


def patched(path, function):
    """A copy of PATH whose FUNCTION has another first byte."""
    out = path + ".patched"
    shutil.copy(path, out)
    off = next(
        s["offset"] for s in cairn("sites", path, function, "--json", "--no-sidecar").objects())
    with open(out, "r+b") as file:
        file.seek(int(off, 0) if isinstance(off, str) else off)
        file.write(b"\x90")
    return out


@claim
def a_patched_program_is_another_file():
    path, packed = good(), sidecar(good(), "patched.packed")
    out = patched(path, "target")
    for words in (("sites", stripped(out), "target", "--sidecar", packed),
                  ("addr", out, address_of(path, "target"), "--sidecar", packed)):
        r = cairn(*words)
        expect(r.status and OF_ANOTHER in r.err and "target" not in r.out, r)
    r = cairn("sidecar", "--check", packed, out)
    expect(r.status == 1 and OF_ANOTHER in r.err, r)
    r = traced("-c", stripped(out), "target", "--sidecar", packed)
    expect(r.status and OF_ANOTHER in r.err and "events" not in r.err, r)


@claim
def what_is_in_pages_that_were_not_patched_is_answered_and_the_check_finds_the_patch():
    text = GOOD + "".join(
        f"__attribute__((noinline)) int f{i}(int a) {{ return a * {i} + asked; }}\n"
        for i in range(900))
    path = compile_c("large", text, flags=FLAGS)
    packed, out = sidecar(path, "large.packed"), patched(path, "f899")
    r = cairn("sites", out, "target", "--sidecar", packed)
    expect(r.status == 0 and "1 site" in r.out, r)
    for words in (("f899",), ("f8*",), (), ("--sites",), ("target", "f899")):
        r = cairn("sites", out, *words, "--sidecar", packed)
        expect(r.status and OF_ANOTHER in r.err and not r.out, r)
    expect(cairn("sidecar", "--check", packed, out).status == 1)


@claim_each("--remove-section=.fini", "--remove-section=.text",
            "--set-section-flags=.text=alloc,readonly,code,data,contents", "--update-section")
def objcopy_that_changes_code_makes_another_file(option):
    path, packed = good(), sidecar(good(), "objcopy.packed")
    out = os.path.join(folder(), "objcopied")
    words = [option]
    if option == "--update-section":
        text = os.path.join(folder(), "text")
        run("objcopy", "-O", "binary", "--only-section=.text", path, text, check=True)
        with open(text, "r+b") as file:
            file.seek(0x20)
            file.write(b"\xcc" * 8)
        words = ["--update-section", ".text=" + text]
    r = run("objcopy", *words, path, out)
    if r.status:
        raise Skip(f"objcopy refuses: {r.err}")
    same = "flags" in option
    r = cairn("sidecar", "--check", packed, out)
    expect(r.status == (0 if same else 1) and (same or OF_ANOTHER in r.err), r)


@claim
def another_program_of_the_same_size_is_another_file():
    path, packed = good(), sidecar(good(), "size.packed")
    other = compile_c("size", GOOD.replace("a * 3", "a * 5"), flags=FLAGS)
    r = cairn("sites", other, "target", "--sidecar", packed)
    expect(r.status and OF_ANOTHER in r.err, r)
    expect(
        cairn("sidecar", "--check", packed, other).status == 1
        and cairn("sidecar", "--check", packed, path).status == 0)


@claim
def a_relocatable_file_is_bound_by_its_sections_of_code():
    obj, linked = os.path.join(folder(), "part.o"), os.path.join(folder(), "part.ko")
    source = os.path.join(folder(), "part.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("int x; int target(int a) { return a * 3 + x; }\n")
    run("gcc", "-g", "-O2", "-c", source, "-o", obj, check=True)
    run("ld", "-r", "--build-id=0x" + BUILD_ID, obj, "-o", linked, check=True)
    packed = sidecar(linked, "part.packed")
    out = stripped(linked, "strip", "-g")
    r = cairn("sites", out, "target", "--sidecar", packed)
    expect(r.status == 0 and "1 site" in r.out and not r.err, r)
    expect(cairn("sidecar", "--check", packed, out).status == 0)
    with open(out, "r+b") as file:
        data = file.read()
        at = data.index(b"\x8d\x04\x7f")  # lea (%rdi,%rdi,2),%eax
        file.seek(at)
        file.write(b"\x8d\x04\xbf")
    r = cairn("sites", out, "target", "--sidecar", packed)
    expect(r.status and OF_ANOTHER in r.err, r)


# ---- made of a debug file alone ----


def debug_file():
    out = good() + ".debug"
    run("objcopy", "--only-keep-debug", good(), out, check=True)
    return out


@claim
def a_sidecar_of_a_debug_file_alone_is_named_unbound_by_every_verb():
    unbound = os.path.join(folder(), "unbound.cairn")
    cairn("sidecar", debug_file(), "-o", unbound, check=True)
    at = address_of(good(), "target")
    bare = stripped(good())
    for words in (("sites", bare, "target", "--sidecar", unbound), ("sites", unbound, "target"),
                  ("addr", unbound, at), ("addr", bare, at, "--sidecar", unbound),
                  ("layout", unbound), ("btf", "dump", unbound), ("sidecar", "--check", unbound),
                  ("trace", "--dry-run", "-c", bare, "target", "--sidecar", unbound)):
        r = cairn(*words)
        expect("is unbound" in r.err and "cairn sidecar PROGRAM" in r.err, r)


@claim
def an_unbound_sidecar_says_that_no_hazard_was_looked_for():
    """It said "not the start of an instruction", which nobody had looked at."""
    unbound = os.path.join(folder(), "unbound-hazard.cairn")
    cairn("sidecar", debug_file(), "-o", unbound, check=True)
    for words in ((unbound,), (stripped(good()), "--sidecar", unbound), (debug_file(),)):
        r = cairn("sites", words[0], "target", *words[1:])
        expect(r.status == 0 and "not checked: " in r.out and "hazard" not in r.out, r)
        r = cairn("sites", words[0], "target", "--json", *words[1:])
        expect('"hazard":"not-checked"' in r.out.replace(": ", ":"), r)
    expect("not checked" not in cairn("sites", good(), "target").out)


@claim
def no_probe_is_set_by_an_unbound_sidecar():
    unbound = os.path.join(folder(), "unbound-traced.cairn")
    cairn("sidecar", debug_file(), "-o", unbound, check=True)
    r = traced("-c", stripped(good()), "target", "--sidecar", unbound)
    expect(r.status and "unbound" in r.err and "events" not in r.err, r)
    # With the binary it is bound, and answers.
    r = traced("-c", stripped(good()), "target", "--sidecar", sidecar(good(), "bound.packed"))
    expect("10 events" in r.err and "unbound" not in r.err, r)


@claim
def an_unbound_sidecar_does_not_replace_the_debug_information():
    path = os.path.join(folder(), "has-dwarf")
    shutil.copy(good(), path)
    cairn("sidecar", debug_file(), "-o", path + ".cairn", check=True)
    r = cairn("sites", path, "target")
    expect(
        r.status == 0 and not r.err and r.out == cairn("sites", path, "target", "--no-sidecar").out,
        r)


@claim
def what_a_debug_file_alone_says_is_not_kept():
    env = environment("alone")
    expect(cairn("sites", debug_file(), "target", env=env).status == 0)
    r = cairn("addr", debug_file(), address_of(good(), "target"), env=env)
    expect(r.status == 0 and "target" in r.out, r)
    r = cairn("sidecar", "--keep", debug_file(), env=env)
    expect(r.status == 2 and "has no code" in r.err, r)
    where = os.path.join(env["XDG_CACHE_HOME"], "cairn")
    expect(not os.path.isdir(where) or not [f for f in os.listdir(where) if f.endswith(".cairn")])


# ---- sites ----


@claim
def a_site_of_another_files_debug_information_is_refused_when_no_instruction_begins_there():
    dirs = os.path.join(folder(), "debug-dir")
    where = os.path.join(dirs, ".build-id", BUILD_ID[:2])
    os.makedirs(where)
    run("objcopy", "--only-keep-debug", evil(), os.path.join(where, BUILD_ID[2:] + ".debug"),
        check=True)
    at, there = (int(address_of(path, "target"), 16) for path in (good(), evil()))
    expect(0 < there - at < 3, at, there)  # in the first instruction
    r = traced("-c", stripped(good()), "target", "--debug-dir", dirs, "--no-cache")
    expect(r.status and "not the start of an instruction" in r.err and "events" not in r.err, r)


main()
