/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of addresses that do not overlap, in order, each with a number; the essay is in ranges.c.
 */
#ifndef AGENT_RANGES_H
#define AGENT_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t number;
};

enum { RANGES_IN_BLOCK = 128 };

struct ranges_block {
	struct range range[RANGES_IN_BLOCK];
};

struct ranges_place {
	uint64_t lo;    /* of the block's first range */
	uint32_t block; /* index among the blocks */
	uint32_t n;     /* ranges in it; at least 1 */
};

struct ranges {
	struct ranges_block *blocks;
	struct ranges_place *places; /* by address */
	uint32_t n_places;
	uint32_t n_blocks; /* that were ever used */
	uint32_t *unused;  /* blocks to be used again */
	uint32_t n_unused;
};

/* Bytes of memory for up to @n ranges. */
size_t ranges_bytes(uint32_t n);

/*
 * @memory: ranges_bytes(@n) of them, all 0, aligned to 8; stays the caller's. Also empties the set.
 */
void ranges_init(struct ranges *set, void *memory, uint32_t n);

/*
 * Some range that overlaps [@lo, @hi), the lowest; NULL when none does. Valid until the next
 * change. O(log n).
 */
struct range *ranges_find(const struct ranges *set, uint64_t lo, uint64_t hi);

/*
 * The range that begins last of those at or below @at; NULL when there is none. Valid until the
 * next change. O(log n).
 */
struct range *ranges_before(const struct ranges *set, uint64_t at);

/* @range overlaps none that is there, and there is room. O(log n), and up to 3 KB are moved. */
void ranges_insert(struct ranges *set, const struct range *range);

/* The range that begins at @lo, which is there. */
void ranges_erase(struct ranges *set, uint64_t lo);

#endif
