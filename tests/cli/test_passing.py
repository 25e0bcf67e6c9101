#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How C++ passes classes: GCC's debug information, from which it is deduced, against Clang's, which
says it."""

import json
import os
import re
import subprocess

from claims import CAIRN, cairn, claim, expect, folder, main, need

# One class for each mixture of special members that the rules tell apart; each is passed between
# two numbers.
CLASSES = {
    "Plain":
    "struct Plain { int x; };", "Class":
    "class Class { public: int x; private: long y; };", "Copied":
    "struct Copied { int x; Copied(const Copied &o) : x(o.x) {} };", "CopyDefaulted":
    "struct CopyDefaulted { int x; CopyDefaulted(const CopyDefaulted &) = default; };",
    "DefaultedLater":
    "struct DefaultedLater { int x; DefaultedLater(const DefaultedLater &); };\n"
    "DefaultedLater::DefaultedLater(const DefaultedLater &) = default;", "CopyDeleted":
    "struct CopyDeleted { int x; CopyDeleted(const CopyDeleted &) = delete;"
    " CopyDeleted(CopyDeleted &&) = default; };", "Moved":
    "struct Moved { int x; Moved(Moved &&o) : x(o.x) {} };", "MoveAssigned":
    "struct MoveAssigned { int x; MoveAssigned &operator=(MoveAssigned &&) { return *this; } };",
    "CopyAssigned":
    "struct CopyAssigned { int x; CopyAssigned &operator=(const CopyAssigned &) { return *this; } };",
    "Destroyed":
    "struct Destroyed { int x; ~Destroyed() {} };", "DestroyDefaulted":
    "struct DestroyDefaulted { int x; ~DestroyDefaulted() = default; };",
    # GCC describes a class with virtual functions where its table is.
    "Virtual":
    "struct Virtual { int x; virtual int f() { return x; } }; Virtual a_virtual;", "VirtualBase":
    "struct VirtualBase : virtual Plain { int y; }; VirtualBase a_virtual_base;", "Derived":
    "struct Derived : Plain { int y; };", "DerivedCopied":
    "struct DerivedCopied : Copied { int y; };", "HasCopied":
    "struct HasCopied { int y; Copied c; };", "HasArray":
    "struct HasArray { Destroyed c[2]; };", "HasDeleted":
    "struct HasDeleted { CopyDeleted c; };", "OnlyDefaulted":
    "struct OnlyDefaulted { Moved c; OnlyDefaulted(const OnlyDefaulted &) = delete; };",
    "FromAnything":
    "struct FromAnything { int x; template <class U> FromAnything(U &&u); };", "Template":
    "template <class T> struct Template { T x; Template(const Template &o) : x(o.x) {} };",
    "Reference":
    "struct Reference { int &x; };", "RvalueReference":
    "struct RvalueReference { int &&x; };", "Union":
    "union Union { int x; long y; };", "Empty":
    "struct Empty {};", "EmptyBase":
    "struct EmptyBase : Empty { double d; };", "Large":
    "struct Large { long a, b, c; };", "Halves":
    "struct Halves { double d; long l; };", "Aligned":
    "struct alignas(16) Aligned { int x; };", "Nested":
    "struct Nested { struct Inner; };\n"
    "struct Nested::Inner { int x; Inner(const Inner &o) : x(o.x) {} };",
}
SPELLED = {"Template": "Template<int>", "Nested": "Nested::Inner"}

LIBRARY = """\
#include <algorithm>
#include <any>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>
using namespace std;
struct P { int a; string s; };
int run(function<int(P, string)> f, shared_ptr<P> p, unique_ptr<P> q, optional<string> o, variant<int, string> v, any a,
	pair<int, double> pr, tuple<int, string, double> t, chrono::milliseconds ms, filesystem::path path)
{
	return f(*p, "x") + !!q + o.has_value() + v.index() + a.has_value() + pr.first + get<0>(t) + ms.count() +
	       path.native().size();
}
int main()
{
	map<string, vector<int>> m;
	m["a"].push_back(1);
	smatch sm;
	string s = "aXb";
	regex_match(s, sm, regex("a.*b"));
	vector<P> v{{1, "a"}, {0, "b"}};
	sort(v.begin(), v.end(), [](P x, P y) { return x.a < y.a; });
	thread([](string q, shared_ptr<int> z) { return q.size() + *z; }, string("th"), make_shared<int>(4)).join();
	ostringstream out;
	out << s << nullptr;
	return run([](P p, string) { return p.a; }, make_shared<P>(), make_unique<P>(), "o", 3, 4, {1, 2.0}, {1, "s", 2.0},
		   chrono::milliseconds(3), "/p");
}
"""

VIRTUAL_BASES = """\
struct Base { int b; Base(int v) : b(v) {} };
struct Middle : virtual Base { int m; Middle(int first, long second) : Base(first), m(second) {} };
struct Last : Middle { Last(int v) : Base(v), Middle(v, 5) {} };
int main() { Last last(1); Middle middle(2, 3); return last.m + middle.m; }
"""


def build(name, source, compiler):
    need(compiler)
    path = os.path.join(folder(), f"{name}.cc")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    out = os.path.join(folder(), f"{name}.{compiler}")
    subprocess.run([compiler, "-std=c++17", "-g", "-O0", "-w", path, "-o", out, "-pthread"],
                   check=True)
    return out


def bodies(program):
    """Arguments of each out-of-line function, by its symbol."""
    out = cairn("sites", "--no-cache", "--sites", "--json", program)
    expect(out.status == 0, out)
    sites = [json.loads(line) for line in out.out.splitlines()]
    return {
        s["symbol"]: [a for a in s["args"] if a["name"] not in ("__in_chrg", "__vtt_parm", "vtt")]
        for s in sites
        if s["kind"] == "out-of-line" and not s["symbol_off"]
    }


def disagreements(source, name):
    """Arguments that both compilers' programs show, and those at different sites."""
    gcc, clang = (bodies(build(name, source, c)) for c in ("g++", "clang++"))
    shared, differ = 0, []
    for symbol in sorted(set(gcc) & set(clang)):
        if len(gcc[symbol]) != len(clang[symbol]):
            continue
        for a, b in zip(gcc[symbol], clang[symbol]):
            # What has no name and no members is described as being on the stack, or nowhere.
            if a["loc"] is None or b["loc"] is None or "const 0x00" in (a["loc"], b["loc"]):
                continue
            shared += 1
            if a["loc"] != b["loc"]:
                differ.append((symbol, a["name"], a["type"], a["loc"], b["loc"]))
    return shared, differ


# Their implicit constructors are deleted by a part: docs/findings/gcc-implicit-copy-is-deleted.md.
DELETED = """\
struct D { D(const D &) = delete; explicit D(int); char p[24]; };
struct Dm { Dm(Dm &&) = delete; explicit Dm(int); char p[24]; };
struct Dd { Dd(const Dd &) = default; Dd &operator=(Dd &&); explicit Dd(int); D d; };
struct Copied { Copied(const Copied &) {} explicit Copied(int) {} };
struct A0 : D { explicit A0(int s) : D(s) {} char q; };
struct A1 : D { explicit A1(int s) : D(s) {} ~A1() = default; char q; };
struct A2 : D { explicit A2(int s) : D(s) {} A2 &operator=(const A2 &); char q; };
struct A3 : D { explicit A3(int s) : D(s) {} A3 &operator=(A3 &&); char q; };
struct A4 : D { explicit A4(int s) : D(s) {} A4(A4 &&) = default; char q; };
struct A5 : D { explicit A5(int s) : D(s) {} A5(const A5 &) = default; char q; };
struct A6 : D { explicit A6(int s) : D(s), c(s) {} Copied c; };
struct B0 : Dm { explicit B0(int s) : Dm(s) {} char q; };
struct B1 : Dm { explicit B1(int s) : Dm(s) {} ~B1() = default; char q; };
struct C0 : Dd { explicit C0(int s) : Dd(s) {} char q; };
struct U0 : A0 { explicit U0(int s) : A0(s) {} };
"""
DELETING = ("D", "Dm", "Dd", "A0", "A1", "A2", "A3", "A4", "A5", "A6", "B0", "B1", "C0", "U0")


@claim
def a_class_whose_parts_delete_its_constructors_is_passed_as_gcc_does():
    """The code says it: the number after a class by value is in the first register, after one by
    address in the second."""
    functions = "".join(
        f'int take_{c}(long, {c} c, int after);\nint take_{c}(long, {c} c, int after) '
        f'{{ asm volatile("" :: "r"(&c)); return after; }}\n' for c in DELETING)
    program = build("deleted", DELETED + functions.replace("(long, ", "(") + "int main() {}\n",
                    "g++")
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True,
                          text=True, check=True).stdout
    shown, ways = bodies(program), set()
    for c in DELETING:
        symbol = next(s for s in shown if s.startswith(f"_Z{5 + len(c)}take_{c}"))
        body = code.split(f"<{symbol}>:\n")[1].split("\n\n")[0]
        register = "%rsi" if "%esi," in body else "%rdi"
        expect("%edi," in body or register == "%rsi", c, body)
        expect(shown[symbol][1]["name"] == "after" and shown[symbol][1]["loc"] == register, c,
               register, shown[symbol], body)
        ways.add(register)
    expect(ways == {"%rsi", "%rdi"}, ways)


def of_each_class():
    functions = [f"int take_{name}(int before, {SPELLED.get(name, name)} c, int after)"
                 f" {{ (void)&c; return before + after; }}" for name in CLASSES]
    return "\n".join([*CLASSES.values(), *functions, "int main() {}", ""])


@claim
def each_mixture_of_special_members_is_passed_as_clang_says():
    shared, differ = disagreements(of_each_class(), "classes")
    expect(not differ, differ)
    expect(shared > 2 * len(CLASSES), shared)


@claim
def all_arguments_around_a_class_are_known_with_gcc():
    for symbol, args in bodies(build("classes", of_each_class(), "g++")).items():
        unknown = [
            a for a in args if symbol.startswith("_Z") and "take_" in symbol and a["loc"] is None
            and a["unavailable"] != "vector-register"
        ]
        expect(not unknown, (symbol, unknown))


@claim
def what_only_one_file_can_call_is_passed_alike_where_clang_does_not_optimise():
    """On the stack, too, where no store of the prologue tells the site."""
    source = of_each_class().replace("int before,", "long a, long b, long c0, long d, int before,")
    local = source.replace("int take_", "__attribute__((used)) static int take_")
    shown = {}
    for name, text in (("global", source), ("local", local)):
        for symbol, args in bodies(build(name, text, "clang++")).items():
            if "take_" in symbol:
                shown.setdefault(symbol.replace("_ZL", "_Z"),
                                 []).append([(a["name"], a["loc"], a["unavailable"]) for a in args])
    expect(len(shown) == len(CLASSES), len(shown))
    for symbol, both in shown.items():
        expect(len(both) == 2 and both[0] == both[1], (symbol, both))
    expect(
        [loc for _, loc, _ in shown["_Z10take_Largelllli5Largei"][1]][-2:] == ["*(%rsp+8)",
                                                                               "%r9"], shown)


@claim
def a_clone_is_given_the_address_of_a_class_on_the_stack():
    need("g++")
    source = os.path.join(folder(), "clone.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "struct W { W(int y) : y(y) {} W(const W &o) : y(o.y + 1) {} ~W() { asm volatile(\"\" ::: \"memory\"); } int y; };\n"
            "static __attribute__((noinline)) long f(long k, long a, long b, long c, long d, long e, W *u, W w)\n"
            "{ asm volatile(\"\" ::: \"memory\"); return k + a + b + c + d + e + w.y + u->y; }\n"
            "int main(int c, char **v) { W x{c}; long s = 0; for (long i = 0; i < 3; i++) s += f(5, i, i + 1, c, i + 2, 7 * i, &x, x);\n"
            "return s & 1; }\n")
    program = os.path.join(folder(), "clone")
    subprocess.run(["g++", "-g", "-O2", source, "-o", program], check=True)
    args = [a for s, args in bodies(program).items() if ".constprop" in s for a in args]
    expect([a["loc"] for a in args][-2:] == ["%r9", "*(*(%rsp+8))"], args)


@claim
def all_functions_of_the_standard_library_get_their_arguments_as_clang_says():
    shared, differ = disagreements(LIBRARY, "library")
    expect(not differ, differ[:10])
    expect(shared > 1500, shared)


@claim
def constructors_with_virtual_bases_get_their_arguments_in_the_registers_that_the_code_reads():
    program = build("virtual", VIRTUAL_BASES, "g++")
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True,
                          text=True, check=True).stdout
    args = bodies(program)
    for symbol, second in (("_ZN6MiddleC1Eil", "%rdx"), ("_ZN6MiddleC2Eil", "%rcx")):
        expect([a["loc"] for a in args[symbol]][-1] == second, args[symbol])
        start = re.search(rf"<{symbol}>:\n((?:.*\n){{8}})", code).group(1)
        expect(re.search(rf"mov +{second},-0x", start), start)


@claim
def old_gcc_and_strict_dwarf_leave_classes_unknown_and_what_is_before_them_known():
    need("g++")
    source = os.path.join(folder(), "strict.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(
            "struct S { int x; }; int f(int a, S s, int b) { return a + s.x + b; } int main() {}\n")
    program = os.path.join(folder(), "strict")
    subprocess.run(["g++", "-g", "-O0", "-gdwarf-4", "-gstrict-dwarf", source, "-o", program],
                   check=True)
    expect([a["loc"] for a in bodies(program)["_Z1fi1Si"]] == ["%rdi", None, None], bodies(program))


main()
