#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is written is whole or not there, and root writes nothing where another user's link leads."""

import os
import pwd
import random
import shutil
import signal
import subprocess
import time

from claims import CAIRN, cairn, claim, claim_each, compile_c, expect, folder, main, need_root, run

PROGRAM = "\n".join(f"struct s{i} {{ int a; char b; long c[{i + 1}]; }}; int f{i}(struct s{i} *s) {{ return s->a + s->b; }}" for i in range(400)) + """
int main(void) { struct s0 s = {0}; return f0(&s); }
"""
FLAGS = ("-O2", "-g", "-fno-eliminate-unused-debug-types")


def program():
    return compile_c("own", PROGRAM, "gcc", FLAGS)


TYPES = [f"s{i}" for i in range(400)]
# Each writes @o.
WRITERS = {
    "bind": lambda p, o: ("bind", "--lang", "java", "-o", o, p, *TYPES),
    "pack": lambda p, o: ("pack", p, "-o", o),
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
    for i in range(60):
        if i % 2:
            with open(out, "wb") as file:
                file.write(b"what was there")
        elif os.path.exists(out):
            os.unlink(out)
        with subprocess.Popen([CAIRN, *WRITERS[verb](path, out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.random() * took)
            process.kill()
            n_killed += process.wait() == -signal.SIGKILL
        found = bytes_of(out) if os.path.exists(out) else None
        expect(found in (whole, b"what was there" if i % 2 else None), verb, i, found and len(found), len(whole))
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
    """A directory of the user nobody, in which root is to write, and a file of root's that it must not touch."""
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


PLANTED = {
    "pack": (lambda d: ("pack", d + "/prog"), "prog.cairn"),
    "pack -o": (lambda d: ("pack", d + "/prog", "-o", d + "/x"), "x"),
    "unwind encode": (lambda d: ("unwind", "encode", d + "/prog"), "prog.sframe"),
    "btf encode": (lambda d: ("btf", "encode", d + "/prog", "-o", d + "/x"), "x"),
    "bind": (lambda d: ("bind", "--lang", "c", d + "/prog", "s1", "-o", d + "/x"), "x"),
    "lock": (lambda d: ("layout", "--lock", d + "/x", "--update", d + "/prog"), "x"),
    "trace": (lambda d: ("trace", "-o", d + "/x", "-c", d + "/prog", "main"), "x"),
}


@claim_each(*PLANTED)
def root_does_not_write_through_another_users_link(verb):
    words, name = PLANTED[verb]
    where, mine = others_folder("planted-" + verb.replace(" ", ""))
    plant(mine, os.path.join(where, name))
    r = cairn(*words(where))
    # A lock file is read first.
    expect(r.status != 0 and ("is a symbolic link of another user" in r.err or verb == "lock" and "no lock file" in r.err), r)
    expect(bytes_of(mine) == b"precious" and os.path.islink(os.path.join(where, name)), r)
    # Nor where it does not lead to a file yet.
    os.unlink(os.path.join(where, name))
    plant(mine + ".new", os.path.join(where, name))
    r = cairn(*words(where))
    expect(r.status != 0 and not os.path.exists(mine + ".new"), r)


@claim
def root_does_not_write_through_a_linked_directory():
    where, mine = others_folder("planted-directory")
    os.makedirs(mine + ".d")
    plant(mine + ".d", os.path.join(where, "out"))
    for words in (("pack", where + "/prog", "-o", where + "/out/x"), ("btf", "encode", where + "/prog", "-o", where + "/out/x"),
                  ("bind", "--lang", "c", where + "/prog", "s1", "-o", where + "/out/x")):
        r = cairn(*words)
        expect(r.status != 0 and not os.listdir(mine + ".d"), r)
    # Links of root's own are followed.
    os.symlink(mine + ".d", os.path.join(folder(), "own-link"))
    r = cairn("pack", where + "/prog", "-o", os.path.join(folder(), "own-link", "x"))
    expect(r.status == 0 and os.listdir(mine + ".d") == ["x"], r)


@claim
def root_makes_no_cache_where_another_user_leads_it():
    where, mine = others_folder("planted-cache")
    os.makedirs(mine + ".d")
    for cache in (os.path.join(where, ".cache"), os.path.join(where, "plain")):
        if cache.endswith(".cache"):
            plant(mine + ".d", cache)
        r = run(CAIRN, "pack", "--keep", where + "/prog", env={**os.environ, "XDG_CACHE_HOME": cache})
        expect(r.status != 0 and "not trusted" in r.err, r)
        run(CAIRN, "sites", where + "/prog", "f1", env={**os.environ, "XDG_CACHE_HOME": cache})
        time.sleep(.2)
        expect(not os.listdir(mine + ".d") and not os.path.isdir(os.path.join(where, "plain")), os.listdir(where))


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
    expect(cairn("bind", "--lang", "c", "-o", "/dev/null", program(), "s1").status == 0, "/dev/null")


if __name__ == "__main__":
    main()
