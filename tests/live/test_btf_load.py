#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What btf encode and btf convert --kernel write is what BPF_BTF_LOAD of the running kernel takes.
"""
import ctypes
import errno
import os
import struct
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli")]
# noqa: E402
from claims import (BUILD, IS_SANITIZED, Skip, cairn, claim, claim_each, expect, folder, main,
                    need, path_of, run, write)

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

# Structs with fields that a kernel keeps records of. Each case has "struct s", some "struct o" or
# "struct t", too.
FIELDS = """\
typedef unsigned long long u64; typedef unsigned int u32;
struct bpf_spin_lock { u32 val; }; struct bpf_res_spin_lock { u32 val; }; struct bpf_refcount { u32 val; };
struct bpf_list_head { u64 a, b; }; struct bpf_list_node { u64 a, b, c; }; struct bpf_rb_root { u64 a, b; }; struct bpf_rb_node { u64 a[4]; };
struct bpf_timer { u64 a, b; }; struct bpf_wq { u64 a, b; };
#define NODE struct bpf_list_node
#define LOCK struct bpf_spin_lock
#define RES_LOCK struct bpf_res_spin_lock
#define HEAD struct bpf_list_head
#define ROOT struct bpf_rb_root
#define BRANCH struct bpf_rb_node
#define COUNT struct bpf_refcount
#define TIMER struct bpf_timer
#define PACKED __attribute__((packed))
#define TAG(t) __attribute__((btf_decl_tag(t)))
#define T(t) __attribute__((btf_type_tag(t)))
#define KPTR struct task_struct T("kptr") *
struct task_struct;
"""
def owners(n):
    """A chain of structs of which each owns the next, the last one nothing."""
    chain = 'struct o1 { NODE n; };'
    for i in range(2, n + 1):
        name, node = (f'o{i}', 'NODE n; ') if i < n else ('s', '')
        chain += f' struct {name} {{ {node}HEAD h TAG("contains:o{i - 1}:n"); LOCK l; }};'
    return chain


FIELD_CASES = (
    'struct s { LOCK l; int x; };', 'struct s { LOCK l; LOCK m; };',
    'struct s { short a; LOCK l; } PACKED;', 'struct s { int x; LOCK l; };',
    'struct s { NODE n; };', 'struct s { NODE n[11]; };', 'struct s { NODE n[12]; };',
    'struct s { NODE n[6]; NODE m[6]; };', 'struct e { NODE n; }; struct s { struct e e[12]; };',
    'struct e { NODE n; }; struct s { struct e e[11]; };',
    'struct e { NODE n; }; struct s { NODE o; struct e e[11]; };', 'struct s { KPTR p; };',
    'struct s { KPTR p[12]; };', 'struct s { KPTR a,*b,*c,*d,*e,*f,*g,*h,*i,*j,*k,*l; };',
    'struct nonesuch; struct s { struct nonesuch T("kptr") *p; };', 'struct s { LOCK l; KPTR p; };',
    'struct s { TIMER t; };', 'struct s { TIMER t,u; };', 'struct s { TIMER t; LOCK l; };',
    'struct s { TIMER t, u; LOCK l; };', 'struct s { COUNT r; };', 'struct s { COUNT r, t; };',
    'struct s { COUNT r; NODE n; };', 'struct s { BRANCH r; };', 'struct s { HEAD h; LOCK l; };',
    'struct o { NODE n; }; struct s { HEAD h TAG("contains:o:n"); LOCK l; };',
    'struct o { NODE n; }; struct s { HEAD h TAG("contains:o:n"); };',
    'struct o { NODE n; }; struct s { HEAD h TAG("contains:o:m"); LOCK l; };',
    'struct s { union { LOCK l; int x; } u; };',
    'struct e { TIMER t; }; struct s { struct e a, b; };', 'struct s { int x; NODE n; } PACKED;',
    'struct s { RES_LOCK a, b; };', 'struct s { RES_LOCK a; LOCK b; };',
    'struct e { NODE n; }; struct s { NODE o; struct e e[9]; };',
    'struct e { NODE n; }; struct s { NODE o; struct e e[10]; };',
    'struct s { NODE o; NODE n[10]; };', 'struct s { NODE o; NODE n[11]; };',
    'struct s { NODE o; NODE n[12]; };', 'struct s { NODE o; NODE n[40]; };',
    'struct s { NODE n0,n1,n2,n3,n4,n5,n6,n7,n8,n9; };',
    'struct s { NODE n0,n1,n2,n3,n4,n5,n6,n7,n8,n9,n10; };',
    'struct s { NODE n0,n1,n2,n3,n4,n5,n6,n7,n8,n9,n10,n11; };',
    'struct e { NODE n, m; }; struct s { NODE o; struct e e[5]; };',
    'struct e { NODE n, m; }; struct s { NODE o; struct e e[6]; };',
    'struct e { LOCK l; }; struct s { LOCK o; struct e e[2]; };',
    'struct e { LOCK l; }; struct s { NODE o; struct e e; };',
    'struct e { LOCK l; }; struct s { NODE o; struct e e[2]; };',
    'struct s { NODE o; TIMER t[12]; };',
    'struct e { TIMER t; }; struct s { NODE o; struct e e[12]; };',
    'struct e { int t; }; struct s { NODE o; struct e e[12]; };',
    'struct e { NODE n; }; struct s { NODE o; struct e e[3][4]; };',
    'struct e { NODE n; }; struct d { struct e e[4]; }; struct s { NODE o; struct d d[3]; };',
    'struct e { NODE n; }; struct d { struct e e[5]; }; struct s { NODE o; struct d d[2]; };',
    'struct s { COUNT r, q; NODE o; };', 'struct s { COUNT r, q; LOCK l; };',
    'struct s { NODE o; KPTR p[12]; };', 'struct s { NODE o; KPTR p; };',
    'struct s { NODE o; int x; KPTR p; } PACKED;',
    'struct s { NODE o; union { NODE a; int b; } u; };',
    'struct s { NODE o; struct { NODE a; int b; } u[11]; };',
    'struct e { LOCK l; }; struct s { LOCK o; struct e e; };',
    'struct e { RES_LOCK l; }; struct s { LOCK o; struct e e; };',
    'struct s { LOCK l; LOCK m[1]; };', 'struct s { NODE l; LOCK m[2]; };',
    'struct o { NODE n; BRANCH r; }; struct s { ROOT h TAG("contains:o:r"); LOCK l; };',
    'struct o { NODE n; BRANCH r; }; struct s { ROOT h TAG("contains:o:r"); };',
    'struct o { NODE n; BRANCH r; }; struct s { HEAD h TAG("contains:o:n"); RES_LOCK l; };',
    'struct o { NODE n; BRANCH r; }; struct s { HEAD h TAG("contains:o:r"); LOCK l; };',
    'struct o { NODE n; BRANCH r; }; struct s { ROOT h TAG("contains:o:n"); LOCK l; };',
    'struct s { HEAD h TAG("contains:nix:n"); LOCK l; };',
    'struct o { NODE n; }; struct s { LOCK l; HEAD h[2] TAG("contains:o:n"); };',
    'struct o { NODE n; }; struct s { LOCK l; HEAD h[10] TAG("contains:o:n"); };',
    'struct o { NODE n; }; struct s { LOCK l; HEAD h[11] TAG("contains:o:n"); };',
    'struct o { BRANCH n; }; struct s { LOCK l; ROOT h[2][3] TAG("contains:o:n"); };',
    'struct s { LOCK l; HEAD h[2]; };',
    'struct o { NODE n; }; struct e { HEAD h TAG("contains:o:n"); int x; }; struct s { LOCK l; struct e e[3]; };',
    'struct o { NODE n; }; struct e { HEAD h TAG("contains:o:n"); NODE x; }; struct s { LOCK l; struct e e[3]; };',
    'struct o { NODE n; }; struct s { NODE o; struct o T("uptr") *p; };',
    'struct o { NODE n; }; struct s { NODE o; struct o T("nix") *p; };',
    'struct o { NODE n; BRANCH r; }; struct s { HEAD h TAG("contains:o"); LOCK l; };',
    'struct o { NODE n; BRANCH r; }; struct s { HEAD h TAG("else:o:n"); LOCK l; };',
    'struct o { NODE n; BRANCH r; }; struct s { HEAD h TAG("contains:o:n") TAG("contains:o:n"); LOCK l; };',
    'struct s { short a; COUNT r; } PACKED;', 'struct s { NODE o; LOCK l; };',
    'struct s { NODE a,b,c,d,e,f,g,h,i,j,k; TIMER t; };',
    'struct s { NODE a,b,c,d,e,f,g,h,i,j,k; LOCK t; };',
    'struct s { NODE a,b,c,d,e,f,g,h,i,j; LOCK t; };',
    'struct e { NODE n; }; struct s { NODE a,b,c,d,e,f,g,h,i,j,k; struct e z; };',
    'struct o { NODE n; }; struct e { HEAD h; }; struct s { LOCK l; struct e e; };',
    'struct s { const LOCK l; LOCK m; };', 'typedef LOCK lk; struct s { lk l; lk m; };',
    'struct s { NODE o; union { LOCK a; int b; } u; LOCK c; };', 'struct s { NODE a; BRANCH b; };',
    'struct s { NODE a; BRANCH b; COUNT r; };',
    'struct t { int x; }; struct s { NODE a; struct t T("kptr") *p; };',
    'struct t { int x; }; struct s { NODE a; int i; struct t T("kptr") *p; } PACKED;',
    'struct s { NODE a; int T("kptr") *p; };', 'struct s { TIMER a,b; NODE n; };',
    'struct e { TIMER t; }; struct s { TIMER u; struct e e; NODE n; };',
    'struct e { COUNT r; }; struct s { COUNT r; struct e e; NODE n;};',
    'struct e { COUNT r; LOCK l; }; struct s { struct e e, f; };',
    'struct e { RES_LOCK l; }; struct s { RES_LOCK k; struct e e; };', 'struct s { COUNT r, q; };',
    'struct s { NODE n; RES_LOCK a, b; };',
    'struct e { RES_LOCK l; }; struct s { NODE n; RES_LOCK a; struct e e; };',
    'struct e { RES_LOCK l; }; struct s { NODE n; struct e e, f; };',
    'struct e { RES_LOCK l; }; struct s { NODE n; LOCK a; struct e e; };',
    'struct e { RES_LOCK l; }; struct s { NODE n; struct e e; LOCK a; };',
    'struct e { LOCK l; }; struct s { NODE n; struct e e; RES_LOCK a; };',
    'struct e { LOCK l; }; struct s { NODE n; struct e e, f; };',
    'struct e { LOCK l; }; struct s { NODE n; struct e e; LOCK a; };',
    'struct e { LOCK l; }; struct s { NODE n; struct e e[1]; LOCK a; };',
    'struct e { LOCK l; }; struct s { NODE n; struct e e[2]; };',
    'struct e { COUNT l; }; struct s { NODE n; struct e e[2]; };',
    'struct e { COUNT l; }; struct s { NODE n; struct e e[1]; };',
    'struct e { COUNT l; }; struct s { NODE n; struct e e, f; };',
    'struct e { COUNT l; }; struct d { struct e e; }; struct s { NODE n; struct d d; COUNT r; };',
    'struct s { NODE n; COUNT r[2]; };', 'struct s { NODE n; COUNT r[1]; };',
    'struct s { NODE n; COUNT r[1], q; };', 'struct s { COUNT r[2]; };', 'struct s { LOCK r[2]; };',
    'struct s { LOCK r[1]; };', 'struct s { NODE n; LOCK r[1]; };',
    'struct s { COUNT r; LOCK l; COUNT q; };',
    'struct e { COUNT r; LOCK l; }; struct s { NODE n; struct e e, f; };',
    'struct e { COUNT r; LOCK l; }; struct s { NODE n; struct e e; };',
    'struct e { HEAD h; LOCK l; }; struct s { NODE n; struct e e, f; };',
    'struct o { NODE n; }; struct e { HEAD h TAG("contains:o:n"); LOCK l; }; struct s { NODE n; struct e e; };',
    'struct o { NODE n; }; struct e { HEAD h TAG("contains:o:n"); LOCK l; }; struct s { NODE n; struct e e, f; };',
    'struct o { NODE n; }; struct e { LOCK l; }; struct s { HEAD h TAG("contains:o:n"); struct e e; };',
    'struct e { COUNT r; }; struct s { NODE n; BRANCH b; struct e e; };',
    'struct e { BRANCH r; }; struct s { NODE n; struct e b; };',
    'struct s { NODE n; union { COUNT a; int b; } u; COUNT c; };',
    'struct s { const COUNT l; COUNT m; };', 'typedef COUNT ct; struct s { ct l; ct m; };',
    'struct e { COUNT l; }; typedef struct e et; struct s { et e; COUNT m; };',
    'struct s { NODE n; COUNT *a; COUNT b; };',
    'struct e { TIMER t; COUNT r; }; struct s { NODE n; struct e e; TIMER u; };',
    'struct s { NODE a,b,c,d,e,f,g,h,i,j,k; RES_LOCK t; };',
    'struct s { NODE a,b,c,d,e,f,g,h,i,j,k; COUNT t; };',
    'struct s { NODE a,b,c,d,e,f,g,h,i,j; COUNT t; };',
    'struct s { NODE n; short a; RES_LOCK r; } PACKED;', 'struct s { struct bpf_wq a,b; NODE n; };',
    'struct s { NODE n; short a; LOCK r; } PACKED;', 'struct s { NODE n; int x; NODE m; } PACKED;',
    'struct s { short x; LOCK l; short y; NODE m; } PACKED;',
    'struct s { short x; LOCK l; NODE m; } PACKED;',
    'struct e { NODE t; }; struct s { short y; struct e e; NODE m; } PACKED;',
    'struct e { RES_LOCK a; RES_LOCK l; }; struct s { NODE n; struct e e; };',
    # What is a node and owns others may own only what owns nothing.
    'struct s { NODE n; HEAD h TAG("contains:s:n"); LOCK l; };',
    'struct s { BRANCH n; ROOT h TAG("contains:s:n"); LOCK l; };',
    'struct o { NODE n; }; struct s { NODE n; HEAD h TAG("contains:o:n"); LOCK l; };',
    'struct o { NODE n; }; struct t { NODE n; HEAD h TAG("contains:o:n"); LOCK l; }; struct s { HEAD h TAG("contains:t:n"); LOCK l; };',
    'struct o { NODE n; }; struct t { NODE n; HEAD h TAG("contains:o:n"); LOCK l; }; struct s { NODE n; HEAD h TAG("contains:t:n"); LOCK l; };',
    'struct o { BRANCH n; }; struct t { NODE n; ROOT h TAG("contains:o:n"); LOCK l; }; struct s { BRANCH n; HEAD h TAG("contains:t:n"); LOCK l; };',
    'struct t; struct s { NODE n; HEAD h TAG("contains:t:n"); LOCK l; }; struct t { NODE n; HEAD h TAG("contains:s:n"); LOCK l; };',
    'struct o { NODE n; }; struct e { HEAD h TAG("contains:o:n"); LOCK l; }; struct t { NODE n; struct e e; }; '
    'struct s { NODE n; HEAD h TAG("contains:t:n"); LOCK l; };',
    'struct o { NODE n; }; struct t { NODE n; HEAD h TAG("contains:o:n"); LOCK l; }; struct e { HEAD h TAG("contains:t:n"); LOCK l; }; '
    'struct s { NODE n; struct e e; };', *(owners(n) for n in (2, 7, 8, 9, 12)),
    'struct s { NODE n; struct s __attribute__((btf_type_tag("kptr"))) *next; };',
    'struct s { NODE n; struct s __attribute__((btf_type_tag("kptr_untrusted"))) *next; };',
    'struct t; struct s { LOCK l; struct t __attribute__((btf_type_tag("kptr"))) *a; }; '
    'struct t { LOCK l; struct s __attribute__((btf_type_tag("percpu_kptr"))) *b; };',
)


def load(path):
    """0 when BPF_BTF_LOAD takes it, else errno."""
    if os.uname().machine != "x86_64":
        raise Skip("the number of bpf(2) is that of x86-64")
    with open(path, "rb") as file:
        data = file.read()
    libc, copy = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(data, len(data))
    attributes = ctypes.create_string_buffer(
        struct.pack("<QQIII", ctypes.addressof(copy), 0, len(data), 0, 0), 64)
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
    if not os.path.exists(path) or cairn("btf", "encode", "--dialect", "none", "--global-vars",
                                         path, "-o", out).status == 3:
        raise Skip(f"{which} has no debug information here")
    # Sanitizers link C++ in, of which no kernel takes the names as they are.
    sound = cairn("btf", "check", "--kernel", out).status == 0
    expect(sound == (load(out) == 0), which)
    expect((sound or IS_SANITIZED) and load(converted(out)) == 0, which)


@claim
def the_kernel_takes_the_types_of_an_object_that_is_not_linked():
    need("clang")
    out = path_of("prog.bpf.o")
    run("clang", "-target", "bpf", "-g", "-O2", "-c", "-o", out, write("prog.bpf.c", BPF),
        check=True)
    expect(load(converted(out)) == 0)


def write_case(case, out):
    """The BTF of a case."""
    names = [n for n in "sot" if f"struct {n} {{" in case]
    with tempfile.TemporaryDirectory() as where:
        source, program = os.path.join(where, "fields.c"), os.path.join(where, "fields.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(FIELDS + case + "\n" + "".join(
                f"int f{n}(struct {n} *p) {{ return p != 0; }}\n" for n in names))
        run("clang", "-target", "bpf", "-g", "-O1", "-w", "-c", "-o", program, source, check=True)
        run("llvm-objcopy", f"--dump-section=.BTF={out}", program, check=True)


@claim
def structs_with_fields_that_the_kernel_knows_are_refused_as_it_does():
    need("clang")
    need("llvm-objcopy")
    out = path_of("fields.btf")
    verdicts = {True: 0, False: 0}
    for case in FIELD_CASES:
        write_case(case, out)
        taken, said = load(out) == 0, cairn("btf", "check", "--kernel", out)
        expect(taken == (said.status == 0), case, taken, said)
        verdicts[taken] += 1
    expect(min(verdicts.values()) > 20, verdicts)


@claim
def structs_of_structs_of_structs_are_followed_only_so_far():
    """Three levels of 6,000 members each, beside a list node: 2 * 10^11 ways to one."""
    ways, strings = 6000, b"\0bpf_list_node\0"
    records = [struct.pack("<III", 1, 4 << 24, 24), struct.pack("<III", 0, 4 << 24, 0)]
    for level in range(3):
        records.append(
            struct.pack("<III", 0, 4 << 24 | ways, 0) + ways * struct.pack("<III", 0, 2 + level, 0))
    records.append(
        struct.pack("<III", 0, 4 << 24
                    | 2, 24) + struct.pack("<III", 0, 1, 0) + struct.pack("<III", 0, 5, 0))
    types = b"".join(records)
    blob = struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types),
                       len(strings)) + types + strings
    r = cairn("btf", "check", "--kernel", write("deep.btf", blob), seconds=60)
    expect(r.status == 1 and "too many members to be followed" in r.out, r)


if __name__ == "__main__":
    main()
