/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordered set in two levels
 *
 * Blocks hold up to 128 ranges in order; the places are the blocks in order:
 *
 *	places	  0x1000: block 0, 3 ranges		 0x9000: block 7, 2 ranges
 *	block 0	  [1000,2000) [2000,2400) [5000,6000)	 block 7  [9000,a000) [c000,d000)
 *
 * A full block is split in the middle; when one and its neighbour together fill at most half a
 * block, they become one. So two neighbours hold more than 64 together, and the places are few:
 * with 65,536 ranges at most 2,048, of 16 bytes each. A plain sorted array would move a megabyte
 * there for one range; a balanced tree would have six times the code.
 *
 * Memory is the caller's and of fixed size, so that nothing here can fail or call the system.
 */
#include "ranges.h"

#include <string.h>

enum { HALF = RANGES_IN_BLOCK / 2 };

/*
 * Neighbours hold more than HALF together; one place more for the moment of a split, one for an odd
 * end.
 */
static uint32_t max_blocks(uint32_t n)
{
	return 2 * (n / HALF + 1) + 2;
}

size_t ranges_bytes(uint32_t n)
{
	return max_blocks(n) *
	       (sizeof(struct ranges_block) + sizeof(struct ranges_place) + sizeof(uint32_t));
}

void ranges_init(struct ranges *set, void *memory, uint32_t n)
{
	uint8_t *at = memory;
	size_t max = max_blocks(n);
	*set = (struct ranges){.blocks = (struct ranges_block *)at};
	at += max * sizeof(struct ranges_block);
	set->places = (struct ranges_place *)at;
	set->unused = (uint32_t *)(at + max * sizeof(struct ranges_place));
}

static struct range *ranges_of(const struct ranges *set, const struct ranges_place *p)
{
	return set->blocks[p->block].range;
}

/* The last place that begins at or before @at; the first one when none does. */
static uint32_t place_of(const struct ranges *set, uint64_t at)
{
	uint32_t lo = 0, hi = set->n_places;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (set->places[mid].lo <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* How many ranges of the block begin at or before @at. */
static uint32_t count_until(const struct range *range, uint32_t n, uint64_t at)
{
	uint32_t lo = 0, hi = n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (range[mid].lo <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct range *ranges_find(const struct ranges *set, uint64_t lo, uint64_t hi)
{
	if (!set->n_places)
		return NULL;
	uint32_t at = place_of(set, lo);
	const struct ranges_place *p = &set->places[at];
	struct range *range = ranges_of(set, p);
	uint32_t n = count_until(range, p->n, lo);
	if (n && range[n - 1].hi > lo)
		return &range[n - 1];
	if (n == p->n && at + 1 < set->n_places) {
		range = ranges_of(set, p + 1);
		n = 0;
	} else if (n == p->n) {
		return NULL;
	}
	return range[n].lo < hi ? &range[n] : NULL;
}

struct range *ranges_before(const struct ranges *set, uint64_t at)
{
	if (!set->n_places)
		return NULL;
	const struct ranges_place *p = &set->places[place_of(set, at)];
	uint32_t n = count_until(ranges_of(set, p), p->n, at);
	return n ? &ranges_of(set, p)[n - 1] : NULL;
}

static uint32_t take_block(struct ranges *set)
{
	return set->n_unused ? set->unused[--set->n_unused] : set->n_blocks++;
}

static void open_place(struct ranges *set, uint32_t at)
{
	memmove(&set->places[at + 1], &set->places[at],
		(set->n_places - at) * sizeof(set->places[0]));
	set->n_places++;
}

static void close_place(struct ranges *set, uint32_t at)
{
	set->unused[set->n_unused++] = set->places[at].block;
	set->n_places--;
	memmove(&set->places[at], &set->places[at + 1],
		(set->n_places - at) * sizeof(set->places[0]));
}

static void split(struct ranges *set, uint32_t at)
{
	open_place(set, at + 1);
	struct ranges_place *p = &set->places[at];
	p[1] = (struct ranges_place){.block = take_block(set), .n = p->n - HALF};
	memcpy(ranges_of(set, &p[1]), ranges_of(set, p) + HALF, p[1].n * sizeof(struct range));
	p[1].lo = ranges_of(set, &p[1])->lo;
	p->n = HALF;
}

void ranges_insert(struct ranges *set, const struct range *range)
{
	if (!set->n_places) {
		open_place(set, 0);
		set->places[0] = (struct ranges_place){.lo = range->lo, .block = take_block(set)};
	}
	uint32_t at = place_of(set, range->lo);
	if (set->places[at].n == RANGES_IN_BLOCK) {
		split(set, at);
		at = place_of(set, range->lo);
	}
	struct ranges_place *p = &set->places[at];
	struct range *to = ranges_of(set, p);
	uint32_t n = count_until(to, p->n, range->lo);
	memmove(&to[n + 1], &to[n], (p->n - n) * sizeof(*to));
	to[n] = *range;
	p->n++;
	p->lo = to[0].lo;
}

/* Merges the place after @at into it, when both together have few ranges. */
static void join(struct ranges *set, uint32_t at)
{
	if (at + 1 >= set->n_places || set->places[at].n + set->places[at + 1].n > HALF)
		return;
	struct ranges_place *p = &set->places[at];
	memcpy(ranges_of(set, p) + p->n, ranges_of(set, &p[1]), p[1].n * sizeof(struct range));
	p->n += p[1].n;
	close_place(set, at + 1);
}

void ranges_erase(struct ranges *set, uint64_t lo)
{
	uint32_t at = place_of(set, lo);
	struct ranges_place *p = &set->places[at];
	struct range *from = ranges_of(set, p);
	uint32_t n = count_until(from, p->n, lo) - 1;
	memmove(&from[n], &from[n + 1], (p->n - n - 1) * sizeof(*from));
	if (--p->n == 0) {
		close_place(set, at);
		return;
	}
	p->lo = from[0].lo;
	join(set, at);
	if (at)
		join(set, at - 1);
}
