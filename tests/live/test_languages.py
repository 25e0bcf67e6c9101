#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of functions in C++, Rust and Go, held against what the programs print themselves."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from claims import Skip, cairn, claim, claim_each, expect, folder, main, need, need_root, run  # noqa: E402

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
    }
}
"""

# main.lost has a parameter that is not described, and assigns one to the other without an instruction.
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


def go_program(name, flags):
    need("go")
    out = os.path.join(folder(), "go-" + name)
    source = os.path.join(folder(), "go.go")
    with open(source, "w", encoding="utf-8") as file:
        file.write(GO)
    cache = dict(os.environ, GOCACHE=os.path.join(folder(), "go-cache"), GOFLAGS="", GO111MODULE="off")
    run("go", "build", "-gcflags=" + flags, "-o", out, source, check=True, env=cache)
    return out


def cxx_program(compiler):
    need(compiler)
    out = os.path.join(folder(), "cxx-" + compiler)
    source = os.path.join(folder(), "cxx.cpp")
    with open(source, "w", encoding="utf-8") as file:
        file.write(CXX)
    run(compiler, "-std=c++17", "-g", "-O0", "-fstandalone-debug" if "clang" in compiler else "-g", "-o", out, source, check=True)
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
    return [dict(word.split("=") for word in line[1:]) for line in lines if line and line[0] == name]


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
    site = [s for s in r.objects() if s.get("kind") == "entry"][0]
    return {a["name"]: a.get("unavailable") or "known" for a in site["args"]}


def is_as_printed(path, function, names, options=()):
    events, out = seen(path, function, names, options)
    told = said(out, function.split("::")[-1].split(".")[-1])
    expect(told and len(events) == len(told), events, out)
    for event, own in zip(events, told):
        expect({n: event[n] for n in own} == own, function, event, own)


@claim_each("g++", "clang++")
def strings_and_vectors_of_cxx_are_what_the_program_prints(compiler):
    path = cxx_program(compiler)
    sidecar = path + ".cairn"
    r = cairn("pack", path, "-o", sidecar)
    expect(r.status == 0, r)
    for probe in ("strings", "vectors(numbers, points, *words, owner)", "record(*r)"):
        for options in (("--no-sidecar",), ()):
            rows, told = values_shown(path, probe, *options)
            expect(rows == told and len(rows) == 4, rows, told)


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
        expect(row.split(", ")[0] == own.split(", ")[0] and "bytes at 0x" in row and row.endswith("are not here>"), row, own)


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
    expect(shown == [{"id": i, "name": "z" * (i * 10), "sizes": [1 << i] * i, "at": "0x0"} for i in range(4)], shown)


@claim
def strings_and_vectors_of_rust_are_what_the_program_prints():
    path = rust_program("0")
    expect(cairn("pack", path, "-o", path + ".cairn").status == 0)
    for probe in ("rust::shown(s, o, v, *r)", "rust::slices"):
        for options in (("--no-sidecar",), ()):
            rows, told = values_shown(path, probe, *options)
            expect(rows == told and len(rows) == 3, rows, told)


@claim
def strings_and_slices_of_go_are_what_the_program_prints():
    path = go_program("plain", "-N -l")
    rows, told = values_shown(path, "main.shown", "--no-sidecar")
    expect(rows == told and len(rows) == 3, rows, told)


@claim
def arguments_of_rust_without_optimisation_are_what_the_prologue_stores():
    path = rust_program("0")
    for function, names in (("rust::words", ("a", "b", "c", "d")), ("rust::platform", ("a", "b", "c")),
                            ("rust::changed", ("a", "b")), ("rust::text", ("s.length", "n")),
                            ("rust::owned", ("s.vec.len", "v.len"))):
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


@claim_each("-N -l", "")
def arguments_of_go_are_where_its_convention_puts_them(flags):
    path = go_program("plain" if flags else "optimised", flags)
    for function, names in (("main.add", ("a", "b", "c")),
                            ("main.parts", ("p.X", "p.Y", "m.A", "m.B", "s.len", "v.len", "v.cap")),
                            ("main.many", ("a", "b", "i", "j", "k", "l")),
                            ("main.array", ("a[0]", "a[1]", "b[0]"))):
        is_as_printed(path, function, names)


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
    # Where the stack grew the place was passed twice, with the same arguments, and the place says that it may be.
    distinct = [e for i, e in enumerate(events) if not i or e != events[i - 1]]
    expect(distinct == told and len(told) == 31, events, told)
    r = cairn("sites", "--no-sidecar", path, "main.(*Counter).grow")
    expect("its own code leads back here" in r.out, r)


@claim
def results_of_go_are_not_arguments():
    path = go_program("optimised", "")
    r = cairn("sites", "--no-sidecar", path, "strconv.FormatInt")
    expect("~r" not in r.out and "string strconv.FormatInt(int64 i, int base)" in r.out, r)


main()
