/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a function on the stack was entered by its caller's call; the essay is in reentry.c. */
#ifndef SITES_REENTRY_H
#define SITES_REENTRY_H

#include "sites/scopes_at.h"

/*
 * reentry_is_excluded - whether a function, once called, can reach its own entry again only by
 * another call
 *
 * @active    the code of all functions
 * @function  out of line, an entry of the index
 * Returns 1 when that is certain; 0; -ENOMEM.
 * Cost: a pass over the function's instructions, and over those of the functions that it and they
 * jump to.
 */
int reentry_is_excluded(const struct site_env *env, const struct active *active, uint32_t function);

#endif
