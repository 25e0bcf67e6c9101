/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near names
 *
 * Distance is the number of letters inserted, deleted, replaced or swapped with a neighbour (optimal
 * string alignment), which covers slips of the finger. A name that contains what was typed, as
 * "tcache" in "tcache_get", counts as near as well, behind those.
 */
#include "sites/suggest.h"

#include <string.h>

enum {
	/* Longer names are compared by their beginning only. */
	LEN_MAX = 63,
	CONTAINS = 100, /* rank of a name that merely contains it, plus the extra length */
};

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;
	return m < c ? m : c;
}

static unsigned int distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int rows[3][LEN_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = before[j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		unsigned int *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[m];
}

/* Smaller is nearer; UINT_MAX is not near. */
static unsigned int rank_of(const char *wanted, size_t n, const char *name)
{
	size_t m = strnlen(name, LEN_MAX);
	unsigned int limit = n < 4 ? 1 : n < 9 ? 2 : 3;
	if ((n > m ? n - m : m - n) <= limit) {
		unsigned int d = distance(wanted, n, name, m);
		if (d <= limit)
			return d;
	}
	if (n >= 3 && strstr(name, wanted))
		return CONTAINS + (unsigned int)m;
	return ~0u;
}

/* Of equally near ones the first in the alphabet, in whatever order they are offered. */
static bool is_nearer(const struct suggestions *s, const char *name, unsigned int rank, size_t than)
{
	return rank < s->ranks[than] || (rank == s->ranks[than] && strcmp(name, s->names[than]) < 0);
}

void suggest_offer(struct suggestions *s, const char *name)
{
	/* Itself, as a declaration: it was looked for, and has no code here. */
	unsigned int rank = strcmp(name, s->wanted) ? rank_of(s->wanted, strnlen(s->wanted, LEN_MAX), name) : ~0u;
	if (!*name || rank == ~0u || (s->n == s->max && !is_nearer(s, name, rank, s->n - 1)))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->names[i], name))
			return;
	size_t at = s->n < s->max ? s->n++ : s->n - 1;
	for (; at > 0 && is_nearer(s, name, rank, at - 1); at--) {
		s->ranks[at] = s->ranks[at - 1];
		s->names[at] = s->names[at - 1];
	}
	s->ranks[at] = rank;
	s->names[at] = name;
}

void suggest_symbol(struct suggestions *s, const char *name)
{
	if (strncmp(name, "_Z", 2) && strncmp(name, "_R", 2))
		suggest_offer(s, name);
}

/* The name that an entry has itself, or from what it is a definition or a copy of. */
static const char *name_of(const struct dw_func_index *index, const struct dw_func *f)
{
	for (int depth = 0; !f->name && f->origin && depth < DW_ORIGIN_MAX; depth++) {
		uint32_t i = dw_func_index_find(index, f->origin);
		if (i == DW_FUNC_NONE)
			return NULL;
		f = &index->p[i];
	}
	return f->name;
}

void suggest_index(struct suggestions *s, const struct dw_func_index *index)
{
	for (size_t i = 0; i < index->n && s->max; i++) {
		const struct dw_func *f = &index->p[i];
		const char *name = f->flags & (DW_FUNC_HAS_CODE | DW_FUNC_INLINED) ? name_of(index, f) : NULL;
		if (name)
			suggest_offer(s, name);
	}
}
