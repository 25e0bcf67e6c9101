# SPDX-License-Identifier: BSD-2-Clause
"""The commands of a document, run in their order in one shell, and the shape of what they print.

Fenced blocks are read by their language:

    ```console      `$ COMMAND` lines, each followed by its output; a command goes on in `> ` lines
    ```sh           a script without output, which has to succeed

A reason in brackets after the language (```console (a GPU is needed)) keeps a block from being run.

A shell's folder looks like a clone after `make`: examples/, and build/ with the program. Numbers,
addresses, ids and the width of blanks are wild; all other text is the shape, which has to be the
document's.
"""

import difflib
import os
import re
import select
import shutil
import subprocess
import time

FENCE = re.compile(r"^```(console|sh)(?: \((.*)\))?$")
HEADING = re.compile(r"^#+ ")
# What the folder of the clone is called in documents.
CLONE = "/home/ann/cairn"
SECONDS = 150


class Command:
    def __init__(self, text, line, is_script, reason, section):
        self.text, self.line, self.is_script = text, line, is_script
        self.reason = reason    # why it is not run, or None
        self.section = section  # line of the heading before it
        self.shown = []         # the lines of output that the document has
        self.at = line          # index of the first of them in the document's lines
        self.printed = None     # what it printed when it was run
        self.status = None


def blocks(lines):
    """(language, reason, index of the first line, lines) of each block that is read."""
    at = 0
    while at < len(lines):
        match = FENCE.match(lines[at])
        if match:
            end = next(i for i in range(at + 1, len(lines)) if lines[i] == "```")
            yield match.group(1), match.group(2), at + 1, lines[at + 1:end]
            at = end
        at += 1


def commands(text):
    """The commands of a document's text, in its order."""
    found, lines = [], text.splitlines()
    for language, reason, first, body in blocks(lines):
        section = max((i for i in range(first) if HEADING.match(lines[i])), default=0)
        if language == "sh":
            found.append(Command("\n".join(body), first + 1, True, reason, section))
            continue
        for i, line in enumerate(body):
            if line.startswith("$ "):
                found.append(Command(line[2:], first + i + 1, False, reason, section))
            elif line.startswith("> ") and not found[-1].shown:
                found[-1].text += "\n" + line[2:]
            else:
                found[-1].shown.append(line)
                continue
            found[-1].at = first + i + 1
    return found


def make_clone(folder, source, build):
    """A folder that looks like the clone after make, in which a document may write."""
    shutil.copytree(os.path.join(source, "examples"), os.path.join(folder, "examples"),
                    symlinks=True, ignore=shutil.ignore_patterns("event.bpf.o"))
    os.makedirs(os.path.join(folder, "build"))
    for name in ("cairn", "examples", "man"):
        os.symlink(os.path.join(build, name), os.path.join(folder, "build", name))
    os.symlink(os.path.join(build, "examples/event.bpf.o"),
               os.path.join(folder, "examples/event.bpf.o"))
    # sudo may be missing where the test is root, who has no use for it.
    os.makedirs(os.path.join(folder, ".bin"))
    if os.geteuid() == 0:
        with open(os.path.join(folder, ".bin", "sudo"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "$@"\n')
        os.chmod(file.name, 0o755)


class Shell:
    """A shell that runs one command after the other. All that it started ends with it."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.ends = time.monotonic() + SECONDS
        self.n = 0
        self.reading, told = os.pipe()
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=environment,
                                        pass_fds=[told], start_new_session=True)
        self.told = told

    def run(self, command):
        """Its exit status and the lines that it printed. TimeoutError when the document is slow."""
        self.n += 1
        path = os.path.join(self.folder, f".output{self.n}")
        self.process.stdin.write(f"{{ {command}\n}} >{path} 2>&1 </dev/null {self.told}>&-\n"
                                 f"echo $? >&{self.told}\n")
        self.process.stdin.flush()
        left = max(0, self.ends - time.monotonic())
        ready, _, _ = select.select([self.reading], [], [], left)
        if not ready:
            raise TimeoutError(command)
        status = int(os.read(self.reading, 100) or b"-1")
        with open(path, encoding="utf-8", errors="replace") as file:
            return status, file.read().splitlines()

    def close(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait()
        os.close(self.reading)
        os.close(self.told)


def as_in_documents(line, folders):
    """The line with its folders as documents call them."""
    for folder in sorted(folders, key=len, reverse=True):
        line = line.replace(folder, folders[folder])
    return line.replace(CLONE + "/build/../", CLONE + "/").rstrip()


def shape(line):
    line = re.sub(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]+\b", "#", line)
    line = re.sub(r"\d+", "#", line)
    line = re.sub(r"#(?:\.#)+", "#", line)
    line = re.sub(r"# (?:ns|µs|ms|s)\b", "# s", line)
    return re.sub(r"\s+", " ", line).strip()


def differences(shown, printed):
    """Lines of both whose shape differs, as a diff; empty if there are none."""
    if [shape(line) for line in shown] == [shape(line) for line in printed]:
        return []
    matcher = difflib.SequenceMatcher(None, [shape(line) for line in shown],
                                      [shape(line) for line in printed], autojunk=False)
    found = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            found += ["- " + line for line in shown[a:b]] + ["+ " + line for line in printed[c:d]]
    return found


def with_output(text, found, everywhere=False):
    """The document with what was printed: everywhere, or where the shape is another one."""
    lines = text.splitlines()
    for command in reversed(found):
        if command.printed is None or command.is_script:
            continue
        if everywhere or differences(command.shown, command.printed):
            lines[command.at:command.at + len(command.shown)] = command.printed
    return "\n".join(lines) + "\n"
