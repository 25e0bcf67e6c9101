/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which descriptions of a site's arguments are believed: see the essay in function.c. */
#ifndef SITES_ARGS_CHECK_H
#define SITES_ARGS_CHECK_H

#include "sites/site.h"

/*
 * args_check_args - correct the descriptions of the parameters that a site's own formals give
 *
 * @b      built and analysed
 * @arena  for locations that are changed
 * Returns 0 or -ENOMEM.
 * Cost: reads the types of parameters only where they decide.
 */
int args_check_args(const struct site_env *env, struct built_site *b, struct arena *arena);

/* The same in the middle of a function, where a body's arguments are described, too. */
void args_check_now(const struct site_env *env, struct built_site *b);

/*
 * Makes values of a clone, or of a function without a known convention, unavailable if they may
 * have changed.
 */
void args_check_clone(const struct site_env *env, struct built_site *b, bool is_clone);

/* Whether the code shows that an argument is there at a body's entry. */
static inline bool args_check_is_proven(const struct built_site *b, uint32_t arg)
{
	return arg < b->formals.n && b->proven[arg];
}

/* Give a location that was available a reason why it is not. */
static inline void arg_reject(struct cairn_location *loc, enum cairn_unavailable why)
{
	if (loc->why == CAIRN_AVAILABLE)
		loc->why = why;
}

#endif
