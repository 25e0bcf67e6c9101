/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that is followed. Its mappings are sorted, so a change costs the search for its place.
 */
#include <errno.h>
#include <string.h>

#include "base/search.h"
#include "walk/watched_impl.h"

struct walk_known *watched_find(const struct watched *p, int pid)
{
	uint64_t i;

	return map_get(&p->ids, (uint64_t)pid, &i) && i ? &p->list.p[i - 1] : NULL;
}

int known_mark(struct watched *p, struct walk_known *k)
{
	if (k->is_changed)
		return 0;
	k->is_changed = true;
	return VEC_ADD(&p->changed, (size_t)(k - p->list.p)) ? 0 : -ENOMEM;
}

void watched_leave_out(struct watched *p, struct walk_known *k)
{
	p->n_left_out += !k->is_left_out;
	k->is_left_out = true;
}

void known_range(const struct walk_known *k, uint64_t lo, uint64_t hi, size_t *ret_first,
		 size_t *ret_end)
{
	const struct walk_mapping *m = k->mappings.p;

	*ret_first = SEARCH((size_t)0, k->mappings.n, i, m[i].hi <= lo);
	*ret_end = SEARCH(*ret_first, k->mappings.n, i, m[i].lo < hi);
}

/* @with instead of [first, end). */
static int replace(struct walk_known *k, size_t first, size_t end, const struct walk_mapping *with,
		   size_t n)
{
	size_t after = k->mappings.n - end;

	if (!VEC_RESERVE(&k->mappings, n))
		return -ENOMEM;
	struct walk_mapping *m = k->mappings.p;
	if (after)
		memmove(m + first + n, m + end, after * sizeof(*m));
	if (n)
		memcpy(m + first, with, n * sizeof(*m));
	k->mappings.n = first + n + after;
	return 0;
}

int known_put(struct walk_known *k, struct walk_mapping m)
{
	size_t at = SEARCH((size_t)0, k->mappings.n, i, k->mappings.p[i].lo <= m.lo);

	return replace(k, at, at, &m, 1);
}

/* The part of @m after @hi. */
static struct walk_mapping rest_of(struct walk_mapping m, uint64_t hi)
{
	m.at += m.at ? hi - m.lo : 0;
	m.lo = hi;
	return m;
}

int known_cut_out(struct walk_known *k, uint64_t lo, uint64_t hi)
{
	struct walk_mapping left[2];
	size_t first, end, n = 0;

	known_range(k, lo, hi, &first, &end);
	if (first == end)
		return 0;
	struct walk_mapping m = k->mappings.p[first];
	if (m.lo < lo) {
		m.hi = lo;
		left[n++] = m;
	}
	m = k->mappings.p[end - 1];
	if (m.hi > hi)
		left[n++] = rest_of(m, hi);
	return replace(k, first, end, left, n);
}

uint64_t mappings_frame(const struct walk_mapping *mappings, size_t n, uint64_t at)
{
	size_t i = SEARCH((size_t)0, n, k, mappings[k].lo <= at);
	const struct walk_mapping *m = i ? &mappings[i - 1] : NULL;

	return m && at < m->hi && m->at ? m->at + (at - m->lo) : 0;
}
