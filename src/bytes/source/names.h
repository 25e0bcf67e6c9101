/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which types of a list have a name
 *
 * One query reads the whole list: a table would cost more than it saves. A lock file queries
 * thousands of names, one after the other, so the second query makes the table. Its key is the last
 * component of a name: "Job" finds "Job" and "ns::Job". The caller compares the whole name.
 */
#ifndef SOURCE_NAMES_H
#define SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/err.h>

#include "base/map.h"

struct names {
	size_t n_asked;
	uint32_t *next;   /* NULL: not made; by place, the next place of the same key; 0: none */
	struct map first; /* hash of a key: its first place */
};

/* The name at a place; NULL: none. */
typedef const char *names_at(const void *ctx, size_t place);

/* Places of a list, which are counted from 1. */
struct names_walk {
	const struct names *names; /* NULL: all places are walked */
	size_t at, end;            /* at: 0 before the first */
	size_t ahead;              /* with names: the place after at */
};

/*
 * Start to walk over those places of a list of @n that may have @name, in their order; NULL walks
 * over all.
 * @at gives the names, which do not change. Returns 0 or -ENOMEM.
 */
int names_find(struct names *names, const char *name, size_t n, names_at *at, const void *ctx,
	       struct names_walk *ret, struct cairn_err *err);

/* On to the next place; false when there is none. Inline, as a query may walk over all places. */
static inline bool names_next(struct names_walk *walk)
{
	if (!walk->names)
		return walk->at++ < walk->end;
	walk->at = walk->ahead;
	walk->ahead = walk->at ? walk->names->next[walk->at] : 0;
	return walk->at;
}

void names_fini(struct names *names);

#endif
