#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Clang takes every source that GCC builds, without a warning: `make fuzz` builds with it."""

import collections
import concurrent.futures
import itertools
import json
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from claims import BUILD, claim, expect, main, need, run, write  # noqa: E402

# Of a command of the build; what is written, and where, is not wanted here.
WITH_VALUE = {"-o", "-MF", "-MQ", "-MT"}
WITHOUT = {"-c", "-MD", "-MMD"}


def flags_of(entry):
    """The command without its compiler, its file and its outputs; the folder of the objects is no
    place of headers."""
    words = itertools.dropwhile(lambda word: not word.startswith("-"),
                                shlex.split(entry["command"]))
    flags = []
    for word in words:
        if word in WITH_VALUE:
            next(words)
        elif word != entry["file"] and word not in WITHOUT and not re.fullmatch(r"-I.*\.p", word):
            flags.append(word)
    return tuple(flags)


def sources_by_flags():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    groups, seen = collections.defaultdict(list), set()
    for entry in entries:
        if entry["file"].endswith(".c") and entry["file"] not in seen:
            seen.add(entry["file"])
            groups[flags_of(entry)].append(entry["file"])
    return groups


def has_assembler(path):
    with open(os.path.join(BUILD, path), encoding="utf-8") as file:
        return re.search(r"\basm\b|__asm__", file.read())


def commands(clang):
    for flags, files in sources_by_flags().items():
        words = [clang, "-Werror", "-Wno-unknown-warning-option", *flags]
        # Assembler is read when code is made, and then one file a command.
        assembled = [path for path in files if has_assembler(path)]
        yield from ([*words, "-c", "-o", "/dev/null", path] for path in assembled)
        parsed = [path for path in files if path not in assembled]
        # Some per command, so that all processors have work.
        for at in range(0, len(parsed), 40):
            yield in_one_process([*words, "-fsyntax-only"], parsed[at:at + 40])


def in_one_process(words, files):
    """ Clang's driver starts the compiler for each file, which takes longer than to read it; the
    compiler itself takes many."""
    made = run(*words, "-###", files[0], cwd=BUILD, check=True)
    compiler = shlex.split(made.err.splitlines()[-1])
    expect(compiler[1] == "-cc1" and compiler[-1] == files[0], made)
    return compiler[:-1] + files


@claim
def a_warning_in_any_file_of_a_command_is_seen():
    clang, files = need("clang"), []
    for i in range(3):
        files.append(write(f"quiet{i}.c", f"int f{i}(void);\nint f{i}(void) {{ return {i}; }}\n"))
    words = [clang, "-Werror", "-Wall", "-fsyntax-only"]
    expect(run(*in_one_process(words, files)).status == 0, files)
    for i, path in enumerate(files):
        write(f"quiet{i}.c", f"void g{i}(void) {{ int unused; }}\n")
        found = run(*in_one_process(words, files))
        expect(found.status and path in found.err, found)
        write(f"quiet{i}.c", "\n")


@claim
def clang_takes_every_source_without_a_warning():
    clang = need("clang")
    todo = list(commands(clang))
    expect(sum(word.endswith(".c") for words in todo for word in words) > 400, todo)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [
            r for r in pool.map(lambda words: run(*words, cwd=BUILD, seconds=600), todo)
            if r.status or r.err
        ]
    expect(not wrong, *(r.err[:3000] for r in wrong))


if __name__ == "__main__":
    main()
