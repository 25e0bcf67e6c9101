#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Public headers stand alone, address kinds do not mix, and the library exports what the headers
declare."""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))

import circles  # noqa: E402
# noqa: E402
from claims import BUILD, SOURCE, Skip, claim, claim_each, expect, folder, main, need, run

INCLUDE = os.path.join(SOURCE, "include")
HEADERS = sorted(os.path.relpath(path, INCLUDE)
                 for path in glob.glob(os.path.join(INCLUDE, "cairn", "**", "*.h"), recursive=True)
                 if not path.endswith(".bpf.h"))  # for programs of the kernel: tests/live/test_loc.py
LANGUAGES = [("gcc", "c", "c11"), ("clang", "c", "c11"), ("g++", "c++", "c++17"),
             ("clang++", "c++", "c++17")]


def compiles(compiler, language, standard, text):
    need(compiler)
    path = os.path.join(folder(), "unit." + ("c" if language == "c" else "cc"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic",
               "-fsyntax-only", "-I", INCLUDE, path)


@claim_each(*(f"{compiler} -std={standard}" for compiler, _, standard in LANGUAGES))
def every_header_compiles_alone(how):
    compiler, language, standard = next(
        row for row in LANGUAGES if how == f"{row[0]} -std={row[2]}")
    expect(HEADERS, "no headers in", INCLUDE)
    for header in HEADERS:
        # Twice: its guard works.
        r = compiles(compiler, language, standard,
                     f"#include <{header}>\n#include <{header}>\nint unit_is_not_empty;\n")
        expect(r.status == 0, header, r)


CONVERSION = """
#include <cairn/binary.h>
int f(const struct cairn_binary *bin);
int f(const struct cairn_binary *bin)
{
	struct cairn_vaddr at = {1};
	struct cairn_foff off = {2};
	return cairn_binary_foff(bin, %s, &off);
}
"""


@claim_each("gcc", "clang", "g++", "clang++")
def address_kinds_do_not_mix(compiler):
    language = "c++" if compiler.endswith("+") else "c"
    standard = "c++17" if language == "c++" else "c11"
    # Without this, a claim that something does not compile could be true for any reason.
    r = compiles(compiler, language, standard, CONVERSION % "at")
    expect(r.status == 0, r)
    for wrong in ["off", "1", "at.v"]:
        r = compiles(compiler, language, standard, CONVERSION % wrong)
        expect(r.status != 0 and "cairn_vaddr" in r.err,
               f"{wrong} was taken for a link-time address", r)


# What a program that is looked at links with; the rest is libcairn's.
AGENT_HEADERS = ["cairn/jit/codectl.h", "cairn/jit/jit.h"]


def declared(headers):
    """Functions that the headers declare: cairn_NAME( or codectl( at the start of a declaration."""
    names = set()
    for header in headers:
        with open(os.path.join(INCLUDE, header), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)
        # Bodies, struct fields and parameters are not at the left edge of a declaration.
        text = re.sub(r"\{[^{}]*\}", "{}", re.sub(r"\{[^{}]*\}", "{}", text))
        # An inline function is the caller's own.
        names.update(
            re.findall(r"^(?!static inline)[a-z][^;{}()#]*?\b(cairn_\w+|codectl\w*)\(", text, re.M))
    return names


LIBRARIES = {
    "libcairn":
    ("src/libcairn.so.?", [header for header in HEADERS if header not in AGENT_HEADERS], 20),
    "libcairn-codectl": ("agent/libcairn-codectl.so.?", AGENT_HEADERS, 5),
}


@claim_each(*LIBRARIES)
def the_library_exports_exactly_what_the_headers_declare(library):
    nm = need("nm")
    pattern, headers, n_least = LIBRARIES[library]
    libraries = glob.glob(os.path.join(BUILD, pattern))
    if not libraries:
        raise Skip("the shared library is not built")
    r = run(nm, "-D", "--defined-only", "--format=posix", libraries[0], check=True)
    exported = {line.split()[0].split("@")[0] for line in r.lines() if line.split()[1] != "A"}
    names = declared(headers)
    expect(len(names) > n_least, names)
    expect(exported == names, "exported, not declared:", sorted(exported - names),
           "declared, not exported:", sorted(names - exported))


ARCHIVES = {"libcairn": "cairn_", "libcairn-codectl": "cairn_|codectl"}


@claim_each(*ARCHIVES)
def an_archive_has_no_global_name_but_the_headers(library):
    nm = need("nm")
    path = os.path.join(BUILD, "scripts", library + ".a")
    r = run(nm, "-g", "--defined-only", "--format=posix", path, check=True)
    names = {line.split()[0] for line in r.lines() if len(line.split()) > 1}
    wrong = sorted(name for name in names if not re.match(ARCHIVES[library], name))
    expect(len(names) > 5 and not wrong, wrong)


OWN_NAMES = """
#include <cairn/jit/codectl.h>
#include <cairn/sidecar.h>
int next(int n);
int emit(int n);
int expect(int n);
int ranges_init(int n);
int next(int n) { return n + 1; }
int emit(int n) { return n + 2; }
int expect(int n) { return n + 3; }
int ranges_init(int n) { return n + 4; }
int main(void)
{
	cairn_sidecar_close(0);
	return next(1) + emit(1) + expect(1) + ranges_init(1) == 14 && codectl(99, 0, 0, 0) < 0 ? 0 : 1;
}
"""


@claim
def a_program_with_names_of_its_own_links_with_the_archives():
    if "-fsanitize" in open(os.path.join(BUILD, "build.ninja"), encoding="utf-8").read():
        raise Skip("the archives of this build need the sanitizers' libraries")
    into = os.path.join(folder(), "installed")
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", into, check=True)
    found = glob.glob(os.path.join(into, "**", "cairn.pc"), recursive=True)
    expect(len(found) == 1, found)
    text = open(found[0], encoding="utf-8").read()
    expect(not re.search(r"[\s=]/usr/lib/\S+\.(so|a)\b", text), text)
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found[0]),
                       PKG_CONFIG_SYSROOT_DIR=into)
    flags = run("pkg-config", "--cflags", "--libs", "--static", "cairn", "cairn-codectl",
                env=environment, check=True).out.split()
    path = os.path.join(folder(), "own.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(OWN_NAMES)
    # The two archives by their names: pkg-config cannot choose between them and the shared
    # libraries.
    archives = [
        glob.glob(os.path.join(into, "**", name + ".a"), recursive=True)[0] for name in ARCHIVES
    ]
    rest = [flag for flag in flags if flag not in ("-lcairn", "-lcairn-codectl")]
    program = os.path.join(folder(), "own")
    r = run("gcc", "-o", program, path, *archives, *rest)
    expect(r.status == 0, r)
    expect(run(program).status == 0, "the program's own functions were replaced")


@claim
def modules_include_only_earlier_ones():
    """The order of LAYERS: no file looks right."""
    with open(os.path.join(SOURCE, "LAYERS"), encoding="utf-8") as file:
        layers = file.read().split()
    expect(layers[0] == "ground/base" and layers[-1] == "cli", layers)
    names = [layer.split("/")[-1] for layer in layers]
    wrong = []
    for index, layer in enumerate(layers[:-1]):
        for path in glob.glob(os.path.join(SOURCE, "src", layer, "**", "*.[ch]"), recursive=True):
            with open(path, encoding="utf-8") as file:
                for included in re.findall(r'^#include "(\w+)/', file.read(), re.M):
                    if included in names and names.index(included) > index:
                        wrong.append(f"{os.path.relpath(path, SOURCE)} includes {included}/")
    expect(not wrong, *wrong)


# Files of one module that use each other, with the reason why that is right.
CIRCLES = {
    ("bytes/decl", ("attributes.c", "declarator.c", "enums.c", "expr.c", "initialiser.c", "record.c", "specifiers.c")):
    "the grammar of C: a struct is in a type, a type in an expression, and an "
    "expression in a struct", ("bytes/decode", ("arms.c", "compile.c", "variants.c")):
    "a union has arms that are types, and a type may be a union",
    ("bytes/layout", ("print.c", "print_member.c")):
    "a struct has members, and a member may be a struct",
    ("facts/sites", ("quirks_hidden_difference.c", "quirks_loop_arithmetic.c", "quirks_quirks.c", "quirks_stale_outer_variable.c")):
    "the table of rules has their checks, and a check gives the reason of its row",
    ("live/trace", ("expr_cast_types.c", "expr_operator_types.c", "expr_path_types.c", "expr_string_types.c")):
    "a path has an index, which is an expression, and an operator has paths",
    ("live/trace", ("expr_compile.c", "expr_floats.c", "expr_recipes.c", "expr_wide.c")):
    "an expression compares strings and floats, which are expressions",
}


def listed_headers():
    """{module/header} of the file HEADERS."""
    found, module = set(), None
    with open(os.path.join(SOURCE, "HEADERS"), encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words and not line.startswith(" "):
                module = words.pop(0)
            found.update(f"{module}/{word}" for word in words)
    return found


@claim
def modules_include_only_those_private_headers_of_others_that_are_listed():
    included = {}
    for path in glob.glob(os.path.join(SOURCE, "src", "*", "*", "**", "*.[ch]"), recursive=True):
        relative = os.path.relpath(path, SOURCE)
        with open(path, encoding="utf-8") as file:
            for header in re.findall(r'^\s*#\s*include\s+"(\w+/[^"]+)"', file.read(), re.M):
                if header.split("/")[0] != relative.split(os.sep)[2]:
                    included.setdefault(header, []).append(relative)
    listed = listed_headers()
    wrong = [f"{where[0]} includes {header}, which is not in HEADERS"
             for header, where in sorted(included.items()) if header not in listed]
    wrong += [
        f"{header} is in HEADERS, and no other module includes it"
        for header in sorted(listed - set(included))
    ]
    expect(len(listed) > 50 and not wrong, *wrong)


@claim
def a_header_that_lists_its_modules_files_lists_all():
    """A comment that names half of the files is such a list; the rest would be missed by its
    readers."""
    wrong, n_lists = [], 0
    for path in glob.glob(os.path.join(SOURCE, "src", "**", "*.h"), recursive=True):
        files = {
            os.path.basename(file)
            for file in glob.glob(os.path.join(os.path.dirname(path), "*.c"))
        }
        with open(path, encoding="utf-8") as file:
            essay = file.read().split("#ifndef")[0]
        named = set(re.findall(r"\b\w+\.c\b", essay)) & files
        if len(named) >= 4 and 2 * len(named) >= len(files):
            n_lists += 1
            wrong += [
                f"{os.path.relpath(path, SOURCE)} does not name {name}"
                for name in sorted(files - named)
            ]
    expect(n_lists > 4 and not wrong, n_lists, *wrong)


@claim
def files_of_a_module_use_each_other_in_one_direction():
    """By the symbols of the object files: a circle is ended, or is in the list above with a reason.
    """
    need("nm")
    found = circles.circles(BUILD)
    n_uses = sum(len(files) for graph in circles.uses(BUILD).values() for files in graph.values())
    expect(n_uses > 500, "the object files of the library show few uses:", n_uses)
    expect(found == set(CIRCLES), "circles that are new:", sorted(found - set(CIRCLES)),
           "circles that have ended:", sorted(set(CIRCLES) - found),
           "what makes them: scripts/circles.py BUILD MODULE")


@claim
def a_binary_search_is_written_once():
    """base/search.h. The program and the agent, which cannot include it, have their own."""
    half = re.compile(r"\w+_t \w+ = (?:(\w+) \+ \(\w+ - \1\)|\(lo \+ hi\)|n) / 2;")
    wrong, n_uses = [], 0
    for path in glob.glob(os.path.join(SOURCE, "src", "**", "*.[ch]"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        n_uses += len(re.findall(r"\bSEARCH(?:_LAST)?\(", text))
        if not path.endswith("base/search.h") and half.search(text):
            wrong.append(os.path.relpath(path, SOURCE))
    expect(n_uses > 40 and not wrong, n_uses, *wrong)


@claim
def the_picture_of_the_architecture_is_current():
    r = run(sys.executable, os.path.join(SOURCE, "scripts", "architecture.py"), "--check")
    expect(r.status == 0, r)


@claim
def the_agent_includes_the_headers_of_the_abi_only():
    """It runs in other people's programs: libc, its own folder, and what its users see."""
    wrong = []
    for path in glob.glob(os.path.join(SOURCE, "agent", "*.[ch]")):
        with open(path, encoding="utf-8") as file:
            for form, included in re.findall(r'^#include ([<"])([^">]+)[">]', file.read(), re.M):
                own = form == '"' and os.path.exists(os.path.join(SOURCE, "agent", included))
                public = included in AGENT_HEADERS + ["cairn/shared/codectl.h", "cairn/api.h"]
                system = form == "<" and not included.startswith("cairn/")
                if not own and not public and not system:
                    wrong.append(f"{os.path.relpath(path, SOURCE)} includes {included}")
    expect(not wrong, *wrong)


@claim
def the_program_includes_public_headers_only():
    sources = glob.glob(os.path.join(SOURCE, "cli", "**", "*.[ch]"), recursive=True)
    # the build makes these
    own = {os.path.basename(path) for path in sources} | {"doctor_target.h", "reasons.h"}
    wrong = []
    for path in sources:
        with open(path, encoding="utf-8") as file:
            wrong += [
                f"{os.path.relpath(path, SOURCE)} includes {included}"
                for included in re.findall(r'^#include "([^"]+)"', file.read(), re.M)
                if included not in own
            ]
    expect(len(sources) > 50 and not wrong, *wrong)


if __name__ == "__main__":
    main()
