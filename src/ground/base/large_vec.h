/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A vector of pages: VEC() for lists that grow to many megabytes
 *
 * realloc() copies the block that it moves, and then the old block and the new one are in memory at
 * once. Here pages change their address instead, and are large ones if the system has them
 * (pages.h). The struct is a vector's, p, n and cap; only functions of this file may grow and free
 * it:
 *
 *	struct { VEC(struct dw_func) v; } all = {0};
 *	if (!LARGE_ADD(&all.v, f))	// out of memory
 *	LARGE_FREE(&all.v);
 */
#ifndef BASE_LARGE_VEC_H
#define BASE_LARGE_VEC_H

#include <stdbool.h>

#include "base/pages.h"
#include "base/vec.h"

/*
 * Room for @more items of @size bytes after the last; they are not zeroed. False when out of
 * memory.
 */
static inline bool large_reserve_bytes(void **p, const size_t *n, size_t *cap, size_t more,
				       size_t size)
{
	size_t want = *cap ? *cap : 8;
	if (*n + more <= *cap)
		return true;
	if (more > SIZE_MAX / 4 / size || *n > SIZE_MAX / 4 / size)
		return false;
	while (want < *n + more)
		want *= 2;
	void *grown = pages_grown(*p, *cap, want, size);
	if (!grown)
		return false;
	*p = grown;
	*cap = want;
	return true;
}

/* Room for @more items, which the caller stores and counts; false when out of memory. */
#define LARGE_RESERVE(v, more)                                                                     \
	(large_reserve_bytes((void **)&(v)->p, &(v)->n, &(v)->cap, more, sizeof(*(v)->p)))

/* Append a value; false when out of memory. */
#define LARGE_ADD(v, value)                                                                        \
	({                                                                                         \
		bool large_ok_ = LARGE_RESERVE(v, 1);                                              \
		if (large_ok_)                                                                     \
			(v)->p[(v)->n++] = (value);                                                \
		large_ok_;                                                                         \
	})

#define LARGE_FREE(v)                                                                              \
	(pages_free((v)->p, (v)->cap, sizeof(*(v)->p)), (v)->p = NULL, (v)->n = (v)->cap = 0)

#endif
