#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that are none, never end, or are someone's trap: each verb ends by itself, with a sentence.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from claims import (CAIRN, IS_SANITIZED, claim, claim_each, compile_c, expect, folder,  # noqa: E402
                    main, write)

SOURCE = "struct a { int x; char b[4]; } v; int main(void) { return v.x; }\n"
FLEXIBLE = "struct a { int n; char rest[]; };\n"


def ends(*words):
    """How it ends, within a time in which nothing waits for another program."""
    return subprocess.run([CAIRN, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=240 if IS_SANITIZED else 60,
                          env=dict(os.environ, CAIRN_CACHE="off"))


def fifo():
    path = os.path.join(folder(), "fifo")
    if not os.path.exists(path):
        os.mkfifo(path)
    return path


# Where a regular file has to be, nobody waits for the writer of a FIFO.
@claim_each("sites {f} f", "sites {p} f --sidecar {f}", "sidecar {f} -o {o}", "sidecar --check {f}",
            "addr {f} 0x1000", "layout {f} a", "btf dump {f}", "btf check {f}",
            "btf encode {f} -o {o}", "btf encode {f} --embed -o {o}", "btf merge {f} {f} -o {o}",
            "unwind dump {f}", "unwind check {f}", "stack {f}", "stack {f} --executable {p}",
            "code {f}", "code run {f}", "trace --dry-run {f}:f", "trace --dry-run -c {f} f",
            "profile show {f}", "profile diff {f} {f}", "bind {f} a --lang c11",
            "decode {f} a /dev/null")
def a_fifo_is_not_waited_for(words):
    program = compile_c("strange", SOURCE)
    r = ends(
        *[w.format(f=fifo(), p=program, o=os.path.join(folder(), "out")) for w in words.split()])
    expect(r.returncode in (1, 2, 3, 4) and r.stderr, r)


@claim_each("hex", "json")
def a_line_without_end_is_refused(form):
    r = ends("decode", write("a.h",
                             SOURCE.split("v;")[0] + ";\n"), "a", "/dev/zero", "--format", form)
    expect(r.returncode == 4 and b"a line has more than 67108864 bytes" in r.stderr, r)


@claim
def a_line_of_weights_without_end_is_refused():
    r = ends("layout", write("b.h",
                             SOURCE.split("v;")[0] + ";\n"), "a", "--reorganize", "--weights",
             "/dev/zero")
    expect(r.returncode == 2 and b":1: a line of more than 1048576 bytes" in r.stderr, r)


def with_compiler(text):
    """Of a header that a shell script preprocesses."""
    path = write("compiler.sh", "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return subprocess.run(
        [CAIRN, "layout",
         write("macro.h", "#define N 1\nstruct a { int x[N]; };\n"), "a"], capture_output=True,
        check=False, timeout=60, env=dict(os.environ, CC=path))


# Macros that double themselves make both of a few lines.
@claim
def a_compiler_has_limits():
    r = with_compiler("ulimit -t >&2; ulimit -v >&2; exit 1\n")
    expect(r.returncode == 2 and r.stderr.startswith(b"60\n2097152\n"), r)


@claim
def a_header_that_expands_without_end_is_refused():
    r = with_compiler("exec yes 'struct b;'\n")
    expect(r.returncode == 2 and b"more than 256 MiB" in r.stderr, r)


@claim
def what_is_after_the_largest_record_is_not_passed_over():
    path = os.path.join(folder(), "large")
    with open(path, "wb") as file:
        file.truncate((1 << 30) + 1)
    r = ends("decode", write("flexible.h", FLEXIBLE), "a", path)
    os.unlink(path)
    expect(r.returncode == 4 and b"more than 1073741824 bytes" in r.stderr and not r.stdout, r)


if __name__ == "__main__":
    main()
