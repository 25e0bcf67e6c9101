#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent in a program that loads and registers nothing: a probe on each of its functions, and none is hit."""

import os
import re
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from claims import BUILD, CAIRN, claim, compile_c, expect, main, need, need_root, run  # noqa: E402

AGENT = os.path.realpath(os.path.join(BUILD, "agent", "libcairn-agent.so"))

# Threads, memory, signals, files, exceptions of the loader's lazy binding: what programs do all day. Then a library is loaded and unloaded.
PROGRAM = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int n_signals;
static void handle(int number) { n_signals += number > 0; }
static void *thread(void *unused) { free(malloc(100)); return NULL; }

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
	signal(SIGUSR1, handle);
	for (;;) {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		if (*line == 'w')
			work();
		else
			dlclose(dlopen("libz.so.1", RTLD_NOW));
	}
}
"""


class Program:
    def __enter__(self):
        self.proc = subprocess.Popen([CAIRN, "code", "run", "--", compile_c("idle", PROGRAM, "gcc", ("-O1", "-w", "-pthread"))],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait()
        return self

    def wait(self):
        ready, _, _ = select.select([self.proc.stdout], [], [], 60)
        expect(ready and self.proc.stdout.readline() == "ready\n", "the program hangs or is gone")

    def tell(self, what):
        self.proc.stdin.write(what + "\n")
        self.proc.stdin.flush()
        self.wait()

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.communicate()


def functions():
    """Address and name of all functions of the agent that have code, local ones too."""
    lines = run("nm", "-S", "--defined-only", AGENT, check=True).lines()
    return {int(words[0], 16): words[3] for words in map(str.split, lines) if len(words) == 4 and words[2] in "tT"}


def hits(program, what):
    """Names of the agent's functions that ran while the program did it, and how many have a probe."""
    probes = ",".join(f"uprobe:{AGENT}:{at:#x}" for at in sorted(functions()))
    script = f"{probes} /pid == {program.proc.pid}/ {{ @[reg(\"ip\")] = count(); }} BEGIN {{ printf(\"attached\\n\"); }}"
    proc = subprocess.Popen(["bpftrace", "-e", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=os.environ | {"BPFTRACE_MAX_PROBES": "2000"})
    try:
        said = ""
        while "attached" not in said:
            ready, _, _ = select.select([proc.stdout], [], [], 300)
            line = proc.stdout.readline() if ready else ""
            expect(line, f"bpftrace: {said}")
            said += line
        program.tell(what)
        proc.send_signal(signal.SIGINT)
        # It takes its probes away one by one, and for each waits for all processors.
        out, _ = proc.communicate(timeout=300)
    finally:
        proc.kill()
    n_probes = int(re.search(r"Attaching (\d+) probes", said).group(1))
    # Addresses of the process: where in its page a function is, tells which it is.
    ips = {int(at) % 4096 for at in re.findall(r"@\[(-?\d+)\]: \d+", out)}
    return {name for at, name in functions().items() if at % 4096 in ips}, n_probes


@claim
def no_code_of_the_agent_runs_unless_something_is_loaded():
    need_root()
    need("bpftrace")
    with Program() as program:
        # Its first round binds what is bound on first use.
        program.tell("w")
        found, n_probes = hits(program, "w")
        expect(n_probes > 50 and not found, found, n_probes)
        found, _ = hits(program, "load")
        # It is the probes that see nothing, not that there are none.
        expect({"__gmon_start__", "__cxa_finalize", "codectl"} <= found, found)
        print(f"{n_probes} probes: none hit by work; loading a library hit {len(found)} functions")


main()
