/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies are analysed in the order of their containers, and of the DIEs in these. So the code and
 * the declarations of a container are read once for all of them. This is the order of the index
 * entries, except for functions nested in functions.
 */
#include "sites/analyse.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/pool.h"
#include "base/search.h"
#include "loc/code.h"
#include "sites/quirks/quirks.h"
#include "sites/quirks/stale_outer_variable.h"
#include "sites/go.h"
#include "sites/event_count.h"

/* Copies that a worker takes at once. */
enum { CHUNK = 64 };

struct copy {
	uint32_t container; /* index entry */
	uint32_t i;         /* of its first request */
	/* the first of those of the same function in the same container, which stand around it */
	uint32_t like;
	uint32_t n_alike; /* of a first one */
};

struct analysis {
	const struct site_env *env;
	const struct batch *in;
	unsigned int threads, width;
	struct analyser *p;      /* per worker */
	VEC(struct copy) copies; /* those of one function in one container beside each other */
	VEC(const struct built_site *) sites; /* of the copies */
	VEC(struct keyed) turns; /* the copies by container, those of one by their entries */
	/* sites besides the first of each copy: its entry of the index, and their request */
	VEC(struct keyed) further;
};

static const struct copy *copy_at(const struct analysis *all, size_t turn)
{
	return &all->copies.p[all->turns.p[turn].value];
}

/* The state of one worker: the container's code as a graph, kept from copy to copy. */
struct analyser {
	const struct analysis *all;
	uint32_t container;
	struct dw_die function; /* its DIE; zeroes when it cannot be read */
	struct cfg *cfg;
	VEC(struct built_site *) sites;
	VEC(uint32_t) at; /* their instructions in the graph */
	struct event_count_scratch scratch;
	struct outer_scopes outer;
};

/* @b  a site in it */
static int enter_container(struct analyser *j, uint32_t container, const struct built_site *b)
{
	const struct site_env *env = j->all->env;
	if (j->container == container)
		return 0;
	j->container = container;
	j->function = (struct dw_die){0};
	if (dw_func_die(env->dw, &env->index->p[container], &j->function, NULL) != 1) {
		cfg_free(j->cfg);
		j->cfg = NULL;
		return 0;
	}
	return cfg_new(env->code, &j->function, b->container_entry, &j->cfg);
}

/* The first further site of an entry, or where it would be. */
static size_t extra_of(const struct analysis *all, uint32_t entry)
{
	size_t lo = SEARCH(0, all->further.n, mid, all->further.p[mid].key < entry);
	return lo;
}

static bool gather_sites(struct analyser *j, const struct copy *c)
{
	const struct analysis *all = j->all;
	uint32_t entry = all->in->first.v.p[c->i].entry;
	j->sites.n = 0;
	if (!VEC_ADD(&j->sites, &all->in->first_sites[c->i]))
		return false;
	for (size_t k = extra_of(all, entry); k < all->further.n && all->further.p[k].key == entry;
	     k++)
		if (!VEC_ADD(&j->sites, &all->in->extra_sites[all->further.p[k].value]))
			return false;
	return true;
}

struct entry_search {
	uint64_t entry;
	bool is_jumped_to, is_called;
};

static int look_for_entry(void *arg, const struct code_insn *insn)
{
	struct entry_search *s = arg;
	bool jumps = insn->step.flow == INSN_JUMP || insn->step.flow == INSN_BRANCH;
	s->is_jumped_to |= jumps && insn->step.target == s->entry;
	s->is_called |= insn->step.flow == INSN_CALL && insn->step.target == s->entry;
	return 0;
}

static bool is_loop_head(const struct cfg *g, uint32_t i)
{
	for (uint32_t k = 0, b; (b = cfg_before(g, i, &k)) != GRAPH_NONE;)
		if (g->v.p[b].at > g->v.p[i].at && !g->v.p[b].is_indirect)
			return true;
	return false;
}

/*
 * A path leads back to the first instructions, which a branch may leave: they save registers and
 * test for the end of the recursion.
 */
static bool begins_with_loop(const struct cfg *g)
{
	enum { FIRST = 40 };
	uint32_t i = g->entry;
	for (unsigned int n = 0; n < FIRST && i != GRAPH_NONE && !g->v.p[i].is_call; n++) {
		if (is_loop_head(g, i))
			return true;
		i = g->v.p[i].next != GRAPH_NONE ? g->v.p[i].next : g->v.p[i].target;
	}
	return false;
}

/*
 * A body is LOOPED if it begins with a loop and no code before it; or with a loop after its first
 * instructions, and it calls itself. If a function calls itself several times, a compiler makes the
 * last call a jump (f(p->left) + f(p->right)) and leaves the others.
 */
static int analyse_body(struct analyser *j, const struct copy *c, struct built_site *b)
{
	struct entry_search s = {.entry = b->site.at.v};
	if (code_visit(j->all->env->code, &b->die, look_for_entry, &s) < 0)
		return 0;
	if (s.is_jumped_to) {
		b->site.count_caveats |= CAIRN_COUNT_LOOPED;
		b->grows_stack = dw_unit_go(b->die.unit) &&
				 go_grows_stack(j->all->env->code, &b->die, b->site.at);
	}
	if (!s.is_called || s.is_jumped_to || j->all->env->bare)
		return 0;
	int rc = enter_container(j, c->container, b);
	if (!rc && j->cfg && begins_with_loop(j->cfg))
		b->site.count_caveats |= CAIRN_COUNT_RECURSION;
	return rc;
}

/*
 * Queries of sites alone (site_env.bare) report only values; a site without values needs no
 * decision.
 */
static bool has_value(const struct analyser *j)
{
	for (size_t i = 0; i < j->sites.n; i++)
		for (uint32_t k = 0; k < j->sites.p[i]->site.n_args; k++)
			if (j->sites.p[i]->site.args[k].loc.why == CAIRN_AVAILABLE)
				return true;
	return false;
}

static bool find_instructions(struct analyser *j)
{
	bool ok = true;
	j->at.n = 0;
	for (size_t i = 0; i < j->sites.n && ok; i++)
		ok = VEC_ADD(&j->at,
			     j->cfg ? cfg_at(j->cfg, j->sites.p[i]->site.at.v) : GRAPH_NONE);
	return ok;
}

/* Only GCC describes the values of variables at a point, and is wrong about it. */
static int check_args(struct analyser *j)
{
	struct quirk_query q = {.code = j->all->env->code,
				.container = &j->function,
				.cfg = j->cfg,
				.scratch = &j->scratch,
				.outer = &j->outer};
	int rc = 0;
	for (size_t i = 0; i < j->sites.n && !rc; i++) {
		struct built_site *b = j->sites.p[i];
		if (!dw_unit_is_gcc(b->die.unit) || j->all->env->assume_unmodified)
			continue;
		q.site = b;
		q.at = j->at.p[i];
		rc = quirks_check_args(&q);
	}
	return rc;
}

static int analyse_copy(struct analyser *j, size_t at, struct cairn_err *err)
{
	const struct copy *c = copy_at(j->all, at);
	struct built_site *first = &j->all->in->first_sites[c->i];
	if (first->site.kind == CAIRN_SITE_OUT_OF_LINE &&
	    !site_is_plain_body(j->all->env, &first->site) && analyse_body(j, c, first) < 0)
		return err_nomem(err, "the code of a body");
	if (first->site.kind != CAIRN_SITE_INLINED)
		return 0;
	bool bare = j->all->env->bare;
	if (!gather_sites(j, c))
		return err_nomem(err, "entries of a copy");
	if (bare && !has_value(j))
		return 0;
	if (enter_container(j, c->container, first) < 0 || !find_instructions(j))
		return err_nomem(err, "entries of a copy");
	if (j->function.tag && check_args(j) < 0)
		return err_nomem(err, "variables around a copy");
	if (!j->cfg)
		return 0;
	struct event_count p = {.cfg = j->cfg,
				.copy = first,
				.sites = j->sites.p,
				.at = j->at.p,
				.n_sites = j->sites.n,
				.others = &j->all->sites.p[c->like],
				.n_others = j->all->copies.p[c->like].n_alike,
				.code = j->all->env->code,
				.for_values = bare};
	return event_count_analyse(&p, &j->scratch) == 0 ? 0 : err_nomem(err, "entries of a copy");
}

/* The order of the turns is not that of the sites in memory, which are hundreds of bytes each. */
static void prefetch_site(const struct analysis *all, size_t at)
{
	enum { AHEAD = 4 };
	if (at + AHEAD >= all->turns.n)
		return;
	const struct built_site *b = &all->in->first_sites[copy_at(all, at + AHEAD)->i];
	__builtin_prefetch(&b->site.kind);
	__builtin_prefetch(&b->site.args);
	__builtin_prefetch(&b->die);
	__builtin_prefetch((const char *)(b + 1) - 1);
}

static int analyse_chunk(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	const struct analysis *all = arg;
	size_t n = all->turns.n, end = (item + 1) * CHUNK < n ? (item + 1) * CHUNK : n;
	int rc = 0;
	for (size_t at = item * CHUNK; at < end && !rc; at++) {
		prefetch_site(all, at);
		rc = analyse_copy(&all->p[worker], at, err);
	}
	return rc;
}

static int by_container(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;
	if (x->container != y->container)
		return x->container < y->container ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

/*
 * Copies from @from on are of one group. In the order of DIEs they are in that of their containers,
 * unless one of these is within another.
 */
static bool list_group(struct analysis *all, size_t from)
{
	bool in_order = true;
	for (size_t k = from + 1; k < all->copies.n; k++)
		in_order &= all->copies.p[k - 1].container <= all->copies.p[k].container;
	if (!in_order)
		qsort(all->copies.p + from, all->copies.n - from, sizeof(*all->copies.p),
		      by_container);
	for (size_t k = from; k < all->copies.n; k++) {
		struct copy *c = &all->copies.p[k];
		struct keyed turn = {.key = all->in->first.v.p[c->i].entry, .value = (uint32_t)k};
		c->like = k > from && c[-1].container == c->container ? c[-1].like : turn.value;
		all->copies.p[c->like].n_alike++;
		if (!VEC_ADD(&all->sites, &all->in->first_sites[c->i]) ||
		    !VEC_ADD(&all->turns, turn))
			return false;
	}
	return true;
}

/*
 * By their containers, those of one by their entries: the code of a container that has another one
 * within is read once, too.
 */
static int sort_turns(struct analysis *all)
{
	bool in_order = true;
	int rc = keyed_sort(all->turns.p, all->turns.n);
	for (size_t k = 0; k < all->turns.n && !rc; k++) {
		struct keyed *turn = &all->turns.p[k];
		turn->key = all->copies.p[turn->value].container;
		in_order &= !k || turn[-1].key <= turn->key;
	}
	return rc || in_order ? rc : keyed_sort(all->turns.p, all->turns.n);
}

/* Bodies, and the copies with code, parts among them, in the order in which they are analysed. */
static bool list_copies(struct analysis *all)
{
	const struct batch *in = all->in;
	for (uint32_t g = 0, i = 0; g < in->n; g++) {
		size_t from = all->copies.n;
		for (size_t k = 0; k < in->groups[g].entries.n; k++, i++) {
			struct copy c = {.container = in->first_sites[i].container, .i = i};
			if (in->first_sites[i].site.n_shared && !VEC_ADD(&all->copies, c))
				return false;
		}
		if (!list_group(all, from))
			return false;
	}
	return sort_turns(all) == 0;
}

static bool list_extra(struct analysis *all)
{
	const struct batch *in = all->in;
	for (size_t i = 0; i < in->further.v.n; i++) {
		struct keyed f = {.key = in->further.v.p[i].entry, .value = (uint32_t)i};
		if (in->extra_sites[i].site.n_shared && !VEC_ADD(&all->further, f))
			return false;
	}
	return keyed_sort(all->further.p, all->further.n) == 0;
}

struct analysis *analysis_new(const struct site_env *env, unsigned int threads)
{
	unsigned int width = pool_width(threads);
	struct analysis *all = calloc(1, sizeof(*all));
	struct analyser *p = calloc(width, sizeof(*p));
	if (!all || !p) {
		free(all);
		free(p);
		return NULL;
	}
	*all = (struct analysis){.env = env, .threads = threads, .width = width, .p = p};
	for (unsigned int i = 0; i < width; i++)
		p[i].all = all;
	return all;
}

void analysis_free(struct analysis *all)
{
	for (unsigned int i = 0; all && i < all->width; i++) {
		cfg_free(all->p[i].cfg);
		VEC_FREE(&all->p[i].sites);
		VEC_FREE(&all->p[i].at);
		event_count_scratch_fini(&all->p[i].scratch);
		outer_scopes_fini(&all->p[i].outer);
	}
	if (!all)
		return;
	VEC_FREE(&all->copies);
	VEC_FREE(&all->sites);
	VEC_FREE(&all->turns);
	VEC_FREE(&all->further);
	free(all->p);
	free(all);
}

int analysis_count(struct analysis *all, const struct batch *in, struct cairn_err *err)
{
	/*
	 * Queries of sites alone need only values, and with this option all of them are believed.
	 */
	if (all->env->bare && all->env->assume_unmodified)
		return 0;
	all->in = in;
	all->copies.n = all->sites.n = all->turns.n = all->further.n = 0;
	for (unsigned int i = 0; i < all->width; i++)
		all->p[i].container = DW_FUNC_NONE;
	if (!list_copies(all) || !list_extra(all))
		return err_nomem(err, "entries of a copy");
	return pool_run((all->turns.n + CHUNK - 1) / CHUNK, all->threads, analyse_chunk, all, err);
}

int analyse_counts(const struct site_env *env, unsigned int threads, const struct batch *in,
		   struct cairn_err *err)
{
	struct analysis *analysis = analysis_new(env, threads);
	int rc = analysis ? analysis_count(analysis, in, err) : err_nomem(err, "worker memory");
	analysis_free(analysis);
	return rc;
}
