#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The cache of sidecars: filled by the first use, used by the next, harmed by nothing."""

import fcntl
import os
import re
import shutil
import stat
import struct
import subprocess
import time

from claims import (CAIRN, WITHOUT_LEAKS, Skip, cairn, claim, claim_each, compile_c, expect, folder,
                    main, need, need_root, run)
from sidecars import reseal

PROGRAM = """\
#include <stdio.h>
struct node { struct node *next; int x, y; };
static volatile long sink;
static inline __attribute__((always_inline)) long add(struct node *n, int right) { sink = n->x; return n->y + right; }
__attribute__((noinline)) long walk(struct node *n, int c) { long s = 0; for (; n; n = n->next) s += add(n, c); return s; }
int main(int argc, char **argv) { struct node a = {0, argc, 3}; printf("%ld\\n", walk(&a, argc)); return 0; }
"""

NOBODY = 65534
# Offsets in the header: docs/formats/sidecar.md.
ANALYSIS, MAKER = 32, 36


def program():
    return compile_c("cached", PROGRAM, "gcc", ("-O2", "-g", "-Wl,--build-id"))


class Cache:
    """A cache of its own, as the program is told of it."""

    def __init__(self, name, parent=None):
        self.xdg = os.path.join(parent or folder(), name)
        self.dir = os.path.join(self.xdg, "cairn")

    def env(self, **more):
        return {
            **os.environ, "XDG_CACHE_HOME": self.xdg, "CAIRN_CACHE": "keep", "ASAN_OPTIONS":
            WITHOUT_LEAKS, **more
        }

    def run(self, *words, **more):
        return cairn(*words, env=self.env(**more))

    def files(self):
        return sorted(os.listdir(self.dir)) if os.path.isdir(self.dir) else []

    def sidecar(self, seconds=30):
        """The one sidecar, which may be made in the background still."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = [f for f in self.files() if f.endswith(".cairn")]
            if found and self.files() == found:
                expect(len(found) == 1, found)
                return os.path.join(self.dir, found[0])
            time.sleep(0.02)
        raise AssertionError(f"no sidecar in {self.dir}: {self.files()}")


def inode(path):
    return os.stat(path).st_ino


def answer_of(cache, *words):
    r = cache.run(*words)
    expect(r.status == 0, r)
    return r.out


def first_use_makes_it(name, *words):
    cache = Cache(name)
    told = answer_of(cache, *words)
    kept = inode(cache.sidecar())
    expect(answer_of(cache, *words) == told and inode(cache.sidecar()) == kept)
    expect(cache.run("sidecar", "--check", cache.sidecar()).status == 0)


@claim
def sites_makes_a_sidecar_on_first_use_and_uses_it_then():
    first_use_makes_it("sites", "sites", program(), "add", "--json")


@claim
def trace_makes_a_sidecar_on_first_use_and_uses_it_then():
    first_use_makes_it("trace", "trace", "--dry-run", "-c", program(), "add(n->x)")


@claim
def addr_makes_a_sidecar_on_first_use_and_sites_completes_it():
    cache = Cache("addr")
    walk = cairn("sites", program(), "walk", "--json").objects()[0]["addr"]
    told = answer_of(cache, "addr", program(), walk)
    first = inode(cache.sidecar())
    expect(answer_of(cache, "addr", program(), walk) == told and inode(cache.sidecar()) == first)
    answer_of(cache, "sites", program(), "add")
    end = time.monotonic() + 30
    while inode(cache.sidecar()) == first and time.monotonic() < end:
        time.sleep(0.02)
    expect(inode(cache.sidecar()) != first)
    expect(answer_of(cache, "addr", program(), walk) == told)


@claim
def it_is_the_sidecar_that_answers_the_second_time():
    cache = Cache("second")
    answer_of(cache, "sites", program(), "add")
    stripped = os.path.join(folder(), "second-stripped")
    cache.sidecar()
    run("strip", program(), "-o", stripped, check=True)
    expect(
        answer_of(cache, "sites", stripped, "add") == answer_of(cache, "sites", program(), "add",
                                                                "--no-sidecar"))


@claim
def nothing_is_kept_where_that_is_not_wanted():
    for words, more in ((("--no-cache",), {}), ((), {"CAIRN_CACHE": "off"}), ((), {
            "CAIRN_CACHE": "read"
    }), (("--no-sidecar",), {})):
        cache = Cache("unwanted")
        expect(cache.run("sites", program(), "add", *words, **more).status == 0)
        expect(cache.run("trace", "--dry-run", "-c", program(), "add", *words, **more).status == 0)
        time.sleep(0.1)
        expect(not os.path.exists(cache.xdg), words, more, cache.files())


@claim
def the_cache_is_in_home_and_without_home_there_is_none():
    cache = Cache("home")
    env = {k: v for k, v in cache.env().items() if k not in ("XDG_CACHE_HOME", "HOME")}
    expect(cairn("sites", program(), "add", env=env).status == 0)
    r = cairn("sidecar", "--keep", program(), env=env)
    expect(r.status == 3 and "neither XDG_CACHE_HOME nor HOME" in r.err, r)
    cairn("sites", program(), "add", env={**env, "HOME": cache.xdg})
    in_home = Cache("home/.cache")
    expect(in_home.sidecar().startswith(os.path.join(cache.xdg, ".cache/cairn/")))
    # As its specification says: a relative path is no path.
    expect(
        cairn("sidecar", "--keep", program(), env={**env, "XDG_CACHE_HOME": "relative"}).status ==
        3)


@claim
def many_first_uses_at_once_make_one_sidecar():
    cache = Cache("many")
    # Once: it compiles, and the first of the twelve would read what the next one writes.
    path = program()
    started = [
        subprocess.Popen([CAIRN, "sites", path, "add"], env=cache.env(), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True) for _ in range(12)
    ]
    told = [p.communicate() + (p.returncode,) for p in started]
    expect(len(set(told)) == 1 and told[0][1:] == ("", 0), set(told))
    expect(cache.run("sidecar", "--check", cache.sidecar()).status == 0)
    expect(len(cache.files()) == 1, cache.files())


@claim
def a_sidecar_of_another_build_of_cairn_is_made_anew():
    cache = Cache("stale")
    answer_of(cache, "sites", program(), "add")
    path = cache.sidecar()
    with open(path, "r+b") as file:
        bytes_ = file.read()
        header = bytes_.index(b"cairnpk\0")
        maker = struct.unpack_from("<I", bytes_, header + MAKER)[0]
        file.seek(header + MAKER)
        file.write(struct.pack("<I", maker ^ 1))
    reseal(path)
    answer_of(cache, "sites", program(), "add")
    end = time.monotonic() + 30
    while open(cache.sidecar(), "rb").read() != bytes_ and time.monotonic() < end:
        time.sleep(0.02)
    with open(cache.sidecar(), "rb") as file:
        expect(file.read() == bytes_)


@claim
def a_cached_sidecar_of_another_version_of_the_format_is_made_anew_without_a_word():
    cache = Cache("version")
    told = answer_of(cache, "sites", program(), "add")
    path = cache.sidecar()
    with open(path, "r+b") as file:
        bytes_ = file.read()
        file.seek(bytes_.index(b"cairnpk\0") + 8)
        file.write(struct.pack("<I", 99))
    reseal(path)
    # One that somebody names is refused with both versions.
    r = cache.run("sites", program(), "add", "--sidecar", path)
    expect(r.status == 3 and "version 99" in r.err and path in r.err, r)
    r = cache.run("sites", program(), "add")
    expect(r.out == told and not r.err, r)
    end = time.monotonic() + 30
    while open(cache.sidecar(), "rb").read() != bytes_ and time.monotonic() < end:
        time.sleep(0.02)
    with open(cache.sidecar(), "rb") as file:
        expect(file.read() == bytes_)


def stripped_with_analysis(name, number):
    """The program without debug information, beside a sidecar that this analysis made."""
    stripped = os.path.join(folder(), name)
    run("strip", program(), "-o", stripped, check=True)
    cairn("sidecar", program(), "-o", stripped + ".cairn", check=True)
    with open(stripped + ".cairn", "r+b") as file:
        bytes_ = file.read()
        file.seek(bytes_.index(b"cairnpk\0") + ANALYSIS)
        file.write(struct.pack("<I", number))
    reseal(stripped + ".cairn")
    return stripped


@claim
def an_older_analysis_is_told_of_when_there_is_nothing_else():
    path, stripped = program(), stripped_with_analysis("older", 1)
    r = cairn("sites", stripped, "add")
    expect(r.status == 0 and "made by an older version of cairn" in r.err, r)
    shutil.copy(stripped + ".cairn", path + ".cairn")
    r = cairn("sites", path, "add")
    os.unlink(path + ".cairn")
    expect(r.status == 0 and not r.err, r)


@claim
def a_newer_analysis_is_refused():
    """A hazard that only it knows would be taken for none."""
    path, stripped = program(), stripped_with_analysis("newer", 77)
    r = cairn("sites", stripped, "add")
    expect(r.status != 0 and "newer version of cairn: analysis 77" in r.err and not r.out, r)
    r = cairn("sites", path, "add", "--sidecar", stripped + ".cairn")
    expect(r.status == 3 and "newer version of cairn: analysis 77" in r.err, r)


@claim
def a_damaged_cached_sidecar_is_said_once_and_replaced():
    cache = Cache("damaged")
    told = answer_of(cache, "sites", program(), "add")
    path = cache.sidecar()
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) // 2)
    r = cache.run("sites", program(), "add")
    expect(r.status == 0 and r.out == told and path in r.err, r)
    end = time.monotonic() + 30
    while cache.run("sidecar", "--check", path).status and time.monotonic() < end:
        time.sleep(0.02)
    r = cache.run("sites", program(), "add")
    expect(r.out == told and not r.err, r)


def tmpfs(name, size):
    if os.geteuid():
        raise Skip("mounting needs root")
    path = os.path.join(folder(), name)
    os.mkdir(path)
    if run("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "cairn-test", path).status:
        raise Skip("a tmpfs cannot be mounted here")
    return path


@claim
def a_full_disk_leaves_the_answer_and_nothing_half_written():
    disk = tmpfs("full-disk", "16k")
    try:
        cache = Cache("xdg", disk)
        with open(os.path.join(disk, "filler"), "wb") as file:
            try:
                file.write(b"x" * (1 << 20))
            except OSError:
                pass
        r = cache.run("sites", program(), "add")
        expect(r.status == 0 and "1 site" in r.out and not r.err, r)
        r = cache.run("sidecar", "--keep", program())
        expect(r.status == 3 and ("No space" in r.err), r)
        expect(not [f for f in cache.files() if not f.endswith(".attempt")], cache.files())
        # In the background nobody tries again at once.
        r = cache.run("sidecar", "--keep=background", program())
        expect(r.status == 3, r)
        os.unlink(os.path.join(disk, "filler"))
        expect(cache.run("sidecar", "--keep", program()).status == 0)
        cache.sidecar()
    finally:
        run("umount", disk, check=True)


@claim
def a_read_only_cache_leaves_the_answer():
    disk = tmpfs("read-only", "1m")
    try:
        cache = Cache("xdg", disk)
        os.makedirs(cache.dir, mode=0o700)
        run("mount", "-o", "remount,ro", disk, check=True)
        r = cache.run("sites", program(), "add")
        expect(r.status == 0 and "1 site" in r.out and not r.err, r)
        r = cache.run("sidecar", "--keep", program())
        expect(r.status == 3 and "Read-only" in r.err, r)
    finally:
        run("umount", disk, check=True)


def refused(cache, why):
    r = cache.run("sites", program(), "add")
    expect(r.status == 0 and "1 site" in r.out, r)
    r = cache.run("sidecar", "--keep", program())
    expect(r.status == 3 and "not trusted" in r.err and why in r.err, r)
    r = cache.run("sidecar", "--prune")
    expect(r.status == 3 and why in r.err, r)


@claim
def as_root_another_users_cache_is_neither_read_nor_written_nor_pruned():
    if os.geteuid():
        raise Skip("needs root")
    cache = Cache("theirs")
    answer_of(cache, "sites", program(), "add")
    path = cache.sidecar()
    os.chown(cache.xdg, NOBODY, NOBODY)
    refused(cache, "belongs to another user")
    r = cache.run("sites", program(), "add")
    expect("not trusted" in r.err and "1 site" in r.out, r)
    os.chown(cache.xdg, 0, 0)
    os.chmod(cache.dir, 0o777)
    refused(cache, "can be written by other users")
    os.chmod(cache.dir, 0o700)
    os.chown(path, NOBODY, NOBODY)
    r = cache.run("sites", program(), "add")
    expect("belongs to another user" in r.err and "1 site" in r.out, r)


@claim
def a_symbolic_link_in_the_cache_is_not_followed_by_root():
    if os.geteuid():
        raise Skip("needs root")
    cache = Cache("link")
    answer_of(cache, "sites", program(), "add")
    cache.sidecar()
    os.rename(cache.dir, cache.dir + "-elsewhere")
    os.symlink(cache.dir + "-elsewhere", cache.dir)
    refused(cache, "is a symbolic link")


def theirs(name, flags=()):
    """A program in a directory of nobody's, and the directory; both are nobody's."""
    need_root()
    where = os.path.join(folder(), name)
    os.mkdir(where)
    os.chmod(folder(), 0o755)
    path = compile_c(name + "/evil", PROGRAM, "gcc", ("-O2", "-g", "-Wl,--build-id", *flags))
    for file in (path, where):
        os.chown(file, NOBODY, NOBODY)
    return path, where


def looked_at_and_not_kept(name, path, why, *options):
    """Every verb that keeps something looks at PATH, and root's cache stays empty."""
    cache = Cache(name)
    walk = cairn("sites", path, "walk", "--json", "--no-sidecar", *options).objects()[0]["addr"]
    for words in (("sites", path, "add"), ("trace", "--dry-run", "-c", path, "add"), ("addr", path,
                                                                                      walk)):
        r = cache.run(*words, *options)
        expect(r.status == 0, r)
    for keep in ("--keep", "--keep=background"):
        r = cache.run("sidecar", keep, path, *options)
        refused_now = "not trusted" in r.err and why in r.err
        # That a .dwo file is another user's is known when the sidecar was made; in the background
        # that is not tried again.
        expect(r.status == 3 and (refused_now or "short time ago" in r.err), r)
    expect(not [f for f in cache.files() if f.endswith(".cairn")], cache.files())


@claim
def root_keeps_nothing_of_a_file_that_another_user_owns():
    path, _ = theirs("owned")
    looked_at_and_not_kept("owned-cache", path, "belongs to another user")


@claim
def root_keeps_nothing_of_a_file_that_another_user_could_replace_or_write():
    path, where = theirs("replaced")
    os.chown(path, 0, 0)
    looked_at_and_not_kept("replaced-cache", path, "belongs to another user")
    os.chown(where, 0, 0)
    os.chmod(where, 0o777)
    looked_at_and_not_kept("open-dir-cache", path, "can be written by other users")
    os.chmod(where, 0o755)
    os.chmod(path, 0o777)
    looked_at_and_not_kept("open-file-cache", path, "can be written by other users")
    os.chmod(path, 0o755)
    answer_of(Cache("trusted-cache"), "sites", path, "add")
    Cache("trusted-cache").sidecar()


@claim
def root_keeps_nothing_that_is_from_another_users_debug_file():
    path, where = theirs("debug")
    os.chown(path, 0, 0)
    mine = os.path.join(folder(), "debug-mine")
    os.makedirs(os.path.join(where, ".build-id"))
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path).out).group(1)
    debug = os.path.join(where, ".build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(debug))
    run("objcopy", "--only-keep-debug", path, debug, check=True)
    run("strip", path, "-o", mine, check=True)
    looked_at_and_not_kept("debug-cache", mine, "belongs to another user", "--debug-dir", where)


@claim
def root_keeps_nothing_that_is_from_another_users_split_debug_information():
    path, where = theirs("split", ("-gsplit-dwarf",))
    os.chown(path, 0, 0)
    mine = os.path.join(folder(), "split-mine")
    shutil.copy(path, mine)
    dwo = [
        os.path.join(d, f) for d, _, files in os.walk(folder()) for f in files if f.endswith(".dwo")
    ]
    expect(len(dwo) == 1, dwo)
    os.chown(dwo[0], NOBODY, NOBODY)
    looked_at_and_not_kept("split-cache", mine, "belongs to another user")


@claim
def root_keeps_nothing_of_a_user_s_process():
    path, _ = theirs("process")
    waiting = compile_c("process/waiting", PROGRAM.replace("printf", "getchar(); printf"), "gcc",
                        ("-O2", "-g", "-Wl,--build-id"))
    os.chown(waiting, NOBODY, NOBODY)
    cache = Cache("process-cache")
    with subprocess.Popen(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", waiting],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        for _ in range(1000):
            if "waiting" in os.readlink(f"/proc/{p.pid}/exe") and "0x" in run(
                    "cat", f"/proc/{p.pid}/syscall").out:
                break
            time.sleep(0.01)
        stack = cache.run("stack", p.pid)
        base = next(line for line in run("cat", f"/proc/{p.pid}/maps").lines()
                    if waiting in line).split("-")[0]
        addr = cache.run("addr", p.pid, "0x" + base)
        p.stdin.close()
    expect("main" in stack.out and addr.status in (0, 1), stack, addr)
    # What else it maps is root's, and is kept.
    kept = [f for f in cache.files() if f.endswith(".cairn")]
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", waiting).out).group(1)
    expect(build_id + ".cairn" not in kept, kept)


@claim
def a_path_that_leads_to_another_file_by_now_is_not_trusted():
    """Root opened the link's target of then: what the link leads to now says nothing about it."""
    path, where = theirs("swapped")
    mine = os.path.join(folder(), "swapped-mine")
    shutil.copy(path, mine)
    link = os.path.join(where, "link")
    os.symlink(path, link)
    looked_at_and_not_kept("swapped-cache", link, "belongs to another user")
    os.unlink(link)
    os.symlink(mine, link)
    cache = Cache("swapped-good")
    expect(cache.run("sidecar", "--keep", link).status == 0)
    cache.sidecar()


@claim
def a_cache_that_cannot_be_read_is_noted_once():
    need_root()
    need("setpriv")
    closed = Cache("closed-cache")
    os.makedirs(closed.dir)
    os.chmod(closed.xdg, 0o700)
    drop = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    waiting = compile_c("closed-waiting", PROGRAM.replace("printf", "getchar(); printf"), "gcc",
                        ("-O2", "-g", "-Wl,--build-id"))
    with subprocess.Popen([*drop, waiting], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        for _ in range(1000):
            if "waiting" in os.readlink(f"/proc/{p.pid}/exe") and "0x" in run(
                    "cat", f"/proc/{p.pid}/syscall").out:
                break
            time.sleep(0.01)
        r = run(*drop, CAIRN, "stack", str(p.pid), env=closed.env())
        p.stdin.close()
    # The program and libc at least: two files would have been looked for.
    expect("main" in r.out and r.err.count("Permission denied") == 1, r)
    expect(
        f"cairn: {closed.dir}: Permission denied: sidecars are neither taken from this cache nor kept in it"
        in r.err, r)


@claim
def a_user_keeps_nothing_of_another_users_file():
    path, _ = theirs("between-users")
    xdg = os.path.join(folder(), "user-cache")
    os.mkdir(xdg)
    os.chown(xdg, NOBODY - 1, NOBODY - 1)
    cache = Cache("user-cache")
    r = run("setpriv", f"--reuid={NOBODY - 1}", f"--regid={NOBODY - 1}", "--clear-groups", CAIRN,
            "sidecar", "--keep", path, env=cache.env())
    expect(r.status == 3 and "belongs to another user" in r.err and not cache.files(), r)
    os.chown(path, 0, 0)
    r = run("setpriv", f"--reuid={NOBODY - 1}", f"--regid={NOBODY - 1}", "--clear-groups", CAIRN,
            "sidecar", "--keep", path, env=cache.env())
    expect(r.status == 0 and len(cache.files()) == 1, r, cache.files())


@claim
def a_maker_killed_at_any_call_leaves_nothing_half_written():
    need("strace")
    cache = Cache("killed")
    # The last word about a file is its rename: whatever is killed before, no sidecar is visible.
    for call in ("fsync", "linkat", "rename,renameat,renameat2"):
        r = run("strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when=1", CAIRN,
                "sidecar", "--keep", "-j1", program(), env=cache.env())
        if r.status == 0:
            raise Skip("strace does not inject signals here")
        found = [f for f in cache.files() if f.endswith(".cairn")]
        expect(
            not found
            or cache.run("sidecar", "--check", os.path.join(cache.dir, found[0])).status == 0, call,
            found)
        for name in found:
            os.unlink(os.path.join(cache.dir, name))
    left = [os.path.join(cache.dir, f) for f in cache.files()]
    expect(left and not [f for f in left if f.endswith(".cairn")], left)
    # Somebody who asks has it made; pruning removes what the killed ones left, when it is old.
    expect(cache.run("sidecar", "--keep", program()).status == 0)
    for path in left:
        if os.path.exists(path):
            os.utime(path, (1, 1))
    expect(cache.run("sidecar", "--prune").status == 0)
    cache.sidecar(seconds=1)


@claim
def a_maker_killed_while_it_works_is_not_followed_by_the_next_at_once():
    cache = Cache("again")
    os.makedirs(cache.dir, mode=0o700)
    answer_of(cache, "sites", program(), "add")
    path = cache.sidecar()
    os.rename(path, path + ".attempt")
    r = cache.run("sidecar", "--keep=background", program())
    expect(r.status == 3 and "short time ago" in r.err, r)
    expect(cache.run("sidecar", "--keep", program()).status == 0)
    expect(cache.sidecar() == path)


@claim
def the_maker_has_none_of_our_descriptors_and_the_lowest_priority():
    need("strace")
    cache = Cache("modest")
    log = os.path.join(folder(), "modest.log")
    run("strace", "-f", "-o", log, "-e",
        "trace=close_range,setpriority,sched_setscheduler,ioprio_set,setsid,execve", CAIRN, "sites",
        program(), "add", env=cache.env(), check=True)
    with open(log, encoding="utf-8") as file:
        told = file.read()
    # A call that another process's interrupts in the log has its end elsewhere.
    for what in (r"close_range\(4, ", r"setpriority\(PRIO_PROCESS, 0, 19\b", r"SCHED_IDLE",
                 r"ioprio_set", r"setsid\(",
                 r'execve\("/proc/self/exe", \["cairn", "sidecar", "--keep=background"'):
        expect(re.search(what, told), what, told)


@claim
def a_reader_of_our_output_does_not_wait_for_the_maker():
    cache = Cache("pipe")
    os.makedirs(cache.dir, mode=0o700)
    lock = os.open(cache.dir, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    # The maker waits for its turn. Did it hold the pipe, reading our output would not end.
    answer_of(cache, "sites", program(), "add")
    expect(not cache.files(), cache.files())
    os.close(lock)
    cache.sidecar()


def renamed(path, name, *old_and_new):
    """A copy of the program in which names of one length were edited, as a patcher of strings does.
    """
    with open(path, "rb") as file:
        data = file.read()
    for old, new in old_and_new:
        expect(len(old) == len(new) and old + b"\0" in data, old)
        data = data.replace(old + b"\0", new + b"\0")
    copy = os.path.join(folder(), name)
    with open(copy, "wb") as file:
        file.write(data)
    os.chmod(copy, 0o755)
    return copy


@claim
def a_file_of_the_same_code_with_other_names_gets_its_own():
    cache, path = Cache("names"), program()
    copy = renamed(path, "other-names", (b"walk", b"stir"), (b"right", b"wrong"))
    for sequence in ((path, copy), (copy, path)):
        for one in sequence:
            name, missing, argument = ("stir", "walk", "wrong") if one == copy else ("walk", "stir",
                                                                                     "right")
            for _ in range(2):
                found = cache.run("sites", one, name)
                expect(found.status == 0 and f"inlined in {name}" not in found.out, found)
                inlined = cache.run("sites", one, "add")
                expect(
                    inlined.status == 0 and f"inlined in {name}" in inlined.out
                    and argument in inlined.out, inlined)
                expect(cache.run("sites", one, missing).status == 1, missing)
                at = found.out.split("0x", 1)[1].split()[0]
                asked = cache.run("addr", one, "0x" + at)
                expect(asked.status == 0 and name in asked.out and missing not in asked.out, asked)
                cache.sidecar()


@claim
def a_stripped_file_takes_the_names_that_are_there_and_one_with_symbols_says_so():
    need("strip")
    cache, path = Cache("stripped-names"), program()
    expect(cache.run("sites", path, "walk").status == 0)
    made = cache.sidecar()
    bare = os.path.join(folder(), "bare")
    run("strip", path, "-o", bare, check=True)
    r = cache.run("sites", bare, "walk")
    expect(r.status == 0 and "right" in cache.run("sites", bare, "add").out and r.err == "", r)
    patched = renamed(path, "patched-names", (b"walk", b"stir"))
    run("strip", "-g", patched, check=True)
    r = cache.run("sites", patched, "walk")
    expect(r.status == 0 and "other symbols or debug information" in r.err, r)
    expect(cache.sidecar() == made)


def stripped_program(name, *old_and_new):
    """What strip(1) leaves of the program, and its debug file, in which names were edited; it is
    found beside it."""
    need("strip"), need("objcopy")
    bare, debug = os.path.join(folder(), name), os.path.join(folder(), name + ".debug")
    run("objcopy", "--only-keep-debug", renamed(program(), name + ".whole", *old_and_new), debug,
        check=True)
    run("strip", program(), "-o", bare, check=True)
    run("objcopy", f"--add-gnu-debuglink={debug}", bare, check=True)
    return bare, debug


@claim
def a_stripped_file_gets_the_names_of_the_debug_file_at_hand():
    """Build-id and code of both are the same: only the names in their debug files differ."""
    cache, (one, _) = Cache("debug-names"), stripped_program("bare-one")
    two, debug = stripped_program("bare-two", (b"walk", b"stir"), (b"right", b"wrong"))
    for path, name, missing, argument in 2 * ((one, "walk", "stir", "right"),
                                              (two, "stir", "walk", "wrong")):
        for _ in range(2):
            found = cache.run("sites", path, name)
            expect(found.status == 0 and f"inlined in {name}" not in found.out and found.err == "",
                   found)
            inlined = cache.run("sites", path, "add")
            expect(f"inlined in {name}" in inlined.out and argument in inlined.out, inlined)
            expect(cache.run("sites", path, missing).status == 1, missing)
            cache.sidecar()
    # Without a debug file at hand those that are there answer.
    os.unlink(debug)
    expect(cache.run("sites", two, "stir").status == 0)


@claim
def one_sidecar_serves_a_program_and_what_is_left_of_it_with_its_debug_file():
    cache, (bare, debug) = Cache("debug-same"), stripped_program("bare-of-one")
    made = set()
    for path in 2 * (program(), bare):
        expect(cache.run("sites", path, "walk").status == 0, path)
        made.add(inode(cache.sidecar()))
    os.unlink(debug)
    expect(cache.run("sites", bare, "walk").status == 0)
    made.add(inode(cache.sidecar()))
    expect(len(made) == 1, made)


def asked_in_turn(cache, one, two):
    """Both have the code and the build-id of the other, and names of their own: walk and right,
    stir and wrong."""
    for path, name, missing, argument in 2 * ((one, "walk", "stir", "right"),
                                              (two, "stir", "walk", "wrong")):
        for _ in range(2):
            found = cache.run("sites", path, name)
            expect(found.status == 0 and found.err == "", found)
            inlined = cache.run("sites", path, "add")
            expect(f"inlined in {name}" in inlined.out and argument in inlined.out, inlined)
            expect(cache.run("sites", path, missing).status == 1, missing)
            cache.sidecar()


@claim_each("dwo", "dwo, stripped", "dwp")
def names_in_split_files_are_those_of_the_file_at_hand(kind):
    need("gcc"), need("strip"), need("objcopy")
    cache, paths = Cache("names-" + kind.replace(", ", "-")), []
    for text in (PROGRAM, PROGRAM.replace("walk", "stir").replace("right", "wrong")):
        where = os.path.join(folder(), f"{kind.replace(', ', '-')}-{len(paths)}")
        os.mkdir(where)
        with open(os.path.join(where, "t.c"), "w", encoding="ascii") as file:
            file.write(text)
        # dwp of Debian 12 ends by a signal with DWARF 5.
        version = "-gdwarf-4" if kind == "dwp" else "-gdwarf-5"
        run("gcc", "-O2", version, "-gsplit-dwarf", f"-fdebug-prefix-map={where}=.",
            "-Wl,--build-id=0x" + 20 * "5a", "t.c", "-o", "t", cwd=where, check=True)
        path = os.path.join(where, "t")
        if kind == "dwp":
            need("dwp")
            run("dwp", "-e", "t", "-o", "t.dwp", cwd=where, check=True)
            os.unlink(os.path.join(where, [f for f in os.listdir(where) if f.endswith(".dwo")][0]))
        if "stripped" in kind:
            run("objcopy", "--only-keep-debug", "t", "t.debug", cwd=where, check=True)
            run("strip", "t", cwd=where, check=True)
            run("objcopy", "--add-gnu-debuglink=t.debug", "t", cwd=where, check=True)
        else:
            # No names but those of the split file.
            run("strip", "-s", "-K", "main", "--keep-section=.debug_*", "t", cwd=where, check=True)
        paths.append(path)
    asked_in_turn(cache, *paths)


@claim_each("whole", "stripped")
def names_in_a_file_that_dwz_made_are_those_of_the_file_at_hand(kind):
    """Two builds that differ in nothing but the file of shared strings, and so in its build-id."""
    need("gcc"), need("dwz"), need("strip"), need("objcopy")
    cache, paths = Cache("names-dwz-" + kind), []
    where = os.path.join(folder(), "dwz-" + kind)
    os.mkdir(where)
    for name in ("t", "u"):
        shutil.copy(program(), os.path.join(where, name))
    run("strip", "-s", "-K", "main", "--keep-section=.debug_*", "t", cwd=where, check=True)
    run("dwz", "-m", "shared", "-M", "shared", "t", "u", cwd=where, check=True)
    note = run("readelf", "-n", "shared", cwd=where, check=True).out
    old = bytes.fromhex(re.search(r"Build ID: (\w+)", note).group(1))
    for edits in ((), ((old, 20 * b"\x5a"), (b"walk\0", b"stir\0"), (b"right\0", b"wrong\0"))):
        there = f"{where}-{len(paths)}"
        os.mkdir(there)
        for name in ("t", "shared"):
            with open(os.path.join(where, name), "rb") as file:
                data = file.read()
            for before, after in edits:
                expect(name != "shared" or before in data, before)
                # The program keeps its names: they are in the other file.
                data = data.replace(before, after) if name == "shared" or before == old else data
            with open(os.path.join(there, name), "wb") as file:
                file.write(data)
        os.chmod(os.path.join(there, "t"), 0o755)
        if kind == "stripped":
            run("objcopy", "--only-keep-debug", "t", "t.debug", cwd=there, check=True)
            run("strip", "t", cwd=there, check=True)
            run("objcopy", "--add-gnu-debuglink=t.debug", "t", cwd=there, check=True)
        paths.append(os.path.join(there, "t"))
    asked_in_turn(cache, *paths)


@claim
def the_names_of_a_large_file_are_read_again_when_it_changed():
    need("objcopy")
    cache, large, pad = Cache("large-names"), os.path.join(folder(), "large"), os.path.join(
        folder(), "pad")
    with open(pad, "wb") as file:
        file.write(b"\1" * (2 << 20))
    run("objcopy", "--add-section", f".debug_pad={pad}", program(), large, check=True)
    time.sleep(2.2)  # a clock may be too coarse to show a change that comes at once
    for _ in range(2):
        expect(cache.run("sites", large, "walk").status == 0)
        cache.sidecar()
    if "user.cairn.names" not in os.listxattr(cache.sidecar()):
        raise Skip("no extended attributes here")
    patched = renamed(large, "large-patched", (b"walk", b"stir"))
    with open(patched, "rb") as file:
        data = file.read()
    # The same file, of the same size.
    with open(large, "r+b") as file:
        file.write(data)
    r = cache.run("sites", large, "stir")
    expect(r.status == 0 and cache.run("sites", large, "walk").status == 1, r)

main()
