/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which instructions are in a loop, and which of them the function's entry reaches
 *
 * A path leads from an instruction to it again if it is in a strongly connected component of the
 * graph that has an edge. Tarjan's algorithm finds those components, on blocks: runs that are
 * entered at their first instruction only, and left at their last.
 *
 *	1: mov			blocks 1 2 3 4; edges 1-2, 2-3, 2-4, 3-2
 *	2: cmp; je 4		2 and 3 lead to each other
 *	3: ...; jmp 2
 *	4: ret
 *
 * Compilers put rare code after a function's end, and jump back from there. So a backward jump
 * means little: of a kernel's functions three of four have one, and one of three has a loop.
 *
 * The instructions that the first search meets, from the entry, are reached.
 *
 * Cost: linear in the instructions and jumps.
 */
#include <errno.h>
#include <stdlib.h>

#include "loc/cfg.h"

struct block {
	uint32_t first, last; /* instructions */
	uint32_t index;       /* in the order in which they are met + 1; 0: not yet */
	uint32_t low;         /* the lowest index that is known to be in one component with it */
	uint8_t n_done;       /* edges that were followed */
	bool is_open;         /* its component is not known */
};

struct loops {
	struct cfg *g;
	struct block *blocks;
	uint32_t n;
	uint32_t *block_of;    /* by instruction; of first ones only */
	uint32_t *path, *open; /* blocks */
	uint32_t n_path, n_open;
	uint32_t n_met;
};

static bool ends_block(const struct cfg *g, uint32_t i)
{
	return g->v.p[i].next == GRAPH_NONE || g->v.p[i].target != GRAPH_NONE ||
	       g->v.p[i + 1].is_target || i + 1 == g->entry;
}

/* There may be as many as instructions; unused memory is not touched. */
static bool make_blocks(struct loops *l)
{
	const struct cfg *g = l->g;
	l->blocks = malloc(g->v.n * (sizeof(*l->blocks) + 3 * sizeof(uint32_t)) + 1);
	if (!l->blocks)
		return false;
	l->path = (uint32_t *)(l->blocks + g->v.n);
	l->open = l->path + g->v.n;
	l->block_of = l->open + g->v.n;
	for (uint32_t i = 0, first = 0; i < g->v.n; i++) {
		if (!ends_block(g, i))
			continue;
		l->block_of[first] = l->n;
		l->blocks[l->n++] = (struct block){.first = first, .last = i};
		first = i + 1;
	}
	return true;
}

/* The next edge of a block; GRAPH_NONE after the last. */
static uint32_t next_block(const struct loops *l, struct block *b)
{
	const struct cfg_insn *last = &l->g->v.p[b->last];
	while (b->n_done < 2) {
		uint32_t to = b->n_done++ ? last->target : last->next;
		if (to != GRAPH_NONE)
			return l->block_of[to];
	}
	return GRAPH_NONE;
}

static void enter(struct loops *l, uint32_t block)
{
	struct block *b = &l->blocks[block];
	b->index = b->low = ++l->n_met;
	b->is_open = true;
	l->path[l->n_path++] = l->open[l->n_open++] = block;
}

static bool leads_to_itself(const struct loops *l, const struct block *b)
{
	const struct cfg_insn *last = &l->g->v.p[b->last];
	return last->next == b->first || last->target == b->first;
}

/* A component is complete: the open blocks from its first one on. */
static void close_component(struct loops *l, uint32_t first)
{
	bool is_loop = l->open[l->n_open - 1] != first || leads_to_itself(l, &l->blocks[first]);
	uint32_t block;
	do {
		block = l->open[--l->n_open];
		struct block *b = &l->blocks[block];
		b->is_open = false;
		for (uint32_t i = b->first; is_loop && i <= b->last; i++)
			l->g->v.p[i].is_in_loop = true;
	} while (block != first);
}

static void leave(struct loops *l)
{
	uint32_t block = l->path[--l->n_path];
	struct block *b = &l->blocks[block];
	struct block *from = l->n_path ? &l->blocks[l->path[l->n_path - 1]] : NULL;
	if (b->low == b->index)
		close_component(l, block);
	else if (from && b->low < from->low)
		from->low = b->low;
}

static void search_from(struct loops *l, uint32_t start)
{
	enter(l, start);
	while (l->n_path) {
		struct block *b = &l->blocks[l->path[l->n_path - 1]];
		uint32_t to = next_block(l, b);
		if (to == GRAPH_NONE)
			leave(l);
		else if (!l->blocks[to].index)
			enter(l, to);
		else if (l->blocks[to].is_open && l->blocks[to].index < b->low)
			b->low = l->blocks[to].index;
	}
}

static void search_from_entry(struct loops *l)
{
	if (l->g->entry == GRAPH_NONE)
		return;
	search_from(l, l->block_of[l->g->entry]);
	for (uint32_t i = 0; i < l->n; i++)
		for (uint32_t k = l->blocks[i].first; l->blocks[i].index && k <= l->blocks[i].last;
		     k++)
			l->g->v.p[k].is_reached = true;
}

int cfg_find_loops(struct cfg *g)
{
	struct loops l = {.g = g};
	if (!make_blocks(&l))
		return -ENOMEM;
	search_from_entry(&l);
	for (uint32_t i = 0; i < l.n; i++)
		if (!l.blocks[i].index)
			search_from(&l, i);
	g->is_loops_known = true;
	free(l.blocks);
	return 0;
}
