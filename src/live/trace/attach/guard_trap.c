/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a trap
 *
 * A child calls a function of ours again and again, with a probe on it whose program does nothing.
 * The least time of several rounds counts: others use the processor, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"
#include "trace/attach/guard.h"
#include "trace/attach/link.h"
#include "trace/place/procmap.h"

enum { ROUNDS = 16, CALLS = 100, WAIT_MS = 2000 };

/* The first instruction is one that the kernel emulates, and one that it steps over. */
__attribute__((naked, noinline)) static void call_emulated(void)
{
	__asm__("nop\n\tret");
}

__attribute__((naked, noinline)) static void call_stepped(void)
{
	__asm__("mov %rdi, %rax\n\tret");
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Without anything that may be locked: the parent may have threads. */
__attribute__((noreturn)) static void run_child(void (*call)(void), int go, int out)
{
	uint64_t least = UINT64_MAX;
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = now_ns();
		for (int i = 0; i < CALLS; i++)
			call();
		uint64_t took = now_ns() - begin;
		least = took < least ? took : least;
	}
	least /= CALLS;
	_exit(write(out, &least, sizeof(least)) != sizeof(least));
}

/* Where a function of this process is in its file. */
static int find_function(uint64_t addr, char *path, size_t size, uint64_t *ret)
{
	struct procmap m;
	int e = procmap_read(getpid(), &m, NULL);

	if (e == 0)
		e = -ENOENT;
	for (size_t i = 0; i < m.e.n; i++) {
		if (addr < m.e.p[i].lo.v || addr >= m.e.p[i].hi.v)
			continue;
		procmap_path(&m, &m.e.p[i], path, size);
		*ret = m.e.p[i].off.v + (addr - m.e.p[i].lo.v);
		e = 0;
	}
	procmap_free(&m);
	return e;
}

static int read_answer(int go, int answer, uint64_t *ret)
{
	struct pollfd ready = {.fd = answer, .events = POLLIN};

	if (write(go, "g", 1) != 1 || poll(&ready, 1, WAIT_MS) != 1 ||
	    read(answer, ret, sizeof(*ret)) != sizeof(*ret))
		return -ECHILD;
	return 0;
}

static int measure(int prog, int pid, uint64_t addr, int go, int answer, uint64_t *ret)
{
	uint64_t offset = 0, cookie = 0;
	const struct link_places places = {.offsets = &offset, .cookies = &cookie, .n = 1};
	char path[80];
	int event = -1;
	int e = find_function(addr, path, sizeof(path), &offset);

	if (e < 0)
		return e;
	int link = link_multi_is_known() ? link_multi(prog, path, &places, pid)
					 : link_single(prog, path, &places, pid, &event);
	if (link < 0)
		return link;
	e = read_answer(go, answer, ret);
	close(link);
	if (event >= 0)
		close(event);
	return e;
}

int guard_trap_ns(bool emulated, uint64_t *ret)
{
	void (*call)(void) = emulated ? call_emulated : call_stepped;
	int go[2], answer[2];
	int prog = link_load_nothing();

	if (prog < 0)
		return prog;
	SCOPE_CLOSE int prog_fd = prog;
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	SCOPE_CLOSE int go_read = go[0];
	SCOPE_CLOSE int go_write = go[1];
	if (pipe2(answer, O_CLOEXEC))
		return -errno;
	SCOPE_CLOSE int answer_read = answer[0];
	SCOPE_CLOSE int answer_write = answer[1];
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run_child(call, go_read, answer_write);
	int e = measure(prog_fd, pid, (uint64_t)(uintptr_t)call, go_write, answer_read, ret);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return e;
}
