/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies are judged in the order of their containers, so that the code of a container is read once for all of them. Those of
 * one function in one container then stand beside each other, too.
 */
#include "loc/judge.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/pool.h"
#include "loc/passage.h"

/* Copies that a worker takes at once. */
enum { CHUNK = 64 };

struct copy {
	uint32_t container; /* index entry */
	size_t group;
	size_t i; /* of its first request */
};

struct judging {
	const struct site_env *env;
	const struct judge_input *in;
	VEC(struct copy) copies;
	size_t *further_from; /* of each group: its further requests; one more than there are groups */
};

/* Of one worker: the container's code as a graph, kept from copy to copy. */
struct judge {
	const struct judging *all;
	uint32_t container;
	struct graph *graph;
	VEC(struct built_site *) places;
	VEC(const struct built_site *) others;
};

static void enter_container(struct judge *j, uint32_t container)
{
	const struct site_env *env = j->all->env;
	struct dw_die die;
	struct cairn_vaddr entry;
	if (j->container == container)
		return;
	graph_free(j->graph);
	j->graph = NULL;
	j->container = container;
	if (dw_die_at(env->dw, env->index->p[container].die, &die, NULL) == 1 && site_entry_of(&die, &entry) == 1)
		j->graph = graph_new(env->code, &die, entry);
}

static bool gather_places(struct judge *j, const struct copy *c)
{
	const struct judge_input *in = j->all->in;
	j->places.n = 0;
	if (!VEC_ADD(&j->places, &in->first_sites[c->i]))
		return false;
	for (size_t k = j->all->further_from[c->group]; k < j->all->further_from[c->group + 1]; k++)
		if (in->further[k].entry == in->first[c->i].entry && in->further_sites[k].site.n_shared &&
		    !VEC_ADD(&j->places, &in->further_sites[k]))
			return false;
	return true;
}

/* The neighbours that are copies of the same function in the same container. */
static bool gather_others(struct judge *j, size_t at)
{
	const struct judging *all = j->all;
	const struct copy *c = &all->copies.p[at];
	size_t first = at;
	while (first && all->copies.p[first - 1].container == c->container && all->copies.p[first - 1].group == c->group)
		first--;
	j->others.n = 0;
	for (size_t k = first; k < all->copies.n; k++) {
		const struct copy *o = &all->copies.p[k];
		if (o->container != c->container || o->group != c->group)
			return true;
		if (k != at && !VEC_ADD(&j->others, &all->in->first_sites[o->i]))
			return false;
	}
	return true;
}

static int judge_copy(struct judge *j, size_t at, struct cairn_err *err)
{
	const struct copy *c = &j->all->copies.p[at];
	const struct built_site *first = &j->all->in->first_sites[c->i];
	if (first->site.kind != CAIRN_SITE_INLINED)
		return 0;
	enter_container(j, c->container);
	if (!j->graph)
		return 0;
	bool ok = gather_places(j, c) && gather_others(j, at);
	struct passage p = {.graph = j->graph, .copy = &first->die, .places = j->places.p, .n_places = j->places.n,
			    .others = j->others.p, .n_others = j->others.n};
	return ok && passage_judge(&p) == 0 ? 0 : err_nomem(err, "ways to a copy");
}

static int judge_chunk(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct judge j = {.all = arg, .container = DW_FUNC_NONE};
	size_t n = j.all->copies.n, end = (item + 1) * CHUNK < n ? (item + 1) * CHUNK : n;
	int rc = 0;
	for (size_t at = item * CHUNK; at < end && !rc; at++)
		rc = judge_copy(&j, at, err);
	graph_free(j.graph);
	VEC_FREE(&j.places);
	VEC_FREE(&j.others);
	return rc;
}

static int by_container(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;
	if (x->container != y->container)
		return x->container < y->container ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

/* The copies with code, parts among them, in the order in which they are judged. */
static int list_copies(struct judging *all, struct cairn_err *err)
{
	const struct judge_input *in = all->in;
	all->further_from = calloc(in->n_groups + 1, sizeof(*all->further_from));
	if (!all->further_from)
		return err_nomem(err, "ways to a copy");
	for (size_t g = 0, i = 0; g < in->n_groups; g++) {
		all->further_from[g + 1] = all->further_from[g] + in->n_further[g];
		for (size_t k = 0; k < in->groups[g].entries.n; k++, i++) {
			struct copy c = {.container = site_container(all->env->index, in->first[i].entry), .group = g, .i = i};
			if (in->first_sites[i].site.n_shared && in->first_sites[i].site.n_chain && !VEC_ADD(&all->copies, c))
				return err_nomem(err, "ways to a copy");
		}
	}
	if (all->copies.n)
		qsort(all->copies.p, all->copies.n, sizeof(*all->copies.p), by_container);
	return 0;
}

int judge_counts(const struct site_env *env, unsigned int threads, const struct judge_input *in, struct cairn_err *err)
{
	struct judging all = {.env = env, .in = in};
	int rc = list_copies(&all, err);
	if (!rc)
		rc = pool_run((all.copies.n + CHUNK - 1) / CHUNK, threads, judge_chunk, &all, err);
	VEC_FREE(&all.copies);
	free(all.further_from);
	return rc;
}
