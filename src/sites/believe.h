/* SPDX-License-Identifier: BSD-2-Clause */
/* What may be believed of what is said about a place's arguments: see the essay in function.c. */
#ifndef SITES_BELIEVE_H
#define SITES_BELIEVE_H

#include "sites/site.h"

/*
 * believe_args - put right what is said of the parameters that a site's own formals describe
 *
 * @b      built and judged
 * @arena  for locations that are changed
 * Returns 0 or -ENOMEM.
 * Cost: reads the types of parameters only where they decide.
 */
int believe_args(const struct site_env *env, struct built_site *b, struct arena *arena);

/* Clones: the convention is not that of the declared parameters. */
void believe_clone(const struct site_env *env, struct built_site *b);

/* Whether a parameter's type is a pointer or a reference, typedefs aside. Cost: reads its type. */
bool believe_is_pointer(const struct dw_unit *unit, dw_off formal);

/* Give a location that was available a reason why it is not. */
static inline void believe_not(struct cairn_location *loc, enum cairn_unavailable why)
{
	if (loc->why == CAIRN_AVAILABLE)
		loc->why = why;
}

#endif
