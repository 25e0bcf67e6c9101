/* SPDX-License-Identifier: BSD-2-Clause */
/* How near a name that was typed is to another one. */
#ifndef CAIRN_NEAR_H
#define CAIRN_NEAR_H

#include <stddef.h>

#include <cairn/api.h>

CAIRN_BEGIN_DECLS

/* Longer names are compared by their beginning only. */
enum { CAIRN_NEAR_LENGTH_MAX = 63 };

/*
 * cairn_near_distance - the slips of the finger between two names
 *
 * A slip is a letter that is missing, added, replaced, or swapped with its neighbour (optimal
 * string alignment).
 *
 * @a, @b  @n and @m bytes of them count, at most CAIRN_NEAR_LENGTH_MAX of each
 * Returns the smallest number of slips; 0: what counts is equal.
 * Cost: O(n * m), no allocation. Threads: any. Signals: safe.
 */
unsigned int cairn_near_distance(const char *a, size_t n, const char *b, size_t m);

CAIRN_END_DECLS
#endif
