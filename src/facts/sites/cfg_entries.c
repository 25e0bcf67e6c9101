/* SPDX-License-Identifier: BSD-2-Clause */
/* The CFG entries of a copy: where control enters it. */
#include "sites/copy_code.h"

#include <errno.h>
#include <stdlib.h>

/* The CFG entries, sorted by order. */
struct cfg_entries {
	VEC(uint32_t) early, last; /* those from which another one is ahead, and the others */
};

/* True if code that is reached without passing the copy leads to this instruction of the copy. */
static bool comes_from_around(const struct copy_code *c, uint32_t i, bool table)
{
	for (uint32_t k = 0, b; (b = cfg_before(c->cfg, i, &k)) != GRAPH_NONE;)
		if (c->marks[b] & AROUND && !(table && c->cfg->v.p[b].is_indirect))
			return true;
	return false;
}

/* Mark as sites the instructions of the copy that paths from the function's entry reach first. */
static int mark_cfg_entries(struct copy_code *c)
{
	const struct cfg *g = c->cfg;
	int rc = 0;
	if (c->marks[g->entry] & OWN) {
		c->marks[g->entry] |= SITE;
	} else {
		c->marks[g->entry] |= AROUND;
		rc = cfg_spread(g, &g->entry, 1, c->marks, AROUND, 0, OWN);
	}
	bool table = copy_code_has_table(c);
	copy_code_mark_source(c);
	for (size_t n = 0; n < c->scratch->own.n && !rc; n++)
		if (c->marks[c->scratch->own.p[n]] & SOURCE &&
		    comes_from_around(c, c->scratch->own.p[n], table))
			c->marks[c->scratch->own.p[n]] |= SITE;
	return rc;
}

static bool leads_to_site(const struct copy_code *c, uint32_t i)
{
	const struct cfg *g = c->cfg;
	for (uint32_t k = 0, s; (s = cfg_next(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[s] & AHEAD && g->v.p[s].order > g->v.p[i].order)
			return true;
	return false;
}

/* True if a path may end here, or start over, without passing a site. */
static bool may_miss_sites(const struct copy_code *c, uint32_t i)
{
	const struct cfg *g = c->cfg;
	const struct cfg_insn *insn = &g->v.p[i];
	bool ends = insn->next == GRAPH_NONE && insn->target == GRAPH_NONE;
	if (insn->is_indirect || (ends && !insn->is_call))
		return true;
	for (uint32_t k = 0, s; (s = cfg_next(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[s] & EARLY && g->v.p[s].order <= insn->order)
			return true;
	return false;
}

/*
 * True if the early entries only do work ahead of time, so that the last entries alone see each
 * call once. The copy has no effect there, and every path from there reaches one of the last
 * entries, where the effects are.
 */
static bool are_early_idle(struct copy_code *c, const struct cfg_entries *w)
{
	const struct cfg *g = c->cfg;
	for (size_t n = 0; n < w->last.n; n++)
		if (!copy_code_has_effect(c, w->last.p[n]))
			return false;
	for (size_t n = 0; n < w->early.n; n++)
		c->marks[w->early.p[n]] |= EARLY | BEFORE;
	if (cfg_spread(g, w->early.p, w->early.n, c->marks, BEFORE, 0, SITE))
		return false;
	for (uint32_t i = 0; i < g->v.n; i++)
		if (c->marks[i] & BEFORE &&
		    ((c->marks[i] & OWN && g->v.p[i].has_effect) || may_miss_sites(c, i)))
			return false;
	return true;
}

static int find_entries(struct copy_code *c, struct cfg_entries *w)
{
	const struct cfg *g = c->cfg;
	int rc = cfg_number(c->cfg);
	if (!rc)
		rc = mark_cfg_entries(c);
	if (!rc)
		copy_code_mark_ahead(c);
	for (size_t k = g->by_order.n; k-- > 0 && !rc;) {
		uint32_t i = g->by_order.p[k];
		if (!(c->marks[i] & SITE))
			continue;
		rc = (leads_to_site(c, i) ? VEC_ADD(&w->early, i) : VEC_ADD(&w->last, i)) ? 0
											  : -ENOMEM;
	}
	return rc;
}

/* The first of the entries; one with a line is preferred. */
static uint32_t first_entry(const struct cfg *g, const struct cfg_entries *w)
{
	uint32_t first = GRAPH_NONE;
	for (size_t n = 0; n < w->early.n + w->last.n; n++) {
		uint32_t i = n < w->early.n ? w->early.p[n] : w->last.p[n - w->early.n];
		const struct cfg_insn *a = &g->v.p[i],
				      *b = first == GRAPH_NONE ? NULL : &g->v.p[first];
		if (!b || (a->is_line0 == b->is_line0 ? a->order < b->order : b->is_line0))
			first = i;
	}
	return first;
}

static unsigned int choose_entries(struct copy_code *c, const struct cfg_entries *w,
				   struct cairn_vaddr *ret)
{
	const struct cfg *g = c->cfg;
	if (w->last.n && w->last.n <= CFG_ENTRIES_MAX && (!w->early.n || are_early_idle(c, w))) {
		for (size_t n = 0; n < w->last.n; n++)
			ret[n].v = g->v.p[w->last.p[n]].at;
		return (unsigned int)w->last.n;
	}
	uint32_t first = first_entry(g, w);
	if (first == GRAPH_NONE)
		return 0;
	ret[0].v = g->v.p[first].at;
	return 1;
}

unsigned int event_count_cfg_entries(struct cfg *g, const struct built_site *copy,
				     struct cairn_vaddr *ret)
{
	struct event_count_scratch scratch = {0};
	struct copy_code c = {0};
	struct cfg_entries w = {0};
	unsigned int n = 0;
	if (g->entry != GRAPH_NONE && !copy_code_of(&c, g, copy, &scratch) && !find_entries(&c, &w))
		n = choose_entries(&c, &w, ret);
	VEC_FREE(&w.early);
	VEC_FREE(&w.last);
	event_count_scratch_fini(&scratch);
	return n;
}
