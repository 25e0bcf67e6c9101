/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeping stacks, and records that wait. */
#include "trace/stacks/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/code.h>

#include "base/err.h"
#include "trace/stacks/impl.h"
#include "trace/attach/traced.h"

_Static_assert((int)TRACE_EXACT_MAX == (int)WALK_EXACT_MAX, "both are the walk's");

/* Records that wait are taken as they are when they have more bytes. */
enum { MAX_WAITING = 16 << 20 };

/* Fewer that were taken are not worth moving the others. */
enum { WAITING_GAP = 1024 };

int stacks_want(struct cairn_trace *t, enum trace_stacks_of of, uint32_t max_frames,
		struct cairn_err *err)
{
	struct trace_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "stacks");
	s->of = of;
	s->max_frames = max_frames && max_frames < WALK_MAX_FRAMES ? max_frames : WALK_MAX_FRAMES;
	s->walker.files.done_fd = -1;
	arena_init(&s->arena);
	s->now = &s->generations[0];
	s->past = &s->generations[1];
	t->stacks = s;
	return 0;
}

void stacks_free(struct trace_stacks *s)
{
	if (!s)
		return;
	cairn_code_close(s->code);
	for (size_t i = s->next_waiting; i < s->waiting.n; i++)
		free(s->waiting.p[i].record);
	if (s->is_open)
		walker_fini(&s->walker);
	VEC_FREE(&s->waiting);
	stacks_forget(s);
	VEC_FREE(&s->made);
	VEC_FREE(&s->files);
	VEC_FREE(&s->shown_frames);
	VEC_FREE(&s->shown_list);
	map_fini(&s->made_ids);
	kernel_names_fini(&s->kernel_names);
	arena_fini(&s->arena);
	free(s);
}

int stacks_prepare(struct cairn_trace *t, struct cairn_err *err)
{
	struct trace_stacks *s = t->stacks;
	int e;

	s->is_open = true;
	e = walker_init(&s->walker, err);
	if (e == 0 && t->opts.argv)
		return walker_know_command(&s->walker, t->opts.exe, err);
	/* Programs that begin later may be over before their files are reported. */
	for (size_t i = 0; i < t->files.n && !t->n_traced && e == 0; i++)
		e = walker_know_command(&s->walker, t->files.p[i]->path, err);
	return e;
}

/* All processes, or those that are traced. */
static int add_processes(struct cairn_trace *t, struct cairn_err *err)
{
	struct walker *w = &t->stacks->walker;
	int e = 0;

	if (!t->n_traced)
		return walker_add_running(w, err);
	if (t->opts.argv)
		return walker_add_command(w, t->pid, err);
	for (size_t i = 0; i < t->n_traced && e == 0; i++)
		e = walker_add(w, t->traced[i].pid, err);
	return e;
}

int stacks_open(struct cairn_trace *t, const struct walker_maps *maps, int seen_fd,
		struct cairn_err *err)
{
	struct walker *w = &t->stacks->walker;
	int e = stacks_may_forget(t, seen_fd, err);

	e = e ? e : walker_open(w, maps, !t->n_traced, err);
	e = e ? e : add_processes(t, err);
	e = e ? e : walker_publish(w, err);
	return e ? e : walker_wait_for_tables(w, err);
}

int stacks_update(struct cairn_trace *t, struct cairn_err *err)
{
	return t->stacks ? walker_update(&t->stacks->walker, err) : 0;
}

int stacks_look(struct cairn_trace *t, struct cairn_err *err)
{
	return t->stacks ? walker_look(&t->stacks->walker, err) : 0;
}

/* ---- stacks ---- */

bool stacks_is_stack(const void *record, size_t size)
{
	return size >= sizeof(struct trace_stack) && !((const struct trace_stack *)record)->mark;
}

/* The stack of a key is shown when all is over: what is known of it is known now. */
static int settle(struct trace_stacks *s, struct stack_kept *k)
{
	uint64_t own[WALK_MAX_FRAMES];
	struct walk_taken taken = stacks_taken(k), now;
	int e = 0;

	if (walker_resolve(&s->walker, &taken, own, &now))
		memcpy(k->in->frames.p + k->first + k->n_kernel, own, now.n * sizeof(*own));
	k->n = k->n_kernel + now.n;
	k->end = now.end;
	k->is_settled = true;
	for (size_t i = k->n_kernel; i < k->n && e == 0; i++) {
		uint64_t frame = k->in->frames.p[k->first + i] & ~WALK_ASSUMED;
		uint64_t at = watched_address_at(&s->walker.processes, k->pid, frame, k->time_ns);

		k->in->addresses.p[k->first + i] = at;
		e = stacks_name_made(s, k->pid, frame);
	}
	return e;
}

static bool is_ours(const struct trace_stack *r, size_t size)
{
	return r->n_kernel <= WALK_MAX_KERNEL && r->n >= r->n_kernel &&
	       r->n - r->n_kernel <= WALK_MAX_FRAMES &&
	       size >= sizeof(*r) + r->n * sizeof(uint64_t) && r->end < WALK_N_ENDS &&
	       r->n_exact <= WALK_EXACT_MAX;
}

int stacks_take(struct cairn_trace *t, const void *record, size_t size, bool settles)
{
	struct trace_stacks *s = t->stacks;
	const struct trace_stack *r = record;
	struct stack_kept *k = NULL;
	struct walk_taken taken = {0};

	if (!is_ours(r, size)) {
		s->n_broken++;
		return 0;
	}
	int e = stacks_keep_one(s, r, settles, &k);
	if (e < 0 || !k)
		return e;
	stacks_check_kernel(t, k);
	if (settles && !k->is_settled && settle(s, k) < 0)
		return -ENOMEM;
	taken = stacks_taken(k);
	return walker_learn(&s->walker, &taken, taken.end, true);
}

/* ---- what waits ---- */

/* Those that were taken leave room for new ones, also while there is always one that waits. */
static void forget_taken(struct trace_stacks *s)
{
	if (s->next_waiting < WAITING_GAP || s->next_waiting < s->waiting.n / 2)
		return;
	s->waiting.n -= s->next_waiting;
	memmove(s->waiting.p, s->waiting.p + s->next_waiting, s->waiting.n * sizeof(*s->waiting.p));
	s->next_waiting = 0;
}

int stacks_make_wait(struct trace_stacks *s, const void *record, size_t size, int pid,
		     uint64_t time_ns)
{
	struct stack_waiting w = {NULL, size};
	bool must_wait =
		s->next_waiting < s->waiting.n || walker_is_uncertain(&s->walker, pid, time_ns);

	if (!must_wait || s->waiting_bytes >= MAX_WAITING)
		return 0;
	forget_taken(s);
	w.record = malloc(size);
	if (!w.record || !VEC_ADD(&s->waiting, w)) {
		free(w.record);
		return -ENOMEM;
	}
	memcpy(w.record, record, size);
	s->waiting_bytes += size;
	s->walker.processes.keeps_past = true;
	return 1;
}

/* What a record is of, for whether it is still uncertain. */
static bool is_uncertain(const struct trace_stacks *s, const void *record, size_t size)
{
	const struct trace_stack *stack = record;
	const struct trace_record *event = record;

	if (stacks_is_stack(record, size))
		return walker_is_uncertain(&s->walker, (int)stack->pid, stack->time_ns);
	return walker_is_uncertain(&s->walker, (int)event->pid, event->time_ns);
}

void *stacks_next_waiting(struct trace_stacks *s, bool all, size_t *ret_size)
{
	struct stack_waiting w;

	if (s->next_waiting == s->waiting.n) {
		s->next_waiting = s->waiting.n = 0;
		s->walker.processes.keeps_past = false;
		return NULL;
	}
	w = s->waiting.p[s->next_waiting];
	all |= s->waiting_bytes >= MAX_WAITING;
	if (!all && is_uncertain(s, w.record, w.size))
		return NULL;
	s->next_waiting++;
	s->waiting_bytes -= w.size;
	*ret_size = w.size;
	return w.record;
}
