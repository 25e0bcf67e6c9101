/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passages: does each call pass a copy's places exactly once?
 *
 * The copy's entry is where the debug information says. Whether calls go there is up to the jumps around it:
 *
 *	              |            |                       P  place
 *	    v         v            v                       o  other code of the copy
 *	    P<--+     o  (2)   --->P (3)                   .  the caller's
 *	    o---+(1)  o            .
 *
 *	(1) the copy's own code leads back to its entry: recursion that became a loop, or a loop of its own with nothing in front of it.
 *	    What passes again is another call or none.
 *	(2) a way leads into the copy past its places. GCC threads jumps: where a condition is known on one path, that path is
 *	    given a copy of the code behind the condition, and the entry's marker stays on the other one.
 *	(3) the place is behind the last instruction of a block, which the copy has no code in; what else comes to the next
 *	    block comes by it too.
 *
 * (2) is asked as: from the function's entry, without passing a place, which of the copy's instructions are reached, coming from
 * code that is not the copy's? The copy's instructions that were moved ahead of its entry are not meant; they are those from
 * which a place is still ahead. Nor is one that comes from another copy of the same function: two copies with
 * equal ends share them.
 */
#include "loc/passage.h"

#include <errno.h>
#include <stdlib.h>

enum {
	OWN = 1 << 0,    /* in the copy's ranges */
	PLACE = 1 << 1,
	AROUND = 1 << 2, /* reached from the function's entry without passing a place */
	AHEAD = 1 << 3,  /* leads to a place, loops aside */
	INSIDE = 1 << 4, /* reached from a place in the copy's own code */
	OTHER = 1 << 5,  /* in the ranges of another copy of the same function */
};

struct marking {
	const struct graph *graph;
	uint8_t *marks;
	uint8_t bit;
};

/* Nops belong to nobody: those before a loop are passed by what comes from above only. */
static int mark_range(void *arg, struct dw_range r)
{
	struct marking *m = arg;
	for (size_t i = graph_from(m->graph, r.lo.v); i < m->graph->v.n && m->graph->v.p[i].at < r.hi.v; i++)
		if (!m->graph->v.p[i].is_nop)
			m->marks[i] |= m->bit;
	return 0;
}

static void mark_ahead(const struct graph *g, uint8_t *marks)
{
	for (size_t n = 0; n < g->n_ordered; n++) {
		uint32_t i = g->by_order[n], k = 0, s;
		bool ahead = marks[i] & PLACE;
		while (!ahead && (s = graph_next(g, i, &k)) != GRAPH_NONE)
			ahead = marks[s] & AHEAD && g->v.p[s].order > g->v.p[i].order;
		if (ahead)
			marks[i] |= AHEAD;
	}
}

/*
 * Whether a copy has a switch: then its cases are led to by that, and not by the other switches of the container, although an
 * indirect jump is taken to go everywhere.
 */
static bool has_table(const struct graph *g, const uint8_t *marks)
{
	for (size_t i = 0; i < g->v.n; i++)
		if (marks[i] & OWN && g->v.p[i].is_indirect)
			return true;
	return false;
}

/* Mark as places the copy's instructions that ways from the function's entry come to first. */
static int mark_ways_in(const struct graph *g, uint8_t *marks)
{
	marks[g->entry] |= marks[g->entry] & OWN ? PLACE : AROUND;
	int rc = graph_spread(g, marks, AROUND, 0, OWN);
	bool table = has_table(g, marks);
	for (uint32_t i = 0; i < g->v.n; i++)
		for (uint32_t k = 0, s; marks[i] & AROUND && !(table && g->v.p[i].is_indirect) && (s = graph_next(g, i, &k)) != GRAPH_NONE;)
			if (marks[s] & OWN)
				marks[s] |= PLACE;
	return rc;
}

static bool leads_to_place(const struct graph *g, const uint8_t *marks, uint32_t i)
{
	for (uint32_t k = 0, s; (s = graph_next(g, i, &k)) != GRAPH_NONE;)
		if (marks[s] & AHEAD && g->v.p[s].order > g->v.p[i].order)
			return true;
	return false;
}

unsigned int passage_ways_in(const struct graph *g, const struct dw_die *copy, struct cairn_vaddr *ret)
{
	uint8_t *marks = calloc(g->v.n + 1, 1);
	unsigned int n = 0;
	bool apart = true;
	if (!marks || g->entry == GRAPH_NONE) {
		free(marks);
		return 0;
	}
	dw_ranges(copy, mark_range, &(struct marking){g, marks, OWN}, NULL);
	if (mark_ways_in(g, marks) == 0)
		mark_ahead(g, marks);
	for (size_t k = g->n_ordered; k-- > 0;) {
		uint32_t i = g->by_order[k];
		if (!(marks[i] & PLACE))
			continue;
		apart &= n < PASSAGE_WAYS_MAX && !leads_to_place(g, marks, i);
		if (n < PASSAGE_WAYS_MAX)
			ret[n++].v = g->v.p[i].at;
	}
	free(marks);
	return apart || !n ? n : 1;
}

/*
 * A way that can be one of another call: it jumps, or falls into where jumps go. What merely follows in memory was mixed with
 * the caller's instructions by the scheduler; and behind a call that does not return there is somebody else's code.
 */
static bool is_way_in(const struct graph *g, uint32_t from, uint32_t to)
{
	const struct graph_insn *insn = &g->v.p[from];
	return insn->is_branch || insn->is_indirect || insn->is_call != g->v.p[to].is_target;
}

/* Instructions of the copy that are entered past its places. */
static uint32_t count_behind(const struct graph *g, uint8_t *marks)
{
	bool table = has_table(g, marks);
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->v.n; i++) {
		if (!(marks[i] & AROUND) || marks[i] & (OWN | OTHER))
			continue;
		if (g->v.p[i].is_indirect && table)
			continue;
		for (uint32_t k = 0, s; (s = graph_next(g, i, &k)) != GRAPH_NONE;)
			n += marks[s] & OWN && !(marks[s] & (AHEAD | PLACE)) && is_way_in(g, i, s);
	}
	return n;
}

/* Whether anything leads from other code into the copy but not to its places: if not, the rest need not be asked. */
static bool has_way_behind(const struct graph *g, const uint8_t *marks)
{
	for (uint32_t i = 0; i < g->v.n; i++)
		for (uint32_t k = 0, s; !(marks[i] & (OWN | OTHER)) && (s = graph_next(g, i, &k)) != GRAPH_NONE;)
			if ((marks[s] & (OWN | PLACE)) == OWN && is_way_in(g, i, s))
				return true;
	return false;
}

/* Ways into the copy past its places, for calls that pass none. */
static int find_behind(const struct graph *g, uint8_t *marks, uint32_t *ret)
{
	*ret = 0;
	if (g->entry == GRAPH_NONE || !has_way_behind(g, marks))
		return 0;
	if (!(marks[g->entry] & PLACE))
		marks[g->entry] |= AROUND;
	int rc = graph_spread(g, marks, AROUND, 0, PLACE);
	mark_ahead(g, marks);
	if (!rc)
		*ret = count_behind(g, marks);
	return rc;
}

static bool comes_back(const struct graph *g, uint8_t *marks)
{
	for (uint32_t i = 0; i < g->v.n; i++)
		for (uint32_t k = 0, s; marks[i] & PLACE && (s = graph_next(g, i, &k)) != GRAPH_NONE;)
			if (marks[s] & OWN)
				marks[s] |= INSIDE;
	if (graph_spread(g, marks, INSIDE, OWN, 0))
		return true;
	for (size_t i = 0; i < g->v.n; i++)
		if ((marks[i] & (PLACE | INSIDE)) == (PLACE | INSIDE))
			return true;
	return false;
}

static uint32_t count_ways_to(const struct graph *g, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->v.n; i++)
		for (uint32_t k = 0, s; g->v.p[i].order != UINT32_MAX && (s = graph_next(g, i, &k)) != GRAPH_NONE;)
			n += s == to;
	return n;
}

/* The straight line from a place has a call or a store of the copy, which are not done ahead of time. */
static bool has_effect(const struct graph *g, const uint8_t *marks, uint32_t at)
{
	for (uint32_t i = at; i != GRAPH_NONE; i = g->v.p[i].next) {
		if (marks[i] & OWN && g->v.p[i].has_effect)
			return true;
		if (g->v.p[i].is_branch || g->v.p[i].is_call)
			return false;
	}
	return false;
}

/* The copy has nothing but a jump to a place of another one: the call was merged with that one's. */
static bool is_merged(const struct passage *p, const uint8_t *marks, uint32_t at)
{
	const struct graph *g = p->graph;
	while (at != GRAPH_NONE && g->v.p[at].is_nop)
		at = g->v.p[at].next;
	if (at == GRAPH_NONE || !(marks[at] & OWN) || !g->v.p[at].is_branch || g->v.p[at].next != GRAPH_NONE)
		return false;
	uint32_t to = g->v.p[at].target;
	for (size_t i = 0; i < p->n_others && to != GRAPH_NONE; i++)
		if (p->others[i]->site.at.v == g->v.p[to].at)
			return true;
	return false;
}

int passage_judge(const struct passage *p)
{
	const struct graph *g = p->graph;
	uint8_t *marks = calloc(g->v.n + 1, 1);
	if (!marks)
		return -ENOMEM;
	dw_ranges(p->copy, mark_range, &(struct marking){g, marks, OWN}, NULL);
	for (size_t i = 0; i < p->n_others; i++)
		dw_ranges(&p->others[i]->die, mark_range, &(struct marking){g, marks, OTHER}, NULL);
	for (size_t i = 0; i < p->n_places; i++) {
		uint32_t at = graph_at(g, p->places[i]->site.at.v);
		if (at != GRAPH_NONE)
			marks[at] |= PLACE;
	}
	bool again = comes_back(g, marks);
	uint32_t behind;
	int rc = find_behind(g, marks, &behind);
	for (size_t i = 0; i < p->n_places && !rc; i++) {
		struct built_site *b = p->places[i];
		uint32_t at = graph_at(g, b->site.at.v);
		if (again)
			b->site.count_doubts |= CAIRN_COUNT_AGAIN;
		if (behind)
			b->site.count_doubts |= CAIRN_COUNT_BEHIND;
		b->site.n_behind = behind;
		if (at != GRAPH_NONE && !(marks[at] & OWN) && count_ways_to(g, at) > 1)
			b->site.count_doubts |= CAIRN_COUNT_SHARED;
		if (at != GRAPH_NONE && is_merged(p, marks, at))
			b->site.count_doubts |= CAIRN_COUNT_MERGED;
		if (b->lost_marker && (at == GRAPH_NONE || !has_effect(g, marks, at)))
			b->site.count_doubts |= CAIRN_COUNT_NO_ENTRY;
	}
	free(marks);
	return rc;
}
