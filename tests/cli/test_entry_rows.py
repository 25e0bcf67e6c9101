#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Copies that the compiler duplicated: every entry row of the line table is a site."""

import json
import re

from claims import cairn, claim, claim_each, compile_c, expect, folder, main, need, run

# GCC unrolls the loop and duplicates the copy of step in it; peek is threaded through both arms.
PROGRAM = """\
volatile int sink;
static inline __attribute__((always_inline)) void step(int n)
{
	sink = n;
	sink = n * 3;
}
static inline __attribute__((always_inline)) int peek(int n)
{
	sink = n;
	return n & 1;
}
__attribute__((noinline)) void four(int n)
{
	for (int i = 0; i < 4; i++)
		step(n + i);
}
__attribute__((noinline)) void many(int n)
{
	for (int i = 0; i < n; i++)
		if (peek(i))
			step(i);
		else
			step(-i);
}
int main(void)
{
	four(1);
	many(9);
	return 0;
}
"""


def program(kind="gcc"):
    """After dwz, and with -flto, a function is declared in another unit than the one that has its
    copies."""
    need("gcc")
    flags = ("-O3", "-funroll-loops", "-g")
    if kind == "dwz":
        need("dwz")
        # Both units have the functions of one file, which dwz puts into a unit of their own.
        lines = PROGRAM.splitlines(keepends=True)
        n = next(i for i, text in enumerate(lines) if "void four" in text)
        shared = '# 1 "shared.h"\n' + "".join(lines[:n]).replace("volatile int sink",
                                                                 "extern volatile int sink")
        ours = f'# {n + 1} "rows.c"\n' + "".join(lines[n:])
        theirs = re.sub(r"\b(four|many|main)\(", r"\1_too(", ours)
        again = compile_c("rows2", shared + theirs, "gcc", (*flags, "-c"))
        path = compile_c("rows-dwz", shared + ours + "volatile int sink;\n", "gcc", (*flags, again))
        run("dwz", path, check=True)
        expect("DW_TAG_partial_unit" in run("readelf", "--debug-dump=info", path, check=True).out,
               "dwz made no unit")
        return path
    return compile_c("rows-" + kind, PROGRAM, "gcc", (*flags, "-flto") if kind == "lto" else flags)


def marker_rows(path, line):
    """Addresses of the is_stmt rows of a line, by readelf."""
    need("readelf")
    rows = []
    for text in run("readelf", "--debug-dump=decodedline", path, check=True).out.splitlines():
        fields = text.split()
        if len(fields) >= 4 and fields[1] == str(line) and fields[-1] == "x" and re.match(
                r"0x", fields[2]):
            rows.append(int(fields[2], 16))
    return sorted(rows)


def sites(path, function):
    out = cairn("sites", path, function, "--json", check=True).out
    return [json.loads(text) for text in out.splitlines()]


@claim_each("gcc", "dwz")
def every_entry_row_of_an_inlined_function_is_a_site(kind):
    path = program(kind)
    for function in ("step", "peek"):
        line = next(i for i, text in enumerate(PROGRAM.splitlines(), 1)
                    if text.endswith(f" {function}(int n)"))
        found = sorted(int(p["addr"], 16) for p in sites(path, function))
        expect(found == marker_rows(path, line), function, found, marker_rows(path, line))


@claim
def code_of_link_time_has_its_calls_or_says_that_not_every_call_is_there():
    """GCC drops some of its entries there: four(1) alone calls step four times."""
    found = sites(program("lto"), "step") + sites(program("lto"), "peek")
    rows = marker_rows(program("lto"), 2) + marker_rows(program("lto"), 7)
    expect(len(found) >= 3, found)
    for p in found:
        expect(int(p["addr"], 16) in rows or "bypassed" in p["count_caveats"], p)


# One turn is taken out of the loop, and the first test of put with it.
PEELED = """\
struct s { long n; };
#define NI __attribute__((noinline))
NI void crc(struct s *p, const char *d) { asm volatile("" :: "r"(d) : "memory"); p->n += *d; }
NI void head(struct s *p, int n) { asm volatile("" :: "r"(p) : "memory"); p->n += n; }
void put(struct s *p, const char *d, long n)
{
	if (!p)
		return;
	if (d && n > 0) {
		crc(p, d);
		crc(p, d);
	}
}
NI void loop(struct s *p, const char *e, int n)
{
	char b[1];
	head(p, n);
	for (int i = 0; i < n; i++) {
		b[0] = e[i];
		put(p, b, 1);
	}
	head(p, 0);
}
int main(void)
{
	struct s s = {0}, *q = &s;
	const char *e = "abcdefgh";
	asm volatile("" : "+r"(q), "+r"(e));
	loop(q, e, 8);
	loop(q, e, 4);
	return 0;
}
"""


@claim_each("-O2", "-O2 -flto", "-O3", "-O3 -flto")
def a_turn_that_was_taken_out_of_a_loop_keeps_its_calls(flags):
    need("gcc")
    path = compile_c("peeled" + flags.replace(" ", ""), PEELED, "gcc", (*flags.split(), "-g"))
    found = {int(p["addr"], 16) for p in sites(path, "put") if p["container"] == "loop"}
    start, size = (int(word, 16) for word in next(
        text for text in run("nm", "-S", path, check=True).out.splitlines()
        if text.endswith(" loop")).split()[:2])
    expect(found, path)
    expect(found == {at
                     for at in marker_rows(path, 5)
                     if start <= at < start + size}, found, marker_rows(path, 5))


@claim
def further_entries_say_that_they_are_and_keep_their_die():
    found = sites(program(), "step")
    further = [p for p in found if p["rule"] == "entry-row"]
    expect(further, "no copy was duplicated: the program no longer shows it", found)
    dies = {p["die"] for p in found if p["rule"] != "entry-row"}
    expect(all(p["die"] in dies for p in further), found)


# Where p is NULL nothing is left of drop() but its marker, in the cold part of work(), far from the
# copy's code.
COLD = """\
volatile int sink;
__attribute__((noipa)) static int *get(int n)
{
	static int a[9];
	return n > 5 ? 0 : a;
}
__attribute__((noipa)) static void out(int n)
{
	sink = n;
}
__attribute__((noipa, cold)) static void complain(int n)
{
	sink = n;
}
static inline __attribute__((always_inline)) void drop(int *p)
{
	if (p)
		sink = *p;
}
__attribute__((noipa)) static int work(int n)
{
	int *p = get(n);
	if (!p) {
		complain(n);
		goto done;
	}
	for (int i = 0; i < n; i++)
		out(p[i]);
done:
	drop(p);
	return n + sink;
}
int main(int argc, char **argv)
{
	work(argc);
	work(argc + 7);
	return 0;
}
"""


@claim
def an_entry_far_from_all_code_of_its_copy_is_a_site_of_the_copy_in_the_same_function():
    need("gcc")
    path = compile_c("cold", COLD, "gcc", ("-O2", "-g"))
    line = next(i for i, text in enumerate(COLD.splitlines(), 1) if text.endswith(" drop(int *p)"))
    found = sites(path, "drop")
    rows = marker_rows(path, line)
    expect(max(rows) - min(rows) > 64, "no entry is far from the copy: the "
                                       "program no longer shows it", rows)
    expect(sorted(int(p["addr"], 16) for p in found) == rows, found, rows)
    expect({p["container"]
            for p in found} == {"work"} and len({p["die"]
                                                 for p in found}) == 1, found)


# Where the pointer is NULL nothing is left of put but its entry's row. The row of the call in line
# 10 stands just before the code of the call in line 12.
ANOTHER_CALL = """\
struct s { long n; };
__attribute__((noinline)) void use(struct s *p, long n) { asm volatile("" :: "r"(p) : "memory"); p->n += n; }
__attribute__((noinline)) void end(long k) { asm volatile("" :: "r"(k) : "memory"); }
static inline void put(struct s *p, long n) { if (!p) return; use(p, n); }
__attribute__((noinline)) long d(struct s *p, long n)
{
	for (long i = 0; i < n; i++) {
		put(p, 10);
		end(i);
		put(p, 11);
	}
	put(p, 12);
	return n;
}
int main(void) { struct s *q = 0; asm volatile("" : "+r"(q)); struct s s = { 0 }; d(&s, 2); d(q, 2); return 0; }
"""


@claim
def an_entry_without_code_is_of_the_call_whose_statement_is_before_it():
    need("gcc")
    found = sites(compile_c("line", ANOTHER_CALL, "gcc", ("-O2", "-g")), "put")
    lines = [p["call"]["line"] for p in found]
    expect(sorted(lines) == [8, 10, 10, 12], "call lines", found)


# Unrolled, the last rows of put in loop() stand just before other(), which begins with a copy of
# put.
ANOTHER_FUNCTION = """\
struct s { long n; };
#define NI __attribute__((noinline))
NI void use(struct s *p, long n) { asm volatile("" :: "r"(p) : "memory"); p->n += n; }
NI void end(struct s *p) { asm volatile("" :: "r"(p) : "memory"); }
static inline void put(struct s *p, long n)
{
	if (!p)
		return;
	use(p, n);
}
NI long loop(struct s *p, const char *e, long n)
{
	long k = 0;
	for (long i = 0; i < n; i++) {
		k += e[i];
		put(p, k);
	}
	return k;
}
NI void other(struct s *p, long n) { put(p, n); end(p); }
int main(void) { struct s s = { 0 }; loop(&s, "abcdefgh", 8); loop(0, "abc", 3); other(&s, 2); other(0, 2); return s.n == 99; }
"""


@claim
def an_entry_without_code_is_never_of_another_function():
    need("gcc")
    path = compile_c("row", ANOTHER_FUNCTION, "gcc", ("-O3", "-g"))
    found = sites(path, "put")
    expect(len([p for p in found if p["container"] == "other"]) == 1 and len(found) > 10, found)
    expect(all(p["hazard"] is None and p["container_off"] >= 0 for p in found), found)


MACRO = """\
volatile int sink;
#define MAKE(name) static inline __attribute__((always_inline)) void name(int n) { sink = n; sink = n * 3; sink = n; }
MAKE(made)
int main(int argc, char **argv)
{
	for (int i = 0; i < 4; i++)
		made(argc + i);
	return 0;
}
"""


@claim
def rows_of_a_function_from_a_macro_are_not_taken_for_entries():
    need("gcc")
    path = compile_c("macro", MACRO, "gcc", ("-O2", "-g"))
    found = sites(path, "made")
    expect(len(found) == 1 and found[0]["rule"] != "entry-row", found)


if __name__ == "__main__":
    main()
