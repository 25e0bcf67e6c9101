/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nested ranges into stretches
 *
 * A function and the copies inside it have ranges of code that nest, and each may have several:
 *
 *	0x10       0x20       0x30       0x40       0x50
 *	|--- f ----------------------------|          |-- f
 *	           |- copy of g -----------------|          (GCC: beyond its function, wrongly)
 *	                      |- h, in g --|
 *
 * The result is the innermost frame at each address:
 *
 *	0x10 f   0x20 g   0x30 h   0x40 g      a piece [0x10, 0x48)
 *	0x50 f                                 the next piece
 *
 * Frames are numbered in preorder, so the innermost is the one with the highest number. The starts
 * are swept in order; a heap holds the open ranges with the highest number on top. A range that has
 * ended leaves the heap when it comes to the top: until then it cannot win. Each range enters and
 * leaves once: O(n log n).
 */
#include <errno.h>
#include <stdlib.h>

#include "sidecar/gather.h"

static int by_start(const void *a, const void *b)
{
	const struct nested_range *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return x->hi < y->hi ? -1 : x->hi > y->hi;
}

/* The heap holds indices into ranges. */
static uint32_t rank(const struct gatherer *g, size_t i)
{
	return g->ranges.p[g->heap.p[i]].frame;
}

static void swap(struct gatherer *g, size_t a, size_t b)
{
	uint32_t keep = g->heap.p[a];
	g->heap.p[a] = g->heap.p[b];
	g->heap.p[b] = keep;
}

static bool heap_add(struct gatherer *g, uint32_t range)
{
	if (!VEC_ADD(&g->heap, range))
		return false;
	for (size_t i = g->heap.n - 1; i && rank(g, (i - 1) / 2) < rank(g, i); i = (i - 1) / 2)
		swap(g, i, (i - 1) / 2);
	return true;
}

static void heap_drop_top(struct gatherer *g)
{
	g->heap.p[0] = g->heap.p[--g->heap.n];
	for (size_t i = 0;;) {
		size_t child = 2 * i + 1;
		if (child + 1 < g->heap.n && rank(g, child + 1) > rank(g, child))
			child++;
		if (child >= g->heap.n || rank(g, child) <= rank(g, i))
			return;
		swap(g, i, child);
		i = child;
	}
}

/* From @at on the innermost is @frame; in a new piece when the last one has ended. */
static bool put(struct unit_facts *f, bool *open, uint32_t at, uint32_t frame)
{
	if (!*open) {
		struct piece p = {.lo = at, .hi = at, .from = (uint32_t)f->stretches.n};
		if (!VEC_ADD(&f->code, p))
			return false;
		*open = true;
	}
	struct piece *p = &f->code.p[f->code.n - 1];
	if (p->n && f->stretches.p[f->stretches.n - 1].frame == frame)
		return true;
	p->n++;
	return VEC_ADD(&f->stretches, ((struct stretch){at, frame}));
}

/* The ends of ranges between the last start and the one at @until. */
static bool advance(struct gatherer *g, bool *open, uint32_t until)
{
	struct unit_facts *f = g->to;
	while (g->heap.n) {
		const struct nested_range *top = &g->ranges.p[g->heap.p[0]];
		if (top->hi > until)
			return true;
		uint32_t end = top->hi;
		while (g->heap.n && g->ranges.p[g->heap.p[0]].hi <= end)
			heap_drop_top(g);
		if (g->heap.n) {
			if (end < until && !put(f, open, end, rank(g, 0)))
				return false;
			continue;
		}
		f->code.p[f->code.n - 1].hi = end;
		*open = end == until;
	}
	return true;
}

static bool sweep(struct gatherer *g)
{
	bool open = false;
	for (size_t i = 0; i < g->ranges.n;) {
		uint32_t at = g->ranges.p[i].lo;
		if (!advance(g, &open, at))
			return false;
		for (; i < g->ranges.n && g->ranges.p[i].lo == at; i++)
			if (!heap_add(g, (uint32_t)i))
				return false;
		if (!put(g->to, &open, at, rank(g, 0)))
			return false;
	}
	return advance(g, &open, UINT32_MAX);
}

int flatten_ranges(struct gatherer *g)
{
	g->heap.n = 0;
	if (g->ranges.n > 1)
		qsort(g->ranges.p, g->ranges.n, sizeof(*g->ranges.p), by_start);
	bool ok = sweep(g);
	g->ranges.n = 0;
	return ok ? 0 : -ENOMEM;
}
