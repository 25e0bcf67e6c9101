#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn bind: the accessors of each language read the same bytes, and print what C reads through the struct itself.

Each language gets a driver, made from `cairn bind --json`, that prints every member of every record (records.py says how)
and tries the setters: the value of one record set in another is read back, nothing beside the member changes, and setting
the old value again restores the bytes.
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from claims import Skip, cairn, claim, claim_each, expect, folder, main, need, run, write  # noqa: E402
from records import Structs, c_values, read_values  # noqa: E402

STRUCTS, RECORDS = 15, 10
ORDERS = ["x86-64", "s390x"]


def bind(lang, structs, name, *words):
    path = os.path.join(folder(), name)
    cairn("bind", "--lang", lang, structs.path, "struct s*", "-o", path, *words, check=True)
    return path


def shown(field):
    return [f for f in field["fields"] if f["kind"] != "bytes"]


def indices(field, before=", "):
    return "".join(f"{before}i{k}" for k in range(len(field["dims"])))


# ---- C ----

def c_driver(structs, layouts, count):
    text = r"""
static int bad;
static void put_wide(unsigned __int128 v, int negative)
{
	char t[48], *at = t + 47;
	*at = 0;
	do *--at = (char)('0' + (int)(v % 10)); while (v /= 10);
	printf("%s%s\n", negative ? "-" : "", at);
}
static void put_text(const char *s) { for (; *s; s++) printf("%02x", (unsigned char)*s); puts(""); }
"""
    text = f"#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>\n#include \"bind.h\"\n{text}"
    body = ""
    for name in structs.names:
        layout = layouts[name]
        size = layout["size"]
        text += f"static void show_{name}(const unsigned char *a, const unsigned char *b)\n{{\n\tputs(\"-\");\n"
        for f in shown(layout):
            get, set_ = f"{name}_get_{f['name']}", f"{name}_set_{f['name']}"
            loops = "".join(f"for (int i{k} = 0; i{k} < {d['count']}; i{k}++) " for k, d in enumerate(f["dims"]))
            show = "".join(" %d" for _ in f["dims"])
            at = f"{f['offset']}" + "".join(f" + i{k} * {d['stride']}" for k, d in enumerate(f["dims"]))
            text += f"\t{loops}{{\n\t\tunsigned char c[{size}]; memcpy(c, b, {size}); (void)c;\n"
            text += f"\t\tprintf(\"{f['name']}{show} = \"{indices(f)});\n"
            if f["kind"] == "text":
                text += (f"\t\tchar t[64], u[64]; {get}(a{indices(f)}, t, 64); put_text(t);\n"
                         f"\t\t{set_}(c{indices(f)}, t); {get}(c{indices(f)}, u, 64); bad += strcmp(t, u) != 0;\n"
                         f"\t\tbad += memcmp(c, b, {at}) != 0 || memcmp(c + {at} + {f['size']}, b + {at} + {f['size']}, "
                         f"{size} - ({at} + {f['size']})) != 0;\n\t}}\n")
                continue
            text += f"\t\t__auto_type v = {get}(a{indices(f)}); __auto_type w = {get}(b{indices(f)});\n"
            if f["kind"] == "float":
                bits = "unsigned int" if f["size"] == 4 else "unsigned long long"
                text += f"\t\t{bits} x; memcpy(&x, &v, sizeof(x)); printf(\"%llu\\n\", (unsigned long long)x);\n"
            elif f["size"] == 16 and "bits" not in f:
                text += "\t\tput_wide(v < 0 ? -(unsigned __int128)v : (unsigned __int128)v, v < 0);\n"
            else:
                text += (f"\t\tprintf(\"%{'lld' if f['signed'] else 'llu'}\\n\", "
                         f"({'' if f['signed'] else 'unsigned '}long long)v);\n")
            text += (f"\t\t{set_}(c{indices(f)}, v); __auto_type y = {get}(c{indices(f)}); "
                     f"bad += memcmp(&v, &y, sizeof(v)) != 0;\n"
                     f"\t\t{set_}(c{indices(f)}, w); bad += memcmp(c, b, {size}) != 0;\n\t}}\n")
        text += "}\n"
        body += (f"\t{{ static unsigned char d[{count}][{size}]; if (fread(d, {size}, {count}, stdin) != {count}) return 1;\n"
                 f"\t  for (int n = 0; n < {count}; n++) show_{name}(d[n], d[(n + 1) % {count}]); }}\n")
    return text + "int main(void)\n{\n" + body + "\treturn bad != 0;\n}\n"


def run_c(structs, layouts, data, words):
    need("gcc")
    bind("c", structs, "bind.h", *words)
    source = write("driver.c", c_driver(structs, layouts, RECORDS))
    program = os.path.join(folder(), "driver-c")
    run("gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-unused-function", "-Wno-sign-compare",
        "-Wno-sign-conversion", "-Wno-type-limits", "-Wno-stringop-overread", "-fsanitize=undefined",
        "-fno-sanitize-recover", "-o", program, source, check=True)
    return read_values(structs, data, [program])


# ---- Rust ----

def rust_driver(structs, layouts, count):
    text = "mod bind;\nuse bind::*;\nuse std::io::Read;\n"
    body = ""
    for name in structs.names:
        layout = layouts[name]
        size, cls = layout["size"], layout["class"]
        text += f"fn show_{name}(a: &[u8], b: &[u8]) -> u32 {{\n    let mut bad = 0;\n    println!(\"-\");\n"
        text += f"    let ra = {cls}::new(a).unwrap();\n    let rb = {cls}::new(b).unwrap();\n"
        for f in shown(layout):
            loops = "".join(f"for i{k} in 0..{d['count']}usize {{ " for k, d in enumerate(f["dims"]))
            show = "".join(" {}" for _ in f["dims"])
            args = ", ".join(f"i{k}" for k in range(len(f["dims"])))
            comma = ", " if args else ""
            text += f"    {loops}{{\n        let v = ra.get_{f['name']}({args});\n"
            if f["kind"] == "text":
                value = "v.iter().map(|c| format!(\"{:02x}\", c)).collect::<String>()"
            elif f["kind"] == "float":
                value = "v.to_bits()"
            elif f["kind"] == "bool":
                value = "v as u8"
            else:
                value = "v"
            text += f"        println!(\"{f['name']}{show} = {{}}\"{comma}{args}, {value});\n"
            same = "v.to_bits() == {}.to_bits()" if f["kind"] == "float" else "v == {}"
            text += f"        let mut c = b.to_vec();\n        {cls}::new(&mut c[..]).unwrap().set_{f['name']}({args}{comma}v);\n"
            text += f"        bad += !({same.format(f'{cls}::new(&c[..]).unwrap().get_' + f['name'] + '(' + args + ')')}) as u32;\n"
            if f["kind"] == "text":
                at = str(f["offset"]) + "".join(f" + i{k} * {d['stride']}" for k, d in enumerate(f["dims"]))
                text += f"        let at = {at};\n        bad += (c[..at] != b[..at] || c[at + {f['size']}..] != b[at + {f['size']}..]) as u32;\n"
                text += "        let _ = &rb;\n"
            else:
                text += f"        {cls}::new(&mut c[..]).unwrap().set_{f['name']}({args}{comma}rb.get_{f['name']}({args}));\n"
                text += "        bad += (c != b) as u32;\n"
            text += "    }" + " }" * len(f["dims"]) + "\n"
        text += "    bad\n}\n"
        body += (f"    let mut d = vec![0u8; {size * count}];\n    std::io::stdin().read_exact(&mut d).unwrap();\n"
                 f"    for n in 0..{count} {{ let m = (n + 1) % {count};\n"
                 f"        bad += show_{name}(&d[n * {size}..(n + 1) * {size}], &d[m * {size}..(m + 1) * {size}]); }}\n")
    return text + "fn main() {\n    let mut bad = 0;\n" + body + "    std::process::exit((bad != 0) as i32);\n}\n"


def run_rust(structs, layouts, data, words):
    need("rustc")
    bind("rust", structs, "bind.rs", *words)
    source = write("driver.rs", rust_driver(structs, layouts, RECORDS))
    program = os.path.join(folder(), "driver-rust")
    done = run("rustc", "--edition", "2021", "-C", "debuginfo=0", "-D", "warnings", "-A", "unused_mut", "-A",
               "unused_macros", "-o", program, source, seconds=300)
    if "rustup" in done.err and done.status:
        raise Skip("rustc is not set up: " + done.err.strip().splitlines()[0])
    expect(done.status == 0, done)
    return read_values(structs, data, [program])


# ---- Python ----

PYTHON = r"""
import struct, sys
import bind
LAYOUTS, COUNT = %r, %d
bad = 0

def places(dims):
    found = [()]
    for d in dims:
        found = [(*p, i) for p in found for i in range(d["count"])]
    return found

def text(f, v):
    if f["kind"] == "text":
        return v.encode().hex()
    if f["kind"] == "float":
        return str(int.from_bytes(struct.pack("<f" if f["size"] == 4 else "<d", v), "little"))
    return str(int(v))

for layout in LAYOUTS:
    cls, size = getattr(bind, layout["class"]), layout["size"]
    data = [bytearray(sys.stdin.buffer.read(size)) for _ in range(COUNT)]
    for n in range(COUNT):
        print("-")
        a, b = cls(data[n]), cls(data[(n + 1) %% COUNT])
        for f in layout["fields"]:
            if f["kind"] == "bytes":
                continue
            for p in places(f["dims"]):
                get, change = "get_" + f["name"], "set_" + f["name"]
                v = getattr(a, get)(*p)
                print(f["name"], *p, "=", text(f, v))
                c = cls(bytearray(b.bytes))
                getattr(c, change)(*p, v)
                bad += getattr(c, get)(*p) != v and v == v
                at = f["offset"] + sum(i * d["stride"] for i, d in zip(p, f["dims"]))
                bad += c.bytes[:at] != b.bytes[:at] or c.bytes[at + f["size"]:] != b.bytes[at + f["size"]:]
                w = getattr(b, get)(*p)
                getattr(c, change)(*p, w)
                bad += f["kind"] != "text" and w == w and bytes(c.bytes) != bytes(b.bytes)
sys.exit(bad != 0)
"""


def run_python(structs, layouts, data, words):
    bind("python", structs, "bind.py", *words)
    source = write("driver.py", PYTHON % ([layouts[n] for n in structs.names], RECORDS))
    return read_values(structs, data, [sys.executable, source])


# ---- Java ----

JAVA_HELPERS = r"""
    static int bad = 0;
    static StringBuilder out = new StringBuilder();
    static String hex(String s) {
        StringBuilder b = new StringBuilder();
        for (byte c : s.getBytes(java.nio.charset.StandardCharsets.UTF_8)) b.append(String.format("%02x", c));
        return b.toString();
    }
    static MemorySegment copy(MemorySegment s) { return MemorySegment.ofArray(s.toArray(ValueLayout.JAVA_BYTE)); }
    static boolean same(MemorySegment a, MemorySegment b) { return a.mismatch(b) == -1; }
    static boolean beside(MemorySegment a, MemorySegment b, long at, long size) {
        return same(a.asSlice(0, at), b.asSlice(0, at)) && same(a.asSlice(at + size), b.asSlice(at + size));
    }
"""


def java_driver(structs, layouts, count):
    text = "import java.lang.foreign.*;\nimport java.io.*;\n\npublic class Driver {\n" + JAVA_HELPERS
    body = ""
    for name in structs.names:
        layout = layouts[name]
        size, cls = layout["size"], "Records." + layout["class"]
        text += f"    static void show_{name}(MemorySegment a, MemorySegment b) {{\n        out.append(\"-\\n\");\n"
        for f in shown(layout):
            loops = "".join(f"for (int i{k} = 0; i{k} < {d['count']}; i{k}++) " for k, d in enumerate(f["dims"]))
            show = "".join(f" + \" \" + i{k}" for k in range(len(f["dims"])))
            args = indices(f)
            if f["kind"] == "text":
                value = "hex(v)"
            elif f["kind"] == "float":
                value = ("Integer.toUnsignedString(Float.floatToRawIntBits(v))" if f["size"] == 4
                         else "Long.toUnsignedString(Double.doubleToRawLongBits(v))")
            elif f["kind"] == "bool":
                value = "(v ? 1 : 0)"
            elif f["size"] == 16 and "bits" not in f or f["signed"]:
                value = "v"
            else:
                value = "Long.toUnsignedString(v)"
            equal = {"text": "v.equals(w)", "float": "(v == w || v != v)"}.get(f["kind"], "v == w")
            if f["size"] == 16 and f["kind"] == "int" and "bits" not in f:
                equal = "v.equals(w)"
            at = str(f["offset"]) + "".join(f" + i{k} * {d['stride']}" for k, d in enumerate(f["dims"]))
            text += (f"        {loops}{{\n            var v = {cls}.get_{f['name']}(a{args});\n"
                     f"            out.append(\"{f['name']}\"{show} + \" = \").append({value}).append('\\n');\n"
                     f"            MemorySegment c = copy(b);\n            {cls}.set_{f['name']}(c{args}, v);\n"
                     f"            var w = {cls}.get_{f['name']}(c{args});\n            if (!({equal})) bad++;\n"
                     f"            if (!beside(b, c, {at}, {f['size']})) bad++;\n")
            if f["kind"] != "text":
                text += (f"            {cls}.set_{f['name']}(c{args}, {cls}.get_{f['name']}(b{args}));\n"
                         f"            if (!same(b, c)) bad++;\n")
            text += "        }\n"
        text += "    }\n"
        body += (f"        {{ MemorySegment d = MemorySegment.ofArray(in.readNBytes({size * count}));\n"
                 f"          for (int n = 0; n < {count}; n++) show_{name}(d.asSlice(n * {size}L, {size}), "
                 f"d.asSlice((n + 1) % {count} * {size}L, {size})); }}\n")
    return (text + "    public static void main(String[] args) throws IOException {\n        InputStream in = System.in;\n"
            + body + "        System.out.print(out);\n        System.out.flush();\n        System.exit(bad != 0 ? 1 : 0);\n    }\n}\n")


def java_tools():
    """javac and java of 22 or later, from JAVA22_HOME, JAVA_HOME or the path."""
    places = [os.path.join(os.environ[v], "bin") for v in ("JAVA22_HOME", "JAVA_HOME") if v in os.environ]
    places += [os.path.dirname(shutil.which("javac") or "")]
    versions = []
    for place in places:
        tool = os.path.join(place, "javac")
        if not os.access(tool, os.X_OK):
            continue
        said = run(tool, "--version").out
        version = re.search(r"javac (\d+)", said)
        if version and int(version[1]) >= 22:
            return tool, os.path.join(place, "java")
        versions.append(said.strip())
    raise Skip("java.lang.foreign is final since Java 22; here is " + (", ".join(versions) or "no javac"))


def run_java(structs, layouts, data, words):
    javac, java = java_tools()
    records = bind("java", structs, "Records.java", *words)
    driver = write("Driver.java", java_driver(structs, layouts, RECORDS))
    run(javac, "-Xlint:all", "-Werror", "-d", folder(), records, driver, check=True, seconds=300)
    return read_values(structs, data, [java, "-XX:-UsePerfData", "-cp", folder(), "Driver"])


LANGUAGES = {"c": run_c, "rust": run_rust, "java": run_java, "python": run_python}


def truth_and_data(abi):
    """The structs, their layouts, records, and what C reads in them: here, or on the other machine's emulator."""
    structs = Structs(STRUCTS, "bind" + abi)
    layouts = structs.fields("--abi", abi)
    data = structs.records(layouts, RECORDS)
    if abi == "x86-64":
        need("gcc")
        return structs, layouts, data, c_values(structs, layouts, data)[1]
    compiler = shutil.which("s390x-linux-gnu-gcc")
    runner = shutil.which("qemu-s390x") or shutil.which("qemu-s390x-static")
    if compiler and runner:
        return structs, layouts, data, c_values(structs, layouts, data, compiler, ("-static",), (runner,))[1]
    # Without them all languages are still compared with one another.
    return structs, layouts, data, run_python(structs, layouts, data, ("--abi", abi))


_truth = {}


@claim_each(*(f"{lang}, {abi}" for lang in LANGUAGES for abi in ORDERS))
def accessors_read_and_write_what_the_compiler_does(case):
    lang, abi = case.split(", ")
    if abi not in _truth:
        _truth[abi] = truth_and_data(abi)
    structs, layouts, data, truth = _truth[abi]
    compare(lang, abi, structs, layouts, truth, LANGUAGES[lang](structs, layouts, data, ("--abi", abi)))


def compare(lang, abi, structs, layouts, truth, said):
    count = 0
    for name in structs.names:
        fields = {f["name"]: f for f in layouts[name]["fields"]}
        for n, (a, b) in enumerate(zip(truth[name], said[name])):
            expect(len(a) == len(b), name, n, len(a), len(b))
            for x, y in zip(a, b):
                count += 1
                # A NaN may be made quiet on the way through a language.
                quiet = fields[x[0].split()[0]]["kind"] == "float" and int(x[1]) ^ int(y[1]) in (1 << 22, 1 << 51)
                expect(x == y or quiet, name, n, x, y, fields[x[0].split()[0]])
    print(f"# {lang}, {abi}: {count} values equal")


@claim_each(*LANGUAGES)
def of_structs_in_the_other_byte_order_too(lang):
    need("gcc")
    if "swapped" not in _truth:
        structs = Structs(STRUCTS, "swapped", order="big-endian")
        # Declarations of the other order are not read; the compiler's own words about them are.
        source = write("swapped.c", structs.text + "".join(f"struct {n} v_{n};\n" for n in structs.names))
        structs.path = os.path.join(folder(), "swapped.o")
        run("gcc", "-w", "-g", "-c", "-o", structs.path, source, check=True)
        layouts = structs.fields()
        data = structs.records(layouts, RECORDS)
        _truth["swapped"] = structs, layouts, data, c_values(structs, layouts, data)[1]
    structs, layouts, data, truth = _truth["swapped"]
    expect(any(f["big_endian"] for layout in layouts.values() for f in layout["fields"]), layouts)
    compare(lang, "swapped", structs, layouts, truth, LANGUAGES[lang](structs, layouts, data, ()))


EVENT = ("struct peer { unsigned short port; unsigned char address[4]; };\n"
         "struct event { unsigned int pid; struct peer peers[2]; char comm[16]; long double wide; unsigned kind : 3;\n"
         "  int peers_port; unsigned long tail[]; };\n")


@claim
def c_compares_a_struct_of_the_user_at_compile_time():
    need("gcc")
    path = write("event.h", EVENT)
    cairn("bind", "--lang", "c", path, "event", "-o", os.path.join(folder(), "event_bind.h"), check=True)
    for text, status in ((EVENT, 0), (EVENT.replace("unsigned int pid;", "unsigned long pid;"), 1)):
        source = write("assert.c", text + "#define EVENT_TYPE struct event\n#include \"event_bind.h\"\n"
                                          "int main(void) { return 0; }\n")
        r = run("gcc", "-fsyntax-only", source)
        expect(r.status == status, r)
        expect(not status or "offset of" in r.err, r)


@claim
def rust_compares_a_struct_of_the_user_at_compile_time_and_needs_core_only():
    need("rustc")
    path = write("event.h", EVENT)
    cairn("bind", "--lang", "rust", path, "peer", "-o", os.path.join(folder(), "peer.rs"), check=True)
    for port, status in (("u16", 0), ("u32", 1)):
        source = write("lib.rs", "#![no_std]\n#[macro_use]\npub mod peer;\n#[repr(C)]\n"
                                 f"pub struct Mine {{ port: {port}, address: [u8; 4] }}\npeer_assert!(Mine, port = 0, address = 2);\n")
        r = run("rustc", "--edition", "2021", "--crate-type", "lib", "--emit", "metadata", "-A", "dead_code",
                "--out-dir", folder(), source)
        if not status and r.status and ("rustup" in r.err or "offset_of" in r.err):
            raise Skip("needs Rust 1.77: " + r.err.splitlines()[0])
        expect((r.status != 0) == (status != 0), r)


@claim
def records_that_are_too_short_and_indices_beyond_the_end_are_refused():
    path = write("event.h", EVENT)
    cairn("bind", "--lang", "python", path, "event", "-o", os.path.join(folder(), "event.py"), check=True)
    code = ("import event\ntry:\n  event.Event(bytes(10)); print('taken')\nexcept ValueError as e: print('short')\n"
            "e = event.Event(bytearray(event.Event.SIZE + 16))\ne.set_tail(1, 77)\nprint(e.get_tail(1), e.pid)\n"
            "for bad in (lambda: e.get_tail(100), lambda: e.get_peers_port(2), lambda: e.get_peers_port(-1)):\n"
            "  try:\n    bad(); print('taken')\n  except IndexError: print('refused')\n")
    r = run(sys.executable, "-c", code, cwd=folder(), check=True)
    expect(r.lines() == ["short", "77 0", "refused", "refused", "refused"], r)
    # Two members that would have one name: the later one has a number.
    names = [f["name"] for f in cairn("bind", "--json", path, "event", check=True).objects()[0]["fields"]]
    expect("peers_port" in names and "peers_port_2" in names, names)


FLEXIBLE = """
struct list { unsigned n; struct { short a; int b; } in[]; };
struct all { unsigned n; unsigned bits : 3; float f; double d; char text[4]; _Bool yes; int m[2][3]; unsigned char tail[]; };
"""


@claim
def a_python_module_with_a_flexible_array_is_imported_and_reads_it():
    path = write("flexible.h", FLEXIBLE)
    cairn("bind", "--lang", "python", path, "list", "all", "-o", os.path.join(folder(), "flexible.py"), check=True)
    write("flexible_use.py", "import flexible, struct\n"
          "r = flexible.List(bytearray(struct.pack('<Ihxxihxxi', 2, 3, 4, 5, 6)))\n"
          "print([(r.get_in_a(i), r.get_in_b(i)) for i in range(r.n)])\n"
          "try:\n    r.get_in_a(2)\nexcept IndexError:\n    print('refused')\n")
    r = run(sys.executable, os.path.join(folder(), "flexible_use.py"))
    expect(r.status == 0 and r.out == "[(3, 4), (5, 6)]\nrefused\n", r)


TAKEN = "".join(f"struct {name} {{ char t[4]; int n; }};\n" for name in ("self", "record", "string", "objects", "some"))


@claim_each("python", "rust", "java")
def structs_that_are_called_as_a_word_of_the_language_have_an_underscore(lang):
    path = write("taken.h", TAKEN)
    out = os.path.join(folder(), {"python": "taken.py", "rust": "taken.rs", "java": "Records.java"}[lang])
    cairn("bind", "--lang", lang, path, "*", "-o", out, check=True)
    text = open(out, encoding="utf-8").read()
    for name in ("Self_", "Record_", "String_", "Objects_", "Some_"):
        expect(re.search(rf"(class|struct) {name}\b", text), name, text)
    if lang == "python":
        run(sys.executable, out, check=True)
    elif lang == "rust":
        need("rustc")
        run("rustc", "-D", "warnings", "-A", "dead_code", "--crate-type", "lib", "--emit", "metadata", "-o",
            os.path.join(folder(), "taken.rmeta"), out, check=True)


@claim_each("g++", "clang++")
def the_c_header_is_usable_from_cxx(compiler):
    need(compiler)
    path = write("flexible.h", FLEXIBLE)
    cairn("bind", "--lang", "c", path, "list", "all", "-o", os.path.join(folder(), "flexible_bind.h"), check=True)
    use = write("use.cc", '#include "flexible.h"\n#define ALL_TYPE struct all\n#include "flexible_bind.h"\n'
                "int main() { unsigned char r[64] = {0}; all_set_bits(r, 5); return all_get_bits(r) == 5 ? 0 : 1; }\n")
    out = os.path.join(folder(), "use_cxx")
    run(compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-D_Bool=bool", "-Wno-unused-function", "-o", out, use, check=True)
    expect(run(out).status == 0)
    # And it still compares.
    wrong = write("wrong.cc", open(use, encoding="utf-8").read().replace("ALL_TYPE struct all", "ALL_TYPE struct list"))
    expect(run(compiler, "-std=c++17", "-c", "-o", os.devnull, wrong).status != 0)


@claim
def bad_command_lines_are_usage_errors():
    path = write("event.h", EVENT)
    for words in (["bind"], ["bind", "--lang", "cobol", path, "event"], ["bind", "--lang", "c", path],
                  ["bind", "--lang", "c", "/no/such/file", "event"], ["bind", path, "event"],
                  ["bind", "--lang", "c", path, "event", "-o", "/no/such/folder/x"]):
        r = cairn(*words)
        expect(r.status == 2 and r.err and not r.out, r)
    expect(cairn("bind", "--lang", "c", path, "nothing").status == 1, "a type that is not there")


main()
