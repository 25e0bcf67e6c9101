/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/name_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"

/* Ranges that began and may not have ended, as a heap with the newest on top. */
struct heap {
	const struct name_range **p;
	size_t n;
};

static void heap_push(struct heap *h, const struct name_range *r)
{
	size_t i = h->n++;
	for (; i && h->p[(i - 1) / 2]->item < r->item; i = (i - 1) / 2)
		h->p[i] = h->p[(i - 1) / 2];
	h->p[i] = r;
}

static void heap_pop(struct heap *h)
{
	const struct name_range *last = h->p[--h->n];
	size_t i = 0, child;
	for (; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && h->p[child + 1]->item > h->p[child]->item)
			child++;
		if (h->p[child]->item <= last->item)
			break;
		h->p[i] = h->p[child];
	}
	h->p[i] = last;
}

static int by_address(const void *a, const void *b)
{
	const struct name_range *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

static bool put(struct name_map *flat, uint64_t lo, uint64_t hi, uint32_t item)
{
	struct name_range *last = flat->ranges.n ? &flat->ranges.p[flat->ranges.n - 1] : NULL;
	if (last && last->hi == lo && last->item == item) {
		last->hi = hi;
		return true;
	}
	return name_map_add(flat, lo, hi, item);
}

/* Gives the newest open range [at, until), or up to its end; the next newest gets the rest. */
static bool put_up_to(struct name_map *flat, struct heap *h, uint64_t *at, uint64_t until)
{
	while (h->n && *at < until) {
		const struct name_range *top = h->p[0];
		uint64_t hi = top->hi < until ? top->hi : until;
		if (*at < hi && !put(flat, *at, hi, top->item))
			return false;
		*at = hi > *at ? hi : *at;
		if (top->hi <= *at)
			heap_pop(h);
	}
	*at = until;
	return true;
}

int name_map_flatten(struct name_map *m)
{
	struct name_map flat = {0};
	size_t n = m->ranges.n;
	struct heap h = {.p = calloc(n ? n : 1, sizeof(*h.p))};
	uint64_t at = 0;
	bool ok = h.p;
	if (n)
		qsort(m->ranges.p, n, sizeof(*m->ranges.p), by_address);
	for (size_t i = 0; ok && i < n; i++) {
		ok = put_up_to(&flat, &h, &at, m->ranges.p[i].lo);
		heap_push(&h, &m->ranges.p[i]);
	}
	ok = ok && put_up_to(&flat, &h, &at, UINT64_MAX);
	free(h.p);
	if (!ok) {
		name_map_fini(&flat);
		return -ENOMEM;
	}
	name_map_fini(m);
	*m = flat;
	return 0;
}

/* The first range that ends after @at. */
static size_t first_after(const struct name_map *m, uint64_t at)
{
	size_t lo = SEARCH(0, m->ranges.n, mid, m->ranges.p[mid].hi <= at);
	return lo;
}

const struct name_range *name_map_find(const struct name_map *m, uint64_t at)
{
	size_t i = first_after(m, at);
	return i < m->ranges.n && m->ranges.p[i].lo <= at ? &m->ranges.p[i] : NULL;
}

bool name_map_touches(const struct name_map *m, uint64_t lo, uint64_t hi)
{
	size_t i = first_after(m, lo);
	return i < m->ranges.n && m->ranges.p[i].lo < hi;
}
