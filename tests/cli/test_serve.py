#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cairn code run --syscall: codectl(2) answered as a kernel would, and where its registries are
found."""

import os
import pwd
import re
import signal
import subprocess
import sys

from claims import CAIRN, SOURCE, Skip, cairn, claim, compile_c, expect, main, run  # noqa: E402

NR = 470 + 30  # beyond what Linux 6.18 has

# One word per line of its script: what to call. Prints the result or the errno's name of each.
PROGRAM = r"""
#define _GNU_SOURCE
#include <cairn/shared/codectl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long nr;

static const char *call(unsigned int option, const void *info, size_t size, unsigned int flags)
{
	return syscall(nr, option, info, size, flags) == 0 ? "0" : strerrorname_np(errno);
}

static struct code_elf_info object(unsigned long at)
{
	return (struct code_elf_info){
		.elf_start = at, .elf_end = at + 0x10000, .text_start = at + 0x1000, .text_end = at + 0x2000,
		.pathname = (unsigned long)"/no/such/object", .build_id = (unsigned long)"\1\2\3\4", .build_id_len = 4,
	};
}

static const char *add(unsigned long at)
{
	struct code_elf_info elf = object(at);
	return call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
}

static const char *take_away(unsigned long at)
{
	struct code_unregister_info range = {at + 0x1000, at + 0x2000};
	return call(CODE_UNREGISTER, &range, sizeof(range), 0);
}

static void errors(void)
{
	struct code_elf_info elf = object(0x10000000);
	struct { struct code_elf_info elf; char more[8]; } longer = {.elf = object(0x20000000)};
	struct code_unregister_info range = {0x10001000, 0x10002000}, other = {0x10001000, 0x10003000};
	printf("add %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0));
	printf("again %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0));
	printf("rfc-size %s\n", (elf = object(0x30000000), call(CODE_REGISTER_ELF, &elf, 80, 0)));
	printf("longer-zero %s\n", call(CODE_REGISTER_ELF, &longer, sizeof(longer), 0));
	longer.elf = object(0x40000000);
	longer.more[7] = 1;
	printf("longer-set %s\n", call(CODE_REGISTER_ELF, &longer, sizeof(longer), 0));
	printf("flags %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 1));
	printf("option %s\n", call(77, &elf, sizeof(elf), 0));
	printf("null %s\n", call(CODE_REGISTER_ELF, NULL, sizeof(elf), 0));
	printf("unmapped %s\n", call(CODE_REGISTER_ELF, (void *)0x1000, sizeof(elf), 0));
	elf = object(0x50000000);
	elf.pathname = 0x1000;
	printf("bad-string %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0));
	elf = object(0x60000000);
	elf.text_end = elf.text_start;
	printf("empty %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0));
	printf("other %s\n", call(CODE_UNREGISTER, &other, sizeof(other), 0));
	printf("remove %s\n", call(CODE_UNREGISTER, &range, sizeof(range), 0));
	printf("removed %s\n", call(CODE_UNREGISTER, &range, sizeof(range), 0));
}

/* The string ends with a mapping: what is after it is never read. */
static void edge(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	strcpy(page + 4096 - sizeof("/at/the/end"), "/at/the/end");
	struct code_elf_info elf = object(0x10000000);
	elf.pathname = (unsigned long)page + 4096 - sizeof("/at/the/end");
	printf("end %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0));
	page[4095] = 'x';
	elf = object(0x20000000);
	elf.pathname = (unsigned long)page + 4090;
	printf("beyond %s\n", call(CODE_REGISTER_ELF, &elf, sizeof(elf), 0));
}

/* Waits until somebody has looked. */
static void stay(const char *who)
{
	char c;
	printf("%s %d\n", who, getpid());
	fflush(stdout);
	if (read(0, &c, 1) < 0)
		exit(3);
}

static void forks(char **argv, int n_words)
{
	printf("parent %s\n", add(0x10000000));
	fflush(stdout);
	usleep(30000); /* processes begin in ticks of 10 ms */
	int pid = fork();
	if (pid == 0) {
		usleep(30000);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		printf("child-has-it %s\n", add(0x10000000));
		usleep(60000);
		printf("child-own %s\n", add(0x20000000));
		printf("child-not-later %s\n", add(0x30000000));
		printf("child-away %s\n", take_away(0x10000000));
		fflush(stdout);
		stay("child");
		char number[32];
		sprintf(number, "%ld", nr);
		execl("/proc/self/exe", argv[0], number, "after-exec", NULL);
		_exit(3);
	}
	usleep(30000);
	printf("parent-later %s\n", add(0x30000000));
	fflush(stdout);
	waitpid(pid, NULL, 0);
	printf("parent-keeps %s\n", add(0x10000000));
	printf("parent-not-childs %s\n", add(0x20000000));
	stay("parent");
}

/* The same number by the gate of 32-bit programs, and with the bit of x32: other tables. */
static void other_architectures(void)
{
	struct code_elf_info elf = object(0x10000000);
	long rc;
	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(nr), "b"(CODE_REGISTER_ELF), "c"(NULL), "d"(sizeof(elf)), "S"(0) : "memory", "r8", "r9", "r10", "r11");
	printf("i386 %s\n", strerrorname_np((int)-rc));
	rc = syscall(nr | 0x40000000, CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
	printf("x32 %s\n", rc ? strerrorname_np(errno) : "0");
	printf("own %s\n", add(0x10000000));
}

static int add_in_shared_memory(void *arg)
{
	printf("child %s\n", add(0x10000000));
	return 0;
}

static void shared_memory(void)
{
	static char stack[65536];
	int pid = clone(add_in_shared_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	waitpid(pid, NULL, 0);
	printf("parent %s\n", add(0x10000000));
}

/* The child asks first, and both run on. */
static volatile int turn;

static int add_and_stay(void *arg)
{
	printf("child %s\n", add(0x10000000));
	turn = 1;
	while (turn == 1)
		usleep(1000);
	return 0;
}

static void shared_alive(void)
{
	static char stack[65536];
	if (fork()) {
		wait(NULL);
		return;
	}
	int pid = clone(add_and_stay, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	while (turn == 0)
		usleep(100);
	printf("parent %s\n", add(0x10000000));
	turn = 2;
	waitpid(pid, NULL, 0);
}

/* Two children of a process that asks nothing; the first stays. */
static void siblings(void)
{
	int first, go[2];
	char byte;
	if (pipe(go))
		return;
	first = fork();
	if (!first) {
		printf("first %s\n", add(0x10000000));
		fflush(stdout);
		if (write(go[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	if (read(go[0], &byte, 1) != 1)
		return;
	usleep(50000); /* to another tick of the clock that start times have */
	if (!fork()) {
		printf("second %s\n", add(0x10000000));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	kill(first, SIGKILL);
	wait(NULL);
}

static volatile int n_signals;

static void count(int sig)
{
	n_signals++;
}

/* The page comes when signals have come; this thread takes none. */
static void *answer_late(void *fd)
{
	struct uffd_msg msg;
	struct code_elf_info elf = object(0x10000000);
	static char page[4096] __attribute__((aligned(4096)));
	struct itimerval every = {{0, 5000}, {0, 5000}};
	if (read((int)(long)fd, &msg, sizeof(msg)) != sizeof(msg))
		return NULL;
	setitimer(ITIMER_REAL, &every, NULL);
	usleep(300000);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	memcpy(page, &elf, sizeof(elf));
	struct uffdio_copy copy = {.dst = msg.arg.pagefault.address & ~4095ul, .src = (unsigned long)page, .len = 4096};
	ioctl((int)(long)fd, UFFDIO_COPY, &copy);
	return NULL;
}

/* The supervisor reads what is not there yet, and meanwhile the caller gets signals whose handler does not restart. */
static void signals(void)
{
	char *info = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range = {(unsigned long)info, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;
	sigset_t alarm;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg)) {
		puts("skip userfaultfd");
		return;
	}
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	pthread_create(&thread, NULL, answer_late, (void *)(long)fd);
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = count}, NULL);
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	const char *result = call(CODE_REGISTER_ELF, info, sizeof(struct code_elf_info), 0);
	printf("call %s\nsignals %s\n", result, n_signals ? "came" : "none");
}

static void interrupted(void)
{
	struct itimerval again = {{0, 5000}, {0, 5000}};
	stay("here");
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = count}, NULL);
	setitimer(ITIMER_REAL, &again, NULL);
	const char *result = add(0x10000000);
	sigaction(SIGALRM, &(struct sigaction){.sa_handler = count, .sa_flags = SA_RESTART}, NULL);
	printf("interrupted %s\n", result);
	fflush(stdout);
	printf("restarted %s\n", add(0x20000000));
}

int main(int argc, char **argv)
{
	nr = atol(argv[1]);
	if (strcmp(argv[2], "stay")) /* which outlives its supervisor, and ends with its input */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(argv[2], "errors"))
		errors();
	else if (!strcmp(argv[2], "edge"))
		edge();
	else if (!strcmp(argv[2], "forks"))
		forks(argv, argc);
	else if (!strcmp(argv[2], "after-exec"))
		printf("exec-has-nothing %s\n", add(0x20000000));
	else if (!strcmp(argv[2], "stay")) {
		printf("add %s\n", add(0x10000000));
		stay("here");
		printf("later %s\n", add(0x20000000));
		fflush(stdout);
		printf("forked %d\n", system("true"));
	} else if (!strcmp(argv[2], "architectures"))
		other_architectures();
	else if (!strcmp(argv[2], "shared"))
		shared_memory();
	else if (!strcmp(argv[2], "shared-alive"))
		shared_alive();
	else if (!strcmp(argv[2], "siblings"))
		siblings();
	else if (!strcmp(argv[2], "interrupted"))
		interrupted();
	else if (!strcmp(argv[2], "signals"))
		signals();
	else if (!strcmp(argv[2], "number"))
		printf("%s\n", call((unsigned int)atoi(argv[3]), (void *)0x1000, 80, 0));
	return 0;
}
"""


def program():
    include = os.path.join(SOURCE, "include")
    return compile_c("calls", PROGRAM, flags=("-O1", "-pthread", "-I" + include))


def serve(*words, options=(), **kwargs):
    return cairn("code", "run", "--syscall", NR, *options, "--", program(), NR, *words, **kwargs)


def results(r):
    return dict(line.split() for line in r.lines())


@claim
def each_call_gets_a_kernels_answer():
    r = serve("errors")
    expect(r.status == 0, r)
    expect(
        results(r) == {
            "add": "0", "again": "EEXIST", "rfc-size": "0", "longer-zero": "0", "longer-set":
            "E2BIG", "flags": "EINVAL", "option": "EINVAL", "null": "EFAULT", "unmapped": "EFAULT",
            "bad-string": "EFAULT", "empty": "EINVAL", "other": "ENOENT", "remove": "0", "removed":
            "ENOENT"
        }, r)


@claim
def a_string_may_end_where_its_memory_does():
    r = serve("edge")
    expect(results(r) == {"end": "0", "beyond": "EFAULT"}, r)


@claim
def fork_copies_the_registry_and_exec_ends_it():
    p = subprocess.Popen(
        [CAIRN, "code", "run", "--syscall",
         str(NR), "--",
         program(), str(NR), "forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = p.communicate("xx", timeout=60)
    finally:
        p.kill()
        p.wait()
    lines = dict(line.split() for line in out.splitlines())
    lines.pop("child", None), lines.pop("parent", None)
    expect(
        p.returncode == 0 and lines == {
            "child-has-it": "EEXIST", "child-own": "0", "child-not-later": "0", "parent-later": "0",
            "child-away": "0", "exec-has-nothing": "0", "parent-keeps": "EEXIST",
            "parent-not-childs": "0"
        }, out)


@claim
def calls_of_other_architectures_are_not_served():
    # Kernels may be without the gate of 32-bit programs: then it ends the program, or the call is
    # not there either.
    r = serve("architectures")
    if r.status != 0:
        raise Skip("this kernel has no int $0x80")
    expect(results(r) == {"i386": "ENOSYS", "x32": "ENOSYS", "own": "0"}, r)


@claim
def a_child_in_the_same_memory_has_a_registry_of_its_own():
    r = serve("shared")
    expect(results(r) == {"child": "0", "parent": "0"}, r)


@claim
def a_parent_has_nothing_of_its_child():
    """Start times have 10 ms: most of the time the child looks as old as its parent, and it is
    known first."""
    for _ in range(10):
        r = serve("shared-alive")
        expect(results(r) == {"child": "0", "parent": "0"}, r)


@claim
def a_process_has_nothing_of_its_sibling():
    r = serve("siblings")
    expect(results(r) == {"first": "0", "second": "0"}, r)


@claim
def signals_wait_until_the_call_is_answered():
    r = serve("signals")
    expect(r.status == 0, r)
    if "skip" in r.out:
        raise Skip("userfaultfd(2) for faults of the kernel is not permitted here")
    release = tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    if release < (5, 19):
        raise Skip("before Linux 5.19 they end it")
    expect(results(r) == {"call": "0", "signals": "came"}, r)


@claim
def before_the_supervisor_has_taken_it_a_call_can_be_interrupted():
    p = subprocess.Popen(
        [CAIRN, "code", "run", "--syscall",
         str(NR), "--",
         program(),
         str(NR), "interrupted"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        expect(re.fullmatch(r"here \d+\n", p.stdout.readline()), "the first line")
        os.kill(p.pid, signal.SIGSTOP)
        p.stdin.write("x")
        p.stdin.flush()
        expect(p.stdout.readline() == "interrupted EINTR\n", "the second line")
        os.kill(p.pid, signal.SIGCONT)
        expect(p.stdout.read() == "restarted 0\n", "the third line")
    finally:
        p.kill()
        p.wait()


@claim
def without_privilege_setuid_programs_gain_none_and_it_says_so():
    if os.geteuid() != 0:
        raise Skip("another user takes root to become")
    nobody = pwd.getpwnam("nobody")
    script = f"""
import os
os.setgroups([]); os.setgid({nobody.pw_gid}); os.setuid({nobody.pw_uid})
os.execv({CAIRN!r}, [{CAIRN!r}, "code", "run", "--syscall", "{NR}", "--", "sh", "-c", "grep NoNewPrivs /proc/self/status"])
"""
    r = run(sys.executable, "-c", script)
    if "Permission denied" in r.err and r.status not in (0, 3):
        raise Skip("the program's folder cannot be read by others")
    expect(r.status == 0 and r.out.split() == ["NoNewPrivs:", "1"] and "setuid programs" in r.err,
           r)
    r = cairn("code", "run", "--syscall", NR, "--", "sh", "-c", "grep NoNewPrivs /proc/self/status")
    expect(r.out.split() == ["NoNewPrivs:", "0"] and "setuid" not in r.err, r)


@claim
def a_dead_supervisor_is_a_kernel_without_codectl():
    p = subprocess.Popen(
        [CAIRN, "code", "run", "--syscall",
         str(NR), "--",
         program(), str(NR), "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        expect(p.stdout.readline() == "add 0\n", "the first call")
        expect(re.fullmatch(r"here \d+\n", p.stdout.readline()), "the second line")
        p.kill()
        p.wait()
        p.stdin.write("x")
        p.stdin.close()
        expect(p.stdout.read() == "later ENOSYS\nforked 0\n", "after its death")
    finally:
        p.kill()
        p.wait()


@claim
def a_notice_leads_to_the_registry_and_goes_with_the_process():
    if os.geteuid() != 0:
        raise Skip("the directory is that of root")
    p = subprocess.Popen(
        [CAIRN, "code", "run", "--syscall",
         str(NR), "--",
         program(), str(NR), "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        pid = int(p.stdout.readline().split()[1])
        path = f"/run/cairn/codectl/{pid}"
        with open(path, encoding="ascii") as file:
            text = file.read()
        notice = dict(line.split(maxsplit=1) for line in text.splitlines())
        expect(
            notice["supervisor"].split()[0] == str(p.pid)
            and notice["process"].split()[0] == str(pid), text)
        address, size = (int(word, 16) for word in notice["registry"].split())
        with open(f"/proc/{p.pid}/maps", encoding="ascii") as maps:
            expect(
                any(
                    line.startswith(f"{address:x}-") and "/memfd:cairn-codectl" in line
                    for line in maps), text)
        with open(f"/proc/{p.pid}/mem", "rb") as memory:
            memory.seek(address)
            head = memory.read(64)
        expect(head[:8] == b"codectl\0" and int.from_bytes(head[24:32], "little") == size, head)
        p.communicate("x", timeout=60)
        expect(p.returncode == 0, p.returncode)
        expect(not os.path.exists(path), "the notice is still there")
    finally:
        p.kill()
        p.wait()


@claim
def numbers_that_exist_are_refused():
    for number in (0, 60, 334, 435, 512):
        r = cairn("code", "run", "--syscall", number, "--", "true")
        expect(r.status == 2, r)


@claim
def the_rfcs_numbers_mean_other_calls():
    r = serve("number", 0, options=("-v",))
    expect("codectl(CODE_UNREGISTER, 0x1000, 80, 0) = -1" in r.err, r)
    r = serve("number", 0, options=("-v", "--rfc-numbers"))
    expect("codectl(CODE_REGISTER_ELF, 0x1000, 80, 0) = -1 EFAULT" in r.err, r)


@claim
def the_commands_end_is_the_programs():
    expect(cairn("code", "run", "--syscall", NR, "--", "sh", "-c", "exit 7").status == 7, "exit")
    expect(
        cairn("code", "run", "--syscall", NR, "--", "sh", "-c",
              "kill -9 $$").status == 128 + signal.SIGKILL, "kill")
    r = cairn("code", "run", "--syscall", NR, "--", "/no/such/program")
    expect(r.status == 2 and "/no/such/program" in r.err, r)
    r = cairn("code", "run", "-v", "--", "true")
    expect(r.status == 2 and "--syscall" in r.err, r)


@claim
def programs_with_many_processes_run_as_they_do_without():
    script = "for i in 1 2 3 4 5 6 7 8 9; do (echo $i | cat) & done; wait; seq 3 | xargs -P3 -n1 echo"
    plain = run("sh", "-c", script)
    r = cairn("code", "run", "--syscall", NR, "--", "sh", "-c", script)
    expect(r.status == 0 and sorted(r.lines()) == sorted(plain.lines()), r)


main()
