/* SPDX-License-Identifier: BSD-2-Clause */
/* Names near to one that was not found. */
#ifndef LOC_SUGGEST_H
#define LOC_SUGGEST_H

#include "dwarf/index.h"

/* The nearest names of those offered. */
enum { SUGGEST_MAX = 16 };
struct suggestions {
	const char *wanted;
	size_t max, n;                 /* at most SUGGEST_MAX */
	const char *names[SUGGEST_MAX]; /* nearest first; as offered */
	unsigned int ranks[SUGGEST_MAX];
};

/* suggest_offer - take @name when it is near to wanted, is not wanted itself, and is not there yet. */
void suggest_offer(struct suggestions *s, const char *name);

/*
 * suggest_names - the names of the index nearest to @wanted, nearest first, each once
 *
 * @ret  room for @max; borrowed from the index's input
 * Returns how many were found: none when nothing is near.
 * Cost: one comparison of O(length squared) for each name of similar length.
 */
size_t suggest_names(const struct dw_func_index *index, const char *wanted, const char **ret, size_t max);

#endif
