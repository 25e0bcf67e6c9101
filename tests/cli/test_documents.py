#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every command of the documents prints what they show.

    tests/cli/test_documents.py                       the claims
    tests/cli/test_documents.py --update [FILE...]    write what the commands print now,
                                                      where its shape is another one
    tests/cli/test_documents.py --rewrite [FILE...]   the same, everywhere
"""

import os
import re
import shutil
import sys
import tempfile

from claims import BUILD, CAIRN, SOURCE, Skip, cairn, claim, claim_each, expect, main, run
from documents import (CLONE, Shell, as_in_documents, blocks, commands, differences, make_clone,
                       with_output)

DOCUMENTS = ["README.md", "docs/tutorial.md", "docs/cookbook.md", "docs/sites-by-example.md",
             "docs/layout.md"]
# The documents show programs that these compiled; another version makes other code.
MADE_WITH = {"gcc": "12", "clang": "14"}
# Words of a command that are other people's programs. What is missing is a reason to skip.
TOOLS = ["gcc", "clang", "gdb", "perf", "bpftool", "bpftrace", "pahole", "readelf", "objdump", "jq",
         "luajit", "gcore", "strip", "git", "rustc", "sqlite3", "redis-server"]
# Variables of this test that the commands see.
KEPT = ["PATH", "HOME", "CAIRN_CACHE", "ASAN_OPTIONS", "UBSAN_OPTIONS"]

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
_answers = {}


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def environment(folder):
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = ":".join([os.path.join(folder, ".bin"), os.path.join(folder, "build"), kept["PATH"]])
    return {**kept, "PATH": path, "LC_ALL": "C.UTF-8", "TERM": "dumb"}


def execute(name):
    """Runs a document's commands, and fills in what each printed, or why it was not run."""
    if name in _answers:
        return _answers[name]
    found = _answers[name] = commands(read(name))
    mark_what_cannot_run(found)
    with tempfile.TemporaryDirectory(prefix="cairn-documents-") as top:
        folder = os.path.realpath(top)
        make_clone(folder, SOURCE, BUILD)
        shell = Shell(folder, environment(folder))
        folders = {folder: CLONE, os.path.realpath(SOURCE): CLONE,
                   os.path.realpath(BUILD): CLONE + "/build"}
        try:
            for command in found:
                if not command.reason:
                    command.status, lines = shell.run(command.text)
                    command.printed = [as_in_documents(line, folders) for line in lines]
        except TimeoutError as error:
            command.status = f"did not end: {error}"
        finally:
            shell.close()
    return found


def version_of(compiler):
    return run(compiler, "-dumpversion", check=True).out.split(".")[0].strip()


def may_trace():
    findings = {f["what"]: f["ok"] for f in cairn("doctor", "--json").objects()}
    return any(ok for what, ok in findings.items() if "uprobe" in what)


def why_not(text):
    """Why the command cannot print here what it should, or None."""
    for tool in TOOLS:
        if re.search(rf"(^|[|;&] *|sudo |-- ){tool}\b", text, re.M) and not shutil.which(tool):
            return f"{tool} is not installed"
    if "sudo " in text and os.geteuid() != 0:
        return "needs root"
    if re.search(r"cairn (trace (?!.*--dry-run)|doctor)", text) and not may_trace():
        return "no uprobes here"
    shows_libc = re.search(r"libc\.so\.6|doctor|cairn stack", text)
    if shows_libc and cairn("sites", LIBC, "tcache_get").status:
        return "libc has no debug information here"
    return None


def other_compiler():
    for compiler, version in MADE_WITH.items():
        if not shutil.which(compiler):
            return f"{compiler} is not installed"
        if version_of(compiler) != version:
            return f"the documents are of {compiler} {version}; here is {version_of(compiler)}"
    return None


def mark_what_cannot_run(found):
    """What cannot run leaves nothing to those after it in its section."""
    other, failed = other_compiler(), {}
    for command in found:
        if not command.reason:
            command.reason = other or failed.get(command.section) or why_not(command.text)
            if command.reason:
                failed[command.section] = command.reason


EACH = [f"{name}:{command.line}" for name in DOCUMENTS for command in commands(read(name))]


@claim_each(*EACH)
def a_command_of_the_documents_prints_what_they_show(place):
    name, line = place.split(":")
    command = next(c for c in execute(name) if c.line == int(line))
    if command.reason:
        raise Skip(command.reason)
    expect(isinstance(command.status, int), f"{place}: not run, or {command.status}")
    found = differences(command.shown, command.printed)
    expect(not found, f"{place}: $ {command.text}", "- the document   + now", *found,
           "If the new text is right: tests/cli/test_documents.py --update")
    expect(command.status == 0 or not command.is_script, f"{place}: exit status {command.status}")


@claim
def another_shape_is_told_and_other_numbers_are_not():
    shown = ["  0x1189  inlined in work+0x0, called at put.c:15:2",
             "1 of 1 sites; attached in 7.6 ms",
             "build-id 93ac61ec5a8e"]
    same = ["  0x11f0  inlined in work+0x10, called at put.c:7:12",
            "3 of 12 sites;  attached in 1 s",
            "build-id 00ff61ec5a8e"]
    expect(not differences(shown, same), differences(shown, same))
    for i, line in enumerate(shown):
        for other in (line + " more", line.replace("i", "o", 1), line.replace("i", "", 1)):
            expect(differences(shown, shown[:i] + [other] + shown[i + 1:]), other)
        expect(differences(shown, shown[:i] + shown[i + 1:]), "a line is missing")
        expect(differences(shown, shown[:i] + [line] + shown[i:]), "a line is there twice")


@claim
def what_is_updated_is_what_was_printed_and_nothing_else():
    text = ("Text\n```console\n$ one\n$ two\nold\n  0x12\n$ three\nkept 1\n```\n"
            "more\n```sh\nscript\n```\n")
    found = commands(text)
    expect([c.text for c in found] == ["one", "two", "three", "script"], [c.text for c in found])
    for command, printed in zip(found, (["new"], ["a", "b", "c"], ["kept 2"], [])):
        command.printed = printed
    wanted = text.replace("$ one\n", "$ one\nnew\n").replace("old\n  0x12\n", "a\nb\nc\n")
    expect(with_output(text, found) == wanted, with_output(text, found))


@claim
def files_and_functions_that_the_example_names_are_there():
    text = re.sub(r"^```.*?^```$", "", read("docs/sites-by-example.md"), flags=re.M | re.S)
    named = set(re.findall(r"`([\w/]+\.c)`", text)) - {"examples/clip.c"}
    sites = os.path.join(SOURCE, "src/facts/sites")
    quirks = os.path.join(sites, "quirks")
    places = [SOURCE, sites, quirks, os.path.join(SOURCE, "src/facts/loc")]
    missing = [name for name in named
               if not any(os.path.exists(os.path.join(place, name)) for place in places)]
    expect(len(named) > 15 and not missing, missing)
    code = "".join(read(os.path.join("src/facts/sites", name))
                   for name in os.listdir(sites) if name.endswith(".c"))
    for function in re.findall(r"`(\w+)\(\)`", text):
        expect(re.search(rf"\b{function}\(", code), function)


@claim
def every_link_and_every_header_that_a_page_names_is_there():
    pages = [
        os.path.relpath(os.path.join(top, name), SOURCE)
        for top, _, names in os.walk(os.path.join(SOURCE, "docs"))
        for name in names
        if name.endswith(".md")
    ]
    expect(len(pages) > 50, pages)
    for page in pages + ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]:
        text = re.sub(r"^```.*?^```$", "", read(page), flags=re.M | re.S)
        links = [
            os.path.join(os.path.dirname(page), to)
            for to in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        ]
        headers = re.findall(r"`(include/cairn/[\w/]+\.h)`", text)
        for path in links + headers:
            expect(os.path.exists(os.path.join(SOURCE, path)), page, path)


@claim_each(*DOCUMENTS)
def no_command_is_in_a_block_that_is_not_run(name):
    lines = read(name).splitlines()
    inside = {i for _, _, first, body in blocks(lines) for i in range(first, first + len(body))}
    left = [line for i, line in enumerate(lines) if i not in inside and line.startswith("$ ")]
    expect(not left, left)


@claim_each(*DOCUMENTS)
def a_command_can_be_pasted_into_an_interactive_shell(name):
    # A tab would complete file names there.
    expect(not [c.text for c in commands(read(name)) if "\t" in c.text], name)


def update(names, everywhere):
    for name in names or DOCUMENTS:
        found = execute(name)
        new = with_output(read(name), found, everywhere)
        with open(os.path.join(SOURCE, name), "w", encoding="utf-8") as file:
            file.write(new)
        for command in found:
            if command.reason or command.status:
                print(f"{name}:{command.line}: {command.reason or command.status}: {command.text}")


if __name__ == "__main__":
    expect(os.access(CAIRN, os.X_OK), f"no program {CAIRN}")
    if sys.argv[1:2] in (["--update"], ["--rewrite"]):
        update(sys.argv[2:], sys.argv[1] == "--rewrite")
    else:
        main()
