#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout --html: one page without scripts; in headless Chromium nothing is cut off, and holes
are seen."""

import os
import re
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import chromium, result_of_page  # noqa: E402
from claims import cairn, claim, claim_each, expect, folder, main, need, write  # noqa: E402

TEXT = """
struct padded_event { char c; long l; int i; void *x; };
struct event { unsigned int e_pid; char e_filename[256]; char e_comm[16]; };
struct flow {
	unsigned char version : 4, ihl : 4; unsigned char tos; unsigned short len; unsigned id : 13; unsigned flags : 3;
	double rtt; float a_name_that_is_rather_long_for_four_bytes; struct { int a; char b; } in; long long when;
	union { int v4; char v6[16]; } addr; void (*done)(int); unsigned int retries; unsigned char state;
};
struct straddling { char a[60]; struct { long b; } __attribute__((packed)) c; };
"""
# Colours of the style sheet: the stripes of holes in light and in dark, the page behind.
LIGHT = {"hole": (0xc4, 0x3d, 0x00), "page": (0xf7, 0xf6, 0xf2)}
DARK = {"hole": (0xff, 0x8a, 0x4c), "page": (0x14, 0x18, 0x1b)}
# Whose content is wider than its box, and the width of the page.
MEASURE = """<script>addEventListener('load', () => {
	const cut = [...document.querySelectorAll('.p, td, th, h1, h2, p, li')]
		.filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display != 'inline')
		.map(e => e.className + ' ' + e.textContent);
	const root = document.documentElement;
	parent.postMessage(JSON.stringify({scroll: root.scrollWidth, client: root.clientWidth, cut}), '*');
})</script>"""


def page(*words):
    path = os.path.join(folder(), "structs.h")
    with open(path, "w", encoding="utf-8") as file:
        file.write(TEXT)
    return cairn("layout", path, *words, "--html", check=True).out


def measured(html, width):
    return result_of_page(html.replace("</body>", MEASURE + "</body>"), width)


def pixels(path):
    """Rows of bytes, and bytes per pixel, of a PNG with 8 bits per channel."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed, width, step = 8, b"", 0, 0
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack(">IIBB", body[:10])
            expect(depth == 8 and colour in (2, 6), depth, colour)
            step = 3 if colour == 2 else 4
        packed += body if kind == b"IDAT" else b""
        at += 12 + n
    raw, stride = zlib.decompress(packed), width * step + 1
    rows, before = [], bytearray(stride - 1)
    for i in range(0, len(raw), stride):
        row, how = bytearray(raw[i + 1:i + stride]), raw[i]
        for k in range(len(row)):
            a, b = row[k - step] if k >= step else 0, before[k]
            c = before[k - step] if k >= step else 0
            if how == 4:
                p = a + b - c
                near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            else:
                near = (0, a, b, (a + b) // 2)[how]
            row[k] = row[k] + near & 255
        rows.append(row)
        before = row
    return rows, step


def count(rows, step, colour):
    return sum(
        bytes(row[k:k + 3]) == bytes(colour) for row in rows for k in range(0, len(row), step))


@claim
def the_page_is_one_file_without_scripts():
    html = page("--abi", "x86-64,i386")
    expect(
        "<script" not in html and "http" not in html and "src=" not in html
        and "@import" not in html, html[:500])
    expect(html.count("<section>") == 4 and "7 bytes hole" in html and "3 bytes hole" in html, html)


@claim
def what_differs_is_said_in_text():
    html = page("padded_event", "--abi", "x86-64,i386")
    expect(html.count("\u2260 differs") == 3, html)
    expect("differs" not in page("event", "--abi", "x86-64,i386").split("</style>")[1])


@claim
def two_builds_stand_side_by_side():
    new = write("new.h", "struct padded_event { char c; int i; long l; void *x; };\n")
    html = page("padded_event", "--beside", new)
    expect(
        "<h3>" + new + "</h3>" in html and html.count("class=map") == 2
        and html.count("\u2260 differs") == 2, html)


@claim
def names_are_escaped():
    r = cairn("layout", write("a&b.h", "struct s { int x; };\n"), "--html", check=True)
    expect("a&amp;b.h" in r.out and "a&b.h" not in r.out, r)


@claim
def every_byte_is_drawn_or_counted_as_left_out():
    html = page("padded_event")
    spans = re.findall(r'class="p [^"]*" style="grid-column:(\d+)/(\d+)', html)
    expect(sum(int(b) - int(a) for a, b in spans) == 32, spans)


@claim_each(360, 1280)
def nothing_is_cut_off_at_this_many_pixels(width):
    need("chromium")
    m = measured(page("--abi", "x86-64,i386"), width)
    expect(m["client"] == width and m["scroll"] <= m["client"], m)
    expect(not m["cut"], m)


@claim_each("light", "dark")
def holes_are_seen_in(scheme):
    need("chromium")
    path = write(f"{scheme}.html", page("padded_event"))
    shot = os.path.join(folder(), f"{scheme}.png")
    dark = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"
            ] if scheme == "dark" else []
    r = chromium(*dark, "--window-size=800,700", f"--screenshot={shot}", "file://" + path)
    expect(os.path.exists(shot), r)
    rows, step = pixels(shot)
    colours = DARK if scheme == "dark" else LIGHT
    expect(bytes(rows[2][:3]) == bytes(colours["page"]), rows[2][:3])
    # 11 of 32 bytes are holes, a quarter of their area are stripes.
    expect(count(rows, step, colours["hole"]) > 1000, count(rows, step, colours["hole"]))
    without = write(f"{scheme}-none.html", page("event"))
    chromium(*dark, "--window-size=800,700", f"--screenshot={shot}", "file://" + without)
    rows, step = pixels(shot)
    # What is left is the key of the legend.
    expect(count(rows, step, colours["hole"]) < 400, count(rows, step, colours["hole"]))


main()
