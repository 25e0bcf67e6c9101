#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn code: the owners of the addresses of a process."""

import glob
import os
import pwd
import subprocess
import sys

from claims import CAIRN, SOURCE, Skip, cairn, claim, claim_each, expect, folder, main, need, run

# One letter of its script after the other; answers each with a line.
PROGRAM = r"""
#define _GNU_SOURCE
#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 1 << 16 };
static char *text;
static struct cairn_jit *jit;

static void publish(size_t off, size_t size, const char *name)
{
	struct cairn_jit_line line = {0, 7, "made.lua"};
	struct cairn_jit_info info = {sizeof(info), name, NULL, 0, &line, 1};
	struct cairn_jit_frame f;
	cairn_jit_begin(&f, text + off);
	cairn_jit_cfa(&f, text + off + 1, CAIRN_JIT_SP, 16);
	if (cairn_jit_publish(jit, &f, text + off + size, &info))
		abort();
}

static void object(const char *path, const void *id, unsigned n_id)
{
	unsigned long at = (unsigned long)publish & ~4095ul;
	struct code_elf_info elf = {.elf_start = at, .elf_end = at + 4096, .text_start = at, .text_end = at + 4096,
				    .pathname = (unsigned long)path, .build_id = (unsigned long)id, .build_id_len = n_id};
	struct code_unregister_info range = {at, at + 4096};
	codectl(CODE_UNREGISTER, &range, sizeof(range), 0);
	if (codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0))
		abort();
}

int main(void)
{
	struct cairn_jit_opts opts = {sizeof(opts), "tra\033[1mces", 0};
	int c;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "reg\033[2J");
	alarm(120);
	text = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("%lx %lx\n", (unsigned long)text, (unsigned long)publish & ~4095ul);
	while ((c = getchar()) != EOF) {
		if (c == 'o' && cairn_jit_open(text, SIZE, &opts, &jit))
			abort();
		if (c == 'p')
			publish(0x100, 0x40, "hot_loop");
		if (c == 'r') {
			cairn_jit_withdraw(jit, text + 0x100, text + 0x140);
			publish(0x100, 0x40, "another");
		}
		if (c == 'c')
			cairn_jit_close(jit);
		if (c == 'n')
			object("/usr/bin/another", NULL, 0);
		if (c == 'i')
			object("/proc/self/exe", "\1\2\3\4", 4);
		if (c == 'm' && mprotect(text, 4096, PROT_NONE))
			abort();
		printf("%c\n", c);
	}
	return 0;
}
"""

# From its sources: the library of a build with sanitizers would need them in each program.
CODECTL = ("-D_GNU_SOURCE", "-I", SOURCE, "-I", os.path.join(
    SOURCE,
    "include"), "-fvisibility=hidden", *sorted(glob.glob(os.path.join(SOURCE, "agent", "*.c"))))


class Process:
    def __init__(self, *steps, **kwargs):
        self.child = subprocess.Popen([build()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      **kwargs)
        self.text, self.code = (int(word, 16) for word in self.child.stdout.readline().split())
        self.pid = self.child.pid
        for step in steps:
            self.tell(step)

    def tell(self, step):
        self.child.stdin.write(step.encode())
        self.child.stdin.flush()
        expect(self.child.stdout.readline().strip() == step.encode(), step)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()


def build():
    exe = os.path.join(folder(), "registers")
    if not os.path.exists(exe):
        source = exe + ".c"
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        run("gcc", "-O1", "-g", "-Wl,--build-id", "-o", exe, source, *CODECTL, "-pthread",
            check=True)
        os.chmod(folder(), 0o755)
    return exe


def ranges(*words):
    return [
        o for o in cairn("code", *words, "--json", check=True).objects() if o["event"] != "note"
    ]


def at(objects, address, source):
    found = [
        o for o in objects
        if o["source"] == source and int(o["lo"], 16) <= address < int(o["hi"], 16)
    ]
    expect(len(found) == 1, hex(address), source, objects)
    return found[0]


@claim
def files_are_listed_where_the_kernel_maps_their_code():
    with Process() as p:
        objects = ranges(p.pid)
        with open(f"/proc/{p.pid}/maps", encoding="utf-8") as file:
            lines = [line.split() for line in file]
    wanted = sorted(
        int(w[0].split("-")[0], 16)
        for w in lines
        if "x" in w[1] and len(w) > 5 and w[5] != "[vsyscall]")
    expect(
        sorted(int(o["lo"], 16) for o in objects if o["source"] in ("file", "vdso")) == wanted,
        objects)
    libc = [o for o in objects if o["owner"] and o["owner"].endswith("libc.so.6")]
    expect(libc and libc[0]["unwind"] == "file" and libc[0]["trusted"], libc)
    expect([o for o in objects if o["source"] == "vdso"], objects)


@claim
def a_region_is_listed_with_rows_names_and_generation():
    with Process("o", "p") as p:
        objects = ranges(p.pid)
        expect(not [o for o in objects if o["source"] == "anonymous"], objects)
        r = at(objects, p.text, "jit")
        expect(
            r["unwind"] == "rows" and r["rows"] == 2 and r["names"] == 1 and r["trusted"]
            and r["generation"] > 0, r)
        before = r["generation"]
        p.tell("r")
        r = at(ranges(p.pid), p.text, "jit")
        expect(r["generation"] > before and r["names"] == 1, r)
        text = cairn("code", p.pid, check=True).out
        expect("tra\\x1b[1mces, 1 name" in text and "\x1b" not in text, text)


@claim
def what_a_process_calls_itself_is_no_command_for_the_terminal():
    with Process("o", "p") as p:
        text = cairn("stack", p.pid).out
        expect('"reg\\x1b[2J"' in text and "\x1b" not in text, text)


@claim
def an_address_has_an_owner_and_a_function():
    with Process("o", "p") as p:
        r = cairn("code", p.pid, "--at", hex(p.text + 0x110), check=True)
        expect("hot_loop+0x10 at made.lua:7" in r.out and " jit " in r.out, r)
        o = cairn("code", p.pid, "--json", "--at", f"{p.text + 0x13f:x}", "--at", f"{p.code:x}",
                  check=True).objects()
        expect([f["name"] for f in o[0]["functions"]] == ["hot_loop"]
               and o[0]["function_off"] == 0x3f, o)
        expect(
            o[1]["source"] == "file" and o[1]["owner"].endswith("registers")
            and not o[1]["functions"], o)
        r = cairn("code", p.pid, "--at", "10")
        expect(r.status == 1 and "no code is there" in r.out, r)


@claim
def what_was_removed_is_listed_on_request():
    with Process("o", "p", "c") as p:
        expect(not [o for o in ranges(p.pid) if o["source"] == "jit"])
        gone = [o for o in ranges(p.pid, "--all") if o["source"] == "jit"]
        expect(
            gone
            and all(o["removed"] and o["unwind"] == "none" and o["until_ns"] >= o["since_ns"] > 0
                    for o in gone), gone)
        last = max(gone, key=lambda o: o["generation"])
        for time_ns, source in ((last["until_ns"] - 1, "jit"), (last["until_ns"] + 1, "anonymous"),
                                (1, "anonymous")):
            o = cairn("code", p.pid, "--json", "--at", hex(p.text), "--time", time_ns,
                      check=True).objects()[0]
            expect(o["source"] == source, time_ns, o, gone)
        expect(at(ranges(p.pid), p.text, "anonymous")["unwind"] == "assumed")


@claim_each("n", "i")
def a_registration_that_contradicts_is_shown_and_not_trusted(step):
    with Process(step) as p:
        o = at(ranges(p.pid), p.code, "elf")
        why = {"n": "registers is mapped there", "i": "build-id is not that of the file"}[step]
        expect(not o["trusted"] and why in o["why"] and o["unwind"] == "none", o)
        text = cairn("code", p.pid, check=True).out
        expect("not trusted: " in text and why in text, text)
        expect(
            at(
                cairn("code", p.pid, "--at", hex(p.code), "--json", check=True).objects(), p.code,
                "file")["trusted"])


@claim
def a_file_that_was_deleted_is_read_by_its_mapping():
    exe = os.path.join(folder(), "deleted")
    run("cp", build(), exe, check=True)
    child = subprocess.Popen([exe], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        code = int(child.stdout.readline().split()[1], 16)
        os.unlink(exe)
        o = at(ranges(child.pid), code, "file")
        expect(
            o["owner"] == exe and o["trusted"] and o["unwind"] == "file" and "deleted" in o["why"],
            o)
    finally:
        child.kill()
        child.wait()


@claim
def watch_says_what_comes_changes_and_goes():
    with Process() as p:
        watcher = subprocess.Popen(
            [CAIRN, "code", str(p.pid), "--jit", "--watch", "-i", "50ms"], stdout=subprocess.PIPE,
            text=True)
        try:
            expect(watcher.stdout.readline().startswith("from"))
            expect(" anonymous " in watcher.stdout.readline())
            p.tell("o")
            lines = sorted(watcher.stdout.readline() for _ in range(2))
            expect(lines[0].startswith("+ ") and " jit " in lines[0], lines)
            expect(lines[1].startswith("- ") and " anonymous " in lines[1], lines)
            p.tell("p")
            seen = ""
            while "1 name" not in seen:
                seen = watcher.stdout.readline()
            expect(seen[0] in "+~", seen)
            p.tell("c")
            while not seen.startswith("- ") or "1 name" not in seen:
                seen = watcher.stdout.readline()
            p.child.kill()
            p.child.wait()
            expect(watcher.wait(20) == 0)
        finally:
            watcher.kill()
            watcher.wait()
            watcher.stdout.close()


@claim_each("code", "stack")
def without_permission_it_says_what_would_help(verb):
    if os.geteuid() != 0:
        raise Skip("another user's process takes root to make")
    nobody = pwd.getpwnam("nobody")
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        done = subprocess.run([sys.executable, "-c", f"""
import os, subprocess, sys
os.setgid({nobody.pw_gid}); os.setuid({nobody.pw_uid})
sys.exit(subprocess.run([{CAIRN!r}, "{verb}", "{sleeper.pid}"]).returncode)
"""], capture_output=True, text=True, timeout=60, check=False)
        if "Permission denied" in done.stderr and done.returncode not in (0, 3):
            raise Skip("the program's folder cannot be read by others")
        expect(
            done.returncode == 3 and "ptrace" in done.stderr.lower()
            and "same user, or root" in done.stderr, done)
    finally:
        sleeper.kill()
        sleeper.wait()


@claim
def a_core_file_tells_the_same():
    need("gcore")
    with Process("o", "p", "r") as p:
        running = ranges(p.pid)
        run("gcore", "-o", os.path.join(folder(), "core"), p.pid, check=True)
    core = os.path.join(folder(), f"core.{p.pid}")
    objects = ranges(core)
    expect(at(objects, p.text, "jit") == at(running, p.text, "jit"), objects, running)
    expect(not [o for o in objects if o["source"] == "anonymous"], objects)
    o = at(objects, p.code, "file")
    expect(o["unwind"] == "file" and o["owner"].endswith("registers"), o)
    r = cairn("code", core, "--at", hex(p.text + 0x108), check=True)
    expect("another+0x8 at made.lua:7" in r.out, r)
    expect(cairn("code", core, "--watch").status == 2)


@claim
def usage_and_processes_that_are_none():
    for words in [("code",), ("code", "1", "2"), ("code", "/no/such/core"),
                  ("code", "1", "--at", "xyz"), ("code", "1", "--at", "1", "--watch"),
                  ("code", "1", "--time", "5")]:
        expect(cairn(*words).status == 2, words)
    r = cairn("code", "999999999")
    expect(r.status == 1 and "no process" in r.err, r)


@claim
def a_container_is_read_through_its_root():
    if os.geteuid() != 0:
        raise Skip("another root takes root")
    root = os.path.join(folder(), "root")
    os.makedirs(os.path.join(root, "bin"), exist_ok=True)
    exe = os.path.join(folder(), "static")
    run("gcc", "-static", "-O1", "-Wl,--build-id", "-o", exe,
        build() + ".c", *CODECTL, "-pthread", check=True)
    run("cp", exe, os.path.join(root, "bin", "inside"), check=True)
    child = subprocess.Popen(["/bin/inside"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             preexec_fn=lambda: os.chroot(root))
    try:
        code = int(child.stdout.readline().split()[1], 16)
        o = at(ranges(child.pid), code, "file")
        expect(o["owner"].endswith("/bin/inside") and o["unwind"] == "file" and not o["why"], o)
    finally:
        child.kill()
        child.wait()


# Calls codectl as a system call, forks a child that never does, and then removes what it registered
# when it is told to.
SERVED = r"""
#define _GNU_SOURCE
#include <cairn/shared/codectl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	struct code_jit_table head;
	struct code_jit_unwind_fre rows[1];
} rows = {{24, 24, 0, 24, 24}, {{.size = 64, .ip_off = 16, .cfa_off = 32}}};

int main(int argc, char **argv)
{
	unsigned long nr = strtoul(argv[1], NULL, 10);
	char *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct code_jit_info info = {.text_start = (unsigned long)text, .text_end = (unsigned long)text + 4096,
				     .extended = CODE_JIT_EXTENDED, .unwind_head = (unsigned long)&rows,
				     .name = (unsigned long)"served"};
	struct code_unregister_info range = {info.text_start, info.text_end};
	alarm(60);
	if (syscall(nr, CODE_REGISTER_JIT, &info, sizeof(info), 0))
		return 3;
	usleep(50000); /* a fork counts by the clock tick */
	int pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		pause();
	}
	usleep(50000);
	printf("%d %d %lx\n", getpid(), pid, info.text_start);
	fflush(stdout);
	while (getchar() == 'u') {
		if (syscall(nr, CODE_UNREGISTER, &range, sizeof(range), 0))
			return 4;
		puts("u");
		fflush(stdout);
	}
	return 0;
}
"""


@claim
def a_served_registry_is_found_also_by_the_child_that_never_called():
    exe = os.path.join(folder(), "served")
    with open(exe + ".c", "w", encoding="utf-8") as file:
        file.write(SERVED)
    run("gcc", "-O1", "-I", os.path.join(SOURCE, "include"), "-o", exe, exe + ".c", check=True)
    p = subprocess.Popen([CAIRN, "code", "run", "--syscall", "500", "--", exe, "500"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        line = p.stdout.readline().split()
        if not line:
            raise Skip(p.stderr.read().decode())
        parent, child, text = int(line[0]), int(line[1]), int(line[2], 16)
        own = at(ranges(parent), text + 20, "jit")
        expect(
            own["unwind"] == "rows" and own["rows"] == 1 and own["owner"] == "served"
            and own["trusted"], own)
        inherited = at(ranges(child), text + 20, "jit")
        expect(inherited == own, inherited, own)
        p.stdin.write(b"u")
        p.stdin.flush()
        expect(p.stdout.readline() == b"u\n")
        expect(not [o for o in ranges(parent) if o["source"] == "jit"])
        # What the parent removed since is the child's still.
        kept = at(ranges(child), text + 20, "jit")
        expect(kept == own, kept, own)
        p.kill()
        p.wait()
        expect(not [o for o in ranges(child) if o["source"] == "jit"])
    finally:
        p.kill()
        p.wait()


main()
