/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near names
 *
 * The distance is the number of letters inserted, deleted, replaced or swapped with a neighbour
 * (optimal string alignment), which covers slips of the finger. A name that contains the typed
 * text, as "tcache_get" contains "tcache", is near as well, but ranks after those.
 *
 * For templates only the names before the arguments are compared like that. Arguments can be
 * spelled in several ways (spelling.h), and those of another instance are no slip of the finger. So
 * an instance with other arguments is near, but ranks after one with the same arguments.
 */
#include "sites/suggest.h"

#include <string.h>

#include "sites/spelling.h"

enum {
	/* Longer names are compared by their beginning only. */
	LEN_MAX = 63,
	OTHER_ARGUMENTS = 10, /* rank of an instance with other arguments, plus their distance */
	CONTAINS = 100,       /* rank of a name that merely contains it, plus the extra length */
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

/* The number of characters before a template's arguments. */
static size_t identifier(const char *name)
{
	bool is_operator = !strncmp(name, "operator", 8);
	size_t n = is_operator ? strlen(name) : strcspn(name, "<");
	return n < LEN_MAX ? n : LEN_MAX;
}

/* Between arguments, "" or "<...>", in one spelling. */
static unsigned int argument_distance(const char *a, const char *b)
{
	char spelled[2][512];
	if (spelling_of(a, spelled[0], sizeof(spelled[0])) &&
	    spelling_of(b, spelled[1], sizeof(spelled[1]))) {
		a = spelled[0];
		b = spelled[1];
	}
	unsigned int d = distance(a, strnlen(a, LEN_MAX), b, strnlen(b, LEN_MAX));
	return d || !strcmp(a, b) ? d : 1;
}

/* Smaller is nearer; UINT_MAX is not near. */
static unsigned int rank_of(const char *wanted, const char *name)
{
	size_t n = identifier(wanted), m = identifier(name);
	unsigned int limit = n < 4 ? 1 : n < 9 ? 2 : 3;
	if ((n > m ? n - m : m - n) <= limit) {
		unsigned int d = distance(wanted, n, name, m);
		unsigned int other = d <= limit && wanted[n] == '<'
					     ? argument_distance(wanted + n, name + m)
					     : 0;
		if (d <= limit)
			return other ? d + OTHER_ARGUMENTS + other : d;
	}
	if (n >= 3 && strstr(name, wanted))
		return CONTAINS + (unsigned int)strnlen(name, LEN_MAX);
	return ~0u;
}

/* Among equally near names the first in the alphabet wins, in whatever order they are offered. */
static bool is_nearer(const struct suggestions *s, const char *name, unsigned int rank, size_t than)
{
	return rank < s->ranks[than] ||
	       (rank == s->ranks[than] && strcmp(name, s->names[than]) < 0);
}

void suggest_offer(struct suggestions *s, const char *name)
{
	unsigned int rank = rank_of(s->wanted, name);
	bool is_itself = !rank && (identifier(name) < LEN_MAX || !strcmp(name, s->wanted));
	/*
	 * As a declaration: it was looked for, and has no code here. In another scope it was not.
	 */
	if (is_itself && !s->is_scoped)
		return;
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

/* The name of an entry: its own, or that of its declaration or abstract instance. */
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
		const char *name =
			f->flags & (DW_FUNC_HAS_CODE | DW_FUNC_INLINED) ? name_of(index, f) : NULL;
		if (name)
			suggest_offer(s, name);
	}
}
