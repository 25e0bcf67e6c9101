/* SPDX-License-Identifier: BSD-2-Clause */
/* A number that the code passes to a copy, and constants that are described in its place. */
#ifndef SITES_DIFFERENCE_H
#define SITES_DIFFERENCE_H

#include "sites/event_count.h"

/*
 * difference_doubt - take back constants of a copy made by GCC where the code computes another
 * argument
 *
 * @code      what the graph was made of
 * @function  the container, @g: its code; NULL: nothing is taken back
 * @scratch   has room for a mark per instruction
 * @b         built, a copy
 * @at        its site in the code; GRAPH_NONE: in none
 * Returns 0 or -ENOMEM.
 * Cost: nothing for a copy without constants. Else a decode of some instructions around the site;
 * where they have a difference that nobody describes, what event_count_is_in_loop() costs.
 */
int difference_doubt(const struct elf *code, struct graph *g, const struct dw_die *function,
		     struct event_count_scratch *scratch, struct built_site *b, uint32_t at);

#endif
