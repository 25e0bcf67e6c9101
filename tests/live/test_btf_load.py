#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What btf encode and btf convert --kernel write is what BPF_BTF_LOAD of the running kernel takes."""
import ctypes
import errno
import os
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli")]
from claims import BUILD, IS_SANITIZED, Skip, cairn, claim, claim_each, expect, folder, main, need, path_of, run, write  # noqa: E402

C = """\
struct __attribute__((packed)) record { char kind; double value; float small; unsigned bits:20; };
struct record records[3]; extern int elsewhere(int); static int both[4]; extern int alias[4] __attribute__((alias("both")));
double f(struct record *r, int n) { return r[n].value + both[n]; }
int main(void) { return f(records, 1) != 0; }
"""
CPLUSPLUS = """\
#include <map>
#include <string>
struct __attribute__((packed)) P { char c; double d; __int128 w; }; P pp;
struct V { virtual ~V(); int x:3; long double ld; }; V::~V() {}
int main(int c, char **v) { std::map<std::string, V> m; return m.size() + pp.c; }
"""
ADA = """\
procedure Ada_Load is
   type Kind is (A, B, C);
   type Rec (N : Natural; K : Kind) is record
      S : String (1 .. N);
      case K is
         when A => X : Integer;
         when B => Y : Float; Z : Long_Float;
         when C => null;
      end case;
   end record;
   type Bits is record F : Boolean; G : Integer range 0 .. 7; end record;
   for Bits use record F at 0 range 0 .. 0; G at 0 range 1 .. 3; end record;
   type Arr is array (Positive range <>) of Bits;
   type Outer (Len : Positive) is record Data : Arr (1 .. Len); Tail : Rec (Len, B); end record;
   procedure P (R : in out Rec; O : Outer) is begin R.S (1) := 'x'; if O.Len > 3 then R.S (2) := 'y'; end if; end P;
   R : Rec (5, A); O : Outer (3) := (Len => 3, Data => (others => (False, 1)), Tail => (3, B, "abc", 1.0, 2.0));
begin
   P (R, O);
end Ada_Load;
"""
RUST = """\
struct W([u8]); struct D { n: u16, t: W }
enum E { A, B(u32, String), C { x: f64, y: Option<&'static str> } }
#[inline(never)] fn f(e: &E, d: &D) -> u128 { let _ = (e, &d.t); d.n as u128 }
fn main() { let b: Box<[u8]> = Box::new([0u8; 4]); println!("{}", f(&E::B(1, "x".into()), unsafe { std::mem::transmute::<&[u8], &D>(&b[..]) })); }
"""
BPF = """\
int counter; extern int kf(int x) __attribute__((section(".ksyms")));
__attribute__((section("xdp"))) int prog(void *ctx) { counter++; return kf(counter); }
"""


def load(path):
    """0 when BPF_BTF_LOAD takes it, else errno."""
    if os.uname().machine != "x86_64":
        raise Skip("the number of bpf(2) is that of x86-64")
    with open(path, "rb") as file:
        data = file.read()
    libc, copy = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(data, len(data))
    attributes = ctypes.create_string_buffer(struct.pack("<QQIII", ctypes.addressof(copy), 0, len(data), 0, 0), 64)
    fd = libc.syscall(321, 18, attributes, 28)
    if fd >= 0:
        os.close(fd)
        return 0
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise Skip("BPF_BTF_LOAD: " + os.strerror(ctypes.get_errno()))
    return ctypes.get_errno()


def build(language):
    out = path_of("program." + language)
    if language == "c":
        need("gcc")
        run("gcc", "-g", "-w", "-c", "-o", out, write("p.c", C), check=True)
    elif language == "c++":
        need("g++")
        run("g++", "-g", "-std=c++17", "-o", out, write("p.cc", CPLUSPLUS), check=True)
    elif language == "ada":
        need("gnatmake")
        write("ada_load.adb", ADA)
        run("gnatmake", "-q", "-g", "ada_load.adb", "-o", out, check=True, cwd=folder())
    elif language == "rust":
        need("rustc")
        run("rustc", "-g", "-o", out, write("p.rs", RUST), check=True)
    return out


def converted(path):
    out = path_of("kernel.btf")
    cairn("btf", "convert", "--kernel", path, "-o", out, check=True)
    cairn("btf", "check", "--kernel=all", out, check=True)
    return out


@claim_each("c", "c++", "ada", "rust")
def the_kernel_takes_what_convert_writes(language):
    out = path_of("plain.btf")
    cairn("btf", "encode", "--global-vars", build(language), "-o", out, check=True)
    cairn("btf", "check", out, check=True)
    expect(load(converted(out)) == 0, language)
    said = cairn("btf", "check", "--kernel", out).status == 0
    expect(said == (load(out) == 0), language)


@claim_each("cairn", "libc")
def the_kernel_takes_what_encode_writes_of_programs_here(which):
    path = os.path.join(BUILD, "cairn") if which == "cairn" else "/lib/x86_64-linux-gnu/libc.so.6"
    out = path_of("here.btf")
    if not os.path.exists(path) or cairn("btf", "encode", "--dialect", "none", "--global-vars", path, "-o", out).status == 3:
        raise Skip(f"{which} has no debug information here")
    # Sanitizers link C++ in, of which no kernel takes the names as they are.
    sound = cairn("btf", "check", "--kernel", out).status == 0
    expect(sound == (load(out) == 0), which)
    expect((sound or IS_SANITIZED) and load(converted(out)) == 0, which)


@claim
def the_kernel_takes_the_types_of_an_object_that_is_not_linked():
    need("clang")
    out = path_of("prog.bpf.o")
    run("clang", "-target", "bpf", "-g", "-O2", "-c", "-o", out, write("prog.bpf.c", BPF), check=True)
    expect(load(converted(out)) == 0)


if __name__ == "__main__":
    main()
