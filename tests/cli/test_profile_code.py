#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile through stacks that were made by hand, and through code made at run time that a
process describes."""

import collections
import os

from claims import (SOURCE, Skip, claim, claim_each, claim_each_of_many, compile_c, expect, folder,
                    main, need, run, write)
from profiling import folded_lines, profile

# Two contexts in turn: one burns below entry(), the other below main().
CONTEXTS = r"""
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
static volatile unsigned long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return (double)t.tv_sec + (double)t.tv_nsec / 1e9; }
__attribute__((noinline)) void deep(void) { for (unsigned long i = 0; i < 200000; i++) sink += i; }
#ifdef BOOST
/* As boost.context's make_fcontext for x86-64 has it. */
void trampoline(void);
__asm__(".text\ntrampoline: push %rbp\njmp *%rbx\nfinish: xorq %rdi, %rdi\ncall _exit@PLT\nhlt\n"
	".globl jump\njump: mov %rdi, %rsp\nlea finish(%rip), %rbp\nmov %rsi, %rbx\njmp trampoline\n");
void jump(void *stack, void (*function)(void));
__attribute__((noinline)) void entry(void) { while (now() < 1) { deep(); __asm__ volatile(""); } exit(0); }
int main(void) { jump((char *)aligned_alloc(16, 1 << 16) + (1 << 16), entry); }
#else
static ucontext_t here, there;
__attribute__((noinline)) void entry(void) { for (;;) { deep(); swapcontext(&there, &here); } }
int main(void)
{
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(1 << 16);
	there.uc_stack.ss_size = 1 << 16;
	makecontext(&there, entry, 0);
	while (now() < 1)
		swapcontext(&here, &there);
}
#endif
"""


# The main thread ends; another one burns in code that is made at run time, with a frame pointer,
# and is named by a perf map.
WITHOUT_MAIN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0x40, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
static char path[64];
static void (*made)(void);
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return (double)t.tv_sec + (double)t.tv_nsec / 1e9; }
static void *work(void *unused)
{
	(void)unused;
	while (now() < 1.5)
		made();
	unlink(path);
	exit(0);
}
int main(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	FILE *map;

	memcpy(p, code, sizeof(code));
	made = (void (*)(void))p;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx %zx made;here\n", (unsigned long)p, sizeof(code));
	fclose(map);
	pthread_create(&thread, NULL, work, NULL);
	pthread_exit(NULL);
}
"""

GO = """
package main

var sink int

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func work(n int, done chan bool) {
	for i := 0; i < n; i++ {
		sink += fib(20)
	}
	done <- true
}

func main() {
	done := make(chan bool)
	for i := 0; i < 200; i++ {
		go work(200, done)
	}
	for i := 0; i < 200; i++ {
		<-done
	}
}
"""


def sampled(name, *words):
    """Its result, and {(functions, the outermost first): samples or time}."""
    out = os.path.join(folder(), name + ".folded")
    r = profile("--no-cache", "--no-kernel", "-o", out, *words)
    expect(r.status == 0, r)
    stacks = collections.Counter()
    with open(out, encoding="utf-8") as file:
        for functions, n in folded_lines(file):
            stacks[tuple(functions.split(";"))] += n
    return r, stacks


# A command's files are read while it runs already.
AT_BEGIN = ("[cut: not-ready]", "[cut: no-process]", "[cut: no-mapping]")


def settled(stacks):
    """Without what was sampled before the process and its files were known."""
    return {functions: n for functions, n in stacks.items() if functions[0] not in AT_BEGIN}


def share(stacks, is_so):
    return sum(n for functions, n in stacks.items() if is_so(functions)) / sum(stacks.values())


@claim_each("makecontext", "boost.context")
def a_stack_that_was_made_by_hand_is_complete(how):
    program = compile_c("contexts-" + how, CONTEXTS,
                        flags=("-O2", "-g") + (("-DBOOST",) if how != "makecontext" else ()))
    r, stacks = sampled(how, "-F", "499", "-c", program)
    stacks = settled(stacks)
    made = {functions for functions in stacks if "entry" in functions}
    # The frame that nobody called from is the first one: nothing leads further.
    expect(made and all(functions[1] == "entry" for functions in made), stacks, r)
    if how == "makecontext":
        expect(all(functions[0] == "__start_context" for functions in made), stacks)
    expect(share(stacks, lambda functions: functions[1:3] == ("entry", "deep")) > 0.8, stacks, r)
    expect(
        not any(functions[0].startswith("[cut") and "entry" in functions for functions in stacks),
        stacks, r)


@claim
def threads_and_goroutines_of_go_have_a_beginning():
    program = os.path.join(folder(), "goroutines")
    write("goroutines.go", GO)
    run(need("go"), "build", "-o", program, os.path.join(folder(), "goroutines.go"), check=True,
        env=dict(os.environ, GOCACHE=folder(), GOFLAGS="-mod=mod"))
    r, stacks = sampled("go", "-F", "499", "-c", program)
    expect(any("main.fib" in functions for functions in stacks), stacks, r)
    stacks = settled(stacks)
    expect(share(stacks, lambda functions: functions[0].startswith("[cut")) <= 0.02, stacks, r)


@claim
def code_of_a_process_whose_main_thread_has_ended_has_its_name():
    program = compile_c("without-main", WITHOUT_MAIN, flags=("-O2", "-pthread"))
    r, stacks = sampled("without-main", "-F", "499", "-c", program)
    # How long it takes to ask for the time is the machine's matter.
    stacks = {f: n for f, n in settled(stacks).items() if "clock_gettime" not in f[-1]}
    expect(share(stacks, lambda functions: functions[-1] == "made:here_[j]") > 0.9, stacks, r)


# ---- code whose rows the process gives to others ----

DEPTH = 8
CHAIN = ["main", "run"] + [f"jit_{i}" for i in range(DEPTH)] + ["burn"]


def jit_host():
    with open(os.path.join(SOURCE, "tests", "samples", "jit_host.c"), encoding="utf-8") as file:
        return compile_c("jit-host", file.read(), flags=("-O2", "-g", "-fomit-frame-pointer"))


def plain(functions):
    """Names as CHAIN has them; "" of made code that was gone before it had a name."""
    return [
        "" if f.startswith("[anon]+") else f.removesuffix("_[j]")
        for f in functions
        if f not in AT_BEGIN and not f.startswith("[cut")
    ]


def is_part(functions, first):
    """Whether they are CHAIN from its function number first on, as far as they reach."""
    return len(functions) <= len(CHAIN) - first and all(
        f in ("", known) for f, known in zip(functions, CHAIN[first:]))


def never_was(functions):
    """Whether a stack that leads through made code, or to what that calls, contradicts the program.
    """
    names = plain(functions)
    if not any(f in ("", "run", "burn") or f.startswith("jit_") for f in names):
        return False
    if functions[0].startswith("[cut") and "main" not in names:
        return not any(is_part(names, first) for first in range(len(CHAIN)))
    return "main" not in names or not is_part(names[names.index("main"):], 0)


def through_made(functions):
    return plain(functions)[-1:] == ["burn"]


def is_whole(functions):
    return not functions[0].startswith("[cut")


@claim_each("eh_frame", "debug_frame", "jitdump", "eh_frame shared")
def stacks_go_through_code_by_the_rows_that_its_jit_gives_to_others(kind):
    kind, *where = kind.split()
    r, stacks = sampled("still-" + kind, "-F", "499", "-c",
                        " ".join([jit_host(), kind, "still", "1", *where]))
    through = {functions: n for functions, n in settled(stacks).items() if through_made(functions)}
    expect(through and not any(never_was(functions) for functions in stacks), stacks, r)
    # The first look comes some milliseconds after the first sample, on a busy machine much later.
    expect(share(through, is_whole) > 0.5, stacks, r)
    whole = [functions for functions in through if is_whole(functions)]
    expect(all(plain(functions)[-len(CHAIN):] == CHAIN for functions in whole), whole)


@claim_each_of_many(*(f"{kind} {how}" for kind in ("eh_frame", "debug_frame", "jitdump")
              for how in ("grow", "reuse", "race")))
def no_stack_never_was_while_code_is_made_freed_and_made_anew(what):
    kind, how = what.split()
    r, stacks = sampled(f"{how}-{kind}", "-F", "999", "-c", f"{jit_host()} {kind} {how} 1.5")
    expect(not [functions for functions in stacks if never_was(functions)],
           [functions for functions in stacks if never_was(functions)], r)
    expect(any(through_made(functions) for functions in stacks), stacks, r)
    # Of a jitdump nothing is believed any more after code of it was replaced.
    if how == "grow" or (how, kind) == ("reuse", "eh_frame"):
        expect(any(through_made(functions) and is_whole(functions) for functions in stacks), stacks,
               r)


@claim
def code_that_qemu_makes_is_left_by_the_rows_of_its_list():
    guest = compile_c(
        "guest",
        "volatile unsigned long sink; int main(void) { for (unsigned long i = 0; i < 400000000; i++) sink += i; }",
        flags=("-O1",))
    r, stacks = sampled("qemu", "-F", "499", "-c", f"{need('qemu-x86_64')} {guest}")
    made = {
        functions: n
        for functions, n in settled(stacks).items()
        if functions[-1].startswith("code_gen_buffer")
    }
    expect(made and share(made, is_whole) > 0.5, stacks, r)
    expect(
        all("main" in functions and "cpu_exec" in functions
            for functions in made
            if is_whole(functions)), made)

PHP = """<?php
function leaf(int $n): int { $s = 0; for ($i = 0; $i < $n; $i++) { $s = ($s * 31 + $i) & 0xffff; } return $s; }
function work(int $n): int { $s = 0; for ($i = 0; $i < $n; $i++) { $s += leaf(1000); } return $s; }
echo work(400000), "\\n";
"""


@claim
def code_that_php_makes_is_left_by_the_rows_of_its_list():
    settings = ("opcache.enable_cli=1", "opcache.file_update_protection=0",
                "opcache.jit_buffer_size=16M", "opcache.jit=tracing", "opcache.jit_debug=0x100")
    words = " ".join(f"-d {setting}" for setting in settings)
    r, stacks = sampled("php", "-F", "499", "-c", f"{need('php')} {words} {write('work.php', PHP)}")
    made = {
        functions: n
        for functions, n in settled(stacks).items()
        if functions[-1].endswith("_[j]")
    }
    if not any(f.startswith("TRACE-") for functions in made for f in functions):
        raise Skip("this PHP has no JIT that describes its code to GDB")
    expect(
        share(made, is_whole) > 0.5
        and all("zend_execute" in functions for functions in made if is_whole(functions)), stacks,
        r)


if __name__ == "__main__":
    main()
