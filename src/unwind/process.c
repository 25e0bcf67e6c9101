/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a running process
 *
 *	mappings are read           running
 *	threads are stopped         \
 *	registers                    | stopped
 *	used parts of the stacks     |   one process_vm_readv() for hundreds of them
 *	threads are released        /
 *	the copies are walked       running; unwind tables are made when their file first occurs
 *
 * The used part of a stack goes from the stack pointer (less the red zone) to the end of the mapping that it is in. It is
 * seldom more than some kilobytes.
 *
 * A signal handler may run on an alternate stack. The one that it was entered from is the thread's own: for the main thread
 * [stack], for others the mapping that the thread pointer is in, as thread libraries put it on top of the stack. How much
 * of that is used is not known before the walk; but the signal frame in the first copy holds the interrupted stack
 * pointer. So the lowest word of the copy that points into the own stack is where the second copy begins: an
 * older, lower one only makes it longer.
 *
 * A walk that leads out of the copies reads the memory of the process instead, which runs again; that is told by
 * is_consistent.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "unwind/stacks.h"
#include "unwind/stop.h"

enum {
	RED_ZONE = 128,		  /* bytes below the stack pointer that a leaf function may use */
	MAX_STACK = 1 << 20,	  /* of one thread: deeper ones are read as they are walked */
	MAX_COPY = 256 << 20,	  /* of all threads: a thousand of the above would be a gigabyte */
	MAX_IOV = 1024,		  /* IOV_MAX of Linux */
};

/* The copied part of a stack: [lo, hi), its bytes at @off of the buffer. */
struct copy {
	uint64_t lo, hi;
	size_t off;
};

struct snapshot {
	int pid; /* by which memory is read: stop_memory_of() */
	struct copy *copies; /* one per thread, then as many of the own stacks; most of those are empty */
	uint8_t *bytes;
	size_t n_bytes;
	/* of the walk that is going on */
	const struct copy *stack, *own;
	bool has_read_live;
};

static bool read_live(int pid, uint64_t at, void *ret, size_t n)
{
	struct iovec here = {ret, n}, there = {(void *)(uintptr_t)at, n};
	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

static bool read_copy(const struct snapshot *s, const struct copy *copy, uint64_t at, void *ret, size_t n)
{
	if (at < copy->lo || at >= copy->hi || n > copy->hi - at)
		return false;
	memcpy(ret, s->bytes + copy->off + (at - copy->lo), n);
	return true;
}

static bool read_memory(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	struct snapshot *s = ctx;
	if (read_copy(s, s->stack, at.v, ret, n) || read_copy(s, s->own, at.v, ret, n))
		return true;
	s->has_read_live = true;
	return read_live(s->pid, at.v, ret, n);
}

static void plan_part(const struct code_mapping *m, uint64_t sp, struct snapshot *s, struct copy *copy)
{
	*copy = (struct copy){.off = s->n_bytes};
	if (!m || !m->is_readable || s->n_bytes > MAX_COPY)
		return;
	copy->lo = sp - m->lo < RED_ZONE ? m->lo : sp - RED_ZONE;
	copy->hi = m->hi - copy->lo > MAX_STACK ? copy->lo + MAX_STACK : m->hi;
	s->n_bytes += copy->hi - copy->lo;
}

/* What is to be copied of a thread's stack; nothing when its stack pointer is nowhere. */
static void plan_copy(const struct code_maps *maps, const struct stopped_thread *t, struct snapshot *s,
		      struct copy *copy)
{
	uint64_t sp = t->regs.r[7];
	plan_part(t->is_stopped ? code_maps_find(maps, sp) : NULL, sp, s, copy);
}

static const struct code_mapping *own_stack(const struct code_maps *maps, const struct stopped_thread *t)
{
	if (!t->is_main)
		return code_maps_find(maps, t->thread_pointer);
	for (size_t i = maps->p.n; i-- > 0;)
		if (strcmp(maps->p.p[i].path, "[stack]") == 0)
			return &maps->p.p[i];
	return NULL;
}

/* The lowest word of a copy that points into @m; its end when none does. */
static uint64_t lowest_pointer(const struct snapshot *s, const struct copy *copy, const struct code_mapping *m)
{
	uint64_t lowest = m->hi;
	for (uint64_t at = (copy->lo + 7) & ~UINT64_C(7); at + 8 <= copy->hi; at += 8) {
		uint64_t word;
		memcpy(&word, s->bytes + copy->off + (at - copy->lo), sizeof(word));
		if (word >= m->lo && word < lowest)
			lowest = word;
	}
	return lowest;
}

/* Of a thread that is on another stack than its own, the used part of that. */
static void plan_own(const struct code_maps *maps, const struct stopped_thread *t, struct snapshot *s,
		     const struct copy *copy, struct copy *own)
{
	const struct code_mapping *m = t->is_stopped ? own_stack(maps, t) : NULL;
	*own = (struct copy){.off = s->n_bytes};
	if (!m || copy->lo == copy->hi || (copy->lo >= m->lo && copy->lo < m->hi))
		return;
	uint64_t sp = lowest_pointer(s, copy, m);
	if (sp < m->hi)
		plan_part(m, sp, s, own);
}

/* A batch of copies; what could not be read is none. */
static void read_batch(struct snapshot *s, struct copy *copies, size_t n)
{
	struct iovec here[MAX_IOV], there[MAX_IOV];
	size_t bytes = 0;
	for (size_t i = 0; i < n; i++) {
		size_t size = copies[i].hi - copies[i].lo;
		here[i] = (struct iovec){s->bytes + copies[i].off, size};
		there[i] = (struct iovec){(void *)(uintptr_t)copies[i].lo, size};
		bytes += size;
	}
	if (process_vm_readv(s->pid, here, n, there, n, 0) == (ssize_t)bytes)
		return;
	for (size_t i = 0; i < n; i++)
		if (!read_live(s->pid, copies[i].lo, s->bytes + copies[i].off, copies[i].hi - copies[i].lo))
			copies[i].hi = copies[i].lo;
}

static int read_copies(struct snapshot *s, struct copy *copies, size_t n, struct cairn_err *err)
{
	uint8_t *grown = realloc(s->bytes, s->n_bytes ? s->n_bytes : 1);
	if (!grown)
		return err_nomem(err, "copies of stacks");
	s->bytes = grown;
	for (size_t i = 0; i < n; i += MAX_IOV)
		read_batch(s, copies + i, n - i < MAX_IOV ? n - i : MAX_IOV);
	return 0;
}

static int take_snapshot(const struct code_maps *maps, const struct stop *stop, struct snapshot *s,
			 struct cairn_err *err)
{
	size_t n = stop->threads.n;
	s->copies = calloc(n ? n * 2 : 1, sizeof(*s->copies));
	if (!s->copies)
		return err_nomem(err, "copies of stacks");
	for (size_t i = 0; i < n; i++)
		plan_copy(maps, &stop->threads.p[i], s, &s->copies[i]);
	int rc = read_copies(s, s->copies, n, err);
	size_t before = s->n_bytes;
	for (size_t i = 0; rc == 0 && i < n; i++)
		plan_own(maps, &stop->threads.p[i], s, &s->copies[i], &s->copies[n + i]);
	return rc == 0 && s->n_bytes > before ? read_copies(s, s->copies + n, n, err) : rc;
}

static int walk_thread(struct cairn_stacks *stacks, struct snapshot *s, const struct stopped_thread *t,
		       const struct copy *copy, const struct copy *own, struct cairn_err *err)
{
	struct thread_walk *to = stacks_add(stacks, t->tid, t->comm);
	if (!to)
		return err_nomem(err, "the threads of a process");
	to->stack.stopped_ns = t->stopped_ns;
	if (!t->is_stopped) {
		to->walk.end = CAIRN_WALK_GONE;
		snprintf(to->walk.why, sizeof(to->walk.why), "the thread ended before it could be stopped");
		return 0;
	}
	s->stack = copy;
	s->own = own;
	return walk_run(&to->walk, stacks->space, EM_X86_64, &t->regs, read_memory, s, stacks->max_frames, err);
}

static int capture(struct cairn_stacks *stacks, struct stop *stop, struct snapshot *s, struct cairn_err *err)
{
	int rc = code_space_refresh_pid(stacks->space, s->pid, err);
	if (rc == 0)
		rc = stop_all(stacks->pid, stop, err);
	if (rc == 0)
		rc = take_snapshot(code_space_maps(stacks->space), stop, s, err);
	stop_release(stop);
	for (size_t i = 0; rc == 0 && i < stop->threads.n; i++)
		rc = walk_thread(stacks, s, &stop->threads.p[i], &s->copies[i], &s->copies[stop->threads.n + i], err);
	stacks->moment = (struct cairn_stacks_moment){.stopped_ns = stop->last_ns - stop->first_ns,
						      .is_consistent = stop->is_consistent && !s->has_read_live,
						      .copied_bytes = s->n_bytes};
	return rc;
}

int cairn_stacks_again(struct cairn_stacks *stacks, struct cairn_err *err)
{
	struct snapshot s = {.pid = stop_memory_of(stacks->pid)};
	struct stop stop = {0};
	stacks_clear(stacks);
	if (!stacks->pid)
		return err_set(err, -EINVAL, "a core file has one moment only");
	int rc = capture(stacks, &stop, &s, err);
	if (rc < 0)
		stacks_clear(stacks);
	stop_fini(&stop);
	free(s.copies);
	free(s.bytes);
	return rc;
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
	if (rc == 0)
		rc = cairn_stacks_again(stacks, err);
	if (rc < 0)
		cairn_stacks_close(stacks);
	else
		*ret = stacks;
	return rc;
}
