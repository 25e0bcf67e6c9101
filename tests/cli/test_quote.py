#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Hostile names in other programs' languages: an interpreter of the language reads them back
(cairn/text.h)."""

import ctypes
import html.parser
import json
import os
import random
import re
import subprocess
import sys
import unicodedata

from claims import (BUILD, WITHOUT_LEAKS, claim, claim_each, claim_each_of_many, expect, folder,
                    main, need)

# The order of enum cairn_quote.
(TEXT, COMMENT, SH, C, PYTHON, PYTHON_BYTES, FORMAT, BPFTRACE, HTML, JSON, WORD, GO,
 TYPESCRIPT) = range(13)

ROUNDS = 3000
TOKENS = [
    b"f", b"id", b"\n", b"\r", b"\t", b"\x1b[2J", b"\x1b]0;x\x07", b"\x7f", b"\x01", b"\x1e",
    b"\x9b2J", b"\xc2\x9b2J", b"\xc2\x85", b"'", b'"', b"`", b"\\", b"\\\\", b"\\n", b"\\x41",
    b"\\101", b"\\u000a", b"\\u002a\\u002f", b"\\N{BEL}", b"$(id)", b"${x}", b"$x", b";", b"|",
    b"&", b"&&", b"&amp;", b"&#60;", b"<", b">", b"<b>", b"-->", b"<!--", b"]]>", b"*/", b"/*",
    b"*", b"/", b"//", b"#", b"%", b"%s", b"%n", b"%%", b"??/", b"??'", b"?", b"{", b"}", b"{@",
    b"(", b")", b"[", b"]", b"!", b"~", b"~/", b"-", b"--", b"-rf", b" ", b"  ", b"=", b",", b":",
    b"@", b"^", b"\xc3\xa9", b"\xe4\xb8\xad", b"\xf0\x9f\x92\xa9", b"\xe2\x80\xae", b"\xe2\x80\xa8",
    b"\xe2\x81\xa6", b"\xd8\x9c", b"\xef\xbb\xbf", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80",
    b"\xe2\x80", b"\xf4\x90\x80\x80", b"\nend\nshell id\n", b'"""', b"'''", b"PWNED", b"0", b"_",
    b"1f"
]



def load(path):
    """A library with a sanitizer needs the sanitizer's own before everything else, which only a new
    start can give."""
    with open(path, "rb") as file:
        is_sanitized = b"__asan_init" in file.read()
    if is_sanitized and "LD_PRELOAD" not in os.environ:
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        # Python keeps what it has until it ends.
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  dict(os.environ, LD_PRELOAD=runtime, ASAN_OPTIONS=WITHOUT_LEAKS))
    library = ctypes.CDLL(path)
    # The interpreters that are started here are not ours.
    os.environ.pop("LD_PRELOAD", None)
    return library


LIBRARY = load(os.path.join(BUILD, "src", "libcairn.so.0"))
LIBRARY.cairn_quote.restype = ctypes.c_ssize_t
LIBRARY.cairn_quote.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]


def quote(name, language):
    """The quoted bytes; None when there are none."""
    n = LIBRARY.cairn_quote(name, language, None, 0)
    if n < 0:
        return None
    buf = ctypes.create_string_buffer(n + 1)
    expect(
        LIBRARY.cairn_quote(name, language, buf, n + 1) == n and len(buf.value) == n, name,
        language)
    return buf.value


def names(n=ROUNDS):
    """The same ones in each run."""
    chance = random.Random(17)
    for _ in range(n):
        if chance.random() < .7:
            yield b"".join(chance.choice(TOKENS) for _ in range(chance.randint(1, 6)))
        else:
            yield bytes(chance.randint(1, 255) for _ in range(chance.randint(1, 12)))


def is_unsafe(char):
    return (unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") or char in "\u200e\u200f\u061c"
            or unicodedata.bidirectional(char)
            in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"))


def shown(name):
    """CAIRN_QUOTE_TEXT, made anew."""
    return "".join("".join(
        f"\\x{byte:02x}"
        for byte in char.encode("utf-8", "surrogateescape")) if is_unsafe(char) else char
                   for char in name.decode("utf-8", "surrogateescape"))


def shown_by_format(name):
    return shown(name).replace("%", "\\x25")


def expressed(language):
    """(name, quoted), of those that can be expressed."""
    found = [(name, quoted) for name, quoted in ((name, quote(name, language))
                                                 for name in names()) if quoted is not None]
    expect(len(found) > ROUNDS / 20, len(found))
    return found


def write(name, data):
    path = os.path.join(folder(), name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def output(*command, **kwargs):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=200, check=False, **kwargs)
    expect(done.returncode == 0, command[0], done.stdout[-500:], done.stderr[-1500:].decode(
        "utf-8", "replace"))
    return done.stdout


def equal(found, wanted):
    expect(len(found) == len(wanted), len(found), len(wanted))
    for one, other in zip(found, wanted):
        expect(one == other, one, other)


@claim
def text_is_what_it_should_be_in_every_language_and_never_unsafe():
    for name in names():
        expect(quote(name, TEXT).decode() == shown(name), name, quote(name, TEXT))
        for language in range(13):
            quoted = quote(name, language)
            expect(quoted is None or not any(is_unsafe(char) for char in quoted.decode()), name,
                   language, quoted)


@claim
def what_is_cut_is_cut_between_characters():
    for name in list(names(300)):
        for language in (TEXT, C, HTML, JSON):
            whole = quote(name, language)
            for size in range(1, len(whole) + 1):
                buf = ctypes.create_string_buffer(size + 1)
                n = LIBRARY.cairn_quote(name, language, buf, size)
                expect(n == len(whole) and len(buf.value) < size and whole.startswith(buf.value),
                       name, size, buf.value)
                expect(not any(is_unsafe(char) for char in buf.value.decode()), name, size,
                       buf.value)


@claim_each("dash", "bash")
def a_shell_reads_them_back(shell):
    pairs = expressed(SH)
    script = b"".join(b"printf '%s\\0' '" + quoted + b"'\n" for _, quoted in pairs)
    equal(
        output(need(shell), write("names.sh", script), cwd=folder()).split(b"\0")[:-1],
        [name for name, _ in pairs])
    for name in names():
        expect((quote(name, SH) is None) == any(
            is_unsafe(c) for c in name.decode("utf-8", "surrogateescape")), name)


@claim
def python_reads_them_back():
    head = b"# -*- coding: utf-8 -*-\nimport os, sys\nfound = []\n"
    pairs = expressed(PYTHON)
    script = head + b"".join(
        b'found.append(os.fsencode("' + q + b'"))\nfound.append(os.fsencode("""' + q + b'"""))\n'
        for _, q in pairs)
    script += b'found += [' + b",".join(b'b"' + quote(name, PYTHON_BYTES) + b'"'
                                        for name, _ in pairs) + b"]\n"
    script += b'sys.stdout.buffer.write(b"\\0".join(found))\n'
    twice = [name for name, _ in pairs for _ in range(2)]
    equal(
        output(sys.executable, "-X", "utf8", write("names.py", script)).split(b"\0"),
        twice + [name for name, _ in pairs])


@claim_each_of_many("gcc", "clang")
def c_reads_them_back(compiler):
    pairs = expressed(C)
    script = b"#include <stdio.h>\nint main(void)\n{\n" + b"".join(
        b'\tfwrite("' + quoted + b'", 1, sizeof("' + quoted + b'"), stdout);\n'
        for _, quoted in pairs) + b"}\n"
    program = os.path.join(folder(), "names-" + compiler)
    output(need(compiler), "-std=c99", "-w", "-trigraphs", "-o", program, write("names.c", script))
    equal(output(program).split(b"\0")[:-1], [name for name, _ in pairs])


@claim_each("json", "node")
def json_is_read_back(reader):
    wanted = [
        re.sub("[\udc80-\udcff]", "\ufffd", name.decode("utf-8", "surrogateescape"))
        for name in names()
    ]
    text = b"[" + b",".join(b'"' + quote(name, JSON) + b'"' for name in names()) + b"]"
    if reader == "node":
        text = output(
            need("node"), "-e",
            "process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(process.argv[1]))))",
            write("names.json", text))
    equal(json.loads(text), wanted)


def run_go(script):
    return output(need("go"), "run", write("names.go", script), env=dict(
        os.environ, GOTOOLCHAIN="local"))


@claim
def go_reads_them_back():
    """Strings, and comments between them: who reads those wrongly counts wrongly."""
    pairs = expressed(GO)
    lines = b"".join(b'\t"' + quoted + b'\\x00", // ' + quote(name, COMMENT) + b"\n\t/* " +
                     quote(name, COMMENT) + b" */\n" for name, quoted in pairs)
    script = (
        b'package main\n\nimport "os"\n\nvar names = []string{\n' + lines +
        b"}\n\nfunc main() {\n\tfor _, name := range names {\n\t\tos.Stdout.WriteString(name)\n\t}\n}\n"
    )
    equal(run_go(script).split(b"\0")[:-1], [name for name, _ in pairs])


@claim
def typescript_reads_them_back():
    pairs = expressed(TYPESCRIPT)
    lines = b"".join(b'  "' + quoted + b'", // ' + quote(name, COMMENT) + b"\n  /** `" +
                     quote(name, COMMENT) + b"` */\n" for name, quoted in pairs)
    source = write(
        "names.ts",
        b"declare const console: { log(text: string): void };\nconst names: string[] = [\n" + lines
        + b"];\nconsole.log(JSON.stringify(names));\n")
    output(need("tsc"), "--strict", "--skipLibCheck", "--target", "es2020", "--lib", "es2020",
           "--typeRoots", os.path.join(folder(), "no-types"), "--outDir", folder(), source)
    wanted = [
        re.sub("[\udc80-\udcff]", "\ufffd", name.decode("utf-8", "surrogateescape"))
        for name, _ in pairs
    ]
    equal(json.loads(output(need("node"), os.path.join(folder(), "names.js"))), wanted)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self.titles, self.other = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag != "p":
            self.other.append(tag)
        self.texts.append("")
        self.titles.append(dict(attrs).get("title"))

    def handle_data(self, data):
        self.texts[-1] += data

    def handle_comment(self, data):
        self.other.append(data)


@claim
def html_is_read_back():
    page = Page()
    page.feed("".join(f'<p title="{quote(name, HTML).decode()}">{quote(name, HTML).decode()}</p>'
                      for name in names()))
    page.close()
    wanted = [shown(name) for name in names()]
    equal(page.texts, wanted)
    equal(page.titles, wanted)
    expect(not page.other, page.other[:5])


@claim
def a_word_is_one_and_can_be_told_back():
    for name in names():
        word = quote(name, WORD)
        expect(len(word.split()) == 1 and b" " not in word, name, word)
        expect(re.sub(rb"\\x(..)", lambda m: bytes([int(m[1], 16)]), word) == name, name, word)


# Between two comments stands one statement; who reads the comments wrongly counts wrongly.
COUNTED = {
    "sh": (b"", b"# %b\nn=$((n+1))\n", b'echo "$n"\n', ("sh",)), "python":
    (b"n = 0\n", b"# %b\nn += 1\n", b"print(n)\n", (sys.executable,)), "gdb":
    (b"set $n = 0\n", b"# %b\nset $n = $n + 1\n", b'printf "%d\\n", $n\n',
     ("gdb", "-q", "-nx", "-batch", "-x")), "node":
    (b"let n = 0;\n", b"// %b\nn++; /* %b */ n++;\n", b"console.log(n / 2);\n", ("node",)),
}


@claim_each(*COUNTED)
def a_comment_hides_nothing(language):
    begin, each, end, command = COUNTED[language]
    need(command[0])
    text = begin + b"".join(each.replace(b"%b", quote(name, COMMENT)) for name in names()) + end
    expect(
        output(*command, write("comments-" + language + ".js", text),
               cwd=folder()).strip() == str(ROUNDS).encode(), language)

BUILT = {
    "gcc": (b"enum { n = 0\n", b"+ 1 // %b\n+ 1 /* %b */\n",
            b'};\n#include <stdio.h>\nint main(void) { printf("%d\\n", n / 2); }\n', "c",
            ("-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Werror")), "clang":
    (b"enum { n = 0\n", b"+ 1 // %b\n+ 1 /* %b */\n",
     b'};\n#include <stdio.h>\nint main(void) { printf("%d\\n", n / 2); }\n', "c",
     ("-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-fbracket-depth=100000")), "rustc":
    (b"const N: &[u8] = &[\n", b"1, // %b\n1, /* %b */\n",
     b'];\nfn main() { println!("{}", N.len() / 2); }\n', "rs", ("-D", "warnings")),
}


@claim_each(*BUILT)
def a_comment_of_a_compiled_language_hides_nothing(compiler):
    begin, each, end, suffix, flags = BUILT[compiler]
    program = os.path.join(folder(), "comments-" + compiler)
    text = begin + b"".join(each.replace(b"%b", quote(name, COMMENT)) for name in names()) + end
    output(need(compiler), *flags, "-o", program, write("comments." + suffix, text))
    expect(output(program).strip() == str(ROUNDS).encode(), compiler)


@claim
def a_comment_of_java_hides_nothing():
    need("javac")
    lines = b"".join(b"1, // %b\n1, /** {@code %b} */\n".replace(b"%b", quote(name, COMMENT))
                     for name in names(1500))
    output(
        "javac", "-encoding", "UTF-8", "-d", folder(),
        write(
            "Comments.java", b"class Comments { static final byte[] N = {\n" + lines
            + b"};\npublic static void main(String[] a) { System.out.println(N.length / 2); } }\n"))
    expect(output("java", "-cp", folder(), "Comments").strip() == b"1500")


@claim
def gdb_prints_a_format_as_text():
    gdb = need("gdb")
    script = b"set host-charset UTF-8\nset target-charset UTF-8\n" + b"".join(
        b'printf "%b\\n"\n'.replace(b"%b", quote(name, FORMAT)) for name in names())
    equal(
        output(gdb, "-q", "-nx", "-batch", "-x", write("formats.gdb",
                                                       script)).decode().split("\n")[:-1],
        [shown_by_format(name) for name in names()])


def bpftrace_parses(script):
    """What it makes of a script, without attaching anything."""
    return subprocess.run(
        [need("bpftrace"), "-d", write("script.bt", script)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=False).stdout


@claim
def bpftrace_reads_a_format_as_text():
    script = b"BEGIN {\n" + b"".join(b'// %c\nprintf("<%f>");\n'.replace(
        b"%c", quote(name, COMMENT)).replace(b"%f", quote(name, FORMAT))
                                     for name in names(400)) + b"}\n"
    read = bpftrace_parses(script)
    expect(b"ERROR: printf" not in read, read[read.find(b"ERROR: printf"):][:400])
    found = re.findall(rb"string: <(.*)> :: type", read)[:400]
    # The tree is printed with escapes of its own.
    found = [
        re.sub(rb"\\(x..|.)", lambda m: bytes([int(m[1][1:], 16)]) if m[1][1:] else m[1], text)
        for text in found
    ]
    equal(found, [shown_by_format(name).encode() for name in names(400)])


@claim
def bpftrace_reads_a_path_back():
    pairs = expressed(BPFTRACE)[:300]
    script = b"".join(
        b'uprobe:"/nowhere/%p":0x1129 { exit(); }\n'.replace(b"%p", quoted) for _, quoted in pairs)
    found = re.findall(rb"^ uprobe:/nowhere/(.*):4393$", bpftrace_parses(script), re.M)
    equal(found[:len(pairs)], [name for name, _ in pairs])


if __name__ == "__main__":
    main()
