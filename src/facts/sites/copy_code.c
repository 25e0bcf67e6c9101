/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/copy_code.h"

#include <errno.h>
#include <stdlib.h>

/* Nops belong to no copy: only code from above runs the nops before a loop. */
int copy_code_own(struct copy_code *c, struct dw_range r)
{
	const struct cfg *g = c->cfg;
	for (size_t i = cfg_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v && !c->rc; i++) {
		if (g->v.p[i].is_nop || c->marks[i] & OWN)
			continue;
		c->marks[i] |= OWN;
		c->rc = VEC_ADD(&c->scratch->own, (uint32_t)i) ? 0 : -ENOMEM;
	}
	return c->rc;
}

void copy_code_other(const struct copy_code *c, struct dw_range r)
{
	const struct cfg *g = c->cfg;
	for (size_t i = cfg_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v; i++)
		if (!g->v.p[i].is_nop)
			c->marks[i] |= OTHER;
}

int copy_code_init(struct copy_code *c, struct cfg *g, struct event_count_scratch *scratch)
{
	if (g->v.n >= scratch->cap) {
		free(scratch->marks);
		scratch->marks = malloc(2 * g->v.n + 1);
		scratch->cap = scratch->marks ? 2 * g->v.n + 1 : 0;
		if (!scratch->marks)
			return -ENOMEM;
	}
	memset(scratch->marks, 0, g->v.n + 1);
	scratch->own.n = 0;
	*c = (struct copy_code){.cfg = g, .marks = scratch->marks, .scratch = scratch};
	return 0;
}

int copy_code_of(struct copy_code *c, struct cfg *g, const struct built_site *copy,
		 struct event_count_scratch *scratch)
{
	int rc = copy_code_init(c, g, scratch);
	for (uint32_t i = 0; i < copy->n_ranges && !rc; i++)
		rc = copy_code_own(c, copy->ranges[i]);
	return rc;
}

void event_count_scratch_fini(struct event_count_scratch *s)
{
	free(s->marks);
	VEC_FREE(&s->own);
	VEC_FREE(&s->ranges);
}

void copy_code_mark_ahead(struct copy_code *c)
{
	const struct cfg *g = c->cfg;
	bool orphan_ahead = false;
	for (size_t n = 0; n < g->by_order.n; n++) {
		uint32_t i = g->by_order.p[n], k = 0, s;
		const struct cfg_insn *insn = &g->v.p[i];
		/* The orphans seen so far are those of a higher order. */
		bool ahead = c->marks[i] & SITE || (insn->is_indirect && orphan_ahead);
		while (!ahead && !insn->is_indirect && (s = cfg_next(g, i, &k)) != GRAPH_NONE)
			ahead = c->marks[s] & AHEAD && g->v.p[s].order > insn->order;
		if (ahead)
			c->marks[i] |= AHEAD;
		orphan_ahead |= ahead && insn->is_orphan;
	}
}

/*
 * At a join of two paths Clang puts a copy of a value at the end of one path. It has line 0 and is
 * attributed to the code of the other path. Control that passes there, and reaches nothing that the
 * copy computes, made no call. Computed code may have line 0 as well: equal statements of two cases
 * that were merged.
 */
void copy_code_mark_source(struct copy_code *c)
{
	const struct cfg *g = c->cfg;
	for (size_t n = 0; n < c->scratch->own.n && !g->has_line0; n++)
		c->marks[c->scratch->own.p[n]] |= SOURCE;
	for (size_t n = 0; n < g->by_order.n && g->has_line0; n++) {
		uint32_t i = g->by_order.p[n];
		bool source = c->marks[i] & OWN && !(g->v.p[i].is_line0 && g->v.p[i].only_moves);
		for (uint32_t k = 0, s;
		     c->marks[i] & OWN && !source && (s = cfg_next(g, i, &k)) != GRAPH_NONE;)
			source = c->marks[s] & SOURCE;
		if (source)
			c->marks[i] |= SOURCE;
	}
}

/*
 * True if the copy contains its own indirect jump. Its cases are then attributed to that jump, not
 * to the container's other indirect jumps, although an indirect jump is assumed to go everywhere.
 */
bool copy_code_has_table(const struct copy_code *c)
{
	for (size_t n = 0; n < c->scratch->own.n; n++)
		if (c->cfg->v.p[c->scratch->own.p[n]].is_indirect)
			return true;
	return false;
}

/*
 * True if the straight line from a site has a call or a store of the copy. Compilers do not do
 * these ahead of time.
 */
bool copy_code_has_effect(const struct copy_code *c, uint32_t at)
{
	const struct cfg *g = c->cfg;
	for (uint32_t i = at; i != GRAPH_NONE; i = g->v.p[i].next) {
		if (c->marks[i] & OWN && g->v.p[i].has_effect)
			return true;
		if (g->v.p[i].is_branch || g->v.p[i].is_call)
			return false;
	}
	return false;
}
