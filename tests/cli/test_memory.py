#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout, decode and bind when memory is missing: the whole answer or an error, never half of
one or another one."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from claims import CAIRN, Skip, claim_each, expect, folder, main, need, run  # noqa: E402

# The allocation with this number fails, once; how many there were is written at the end.
FAILER = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static unsigned long at, count;
__attribute__((constructor)) static void start(void) { at = atol(getenv("FAIL_AT")); count = 0; }
static int fails(void) { if (++count != at) return 0; errno = ENOMEM; return 1; }
void *malloc(size_t n) { return fails() ? 0 : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails() ? 0 : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails() ? 0 : __libc_realloc(p, n); }
__attribute__((destructor)) static void end(void)
{
	int fd = open(getenv("FAIL_COUNT"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char text[32], *p = text + sizeof(text);
	unsigned long n = count;
	do *--p = '0' + n % 10; while (n /= 10);
	write(fd, p, text + sizeof(text) - p);
	close(fd);
}
"""

HEADER = """struct in { char c; long l[2]; };
typedef struct { short s; } nameless_t;
enum color { RED, GREEN };
struct event { char a; struct in in; union { int i; nameless_t n; }; int b : 3, d : 7; enum color e; char text[8]; };
"""

COMMANDS = {
    "text": ["layout", "event.h", "--expand"], "json": ["layout", "event.h", "--json"], "html": [
        "layout", "event.h", "--html", "--expand"
    ], "html-two": ["layout", "event.h", "event", "--html", "--abi", "bpf,i386"], "reorganize":
    ["layout", "event.h", "event", "--reorganize", "--pin-first", "--keep-together",
     "text,e"], "packable": ["layout", "event.h", "--packable"], "lint":
    ["layout", "event.h", "--lint"], "abis": ["layout", "event.h", "--abi", "bpf,i386"], "diff": [
        "layout", "--diff", "event.h", "event.rs"
    ], "lock": ["layout", "event.h", "--lock",
                "event.lock"], "retarget": ["layout", "event.btf", "event", "--abi", "i386"],
    "check": ["layout", "--check", "event.btf", "--against", "event.rs"], "decode": [
        "decode", "event.h", "event", "event.bin", "--json", "--padding"
    ], "bind-c": ["bind", "event.h", "event", "--lang", "c"], "bind-java": [
        "bind", "event.h", "event", "--lang", "java"
    ], "bind-rust": ["bind", "event.h", "event", "--lang",
                     "rust"], "bind-python": ["bind", "event.h", "event", "--lang", "python"],
}


def put(name, data):
    path = os.path.join(folder(), name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def failer():
    """The library that makes allocations fail, and the files that the commands name."""
    library = os.path.join(folder(), "failer.so")
    if os.path.exists(library):
        return library
    put("event.h", HEADER)
    put("event.rs", "#[repr(C)]\nstruct Event { a: u8, b: [u64; 4], c: u32 }\n")
    put("event.bin", bytes(range(56)))
    need("clang")
    run("clang", "-target", "bpf", "-g", "-c", "-x", "c", "-o", os.path.join(folder(), "event.btf"),
        put("event.c", HEADER + "struct event event;\n"), check=True)
    run(CAIRN, "layout", os.path.join(folder(), "event.h"), "--lock",
        os.path.join(folder(), "event.lock"), "--update", check=True)
    run("gcc", "-O1", "-w", "-shared", "-fPIC", "-o", library, put("failer.c", FAILER), check=True)
    return library


def attempt(words, at):
    """(status, stdout, stderr, allocations)"""
    count = os.path.join(folder(), "count")
    env = dict(os.environ, LD_PRELOAD=failer(), FAIL_AT=str(at), FAIL_COUNT=count)
    done = subprocess.run([CAIRN, *words], cwd=folder(), env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False)
    with open(count, encoding="utf-8") as file:
        return done.returncode, done.stdout, done.stderr.decode(), int(file.read())


@claim_each(*COMMANDS)
def without_memory_there_is_the_answer_or_an_error(name):
    need("gcc")
    with open(CAIRN, "rb") as file:
        if b"__asan_init" in file.read():
            raise Skip("the sanitizer has an allocator of its own")
    words = COMMANDS[name]
    status, out, err, n = attempt(words, 0)
    expect(status in (0, 1) and n > 10, status, out, err, n)
    told, wrong = 0, []
    for at in range(1, n + 1):
        now = attempt(words, at)
        failed = now[0] > 1 and "memory" in now[2]
        told += failed
        if not failed and now[:2] != (status, out):
            wrong.append((at, *now))
    expect(told and not wrong, f"{len(wrong)} of {n}:", *wrong[:20])
    print(f"# {name}: {n} allocations, {told} are told to be missing")


main()
