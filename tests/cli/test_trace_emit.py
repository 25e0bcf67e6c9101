#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace --emit: the scripts, run by the tools themselves, see what cairn trace sees and what
the program logs."""

import os
import re
import signal
import subprocess
import time

from claims import (Running, Skip, cairn, claim, claim_plainly, compile_c, expect,
                    folder, main, need, need_root, path_of, run, write)

PROGRAM = """\
#include <stdio.h>
struct rec { int id; const char *name; short small; unsigned bits : 5; int sbits : 4; long table[4]; };
static inline __attribute__((always_inline)) int add(int a, short b, const char *s, struct rec *r)
{
	__asm__ volatile("" ::: "memory");
	return a * 3 + b + s[0] + r->id;
}
__attribute__((noinline)) int one(int n, const char *s, struct rec *r)
{
	return add(n, -2, s, r) ^ n;
}
__attribute__((noinline)) int two(struct rec *r, int n)
{
	return add(r->id * 1000, (short)n, r->name, r);
}
static void log_call(int a, int b, const char *s, const struct rec *r)
{
	fprintf(stderr, "%d %d %s %u %d %d %ld\\n", a, (short)b, s, r->bits, r->sbits, r->small, r->table[a & 3]);
}
int main(void)
{
	static char texts[2][8] = {"alpha", "seven"};
	struct rec r = { 7, texts[1], -3, 9, -2, {-1, 2, 1L << 40, 4} };
	int t = 0;

	for (int i = 0; i < 40; i++) {
		log_call(i - 20, -2, texts[0], &r);
		t += one(i - 20, texts[0], &r);
		log_call(r.id * 1000, i * 7 - 100, r.name, &r);
		t += two(&r, i * 7 - 100);
		r.id++;
		r.bits++;
		r.sbits++;
		r.small -= 1000;
	}
	return t == 0;
}
"""

# Conditions and values of all kinds: chains, choices, strings, bit-fields, casts, members.
PROBE = (
    'add(a, b, s, r->bits, r->sbits, (a < 0 ? -a : b)) '
    'if a > 3 && b < 0 || s == "seven" && r->small % 7 != 1 || (unsigned char)a == 250'
)
EVENT = re.compile(
    r"add (inlined in \S+): a=(-?\d+), b=(-?\d+), s=\"?(\w*)\"?, r->bits=(\d+), "
    r"r->sbits=(-?\d+), \S.*\)=(-?\d+)$", re.M)
SUMS = ("--count", "--sum", "a", "--avg", "b", "--min", "a", "--max", "a",
        "--hist", "a", "--lhist", "b,0,100,50", "--by", "s,$site,r->sbits")


def c_mod(a, b):
    return abs(a) % b * (-1 if a < 0 else 1)


class Call:
    """A line of the program's own log."""

    def __init__(self, line):
        words = line.split()
        self.a, self.b = int(words[0]), int(words[1])
        self.s = words[2]
        self.bits, self.sbits, self.small, self.element = (int(w)
                                                           for w in words[3:])
        self.site = "one" if self.s == "alpha" else "two"

    def is_wanted(self):
        return (self.a > 3 and self.b < 0) or (self.s == "seven" and c_mod(self.small, 7) != 1) \
            or self.a & 255 == 250

    def values(self):
        return (self.a, self.b, self.s, self.bits, self.sbits,
                -self.a if self.a < 0 else self.b)


def program():
    """Stripped, as Debian's bpftrace takes addresses of stripped files alone; and the folder with
    its debug information."""
    full = compile_c("trace-emit", PROGRAM, "gcc",
                     ("-O2", "-g", "-Wl,--build-id"))
    path, notes = full + "-stripped", run("readelf", "-n", full,
                                          check=True).out
    build_id = re.search(r"Build ID: (\w+)", notes).group(1)
    where = os.path.join(folder(), "debug", ".build-id", build_id[:2])
    if not os.path.exists(path):
        os.makedirs(where, exist_ok=True)
        run(need("strip"), "-o", path, full, check=True)
        run(need("objcopy"),
            "--only-keep-debug",
            full,
            os.path.join(where, build_id[2:] + ".debug"),
            check=True)
    return path, os.path.join(folder(), "debug")


def calls(path):
    return [Call(line) for line in run(path, check=None).err.splitlines()]


def emit(tool, *words, path=None):
    exe, debug = program()
    r = cairn("trace", "--emit", tool, "--debug-dir", debug, "-c", path or exe,
              *words)
    expect(r.status == 0, tool, words, r)
    return write(f"trace.{tool}", r.out)


def events_of(text):
    return [((re.sub(r"\+.*", "",
                     where.split()[-1])), int(a), int(b), s, int(bits),
             int(sbits), int(last))
            for where, a, b, s, bits, sbits, last in EVENT.findall(text)]


def wanted(path):
    return [(call.site, *call.values()) for call in calls(path)
            if call.is_wanted()]


def gdb_run(script):
    return run(need("gdb"), "-q", "-nx", "-batch", "-ex",
               "set startup-with-shell off", "-ex", "starti", "-x", script,
               "-ex", "continue", "--args",
               program()[0])


def bpftrace_run(script):
    need_root()
    possible = run(need("bpftrace"), "-e", "BEGIN { exit(); }")
    if possible.status:
        raise Skip("bpftrace does not work here: " +
                   " ".join(possible.err.split()))
    return run("bpftrace", "--unsafe", script, "-c", program()[0])


def compiled(script):
    """The program of C that loads, and its object."""
    base = os.path.join(folder(), "emitted")
    os.replace(script, base + ".c")
    run(need("clang"),
        "-O2",
        "-g",
        "-mcpu=v3",
        "-target",
        "bpf",
        "-I/usr/include/x86_64-linux-gnu",
        "-c",
        base + ".c",
        "-o",
        base + ".bpf.o",
        check=True)
    run("cc",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Wno-missing-field-initializers",
        "-Werror",
        base + ".c",
        "-o",
        base,
        "-lbpf",
        check=True)
    return base


def c_run(script):
    need_root()
    base = compiled(script)
    with subprocess.Popen([base, base + ".bpf.o"],
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          text=True) as tracer:
        first = tracer.stderr.readline()
        while first and first != "attached\n" and tracer.poll() is None:
            first = tracer.stderr.readline()
        run(program()[0], check=None)
        time.sleep(0.3)
        tracer.send_signal(signal.SIGINT)
        out, err = tracer.communicate(timeout=30)
    expect(tracer.returncode == 0, out, err)
    return out


@claim
def gdb_prints_what_the_program_logs():
    path, _ = program()
    r = gdb_run(emit("gdb", PROBE))
    expect(events_of(r.out) == wanted(path) and len(wanted(path)) > 40, r)


@claim
def bpftrace_prints_what_the_program_logs():
    path, _ = program()
    # Its division knows no signs, so a remainder of a negative number is refused.
    script = emit("bpftrace",
                  PROBE.replace("r->small % 7 != 1", "r->small < -9000"))
    mine = [
        (c.site, *c.values()) for c in calls(path)
        if (c.a > 3 and c.b < 0) or (c.s == "seven" and c.small < -9000) or c.a
        & 255 == 250
    ]
    r = bpftrace_run(script)
    expect(events_of(r.out) == mine and len(mine) > 30, r, mine)


@claim
def a_program_of_c_prints_what_the_program_logs():
    path, _ = program()
    out = c_run(emit("c", PROBE))
    expect(events_of(out) == wanted(path), out)


BUSY = """\
volatile int n;
__attribute__((noinline)) void hot(int x) { n += x; __asm__ volatile(""); }
int main(void) { for (;;) hot(n); }
"""


@claim
def a_program_of_c_ends_where_events_come_faster_than_it_prints_them():
    path = compile_c("trace-emit-busy", BUSY)
    base = compiled(emit("c", "hot(x)", path=path))
    with Running(path) as one, Running(path) as two, subprocess.Popen(
        [base, base + ".bpf.o", str(one.pid), str(two.pid)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) as tracer:
        first = tracer.stderr.readline()
        # Some 8,000 lines a second are read of it, which is less than there are.
        begin, is_told = time.monotonic(), False
        while os.read(tracer.stdout.fileno(), 1 << 14):
            time.sleep(0.04)
            if time.monotonic() > begin + 1 and not is_told:
                tracer.send_signal(signal.SIGINT)
                is_told = True
            if time.monotonic() > begin + 60:
                tracer.kill()
        err = tracer.stderr.read().decode()
    expect(first == b"attached\n" and tracer.returncode == 0, first, err)


def sums_of(path):
    rows = {}
    for c in calls(path):
        rows.setdefault((c.s, c.site, c.sbits), []).append(c)
    return rows


def bucket(n):
    if not n:
        return (0, 0)
    low = 1 << abs(n).bit_length() - 1
    return (low, 2 * low - 1) if n > 0 else (1 - 2 * low, -low)


def step(n):
    if n < 0:
        return ("...", -1)
    return (100, "...") if n >= 100 else (n // 50 * 50, n // 50 * 50 + 49)


def counted(items):
    found = {}
    for item in items:
        found[item] = found.get(item, 0) + 1
    return found


def expect_sums(text):
    rows = sums_of(program()[0])
    blocks = re.split(r"^(?=add, )", text, flags=re.M)[1:]
    expect(len(blocks) == len(rows), text)
    for block in blocks:
        head = re.match(
            r'add, s="(\w+)", \$site=add inlined in (\w+)\S*, r->sbits=(-?\d+): '
            r"count (\d+), sum\(a\) (-?\d+), avg\(b\) (\S+), min\(a\) (-?\d+), "
            r"max\(a\) (-?\d+)\n", block)
        expect(head, block)
        mine = rows[(head[1], head[2], int(head[3]))]
        a, b = [c.a for c in mine], [c.b for c in mine]
        expect([int(head[i])
                for i in (4, 5, 7, 8)] == [len(a),
                                           sum(a),
                                           min(a),
                                           max(a)], block, a)
        expect(abs(float(head[6]) - sum(b) / len(b)) < 1e-5, block, b)
        hist, lhist = block.split("lhist(b)")
        for part, numbers in ((hist, counted(map(bucket, a))),
                              (lhist, counted(map(step, b)))):
            seen = {
                tuple(w if w == "..." else int(w) for w in m[:2]): int(m[2])
                for m in re.findall(r"\[(\S+), (\S+)\] (\d+)", part)
            }
            expect(seen == numbers, block, numbers)


@claim
def gdb_sums_up_what_the_program_logs():
    expect_sums(gdb_run(emit("gdb", *SUMS, "add")).out)


@claim
def a_program_of_c_sums_up_what_the_program_logs():
    expect_sums(c_run(emit("c", *SUMS, "add")))


@claim
def bpftrace_sums_up_what_the_program_logs():
    # Averages are whole numbers there, and negative numbers are one bucket of hist().
    out = bpftrace_run(emit("bpftrace", *SUMS, "add")).out
    seen = {}
    for name, s, site, sbits, n in re.findall(
            r"^@(\w+)\d\[(\w+), add inlined in (\w+)\S*, (-?\d+)\]: (-?\d+)$",
            out, re.M):
        seen.setdefault((s, site, int(sbits)), {})[name] = int(n)
    rows = sums_of(program()[0])
    for key, mine in rows.items():
        a, b = [c.a for c in mine], [c.b for c in mine]
        want = {
            "count": len(a),
            "sum": sum(a),
            "avg": int(sum(b) / len(b)),
            "min": min(a),
            "max": max(a)
        }
        expect(seen.get(key) == want, key, want, out)
    expect(len(seen) == len(rows), out)


@claim
def perf_records_what_the_program_logs():
    need_root()
    perf = need("perf")
    path, _ = program()
    script = emit("perf", "add(r->id, r->small)")
    data = os.path.join(folder(), "perf.data")
    mounted = (
        "unshare", "--mount", "sh", "-c",
        'mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; '
        'exec "$@"', "sh")
    if run(*mounted, "test", "-e", "/sys/kernel/tracing/uprobe_events").status:
        raise Skip("this kernel has no uprobe_events")
    run(*mounted, perf, "probe", "-q", "-d", "cairn:*")
    made = run(*mounted, "sh", script)
    try:
        expect(made.status == 0, made)
        run(*mounted, perf, "record", "-q", "-o", data, "-e", "cairn:*", path)
        out = run(*mounted, perf, "script", "-i", data, check=True).out
    finally:
        run(*mounted, perf, "probe", "-q", "-d", "cairn:*")
    seen = [
        (int(i), (int(n, 16) ^ 0x8000) - 0x8000)
        for i, n in re.findall(r" r__id=(\d+) r__small=0x(\w+)$", out, re.M)
    ]
    expect(seen == [(i // 2 + 7, c.small) for i, c in enumerate(calls(path))],
           out)


REFUSED = {
    "bpftrace": {
        ("add(r->table[a & 3])", ): "cannot leave a value out",
        ("add if b / a > 2", ): "no such operation",
        ("--lhist", "b,-100,100,50", "add"): "begins at 0",
        ("--quantiles", "a", "add"): "no --quantiles there",
        ("add(*r)", ): "has members",
        ("add(buf(s, 4))", ): "buf()",
        ("one($ret)", ): "no $ret and no $duration",
        ("--by", "$caller", "--count", "add"): "no such key",
        ("--stack", "add"): "no --stack there",
        ("-f", "add"): "no -f there",
        ("--graph", "add"): "no --graph there",
        ("--sample", "1/2", "add"): "no --sample there",
        ("--format", "{a}", "add"): "no --format there",
        ("--time", "wall", "add"): "--time",
        ("-o", "x", "add"): "standard output",
        ("--every", "1", "--count", "add"): "one table",
    },
    "perf": {
        ("add if a > 3", ): "perf has no conditions",
        ("add(a * 2)", ): "a register, a constant, or memory",
        ("--sum", "a", "add"): "no --sum there",
        ("--by", "a", "--count", "add"): "no such key",
    },
    "gdb": {
        ("add($cpu)", ): "no such variable",
        ("--by", "$cpu", "--count", "add"): "no such key"
    },
    "c": {
        ("--by", "$stack", "--count", "add"): "no such key",
        ("add(*r)", ): "has members"
    },
    "dtrace": {
        ("add", ): "bpftrace|perf|gdb|c"
    },
}


@claim
def what_a_tool_cannot_do_is_refused_by_name_and_nothing_is_written():
    exe, debug = program()
    for tool, refused in REFUSED.items():
        for words, why in refused.items():
            r = cairn("trace", "--emit", tool, "--debug-dir", debug, "-c", exe,
                      *words)
            expect(r.status in (2, 3) and why in r.err and not r.out, tool,
                   words, r)
    r = cairn("trace", "--emit", "bpftrace", "--debug-dir", debug, "-c", exe,
              "add(a) if r->table[a & 3] > 2")
    expect(re.search(r"^add\(a\) if .*\n +\^$", r.err, re.M), r)


@claim
def processes_are_named_in_the_script():
    exe, debug = program()
    r = cairn("trace", "--emit", "bpftrace", "--debug-dir", debug, "-p",
              os.getpid(), f"{exe}:add(a)")
    expect(r.status and "does not map" in r.err, r)
    with subprocess.Popen(["sleep", "60"]) as one:
        words = ("-p", one.pid, "libc.so.6:clock_nanosleep()")
        text = {
            tool: cairn("trace", "--emit", tool, *words).out
            for tool in ("bpftrace", "c", "perf")
        }
        one.kill()
    expect(f"/pid == {one.pid}/" in text["bpftrace"], text)
    expect(f"pids[] = {{{one.pid}, }}" in text["c"], text)
    expect(f"perf record -e 'cairn:*' -p {one.pid};" in text["perf"], text)


HOSTILE = """\
__attribute__((noinline)) int SITEHOLDER_OF_A_NAME(int PARAMETER_OF_A_NAME, int b) { return PARAMETER_OF_A_NAME * 3 + b; }
int main(int c, char **v) { return SITEHOLDER_OF_A_NAME(c, 2) == 0; }
"""
NAMES = [
    b"f\n%b\n#", b"f';%b;'", b'f";%b;"', b"f$(%b)", b"f`%b`", b"f\nend\n%b\n#",
    b"f\\\n%b\n", b'f"\nend\n%b\n', b"f\r%b", b"f%n%n%s\\", b'");%b;("',
    b"*/%b/*", b"f??/%b", b"f\xff%b"
]


@claim
def a_command_is_the_only_process_that_is_counted():
    need_root()
    r = cairn("trace", "--emit", "bpftrace", "--count", "-c",
              program()[0], "libc.so.6:malloc")
    expect(r.status == 0 and "\n/pid == cpid/\n" in r.out, r)


@claim
def a_file_that_is_another_one_here_is_refused():
    """The process has it in a mount namespace of its own; a script would probe what is here."""
    need_root()
    loops = compile_c(
        "loops",
        "int one(void) { return 1; } int main(void) { for (;;) one(); }",
        "gcc", ("-O0", "-g"))
    inside, here = path_of("inside"), path_of("here")
    for place, file in ((inside, loops), (here, program()[0])):
        os.makedirs(place)
        run("cp", file, os.path.join(place, "prog"), check=True)
    script = 'mount --bind "$1" "$2" || exit 77; exec "$2/prog"'
    with Running(need("unshare"), "-m", "sh", "-c", script, "sh", inside,
                 here) as p:
        time.sleep(0.5)
        if p.process.poll() is not None:
            raise Skip("no mount namespaces here")
        for tool in ("bpftrace", "perf", "gdb", "c"):
            r = cairn("trace", "--emit", tool, "-p", str(p.pid), "one")
            expect(
                r.status == 3 and "is another file here" in r.err
                and not r.out, tool, r)


def hostile_program(name, command):
    with open(compile_c("trace-hostile", HOSTILE), "rb") as file:
        data = file.read()
    for old in (b"SITEHOLDER_OF_A_NAME", b"PARAMETER_OF_A_NAME"):
        new = name.replace(b"%b", command)[:len(old)].ljust(len(old), b"_")
        data = data.replace(old, new)
    path = os.path.join(folder(), "hostile")
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755)
    return path


@claim_plainly
def names_are_never_commands_nor_code():
    pwned = os.path.join(folder(), "PWNED")
    for name in NAMES:
        path = hostile_program(name, b"id>PWNED")
        r = cairn("trace", "--emit", "perf", "--best-effort", "-c", path, "*")
        expect("perf probe" in r.out, name, r)
        run("sh",
            "-c",
            'perf() { :; }; . "$0"',
            write("hostile.sh", r.out),
            cwd=folder(),
            check=True)
        for path, tool in ((hostile_program(name, b"shell>PWNED"), "gdb"), ):
            r = cairn("trace", "--emit", tool, "--best-effort", "-c", path,
                      "*")
            script = write("hostile.gdb", r.out)
            r = run(need("gdb"),
                    "-q",
                    "-nx",
                    "-batch",
                    "-ex",
                    "set startup-with-shell off",
                    "-ex",
                    "starti",
                    "-x",
                    script,
                    "-ex",
                    "continue",
                    "--args",
                    path,
                    cwd=folder())
            expect("exited" in r.out and "Error" not in r.err, name, r)
        r = cairn("trace", "--emit", "c", "--best-effort", "-c", path, "*")
        made = run("cc", "-fsyntax-only", "-trigraphs", "-Wno-trigraphs",
                   write("hostile.c", r.out))
        expect(made.status == 0 and r.status == 0, name, made)
        expect(not os.path.exists(pwned), name)


if __name__ == "__main__":
    main()
