#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A sidecar has the types of the debug information: all of them, through members and pointers, and
every verb prints the same of them."""

import json
import os
import shutil
import time

from claims import (BUILD, IS_SANITIZED, Skip, cairn, claim, claim_each, claim_each_of_many, expect,
                    folder, main, need, need_root, run)

# Types without a name of equal kind and size, and all that a struct in C can have.
UNNAMED = """\
#include <stdio.h>
typedef struct { int x, y; } pt;
typedef struct { short lo, hi; char tag[4]; } tg;
typedef enum { A_zero, A_one, A_two } alpha;
typedef enum { B_never, B_maybe, B_always = -3 } beta;
typedef union { int i; float f; } ua;
typedef union { unsigned u; char c[4]; } ub;
typedef float v4 __attribute__((vector_size(16)));
struct list { struct list *next; struct { pt at; } here; struct { tg at; } there; union { alpha a; beta b; }; };
struct tail0 { int n; int data[0]; };
struct tail1 { int n; int data[]; };
struct bits { unsigned a : 3, b : 5; long c : 40; _Bool d : 1; };
struct __attribute__((packed)) packed { char c; long l; } ;
struct __attribute__((aligned(64))) aligned { int v; struct packed p __attribute__((aligned(32))); };
struct odd { _Atomic int a; v4 v; _Complex double z; int (*f)(const char *, ...); int (*g)(); char *const *volatile s; pt m[2][3]; };
struct forward;
#define USE(name, type) __attribute__((noinline)) void name(type *p) { asm volatile("" :: "r"(p) : "memory"); }
USE(sa, pt) USE(sb, tg) USE(sc, ua) USE(sd, ub) USE(se, struct list) USE(sf, struct tail0) USE(sg, struct tail1)
USE(sh, struct bits) USE(si, struct aligned) USE(sj, struct odd) USE(sk, struct forward)
__attribute__((noinline)) void fa(alpha a) { asm volatile("" :: "r"(a)); }
__attribute__((noinline)) void fb(beta b) { asm volatile("" :: "r"(b)); }
static inline __attribute__((always_inline)) void inlined(tg *t, beta b) { asm volatile("" :: "r"(t), "r"(b) : "memory"); }
static pt a = {1, 2}; static tg b = {3, 4, "abc"}; static ua c = {5}; static ub d = {6};
static struct list e; static struct tail0 f; static struct tail1 g; static struct bits h; static struct aligned i; static struct odd j;
int main(void)
{
	sa(&a); sb(&b); sc(&c); sd(&d); se(&e); sf(&f); sg(&g); sh(&h); si(&i); sj(&j); sk(0);
	fa(A_one); fb(B_always); fa(A_zero); fb(B_never); inlined(&b, B_maybe);
	return 0;
}
"""

# What BTF cannot say of C++.
CLASSES = """\
#include <cstdint>
#include <string>
#include <vector>
#include <memory>
class K { public: alignas(32) char c; int x; void (*f)(); };
struct alignas(64) A { int v; K k; };
namespace n { class Q; struct R { Q *q; A a; }; class Q { int z; protected: static int s; }; }
namespace { struct Hidden { short h; }; }
class Base { public: virtual ~Base() {} int base; };
class Left : public virtual Base { public: int left; };
class Right : private virtual Base { public: int right; };
class Both : public Left, protected Right { public: int both; int &ref; int &&rref; int Both::*member; int (Both::*method)(long);
	Both(int &r) : ref(r), rref(static_cast<int &&>(r)), member(nullptr), method(nullptr) {} };
struct Empty {};
struct Derived : Empty { int d; enum class E : uint8_t { one = 1, last = 255 } e; union { int i; float f; }; };
template <typename T, int N> struct Box { T value[N]; Box<T *, N> *next; decltype(nullptr) none; char16_t c16; bool b; };
struct Local { int outer; };
#define KEEP(p) asm volatile("" :: "r"(p) : "memory")
__attribute__((noinline)) int use(n::R *r, n::Q *q) { KEEP(q); return r->a.v; }
__attribute__((noinline)) int all(Both *b, Derived &d, Box<const char *, 3> &&x, Hidden *h) { KEEP(b); KEEP(&d); KEEP(&x); KEEP(h); return d.d; }
__attribute__((noinline)) size_t text(std::string *s, std::vector<std::unique_ptr<Derived>> &v) { KEEP(s); return v.size(); }
__attribute__((noinline)) int local(int k) { struct Local { short inner; } l = {(short)k}; KEEP(&l); return l.inner; }
static inline __attribute__((always_inline)) int inlined(const Derived &d, Derived::E e) { KEEP(&d); return d.d + (int)e; }
int main()
{
	n::R r{}; n::Q q; int i = 0; Both b(i); Derived d{}; Hidden h{}; Local l{};
	std::string s; std::vector<std::unique_ptr<Derived>> v;
	KEEP(&l);
	return use(&r, &q) + all(&b, d, Box<const char *, 3>{}, &h) + (int)text(&s, v) + local(1) + inlined(d, d.e);
}
"""

# One name that three units mean differently, and one that some only declare.
FIRST = """\
struct thing { int first, second; };
struct shared { struct thing *t; struct known *k; };
struct known;
void keep(void *p);
__attribute__((noinline)) int use(struct thing *t, struct shared *s) { keep(s); return t->second; }
int other(void); int third(void);
int main(void) { struct thing t = {1, 2}; struct shared s = {&t, 0}; return use(&t, &s) + other() + third(); }
"""
SECOND = """\
struct thing { short a, b, c, d; };
struct known { int x; };
struct shared { struct thing *t; struct known *k; };
void keep(void *p) { asm volatile("" :: "r"(p) : "memory"); }
__attribute__((noinline)) int more(struct thing *t, struct shared *s) { keep(s); return t->d; }
int other(void) { struct known k = {1}; struct thing t = {1, 2, 3, 4}; struct shared s = {&t, &k}; return more(&t, &s); }
"""
THIRD = """\
struct shared { struct thing *t; struct known *k; };
extern "C" { void keep(void *p); int third(void); }
__attribute__((noinline)) static int look(struct shared *s) { keep(s); return 1; }
int third(void) { struct shared s = {0, 0}; return look(&s); }
"""

RUST = """\
use std::collections::HashMap;
#[derive(Debug, Clone)] pub enum Shape { Circle(f64), Rect { w: u32, h: u32 }, Empty }
#[repr(i8)] pub enum Signed { Low(u16) = -128, High { v: i64 } = 127, Zero = 0 }
pub enum Niche { Text(String), Number(u32), Nothing }
pub struct Part<T> { a: T, b: Vec<T>, s: String, o: Option<Box<Shape>>, pair: (u8, u64), n: Option<Niche>, g: Signed }
#[inline(never)] pub fn area(s: &Shape, p: &Part<u16>, m: &HashMap<String, Shape>, t: &str) -> f64 {
    println!("{:?} {} {} {} {}", s, p.a, m.len(), t, p.pair.1);
    match s { Shape::Circle(r) => *r, Shape::Rect { w, h } => (*w * *h) as f64, Shape::Empty => 0.0 }
}
fn main() {
    let p = Part { a: 1u16, b: vec![1, 2], s: "x".into(), o: Some(Box::new(Shape::Empty)), pair: (1, 2), n: Some(Niche::Number(1)), g: Signed::High { v: 1 } };
    let mut m = HashMap::new();
    m.insert("k".to_string(), Shape::Rect { w: 1, h: 2 });
    println!("{} {} {} {}", area(&Shape::Circle(1.0), &p, &m, "t"), p.b.len(), p.s, p.o.is_some());
}
"""

ADA = """\
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
         when others => Plain : Long_Integer;
      end case;
   end record;
   procedure One (S : Shape; R : Reading) is begin if S.Id < 0 and R.L = 1 then raise Program_Error; end if; end One;
   procedure Two (S : in out Shape; N : Integer) is begin S.Id := N; end Two;
   procedure Three (R : in out Reading; K : Kind) is begin if K = Rect then R := (1, 2); end if; end Three;
   A : Shape := (Circle, False, 1, 5);
   B : Reading := (-1, 1);
begin
   One (A, B); Two (A, 3); Three (B, Rect); Two (A, 4);
end Records;
"""

COMPILERS = {"gcc": "g++", "clang": "clang++"}


def source(name, text):
    path = os.path.join(folder(), name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def built(name, texts, compiler, *flags):
    """A program of one text or several, each with the compiler of its language."""
    need(compiler)
    need(COMPILERS[compiler])
    flags = ("-g", "-Wl,--build-id", *(flags or ("-O2",)))
    objects, path = [], os.path.join(folder(), name)
    for i, (suffix, text) in enumerate(texts):
        by = COMPILERS[compiler] if suffix == "cc" else compiler
        objects.append(os.path.join(folder(), f"{name}{i}.o"))
        run(by, *(f for f in flags if not f.startswith("-Wl")), "-c",
            source(f"{name}{i}.{suffix}", text), "-o", objects[-1], check=True)
    run(COMPILERS[compiler], *flags, "-o", path, *objects, check=True)
    return path


def rust(name):
    """Debian's compiler, or a newer one."""
    need("rustc")
    path = os.path.join(folder(), name)
    r = run("rustc", "-g", "-O", "--edition", "2021", "-C", "link-arg=-Wl,--build-id", "-o", path,
            source(name + ".rs", RUST))
    if r.status:
        raise Skip("rustc does not work here: " + r.err.strip()[-200:])
    return path


def ada(name):
    need("gnatmake")
    where = os.path.join(folder(), name + ".built")
    os.makedirs(where)
    with open(os.path.join(where, "records.adb"), "w", encoding="utf-8") as file:
        file.write(ADA)
    run("gnatmake", "-q", "-g", "records.adb", "-largs", "-Wl,--build-id", cwd=where, check=True)
    path = os.path.join(folder(), name)
    shutil.copy(os.path.join(where, "records"), path)
    return path


def copied(name, path):
    if not os.path.exists(path):
        raise Skip(f"{path} is not there")
    to = os.path.join(folder(), name)
    shutil.copy(path, to)
    return to


C, CC, ALL = [("c", UNNAMED)], [("cc", CLASSES)], [("c", FIRST), ("c", SECOND), ("cc", THIRD)]
PROGRAMS = {
    "c-gcc":
    lambda n: built(n, C, "gcc"), "c-clang":
    lambda n: built(n, C, "clang"), "c-gcc-O0":
    lambda n: built(n, C, "gcc", "-O0"), "c-gcc-dwarf4":
    lambda n: built(n, C, "gcc", "-O2", "-gdwarf-4"), "c-gcc-type-units":
    lambda n: built(n, C, "gcc", "-O2", "-fdebug-types-section"), "c-clang-dwarf4":
    lambda n: built(n, C, "clang", "-O1", "-gdwarf-4"), "cc-g++":
    lambda n: built(n, CC, "gcc"), "cc-clang++":
    lambda n: built(n, CC, "clang"), "cc-g++-type-units":
    lambda n: built(n, CC, "gcc", "-O1", "-gdwarf-4", "-fdebug-types-section"), "cc-clang++-O0":
    lambda n: built(n, CC, "clang", "-O0"), "cc-g++-lto":
    lambda n: built(n, CC, "gcc", "-O2", "-flto"), "units-gcc":
    lambda n: built(n, ALL, "gcc"), "units-clang":
    lambda n: built(n, ALL, "clang"), "units-gcc-lto":
    lambda n: built(n, ALL, "gcc", "-O2", "-flto"), "mixed-gcc":
    lambda n: built(n, [("c", UNNAMED),
                        ("cc", CLASSES.replace("int main", "int main2"))], "gcc"), "mixed-clang":
    lambda n: built(n, [("cc", CLASSES), ("c", UNNAMED.replace("int main", "int main2"))], "clang"),
    "rust":
    rust, "ada":
    ada, "example-client":
    lambda n: copied(n, os.path.join(BUILD, "examples/client")), "example-server":
    lambda n: copied(n, os.path.join(BUILD, "examples/server")), "libc":
    lambda n: copied(n, "/lib/x86_64-linux-gnu/libc.so.6"), "cairn":
    lambda n: copied(n, os.path.join(BUILD, "cairn")),
}
# Of these the verbs print much, and many types are like those of the others.
LARGE = ("rust", "libc", "cairn")


def environment(cache="off"):
    return {**os.environ, "XDG_CACHE_HOME": os.path.join(folder(), "xdg"), "CAIRN_CACHE": cache}


def packed(program):
    """The program's path, with a sidecar that is not beside it."""
    path, sidecar = os.path.join(folder(), program), os.path.join(folder(),
                                                                  program + ".types.cairn")
    if not os.path.exists(path):
        path = PROGRAMS[program](program)
    if not os.path.exists(sidecar):
        r = cairn("sidecar", path, "-o", sidecar)
        if r.status and "no debug information" in r.err + r.out or "neither debug information" in r.err:
            raise Skip(f"{program} has no debug information here")
        expect(not r.status, r)
    return path, sidecar


@claim_each_of_many(*PROGRAMS)
def each_type_of_each_function_is_the_one_of_the_debug_information(program):
    path, sidecar = packed(program)
    r = run(os.path.join(BUILD, "tests/truth/sidecar_types"), path, sidecar)
    expect(r.status == 0 and r.out.endswith(" 0 differences\n"), r)
    expect(int(r.out.split()[0]) > 10, r)
    cairn("sidecar", "--check", sidecar, check=True)


def probes(path):
    """Each function with what its pointers lead to, as far as that can be had."""
    functions = {}
    for o in cairn("sites", path, "--json", "--sites", env=environment()).objects():
        if o.get("kind") == "out-of-line" and o["function"].isidentifier():
            functions[o["function"]] = [
                a["name"] for a in o["args"] if a["name"] and a["name"].isidentifier()
            ]
    for name, args in sorted(functions.items())[:5 if IS_SANITIZED else 40]:
        yield name
        for arg in args:
            yield f"{name}({arg})"
            yield f"{name}(*{arg})"


def same(program, path, sidecar, words, told):
    """The answer from @sidecar; @words with None where the file stands."""
    before = cairn(*(path if w is None else w for w in words), env=environment())
    now = cairn(*(sidecar if w is None else w for w in words), env=environment())
    plain = [(r.status, r.out.replace(os.path.basename(sidecar), os.path.basename(path)))
             for r in (before, now)]
    expect(plain[0] == plain[1], program, words, before, now)
    told[words[0]] = told.get(words[0], 0) + len(before.out)


@claim_each_of_many(*(p for p in PROGRAMS if p not in LARGE))
def every_verb_prints_the_same_of_types_from_the_sidecar(program):
    path, sidecar = packed(program)
    told, zeroes = {}, source("zeroes", "\\0" * 4096)
    for words in (("layout", None), ("layout", None, "--json"), ("layout", None, "--expand"),
                  ("layout", None, "*"), ("layout", None, "--sizes"), ("layout", None, "--lint"),
                  ("layout", None, "*", "--abi", "i386")):
        same(program, path, sidecar, words, told)
    names = [
        o["name"]
        for o in cairn("layout", path, "*", "--json", env=environment()).objects()
        if o.get("name")
    ]
    for name in names[:12]:
        if IS_SANITIZED and told.get("decode") and told.get("bind"):
            break
        same(program, path, sidecar, ("decode", None, name, zeroes), told)
        same(program, path, sidecar, ("decode", None, name, zeroes, "--json"), told)
        same(program, path, sidecar, ("bind", "--lang", "c", None, name), told)
    expect(told["layout"] > 1000 and told["decode"] > 100 and told["bind"] > 100, told)


@claim_each_of_many(*(p for p in PROGRAMS if p not in LARGE and p != "libc"))
def sites_and_fetched_values_are_the_same_from_the_sidecar(program):
    path, sidecar = packed(program)
    asked = list(probes(path))
    for words in (("sites", "--sites"), ("sites", "--json", "--sites"), ("sites", "*"),
                  ("sites", "*", "--json"), ("sites", "--hazards")):
        before = cairn(words[0], path, *words[1:], env=environment())
        now = cairn(words[0], path, *words[1:], "--sidecar", sidecar, env=environment())
        expect((before.status, before.out) == (now.status, now.out), words, before, now)
    for probe in asked:
        words = ("trace", "--dry-run", "-v", "--best-effort", "-c", path, probe)
        before = cairn(*words, "--no-sidecar", env=environment())
        now = cairn(*words, "--sidecar", sidecar, env=environment())
        expect((before.status, before.out) == (now.status, now.out), probe, before, now)
    expect(len(asked) > 3, asked)


def contents(*paths):
    """Bytes of each file; None where there is none."""
    found = []
    for path in paths:
        found.append(None)
        if os.path.exists(path):
            with open(path, "rb") as file:
                found[-1] = file.read()
    return found


@claim_each("c-gcc", "c-clang-dwarf4", "c-gcc-type-units", "cc-g++", "cc-clang++", "units-gcc-lto",
            "mixed-gcc", "rust", "ada")
def btf_encode_writes_the_same_from_a_sidecar(program):
    path, _ = packed(program)
    sidecar, out = path + ".btf.cairn", path + ".encoded"
    cairn("sidecar", "--btf-inline", path, "-o", sidecar, check=True)
    cairn("btf", "encode", path, "-o", out, env=environment(), check=True)
    told = contents(out, out + ".inline")
    expect(told[0], told)
    for words in ((sidecar,), (path, "--sidecar", sidecar, "--json")):
        for name in (out, out + ".inline"):
            if os.path.exists(name):
                os.remove(name)
        r = cairn("btf", "encode", *words, "-o", out, env=environment())
        expect(r.status == 0 and contents(out, out + ".inline") == told, words, r)
        if "--json" in words:
            counts = r.objects()[0]
            expect(
                counts["sidecar"] == sidecar and counts["types"]["bytes"] == len(told[0])
                and "lost" not in counts, r)
        else:
            expect(f"from {sidecar}, which does not list the losses" in r.out, r)


@claim
def btf_encode_takes_a_sidecar_where_there_is_no_debug_information_and_says_what_it_lacks():
    path, sidecar = copied("encoded", packed("cc-g++")[0]), os.path.join(folder(), "encoded.cairn")
    out = os.path.join(folder(), "encoded.btf")
    cairn("btf", "encode", path, "-o", out, env=environment(), check=True)
    types = contents(out)
    cairn("sidecar", path, "-o", sidecar, check=True)
    os.remove(out + ".inline")
    run("strip", path, check=True)
    # Types are those of the debug information; of sites it is said that they are not there.
    r = cairn("btf", "encode", path, "-o", out, env=environment())
    expect(
        r.status == 0 and contents(out, out + ".inline") == [*types, None]
        and "no sites as BTF" in r.err, r)
    r = cairn("btf", "encode", path, "-o", out, "--dialect", "none", env=environment())
    expect(r.status == 0 and contents(out) == types and not r.err, r)
    os.remove(out)
    for option in (("--global-vars",), ("--dialect", "v1"), ("--lang", "c11"), ("--layout",),
                   ("--assume-unmodified",)):
        r = cairn("btf", "encode", path, "-o", out, *option, env=environment())
        expect(r.status == 3 and option[0] in r.err and contents(out) == [None], option, r)
    # A sidecar of another program, and one without types.
    other = packed("c-gcc")[1]
    r = cairn("btf", "encode", path, "-o", out, "--sidecar", other, env=environment())
    expect(r.status and contents(out) == [None], r)
    os.remove(sidecar)
    r = cairn("btf", "encode", path, "-o", out, env=environment())
    expect(r.status == 3 and contents(out) == [None], r)


@claim
def layout_decode_and_bind_take_a_sidecar_wherever_it_lies():
    path, cache = copied("stripped", packed("cc-g++")[0]), os.path.join(folder(), "xdg", "cairn")
    zeroes = source("zeroes", "\0" * 4096)
    questions = (("layout", path), ("layout", path, "n::R", "--json"),
                 ("decode", path, "n::R", zeroes), ("bind", "--lang", "rust", path, "n::R"))
    before = [cairn(*q, env=environment()) for q in questions]
    expect(all(not r.status and len(r.out) > 50 for r in before), *before)
    beside, named = path + ".cairn", os.path.join(folder(), "named.cairn")
    cairn("sidecar", path, "-o", beside, check=True)
    shutil.copy(beside, named)
    run("strip", path, check=True)
    build_id = run("readelf", "-n", path, check=True).out.split("Build ID: ")[1].split()[0]

    def ask(*more, cache="off"):
        now = [cairn(*q, *more, env=environment(cache)) for q in questions]
        expect([(r.status, r.out) for r in now] == [(r.status, r.out) for r in before], more,
               now[0], before[0])

    ask()
    os.makedirs(cache, exist_ok=True)
    os.replace(beside, os.path.join(cache, build_id + ".cairn"))
    ask(cache="read")
    ask("--sidecar", named)
    for more in ((), ("--no-sidecar",), ("--no-cache",)):
        r = cairn("layout", path, *more, env=environment("read" if more else "off"))
        expect(r.status == 3 and "neither DWARF nor BTF" in r.err, r)


@claim
def what_was_read_of_the_debug_information_is_kept_for_the_next_time():
    path = copied("kept", packed("c-gcc")[0])
    environment_ = {**environment("on"), "XDG_CACHE_HOME": os.path.join(folder(), "keep")}
    build_id = run("readelf", "-n", path, check=True).out.split("Build ID: ")[1].split()[0]
    first = cairn("layout", path, env=environment_, check=True)
    kept, end = os.path.join(folder(), "keep", "cairn", build_id + ".cairn"), time.monotonic() + 30
    while not os.path.exists(kept) and time.monotonic() < end:
        time.sleep(0.05)
    expect(os.path.exists(kept), first)
    run("strip", path, check=True)
    expect(cairn("layout", path, env=environment_, check=True).out == first.out, first)


@claim_each_of_many("gcc", "clang")
def types_without_a_name_keep_their_own_members_live(compiler):
    need_root()
    path, sidecar = packed("c-" + compiler)
    wanted = ("sa(*p)", "sb(*p)", "sc(*p)", "sd(*p)", "se(*p)", "fa(a)", "fb(b)")
    seen = []
    for source_ in (("--no-sidecar",), ("--sidecar", sidecar)):
        for options in ((), ("--json",)):
            r = cairn("trace", "--assume-unmodified" if compiler == "clang" else "--best-effort",
                      *source_, *options, "-c", path, *wanted, env=environment())
            if r.status == 3 and "CONFIG_" in r.err:
                raise Skip(" ".join(r.err.split()))
            expect(r.status == 0, r)
            lines = r.lines()[:-1] if options else r.lines()
            seen.append([json.loads(o)["args"]
                         for o in lines] if options else [o.split(": ", 1)[1] for o in lines])
    expect(seen[0] == seen[2] and seen[1] == seen[3], *seen)
    expect(
        any(".lo = 3, .hi = 4, .tag = \"abc\"" in o for o in seen[0])
        and any("B_always" in o for o in seen[0]), seen[0])


main()
