/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Putting things in the order of a number
 *
 * Most lists here are sorted by a number that has some thousands of values in one unit, or one
 * section. Then counting beats comparing: n log n calls of a comparison become two passes over n
 * pairs.
 *
 *	struct keyed k[] = {{.key = 7, .value = 0}, {.key = 3, .value = 1}, {.key = 7, .value = 2}};
 *	keyed_sort(k, 3);	// {3, 1} {7, 0} {7, 2}
 */
#ifndef BASE_KEYED_H
#define BASE_KEYED_H

#include <stddef.h>
#include <stdint.h>

struct keyed {
	uint32_t key, value;
};

/*
 * keyed_sort - by key; those of one key stay in their order
 *
 * Returns 0 or -ENOMEM, when nothing has changed.
 * Cost: two passes for each byte in which the keys differ; a few are put in order in place.
 * Threads: any.
 */
int keyed_sort(struct keyed *p, size_t n);

#endif
