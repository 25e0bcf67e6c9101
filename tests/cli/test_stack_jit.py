#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack through code made at run time: described, undescribed, freed, and of real JITs with
few samples."""

import glob
import os
import re
import shutil
import signal
import struct
import time

from claims import (BUILD, IS_SANITIZED, Running, Skip, cairn, claim, claim_each, expect, folder, compile_c,
                    main, need, run)

# Copies a function that calls back into memory of its own, and calls it. FP: it keeps a frame
# pointer; else rbp is something else.
COPIED = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned long sink;
__attribute__((noinline)) void call_back(void) { for (;;) sink++; }

int main(void)
{
#ifdef FP
	/* push %rbp; mov %rsp,%rbp; sub $32,%rsp; mov $call_back,%rax; call *%rax; leave; ret */
	unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0xc9, 0xc3};
	enum { ADDRESS = 10 };
#else
	/* push %rbp; mov $1,%ebp; sub $32,%rsp; mov $call_back,%rax; call *%rax */
	unsigned char code[] = {0x55, 0xbd, 1, 0, 0, 0, 0x48, 0x83, 0xec, 0x20, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0xf4};
	enum { ADDRESS = 12 };
#endif
	unsigned char *area = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *callee = (void *)call_back;
	memcpy(code + ADDRESS, &callee, sizeof(callee));
	memcpy(area + 256, code, sizeof(code));
	printf("%p\n", (void *)area);
	fflush(stdout);
	((void (*)(void))(area + 256))();
	return 0;
}
"""

# The code leaves rbp alone, so that it is still that of outer, past enter. FP: it keeps a frame
# pointer, and enter jumps to it.
LEFT_OUT = r"""
#include <string.h>
#include <sys/mman.h>

static volatile unsigned long sink;
static void (*code)(void);
__attribute__((noinline)) void call_back(void) { for (;;) sink++; }

#ifdef FP
__attribute__((noinline)) void enter(void) { sink++; code(); }
#else
__attribute__((noinline)) void enter(void) { code(); sink++; }
#endif
#ifdef HIDDEN
__attribute__((visibility("hidden")))
#endif
__attribute__((noinline, optimize("no-omit-frame-pointer"))) void outer(void) { enter(); sink++; }
void begin(void) { outer(); sink++; }

void make(void)
{
#ifdef FP
	/* push %rbp; mov %rsp,%rbp; mov $call_back,%rax; call *%rax; leave; ret */
	unsigned char bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0xc9, 0xc3};
	enum { ADDRESS = 6 };
#else
	/* sub $8,%rsp; mov $call_back,%rax; call *%rax; add $8,%rsp; ret */
	unsigned char bytes[] = {0x48, 0x83, 0xec, 8, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
	enum { ADDRESS = 6 };
#endif
	unsigned char *area = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *callee = (void *)call_back;
	memcpy(bytes + ADDRESS, &callee, sizeof(callee));
	code = (void (*)(void))memcpy(area, bytes, sizeof(bytes));
}
"""

MAIN = r"""
void make(void);
void begin(void);
int main(void)
{
	make();
	begin();
	return 0;
}
"""


def stacks_of(pid, rounds, *words):
    r = cairn("stack", "--json", "-s", "--no-cache", "-n", rounds, "-i", "2ms", *words, pid)
    expect(r.err == "", r.err)
    return r.objects()


def wait_until(is_so):
    """On a machine that has other work a start may take long."""
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.05)


def names_of(thread):
    return [f["functions"][-1]["name"] if f["functions"] else None for f in thread["frames"]]


def code_of(thread):
    """Its frames that are in no file."""
    return [f for f in thread["frames"] if f["path"] is None]


def example():
    """The example JIT, which has begun to run its code."""
    jit = os.path.join(BUILD, "examples/jit")
    if not os.path.exists(jit):
        raise Skip("examples/jit is not built: it writes x86-64 code")
    p = Running(jit, 600)
    wait_until(lambda: code_of(stacks_of(p.pid, 1)[0]))
    return p


@claim
def stacks_go_through_code_whose_jit_describes_it_while_it_is_freed_and_made_anew():
    with example() as p:
        threads = stacks_of(p.pid, 200)
    n_levels = 0
    for t in threads:
        expect(t["end"] == "outermost", t["why"])
        levels = [(f, n) for f, n in zip(t["frames"], names_of(t)) if f["path"] is None]
        expect(all(n for _, n in levels), t)
        # They call each other in this order, and all belong to one generation.
        numbers = [
            tuple(map(int,
                      re.fullmatch(r"level_(\d+)_of_(\d+)", n).groups())) for _, n in levels
        ]
        expect(
            len({g
                 for _, g in numbers}) <= 1 and len({f["code"]["generation"]
                                                     for f, _ in levels}) <= 1, numbers)
        expect([i for i, _ in numbers] == list(range(8 - len(numbers), 8)), numbers)
        expect(
            all(f["code"]["source"] == "jit" and f["code"]["unwind"] == "rows" and not f["assumed"]
                for f, _ in levels), t)
        n_levels += len(levels)
    expect(len(threads) == 200 and n_levels > 200, len(threads), n_levels)


def copied(flags):
    return compile_c("copied" + "".join(flags).replace("-", ""), COPIED, "gcc",
                     ("-O2", "-g", *flags))


@claim
def code_that_nobody_describes_is_left_by_its_frame_pointer_and_marked():
    with Running(copied(("-DFP",))) as p:
        area = int(p.process.stdout.readline(), 16)
        time.sleep(0.1)
        thread = stacks_of(p.pid, 1)[0]
        text = cairn("stack", "-s", p.pid)
    names = names_of(thread)
    expect(thread["end"] == "assumed" and names[0] == "call_back" and names[2] == "main", thread)
    frame = thread["frames"][1]
    expect(
        int(frame["pc"], 16) == area + 256 + 20 and frame["code"]["source"] == "anonymous", frame)
    expect(
        frame["code"]["unwind"] == "assumed" and not frame["functions"]
        and "perf map" in frame["unnamed"], frame)
    # It is the caller that is found by an assumption.
    expect([f["assumed"] for f in thread["frames"][:4]] == [False, False, True, False], thread)
    expect(re.search(r"main\S* .*\(assumed: its callee keeps a frame pointer\)", text.out), text)


def left_out(name, *flags):
    """The program, its functions in a library, so that it calls them through the PLT."""
    library = compile_c(name + "-code.so", LEFT_OUT, "gcc",
                        ("-O2", "-g", "-shared", "-fPIC", *flags))
    return compile_c(
        name, MAIN, "gcc",
        ("-O2", "-g", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{os.path.dirname(library)}"))


def arrived(pid):
    """Its stack in call_back, and the exit status of who showed it."""
    for _ in range(200):
        r = cairn("stack", "--json", "-s", "--no-cache", pid)
        if r.out and len(r.objects()[0]["frames"]) > 1 and r.objects()[0]["frames"][1].get("code"):
            break
        time.sleep(0.05)
    return r.objects()[0], r.status


# ---- GDB's list: files as LLVM, QEMU and PHP register them ----

GDB_HOST = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct jit_code_entry { struct jit_code_entry *next, *previous; const char *symfile; uint64_t size; };
struct { uint32_t version, action; struct jit_code_entry *relevant, *first; } __jit_debug_descriptor = {1};
__attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile(""); }
static struct jit_code_entry entry;

static char *load(const char *path, char *to, uint64_t *size)
{
	FILE *file = fopen(path, "r");
	to = to ? mmap(to, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) :
		  malloc(1 << 20);
	*size = fread(to, 1, 1 << 16, file);
	return to;
}

static volatile unsigned long sink;
__attribute__((noinline)) void call_back(void) { for (;;) sink++; }

int main(int argc, char **argv)
{
	uint64_t size;
	char *code = load(argv[1], (char *)0x7a5000000000, &size);
	entry.symfile = load(argv[2], NULL, &entry.size);
	__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &entry;
	__jit_debug_descriptor.action = 1;
	__jit_debug_register_code();
	((void (*)(void (*)(void)))code)(call_back);
	return 0;
}
"""

# rbp is a number, so that nothing but the rows leads on.
GDB_CODE = """
%s
	.text
	.globl jitted
	.type jitted, @function
jitted:
	.cfi_startproc
	push %%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %%rbp, -16
	mov $1, %%ebp
	sub $48, %%rsp
	.cfi_adjust_cfa_offset 48
	call *%%rdi
	add $48, %%rsp
	.cfi_adjust_cfa_offset -48
	pop %%rbp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size jitted, . - jitted
"""

GDB_CODE_AT = 0x7A5000000000
CALL_LINE = GDB_CODE.count("\n", 0, GDB_CODE.index("call *"))


def section_headers(elf):
    """{name: (number of the header, offset in the file)}"""
    shoff, = struct.unpack_from("<Q", elf, 40)
    n, names = struct.unpack_from("<HH", elf, 60)
    strings, = struct.unpack_from("<Q", elf, shoff + names * 64 + 24)
    found = {}
    for i in range(n):
        at = strings + struct.unpack_from("<I", elf, shoff + i * 64)[0]
        found[elf[at:elf.index(b"\0", at)].decode()] = shoff + i * 64
    return found


def text_relative(size):
    """.eh_frame as LuaJIT and PHP write it: the FDE's address is a distance from .text."""
    cie = struct.pack("<IB3sBBBBB", 0, 1, b"zR\0", 1, 0x78, 16, 1, 0x23) + bytes(
        [0x0c, 7, 8, 0x90, 1])
    cie += bytes(-len(cie) % 8 + 4)
    rows = bytes([0x41, 0x0e, 16, 0x86, 2, 0x49, 0x0e, 64, 0x46, 0x0e, 16, 0x41, 0x0e, 8])
    fde = struct.pack("<IIIB", len(cie) + 8, 0, size, 0) + rows
    fde += bytes(-len(fde) % 8 + 4)
    return struct.pack("<I", len(cie)) + cie + struct.pack("<I", len(fde)) + fde + bytes(4)


def call_relocatable(elf):
    """As LuaJIT and PHP do: addresses of sections and lines are those in memory, symbols count from
    their section."""
    struct.pack_into("<H", elf, 16, 1)  # e_type
    off, size = struct.unpack_from("<QQ", elf, section_headers(elf)[".symtab"] + 24)
    for at in range(off, off + size, 24):
        value, = struct.unpack_from("<Q", elf, at + 8)
        struct.pack_into("<Q", elf, at + 8, value - GDB_CODE_AT if value >= GDB_CODE_AT else value)


def registered(kind):
    """A program that runs code which a file of GDB's list describes: its words."""
    where = os.path.join(folder(), "gdb-" + kind)
    os.mkdir(where)
    source, obj, elf, code, eh = (os.path.join(where, name)
                                  for name in ("jitted.s", "jitted.o", "jitted.elf", "code", "eh"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(GDB_CODE % (".cfi_sections .debug_frame"
                               if kind != "relocatable" else ".cfi_sections .eh_frame"))
    run(need("as"), "-g", source, "-o", obj, check=True)
    run(need("objcopy"), "-O", "binary", "-j", ".text", obj, code, check=True)
    run(need("ld"), "-e", "jitted", f"-Ttext={GDB_CODE_AT:#x}", obj, "-o", elf, check=True)
    if kind == "relocatable":
        with open(obj, "rb") as file:
            data = bytearray(file.read())
        struct.pack_into("<Q", data, section_headers(data)[".text"] + 16, GDB_CODE_AT)
        # Where nothing is: it is read from the file.
        struct.pack_into("<Q", data,
                         section_headers(data)[".eh_frame"] + 16, GDB_CODE_AT + (1 << 20))
    else:
        if kind == "text-relative":
            with open(eh, "wb") as file:
                file.write(text_relative(os.path.getsize(code)))
            run("objcopy", "--remove-section=.debug_frame", f"--add-section=.eh_frame={eh}", elf,
                check=True)
        with open(elf, "rb") as file:
            data = bytearray(file.read())
        if kind == "text-relative":
            call_relocatable(data)
    with open(elf, "wb") as file:
        file.write(data)
    return compile_c("gdb-host", GDB_HOST), code, elf


@claim_each("debug_frame", "text-relative", "relocatable")
def files_of_gdbs_list_have_rows_and_lines(kind):
    words = registered(kind)
    with Running(*words) as p:
        wait_until(lambda: len(stacks_of(p.pid, 1)[0]["frames"]) > 1 and code_of(
            stacks_of(p.pid, 1)[0]))
        r = cairn("stack", "--json", "--no-cache", p.pid)
        (thread,) = r.objects()
        text = cairn("stack", "--no-cache", p.pid)
        if shutil.which("gdb") and os.geteuid() == 0:
            theirs = run("gdb", "-nx", "-q", "-batch", "-p", p.pid, "-ex", "bt").out
        else:
            theirs = None
    expect(
        thread["end"] == "outermost" and r.status == 0
        and names_of(thread)[:3] == ["call_back", "jitted", "main"], thread, text)
    frame = thread["frames"][1]
    expect(
        frame["code"]["source"] == "gdb" and frame["code"]["unwind"] == "eh-frame"
        and not frame["assumed"], frame)
    site = frame["functions"][0]
    expect(site["line"] == CALL_LINE + 1 and os.path.basename(site["file"] or "") == "jitted.s",
           site, CALL_LINE)
    expect(f"jitted.s:{CALL_LINE + 1}" in text.out, text)
    # gdb of Debian 12 reads no distances from .text in a file of this kind; the others it does.
    if theirs and kind == "debug_frame":
        expect(re.search(r"#1 .*jitted.*\n#2 .* main ", theirs), theirs)


@claim
def a_file_of_gdbs_list_without_call_frame_information_says_so():
    host, code, elf = registered("debug_frame-removed")
    run("objcopy", "--remove-section=.debug_frame", elf, check=True)
    with Running(host, code, elf) as p:
        wait_until(lambda: len(stacks_of(p.pid, 1)[0]["frames"]) > 1 and code_of(
            stacks_of(p.pid, 1)[0]))
        (thread,) = stacks_of(p.pid, 1)
    expect(thread["end"] != "outermost" and "no call frame information" in thread["why"],
           thread["why"])


# Outer is called through the PLT; or directly, and no symbol tells where it ends.
@claim_each((), ("-DHIDDEN", "-s"))
def a_caller_is_not_left_out_where_the_call_before_the_return_address_leads_elsewhere(flags):
    with Running(left_out("left-out" + "".join(flags), *flags)) as p:
        thread, status = arrived(p.pid)
    # rbp leads to begin, which called outer; neither outer nor enter would be found. The code's own
    # return leads to enter.
    names = names_of(thread)
    expect(
        len(thread["frames"]) == 9
        and [f["assumed"] for f in thread["frames"]] == [False, False, True] + 6 * [False], thread)
    expect("-s" in flags or names[2:6] == ["enter", "outer", "begin", "main"], names)
    expect(
        thread["end"] == "assumed" and status == 6
        and "leads to a return" in thread["frames"][2]["why_assumed"], thread, status)


# Old frames lie where the code makes room for itself: of calls that lead elsewhere, as nearly all
# do.
LITTERED = LEFT_OUT.replace("0x48, 0x83, 0xec, 8, 0x48, 0xb8", "0x48, 0x81, 0xec, 8, 2, 0, 0, 0x48, 0xb8") \
    .replace("ADDRESS = 6 };\n#endif", "ADDRESS = 9 };\n#endif").replace("static void (*code)(void);", r'''
static void (*code)(void);
__attribute__((noinline)) int litter(int n) { volatile char pad[40]; pad[0] = n; return n ? litter(n - 1) + pad[0] : pad[0]; }
''').replace("void begin(void) { outer();", "void begin(void) { litter(20); outer();")


@claim
def old_frames_on_the_stack_are_not_taken_for_callers():
    library = compile_c("littered-code.so", LITTERED, "gcc",
                        ("-O2", "-g", "-shared", "-fPIC", "-fno-optimize-sibling-calls"))
    host = compile_c(
        "littered", MAIN, "gcc",
        ("-O2", "-g", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{os.path.dirname(library)}"))
    with Running(host) as p:
        thread, status = arrived(p.pid)
    names = names_of(thread)
    expect(names[:1] + names[2:6] == ["call_back", "enter", "outer", "begin", "main"], names,
           thread["why"])
    expect(thread["end"] == "assumed" and status == 6, thread, status)


# The caller of enter has a frame that starts from rbp, which the code has changed: nobody further
# out is taken instead.
@claim
def a_caller_that_cannot_be_told_ends_the_stack():
    needs_rbp = LITTERED.replace("0x48, 0x81, 0xec, 8, 2, 0, 0, 0x48, 0xb8", "0x48, 0x81, 0xec, 8, 2, 0, 0, 0xbd, 1, 0, 0, 0, 0x48, 0xb8") \
        .replace("ADDRESS = 9", "ADDRESS = 14")
    library = compile_c("untold-code.so", needs_rbp, "gcc",
                        ("-O2", "-g", "-shared", "-fPIC", "-fno-optimize-sibling-calls"))
    host = compile_c(
        "untold", MAIN, "gcc",
        ("-O2", "-g", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{os.path.dirname(library)}"))
    with Running(host) as p:
        thread, status = arrived(p.pid)
    expect(
        len(thread["frames"]) == 2 and thread["end"] == "no-file" and status == 1, thread, status)


@claim
def a_call_that_a_tail_jump_passes_on_is_no_contradiction_and_the_stack_is_complete_by_assumption():
    with Running(left_out("passed-on", "-DFP")) as p:
        thread, status = arrived(p.pid)
        text = cairn("stack", "-s", "--no-cache", p.pid)
    expect(
        names_of(thread)[2:5] == ["outer", "begin", "main"] and thread["frames"][2]["assumed"],
        thread)
    expect(thread["end"] == "assumed" and status == 6 and text.status == 6, thread, status, text)
    expect("outermost frame, by way of frames that are assumed" in text.out, text)


@claim
def a_perf_map_names_it_and_one_of_another_user_does_not():
    with Running(copied(("-DFP",))) as p:
        area = int(p.process.stdout.readline(), 16)
        time.sleep(0.1)
        path = f"/tmp/perf-{p.pid}.map"
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{area + 256:x} 16 copied function\n")
            named = stacks_of(p.pid, 1)[0]["frames"][1]
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
            refused = cairn("stack", "--json", p.pid)
        finally:
            os.unlink(path)
    expect(named["functions"][0]["name"] == "copied function" and named["offset"] == 20, named)
    expect(named["code"]["named_by"] == "perf-map" and named["unnamed"] is None, named)
    if os.geteuid() == 0:
        expect(not refused.objects()[0]["frames"][1]["functions"] and "not believed" in refused.err,
               refused)


@claim
def addresses_in_no_file_are_named_by_who_made_the_code():
    with example() as p:
        area = int(code_of(stacks_of(p.pid, 1)[0])[0]["code"]["lo"], 16)
        # It is freed and made anew all the time, faster than a slow reader reads: so it stands
        # still, but maybe just freed.
        for _ in range(50):
            p.process.send_signal(signal.SIGSTOP)
            answer = cairn("addr", "--json", p.pid, hex(area + 3 * 64)).objects()[0]
            text = cairn("addr", p.pid, hex(area))
            p.process.send_signal(signal.SIGCONT)
            if answer["frames"]:
                break
            time.sleep(0.01)
    expect(
        re.fullmatch(r"level_3_of_\d+", answer["frames"][0]["name"])
        and answer["code"]["source"] == "jit", answer)
    expect("[jit: example, generation" in text.out, text)


# As COPIED without a frame pointer, in memory that is shared as PHP and .NET share theirs.
@claim
def shared_anonymous_memory_is_no_file():
    program = compile_c("shared", COPIED.replace("MAP_PRIVATE", "MAP_SHARED"), "gcc",
                        ("-O2", "-g", "-DFP"))
    with Running(program) as p:
        p.process.stdout.readline()
        time.sleep(0.1)
        thread = stacks_of(p.pid, 1)[0]
        text = cairn("stack", "-s", p.pid)
    frame = thread["frames"][1]
    expect(
        frame["path"] is None and frame["code"]["source"] == "anonymous"
        and names_of(thread)[2] == "main", thread)
    expect("not an ELF file" not in text.out and "[anonymous: /dev/zero: no registry" in text.out,
           text)


@claim
def where_rbp_is_no_frame_pointer_the_caller_is_found_on_the_stack_and_marked():
    with Running(copied(())) as p:
        p.process.stdout.readline()
        time.sleep(0.1)
        thread = stacks_of(p.pid, 1)[0]
    expect(
        names_of(thread)[2] == "main"
        and [f["assumed"] for f in thread["frames"][:4]] == [False, False, True, False], thread)
    expect(
        thread["end"] == "assumed" and "found on the stack" in thread["frames"][2]["why_assumed"],
        thread)


SCRIPT = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (;;) fib(20);
"""


@claim
def node_is_left_by_its_frame_pointers_and_named_by_its_map_file():
    node = need("node")
    script = os.path.join(folder(), "fib.js")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    with Running(node, "--perf-basic-prof", script, cwd=folder()) as p:
        try:
            time.sleep(1.5)
            threads = [t for t in stacks_of(p.pid, 20) if t["tid"] == p.pid]
        finally:
            for path in glob.glob(f"/tmp/perf-{p.pid}.map"):
                os.unlink(path)
    complete = [t for t in threads if t["end"] in ("outermost", "assumed")]
    # An instruction is not always where a frame can be found by it.
    expect(len(threads) == 20 and len(complete) >= 18, [t["why"] for t in threads])
    named = [n for t in complete for n in names_of(t) if n]
    expect(sum("fib" in n for n in named) >= 20, named)
    expect(any(f["assumed"] for t in complete for f in t["frames"]), complete[0])


# Traces inside of protected calls, coroutines, and what a C function calls back.
LUA = """
local function work(n) local s = 0 for i = 1, n do s = s + (i % 7) * (s % 3) end return s end
local function spin(d) if d == 0 then return work(30000) end local ok, v = pcall(spin, d - 1) return v end
local co = coroutine.wrap(function() while true do work(20000) coroutine.yield(spin(3)) end end)
while true do
  spin(5) co()
  string.gsub("hello world", "%w", function(c) return c .. work(5000) end)
end
"""


@claim
def traces_of_luajit_run_in_the_frame_of_its_interpreter():
    luajit = need("luajit")
    script = os.path.join(folder(), "traces.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write(LUA)
    with Running(luajit, script) as p:
        time.sleep(0.5)
        threads = stacks_of(p.pid, 200)
    in_traces = [t for t in threads if t["frames"][0]["path"] is None]
    borrowed = [
        t for t in in_traces
        if "interpreter" in str(t["frames"][min(1,
                                                len(t["frames"]) - 1)]["why_assumed"])
    ]
    expect(len(in_traces) >= 20, len(in_traces), threads[0])
    # A stack that nobody walked is told as such: none may lead elsewhere.
    for t in borrowed:
        names = names_of(t)
        expect(t["end"] == "assumed" and names[-1] == "_start" and "main" in names, t)
    expect(len(borrowed) >= 0.9 * len(in_traces), len(borrowed), len(in_traces))


PYTHON = """
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def loop(n):
    s = 0
    for i in range(n): s = (s * 31 + i) % 1000003
    return s
class Node:
    def __init__(self, k): self.k = k
def make(n): return sum(Node(i).k for i in range(n))
while True: loop(300000); fib(22); make(100000)
"""


def stops_of(pid, n):
    """(its stack, the words of its stack from the stack pointer on, its memory): read while it
    stands still."""
    for _ in range(n):
        time.sleep(0.02)
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].
                   split()[0] == "T")
        try:
            sp = int(open(f"/proc/{pid}/syscall", encoding="utf-8").read().split()[-2], 16)
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                def read(at, size):
                    memory.seek(at)
                    return memory.read(size)
                thread = next(t for t in stacks_of(pid, 1) if t["tid"] == pid)
                yield thread, sp, read
        finally:
            os.kill(pid, signal.SIGCONT)


def is_call(code):
    """Whether 7 bytes end with a call: e8, or ff /2 of one of its lengths."""
    return code[-5] == 0xE8 or any(code[-n] == 0xFF and code[1 - n] >> 3 & 7 == 2
                                   for n in range(2, 8))


@claim
def pypys_frames_are_left_by_the_way_to_their_return():
    """Its code has frames of 184 bytes and a return address, rbp in the heap, and calls code by
    code. Nobody may be left out."""
    script = os.path.join(folder(), "work_of_pypy.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PYTHON)
    n_stops = 15 if IS_SANITIZED else 40
    with Running(need("pypy3"), script) as p:
        time.sleep(4)
        sizes, ends, n_jit = [], [], 0
        # Two frames of its code, one above the other, are rare: a few stops may show none.
        for thread, sp, read in stops_of(p.pid, 20 * n_stops):
            if len(ends) >= n_stops and sizes:
                break
            frames = thread["frames"]
            n_jit += frames[0]["path"] is None or any(f["path"] is None for f in frames)
            ends.append(thread["end"] if any(f["path"] is None for f in frames) else "assumed")
            slot = sp
            for i, f in enumerate(frames[1:], 1):
                # In order, at words of the stack, after calls.
                pc, last = int(f["pc"], 16), slot
                while int.from_bytes(read(slot, 8), "little") != pc:
                    slot += 8
                    expect(slot < sp + (1 << 20), "not on the stack", f, thread)
                slot += 8
                expect(is_call(read(pc - 7, 7)), f)
                if i > 1 and frames[i - 1]["path"] is None and frames[i - 2]["path"] is None:
                    sizes.append(slot - last)
    expect(n_jit >= len(ends) / 2 and set(ends) == {"assumed"}, n_jit, ends)
    # Helpers that PyPy's code calls have 8 bytes, or none, and a return address.
    expect(sizes and set(sizes) <= {8, 16, 192}, sizes)


main()
