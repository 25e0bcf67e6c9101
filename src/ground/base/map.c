/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

/* Finaliser of splitmix64: every input bit reaches every output bit. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9;
	x ^= x >> 27;
	x *= 0x94d049bb133111eb;
	return x ^ x >> 31;
}

void map_fini(struct map *m)
{
	pages_free(m->slots, m->cap, sizeof(*m->slots));
	map_init(m);
}

/* The slot of @key, which is not 0, or the empty one where it would be. */
static struct map_slot *slot_of(const struct map *m, uint64_t key)
{
	size_t i = mix(key) & (m->cap - 1);
	while (m->slots[i].key && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret)
{
	if (!key && m->has_zero)
		*ret = m->zero;
	if (!key || !m->cap)
		return !key && m->has_zero;
	const struct map_slot *slot = slot_of(m, key);
	if (!slot->key)
		return false;
	*ret = slot->value;
	return true;
}

void map_prefetch(const struct map *m, uint64_t key)
{
	if (m->cap)
		__builtin_prefetch(&m->slots[mix(key) & (m->cap - 1)]);
}

static int grow(struct map *m)
{
	struct map bigger = *m;
	bigger.cap = m->cap ? m->cap * 2 : 16;
	bigger.slots = pages_zeroed(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].key)
			*slot_of(&bigger, m->slots[i].key) = m->slots[i];
	pages_free(m->slots, m->cap, sizeof(*m->slots));
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	if (!key) {
		m->n += !m->has_zero;
		m->has_zero = true;
		m->zero = value;
		return 0;
	}
	/* At most three quarters full: a probe stays a few slots long. */
	if (m->n * 4 >= m->cap * 3) {
		int rc = grow(m);
		if (rc < 0)
			return rc;
	}
	struct map_slot *slot = slot_of(m, key);
	m->n += !slot->key;
	*slot = (struct map_slot){key, value};
	return 0;
}

/* Both halves of a product, so that each bit of a word reaches each bit of the state. */
static uint64_t fold(uint64_t h, uint64_t word)
{
	unsigned __int128 m = (unsigned __int128)(h ^ word) * 0x9e3779b97f4a7c15;
	return ((uint64_t)m ^ (uint64_t)(m >> 64)) + word;
}

uint64_t map_hash_bytes(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325 + n, word = 0;
	for (; n > sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = fold(h, word);
	}
	word = 0;
	if (n)
		memcpy(&word, p, n);
	return mix(fold(h, word));
}

uint64_t map_hash_str(const char *s)
{
	return map_hash_bytes(s, strlen(s));
}
