#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names that a linker knows are shown as C++ and Rust write them."""

import os
import re

from claims import cairn, claim, claim_each, compile_c, expect, folder, main, need, run

SOURCE = """\
#include <cstdlib>
#define OUT __attribute__((noinline, noclone))
static volatile long sink;
namespace deep {
template <class T> struct box {
	T n;
	OUT box(T k) : n(k) { sink = k; }
	OUT ~box() { sink = n; }
	OUT bool operator<(const box &other) const { sink = n; return n < other.n; }
	OUT operator bool() const { sink = n; return n; }
	OUT T apply(T k) { auto f = [this](T a) OUT { sink = a; return a + n; }; return f(k); }
};
namespace { OUT long hidden(long n) { sink = n; return n; } }
}
__attribute__((noinline)) static long often(long n, bool fails)
{
	if (fails) { sink = n; abort(); }
	return deep::hidden(n) + 1;
}
int main(int argc, char **)
{
	deep::box<long> a(argc), b(argc + 1);
	return a < b && b && a.apply(often(argc, argc > 5)) ? 0 : 1;
}
"""

RUST = """\
mod depot {
    pub struct Box2<T> { pub n: T }
    impl<T: Copy + Into<u64>> Box2<T> { #[inline(never)] pub fn size(&self) -> u64 { std::hint::black_box(self.n.into()) } }
}
fn main() { std::process::exit((depot::Box2 { n: 7u32 }.size() + depot::Box2 { n: 1u8 }.size()) as i32 - 8) }
"""


def program():
    need("g++")
    source, out = os.path.join(folder(), "names.cc"), os.path.join(folder(), "names")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    run("g++", "-O2", "-g", "-o", out, source, check=True)
    return out


def code_symbols(path):
    """Address by linker's name."""
    return {name: address for address, kind, name in
            re.findall(r"^([0-9a-f]+) ([tTW]) (\S+)$", run(need("nm"), path, check=True).out, re.M)}


def shown(path, address, *words):
    return re.match(
        r"0x[0-9a-f]+  (.*?)(?: at .*)?$",
        cairn("addr", *words, path, address, check=True).out.splitlines()[-1].strip().replace(
            "inlined into ", "0x0  ")).group(1)


@claim
def addresses_have_the_names_of_binutils():
    path = program()
    symbols, seen = code_symbols(path), 0
    for name, address in symbols.items():
        if not name.startswith("_Z"):
            continue
        wanted = run(need("c++filt"), "-p", name.split(".")[0], check=True).out.strip()
        clone = f" [clone .{name.split('.', 1)[1]}]" if "." in name else ""
        expect(shown(path, address) == wanted + clone, name)
        # A constructor has two.
        expect(symbols[shown(path, address, "--no-demangle")] == address, name)
        seen += 1
    expect(seen >= 7, seen)


@claim
def a_name_that_is_shown_can_be_asked_for():
    path = program()
    for name in ("deep::box<long>::apply", "deep::box<long>::operator<",
                 "deep::box<long>::operator bool"):
        addresses = [
            a for n, a in code_symbols(path).items()
            if n.startswith("_ZN") and shown(path, a) == name
        ]
        expect(len(addresses) == 1, name, addresses)
        r = cairn("sites", path, name, check=True)
        expect(f"0x{int(addresses[0], 16):x}  body\n" in r.out, r)


@claim
def json_has_the_linkers_names():
    path = program()
    symbols = code_symbols(path)
    name = next(n for n in symbols if "apply" in n)
    r = cairn("addr", "--json", path, symbols[name], check=True)
    expect(r.objects()[0]["frames"][-1]["function"] == name, r)
    r = cairn("sites", "--json", path, "apply", check=True)
    expect(r.objects()[0]["symbol"] == name, r)


INLINED = """\
static volatile long sink;
namespace bank {
template <class T> static inline __attribute__((always_inline)) long fee(T t, long n) { sink = n; return (long)t + n; }
template <class T> struct account {
	T held;
	__attribute__((noinline)) long deposit(T n) { held += fee(n, held); return held; }
};
}
int main(int argc, char **) { bank::account<long> a = {argc}; return a.deposit(argc) != 3; }
"""


@claim
def a_site_is_told_in_the_same_words_by_sites_and_trace():
    need("g++")
    source, out = os.path.join(folder(), "bank.cc"), os.path.join(folder(), "bank")
    with open(source, "w", encoding="utf-8") as file:
        file.write(INLINED)
    run("g++", "-O2", "-g", "-o", out, source, check=True)
    for words, container in (((), "bank::account<long>::deposit"), (("--no-demangle",), "deposit")):
        site = re.search(r"inlined in (\S+)\+0x[0-9a-f]+",
                         cairn("sites", *words, out, "fee", check=True).out)
        expect(site and site.group(1) == container, site)
        r = cairn("trace", *words, "--dry-run", "-c", out, "fee", check=True)
        expect(f"  {site.group(0)}\n" in r.out, r)
    r = cairn("trace", "--json", "--dry-run", "-c", out, "fee", check=True)
    expect(r.objects()[0]["site"].startswith("inlined in deposit+"), r)


@claim_each("legacy", "v0")
def names_of_rust_are_shown_without_their_hash(mangling):
    need("rustc")
    source, out = os.path.join(folder(), "depot.rs"), os.path.join(folder(), "depot-" + mangling)
    with open(source, "w", encoding="utf-8") as file:
        file.write(RUST)
    words = ("-C", f"symbol-mangling-version={mangling}") + (
        ("-Z", "unstable-options") if mangling == "legacy" else ())
    run("env", "RUSTC_BOOTSTRAP=1", "rustc", "-O", "-g", *words, "-o", out, source, check=True)
    sizes = [a for n, a in code_symbols(out).items() if "depot" in n and "size" in n]
    expect(
        sizes
        and all(re.fullmatch(r"<?depot::depot::Box2<.*>>?::size", shown(out, a)) for a in sizes),
        [shown(out, a) for a in sizes])


def number(n):
    """As a mangled name refers to the n-th of its parts."""
    digits = ""
    while n:
        n, digit = divmod(n - 1 if not digits else n, 36)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit] + digits
    return f"S{digits}_"


@claim
def a_name_that_doubles_with_each_of_its_parts_is_shown_as_it_is():
    name = "_Z1fI3t00IiiE"
    for i in range(1, 20):
        name += f"3t{i:02d}I{number(2 * i)}{number(2 * i)}E"
    name += "EvT_"
    path = compile_c(
        "doubles",
        f'__asm__(".globl {name}\\n.type {name},@function\\n{name}: ret\\n.size {name},.-{name}\\n");\n'
        "int main(void) { return 0; }\n")
    expect(shown(path, code_symbols(path)[name]) == name)


if __name__ == "__main__":
    main()
