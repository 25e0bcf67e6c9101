#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn trace at instructions and copies where a probe would do harm, or where events would not be calls."""

import os
import subprocess
import time

from claims import Skip, cairn, claim, compile_c, expect, folder, main, need, need_root, run


def trace(*words):
    """cairn trace of the debug information, or skip where tracing is not possible."""
    need_root()
    r = cairn("trace", "--no-sidecar", *words)
    if r.status == 3 and "CONFIG_" in r.err:
        raise Skip(" ".join(r.err.split()))
    return r


# ---- instructions ----

PUSHF = """\
__attribute__((naked,noinline)) unsigned long flags(void) { __asm__("pushfq; popfq; xor %eax, %eax; ret"); }
int main(void) { return flags(); }
"""


@claim
def what_shows_the_single_step_is_refused_and_the_program_lives():
    path = compile_c("pushf", PUSHF, flags=("-O1", "-g"))
    r = trace("-c", path, "flags")
    expect(r.status == 1 and "the kernel's single step" in r.err, r)
    hazards = cairn("sites", "--hazards", path, "--json").objects()
    expect(("sees-step", "flags") in [(h["hazard"], h["symbol"]) for h in hazards], hazards)
    expect("left out: " in cairn("sites", path, "flags", "--emit", "bpftrace").out, path)


# clear's arguments are in the registers that rep stosb counts in; SETUP stands between their loading and the instruction.
REP = """\
static inline __attribute__((always_inline)) void clear(char *p, long n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : : "memory");
}
__attribute__((noinline)) void wipe(char *p, long n)
{
	__asm__ volatile("" : "+D"(p), "+c"(n));
	__asm__ volatile(SETUP : "+c"(n) : : "rdx");
	clear(p, n);
}
int main(void)
{
	char b[64];
	for (long i = 0; i < 3; i++)
		wipe(b, 20 + i);
	return 0;
}
"""


def repeats(name, setup):
    path = compile_c(name, REP.replace("SETUP", f'"{setup}"'))
    place = cairn("sites", "--no-sidecar", "--json", path, "clear").objects()[0]
    expect(place["hazard"] == "repeats", place)
    hazards = cairn("sites", "--hazards", path, "--json").objects()
    expect(("repeats", "wipe") in [(h["hazard"], h["symbol"]) for h in hazards], hazards)
    return path


@claim
def a_repeated_string_instruction_is_probed_before_it_and_gives_one_event():
    path = repeats("ahead", "xor %%edx, %%edx")
    r = trace("--json", "-c", path, "clear")
    *events, summary = r.objects()
    expect([e["args"]["n"] for e in events] == [20, 21, 22] and summary["refused"] == 0, r)
    r = trace("--no-move", "-c", path, "clear")
    expect(r.status == 1 and "one event for each repetition" in r.err, r)


@claim
def a_repeated_string_instruction_is_refused_where_nothing_before_it_will_do():
    r = trace("-c", repeats("at_once", "dec %%rcx"), "clear")
    expect(r.status == 1 and "one event for each repetition" in r.err, r)


# ---- files ----

@claim
def a_kernel_image_and_a_module_get_no_user_probes():
    files = {}
    source = os.path.join(folder(), "kernel.s")
    with open(source, "w", encoding="utf-8") as file:
        file.write(".globl tcp_ack\n.type tcp_ack, @function\ntcp_ack: nop\nret\n.size tcp_ack, . - tcp_ack\n")
    files["vmlinux"] = os.path.join(folder(), "vmlinux")
    run(need("gcc"), "-nostdlib", "-static", "-no-pie", "-g", "-Wl,-Ttext=0xffffffff81000000,-e,tcp_ack", "-o", files["vmlinux"], source,
        check=True)
    files["vmlinux.debug"] = files["vmlinux"] + ".debug"
    run(need("objcopy"), "--only-keep-debug", files["vmlinux"], files["vmlinux.debug"], check=True)
    with open(source, "a", encoding="utf-8") as file:
        file.write('.section .modinfo,"a"\n.string "license=GPL"\n')
    files["x.ko"] = os.path.join(folder(), "x.ko")
    run("gcc", "-g", "-c", "-o", files["x.ko"], source, check=True)
    for name, path in files.items():
        r = cairn("trace", "--no-sidecar", path + ":tcp_ack")
        expect(r.status == 3 and not r.out and "user probes never fire" in r.err and "kprobe" in r.err, name, r)
        r = cairn("sites", "--no-sidecar", path, "tcp_ack", "--emit", "perf")
        expect(r.status == 3 and not r.out and "user probes" in r.err and "kprobe" in r.err, name, r)
    r = cairn("sites", "--no-sidecar", files["vmlinux"], "tcp_ack")
    expect(r.status == 0 and "0xffffffff81000000" in r.out, r)


# ---- patterns and processes ----

PATTERN = PUSHF.replace("{ return flags(); }", "{ flag_one(1); flag_two(2); return flags(); }").replace(
    "int main", "__attribute__((noinline)) void flag_one(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\n"
    "__attribute__((noinline)) void flag_two(int n) { __asm__ volatile(\"\" : : \"r\"(n)); }\nint main")


@claim
def a_bad_place_leaves_a_pattern_and_stops_a_name():
    path = compile_c("pattern", PATTERN, flags=("-O1", "-g"))
    r = trace("--json", "-c", path, "flag*")
    *events, summary = r.objects()
    expect([e["args"]["n"] for e in events] == [1, 2] and summary["refused"] == 1, r)
    expect("  flags " in r.err and "the kernel's single step" in r.err, r)
    r = cairn("trace", "--no-sidecar", "--dry-run", "-c", path, "flag*")
    expect(r.status == 0 and "nothing would be attached" not in r.err, r)
    r = trace("-c", path, "flag_*", "flags")
    expect(r.status == 1 and not r.out and "1 of 3 places" in r.err, r)
    r = trace("-c", path, "flags*")
    expect(r.status == 1 and not r.out, r)


MASTER = """\
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void work(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }
static void worker(int n)
{
	if (n == 2 && fork() == 0)
		n = 3;
	for (int i = 0; i < 3000; i++) {
		work(n);
		usleep(10000);
	}
	_exit(0);
}
int main(void)
{
	for (int n = 1; n <= 2; n++)
		if (fork() == 0)
			worker(n);
	write(1, "started", 7);
	while (wait(0) > 0)
		;
	return 0;
}
"""


def of_running_workers(*words):
    """Trace a master whose three workers run since before, one of them the child of another."""
    need_root()
    with subprocess.Popen([compile_c("master", MASTER)], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            process.stdout.read(7)
            time.sleep(0.5)
            return trace("--json", "-p", str(process.pid), "--duration", "1s", "work", *words)
        finally:
            os.killpg(process.pid, 9)


@claim
def children_that_run_already_are_followed():
    r = of_running_workers("-f")
    *events, summary = r.objects()
    expect({e["args"]["n"] for e in events} == {1, 2, 3} and summary["children"] == 3, r)
    expect("3 child processes that run already are traced, too" in r.err, r)


@claim
def children_that_run_already_and_are_not_followed_are_said():
    r = of_running_workers()
    expect([o for o in r.objects() if "summary" not in o] == [] and "-f follows" in r.err, r)


if __name__ == "__main__":
    main()
