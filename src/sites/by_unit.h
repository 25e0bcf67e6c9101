/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of many functions, unit by unit
 *
 * A function of a header has copies in a thousand units. What is asked about a copy is answered by its unit: the line table,
 * the code around it, the other copies there. So a unit is what a worker takes, with the part of each function that is in it.
 */
#ifndef SITES_BY_UNIT_H
#define SITES_BY_UNIT_H

#include "sites/group.h"

/* Entries [from, from + n) of a group, and its rows [first_row, first_row + n_rows): those of one unit. */
struct group_part {
	uint32_t group, from, n, first_row, n_rows;
};

struct by_unit {
	struct group_part *parts; /* by unit, then by group */
	uint32_t *first;          /* per unit, and one more: its first part */
	uint32_t *units;          /* n_units that have parts, largest first, so that no worker ends late with one */
	size_t n_units;
};

/* Returns 0 or -ENOMEM; by_unit_fini() in both cases. */
int by_unit_make(const struct site_env *env, const struct groups *groups, struct by_unit *ret);
void by_unit_fini(struct by_unit *b);

#endif
