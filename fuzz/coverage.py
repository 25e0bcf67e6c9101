#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which lines of src/ the fuzz targets reach.

    coverage.py [--build DIR] [--corpora DIR] [--only NAME]... [--files PATTERN]... [--missed]

Every target's replay program is built with Clang's line counters and run: the seeds, each of them
cut and damaged, and what libFuzzer has found so far (DIR of --corpora, which `make fuzz` fills). It
prints each directory's share of lines, and each file's of the groups in PROMISED, which have to
reach their share; the exit status is 1 when one does not.
"""

import argparse
import fnmatch
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
FLAGS = "-fprofile-instr-generate -fcoverage-mapping"
REPLAY_SECONDS = 600
# It has every file, also those that no target links.
LIBRARY = "src/libcairn.so.0"
# Files of src/ and the share of their lines, in percent, that targets of their own have to reach.
PROMISED = [("facts/loc/*.c", 80), ("live/unwind/*.c", 80), ("ground/elf/debug_files*.c", 80),
            ("facts/dwarf/split*.c", 80), ("bytes/decode/bpfmap*.c", 80), ("live/code/*.c", 0)]


def replays(build, only):
    """(target, program) of each replay program, built."""
    if not os.path.exists(os.path.join(build, "build.ninja")):
        subprocess.run([
            "meson", "setup", build, TOP, "-Db_lundef=false", "-Dc_args=" + FLAGS,
            "-Dc_link_args=" + FLAGS
        ], env=dict(os.environ, CC=os.environ.get("CC", "clang")), check=True,
                       stdout=subprocess.DEVNULL)
    # The list of targets may be older than meson.build.
    subprocess.run(["ninja", "-C", build, "--quiet", "build.ninja"], check=True, stdout=sys.stderr)
    found = subprocess.run(["meson", "introspect", "--targets", build], check=True,
                           stdout=subprocess.PIPE).stdout
    names = sorted(t["name"] for t in json.loads(found) if t["name"].startswith("replay_"))
    names = [n for n in names if not only or n.removeprefix("replay_") in only]
    subprocess.run(["ninja", "-C", build, "--quiet", LIBRARY, *(f"fuzz/{n}" for n in names)],
                   check=True, stdout=sys.stderr)
    return [(n.removeprefix("replay_"), os.path.join(build, "fuzz", n)) for n in names]


def replay(target, program, folder, corpora):
    """Runs the seeds, then the corpus; the profiles are in @folder."""
    corpus = sorted(glob.glob(os.path.join(corpora, f"fuzz_{target}.corpus", "*")))
    runs = [[program]] + [[program, *corpus[i:i + 500]] for i in range(0, len(corpus), 500)]
    for number, command in enumerate(runs):
        profile = os.path.join(folder, f"{target}.{number}.profraw")
        try:
            status = subprocess.run(
                command, env=dict(os.environ, LLVM_PROFILE_FILE=profile, CAIRN_CACHE="off"),
                stdout=subprocess.DEVNULL, timeout=REPLAY_SECONDS).returncode
        except subprocess.TimeoutExpired:
            status = f"more than {REPLAY_SECONDS} seconds"
        if status:
            sys.exit(f"coverage: {' '.join(command[:2])}: {status}")


def merge(folder, programs):
    """{file of src/: (lines, lines that were executed)} and the merged profile."""
    merged = os.path.join(folder, "all.profdata")
    subprocess.run([
        "llvm-profdata", "merge", "-sparse", "-o", merged,
        *glob.glob(os.path.join(folder, "*.profraw"))
    ], check=True)
    objects = [word for program in programs[1:] for word in ("-object", program)]
    text = subprocess.run(
        ["llvm-cov", "export", "-summary-only", "-instr-profile", merged, programs[0], *objects],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    source = os.path.join(TOP, "src") + "/"
    lines = {}
    for file in json.loads(text)["data"][0]["files"]:
        name = os.path.normpath(file["filename"])
        if name.startswith(source) and name.endswith(".c"):
            lines[name.removeprefix(source)] = (file["summary"]["lines"]["count"],
                                                file["summary"]["lines"]["covered"])
    return lines, merged


def show(name, count, covered, indent=""):
    print(f"{100 * covered / max(count, 1):6.1f} %  {covered:6} of {count:6} lines  {indent}{name}")


def total(lines, names):
    return sum(lines[n][0] for n in names), sum(lines[n][1] for n in names)


def print_rooms(lines):
    for room in sorted({os.path.dirname(name) for name in lines}):
        show(f"src/{room}", *total(lines, [n for n in lines if n.startswith(room + "/")]))
    show("src", *total(lines, lines))


def print_promised(lines):
    """Whether every group has what is promised."""
    holds = True
    for pattern, least in PROMISED:
        names = sorted(n for n in lines if fnmatch.fnmatch(n, pattern))
        count, covered = total(lines, names)
        show(f"src/{pattern}", count, covered)
        for name in names:
            show(name, *lines[name], indent="    ")
        holds &= 100 * covered >= least * count
    return holds


def print_missed(merged, programs, patterns):
    """The lines that no target reaches, as llvm-cov shows them."""
    objects = [word for program in programs[1:] for word in ("-object", program)]
    text = subprocess.run(["llvm-cov", "show", "-instr-profile", merged, programs[0], *objects],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout
    wanted = False
    for line in text.splitlines():
        parts = line.split("|", 2)
        if line.startswith("/"):
            name = os.path.relpath(os.path.normpath(line.rstrip(":")), os.path.join(TOP, "src"))
            wanted = any(fnmatch.fnmatch(name, p) for p in patterns)
        if wanted and (line.startswith("/") or (len(parts) == 3 and parts[1].strip() == "0")):
            print(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(TOP, "build-cov"))
    parser.add_argument("--corpora", default=os.path.join(TOP, "build-fuzz", "fuzz"), metavar="DIR")
    parser.add_argument("--only", action="append", metavar="NAME", help="this target, or these")
    parser.add_argument("--missed", action="append", metavar="PATTERN",
                        help="show the missed lines of src/PATTERN")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    targets = replays(build, args.only)
    folder = os.path.join(build, "profiles")
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*")):
        os.unlink(old)
    for target, program in targets:
        replay(target, program, folder, args.corpora)
    programs = [os.path.join(build, LIBRARY)] + [program for _, program in targets]
    lines, merged = merge(folder, programs)
    if args.missed:
        print_missed(merged, programs, args.missed)
        return
    print_rooms(lines)
    if not print_promised(lines) and not args.only:
        sys.exit("coverage: less than what is promised")


if __name__ == "__main__":
    main()
