/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splits the entries of many functions by unit
 *
 * A function of a header has copies in a thousand units. The facts about a copy come from its unit:
 * the line table, the code around it, the other copies there. So a worker takes a unit, with the
 * part of each function that is in it.
 */
#ifndef SITES_BY_UNIT_H
#define SITES_BY_UNIT_H

#include "base/keyed.h"
#include "sites/entry_rows.h"

/* Units with entries of groups, and where these are in the index. */
struct unit_entries {
	uint32_t unit, n; /* n of [from, to) are of a group */
	uint32_t from, to;
};

struct by_unit {
	const struct groups *groups;
	const struct entry_rows *rows;
	/* n_units, largest first, so that no worker ends late with one */
	struct unit_entries *units;
	size_t n_units;
};

/* @rows  stay the caller's. Returns 0 or -ENOMEM; by_unit_fini() in both cases. */
int by_unit_make(const struct site_env *env, const struct groups *groups,
		 const struct entry_rows *rows, struct by_unit *ret);
void by_unit_fini(struct by_unit *b);

/*
 * The parts of groups that are in one unit: for each group its number, its entries and rows there,
 * and whether the rows identify entries.
 */
struct unit_parts {
	VEC(struct group) v;
	VEC(uint32_t) entries;   /* theirs */
	VEC(struct keyed) order; /* entries by group, while parts are made */
};

/*
 * The parts of the @i-th unit, in order of group; replaces the content of @ret. Returns 0 or
 * -ENOMEM.
 */
int by_unit_parts(const struct by_unit *b, size_t i, struct unit_parts *ret);
void unit_parts_fini(struct unit_parts *p);

#endif
