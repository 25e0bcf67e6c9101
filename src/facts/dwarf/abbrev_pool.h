/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiled abbreviations of one worker, found by their bytes
 *
 *	.debug_abbrev   11 | 0d 00 03 0e 49 13 38 0b 00 00
 *			code 17: member; name strp, type ref4, place data1
 *	.debug_abbrev   2a | 0d 00 03 0e 49 13 38 0b 00 00
 *			code 42 of another unit: the same after its code
 *
 * The compiled form stays at its address until dw_abbrev_pool_fini().
 */
#ifndef DWARF_ABBREV_POOL_H
#define DWARF_ABBREV_POOL_H

#include "base/arena.h"
#include "base/vec.h"
#include "dwarf/abbrev.h"

struct dw_known {
	/* that it was met in: file and sizes must be equal; NULL: free */
	const struct dw_abbrevs *table;
	const uint8_t *bytes; /* after the code */
	size_t n;
	const struct dw_abbrev *abbrev;
};

struct dw_abbrev_pool {
	struct arena arena;
	struct dw_known *slot; /* open addressing */
	size_t n, cap;
	/* Scratch: for the current table, and for the current abbreviation. */
	VEC(const struct dw_abbrev *) table;
	VEC(uint64_t) codes;
	VEC(struct dw_step) steps;
};

/*
 * The number of bytes of the abbreviation whose tag is at @p; 0 if it is damaged, or written in an
 * unusual way.
 */
size_t dw_abbrev_bytes(const uint8_t *p, const uint8_t *end);

/* The abbreviation of a table that has these bytes; NULL when it is not there. */
const struct dw_abbrev *dw_abbrev_pool_find(const struct dw_abbrev_pool *pool,
					    const struct dw_abbrevs *t, const uint8_t *bytes,
					    size_t n);

/* It was not found, and is from now on. 0 or -ENOMEM. */
int dw_abbrev_pool_add(struct dw_abbrev_pool *pool, const struct dw_abbrevs *t,
		       const uint8_t *bytes, size_t n, const struct dw_abbrev *a);

/* No more lookups will follow: the compiled abbreviations stay. */
void dw_abbrev_pool_close(struct dw_abbrev_pool *pool);
void dw_abbrev_pool_fini(struct dw_abbrev_pool *pool);

#endif
