/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Since when code made at run time is other code
 *
 * A look at what a process describes tells that something has changed since the look before, and not
 * when. But private memory that cannot be written gets other code only by a mapping or a change of
 * its protection, and the kernel reports each that makes it executable. So such code was what it was
 * described as until then. If nothing is reported, what has changed is the description.
 */
#include <errno.h>

#include "walk/watched_impl.h"

static bool overlaps(uint64_t lo, uint64_t hi, uint64_t other_lo, uint64_t other_hi)
{
	return lo < other_hi && other_lo < hi;
}

/* Whether it may get other code without a report. */
static bool is_writable(const struct walk_known *k, uint64_t lo, uint64_t hi)
{
	size_t i, end;

	known_range(k, lo, hi, &i, &end);
	for (; i < end; i++)
		if (k->mappings.p[i].is_writable)
			return true;
	return false;
}

/* Ranges that changed their description before, of this process. */
static int date(struct watched *p, const struct walk_known *k, uint64_t time_ns, uint64_t lo,
		uint64_t hi)
{
	int rc = 0;

	for (size_t i = 0; i < p->undated.n && rc == 0; i++) {
		const struct walk_undated *u = &p->undated.p[i];
		uint64_t from = u->lo > lo ? u->lo : lo, to = u->hi < hi ? u->hi : hi;
		struct walk_stale stale = {
			k->pid,          u->generation, time_ns,        p->round,
			WALK_RAW | from, to - from,     p->reported_ns,
		};
		if (u->pid == k->pid && from < to && !VEC_ADD(&p->stale, stale))
			rc = -ENOMEM;
	}
	return rc;
}

int dated_note(struct watched *p, struct walk_known *k, uint64_t time_ns,
	       const struct code_mapping *m)
{
	struct walk_remade r = {time_ns, m->lo, m->hi, false};
	int rc = date(p, k, time_ns, m->lo, m->hi);

	if (rc || !k->made)
		return rc;
	r.was_writable = is_writable(k, m->lo, m->hi);
	return VEC_ADD(&k->remade, r) ? 0 : -ENOMEM;
}

static int leave_undated(struct watched *p, const struct walk_known *k, uint64_t lo, uint64_t hi)
{
	struct walk_undated u = {k->pid, k->generation, p->round, lo, hi};

	return VEC_ADD(&p->undated, u) ? 0 : -ENOMEM;
}

int dated_stale(struct watched *p, const struct walk_known *k, uint64_t lo, uint64_t hi)
{
	uint64_t since = UINT64_MAX;
	bool by_time = p->reported_ns && !k->made->is_unsure && !is_writable(k, lo, hi);

	for (size_t i = 0; i < k->remade.n; i++) {
		const struct walk_remade *r = &k->remade.p[i];
		if (!overlaps(lo, hi, r->lo, r->hi))
			continue;
		by_time &= !r->was_writable;
		since = r->time_ns < since ? r->time_ns : since;
	}
	if (!by_time)
		since = k->made->looked_ns;
	if (since == UINT64_MAX)
		return leave_undated(p, k, lo, hi);
	return past_note_stale(p, k, since, WALK_RAW | lo, hi - lo);
}

void dated_forget(struct watched *p)
{
	size_t to = 0;

	if (p->keeps_past)
		return;
	for (size_t i = 0; i < p->undated.n; i++)
		if (p->round - p->undated.p[i].round < WATCHED_ROUNDS_KEPT)
			p->undated.p[to++] = p->undated.p[i];
	p->undated.n = to;
}
