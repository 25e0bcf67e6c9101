/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From names to numbers: which buckets begin where among the entries, and the entries
 *
 * Two tables, one after the other. A name's entries are in bucket hash & (n - 1), with those of two
 * or three other names.
 */
#ifndef SIDECAR_NAME_INDEX_H
#define SIDECAR_NAME_INDEX_H

#include "sidecar/bits.h"
#include "sidecar/bytes.h"

/* Part of the format: FNV-1a on 32 bits, its halves mixed at the end. */
static inline uint32_t sidecar_name_hash(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ h >> 15;
}

/* ---- writing ---- */

struct name_index {
	VEC(uint64_t) hashes; /* hash << 32 | number */
};

/* 0 or -ENOMEM. */
int name_index_add(struct name_index *x, const char *name, uint32_t number);
void name_index_put(struct name_index *x, struct bytes *ret);
void name_index_fini(struct name_index *x);

/* ---- reading ---- */

struct names {
	struct table buckets; /* one more than there are */
	struct table entries;
};

/* The entries [*@from, *@to) that @name may be among. */
static inline void names_find(const struct names *x, const char *name, uint32_t *from, uint32_t *to)
{
	*from = *to = 0;
	if (x->buckets.n < 2)
		return;
	uint32_t bucket = sidecar_name_hash(name) & (x->buckets.n - 2);
	*from = table_get(&x->buckets, bucket, 0);
	*to = table_get(&x->buckets, bucket + 1, 0);
	if (*to > x->entries.n)
		*to = x->entries.n;
}

#endif
