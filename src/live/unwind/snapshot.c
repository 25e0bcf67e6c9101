/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copies made of a stopped process
 *
 * The used part of a stack goes from the stack pointer (less the red zone) to the end of the
 * mapping that it is in. It is seldom more than some kilobytes.
 *
 * A signal handler may run on an alternate stack. The one that it was entered from is the thread's
 * own: for the main thread [stack], for others the mapping that the thread pointer is in, as thread
 * libraries put it on top of the stack. How much of that is used is not known before the walk; but
 * the signal frame in the first copy holds the interrupted stack pointer. So the lowest word of the
 * copy that points into the own stack is where the second copy begins: an older, lower one only
 * makes it longer.
 *
 * On x86-64 thread libraries put the data that the thread pointer points to on top of a thread's
 * stack: some kilobytes that are no stack, which are left out.
 *
 * The mappings were read before the threads stood still, and a main thread's stack may have grown
 * since: a stack pointer in the gap below [stack] is in it.
 */
#include "unwind/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "code/timed_read.h"

enum {
	RED_ZONE = 128,       /* bytes below the stack pointer that a leaf function may use */
	MAX_STACK = 1 << 20,  /* of one thread: deeper ones are read as they are walked */
	MAX_COPY = 256 << 20, /* of all threads: a thousand of the above would be a gigabyte */
	MAX_IOV = 1024,       /* IOV_MAX of Linux */
	PAGE_BYTES = 4096,    /* the smallest ones */
	RSP = 7,
};

bool snapshot_read_live(int pid, uint64_t at, void *ret, size_t n)
{
	return timed_read_read(pid, at, ret, n) == (ssize_t)n;
}

static bool read_copy(const struct snapshot *s, const struct stack_copy *copy, uint64_t at,
		      void *ret, size_t n)
{
	if (at < copy->lo || at >= copy->hi || n > copy->hi - at)
		return false;
	const uint8_t *from = s->bytes + copy->off + (at - copy->lo);
	if (n == sizeof(uint64_t))
		memcpy(ret, from, sizeof(uint64_t));
	else
		memcpy(ret, from, n);
	return true;
}

bool snapshot_read(const struct snapshot *s, size_t thread, uint64_t at, void *ret, size_t n)
{
	return read_copy(s, &s->copies[thread], at, ret, n) ||
	       read_copy(s, &s->copies[s->n_threads + thread], at, ret, n);
}

bool snapshot_read_any(const struct snapshot *s, uint64_t at, void *ret, size_t n)
{
	for (size_t i = 0; i < 2 * s->n_threads; i++)
		if (read_copy(s, &s->copies[i], at, ret, n))
			return true;
	return false;
}

static void plan_part(const struct code_mapping *m, uint64_t sp, struct snapshot *s,
		      struct stack_copy *copy)
{
	*copy = (struct stack_copy){.off = s->n_bytes};
	if (!m || !m->is_readable || s->n_bytes > MAX_COPY)
		return;
	copy->lo = sp - m->lo < RED_ZONE ? m->lo : sp - RED_ZONE;
	copy->hi = m->hi - copy->lo > MAX_STACK ? copy->lo + MAX_STACK : m->hi;
	s->n_bytes += copy->hi - copy->lo;
}

/* The mapping that @sp is in; when it has grown, its present range. False when there is none. */
static bool find_stack(const struct code_maps *maps, uint64_t sp, struct code_mapping *ret)
{
	const struct code_mapping *m = code_maps_find(maps, sp);
	for (size_t i = 0; !m && i < maps->p.n; i++)
		if (maps->p.p[i].lo > sp) {
			if (strcmp(maps->p.p[i].path, "[stack]") != 0)
				return false;
			m = &maps->p.p[i];
		}
	if (!m)
		return false;
	*ret = *m;
	/* The red zone may be in a page that was never touched. */
	if (sp < m->lo)
		ret->lo = sp & ~(uint64_t)(PAGE_BYTES - 1);
	return true;
}

/* A stack that the thread pointer is in ends there. */
static void leave_out_thread(const struct stopped_thread *t, uint64_t sp, struct code_mapping *m)
{
	if (t->thread_pointer > sp && t->thread_pointer < m->hi)
		m->hi = t->thread_pointer;
}

/* Plans the copy of a thread's stack; none when its stack pointer is outside of all mappings. */
static void plan_copy(const struct code_maps *maps, const struct stopped_thread *t,
		      struct snapshot *s, struct stack_copy *copy)
{
	struct code_mapping m;
	uint64_t sp = t->regs.r[RSP];
	bool has_stack = t->has_regs && find_stack(maps, sp, &m);
	if (has_stack)
		leave_out_thread(t, sp, &m);
	plan_part(has_stack ? &m : NULL, sp, s, copy);
}

static const struct code_mapping *own_stack(const struct code_maps *maps,
					    const struct stopped_thread *t)
{
	if (!t->is_main)
		return code_maps_find(maps, t->thread_pointer);
	for (size_t i = maps->p.n; i-- > 0;)
		if (strcmp(maps->p.p[i].path, "[stack]") == 0)
			return &maps->p.p[i];
	return NULL;
}

/* The lowest word of a copy that points into @m; its end when none does. */
static uint64_t lowest_pointer(const struct snapshot *s, const struct stack_copy *copy,
			       const struct code_mapping *m)
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

/* For a thread that is on another stack than its own, plans the used part of its own. */
static void plan_own(const struct code_maps *maps, const struct stopped_thread *t,
		     struct snapshot *s, const struct stack_copy *copy, struct stack_copy *own)
{
	const struct code_mapping *m = t->has_regs ? own_stack(maps, t) : NULL;
	*own = (struct stack_copy){.off = s->n_bytes};
	if (!m || copy->lo == copy->hi || (copy->lo >= m->lo && copy->lo < m->hi))
		return;
	uint64_t sp = lowest_pointer(s, copy, m);
	struct code_mapping used = *m;
	leave_out_thread(t, sp, &used);
	if (sp < used.hi)
		plan_part(&used, sp, s, own);
}

/* A batch of copies; an unreadable one becomes none. */
static void read_batch(struct snapshot *s, struct stack_copy *copies, size_t n)
{
	struct iovec here[MAX_IOV], there[MAX_IOV];
	size_t bytes = 0;
	for (size_t i = 0; i < n; i++) {
		size_t size = copies[i].hi - copies[i].lo;
		here[i] = (struct iovec){s->bytes + copies[i].off, size};
		there[i] = (struct iovec){(void *)(uintptr_t)copies[i].lo, size};
		bytes += size;
	}
	if (timed_read_read_all(s->pid, here, there, n) == (ssize_t)bytes)
		return;
	for (size_t i = 0; i < n; i++)
		if (!snapshot_read_live(s->pid, copies[i].lo, s->bytes + copies[i].off,
					copies[i].hi - copies[i].lo))
			copies[i].hi = copies[i].lo;
}

static int read_copies(struct snapshot *s, struct stack_copy *copies, size_t n,
		       struct cairn_err *err)
{
	uint8_t *grown = realloc(s->bytes, s->n_bytes ? s->n_bytes : 1);
	if (!grown)
		return err_nomem(err, "copies of stacks");
	s->bytes = grown;
	for (size_t i = 0; i < n; i += MAX_IOV)
		read_batch(s, copies + i, n - i < MAX_IOV ? n - i : MAX_IOV);
	return 0;
}

int snapshot_take(struct snapshot *s, const struct code_maps *maps, const struct stop *stop,
		  struct cairn_err *err)
{
	size_t n = stop->threads.n;
	s->copies = calloc(n ? n * 2 : 1, sizeof(*s->copies));
	if (!s->copies)
		return err_nomem(err, "copies of stacks");
	s->n_threads = n;
	for (size_t i = 0; i < n; i++)
		plan_copy(maps, &stop->threads.p[i], s, &s->copies[i]);
	int rc = read_copies(s, s->copies, n, err);
	size_t before = s->n_bytes;
	for (size_t i = 0; rc == 0 && i < n; i++)
		plan_own(maps, &stop->threads.p[i], s, &s->copies[i], &s->copies[n + i]);
	return rc == 0 && s->n_bytes > before ? read_copies(s, s->copies + n, n, err) : rc;
}

void snapshot_fini(struct snapshot *s)
{
	free(s->copies);
	free(s->bytes);
	*s = (struct snapshot){0};
}

const void *snapshot_words(const struct snapshot *s, size_t i, size_t *ret_n)
{
	if (i >= s->n_threads * 2)
		return NULL;
	const struct stack_copy *copy = &s->copies[i];
	uint64_t pad = -copy->lo & 7, size = copy->hi - copy->lo;
	*ret_n = size > pad ? (size - pad) / sizeof(uint64_t) : 0;
	return s->bytes + copy->off + (*ret_n ? pad : 0);
}
