#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of functions in C++, Rust and Go, held against what the programs print themselves."""

import collections
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

# noqa: E402
from claims import (Skip, cairn, claim, claim_each_of_many, expect, folder, main, need, need_root,
                    run)

# Each function prints its arguments as cairn trace does.
CXX = r"""#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct Point { int x; short y; };
struct Record { int id; std::string name; std::vector<int> sizes; std::unique_ptr<Point> at; };

static std::string quoted(std::string_view text)
{
	std::string shown = "\"";
	for (char c : text)
		shown += c ? std::string(1, c) : "\\000";
	return shown + '"';
}
static std::string pointer(const void *p)
{
	char text[32];
	snprintf(text, sizeof(text), p ? "%p" : "0x0", p);
	return text;
}
template <class T, class F> static std::string listed(const T &all, F show)
{
	std::string text = "{";
	for (const auto &one : all)
		text += (text.size() > 1 ? ", " : "") + show(one);
	return text + "}";
}
static std::string number(int n) { return std::to_string(n); }
static std::string point(const Point &p) { return "{.x = " + number(p.x) + ", .y = " + number(p.y) + "}"; }

__attribute__((noinline)) void strings(std::string value, const std::string &reference, std::string_view view)
{
	printf("value=%s, reference=%s, view=%s\n", quoted(value).c_str(), quoted(reference).c_str(), quoted(view).c_str());
}
__attribute__((noinline)) void vectors(std::vector<int> numbers, const std::vector<Point> &points, std::vector<std::string> *words,
				       std::unique_ptr<Point> owner)
{
	printf("numbers=%s, points=%s, *words=%s, owner=%s\n", listed(numbers, number).c_str(), listed(points, point).c_str(),
	       listed(*words, quoted).c_str(), pointer(owner.get()).c_str());
}
__attribute__((noinline)) void record(const Record *r)
{
	printf("*r={.id = %d, .name = %s, .sizes = %s, .at = %s}\n", r->id, quoted(r->name).c_str(),
	       listed(r->sizes, number).c_str(), pointer(r->at.get()).c_str());
}
__attribute__((noinline)) void wild(std::string_view bad, const std::vector<int> &good, std::string_view longer)
{
	printf("bad=<unreadable: %zu bytes at %p>, good=%s, longer=%.66s\"...\n", bad.size(), (const void *)bad.data(), listed(good, number).c_str(),
	       quoted(longer).substr(0, 64).c_str());
}
int main()
{
	wild(std::string_view((const char *)16, 5), {1, 2}, std::string(100, 'x'));
	std::vector<std::string> words{"one", "two", "fifteen letters"};
	for (int i = 0; i < 4; i++) {
		strings(std::string(i * 9, 'a' + i), i ? "const" : std::string("n\0ul", 4), std::string_view("a view of it").substr(i));
		vectors(std::vector<int>(i, -i), {{i, 2}, {3, -4}}, &words, i ? std::make_unique<Point>() : nullptr);
		Record r{i, std::string(i * 10, 'z'), std::vector<int>(i, 1 << i), nullptr};
		record(&r);
	}
}
"""

RUST = """\
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Colour { Red = 1, Green = 2 }

#[inline(never)] pub fn words(a: i32, b: u64, c: bool, d: Colour) {
    println!("words a={} b={} c={} d={}", a, b, c, if d as u8 == 1 { "Red" } else { "Green" });
}
#[inline(never)] pub extern "C" fn platform(a: i32, b: *const u8, c: i64) {
    println!("platform a={} b={} c={}", a, if b.is_null() { "0x0" } else { "?" }, c);
}
#[inline(never)] pub fn changed(mut a: i32, b: i32) {
    println!("changed a={} b={}", a, b);
    a = b;
    std::hint::black_box(&mut a);
}
#[inline(never)] pub fn text(s: &str, n: u16) {
    println!("text s.length={} n={}", s.len(), n);
    std::hint::black_box(s);
    std::hint::black_box(n);
}
#[inline(never)] pub fn shown(s: &str, o: String, v: Vec<i32>, r: &String) {
    println!("s={:?}, o={:?}, v={}, *r={:?}", s, o, format!("{:?}", v).replace('[', "{").replace(']', "}"), r);
}
#[derive(Clone, Copy)] pub struct Triple { x: i64, y: i64, z: i64 }
#[inline(never)] pub fn many(a: i32, b: u64, c: bool, d: i64, e: i8, f: u16, g: i32, h: u64, i: bool, j: &str, k: Triple, l: &Triple) {
    println!("many a={} b={} c={} d={} e={} f={} g={} h={} i={} j.length={} k.x={} k.z={} l->y={}", a, b, c, d, e, f, g, h, i, j.len(), k.x, k.z, l.y);
}
#[inline(never)] pub fn slices(a: &[u16], b: &mut [i64]) {
    println!("a={}, b={}", format!("{:?}", a).replace('[', "{").replace(']', "}"), format!("{:?}", b).replace('[', "{").replace(']', "}"));
}
#[inline(never)] pub fn owned(s: String, v: Vec<i32>) {
    println!("owned s.vec.len={} v.len={}", s.len(), v.len());
}
fn main() {
    for i in 0..3i32 {
        words(-i, i as u64 + (1 << 40), i % 2 == 1, if i == 1 { Colour::Green } else { Colour::Red });
        platform(i, std::ptr::null(), -7);
        changed(i, 100 + i);
        text(&"abcdef"[..i as usize], 9);
        shown(&"abcdef"[..i as usize], "xy".repeat(i as usize), vec![-i; i as usize], &format!("{}", i));
        slices(&[1, 2, 3][..i as usize], &mut [-1, i as i64]);
        owned(format!("{}", i * 50), vec![1; i as usize]);
        let t = Triple { x: -1, y: i as i64, z: 3 << 40 };
        many(i, 2, i == 1, 4, 5, 6, -i, 8 + (1 << 40), i == 2, &"abc"[i as usize..], t, &t);
    }
}
"""

# Discriminants of their own, in niches of pointers, bools, chars and strings, negative ones, and
# none.
RUST_ENUMS = """\
#[derive(Debug, Clone, Copy)] pub struct Point { x: i32, y: i32 }
#[derive(Debug)] pub enum Shape { Circle { r: u32 }, Rect(u16, u64), Empty, At(Point) }
#[derive(Debug)] pub enum Niche { Str(String), Num(u32), Nil }
#[repr(u8)] #[derive(Debug)] pub enum Small { A(u8) = 5, B { z: u64 } = 200 }
#[repr(i16)] #[derive(Debug)] pub enum Below { A(u8) = -5, B = -1, C(i8) = 300 }
#[derive(Debug)] pub enum One { Only(u32) }
#[derive(Debug)] pub enum Bools { A(bool), B, C, D(Point) }
#[derive(Debug)] pub enum List { Cons(i32, Box<List>), End }

#[inline(never)] pub fn own(shape: &Shape, small: &Small, below: &Below, one: &One, number: &Option<i64>, result: &Result<u8, String>) {
    println!("*shape={:?}, *small={:?}, *below={:?}, *one={:?}, *number={:?}, *result={:?}", shape, small, below, one, number, result);
}
#[inline(never)] pub fn niches(niche: &Niche, nested: &Option<Option<bool>>, bools: &Bools, letter: &Option<u8>, text: &Option<String>, pair: &(Option<u16>, Shape)) {
    println!("*niche={:?}, *nested={:?}, *bools={:?}, *letter={:?}, *text={:?}, pair->__1={:?}", niche, nested, bools, letter, text, pair.1);
}
#[inline(never)] pub fn by_value(small: Option<u8>, pointer: Option<&u32>, list: &List) {
    println!("small={:?}, pointer={}, *list={}", small, match pointer { None => "None".to_string(), Some(p) => format!("Some({:p})", p) },
             match list { List::End => "List::End".to_string(), List::Cons(n, next) => format!("List::Cons({}, {:p})", n, *next) });
}
#[inline(never)] pub fn vector(shapes: Vec<Shape>) {
    println!("shapes={:?}", shapes);
}
fn main() {
    let eight = 8u32;
    for i in 0..4u32 {
        let shape = || match i { 0 => Shape::Circle { r: 3 }, 1 => Shape::Rect(65535, 1 << 40), 2 => Shape::Empty, _ => Shape::At(Point { x: -1, y: 2 }) };
        own(&shape(), &if i % 2 == 0 { Small::A(i as u8) } else { Small::B { z: 4 } },
            &match i { 0 => Below::A(1), 1 => Below::B, _ => Below::C(-3) }, &One::Only(i), &if i == 1 { None } else { Some(-5) },
            &if i < 2 { Ok(7) } else { Err("no".repeat(i as usize)) });
        niches(&match i { 0 => Niche::Nil, 1 => Niche::Num(9), n => Niche::Str("s".repeat(n as usize)) },
               &match i { 0 => None, 1 => Some(None), 2 => Some(Some(false)), _ => Some(Some(true)) },
               &match i { 0 => Bools::A(true), 1 => Bools::B, 2 => Bools::C, _ => Bools::D(Point { x: 1, y: 2 }) },
               &if i == 0 { None } else { Some(b'a') }, &if i == 0 { None } else { Some("text".to_string()) }, &(None, shape()));
        by_value(if i == 0 { None } else { Some(i as u8) }, if i == 0 { None } else { Some(&eight) },
                 &if i < 2 { List::End } else { List::Cons(-1, Box::new(List::End)) });
        vector((0..i).map(|_| shape()).collect());
    }
}
"""

# The discriminant is a member of the record: alone, in lists and ranges, negative, and of a part
# inside another.
ADA = """\
with Ada.Text_IO; use Ada.Text_IO;
procedure Records is
   type Kind is (Circle, Rect, Nothing, Many);
   type Shape (K : Kind := Nothing; Filled : Boolean := False) is record
      Id : Integer;
      case K is
         when Circle => Radius : Integer;
         when Rect | Many =>
            W, H : Integer;
            case Filled is
               when True => Colour : Integer;
               when False => null;
            end case;
         when others => null;
      end case;
   end record;
   type Level is range -100 .. 100;
   type Reading (L : Level := 0) is record
      case L is
         when -100 .. -50 | 50 .. 100 => Alarm : Integer;
         when -1 => Sign : Integer;
         when others => Plain : Long_Integer;
      end case;
   end record;
   procedure Shown (S : Shape; R : aliased in out Reading) with No_Inline;
   procedure Shown (S : Shape; R : aliased in out Reading) is
      function N (I : Long_Integer) return String is
         T : constant String := Long_Integer'Image (I);
      begin
         return (if T (1) = ' ' then T (2 .. T'Last) else T);
      end N;
      function Text_Of (S : Shape) return String is
        (case S.K is
            when Circle => "circle, .filled = " & N (Boolean'Pos (S.Filled)) & ", .id = " & N (Long_Integer (S.Id)) & ", .radius = " & N (Long_Integer (S.Radius)),
            when Nothing => "nothing, .filled = " & N (Boolean'Pos (S.Filled)) & ", .id = " & N (Long_Integer (S.Id)),
            when others => (if S.K = Rect then "rect" else "many") & ", .filled = " & N (Boolean'Pos (S.Filled)) & ", .id = " & N (Long_Integer (S.Id))
               & ", .w = " & N (Long_Integer (S.W)) & ", .h = " & N (Long_Integer (S.H))
               & (if S.Filled then ", .colour = " & N (Long_Integer (S.Colour)) else ""));
      function Text_Of (R : Reading) return String is
        (".l = " & N (Long_Integer (R.L)) &
         (case R.L is
            when -100 .. -50 | 50 .. 100 => ", .alarm = " & N (Long_Integer (R.Alarm)),
            when -1 => ", .sign = " & N (Long_Integer (R.Sign)),
            when others => ", .plain = " & N (R.Plain)));
   begin
      Put_Line ("*s={.k = " & Text_Of (S) & "}, *r={" & Text_Of (R) & "}");
   end Shown;
   A : aliased Reading := (-70, -7);
   B : aliased Reading := (-1, 1);
   C : aliased Reading := (60, 2);
   D : aliased Reading := (3, 2 ** 40);
begin
   Shown ((Circle, False, 1, 5), A);
   Shown ((Rect, True, 2, 6, 7, 8), B);
   Shown ((Many, False, 3, 9, 10), C);
   Shown ((Nothing, True, 4), D);
end Records;
"""

# main.lost has a parameter that is not described, and assigns one to the other without an
# instruction.
GO = """\
package main

import "fmt"
import "strings"

type Pair struct{ X, Y int32 }
type Mixed struct {
	A int8
	B int64
}
type Counter struct{ n int }

//go:noinline
func add(a int, b uint8, c int16) { fmt.Printf("add a=%d b=%d c=%d\\n", a, b, c) }

//go:noinline
func parts(p Pair, m Mixed, s string, v []int32) {
	fmt.Printf("parts p.X=%d p.Y=%d m.A=%d m.B=%d s.len=%d v.len=%d v.cap=%d\\n", p.X, p.Y, m.A, m.B, len(s), len(v), cap(v))
}

//go:noinline
func many(a, b, c, d, e, f, g, h, i, j int, k int8, l int64) {
	fmt.Printf("many a=%d b=%d i=%d j=%d k=%d l=%d\\n", a, b, i, j, k, l)
}

//go:noinline
func array(a [2]int, b [1]int, c bool) { fmt.Printf("array a[0]=%d a[1]=%d b[0]=%d\\n", a[0], a[1], b[0]) }

//go:noinline
func (c *Counter) grow(by int, deep int) {
	var room [256]int
	fmt.Printf("grow by=%d deep=%d\\n", by, deep)
	if deep > 0 {
		c.grow(by+1, deep-1)
	}
	room[by%256] = deep
	c.n += room[deep%256]
}

//go:noinline
func several(a int) (int, error) { return a, nil }

//go:noinline
func called(a int) (n int, ok bool, s []string) { return a, a > 1, nil }

var sink int

//go:noinline
func shown(s string, v []int32, w []string) {
	fmt.Printf("s=%q, v={%s}, w={%s}\\n", s, strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]"), strings.Trim(strings.ReplaceAll(fmt.Sprintf("%q", w), " ", ", "), "[]"))
}

//go:noinline
func lost(_ int, a, b int) {
	b = a
	for i := 0; i < a; i++ {
		sink += b
	}
}

func main() {
	for i := 0; i < 3; i++ {
		add(-i, uint8(200+i), int16(-300*i))
		parts(Pair{int32(i), 7}, Mixed{int8(-i), 1 << 40}, "hello"[:i], make([]int32, i, 9))
		many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, int8(-i), int64(i))
		array([2]int{i, 5}, [1]int{6}, true)
		shown("hello"[:i], make([]int32, i, 9), nil)
		lost(1, 2, 3)
		several(i)
		called(i)
	}
	done := make(chan bool)
	go func() { new(Counter).grow(1, 30); done <- true }()
	<-done
}
"""


def rust_program(level):
    need("rustc")
    out = os.path.join(folder(), "rust-" + level)
    source = os.path.join(folder(), "rust.rs")
    with open(source, "w", encoding="utf-8") as file:
        file.write(RUST)
    run("rustc", "-g", "-C", "opt-level=" + level, "-o", out, source, check=True)
    return out


def rust_enums(level):
    need("rustc")
    out, source = os.path.join(folder(), "enums-" + level), os.path.join(folder(), "enums.rs")
    with open(source, "w", encoding="utf-8") as file:
        file.write(RUST_ENUMS)
    run("rustc", "-g", "-C", "opt-level=" + level, "-o", out, source, check=True)
    return out


def as_cairn_writes(text):
    """What {:?} prints, as cairn does: members as in C, and the enum before the variant, but for
    those that Rust knows by themselves."""
    text = re.sub(r"Point \{", "{", text)
    text = re.sub(r"(\w+): ", r".\1 = ", text).replace("{ ", "{").replace(" }", "}").replace(
        "[", "{").replace("]", "}")
    for name, variants in {"Shape": "Circle Rect Empty At", "Niche": "Str Num Nil", "One":
                           "Only"}.items():
        text = re.sub(rf"\b({variants.replace(' ', '|')})\b", rf"{name}::\1", text)
    for member, name in {"small": "Small", "below": "Below", "bools": "Bools"}.items():
        text = re.sub(rf"\*{member}=", rf"*{member}={name}::", text)
    return text


def ada_program():
    need("gnatmake")
    where = os.path.join(folder(), "ada")
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, "records.adb"), "w", encoding="utf-8") as file:
        file.write(ADA)
    run("gnatmake", "-q", "-g", "records.adb", cwd=where, check=True)
    return os.path.join(where, "records")


def go_program(name, flags):
    need("go")
    out = os.path.join(folder(), "go-" + name)
    source = os.path.join(folder(), "go.go")
    with open(source, "w", encoding="utf-8") as file:
        file.write(GO)
    cache = dict(os.environ, GOCACHE=os.path.join(folder(), "go-cache"), GOFLAGS="",
                 GO111MODULE="off")
    run("go", "build", "-gcflags=" + flags, "-o", out, source, check=True, env=cache)
    return out


def libcxx_flags():
    """Of the headers and archives that scripts/deps.sh has unpacked."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = glob.glob(os.path.join(cache, "cairn-deps/libc++/usr/lib/llvm-*/include/c++/v1"))
    if not found:
        raise Skip("libc++ is not unpacked: scripts/deps.sh does that")
    archives = os.path.join(found[0], "../../../lib/")
    return ("-nostdinc++", "-isystem", found[0], "-nostdlib++", archives + "libc++.a",
            archives + "libc++abi.a", "-lpthread")


def cxx_program(compiler, *flags):
    need(compiler)
    out = os.path.join(folder(), "cxx-" + compiler + "".join(flags))
    source = os.path.join(folder(), "cxx.cpp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(CXX)
    if flags == ("-stdlib=libc++",):
        flags = libcxx_flags()
    r = run(compiler, "-std=c++17", "-g", "-O0",
            "-fstandalone-debug" if "clang" in compiler else "-g", "-o", out, source, *flags)
    if flags and r.status:
        raise Skip(f"{compiler} {' '.join(flags)}: {r.err.splitlines()[0]}")
    expect(r.status == 0, r)
    return out


def values_shown(path, probe, *options):
    """The values of each event as one text, and the lines that the program printed of the same."""
    need_root()
    events = path + ".events"
    r = cairn("trace", *options, "-o", events, "-c", path, probe)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(r.err.splitlines()[0])
    expect(r.status == 0, r)
    with open(events, encoding="utf-8") as file:
        rows = [line.split(": ", 1)[1].rstrip("\n") for line in file]
    first = rows[0].split("=", 1)[0] + "="
    return rows, [line for line in r.out.splitlines() if line.startswith(first)]


def said(out, name):
    """What the program printed of the calls of a function: for each its values by name."""
    lines = [line.split() for line in out.splitlines()]
    return [
        dict(word.split("=") for word in line[1:]) for line in lines if line and line[0] == name
    ]


def seen(path, function, names, options=()):
    """Values of each event, as texts, and the program's own output."""
    need_root()
    events = path + ".events"
    probe = f"{function}({', '.join(names)})" if names else function
    r = cairn("trace", "--no-sidecar", *options, "-o", events, "-c", path, probe)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(r.err.splitlines()[0])
    expect(r.status == 0, r)
    with open(events, encoding="utf-8") as file:
        rows = [line.split(": ", 1)[1].strip() for line in file if function in line]
    return [dict(item.split("=", 1) for item in row.split(", ")) for row in rows], r.out


def arguments(path, function, *options):
    """How each argument of the body's entry is known: its location, or the reason why it is not."""
    r = cairn("sites", "--no-sidecar", "--json", *options, path, function)
    expect(r.status == 0, r)
    site = [s for s in r.objects() if s.get("kind") == "out-of-line"][0]
    return {a["name"]: a.get("unavailable") or "known" for a in site["args"]}


def calls_of_go(events):
    """A function of Go that finds its stack too small, or is preempted there, begins once more: its
    site is passed twice, with the same arguments, and says that it may be."""
    return [e for i, e in enumerate(events) if not i or e != events[i - 1]]


def is_as_printed(path, function, names, options=(), calls_of=list):
    events, out = seen(path, function, names, options)
    told = said(out, function.split("::")[-1].split(".")[-1])
    # A site that is always passed twice would be a defect of its own.
    expect(told and len(events) < 2 * len(told), events, out)
    events = calls_of(events)
    expect(len(events) == len(told), events, out)
    for event, own in zip(events, told):
        expect({n: event[n] for n in own} == own, function, event, own)


def counted(path, probe, key):
    """Hits by a key."""
    r = cairn("trace", "--no-sidecar", "--json", "-o", path + ".rows", "--count", "--by", key,
              "-c", path, probe)
    expect(r.status == 0, r)
    with open(path + ".rows", encoding="utf-8") as file:
        rows = json.loads(file.readline())["rows"]
    return {row["by"][key]: row["count"] for row in rows}


def is_key(path, probe, names, told, condition, n):
    """Text is a key as it is printed, and @n calls meet the condition."""
    for name in names:
        wanted = collections.Counter(
            text.replace("\\000", "\0")
            for line in told for text in re.findall(re.escape(name) + r'="(.*?)"', line))
        found = counted(path, probe, name)
        expect(found == wanted and sum(found.values()) == len(told), name, found, told)
    hits = counted(path, f"{probe} if {condition}", "$site")
    expect(sum(hits.values()) == n, condition, hits)


@claim_each_of_many("g++", "clang++", "clang++ -stdlib=libc++")
def strings_and_vectors_of_cxx_are_what_the_program_prints(compiler):
    path = cxx_program(*compiler.split())
    sidecar = path + ".cairn"
    r = cairn("sidecar", path, "-o", sidecar)
    expect(r.status == 0, r)
    for probe in ("strings", "vectors(numbers, points, *words, owner)", "record(*r)"):
        for options in (("--no-sidecar",), ()):
            rows, told = values_shown(path, probe, *options)
            expect(rows == told and len(rows) == 4, rows, told)
        if probe == "strings":
            is_key(path, probe, ("value", "reference", "view"), told,
                   f'reference == "const" && value != "{"b" * 9}" && view != "view of it"', 1)
            is_key(path, probe, (), told, f'value == "{"d" * 27}"', 1)


@claim
def a_pointer_that_cannot_be_read_is_said_and_the_rest_is_shown():
    rows, told = values_shown(cxx_program("g++"), "wild", "--no-sidecar")
    expect(rows == told and len(rows) == 1, rows, told)


@claim
def of_long_strings_as_many_are_fetched_as_a_record_has_room_for():
    rows, told = values_shown(cxx_program("g++"), "strings", "--no-sidecar", "--str-len", "2000")
    expect(len(rows) == 4, rows)
    # The first is there, and the last is said to be missing.
    for row, own in zip(rows, told):
        expect(
            row.split(", ")[0] == own.split(", ")[0] and "bytes at 0x" in row
            and row.endswith("are not here>"), row, own)


@claim
def in_hexadecimal_the_struct_is_shown():
    rows, _ = values_shown(cxx_program("g++"), "strings(view:hex)", "--no-sidecar")
    expect(rows[0].startswith("view={._M_len = 0xc, ._M_str = 0x"), rows)


@claim
def strings_are_strings_in_json_and_arrays_arrays():
    path = cxx_program("g++")
    r = cairn("trace", "--no-sidecar", "--json", "-o", path + ".json", "-c", path, "record(*r)")
    if r.status != 0:
        raise Skip("no tracing here")
    with open(path + ".json", encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    shown = [e["args"]["*r"] for e in events if "args" in e]
    expect(
        shown == [{"id": i, "name": "z" * (i * 10), "sizes": [1 << i] * i, "at": "0x0"}
                  for i in range(4)], shown)


@claim
def strings_and_vectors_of_rust_are_what_the_program_prints():
    path = rust_program("0")
    expect(cairn("sidecar", path, "-o", path + ".cairn").status == 0)
    for probe in ("rust::slices", "rust::shown(s, o, v, *r)"):
        for options in (("--no-sidecar",), ()):
            rows, told = values_shown(path, probe, *options)
            expect(rows == told and len(rows) == 3, rows, told)
    is_key(path, "rust::shown", ("s", "o", "*r"), told, 'o == "xyxy" && s != "" && *r == "2"', 1)


@claim_each_of_many("0", "2")
def enums_of_rust_are_the_variants_that_the_program_prints(level):
    path = rust_enums(level)
    expect(cairn("sidecar", path, "-o", path + ".cairn").status == 0)
    own = ("shape", "small", "below", "one", "number", "result")
    niches = ("niche", "nested", "bools", "letter", "text")
    for function, names in (("own", own), ("niches", niches)):
        probe = f"enums::{function}({', '.join('*' + n for n in names)}{', pair->__1' if function == 'niches' else ''})"
        for options in (("--no-sidecar",), ()):
            rows, told = values_shown(path, probe, "--assume-unmodified", *options)
            told = [as_cairn_writes(line) for line in told]
            expect(rows == told and len(rows) == 4, rows, told)


@claim
def enums_of_rust_by_value_and_in_vectors_are_what_the_program_prints():
    path = rust_enums("0")
    for probe in ("enums::by_value(small, pointer, *list)", "enums::vector"):
        rows, told = values_shown(path, probe, "--no-sidecar")
        expect(rows == [as_cairn_writes(line) for line in told] and len(rows) == 4, rows, told)


@claim
def enums_of_rust_are_json_as_serde_writes_it():
    path = rust_enums("0")
    r = cairn("trace", "--no-sidecar", "--json", "-o", path + ".json", "-c", path,
              "enums::own(*shape, *below, *number)")
    if r.status != 0:
        raise Skip("no tracing here")
    with open(path + ".json", encoding="utf-8") as file:
        shown = [e["args"] for e in map(json.loads, file) if "args" in e]
    expect([e["*shape"] for e in shown] == [{"Circle": {"r": 3}}, {"Rect": [65535, 1 << 40]},
                                            "Empty", {"At": {"x": -1, "y": 2}}], shown)
    expect([e["*below"] for e in shown] == [{"A": 1}, "B", {"C": -3}, {"C": -3}], shown)
    expect([e["*number"] for e in shown] == [{"Some": -5}, "None", {"Some": -5}, {"Some": -5}],
           shown)


@claim
def records_of_ada_have_the_parts_that_their_discriminants_say():
    path = ada_program()
    expect(cairn("sidecar", path, "-o", path + ".cairn").status == 0)
    for options in (("--no-sidecar",), ()):
        rows, told = values_shown(path, "records__shown(*s, *r)", *options)
        # A Boolean is an enum of Ada's own.
        rows = [
            row.replace(".filled = false", ".filled = 0").replace(".filled = true", ".filled = 1")
            for row in rows
        ]
        expect(rows == told and len(rows) == 4, rows, told)


@claim
def strings_and_slices_of_go_are_what_the_program_prints():
    path = go_program("plain", "-N -l")
    rows, told = values_shown(path, "main.shown", "--no-sidecar")
    expect(calls_of_go(rows) == told and len(told) == 3 and len(rows) < 6, rows, told)
    is_key(path, "main.shown", ("s", ), told, 's == "he"', 1)


@claim
def arguments_of_rust_without_optimisation_are_what_the_prologue_stores():
    path = rust_program("0")
    for function, names in (("rust::words", ("a", "b", "c", "d")), ("rust::platform", ("a", "b",
                                                                                       "c")),
                            ("rust::changed", ("a", "b")), ("rust::text", ("s.length", "n")),
                            ("rust::many", (*"abcdefghi", "j.length", "k.x", "k.z",
                                            "l->y")), ("rust::owned", ("s.vec.len", "v.len"))):
        is_as_printed(path, function, names)


@claim
def what_rust_optimised_is_taken_only_on_request():
    path = rust_program("2")
    known = arguments(path, "rust::owned")
    expect(set(known.values()) == {"no-convention"}, known)
    r = cairn("sites", "--no-sidecar", path, "rust::owned")
    expect("--assume-unmodified" in r.out, r)
    expect(set(arguments(path, "rust::owned", "--assume-unmodified").values()) == {"known"})
    is_as_printed(path, "rust::owned", ("s.vec.len", "v.len"), ("--assume-unmodified",))


@claim_each_of_many("-N -l", "")
def arguments_of_go_are_where_its_convention_puts_them(flags):
    path = go_program("plain" if flags else "optimised", flags)
    for function, names in (("main.add", ("a", "b", "c")),
                            ("main.parts", ("p.X", "p.Y", "m.A", "m.B", "s.len", "v.len", "v.cap")),
                            ("main.many", ("a", "b", "i", "j", "k", "l")),
                            ("main.array", ("a[0]", "a[1]", "b[0]"))):
        is_as_printed(path, function, names, calls_of=calls_of_go)


@claim
def a_parameter_of_go_that_is_not_described_makes_those_after_it_doubtful():
    path = go_program("optimised", "")
    known = arguments(path, "main.lost")
    expect(set(known.values()) == {"may-have-changed"}, known)


@claim
def a_stack_of_go_that_grows_leaves_the_arguments():
    path = go_program("optimised", "")
    events, out = seen(path, "main.(*Counter).grow", ("by", "deep"))
    told = said(out, "grow")
    expect(calls_of_go(events) == told and len(told) == 31 and len(events) < 62, events, told)
    r = cairn("sites", "--no-sidecar", path, "main.(*Counter).grow")
    expect("inside a loop of the function" in r.out, r)


@claim
def results_of_go_are_not_arguments():
    path = go_program("optimised", "")
    r = cairn("sites", "--no-sidecar", path, "strconv.FormatInt")
    expect("~r" not in r.out and "string strconv.FormatInt(int64 i, int base)" in r.out, r)


@claim
def several_results_of_go_are_all_told():
    path = go_program("optimised", "")
    sidecar = path + ".results.cairn"
    expect(cairn("sidecar", path, "-o", sidecar).status == 0)
    for options in (("--no-sidecar",), ("--sidecar", sidecar)):
        r = cairn("sites", *options, path, "main.several", "main.called")
        expect("\n(int n, bool ok, []string s) main.called(int a)" in r.out, r)
        expect("(int, error) main.several(int a)" in r.out, r)


main()
