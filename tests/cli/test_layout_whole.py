#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn layout: members in the order of their places, pages of two files, locks that stay as they
are, limits, const structs."""

import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# noqa: E402
from claims import (CAIRN, Skip, cairn, claim, claim_each_of_many, compile_c, expect, folder, main,
                    need, run, write)
from records import accounted_bits  # noqa: E402

KERNEL = "/sys/kernel/btf/vmlinux"

RUST = """
pub struct A { pub a: u8, pub b: u64, pub c: u16, pub d: u32, pub e: (), pub f: [u8; 3] }
pub struct G { pub one: u8, pub in_: A, pub two: u16 }
#[inline(never)] pub fn show(a: &A, g: &G, t: &(u8, u32, u16)) {
    let (x, y, z) = (a as *const A as usize, g as *const G as usize, t as *const _ as usize);
    println!("A {} {} {} {} {} {}", &a.a as *const u8 as usize - x, &a.b as *const u64 as usize - x, &a.c as *const u16 as usize - x,
        &a.d as *const u32 as usize - x, &a.e as *const () as usize - x, &a.f as *const [u8; 3] as usize - x);
    println!("G {} {} {}", &g.one as *const u8 as usize - y, &g.in_ as *const A as usize - y, &g.two as *const u16 as usize - y);
    println!("(u8, u32, u16) {} {} {}", &t.0 as *const u8 as usize - z, &t.1 as *const u32 as usize - z, &t.2 as *const u16 as usize - z);
}
fn main() {
    let a = A { a: 1, b: 2, c: 3, d: 4, e: (), f: [0; 3] };
    let f = |v: u8| v as u32 + 1;
    show(&a, &G { one: 1, in_: A { a: 1, b: 2, c: 3, d: f(4), e: (), f: [0; 3] }, two: 2 }, &(1, 2, 3));
}
"""


def rust_program():
    program = os.path.join(folder(), "order-rs")
    if not os.path.exists(program):
        run(need("rustc"), "-g", "-o", program, write("order.rs", RUST), check=True)
    return program


# A struct whose size only run time knows, and a member without bytes that is after others and at 0.
RUST_TAIL = """
pub struct Tail([u8]);
pub struct Head { pub n: u16, pub t: Tail }
pub struct Nothing;
#[inline(never)] pub fn show(h: &Head, r: &Result<u64, Nothing>, c: &std::ffi::CStr) -> usize {
    h.n as usize + h.t.0.len() + c.to_bytes().len() + match r { Ok(v) => *v as usize, Err(_) => 1 }
}
fn main() {
    let bytes: Box<[u16]> = vec![1u16, 2].into();
    let head: &Head = unsafe { std::mem::transmute::<(*const u16, usize), &Head>((bytes.as_ptr(), 1usize)) };
    let c = std::ffi::CString::new("abc").unwrap();
    println!("{}", show(head, &if head.n == 1 { Err(Nothing) } else { Ok(7) }, &c));
}
"""


@claim
def unsized_tails_and_members_without_bytes_of_rust_add_up():
    program = os.path.join(folder(), "tail-rs")
    run(need("rustc"), "-g", "-o", program, write("tail.rs", RUST_TAIL), check=True)
    text = cairn("layout", program, check=True).out
    expect("struct tail::Head {" in text and "::Err {" in text and text.count("struct ") > 100,
           text[:2000])
    expect("BRAIN FART" not in text, text[text.find("BRAIN FART") - 2000:][:2500])
    head = cairn("layout", program, "Head", "--json", check=True).objects()[0]
    expect(
        head["size"] == 2 and [m["offset"] for m in head["members"]] == [0, 2]
        and not head["holes"], head)


@claim
def members_of_rust_come_in_the_order_of_their_places():
    program = rust_program()
    truth = {}
    for line in run(program, check=True).lines():
        name, places = re.fullmatch(r"(.*?)((?: \d+)+)", line).groups()
        truth[name] = sorted(int(n) for n in places.split())
    for name, places in truth.items():
        r = cairn("layout", program, name, "--json", check=True)
        found = r.objects()[0]
        expect([m["offset"] for m in found["members"]] == places, name, places, r)
        expect(accounted_bits(found) == 8 * found["size"], r)
    # One byte between u8 at 4 and u16 at 6.
    r = cairn("layout", program, "(u8, u32, u16)", "--lint", "--rules", "padding-leak", "--json")
    expect([(o["member"], o["offset"]) for o in r.objects()] == [("__0", 5)], r)
    text = cairn("layout", program, check=True).out
    expect(
        "BRAIN FART" not in text and "Bitfield combined" not in text
        and "struct order::A {" in text, text)
    page = cairn("layout", program, "A", "--html", check=True).out
    drawn = [int(n) for n in re.findall(r"title=\"\w+: [^\"]*, offset (\d+), ", page)]
    expect(drawn == sorted(drawn) and len(set(drawn)) == 5, drawn)


@claim
def a_page_beside_another_file_has_what_only_that_has():
    old = write(
        "old.h",
        "struct a { int x; char gone; }; struct only_old { int q; }; struct same { int z; };\n")
    new = write(
        "new.h",
        "struct a { int x; long added; }; struct only_new { int q; short w; }; struct same { int z; };\n"
    )
    page = cairn("layout", "--html", old, "--beside", new, check=True).out
    expect(
        re.findall(r"<h2><span>struct</span> (\w+)", page) == ["a", "only_old", "same", "only_new"],
        page)
    expect(
        re.search(
            r"<tr class=differs>.{,80}>added <em>only here</em>.{,80}missing</td><td class=num>8</td><td class=num>8</td>",
            page), page)
    expect(re.search(r"only_new.*There is no such type in [^<]*old\.h", page, re.S), page)
    expect(re.search(r"only_old.*There is no such type in [^<]*new\.h", page, re.S), page)
    for name in ("only_new", "only_old"):
        r = cairn("layout", "--html", old, "--beside", new, name)
        expect(r.status == 0 and not r.err and r.out.count("<h2>") == 1, r)
    r = cairn("layout", "--html", old, "--beside", new, "nothing")
    expect(r.status == 1 and "neither file has a type named nothing" in r.err and not r.out, r)


UNITS = (
    """typedef struct { int a, b; } pair; struct node { pair p; int kind; struct { char c; } in; };
struct state { int s; pair q; }; struct node n1; struct state s1; int f2(void); int main(void) { return f2(); }
""",
    """typedef struct { int a, b; } pair; struct node { pair p; long other; struct { short d; } in; }; enum state { S0 };
struct zz { struct node n; pair p; enum state s; };
struct node n2; struct zz z2; int f2(void) { return 0; }
""")


def locked_twice(path):
    lock = os.path.join(folder(), "twice.lock")
    if os.path.exists(lock):
        os.unlink(lock)
    texts = []
    for _ in range(3):
        run(CAIRN, "layout", path, "--lock", lock, "--update", check=True)
        with open(lock, encoding="utf-8") as file:
            texts.append(file.read())
    expect(texts[0] == texts[1] == texts[2] and texts[0].count("\n") > 5, path, *texts[:2])
    r = cairn("layout", path, "--lock", lock)
    expect(r.status == 0 and not r.err, r)
    return texts[0]


@claim_each_of_many("gcc", "clang")
def a_lock_that_is_updated_twice_stays_as_it_is(compiler):
    need(compiler)
    sources = [write(f"unit{i}.c", text) for i, text in enumerate(UNITS)]
    program = os.path.join(folder(), "units-" + compiler)
    run(compiler, "-g", "-o", program, *sources, check=True)
    text = locked_twice(program)
    # One description per type, whichever units have it.
    expect(
        text.count("struct pair 8\n") == 1 and "struct node#2" in text
        and "struct node#3" not in text and "enum state u32" in text, text)


@claim
def a_lock_of_the_kernel_stays_as_it_is():
    if not os.path.exists(KERNEL):
        raise Skip("the kernel has no BTF")
    locked_twice(KERNEL)


@claim
def a_lock_of_rust_stays_as_it_is():
    # Closures have a # in their names.
    text = locked_twice(rust_program())
    expect("#0}" in text, text)


@claim
def names_that_repeat_one_another_take_no_memory_without_end():
    inner = "int x;"
    for depth in range(18):
        names = ", ".join(f"n{depth}_{i}_".ljust(8000, "q") for i in range(2))
        inner = f"struct {{ {inner} }} {names};"
    path = write("repeat.h", f"struct a {{ {inner} }};\n")
    for words in (["layout", path, "--html",
                   "--expand"], ["bind", path, "a", "--lang",
                                 "c"], ["bind", path, "a", "--lang", "java"]):
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            process = subprocess.Popen([CAIRN, *words], stdout=nowhere, stderr=subprocess.PIPE,
                                       text=True)
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        expect(process.returncode in (3, 4) and "names of" in error, words, process.returncode,
               error)
        expect(usage.ru_maxrss < 1 << 20, words, usage.ru_maxrss)


CONST = """struct f { const struct { int a; char b; long c; }; int z; const union { int u; char v; }; const struct { int t; }; } x;
int main(void) { return 0; }
"""


@claim
def structs_without_a_name_that_are_const_are_written_out_as_pahole_does():
    need("pahole")
    cases = [(compile_c("const", CONST), "f")]
    if os.path.exists(KERNEL):
        cases.append((KERNEL, "vm_fault"))
    for path, name in cases:
        r = cairn("layout", path, name, check=True)
        oracle = run("pahole", "-C", name, path)
        expect(not oracle.out or r.out.strip() == oracle.out.strip(), r, oracle)
        expect("const struct {\n\t\t" in r.out and "{...}" not in r.out, r)


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
main()
