#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The names that users type: symbols, indirect functions, patterns, templates and overloads."""

import os
import re

from claims import (Skip, cairn, claim, claim_each, compile_c, expect, folder, main, need,
                    need_root, run)

ALIASES = """\
#include <stdlib.h>
static volatile long sink;
__attribute__((noinline)) long inner_name(long number) { sink = number; return number; }
extern __typeof(inner_name) outer_name __attribute__((alias("inner_name")));
__asm__(".globl bare\\n.type bare,@function\\nbare: mov %rdi,%rax\\nret\\n.size bare,.-bare\\n");
long bare(long n);
static long fast(long n) { sink = n; return n + 1; }
static long slow(long n) { sink = n; return n + 2; }
static long (*choose(void))(long) { __builtin_cpu_init(); return __builtin_cpu_supports("avx2") ? fast : slow; }
long indirect(long n) __attribute__((ifunc("choose")));
static inline __attribute__((always_inline)) long list_add(long n) { sink = n; return n; }
static inline __attribute__((always_inline)) long list_del(long n) { sink = n; return n; }
int main(int argc, char **argv)
{
	long n = atol(argv[argc - 1]) + putenv(argv[0]);
	return (int)(outer_name(n) + inner_name(n + 1) + bare(n) + indirect(n) + list_add(n) + list_del(n));
}
"""

TEMPLATES = """\
static volatile long sink;
#define BOTH __attribute__((noinline)) int over(int n) { sink = n; return n; } \\
	__attribute__((noinline)) int over(char *p) { sink = *p; return 1; }
namespace ns {
template <typename T> struct box { T n; __attribute__((noinline)) T size(T k) { sink = k; return n * k; } };
template <typename T> __attribute__((noinline)) T once(T n) { sink = n; return n; }
template <typename T> __attribute__((noinline)) T twice(T n) { sink = n; return n * 2; }
}
BOTH
int main(int argc, char **argv)
{
	ns::box<int> b{argc};
	return (int)(b.size(argc) + ns::once<int>(argc) + ns::twice<int>(argc) + ns::twice<long>(argc) + over(argc) +
		     over(argv[0]));
}
"""


def aliases():
    return compile_c("aliases", ALIASES)


def templates(compiler="g++"):
    need(compiler)
    source, out = os.path.join(folder(), "templates.cc"), os.path.join(folder(), "templates")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TEMPLATES)
    run(compiler, "-O1", "-g", "-o", out, source, check=True)
    return out


def matched(pattern):
    result = cairn("sites", "--json", aliases(), pattern)
    return sorted(set(re.findall(r'"function":"([^"]*)"', result.out))), result


@claim
def a_pattern_matches_symbols_too():
    for pattern, want in (("out?r_name", ["inner_name"]), ("*_name", ["inner_name"]), ("bar?", [
            "bare"
    ]), ("indir*t", ["fast",
                     "slow"]), ("list_*", ["list_add",
                                           "list_del"]), ("mai?", ["main"]), ("nobody*", [])):
        names, result = matched(pattern)
        expect(names == want, pattern, names, result)
    # Neither what is taken from a library, nor, with a file, a symbol.
    expect(not matched("puten*")[0] and not matched("aliases.c:bar?")[0])
    expect("_start" in matched("*")[0])


@claim
def a_symbol_stands_for_the_function_at_its_address():
    alias = cairn("sites", "--json", aliases(), "outer_name", check=True)
    named = cairn("sites", "--json", aliases(), "inner_name", check=True)
    expect(alias.out == named.out and '"function":"inner_name"' in alias.out, alias, named)
    expect(alias.err == "outer_name is inner_name (aliases.c:3)\n", alias)
    expect(named.err == "", named)


@claim
def a_function_that_only_the_symbol_table_knows_is_found_and_has_no_made_up_parameters():
    (site,) = cairn("sites", "--json", aliases(), "bare", check=True).objects()
    address = int(run("nm", aliases(), check=True).out.split(" T bare")[0].split()[-1], 16)
    expect(site["params_unknown"] and site["args"] == [] and int(site["addr"], 16) == address, site)
    text = cairn("sites", aliases(), "bare", check=True)
    expect("bare(?)" in text.out and "only the symbol table knows this function" in text.out, text)


TERSE = """\
int with_parameter(int a) { __asm__ volatile(""); return a + 1; }
static inline __attribute__((always_inline)) int copied(int x) { __asm__ volatile(""); return x * 2; }
int main(int argc, char **argv) { return with_parameter(argc) + copied(argc); }
"""


@claim_each(("gcc", "-g1"), ("gcc", "-g", "-g1"), ("clang", "-gline-tables-only"))
def debug_information_without_types_does_not_say_that_there_are_no_parameters(options):
    program = compile_c("terse" + "".join(options), TERSE, options[0], ("-O2", *options[1:]))
    for function in ("with_parameter", "copied"):
        text = cairn("sites", program, function, check=True)
        expect(f"{function}(?)" in text.out and "(void)" not in text.out, text)
        r = cairn("sites", "--json", program, function, check=True)
        expect(all(site["params_unknown"] and not site["args"] for site in r.objects()), r)


TERSE_RUST = """\
#[inline(never)] pub fn with_parameter(a: u32) -> u32 { std::hint::black_box(a) + 1 }
fn main() { std::process::exit(with_parameter(std::env::args().count() as u32) as i32); }
"""


@claim_each("1", "2")
def a_unit_of_rust_without_types_does_not_say_that_there_are_no_parameters(level):
    source, program = (os.path.join(folder(), "terse" + level + suffix) for suffix in (".rs", ""))
    with open(source, "w", encoding="utf-8") as file:
        file.write(TERSE_RUST)
    run(need("rustc"), "-C", "debuginfo=" + level, "-O", "-o", program, source, check=True)
    text = cairn("sites", "--no-cache", program, "terse%s::with_parameter" % level, check=True)
    expect(("with_parameter(?)" if level == "1" else "with_parameter(u32 a)") in text.out, text)
    expect("(void)" not in text.out, text)


@claim_each(("-g",), ("-g1", "-g"), ("-ggdb1", "-ggdb3"))
def the_last_level_of_debug_information_counts(options):
    program = compile_c("level" + "".join(options), TERSE, "gcc", ("-O2", *options))
    expect("int with_parameter(int a)" in cairn("sites", program, "with_parameter", check=True).out,
           options)


@claim
def an_indirect_function_gives_its_implementations_and_not_its_resolver():
    r = cairn("sites", "--json", aliases(), "indirect", check=True)
    expect({s["function"] for s in r.objects()} == {"fast", "slow"}, r)
    expect("indirect is an indirect function" in r.err, r)


INSTANCES = """\
static volatile long sink;
namespace bank {
template <class T> __attribute__((noinline)) long check(T t) { sink = (long)t; return sink; }
struct account { __attribute__((noinline)) void deposit() { sink = 1; } };
}
int main() { bank::account a; a.deposit(); return (int)(bank::check(2L) + bank::check('a')); }
"""


@claim
def instances_of_templates_are_suggested_however_their_arguments_are_spelled():
    need("g++")
    source = os.path.join(folder(), "instances.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(INSTANCES)
    run("g++", "-O2", "-g", "-o", source + ".out", source, check=True)
    cairn("sidecar", source + ".out", check=True)
    suggested = {
        "chek<long>": "check<long int>, check<char>", "bank::chek<char>":
        "check<char>, check<long int>", "check<short>": "check<char>, check<long int>", "chekc":
        "check<char>, check<long int>", "bank::acount::deposit": "deposit"
    }
    for words in ((), ("--no-sidecar",)):
        for wanted, names in suggested.items():
            r = cairn("sites", *words, source + ".out", wanted)
            expect(r.status == 1 and r.err.endswith(f"Did you mean: {names}\n"), r)


@claim
def what_was_asked_is_never_suggested():
    source = os.path.join(folder(), "declared.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "int declared_only(int);\nint declared_onyl(int n) { return declared_only(n) + 1; }\n")
    run("gcc", "-O2", "-g", "-c", "-o", source + ".o", source, check=True)
    r = cairn("sites", source + ".o", "declared_only")
    expect(r.status == 1 and r.err.endswith("Did you mean: declared_onyl\n"), r)


@claim
def of_an_imported_function_the_library_is_asked_for():
    r = cairn("sites", aliases(), "putenv")
    expect(r.status == 1 and "takes it from a shared library" in r.err, r)
    # Its calls can be traced where they are made.
    r = cairn("trace", "--dry-run", "-c", aliases(), "putenv")
    expect(r.status == 0 and "putenv is in a shared library" in r.err and "putenv@plt" in r.out, r)


@claim
def a_pattern_gives_every_function_it_matches_and_their_number():
    r = cairn("sites", "--json", aliases(), "list_*", check=True)
    expect([s["function"] for s in r.objects()] == ["list_add", "list_del"], r)
    expect(r.err == "list_*: 2 functions, 2 sites\n", r)
    expect(
        cairn("sites", "--json", aliases(), "aliases.c:list_?dd", check=True).out.count("\n") == 1)
    expect(cairn("sites", aliases(), "nothing_*").status == 1)


@claim
def sites_of_the_whole_file_are_those_that_are_counted():
    sites = cairn("sites", "--json", "--sites", aliases(), check=True).objects()
    *functions, summary = cairn("sites", "--json", aliases(), check=True).objects()
    expect(len(sites) == summary["sites"] > 0, sites, summary)
    for f in functions:
        mine = [p for p in sites if (p["function"], p["line"]) == (f["function"], f["line"])]
        expect(len(mine) == f["sites"], f, mine)


@claim
def template_arguments_and_namespaces_may_be_left_out():
    path = templates()
    for short, whole in (("once", "ns::once<int>"), ("ns::once", "ns::once<int>"),
                         ("size", "ns::box<int>::size"), ("box::size", "ns::box<int>::size"),
                         ("ns::box<int>::size", "ns::box<int>::size")):
        sites = cairn("sites", "--json", path, short, check=True).objects()
        expect({s["function"] for s in sites} == {whole}, short, sites)
    r = cairn("sites", path, "twice")
    expect(r.status == 1 and "ns::twice<int>" in r.err and "ns::twice<long int>" in r.err, r)
    both = cairn("sites", "--json", path, "twice<*>", check=True).objects()
    expect({s["function"] for s in both} == {"ns::twice<int>", "ns::twice<long int>"}, both)


@claim
def overloads_on_one_line_are_two_functions():
    path = templates()
    r = cairn("sites", path, "over")
    expect(r.status == 1 and "over names 2 functions" in r.err, r)
    for linkage, kind in (("_Z4overi", "int"), ("_Z4overPc", "char *")):
        (site,) = cairn("sites", "--json", path, linkage, check=True).objects()
        expect([a["type"] for a in site["args"]] == [kind] and linkage in r.err, site, r)


def planned(path, *probe):
    return cairn("trace", "--dry-run", "--json", "-c", path, *probe)


@claim
def trace_takes_the_same_names():
    path = aliases()
    for name, functions in (("outer_name", {"inner_name"}), ("bare", {"bare"}), ("indirect", {
            "fast", "slow"
    }), ("list_*", {"list_add", "list_del"})):
        r = planned(path, name)
        expect(r.status == 0 and {p["function"] for p in r.objects()} == functions, r)
    expect("the parameters of bare are not known" in planned(path, "bare(n)").err)
    for words in (("sites", templates(), "twice"), ("trace", "-c", templates(), "twice")):
        expect(cairn(*words).status == 1, words)


@claim
def every_function_of_a_pattern_is_traced():
    need_root()
    r = cairn("trace", "--json", "-c", f"{aliases()} 5", "list_*")
    if r.status == 3:
        raise Skip(r.err)
    *events, summary = r.objects()
    expect([(e["function"], e["args"]) for e in events] == [("list_add", {"n": 5}),
                                                            ("list_del", {"n": 5})], r)
    expect([p["probe"] for p in summary["probes"]] == ["list_add", "list_del"], summary)
    r = cairn("trace", "-c", f"{aliases()} 5", "indirect", "bare", "outer_name")
    expect(len(re.findall(" (?:fast|slow) entry", r.out)) == 1 and " bare entry:\n" in r.out, r)
    expect(len(re.findall(" inner_name entry(?: of outer_name)?: number=", r.out)) == 2, r)


@claim
def values_of_one_name_have_keys_of_their_own():
    r = planned(aliases(), "inner_name(number, number:hex, number)")
    expect(r.status == 0, r)
    need_root()
    r = cairn("trace", "--json", "-n", "1", "-c", f"{aliases()} 17",
              "inner_name(number, number:hex, number)")
    if r.status == 3:
        raise Skip(r.err)
    expect(r.objects()[0]["args"] == {"number": 17, "number:hex": "0x11", "number (2)": 17}, r)


@claim
def a_unit_that_declares_another_parameter_shows_no_value_of_it():
    text = """#include <stdlib.h>
static volatile long sink;
static inline __attribute__((always_inline)) void same(%s) { sink = (long)a; }
__attribute__((noinline)) void %s(int n) { same(n%s); }
#if FIRST
void second(int);
int main(int c, char **v) { first(c); second(c); return 0; }
#endif
"""
    need("gcc")
    source = os.path.join(folder(), "twice.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "#if FIRST\n#define PARAMS int a, int b\n#define NAME first\n#define MORE , n + 1\n"
            "#else\n#define PARAMS char a\n#define NAME second\n#define MORE\n#endif\n" + text %
            ("PARAMS", "NAME", " MORE"))
    objects = []
    for first in (0, 1):
        objects.append(os.path.join(folder(), f"twice{first}.o"))
        run("gcc", "-O2", "-g", f"-DFIRST={first}", "-c", "-o", objects[-1], source, check=True)
    out = os.path.join(folder(), "twice")
    run("gcc", "-o", out, *objects, check=True)
    sites = {p["site"].split("+")[0]: p["unavailable"] for p in planned(out, "same").objects()}
    expect(sites["inlined in first"] == {}, sites)
    expect(
        "declared otherwise" in sites["inlined in second"]["a"]
        and "b" in sites["inlined in second"], sites)


if __name__ == "__main__":
    main()
