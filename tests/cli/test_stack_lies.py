#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Claims about `cairn stack`: rows that lie, stacks that lead nowhere, memory that cannot be read.
Each ends with its reason."""

import os
import subprocess
import time

from claims import cairn, claim, claim_each, compile_c, expect, folder, main, need, run

PROGRAM = r"""
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#define LIE(name, rows, code) __asm__(".type " #name ",@function\n" #name ":\n.cfi_startproc\n" rows "\n" code "\n1: jmp 1b\n.cfi_endproc\n.size " #name ",.-" #name "\n"); void name(void);
LIE(cfa_below, ".cfi_def_cfa rsp, -64", "")
LIE(cfa_same, ".cfi_def_cfa rsp, 0", "")
LIE(cfa_null, ".cfi_def_cfa rax, 0", "xor %eax,%eax")
LIE(cfa_wild, ".cfi_def_cfa rax, 0", "movabs $0x4141414141414141,%rax")
LIE(cfa_far, ".cfi_def_cfa rsp, 0x7ffffff0", "")
LIE(jump_in_expression, ".cfi_escape 0x0f,3,0x2f,0xfd,0xff", "")
LIE(ra_on_stack, "", "mov %rsp,(%rsp)")
LIE(fp_loop, ".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16", "push %rbp\nlea -64(%rsp),%rbp\nmov %rbp,(%rbp)\nlea fp_loop+8(%rip),%rax\nmov %rax,8(%rbp)")
LIE(fp_cycle, ".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16", "lea 64(%rsp),%rbp\nlea -32(%rbp),%rax\nmov %rax,(%rbp)\nmov %rbp,-32(%rbp)\nlea fp_cycle+8(%rip),%rax\nmov %rax,8(%rbp)\nmov %rax,-24(%rbp)")
/* A function that says where registers are is believed; of one that does not, the instructions tell that its row is wrong. */
#define SAVED ".cfi_offset rbx, -16"
LIE(rsp_null, SAVED, "xor %esp,%esp")
LIE(rsp_of_kernel, SAVED, "movabs $0xffff888000000000,%rsp")
LIE(rsp_at_end, SAVED, "mov $-8,%rsp")
LIE(rsp_silently, "", "xor %esp,%esp")
static void protected(int n)
{
	char here[3000];
	memset(here, n, sizeof(here));
	if (n)
		protected(n - 1);
	else
		mprotect((void *)(((unsigned long)here & ~4095UL) + 8192), 4096, PROT_NONE);
	for (;;)
		__asm__ volatile("" :: "r"(here));
}
static void down(void) { protected(5); }
int main(int argc, char **argv)
{
	static const struct { const char *name; void (*f)(void); } all[] = {
#define CASE(f) {#f, f}
		CASE(cfa_below), CASE(cfa_same), CASE(cfa_null), CASE(cfa_wild), CASE(cfa_far), CASE(jump_in_expression), CASE(ra_on_stack), CASE(fp_loop),
		CASE(fp_cycle), CASE(rsp_null), CASE(rsp_of_kernel), CASE(rsp_at_end), CASE(rsp_silently), {"protected", down}};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			all[i].f();
	return 2;
}
"""

# Why it ends, and after how many frames at most.
LIES = {
    "cfa_below": ("loop", 1), "cfa_same": ("loop", 1), "cfa_null": ("unreadable", 1), "cfa_wild":
    ("unreadable", 1), "cfa_far": ("unreadable", 1), "jump_in_expression": ("undescribed", 1),
    "ra_on_stack": ("no-file", 2), "fp_loop": ("loop", 2), "fp_cycle": ("loop", 3), "rsp_null":
    ("unreadable", 1), "rsp_of_kernel": ("unreadable", 1), "rsp_at_end": ("unreadable", 1),
    "rsp_silently": ("undescribed", 1), "protected": ("unreadable", 6),
}


def program():
    path = os.path.join(folder(), "lies-gcc")
    return path if os.path.exists(path) else compile_c(
        "lies", PROGRAM, flags=("-O1", "-w", "-fno-stack-protector", "-fno-optimize-sibling-calls"))


def is_there(thread, name):
    """In the loop at the end of the function, which is where it stays."""
    return thread["frames"] and any(f["function"] == name for f in thread["frames"][0]["functions"])


@claim_each(*LIES)
def a_walk_ends_where_it_is_led_astray(name):
    end, most = LIES[name]
    process = subprocess.Popen([program(), name])
    try:
        deadline = time.monotonic() + 60
        while True:
            r = cairn("stack", "-s", "--no-cache", "--json", process.pid)
            thread = r.objects()[0] if r.out else {"frames": []}
            # Until it has arrived there: the machine may be busy.
            if (is_there(thread, name) and thread["end"] == end) or time.monotonic() > deadline:
                break
        expect(
            r.status == 1 and thread["end"] == end and thread["why"]
            and len(thread["frames"]) <= most, r)
    finally:
        process.kill()
        process.wait()



# Functions without rows and without frame pointers, called from one that has both, and whose rbp is
# still there.
WITHOUT_ROWS = r"""
#include <sys/prctl.h>
#include <signal.h>
__asm__(".type inner,@function\ninner: sub $8,%rsp\n1: jmp 1b\n.size inner,.-inner\n"
	".type middle,@function\nmiddle: sub $8,%rsp\ncall inner\nadd $8,%rsp\nret\n.size middle,.-middle\n");
void middle(void);
static volatile unsigned long sink;
__attribute__((noinline)) void outer(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); middle(); sink++; }
__attribute__((noinline)) void begin(void) { outer(); sink++; }
int main(void) { begin(); return 0; }
"""


@claim_each((), ("-s",))
def a_function_without_rows_does_not_lead_past_the_caller_of_its_caller(flags):
    path = compile_c("rows" + "".join(flags), WITHOUT_ROWS,
                     flags=("-O1", "-fno-omit-frame-pointer", "-fPIE", "-pie", *flags))
    process = subprocess.Popen([path])
    try:
        deadline = time.monotonic() + 60
        while True:
            r = cairn("stack", "-s", "--no-cache", "--json", process.pid)
            thread = r.objects()[0] if r.out else {"frames": [], "why": ""}
            if "but the call before that leads to" in thread["why"] or time.monotonic() > deadline:
                break
        # rbp leads to begin, which called outer and not inner.
        expect(r.status == 1 and thread["end"] == "undescribed" and len(thread["frames"]) == 1, r)
        expect("but the call before that leads to" in thread["why"], thread)
    finally:
        process.kill()
        process.wait()


RUST = """
use std::hint::black_box;
#[inline(never)] fn inner(n: u64) -> u64 { let mut s = n; loop { s = black_box(s + 1); } }
#[inline(never)] fn middle(n: u64) -> u64 { inner(n + 1) + 1 }
fn main() { println!("{}", middle(std::env::args().count() as u64)); }
"""


@claim
def rust_without_tables_is_not_left_past_its_runtime():
    need("rustc")
    source = os.path.join(folder(), "tables.rs")
    with open(source, "w", encoding="utf-8") as file:
        file.write(RUST)
    run("rustc", "-O", "-C", "panic=abort", "-C", "force-unwind-tables=no", "-o", source[:-3],
        source, check=True)
    process = subprocess.Popen([source[:-3]])
    try:
        time.sleep(0.3)
        r = cairn("stack", "-s", "--no-cache", "--json", process.pid)
        # main of C, which calls lang_start through the GOT, is where rbp leads: a caller between is
        # not left out as if it were none.
        expect(r.status == 1 and len(r.objects()[0]["frames"]) == 1, r)
    finally:
        process.kill()
        process.wait()


main()
