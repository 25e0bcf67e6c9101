/* SPDX-License-Identifier: BSD-2-Clause */
#include "distil/hash_table.h"

#include <errno.h>

#include "base/pages.h"

static void put(struct hash_table *t, struct hash_slot s)
{
	size_t i = (size_t)s.a & (t->cap - 1);
	while (t->slot[i].i)
		i = (i + 1) & (t->cap - 1);
	t->slot[i] = s;
}

int hash_table_add(struct hash_table *t, struct h128 hash, uint32_t n)
{
	if (2 * t->n >= t->cap) {
		struct hash_table grown = {.n = t->n, .cap = t->cap ? t->cap * 2 : 1024};
		grown.slot = pages_cleared(grown.cap, sizeof(*grown.slot));
		if (!grown.slot)
			return -ENOMEM;
		for (size_t i = 0; i < t->cap; i++)
			if (t->slot[i].i)
				put(&grown, t->slot[i]);
		pages_free(t->slot, t->cap, sizeof(*t->slot));
		*t = grown;
	}
	put(t, (struct hash_slot){.a = hash.a, .b = (uint32_t)hash.b, .i = n + 1});
	t->n++;
	return 0;
}
