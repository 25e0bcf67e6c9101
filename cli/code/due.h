/* SPDX-License-Identifier: BSD-2-Clause */
/* Things that are done once, and again after a time, in a run without an end. */
#ifndef CLI_DUE_H
#define CLI_DUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest are forgotten, and may be done again at once. */
#define DUE_MAX 1024

struct due {
	struct {
		uint64_t key;
		double at; /* in seconds; not before */
	} items[DUE_MAX];
	size_t n, next;
};

/* Whether a thing is to be done now. If so, it is due again in @again seconds. Keys are not 0. */
bool due_now(struct due *d, uint64_t key, double now, double again);

#endif
