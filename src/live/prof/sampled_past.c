/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples come after the reports of what happened since. So the mappings that were replaced by then
 * are kept for some rounds, and those of images and processes that are gone.
 */
#include <errno.h>

#include "prof/sampled_impl.h"

int past_note_stale(struct sampled *p, const struct prof_known *k, uint64_t time_ns, uint64_t at,
		    uint64_t size)
{
	struct prof_stale stale = {k->pid, k->generation, time_ns, p->round, at, size};

	return k->generation && !VEC_ADD(&p->stale, stale) ? -ENOMEM : 0;
}

int past_note_replaced(struct sampled *p, const struct prof_known *k, uint64_t time_ns,
		       const struct code_mapping *by)
{
	uint64_t lo = by->lo, hi = by->hi;
	size_t i, end;
	int rc = 0;

	known_range(k, lo, hi, &i, &end);
	for (; i < end && rc == 0; i++) {
		const struct prof_mapping *m = &k->mappings.p[i];
		uint64_t from = m->lo > lo ? m->lo : lo, to = m->hi < hi ? m->hi : hi;
		if (m->at && from < to)
			rc = past_note_stale(p, k, time_ns, m->at + (from - m->lo), to - from);
		/* Memory by memory: the next look shows whether it has other code. */
		if (m->made && from < to && !code_is_anonymous(by))
			rc = past_note_stale(p, k, time_ns, PROF_RAW | from, to - from);
	}
	return rc;
}

int past_keep(struct sampled *p, struct prof_known *k, uint64_t time_ns)
{
	struct prof_past *past = VEC_PUSH(&p->past);

	if (!past)
		return -ENOMEM;
	past->pid = k->pid;
	past->since_ns = k->since_ns;
	past->until_ns = time_ns;
	past->round = p->round;
	past->mappings.p = k->mappings.p;
	past->mappings.n = k->mappings.n;
	past->mappings.cap = k->mappings.cap;
	k->mappings.p = NULL;
	k->mappings.n = k->mappings.cap = 0;
	k->since_ns = time_ns;
	return 0;
}

void past_forget(struct sampled *p)
{
	size_t to = 0;

	if (p->keeps_past)
		return;
	for (size_t i = 0; i < p->stale.n; i++)
		if (p->round - p->stale.p[i].round < SAMPLED_ROUNDS_KEPT)
			p->stale.p[to++] = p->stale.p[i];
	p->stale.n = to;
	to = 0;
	for (size_t i = 0; i < p->past.n; i++)
		if (p->round - p->past.p[i].round < SAMPLED_ROUNDS_KEPT)
			p->past.p[to++] = p->past.p[i];
		else
			VEC_FREE(&p->past.p[i].mappings);
	p->past.n = to;
}

void past_fini(struct sampled *p)
{
	for (size_t i = 0; i < p->past.n; i++)
		VEC_FREE(&p->past.p[i].mappings);
	VEC_FREE(&p->past);
	VEC_FREE(&p->stale);
}

static bool is_stale(const struct prof_stale *t, uint64_t frame)
{
	frame &= ~PROF_ASSUMED;
	/* A frame of no file has PROF_RAW, and so has the begin of what it is compared with. */
	return !(frame & PROF_KERNEL) && (!t->size || frame - t->at < t->size);
}

/* Whether the walk of @s may have used what is not there since then. */
static bool may_have_used(const struct prof_stale *t, const struct prof_sample *s)
{
	return t->pid == (int)s->pid && s->generation && s->generation <= t->generation &&
	       s->time_ns >= t->time_ns;
}

size_t sampled_sound(const struct sampled *p, const struct prof_sample *s, const uint64_t *frames,
		     size_t n)
{
	for (size_t i = 0; i < p->stale.n; i++) {
		const struct prof_stale *t = &p->stale.p[i];
		if (!may_have_used(t, s))
			continue;
		for (size_t k = 0; k < n; k++)
			if (is_stale(t, frames[k]))
				n = k;
	}
	return n;
}

uint64_t sampled_frame_at(const struct sampled *p, int pid, uint64_t at, uint64_t time_ns)
{
	const struct prof_known *k = sampled_find(p, pid);

	if (k && time_ns >= k->since_ns)
		return mappings_frame(k->mappings.p, k->mappings.n, at);
	for (size_t i = 0; i < p->past.n; i++) {
		const struct prof_past *past = &p->past.p[i];
		if (past->pid == pid && time_ns >= past->since_ns && time_ns < past->until_ns)
			return mappings_frame(past->mappings.p, past->mappings.n, at);
	}
	return 0;
}

uint64_t sampled_frame(const struct sampled *p, int pid, uint64_t at)
{
	return sampled_frame_at(p, pid, at, UINT64_MAX);
}
