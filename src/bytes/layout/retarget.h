/* SPDX-License-Identifier: BSD-2-Clause */
/* Retargeting: retarget.c goes through types, deduce.c finds the attributes of one struct. */
#ifndef LAYOUT_RETARGET_H
#define LAYOUT_RETARGET_H

#include <cairn/layout/retarget.h>

#include "base/vec.h"

/* On both ABIs: [0] the one that it was compiled for, [1] the other. */
struct two {
	uint64_t size[2];
	uint32_t align[2];
};

/* A member to be placed: of the struct, or a filler that deducing has put between two. */
struct planned {
	struct cairn_place_member place[2];
	bool filler;
	uint32_t written; /* its alignment by debug information; 0: none */
	uint64_t wanted;  /* bit offset that it has on the first ABI */
};

struct plan {
	VEC(struct planned) v;
	bool is_union;
	uint64_t size;      /* bytes that it has */
	uint32_t aligned;   /* written down */
	bool holds_aligned; /* so is one of a member or its type */
	/* members whose written alignment is their type's: it may or may not have been requested */
	uint32_t n_as_type;
	struct cairn_deduced deduced;
};

/*
 * deduce - attributes with which @abi gives @plan its present layout
 *
 * Sets plan->deduced, and the members' attributes of both places. Returns 0, or -ENOMEM.
 */
int deduce(const struct cairn_abi *abi, struct plan *plan);

/* Place on one of the two sides; 0, -ENOMEM, or the result of cairn_layout_place(). */
int place_plan(const struct cairn_abi *abi, int side, struct plan *plan,
	       struct cairn_place_record *ret);

#endif
