/* SPDX-License-Identifier: BSD-2-Clause */
/* Edges that lead into a copy past its sites: case (2) of event_count.c. */
#include "sites/bypass.h"

#include <errno.h>

#include "sites/quirks/clang_entry_lines.h"

/*
 * True if the copy's own code meets other code in the block of this instruction. GCC does this if a
 * condition is known on the other path: both paths continue with the code after the condition.
 */
static bool joins_own(const struct copy_code *c, uint32_t i)
{
	const struct cfg *g = c->cfg;
	while (!g->v.p[i].is_target && i && g->v.p[i - 1].next == i && !g->v.p[i - 1].is_branch)
		i--;
	for (uint32_t k = 0, b; g->v.p[i].is_target && (b = cfg_before(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[b] & OWN && g->v.p[b].target == i)
			return true;
	return false;
}

static bool own_jumps_to(const struct copy_code *c, uint32_t to)
{
	for (uint32_t k = 0, b; (b = cfg_before(c->cfg, to, &k)) != GRAPH_NONE;)
		if (c->marks[b] & OWN && c->cfg->v.p[b].target == to)
			return true;
	return false;
}

/*
 * True if the edge can be one of another call: it is a jump, or it falls into a jump target.
 * Otherwise falling through is no entry: the scheduler interleaved the caller's instructions, or
 * sank the copy's below its end. There are two exceptions. The target has side effects and a jump
 * of the copy reaches it, too; or the edge comes from a call that is known to return (another call
 * of the same function does). After a call that does not return, the code belongs to another path.
 */
static bool is_cfg_entry(const struct copy_code *c, uint32_t from, uint32_t to)
{
	const struct cfg_insn *insn = &c->cfg->v.p[from];
	if (insn->is_branch || insn->is_indirect || insn->is_call != c->cfg->v.p[to].is_target)
		return true;
	if (insn->is_call && own_jumps_to(c, to) && cfg_returns(c->cfg, from))
		return true;
	return copy_code_has_effect(c, to) && joins_own(c, from);
}

/* The number of the copy's instructions that are entered past its sites. */
static uint32_t count_after(const struct copy_code *c, const struct event_count *p)
{
	const struct cfg *g = c->cfg;
	bool table = copy_code_has_table(c);
	uint32_t count = 0;
	for (size_t n = 0; n < c->scratch->own.n; n++) {
		uint32_t i = c->scratch->own.p[n];
		bool asked = c->marks[i] & SOURCE && !(c->marks[i] & (AHEAD | SITE));
		for (uint32_t k = 0, b; asked && (b = cfg_before(g, i, &k)) != GRAPH_NONE;) {
			bool around = c->marks[b] & AROUND && !(c->marks[b] & OWN) &&
				      !(g->v.p[b].is_indirect && table);
			bool is_way = !(c->marks[b] & OTHER) && is_cfg_entry(c, b, i);
			count += around && (is_way || entry_lines_begin_at(p, i));
		}
	}
	return count;
}

/*
 * The number of places where the copy's first statement occurs again: the next call of an unrolled
 * loop begins there. GCC (-flto) marks where each statement begins; with other compilers only an
 * occurrence after code outside of the copy counts.
 */
uint32_t bypass_count_beginnings(const struct copy_code *c, const struct event_count *p)
{
	const struct cfg *g = c->cfg;
	bool by_statement = dw_unit_is_gcc(p->copy->die.unit);
	uint32_t count = 0;
	for (size_t n = 0; n < c->scratch->own.n && g->n_positions; n++) {
		uint32_t i = c->scratch->own.p[n];
		bool inside = !by_statement && i && c->marks[i - 1] & OWN &&
			      g->v.p[i - 1].at + g->v.p[i - 1].len == g->v.p[i].at;
		count += !inside && !(c->marks[i] & SITE) && entry_lines_repeat_at(p, i);
	}
	return count;
}

/*
 * True if any edge leads from other code into the copy but not to its sites. If not, the other
 * checks are not needed.
 */
static bool has_way_after(const struct copy_code *c, const struct event_count *p)
{
	for (size_t n = 0; n < c->scratch->own.n; n++) {
		uint32_t i = c->scratch->own.p[n];
		for (uint32_t k = 0, b;
		     !(c->marks[i] & SITE) && (b = cfg_before(c->cfg, i, &k)) != GRAPH_NONE;)
			if (!(c->marks[b] & OWN) &&
			    (is_cfg_entry(c, b, i) || entry_lines_begin_at(p, i)))
				return true;
	}
	return false;
}

/* Edges into the copy past its sites, for calls that hit none of them. */
int bypass_find(struct copy_code *c, const struct event_count *p, uint32_t *ret)
{
	const struct cfg *g = c->cfg;
	*ret = 0;
	if (g->entry == GRAPH_NONE || !has_way_after(c, p))
		return 0;
	for (size_t i = 0; i < p->n_others; i++)
		for (uint32_t k = 0;
		     p->others[i]->die.off != p->copy->die.off && k < p->others[i]->n_ranges; k++)
			copy_code_other(c, p->others[i]->ranges[k]);
	if (!(c->marks[g->entry] & SITE))
		c->marks[g->entry] |= AROUND;
	int rc = c->marks[g->entry] & AROUND
			 ? cfg_spread(g, &g->entry, 1, c->marks, AROUND, 0, SITE)
			 : 0;
	if (!rc)
		rc = cfg_number(c->cfg);
	if (rc)
		return rc;
	copy_code_mark_ahead(c);
	copy_code_mark_source(c);
	*ret = count_after(c, p);
	return 0;
}
