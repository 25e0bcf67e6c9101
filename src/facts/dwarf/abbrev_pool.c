/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf/abbrev_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/pages.h"
#include "dwarf/constants.h"

/* Slots that are checked for one: only crafted input fills more in a row. */
enum { PROBES_MAX = 32 };

/*
 * The byte after a LEB128; NULL if it is cut off, or longer than needed: its value could differ
 * from its first byte.
 */
static inline const uint8_t *skip_leb(const uint8_t *p, const uint8_t *end)
{
	if (p < end && *p < 0x80)
		return p + 1;
	while (p < end && *p >= 0x80)
		p++;
	return p < end && *p ? p + 1 : NULL;
}

size_t dw_abbrev_bytes(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *from = p;
	p = skip_leb(p, end);
	if (!p || p == end)
		return 0;
	p++; /* whether it has children */
	for (;;) {
		const uint8_t *at = p, *form = skip_leb(at, end);
		p = form ? skip_leb(form, end) : NULL;
		if (!p)
			return 0;
		if (!*at && !*form)
			return (size_t)(p - from);
		if (*form != DW_FORM_implicit_const)
			continue;
		/* Signed ones may end in a byte of 0. */
		while (p < end && *p >= 0x80)
			p++;
		if (p++ == end)
			return 0;
	}
}

static bool is_same(const struct dw_known *k, const struct dw_abbrevs *t, const uint8_t *bytes,
		    size_t n)
{
	return k->n == n && k->table->file == t->file && k->table->addr_size == t->addr_size &&
	       k->table->offset_size == t->offset_size &&
	       k->table->ref_addr_size == t->ref_addr_size && !memcmp(k->bytes, bytes, n);
}

static size_t first_slot(const struct dw_abbrev_pool *pool, const uint8_t *bytes, size_t n)
{
	return (size_t)map_hash_bytes(bytes, n) & (pool->cap - 1);
}

const struct dw_abbrev *dw_abbrev_pool_find(const struct dw_abbrev_pool *pool,
					    const struct dw_abbrevs *t, const uint8_t *bytes,
					    size_t n)
{
	if (!pool->cap)
		return NULL;
	size_t at = first_slot(pool, bytes, n);
	for (int i = 0; i < PROBES_MAX && pool->slot[at].table;
	     i++, at = (at + 1) & (pool->cap - 1))
		if (is_same(&pool->slot[at], t, bytes, n))
			return pool->slot[at].abbrev;
	return NULL;
}

/* One that finds no slot near its own is left out, and will be compiled again. */
static void put(struct dw_abbrev_pool *pool, struct dw_known k)
{
	size_t at = first_slot(pool, k.bytes, k.n);
	for (int i = 0; i < PROBES_MAX; i++, at = (at + 1) & (pool->cap - 1)) {
		if (pool->slot[at].table)
			continue;
		pool->slot[at] = k;
		pool->n++;
		return;
	}
}

static int grow(struct dw_abbrev_pool *pool)
{
	size_t old = pool->cap, cap = old ? 2 * old : 1024;
	struct dw_known *slot = pool->slot, *grown = pages_cleared(cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	pool->slot = grown;
	pool->cap = cap;
	pool->n = 0;
	for (size_t i = 0; i < old; i++)
		if (slot[i].table)
			put(pool, slot[i]);
	pages_free(slot, old, sizeof(*slot));
	return 0;
}

int dw_abbrev_pool_add(struct dw_abbrev_pool *pool, const struct dw_abbrevs *t,
		       const uint8_t *bytes, size_t n, const struct dw_abbrev *a)
{
	if (2 * pool->n >= pool->cap && grow(pool) < 0)
		return -ENOMEM;
	put(pool, (struct dw_known){.table = t, .bytes = bytes, .n = n, .abbrev = a});
	return 0;
}

void dw_abbrev_pool_close(struct dw_abbrev_pool *pool)
{
	pages_free(pool->slot, pool->cap, sizeof(*pool->slot));
	pool->slot = NULL;
	pool->n = pool->cap = 0;
	VEC_FREE(&pool->table);
	VEC_FREE(&pool->codes);
	VEC_FREE(&pool->steps);
}

void dw_abbrev_pool_fini(struct dw_abbrev_pool *pool)
{
	dw_abbrev_pool_close(pool);
	arena_fini(&pool->arena);
}
