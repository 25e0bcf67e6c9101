/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a number that the code passes to a copy, and constants that are described instead of it. */
#ifndef SITES_DIFFERENCE_H
#define SITES_DIFFERENCE_H

#include "sites/event_count.h"

/*
 * difference_doubt - reject constants of a GCC-made copy if the code computes another argument
 *
 * @code      the file that the graph was made of
 * @function  the container, @g: its code; NULL: nothing is rejected
 * @scratch   has room for a mark per instruction
 * @b         built, a copy
 * @at        its site in the code; GRAPH_NONE: in none
 * Returns 0 or -ENOMEM.
 * Cost: nothing for a copy without constants. Otherwise decodes some instructions around the site;
 * if they have a difference that no argument describes, adds the cost of event_count_is_in_loop().
 */
int difference_doubt(const struct elf *code, struct graph *g, const struct dw_die *function,
		     struct event_count_scratch *scratch, struct built_site *b, uint32_t at);

#endif
