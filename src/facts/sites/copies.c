/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Works in two rounds. When a unit is read, all facts about the copies in it are known. A clone of
 * a function, foo.isra.0, may share its address with a clone of the same function in another unit,
 * if the linker merges equal code (quirks/icf_args.h). So all clones wait for the second round;
 * they are few.
 */
#include "sites/copies.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/pool.h"
#include "sites/batch.h"
#include "sites/args_check.h"
#include "sites/by_unit.h"
#include "sites/analyse.h"
#include "sites/quirks/icf_args.h"

struct clone {
	uint32_t group, entry;
};

struct worker {
	struct unit_parts parts; /* of the functions that have sites in the current unit */
	struct analysis *analysis;
	VEC(struct clone) clones;
};

struct visit {
	const struct site_env *env;
	const struct groups *groups;
	const struct copies_visitor *visitor;
	struct by_unit by_unit;
	struct worker *workers;
	atomic_size_t done; /* units */
};

/* ---- copies ---- */

static int visit_copy(const struct visit *v, unsigned int worker, uint32_t group,
		      struct built_site *b, struct arena *arena, struct cairn_err *err)
{
	if (args_check_args(v->env, b, arena) < 0)
		return err_nomem(err, "a location");
	return v->visitor->site(v->visitor->ctx, worker, group, b->formals.function, &b->site, err);
}

/*
 * The part of the work that concerns one function. The first sites are in the order of its entries.
 */
static int visit_part(const struct visit *v, unsigned int worker, const struct group *part,
		      const struct group_sites *s, struct arena *arena, struct cairn_err *err)
{
	uint32_t group = part->number;
	if (!v->env->assume_unmodified && batch_check_removed_params(s) < 0)
		return err_nomem(err, "the copies of a function");
	for (size_t i = 0; i < s->n_first + s->n_extra; i++) {
		struct built_site *b = group_site(s, i);
		int rc = 0;
		if (!b->site.n_shared || site_is_plain_body(v->env, &b->site))
			continue;
		if (b->site.n_chain)
			rc = visit_copy(v, worker, group, b, arena, err);
		else if (!VEC_ADD(&v->workers[worker].clones,
				  ((struct clone){group, part->entries.p[i]})))
			rc = err_nomem(err, "clones");
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int visit_parts(const struct visit *v, unsigned int worker, const struct batch *b,
		       struct arena *arena, struct cairn_err *err)
{
	struct group_sites s = {0};
	for (size_t i = 0; i < b->n; i++) {
		batch_next_group(b, i, &s);
		int rc = visit_part(v, worker, &b->groups[i], &s, arena, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int visit_unit(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct visit *v = arg;
	const struct copies_visitor *to = v->visitor;
	struct worker *w = &v->workers[worker];
	size_t done = atomic_fetch_add_explicit(&v->done, 1, memory_order_relaxed);
	if (!worker && to->progress) {
		int rc = to->progress(to->ctx, done, v->by_unit.n_units, err);
		if (rc < 0)
			return rc;
	}
	if (by_unit_parts(&v->by_unit, item, &w->parts) < 0)
		return err_nomem(err, "the functions of a unit");
	if (!w->analysis && !(w->analysis = analysis_new(v->env, 1)))
		return err_nomem(err, "worker memory");
	struct arena arena;
	struct batch b;
	arena_init(&arena);
	int rc = batch_build(&b, v->env, 1, w->parts.v.p, w->parts.v.n, &arena, err);
	if (rc >= 0)
		rc = analysis_count(w->analysis, &b, err);
	if (rc >= 0)
		rc = visit_parts(v, worker, &b, &arena, err);
	batch_fini(&b);
	arena_fini(&arena);
	return rc;
}

/* ---- clones ---- */

static int by_group(const void *a, const void *b)
{
	const struct clone *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static int by_address(const void *a, const void *b)
{
	const struct cairn_site *x = a, *y = b;
	if (x->at.v != y->at.v)
		return x->at.v < y->at.v ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

/* The clones of one function. */
static int visit_group(const struct visit *v, uint32_t group, const struct group_sites *s,
		       struct arena *arena, struct cairn_err *err)
{
	struct cairn_site *sites = arena_array(arena, s->n_first, sizeof(*sites));
	if (!sites)
		return err_nomem(err, "clones");
	uint32_t n = 0;
	for (size_t i = 0; i < s->n_first; i++) {
		struct built_site *b = &s->first[i];
		if (!b->site.n_shared)
			continue;
		if (args_check_args(v->env, b, arena) < 0)
			return err_nomem(err, "a location");
		args_check_clone(v->env, b, true);
		sites[n++] = b->site;
	}
	qsort(sites, n, sizeof(*sites), by_address);
	if (icf_args_settle(sites, n, arena) < 0)
		return err_nomem(err, "the arguments of a site");
	for (uint32_t i = 0; i < n; i++) {
		struct dw_die abstract;
		const struct dw_unit *unit = dwarf_unit_of(v->env->dw, sites[i].die);
		int rc = abstract_die(v->env->dw, unit, sites[i].die, &abstract, err);
		if (rc >= 0)
			rc = v->visitor->site(v->visitor->ctx, 0, group, abstract.off, &sites[i],
					      err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* @parts  of the functions that have clones; of each only those */
static int visit_clones(const struct visit *v, unsigned int threads, const struct clone *clones,
			const struct group *parts, size_t n_parts, struct cairn_err *err)
{
	struct group_sites s = {0};
	struct arena arena;
	struct batch b;
	arena_init(&arena);
	int rc = batch_build(&b, v->env, threads, parts, n_parts, &arena, err);
	if (rc >= 0)
		rc = analyse_counts(v->env, threads, &b, err);
	for (size_t i = 0; i < n_parts && rc >= 0; clones += parts[i++].entries.n) {
		batch_next_group(&b, i, &s);
		rc = visit_group(v, clones->group, &s, &arena, err);
	}
	batch_fini(&b);
	arena_fini(&arena);
	return rc;
}

static int gather_clones(const struct visit *v, unsigned int threads, struct cairn_err *err)
{
	VEC(struct clone) all = {0};
	VEC(struct group) parts = {0};
	uint32_t *entries = NULL;
	bool ok = true;
	for (unsigned int w = 0; w < pool_width(threads); w++)
		for (size_t i = 0; i < v->workers[w].clones.n && ok; i++)
			ok = VEC_ADD(&all, v->workers[w].clones.p[i]);
	if (all.n)
		qsort(all.p, all.n, sizeof(*all.p), by_group);
	entries = ok ? malloc((all.n + 1) * sizeof(*entries)) : NULL;
	ok = entries;
	for (size_t i = 0; i < all.n && ok; i++) {
		entries[i] = all.p[i].entry;
		if (!i || all.p[i - 1].group != all.p[i].group) {
			struct group part = v->groups->v.p[all.p[i].group];
			part.entries = (struct entry_list){.p = entries + i};
			part.rows = (struct row_list){0};
			ok = VEC_ADD(&parts, part);
		}
		if (ok)
			parts.p[parts.n - 1].entries.n++;
	}
	int rc = ok ? visit_clones(v, threads, all.p, parts.p, parts.n, err)
		    : err_nomem(err, "clones");
	free(entries);
	VEC_FREE(&parts);
	VEC_FREE(&all);
	return rc;
}

int copies_visit(const struct site_env *env, unsigned int threads, const struct groups *groups,
		 const struct entry_rows *rows, const struct copies_visitor *visitor,
		 struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct visit v = {.env = env, .groups = groups, .visitor = visitor};
	v.workers = calloc(width, sizeof(*v.workers));
	int rc = v.workers && !by_unit_make(env, groups, rows, &v.by_unit)
			 ? 0
			 : err_nomem(err, "worker memory");
	if (rc >= 0)
		rc = pool_run(v.by_unit.n_units, threads, visit_unit, &v, err);
	if (rc >= 0)
		rc = gather_clones(&v, threads, err);
	for (unsigned int w = 0; v.workers && w < width; w++) {
		unit_parts_fini(&v.workers[w].parts);
		analysis_free(v.workers[w].analysis);
		VEC_FREE(&v.workers[w].clones);
	}
	free(v.workers);
	by_unit_fini(&v.by_unit);
	return rc < 0 ? rc : 0;
}
