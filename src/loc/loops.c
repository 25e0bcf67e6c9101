/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which instructions are in a loop
 *
 * Something leads from an instruction to it again when it is in a strongly connected component of the graph that has an edge. Those are found
 * with Tarjan's algorithm, of blocks: what is entered at its first instruction only, and left at its last.
 *
 *	1: mov			blocks 1 2 3 4; edges 1-2, 2-3, 2-4, 3-2
 *	2: cmp; je 4		2 and 3 lead to each other
 *	3: ...; jmp 2
 *	4: ret
 *
 * Compilers put what is rare behind a function's end, and jump back from there. So that a jump goes back tells little: in a kernel three of four
 * functions have such, and one of four has a loop.
 *
 * Cost: linear in the instructions and jumps; where no jump goes back, linear in the jumps.
 */
#include <errno.h>
#include <stdlib.h>

#include "loc/graph.h"

struct block {
	uint32_t first, last; /* instructions */
	uint32_t index;       /* in the order in which they are met + 1; 0: not yet */
	uint32_t low;         /* the lowest index that is known to be in one component with it */
	uint8_t n_done;       /* edges that were followed */
	bool is_open;         /* on the stack: its component is not known */
};

struct loops {
	struct graph *g;
	VEC(struct block) blocks;
	uint32_t *block_of; /* by instruction; of first ones only */
	VEC(uint32_t) path, open;
	uint32_t n_met;
};

static bool has_jump_back(const struct graph *g)
{
	for (uint32_t to = 0; to < g->v.n; to++)
		for (uint32_t k = g->jumps_to[to]; k < g->jumps_to[to + 1]; k++)
			if (g->jumps[k] >= to)
				return true;
	return false;
}

static bool make_blocks(struct loops *l)
{
	const struct graph *g = l->g;
	bool begins = true;
	l->block_of = malloc((g->v.n + 1) * sizeof(*l->block_of));
	if (!l->block_of)
		return false;
	for (uint32_t i = 0; i < g->v.n; i++) {
		const struct graph_insn *insn = &g->v.p[i];
		if (begins || insn->is_target) {
			if (!VEC_ADD(&l->blocks, ((struct block){.first = i})))
				return false;
			l->block_of[i] = (uint32_t)l->blocks.n - 1;
		}
		l->blocks.p[l->blocks.n - 1].last = i;
		begins = insn->next == GRAPH_NONE || insn->target != GRAPH_NONE;
	}
	return true;
}

/* The next edge of a block; GRAPH_NONE behind the last. */
static uint32_t next_block(const struct loops *l, struct block *b)
{
	const struct graph_insn *last = &l->g->v.p[b->last];
	while (b->n_done < 2) {
		uint32_t to = b->n_done++ ? last->target : last->next;
		if (to != GRAPH_NONE)
			return l->block_of[to];
	}
	return GRAPH_NONE;
}

static bool enter(struct loops *l, uint32_t block)
{
	struct block *b = &l->blocks.p[block];
	b->index = b->low = ++l->n_met;
	b->is_open = true;
	return VEC_ADD(&l->path, block) && VEC_ADD(&l->open, block);
}

static bool leads_to_itself(const struct loops *l, const struct block *b)
{
	const struct graph_insn *last = &l->g->v.p[b->last];
	return last->next == b->first || last->target == b->first;
}

/* A component is complete: the open blocks from its first one on. */
static void close_component(struct loops *l, uint32_t first)
{
	bool is_loop = l->open.p[l->open.n - 1] != first || leads_to_itself(l, &l->blocks.p[first]);
	uint32_t block;
	do {
		block = l->open.p[--l->open.n];
		struct block *b = &l->blocks.p[block];
		b->is_open = false;
		for (uint32_t i = b->first; is_loop && i <= b->last; i++)
			l->g->v.p[i].is_in_loop = true;
	} while (block != first);
}

static void leave(struct loops *l)
{
	uint32_t block = l->path.p[--l->path.n];
	struct block *b = &l->blocks.p[block];
	struct block *from = l->path.n ? &l->blocks.p[l->path.p[l->path.n - 1]] : NULL;
	if (b->low == b->index)
		close_component(l, block);
	else if (from && b->low < from->low)
		from->low = b->low;
}

static bool search_from(struct loops *l, uint32_t start)
{
	bool ok = enter(l, start);
	while (ok && l->path.n) {
		struct block *b = &l->blocks.p[l->path.p[l->path.n - 1]];
		uint32_t to = next_block(l, b);
		if (to == GRAPH_NONE)
			leave(l);
		else if (!l->blocks.p[to].index)
			ok = enter(l, to);
		else if (l->blocks.p[to].is_open && l->blocks.p[to].index < b->low)
			b->low = l->blocks.p[to].index;
	}
	return ok;
}

int graph_find_loops(struct graph *g)
{
	struct loops l = {.g = g};
	bool ok = true;
	if (has_jump_back(g)) {
		ok = make_blocks(&l);
		for (uint32_t i = 0; ok && i < l.blocks.n; i++)
			ok = l.blocks.p[i].index || search_from(&l, i);
	}
	g->is_loops_known = ok;
	VEC_FREE(&l.blocks);
	VEC_FREE(&l.path);
	VEC_FREE(&l.open);
	free(l.block_of);
	return ok ? 0 : -ENOMEM;
}
