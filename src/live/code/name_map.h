/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of which the newest counts
 *
 * Programs append to map files: freed code stays in them, and the code that replaces it comes
 * later. So among overlapping ranges the later one gets the shared addresses, and the rest of the
 * earlier one keeps its own.
 *
 *	added		[0,100) A   [20,40) B   [30,50) C
 *	flat		[0,20) A   [20,30) B   [30,50) C   [50,100) A
 */
#ifndef CODE_NAME_MAP_H
#define CODE_NAME_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct name_range {
	uint64_t lo, hi;
	uint32_t item; /* the caller's number; larger ones are newer */
};

struct name_map {
	VEC(struct name_range) ranges;
};

/* Empty ranges are left out. False when out of memory. */
static inline bool name_map_add(struct name_map *m, uint64_t lo, uint64_t hi, uint32_t item)
{
	return lo >= hi || VEC_ADD(&m->ranges, ((struct name_range){lo, hi, item}));
}

/* When all are added, once. 0, -ENOMEM. O(n log n). */
int name_map_flatten(struct name_map *m);

/* NULL when none holds @at. O(log n). */
const struct name_range *name_map_find(const struct name_map *m, uint64_t at);

/* Whether a range reaches into [@lo, @hi). */
bool name_map_touches(const struct name_map *m, uint64_t lo, uint64_t hi);

static inline void name_map_fini(struct name_map *m)
{
	VEC_FREE(&m->ranges);
}

#endif
