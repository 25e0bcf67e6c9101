#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile show -o NAME.html: the flame graph in headless Chromium has what the summary has.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import result_of_page  # noqa: E402
from claims import cairn, claim, claim_each, expect, folder, main, need, write  # noqa: E402
from profiles import FOLDED  # noqa: E402

# Of every tree: each name's own value, and its total, counted once in a stack.
SUMS = """
function sums() {
  const own = {}, all = {};
  for (const node of tree.order) {
    if (!node) continue;
    const name = shown[tree.frame[node]].name;
    own[name] = (own[name] || 0) + tree.self[node];
    let above = tree.parent[node];
    while (above > 0 && shown[tree.frame[above]].name !== name) above = tree.parent[above];
    if (above <= 0) all[name] = (all[name] || 0) + tree.total[node];
  }
  return {own, all, sum: tree.total[0], height: tree.height};
}
function press(key) { canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); }
"""


def page(folded, name="a"):
    out = os.path.join(folder(), name + ".html")
    path = write(name + ".folded", folded)
    cairn("profile", "show", path, "-o", out, check=True)
    with open(out, encoding="utf-8") as file:
        return path, file.read()


def asked(html, expression, width=1280, flags=()):
    """The value of a JavaScript expression in the page, after it was drawn."""
    need("chromium")
    script = f"<script>{SUMS} parent.postMessage(JSON.stringify({{value: {expression}}}), '*');</script>"
    return result_of_page(html.replace("</html>", script + "</html>"), width, *flags)["value"]


def many():
    """50,000 frames: 500 functions that call 100 each."""
    return "".join(
        f"main;f{i};g{i}_{k % 10};h{k} {1 + (i * k) % 7}\n" for i in range(500) for k in range(100))


@claim_each("few", "many")
def every_function_has_the_shares_of_the_summary(which):
    path, html = page(FOLDED if which == "few" else many(), which)
    *shares, summary = cairn("profile", "show", path, "--json", check=True).objects()
    found = asked(html, "sums()")
    expect(found["sum"] == summary["sum"], found["sum"], summary)
    expect(found["own"] == {s["function"]: s["self"] for s in shares}, "own values differ")
    expect(found["all"] == {s["function"]: s["total"] for s in shares}, "totals differ")


@claim
def the_inverted_view_begins_with_own_values():
    _, html = page(FOLDED)
    first = asked(html, "(choose_view('callers'), Object.fromEntries(tree.children[0].map(n => "
                        "[label(n), tree.total[n]])))")
    expect(first == {"put": 61, "z": 20, "work": 10, "sys_read [k]": 5, "other": 4}, first)
    sums = asked(html, "(choose_view('callers'), sums().sum)")
    expect(sums == 100, sums)


@claim
def the_view_by_module_has_one_frame_for_calls_within_one():
    _, html = page(FOLDED)
    found = asked(html, "(choose_view('modules'), sums())")
    expect(
        found["own"] == {"(no file)": 95, "[kernel.kallsyms]": 5, "[jit]": 0}
        and found["sum"] == 100, found)


@claim
def a_search_counts_matches_within_matches_once():
    _, html = page(FOLDED)
    status = "($('search').value = 'main|other', search(), $('status').textContent)"
    expect("4 frames match, with 80.00 % of all" in asked(html, status), asked(html, status))
    wrong = asked(html, "($('search').value = '(', search(), $('status').textContent)")
    expect("not a regular expression" in wrong, wrong)


@claim
def keys_move_and_zoom():
    _, html = page(FOLDED)
    # Down to main, to work, to put; zoom; then out again.
    walk = "[...'DDD'].map(() => (press('ArrowDown'), label(chosen)))"
    expect(asked(html, walk) == ["main", "work", "put"], asked(html, walk))
    zoomed = f"({walk}, press('Enter'), [label(zoom), boxes.filter(b => !b.above).length, boxes.filter(b => b.above).length])"
    expect(asked(html, zoomed) == ["put", 1, 3], asked(html, zoomed))
    out = f"({walk}, press('Enter'), press('Escape'), [zoom, boxes.length])"
    expect(asked(html, out) == [0, 14], asked(html, out))


@claim
def kinds_are_told_without_colour():
    _, html = page(FOLDED)
    labels = asked(html, "tree.order.filter(n => n).map(n => label(n) + "
                         "(shown[tree.frame[n]].inlined ? ' inlined' : ''))")
    expect({"sys_read [k]", "jitted [j]", "put inlined", "x inlined", "z"} <= set(labels), labels)


# WCAG's contrast of two colours, from 1 to 21; small text needs 4.5.
CONTRAST = """
(() => {
  const style = getComputedStyle(document.documentElement);
  const luminance = name => {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = style.getPropertyValue("--" + name).trim();
    pen.fillRect(0, 0, 1, 1);
    const linear = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
      .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2];
  };
  const pairs = [["faint", "page"], ["found-ink", "found"]];
  for (const box of ["page", "user", "kernel", "jit", "more", "less", "same"]) pairs.push(["ink", box]);
  return {page: style.getPropertyValue("--page").trim(), pairs: Object.fromEntries(pairs.map(([a, b]) => {
    const x = luminance(a), y = luminance(b);
    return [a + " on " + b, (Math.max(x, y) + .05) / (Math.min(x, y) + .05)];
  }))};
})()
"""


@claim
def text_can_be_read_in_the_light_and_in_the_dark():
    _, html = page(FOLDED)
    light, dark = asked(html, CONTRAST), asked(html, CONTRAST, flags=("--force-dark-mode",))
    expect(light["page"] != dark["page"], light, dark)
    for theme in (light, dark):
        low = {pair: value for pair, value in theme["pairs"].items() if not value >= 4.5}
        expect(len(theme["pairs"]) == 9 and not low, low)


@claim_each(360, 1280)
def nothing_is_cut_off_at_this_many_pixels(width):
    _, html = page(FOLDED)
    root = "document.documentElement"
    found = asked(html, f"[{root}.scrollWidth, {root}.clientWidth, canvas.clientWidth]", width)
    expect(found == [width, width, width], found)


@claim
def a_difference_marks_what_grew_and_what_shrank():
    before, out = write("before.folded", FOLDED), os.path.join(folder(), "diff.html")
    after = write(
        "after.folded",
        FOLDED.replace("work 10", "work 110").replace("main;other;main;other 4\n", "")
        + "main;fresh 1\n")
    *rows, _ = cairn("profile", "diff", before, after, "--total", "--json", "-o", out,
                     check=True).objects()
    with open(out, encoding="utf-8") as file:
        html = file.read()
    # No function here has two frames, but for those that are gone.
    found = asked(html, "Object.fromEntries(tree.order.filter(n => n).map(n => "
                        "[shown[tree.frame[n]].name, [label(n)[0], change(n)]]))")
    expect(set(found) == {row["function"] for row in rows if row["after"]}, found)
    for row in rows:
        if row["after"]:
            mark, points = found[row["function"]]
            expect(abs(points - row["change_percent"]) <= .006, row, points)
            expect(
                mark == ("\u25b2" if points >= .1 else
                         "\u25bc" if points <= -.1 else row["function"][0]), row, mark)
    text = asked(html, "(pick(tree.children[0].find(n => shown[tree.frame[n]].name === 'main')), "
                       "$('status').textContent)")
    expect(re.search(r"main: 177, 89.85 % \(\+9\.85 points\)", text), text)


@claim
def names_are_text_whatever_they_hold():
    name = "</script><script>alert(1)</script><b>&amp\\"
    _, html = page(f"main;{name} 3\n", "hostile")
    expect(
        "alert(1)</script>" not in html.split("const profile", 1)[1].split("\nconst KINDS", 1)[0],
        html)
    found = asked(html, "Object.keys(sums().own)")
    expect(sorted(found) == sorted(["main", name]), found)


@claim
def the_page_needs_no_network():
    _, html = page(FOLDED)
    expect(not re.search(r"https?://|@import|<link|src=", html),
           re.findall(r"https?://\S+|src=\S+", html))


main()
