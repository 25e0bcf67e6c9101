/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stopping threads with ptrace
 *
 * PTRACE_SEIZE attaches without stopping, PTRACE_INTERRUPT stops without a signal that the program
 * could see. So all threads are seized first, and the time that a thread stands still begins only
 * then. The list of threads can grow meanwhile: it is read again until it has no new thread. Once
 * all are stopped no thread is left that could start one.
 *
 * A thread may stop for another reason than our interrupt: a signal that just arrived. This signal
 * is not ours: it is handed back, and the interrupt is still to come.
 *
 * A thread may also end: then it is left out. It stays until we have waited for it, and other
 * threads wait for that: one that execs for all of them (reaper.h), and the main thread's end for
 * all others'. So the loop never waits for one thread alone: it polls all in turn for a stop or an
 * end. A thread in an uninterruptible wait in the kernel (a disk, the child of its vfork) does not
 * stop; after a while it is left out too.
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "code/target.h"
#include "unwind/reaper.h"

enum {
	/*
	 * a process that starts threads faster than they are seized, for this long, is not to be
	 * had
	 */
	MAX_ROUNDS = 64,
	/* How long none of the threads that are left stops, while the others stand still. */
	PATIENCE_NS = 500000000, /* with those that run: the machine may be busy */
	PATIENCE_WITH_WAITERS_NS = 3000000,
	FIRST_PATIENCE = 2, /* threads in a row that have not stopped yet */
	/* turns without a sleep: a thread on another processor stops within some microseconds */
	SPINS = 64,
	PAUSE_NS = 50000,
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- attaching ---- */

static int tracer_of(int pid, int tid)
{
	char name[64], line[256];
	int tracer = 0;
	snprintf(name, sizeof(name), "/proc/%d/task/%d/status", pid, tid);
	SCOPE_FCLOSE FILE *f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	return tracer;
}

int stop_refuse(int pid, int why, struct cairn_err *err)
{
	int tracer = tracer_of(pid, pid);
	if (why == EPERM && tracer)
		return err_set(err, -EBUSY,
			       "process %d is traced by process %d already (a debugger, strace)",
			       pid, tracer);
	if (why == EPERM)
		return err_set(err, -EPERM,
			       "process %d may not be traced: it takes the same user, or root "
			       "(CAP_SYS_PTRACE), and "
			       "kernel.yama.ptrace_scope 0 unless it is a child",
			       pid);
	return err_set(err, -why, "process %d: cannot be traced: %s", pid, strerror(why));
}

static bool is_listed(const struct stop *stop, int tid)
{
	if (tid > stop->max_tid)
		return false;
	for (size_t i = 0; i < stop->threads.n; i++)
		if (stop->threads.p[i].tid == tid)
			return true;
	return false;
}

/* One that did not stop before the last release is ours still. */
static bool is_seized_by_us(int pid, int tid, int why)
{
	return why == EPERM && tracer_of(pid, tid) == (int)syscall(SYS_gettid);
}

/* 1 when it is new and seized, 0 when it was known or is gone. */
static int seize(struct stop *stop, struct reaper *reaper, int tid, struct cairn_err *err)
{
	if (is_listed(stop, tid))
		return 0;
	/* The room first: a seized thread must be on the lists, or nothing detaches it. */
	struct stopped_thread *t = VEC_PUSH(&stop->threads);
	if (!t)
		return err_nomem(err, "the threads of a process");
	if (!reaper_add(reaper, tid)) {
		stop->threads.n--;
		return err_nomem(err, "the threads of a process");
	}
	int why = ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ? errno : 0;
	if (why && !is_seized_by_us(stop->pid, tid, why)) {
		stop->threads.n--;
		if (why == ESRCH || (why == EPERM && target_thread_has_ended(stop->pid, tid)))
			return 0;
		return stop_refuse(stop->pid, why, err);
	}
	*t = (struct stopped_thread){.tid = tid, .is_main = tid == stop->pid, .is_seized = true};
	stop->max_tid = tid > stop->max_tid ? tid : stop->max_tid;
	return 1;
}

/* How many threads were new. */
static int seize_new(struct stop *stop, DIR *tasks, struct reaper *reaper, struct cairn_err *err)
{
	int n = 0, rc = 0;
	rewinddir(tasks);
	for (struct dirent *e; rc >= 0 && (e = readdir(tasks));)
		if (isdigit((unsigned char)e->d_name[0])) {
			rc = seize(stop, reaper, atoi(e->d_name), err);
			n += rc > 0;
		}
	if (n)
		reaper_read_names(reaper);
	return rc < 0 ? rc : n;
}

/*
 * The number of the process's threads, also of those that have ended: the directory has a link for
 * each, and the link count is faster than reading the names.
 */
static size_t count_threads(DIR *tasks)
{
	struct stat st;
	return fstat(dirfd(tasks), &st) == 0 && st.st_nlink > 2 ? st.st_nlink - 2 : 0;
}

/* ---- stopping ---- */

#ifdef __x86_64__
/* By DWARF number. */
static void take_regs(const struct user_regs_struct *u, struct cairn_regs *ret)
{
	const uint64_t r[16] = {u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp,
				u->r8,  u->r9,  u->r10, u->r11, u->r12, u->r13, u->r14, u->r15};
	memcpy(ret->r, r, sizeof(r));
	ret->known = 0xffff;
	ret->pc.v = u->rip;
}

static uint64_t thread_pointer(const struct user_regs_struct *u)
{
	return u->fs_base;
}

static void read_vectors(struct stopped_thread *t)
{
	uint8_t bytes[VECTORS_FXSAVE];
	struct iovec to = {bytes, sizeof(bytes)};
	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRFPREG, &to) == 0 &&
	    to.iov_len == sizeof(bytes))
		vectors_take(&t->vectors, bytes);
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

static void read_vectors(struct stopped_thread *t)
{
}
#endif

static int read_regs(struct stop *stop, struct stopped_thread *t, struct cairn_err *err)
{
	struct user_regs_struct u;
	struct iovec to = {&u, sizeof(u)};
	if (ptrace(PTRACE_GETREGSET, t->tid, (void *)NT_PRSTATUS, &to) < 0)
		return errno == ESRCH ? 0
				      : err_set(err, -errno, "registers of thread %d: %m", t->tid);
	/* A 32-bit program has fewer registers to give. */
	if (to.iov_len != sizeof(u))
		return err_set(err, -EOPNOTSUPP, "process %d is a 32-bit one", stop->pid);
	take_regs(&u, &t->regs);
	t->has_regs = true;
	t->thread_pointer = thread_pointer(&u);
	if (stop->with_vectors)
		read_vectors(t);
	return 0;
}

/* Whether it has stopped, or ended. */
static bool poll_thread(struct stopped_thread *t)
{
	int status;
	pid_t tid = waitpid(t->tid, &status, __WALL | WNOHANG);
	if (tid == 0)
		return false;
	if (tid != t->tid || !WIFSTOPPED(status)) {
		t->is_seized = false;
	} else if (status >> 16 == PTRACE_EVENT_STOP) {
		t->is_stopped = true;
		t->stopped_at_ns = now_ns();
	} else {
		/* A signal of its own, which it gets now. */
		ptrace(PTRACE_CONT, t->tid, NULL, (void *)(intptr_t)WSTOPSIG(status));
	}
	return true;
}

static bool is_awaited(const struct stopped_thread *t)
{
	return t->is_seized && !t->is_stopped && !t->is_left_out;
}

/*
 * In the order in which they were interrupted, which is about that in which they stop: once
 * @patience of them in a row have not, the rest will not have either, and asking them would take
 * longer than all else here. Whether all have stopped or ended; *@moved: whether one did just now.
 */
static bool poll_threads(struct stop *stop, size_t patience, bool *moved)
{
	bool is_all = true;
	*moved = false;
	for (size_t i = 0, n_misses = 0; i < stop->threads.n && n_misses < patience; i++) {
		struct stopped_thread *t = &stop->threads.p[i];
		if (!is_awaited(t))
			continue;
		bool has_moved = poll_thread(t);
		*moved |= has_moved;
		n_misses = has_moved ? 0 : n_misses + 1;
		is_all &= !is_awaited(t);
	}
	return is_all;
}

/*
 * Leaves out threads that will not stop: one that waits in the kernel; a main thread that has
 * ended, which is known only when all others are gone.
 */
static void leave_out(struct stop *stop, uint64_t waited_ns)
{
	for (size_t i = 0; i < stop->threads.n; i++) {
		struct stopped_thread *t = &stop->threads.p[i];
		if (!is_awaited(t))
			continue;
		char state = target_thread_state(stop->pid, t->tid);
		if (waited_ns > PATIENCE_NS || strchr("ZX", state) ||
		    (state == 'D' && waited_ns > PATIENCE_WITH_WAITERS_NS)) {
			t->is_left_out = true;
			t->state = state;
		}
	}
}

static void pause_for(unsigned int turn)
{
	struct timespec t = {0, PAUSE_NS};
	if (turn < SPINS)
		sched_yield();
	else
		nanosleep(&t, NULL);
}

/* Every thread that can be is stopped after this. */
static void interrupt_all(struct stop *stop)
{
	uint64_t since = now_ns();
	size_t patience = FIRST_PATIENCE;
	bool moved;
	for (size_t i = 0; i < stop->threads.n; i++)
		if (stop->threads.p[i].is_seized && !stop->threads.p[i].is_stopped)
			ptrace(PTRACE_INTERRUPT, stop->threads.p[i].tid, NULL, NULL);
	for (unsigned int turn = 0; !poll_threads(stop, patience, &moved); turn++) {
		/* Soon all of them: a few that wait in the kernel do not hide the others. */
		patience = moved                        ? FIRST_PATIENCE
			   : patience < stop->threads.n ? patience * 2
							: patience;
		if (moved) {
			since = now_ns();
			turn = 0;
		}
		if (turn >= SPINS)
			leave_out(stop, now_ns() - since);
		pause_for(turn);
	}
}

static int thread_order(const void *a, const void *b)
{
	const struct stopped_thread *x = a, *y = b;
	if (x->is_main != y->is_main)
		return x->is_main ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* No thread is left that could start one: all of the counted threads stand still. */
static bool all_stand_still(const struct stop *stop, DIR *tasks)
{
	size_t n = 0;
	for (size_t i = 0; i < stop->threads.n; i++)
		n += stop->threads.p[i].is_stopped;
	return n && count_threads(tasks) == n;
}

static int stop_threads(struct stop *stop, DIR *tasks, struct reaper *reaper, struct cairn_err *err)
{
	/* Without it the list would move from place to place as it grows. */
	int rc = VEC_RESERVE(&stop->threads, count_threads(tasks))
			 ? 0
			 : err_nomem(err, "the threads of a process");
	if (rc < 0)
		return rc;
	for (int round = 0; (rc = seize_new(stop, tasks, reaper, err)) > 0 && round < MAX_ROUNDS;
	     round++)
		if (count_threads(tasks) == stop->threads.n)
			break;
	stop->first_ns = now_ns();
	/* Stopping takes a while in which new ones can begin: until there are none. */
	for (int round = 0; rc >= 0; round++) {
		interrupt_all(stop);
		rc = all_stand_still(stop, tasks) ? 0 : seize_new(stop, tasks, reaper, err);
		stop->is_consistent = rc == 0;
		if (rc == 0 || round == MAX_ROUNDS)
			break;
	}
	return rc;
}

static int read_all_regs(struct stop *stop, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < stop->threads.n; i++)
		if (stop->threads.p[i].is_stopped)
			rc = read_regs(stop, &stop->threads.p[i], err);
	return rc < 0 ? rc : 0;
}

/* Both are in the order in which threads were found; some of the reaper's could not be seized. */
static void take_names(struct stop *stop, const struct reaper *reaper)
{
	size_t k = 0;
	for (size_t i = 0; i < stop->threads.n; i++) {
		while (k < reaper->threads.n && reaper->threads.p[k].tid != stop->threads.p[i].tid)
			k++;
		if (k < reaper->threads.n)
			memcpy(stop->threads.p[i].comm, reaper->threads.p[k].comm,
			       sizeof(stop->threads.p[i].comm));
	}
}

static int stop_listed(struct stop *stop, struct timed_read *stall, struct cairn_err *err)
{
	struct reaper reaper;
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/task", stop->pid);
	DIR *tasks = opendir(name);
	if (!tasks)
		return errno == ENOENT ? err_set(err, -ESRCH, "there is no process %d", stop->pid)
				       : err_set(err, -errno, "%s: %m", name);
	reaper_start(&reaper, stall, dirfd(tasks));
	int rc = stop_threads(stop, tasks, &reaper, err);
	/* It has the time of these system calls to end. */
	reaper_end(&reaper);
	if (rc >= 0)
		rc = read_all_regs(stop, err);
	reaper_join(&reaper);
	take_names(stop, &reaper);
	reaper_fini(&reaper);
	closedir(tasks);
	return rc;
}

static bool is_in_order(const struct stop *stop)
{
	for (size_t i = 1; i < stop->threads.n; i++)
		if (thread_order(&stop->threads.p[i - 1], &stop->threads.p[i]) > 0)
			return false;
	return true;
}

int stop_all(int pid, struct timed_read *stall, struct stop *stop, struct cairn_err *err)
{
	*stop = (struct stop){.pid = pid, .with_vectors = stop->with_vectors};
	int rc = stop_listed(stop, stall, err);
	if (!is_in_order(stop))
		qsort(stop->threads.p, stop->threads.n, sizeof(*stop->threads.p), thread_order);
	if (rc >= 0 && !stop->threads.n)
		return err_set(err, -ESRCH, "there is no process %d any more: it has ended",
			       stop->pid);
	return rc < 0 ? rc : 0;
}

static void detach_stopped(struct stop *stop)
{
	for (size_t i = 0; i < stop->threads.n; i++) {
		struct stopped_thread *t = &stop->threads.p[i];
		if (!t->is_seized || !t->is_stopped)
			continue;
		/* One that was killed meanwhile has to be waited for. */
		t->is_seized = ptrace(PTRACE_DETACH, t->tid, NULL, NULL) < 0;
		t->is_stopped = false;
		t->stopped_ns = now_ns() - t->stopped_at_ns;
	}
}

void stop_release(struct stop *stop)
{
	detach_stopped(stop);
	if (!stop->last_ns)
		stop->last_ns = now_ns();
	/*
	 * A thread that was seized and is not stopped has to be stopped to be detached; a thread
	 * that was left out may have stopped by now.
	 */
	for (size_t i = 0; i < stop->threads.n; i++)
		stop->threads.p[i].is_left_out = false;
	interrupt_all(stop);
	detach_stopped(stop);
}

void stop_await_end_of(struct stop *stop, int tracer)
{
	uint64_t since = now_ns();
	for (size_t i = 0; i < stop->threads.n; i++) {
		struct stopped_thread *t = &stop->threads.p[i];
		/* A thread that joins another one goes on before the kernel is done with it. */
		while (t->is_seized && tracer_of(stop->pid, t->tid) == tracer &&
		       now_ns() - since < PATIENCE_NS)
			pause_for(SPINS);
		t->is_seized = false;
	}
}

void stop_fini(struct stop *stop)
{
	stop_release(stop);
	VEC_FREE(&stop->threads);
}
