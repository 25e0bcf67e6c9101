# SPDX-License-Identifier: BSD-2-Clause
"""A program per language that uses the accessors of `cairn bind`, made from `cairn bind --lang LANG
--json`.

Each prints every member of every record as records.py says, and tries the setters: the value of one
record set in another is read back, nothing beside the member changes, and setting the old value
again restores the bytes. RUNNERS has a function for each language, which takes the structs, records
of them and further words for the command line, and returns what was read. The tools are asked to be
as strict as they can be.
"""

import functools
import glob
import os
import re
import shutil
import sys

from claims import Skip, cairn, expect, folder, need, run, write
from records import read_values


class Bound:
    """What a driver is made from: structs, their members as the language names them, and how many
    records come."""

    def __init__(self, lang, structs, data, words):
        self.lang, self.structs, self.data, self.words = lang, structs, data, words
        self.names = structs.names
        self.layouts = structs.fields("--lang", lang, *words)
        self.count = len(data[self.names[0]])

    def bind(self, name, *words):
        path = os.path.join(folder(), name)
        cairn("bind", "--lang", self.lang, *self.structs.operands, "-o", path, *self.words, *words,
              check=True)
        return path

    def read(self, command):
        return read_values(self.structs, self.data, command)


def shown(field):
    return [f for f in field["fields"] if f["kind"] != "bytes"]


def indices(field, before=", "):
    return "".join(f"{before}i{k}" for k in range(len(field["dims"])))


def in_struct(layout, f, step="{}"):
    """The member of the struct beside the accessors, as an expression; None where it is not in
    there."""
    if not layout.get("struct") or not f["in_struct"]:
        return None
    path = "".join("[0]" if word == "[0]" else "." + step.format(word)
                   for word in re.findall(r"\w+|\[0\]", f["in_struct"]))
    for k in range(len(f["dims"])):
        path = path.replace("[0]", f"[i{k}]", 1)
    return "s" + path


# ---- C ----

def c_driver(bound):
    layouts, count = bound.layouts, bound.count
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
    for name in bound.names:
        layout = layouts[name]
        size = layout["size"]
        text += f"static void show_{name}(const unsigned char *a, const unsigned char *b)\n{{\n\tputs(\"-\");\n"
        for f in shown(layout):
            get, set_ = f"{name}_{f['get']}", f"{name}_{f['set']}"
            loops = "".join(f"for (int i{k} = 0; i{k} < {d['count']}; i{k}++) "
                            for k, d in enumerate(f["dims"]))
            show = "".join(" %d" for _ in f["dims"])
            at = f"{f['offset']}" + "".join(f" + i{k} * {d['stride']}"
                                            for k, d in enumerate(f["dims"]))
            text += f"\t{loops}{{\n\t\tunsigned char c[{size}]; memcpy(c, b, {size}); (void)c;\n"
            text += f"\t\tprintf(\"{f['name']}{show} = \"{indices(f)});\n"
            if f["kind"] == "text":
                text += (
                    f"\t\tchar t[64], u[64]; {get}(a{indices(f)}, t, 64); put_text(t);\n"
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
        body += (
            f"\t{{ static unsigned char d[{count}][{size}]; if (fread(d, {size}, {count}, stdin) != {count}) return 1;\n"
            f"\t  for (int n = 0; n < {count}; n++) show_{name}(d[n], d[(n + 1) % {count}]); }}\n")
    return text + "int main(void)\n{\n" + body + "\treturn bad != 0;\n}\n"


def run_c(structs, data, words=()):
    need("gcc")
    bound = Bound("c", structs, data, words)
    bound.bind("bind.h")
    source = write("driver.c", c_driver(bound))
    program = os.path.join(folder(), "driver-c")
    run("gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-unused-function",
        "-Wno-sign-compare", "-Wno-sign-conversion", "-Wno-type-limits", "-Wno-stringop-overread",
        "-fsanitize=undefined", "-fno-sanitize-recover", "-o", program, source, check=True,
        seconds=900)
    return bound.read([program])


# ---- Rust ----

def rust_driver(bound):
    layouts, count = bound.layouts, bound.count
    text = "mod bind;\nuse bind::*;\nuse std::io::Read;\n"
    body = ""
    for name in bound.names:
        layout = layouts[name]
        size, cls = layout["size"], layout["class"]
        text += f"fn show_{name}(a: &[u8], b: &[u8]) -> u32 {{\n    let mut bad = 0;\n    println!(\"-\");\n"
        # Of the other byte order there is none.
        if layout["big_endian"]:
            layout["struct"] = None
        if layout["struct"]:
            text += f"    let s = {layout['struct']}::read(a).unwrap();\n    let _ = &s;\n"
        text += f"    let ra = {cls}::new(a).unwrap();\n    let rb = {cls}::new(b).unwrap();\n"
        for f in shown(layout):
            loops = "".join(
                f"for i{k} in 0..{d['count']}usize {{ " for k, d in enumerate(f["dims"]))
            show = "".join(" {}" for _ in f["dims"])
            args = ", ".join(f"i{k}" for k in range(len(f["dims"])))
            comma = ", " if args else ""
            text += f"    {loops}{{\n        let v = ra.{f['get']}({args});\n"
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
            member = in_struct(layout, f)
            if member:
                other = {
                    "text": "v == x.split(|c| *c == 0).next().unwrap()", "bool": "v == (x != 0)",
                    "float": "v.to_bits() == x.to_bits()"
                }.get(f["kind"], "v == x")
                text += f"        #[allow(unused_unsafe)]\n        let x = unsafe {{ {member} }};\n        bad += !({other}) as u32;\n"
            text += f"        let mut c = b.to_vec();\n        {cls}::new(&mut c[..]).unwrap().{f['set']}({args}{comma}v);\n"
            text += f"        bad += !({same.format(f'{cls}::new(&c[..]).unwrap().' + f['get'] + '(' + args + ')')}) as u32;\n"
            if f["kind"] == "text":
                at = str(f["offset"]) + "".join(f" + i{k} * {d['stride']}"
                                                for k, d in enumerate(f["dims"]))
                text += f"        let at = {at};\n        bad += (c[..at] != b[..at] || c[at + {f['size']}..] != b[at + {f['size']}..]) as u32;\n"
                text += "        let _ = &rb;\n"
            else:
                text += f"        {cls}::new(&mut c[..]).unwrap().{f['set']}({args}{comma}rb.{f['get']}({args}));\n"
                text += "        bad += (c != b) as u32;\n"
            text += "    }" + " }" * len(f["dims"]) + "\n"
        text += "    bad\n}\n"
        body += (
            f"    let mut d = vec![0u8; {size * count}];\n    std::io::stdin().read_exact(&mut d).unwrap();\n"
            f"    for n in 0..{count} {{ let m = (n + 1) % {count};\n"
            f"        bad += show_{name}(&d[n * {size}..(n + 1) * {size}], &d[m * {size}..(m + 1) * {size}]); }}\n"
        )
    return text + "fn main() {\n    let mut bad = 0;\n" + body + "    std::process::exit((bad != 0) as i32);\n}\n"


def rustc():
    """The compiler with clippy where there is one; it is Rust 1.77 or later."""
    need("rustc")
    done = run("rustc", "--version")
    version = re.match(r"rustc 1\.(\d+)", done.out)
    if not version or int(version[1]) < 77:
        raise Skip("needs Rust 1.77: " + (done.out or done.err).strip().splitlines()[0])
    return "clippy-driver" if shutil.which("clippy-driver") and run(
        "clippy-driver", "--version").status == 0 else "rustc"


def run_rust(structs, data, words=()):
    compiler = rustc()
    bound = Bound("rust", structs, data, words)
    made = bound.bind("bind.rs")
    # The driver is no code that anybody reads; the bindings are.
    lints = ("-D", "clippy::all") if compiler == "clippy-driver" else ()
    run(compiler, "--edition", "2021", "--crate-type",
        "lib", "--emit", "metadata", "-D", "warnings", *lints, "-o",
        os.path.join(folder(), "bind.rmeta"), made, check=True, seconds=900)
    source = write("driver.rs", rust_driver(bound))
    program = os.path.join(folder(), "driver-rust")
    run("rustc", "--edition", "2021", "-C", "debuginfo=0", "-D", "warnings", "-A", "unused_mut",
        "-A", "unused_macros", "-A", "dead_code", "-o", program, source, check=True, seconds=900)
    return bound.read([program])


# ---- Python ----

PYTHON = r"""
import re, struct, sys
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

def member(value, f, p):
    at = iter(p)
    for word in re.findall(r"\w+|\[0\]", f["in_struct"]):
        value = value[next(at)] if word == "[0]" else getattr(value, word)
    # Text in an array is an object of its own.
    return value.value if f["kind"] == "text" and not isinstance(value, bytes) else value

for layout in LAYOUTS:
    cls, size = getattr(bind, layout["class"]), layout["size"]
    shape = layout["struct"] and getattr(bind, layout["struct"])
    data = [bytearray(sys.stdin.buffer.read(size)) for _ in range(COUNT)]
    for n in range(COUNT):
        print("-")
        a, b = cls(data[n]), cls(data[(n + 1) %% COUNT])
        s = shape and shape.from_buffer_copy(data[n])
        for f in layout["fields"]:
            if f["kind"] == "bytes":
                continue
            for p in places(f["dims"]):
                get, change = f["get"], f["set"]
                v = getattr(a, get)(*p)
                print(f["name"], *p, "=", text(f, v))
                if shape and f["in_struct"]:
                    x = member(s, f, p)
                    bad += x != (v.encode() if f["kind"] == "text" else v) and x == x
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


def run_python(structs, data, words=()):
    bound = Bound("python", structs, data, words)
    bound.bind("bind.py")
    source = write("driver.py", PYTHON % ([bound.layouts[n] for n in bound.names], bound.count))
    return bound.read([sys.executable, "-W", "error", source])


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


def java_field(layout, f):
    """A method's statements for one member; a struct is "s"."""
    cls = "Records." + layout["class"]
    loops = "".join(
        f"for (int i{k} = 0; i{k} < {d['count']}; i{k}++) " for k, d in enumerate(f["dims"]))
    show = "".join(f" + \" \" + i{k}" for k in range(len(f["dims"])))
    args = indices(f)
    is_wide = f["size"] == 16 and f["kind"] == "int" and "bits" not in f
    value = {"text": "hex(v)", "bool": "(v ? 1 : 0)",
             "float": "Integer.toUnsignedString(Float.floatToRawIntBits(v))" if f["size"] == 4
                      else "Long.toUnsignedString(Double.doubleToRawLongBits(v))"}.get(f["kind"])
    value = value or ("v" if is_wide or f["signed"] else "Long.toUnsignedString(v)")
    equal = {"text": "v.equals(w)", "float": "(v == w || v != v)"}.get(
        f["kind"], "v.equals(w)" if is_wide else "v == w")
    at = str(f["offset"]) + "".join(f" + i{k} * {d['stride']}" for k, d in enumerate(f["dims"]))
    member = in_struct(layout, f, "{}()")
    other = f"            {{ var w = {member}; if (!({equal})) bad++; }}\n" if member else ""
    text = (
        f"        {loops}{{\n            var v = {cls}.{f['get']}(a{args});\n"
        f"            out.append(\"{f['name']}\"{show} + \" = \").append({value}).append('\\n');\n"
        f"{other}            MemorySegment c = copy(b);\n            {cls}.{f['set']}(c{args}, v);\n"
        f"            var w = {cls}.{f['get']}(c{args});\n            if (!({equal})) bad++;\n"
        f"            if (!beside(b, c, {at}, {f['size']})) bad++;\n")
    if f["kind"] != "text":
        text += (f"            {cls}.{f['set']}(c{args}, {cls}.{f['get']}(b{args}));\n"
                 f"            if (!same(b, c)) bad++;\n")
    return text + "        }\n"


def java_show(layout, name):
    """A class for a struct, and a method for some of its members: they have limits, too."""
    fields, struct = shown(layout), layout["struct"]
    text, calls = f"    static class Show_{name} {{\n", ""
    for k in range(0, len(fields), 50):
        also = f", Records.{struct} s" if struct else ""
        text += (f"    static void some{k}(MemorySegment a, MemorySegment b{also}) {{\n" +
                 "".join(java_field(layout, f) for f in fields[k:k + 50]) + "    }\n")
        calls += f"        some{k}(a, b{f', Records.{struct}.read(a)' if struct else ''});\n"
    return text + f"    static void all(MemorySegment a, MemorySegment b) {{\n        out.append(\"-\\n\");\n{calls}    }}\n    }}\n"


def java_driver(bound):
    text, body, count = "import java.lang.foreign.*;\nimport java.io.*;\n\npublic class Driver {\n" + JAVA_HELPERS, "", bound.count
    for name in bound.names:
        layout = bound.layouts[name]
        size = layout["size"]
        text += java_show(layout, name)
        body += (
            f"        {{ MemorySegment d = MemorySegment.ofArray(in.readNBytes({size * count}));\n"
            f"          for (int n = 0; n < {count}; n++) Show_{name}.all(d.asSlice(n * {size}L, {size}), "
            f"d.asSlice((n + 1) % {count} * {size}L, {size})); }}\n")
    return (
        text +
        "    public static void main(String[] args) throws IOException {\n        InputStream in = System.in;\n"
        + body +
        "        System.out.print(out);\n        System.out.flush();\n        System.exit(bad != 0 ? 1 : 0);\n    }\n}\n"
    )


# Both end soon after their start: code that is optimised for long runs, by several threads, would
# cost more than it saves.
SHORT_RUN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
JAVAC = tuple("-J" + word for word in SHORT_RUN)


@functools.lru_cache(maxsize=None)
def java_places():
    """Where javac and java of 22 or later are, or the versions that are there."""
    places = [
        os.path.join(os.environ[v], "bin") for v in ("JAVA22_HOME", "JAVA_HOME") if v in os.environ
    ]
    places += [
        os.path.dirname(shutil.which("javac") or ""), *sorted(glob.glob("/usr/lib/jvm/*/bin"))
    ]
    versions = []
    for place in places:
        tool = os.path.join(place, "javac")
        if not os.access(tool, os.X_OK):
            continue
        said = run(tool, "--version").out
        version = re.search(r"javac (\d+)", said)
        if version and int(version[1]) >= 22:
            return place, versions
        versions.append(said.strip())
    return None, versions


def java_tools():
    """Commands of javac and java, from JAVA22_HOME, JAVA_HOME, the path, or where Debian puts them.
    """
    place, versions = java_places()
    if not place:
        raise Skip("java.lang.foreign is final since Java 22; here is " +
                   (", ".join(versions) or "no javac"))
    return [os.path.join(place, "javac"),
            *JAVAC], [os.path.join(place, "java"), *SHORT_RUN, "-XX:-UsePerfData"]


def run_java(structs, data, words=()):
    javac, java = java_tools()
    bound = Bound("java", structs, data, words)
    records = bound.bind("Records.java")
    driver = write("Driver.java", java_driver(bound))
    run(*javac, "-Xlint:all", "-Werror", "-d", folder(), records, driver, check=True, seconds=900)
    return bound.read([*java, "-cp", folder(), "Driver"])


# ---- Go ----

GO = r"""package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"

	"bound/records"
)

var bad int
var out = bufio.NewWriter(os.Stdout)
var _ = math.Float32bits
var _ = wide

func wide(hi *big.Int, lo uint64) string {
	return new(big.Int).Add(new(big.Int).Lsh(hi, 64), new(big.Int).SetUint64(lo)).String()
}
func number(v bool) int {
	if v {
		return 1
	}
	return 0
}
func check(holds bool) { bad += number(!holds) }
func copied(b []byte) []byte { return append([]byte(nil), b...) }
func cut(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
func beside(a, b []byte, at, size int) bool { return bytes.Equal(a[:at], b[:at]) && bytes.Equal(a[at+size:], b[at+size:]) }
"""


def go_field(layout, f, cls):
    loops = "".join(
        f"for i{k} := 0; i{k} < {d['count']}; i{k}++ {{ " for k, d in enumerate(f["dims"]))
    args = ", ".join(f"i{k}" for k in range(len(f["dims"])))
    comma = ", " if args else ""
    is_wide = f["kind"] == "int" and f["size"] == 16 and "bits" not in f
    values = ("v", "vh") if is_wide else ("v",)
    v, w = ("vh, v", "wh, w") if is_wide else ("v", "w")
    shown = {
        "text": 'fmt.Sprintf("%x", v)', "bool": "number(v)", "float":
        f"math.Float{8 * f['size']}bits(v)"
    }.get(f["kind"], "v")
    if is_wide:
        shown = f"wide({'big.NewInt(vh)' if f['signed'] else 'new(big.Int).SetUint64(vh)'}, v)"
    # Numbers that are none are not equal to themselves, and the bytes are compared anyway.
    same = " && ".join(f"{x} == {x.replace('v', 'w')}"
                       for x in values) if f["kind"] != "float" else "v == w || v != v"
    at = str(f["offset"]) + "".join(f" + i{k} * {d['stride']}" for k, d in enumerate(f["dims"]))
    text = (
        f"\t{loops}{{ {v} := a.{f['get']}({args})\n\t\tfmt.Fprintln(out, \"{f['name']}\"{comma}{args}, \"=\", {shown})\n"
        f"\t\tc := copied(bb); e, _ := records.New{cls}(c)\n\t\te.{f['set']}({args}{comma}{v}); {w} := e.{f['get']}({args})\n"
        f"\t\tcheck({same}); check(beside(bb, c, {at}, {f['size']}))\n")
    member = in_struct(layout, f)
    if member:
        other = {"text": f"v == cut({member}[:])", "float": f"v == {member} || v != v"}.get(
            f["kind"], f"v == {member}")
        text += f"\t\tcheck({other})\n"
    if f["kind"] != "text":
        text += (f"\t\t{w} = b.{f['get']}({args}); e.{f['set']}({args}{comma}{w})\n"
                 f"\t\tcheck(bytes.Equal(bb, c){' || w != w' if f['kind'] == 'float' else ''})\n")
    return text + "\t}" + " }" * len(f["dims"]) + "\n"


def go_driver(bound):
    text, body = GO, ""
    for name in bound.names:
        layout = bound.layouts[name]
        size, cls = layout["size"], layout["class"]
        text += (
            f"func show_{name}(ab, bb []byte) {{\n\ta, err := records.New{cls}(ab)\n\tcheck(err == nil)\n"
            f"\tb, err := records.New{cls}(bb)\n\tcheck(err == nil)\n\t_, _ = a, b\n\tfmt.Fprintln(out, \"-\")\n"
        )
        if layout["struct"]:
            text += f"\ts, err := records.Read{layout['struct']}(ab)\n\tcheck(err == nil)\n\t_ = s\n"
        text += "".join(go_field(layout, f, cls) for f in shown(layout)) + "}\n"
        body += (
            f"\t{{\n\t\td := make([]byte, {size * bound.count})\n\t\t_, err := io.ReadFull(in, d)\n\t\tcheck(err == nil)\n"
            f"\t\tfor n := 0; n < {bound.count}; n++ {{\n\t\t\tm := (n + 1) % {bound.count}\n"
            f"\t\t\tshow_{name}(d[n*{size}:(n+1)*{size}], d[m*{size}:(m+1)*{size}])\n\t\t}}\n\t}}\n"
        )
    return (text + "func main() {\n\tin := bufio.NewReader(os.Stdin)\n" + body +
            "\tout.Flush()\n\tif bad != 0 {\n\t\tos.Exit(1)\n\t}\n}\n")


def run_go(structs, data, words=()):
    go = need("go")
    bound = Bound("go", structs, data, words)
    where = os.path.join(folder(), "go")
    os.makedirs(os.path.join(where, "records"), exist_ok=True)
    # The cache of the user makes the library once, and not in each test.
    environment = dict(os.environ, GOFLAGS="-mod=mod", GOTOOLCHAIN="local", HOME=os.environ.get(
        "HOME", where))
    made = bound.bind("go/records/records.go")
    write("go/go.mod", "module bound\n\ngo 1.18\n")
    write("go/main.go", go_driver(bound))
    run(go, "vet", "./records", cwd=where, env=environment, check=True, seconds=900)
    if shutil.which("gofmt"):
        expect(not run("gofmt", "-l", made, check=True).out, "gofmt would change the file")
    run(go, "build", "-gcflags=-N -l", "-o", "driver", ".", cwd=where, env=environment, check=True,
        seconds=900)
    return bound.read([os.path.join(where, "driver")])


# ---- TypeScript ----

TYPESCRIPT = r"""import { readFileSync, writeSync } from "fs";
import * as bind from "./bind";

let bad = 0, at = 0;
const lines: string[] = [], input: Uint8Array = readFileSync(0);
function take(size: number): DataView {
  at += size;
  return new DataView(input.buffer, input.byteOffset + at - size, size);
}
function raw(v: DataView): Uint8Array { return new Uint8Array(v.buffer, v.byteOffset, v.byteLength); }
function copied(v: DataView): DataView { return new DataView(raw(v).slice().buffer); }
function check(holds: boolean): void { bad += holds ? 0 : 1; }
function same(a: Uint8Array, b: Uint8Array): boolean { return a.length === b.length && a.every((c, i) => c === b[i]); }
function beside(a: DataView, b: DataView, at: number, size: number): boolean {
  const x = raw(a), y = raw(b);
  return same(x.subarray(0, at), y.subarray(0, at)) && same(x.subarray(at + size), y.subarray(at + size));
}
function hex(s: string): string { return Array.from(new TextEncoder().encode(s), (c) => c.toString(16).padStart(2, "0")).join(""); }
function f32(v: number): number { const d = new DataView(new ArrayBuffer(4)); d.setFloat32(0, v); return d.getUint32(0); }
function f64(v: number): bigint { const d = new DataView(new ArrayBuffer(8)); d.setFloat64(0, v); return d.getBigUint64(0); }
declare const process: { exitCode: number };
void [hex, f32, f64];
"""

NODE_TYPES = """declare module "fs" {
  export function readFileSync(fd: number): Uint8Array;
  export function writeSync(fd: number, text: Uint8Array, at: number): number;
}
declare class TextEncoder { encode(text: string): Uint8Array; }
"""


def typescript_field(layout, f, cls):
    loops = "".join(
        f"for (let i{k} = 0; i{k} < {d['count']}; i{k}++) " for k, d in enumerate(f["dims"]))
    args = ", ".join(f"i{k}" for k in range(len(f["dims"])))

    def get(of):
        return f"{of}.{f['get']}({args})" if args else f"{of}.{f['get']}"

    def put(of, value):
        return f"{of}.{f['set']}({args}, {value})" if args else f"{of}.{f['set']} = {value}"

    shown = {
        "text": "hex(v)", "bool": "Number(v)", "float": "f32(v)" if f["size"] == 4 else "f64(v)"
    }.get(f["kind"], "v")
    head = " ".join([f["name"], *(f"${{i{k}}}" for k in range(len(f["dims"])))])
    at = str(f["offset"]) + "".join(f" + i{k} * {d['stride']}" for k, d in enumerate(f["dims"]))
    text = (
        f"  {loops}{{\n    const v = {get('a')};\n    lines.push(`{head} = ${{{shown}}}`);\n"
        f"    const c = copied(bb), e = new bind.{cls}(c);\n    {put('e', 'v')};\n    check(Object.is({get('e')}, v));\n"
        f"    check(beside(bb, c, {at}, {f['size']}));\n")
    member = in_struct(layout, f)
    if member:
        text += f"    check(Object.is({member}, v));\n"
    if f["kind"] != "text":
        # A number that is none may be made quiet.
        either = f" || Number.isNaN({get('b')})" if f["kind"] == "float" else ""
        text += f"    {put('e', get('b'))};\n    check(same(raw(bb), raw(c)){either});\n"
    return text + "  }\n"


def typescript_driver(bound):
    text, body = TYPESCRIPT, ""
    for name in bound.names:
        layout = bound.layouts[name]
        text += (
            f"function show_{name}(ab: DataView, bb: DataView): void {{\n  const a = new bind.{layout['class']}(ab), "
            f"b = new bind.{layout['class']}(bb);\n  lines.push(\"-\");\n")
        text += f"  const s = bind.read{layout['struct']}(ab);\n  void s;\n"
        text += "".join(typescript_field(layout, f, layout["class"])
                        for f in shown(layout)) + "  void [a, b];\n}\n"
        body += (
            f"{{\n  const d = Array.from({{ length: {bound.count} }}, () => take({layout['size']}));\n"
            f"  d.forEach((v, n) => show_{name}(v, d[(n + 1) % {bound.count}]));\n}}\n")
    return (
        text + body + "const all = new TextEncoder().encode(lines.join(\"\\n\") + \"\\n\");\n"
        "for (let done = 0; done < all.length;) done += writeSync(1, all, done);\nprocess.exitCode = bad ? 1 : 0;\n"
    )


def run_typescript(structs, data, words=()):
    node, tsc = need("node"), need("tsc")
    bound = Bound("typescript", structs, data, words)
    made = bound.bind("bind.ts")
    driver = write("driver.ts", typescript_driver(bound))
    types = write("node.d.ts", NODE_TYPES)
    run(tsc, "--strict", "--skipLibCheck", "--noImplicitReturns", "--target",
        "es2020", "--lib", "es2020", "--module", "commonjs", "--typeRoots",
        os.path.join(folder(), "no-types"), "--noEmitOnError", "--outDir", folder(), made, driver,
        types, check=True, seconds=900)
    return bound.read([node, os.path.join(folder(), "driver.js")])


RUNNERS = {
    "c": run_c, "rust": run_rust, "java": run_java, "python": run_python, "go": run_go,
    "typescript": run_typescript
}
