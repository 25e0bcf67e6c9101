/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/pool.h"
#include "sites/quirks/removed_param.h"

/*
 * Sites are requested function by function and processed container by container, so that facts
 * about the container's code serve all of them. An entry of the index stands after its container
 * and before the next container, so this is the order of entries.
 */
static struct keyed *make_turns(const struct site_request *requests, size_t n,
				struct cairn_err *err)
{
	struct keyed *turns = n < UINT32_MAX ? malloc((n + 1) * sizeof(*turns)) : NULL;
	for (size_t i = 0; turns && i < n; i++)
		turns[i] = (struct keyed){.key = requests[i].entry, .value = (uint32_t)i};
	if (turns && !keyed_sort(turns, n))
		return turns;
	free(turns);
	err_nomem(err, "sites");
	return NULL;
}

/* Sites that a worker takes at once: neighbours share their container's flow and unit. */
enum { CHUNK = 256 };

/*
 * How far ahead entries are prefetched: the sections are larger than any cache.
 */
enum { AHEAD = 4 };

struct job {
	const struct site_env *env;
	const struct site_request *requests;
	const struct keyed *turns; /* requests by entry */
	size_t n;
	struct built_site *sites; /* n; site.n_shared is 0 where there turned out to be no code */
	struct arena *arenas;     /* per worker, as are */
	struct site_worker *workers;
};

/* The DIE of an entry, and its abstract instance. */
static void prefetch(const struct site_env *env, uint32_t entry)
{
	const struct dw_func *f = &env->index->p[entry];
	dw_func_prefetch(env->dw, f);
	if (f->origin)
		dw_die_prefetch(dwarf_unit(env->dw, f->unit), f->origin);
}

static int build_chunk(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct job *job = arg;
	struct site_worker *w = &job->workers[worker];
	int rc = 0;
	size_t end = (item + 1) * CHUNK < job->n ? (item + 1) * CHUNK : job->n;
	for (size_t turn = item * CHUNK; turn < end && rc >= 0; turn++) {
		uint32_t i = job->turns[turn].value;
		if (turn + AHEAD < end)
			prefetch(job->env, job->turns[turn + AHEAD].key);
		rc = site_build(job->env, w, &job->requests[i], &job->sites[i], err);
		if (rc == 0)
			job->sites[i].site.n_shared = 0;
	}
	return rc < 0 ? rc : 0;
}

/* Build @n requested sites into @ret. */
static int build_sites(const struct site_env *env, unsigned int threads,
		       const struct site_request *requests, size_t n, struct built_site *ret,
		       struct arena *arena, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	if (!n)
		return 0;
	struct keyed *turns = make_turns(requests, n, err);
	struct job job = {.env = env, .requests = requests, .turns = turns, .n = n, .sites = ret};
	if (!turns)
		return -ENOMEM;
	job.arenas = calloc(width, sizeof(*job.arenas));
	job.workers = calloc(width, sizeof(*job.workers));
	int rc = job.arenas && job.workers ? 0 : err_nomem(err, "worker memory");
	for (unsigned int i = 0; i < width && !rc; i++)
		site_worker_init(&job.workers[i], &job.arenas[i]);
	if (!rc)
		rc = pool_run((n + CHUNK - 1) / CHUNK, threads, build_chunk, &job, err);
	for (unsigned int i = 0; i < width && job.arenas && job.workers; i++) {
		site_worker_fini(&job.workers[i]);
		arena_adopt(arena, &job.arenas[i]);
	}
	free(job.workers);
	free(job.arenas);
	free(turns);
	return rc;
}

/* ---- */

static int request_first(struct batch *b, struct cairn_err *err)
{
	for (size_t g = 0; g < b->n; g++)
		for (size_t i = 0; i < b->groups[g].entries.n; i++)
			if (!VEC_ADD(&b->first.v,
				     ((struct site_request){.entry = b->groups[g].entries.p[i]})))
				return err_nomem(err, "sites");
	/* Not cleared: each is built, or all are forgotten. */
	b->first_sites = malloc((b->first.v.n + 1) * sizeof(*b->first_sites));
	b->n_extra = calloc(b->n + 1, sizeof(*b->n_extra));
	return b->first_sites && b->n_extra ? 0 : err_nomem(err, "sites");
}

static int request_extra(struct batch *b, const struct site_env *env, struct cairn_err *err)
{
	struct built_site *sites = b->first_sites;
	struct first_entries scratch = {0};
	int rc = 0;
	for (size_t g = 0; g < b->n && rc >= 0; sites += b->groups[g++].entries.n) {
		size_t before = b->further.v.n;
		rc = extra_request(env, &b->groups[g], sites, &scratch, &b->further, err);
		b->n_extra[g] = b->further.v.n - before;
	}
	VEC_FREE(&scratch.v);
	if (rc < 0)
		return rc;
	b->extra_sites = malloc((b->further.v.n + 1) * sizeof(*b->extra_sites));
	return b->extra_sites ? 0 : err_nomem(err, "sites");
}

int batch_build(struct batch *b, const struct site_env *env, unsigned int threads,
		const struct group *groups, size_t n, struct arena *arena, struct cairn_err *err)
{
	*b = (struct batch){.groups = groups, .n = n};
	int rc = request_first(b, err);
	if (rc >= 0)
		rc = build_sites(env, threads, b->first.v.p, b->first.v.n, b->first_sites, arena,
				 err);
	if (rc >= 0)
		rc = request_extra(b, env, err);
	if (rc >= 0)
		rc = build_sites(env, threads, b->further.v.p, b->further.v.n, b->extra_sites,
				 arena, err);
	return rc;
}

void batch_fini(struct batch *b)
{
	VEC_FREE(&b->first.v);
	VEC_FREE(&b->further.v);
	free(b->first_sites);
	free(b->extra_sites);
	free(b->n_extra);
}

void batch_next_group(const struct batch *b, size_t group, struct group_sites *s)
{
	s->first = group ? s->first + s->n_first : b->first_sites;
	s->further = group ? s->further + s->n_extra : b->extra_sites;
	s->n_first = b->groups[group].entries.n;
	s->n_extra = b->n_extra[group];
}

/* Most functions have no removed parameter. */
int batch_check_removed_params(const struct group_sites *s)
{
	size_t total = s->n_first + s->n_extra, n = 0;
	for (size_t i = 0; i < total; i++)
		n += removed_param_any(group_site(s, i));
	struct built_site **sites = n ? calloc(total, sizeof(struct built_site *)) : NULL;
	if (!sites)
		return n ? -ENOMEM : 0;
	for (size_t i = 0; i < total; i++)
		sites[i] = group_site(s, i);
	removed_param_check(sites, total);
	free(sites);
	return 0;
}
