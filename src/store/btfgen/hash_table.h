/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From hashes of 128 bits to numbers: open addressing, never more than half full
 *
 * A slot has 96 bits of the hash, which is as good as all of it (hash.h), and the number.
 */
#ifndef BTFGEN_HASH_TABLE_H
#define BTFGEN_HASH_TABLE_H

#include "base/pages.h"
#include "btfgen/hash.h"

struct hash_slot {
	uint64_t a;
	uint32_t b;
	uint32_t i; /* + 1; 0 is free */
};

struct hash_table {
	struct hash_slot *slot;
	size_t n, cap;
};

/* The number of a hash; UINT32_MAX when it is not there. */
static inline uint32_t hash_table_find(const struct hash_table *t, struct h128 hash)
{
	if (!t->cap)
		return UINT32_MAX;
	for (size_t i = (size_t)hash.a & (t->cap - 1); t->slot[i].i; i = (i + 1) & (t->cap - 1))
		if (t->slot[i].a == hash.a && t->slot[i].b == (uint32_t)hash.b)
			return t->slot[i].i - 1;
	return UINT32_MAX;
}

/* Prefetches the slot of a hash that will be looked up soon: tables are larger than the caches. */
static inline void hash_table_prefetch(const struct hash_table *t, struct h128 hash)
{
	if (t->cap)
		__builtin_prefetch(&t->slot[(size_t)hash.a & (t->cap - 1)]);
}

/* Makes room for @n entries in all, if the caller knows their number in advance. 0 or -ENOMEM. */
int hash_table_reserve(struct hash_table *t, size_t n);

/* 0 or -ENOMEM. */
int hash_table_add(struct hash_table *t, struct h128 hash, uint32_t i);

static inline void hash_table_fini(struct hash_table *t)
{
	pages_free(t->slot, t->cap, sizeof(*t->slot));
	*t = (struct hash_table){0};
}

#endif
