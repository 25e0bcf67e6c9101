/* SPDX-License-Identifier: BSD-2-Clause */
/* What the variables around a copy tell about its arguments. */
#ifndef LOC_AROUND_H
#define LOC_AROUND_H

#include "loc/graph.h"
#include "loc/passage.h"
#include "loc/site.h"

/* The function that copies are in. */
struct around {
	const struct dw_die *container;
	struct graph *graph; /* its code */
	struct passage_scratch *scratch; /* has room for a mark per instruction */
};

/*
 * around_doubt - take back arguments of a copy made by GCC that are described as a variable around it was at another moment
 *
 * @b  built; its container is a->container, and nothing else was taken back of it or passage_judge() was asked about it
 * Returns 0 or -ENOMEM.
 * Cost: reads the variables of the scopes around the copy, and passes over the code of a scope that has a constant one.
 */
int around_doubt(const struct around *a, struct built_site *b);

#endif
