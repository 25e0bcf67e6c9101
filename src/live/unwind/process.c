/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a running process
 *
 *	mappings are read           running; where registries and lists of code are (code/runtime.h)
 *	threads are stopped         \
 *	registers                    | stopped
 *	used parts of the stacks     |   one process_vm_readv() for hundreds of them
 *	registries, tables of JITs   |
 *	threads are released        /
 *	the copies are walked       running; unwind tables are made when their file first occurs
 *
 * A walk that leads outside of the copies reads the memory of the process instead, which runs
 * again; is_consistent tells the caller.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "code/target.h"
#include "unwind/blocked.h"
#include "unwind/stacks.h"
#include "unwind/stop.h"

enum { RSP = 7 };

struct reading {
	const struct snapshot *snapshot;
	size_t thread;
	struct thread_walk *to;
	const struct walk *walk; /* at hand */
	bool has_read_live;
};

static bool read_memory(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	struct reading *r = ctx;
	if (snapshot_read(r->snapshot, r->thread, at.v, ret, n))
		return true;
	r->has_read_live = true;
	if (r->to->n_then > r->walk->frames.n)
		r->to->n_then = r->walk->frames.n;
	return snapshot_read_live(r->snapshot->pid, at.v, ret, n);
}

static void not_stopped(const struct stopped_thread *t, struct walk *walk)
{
	bool is_gone = !t->state || strchr("ZX", t->state);
	walk_empty(walk);
	walk->end = is_gone ? CAIRN_WALK_GONE : CAIRN_WALK_NOT_STOPPED;
	if (is_gone)
		snprintf(walk->why, sizeof(walk->why),
			 "the thread ended before it could be stopped");
	else if (t->state == 'D')
		snprintf(walk->why, sizeof(walk->why),
			 "the thread waits in the kernel and cannot be stopped (state D; "
			 "/proc/%d/stack)",
			 t->tid);
	else
		snprintf(walk->why, sizeof(walk->why), "the thread did not stop (state %c)",
			 t->state);
}

static bool is_same_place(const struct cairn_regs *a, const struct cairn_regs *b)
{
	return a->pc.v == b->pc.v && a->r[RSP] == b->r[RSP];
}

/*
 * A thread that waits in the kernel: its stack is read while it waits, and it has to be in the same
 * position afterwards.
 */
static int walk_blocked(struct cairn_stacks *stacks, const struct stopped_thread *t,
			const struct walk_target *target, struct cairn_err *err)
{
	struct cairn_regs before, after;
	bool is_blocked = t->state == 'D' && blocked_regs(stacks->pid, t->tid, &before);
	int rc = is_blocked ? walk_run(&stacks->walk, target, &before, stacks->max_frames, err) : 0;
	if (rc < 0)
		return rc;
	if (!is_blocked || !blocked_regs(stacks->pid, t->tid, &after) ||
	    !is_same_place(&before, &after)) {
		not_stopped(t, &stacks->walk);
		return 0;
	}
	snprintf(stacks->note, sizeof(stacks->note),
		 "thread %d waits in the kernel and cannot be stopped (state D): its stack was "
		 "found by /proc/%d/task/%d/syscall",
		 t->tid, stacks->pid, t->tid);
	return 0;
}

static int walk_thread(struct cairn_stacks *stacks, const struct stopped_thread *t,
		       struct reading *r, struct cairn_err *err)
{
	struct thread_walk *to = stacks_add(stacks, t->tid, t->comm);
	if (!to)
		return err_nomem(err, "the threads of a process");
	to->stack.stopped_ns = t->stopped_ns;
	to->vectors = t->vectors;
	r->to = to;
	r->walk = &stacks->walk;
	const struct walk_target target = {.machine = EM_X86_64,
					   .space = stacks->space,
					   .runtime = stacks->runtime,
					   .code = code_memory_of_process(r->snapshot->pid),
					   .states = &stacks->states,
					   .no_registers = stacks->no_registers,
					   .read = read_memory,
					   .ctx = r};
	int rc = 0;
	if (t->has_regs)
		rc = walk_run(&stacks->walk, &target, &t->regs, stacks->max_frames, err);
	else
		rc = walk_blocked(stacks, t, &target, err);
	return rc < 0 ? rc : stacks_keep(stacks, to, err);
}

/* Freezes the descriptions of code made at run time, as far as the stacks may lead there. */
static int mark_code(struct cairn_stacks *stacks, const struct stop *stop, struct cairn_err *err)
{
	const void *words;
	size_t n;
	int rc = code_runtime_freeze(stacks->runtime, err);
	for (size_t i = 0; rc == 0 && i < stop->threads.n; i++)
		rc = code_runtime_snapshot(stacks->runtime, &stop->threads.p[i].regs.pc.v, 1, err);
	for (size_t i = 0; rc == 0 && (words = snapshot_words(&stacks->snapshot, i, &n)); i++)
		rc = code_runtime_snapshot(stacks->runtime, words, n, err);
	return rc;
}

/*
 * The pages of a process's address space; 0: not known. Nearly all that changes its mappings changes
 * their number, and they are read without its locks.
 */
static uint64_t n_pages_of(int pid)
{
	char text[64];
	return target_read_proc(pid, "statm", text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

/*
 * Whether the mappings changed since they were read: their size did, or a thread is where they have
 * no code. A program that begins gets its libraries just then.
 */
static bool mappings_are_old(const struct cairn_stacks *stacks, const struct stop *stop)
{
	const struct code_maps *maps = code_space_maps(stacks->space);
	if (n_pages_of(stacks->snapshot.pid) != stacks->n_pages)
		return true;
	for (size_t i = 0; i < stop->threads.n; i++) {
		const struct stopped_thread *t = &stop->threads.p[i];
		const struct code_mapping *m =
			t->has_regs ? code_maps_find(maps, t->regs.pc.v) : NULL;
		if (t->has_regs && (!m || !m->is_executable))
			return true;
	}
	return code_runtime_is_ahead(stacks->runtime);
}

/*
 * JITs map code while they are looked at; that is seldom, so that it is done once more with the
 * threads standing still.
 */
static int look_again(struct cairn_stacks *stacks, const struct stop *stop, struct cairn_err *err)
{
	int rc = code_space_refresh_pid(stacks->space, stacks->snapshot.pid, err);
	if (rc == 0)
		rc = code_runtime_prepare(stacks->runtime, stacks->space, err);
	return rc < 0 ? rc : mark_code(stacks, stop, err);
}

/* The present mappings. */
static int renew_maps(struct cairn_stacks *stacks, struct cairn_err *err)
{
	bool is_new = stacks->has_new_maps;
	stacks->has_new_maps = false;
	if (!is_new)
		stacks->n_pages = n_pages_of(stacks->snapshot.pid);
	return is_new ? 0 : code_space_refresh_pid(stacks->space, stacks->snapshot.pid, err);
}

/*
 * ---- the parts that read; one thread attaches and lets go, and it cannot be abandoned ----
 */

struct capture {
	struct cairn_stacks *stacks;
	struct stop stop;
	bool has_read_live;
};

static int look(void *ctx, struct cairn_err *err)
{
	struct cairn_stacks *stacks = ((struct capture *)ctx)->stacks;
	int rc = renew_maps(stacks, err);
	return rc < 0 ? rc : code_runtime_prepare(stacks->runtime, stacks->space, err);
}

static int copy(void *ctx, struct cairn_err *err)
{
	struct capture *c = ctx;
	struct cairn_stacks *stacks = c->stacks;
	const struct code_memory code = code_memory_of_process(stacks->snapshot.pid);
	int rc = snapshot_take(&stacks->snapshot, code_space_maps(stacks->space), &c->stop, err);
	if (rc == 0)
		rc = mark_code(stacks, &c->stop, err);
	if (rc == 0 && mappings_are_old(stacks, &c->stop))
		rc = look_again(stacks, &c->stop, err);
	if (rc == 0)
		interpreter_frame_catch(&stacks->states, &code);
	return rc;
}

static int walk_all(void *ctx, struct cairn_err *err)
{
	struct capture *c = ctx;
	struct reading reading = {.snapshot = &c->stacks->snapshot};
	int rc = code_runtime_resolve(c->stacks->runtime, err);
	for (size_t i = 0; rc == 0 && i < c->stop.threads.n; i++) {
		reading.thread = i;
		rc = walk_thread(c->stacks, &c->stop.threads.p[i], &reading, err);
	}
	if (rc == 0)
		stacks_take_note(c->stacks);
	c->has_read_live = reading.has_read_live;
	return rc;
}

/* Stopped, copied, and released again. */
struct moment {
	struct capture *c;
	struct cairn_err *err;
	int rc, tracer;
};

static void *take_moment(void *arg)
{
	struct moment *m = arg;
	struct capture *c = m->c;
	struct cairn_stacks *stacks = c->stacks;
	m->tracer = (int)syscall(SYS_gettid);
	m->rc = stop_all(stacks->pid, &stacks->stall, &c->stop, m->err);
	if (m->rc == 0)
		m->rc = timed_read_run(&stacks->stall, copy, c, m->err);
	stop_release(&c->stop);
	return NULL;
}

/*
 * A thread that waits in the kernel cannot be detached, and would stand still once it leaves the
 * kernel. If the tracer ends, the kernel detaches its threads, so the tracer is a thread of its
 * own. If none can be created, this thread is the tracer.
 */
static int take_moment_in_thread(struct capture *c, struct cairn_err *err)
{
	struct moment m = {.c = c, .err = err};
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int why = pthread_create(&thread, NULL, take_moment, &m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (why) {
		take_moment(&m);
		return m.rc;
	}
	pthread_join(thread, NULL);
	stop_await_end_of(&c->stop, m.tracer);
	return m.rc;
}

static int capture(struct capture *c, struct cairn_err *err)
{
	struct cairn_stacks *stacks = c->stacks;
	struct stop *stop = &c->stop;
	int rc = timed_read_run(&stacks->stall, look, c, err);
	if (rc == 0)
		rc = take_moment_in_thread(c, err);
	if (rc == 0)
		rc = timed_read_run(&stacks->stall, walk_all, c, err);
	stacks->moment = (struct cairn_stacks_moment){.stopped_ns = stop->last_ns - stop->first_ns,
						      .is_consistent = stop->is_consistent &&
								       !c->has_read_live,
						      .copied_bytes = stacks->snapshot.n_bytes};
	return rc;
}

/* All may have ended. */
static int reader_of(int pid)
{
	int tid = target_living_thread(pid);

	return tid ? tid : pid;
}

/* By which thread memory is read may change: the main thread may end while others go on. */
static int choose_memory(struct cairn_stacks *stacks, struct cairn_err *err)
{
	int memory = stacks->has_new_maps ? stacks->mapped_by : reader_of(stacks->pid);
	if (memory == stacks->snapshot.pid && stacks->runtime)
		return 0;
	stacks->snapshot.pid = memory;
	code_runtime_free(stacks->runtime);
	stacks->runtime = NULL;
	return code_runtime_new(code_memory_of_process(memory), stacks->pid, EM_X86_64,
				&stacks->runtime, err);
}

static int take_once(struct cairn_stacks *stacks, struct cairn_err *err)
{
	struct capture *c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(err, "stacks");
	c->stacks = stacks;
	c->stop.with_vectors = stacks->has_vectors;
	stacks_clear(stacks);
	int rc = choose_memory(stacks, err);
	if (rc == 0)
		rc = timed_read_begin(&stacks->stall, err);
	if (rc == 0)
		rc = capture(c, err);
	timed_read_end(&stacks->stall);
	/* A read that was abandoned has no threads, and keeps its memory. */
	if (stacks->stall.is_left) {
		stacks->n_used = 0;
		return rc;
	}
	if (rc < 0)
		stacks_clear(stacks);
	stop_fini(&c->stop);
	free(c);
	return rc;
}

int cairn_stacks_again(struct cairn_stacks *stacks, struct cairn_err *err)
{
	if (!stacks->pid) {
		stacks_clear(stacks);
		return err_set(err, -EINVAL, "a core file has one moment only");
	}
	int rc = timed_read_check(&stacks->stall, err);
	if (rc < 0)
		return rc;
	rc = take_once(stacks, err);
	/* Only now it is known which other parts have to be read at one moment. */
	return rc == 0 && stacks->states.has_missed ? take_once(stacks, err) : rc;
}

/* Pages that stall are left out the next time; the read has to start again. */
static int open_once(const struct cairn_stacks_opts *opts, struct timed_read *stall,
		     struct cairn_stacks **ret, struct cairn_err *err)
{
	struct cairn_stacks *stacks;
	int rc = stacks_new(opts, &stacks, err);
	if (rc < 0)
		return rc;
	stacks->pid = stall->pid;
	stacks->stall = *stall;
	timed_read_note(stall, stacks->note);
	stacks->mapped_by = reader_of(stacks->pid);
	stacks->n_pages = n_pages_of(stacks->mapped_by);
	rc = code_space_open_pid(stacks->mapped_by, stacks->jobs, &stacks->space, err);
	/* Mappings need the permissions of tracing, but their error says less. */
	if (rc == -EACCES || rc == -EPERM)
		rc = stop_refuse(stacks->pid, EPERM, err);
	if (rc == 0) {
		stacks->has_new_maps = true;
		code_space_use_sidecars(stacks->space, &stacks->sidecars);
		rc = cairn_stacks_again(stacks, err);
	}
	*stall = stacks->stall;
	if (rc < 0)
		cairn_stacks_close(stacks);
	else
		*ret = stacks;
	return rc;
}

int cairn_stacks_open_pid(int pid, const struct cairn_stacks_opts *opts, struct cairn_stacks **ret,
			  struct cairn_err *err)
{
	struct timed_read stall = {.pid = pid};
	int rc;
	do
		rc = open_once(opts, &stall, ret, err);
	while (rc == -ETIMEDOUT && timed_read_may_retry(&stall));
	return rc;
}
