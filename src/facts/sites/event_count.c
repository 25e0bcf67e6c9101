/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event counts: does each call hit a site of the inlined copy exactly once?
 *
 * The debug information gives the copy's entry. Whether calls go there depends on the jumps around
 * it:
 *
 *	              |            |                       P  site
 *	    v         v            v                       o  other code of the copy
 *	    P<--+     o  (2)   --->P (3)                   .  the caller's
 *	    o---+(1)  o            .
 *
 *	(1) The copy's own code leads back to its entry: recursion that became a loop, or a loop of
 *	    its own with no code before it. The next hit is another call, or none.
 *	(2) An edge leads into the copy past its sites. GCC threads jumps: if a condition is known
 *	    on one path, GCC gives that path its own duplicate of the code after the condition. The
 *	    entry's marker stays on the other path.
 *	(3) The site follows the last instruction of a block in which the copy has no code. Other
 *	    paths into the next block hit the site, too.
 *
 * Case (2) is a search: starting at the function's entry and passing no site, which instructions of
 * the copy are reached from code outside of the copy? Instructions of the copy that were moved
 * ahead of its entry do not count; from them a site is still ahead. Instructions reached from
 * another copy of the same function do not count either: two copies with equal ends share them.
 *
 * A large function has thousands of copies. So the checks on a copy's own instructions and the ones
 * just before them run first. The whole container is searched only if an edge leads in past the
 * sites.
 *
 *	copy_code.c    marks on the instructions of the container: what is the copy's
 *	cfg_entries.c  where control enters the copy, where the debug information does not say it
 *	copy_loop.c    case (1)
 *	bypass.c       case (2)
 */
#include "sites/event_count.h"

#include <errno.h>

#include "dwarf/constants.h"
#include "sites/bypass.h"
#include "sites/quirks/clang_entry_lines.h"
#include "sites/quirks/tested_after_call.h"
#include "sites/quirks/vectorised.h"

/* Sets *@ret if more than one path leads to an instruction. */
static int has_several_ways_to(struct cfg *g, uint32_t to, bool *ret)
{
	uint32_t ways = 0, reached = 0;
	for (uint32_t k = 0; cfg_before(g, to, &k) != GRAPH_NONE;)
		ways++;
	for (uint32_t k = 0, b;
	     ways > 1 && reached < 2 && (b = cfg_before(g, to, &k)) != GRAPH_NONE;) {
		int rc = cfg_is_reached(g, b);
		if (rc < 0)
			return rc;
		reached += (uint32_t)rc;
	}
	*ret = reached > 1;
	return 0;
}

/* The same answer as copy_code_own() gives, for callers that check few instructions. */
static bool is_own(const struct event_count *p, uint32_t i)
{
	const struct cfg_insn *insn = &p->cfg->v.p[i];
	return !insn->is_nop && site_has_code(p->copy, insn->at);
}

/* True if the copy consists only of a jump to a site of another copy: the two calls were merged. */
static bool is_merged(const struct event_count *p, uint32_t at)
{
	const struct cfg *g = p->cfg;
	while (at != GRAPH_NONE && g->v.p[at].is_nop)
		at = g->v.p[at].next;
	if (at == GRAPH_NONE || !g->v.p[at].is_branch || g->v.p[at].next != GRAPH_NONE ||
	    !is_own(p, at))
		return false;
	uint32_t to = g->v.p[at].target;
	for (size_t i = 0; i < p->n_others && to != GRAPH_NONE; i++)
		if (p->others[i]->die.off != p->copy->die.off &&
		    p->others[i]->site.at.v == g->v.p[to].at)
			return true;
	return false;
}

/*
 * True if all paths from @from reach @to before they end or reach @from again: the code between
 * does not decide about @to. Used on short pieces of code only.
 */
static bool leads_only_to(const struct cfg *g, uint32_t from, uint32_t to)
{
	enum { FAR = 64 };
	uint32_t seen[FAR] = {from};
	size_t n = from != to;
	for (size_t i = 0; i < n; i++) {
		const struct cfg_insn *insn = &g->v.p[seen[i]];
		uint32_t k = 0, s;
		if (insn->is_indirect || (insn->next == GRAPH_NONE && insn->target == GRAPH_NONE))
			return false;
		while ((s = cfg_next(g, seen[i], &k)) != GRAPH_NONE) {
			size_t at = 0;
			while (at < n && seen[at] != s)
				at++;
			if (s == from || (s != to && at == FAR))
				return false;
			if (s != to && at == n)
				seen[n++] = s;
		}
	}
	return true;
}

/* True if the copy begins, after its site, with a condition that can leave the copy. */
static bool begins_with_condition(const struct event_count *p, uint32_t at)
{
	const struct cfg *g = p->cfg;
	uint32_t i = at;
	while (i != GRAPH_NONE && !g->v.p[i].is_branch && !g->v.p[i].has_effect)
		i = g->v.p[i].next;
	if (i == GRAPH_NONE || g->v.p[i].next == GRAPH_NONE || g->v.p[i].target == GRAPH_NONE ||
	    !is_own(p, i))
		return false;
	return !is_own(p, g->v.p[i].next) || !is_own(p, g->v.p[i].target);
}

/*
 * True if the first branch after the site belongs to the statement around the call and not to a
 * loop. If both arms of a condition begin alike, GCC moves the common part before the condition.
 * The entry of the call in one arm moves along.
 */
static bool is_decided_after(const struct cfg *g, const struct built_site *b, uint32_t at)
{
	uint32_t i = at;
	while (i != GRAPH_NONE && !g->v.p[i].is_branch && !g->v.p[i].is_call)
		i = g->v.p[i].next;
	if (i == GRAPH_NONE || g->v.p[i].next == GRAPH_NONE || g->v.p[i].target == GRAPH_NONE ||
	    g->v.p[i].target <= i)
		return false;
	uint64_t off = g->v.p[i].at - b->site.at.v;
	return off >= b->around.from && off < b->around.to;
}

/*
 * True if nothing decides between the site and the statement around the call, which is the call's
 * condition. Either the decision comes after the site, or the copy begins with a condition that can
 * leave it: GCC merged both conditions (if (a != 3 && a > 1)) and put the entry before them.
 */
static bool has_callers_condition(const struct event_count *p, const struct built_site *b,
				  uint32_t at)
{
	if (!b->around.at.v || !(begins_with_condition(p, at) || is_decided_after(p->cfg, b, at)))
		return false;
	uint32_t around = cfg_at(p->cfg, b->around.at.v);
	return around != GRAPH_NONE && leads_only_to(p->cfg, around, at);
}

/*
 * Markers of two paths into the copy that the compiler moved to one instruction: one call gives two
 * events there.
 */
static bool is_site_twice(const struct event_count *p, size_t site)
{
	for (size_t i = 0; i < p->n_sites; i++)
		if (i != site && p->at[i] == p->at[site])
			return true;
	return false;
}

/* The facts that values depend on, besides whether the copy leads back to the site. */
static int analyse_value(const struct event_count *p, size_t site)
{
	struct built_site *b = p->sites[site];
	uint32_t at = p->at[site];
	bool shared = false;
	int rc = at != GRAPH_NONE && !is_own(p, at) ? has_several_ways_to(p->cfg, at, &shared) : 0;
	if (shared || (at != GRAPH_NONE && is_site_twice(p, site)))
		b->site.count_caveats |= CAIRN_COUNT_SHARED_PC;
	if (at != GRAPH_NONE && (has_callers_condition(p, b, at) || tested_after_call_is(p, at)))
		b->site.count_caveats |= CAIRN_COUNT_BEFORE_TEST;
	return rc;
}

/*
 * True if the copy has decided or done something before the site: the call began elsewhere. GCC
 * shares equal ends of a function and of a copy in it, and that end may be the copy's first range.
 * A value that is only computed ahead of time decides nothing.
 */
static int begins_before(struct copy_code *c, bool *ret)
{
	const struct cfg *g = c->cfg;
	*ret = false;
	if (g->entry == GRAPH_NONE || c->marks[g->entry] & SITE)
		return 0;
	c->marks[g->entry] |= AROUND;
	int rc = cfg_spread(g, &g->entry, 1, c->marks, AROUND, 0, SITE);
	if (!rc)
		rc = cfg_number(c->cfg);
	if (rc)
		return rc;
	copy_code_mark_ahead(c);
	for (size_t n = 0; n < c->scratch->own.n; n++) {
		uint32_t i = c->scratch->own.p[n];
		bool before = (c->marks[i] & (AROUND | AHEAD | SITE | INSIDE)) == (AROUND | AHEAD);
		*ret |= before && (g->v.p[i].is_branch || g->v.p[i].has_effect);
	}
	return 0;
}

/*
 * GCC marks entries, but this copy's marker was lost. So the site is the copy's first instruction,
 * and that may have been moved.
 */
static int analyse_lost_marker(struct copy_code *c, const struct event_count *p, size_t site)
{
	struct built_site *b = p->sites[site];
	uint32_t at = p->at[site];
	bool lost = at == GRAPH_NONE || !copy_code_has_effect(c, at);
	int rc = lost ? 0 : begins_before(c, &lost);
	if (lost)
		b->site.count_caveats |= CAIRN_COUNT_NO_ENTRY;
	return rc;
}

static uint64_t call_column(const struct built_site *b)
{
	return dw_udata(&b->die, DW_AT_call_column, 0);
}

/*
 * Clang merges equal ends of calls in several arms, as a copy whose call has no line, or no column
 * where other calls have one.
 */
static bool is_of_several_calls(const struct event_count *p, const struct built_site *b)
{
	if (!dw_unit_is_clang(b->die.unit) || !b->site.n_chain)
		return false;
	if (!dw_udata(&b->die, DW_AT_call_line, 0))
		return true;
	for (size_t i = 0; i < p->n_others && !call_column(b); i++)
		if (call_column(p->others[i]))
			return true;
	return false;
}

static bool is_of_another_copy(const struct event_count *p, const struct built_site *b, uint32_t i)
{
	for (size_t k = 0; k < p->n_others; k++)
		if (p->others[k]->die.off != b->die.off &&
		    site_has_code(p->others[k], p->cfg->v.p[i].at))
			return true;
	return false;
}

/* True if a short path leads from another copy of the function to the merged end of several. */
static bool ends_another_copy(const struct event_count *p, const struct built_site *b, uint32_t at)
{
	enum { NEAR = 32 };
	uint32_t seen[NEAR] = {at};
	size_t n = 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t k = 0, before;
		while ((before = cfg_before(p->cfg, seen[i], &k)) != GRAPH_NONE) {
			size_t j = 0;
			while (j < n && seen[j] != before)
				j++;
			if (is_of_another_copy(p, b, before))
				return true;
			if (j == n && n < NEAR)
				seen[n++] = before;
		}
	}
	return false;
}

static int analyse_site(struct copy_code *c, const struct event_count *p, size_t site)
{
	struct built_site *b = p->sites[site];
	uint32_t at = p->at[site];
	int rc = analyse_value(p, site);
	if (p->for_values)
		return rc;
	if (at != GRAPH_NONE && is_merged(p, at))
		b->site.count_caveats |= CAIRN_COUNT_MERGED;
	if (at != GRAPH_NONE && is_of_several_calls(p, b) && ends_another_copy(p, b, at))
		b->site.count_caveats |= CAIRN_COUNT_SHARED_PC;
	return rc || !b->lost_marker ? rc : analyse_lost_marker(c, p, site);
}

static int analyse_copy(struct copy_code *c, const struct event_count *p)
{
	for (size_t i = 0; i < p->n_sites; i++)
		if (p->at[i] != GRAPH_NONE)
			c->marks[p->at[i]] |= SITE;
	bool again;
	uint32_t n_bypasses = 0;
	int rc = copy_comes_back(c, p, &again);
	if (!rc && !p->for_values)
		rc = bypass_find(c, p, &n_bypasses);
	if (!p->for_values)
		n_bypasses += bypass_count_beginnings(c, p);
	bool vectorised = !p->for_values && vectorised_is(p, c->scratch, OWN);
	for (size_t i = 0; i < p->n_sites && !rc; i++) {
		struct built_site *b = p->sites[i];
		b->site.count_caveats |= (again ? CAIRN_COUNT_LOOPED : 0) |
					 (n_bypasses ? CAIRN_COUNT_BYPASSED : 0) |
					 (vectorised ? CAIRN_COUNT_VECTORISED : 0);
		b->site.n_bypasses = n_bypasses;
		rc = analyse_site(c, p, i);
	}
	return rc;
}

/* True if a jump of the copy goes back past an instruction of it, or may. */
static bool may_own_come_back(const struct event_count *p, uint32_t at)
{
	const struct cfg *g = p->cfg;
	for (uint32_t k = 0; k < p->copy->n_ranges; k++) {
		struct dw_range r = p->copy->ranges[k];
		if (r.hi.v <= g->v.p[at].at)
			continue;
		for (size_t i = r.lo.v <= g->v.p[at].at ? at : cfg_from(g, r.lo.v);
		     i < g->v.n && g->v.p[i].at < r.hi.v; i++) {
			const struct cfg_insn *insn = &g->v.p[i];
			bool back = insn->target != GRAPH_NONE && insn->target <= at &&
				    is_own(p, insn->target);
			if (back || insn->is_indirect)
				return true;
		}
	}
	return false;
}

/*
 * True if the code at the site alone answers everything that values depend on: most copies do not
 * lead back to their only site. An instruction without a line may belong to a loop of the copy,
 * too. Returns 1; 0; -ENOMEM.
 */
static int is_straight(const struct event_count *p)
{
	if (!p->for_values || p->n_sites != 1)
		return 0;
	if (p->at[0] == GRAPH_NONE || !is_own(p, p->at[0]) || cfg_is_straight(p->cfg, p->at[0]))
		return 1;
	if (!p->cfg->has_line0 && !may_own_come_back(p, p->at[0]))
		return 1;
	int back = cfg_may_come_back(p->cfg, p->at[0]);
	return back < 0 ? back : !back;
}

int event_count_analyse(const struct event_count *p, struct event_count_scratch *scratch)
{
	struct copy_code c;
	int rc = is_straight(p);
	if (rc < 0)
		return rc;
	if (rc)
		return analyse_value(p, 0);
	rc = copy_code_of(&c, p->cfg, p->copy, scratch);
	return rc ? rc : analyse_copy(&c, p);
}
