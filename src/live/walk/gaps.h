/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room that was given back, in blocks of a table: neighbouring pieces are one again
 */
#ifndef WALK_GAPS_H
#define WALK_GAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct gap {
	uint32_t block, first, n;
};

struct gaps {
	VEC(struct gap) list; /* by block and first; no two of them touch */
};

/*
 * gaps_give - elements [@first, @first + @n) of a block that are not used any more
 *
 * Returns 0, or -ENOMEM: they are not used again. Cost: O(number of gaps).
 */
int gaps_give(struct gaps *g, uint32_t block, uint32_t first, uint32_t n);

/* The first @n elements that are together, of the smallest gap that has so many. False: none has. */
bool gaps_take(struct gaps *g, uint32_t n, uint32_t *ret_block, uint32_t *ret_first);

void gaps_fini(struct gaps *g);

#endif
