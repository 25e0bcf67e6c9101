/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that GCC removed from a function: their values may be those of another call. */
#ifndef LOC_REMOVED_H
#define LOC_REMOVED_H

#include "dwarf/index.h"

/*
 * What the copies in one container are copies of: the abstract origins of all of them, sorted. For each copy in it
 * that is asked about the answer is then a binary search. Zeroed is empty.
 */
struct origins {
	dw_off *p;
	size_t n;
};

/* Gather those of @container. Returns 0 or -ENOMEM. Cost: its entries in the index, sorted. */
int origins_init(struct origins *origins, const struct dw_func_index *index, uint32_t container);
void origins_fini(struct origins *origins);

/* Whether the container has several copies of what @entry is a copy of. */
bool origins_has_another(const struct origins *origins, const struct dw_func_index *index, uint32_t entry);

#endif
