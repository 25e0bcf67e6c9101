/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/hash_table.h"

#include <errno.h>

#include "base/pages.h"

static void put(struct hash_table *t, struct hash_slot s)
{
	size_t i = (size_t)s.a & (t->cap - 1);
	while (t->slot[i].i)
		i = (i + 1) & (t->cap - 1);
	t->slot[i] = s;
}

static int grow(struct hash_table *t, size_t cap)
{
	struct hash_table grown = {.n = t->n, .cap = cap};
	grown.slot = pages_cleared(grown.cap, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++)
		if (t->slot[i].i)
			put(&grown, t->slot[i]);
	pages_free(t->slot, t->cap, sizeof(*t->slot));
	*t = grown;
	return 0;
}

enum { FEWEST = 1024 };

int hash_table_reserve(struct hash_table *t, size_t n)
{
	size_t cap = t->cap ? t->cap : FEWEST;
	if (n > SIZE_MAX / 4)
		return -ENOMEM;
	while (cap < 2 * n)
		cap *= 2;
	return cap == t->cap ? 0 : grow(t, cap);
}

int hash_table_add(struct hash_table *t, struct h128 hash, uint32_t n)
{
	if (2 * t->n >= t->cap && grow(t, t->cap ? t->cap * 2 : FEWEST) < 0)
		return -ENOMEM;
	put(t, (struct hash_slot){.a = hash.a, .b = (uint32_t)hash.b, .i = n + 1});
	t->n++;
	return 0;
}
