/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stopping threads with ptrace
 *
 * PTRACE_SEIZE attaches without stopping, PTRACE_INTERRUPT stops without a signal that the program could see. So
 * all are seized first, and the time that a thread stands still begins only then. The list of threads can grow
 * meanwhile: it is read again until nothing new is in it, and once all are stopped nobody is left who could
 * start one.
 *
 * A thread may stop for another reason than our interrupt, a signal that it just got. That signal is not ours: it is
 * handed back on release. A thread may also end: then it is left out.
 *
 * Whether it will stop or end cannot be known, and not every end wakes up who waits for it: the main thread's is told only
 * when no other is left, and those are ours to wait for; and a thread that executes a program takes the main one's number.
 * So nothing is waited for without looking, from time to time, whether it is still there; the main thread comes last.
 *
 * If this process is killed in the middle, the kernel detaches and the threads go on.
 */
#include "unwind/stop.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

/* A process that starts threads faster than they are seized, for this many rounds, is not to be had. */
enum { MAX_ROUNDS = 64 };

/* A thread that is asked to stop does so within microseconds, unless it has to wait for a processor. */
enum {
	YIELDS = 64,	     /* before anything slower */
	PAUSE_NS = 50 * 1000, /* between two looks */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- attaching ---- */

static void read_comm(int pid, struct stopped_thread *t)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/task/%d/comm", pid, t->tid);
	SCOPE_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, t->comm, sizeof(t->comm) - 1);
	t->comm[n > 0 ? n : 0] = 0;
	t->comm[strcspn(t->comm, "\n")] = 0;
}

static int tracer_of(int pid)
{
	char name[64], line[256];
	int tracer = 0;
	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	SCOPE_FCLOSE FILE *f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	return tracer;
}

static int refuse(int pid, int why, struct cairn_err *err)
{
	int tracer = tracer_of(pid);
	if (why == EPERM && tracer)
		return err_set(err, -EBUSY, "process %d is traced by process %d already (a debugger, strace)", pid, tracer);
	if (why == EPERM)
		return err_set(err, -EPERM,
			       "process %d may not be traced: it takes the same user, or root (CAP_SYS_PTRACE), and "
			       "kernel.yama.ptrace_scope 0 unless it is a child",
			       pid);
	return err_set(err, -why, "process %d: cannot be traced: %s", pid, strerror(why));
}

/* A thread that has ended and was not waited for: the main one of a process whose others go on, all of one that was killed. */
static bool has_ended(int pid, int tid)
{
	char name[64], line[512];
	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	SCOPE_FCLOSE FILE *f = fopen(name, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return true;
	const char *behind_name = strrchr(line, ')');
	return behind_name && strchr("ZX", behind_name[1] ? behind_name[2] : 'X');
}

int stop_memory_of(int pid)
{
	char name[64];
	int tid = pid;
	if (!has_ended(pid, pid))
		return pid;
	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	DIR *dir = opendir(name);
	for (struct dirent *e; dir && tid == pid && (e = readdir(dir));)
		if (isdigit((unsigned char)e->d_name[0]) && !has_ended(pid, atoi(e->d_name)))
			tid = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return tid;
}

static bool is_listed(const struct stop *stop, int tid)
{
	for (size_t i = 0; i < stop->threads.n; i++)
		if (stop->threads.p[i].tid == tid)
			return true;
	return false;
}

/* 1 when it is new and seized, 0 when it was known or is gone. */
static int seize(struct stop *stop, int tid, struct cairn_err *err)
{
	if (is_listed(stop, tid))
		return 0;
	/* The room first: one that is seized must be on the list, or nobody lets it go. */
	struct stopped_thread *t = VEC_PUSH(&stop->threads);
	if (!t)
		return err_nomem(err, "the threads of a process");
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		int why = errno;
		stop->threads.n--;
		if (why == ESRCH || (why == EPERM && has_ended(stop->pid, tid)))
			return 0;
		return refuse(stop->pid, why, err);
	}
	*t = (struct stopped_thread){.tid = tid, .is_main = tid == stop->pid, .is_seized = true};
	read_comm(stop->pid, t);
	return 1;
}

/* How many threads were new. */
static int seize_new(struct stop *stop, struct cairn_err *err)
{
	char name[64];
	int n = 0, rc = 0;
	snprintf(name, sizeof(name), "/proc/%d/task", stop->pid);
	DIR *dir = opendir(name);
	if (!dir)
		return errno == ENOENT ? err_set(err, -ESRCH, "there is no process %d", stop->pid) :
					 err_set(err, -errno, "%s: %m", name);
	for (struct dirent *e; rc >= 0 && (e = readdir(dir));)
		if (isdigit((unsigned char)e->d_name[0])) {
			rc = seize(stop, atoi(e->d_name), err);
			n += rc > 0;
		}
	closedir(dir);
	return rc < 0 ? rc : n;
}

/* ---- stopping ---- */

#ifdef __x86_64__
/* By DWARF number. */
static void take_regs(const struct user_regs_struct *u, struct cairn_regs *ret)
{
	const uint64_t r[16] = {u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp,
				u->r8,	u->r9,	u->r10, u->r11, u->r12, u->r13, u->r14, u->r15};
	memcpy(ret->r, r, sizeof(r));
	ret->known = 0xffff;
	ret->pc.v = u->rip;
}

static uint64_t thread_pointer(const struct user_regs_struct *u)
{
	return u->fs_base;
}
#else
static void take_regs(const struct user_regs_struct *u, struct cairn_regs *ret)
{
	memcpy(ret->r, u->regs, sizeof(u->regs));
	ret->r[31] = u->sp;
	ret->known = UINT32_MAX;
	ret->pc.v = u->pc;
}

static uint64_t thread_pointer(const struct user_regs_struct *u)
{
	return 0;
}
#endif

static int read_regs(struct stop *stop, struct stopped_thread *t, struct cairn_err *err)
{
	struct user_regs_struct u;
	struct iovec to = {&u, sizeof(u)};
	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRSTATUS, &to) < 0) {
		t->is_stopped = errno != ESRCH;
		return errno == ESRCH ? 0 : err_set(err, -errno, "registers of thread %d: %m", t->tid);
	}
	/* A 32-bit program has fewer registers to give. */
	if (to.iov_len != sizeof(u))
		return err_set(err, -EOPNOTSUPP, "process %d is a 32-bit one", stop->pid);
	take_regs(&u, &t->regs);
	t->thread_pointer = thread_pointer(&u);
	return 0;
}

static void interrupt(struct stopped_thread *t)
{
	if (t->is_seized && !t->is_stopped && ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0)
		t->is_seized = false;
}

/* Whether it told something within the time that it is there. */
static bool hear_of(int pid, int tid, int *status)
{
	for (unsigned int i = 0;; i++) {
		int got = waitpid(tid, status, __WALL | WNOHANG);
		if (got)
			return got == tid;
		if (i < YIELDS) {
			sched_yield();
			continue;
		}
		if (has_ended(pid, tid))
			return waitpid(tid, status, __WALL | WNOHANG) == tid;
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
}

/* @signal: what it was about to get when it stopped for another reason. */
static void await(int pid, struct stopped_thread *t, int *signal)
{
	int status;
	*signal = 0;
	if (!t->is_seized || t->is_stopped)
		return;
	if (!hear_of(pid, t->tid, &status) || !WIFSTOPPED(status)) {
		t->is_seized = false;
		return;
	}
	t->is_stopped = true;
	t->stopped_at_ns = now_ns();
	if (status >> 16 != PTRACE_EVENT_STOP)
		*signal = WSTOPSIG(status);
}

static int thread_order(const void *a, const void *b)
{
	const struct stopped_thread *x = a, *y = b;
	if (x->is_main != y->is_main)
		return x->is_main ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* A thread that stopped for a signal gets it now, and is stopped again: our interrupt is still to come. */
static void await_interrupt(int pid, struct stopped_thread *t)
{
	int signal;
	await(pid, t, &signal);
	while (t->is_stopped && signal) {
		t->is_stopped = false;
		if (ptrace(PTRACE_CONT, t->tid, NULL, (void *)(intptr_t)signal) < 0) {
			t->is_seized = false;
			return;
		}
		await(pid, t, &signal);
	}
}

static void await_all(struct stop *stop)
{
	for (size_t i = 0; i < stop->threads.n; i++)
		if (!stop->threads.p[i].is_main)
			await_interrupt(stop->pid, &stop->threads.p[i]);
	for (size_t i = 0; i < stop->threads.n; i++)
		if (stop->threads.p[i].is_main)
			await_interrupt(stop->pid, &stop->threads.p[i]);
}

int stop_all(int pid, struct stop *stop, struct cairn_err *err)
{
	int rc;
	*stop = (struct stop){.pid = pid};
	for (int round = 0; (rc = seize_new(stop, err)) > 0 && round < MAX_ROUNDS;)
		round++;
	stop->first_ns = now_ns();
	/* Stopping takes a while in which new ones can begin: until there are none. */
	for (int round = 0; rc >= 0; round++) {
		for (size_t i = 0; i < stop->threads.n; i++)
			interrupt(&stop->threads.p[i]);
		await_all(stop);
		rc = seize_new(stop, err);
		stop->is_consistent = rc == 0;
		if (rc == 0 || round == MAX_ROUNDS)
			break;
	}
	if (stop->threads.n > 1)
		qsort(stop->threads.p, stop->threads.n, sizeof(*stop->threads.p), thread_order);
	for (size_t i = 0; rc >= 0 && i < stop->threads.n; i++)
		if (stop->threads.p[i].is_stopped)
			rc = read_regs(stop, &stop->threads.p[i], err);
	if (rc >= 0 && !stop->threads.n)
		return err_set(err, -ESRCH, "there is no process %d any more: it has ended", stop->pid);
	return rc < 0 ? rc : 0;
}

static void let_go(int pid, struct stopped_thread *t)
{
	int status;
	if (!t->is_seized)
		return;
	/* One that was seized and not stopped has to be stopped to be let go. */
	if (!t->is_stopped) {
		interrupt(t);
		await_interrupt(pid, t);
	}
	/* One that was killed is ours until we have heard of its end: the parent would not. */
	if (ptrace(PTRACE_DETACH, t->tid, NULL, NULL) < 0 && t->is_seized)
		hear_of(pid, t->tid, &status);
	if (t->stopped_at_ns)
		t->stopped_ns = now_ns() - t->stopped_at_ns;
	t->is_seized = false;
}

void stop_release(struct stop *stop)
{
	for (size_t i = 0; i < stop->threads.n; i++)
		if (!stop->threads.p[i].is_main)
			let_go(stop->pid, &stop->threads.p[i]);
	for (size_t i = 0; i < stop->threads.n; i++)
		if (stop->threads.p[i].is_main)
			let_go(stop->pid, &stop->threads.p[i]);
	if (!stop->last_ns)
		stop->last_ns = now_ns();
}

void stop_fini(struct stop *stop)
{
	stop_release(stop);
	VEC_FREE(&stop->threads);
}
