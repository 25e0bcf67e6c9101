#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is installed and packaged, as far as it shows without building packages."""

import fnmatch
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

# noqa: E402
from claims import BUILD, CAIRN, SOURCE, Skip, cairn, claim, expect, main, need, path_of, run, write

DEBIAN = os.path.join(SOURCE, "debian")
PACKAGES = {
    "cairn", "cairn-agent", "libcairn0", "libcairn-dev", "libcairn-codectl0", "libcairn-codectl-dev"
}
_installed = []


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def installed():
    """(the folder, the paths in it below the prefix) of one installation of this build."""
    if not _installed:
        into = path_of("installed")
        run(need("meson"), "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", into,
            check=True)
        prefix = os.path.dirname(
            os.path.dirname(glob.glob(os.path.join(into, "**", "bin", "cairn"), recursive=True)[0]))
        paths = [
            os.path.relpath(os.path.join(top, name), prefix)
            for top, _, names in os.walk(prefix)
            for name in names
        ]
        _installed.append((prefix, sorted(paths)))
    return _installed[0]


def takes(pattern, path):
    """As dh_install: the pattern names the file or a folder above it."""
    parts, wanted = path.split("/"), pattern.strip("/").split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def patterns():
    """Package: what its .install file names."""
    found = {}
    for path in glob.glob(os.path.join(DEBIAN, "*.install")):
        lines = text_of(path).splitlines()
        found[os.path.basename(path)[:-len(".install")]] = [
            line.split()[0] for line in lines if line
        ]
    return found


@claim
def every_installed_file_is_in_exactly_one_package():
    _, paths = installed()
    if not any(re.match(r"lib/[^/]+-linux-gnu/", path) for path in paths):
        raise Skip("this build's libraries do not go where Debian has them")
    for path in paths:
        owners = [
            package for package, items in patterns().items() if any(
                takes(item, "usr/" + path) for item in items)
        ]
        expect(len(owners) == 1, path, owners)
    for package, items in patterns().items():
        for item in items:
            expect(any(takes(item, "usr/" + path) for path in paths),
                   f"{package} names what is not installed: {item}")


@claim
def packages_are_those_of_the_control_file():
    expect(set(re.findall(r"^Package: (\S+)$", text_of(DEBIAN, "control"), re.M)) == PACKAGES)
    expect(set(patterns()) == PACKAGES, patterns())


@claim
def the_version_is_one():
    version = re.search(r"version: '([^']+)'", text_of(SOURCE, "meson.build")).group(1)
    changelog = re.match(r"cairn \(([^)]+)\) ", text_of(DEBIAN, "changelog")).group(1)
    expect(version == changelog, version, changelog)
    expect(version in cairn("--version", check=True).out, version)


@claim
def libraries_have_the_names_and_versions_that_packages_depend_on():
    prefix, _ = installed()
    readelf = need("readelf")
    for symbols in glob.glob(os.path.join(DEBIAN, "*.symbols")):
        soname, package = text_of(symbols).split()[:2]
        node = re.search(r"\(symver\)(\S+)", text_of(symbols)).group(1)
        library = glob.glob(os.path.join(prefix, "lib*", "**", soname), recursive=True)
        expect(package in PACKAGES and len(library) == 1, symbols, library)
        expect(f"[{soname}]" in run(readelf, "-d", library[0], check=True).out, soname)
        expect(f"Name: {node}" in run(readelf, "-VW", library[0], check=True).out, node)


@claim
def nothing_installed_names_the_folder_it_was_built_in():
    """But for debug information, which packages keep apart and where -ffile-prefix-map is for."""
    if "-fsanitize" in text_of(BUILD, "build.ninja"):
        raise Skip("the sanitizers keep names of files")
    prefix, paths = installed()
    words = [os.path.realpath(path).encode() for path in (BUILD, SOURCE)]
    n_objects = 0
    for path in paths:
        with open(os.path.join(prefix, path), "rb") as file:
            content = file.read()
        if content.startswith((b"\177ELF", b"!<arch>")):
            n_objects += 1
            run(need("strip"), "--strip-debug", "-o", path_of("stripped"), os.path.join(
                prefix, path), check=True)
            with open(path_of("stripped"), "rb") as file:
                content = file.read()
        for word in words:
            at = content.find(word)
            expect(at < 0, path, content[max(at - 40, 0):at + 120])
    expect(n_objects >= 6, paths)


@claim
def the_program_replaces_no_function_of_another_library():
    """It is linked with the decoder as with any library."""
    nm, readelf = need("nm"), need("readelf")
    if "libZydis.a" in text_of(BUILD, "build.ninja"):
        raise Skip("the decoder is an archive here, and part of the program")
    expect(re.search(r"\(NEEDED\).*\[libZydis\.so",
                     run(readelf, "-dW", CAIRN, check=True).out), CAIRN)
    names = [
        line.split()[0]
        for line in run(nm, "--defined-only", "--format=posix", CAIRN, check=True).lines()
    ]
    expect("main" in names and not [name for name in names if name.startswith(("Zydis", "Zyan"))],
           names)


@claim
def make_install_takes_its_prefix_also_after_make():
    """In a folder that was set up for another prefix. What Ninja would do is written down."""
    folder = path_of("build")
    run(need("meson"), "setup", folder, SOURCE, "--prefix=/first", "-Dtests=false", check=True)
    ninja = write("ninja.sh", f"#!/bin/sh\necho \"$DESTDIR: $*\" >>{path_of('ninja.log')}\n")
    os.chmod(ninja, 0o755)
    words = ["install", f"BUILD={folder}", f"NINJA={ninja}"]
    r = run(need("make"), "-C", SOURCE, *words, "PREFIX=/second", "DESTDIR=/staged")
    expect(r.status == 0, r)
    options = run("meson", "introspect", "--buildoptions", folder, check=True).out
    expect(re.search(r'"name": "prefix", "value": "/second"', options), options[:3000])
    expect(
        text_of(path_of("ninja.log")).splitlines()[-1] == f"/staged: -C {folder} --quiet install",
        text_of(path_of("ninja.log")))


if __name__ == "__main__":
    main()
