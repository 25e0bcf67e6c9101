#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Members whose offset is not known: each view says so, counts them nowhere, and raises no false
alarm."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import cairn, claim, claim_each, expect, folder, main, need, need_root, run, write

# A virtual base class, a class with two such base classes, and a member that is an object of the
# first.
CLASSES = """
struct A { int a; char t[5]; virtual ~A() {} };
struct B : virtual A { int b; };
struct C : virtual A { int c; };
struct D : B, C { int d; } v;
struct H { B b; int after; } h;
__attribute__((noinline)) int take(B *p) { asm volatile("" :: "r"(p) : "memory"); return p->a; }
int main() { return take(&v) != 0; }
"""
PLAIN = CLASSES.replace("virtual A {", "A {").replace("return p->a", "return 0")
# The offset of t is that of s and the discriminant n.
RECORDS = """
procedure Rec is
   type Two (N, M : Natural) is record
      S : String (1 .. N);
      T : String (1 .. M);
      X : Integer;
   end record;
   V : Two (3, 4);
   procedure Show (P : in out Two) is begin P.X := 3; end Show;
begin
   Show (V);
end Rec;
"""
REASON = "offset not known"


def classes(text=CLASSES, name="classes"):
    path = write(name + ".cc", text)
    run(need("g++"), "-g", "-O1", path, "-o", path[:-3], check=True)
    return path[:-3]


def records():
    write("rec.adb", RECORDS)
    run(need("gnatmake"), "-g", "rec.adb", check=True, cwd=folder())
    return os.path.join(folder(), "rec")


def text_of(file, name, *words):
    return cairn("layout", file, name, "--no-sidecar", *words, check=True).out


def facts(file, name):
    return cairn("layout", file, name, "--no-sidecar", "--json", check=True).objects()[0]


@claim
def sums_leave_out_what_has_no_offset_and_its_bytes_are_no_padding():
    file = classes()
    shown = text_of(file, "B")
    expect("/* offset not known: 1 member; no sum counts these bytes */" in shown, shown)
    expect("BRAIN" not in shown and "/* padding:" not in shown, shown)
    b = facts(file, "B")
    expect((b["unplaced"], b["padding"], b["holes"], b["size"]) == (1, 0, 0, 40), b)


@claim
def a_base_class_with_a_virtual_one_covers_its_own_part():
    file = classes()
    shown = text_of(file, "D")
    expect("members of 2 base classes; no sum counts these bytes */" in shown, shown)
    expect("BRAIN" not in shown and "combined" not in shown and "/* padding:" not in shown, shown)
    # 8 bytes of a pointer and an int, then 4 up to the pointer of C
    expect("/* sum members: 28, holes: 1, sum holes: 4 */" in shown, shown)
    d = facts(file, "D")
    expect((d.get("unplaced"), d["unplaced_bases"], d["members"][0]["hole"]) == (None, 2, 4), d)


@claim
def a_member_that_is_such_an_object_is_whole():
    shown = text_of(classes(), "H")
    expect("/* XXX last struct has 1 member, offset not known */" in shown, shown)
    expect("/* padding: 4 */" in shown and "no sum" not in shown, shown)


def html_of(file, name, *words):
    page = cairn("layout", file, name, "--no-sidecar", "--html", *words, check=True).out
    return page[page.index("<main>"):]


@claim
def the_picture_lists_it_without_a_place():
    page = html_of(classes(), "D")
    expect(f"<b>1</b> member: {REASON}" in page, page)
    expect(
        page.count("A<small>A</small></td><td class=num title=\"offset not known\">?</td>") == 1,
        page)
    expect("24 bytes of padding, or of a member: offset not known" in page, page)
    expect("title=\"4 bytes hole\"" in page, page)


@claim
def a_gap_inside_of_a_member_of_the_picture_may_hold_it():
    page = html_of(classes(), "H", "--expand")
    expect("28 bytes hole, or of a member: offset not known" in page, page)
    expect("b.A<small>" in page, page)


@claim
def beside_another_build_only_what_moved_differs():
    file, plain = classes(), classes(PLAIN, "plain")
    expect("differs" not in html_of(file, "B", "--beside", file), file)
    expect("differs" in html_of(file, "B", "--beside", plain), plain)


@claim
def lint_names_it_and_makes_up_no_fault():
    r = cairn("layout", classes(), "B", "C", "D", "--no-sidecar", "--lint")
    expect(r.status == 1, r.err)
    rules = re.findall(r"^struct (\S+), (?:after )?(\S+?)[:,].*\[(.*)\]$", r.out, re.M)
    expect(rules == [("B", "A", "offset-not-known"), ("C", "A", "offset-not-known"),
                     ("D", "B", "padding-leak")], r.out)
    found = cairn("layout", classes(), "B", "--no-sidecar", "--lint", "--json").objects()
    expect([(i["rule"], i["offset"]) for i in found] == [("offset-not-known", None)], found)


@claim
def a_lock_keeps_it_and_sees_when_it_gets_an_offset():
    file, plain = classes(), classes(PLAIN, "plain")
    lock = os.path.join(folder(), "layouts.lock")
    words = ("B", "--no-sidecar", "--lock", lock)
    cairn("layout", file, *words, "--update", check=True)
    with open(lock, encoding="utf-8") as text:
        expect("\t? (none) struct A\n" in text.read(), lock)
    same = cairn("layout", file, *words)
    expect(same.status == 0 and f"{REASON}: 1 member, not compared" in same.err, same.out, same.err)
    moved = cairn("layout", plain, *words)
    expect(moved.status == 1 and re.search(rf"\? 24 bytes +0 24 bytes +{REASON}$", moved.out, re.M),
           moved.out)


@claim
def two_builds_are_compared_as_far_as_it_goes():
    file, plain = classes(), classes(PLAIN, "plain")
    same = cairn("layout", "--diff", file, file, "D", "--no-sidecar", "--json",
                 check=True).objects()[0]
    expect(same["same"] and same["unplaced"] == 2, same)
    other = cairn("layout", "--diff", file, plain, "B", "--no-sidecar", "--json").objects()[0]
    gone = [i for i in other["differing"] if i["change"] == "removed" and i["type"][0] == "A"]
    expect(len(gone) == 1 and gone[0]["bit_offset"] == [None, None], other)


@claim_each("c", "rust", "java", "python", "go", "typescript")
def no_language_gets_an_accessor_of_it_and_each_says_so(lang):
    r = cairn("bind", classes(), "B", "--no-sidecar", "--lang", lang, check=True)
    expect("No accessor of B.A: offset not known." in r.out, r.out)
    expect("1 member left out" in r.err, r.err)
    if lang not in ("c", "typescript"):
        expect("No BStruct: it has a member whose offset is not known." in r.out, r.out)


@claim
def bind_lists_it_once_for_both_ways_to_it():
    made = cairn("bind", classes(), "D", "--no-sidecar", "--json", check=True).objects()[0]
    expect(made["left_out"] == [{"path": "A", "why": REASON}], made)
    expect([i["offset"] for i in made["fields"]] == [0, 8, 16, 24, 28], made)


@claim
def decode_takes_its_bytes_for_no_padding():
    values = write("values", "0123456789" * 4)
    shown = cairn("decode", classes(), "B", values, "--no-sidecar", "--padding", check=True).out
    expect(f"<A> = <{REASON}>" in shown and "padding" not in shown, shown)


@claim
def an_expression_that_needs_the_offset_is_refused():
    need_root()
    r = cairn("trace", "-c", classes(), "take(p->a)", "--no-sidecar")
    expect(r.status and f"a of B: {REASON}" in r.err, r.out, r.err)


@claim
def btf_leaves_it_out_and_counts_it():
    out = os.path.join(folder(), "classes.btf")
    r = cairn("btf", "encode", classes(), "-o", out, check=True)
    expect("2 members and base classes, offset not known, left out" in r.out + r.err, r.out, r.err)


@claim
def a_record_after_an_array_of_ada_has_none_either():
    file = records()
    shown = text_of(file, "rec__two")
    expect(re.search(r" t\[\]; +/\* +\? +0 \*/$", shown, re.M), shown)
    expect("offset not known: 1 member" in shown and "BRAIN" not in shown, shown)
    expect("title=\"offset not known\">?</td>" in html_of(file, "rec__two"), file)
    r = cairn("bind", file, "rec__two", "--lang", "c", "--no-sidecar", check=True)
    expect("No accessor of rec__two.t: offset not known." in r.out, r.out)


@claim
def a_bit_field_that_clang_describes_twice_over_has_none_and_its_neighbours_have_no_hole():
    source = write("full.c", "struct s { unsigned char a : 3; short b : 16; unsigned char c; } "
                             "__attribute__((packed)) v = {1, -1, 2};\n")
    run(need("clang"), "-g", "-c", source, "-o", source + ".o", check=True)
    s = facts(source + ".o", "s")
    b = s["members"][1]
    if not b.get("dynamic"):
        expect((b["bit_offset"], b["bits"]) == (3, 16), "a clang that writes width and place", s)
        return
    expect((s["unplaced"], s["holes"], s["bit_holes"], s["padding"]) == (1, 0, 0, 0), s)
    expect("BRAIN" not in text_of(source + ".o", "s"), s)


@claim
def a_sidecar_says_the_same():
    file = classes()
    sidecar = os.path.join(folder(), "classes.cairn")
    cairn("sidecar", file, "-o", sidecar, check=True)
    for name in ("B", "D", "H"):
        expect(
            text_of(file, name) == cairn("layout", file, name, "--sidecar", sidecar,
                                         check=True).out, name)


if __name__ == "__main__":
    main()
