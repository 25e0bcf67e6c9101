/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Map: u64 key to u64 value, open addressing
 *
 * Keys are DIE offsets, addresses, hashes; values are ids. Never iterated, so that nothing can
 * depend on its order. For string keys hash the string with map_hash_str() and compare the string
 * that the value refers to; the caller must handle a collision of the 64-bit hash.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key, value;
};

/*
 * A slot with key 0 is empty, so that a lookup touches one place in memory; the value of key 0
 * itself is kept apart.
 */
struct map {
	struct map_slot *slots;
	size_t n, cap; /* keys; cap is 0 or a power of two */
	uint64_t zero;
	bool has_zero;
};

static inline void map_init(struct map *m)
{
	*m = (struct map){0};
}
void map_fini(struct map *m);

/* The value of @key in *@ret and true; false when it is not there. */
bool map_get(const struct map *m, uint64_t key, uint64_t *ret);

/* Prefetches the slot of a key that will be looked up soon. */
void map_prefetch(const struct map *m, uint64_t key);

/* Set or replace; 0 or -ENOMEM. */
int map_put(struct map *m, uint64_t key, uint64_t value);

uint64_t map_hash_str(const char *s);
uint64_t map_hash_bytes(const void *bytes, size_t n);

#endif
