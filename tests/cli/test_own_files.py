#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is written is whole or not there, and root writes nothing where another user's link leads.
"""

import functools
import itertools
import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import time

from claims import (CAIRN, SOURCE, Skip, cairn, claim, claim_each, compile_c, expect, folder, main,
                    need, need_root, run)

PROGRAM = "\n".join(
    f"struct s{i} {{ int a; char b; long c[{i + 1}]; }}; int f{i}(struct s{i} *s) {{ return s->a + s->b; }}"
    for i in range(400)) + """
int counter;
static inline __attribute__((always_inline)) void count(int by) { asm volatile("" :: "r"(by)); counter += by; }
int main(int n, char **p) { struct s0 s = {0}; (void)p; count(n); return f0(&s); }
"""
BUILD_ID = "5eed" * 10
FLAGS = ("-O2", "-g", "-fno-eliminate-unused-debug-types", "-Wl,--build-id=0x" + BUILD_ID)


def program():
    return compile_c("own", PROGRAM, "gcc", FLAGS)


TYPES = [f"s{i}" for i in range(400)]
# Each writes @o.
WRITERS = {
    "btf encode --embed": lambda p, o: ("btf", "encode", "--embed", p, "-o", o),
    "unwind encode --embed": lambda p, o: ("unwind", "encode", "--embed", p, "-o", o),
    "bind": lambda p, o: ("bind", "--lang", "java", "-o", o, p, *TYPES),
    "sidecar": lambda p, o: ("sidecar", p, "-o", o),
    "btf encode": lambda p, o: ("btf", "encode", p, "-o", o),
    "unwind encode": lambda p, o: ("unwind", "encode", p, "-o", o),
    "lock": lambda p, o: ("layout", "--lock", o, "--update", p),
}


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


@claim_each(*WRITERS)
def a_killed_writer_leaves_all_or_what_was_there(verb):
    chance = random.Random(verb)
    path = program()
    where = os.path.join(folder(), "killed-" + verb.replace(" ", "-"))
    os.makedirs(where)
    out = os.path.join(where, "out")
    began = time.monotonic()
    expect(cairn(*WRITERS[verb](path, out)).status == 0, verb)
    took = time.monotonic() - began
    whole, n_killed = bytes_of(out), 0
    # On a busy machine the first run takes longer than the others, which then end before they are
    # killed.
    for i in itertools.takewhile(lambda i: i < 24 or (n_killed <= 5 and i < 400),
                                 itertools.count()):
        if i % 2:
            with open(out, "wb") as file:
                file.write(b"what was there")
        elif os.path.exists(out):
            os.unlink(out)
        with subprocess.Popen([CAIRN, *WRITERS[verb](path, out)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.random() * took)
            process.kill()
            n_killed += process.wait() == -signal.SIGKILL
        found = bytes_of(out) if os.path.exists(out) else None
        expect(found in (whole, b"what was there" if i % 2 else None), verb, i, found
               and len(found), len(whole))
    expect(n_killed > 5, n_killed)


@claim
def accessors_that_cannot_be_written_leave_no_file():
    out = os.path.join(folder(), "bind-fails.h")
    r = cairn("bind", "--lang", "c", "-o", out, program(), "nosuch")
    expect(r.status == 1 and not os.path.exists(out), r)
    with open(out, "w", encoding="utf-8") as file:
        file.write("mine")
    r = cairn("bind", "--lang", "java", "--package", "no name", "-o", out, program(), "s1")
    expect(r.status == 2 and bytes_of(out) == b"mine", r)


def others_folder(name):
    """A directory of the user nobody, in which root is to write, and a file of root's that it must
    not touch."""
    need_root()
    nobody = pwd.getpwnam("nobody")
    os.chmod(folder(), 0o755)
    where, mine = os.path.join(folder(), name), os.path.join(folder(), name + ".precious")
    os.makedirs(where)
    with open(mine, "w", encoding="utf-8") as file:
        file.write("precious")
    shutil.copy(program(), os.path.join(where, "prog"))
    for path in (where, os.path.join(where, "prog")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return where, mine


def plant(to, link):
    nobody = pwd.getpwnam("nobody")
    os.symlink(to, link)
    os.chown(link, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)


# What each writes in the directory d, by all of its options that write: (words, names).
PLANTED = {
    "sidecar": (lambda d: ("sidecar", d + "/prog"), ["prog.cairn"]), "sidecar --output":
    (lambda d: ("sidecar", d + "/prog", "-o", d + "/x"), ["x"]),
    "sidecar --debuginfod": (lambda d: ("sidecar", "--debuginfod", d, d + "/prog"), [
        BUILD_ID + ".cairn.debug"
    ]), "unwind encode": (lambda d: ("unwind", "encode", d + "/prog"), ["prog.sframe"]),
    "unwind encode --output": (lambda d: ("unwind", "encode", d + "/prog", "-o", d + "/x"), ["x"]),
    "unwind encode --embed": (lambda d:
                              ("unwind", "encode", "--embed", d + "/prog", "-o", d + "/x"), ["x"]),
    "btf encode": (lambda d: ("btf", "encode", "prog"), ["prog.btf",
                                                         "prog.btf.inline"]), "btf encode --output":
    (lambda d: ("btf", "encode", "--global-vars=split", d + "/prog", "-o", d + "/x"), [
        "x", "x.inline", "x.vars"
    ]), "btf encode --embed": (lambda d:
                               ("btf", "encode", "--embed", d + "/prog", "-o", d + "/x"), ["x"]),
    "btf convert --output": (lambda d: ("btf", "convert", d + "/base.btf", "-o", d + "/x"), [
        "x"
    ]), "btf dedup --output": (lambda d: ("btf", "dedup", d + "/base.btf", "-o", d + "/x"), [
        "x"
    ]), "btf merge --output": (lambda d:
                               ("btf", "merge", d + "/base.btf", d + "/base.btf", "-o", d + "/x"), [
                                   "x"
                               ]), "btf distil --output":
    (lambda d: ("btf", "distil", d + "/base.btf.inline", "-B", d + "/base.btf", "-o", d + "/x"), [
        "x", "x.base"
    ]), "profile --output": (lambda d: ("profile", "-c", "true", "-o", d + "/x.folded"), [
        "x.folded"
    ]), "profile show --output": (lambda d:
                                  ("profile", "show", d + "/base.folded", "-o", d + "/x.folded"), [
                                      "x.folded"
                                  ]), "profile diff --output":
    (lambda d: ("profile", "diff", d + "/base.folded", d + "/base.folded", "-o", d + "/x.html"), [
        "x.html"
    ]), "bind --output": (lambda d: ("bind", "--lang", "c", d + "/prog", "s1", "-o", d + "/x"), [
        "x"
    ]), "layout --update": (lambda d: ("layout", "--lock", d + "/x", "--update", d + "/prog"), [
        "x"
    ]), "trace --output": (lambda d: ("trace", "-o", d + "/x", "-c", d + "/prog", "main"), ["x"]),
}
# Options whose help speaks of writing, and that name no file which they write.
WRITE_NO_FILE_OF_THEIRS = {
    "layout --expand", "layout --check", "btf dump --pretty",
    "sidecar --keep",  # the cache has a claim of its own
    "btf convert --layout", "btf convert --no-layout", "btf encode --layout",
    "btf encode --global-vars", "btf dedup --base",
}


def verbs():
    text = cairn("--completion", "bash", check=True).out
    return re.findall(r"^\t'([a-z ]+)'\) options='", text, re.M)


@claim
def every_option_that_writes_is_tested_here():
    found = set()
    for verb in verbs():
        text = cairn(*verb.split(), "--help", check=True).out
        for option in re.split(r"\n(?=  (?:-\w, |    )--)",
                               text.split("Options:\n")[1].split("\nExamples")[0]):
            name = re.search(r"--[a-z-]+", option).group()
            if name == "--json":
                continue
            if name == "--output" or name == "--embed" or re.search(r"\bwrit(e|es|ten)\b", option):
                found.add(f"{verb} {name}")
    expect(len(found) > 15, found)
    expect(found <= set(PLANTED) | WRITE_NO_FILE_OF_THEIRS,
           found - set(PLANTED) - WRITE_NO_FILE_OF_THEIRS)
    expect({name for name in PLANTED if "--" in name} <= found, found)


def others_work(verb, what):
    """(function that runs the verb, directory, names of its files, root's file)."""
    words, names = PLANTED[verb]
    where, mine = others_folder(what + "-" + verb.replace(" ", ""))
    for suffix in (".btf", ".btf.inline", ".folded"):
        shutil.copy(btf() + suffix, os.path.join(where, "base" + suffix))
    return lambda: cairn(*words(where), cwd=where), where, names, mine


@functools.cache
def btf():
    path = os.path.join(folder(), "base")
    cairn("btf", "encode", program(), "-o", path + ".btf", check=True)
    with open(path + ".folded", "w", encoding="utf-8") as file:
        file.write("main;f 1\n")
    return path


# A lock file is read first.
def is_refused(verb, r, what):
    return r.status in (
        2, 3
    ) and what in r.err or verb == "layout --update" and r.status == 4 and "no lock file" in r.err


@claim_each(*PLANTED)
def root_does_not_write_through_another_users_link(verb):
    write, where, names, mine = others_work(verb, "link")
    fifo = mine + ".fifo"
    os.mkfifo(fifo)
    ear = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    for name in names:
        # To a file, to what is not there yet, and to what is no file, as a disk is none.
        for to in (mine, mine + ".new", fifo):
            plant(to, os.path.join(where, name))
            r = write()
            expect(is_refused(verb, r, "is a symbolic link of another user"), name, to, r)
            expect(
                bytes_of(mine) == b"precious" and os.path.islink(os.path.join(where, name)), name,
                r)
            expect(not os.path.exists(mine + ".new") and not os.read(ear, 1), name, r)
            os.unlink(os.path.join(where, name))
            # Nor is a part of what belongs together there.
            expect(not any(os.path.exists(os.path.join(where, other)) for other in names), name,
                   os.listdir(where))
    os.close(ear)
    r = write()
    expect(r.status in (0, 1, 3) and "another user" not in r.err, r)


@claim_each(*PLANTED)
def root_does_not_write_to_another_users_pipe(verb):
    write, where, names, _ = others_work(verb, "pipe")
    nobody = pwd.getpwnam("nobody")
    for name in names:
        path = os.path.join(where, name)
        os.mkfifo(path)
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
        ear = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        r = write()
        expect(is_refused(verb, r, "it is a pipe of another user") and not os.read(ear, 1), name, r)
        os.close(ear)
        os.unlink(path)


# What else makes or writes files, and why it may.
OTHER_WRITERS = {
    "src/ground/base/directory.c":
    "new files in a directory that it makes beside the one that it becomes; test_profile_ctf.py has the claims",
    "src/ground/base/own_path.c": "what is no regular file, for the writer",
    "src/store/sidecar/cache.c": "an empty mark in the cache, which was judged before",
    "src/live/launch/needed.c": "/dev/null",
    "cli/core/pager.c": "/dev/null", "cli/code/push_sender.c": "/dev/null", "cli/code/push_spool.c":
    "an empty file for a lock, and renames, within a folder "
    "that was judged before", "cli/house/keep.c": "/dev/null and /proc/self/oom_score_adj",
    "cli/code/trace_output.c": "renames of the file that the writer made, to names beside it",
    "cli/types/layout_open.c": "a file of mkstemp(), for clang", "cli/types/layout_headers.c":
    "headers in a directory of mkdtemp(), for the preprocessor",
}


@claim
def all_files_go_through_the_one_writer():
    writes = re.compile(
        r"O_CREAT|O_WRONLY|O_RDWR|O_TMPFILE|\bcreat\(|mkstemp|mkostemp|\bmknod|\brename(at2?)?\(|fopen\([^)]*\"\w*[wa+]"
    )
    found = set()
    for top in ("src", "cli", "agent"):
        for where, _, names in os.walk(os.path.join(SOURCE, top)):
            for name in names:
                path = os.path.join(where, name)
                if name.endswith((".c", ".h")) and writes.search(bytes_of(path).decode()):
                    found.add(os.path.relpath(path, SOURCE))
    found -= {"src/ground/base/atomic_file.c", "src/ground/base/atomic_file.h"}
    expect(found == set(OTHER_WRITERS), found ^ set(OTHER_WRITERS))


@claim
def nobody_writes_where_a_third_one_leads_in_a_shared_directory():
    where, _ = others_folder("shared")
    nobody, third = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
    own = os.path.join(folder(), "shared.own")
    os.chmod(where, 0o1777)
    os.chown(where, 0, 0)
    os.makedirs(own)
    os.chown(own, nobody.pw_uid, nobody.pw_gid)
    mine = os.path.join(own, "precious")
    with open(mine, "wb") as file:
        file.write(b"precious")
    os.chown(mine, nobody.pw_uid, nobody.pw_gid)
    as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    if run(need("test"), "-r", CAIRN, **as_nobody).status:
        raise Skip("the program's folder cannot be read by others")
    for owner, is_led in ((third, False), (nobody, True)):
        link = os.path.join(where, "x")
        os.symlink(mine, link)
        os.chown(link, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
        r = cairn("bind", "--lang", "c", "-o", link, where + "/prog", "s1", cwd=own, **as_nobody)
        expect((r.status == 0) == is_led and (bytes_of(mine) == b"precious") != is_led, r)
        os.unlink(link)


@claim
def root_does_not_write_through_a_linked_directory():
    where, mine = others_folder("planted-directory")
    os.makedirs(mine + ".d")
    plant(mine + ".d", os.path.join(where, "out"))
    for words in (("sidecar", where + "/prog", "-o",
                   where + "/out/x"), ("btf", "encode", where + "/prog", "-o", where + "/out/x"),
                  ("bind", "--lang", "c", where + "/prog", "s1", "-o", where + "/out/x")):
        r = cairn(*words)
        expect(r.status != 0 and not os.listdir(mine + ".d"), r)
    # Links of root's own are followed.
    os.symlink(mine + ".d", os.path.join(folder(), "own-link"))
    r = cairn("sidecar", where + "/prog", "-o", os.path.join(folder(), "own-link", "x"))
    expect(r.status == 0 and os.listdir(mine + ".d") == ["x"], r)


@claim
def root_makes_no_cache_where_another_user_leads_it():
    where, mine = others_folder("planted-cache")
    os.makedirs(mine + ".d")
    for cache in (os.path.join(where, ".cache"), os.path.join(where, "plain")):
        if cache.endswith(".cache"):
            plant(mine + ".d", cache)
        r = run(CAIRN, "sidecar", "--keep", where + "/prog",
                env={**os.environ, "XDG_CACHE_HOME": cache})
        expect(r.status != 0 and "not trusted" in r.err, r)
        run(CAIRN, "sites", where + "/prog", "f1", env={**os.environ, "XDG_CACHE_HOME": cache})
        time.sleep(.2)
        expect(not os.listdir(mine + ".d") and not os.path.isdir(os.path.join(where, "plain")),
               os.listdir(where))


@claim
def root_empties_no_file_that_has_another_name():
    where, mine = others_folder("planted-name")
    os.link(mine, os.path.join(where, "x"))
    r = cairn("trace", "-o", where + "/x", "-c", where + "/prog", "main")
    expect(r.status != 0 and "has other names" in r.err and bytes_of(mine) == b"precious", r)


@claim
def what_is_no_file_is_written_to():
    r = cairn("bind", "--lang", "c", "-o", "/dev/stdout", program(), "s1")
    expect(r.status == 0 and "s1_get_a" in r.out, r)
    expect(
        cairn("bind", "--lang", "c", "-o", "/dev/null", program(), "s1").status == 0, "/dev/null")


if __name__ == "__main__":
    main()
