#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn profile through stacks that were made by hand, and through code made at run time that a process describes."""

import collections
import os

from claims import claim, claim_each, compile_c, expect, folder, main, need, run, write
from profiling import profile

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


# The main thread ends; another one burns in code that is made at run time, with a frame pointer, and is named by a perf map.
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
		go work(50, done)
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
        for line in file:
            functions, n = line.rsplit(" ", 1)
            stacks[tuple(functions.split(";"))] += int(n)
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
    program = compile_c("contexts-" + how, CONTEXTS, flags=("-O2", "-g") + (("-DBOOST",) if how != "makecontext" else ()))
    r, stacks = sampled(how, "-F", "499", "-c", program)
    stacks = settled(stacks)
    made = {functions for functions in stacks if "entry" in functions}
    # The frame that nobody called from is the first one: nothing leads further.
    expect(made and all(functions[1] == "entry" for functions in made), stacks, r)
    if how == "makecontext":
        expect(all(functions[0] == "__start_context" for functions in made), stacks)
    expect(share(stacks, lambda functions: functions[1:3] == ("entry", "deep")) > 0.8, stacks, r)
    expect(not any(functions[0].startswith("[cut") for functions in stacks), stacks, r)


@claim
def threads_and_goroutines_of_go_have_a_beginning():
    program = os.path.join(folder(), "goroutines")
    write("goroutines.go", GO)
    run(need("go"), "build", "-o", program, os.path.join(folder(), "goroutines.go"), check=True, env=dict(os.environ, GOCACHE=folder(), GOFLAGS="-mod=mod"))
    r, stacks = sampled("go", "-F", "499", "-c", program)
    expect(any("main.fib" in functions for functions in stacks), stacks, r)
    stacks = settled(stacks)
    expect(share(stacks, lambda functions: functions[0].startswith("[cut")) <= 0.02, stacks, r)


@claim
def code_of_a_process_whose_main_thread_has_ended_has_its_name():
    program = compile_c("without-main", WITHOUT_MAIN, flags=("-O2", "-pthread"))
    r, stacks = sampled("without-main", "-F", "499", "-c", program)
    expect(share(settled(stacks), lambda functions: functions[-1] == "made:here_[j]") > 0.8, stacks, r)


if __name__ == "__main__":
    main()
