/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/gaps.h"

#include <errno.h>
#include <string.h>

static bool is_before(const struct gap *a, uint32_t block, uint32_t first)
{
	return a->block < block || (a->block == block && a->first < first);
}

static bool touches(const struct gap *a, uint32_t block, uint32_t first)
{
	return a->block == block && a->first + a->n == first;
}

static void remove_at(struct gaps *g, size_t i)
{
	struct gap *at = g->list.p + i;

	memmove(at, at + 1, (--g->list.n - i) * sizeof(*at));
}

/* @add is part of the gap before or after it, or of both. */
static bool join(struct gaps *g, size_t i, const struct gap *add)
{
	struct gap *before = i ? &g->list.p[i - 1] : NULL;
	struct gap *after = i < g->list.n ? &g->list.p[i] : NULL;

	before = before && touches(before, add->block, add->first) ? before : NULL;
	after = after && touches(add, after->block, after->first) ? after : NULL;
	if (before) {
		before->n += add->n + (after ? after->n : 0);
		if (after)
			remove_at(g, i);
	} else if (after) {
		after->first = add->first;
		after->n += add->n;
	}
	return before || after;
}

int gaps_give(struct gaps *g, uint32_t block, uint32_t first, uint32_t n)
{
	struct gap add = {block, first, n};
	size_t i = g->list.n;

	if (!n)
		return 0;
	while (i && !is_before(&g->list.p[i - 1], block, first))
		i--;
	if (join(g, i, &add))
		return 0;
	if (!VEC_PUSH(&g->list))
		return -ENOMEM;
	memmove(g->list.p + i + 1, g->list.p + i, (g->list.n - 1 - i) * sizeof(add));
	g->list.p[i] = add;
	return 0;
}

static struct gap *smallest_for(const struct gaps *g, uint32_t n)
{
	struct gap *best = NULL;

	for (size_t i = 0; i < g->list.n; i++)
		if (g->list.p[i].n >= n && (!best || g->list.p[i].n < best->n))
			best = &g->list.p[i];
	return best;
}

bool gaps_take(struct gaps *g, uint32_t n, uint32_t *ret_block, uint32_t *ret_first)
{
	struct gap *from = n ? smallest_for(g, n) : NULL;

	if (!from)
		return false;
	*ret_block = from->block;
	*ret_first = from->first;
	from->first += n;
	from->n -= n;
	if (!from->n)
		remove_at(g, (size_t)(from - g->list.p));
	return true;
}

void gaps_fini(struct gaps *g)
{
	VEC_FREE(&g->list);
}
