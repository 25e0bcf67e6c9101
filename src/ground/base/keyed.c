/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A radix sort from the lowest byte up. Keys are taken less the smallest one, so that those of a
 * unit, which are near each other, have one or two bytes wherever the unit is.
 */
#include "base/keyed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Up to this number of pairs the counters would cost more than the pairs. */
enum { FEW = 32, BYTE = 256 };

static void insert_in_place(struct keyed *p, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct keyed k = p[i];
		size_t to = i;
		for (; to && p[to - 1].key > k.key; to--)
			p[to] = p[to - 1];
		p[to] = k;
	}
}

static void sort_by_byte(const struct keyed *from, struct keyed *to, size_t n, uint32_t least,
			 unsigned int shift)
{
	size_t first[BYTE + 1] = {0};
	for (size_t i = 0; i < n; i++)
		first[((from[i].key - least) >> shift & 0xff) + 1]++;
	for (size_t b = 1; b < BYTE; b++)
		first[b] += first[b - 1];
	for (size_t i = 0; i < n; i++)
		to[first[(from[i].key - least) >> shift & 0xff]++] = from[i];
}

int keyed_sort(struct keyed *p, size_t n)
{
	uint32_t least = UINT32_MAX, most = 0;
	bool sorted = true;
	for (size_t i = 0; i < n; i++) {
		least = p[i].key < least ? p[i].key : least;
		most = p[i].key > most ? p[i].key : most;
		sorted &= !i || p[i - 1].key <= p[i].key;
	}
	if (sorted)
		return 0;
	if (n <= FEW) {
		insert_in_place(p, n);
		return 0;
	}
	struct keyed *other = malloc(n * sizeof(*other)), *from = p, *to = other;
	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 32 && (most - least) >> shift; shift += 8) {
		sort_by_byte(from, to, n, least, shift);
		struct keyed *swap = from;
		from = to;
		to = swap;
	}
	if (from != p)
		memcpy(p, from, n * sizeof(*p));
	free(other);
	return 0;
}
