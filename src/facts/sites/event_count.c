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
 */
#include "sites/event_count.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "sites/quirks/clang_entry_lines.h"
#include "sites/quirks/tested_after_call.h"
#include "sites/quirks/vectorised.h"

enum {
	OWN = 1 << 0, /* in the copy's ranges */
	SITE = 1 << 1,
	AROUND = 1 << 2, /* reached from the function's entry without passing a site */
	AHEAD = 1 << 3,  /* leads to a site, loops aside */
	SOURCE = 1 << 4, /* leads, in the copy's own code, to an instruction from the source */
	/* CFG entries */
	EARLY = 1 << 5,  /* a site from which another site is ahead */
	BEFORE = 1 << 6, /* reached from an early site without passing another one */
	/* event counts; each check has its own bits */
	INSIDE = 1 << 5, /* reached from a site in the copy's own code */
	OTHER = 1 << 6,  /* in the ranges of another copy of the same function */
	NOBODY = 1 << 7, /* has no line and is not in the copy */
};

struct code {
	struct cfg *cfg;
	uint8_t *marks;
	struct event_count_scratch *scratch; /* has the marks */
	int rc;
};

/* Nops belong to no copy: only code from above runs the nops before a loop. */
static int own_range(struct code *c, struct dw_range r)
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

static void other_range(const struct code *c, struct dw_range r)
{
	const struct cfg *g = c->cfg;
	for (size_t i = cfg_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v; i++)
		if (!g->v.p[i].is_nop)
			c->marks[i] |= OTHER;
}

static int code_init(struct code *c, struct cfg *g, struct event_count_scratch *scratch)
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
	*c = (struct code){.cfg = g, .marks = scratch->marks, .scratch = scratch};
	return 0;
}

static int code_of_copy(struct code *c, struct cfg *g, const struct built_site *copy,
			struct event_count_scratch *scratch)
{
	int rc = code_init(c, g, scratch);
	for (uint32_t i = 0; i < copy->n_ranges && !rc; i++)
		rc = own_range(c, copy->ranges[i]);
	return rc;
}

void event_count_scratch_fini(struct event_count_scratch *s)
{
	free(s->marks);
	VEC_FREE(&s->own);
	VEC_FREE(&s->ranges);
}

static void mark_ahead(struct code *c)
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
static void mark_source(struct code *c)
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
static bool has_table(const struct code *c)
{
	for (size_t n = 0; n < c->scratch->own.n; n++)
		if (c->cfg->v.p[c->scratch->own.p[n]].is_indirect)
			return true;
	return false;
}

/* ---- CFG entries ---- */

/* True if code that is reached without passing the copy leads to this instruction of the copy. */
static bool comes_from_around(const struct code *c, uint32_t i, bool table)
{
	for (uint32_t k = 0, b; (b = cfg_before(c->cfg, i, &k)) != GRAPH_NONE;)
		if (c->marks[b] & AROUND && !(table && c->cfg->v.p[b].is_indirect))
			return true;
	return false;
}

/* Mark as sites the instructions of the copy that paths from the function's entry reach first. */
static int mark_cfg_entries(struct code *c)
{
	const struct cfg *g = c->cfg;
	int rc = 0;
	if (c->marks[g->entry] & OWN) {
		c->marks[g->entry] |= SITE;
	} else {
		c->marks[g->entry] |= AROUND;
		rc = cfg_spread(g, &g->entry, 1, c->marks, AROUND, 0, OWN);
	}
	bool table = has_table(c);
	mark_source(c);
	for (size_t n = 0; n < c->scratch->own.n && !rc; n++)
		if (c->marks[c->scratch->own.p[n]] & SOURCE &&
		    comes_from_around(c, c->scratch->own.p[n], table))
			c->marks[c->scratch->own.p[n]] |= SITE;
	return rc;
}

static bool leads_to_site(const struct code *c, uint32_t i)
{
	const struct cfg *g = c->cfg;
	for (uint32_t k = 0, s; (s = cfg_next(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[s] & AHEAD && g->v.p[s].order > g->v.p[i].order)
			return true;
	return false;
}

/*
 * True if the straight line from a site has a call or a store of the copy. Compilers do not do
 * these ahead of time.
 */
static bool has_effect(const struct code *c, uint32_t at)
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

/* True if a path may end here, or start over, without passing a site. */
static bool may_miss_sites(const struct code *c, uint32_t i)
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

/* The CFG entries, sorted by order. */
struct cfg_entries {
	VEC(uint32_t) early, last; /* those from which another one is ahead, and the others */
};

/*
 * True if the early entries only do work ahead of time, so that the last entries alone see each
 * call once. The copy has no effect there, and every path from there reaches one of the last
 * entries, where the effects are.
 */
static bool are_early_idle(struct code *c, const struct cfg_entries *w)
{
	const struct cfg *g = c->cfg;
	for (size_t n = 0; n < w->last.n; n++)
		if (!has_effect(c, w->last.p[n]))
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

static int find_entries(struct code *c, struct cfg_entries *w)
{
	const struct cfg *g = c->cfg;
	int rc = cfg_number(c->cfg);
	if (!rc)
		rc = mark_cfg_entries(c);
	if (!rc)
		mark_ahead(c);
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

static unsigned int choose_entries(struct code *c, const struct cfg_entries *w,
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
	struct code c = {0};
	struct cfg_entries w = {0};
	unsigned int n = 0;
	if (g->entry != GRAPH_NONE && !code_of_copy(&c, g, copy, &scratch) && !find_entries(&c, &w))
		n = choose_entries(&c, &w, ret);
	VEC_FREE(&w.early);
	VEC_FREE(&w.last);
	event_count_scratch_fini(&scratch);
	return n;
}

/* ---- past the sites ---- */

/*
 * True if the copy's own code meets other code in the block of this instruction. GCC does this if a
 * condition is known on the other path: both paths continue with the code after the condition.
 */
static bool joins_own(const struct code *c, uint32_t i)
{
	const struct cfg *g = c->cfg;
	while (!g->v.p[i].is_target && i && g->v.p[i - 1].next == i && !g->v.p[i - 1].is_branch)
		i--;
	for (uint32_t k = 0, b; g->v.p[i].is_target && (b = cfg_before(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[b] & OWN && g->v.p[b].target == i)
			return true;
	return false;
}

/* ---- where two paths meet ---- */

static bool own_jumps_to(const struct code *c, uint32_t to)
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
static bool is_cfg_entry(const struct code *c, uint32_t from, uint32_t to)
{
	const struct cfg_insn *insn = &c->cfg->v.p[from];
	if (insn->is_branch || insn->is_indirect || insn->is_call != c->cfg->v.p[to].is_target)
		return true;
	if (insn->is_call && own_jumps_to(c, to) && cfg_returns(c->cfg, from))
		return true;
	return has_effect(c, to) && joins_own(c, from);
}

/* The number of the copy's instructions that are entered past its sites. */
static uint32_t count_behind(const struct code *c, const struct event_count *p)
{
	const struct cfg *g = c->cfg;
	bool table = has_table(c);
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
static uint32_t count_beginnings(const struct code *c, const struct event_count *p)
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
static bool has_way_behind(const struct code *c, const struct event_count *p)
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
static int find_behind(struct code *c, const struct event_count *p, uint32_t *ret)
{
	const struct cfg *g = c->cfg;
	*ret = 0;
	if (g->entry == GRAPH_NONE || !has_way_behind(c, p))
		return 0;
	for (size_t i = 0; i < p->n_others; i++)
		for (uint32_t k = 0;
		     p->others[i]->die.off != p->copy->die.off && k < p->others[i]->n_ranges; k++)
			other_range(c, p->others[i]->ranges[k]);
	if (!(c->marks[g->entry] & SITE))
		c->marks[g->entry] |= AROUND;
	int rc = c->marks[g->entry] & AROUND
			 ? cfg_spread(g, &g->entry, 1, c->marks, AROUND, 0, SITE)
			 : 0;
	if (!rc)
		rc = cfg_number(c->cfg);
	if (rc)
		return rc;
	mark_ahead(c);
	mark_source(c);
	*ret = count_behind(c, p);
	return 0;
}

/* ---- loops ---- */

/*
 * Code without a line between the parts of a copy's loop belongs to the loop: statements that were
 * merged with the caller's.
 */
static void mark_nobody(struct code *c)
{
	const struct cfg *g = c->cfg;
	for (size_t i = 0; i < g->v.n && g->has_line0; i++)
		if (g->v.p[i].is_line0 && !(c->marks[i] & OWN))
			c->marks[i] |= NOBODY;
}

/* True if the copy's own code leads from a site to a site. */
static int comes_back(struct code *c, const struct event_count *p, bool *ret)
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
static int find_way_back(const struct code *c, uint32_t i)
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
	struct code c;
	uint32_t i = cfg_at(g, at.v);
	scratch->ranges.n = 0;
	if (i == GRAPH_NONE)
		return 0;
	if (dw_ranges(scope, note_range, scratch, NULL) == -ENOMEM || code_init(&c, g, scratch) < 0)
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

/* ---- one site ---- */

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

/* The same answer as own_range() gives, for callers that check few instructions. */
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
static bool is_decided_behind(const struct cfg *g, const struct built_site *b, uint32_t at)
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
	if (!b->around.at.v || !(begins_with_condition(p, at) || is_decided_behind(p->cfg, b, at)))
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
	if (at != GRAPH_NONE &&
	    (has_callers_condition(p, b, at) || (!p->for_values && tested_after_call_is(p, at))))
		b->site.count_caveats |= CAIRN_COUNT_BEFORE_TEST;
	return rc;
}

/*
 * True if the copy has decided or done something before the site: the call began elsewhere. GCC
 * shares equal ends of a function and of a copy in it, and that end may be the copy's first range.
 * A value that is only computed ahead of time decides nothing.
 */
static int begins_before(struct code *c, bool *ret)
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
	mark_ahead(c);
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
static int analyse_lost_marker(struct code *c, const struct event_count *p, size_t site)
{
	struct built_site *b = p->sites[site];
	uint32_t at = p->at[site];
	bool lost = at == GRAPH_NONE || !has_effect(c, at);
	int rc = lost ? 0 : begins_before(c, &lost);
	if (lost)
		b->site.count_caveats |= CAIRN_COUNT_NO_ENTRY;
	return rc;
}

static int analyse_site(struct code *c, const struct event_count *p, size_t site)
{
	struct built_site *b = p->sites[site];
	uint32_t at = p->at[site];
	int rc = analyse_value(p, site);
	if (p->for_values)
		return rc;
	if (at != GRAPH_NONE && is_merged(p, at))
		b->site.count_caveats |= CAIRN_COUNT_MERGED;
	return rc || !b->lost_marker ? rc : analyse_lost_marker(c, p, site);
}

static int judge(struct code *c, const struct event_count *p)
{
	for (size_t i = 0; i < p->n_sites; i++)
		if (p->at[i] != GRAPH_NONE)
			c->marks[p->at[i]] |= SITE;
	bool again;
	uint32_t behind = 0;
	int rc = comes_back(c, p, &again);
	if (!rc && !p->for_values)
		rc = find_behind(c, p, &behind);
	if (!p->for_values)
		behind += count_beginnings(c, p);
	bool vectorised = !p->for_values && vectorised_is(p, c->scratch, OWN);
	for (size_t i = 0; i < p->n_sites && !rc; i++) {
		struct built_site *b = p->sites[i];
		b->site.count_caveats |= (again ? CAIRN_COUNT_LOOPED : 0) |
					 (behind ? CAIRN_COUNT_BYPASSED : 0) |
					 (vectorised ? CAIRN_COUNT_VECTORISED : 0);
		b->site.n_bypasses = behind;
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
	struct code c;
	int rc = is_straight(p);
	if (rc < 0)
		return rc;
	if (rc)
		return analyse_value(p, 0);
	rc = code_of_copy(&c, p->cfg, p->copy, scratch);
	return rc ? rc : judge(&c, p);
}
