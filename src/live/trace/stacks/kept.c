/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by their hashes, and forgetting them
 *
 * The kernel's program sends a stack once, and remembers some of those that it has sent. A trace
 * that runs for days meets any number of stacks. So there are two generations of them, present and
 * past. When the present one is full, the past one is forgotten, the present one becomes the past
 * one, and what the program remembers is erased. From then on it sends each stack again that a hit
 * has. An event that was in the ring before has its stack in the past generation, and is read long
 * before the next one is full. So no event misses a stack that was forgotten.
 *
 * A stack of a key is needed until the key's row is shown. There are at most as many as rows, and a
 * row's stack comes before its row. So without intervals the first ones are kept, and those that
 * come when there can be no new row are not. With intervals, generations change between two of
 * them.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "trace/aggregate/aggregate.h"
#include "trace/stacks/impl.h"

enum {
	/* The program remembers no more. */
	STACKS_MAX = TRACE_SEEN_SLOTS,
	/* 8 MiB: 64 frames of each, and many times more than those of most programs. */
	FRAMES_MAX = STACKS_MAX * 64,
	/* Hits of keys that may be on the way when there is no room for rows any more. */
	ON_THE_WAY = 4096,
};

#define SEEN_BYTES (TRACE_SEEN_SLOTS * 2 * sizeof(uint64_t))

static void forget(struct stack_generation *g)
{
	VEC_FREE(&g->list);
	VEC_FREE(&g->frames);
	VEC_FREE(&g->addresses);
	map_fini(&g->ids);
	*g = (struct stack_generation){0};
	map_init(&g->ids);
}

void stacks_forget(struct trace_stacks *s)
{
	forget(s->now);
	forget(s->past);
	map_fini(&s->now->ids);
	map_fini(&s->past->ids);
	if (s->seen)
		munmap(s->seen, SEEN_BYTES);
	s->seen = NULL;
}

int stacks_may_forget(struct cairn_trace *t, int seen_fd, struct cairn_err *err)
{
	struct trace_stacks *s = t->stacks;

	s->keeps_first = t->aggregates;
	s->max_kept = t->aggregates ? t->aggregates->max_keys + ON_THE_WAY : STACKS_MAX;
	s->seen = mmap(NULL, SEEN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, seen_fd, 0);
	if (s->seen != MAP_FAILED)
		return 0;
	s->seen = NULL;
	return err_set(err, -errno, "mapping the list of stacks: %s", strerror(errno));
}

static const struct stack_kept *find_in(const struct stack_generation *g, uint64_t id,
					uint64_t other)
{
	uint64_t key = id, number;

	for (; map_get(&g->ids, key, &number); key++) {
		const struct stack_kept *k = &g->list.p[number];
		if (k->id[0] == id && k->id[1] == other)
			return k;
	}
	return NULL;
}

const struct stack_kept *stacks_find(const struct trace_stacks *s, uint64_t id, uint64_t other)
{
	const struct stack_kept *k = find_in(s->now, id, other);

	return k ? k : find_in(s->past, id, other);
}

static int put_id(struct stack_generation *g, uint64_t id, uint64_t number)
{
	uint64_t other;

	while (map_get(&g->ids, id, &other))
		id++;
	return map_put(&g->ids, id, number);
}

struct walk_taken stacks_taken(const struct stack_kept *k)
{
	return (struct walk_taken){.pid = k->pid,
				   .time_ns = k->time_ns,
				   .generation = k->generation,
				   .end = k->end,
				   .n = k->n - k->n_kernel,
				   .frames = k->in->frames.p + k->first + k->n_kernel};
}

static int add(struct stack_generation *g, const struct trace_stack *r, bool settles,
	       struct stack_kept **ret)
{
	struct stack_kept k = {.id = {r->id[0], r->id[1]},
			       .time_ns = r->time_ns,
			       .pid = (int)r->pid,
			       .generation = r->generation,
			       .in = g,
			       .first = g->frames.n,
			       .n = r->n,
			       .n_kernel = r->n_kernel,
			       .end = r->end,
			       .n_exact = r->n_exact};

	memcpy(k.exact, r->exact, sizeof(k.exact));
	while (settles && g->addresses.n < g->frames.n + r->n)
		if (!VEC_PUSH(&g->addresses))
			return -ENOMEM;
	if (!VEC_APPEND(&g->frames, (const uint64_t *)(const void *)(r + 1), r->n) ||
	    !VEC_ADD(&g->list, k) || put_id(g, k.id[0], g->list.n - 1) < 0)
		return -ENOMEM;
	*ret = &g->list.p[g->list.n - 1];
	return 0;
}

static bool is_full(const struct trace_stacks *s, uint32_t n_more)
{
	return s->now->list.n >= s->max_kept ||
	       (!s->keeps_first && s->now->frames.n + n_more > FRAMES_MAX);
}

/* Of the processes that read their own code: names of code that is there are found again. */
static void forget_names(struct trace_stacks *s)
{
	if (s->keeps_first || s->made.n < STACKS_MAX)
		return;
	VEC_FREE(&s->made);
	map_fini(&s->made_ids);
	map_init(&s->made_ids);
	arena_fini(&s->arena);
	arena_init(&s->arena);
}

void stacks_turn(struct trace_stacks *s)
{
	struct stack_generation *oldest = s->past;

	forget(oldest);
	forget_names(s);
	s->past = s->now;
	s->now = oldest;
	if (s->seen)
		memset(s->seen, 0, SEEN_BYTES);
	s->n_turns++;
}

void stacks_begin_interval(struct trace_stacks *s)
{
	if (s->now->list.n >= STACKS_MAX)
		stacks_turn(s);
}

int stacks_keep_one(struct trace_stacks *s, const struct trace_stack *r, bool settles,
		    struct stack_kept **ret)
{
	*ret = (struct stack_kept *)(uintptr_t)find_in(s->now, r->id[0], r->id[1]);
	if (*ret)
		return 0;
	s->n_different += !find_in(s->past, r->id[0], r->id[1]);
	if (is_full(s, r->n) && s->keeps_first)
		return 0;
	if (is_full(s, r->n))
		stacks_turn(s);
	return add(s->now, r, settles, ret);
}
