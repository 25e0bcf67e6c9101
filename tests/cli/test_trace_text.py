#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace with strings of wide characters, and with text whose bytes are counted as a key and in
conditions. Both are held against what the program logs, which Python decodes."""

import collections
import json
import os
import struct

from claims import claim, claim_each, compile_c, expect, folder, main
from tracing import trace

WIDE = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <uchar.h>
#include <wchar.h>
struct named { int id; wchar_t name[8]; char16_t tag[4]; };
static FILE *out;
static void show(const void *s, int unit)
{
	uint64_t c = 1;
	fprintf(out, s ? "" : "NULL");
	for (const char *p = s; p && c; p += unit) {
		memcpy(&c, p, unit);
		c &= unit == 2 ? 0xffff : 0xffffffff;
		fprintf(out, "%0*lx", 2 * unit, (unsigned long)c);
	}
	fputc('\t', out);
}
__attribute__((noipa)) void wide(const wchar_t *w, const char16_t *u, char32_t *U, void *p, const uint16_t *q,
				 struct named *n) {}
#define W const wchar_t *
__attribute__((noipa)) void many(W a, W b, W c, W d, W e, W f, W g, W h) {}
__attribute__((noipa)) void broken(const wchar_t *w, const char16_t *u) {}
static void call(const wchar_t *w, const char16_t *u, const char32_t *U)
{
	static struct named n = {7, L"eight ch", u"四"};
	show(w, 4);
	show(u, 2);
	show(U, 4);
	fputc('\n', out);
	wide(w, u, (char32_t *)U, (void *)w, (const uint16_t *)u, &n);
}
/* It ends where nothing can be read. */
static void *at_end(const void *s, size_t n)
{
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(pages + 8192, 4096);
	return memcpy(pages + 8192 - n, s, n);
}
int main(int argc, char **argv)
{
	static wchar_t longer[600];
	static char16_t pairs[400];
	static const wchar_t odd[] = {0x110000, 'x', (wchar_t)0x80000000, 0xd800, '\\', 0};
	static const char16_t lone[] = {'a', 0xd800, 'b', 0xdc00, 0xd83d, 0xde00, 0xdbff, 0};
	static const wchar_t no_end[] = {'n', 'o', 'n', 'e'};
	out = fopen(argc > 1 ? argv[1] : "/dev/null", "w");
	wmemset(longer, L'ü', 599);
	for (int i = 0; i < 398; i++)
		pairs[i] = i % 2 ? 0xde00 : 0xd83d;
	call(L"text", u"ünïcode \U0001f600", U"\U0001f600");
	call(L"", u"", U"");
	call(L"a \"quoted\\\" one\n", u"x", U"\x1b[31m");
	call(at_end(L"the end", 32), at_end(u"as well", 16), at_end(U"", 4));
	call(longer, pairs, (const char32_t *)longer);
	call(odd, lone, U"end");
	call(NULL, u"nothing", U"text");
	many(L"1", L"2", L"3", L"4", L"5", L"6", L"7", L"8");
	broken(at_end(no_end, sizeof(no_end)), (void *)16);
	return 0;
}
"""

WORDS = ("", "x", "short", "fifteen letters", "sixteen letters!", "n\0ul",
         "a text that is longer than what is inside of it", "z\u00fcrich",
         "y" * 63, "y" * 64, "y" * 65, "y" * 64 + "z")

COUNTED = r"""
#include <cstdio>
#include <string>
#include <string_view>
#include <unistd.h>
static FILE *out;
#define N __attribute__((noinline, noclone))
N void used(const std::string &s, std::string_view v, std::string by_value, const std::string *p, int i)
{
	fprintf(out, "%%d\n", i);
	fflush(out);
}
int main(int argc, char **argv)
{
	using namespace std::literals;
	static const std::string words[] = {%s};
	out = argc > 1 ? fopen(argv[1], "w") : stdout;
	for (int i = 0; i < 200; i++) {
		const std::string &s = words[i * 7 %% (sizeof(words) / sizeof(words[0]))];
		std::string_view v = std::string_view(words[6]).substr(0, i %% 7);
		if (i == 100 && (setgid(5678) || setuid(1234)))
			return 1;
		used(s, v, s + "!", &s, i);
	}
}
"""


def wide_program():
    return compile_c("wide", WIDE, flags=("-O1", "-g", "-w"))


def counted_program():
    words = ", ".join('"' + "".join(f"\\{b:03o}" for b in w.encode()) + '"s'
                      for w in WORDS)
    return compile_c("counted.cpp", COUNTED % words, "g++", ("-O1", "-g"))


def events_of(path, *options):
    events, log = os.path.join(folder(),
                               "events"), os.path.join(folder(), "log")
    r = trace("--json", "-o", events, *options[:-1], "-c", f"{path} {log}",
              options[-1])
    expect(r.status == 0, r)
    with open(events, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    with open(log, encoding="utf-8") as file:
        return [row for row in rows
                if "args" in row], file.read().splitlines(), rows


def text_of(units, unit, most):
    """What a logged string is shown as: a value, and whether it was cut."""
    if units == "NULL":
        return {"unreadable": "NULL"}, False
    step = 2 * unit
    codes = [int(units[i:i + step], 16)
             for i in range(0, len(units), step)][:-1]
    is_cut = len(codes) > most
    if is_cut:
        is_parted = unit == 2 and codes[
            most - 1] >> 10 == 0x36 and codes[most] >> 10 == 0x37
        codes = codes[:most - is_parted]
    if unit == 4:
        text = "".join(
            chr(c) if c < 0x110000 and not 0xd800 <= c < 0xe000 else "\ufffd"
            for c in codes)
    else:
        data = struct.pack(f"<{len(codes)}H",
                           *codes).decode("utf-16-le", "surrogatepass")
        text = "".join("\ufffd" if 0xd800 <= ord(c) < 0xe000 else c
                       for c in data)
    return text, is_cut


@claim_each("", "10", "200")
def wide_strings_are_the_text_that_the_program_has(most):
    options = ("--str-len", most) if most else ()
    events, log, _ = events_of(wide_program(), *options, "wide(w, u, U)")
    expect(len(events) == len(log) == 7, len(events), log)
    for event, line in zip(events, log):
        for name, units, unit in zip("wuU", line.split("\t"), (4, 2, 4)):
            text, is_cut = text_of(units, unit, int(most or 63))
            expect(event["args"][name] == text, event, name, units)
            expect((name in event.get("truncated", ())) == is_cut, event, name)


@claim
def wstr_reads_wide_strings_at_addresses_without_such_a_type():
    probe = (
        "wide(wstr(p), wstr(q), wstr(p, 3), (wchar_t *)p, wstr((char16_t *)q, 2), w:hex, "
        "wstr(n->name))")
    events, log, _ = events_of(wide_program(), probe)
    for event, line in zip(events, log):
        w, u, _, _ = line.split("\t")
        args = event["args"]
        expect(args["wstr(n->name)"].startswith("eight ch"), args)
        for name, units, unit, most in (("wstr(p)", w, 4,
                                         63), ("wstr(q)", u, 2,
                                               63), ("wstr(p, 3)", w, 4, 3),
                                        ("(wchar_t *)p", w, 4, 63),
                                        ("wstr((char16_t *)q, 2)", u, 2, 2)):
            expect(args[name] == text_of(units, unit, most)[0], args, name)
        expect(
            args["w"].startswith("0x")
            and (w == "NULL") == (args["w"] == "0x0"), args)


@claim
def what_is_no_character_is_shown_as_a_number():
    r = trace("-c", wide_program(), 'wide(w, u) if u[1] == 0xd800')
    shown = r'w="\U00110000x\U80000000\ud800\\", u="a\ud800b\udc00😀\udbff"'
    expect(shown in r.out, r.out)
    r = trace("--format", "{w:s}|{u:.2}|", "-c", wide_program(),
              "wide if u[1] == 0xd800")
    expect(r"\U00110000x\U80000000\ud800\\|" in r.out, r.out)


@claim
def a_wide_string_without_an_end_is_cut_or_unreadable():
    r = trace("-c", wide_program(), "broken(w, u)")
    expect(
        "w=<unreadable at 0x" in r.out and "u=<unreadable at 0x10>" in r.out,
        r.out)
    r = trace("-c", wide_program(), "broken(wstr(w, 3))")
    expect('wstr(w, 3)="non"...' in r.out, r.out)


@claim
def a_function_of_many_wide_strings_shows_them():
    r = trace("-c", wide_program(), "many")
    expect('many entry: a="1", b="2", c="3", d="4", e="5", f=0x' in r.out, r)
    r = trace("-c", wide_program(), "many(a, b, c, d, e, f)")
    expect('a="1", b="2", c="3", d="4", e="5", f="6"' in r.out, r)


@claim
def conditions_compare_wide_strings():
    for condition, wanted in (('w == L"text"', 1), ('w != L"text"', 5),
                              ('w == L""', 1), ('u == u"ünïcode 😀"', 1),
                              ('U == U"😀"', 1), ('w == "the end"', 1),
                              ('wstr(p) == L"text" && wstr(q) != L"x"',
                               1), ('(char16_t *)q == L"as well"',
                                    1), ('w == L"the en"',
                                         0), ('n->name == L"eight ch"',
                                              7), ('n->name == L"eight che"',
                                                   0), ('n->tag == u"四"', 7),
                              ('n->name != L"eight c"', 7)):
        r = trace("--count", "--json", "-c", wide_program(),
                  f"wide if {condition}")
        rows = [json.loads(line) for line in r.out.splitlines()]
        found = rows[0]["rows"][0]["count"] if rows[0]["rows"] else 0
        expect(r.status == 0 and found == wanted, condition, found, r)


@claim
def what_cannot_be_compared_is_refused_with_the_reason():
    for probe, reason in (('wide if w == L"sixteen letters!"',
                           "have at most 15 characters"),
                          ('wide if w == L"\\xff"', "written in UTF-8"),
                          ('wide if w < L"x"',
                           "only be compared with == and !="),
                          ('wide if p == L"x"', "this is not a string"),
                          ('wide(wstr(w, 0))', "1 to 2047 characters"),
                          ('wide if wstr(w) == 1',
                           "wstr() is a value of its own")):
        r = trace("-c", wide_program(), probe)
        expect(r.status in (2, 4) and reason in r.err and "^" in r.err, probe,
               r)
    for key in ("w", "wstr(p)", "n->name"):
        r = trace("--count", "--by", key, "-c", wide_program(), "wide")
        expect(r.status == 2 and "wide characters cannot be a key" in r.err,
               key, r)


def word_of(i):
    return WORDS[i * 7 % len(WORDS)]


def shown(data, most=63):
    """A key in JSON: its bytes, or as many as are shown."""
    return data.encode()[:most].decode(
        errors="replace"), len(data.encode()) > most


def rows_of(expression, *options):
    _, log, rows = events_of(counted_program(), *options, "--count", "--by",
                             expression, "used")
    expect(len(log) == 200, log[:3])
    found = {}
    for row in rows[0]["rows"]:
        key = row["by"][expression]
        is_cut = expression in row.get("truncated", ())
        expect((key, is_cut) not in found, "two rows of one key", row)
        found[key, is_cut] = row["count"]
    return found


@claim
def counted_text_is_a_key():
    for expression, text_at in (("s", word_of), ("*p", word_of),
                                ("by_value", lambda i: word_of(i) + "!"),
                                ("v", lambda i: WORDS[6][:i % 7])):
        wanted = collections.Counter(shown(text_at(i)) for i in range(200))
        found = rows_of(expression)
        expect(found == wanted, expression, found, wanted)


@claim
def a_key_that_is_cut_says_so():
    found = rows_of("s", "--str-len", "5")
    expect(
        found == collections.Counter(shown(word_of(i), 5) for i in range(200)),
        found)


@claim
def user_and_group_are_keys_and_in_conditions():
    expect(rows_of("$uid") == {(0, False): 100, (1234, False): 100})
    expect(rows_of("$gid") == {(0, False): 100, (5678, False): 100})
    events, _, _ = events_of(counted_program(),
                             "used(i, $gid) if $gid == 5678 && $uid == 1234")
    expect([e["args"] for e in events] == [{
        "i": i,
        "$gid": 5678
    } for i in range(100, 200)], events)


@claim
def conditions_compare_counted_text():
    longest = "y" * 64
    for condition, wanted in (('s == "x"', lambda i: word_of(i) == "x"),
                              ('s != ""', lambda i: word_of(i) != ""),
                              ('*p == "sixteen letters!"',
                               lambda i: word_of(i) == "sixteen letters!"),
                              (f'"{longest}" == s',
                               lambda i: word_of(i) == longest),
                              ('v == "a te" && s != "short"',
                               lambda i: i % 7 == 4 and word_of(i) != "short"),
                              ('i + (s == "n") + (by_value == "x!") > 150',
                               lambda i: i + (word_of(i) == "x") > 150)):
        events, _, _ = events_of(counted_program(), f"used(i) if {condition}")
        got = [event["args"]["i"] for event in events]
        expect(got == [i for i in range(200) if wanted(i)], condition, got)


@claim
def literals_that_do_not_suit_counted_text_are_refused():
    for probe, reason in ((f'used if s == "{"y" * 65}"',
                           "have at most 64 characters"),
                          ('used if s == L"x"', "no wide characters"),
                          ('used if p == "x"', "this is not a string")):
        r = trace("-c", counted_program(), probe)
        expect(r.status in (2, 4) and reason in r.err and "^" in r.err, probe,
               r)


if __name__ == "__main__":
    main()
