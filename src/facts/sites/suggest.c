/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Near names of functions, by slips of the finger (base/near.h)
 *
 * For templates only the names before the arguments are compared like that. Arguments can be
 * spelled in several ways (spelling.h), and those of another instance are no slip of the finger. So
 * an instance with other arguments is near, but ranks after one with the same arguments.
 */
#include "sites/suggest.h"

#include <string.h>

#include "sites/spelling.h"

enum {
	LEN_MAX = CAIRN_NEAR_LENGTH_MAX,
	OTHER_ARGUMENTS = 10, /* rank of an instance with other arguments, plus their distance */
};

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
	unsigned int d = cairn_near_distance(a, strnlen(a, LEN_MAX), b, strnlen(b, LEN_MAX));
	return d || !strcmp(a, b) ? d : 1;
}

/* As near_rank(). */
static unsigned int rank_of(const char *wanted, const char *name)
{
	size_t n = identifier(wanted), m = identifier(name);
	unsigned int limit = near_limit(n);
	if ((n > m ? n - m : m - n) <= limit) {
		unsigned int d = cairn_near_distance(wanted, n, name, m);
		unsigned int other = d <= limit && wanted[n] == '<'
					     ? argument_distance(wanted + n, name + m)
					     : 0;
		if (d <= limit)
			return other ? d + OTHER_ARGUMENTS + other : d;
	}
	return near_contains(wanted, n, name);
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
	near_offer(&s->near, name, rank);
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
	for (size_t i = 0; i < index->n && s->near.max; i++) {
		const struct dw_func *f = &index->p[i];
		const char *name =
			f->flags & (DW_FUNC_HAS_CODE | DW_FUNC_INLINED) ? name_of(index, f) : NULL;
		if (name)
			suggest_offer(s, name);
	}
}
