/* SPDX-License-Identifier: BSD-2-Clause */
/* Loops: whether code leads from an instruction to it again. Case (1) of event_count.c. */
#include "sites/copy_code.h"

#include <errno.h>

/*
 * Code without a line between the parts of a copy's loop belongs to the loop: statements that were
 * merged with the caller's.
 */
static void mark_nobody(struct copy_code *c)
{
	const struct cfg *g = c->cfg;
	for (size_t i = 0; i < g->v.n && g->has_line0; i++)
		if (g->v.p[i].is_line0 && !(c->marks[i] & OWN))
			c->marks[i] |= NOBODY;
}

/* True if the copy's own code leads from a site to a site. */
int copy_comes_back(struct copy_code *c, const struct event_count *p, bool *ret)
{
	const struct cfg *g = c->cfg;
	VEC(uint32_t) from = {0};
	int rc = 0;
	mark_nobody(c);
	for (size_t i = 0; i < p->n_sites && !rc; i++) {
		uint32_t at = p->at[i];
		for (uint32_t k = 0, s;
		     at != GRAPH_NONE && !rc && (s = cfg_next(g, at, &k)) != GRAPH_NONE;) {
			if (!(c->marks[s] & OWN) || c->marks[s] & INSIDE)
				continue;
			c->marks[s] |= INSIDE;
			rc = VEC_ADD(&from, s) ? 0 : -ENOMEM;
		}
	}
	if (!rc)
		rc = cfg_spread(g, from.p, from.n, c->marks, INSIDE, OWN | NOBODY, 0);
	VEC_FREE(&from);
	*ret = false;
	for (size_t n = 0; n < c->scratch->own.n; n++)
		*ret |= (c->marks[c->scratch->own.p[n]] & (SITE | INSIDE)) == (SITE | INSIDE);
	return rc;
}

static int note_range(void *arg, struct dw_range r)
{
	struct event_count_scratch *scratch = arg;
	return VEC_ADD(&scratch->ranges, r) ? 0 : -ENOMEM;
}

/* This includes the nops that align inner loops: paths lead through them. */
static bool is_in_scope(const struct event_count_scratch *scratch, const struct cfg_insn *insn)
{
	for (size_t i = 0; i < scratch->ranges.n; i++)
		if (scratch->ranges.p[i].lo.v <= insn->at && insn->at < scratch->ranges.p[i].hi.v)
			return true;
	return false;
}

/*
 * Search from an instruction in the scope's code until a path reaches it again. Most loops are
 * short, and an instruction outside of all loops is on no such path.
 */
static int find_way_back(const struct copy_code *c, uint32_t i)
{
	const struct cfg *g = c->cfg;
	struct event_count_scratch *scratch = c->scratch;
	bool orphans_done = false;
	int rc = VEC_ADD(&scratch->own, i) ? 0 : -ENOMEM;
	while (scratch->own.n && !rc) {
		uint32_t at = scratch->own.p[--scratch->own.n], k = 0, s;
		bool skip = g->v.p[at].is_indirect && orphans_done;
		orphans_done |= g->v.p[at].is_indirect;
		while (!skip && !rc && (s = cfg_next(g, at, &k)) != GRAPH_NONE) {
			if (s == i)
				return 1;
			bool is_aside = g->is_loops_known && !g->v.p[s].is_in_loop;
			if (c->marks[s] & INSIDE || is_aside || !is_in_scope(scratch, &g->v.p[s]))
				continue;
			c->marks[s] |= INSIDE;
			rc = VEC_ADD(&scratch->own, s) ? 0 : -ENOMEM;
		}
	}
	return rc;
}

int event_count_comes_back(struct cfg *g, const struct dw_die *scope, struct cairn_vaddr at,
			   struct event_count_scratch *scratch)
{
	struct copy_code c;
	uint32_t i = cfg_at(g, at.v);
	scratch->ranges.n = 0;
	if (i == GRAPH_NONE)
		return 0;
	if (dw_ranges(scope, note_range, scratch, NULL) == -ENOMEM ||
	    copy_code_init(&c, g, scratch) < 0)
		return -ENOMEM;
	return is_in_scope(scratch, &g->v.p[i]) ? find_way_back(&c, i) : 0;
}

int event_count_is_in_loop(struct cfg *g, const struct dw_die *function, uint32_t at,
			   struct event_count_scratch *scratch)
{
	int rc = cfg_may_come_back(g, at);
	if (rc <= 0 || g->is_loops_known)
		return rc;
	return event_count_comes_back(g, function, (struct cairn_vaddr){g->v.p[at].at}, scratch);
}
