/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/prof.h>

static int64_t add_stack(struct prof_samples *s, struct prof_stack stack, const uint64_t *frames)
{
	stack.first = s->frames.n;
	if (!VEC_APPEND(&s->frames, frames, stack.n) || !VEC_ADD(&s->stacks, stack) ||
	    map_put(&s->stack_ids, stack.hash, s->stacks.n - 1) < 0)
		return -ENOMEM;
	return (int64_t)s->stacks.n - 1;
}

/* NULL: a stack that is not known. @of: the window that has it. */
static const struct prof_stack *find_stack(const struct prof_samples *s, uint64_t hash,
					   const struct prof_samples **of)
{
	uint64_t number;

	for (*of = s; *of; *of = (*of)->before)
		if (map_get(&(*of)->stack_ids, hash, &number))
			return &(*of)->stacks.p[number];
	return NULL;
}

/* The number of a stack; -1: its frames were never there; -ENOMEM. */
static int64_t stack_of(struct prof_samples *s, const struct prof_sample *r)
{
	const struct prof_samples *of;
	const struct prof_stack *known = find_stack(s, r->stack, &of);
	struct prof_stack stack = {.hash = r->stack,
				   .n = r->n_frames,
				   .n_kernel = r->n_kernel,
				   .end = r->end,
				   .site = r->site};

	if (known && of == s)
		return known - s->stacks.p;
	if (known)
		return add_stack(s, *known, of->frames.p + known->first);
	return r->is_new ? add_stack(s, stack, (const uint64_t *)(r + 1)) : -1;
}

static int keep_moment(struct prof_samples *s, uint32_t number, const struct prof_sample *r,
		       uint64_t weight)
{
	struct prof_moment m = {number, r->cpu, r->time_ns, weight};

	if (!s->keeps_moments)
		return 0;
	if (s->moments.n < PROF_MOMENTS_MAX)
		return VEC_ADD(&s->moments, m) ? 0 : -ENOMEM;
	s->n_without_moment++;
	return 0;
}

/* Whether it has a weight, after the sum of the others. */
static uint8_t state_of(struct prof_samples *s, const struct prof_sample *r)
{
	if (r->state != PROF_WEIGHED || !s->keeps_sum)
		return r->state;
	if (r->weight > INT64_MAX - s->sum)
		return PROF_TOO_LARGE;
	s->sum += r->weight;
	return PROF_WEIGHED;
}

/* Samples that are counted as one have all this in common. */
struct prof_same {
	uint32_t stack, pid, tid, state;
	char comm[16];
};

static bool is_same(const struct prof_count *c, const struct prof_same *k)
{
	return c->stack == k->stack && c->pid == k->pid && c->tid == k->tid &&
	       c->state == k->state && !memcmp(c->comm, k->comm, sizeof(c->comm));
}

/* The count of such samples, new or not; NULL: out of memory. */
static struct prof_count *count_of(struct prof_samples *s, const struct prof_same *k)
{
	uint64_t key = map_hash_bytes(k, sizeof(*k)), number;
	struct prof_count *c;

	for (; map_get(&s->count_ids, key, &number); key++)
		if (is_same(&s->counts.p[number], k))
			return &s->counts.p[number];
	c = VEC_PUSH(&s->counts);
	if (!c || map_put(&s->count_ids, key, s->counts.n - 1) < 0)
		return NULL;
	*c = (struct prof_count){
		.stack = k->stack, .pid = k->pid, .tid = k->tid, .state = (uint8_t)k->state};
	memcpy(c->comm, k->comm, sizeof(c->comm));
	return c;
}

static int count(struct prof_samples *s, uint32_t stack, const struct prof_sample *r)
{
	uint8_t state = state_of(s, r);
	uint64_t weight = state == PROF_WEIGHED ? r->weight : 0;
	struct prof_same same = {stack, r->pid, r->tid, state, ""};
	struct prof_count *c;

	memcpy(same.comm, r->comm, strnlen(r->comm, sizeof(same.comm) - 1));
	c = count_of(s, &same);
	if (!c)
		return -ENOMEM;
	c->n++;
	c->weight += weight;
	s->n_states[state]++;
	return keep_moment(s, (uint32_t)(c - s->counts.p), r, weight);
}

static bool is_ours(const struct prof_sample *r, size_t size)
{
	return size >= sizeof(*r) && r->end < CAIRN_PROF_N_ENDS && r->state < PROF_N_STATES &&
	       r->n_kernel <= WALK_MAX_KERNEL && r->n_frames <= WALK_MAX_KERNEL + WALK_MAX_FRAMES &&
	       (size - sizeof(*r)) / sizeof(uint64_t) >= r->n_frames &&
	       (!r->is_new || r->n_kernel <= r->n_frames);
}

int samples_add(struct prof_samples *s, const void *record, size_t size)
{
	const struct prof_sample *r = record;
	int64_t stack = is_ours(r, size) ? stack_of(s, r) : -1;

	if (stack == -ENOMEM)
		return -ENOMEM;
	if (stack < 0) {
		s->n_broken++;
		return 0;
	}
	if (r->state == PROF_STACK_ONLY)
		return 0;
	s->n++;
	return count(s, (uint32_t)stack, r) < 0 ? -ENOMEM : 1;
}

const uint64_t *samples_frames(const struct prof_samples *s, const void *record, size_t size,
			       size_t *ret_n)
{
	const struct prof_sample *r = record;
	const struct prof_samples *of;
	const struct prof_stack *stack;

	*ret_n = 0;
	if (!is_ours(r, size))
		return NULL;
	if (r->is_new) {
		*ret_n = r->n_frames;
		return (const uint64_t *)(r + 1);
	}
	stack = find_stack(s, r->stack, &of);
	if (!stack)
		return NULL;
	*ret_n = stack->n;
	return of->frames.p + stack->first;
}

int samples_add_as(struct prof_samples *s, const void *record, size_t size, const uint64_t *frames,
		   size_t n, uint8_t end)
{
	struct {
		struct prof_sample sample;
		uint64_t frames[WALK_MAX_KERNEL + WALK_MAX_FRAMES];
	} other;
	uint64_t parts[3];
	size_t all;

	if (!samples_frames(s, record, size, &all) || n > all)
		return 0;
	/* The kernel's program takes the stack for known from now on. */
	if (stack_of(s, record) == -ENOMEM)
		return -ENOMEM;
	memcpy(&other.sample, record, sizeof(other.sample));
	memcpy(other.frames, frames, n * sizeof(*frames));
	other.sample.n_frames = (uint16_t)n;
	other.sample.n_kernel = other.sample.n_kernel > n ? (uint16_t)n : other.sample.n_kernel;
	other.sample.end = end;
	other.sample.is_new = 1;
	/* Not one of the kernel's hashes, which are odd. */
	parts[0] = map_hash_bytes(other.frames, n * sizeof(*frames));
	parts[1] = (uint64_t)end << 16 | other.sample.n_kernel;
	parts[2] = other.sample.site;
	other.sample.stack = map_hash_bytes(parts, sizeof(parts)) & ~UINT64_C(1);
	return samples_add(s, &other, sizeof(other.sample) + n * sizeof(*frames));
}

int samples_next_window(struct prof_samples *s)
{
	struct prof_samples *before = calloc(1, sizeof(*before));

	if (!before)
		return -ENOMEM;
	if (s->before)
		samples_fini(s->before);
	free(s->before);
	*before = *s;
	before->before = NULL;
	*s = (struct prof_samples){.n = before->n,
				   .n_broken = before->n_broken,
				   .keeps_moments = before->keeps_moments,
				   .keeps_sum = before->keeps_sum,
				   .before = before};
	memcpy(s->n_states, before->n_states, sizeof(s->n_states));
	/* Only its stacks are of use now. */
	VEC_FREE(&before->counts);
	VEC_FREE(&before->moments);
	map_fini(&before->count_ids);
	return 0;
}

void samples_fini(struct prof_samples *s)
{
	if (s->before)
		samples_fini(s->before);
	free(s->before);
	VEC_FREE(&s->stacks);
	VEC_FREE(&s->frames);
	VEC_FREE(&s->counts);
	VEC_FREE(&s->moments);
	map_fini(&s->stack_ids);
	map_fini(&s->count_ids);
}
