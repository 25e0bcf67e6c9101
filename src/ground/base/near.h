/* SPDX-License-Identifier: BSD-2-Clause */
/* The nearest of many names to one that was not found. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <cairn/text.h>

enum { NEAR_MAX = 16 };

struct near_names {
	size_t max, n;               /* at most NEAR_MAX */
	const char *names[NEAR_MAX]; /* nearest first; as offered */
	unsigned int ranks[NEAR_MAX];
};

#define NEAR_NOT (~0u) /* a rank: not near */

/*
 * near_limit - the slips that a name of @n letters may have
 * near_contains - the rank of a name that merely contains what was typed: after all slips
 */
unsigned int near_limit(size_t n);
unsigned int near_contains(const char *typed, size_t n, const char *name);

/* near_rank - by slips, else by containing; smaller is nearer, 0 is equal, NEAR_NOT is not near. */
unsigned int near_rank(const char *typed, const char *name);

/*
 * near_offer - take @name, which is borrowed, if it is among the nearest and was not taken before
 *
 * Among equally near names the first in the alphabet wins, in whatever order they are offered.
 */
void near_offer(struct near_names *near, const char *name, unsigned int rank);

#endif
