/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that are described by what registers hold in a loop. */
#ifndef SITES_COMPUTED_H
#define SITES_COMPUTED_H

#include "sites/event_count.h"

/*
 * computed_doubt - take back arguments of a copy made by GCC that are computed from registers in a
 * loop
 *
 * @function  the container, @g: its code; NULL: nothing is taken back
 * @scratch   has room for a mark per instruction
 * @b         built, a copy
 * @at        its site in the code; GRAPH_NONE: in none
 * Returns 0 or -ENOMEM.
 * Cost: reads the types of arguments that are computed; where there is one, the container's
 * instructions that the site leads to.
 */
int computed_doubt(struct graph *g, const struct dw_die *function,
		   struct event_count_scratch *scratch, struct built_site *b, uint32_t at);

#endif
