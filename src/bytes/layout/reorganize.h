/* SPDX-License-Identifier: BSD-2-Clause */
/* Reorganising: shared by its files. */
#ifndef LAYOUT_REORGANIZE_H
#define LAYOUT_REORGANIZE_H

#include <cairn/layout/reorganize.h>

#include "layout/order.h"

/* A struct, ready to be searched. */
struct model {
	struct cairn_layout *l;
	const struct cairn_type *t;
	struct arena arena;
	struct order order;
	/*
	 * Members stand in order.rec in the order of their groups, which is the struct's but where
	 * members are kept together that were not. Number in rec -> number in the struct.
	 */
	uint32_t *member_of;
	bool gaps;          /* there are bit-fields without names, which the types do not tell */
	uint32_t *order_of; /* while the result is made: number in the result -> number in rec */
};

/* Form the groups of a filled model; as cairn_layout_reorganize(). */
int model_groups(struct model *model, const struct cairn_reorganize_opts *opts,
		 struct cairn_err *err);

/* A member as the rules see it: size, alignment, attributes. */
struct cairn_place_member layout_member_as_placed(struct cairn_layout *l,
						  const struct cairn_member *in,
						  const struct cairn_layout_member *m);

#endif
