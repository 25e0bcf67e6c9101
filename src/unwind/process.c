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
 * A walk that leads out of the copies reads the memory of the process instead, which runs again; that is told by
 * is_consistent.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "unwind/stacks.h"
#include "unwind/stop.h"

struct reading {
	const struct snapshot *snapshot;
	size_t thread;
	struct thread_walk *to;
	bool has_read_live;
};

static bool read_memory(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	struct reading *r = ctx;
	if (snapshot_read(r->snapshot, r->thread, at.v, ret, n))
		return true;
	r->has_read_live = true;
	if (r->to->n_then > r->to->walk.frames.n)
		r->to->n_then = r->to->walk.frames.n;
	return snapshot_read_live(r->snapshot->pid, at.v, ret, n);
}

static int not_stopped(const struct stopped_thread *t, struct thread_walk *to)
{
	bool is_gone = !t->state || strchr("ZX", t->state);
	to->walk.end = is_gone ? CAIRN_WALK_GONE : CAIRN_WALK_NOT_STOPPED;
	if (is_gone)
		snprintf(to->walk.why, sizeof(to->walk.why), "the thread ended before it could be stopped");
	else if (t->state == 'D')
		snprintf(to->walk.why, sizeof(to->walk.why),
			 "the thread waits in the kernel and cannot be stopped (state D; /proc/%d/stack)", t->tid);
	else
		snprintf(to->walk.why, sizeof(to->walk.why), "the thread did not stop (state %c)", t->state);
	return 0;
}

static int walk_thread(struct cairn_stacks *stacks, const struct stopped_thread *t, struct reading *r,
		       struct cairn_err *err)
{
	struct thread_walk *to = stacks_add(stacks, t->tid, t->comm);
	if (!to)
		return err_nomem(err, "the threads of a process");
	to->stack.stopped_ns = t->stopped_ns;
	if (!t->has_regs)
		return not_stopped(t, to);
	r->to = to;
	const struct walk_target target = {.machine = EM_X86_64, .space = stacks->space, .runtime = stacks->runtime,
					   .code = code_memory_of_process(r->snapshot->pid), .states = &stacks->states,
					   .read = read_memory, .ctx = r};
	return walk_run(&to->walk, &target, &t->regs, stacks->max_frames, err);
}

/* What is said of code made at run time, as far as the stacks may lead there. */
static int mark_code(struct cairn_stacks *stacks, const struct stop *stop, struct cairn_err *err)
{
	const void *words;
	size_t n;
	int rc = code_runtime_mark(stacks->runtime, err);
	for (size_t i = 0; rc == 0 && i < stop->threads.n; i++)
		rc = code_runtime_catch(stacks->runtime, &stop->threads.p[i].regs.pc.v, 1, err);
	for (size_t i = 0; rc == 0 && (words = snapshot_words(&stacks->snapshot, i, &n)); i++)
		rc = code_runtime_catch(stacks->runtime, words, n, err);
	return rc;
}

/* Whether a thread is where the mappings have no code: it was made since they were read. */
static bool mappings_are_old(const struct cairn_stacks *stacks, const struct stop *stop)
{
	const struct code_maps *maps = code_space_maps(stacks->space);
	for (size_t i = 0; i < stop->threads.n; i++) {
		const struct stopped_thread *t = &stop->threads.p[i];
		const struct code_mapping *m = t->has_regs ? code_maps_find(maps, t->regs.pc.v) : NULL;
		if (t->has_regs && (!m || !m->is_executable))
			return true;
	}
	return code_runtime_is_ahead(stacks->runtime);
}

/* JITs map code while they are looked at; that is seldom, so that it is done once more with the threads standing still. */
static int look_again(struct cairn_stacks *stacks, const struct stop *stop, struct cairn_err *err)
{
	int rc = code_space_refresh_pid(stacks->space, stacks->snapshot.pid, err);
	if (rc == 0)
		rc = code_runtime_prepare(stacks->runtime, stacks->space, err);
	return rc < 0 ? rc : mark_code(stacks, stop, err);
}

/* The mappings as they are now. */
static int renew_maps(struct cairn_stacks *stacks, struct cairn_err *err)
{
	bool is_new = stacks->has_new_maps;
	stacks->has_new_maps = false;
	return is_new ? 0 : code_space_refresh_pid(stacks->space, stacks->snapshot.pid, err);
}

static int capture(struct cairn_stacks *stacks, struct stop *stop, struct cairn_err *err)
{
	struct snapshot *s = &stacks->snapshot;
	struct reading reading = {.snapshot = s};
	const struct code_memory code = code_memory_of_process(s->pid);
	int rc = renew_maps(stacks, err);
	if (rc == 0)
		rc = code_runtime_prepare(stacks->runtime, stacks->space, err);
	if (rc == 0)
		rc = stop_all(stacks->pid, stop, err);
	if (rc == 0)
		rc = snapshot_take(s, code_space_maps(stacks->space), stop, err);
	if (rc == 0)
		rc = mark_code(stacks, stop, err);
	if (rc == 0 && mappings_are_old(stacks, stop))
		rc = look_again(stacks, stop, err);
	if (rc == 0)
		borrow_catch(&stacks->states, &code);
	stop_release(stop);
	if (rc == 0)
		rc = code_runtime_settle(stacks->runtime, err);
	for (size_t i = 0; rc == 0 && i < stop->threads.n; i++) {
		reading.thread = i;
		rc = walk_thread(stacks, &stop->threads.p[i], &reading, err);
	}
	if (rc == 0)
		stacks_take_note(stacks);
	stacks->moment = (struct cairn_stacks_moment){.stopped_ns = stop->last_ns - stop->first_ns,
						      .is_consistent = stop->is_consistent && !reading.has_read_live,
						      .copied_bytes = s->n_bytes};
	return rc;
}

/* By which thread memory is read may change: the main thread may end while others go on. */
static int choose_memory(struct cairn_stacks *stacks, struct cairn_err *err)
{
	int memory = stop_memory_of(stacks->pid);
	if (memory == stacks->snapshot.pid && stacks->runtime)
		return 0;
	stacks->snapshot.pid = memory;
	code_runtime_free(stacks->runtime);
	stacks->runtime = NULL;
	return code_runtime_new(code_memory_of_process(memory), stacks->pid, EM_X86_64, &stacks->runtime, err);
}

static int take_once(struct cairn_stacks *stacks, struct cairn_err *err)
{
	struct stop stop = {0};
	stacks_clear(stacks);
	int rc = choose_memory(stacks, err);
	if (rc == 0)
		rc = capture(stacks, &stop, err);
	if (rc < 0)
		stacks_clear(stacks);
	stop_fini(&stop);
	return rc;
}

int cairn_stacks_again(struct cairn_stacks *stacks, struct cairn_err *err)
{
	if (!stacks->pid) {
		stacks_clear(stacks);
		return err_set(err, -EINVAL, "a core file has one moment only");
	}
	int rc = take_once(stacks, err);
	/* It is known only now what else has to be read of a moment. */
	return rc == 0 && stacks->states.has_missed ? take_once(stacks, err) : rc;
}

int cairn_stacks_of_process(int pid, const struct cairn_stacks_opts *opts, struct cairn_stacks **ret,
			    struct cairn_err *err)
{
	struct cairn_stacks *stacks;
	int rc = stacks_new(opts, &stacks, err);
	if (rc < 0)
		return rc;
	stacks->pid = pid;
	rc = code_space_open_pid(stop_memory_of(pid), stacks->jobs, &stacks->space, err);
	if (rc == 0) {
		stacks->has_new_maps = true;
		code_space_use_packs(stacks->space, &stacks->packs);
		rc = cairn_stacks_again(stacks, err);
	}
	if (rc < 0)
		cairn_stacks_close(stacks);
	else
		*ret = stacks;
	return rc;
}
