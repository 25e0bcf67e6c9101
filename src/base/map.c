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
	free(m->used);
	map_init(m);
}

static size_t slot_of(const struct map *m, uint64_t key)
{
	size_t i = mix(key) & (m->cap - 1);
	while (m->used[i] && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret)
{
	if (!m->cap)
		return false;
	size_t i = slot_of(m, key);
	if (!m->used[i])
		return false;
	*ret = m->slots[i].value;
	return true;
}

void map_prefetch(const struct map *m, uint64_t key)
{
	if (!m->cap)
		return;
	size_t i = mix(key) & (m->cap - 1);
	__builtin_prefetch(&m->used[i]);
	__builtin_prefetch(&m->slots[i]);
}

static int grow(struct map *m)
{
	struct map bigger = {.cap = m->cap ? m->cap * 2 : 16, .n = m->n};
	bigger.slots = pages_zeroed(bigger.cap, sizeof(*bigger.slots));
	bigger.used = calloc(bigger.cap, 1);
	if (!bigger.slots || !bigger.used) {
		map_fini(&bigger);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->cap; i++) {
		if (!m->used[i])
			continue;
		size_t at = slot_of(&bigger, m->slots[i].key);
		bigger.used[at] = 1;
		bigger.slots[at] = m->slots[i];
	}
	map_fini(m);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	/* At most three quarters full: a probe stays a few slots long. */
	if (m->n * 4 >= m->cap * 3) {
		int rc = grow(m);
		if (rc < 0)
			return rc;
	}
	size_t i = slot_of(m, key);
	if (!m->used[i]) {
		m->used[i] = 1;
		m->n++;
	}
	m->slots[i] = (struct map_slot){key, value};
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
