/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near names
 *
 * Distance is the number of letters inserted, deleted, replaced or swapped with a neighbour (optimal
 * string alignment), which covers slips of the finger. A name that contains what was typed, as
 * "tcache" in "tcache_get", counts as near as well, behind those.
 */
#include "loc/suggest.h"

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

void suggest_offer(struct suggestions *s, const char *name)
{
	/* Itself, as a declaration: it was looked for, and has no code here. */
	unsigned int rank = strcmp(name, s->wanted) ? rank_of(s->wanted, strnlen(s->wanted, LEN_MAX), name) : ~0u;
	if (rank == ~0u || (s->n == s->max && rank >= s->ranks[s->n - 1]))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->names[i], name))
			return;
	size_t at = s->n < s->max ? s->n++ : s->n - 1;
	for (; at > 0 && s->ranks[at - 1] > rank; at--) {
		s->ranks[at] = s->ranks[at - 1];
		s->names[at] = s->names[at - 1];
	}
	s->ranks[at] = rank;
	s->names[at] = name;
}

size_t suggest_names(const struct dw_func_index *index, const char *wanted, const char **ret, size_t max)
{
	struct suggestions s = {.wanted = wanted, .max = max < SUGGEST_MAX ? max : SUGGEST_MAX};
	for (size_t i = 0; i < index->n && s.max; i++)
		if (index->p[i].name)
			suggest_offer(&s, index->p[i].name);
	memcpy(ret, s.names, s.n * sizeof(*ret));
	return s.n;
}
