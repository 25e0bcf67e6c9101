#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""No output of any verb holds what a terminal would obey, or a line that a name made up."""

import os
import subprocess
import unicodedata

from claims import CAIRN, IS_SANITIZED, claim, claim_each, compile_c, expect, folder, main

# Each word stands in the program, and is patched to a hostile one of its length.
PROGRAM = """\
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
struct RECORD_SITEHOLDER { char first; long MEMBER_SITEHOLDER; enum ENUM_SITEHOLDER { VALUE_SITEHOLDER, OTHER = 7 } e; short hole; long last; };
typedef struct RECORD_SITEHOLDER TYPEDEF_SITEHOLDER;
static inline __attribute__((always_inline)) long INLINE_SITEHOLDER(long a, TYPEDEF_SITEHOLDER *r)
{
	__asm__ volatile("" ::: "memory");
	return a * 3 + r->MEMBER_SITEHOLDER;
}
__attribute__((noinline, section(".SECTION_SITEHOLDER"))) long FUNCTION_SITEHOLDER(TYPEDEF_SITEHOLDER *PARAMETER_SITEHOLDER, long b)
{
	return INLINE_SITEHOLDER(b, PARAMETER_SITEHOLDER) + PARAMETER_SITEHOLDER->e;
}
int main(int c, char **v)
{
	TYPEDEF_SITEHOLDER r = {1, 2, VALUE_SITEHOLDER, 3, 4};

	prctl(PR_SET_NAME, "COMM_SITEHOLDE");
	long sum = FUNCTION_SITEHOLDER(&r, c);
	if (c > 1) {
		puts("ready");
		fflush(stdout);
		pause();
	}
	return (int)sum == 12345;
}
"""

HOSTILE = {
    "escape": b"\x1b[2J\nFORGED 1\r", "c1": b"\xc2\x9b2J\x9b\x7f\nFORGED", "bidi":
    b"\xe2\x80\xae\xe2\x80\xa8\x01\nFORGED", "mark": b"\x01\x02\nFORGED\x1e"
}
# How bytes are shown is the same code for all kinds, and quote's own unit and fuzz target see more of
# them: sanitizers are asked once of each verb.
ASKED = ("c1", ) if IS_SANITIZED else tuple(HOSTILE)
WORDS = [
    b"RECORD_SITEHOLDER", b"MEMBER_SITEHOLDER", b"ENUM_SITEHOLDER", b"VALUE_SITEHOLDER",
    b"TYPEDEF_SITEHOLDER", b"INLINE_SITEHOLDER", b"FUNCTION_SITEHOLDER", b"SECTION_SITEHOLDER",
    b"PARAMETER_SITEHOLDER", b"COMM_SITEHOLDE"
]


def hostile_program(kind):
    """A program with hostile names of everything, at a hostile path."""
    with open(
            compile_c("plain", PROGRAM, "gcc",
                      ("-O2", "-gdwarf-4", "-fno-eliminate-unused-debug-types")), "rb") as file:
        data = file.read()
    for i, word in enumerate(WORDS):
        expect(word in data, word)
        data = data.replace(word, (bytes([97 + i]) + HOSTILE[kind]).ljust(len(word),
                                                                          b"_")[:len(word)])
    path = os.path.join(os.fsencode(folder()), b"dir-" + HOSTILE[kind].replace(b"/", b""),
                        b"prog" + HOSTILE[kind])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755)
    return path


def is_unsafe(char):
    return (char not in "\n\t" and unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs")) or char in "\u200e\u200f\u061c" or \
        unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def check(*words, seconds=60):
    """Runs cairn; what it says is safe, and no line is a name's."""
    done = subprocess.run([CAIRN, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=seconds, check=False)
    for stream in (done.stdout, done.stderr):
        text = stream.decode("utf-8", "surrogateescape")
        unsafe = [line for line in text.split("\n") if any(is_unsafe(char) for char in line)]
        expect(not unsafe, words, unsafe[:3])
        expect(not any(line.startswith("FORGED") for line in text.split("\n")), words, text[:3000])
    expect(done.returncode >= 0, words, done.returncode, done.stderr)
    return done



@claim_each(*ASKED)
def no_verb_passes_on_what_a_terminal_obeys(kind):
    path = hostile_program(kind)
    other = compile_c("plain", PROGRAM, "gcc",
                      ("-O2", "-gdwarf-4", "-fno-eliminate-unused-debug-types"))
    # A command line is split at blanks.
    command = os.path.join(os.fsencode(folder()), b"command")
    with open(path, "rb") as file, open(command, "wb") as to:
        to.write(file.read())
    os.chmod(command, 0o755)
    record = (b"a" + HOSTILE[kind]).ljust(18, b"_")[:18]
    out = os.path.join(os.path.dirname(path), b"out" + HOSTILE[kind])
    for words in (("sites", path), ("sites", path, "*"), ("sites", path, "main"),
                  ("sites", path, b"g" + HOSTILE[kind]), ("sites", path, "*", "--json"),
                  ("sites", path, "--sites", "--json"), ("sites", path, "--hazards"),
                  ("sites", path, "*", "--no-sidecar"), ("sites", path, "*", "--emit", "gdb"),
                  ("sites", path, "*", "--emit", "perf"), ("sites", path, "*", "--emit",
                                                           "bpftrace"), ("sites", path, "nosuch"),
                  ("sites", path, b"nosuch" + HOSTILE[kind]), ("sites", path, "--json"),
                  ("trace", "--dry-run", "-c", path,
                   path + b":main"), ("trace", "--dry-run", "--json", "-c", command,
                                      "*"), ("trace", "-c", command, b"nosuch" + HOSTILE[kind]),
                  ("trace", "-c", command, "*"), ("trace", "--json", "-c", command,
                                                  "*"), ("trace", "--dry-run", "-v", "-c", command,
                                                         "*"), ("trace", "--dry-run", "-c", command,
                                                                b"*(" + HOSTILE[kind] + b")"),
                  ("addr", path, "0x1040", "0x1180",
                   "0x1200"), ("addr", "--json", path,
                               "0x1180"), ("addr", path, b"x" + HOSTILE[kind]), ("layout", path),
                  ("layout", path, record), ("layout", "--lint", path), ("layout", "--json", path),
                  ("layout", "--html", path), ("layout", "--sizes",
                                               path), ("layout", "--expand", path,
                                                       record), ("layout", "--reorganize", path),
                  ("layout", path, b"no" + HOSTILE[kind]), ("layout", "--diff", path, other),
                  ("layout", "--diff", other,
                   path), ("layout", "--packable",
                           path), ("layout", "--lock", out + b".lock", "--update",
                                   path), ("layout", "--lock", out + b".lock",
                                           path), ("layout", "--lock", out + b".lock", other),
                  ("layout", path, "--abi",
                   b"no" + HOSTILE[kind]), ("decode", path, record,
                                            "/dev/null"), ("decode", path, b"no" + HOSTILE[kind],
                                                           "/dev/null"), ("decode", path, record,
                                                                          out), ("bind", "--lang",
                                                                                 "c", path, record),
                  ("bind", "--lang", "rust", path,
                   record), ("bind", "--lang", "java", path,
                             record), ("bind", "--lang", "python", path,
                                       record), ("bind", "--json", path,
                                                 record), ("bind", "--lang", "c", path,
                                                           b"no" + HOSTILE[kind]),
                  ("bind", "--lang", "c", "-o", out + b"/nowhere/x", path,
                   record), ("bind", "--lang", "java", "--package", b"x" + HOSTILE[kind], path,
                             record), ("btf", "encode", path, "-o", out + b".btf"), ("btf", "dump",
                                                                                     out + b".btf"),
                  ("btf", "dump", "--format", "c",
                   out + b".btf"), ("btf", "dump", "--pretty",
                                    out + b".btf"), ("btf", "dump", "--json", out + b".btf"),
                  ("btf", "check", out + b".btf"), ("btf", "convert", out + b".btf", "-o",
                                                    out + b".2.btf"), ("layout", out + b".btf"),
                  ("btf", "dump",
                   path), ("btf", "check",
                           path), ("btf", "encode", path, "-o",
                                   out + b"/nowhere/x"), ("sidecar", path, "-o",
                                                          out + b".cairn"), ("sidecar", "-v", path,
                                                                             "-o", out + b".cairn"),
                  ("sidecar", "--check",
                   path), ("sidecar", "--check",
                           out + b".cairn"), ("sidecar", path, "-o",
                                              out + b"/nowhere/x"), ("sites", out + b".cairn", "*"),
                  ("sites", path, "main", "--sidecar",
                   out + b".cairn"), ("unwind", "dump", path), ("unwind", "check", path),
                  ("unwind", "encode", path, "-o",
                   out + b".sframe"), ("unwind", "dump",
                                       out + b".sframe"), ("unwind", "encode", path, "-o",
                                                           out + b"/nowhere/x"), ("doctor", path),
                  ("code", "999999999"), ("stack", path), ("stack", b"no" + HOSTILE[kind]),
                  ("code", "run",
                   b"no" + HOSTILE[kind]), (b"no" + HOSTILE[kind],), ("sites",
                                                                      b"--no" + HOSTILE[kind]),
                  ("btf", b"no" + HOSTILE[kind]), ("help", b"no" + HOSTILE[kind])):
        check(*words)


VERBS = [("sites",), ("sites", "--hazards"), ("addr",), ("layout",), ("layout", "--lint"),
         ("decode",), ("bind", "--lang", "c"), ("btf", "dump"), ("btf", "check"),
         ("btf", "convert", "-o", "/dev/null"), ("btf", "encode", "-o", "/dev/null"), ("sidecar",),
         ("sidecar", "--check"), ("unwind", "dump"), ("unwind", "check"),
         ("unwind", "encode", "-o", "/dev/null"), ("stack",), ("code",), ("code", "run", "--"),
         ("doctor",), ("trace", "-c"), ("trace", "-p")]


@claim_each(*ASKED)
def no_message_passes_on_a_path(kind):
    base = os.path.join(os.fsencode(folder()), b"x" + HOSTILE[kind])
    with open(base + b".empty", "wb"):
        pass
    with open(base + b".text", "wb") as file:
        file.write(b"struct s {" + HOSTILE[kind])
    for verb in VERBS:
        for path in (base, base + b".empty", base + b".text", os.fsencode(folder())):
            check(*verb, path, "main")
            check(*verb, path)


@claim_each(*ASKED)
def no_live_view_passes_on_a_name(kind):
    path = hostile_program(kind)
    with subprocess.Popen([path, b"wait"], stdout=subprocess.PIPE) as process:
        try:
            expect(process.stdout.readline() == b"ready\n", "not ready")
            for words in (("stack",), ("stack", "--json"), ("stack", "--args"), ("code",),
                          ("code", "--json"), ("sites", "--hazards")):
                check(words[0], *words[1:], str(process.pid))
            for words in (("main",), ("*",), (b"nosuch" + HOSTILE[kind],)):
                check("sites", str(process.pid), *words)
                check("trace", "--dry-run", "-p", str(process.pid), *words)
            check("addr", str(process.pid), "0x1040")
            check("trace", "-p", str(process.pid), "--duration", "0.2", "*")
        finally:
            process.kill()


@claim
def a_name_in_a_message_of_the_library_is_quoted_once():
    """The member is where another compiler puts it, so that its name is in the reason."""
    source = "struct __attribute__((ms_struct)) outer { int a : 3; char MEMBER_SITEHOLDER : 4; int c; } outer;\nint main(void) { return 0; }\n"
    with open(compile_c("quoted", source, "gcc", ("-g",)), "rb") as file:
        data = file.read()
    path = os.path.join(folder(), "quoted.patched")
    with open(path, "wb") as file:
        file.write(data.replace(b"MEMBER_SITEHOLDER", b"a\x1b[2J\nFORGED_____"))
    done = subprocess.run([CAIRN, "layout", path, "outer", "--reorganize"], capture_output=True,
                          check=False)
    expect(
        done.returncode == 1
        and b"struct outer: a\\x1b[2J\\x0aFORGED_____ is at byte 4" in done.stderr, done)


main()
