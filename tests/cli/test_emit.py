#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn sites --emit: bpftrace, perf and gdb take the definitions, see every call, and print its
arguments."""

import os
import re

from claims import (MAY_HAVE_CHANGED, TAKE_VALUES, Skip, cairn, claim, claim_each_of_many,
                    claim_plainly, compile_c, expect, folder, main, need, need_root, run, write)

PROGRAM = """\
#include <stdio.h>
struct rec { int id; const char *name; };
enum colour { RED, GREEN = 5 };
static inline __attribute__((always_inline)) int add(int a, short b, const char *s, enum colour c)
{
	__asm__ volatile("" ::: "memory");
	return a * 3 + b + s[0] + (int)c;
}
static inline __attribute__((always_inline)) long bump(long *where, unsigned char by)
{
	__asm__ volatile("" ::: "memory");
	*where += by;
	return *where;
}
__attribute__((noinline)) int one(int n, const char *s)
{
	return add(n, -2, s, GREEN) ^ n;
}
__attribute__((noinline)) int two(struct rec *r, long *w)
{
	return add(r->id, 4, r->name, RED) + (int)bump(w, 3);
}
int main(void)
{
	struct rec r = { 7, "seven" };
	long w = 40;
	int t = 0;

	for (int i = 0; i < 5; i++) {
		t += one(i - 2, "alpha") + two(&r, &w);
		r.id++;
	}
	printf("%d %ld\\n", t, w);
	return 0;
}
"""

# Every call of add that the program makes, in order.
CALLS = [call for i in range(5) for call in ((i - 2, -2, "alpha", 5), (7 + i, 4, "seven", 0))]
COMPILERS = ("gcc", "clang")

# perf and bpftrace want tracefs, which not every machine has mounted; a mount of our own is seen by
# nobody else.
TRACEFS = """mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@" """


def with_tracefs(*command, **kwargs):
    need_root()
    possible = run(need("unshare"), "--mount", "true")
    if possible.status:
        raise Skip("no mounts of our own here: " + possible.err.strip())
    return run("unshare", "--mount", "sh", "-c", TRACEFS, "sh", *command, **kwargs)


def program(compiler, *flags):
    return compile_c("emit" + "".join(flags), PROGRAM, compiler, ("-O2", "-g", *flags))


def emit(tool, path, compiler, *words):
    """The script's path, for add and bump."""
    out = f"{path}.{tool}"
    with open(out, "w", encoding="utf-8") as file:
        file.write(
            cairn("sites", *TAKE_VALUES[compiler], *words, path, "add", "bump", "--emit", tool,
                  check=True).out)
    return out


@claim_each_of_many(*COMPILERS)
def gdb_stops_at_every_call_and_prints_its_arguments(compiler):
    gdb = need("gdb")
    path = program(compiler)
    r = run(gdb, "-q", "-nx", "-batch", "-ex", "break main", "-ex", "run", "-x",
            emit("gdb", path, compiler), "-ex", "continue", "--args", path)
    seen = re.findall(r'^add inlined in \S+ a=(-?\d+) b=(-?\d+) s=0x\w+ "(\w+)" c=(\d+)$', r.out,
                      re.M)
    expect([(int(a), int(b), s, int(c)) for a, b, s, c in seen] == CALLS, r)
    expect(len(re.findall(r"^bump inlined in \S+ where=0x\w+ by=3$", r.out, re.M)) == 5, r)


@claim_each_of_many(*COMPILERS)
def perf_sees_every_call_and_its_arguments(compiler):
    perf = need("perf")
    if with_tracefs("test", "-e", "/sys/kernel/tracing/uprobe_events").status:
        raise Skip("this kernel has no uprobe_events")
    path = program(compiler)
    script, data = emit("perf", path, compiler), os.path.join(folder(), "perf.data")
    # Events of an earlier, interrupted run would be counted too.
    with_tracefs(perf, "probe", "-q", "-d", "cairn:*")
    made = with_tracefs("sh", script)
    try:
        expect(made.status == 0, made)
        with_tracefs(perf, "record", "-q", "-o", data, "-e", "cairn:*", path, check=True)
        r = with_tracefs(perf, "script", "-i", data, check=True)
    finally:
        with_tracefs(perf, "probe", "-q", "-d", "cairn:*")
    seen = re.findall(r'cairn:add_\d+: \(\w+\) a=(-?\d+) b=(\S+) s="(\w+)" c=(\d+)', r.out)
    expect([(int(a), int(b), s, int(c)) for a, b, s, c in seen] == CALLS, r)
    expect(len(re.findall(r"cairn:bump_\d+: .* by=3$", r.out, re.M)) == 5, r)


def bpftrace_seen(path, script):
    bpftrace = need("bpftrace")
    r = with_tracefs(bpftrace, "-e", "BEGIN { exit(); }")
    if r.status:
        raise Skip("bpftrace does not work here: " + " ".join(r.err.split()))
    r = with_tracefs(bpftrace, "--unsafe", script, "-c", path)
    if "compiled without (k|u)probe offset support" in r.out + r.err:
        raise Skip("this bpftrace was built without support for probes inside a symbol")
    seen = re.findall(r"^add inlined in \S+ a=(-?\d+) b=(-?\d+) s=(\w*) c=(\d+)$", r.out, re.M)
    # A page that the program has not touched yet cannot be read by bpftrace's str(): it shows
    # nothing then.
    expect(len(seen) == len(CALLS), r)
    for (a, b, s, c), call in zip(seen, CALLS):
        expect((int(a), int(b), int(c)) == (call[0], call[1], call[3]) and s in ("", call[2]), seen,
               CALLS, r)
    expect(len(re.findall(r"^bump inlined in \S+ where=0x\w+ by=3$", r.out, re.M)) == 5, r)


@claim_each_of_many(*COMPILERS)
def bpftrace_sees_every_call_and_its_arguments(compiler):
    path = program(compiler)
    bpftrace_seen(path, emit("bpftrace", path, compiler))


@claim_each_of_many(*COMPILERS)
def bpftrace_sees_every_call_of_a_stripped_program(compiler):
    """What Debian 12's bpftrace can do: without symbols it takes the address as it is."""
    path = program(compiler)
    stripped = path + "-stripped"
    run(need("strip"), "-o", stripped, path, check=True)
    script = emit("bpftrace", stripped, compiler, "--debug-file", path)
    bpftrace_seen(stripped, script)


@claim
def what_clang_may_have_changed_is_not_emitted_until_asked_for():
    path = program("clang")
    for tool, value in (("bpftrace", r"reg\("), ("perf", r"=[%+]"), ("gdb", r"^output")):
        text = cairn("sites", path, "add", "bump", "--emit", tool, check=True).out
        expect(MAY_HAVE_CHANGED in text and not re.search(value, text, re.M), text)


@claim
def a_site_with_a_hazard_is_left_out_and_said():
    path = compile_c(
        "locked", """\
static long counter;
static inline __attribute__((always_inline)) void count(long *where) { __atomic_fetch_add(where, 1, __ATOMIC_SEQ_CST); }
__attribute__((noinline)) void tick(void) { count(&counter); }
int main(void) { tick(); return (int)counter; }
""", "gcc", ("-O2", "-g"))
    sites = cairn("sites", "--json", path, "count", check=True).objects()
    locked = [s for s in sites if s["hazard"] == "lock-prefix"]
    expect(locked, sites)
    for tool in ("bpftrace", "perf", "gdb"):
        r = cairn("sites", path, "count", "--emit", tool)
        expect(r.status == 1 and "left out" in r.err, r)
        for site in locked:
            expect(re.search(rf"^(//|#) left out: {site['addr']}: ", r.out, re.M), site, r)
            expect(not re.search(rf"^[^/#\n]*{site['addr']}\b", r.out, re.M), site, r)


@claim
def an_argument_that_cannot_be_said_is_not_said():
    path = compile_c(
        "doubles", """\
static inline __attribute__((always_inline)) double half(double of, int by) { __asm__ volatile(""); return of / by; }
__attribute__((noinline)) double use(double d, int n) { return half(d, n) + 1; }
int main(int c, char **v) { return (int)use(c, c); }
""")
    for tool, said in (("bpftrace", "of=<"), ("perf", "#   of: "), ("gdb", 'printf " of=<')):
        text = cairn("sites", path, "half", "--emit", tool).out
        expect(said in text and not re.search(r"of=[^<\n]*(xmm|%|\$|reg)", text), text)


@claim
def relocatable_files_have_no_addresses_to_emit():
    path = compile_c("emitted-object", PROGRAM, "gcc", ("-O2", "-g", "-c"))
    r = cairn("sites", path, "add", "--emit", "perf")
    expect(r.status == 3 and not r.out and "relocatable" in r.err, r)


HOSTILE = """\
__attribute__((noinline)) int SITEHOLDER_OF_A_NAME(int PARAMETER_OF_A_NAME, int b) { return PARAMETER_OF_A_NAME * 3 + b; }
int main(int c, char **v) { return SITEHOLDER_OF_A_NAME(c, 2) == 0; }
"""


def hostile_program(name, command, file_name="hostile"):
    """A program whose function and parameter have such names, in the symbols and in the debug
    information."""
    path = compile_c("hostile", HOSTILE)
    with open(path, "rb") as file:
        data = file.read()
    for old in (b"SITEHOLDER_OF_A_NAME", b"PARAMETER_OF_A_NAME"):
        new = name.replace(b"%b", command)[:len(old)].ljust(len(old), b"_")
        data = data.replace(old, new)
    # ld's build-id is of the bytes before.
    to = os.path.join(folder(), file_name)
    with open(to, "wb") as file:
        file.write(data)
    os.chmod(to, 0o755)
    return to


NAMES = [
    b"f\n%b\n#", b"f';%b;'", b'f";%b;"', b"f$(%b)", b"f`%b`", b"f\nend\n%b\n#", b"f\\\n%b\n",
    b'f"\nend\n%b\n', b"f\r%b", b"f%n%n%s\\"
]


@claim
def a_name_is_never_executed_by_a_shell():
    for i, name in enumerate(NAMES):
        path = hostile_program(name, b"id>PWNED")
        for words in (("*",), ("*", "--no-sidecar")):
            r = cairn("sites", path, *words, "--emit", "perf")
            expect("perf probe" in r.out, i, r)
            # A perf that does nothing.
            run("sh", "-c", 'perf() { :; }; . "$0"', write(f"hostile-{i}.sh", r.out), cwd=folder(),
                check=True)
            expect(not os.path.exists(os.path.join(folder(), "PWNED")), name, r)


@claim_plainly
def a_name_is_never_executed_by_gdb():
    gdb = need("gdb")
    for i, name in enumerate(NAMES):
        path = hostile_program(name, b"shell>PWN")
        r = cairn("sites", path, "*", "--emit", "gdb")
        script = write(f"hostile-{i}.gdb", r.out)
        r = run(gdb, "-q", "-nx", "-batch", "-ex", "set startup-with-shell off", "-ex",
                "break *&main", "-ex", "run", "-x", script, "-ex", "continue", "--args", path,
                cwd=folder())
        expect("exited" in r.out and "Error" not in r.err, name, r)
        expect(not os.path.exists(os.path.join(folder(), "PWN")), name, r)


@claim
def a_name_is_never_code_for_bpftrace():
    bpftrace = need("bpftrace")
    for i, name in enumerate(NAMES):
        r = cairn("sites", hostile_program(name, b'system("'), "*", "--emit", "bpftrace")
        tree = run(bpftrace, "-d", write(f"hostile-{i}.bt", r.out))
        expect(
            r.out.count("\nuprobe:") == tree.out.split("AST after: Semantic")[0].count("\n uprobe:")
            and "call: system" not in tree.out, name, r, tree)

PATHS = [
    "it's", 'a "quoted" one', "$(id>PWNED)", "`id`", "-rf", "a b", "caf\u00e9", "#a", "%s%n", "a:b",
    "a;b", "a,b", "a{b}", "$1", "a\\b", "a*b", "a\nb", "\x1b[2J"
]


@claim_plainly
def a_path_is_written_for_each_tool_or_refused():
    refused = {
        "perf": ["a\nb", "\x1b[2J"], "bpftrace": ["a\nb", "\x1b[2J", "a\\b", "a*b"], "gdb": []
    }
    for name in PATHS:
        path = os.path.join(folder(), name)
        os.replace(compile_c("hostile", HOSTILE), path)
        for tool, wanted in refused.items():
            r = cairn("sites", path, "SITEHOLDER_OF_A_NAME", "--emit", tool)
            expect(
                r.status == 3 and "no way to write this path" in r.err and not r.out
                if name in wanted else r.status == 0, name, tool, r)
            if tool == "gdb":
                text = run(need("gdb"), "-q", "-nx", "-batch", "-ex",
                           "set startup-with-shell off", "-ex", "break *&main", "-ex", "run", "-x",
                           write("path.gdb", r.out), "-ex", "continue", "--args", path)
                expect("SITEHOLDER_OF_A_NAME entry PARAMETER_OF_A_NAME=1 b=2" in text.out, name, r,
                       text)
            elif tool == "perf" and not r.status:
                text = run("sh", "-c", 'perf() { printf "%s" "$4"; }; . "$0"',
                           write("path.sh", r.out), cwd=folder())
                expect(text.out == os.path.realpath(path), name, r, text)
    expect(not os.path.exists(os.path.join(folder(), "PWNED")), "a path was executed")


if __name__ == "__main__":
    main()
