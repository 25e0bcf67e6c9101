/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Content hashes of 128 bits: two types with the same hash are taken for the same type
 *
 * A kernel has some 100,000 distinct types, so two that differ collide with a probability of 2^-94.
 * The function is a multiplication folded into both halves of the state. It is no defence against a
 * deliberate collision; an attacker could as well write wrong DWARF.
 */
#ifndef BTFGEN_HASH_H
#define BTFGEN_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct h128 {
	uint64_t a, b;
};

/*
 * The state after @a and @b. The input is added again, so that a product of zero loses nothing.
 */
static inline struct h128 h128_mix(struct h128 s, uint64_t a, uint64_t b)
{
	a ^= s.a;
	b += s.b;
	unsigned __int128 m =
		(unsigned __int128)(a ^ 0x9e3779b97f4a7c15) * (b ^ 0xe7037ed1a0b428db);
	return (struct h128){.a = (uint64_t)m ^ (b << 32 | b >> 32), .b = (uint64_t)(m >> 64) + a};
}

static inline struct h128 h128_start(uint64_t what)
{
	return h128_mix((struct h128){0x2d358dccaa6c78a5, 0x8bb84b93962eacc9}, what, what);
}

/* The hash of @n bytes. */
static inline uint64_t hash_bytes(const char *p, size_t n)
{
	struct h128 s = h128_start(n);
	uint64_t x, y;
	for (; n > 16; p += 16, n -= 16) {
		memcpy(&x, p, 8);
		memcpy(&y, p + 8, 8);
		s = h128_mix(s, x, y);
	}
	x = y = 0;
	memcpy(&x, p, n < 8 ? n : 8);
	if (n > 8)
		memcpy(&y, p + 8, n - 8);
	s = h128_mix(s, x, y);
	return s.a ^ s.b;
}

/*
 * Hashes of strings, remembered by address: most names are written once into .debug_str and stand
 * in thousands of units. Direct-mapped, so that its size does not depend on the input, and small
 * enough for a core's own cache.
 */
enum { NAME_CACHE = 1 << 14 };

struct name_cache {
	struct {
		const char *name;
		uint64_t hash;
	} slot[NAME_CACHE];
};

/*
 * The hash of a string; 0 for NULL and "". The string itself is read only when its hash is not
 * cached.
 */
static inline uint64_t name_hash(struct name_cache *c, const char *name)
{
	if (!name)
		return 0;
	size_t i = (size_t)(((uintptr_t)name * 0x9e3779b97f4a7c15) >> 50) % NAME_CACHE;
	if (c->slot[i].name != name) {
		c->slot[i].name = name;
		c->slot[i].hash = *name ? hash_bytes(name, strlen(name)) : 0;
	}
	return c->slot[i].hash;
}

#endif
