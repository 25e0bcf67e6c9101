/* SPDX-License-Identifier: BSD-2-Clause */
/* Rejects integers that are computed from registers in a loop. */
#ifndef SITES_COMPUTED_H
#define SITES_COMPUTED_H

#include "sites/event_count.h"

/*
 * computed_doubt - reject arguments of a GCC-made copy that are computed from registers in a loop
 *
 * @function  the container, @g: its code; NULL: nothing is rejected
 * @scratch   has room for a mark per instruction
 * @b         built, a copy
 * @at        its site in the code; GRAPH_NONE: in none
 * Returns 0 or -ENOMEM.
 * Cost: reads the types of computed arguments. If there is one, also passes over the container's
 * instructions that the site leads to.
 */
int computed_doubt(struct graph *g, const struct dw_die *function,
		   struct event_count_scratch *scratch, struct built_site *b, uint32_t at);

#endif
