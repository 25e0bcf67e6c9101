#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent in a program that loads and registers nothing: its code cannot be executed there, and
nobody misses it."""

import os
import re
import select
import subprocess

from claims import BUILD, CAIRN, claim, compile_c, expect, main, need, run

AGENT = os.path.realpath(os.path.join(BUILD, "agent", "libcairn-agent.so"))

# Threads, memory, signals, files, exceptions of the loader's lazy binding: what programs do all
# day. Then a library is loaded and unloaded. The code of the agent is made unexecutable first, so
# that its first instruction is a fault, which is counted.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char *code;
static size_t size;
static volatile long n_signals, n_faults, first;
static void handle(int number) { n_signals += number > 0; }
static void *thread(void *unused) { free(malloc(100)); return NULL; }

static void fault(int number, siginfo_t *info, void *context)
{
	if ((char *)info->si_addr < code || (char *)info->si_addr >= code + size)
		abort();
	n_faults++;
	first = (char *)info->si_addr - code;
	mprotect(code, size, PROT_READ | PROT_EXEC);
}

static void find_code(void)
{
	char line[4400];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long lo, hi;

	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/libcairn-agent.so") && strstr(line, " r-xp ") && sscanf(line, "%lx-%lx", &lo, &hi) == 2) {
			code = (char *)lo;
			size = hi - lo;
		}
	fclose(maps);
}

static void work(void)
{
	for (int i = 0; i < 2000; i++) {
		pthread_t t;
		char path[64];
		pthread_create(&t, NULL, thread, NULL);
		pthread_join(t, NULL);
		raise(SIGUSR1);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i % 3);
		FILE *file = fopen("/proc/self/status", "r");
		fclose(file);
		realloc(malloc(i), 2 * i + 1);
		qsort(path, strlen(path), 1, (int (*)(const void *, const void *))strcmp);
	}
}

int main(void)
{
	char line[16];
	struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};

	signal(SIGUSR1, handle);
	sigaction(SIGSEGV, &action, NULL);
	find_code();
	for (;;) {
		printf("%zu %ld %ld\n", size, n_faults, first);
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		if (*line == 'g')
			mprotect(code, size, PROT_READ);
		else if (*line == 'w')
			work();
		else
			dlclose(dlopen("libz.so.1", RTLD_NOW));
	}
}
"""


class Program:
    def __enter__(self):
        self.proc = subprocess.Popen([
            CAIRN, "code", "run", "--",
            compile_c("idle", PROGRAM, "gcc", ("-O1", "-w", "-pthread"))
        ], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.size = self.wait()[0]
        return self

    def wait(self):
        """Bytes of the agent's code, times that it was executed while it was guarded, and where in
        it first the last time."""
        ready, _, _ = select.select([self.proc.stdout], [], [], 300)
        said = self.proc.stdout.readline() if ready else ""
        expect(said.count(" ") == 2, "the program hangs or is gone", said)
        return tuple(int(word) for word in said.split())

    def tell(self, what):
        self.proc.stdin.write(what + "\n")
        self.proc.stdin.flush()
        return self.wait()

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.communicate()


def function_at(offset):
    """Of the agent's code, which begins with a segment of its own."""
    start = int(
        re.search(r"LOAD +0x\w+ 0x(\w+) 0x\w+ 0x\w+ 0x\w+ R E",
                  run(need("readelf"), "-lW", AGENT, check=True).out).group(1), 16)
    symbols = [(int(words[0], 16), int(words[1], 16), words[3])
               for words in map(str.split,
                                run("nm", "-S", "--defined-only", AGENT, check=True).lines())
               if len(words) == 4 and words[2] in "tT"]
    return {name for at, size, name in symbols if at <= (start & ~0xfff) + offset < at + size}


@claim
def no_code_of_the_agent_runs_unless_something_is_loaded():
    with Program() as program:
        expect(program.size >= 4096, program.size)
        # The first round binds what is bound on first use.
        program.tell("w")
        program.tell("g")
        _, n_faults, _ = program.tell("w")
        expect(not n_faults, n_faults)
        # It is the guard that was not touched, not that there is none.
        _, n_faults, first = program.tell("l")
        expect(n_faults == 1, n_faults)
        expect(function_at(first), hex(first))
        print(
            f"{program.size} bytes of code: nothing executed by work; loading a library begins in {' '.join(function_at(first))}"
        )


main()
