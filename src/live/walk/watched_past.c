/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks come after the reports of what happened since. So the mappings that were replaced by then
 * are kept for some rounds, and those of images and processes that are gone.
 */
#include <errno.h>

#include "walk/watched_impl.h"

int past_note_stale(struct watched *p, const struct walk_known *k, uint64_t time_ns, uint64_t at,
		    uint64_t size)
{
	struct walk_stale stale = {k->pid, k->generation, time_ns,       p->round,
				   at,     size,          p->reported_ns};

	return k->generation && !VEC_ADD(&p->stale, stale) ? -ENOMEM : 0;
}

/*
 * Whether @by has other bytes of files where it replaces @m. /proc/PID/maps may have been read
 * between the mapping and its report, which then tells what is known.
 */
static bool is_other(const struct walk_mapping *m, const struct code_mapping *by, uint64_t by_at)
{
	return !by_at || by_at - by->lo != m->at - m->lo;
}

int past_note_replaced(struct watched *p, const struct walk_known *k, uint64_t time_ns,
		       const struct code_mapping *by, uint64_t by_at)
{
	uint64_t lo = by->lo, hi = by->hi;
	size_t i, end;
	int rc = 0;

	known_range(k, lo, hi, &i, &end);
	for (; i < end && rc == 0; i++) {
		const struct walk_mapping *m = &k->mappings.p[i];
		uint64_t from = m->lo > lo ? m->lo : lo, to = m->hi < hi ? m->hi : hi;
		if (m->at && from < to && is_other(m, by, by_at))
			rc = past_note_stale(p, k, time_ns, m->at + (from - m->lo), to - from);
		/* Memory by memory: the next look shows whether it has other code. */
		if (m->made && from < to && !code_is_anonymous(by))
			rc = past_note_stale(p, k, time_ns, WALK_RAW | from, to - from);
	}
	return rc;
}

int past_keep(struct watched *p, struct walk_known *k, uint64_t time_ns)
{
	struct walk_past *past = VEC_PUSH(&p->past);

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

/*
 * A look finds other code before the kernel is told. A walk in between uses the rows of before, and
 * is certain after the next look only, which may come many rounds later.
 */
static bool is_needed(const struct watched *p, struct walk_stale *t)
{
	const struct walk_known *k = watched_find(p, t->pid);

	if (k && k->made && k->made->looked_ns <= t->noted_ns)
		t->round = p->round;
	return p->round - t->round < WATCHED_ROUNDS_KEPT;
}

void past_forget(struct watched *p)
{
	size_t to = 0;

	if (p->keeps_past)
		return;
	for (size_t i = 0; i < p->stale.n; i++)
		if (is_needed(p, &p->stale.p[i]))
			p->stale.p[to++] = p->stale.p[i];
	p->stale.n = to;
	to = 0;
	for (size_t i = 0; i < p->past.n; i++)
		if (p->round - p->past.p[i].round < WATCHED_ROUNDS_KEPT)
			p->past.p[to++] = p->past.p[i];
		else
			VEC_FREE(&p->past.p[i].mappings);
	p->past.n = to;
}

void past_fini(struct watched *p)
{
	for (size_t i = 0; i < p->past.n; i++)
		VEC_FREE(&p->past.p[i].mappings);
	VEC_FREE(&p->past);
	VEC_FREE(&p->stale);
}

static bool is_stale(const struct walk_stale *t, uint64_t frame)
{
	frame &= ~WALK_ASSUMED;
	/* A frame of no file has WALK_RAW, and so has the begin of what it is compared with. */
	return !(frame & WALK_KERNEL) && (!t->size || frame - t->at < t->size);
}

/* Whether the walk may have used what is not there since then. */
static bool may_have_used(const struct walk_stale *t, const struct walk_taken *taken)
{
	return t->pid == taken->pid && taken->generation && taken->generation <= t->generation &&
	       taken->time_ns >= t->time_ns;
}

size_t watched_sound(const struct watched *p, const struct walk_taken *taken)
{
	size_t n = taken->n;

	for (size_t i = 0; i < p->stale.n; i++) {
		const struct walk_stale *t = &p->stale.p[i];
		if (!may_have_used(t, taken))
			continue;
		for (size_t k = 0; k < n; k++)
			if (is_stale(t, taken->frames[k]))
				n = k;
	}
	return n;
}

/* The mappings of a process at a time. */
static const struct walk_mapping *mappings_at(const struct watched *p, int pid, uint64_t time_ns,
					      size_t *ret_n)
{
	const struct walk_known *k = watched_find(p, pid);

	*ret_n = 0;
	if (k && time_ns >= k->since_ns) {
		*ret_n = k->mappings.n;
		return k->mappings.p;
	}
	for (size_t i = 0; i < p->past.n; i++) {
		const struct walk_past *past = &p->past.p[i];
		if (past->pid != pid || time_ns < past->since_ns || time_ns >= past->until_ns)
			continue;
		*ret_n = past->mappings.n;
		return past->mappings.p;
	}
	return NULL;
}

uint64_t watched_frame_at(const struct watched *p, int pid, uint64_t at, uint64_t time_ns)
{
	size_t n;
	const struct walk_mapping *mappings = mappings_at(p, pid, time_ns, &n);

	return mappings_frame(mappings, n, at);
}

uint64_t watched_address_at(const struct watched *p, int pid, uint64_t frame, uint64_t time_ns)
{
	size_t n;
	const struct walk_mapping *m = mappings_at(p, pid, time_ns, &n);

	for (size_t i = 0; i < n; i++)
		if (m[i].at && frame - m[i].at < m[i].hi - m[i].lo)
			return m[i].lo + (frame - m[i].at);
	return 0;
}

uint64_t watched_frame(const struct watched *p, int pid, uint64_t at)
{
	return watched_frame_at(p, pid, at, UINT64_MAX);
}
