/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near names
 *
 * The distance covers slips of the finger. A name that contains the typed text, as "tcache_get"
 * contains "tcache", is near as well, but ranks after those.
 */
#include "base/near.h"

#include <stdbool.h>
#include <string.h>

enum {
	LEN_MAX = CAIRN_NEAR_LENGTH_MAX,
	CONTAINS = 100, /* rank of a name that merely contains it, plus the name's length */
};

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;
	return m < c ? m : c;
}

unsigned int cairn_near_distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int rows[3][LEN_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	n = n < LEN_MAX ? n : LEN_MAX;
	m = m < LEN_MAX ? m : LEN_MAX;
	for (size_t j = 0; j <= m; j++)
		last[j] = before[j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = min3(last[j] + 1, row[j - 1] + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
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

unsigned int near_limit(size_t n)
{
	return n < 4 ? 1 : n < 9 ? 2 : 3;
}

unsigned int near_contains(const char *typed, size_t n, const char *name)
{
	return n >= 3 && strstr(name, typed) ? CONTAINS + (unsigned int)strnlen(name, LEN_MAX)
					     : NEAR_NOT;
}

unsigned int near_rank(const char *typed, const char *name)
{
	size_t n = strnlen(typed, LEN_MAX), m = strnlen(name, LEN_MAX);
	unsigned int limit = near_limit(n), d = (n > m ? n - m : m - n) <= limit
							? cairn_near_distance(typed, n, name, m)
							: NEAR_NOT;
	return d <= limit ? d : near_contains(typed, n, name);
}

static bool is_nearer(const struct near_names *near, const char *name, unsigned int rank,
		      size_t than)
{
	return rank < near->ranks[than] ||
	       (rank == near->ranks[than] && strcmp(name, near->names[than]) < 0);
}

void near_offer(struct near_names *near, const char *name, unsigned int rank)
{
	bool is_full = near->n == near->max;
	if (!*name || !near->max || rank == NEAR_NOT ||
	    (is_full && !is_nearer(near, name, rank, near->n - 1)))
		return;
	for (size_t i = 0; i < near->n; i++)
		if (!strcmp(near->names[i], name))
			return;
	size_t at = is_full ? near->n - 1 : near->n++;
	for (; at > 0 && is_nearer(near, name, rank, at - 1); at--) {
		near->ranks[at] = near->ranks[at - 1];
		near->names[at] = near->names[at - 1];
	}
	near->ranks[at] = rank;
	near->names[at] = name;
}
