/* SPDX-License-Identifier: BSD-2-Clause */
#include "due.h"

bool due_now(struct due *d, uint64_t key, double now, double again)
{
	size_t i = 0;

	while (i < d->n && d->items[i].key != key)
		i++;
	if (i < d->n && now < d->items[i].at)
		return false;
	if (i == d->n) {
		i = d->next;
		d->next = (d->next + 1) % DUE_MAX;
		d->n += d->n < DUE_MAX;
	}
	d->items[i].key = key;
	d->items[i].at = now + again;
	return true;
}
