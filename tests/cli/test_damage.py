#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Sidecars that were damaged by chance: none gives another answer without a word, and none passes
the check."""

import os
import random
import subprocess

from claims import (CAIRN, IS_SANITIZED, cairn, claim, claim_each, compile_c, expect, folder, main,
                    run)
from sidecars import seal

# More in tests/truth/damage.py.
N_DAMAGES = int(os.environ.get("CAIRN_DAMAGES", "30" if IS_SANITIZED else "120"))

C = """\
#include <stdio.h>
struct node { struct node *next; int x, y; };
static volatile long sink;
static inline __attribute__((always_inline)) long add(struct node *n, int right) { sink = n->x; return n->y + right; }
__attribute__((noinline)) long walk(struct node *n, int c) { long s = 0; for (; n; n = n->next) s += add(n, c); return s; }
int main(int argc, char **argv) { struct node a = {0, argc, 3}; printf("%ld\\n", walk(&a, argc)); return 0; }
"""

FILES = {
    "small": ("gcc", C, ("-O2", "-g", "-Wl,--build-id")), "many-functions":
    ("gcc",
     C + "".join(f"int f{i}(struct node *n) {{ return add(n, {i}); }}\n" for i in range(400)),
     ("-O2", "-g", "-Wl,--build-id")), "long-names":
    ("gcc", C + "".join(f"int g{'x' * 5000}{i}(int a) {{ return a + {i}; }}\n" for i in range(3)),
     ("-O2", "-g", "-Wl,--build-id")), "clang": ("clang", C, ("-O2", "-g", "-Wl,--build-id")),
    "lines": ("gcc", C, ("-O2", "-g", "-Wl,--build-id")), "btf-inline":
    ("gcc", C, ("-O2", "-g", "-Wl,--build-id")), "args":
    ("gcc", C, ("-O2", "-g", "-Wl,--build-id")),
}


def sidecar_of(kind):
    compiler, text, flags = FILES[kind]
    path = compile_c("damage-" + kind, text, compiler, flags)
    extra = {"lines": ("--lines",), "btf-inline": ("--btf-inline",), "args": ("--args",)}.get(
        kind, ())
    cairn("sidecar", path, "-o", path + ".packed", *extra, check=True)
    with open(path + ".packed", "rb") as file:
        return path, file.read()


def damaged(data, how):
    """DATA with one damage, and what it is."""
    data = bytearray(data)
    at = how.randrange(len(data))
    kind = how.choice(("bit", "byte", "run", "zeros", "page", "cut", "longer", "swap", "copy"))
    if kind == "bit":
        data[at] ^= 1 << how.randrange(8)
    elif kind == "byte":
        data[at] ^= how.randrange(1, 256)
    elif kind == "run":
        for i in range(at, min(at + how.randrange(2, 64), len(data))):
            data[i] = how.randrange(256)
    elif kind == "zeros":
        n = min(how.choice((8, 64, 512)), len(data) - at)
        data[at:at + n] = bytes(n)
    elif kind == "page":
        at = at // 4096 * 4096
        n = min(4096, len(data) - at)
        data[at:at + n] = bytes(n)
    elif kind == "cut":
        del data[at:]
    elif kind == "longer":
        data += bytes(how.randrange(1, 5000))
    elif kind == "swap":
        other = how.randrange(len(data))
        data[at], data[other] = data[other], data[at]
    else:
        other, n = how.randrange(len(data)), how.randrange(1, 256)
        data[at:at + n] = data[other:other + n]
    return bytes(data), f"{kind} at 0x{at:x}"


def questions(path, name, kind):
    """What each verb that reads sidecars is asked."""
    asked = [("addr", name, *ADDRESSES), ("unwind", "dump", name)]
    if kind != "lines":
        asked += [("sites", name, "add", "walk", "--json"), ("sites", name, "w*"),
                  ("sites", "--sidecar", name, path, "walk"), ("layout", name, "node"),
                  ("btf", "dump", name),
                  ("trace", "--dry-run", "--no-cache", "-c", path, "walk(n->x)")]
    return asked


ADDRESSES = [f"0x{at:x}" for at in range(0x1000, 0x1300, 0x20)]


def ask(words):
    # Of what is said to the person the path is the only part that may differ.
    done = subprocess.run([CAIRN, *words], capture_output=True, text=True, errors="replace",
                          check=False, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


@claim_each(*FILES)
def no_damage_passes_the_check_or_changes_an_answer_without_a_word(kind):
    path, whole = sidecar_of(kind)
    name = path + ".cairn"
    how = random.Random(kind)

    def write(data):
        with open(name, "wb") as file:
            file.write(data)

    write(whole)
    asked = questions(path, name, kind)
    right = [ask(words) for words in asked]
    expect(all(status in (0, 1) for status, _, _ in right), right)
    expect(ask(("sidecar", "--check", name))[0] == 0)
    for i in range(N_DAMAGES):
        data, what = damaged(whole, how)
        if data == whole:
            continue
        write(data)
        status, _, err = ask(("sidecar", "--check", name))
        expect(status in (2, 3, 4) and err, kind, what, status)
        # Each damage is asked about by one verb in turn: the check has read all of it.
        words, expected = asked[i % len(asked)], right[i % len(asked)]
        told = ask(words)
        expect(told[0] < 128 and told[0] >= 0, words, what, told)
        expect(told[:2] == expected[:2] or told[2] != expected[2], kind, what, words, told,
               expected)
    os.unlink(name)


@claim
def every_byte_is_covered():
    """Each of all bytes changed, padding and headers among them: none passes."""
    _, whole = sidecar_of("lines")
    name = os.path.join(folder(), "every.cairn")
    for at in range(0, len(whole), max(1, len(whole) // (60 if IS_SANITIZED else 400))):
        with open(name, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
        status, _, err = ask(("sidecar", "--check", name))
        expect(status in (2, 3, 4) and err, at, status)


@claim
def a_seal_that_fits_is_what_the_format_document_says():
    _, whole = sidecar_of("small")
    expect(seal(whole) == whole)


@claim
def what_a_debuginfod_serves_is_covered_too():
    path, _ = sidecar_of("small")
    served = os.path.join(folder(), "served")
    os.mkdir(served)
    cairn("sidecar", path, "--debuginfod", served, check=True)
    name = os.path.join(served, os.listdir(served)[0])
    with open(name, "rb") as file:
        whole = file.read()
    expect(ask(("sidecar", "--check", name))[0] == 0)
    how = random.Random(1)
    for _ in range(N_DAMAGES):
        data, what = damaged(whole, how)
        if data == whole:
            continue
        with open(name, "wb") as file:
            file.write(data)
        status, _, err = ask(("sidecar", "--check", name))
        expect(status in (2, 3, 4) and err, what, status)


@claim
def a_sidecar_of_before_there_were_checksums_is_refused_with_what_to_do():
    _, whole = sidecar_of("small")
    name = os.path.join(folder(), "unsealed.cairn")
    with open(name, "wb") as file:
        file.write(whole.replace(b"cairnsum", b"\0" * 8, 1))
    for words in (("sites", name, "add"), ("layout", name, "node"), ("btf", "dump", name),
                  ("addr", name, "0x1160"), ("unwind", "dump", name), ("sidecar", "--check", name)):
        status, out, err = ask(words)
        expect(
            status not in (0, 1) and not out and "checksums" in err
            and "make it again with cairn sidecar" in err, words, err)


main()
