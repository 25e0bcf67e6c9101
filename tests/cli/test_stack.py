#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn stack: what it prints, what it does to a process, and processes and core files that are no
good."""

import bisect
import glob
import json
import os
import random
import re
import resource
import signal
import subprocess
import time

from claims import (CAIRN, IS_SANITIZED, Skip, cairn, claim, claim_each, claim_each_of_many,
                    compile_c, expect, folder, main, need, run)

# Threads that wait, sleep, spin; what is interrupted is counted.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long n_interrupted, sink;
static int ends[2], stop[2];

static inline __attribute__((always_inline)) void add(unsigned long x) { sink += x; }
__attribute__((noinline)) static void spin(void) { for (;;) add(1); }
static void *spinner(void *arg) { spin(); return NULL; }

static void *reader(void *arg)
{
	char c;
	if (read(ends[0], &c, 1) < 0)
		n_interrupted++;
	return NULL;
}

static void *sleeper(void *arg)
{
	for (;;) {
		struct timespec t = {0, 20000000};
		if (nanosleep(&t, NULL) < 0)
			n_interrupted++;
	}
}

static void start(const char *name, void *(*f)(void *))
{
	pthread_t t;
	if (pthread_create(&t, NULL, f, NULL) != 0)
		exit(3);
	pthread_setname_np(t, name);
}

int main(int argc, char **argv)
{
	char c;
	prctl(PR_SET_PDEATHSIG, 9);
	if (pipe(ends) < 0)
		return 3;
	start("spinner", spinner);
	start("reader", reader);
	start("sleeper", sleeper);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) < 0)
		n_interrupted++;
	printf("%lu\n", n_interrupted);
	return 0;
}
"""

# How each of these gets a stack that cannot be walked to its end, or is gone.
BAD = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void ready(void) { if (write(1, "ready\n", 6) < 0) _exit(3); }

/* Everything above its own frame: random words, or pointers into the stack itself. */
__attribute__((noinline)) static void smash(unsigned seed)
{
	volatile unsigned long *p = __builtin_frame_address(0);
	for (int i = 0; i < 200; i++) {
		seed = seed * 1103515245 + 12345;
		p[i] = seed & 0x10000 ? (unsigned long)(p + (seed >> 17) % 200) : (unsigned long)seed << 20;
	}
	ready();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, 9);
	if (!strcmp(argv[1], "smash"))
		smash(atoi(argv[2]));
	if (!strcmp(argv[1], "exec")) {
		if (!argv[2]) { ready(); }
		usleep(500);
		execl("/proc/self/exe", argv[0], "exec", "again", NULL);
	}
	if (!strcmp(argv[1], "crash"))
		*(volatile int *)0x10 = 1;
	return 0;
}
"""

LEADERLESS = r"""
#include <pthread.h>
#include <unistd.h>
static void *wait_for_ever(void *arg)
{
	usleep(20000);
	if (write(1, "ready\n", 6) < 0)
		return arg;
	for (;;)
		pause();
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, wait_for_ever, NULL);
	pthread_exit(NULL);
}
"""

# Many threads, and what becomes of them a moment later: "kill" waits for that, "exec" and "exit" do
# it themselves.
MANY = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *wait_for_ever(void *arg) { for (;;) pause(); return arg; }
int main(int argc, char **argv)
{
	pthread_t t;
	prctl(PR_SET_PDEATHSIG, 9);
	for (int i = 0; i < 30; i++)
		if (pthread_create(&t, NULL, wait_for_ever, NULL) != 0)
			return 3;
	if (argc <= 3)
		if (write(1, "ready\n", 6) < 0)
			return 3;
	if (!strcmp(argv[1], "kill"))
		wait_for_ever(NULL);
	usleep(atoi(argv[2]));
	if (!strcmp(argv[1], "exec"))
		execl("/proc/self/exe", argv[0], argv[1], argv[2], "again", NULL);
	pthread_exit(NULL);
}
"""

# One thread waits for the child of its vfork(), which nothing but a kill can interrupt.
WAITING = r"""
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *wait_for_a_child(void *arg)
{
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, 9);
		sleep(4);
		_exit(0);
	}
	return arg;
}
int main(void)
{
	pthread_t t;
	prctl(PR_SET_PDEATHSIG, 9);
	if (pthread_create(&t, NULL, wait_for_a_child, NULL) != 0)
		return 3;
	usleep(50000);
	if (write(1, "ready\n", 6) < 0)
		return 3;
	pthread_join(t, NULL);
	for (volatile unsigned long n = 0;; n++)
		;
}
"""

# A call through a null pointer; the handler of its signal waits.
NULL_CALL = r"""
#include <signal.h>
#include <unistd.h>
static void wait_for_ever(int n)
{
	if (write(1, "ready\n", 6) > 0)
		for (;;)
			pause();
	_exit(n);
}
void (*volatile absent)(void);
__attribute__((noinline)) void caller(void) { absent(); __asm__ volatile(""); }
int main(void)
{
	signal(SIGSEGV, wait_for_ever);
	caller();
	return 0;
}
"""

IN_32_BITS = "void _start(void) { __asm__ volatile(\"mov $29, %eax; int $0x80\"); }"


class Running:
    """The program, running for the length of a with block."""

    def __init__(self, path, *words):
        self.command = [path, *words]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.process.stdout.readline()
        self.pid = self.process.pid
        time.sleep(0.1)
        return self

    def finish(self):
        return self.process.communicate("\n", timeout=60)[0]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def program():
    path = os.path.join(folder(), "threads-gcc")
    return path if os.path.exists(path) else compile_c("threads", PROGRAM, flags=("-O2", "-g",
                                                                                  "-pthread"))


def bad_program():
    path = os.path.join(folder(), "bad-gcc")
    return path if os.path.exists(path) else compile_c(
        "bad", BAD, flags=("-O1", "-g", "-pthread", "-w", "-fno-stack-protector"))


def status_of(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return re.search(rf"^{key}:\s*(\S+)", file.read(), re.M).group(1)


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11])


def expect_running(pid):
    expect(status_of(pid, "TracerPid") == "0", "still traced")
    before = cpu_ticks(pid)
    for _ in range(600):
        if cpu_ticks(pid) > before:
            return
        time.sleep(0.05)
    expect(False, "it does not go on", status_of(pid, "State"))


@claim
def every_thread_has_its_name_and_its_frames_and_the_time_is_told():
    with Running(program()) as p:
        r = cairn("stack", "--no-cache", p.pid)
        expect(r.status == 0, r)
        expect(re.findall(r'^thread \d+ "(.*)"$', r.out, re.M)[0] == "threads-gcc", r)
        expect(
            sorted(re.findall(r'^thread \d+ "(.*)"$', r.out,
                              re.M)[1:]) == ["reader", "sleeper", "spinner"], r)
        expect(
            all(re.match(r"thread \d+ \"|#\d+ +(0x[0-9a-f]{16})?  \S", line) for line in r.lines()),
            r)
        expect(re.search(r"^#\d+ .* main(\+0x[0-9a-f]+)? at .*threads\.c:\d+", r.out, re.M), r)
        expect(re.search(r"^4 threads, stopped for \d+\.\d{3} ms, all at one moment$", r.err, re.M),
               r)


@claim
def inlined_calls_have_lines_of_their_own_and_are_left_out_on_request():
    with Running(program()) as p:
        full = cairn("stack", "--no-cache", p.pid)
        expect(
            re.search(r"^#0 .* add at \S*threads\.c:\d+.*\(inlined\)\n#1 .* spin\+0x", full.out,
                      re.M), full)
        short = cairn("stack", "-s", "--no-cache", p.pid)
        expect("(inlined)" not in short.out and ".c:" not in short.out and "  spin+0x" in short.out,
               short)


@claim
def json_has_the_same_frames_and_a_round_for_each_time():
    with Running(program()) as p:
        r = cairn("stack", "--no-cache", "--json", "-n", "3", "-i", "5ms", p.pid)
        threads = r.objects()
        expect(r.status == 0 and len(threads) == 12, r)
        expect([t["round"] for t in threads] == [1] * 4 + [2] * 4 + [3] * 4, r)
        for t in threads:
            expect(t["end"] == "outermost" and t["stopped_ns"] > 0 and t["frames"], t)
            for frame in t["frames"]:
                expect(
                    re.fullmatch(r"0x[0-9a-f]+", frame["pc"]) and os.path.exists(frame["path"]),
                    frame)
        waiting = [[f["pc"] for f in t["frames"]] for t in threads if t["comm"] == "reader"]
        expect(len(waiting) == 3 and waiting[0] == waiting[1] == waiting[2], waiting)
        text = cairn("stack", "-s", "--no-cache", p.pid).out
        expect(all(f"{int(pc, 16):#018x}" in text for pc in waiting[0]), text)


DEEP = """
#include <stdio.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) static void deep(int n) { if (n) deep(n - 1); else { puts("ready"); fflush(stdout); for (;;) pause(); } sink++; }
int main(void) { deep(1100); return 0; }
"""


@claim
def numbers_of_frames_stand_apart_from_addresses_however_many_there_are():
    with Running(compile_c("deep", DEEP, flags=("-O1", "-g", "-fno-optimize-sibling-calls"))) as p:
        r = cairn("stack", "--no-cache", p.pid)
        numbers = re.findall(r"^#(\d+) +0x[0-9a-f]{16}  ", r.out, re.M)
        expect(numbers == [str(i) for i in range(len(numbers))] and len(numbers) > 1000, r)


# As glibc 2.3 to 2.17 has them (LLL_STUB_UNWIND_INFO): the first row leads to that of the call, 128
# bytes down.
LOCK_STUB = """
.globl main
.type main,@function
main:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3,-16
	jmp stub
	nop
	pop %rbx
	ret
	.cfi_endproc
.size main,.-main
.type stub,@function
stub:
	.cfi_startproc simple
	.cfi_escape 0x12,0x07,0x10              # CFA = rsp - 128
	.cfi_escape 0x16,0x10,0x02,0x80,0x0a    # pc + 10
here:	jmp here
	sub $128,%rsp
	.cfi_escape 0x0c,0x07,0x80,0x01         # CFA = rsp + 128
	.cfi_escape 0x16,0x10,0x02,0x80,0x73    # pc - 13: after the jump of main
	nop
	nop
	.cfi_endproc
.size stub,.-stub
.section .note.GNU-stack,"",@progbits
"""


@claim
def a_thread_at_the_first_instruction_of_a_lock_stub_has_its_callers():
    source, path = os.path.join(folder(), "lock-stub.s"), os.path.join(folder(), "lock-stub")
    with open(source, "w", encoding="utf-8") as file:
        file.write(LOCK_STUB)
    run("gcc", "-o", path, source, check=True)
    with subprocess.Popen([path]) as process:
        try:
            for _ in range(500):
                r = cairn("stack", str(process.pid))
                if "  stub+0x0" in r.out:
                    break
                time.sleep(0.01)
        finally:
            process.kill()
    names = [line.split()[2] for line in r.out.splitlines() if line.startswith("#")]
    expect(names[:3] == ["stub+0x0", "stub+0xa", "main+0x3"] and names[-1].startswith("_start"), r)
    expect(r.status == 0 and "would be below it" not in r.out, r)


@claim
def a_program_that_begins_has_its_libraries():
    """Its mappings change between when they are read and when it stands still."""
    path = compile_c("begins", "int main(void) { for (;;) __asm__ volatile(\"\"); }\n", "gcc",
                     ("-O1", "-Wl,--no-as-needed", "-lm", "-lz"))
    for _ in range(8 if IS_SANITIZED else 25):
        with subprocess.Popen([path]) as process:
            try:
                r = cairn("stack", "--no-cache", str(process.pid))
            finally:
                process.kill()
        expect("is in no file" not in r.out, r)


@claim
def a_limit_of_frames_is_told():
    with Running(program()) as p:
        r = cairn("stack", "-s", "--no-cache", "--max-frames", "2", p.pid)
        expect(r.status == 1 and re.search(r"^    2 frames$", r.out, re.M), r)


@claim
def a_process_goes_on_as_if_nothing_had_been():
    with Running(program()) as p:
        r = cairn("stack", "-s", "--no-cache", "-n", "50", "-i", "2ms", p.pid)
        expect(r.status == 0, r)
        expect_running(p.pid)
        # Neither its reads nor its sleeps were cut short.
        expect(p.finish() == "0\n", "system calls were interrupted")


@claim
def a_killed_cairn_leaves_the_process_running():
    rng = random.Random(1)
    with Running(program()) as p:
        for _ in range(15):
            with subprocess.Popen(
                [CAIRN, "stack", "-s", "--no-cache", "-n", "100000", "-i", "1ms",
                 str(p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
                time.sleep(rng.uniform(0.01, 0.2))
                child.kill()
            expect_running(p.pid)
        expect(p.finish() == "0\n", "system calls were interrupted")


@claim
def exit_status_and_words_tell_what_was_wrong():
    with subprocess.Popen(["true"]) as gone:
        pass
    r = cairn("stack", gone.pid)
    expect(r.status == 1 and "no process" in r.err and not r.out, r)
    expect(cairn("stack").status == 2, "no operand")
    expect(cairn("stack", "1", "2").status == 2, "two operands")
    r = cairn("stack", "/no/such/core")
    expect(r.status == 1 and "/no/such/core" in r.err, r)
    r = cairn("stack", __file__)
    expect(r.status != 0 and "neither a process's number nor a core file" in r.err, r)
    r = cairn("stack", program())
    expect(
        r.status != 0
        and "a program or library, and no core file: give the process number" in r.err, r)

CPP = r"""
#include <stdio.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void spin(int n) { for (;;) sink += n; }
namespace deep { template <class T> struct Sorter { __attribute__((noinline)) static void run(T n) { spin(n + 1); sink++; } }; }
__attribute__((noinline)) int thrower(int n) { if (__builtin_expect(n > 0, 0)) { deep::Sorter<int>::run(n); sink++; throw n; } return n; }
int main(int c, char **v) { alarm(600); puts("ready"); fflush(stdout); return thrower(c); }
"""


@claim
def names_are_shown_as_the_source_has_them_with_and_without_a_sidecar():
    need("g++")
    path = os.path.join(folder(), "names")
    with open(path + ".cc", "w", encoding="utf-8") as file:
        file.write(CPP)
    run("g++", "-O2", "-g", "-o", path, path + ".cc", check=True)
    shown = set()
    with Running(path) as p:
        time.sleep(0.2)
        for words in (("-s", "--no-cache"), (), (), ("-s",)):
            r = cairn("stack", *words, p.pid)
            shown.add(
                tuple(
                    re.findall(r"  ([^ ]+(?: \[clone [^]]+\])?)\+0x\w+(?: at \S+)?  names$", r.out,
                               re.M)))
        raw = cairn("stack", "-s", "--no-demangle", p.pid)
    expect(
        len(shown) == 1 and "deep::Sorter<int>::run" in str(shown) and "_Z" not in str(shown),
        shown)
    expect("_ZN4deep6SorterIiE3runEi+" in raw.out and "_Z7thrower" in raw.out, raw)


@claim
def a_traced_process_is_refused_with_the_tracer():
    with Running(program()) as p:
        with subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-p", str(p.pid)]) if os.path.exists("/usr/bin/strace") \
                else skip_strace() as strace:
            for _ in range(100):
                if status_of(p.pid, "TracerPid") != "0":
                    break
                time.sleep(0.05)
            r = cairn("stack", p.pid)
            expect(r.status == 3 and f"traced by process {strace.pid}" in r.err, r)
            strace.terminate()


def skip_strace():
    raise Skip("strace is not installed")


@claim
def a_32_bit_process_is_refused():
    path = os.path.join(folder(), "in32")
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write(IN_32_BITS)
    if run("gcc", "-m32", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-o", path,
           path + ".c").status != 0:
        raise Skip("gcc makes no 32-bit programs here")
    try:
        child = subprocess.Popen([path])
    except OSError as error:
        raise Skip("the kernel runs no 32-bit programs") from error
    time.sleep(0.2)
    r = cairn("stack", child.pid)
    child.kill()
    child.wait()
    expect(r.status == 3 and "32-bit" in r.err, r)


# ---- parameters ----

ARGS = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
struct point { int x, y; };
enum colour { RED = 1, GREEN };
volatile long sink;
__attribute__((noinline)) static long wait_here(int fd, const char *text) { char c; sink += read(fd, &c, 1); return sink + !text; }
static inline __attribute__((always_inline)) long inner(int depth, long product) { long r = wait_here(depth - 7, "here"); return r + product + sink; }
__attribute__((noinline)) static long keeps(long kept, struct point *where, enum colour colour) { long r = inner(7, kept * 2); sink += kept + where->x + colour; return r; }
__attribute__((noinline)) static long loses(long lost, double real) { sink += lost + (long)real; return keeps(12345, &(struct point){3, 4}, GREEN) + 1; }
int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, 9);
	puts("ready");
	fflush(stdout);
	return loses(argc + 41, 2.5) == 7;
}
"""


def args_of(path, *words):
    """{function: {parameter: value or the reason why there is none}}"""
    with Running(path) as p:
        r = cairn("stack", "--args", "--no-cache", "--json", *words, p.pid)
    expect(r.status == 0, r)
    found = {}
    for frame in json.loads(r.out.splitlines()[0])["frames"]:
        for function in frame["functions"]:
            found[function["name"]] = {
                a["name"]: a.get("value", a.get("unavailable"))
                for a in function["args"] or []
            }
    return found


@claim_each_of_many("gcc", "clang")
def parameters_of_code_that_is_not_optimised_are_all_there(compiler):
    found = args_of(compile_c("args0", ARGS, flags=("-O0", "-g"), compiler=compiler))
    expect(found["wait_here"]["fd"] == 0 and found["wait_here"]["text"].startswith("0x"), found)
    expect(found["keeps"]["kept"] == 12345 and found["keeps"]["colour"] == "GREEN", found)
    expect(found["loses"] == {"lost": 42, "real": 2.5}, found)
    expect(found["main"]["argc"] == 1, found)


@claim_each_of_many("gcc", "clang")
def callees_saved_registers_are_recovered_and_lost_ones_are_unavailable(compiler):
    found = args_of(compile_c("args2", ARGS, flags=("-O2", "-g"), compiler=compiler))
    expect(found["keeps"].get("kept") == 12345, found)
    reasons = {
        "not-kept", "not-live", "optimised-out", "no-description", "entry-value", "vector-register",
        "caller"
    }
    expect(found["loses"].get("real") in {2.5, *reasons}, found)


VECTORS = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
volatile double sink;
__attribute__((noinline)) static void spin(double real, float less, int n)
{
	for (;;)
		__asm__ volatile("pause" :: "x"(real), "x"(less), "r"(n));
}
__attribute__((noinline)) static void outer(double kept_by_nobody) { spin(kept_by_nobody * 2, 1.25f, 7); sink = 1; }
int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, 9);
	puts("ready");
	fflush(stdout);
	outer(argc + 0.5);
}
"""


@claim
def the_innermost_frames_vector_registers_are_read_and_no_others():
    path = compile_c("vectors", VECTORS, flags=("-O2", "-g", "-fno-ipa-cp"))
    found = args_of(path)
    expect(found["spin"] == {"real": 3, "less": 1.25, "n": 7}, found)
    expect(
        found["outer"].get("kept_by_nobody")
        in {"not-kept", "entry-value", "optimised-out", "not-live", "caller"}, found)


@claim
def a_cores_vector_registers_are_those_of_the_thread():
    need("gcore")
    path = compile_c("vectors-core", VECTORS, flags=("-O2", "-g", "-fno-ipa-cp"))
    with Running(path) as p:
        made = run("gcore", "-o", os.path.join(folder(), "vectors"), str(p.pid))
    core = os.path.join(folder(), f"vectors.{p.pid}")
    expect(os.path.exists(core), made)
    r = cairn("stack", "--args", "--no-cache", core)
    expect("(real=3, less=1.25, n=7)" in r.out, r)


@claim
def clangs_callers_may_not_have_passed_a_vector_register():
    need("clang")
    found = args_of(compile_c("vectors-clang", VECTORS, flags=("-O2", "-g"), compiler="clang"))
    expect(
        found["spin"]["real"]
        in {"may-not-be-passed", "optimised-out", "not-live", "no-description"}, found)


@claim
def parameters_are_in_the_text_and_only_when_asked_for():
    path = compile_c("args-text", ARGS, flags=("-O0", "-g"))
    with Running(path) as p:
        r = cairn("stack", "--args", "--no-cache", p.pid)
        expect(
            "  keeps+0x" in r.out and "(kept=12345, where=0x" in r.out and "colour=GREEN)" in r.out,
            r)
        r = cairn("stack", "--no-cache", p.pid)
        expect("kept=" not in r.out, r)
        r = cairn("stack", "--no-cache", "--json", p.pid)
        expect('"args"' not in r.out, r)


@claim
def a_file_without_debug_information_has_no_parameters_and_all_else():
    path = compile_c("args-none", ARGS, flags=("-O0",))
    with Running(path) as p:
        r = cairn("stack", "--args", "--no-cache", "--json", p.pid)
    functions = [
        f for frame in json.loads(r.out.splitlines()[0])["frames"] for f in frame["functions"]
        if f["name"] == "keeps"
    ]
    expect(r.status == 0 and len(functions) == 1 and functions[0]["args"] is None, r)


# ---- what is no good ----

@claim
def a_process_that_dies_is_told():
    with Running(program()) as p:
        with subprocess.Popen(
            [CAIRN, "stack", "-s", "--no-cache", "-n", "100000", "-i", "1ms",
             str(p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
            time.sleep(0.5)
            p.process.kill()
            p.process.wait()
            err = child.communicate(timeout=60)[1]
            expect(child.returncode == 1 and "no process" in err.splitlines()[-1], child.returncode,
                   err[-300:])


@claim
def a_killed_process_is_its_parents_at_any_moment():
    """Whoever traces the threads of a process that is killed has to hear of each one's end before
    its parent does."""
    for _ in range(20):
        with Running(program()) as p:
            with subprocess.Popen(
                [CAIRN, "stack", "-s", "--no-cache", "-n", "100000", "-i", "0.0001",
                 str(p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
                try:
                    time.sleep(0.05 + random.random() * 0.02)
                    p.process.kill()
                    p.process.wait(timeout=20)
                    child.wait(timeout=20)
                finally:
                    child.kill()


# The main thread ends, or another one executes the program anew, some milliseconds after the start.
LEAVING = r"""
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static char **args;
static void *other(void *arg)
{
	usleep(3000);
	if (args[1][0] == 'x')
		execv("/proc/self/exe", args);
	sleep(1);
	_exit(0);
}
int main(int argc, char **argv)
{
	pthread_t t;
	args = argv;
	prctl(PR_SET_PDEATHSIG, 9);
	for (int i = 0; i < 4; i++)
		pthread_create(&t, 0, other, 0);
	usleep(2000);
	pthread_exit(0);
}
"""


@claim_each("end", "x")
def threads_that_change_sites_hold_nobody_up(how):
    path = compile_c("leaving", LEAVING, flags=("-O2", "-g", "-pthread"))
    for _ in range(10):
        with subprocess.Popen([path, how]) as process:
            try:
                r = run("timeout", "-s", "KILL", "30", CAIRN, "stack", "-s", "--no-cache", "-n",
                        "100", "-i", "0.0001", process.pid)
                expect(r.status in (0, 1, 3), r)
            finally:
                process.kill()


ENDING = r"""
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
int main(void)
{
	struct epoll_event event;
	prctl(PR_SET_PDEATHSIG, 9);
	puts("ready");
	fflush(stdout);
	/* One of the few that a stop interrupts: signal(7). */
	return epoll_wait(epoll_create1(0), &event, 1, 60000) < 0;
}
"""


@claim
def a_process_that_ends_as_soon_as_it_goes_on_has_a_whole_stack():
    path = compile_c("ending.c", ENDING)
    with subprocess.Popen([path], stdout=subprocess.PIPE, text=True) as process:
        expect(process.stdout.readline() == "ready\n")
        time.sleep(0.1)
        r = cairn("stack", "--symbols", str(process.pid))
        process.kill()
    expect(r.status == 0 and " main+0x" in r.out and "cannot be read" not in r.out, r)


@claim
def a_process_whose_main_thread_has_ended_has_the_others():
    path = compile_c("leaderless", LEADERLESS, flags=("-O2", "-g", "-pthread"))
    with Running(path) as p:
        expect(status_of(p.pid, "State") == "Z", "the main thread is there")
        r = cairn("stack", "-s", "--no-cache", p.pid)
        expect(r.status == 0 and re.search("  pause", r.out), r)


@claim
def a_process_that_execs_all_the_time_does_no_harm():
    with Running(bad_program(), "exec") as p:
        for _ in range(40):
            r = cairn("stack", "-s", "--no-cache", p.pid)
            expect(r.status in (0, 1), r)
        expect(status_of(p.pid, "TracerPid") == "0", "still traced")


@claim_each("kill", "exec", "exit")
def threads_that_end_at_any_moment_block_nobody(how):
    path = os.path.join(folder(), "many-gcc")
    if not os.path.exists(path):
        compile_c("many", MANY, flags=("-O1", "-pthread", "-w"))
    rng = random.Random(how)
    for _ in range(25):
        with Running(path, how, str(rng.randrange(20000))) as p:
            child = subprocess.Popen(
                [CAIRN, "stack", "-s", "--no-cache", "-n", "10", "-i", "0.1ms",
                 str(p.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                time.sleep(rng.random() * 0.05)
                if how == "kill":
                    p.process.kill()
                    p.process.wait(timeout=60)
                err = child.communicate(timeout=60)[1]
                # 6: a frame was assumed, as where a program was replaced at that moment.
                expect(child.returncode in (0, 1, 6), child.returncode, err[-300:])
            finally:
                child.kill()
                child.wait()


@claim
def a_thread_that_cannot_be_stopped_is_shown_by_its_system_call():
    path = compile_c("waiting", WAITING, flags=("-O1", "-g", "-pthread", "-w"))
    with Running(path) as p:
        r = cairn("stack", "-s", "--no-cache", "--json", "-n", "3", "-i", "1ms", p.pid)
        ends = [thread["end"] for thread in r.objects()]
        expect(r.status == 0 and ends == ["outermost", "outermost"] * 3, ends, r)
        names = [f["functions"][0]["function"] for f in r.objects()[1]["frames"]]
        expect("vfork" in names[0] and names[1] == "wait_for_a_child" and "clone" in names[-1],
               names)
        expect("state D" in r.err and "/syscall" in r.err, r)
        expect("not all at one moment" in cairn("stack", "-s", "--no-cache", p.pid).err)
        expect_running(p.pid)


@claim
def a_smashed_stack_ends_with_its_reason():
    # Arguments lie at the stack's top: with a small environment there would be less than is
    # overwritten.
    room = "x" * 2000
    for seed in range(1, 21):
        with Running(bad_program(), "smash", str(seed), room) as p:
            r = cairn("stack", "-s", "--no-cache", "--json", p.pid)
            (thread,) = r.objects()
            expect(r.status == 1 and thread["end"] != "outermost" and thread["why"], r)
            expect(len(thread["frames"]) < 250, r)
            expect("smash" in r.out, r)
            # Only the last frame may be where no code is: nothing follows from it.
            expect(all(f["path"] for f in thread["frames"][:-1]), r)


@claim
def a_call_through_a_null_pointer_is_a_frame_at_address_0():
    with Running(compile_c("null", NULL_CALL)) as p:
        (thread,) = cairn("stack", "-s", "--no-cache", "--json", p.pid).objects()
        text = cairn("stack", "-s", "--no-cache", p.pid)
    at_null = [n for n, f in enumerate(thread["frames"]) if f["pc"] == "0x0"]
    names = [f["functions"][0]["function"] if f["functions"] else None for f in thread["frames"]]
    expect(len(at_null) == 1 and names[at_null[0] + 1:][:2] == ["caller", "main"], thread)
    expect(thread["end"] == "assumed" and " 0x0000000000000000" in text.out, text)


# ---- cores of AArch64, which QEMU writes, without rows and names of files ----

ARM = """
typedef unsigned long u64;
volatile u64 sink;
__attribute__((noinline)) void other(void) { sink++; }
#ifdef LEAF
__attribute__((noinline)) u64 crash(volatile u64 *p) { return *p; }
#else
__attribute__((noinline)) u64 crash(volatile u64 *p) { volatile u64 pad[4]; other(); pad[0] = 1; return *p + pad[0]; }
#endif
__attribute__((noinline)) u64 down(u64 n) { u64 (*volatile again)(u64) = down; return n ? again(n - 1) + 1 : crash((u64 *)8) + 2; }
__attribute__((noreturn)) void begin(void) { sink = down(3) + 1; for (;;); }
__asm__(".globl _start\\n.type _start,%function\\n_start: mov x29, #0\\nmov x30, #0\\nbl begin\\n.size _start,.-_start\\n");
"""


def core_of_arm(name, *flags):
    """(program, core) of a program without rows, dynamic section and build-id"""
    need("ld.lld")
    where = os.path.join(folder(), name)
    os.mkdir(where)
    path, source = os.path.join(where, "arm"), os.path.join(where, "arm.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(ARM)
    run(need("clang"), "--target=aarch64-linux-gnu", "-nostdlib", "-static", "-fuse-ld=lld",
        "-Wl,--build-id=none", "-ffreestanding", "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", *flags, source, "-o", path,
        check=True)
    run(need("prlimit"), "--core=unlimited", need("qemu-aarch64"), path, cwd=where)
    cores = glob.glob(os.path.join(where, "qemu_*.core"))
    if not cores:
        raise Skip("qemu-aarch64 writes no core here")
    return path, cores[0]


@claim_each_of_many("-O0", "-O1", "-O2", "-DLEAF -O0", "-DLEAF -O2")
def frames_of_arm64_without_rows_are_left_by_x29(flags):
    path, core = core_of_arm("arm" + flags.replace(" ", ""), *flags.split())
    r = cairn("stack", "--no-cache", "--json", "-e", path, core)
    (thread,) = r.objects()
    names = [f["functions"][0]["function"] for f in thread["frames"]]
    expect(names == ["crash", "down", "down", "down", "down", "begin", "_start"], names, r)
    # None of it is a fact.
    expect(thread["end"] == "assumed" and r.status == 6, thread["why"], r)
    expect(all(f["assumed"] for f in thread["frames"][1:]), r)


@claim
def the_program_of_a_core_that_names_none_is_taken_where_nothing_contradicts():
    path, core = core_of_arm("named", "-O1")
    r = cairn("stack", "--no-cache", core)
    expect(r.status == 1 and "crash" not in r.out and "not the file that was mapped" in r.err, r)
    other = path + ".other"
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[24] ^= 4  # e_entry
    with open(other, "wb") as file:
        file.write(data)
    r = cairn("stack", "--no-cache", "-e", other, core)
    expect(r.status == 1 and "crash" not in r.out and "not the program of the core" in r.err, r)
    r = cairn("stack", "--no-cache", "-e", "/bin/true", core)
    expect(r.status == 1 and "of another architecture" in r.err, r)
    r = cairn("stack", "-e", path, str(os.getpid()))
    expect(r.status == 2 and "core files" in r.err, r)


# ---- core files ----

def a_core():
    where = os.path.join(folder(), "crash")
    if not os.path.isdir(where):
        os.mkdir(where)
        subprocess.run([bad_program(), "crash"], cwd=where, check=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                                             (resource.RLIM_INFINITY,) * 2))
    cores = glob.glob(os.path.join(where, "core*"))
    if not cores:
        raise Skip("the kernel writes no core here: /proc/sys/kernel/core_pattern")
    return cores[0]


@claim
def a_core_says_the_signal_and_where():
    r = cairn("stack", "--no-cache", a_core())
    expect(r.status == 0, r)
    expect(
        re.match(
            r'thread \d+ "bad-gcc", SIGSEGV at 0x10\n#0 +0x[0-9a-f]{16}  main\+0x[0-9a-f]+ at \S*bad\.c:\d+',
            r.out), r)
    (thread,) = cairn("stack", "--no-cache", "--json", a_core()).objects()
    expect(thread["signal"] == signal.SIGSEGV and thread["fault"] == "0x10", thread)


@claim
def a_core_that_was_cut_off_says_so_and_never_hangs():
    with open(a_core(), "rb") as file:
        whole = file.read()
    path = os.path.join(folder(), "cut.core")
    ends = set()
    for i in range(24):
        with open(path, "wb") as file:
            file.write(whole[:64 + i * (len(whole) - 64) // 24])
        r = cairn("stack", "-s", "--no-cache", "--json", path)
        expect("cut off" in r.err and r.status in (0, 1), r)
        ends.update(t["end"] for t in r.objects())
    expect(ends & {"undescribed", "unreadable", "no-file"}, ends)


@claim
def files_of_a_core_are_looked_for_below_the_sysroot():
    r = cairn("stack", "--no-cache", "--sysroot", "/nowhere", a_core())
    expect(r.status == 1 and "/nowhere/" in r.out, r)
    root = os.path.join(folder(), "root")
    (thread,) = cairn("stack", "-s", "--no-cache", "--json", a_core()).objects()
    for path in {f["path"] for f in thread["frames"]}:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        if not os.path.exists(root + path):
            os.symlink(path, root + path)
    r = cairn("stack", "-s", "--no-cache", "--json", "--sysroot", root, a_core())
    expect([f["pc"] for f in r.objects()[0]["frames"]] == [f["pc"] for f in thread["frames"]], r)


@claim_each((4, b"\x01", "32-bit"), (18, b"\xf3", "machine 243"))
def a_core_of_something_else_is_refused(change):
    at, byte, words = change
    with open(a_core(), "rb") as file:
        head = bytearray(file.read(4096))
    head[at:at + 1] = byte
    path = os.path.join(folder(), "other.core")
    with open(path, "wb") as file:
        file.write(head)
    r = cairn("stack", path)
    expect(r.status == 3 and words in r.err, r)


@claim
def a_core_with_an_empty_name_of_its_program_says_so():
    with open(a_core(), "rb") as file:
        core = file.read()
    name, file_note = os.fsencode(bad_program()) + b"\0", (0x46494c45).to_bytes(
        4, "little") + b"CORE\0"
    expect(name in core and file_note in core)
    path = os.path.join(folder(), "nameless.core")
    with open(path, "wb") as file:
        file.write(core.replace(file_note, b"none" + file_note[4:]).replace(name, bytes(len(name))))
    r = cairn("stack", "--no-cache", path)
    expect(
        r.status == 1 and "the core has no name of its program" in r.err
        and "No such file" not in r.err, r)
    expect("main+" in cairn("stack", "--no-cache", "-e", bad_program(), path).out, path)


@claim
def a_core_has_one_moment():
    r = cairn("stack", "-n", "2", a_core())
    expect(r.status == 2 and "one moment" in r.err, r)


# ---- stacks that were made by hand, and Go ----

CONTEXTS = r"""
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void deep(void) { for (;;) sink++; }
__attribute__((noinline)) void entry(void) { sink = (unsigned long)write(1, "ready\n", 6); deep(); sink++; }
#ifdef BOOST
/* As boost.context's make_fcontext for x86-64 has it. */
void trampoline(void);
__asm__(".text\ntrampoline: push %rbp\njmp *%rbx\nfinish: xorq %rdi, %rdi\ncall _exit@PLT\nhlt\n"
	".globl jump\njump: mov %rdi, %rsp\nlea finish(%rip), %rbp\nmov %rsi, %rbx\njmp trampoline\n");
void jump(void *stack, void (*function)(void));
int main(void) { jump((char *)aligned_alloc(16, 1 << 16) + (1 << 16), entry); }
#else
int main(void)
{
	ucontext_t here, there;
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(1 << 16);
	there.uc_stack.ss_size = 1 << 16;
	there.uc_link = &here;
	makecontext(&there, entry, 0);
	return swapcontext(&here, &there);
}
#endif
"""


@claim_each("makecontext", "boost.context")
def a_stack_that_was_made_by_hand_is_complete(how):
    path = compile_c("contexts-" + how, CONTEXTS,
                     flags=("-O2", "-g") + (("-DBOOST",) if how != "makecontext" else ()))
    with Running(path) as p:
        for _ in range(100):
            r = cairn("stack", "-s", "--no-cache", "--json", p.pid)
            if "deep" in r.out:
                break
            time.sleep(0.05)
    (thread,) = r.objects()
    names = [f["functions"][0]["function"] for f in thread["frames"] if f["functions"]]
    expect(names[:2] == ["deep", "entry"] and len(thread["frames"]) == 3, thread)
    expect(r.status == 0 and thread["end"] == "outermost" and how in thread["why"], thread)


GO = """
package main

import "os"

var sink int

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func work() {
	for {
		sink += fib(20)
	}
}

func main() {
	os.Stdout.WriteString("ready\\n")
	go work()
	work()
}
"""


# Threads whose goroutines wait look for others, in the scheduler.
GO_IDLE = """
package main

import (
	"os"
	"runtime"
	"sync"
)

func main() {
	runtime.GOMAXPROCS(6)
	var all sync.WaitGroup
	for i := 0; i < 12; i++ {
		all.Add(1)
		go func() {
			x := 0
			for k := 0; k < 20000000; k++ {
				x += k
			}
			all.Done()
			select {}
		}()
	}
	all.Wait()
	os.Stdout.WriteString("ready\\n")
	b := make([]byte, 1)
	os.Stdin.Read(b)
}
"""


def build_go(name, text):
    """The program, whole and stripped."""
    need("go")
    where = os.path.join(folder(), name)
    os.mkdir(where)
    source, whole, stripped = (os.path.join(where, name)
                               for name in ("work.go", "whole", "stripped"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    environment = dict(os.environ, GOCACHE=os.path.join(folder(), "go-cache"), HOME=where,
                       GO111MODULE="off", GOFLAGS="", CGO_ENABLED="0")
    made = run("go", "build", "-o", whole, source, env=environment)
    if made.status:
        raise Skip("go builds nothing here: " + made.err[-200:])
    run(need("strip"), whole, "-o", stripped, check=True)
    return whole, stripped


@claim_each("whole", "stripped")
def what_go_calls_on_the_schedulers_stack_begins_there(which):
    """runtime.mcall() goes there and does not come back."""
    program = build_go("idle-" + which, GO_IDLE)[which == "stripped"]
    with Running(program) as p:
        r = cairn("stack", "-s", "--no-cache", "--json", p.pid)
    names = [[f["functions"][0]["function"]
              for f in t["frames"]
              if f["functions"]]
             for t in r.objects()]
    called = [t for t, name in zip(r.objects(), names) if "runtime.mcall" in name]
    expect(called, names)
    for t in called:
        expect(
            t["end"] == "outermost"
            and t["frames"][-1]["functions"][0]["function"] == "runtime.mcall", t)


@claim
def a_stripped_go_program_has_names_and_complete_stacks():
    whole, stripped = build_go("go", GO)
    # Rows are those of .debug_frame where both know the frame.
    ours = [(int(row["lo"], 16), row["cfa"])
            for row in cairn("unwind", "dump", "--json", stripped, check=True).objects()]
    theirs = cairn("unwind", "dump", "--json", whole, check=True).objects()
    at = [lo for lo, _ in ours]
    same = [
        ours[bisect.bisect_right(at, int(row["lo"], 16)) - 1][1] == row["cfa"] for row in theirs
    ]
    expect(len(same) > 3000 and sum(same) > 0.97 * len(same), len(same), sum(same))
    # Symbols of the whole program, except for those that the assembler's functions have with their
    # ABI.
    nm = {
        line.split()[2]: line.split()[0]
        for line in run(need("nm"), whole, check=True).lines()
        if line.split()[1] in "Tt"
    }
    r = cairn("addr", "--json", stripped, nm["main.fib"], nm["main.work"],
              nm["runtime.mstart.abi0"], check=True)
    expect([o["frames"][0]["function"]
            for o in r.objects()] == ["main.fib", "main.work", "runtime.mstart"], r)
    with Running(stripped) as p:
        for _ in range(5):
            time.sleep(0.1)
            r = cairn("stack", "-s", "--no-cache", "--json", "-n", "20", "-i", "1ms", p.pid)
            if r.out.count("main.fib") > 20:
                break
    working = [
        t for t in r.objects()
        if any(f["functions"] and f["functions"][0]["function"] == "main.fib" for f in t["frames"])
    ]
    expect(len(working) > 10, r)
    for t in working:
        names = [f["functions"][0]["function"] for f in t["frames"]]
        begin = names.index("main.work")
        expect(
            set(names[:begin]) <= {"main.fib"} or "runtime.asyncPreempt" in names
            or names[0].startswith("runtime."), names)
        # Go's own way to end them: goexit, or rt0_go for the first thread.
        expect(
            names[begin + 1:]
            in (["runtime.goexit"], ["main.main", "runtime.main", "runtime.goexit"]), names)
        expect(t["end"] == "outermost" and not any(f["assumed"] for f in t["frames"]), t["why"])
    # Threads of the runtime begin in mstart, which clone jumps to.
    others = [
        t for t in r.objects() if t["end"] == "outermost"
        and t["frames"][-1]["functions"][0]["function"] == "runtime.mstart"
    ]
    expect(others, r)


main()
