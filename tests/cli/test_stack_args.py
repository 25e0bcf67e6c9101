#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack --args from a sidecar: what a stripped program shows is what it showed with its debug
information."""

import json
import os
import re
import shutil

from claims import (BUILD, Running, cairn, claim, claim_each_of_many, expect, folder,
                    main, need, run, write)

C = r"""
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
struct two { long a; int b; };
struct big { long a[5]; int b; };
struct pair { double x, y; };
enum colour { RED, GREEN = 5 };
static volatile long sink;
static int ends[2];
__attribute__((noinline)) static long leaf(struct two t, double d, float f, int n, struct pair p, const char *s, enum colour c,
					   long on, long the, long stack, short h)
{
	char byte;
	sink += t.a + (long)d + (long)f + (long)p.x + *s + c + on + the + stack + h;
	write(1, "r\n", 2);
	sink += read(ends[0], &byte, 1);
	return sink + n;
}
static inline __attribute__((always_inline)) long mid(struct big b, int n, _Bool x)
{
	n++;
	return leaf((struct two){b.a[0], n}, n * 1.5, (float)n, x ? n : -n, (struct pair){n, 2}, "text", x ? RED : GREEN, n + 1, n + 2,
		    n + 3, (short)n) + b.b;
}
__attribute__((noinline)) static long outer(const char *s, int n, long unused)
{
	struct big b = {{n, 2, 3}, 4};
	long r = n > 100 ? mid(b, n + 7, 0) : mid(b, n, n & 1);
	return r + *s;
}
__attribute__((noinline)) static long deep(int n, void *left) { return n ? deep(n - 1, left) + 1 : outer(left, n + 1, 7); }
static int compare(const void *a, const void *b) { sink += deep(3, (void *)"left"); return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv)
{
	int numbers[] = {3, 1, argc};
	prctl(PR_SET_PDEATHSIG, 9);
	sink += pipe(ends);
	qsort(numbers, 3, sizeof(int), compare);
	return sink == 1;
}
"""

CXX = r"""
#include <string>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>
static volatile long sink;
static int ends[2];
struct point { double x, y; };
class shape {
public:
	explicit shape(int n) : sides(n) {}
	virtual ~shape() {}
	virtual long area(const std::vector<int> &v, std::string name, point p) const = 0;
	int sides;
};
class square : public shape {
public:
	square() : shape(4) {}
	__attribute__((noinline)) long area(const std::vector<int> &v, std::string name, point p) const override
	{
		char c;
		write(1, "r\n", 2);
		return read(ends[0], &c, 1) + (long)v.size() + (long)name.size() + (long)p.x + sides;
	}
};
template <typename T> static inline __attribute__((always_inline)) T twice(T v, const shape &s)
{
	return v + s.area({1, 2, 3}, "a name that is too long for the object itself", {1.5, 2.5});
}
namespace ns {
__attribute__((noinline)) long run(const shape *s, bool flag, unsigned char c, int &&moved) { return twice<long>(c, *s) + flag + moved; }
}
int main(int argc, char **argv)
{
	square s;
	prctl(PR_SET_PDEATHSIG, 9);
	sink = pipe(ends);
	auto call = [&](int n) { return ns::run(&s, n > 0, 'c', n + 1); };
	sink += call(argc);
	return sink == 0;
}
"""

RUST = r"""
use std::io::Write;
pub enum Shape { Square(u32), Circle { radius: f64 } }
#[derive(Clone, Copy)]
pub struct Pair { a: u64, b: u8 }
#[inline(never)]
fn leaf(shape: &Shape, pair: Pair, text: &str, numbers: &[i32], flag: bool) -> u64 {
    println!("r");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1000));
    let n = 0;
    let of = match shape { Shape::Square(n) => *n as f64, Shape::Circle { radius } => *radius };
    n + of as u64 + pair.a + pair.b as u64 + text.len() as u64 + numbers.len() as u64 + flag as u64
}
#[inline(always)]
fn middle(shape: Shape, n: u64) -> u64 { leaf(&shape, Pair { a: n, b: 7 }, "text", &[1, 2, 3], n > 1) }
#[inline(never)]
fn outer(n: u64, name: Option<&str>) -> u64 { middle(Shape::Square(4), n) + name.map_or(0, |s| s.len() as u64) }
fn main() { std::process::exit((outer(std::env::args().count() as u64, Some("name")) & 1) as i32) }
"""

FLAGS = ("-g", "-w", "-Wl,--build-id")
PROGRAMS = {
    **{
        f"{compiler}{level}{more}": ((compiler, level, *more.split(), *FLAGS), "c", C)
        for compiler in ("gcc", "clang") for level, more in (("-O0", ""), ("-O2", ""), ("-O2", " -fomit-frame-pointer"))
    }, "gcc-dwarf4": (("gcc", "-O2", "-gdwarf-4", *FLAGS), "c", C), "gcc-lto":
    (("gcc", "-O2", "-flto", *FLAGS), "c", C), "gcc-split":
    (("gcc", "-O2", "-gsplit-dwarf", *FLAGS), "c", C), "clang-split":
    (("clang", "-O2", "-gsplit-dwarf", *FLAGS), "c", C), "g++-O0":
    (("g++", "-O0", *FLAGS), "cc", CXX), "g++-O2": (("g++", "-O2", *FLAGS), "cc", CXX),
    "clang++-O2": (("clang++", "-O2", *FLAGS), "cc",
                   CXX), "rustc-O0": (("rustc", "-g", "-C", "link-arg=-Wl,--build-id"), "rs", RUST),
    "rustc-O2": (("rustc", "-g", "-O", "-C", "link-arg=-Wl,--build-id"), "rs", RUST),
}


def program(name, path=None):
    """The program, built in a folder of its own, as split units leave files there."""
    command, end, text = PROGRAMS[name]
    need(command[0])
    where = os.path.join(folder(), name.replace(" ", "").replace("+", "x"))
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, "program")
    if not os.path.exists(path + ".whole"):
        source = write(os.path.basename(where) + "." + end, text)
        r = run(*command, source, "-o", path, cwd=where)
        expect(not r.status, r)
        shutil.copy(path, path + ".whole")
    shutil.copy(path + ".whole", path)
    return path


class Waiting(Running):
    """The program at fixed addresses, with the same stack each time, waiting in read(2) or
    clock_nanosleep(2)."""

    def __init__(self, path):
        super().__init__("setarch", "-R", path, env={"PATH": "/bin"})
        expect(self.process.stdout.readline().strip() == "r")
        for _ in range(10000):
            with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
                if file.read().split()[0] in ("0", "230"):
                    return
        raise AssertionError("it does not wait")


def shown(path, env=None):
    """(text, JSON) of the program's stack, without what differs from process to process; and what
    was said."""
    with Waiting(path) as p:
        text = cairn("stack", "--args", p.pid, env=env)
        objects = cairn("stack", "--args", "--json", p.pid, env=env)
    expect(text.status == objects.status == 0, text, objects)
    told = [json.loads(line) for line in objects.out.splitlines()]
    for thread in told:
        for key in ("tid", "pid", "stopped_ns"):
            thread.pop(key, None)
    lines = [line for line in text.out.splitlines() if line.startswith("#")]
    return (lines, told), text.err


def of_program(lines):
    """Frames of the program itself that have arguments."""
    return [line for line in lines if re.search(r" \(\S+=", line) and folder() in line]


@claim_each_of_many(*PROGRAMS)
def a_stripped_program_shows_the_same_parameters_from_its_sidecar(name):
    path = program(name)
    before, _ = shown(path)
    expect(len(of_program(before[0])) > 2, before[0])
    cairn("sidecar", "--args", path, check=True)
    with_both, _ = shown(path)
    expect(with_both == before, before, with_both)
    run("strip", path, check=True)
    now, said = shown(path)
    os.remove(path + ".cairn")
    expect(now == before and "program: no arguments" not in said, before, now, said)


@claim_each_of_many(*PROGRAMS)
def at_every_instruction_the_sidecar_says_what_the_debug_information_says(name):
    r = run(os.path.join(BUILD, "tests/truth/args_from_sidecar"), program(name),
            "40" if name.startswith("rustc") else "1", seconds=240)
    expect(
        r.status == 0 and " 0 differences" in r.out
        and int(re.search(r"parameters \((\d+) available\)", r.out)[1]) > 20, r)


@claim
def the_cache_has_one_when_it_is_asked_for():
    path = program("gcc-O2")
    env = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder(), "cache-args")}
    env.pop("CAIRN_CACHE", None)
    before, _ = shown(path)
    cairn("sidecar", "--keep", path, check=True, env=env)
    cairn("sidecar", "--keep", "--args", path, check=True, env=env)
    kept = [
        os.path.join(env["XDG_CACHE_HOME"], "cairn", name)
        for name in os.listdir(os.path.join(env["XDG_CACHE_HOME"], "cairn"))
        if name.endswith(".cairn")
    ]
    expect(len(kept) == 1 and ".cairn.dwarf" in run("readelf", "-SW", kept[0]).out, kept)
    run("strip", path, check=True)
    now, _ = shown(path, env)
    expect(now == before, before, now)


@claim
def a_sidecar_without_them_says_how_to_make_one_that_has_them():
    path = program("gcc-O2")
    cairn("sidecar", path, check=True)
    expect(".cairn.dwarf" not in run("readelf", "-SW", path + ".cairn").out)
    run("strip", path, check=True)
    now, said = shown(path)
    os.remove(path + ".cairn")
    expect(now[0] and not of_program(now[0]), now[0])
    lines = [line for line in said.splitlines() if "program: no arguments: " in line]
    expect(len(lines) == 1 and "cairn sidecar --args FILE" in lines[0], said)


@claim
def what_has_no_code_or_no_frames_is_refused_with_its_reason():
    path = program("gcc-O2")
    debug, there = path + ".debug", path + ".out"
    run("objcopy", "--only-keep-debug", path, debug, check=True)
    r = cairn("sidecar", "--args", debug, "-o", there)
    expect(r.status == 3 and "name the program" in r.err and not os.path.exists(there), r)
    r = run("gcc", "-g", "-c", "-o", path + ".o", write("object.c", "int f(int a) { return a; }\n"),
            check=True)
    r = cairn("sidecar", "--args", path + ".o", "-o", there)
    expect(r.status and "object file" in r.err and not os.path.exists(there), r)
    r = cairn("sidecar", "--args", "--lines", path, "-o", there)
    expect(r.status == 2 and not os.path.exists(there), r)


@claim
def any_number_of_threads_makes_the_same_file():
    path = program("g++-O2")
    files = []
    for jobs in ("1", "5"):
        cairn("sidecar", "--args", path, "-j", jobs, "-o", path + jobs, check=True)
        with open(path + jobs, "rb") as file:
            files.append(file.read())
    expect(files[0] == files[1], len(files[0]), len(files[1]))
    cairn("sidecar", "--check", path + "1", path, check=True)


@claim
def everything_else_in_it_is_as_without():
    path = program("gcc-O2")
    sizes = []
    for words in ((), ("--args",)):
        r = cairn("sidecar", *words, path, "-o", path + ".x", "--json", check=True)
        sizes.append({s["name"]: (s["size"], s["n"]) for s in json.loads(r.out)["sections"]})
    expect(set(sizes[1]) - set(sizes[0]) == {".cairn.dwarf"}, sizes)
    expect(all(sizes[0][name] == sizes[1][name] for name in sizes[0]), sizes)


main()
