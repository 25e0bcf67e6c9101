#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Print the circles of the library's files: circles.py BUILD [MODULE]

A circle: files of one module, each of which uses, directly or over the others, what the others
define. The object files of the build folder say so: an undefined symbol of one against a defined
symbol of another. With MODULE, each use inside its circles is printed as well, with the names.
"""

import collections
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent


def objects(build):
    """[(object file, module, source file)] of the library: "facts/loc" and "cfg.c"."""
    modules = [line for line in (TOP / "LAYERS").read_text(encoding="utf-8").split() if "/" in line]
    found = []
    for path in sorted(pathlib.Path(build, "src", "libcairn.a.p").glob("*.o")):
        name = path.name.removesuffix(".o")
        for module in modules:
            start = module.replace("/", "_") + "_"
            if name.startswith(start):
                found.append((path, module, name.removeprefix(start)))
    return found


def symbols(paths):
    """{path: (defined, undefined)}: the global names of object files."""
    out = subprocess.run(["nm", "-A", "-g", "--format=posix", *map(str, paths)], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    found = {str(path): (set(), set()) for path in paths}
    for line in out.splitlines():
        path, name, kind = line.split()[:3]
        found[path.removesuffix(":")][kind in "Uwv"].add(name)
    return found


def uses(build):
    """{module: {file: {other file of the module: names it uses of it}}}"""
    of_library = objects(build)
    names = symbols([path for path, _, _ in of_library])
    table = {(module, file): names[str(path)] for path, module, file in of_library}
    owner = {name: key for key, (defined, _) in table.items() for name in defined}
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(
        set)))
    for (module, file), (_, undefined) in table.items():
        found[module][file]  # a file that uses nothing of its module, too
        for name in undefined:
            where = owner.get(name)
            if where and where[0] == module and where[1] != file:
                found[module][file][where[1]].add(name)
    return found


def reached(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def circles(build):
    """{(module, (file, file, ...))}: the strongly connected files, each circle once."""
    found = set()
    for module, graph in uses(build).items():
        reach = {file: reached(graph, file) for file in graph}
        for file in graph:
            if file in reach[file]:
                found.add(
                    (module, tuple(sorted(other for other in reach[file] if file in reach[other]))))
    return found


def main():
    build, only = sys.argv[1], sys.argv[2:]
    table = uses(build)
    for module, files in sorted(circles(build)):
        if only and module not in only:
            continue
        print(f"{module}: {' '.join(files)}")
        for file in files if only else ():
            for other in files:
                if table[module][file].get(other):
                    print(f"\t{file} -> {other}: {' '.join(sorted(table[module][file][other]))}")


if __name__ == "__main__":
    main()
