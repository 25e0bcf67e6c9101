/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passages: does each call pass a copy's sites exactly once?
 *
 * The copy's entry is where the debug information says. Whether calls go there is up to the jumps
 * around it:
 *
 *	              |            |                       P  site
 *	    v         v            v                       o  other code of the copy
 *	    P<--+     o  (2)   --->P (3)                   .  the caller's
 *	    o---+(1)  o            .
 *
 *	(1) the copy's own code leads back to its entry: recursion that became a loop, or a loop of
 *	    its own with nothing in front of it. What passes again is another call or none.
 *	(2) a way leads into the copy past its sites. GCC threads jumps: where a condition is known
 *	    on one path, that path is given a copy of the code behind the condition, and the entry's
 *	    marker stays on the other one.
 *	(3) the site is behind the last instruction of a block, which the copy has no code in; what
 *	    else comes to the next block comes by it too.
 *
 * (2) is asked as: from the function's entry, without passing a site, which of the copy's
 * instructions are reached, coming from code that is not the copy's? The copy's instructions that
 * were moved ahead of its entry are not meant; they are those from which a site is still ahead. Nor
 * is one that comes from another copy of the same function: two copies with equal ends share them.
 *
 * A large function has thousands of copies. So what can be told from a copy's own instructions and
 * those in front of them is asked first, and the whole container is looked at only where something
 * leads in past the sites.
 */
#include "sites/event_count.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "sites/beginning.h"
#include "sites/tested.h"
#include "sites/vectorised.h"

enum {
	OWN = 1 << 0,    /* in the copy's ranges */
	SITE = 1 << 1,
	AROUND = 1 << 2, /* reached from the function's entry without passing a site */
	AHEAD = 1 << 3,  /* leads to a site, loops aside */
	SOURCE = 1 << 4, /* leads, in the copy's own code, to what comes from the source */
	/* ways in */
	EARLY = 1 << 5,  /* a site behind which there is another one */
	BEFORE = 1 << 6, /* reached from an early site without passing another one */
	/* passages; each question has its own bits */
	INSIDE = 1 << 5, /* reached from a site in the copy's own code */
	OTHER = 1 << 6,  /* in the ranges of another copy of the same function */
	NOBODY = 1 << 7, /* of no line, and not the copy's */
};

struct code {
	struct graph *graph;
	uint8_t *marks;
	struct event_count_scratch *scratch; /* has the marks */
	int rc;
};

/* Nops belong to nobody: those before a loop are passed by what comes from above only. */
static int own_range(struct code *c, struct dw_range r)
{
	const struct graph *g = c->graph;
	for (size_t i = graph_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v && !c->rc; i++) {
		if (g->v.p[i].is_nop || c->marks[i] & OWN)
			continue;
		c->marks[i] |= OWN;
		c->rc = VEC_ADD(&c->scratch->own, (uint32_t)i) ? 0 : -ENOMEM;
	}
	return c->rc;
}

static void other_range(const struct code *c, struct dw_range r)
{
	const struct graph *g = c->graph;
	for (size_t i = graph_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v; i++)
		if (!g->v.p[i].is_nop)
			c->marks[i] |= OTHER;
}

static int code_init(struct code *c, struct graph *g, struct event_count_scratch *scratch)
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
	*c = (struct code){.graph = g, .marks = scratch->marks, .scratch = scratch};
	return 0;
}

static int code_of_copy(struct code *c, struct graph *g, const struct built_site *copy,
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
	const struct graph *g = c->graph;
	bool orphan_ahead = false;
	for (size_t n = 0; n < g->by_order.n; n++) {
		uint32_t i = g->by_order.p[n], k = 0, s;
		const struct graph_insn *insn = &g->v.p[i];
		/* The orphans seen so far are those of a higher order. */
		bool ahead = c->marks[i] & SITE || (insn->is_indirect && orphan_ahead);
		while (!ahead && !insn->is_indirect && (s = graph_next(g, i, &k)) != GRAPH_NONE)
			ahead = c->marks[s] & AHEAD && g->v.p[s].order > insn->order;
		if (ahead)
			c->marks[i] |= AHEAD;
		orphan_ahead |= ahead && insn->is_orphan;
	}
}

/*
 * Where two paths meet Clang puts a copy of a value at the end of one of them, of line 0, and
 * counts it to what is on the other path. Who comes by there and to nothing that the copy computes
 * has made no call. What it computes may have line 0 as well: equal statements of two cases that
 * were merged.
 */
static void mark_source(struct code *c)
{
	const struct graph *g = c->graph;
	for (size_t n = 0; n < c->scratch->own.n && !g->has_line0; n++)
		c->marks[c->scratch->own.p[n]] |= SOURCE;
	for (size_t n = 0; n < g->by_order.n && g->has_line0; n++) {
		uint32_t i = g->by_order.p[n];
		bool source = c->marks[i] & OWN && !(g->v.p[i].is_line0 && g->v.p[i].only_moves);
		for (uint32_t k = 0, s;
		     c->marks[i] & OWN && !source && (s = graph_next(g, i, &k)) != GRAPH_NONE;)
			source = c->marks[s] & SOURCE;
		if (source)
			c->marks[i] |= SOURCE;
	}
}

/*
 * Whether a copy has a switch: then its cases are led to by that, and not by the other switches of
 * the container, although an indirect jump is taken to go everywhere.
 */
static bool has_table(const struct code *c)
{
	for (size_t n = 0; n < c->scratch->own.n; n++)
		if (c->graph->v.p[c->scratch->own.p[n]].is_indirect)
			return true;
	return false;
}

/* ---- ways in ---- */

/* Whether code that is reached without the copy's leads to one of its instructions. */
static bool comes_from_around(const struct code *c, uint32_t i, bool table)
{
	for (uint32_t k = 0, b; (b = graph_before(c->graph, i, &k)) != GRAPH_NONE;)
		if (c->marks[b] & AROUND && !(table && c->graph->v.p[b].is_indirect))
			return true;
	return false;
}

/* Mark as sites the copy's instructions that ways from the function's entry come to first. */
static int mark_cfg_entries(struct code *c)
{
	const struct graph *g = c->graph;
	int rc = 0;
	if (c->marks[g->entry] & OWN) {
		c->marks[g->entry] |= SITE;
	} else {
		c->marks[g->entry] |= AROUND;
		rc = graph_spread(g, &g->entry, 1, c->marks, AROUND, 0, OWN);
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
	const struct graph *g = c->graph;
	for (uint32_t k = 0, s; (s = graph_next(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[s] & AHEAD && g->v.p[s].order > g->v.p[i].order)
			return true;
	return false;
}

/*
 * The straight line from a site has a call or a store of the copy, which are not done ahead of
 * time.
 */
static bool has_effect(const struct code *c, uint32_t at)
{
	const struct graph *g = c->graph;
	for (uint32_t i = at; i != GRAPH_NONE; i = g->v.p[i].next) {
		if (c->marks[i] & OWN && g->v.p[i].has_effect)
			return true;
		if (g->v.p[i].is_branch || g->v.p[i].is_call)
			return false;
	}
	return false;
}

/* From here a way may end, or begin anew, without a site. */
static bool may_miss_sites(const struct code *c, uint32_t i)
{
	const struct graph *g = c->graph;
	const struct graph_insn *insn = &g->v.p[i];
	bool ends = insn->next == GRAPH_NONE && insn->target == GRAPH_NONE;
	if (insn->is_indirect || (ends && !insn->is_call))
		return true;
	for (uint32_t k = 0, s; (s = graph_next(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[s] & EARLY && g->v.p[s].order <= insn->order)
			return true;
	return false;
}

/* The ways in, sorted by order. */
struct ways {
	VEC(uint32_t) early, last; /* those that lead to another one, and the others */
};

/*
 * Whether the early ways are nothing but work done ahead of time, so that the last ones alone see
 * each call once: no effect of the copy happens there, and every way from there comes to one of the
 * last, where effects do happen.
 */
static bool are_early_idle(struct code *c, const struct ways *w)
{
	const struct graph *g = c->graph;
	for (size_t n = 0; n < w->last.n; n++)
		if (!has_effect(c, w->last.p[n]))
			return false;
	for (size_t n = 0; n < w->early.n; n++)
		c->marks[w->early.p[n]] |= EARLY | BEFORE;
	if (graph_spread(g, w->early.p, w->early.n, c->marks, BEFORE, 0, SITE))
		return false;
	for (uint32_t i = 0; i < g->v.n; i++)
		if (c->marks[i] & BEFORE &&
		    ((c->marks[i] & OWN && g->v.p[i].has_effect) || may_miss_sites(c, i)))
			return false;
	return true;
}

static int find_ways(struct code *c, struct ways *w)
{
	const struct graph *g = c->graph;
	int rc = graph_number(c->graph);
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

/* The first of the ways, one with a line if there is such. */
static uint32_t first_way(const struct graph *g, const struct ways *w)
{
	uint32_t first = GRAPH_NONE;
	for (size_t n = 0; n < w->early.n + w->last.n; n++) {
		uint32_t i = n < w->early.n ? w->early.p[n] : w->last.p[n - w->early.n];
		const struct graph_insn *a = &g->v.p[i],
					*b = first == GRAPH_NONE ? NULL : &g->v.p[first];
		if (!b || (a->is_line0 == b->is_line0 ? a->order < b->order : b->is_line0))
			first = i;
	}
	return first;
}

static unsigned int choose_ways(struct code *c, const struct ways *w, struct cairn_vaddr *ret)
{
	const struct graph *g = c->graph;
	if (w->last.n && w->last.n <= PASSAGE_WAYS_MAX && (!w->early.n || are_early_idle(c, w))) {
		for (size_t n = 0; n < w->last.n; n++)
			ret[n].v = g->v.p[w->last.p[n]].at;
		return (unsigned int)w->last.n;
	}
	uint32_t first = first_way(g, w);
	if (first == GRAPH_NONE)
		return 0;
	ret[0].v = g->v.p[first].at;
	return 1;
}

unsigned int event_count_cfg_entries(struct graph *g, const struct built_site *copy,
				     struct cairn_vaddr *ret)
{
	struct event_count_scratch scratch = {0};
	struct code c = {0};
	struct ways w = {0};
	unsigned int n = 0;
	if (g->entry != GRAPH_NONE && !code_of_copy(&c, g, copy, &scratch) && !find_ways(&c, &w))
		n = choose_ways(&c, &w, ret);
	VEC_FREE(&w.early);
	VEC_FREE(&w.last);
	event_count_scratch_fini(&scratch);
	return n;
}

/* ---- past the sites ---- */

/*
 * The block of an instruction is where the copy's own code meets other code. GCC does so where a
 * condition is known on the other way: both go on with what is behind the condition.
 */
static bool joins_own(const struct code *c, uint32_t i)
{
	const struct graph *g = c->graph;
	while (!g->v.p[i].is_target && i && g->v.p[i - 1].next == i && !g->v.p[i - 1].is_branch)
		i--;
	for (uint32_t k = 0, b; g->v.p[i].is_target && (b = graph_before(g, i, &k)) != GRAPH_NONE;)
		if (c->marks[b] & OWN && g->v.p[b].target == i)
			return true;
	return false;
}

/* ---- where two ways meet ---- */

static bool own_jumps_to(const struct code *c, uint32_t to)
{
	for (uint32_t k = 0, b; (b = graph_before(c->graph, to, &k)) != GRAPH_NONE;)
		if (c->marks[b] & OWN && c->graph->v.p[b].target == to)
			return true;
	return false;
}

/*
 * A way that can be one of another call: it jumps, or falls into where jumps go. What merely
 * follows in memory was mixed with the caller's instructions by the scheduler, or sunk behind the
 * end of the copy, unless it has effects and a jump of the copy leads there as well; and behind a
 * call that does not return there is somebody else's code. That it returns another call of the same
 * function shows.
 */
static bool is_cfg_entry(const struct code *c, uint32_t from, uint32_t to)
{
	const struct graph_insn *insn = &c->graph->v.p[from];
	if (insn->is_branch || insn->is_indirect || insn->is_call != c->graph->v.p[to].is_target)
		return true;
	if (insn->is_call && own_jumps_to(c, to) && graph_returns(c->graph, from))
		return true;
	return has_effect(c, to) && joins_own(c, from);
}

/* Instructions of the copy that are entered past its sites. */
static uint32_t count_behind(const struct code *c, const struct event_count *p)
{
	const struct graph *g = c->graph;
	bool table = has_table(c);
	uint32_t count = 0;
	for (size_t n = 0; n < c->scratch->own.n; n++) {
		uint32_t i = c->scratch->own.p[n];
		bool asked = c->marks[i] & SOURCE && !(c->marks[i] & (AHEAD | SITE));
		for (uint32_t k = 0, b; asked && (b = graph_before(g, i, &k)) != GRAPH_NONE;) {
			bool around = c->marks[b] & AROUND && !(c->marks[b] & OWN) &&
				      !(g->v.p[b].is_indirect && table);
			bool is_way = !(c->marks[b] & OTHER) && is_cfg_entry(c, b, i);
			count += around && (is_way || beginning_is_passed(p, i));
		}
	}
	return count;
}

/*
 * Where the copy's first statement is once more: the next call of an unrolled loop begins there.
 * GCC (-flto) tells of each statement where it begins; with others that is told after code that is
 * not the copy's.
 */
static uint32_t count_beginnings(const struct code *c, const struct event_count *p)
{
	const struct graph *g = c->graph;
	bool by_statement = dw_unit_is_gcc(p->copy->die.unit);
	uint32_t count = 0;
	for (size_t n = 0; n < c->scratch->own.n && g->n_positions; n++) {
		uint32_t i = c->scratch->own.p[n];
		bool inside = !by_statement && i && c->marks[i - 1] & OWN &&
			      g->v.p[i - 1].at + g->v.p[i - 1].len == g->v.p[i].at;
		count += !inside && !(c->marks[i] & SITE) && beginning_is_repeated(p, i);
	}
	return count;
}

/*
 * Whether anything leads from other code into the copy but not to its sites: if not, the rest need
 * not be asked.
 */
static bool has_way_behind(const struct code *c, const struct event_count *p)
{
	for (size_t n = 0; n < c->scratch->own.n; n++) {
		uint32_t i = c->scratch->own.p[n];
		for (uint32_t k = 0, b;
		     !(c->marks[i] & SITE) && (b = graph_before(c->graph, i, &k)) != GRAPH_NONE;)
			if (!(c->marks[b] & OWN) &&
			    (is_cfg_entry(c, b, i) || beginning_is_passed(p, i)))
				return true;
	}
	return false;
}

/* Ways into the copy past its sites, for calls that pass none. */
static int find_behind(struct code *c, const struct event_count *p, uint32_t *ret)
{
	const struct graph *g = c->graph;
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
			 ? graph_spread(g, &g->entry, 1, c->marks, AROUND, 0, SITE)
			 : 0;
	if (!rc)
		rc = graph_number(c->graph);
	if (rc)
		return rc;
	mark_ahead(c);
	mark_source(c);
	*ret = count_behind(c, p);
	return 0;
}

/* ---- again ---- */

/*
 * Code of no line between the parts of a copy's loop is the loop's: statements that were merged
 * with the caller's.
 */
static void mark_nobody(struct code *c)
{
	const struct graph *g = c->graph;
	for (size_t i = 0; i < g->v.n && g->has_line0; i++)
		if (g->v.p[i].is_line0 && !(c->marks[i] & OWN))
			c->marks[i] |= NOBODY;
}

/* The copy's own code leads from a site to one. */
static int comes_back(struct code *c, const struct event_count *p, bool *ret)
{
	const struct graph *g = c->graph;
	VEC(uint32_t) from = {0};
	int rc = 0;
	mark_nobody(c);
	for (size_t i = 0; i < p->n_sites && !rc; i++) {
		uint32_t at = p->at[i];
		for (uint32_t k = 0, s;
		     at != GRAPH_NONE && !rc && (s = graph_next(g, at, &k)) != GRAPH_NONE;) {
			if (!(c->marks[s] & OWN) || c->marks[s] & INSIDE)
				continue;
			c->marks[s] |= INSIDE;
			rc = VEC_ADD(&from, s) ? 0 : -ENOMEM;
		}
	}
	if (!rc)
		rc = graph_spread(g, from.p, from.n, c->marks, INSIDE, OWN | NOBODY, 0);
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

/* With the nops that align its inner loops: ways lead through them. */
static bool is_in_scope(const struct event_count_scratch *scratch, const struct graph_insn *insn)
{
	for (size_t i = 0; i < scratch->ranges.n; i++)
		if (scratch->ranges.p[i].lo.v <= insn->at && insn->at < scratch->ranges.p[i].hi.v)
			return true;
	return false;
}

/*
 * The ways from an instruction in the scope's code, up to one that comes to it again: most loops
 * are short, and what is in none is on no such way.
 */
static int find_way_back(const struct code *c, uint32_t i)
{
	const struct graph *g = c->graph;
	struct event_count_scratch *scratch = c->scratch;
	bool orphans_done = false;
	int rc = VEC_ADD(&scratch->own, i) ? 0 : -ENOMEM;
	while (scratch->own.n && !rc) {
		uint32_t at = scratch->own.p[--scratch->own.n], k = 0, s;
		bool skip = g->v.p[at].is_indirect && orphans_done;
		orphans_done |= g->v.p[at].is_indirect;
		while (!skip && !rc && (s = graph_next(g, at, &k)) != GRAPH_NONE) {
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

int event_count_comes_back(struct graph *g, const struct dw_die *scope, struct cairn_vaddr at,
			   struct event_count_scratch *scratch)
{
	struct code c;
	uint32_t i = graph_at(g, at.v);
	scratch->ranges.n = 0;
	if (i == GRAPH_NONE)
		return 0;
	if (dw_ranges(scope, note_range, scratch, NULL) == -ENOMEM || code_init(&c, g, scratch) < 0)
		return -ENOMEM;
	return is_in_scope(scratch, &g->v.p[i]) ? find_way_back(&c, i) : 0;
}

int event_count_is_in_loop(struct graph *g, const struct dw_die *function, uint32_t at,
			   struct event_count_scratch *scratch)
{
	int rc = graph_may_come_back(g, at);
	if (rc <= 0 || g->is_loops_known)
		return rc;
	return event_count_comes_back(g, function, (struct cairn_vaddr){g->v.p[at].at}, scratch);
}

/* ---- one site ---- */

/* Whether an instruction is come to by more than one way. */
static int has_several_ways_to(struct graph *g, uint32_t to, bool *ret)
{
	uint32_t ways = 0, reached = 0;
	for (uint32_t k = 0; graph_before(g, to, &k) != GRAPH_NONE;)
		ways++;
	for (uint32_t k = 0, b;
	     ways > 1 && reached < 2 && (b = graph_before(g, to, &k)) != GRAPH_NONE;) {
		int rc = graph_is_reached(g, b);
		if (rc < 0)
			return rc;
		reached += (uint32_t)rc;
	}
	*ret = reached > 1;
	return 0;
}

/* As own_range() marks it, for who asks about few instructions. */
static bool is_own(const struct event_count *p, uint32_t i)
{
	const struct graph_insn *insn = &p->graph->v.p[i];
	return !insn->is_nop && site_has_code(p->copy, insn->at);
}

/* The copy has nothing but a jump to a site of another one: the call was merged with that one's. */
static bool is_merged(const struct event_count *p, uint32_t at)
{
	const struct graph *g = p->graph;
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
 * All ways from @from come to @to, before they end or come to @from again: what lies between does
 * not decide about @to. Asked of short pieces of code only.
 */
static bool leads_only_to(const struct graph *g, uint32_t from, uint32_t to)
{
	enum { FAR = 64 };
	uint32_t seen[FAR] = {from};
	size_t n = from != to;
	for (size_t i = 0; i < n; i++) {
		const struct graph_insn *insn = &g->v.p[seen[i]];
		uint32_t k = 0, s;
		if (insn->is_indirect || (insn->next == GRAPH_NONE && insn->target == GRAPH_NONE))
			return false;
		while ((s = graph_next(g, seen[i], &k)) != GRAPH_NONE) {
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

/* Behind a site the copy begins with a condition on which it is left. */
static bool begins_with_condition(const struct event_count *p, uint32_t at)
{
	const struct graph *g = p->graph;
	uint32_t i = at;
	while (i != GRAPH_NONE && !g->v.p[i].is_branch && !g->v.p[i].has_effect)
		i = g->v.p[i].next;
	if (i == GRAPH_NONE || g->v.p[i].next == GRAPH_NONE || g->v.p[i].target == GRAPH_NONE ||
	    !is_own(p, i))
		return false;
	return !is_own(p, g->v.p[i].next) || !is_own(p, g->v.p[i].target);
}

/*
 * The first branch behind the site is the statement's around the call, and not that of a loop:
 * where both arms of a condition begin alike, GCC puts what they have in common in front of it, and
 * the entry of the call in one of the arms is carried along.
 */
static bool is_decided_behind(const struct graph *g, const struct built_site *b, uint32_t at)
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
 * Nothing decides between the statement around the call's own, which is its condition, and the
 * site. Either it does behind the site; or the copy begins with a condition on which it is left:
 * GCC made one of both (if (a != 3 && a > 1)), and the entry is in front.
 */
static bool has_callers_condition(const struct event_count *p, const struct built_site *b,
				  uint32_t at)
{
	if (!b->around.at.v ||
	    !(begins_with_condition(p, at) || is_decided_behind(p->graph, b, at)))
		return false;
	uint32_t around = graph_at(p->graph, b->around.at.v);
	return around != GRAPH_NONE && leads_only_to(p->graph, around, at);
}

/*
 * Markers of two ways into the copy that the compiler moved to one instruction: one call has two
 * events there.
 */
static bool is_site_twice(const struct event_count *p, size_t site)
{
	for (size_t i = 0; i < p->n_sites; i++)
		if (i != site && p->at[i] == p->at[site])
			return true;
	return false;
}

/* What values depend on besides whether the copy comes back to it. */
static int analyse_value(const struct event_count *p, size_t site)
{
	struct built_site *b = p->sites[site];
	uint32_t at = p->at[site];
	bool shared = false;
	int rc =
		at != GRAPH_NONE && !is_own(p, at) ? has_several_ways_to(p->graph, at, &shared) : 0;
	if (shared || (at != GRAPH_NONE && is_site_twice(p, site)))
		b->site.count_caveats |= CAIRN_COUNT_SHARED_PC;
	if (at != GRAPH_NONE &&
	    (has_callers_condition(p, b, at) || (!p->for_values && tested_is_behind(p, at))))
		b->site.count_caveats |= CAIRN_COUNT_BEFORE_TEST;
	return rc;
}

/*
 * The copy has decided or done something before the site: the call has begun elsewhere. GCC shares
 * equal ends of a function and of a copy in it, and the copy's first range may be that end. What is
 * merely computed ahead of time decides nothing.
 */
static int begins_before(struct code *c, bool *ret)
{
	const struct graph *g = c->graph;
	*ret = false;
	if (g->entry == GRAPH_NONE || c->marks[g->entry] & SITE)
		return 0;
	c->marks[g->entry] |= AROUND;
	int rc = graph_spread(g, &g->entry, 1, c->marks, AROUND, 0, SITE);
	if (!rc)
		rc = graph_number(c->graph);
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
 * GCC marks entries, and this copy's marker is lost: the site is the copy's first instruction,
 * which may have been moved.
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

/* Whether a jump of the copy's own goes back past an instruction of it, or may. */
static bool may_own_come_back(const struct event_count *p, uint32_t at)
{
	const struct graph *g = p->graph;
	for (uint32_t k = 0; k < p->copy->n_ranges; k++) {
		struct dw_range r = p->copy->ranges[k];
		if (r.hi.v <= g->v.p[at].at)
			continue;
		for (size_t i = r.lo.v <= g->v.p[at].at ? at : graph_from(g, r.lo.v);
		     i < g->v.n && g->v.p[i].at < r.hi.v; i++) {
			const struct graph_insn *insn = &g->v.p[i];
			bool back = insn->target != GRAPH_NONE && insn->target <= at &&
				    is_own(p, insn->target);
			if (back || insn->is_indirect)
				return true;
		}
	}
	return false;
}

/*
 * Whether the code at the site tells all that values depend on: most copies do not come back to
 * their only site. What belongs to no line may be part of a loop of the copy's, too. Returns 1; 0;
 * -ENOMEM.
 */
static int is_straight(const struct event_count *p)
{
	if (!p->for_values || p->n_sites != 1)
		return 0;
	if (p->at[0] == GRAPH_NONE || !is_own(p, p->at[0]) || graph_is_straight(p->graph, p->at[0]))
		return 1;
	if (!p->graph->has_line0 && !may_own_come_back(p, p->at[0]))
		return 1;
	int back = graph_may_come_back(p->graph, p->at[0]);
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
	rc = code_of_copy(&c, p->graph, p->copy, scratch);
	return rc ? rc : judge(&c, p);
}
