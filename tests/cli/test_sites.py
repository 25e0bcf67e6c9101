#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn sites on small programs compiled here, by both compilers."""

import glob
import os
import pty
import re
import shutil
import subprocess

from claims import (CAIRN, SOURCE, TAKE_VALUES, Skip, cairn, claim, claim_each, claim_each_of_many,
                    compile_c, expect, folder, main, need, run)

COMPILERS = ("gcc", "clang")

# Columns matter: the calls below are found by line and column.
PROGRAM = """\
#include <stdlib.h>
struct pair { int a; long b; };
static volatile long sink;
static inline __attribute__((always_inline)) long add(long left, int right)
{
	sink = left;
	return left + right;
}
static inline __attribute__((always_inline)) long twice(struct pair *p)
{
	return add(p->b, p->a) + 1;
}
__attribute__((noinline)) long once(long number)
{
	return add(number, 7);
}
__attribute__((noinline)) long both(struct pair *p)
{
	return twice(p) * 3;
}
int main(int argc, char **argv)
{
	struct pair p = { argc, atol(argv[argc - 1]) };
	return (int)(once(p.b) + both(&p));
}
"""

OTHER = """\
static __attribute__((noinline)) int helper(int %s) { __asm__ volatile("" ::: "memory"); return %s; }
int %s(int n);
int %s(int n) { return helper(n) + 1; }
"""


def program(compiler, *flags):
    return compile_c("prog" + "".join(flags).replace("/", "_").replace("=", ""), PROGRAM, compiler,
                     ("-O2", "-g", *flags))


def two_helpers():
    """A program with two different functions of one name, in two files."""
    for name, parameter in (("north", "x"), ("south", "y")):
        os.makedirs(os.path.join(folder(), "src"), exist_ok=True)
        with open(os.path.join(folder(), "src", name + ".c"), "w", encoding="utf-8") as file:
            file.write(OTHER % (parameter, parameter, name, name))
    path = os.path.join(folder(), "src", "main.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            "int north(int), south(int);\nint main(int n, char **v) { return north(n) + south(n); }\n"
        )
    out = os.path.join(folder(), "helpers")
    need("gcc")
    run("gcc", "-O2", "-g", "-o", out, path, path.replace("main", "north"),
        path.replace("main", "south"), check=True)
    return out


@claim_each_of_many(*COMPILERS)
def every_inlined_copy_is_listed_with_its_call_and_chain(compiler):
    sites = cairn("sites", "--json", program(compiler), "add", check=True).objects()
    inlined = {
        s["container"]: s
        for s in sites
        if s["kind"] == "inlined" and s["container"] != "main"
    }
    expect(set(inlined) == {"once", "both"}, sites)
    once, both = inlined["once"], inlined["both"]
    expect((once["call"]["line"], once["call"]["column"]) == (15, 9), once)
    expect([c["function"] for c in once["chain"]] == ["add"], once)
    expect((both["call"]["line"], both["call"]["column"]) == (11, 9), both)
    expect([(c["function"], c["line"]) for c in both["chain"]] == [("add", 11), ("twice", 19)],
           both)


@claim_each_of_many(*COMPILERS)
def arguments_have_names_types_and_locations(compiler):
    sites = cairn("sites", "--json", *TAKE_VALUES[compiler], program(compiler), "add",
                  check=True).objects()
    once = next(s for s in sites if s["container"] == "once")
    left, right = once["args"]
    expect((left["name"], left["loc"], left["unavailable"]) == ("left", "%rdi", None), left)
    expect(re.fullmatch(r"long( int)?", left["type"]), left)
    expect((right["name"], right["type"], right["loc"]) == ("right", "int", "const 7"), right)


@claim
def what_clang_may_have_changed_is_unavailable_until_asked_for():
    path = program("clang")
    default, asked = ([
        arg
        for site in cairn("sites", "--json", *words, path, "add", check=True).objects()
        for arg in site["args"]
    ]
                      for words in ((), ("--assume-unmodified",)))
    expect(
        len(default) == len(asked)
        and any(arg["unavailable"] == "may-have-changed" for arg in default), default)
    for before, after in zip(default, asked):
        expect(before["loc"] is None, before)
        # What the compiler does not describe at all stays unavailable.
        if before["unavailable"] == "may-have-changed":
            expect(after["loc"], before, after)
        else:
            expect(after == before, before, after)


@claim_each_of_many(*COMPILERS)
def bodies_are_found_at_their_symbol(compiler):
    path = program(compiler)
    nm = {
        line.split()[2]: int(line.split()[0], 16)
        for line in run(need("nm"), path, check=True).lines()
        if len(line.split()) == 3
    }
    for name in ("once", "both", "main"):
        site, = cairn("sites", "--json", path, name, check=True).objects()
        expect(site["kind"] == "out-of-line" and int(site["addr"], 16) == nm[name], site)
        expect(site["symbol"] == name and site["symbol_off"] == 0, site)


@claim_each_of_many(*COMPILERS)
def as_many_inlined_sites_as_readelf_sees_dies(compiler):
    path = program(compiler)
    dump = run(need("readelf"), "--debug-dump=info", path, check=True).out
    dies = dump.count("(DW_TAG_inlined_subroutine)")
    expect(dies > 0, dump)
    total = cairn("sites", "--json", path, check=True).objects()[-1]
    expect(total["summary"] is True and total["inlined"] + total["without_code"] == dies, total,
           dies)


@claim_each_of_many(*COMPILERS)
def every_address_is_an_instruction_of_objdump(compiler):
    path = program(compiler)
    dump = run(need("objdump"), "-d", path, check=True).out
    starts = {int(at, 16) for at in re.findall(r"^\s*([0-9a-f]+):\t", dump, re.M)}
    for name in ("add", "twice", "once", "both", "main"):
        for site in cairn("sites", "--json", path, name, check=True).objects():
            expect(int(site["addr"], 16) in starts, site)


@claim_each_of_many(*COMPILERS)
def file_offset_is_where_the_loader_maps_the_address_from(compiler):
    path = program(compiler, "-no-pie")
    headers = run(need("readelf"), "-lW", path, check=True).out
    loads = [[int(word, 16) for word in match] for match in
             re.findall(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)]
    for site in cairn("sites", "--json", path, "add", check=True).objects():
        at, off = int(site["addr"], 16), int(site["offset"], 16)
        expect([off] == [
            at - vaddr + first for first, vaddr, size in loads if vaddr <= at < vaddr + size
        ], site, headers)


@claim_each("4", "5")
def dwarf_versions_give_the_same_answer(version):
    for compiler in COMPILERS:
        shown = cairn("sites", program(compiler), "add", "twice", check=True).out
        other = cairn("sites", program(compiler, f"-gdwarf-{version}"), "add", "twice",
                      check=True).out
        expect(re.sub(r"prog\S*\.c", "", shown) == re.sub(r"prog\S*\.c", "", other), shown, other)


@claim
def text_and_json_are_the_same_record():
    path = program("gcc")
    text = cairn("sites", path, "add", check=True)
    sites = cairn("sites", "--json", path, "add", check=True).objects()
    expect(
        re.findall(r"^  (0x[0-9a-f]+)  ", text.out, re.M) == [s["addr"] for s in sites], text,
        sites)
    for site in sites:
        for arg in site["args"]:
            expect(re.search(rf"{arg['name']} +{re.escape(arg['text'])}\n", text.out), arg, text)
    expect(f"{len(sites)} sites: " in text.lines()[-1], text)


def reasons_of(path, start):
    """[(word, sentence)] of a table in the sources."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        table = file.read().split(start)[1].split("\n};")[0]
    rows = re.findall(r'\{\s*(?:\w+,\s*)?"([\w-]+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}', table)
    return [(word, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))) for word, text in rows]


@claim
def every_reason_is_explained_and_nothing_else():
    tables = [("src/facts/loc/text.c", "reasons[CAIRN_N_UNAVAILABLE]"),
              ("src/facts/sites/count_caveats.c", "\n} "),
              ("src/ground/insn/hazards.c", "hazards[] = {")]
    known = {}
    for path, start in tables:
        rows = reasons_of(path, start)
        expect(len(rows) > 8, path, rows)
        known.update(rows)
    # Members of types: src/bytes, by no table of its own.
    known["offset-not-known"] = "offset not known"
    # Numbers of calls: src/live/prof.
    known.update({
        "unreadable": "its memory could not be read", "too-large":
        "negative, or too large for a sum"
    })
    listed = cairn("sites", "--explain", "list", "--json", check=True).objects()
    explained = {o["reason"]: o["text"] for o in listed if "quirk" not in o}
    known = {word: text for word, text in known.items() if word not in ("available", "none")}
    expect(set(explained) == set(known), set(explained) ^ set(known))
    for word, text in explained.items():
        shown = cairn("sites", "--explain", word, check=True).out
        expect(
            shown.startswith(word + "\n\n") and " ".join(shown.split()) == f"{word} {text}", shown)
        for page in re.findall(r"docs/findings/([\w-]+\.md)", text):
            expect(os.path.exists(os.path.join(SOURCE, "docs", "findings", page)), word, page)
    # What is printed where a value would be leads to the same paragraph.
    for path, start in tables[:2]:
        for word, text in reasons_of(path, start):
            if word in explained:
                expect(explained[word].startswith(text), word, text, explained[word])
                expect(f"{word}\n" in cairn("sites", "--explain", text, check=True).out, text)
    r = cairn("sites", "--explain", "no-such-reason")
    expect(r.status == 1 and "--explain list" in r.err and not r.out, r)


@claim
def a_symbol_that_is_no_function_is_told_with_its_kind():
    source = os.path.join(folder(), "labels.s")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            ".globl main\n.type main,@function\nmain: xorl %eax,%eax\nret\n.size main,.-main\n"
            ".globl again\nagain: nop\nret\n"
            ".data\n.globl place\nplace: .long 1\n.globl counter\n.type counter,@object\n.size counter,4\n"
            'counter: .long 3\n.section .note.GNU-stack,"",@progbits\n')
    path = os.path.join(folder(), "labels")
    run("gcc", "-g", source, "-o", path, check=True)
    at = {
        line.split()[2]: int(line.split()[0], 16)
        for line in run("nm", path).lines()
        if len(line.split()) == 3
    }
    for name, what, size in (("again", "a label without a type, in the code", "unknown size"),
                             ("place", "a label without a type, outside of the code",
                              "unknown size"), ("counter", "a variable", "4 bytes")):
        said = f"{name} is {what} at {at[name]:#x}, of {size}"
        r = cairn("sites", path, name)
        expect(r.status == 1 and f"no function {name} in {path}: {said};" in r.err, r)
        r = cairn("trace", "--dry-run", "-c", path, name)
        expect(r.status == 1 and r.err.rstrip().endswith(said), r)
    r = cairn("sites", path, "nothing_at_all")
    expect(r.status == 1 and " is a " not in r.err, r)


def findings():
    """{name: the text of its page}"""
    folder_of_pages = os.path.join(SOURCE, "docs", "findings")
    pages = {}
    for name in os.listdir(folder_of_pages):
        with open(os.path.join(folder_of_pages, name), encoding="utf-8") as file:
            pages[name.removesuffix(".md")] = file.read()
    return pages


@claim
def every_quirk_has_a_finding_and_every_finding_a_rule_or_a_reason_why_none():
    """The table of rules, the pages, and the code that applies a rule lead to each other."""
    listed = cairn("sites", "--explain", "list", "--json", check=True).objects()
    reasons = {o["reason"] for o in listed if "quirk" not in o}
    rules = {o["quirk"]: o for o in listed if "quirk" in o}
    hazards = {word for word, _ in reasons_of("src/ground/insn/hazards.c", "hazards[] = {")}
    pages = findings()
    expect(len(rules) > 20 and len(pages) > 40, rules, pages)
    for word, rule in rules.items():
        expect((rule["finding"] is None) != (rule["no_finding"] is None), rule)
        page = pages.get(rule["finding"], "")
        expect(not rule["finding"] or f"`{word}`" in page.rpartition("**Rule.**")[2], rule)
        expect(rule["reason"] is None or rule["reason"] in reasons, rule)
        code = ""
        for path in glob.glob(os.path.join(SOURCE, "src", "facts", rule["code"][:-1] + "[ch]")):
            with open(path, encoding="utf-8") as file:
                code += file.read()
        applied = "CAIRN_QUIRK_" + word.upper().replace("-", "_")
        # A rule names itself, or the page, or is a file of its own.
        own = rule["finding"] or "sites/quirks/"
        expect(applied in code or own in rule["code"] + code, rule, applied)
        shown = cairn("sites", "--explain", word, check=True).out
        expect(rule["text"] in " ".join(shown.split()), shown)
        expect(max(map(len, shown.splitlines())) <= 100, shown)
    for name, text in pages.items():
        rule = text.rpartition("**Rule.** ")[2].strip()
        words = re.findall(r"`([\w-]+)`", rule)
        expect(rule and "\n\n" not in rule, name, "does not end with its **Rule.**")
        known = hazards | {w for w, row in rules.items() if row["finding"] == name}
        expect(rule.startswith("None: ") or (words and known.issuperset(words)), name, rule)


def loop_of_gcc():
    path = os.path.join(folder(), "coal.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write("""volatile unsigned sink;
static inline void f(int i, unsigned s) { sink = s; }
__attribute__((noipa)) void g(unsigned s) { for (int i = 0; i < 7; i++) { s++; f(i, s); } }
int main(void) { g(100); return 0; }
""")
    binary = os.path.join(folder(), "coal")
    run("gcc", "-O1", "-g", "-o", binary, path, check=True)
    return binary


@claim
def why_a_parameter_is_unavailable_is_explained_at_each_site():
    need("gcc")
    path = loop_of_gcc()
    sites = cairn("sites", "--json", path, "f", check=True).objects()
    args = {a["name"]: a for a in sites[0]["args"]}
    expect(args["i"]["unavailable"] == "stale" and args["i"]["quirk"] == "counter-constant", args)
    expect(args["s"]["unavailable"] is None and args["s"]["quirk"] is None, args)
    text = cairn("sites", path, "f", "--explain", "i", check=True).out
    for word in (sites[0]["addr"], "[counter-constant]", "\nstale\n",
                 "docs/findings/gcc-counter-described-as-constant.md"):
        expect(word in text, word, text)
    every = cairn("sites", path, "f", "--explain", "*", check=True).out
    expect("  s  " not in text and "  s  " in every, text, every)
    one, = cairn("sites", "--json", path, "f", "--explain", "i", check=True).objects()
    expect(one["quirk"] == "counter-constant" and one["addr"] == sites[0]["addr"], one)
    # The sidecar answers the same, the rule with it.
    sidecar = os.path.join(folder(), "coal.cairn")
    cairn("sidecar", path, "-o", sidecar, check=True)
    expect(cairn("sites", path, "f", "--explain", "*", "--sidecar", sidecar, check=True).out
           == cairn("sites", path, "f", "--explain", "*", "--no-sidecar", check=True).out, path)
    r = cairn("sites", path, "f", "--explain", "nothing")
    expect(r.status == 1 and "It has: i, s" in r.err and not r.out, r)


@claim
def json_has_exactly_the_documented_keys():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/json.md"),
              encoding="utf-8") as file:
        section = file.read().split("## `cairn sites FILE FUNC")[1].split("\n## ")[0]
    table_of_sites, arg = section.split("An argument:")

    def keys(table):
        return {
            key
            for row in re.findall(r"^\| (`.*?) \|", table, re.M)
            for key in re.findall(r"`(\w+)`", row)
        }

    for site in cairn("sites", "--json", program("gcc"), "add", "main", check=True).objects():
        expect(set(site) == keys(table_of_sites), set(site) ^ keys(table_of_sites))
        for one in site["args"]:
            expect(set(one) == keys(arg), set(one) ^ keys(arg))


@claim
def coverage_is_the_sum_of_its_functions():
    path = program("gcc")
    *functions, total = cairn("sites", "--json", path, check=True).objects()
    expect({f["function"]
            for f in functions} >= {"add", "twice", "once", "both", "main"}, functions)
    for key in ("sites", "entries", "inlined", "parts", "args_all", "args_some", "args_none",
                "args"):
        expect(total[key] == sum(f[key] for f in functions), key, total)
    expect(total["functions"] == len(functions), total)
    expect(total["args_all"] + total["args_some"] + total["args_none"] == total["inlined"], total)
    text = cairn("sites", path, check=True).out
    expect(f"{total['functions']} functions, {total['sites']} sites" in text, text)


@claim
def same_input_gives_the_same_bytes_with_any_number_of_threads():
    for words in [("add",), ()]:
        outs = {
            cairn("sites", "--json", "-j", n, program("gcc"), *words, check=True).out
            for n in (1, 2, 7)
        }
        expect(len(outs) == 1, outs)


@claim
def an_ambiguous_name_is_refused_and_each_choice_can_be_typed():
    path = two_helpers()
    r = cairn("sites", path, "helper")
    expect(r.status == 1 and not r.out, r)
    choices = re.findall(r"^  (\S+)  ", r.err, re.M)
    expect(choices == ["north.c:helper", "south.c:helper"], r)
    for choice in choices:
        site, = cairn("sites", "--json", path, choice, check=True).objects()
        expect(site["file"].endswith(choice.split(":")[0]), site)
    line = cairn("sites", "--json", path, "north.c:1:helper", check=True).objects()
    expect(line[0]["line"] == 1, line)


# The loop's first instruction is aligned, and statements without code stand before the nops: their
# rows have views that the locations after the nops may be taken to count from. What is called with
# q and 2 ends with q + 2 and -1.
PADDED = """\
volatile unsigned long sink;
int arr[64];
static inline __attribute__((always_inline)) void see(unsigned serial, const int *p, unsigned n)
{
	unsigned long sum = 0;
	while (n--)
		sum += (unsigned long)*p++;
	sink += sum;
}
__attribute__((noipa)) void run(unsigned i, const int *q)
{
	unsigned k = 0;
	__asm__ volatile("# %0 %1" : "+b"(i), "+r"(q));
	k++;
	k = i;
	do {
		see(i, q, 2);
		__asm__ volatile("# %0 %1" : "+b"(i), "+r"(q));
	} while (i < 30);
	sink = k;
}
int main(void) { run(40, arr); return 0; }
"""


@claim
def a_later_value_is_not_taken_where_the_padding_has_rows():
    path = compile_c("padded", PADDED)
    for row in cairn("sites", path, "see", "--json", check=True).objects():
        texts = {arg["name"]: arg["loc"] for arg in row["args"]}
        expect(texts["n"] in (None, "const 2") and "+8" not in (texts["p"] or ""), texts)


# n is -1 after the loop. GCC says 0, which it was before the last test.
CONSTANTS = """\
volatile long sink;
int a[8];
static inline __attribute__((always_inline)) void last(long n, unsigned s) { sink = s; }
static inline __attribute__((always_inline)) void outer(int *p, long n)
{
	unsigned long sum = 0;
	while (n--)
		sum += *p++;
	sink += sum;
	last(n, 1);
	sink = sum;
}
__attribute__((noipa)) void g(void) { outer(a, 1); sink = 3; }
int main(void) { g(); return 0; }
"""


@claim_each("-O1", "-O2")
def a_constant_that_a_parameter_around_had_before_is_not_taken(level):
    row, = cairn("sites", compile_c("constants" + level, CONSTANTS, "gcc", (level, "-g")), "last",
                 "--json", check=True).objects()
    expect(row["args"][0]["loc"] in (None, "const -1"), row["args"])


# The end of mode() is one for both copies in collect(), and the function inside of collect() stands
# between them.
NESTED = """\
extern void fail(void *);
extern void text(void *, const char *);
extern int gc(void *, int, int, int);
extern void call(int (*)(int), void *);
static int mode(void *l, int old)
{
	if (old == -1)
		fail(l);
	else
		text(l, old == 11 ? "incremental" : "generational");
	return 1;
}
int collect(void *l, int o, int a, int b)
{
	switch (o) {
	case 1: { int k = gc(l, 1, a, b); if (k == -1) break; fail(l); return 1; }
	case 10: { int m10 = gc(l, o, a, b); return mode(l, m10); }
	case 12: {
		int m12 = a;
		__attribute__((noinline)) int nest(int x) { mode(l, x + a); return m12; }
		call(nest, l);
		m12 = gc(l, m12, 2, 3);
		call(0, (char *)l + m12);
		break;
	}
	case 11: { int m11 = gc(l, o, a, b + a); return mode(l, m11); }
	default: { int r = gc(l, o, 0, 0); if (r == -1) break; text(l, "x"); return 1; }
	}
	fail(l);
	return 1;
}
"""


@claim
def copies_on_both_sides_of_a_function_inside_are_judged_together():
    path = compile_c(
        "nested", NESTED, "gcc",
        ("-w", "-O2", "-finline-functions", "-finline-functions-called-once", "-g", "-c"))
    rows = [
        row for row in cairn("sites", path, "mode", "--json", check=True).objects()
        if row["kind"] == "inlined"
    ]
    expect([row["container"] for row in rows].count("collect") == 2 and len(rows) == 3, rows)
    expect(all(row["count_caveats"] == [] for row in rows), rows)


@claim
def a_missing_function_gets_suggestions():
    r = cairn("sites", program("gcc"), "twise")
    expect(r.status == 1 and not r.out and re.search(r"Did you mean: twice\b", r.err), r)


@claim
def what_was_found_is_shown_beside_what_was_not():
    r = cairn("sites", program("gcc"), "once", "nowhere")
    expect(r.status == 1 and "once(" in r.out and "nowhere" in r.err, r)


@claim
def a_stripped_file_says_where_debug_information_was_looked_for():
    path = program("gcc") + "-stripped"
    run(need("strip"), "-o", path, program("gcc"), check=True)
    for words in [("once",), ()]:
        r = cairn("sites", path, *words)
        expect(r.status == 3 and not r.out and "/usr/lib/debug/.build-id/" in r.err, r)


def split_debug():
    """A stripped program and its debug file, in a debug directory by build-id."""
    need("objcopy")
    path, whole = os.path.join(folder(), "split"), program("gcc", "-Wl,--build-id")
    notes = run(need("readelf"), "-n", whole, check=True).out
    build_id = re.search(r"Build ID: (\w+)", notes).group(1)
    directory = os.path.join(folder(), "debug", ".build-id", build_id[:2])
    os.makedirs(directory, exist_ok=True)
    debug = os.path.join(directory, build_id[2:] + ".debug")
    run("objcopy", "--only-keep-debug", whole, debug, check=True)
    run("objcopy", "--strip-all", whole, path, check=True)
    return whole, path, debug


@claim
def a_debug_file_is_found_by_build_id_or_by_name():
    whole, path, debug = split_debug()
    shown = cairn("sites", whole, "add", check=True).out
    for words in [("--debug-dir", os.path.join(folder(), "debug")), ("--debug-file", debug)]:
        r = cairn("sites", *words, path, "add", check=True)
        expect(r.out == shown, r, shown)


@claim
def a_debug_file_of_another_build_is_refused():
    _, path, debug = split_debug()
    other = os.path.join(folder(), "other.debug")
    run("objcopy", "--only-keep-debug", program("gcc", "-Wl,--build-id=0x0123456789abcdef"), other,
        check=True)
    r = cairn("sites", "--debug-file", other, path, "add")
    expect(r.status != 0 and not r.out and "build-id" in r.err.replace("build ID", "build-id"), r)
    # Also where the search finds it under the right name.
    shutil.copy(debug, debug + ".right")
    shutil.copy(other, debug)
    try:
        r = cairn("sites", "--debug-dir", os.path.join(folder(), "debug"), path, "add")
        expect(r.status == 3 and not r.out and debug in r.err, r)
    finally:
        os.replace(debug + ".right", debug)


def within(site):
    return str((site["container"], site["container_off"], site["args"]))


@claim_each_of_many(*COMPILERS)
def a_relocatable_file_shows_sections_and_offsets(compiler):
    path = compile_c("object", PROGRAM, compiler, ("-O2", "-g", "-c"))
    text = cairn("sites", path, "add", check=True).out
    expect(re.search(r"^  \.text(\.\w+)?\+0x[0-9a-f]+  inlined in once\+0x", text, re.M), text)
    linked = cairn("sites", "--json", program(compiler), "add", check=True).objects()
    here = cairn("sites", "--json", path, "add", check=True).objects()
    # main may lie elsewhere in the one than in the other; distances within a function do not
    # change.
    expect(sorted(map(within, here)) == sorted(map(within, linked)), here, linked)


@claim
def compressed_debug_sections_give_the_same_answer():
    shown = cairn("sites", program("gcc"), "add", check=True).out
    for kind in ("zlib", "zstd"):
        path = program("gcc") + "." + kind
        r = run(need("objcopy"), f"--compress-debug-sections={kind}", program("gcc"), path)
        if r.status == 0:
            expect(cairn("sites", path, "add", check=True).out == shown, kind)


@claim
def a_running_process_is_looked_at_even_when_its_file_is_gone():
    path = compile_c(
        "sleeper",
        "#include <unistd.h>\n__attribute__((noinline)) int nap(int n) { return (int)sleep(n); }\n"
        "int main(int c, char **v) { return nap(60 * c); }\n")
    copy = path + "-copy"
    shutil.copy(path, copy)
    with subprocess.Popen([copy]) as process:
        try:
            os.unlink(copy)
            site, = cairn("sites", "--json", process.pid, "nap", check=True).objects()
            expect(site["kind"] == "out-of-line" and site["args"][0]["loc"] == "%rdi", site)
        finally:
            process.kill()


HAZARDS = """\
long shared;
int main(void)
{
	__asm__ volatile(".globl is_locked\\nis_locked: lock incq shared(%rip)\\n"
			 ".globl is_nop5\\nis_nop5: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\\n");
	return 0;
}
"""


@claim
def hazards_are_the_instructions_that_must_not_be_probed():
    path = compile_c("hazards", HAZARDS, "gcc", ("-O2", "-g"))
    nm = {
        line.split()[2]: int(line.split()[0], 16)
        for line in run(need("nm"), path, check=True).lines()
        if len(line.split()) == 3
    }
    found = {
        int(h["addr"], 16): h["hazard"]
        for h in cairn("sites", "--json", "--hazards", path, check=True).objects()
    }
    expect(found.get(nm["is_locked"]) == "lock-prefix", found, nm)
    text = cairn("sites", "--hazards", path, check=True).out
    expect(f"{len(found)} hazardous site" in text and f"{nm['is_locked']:#x}" in text, text)


@claim
def colours_are_for_terminals_only():
    path = program("gcc")
    expect("\033" not in cairn("sites", path, "add", check=True).out)
    for env, coloured in [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]:
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            raise Skip(f"no pseudo-terminal here: {error}") from error
        subprocess.run([CAIRN, "sites", path, "add"], stdin=subprocess.DEVNULL, stdout=theirs,
                       check=True, env={**os.environ, "TERM": "xterm", **env})
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # Linux ends a pty with EIO.
        os.close(ours)
        expect(b"inlined in" in shown and (b"\033[" in shown) == coloured, env, shown)


@claim
def a_file_cut_anywhere_gets_an_answer_or_a_clear_error():
    with open(program("gcc"), "rb") as file:
        whole = file.read()
    path = os.path.join(folder(), "cut")
    for size in [0, 1, 15, 63, 64, 65, *range(100, len(whole), len(whole) // 60)]:
        with open(path, "wb") as file:
            file.write(whole[:size])
        r = cairn("sites", path, "add")
        expect(r.status in (3, 4) and r.err and not r.out, size, r)


@claim
def a_reader_that_goes_away_ends_it_quietly():
    r = run("bash", "-c",
            f"'{CAIRN}' sites '{program('gcc')}' | head -n 1; exit ${{PIPESTATUS[0]}}")
    expect(r.status in (0, 141) and not r.err, r)


@claim
def cpp_functions_are_found_by_any_tail_of_their_name():
    need("clang++")
    source = os.path.join(folder(), "boxes.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "namespace store { struct box { int n; __attribute__((noinline)) int size(int k) const "
            "{ return n * k; } }; }\nint main(int c, char **) { store::box b{c}; return b.size(c); }\n"
        )
    path = os.path.join(folder(), "boxes")
    run("clang++", "-O1", "-g", "-o", path, source, check=True)
    answers = {cairn("sites", "--json", path, name, check=True).out
               for name in ("size", "box::size", "store::box::size", "boxes.cc:size")}
    expect(len(answers) == 1 and '"function":"store::box::size"' in answers.pop(), answers)


# docs/findings/clang-spilled-value-without-load.md
SPILLED = """
extern long sink, g(void);
void use(long);
__attribute__((noinline)) static long ignore(int n) { return sink; }
static inline __attribute__((always_inline)) void f(const int n) { use(1); ignore(n + 6); use(2); }
__attribute__((noinline)) void caller(int a)
{
	long x1 = g(), x2 = g(), x3 = g(), x4 = g(), x5 = g(), x6 = g(), x7 = g();
	use(x1); use(x2 + x3); use(x4 * x5 + x6 * x7);
	use(x1); use(x2); use(x3); use(x4); use(x5); use(x6); use(x7);
	f(a + 26);
	use(a);
}
"""


@claim
def the_address_of_a_spilled_value_is_not_the_value():
    path = compile_c("spilled.c", SPILLED, "clang", ("-O2", "-g", "-c"))
    site, = cairn("sites", "--json", path, "f", check=True).objects()
    n, = site["args"]
    # Newer ones describe the load, too.
    expect(n["unavailable"] or "*(" in n["text"], n)


# GCC describes both for all of foo.constprop.0 by registers, without saying that they are there at
# its entry.
KEPT = """\
struct q { int a, b; };
volatile int sink;
static __attribute__((noinline)) int foo(struct q *s, int n, int k) { s->a += k; s->b = n; sink = s->a * k; return sink; }
int main(int c, char **v)
{
	struct q q = {c, 2};
	return foo(&q, c, 3) + foo(&q, c + 1, 3);
}
"""


@claim
def a_register_that_a_clone_reads_and_never_writes_has_its_parameter():
    path = compile_c("kept", KEPT, "gcc", ("-O2", "-g"))
    site = cairn("sites", "--no-sidecar", path, "foo", "--json", check=True).objects()[0]
    expect(site["symbol"] == "foo.constprop.0", "GCC makes no clone of it: the "
                                                "program no longer shows it", site)
    expect([a["loc"] for a in site["args"]][:2] == ["%rdi", "%rsi"], site)


# GCC does not record that a function is ms_abi. By the platform's convention d is in rcx and a in
# rdi; here d is in r9w and a in ecx. Unoptimised, GCC describes both in the caller's frame, where
# the function itself stores them.
FOREIGN = """\
__attribute__((ms_abi, noinline)) int deep(int a, long b, int c, short d, int e, int f, int g)
{ return a + b * c - d + e * f - g; }
__attribute__((ms_abi, noinline)) int taken(int a, int b) { int *volatile p = &a; *p += b; return a; }
__attribute__((noinline)) int plain(int a, long b, int c, short d, int e, int f, int g)
{ return a + b * c - d + e * f - g; }
int main(int n, char **v)
{ return deep(n, 2, 3, 4, 5, 6, 7) + taken(n, 10) + plain(n, 2, 3, 4, 5, 6, 7); }
"""
RIGHT_OF_MS = {
    "a": {"%rcx"}, "b": {"%rdx"}, "c": {"%r8"}, "d": {"%r9"}, "e": {"*(%rsp+0x28)"}, "f":
    {"*(%rsp+0x30)"}, "g": {"*(%rsp+0x38)"}
}


@claim_each(*((compiler, level) for compiler in COMPILERS for level in ("-O0", "-O1", "-O2")))
def an_argument_of_another_convention_is_never_where_the_platform_puts_it(build):
    compiler, level = build
    need(compiler)
    path = compile_c("foreign-" + compiler + level, FOREIGN, compiler, (level, "-g"))
    for function in ("deep", "taken"):
        for site in cairn("sites", "--no-cache", path, function, "--json", check=True).objects():
            for arg in site["args"]:
                expect(site["symbol"] != function or arg["loc"] is None or arg["unavailable"] or
                       arg["loc"] in RIGHT_OF_MS[arg["name"]], site)
    plain, = cairn("sites", "--no-cache", path, "plain", "--json", check=True).objects()
    expect([a["loc"] for a in plain["args"]] == [
        "%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9", "*(%rsp+8)"
    ], plain)
    expect(not any(a["unavailable"] for a in plain["args"]), plain)


# Each copy needs a register of its own. GCC 16 describes n of an inner copy by the register that is
# set some instructions later.
DEEP = """\
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int c, char **v) { volatile int n = c + 5; return fib(n); }
"""


@claim
def a_register_that_no_assignment_binds_is_not_the_argument():
    plain = compile_c("deep", DEEP, "gcc", ("-O2", "-g"))
    untracked = compile_c("deep-untracked", DEEP, "gcc",
                          ("-O2", "-g", "-fno-var-tracking-assignments"))
    copies = {}
    for path in (plain, untracked):
        rows = cairn("sites", "--no-cache", path, "fib", "--json", check=True).objects()
        copies[path] = [row["args"][0] for row in rows if row["kind"] == "inlined"]
        body, = [
            row["args"][0]
            for row in rows
            if row["kind"] == "out-of-line" and row["symbol"] == "fib"
        ]
        expect(body["loc"] == "%rdi" and not body["unavailable"], body)
    expect(any(not a["unavailable"] for a in copies[plain]), "the program no longer has copies "
                                                             "with a known argument", copies[plain])
    expect(copies[untracked] and all(a["unavailable"] for a in copies[untracked]),
           copies[untracked])


# The register of the quotient, which the remainder had before -fweb renamed it.
WEB = """\
static volatile int n, *d;
static inline void push(int x) { __asm__ volatile("" ::: "memory"); d[n] = x; }
int main(int argc, char **argv)
{
	unsigned r = (unsigned)argc * 7;
	for (int i = 0; i < 20; i++) { r = r * 1103515245 + 12345; push((int)(r >> 16) % 100); }
	return d[3];
}
"""


@claim_each("-fweb", "-funroll-loops", "-fweb -fno-web", "")
def a_register_whose_web_was_renamed_is_not_the_argument(options):
    path = compile_c("web" + options.replace(" ", ""), WEB, "gcc",
                     ("-O2", "-g", *options.split()))
    rows = cairn("sites", "--no-cache", path, "push", "--json", check=True).objects()
    args = [row["args"][0] for row in rows if row["kind"] == "inlined"]
    renames = options in ("-fweb", "-funroll-loops")
    expect(args and not any(a["loc"] and not a["unavailable"] for a in args) == renames, args)
    if options == "-funroll-loops":
        expect(any(a["quirk"] == "web-register" for a in args), args)


# touch() does not read what its pointer leads to, so GCC removes the stores of n; look() reads it.
STORES = """\
static volatile long sink;
__attribute__((noinline)) static void touch(void *p) { sink += (long)p; }
__attribute__((noinline)) static void look(int *p) { sink += *p; }
static inline __attribute__((always_inline)) void derived(unsigned x) { x %%= 7063; sink++; }
static inline __attribute__((always_inline)) void kept(int n) { %s(&n); derived(n + 3); }
int main(void)
{
	%s
		kept(182);
	return 0;
}
"""


@claim_each("touch", "touch in a loop", "look", "look in a loop")
def an_argument_in_memory_needs_its_store(how):
    callee = how.split()[0]
    loop = "for (int i = 0; i < 3; i++)" if "loop" in how else ""
    path = compile_c(how.replace(" ", "_"), STORES % (callee, loop), "gcc", ("-O2", "-g"))
    rows = cairn("sites", "--no-cache", path, "kept", "derived", "--json", check=True).objects()
    copies = [row for row in rows if row["kind"] == "inlined"]
    expect({row["function"] for row in copies} == {"kept", "derived"}, rows)
    for arg in (row["args"][0] for row in copies if callee == "touch"):
        expect(arg["unavailable"], arg)
    kept = [row["args"][0] for row in copies if row["function"] == "kept"]
    if how == "touch":
        expect(all(a["quirk"] == "removed-store" for a in kept), kept)


if __name__ == "__main__":
    main()
