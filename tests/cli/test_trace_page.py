#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace -o NAME.html of hits that are summed up: a page whose figures are those of the tables,
without scripts; whatever a program has in its strings is text there."""

import html.parser
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import result_of_page  # noqa: E402
from claims import cairn, claim, claim_each, compile_c, expect, main, need_root, path_of, Skip  # noqa: E402

PROGRAM = r"""
#include <unistd.h>
__attribute__((noinline)) long work(int kind, long n, const char *s)
{
	__asm__ volatile("" ::: "memory");
	return n + kind + *s;
}
__attribute__((noinline)) long rest(int kind) { __asm__ volatile("" ::: "memory"); return kind; }
static const char *const names[] = {
	"plain", "</td><script>x()</script>", "&amp;\"'", "\xe2\x80\xae" "abc", "\033[31m"};
int main(int argc, char **argv)
{
	for (int i = 0; i < 2000; i++) {
		work(i % 5, i * (long)i % 4999 - 100, names[i % 5]);
		if (i % 3 == 0)
			rest(i % 7);
		if (argc > 1 && i % 20 == 0)
			usleep(3000);
	}
	return 0;
}
"""
# The page's width, and that of its content.
MEASURE = """<script>addEventListener('load', () => {
	const root = document.documentElement;
	parent.postMessage(JSON.stringify({scroll: root.scrollWidth, client: root.clientWidth,
		narrowest: Math.min(...[...document.querySelectorAll('.rows td')].map(e => e.clientWidth || 999)),
		highest: Math.max(...[...document.querySelectorAll('th')].map(e => e.clientHeight)),
		unnamed: [...document.querySelectorAll('.rows td:not(.bar)')].filter(e => !e.dataset.title).length,
		scripts: document.scripts.length, rows: document.querySelectorAll('tbody tr').length}), '*');
})</script>"""


def program():
    return compile_c("sums", PROGRAM, "gcc", ("-O1", "-g"))


class Tables(html.parser.HTMLParser):
    """The rows of each table's body; cells of bars are not among them."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.titles, self.tags = [], [], set()
        self._cell = self._title = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self._cell = "" if ("class", "bar") not in attrs else None
            if self._cell is not None:
                self.tables[-1][-1].append("")
        if tag == "h3":
            self.titles.append("")
            self._title = True

    def handle_endtag(self, tag):
        if tag in ("tr", "table"):
            self._cell = None
        if tag == "h3":
            self._title = None

    def handle_data(self, data):
        if self._title:
            self.titles[-1] += data
        elif self._cell is not None:
            self.tables[-1][-1][-1] += data.strip("\n")


def traced(*words, name=None, command=None):
    need_root()
    out = ["-o", path_of(name)] if name else []
    r = cairn("trace", *words, *out, "-c", command or program())
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect(r.status == 0, r)
    if not name:
        return r.out
    with open(path_of(name), encoding="utf-8") as file:
        return file.read()


@claim_each("--count", "--count --by kind",
            "--sum n --avg n --min n --max n --by kind",
            "--quantiles n --by kind", "--count --by kind,s",
            "--count --by kind --max-keys 3")
def cells_are_those_of_the_table(options):
    words = options.split()
    text = traced(*words, "work")
    page = Tables(traced(*words, "work", name="rows.html"))
    wanted = [
        re.split(r" {2,}", line.strip())
        for line in text.rstrip("\n").split("\n")
    ]
    found = [[cell for cell in row if cell] for row in page.tables[0]]
    expect(
        len(page.tables) == 1 and sorted(found) == sorted(wanted), found,
        wanted)


@claim
def several_functions_have_their_names():
    page = Tables(traced("--count", "work", "rest", name="names.html"))
    expect(
        page.tables[0] == [["function", "count"], ["work", "2000"],
                           ["rest", "667"]], page.tables)


@claim
def histograms_are_those_of_the_text():
    words = ["--hist", "n", "--lhist", "n,0,5000,500", "--by", "kind", "work"]
    text = traced(*words)
    page = Tables(traced(*words, name="hist.html"))
    wanted = re.findall(r"^(\S.*?) +(\d+) \|[@ ]*\|$", text, re.M)
    found = [
        tuple(row[:2]) for table in page.tables for row in table[1:]
        if re.match(r"[\[(].*[\])]$", row[0])
    ]
    expect(
        len(found) > 50 and sorted(found) == sorted(wanted), found[:5],
        wanted[:5])
    expect(page.titles == ["hist(n)", "lhist(n)"] * 5, page.titles)


@claim
def intervals_have_all_hits_and_the_tables_are_shown_too():
    need_root()
    r = cairn("trace", "--count", "--every", "100ms", "-o",
              path_of("time.html"), "work", "-c",
              program() + " slow")
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    expect(r.status == 0 and len(r.objects()) > 1, r)
    with open(path_of("time.html"), encoding="utf-8") as file:
        page = Tables(file.read())
    times, rows = page.tables
    expect(
        len(times) > 2 and sum(int(row[2]) for row in times[1:]) == 2000,
        times)
    expect(all(a[1] == b[0] for a, b in zip(times[1:], times[2:])), times)
    expect(rows[1] == ["2000"], rows)


@claim_each(360, 1280)
def it_fits_and_has_no_script_of_the_program(width):
    text = traced("--count",
                  "--hist",
                  "n",
                  "--by",
                  "s",
                  "work",
                  name="strange.html")
    page = Tables(text)
    expect("script" not in page.tags, page.tags)
    expect("\033" not in text and "\u202e" not in text,
           "what a terminal or a reader obeys")
    expect(
        any("</td><script>x()</script>" in row[0] for table in page.tables
            for row in table), page.tables)
    found = result_of_page(text + MEASURE, width)
    expect(
        found["scroll"] <= found["client"] and found["scripts"] == 1
        and found["rows"] > 20, found)


@claim_each(360, 1280)
def long_keys_and_many_numbers_can_be_read(width):
    text = traced("--count", "--sum", "n * 1000000", "--avg", "n * 1000000",
                  "--max", "n * 1000000", "--by", "kind,s,n * 1000000 / 3000000000", "work",
                  name="wide.html")
    found = result_of_page(text + MEASURE, width)
    # No letter below the other, neither in cells nor in titles; a title beside each cell.
    expect(
        found["scroll"] <= found["client"] and found["narrowest"] > 25
        and found["highest"] < 60 and found["unnamed"] == 0, found)


@claim
def what_makes_no_page_is_refused_before_the_start():
    need_root()
    for words, why in (([
            "--count", "--clear", "--every", "1s", "-o", "a.html"
    ], "--clear"), (["--count", "-o", "a.html", "-o",
                     "b.html"], "one profile or page"),
                       (["--count", "-o", "a.folded"], "give --by '$stack'"),
                       (["--count", "-o", "/nowhere/a.html"], "/nowhere")):
        r = cairn("trace", *words, "work", "-c", program())
        expect(r.status == 2 and why in r.err, words, r)


@claim
def a_full_disk_is_told():
    need_root()
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    os.symlink("/dev/full", path_of("full.html"))
    r = cairn("trace", "--count", "work", "-o", path_of("full.html"), "-c",
              program())
    expect(r.status != 0 and "full.html" in r.err, r)


if __name__ == "__main__":
    main()
