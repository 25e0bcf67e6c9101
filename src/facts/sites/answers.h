/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that a provider found once: a caller that tests whether it can answer then asks for the
 * answer
 */
#ifndef SITES_ANSWERS_H
#define SITES_ANSWERS_H

#include <string.h>

#include <cairn/sites.h>

#include "base/arena.h"
#include "base/vec.h"

struct answer {
	const char *spec;
	struct cairn_function_list list;
};

struct answers {
	VEC(struct answer) v; /* the owner frees it */
};

/* The answer to @spec; NULL: it was not asked yet. */
static inline const struct cairn_function_list *answers_find(const struct answers *a,
							     const char *spec)
{
	for (size_t i = 0; i < a->v.n; i++)
		if (!strcmp(a->v.p[i].spec, spec))
			return &a->v.p[i].list;
	return NULL;
}

/* Keeps the answer, whose functions stay the caller's; without memory it is found anew. */
static inline void answers_keep(struct answers *a, struct arena *arena, const char *spec,
				const struct cairn_function_list *list)
{
	struct answer answer = {.spec = arena_strdup(arena, spec), .list = *list};
	if (answer.spec)
		(void)!VEC_ADD(&a->v, answer);
}

#endif
