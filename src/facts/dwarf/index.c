/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function index of a whole file
 *
 * Units are scanned in parallel and handed out in order, so they are finished nearly in order. Each
 * result is appended to the index as soon as all units before it have been. The index exists once,
 * not a second time in pieces, and is the same for any number of threads.
 */
#include "dwarf/index.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/large_vec.h"
#include "base/pool.h"
#include "base/search.h"
#include "dwarf/scan.h"

/* A unit that was finished before its turn. */
struct waiting {
	struct dw_func *p;
	size_t n;
	bool done;
};

struct dw_index_build {
	const struct dwarf *dw;
	struct dw_scanner *scanners; /* n_workers */
	unsigned int n_workers;
	pthread_mutex_t lock;    /* for the fields below */
	struct waiting *waiting; /* by unit */
	size_t next;             /* the unit whose turn it is */
	VEC(struct dw_func) out;
};

static int append(struct dw_index_build *b, const struct dw_func *p, size_t n,
		  struct cairn_err *err)
{
	size_t base = b->out.n;
	if (n >= DW_FUNC_NONE - base)
		return err_set(err, -ERANGE, "%s: more than %u functions", b->dw->file[0].path,
			       DW_FUNC_NONE - 1);
	if (!LARGE_RESERVE(&b->out, n))
		return err_nomem(err, "the function index");
	for (size_t i = 0; i < n; i++) {
		struct dw_func *f = &b->out.p[base + i];
		*f = p[i];
		if (f->parent != DW_FUNC_NONE)
			f->parent += (uint32_t)base;
	}
	b->out.n += n;
	return 0;
}

/* A unit is done: append it and those that waited for it, or let it wait. Under the lock. */
static int deliver(struct dw_index_build *b, size_t unit, const struct dw_func *p, size_t n,
		   struct cairn_err *err)
{
	struct waiting *w = &b->waiting[unit];
	w->done = true;
	if (unit != b->next) {
		w->n = n;
		w->p = n ? malloc(n * sizeof(*p)) : NULL;
		if (n && !w->p)
			return err_nomem(err, "the function index");
		if (n)
			memcpy(w->p, p, n * sizeof(*p));
		return 0;
	}
	int rc = append(b, p, n, err);
	for (b->next++; rc >= 0 && b->next < b->dw->n_units; b->next++) {
		w = &b->waiting[b->next];
		if (!w->done)
			break;
		rc = append(b, w->p, w->n, err);
		free(w->p);
		w->p = NULL;
	}
	return rc;
}

int dw_index_build_new(const struct dwarf *dw, unsigned int threads, struct dw_index_build **ret,
		       struct cairn_err *err)
{
	struct dw_index_build *b = *ret = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err, "the function index");
	b->dw = dw;
	b->n_workers = pool_width(threads);
	pthread_mutex_init(&b->lock, NULL);
	b->scanners = calloc(b->n_workers, sizeof(*b->scanners));
	b->waiting = calloc(dw->n_units + 1, sizeof(*b->waiting));
	for (unsigned int i = 0; b->scanners && i < b->n_workers; i++)
		dw_scanner_init(&b->scanners[i], NULL);
	return b->scanners && b->waiting ? 0 : err_nomem(err, "the function index");
}

void dw_index_build_free(struct dw_index_build *b)
{
	if (!b)
		return;
	for (unsigned int i = 0; b->scanners && i < b->n_workers; i++)
		dw_scanner_fini(&b->scanners[i]);
	for (size_t i = 0; b->waiting && i < b->dw->n_units; i++)
		free(b->waiting[i].p);
	free(b->waiting);
	free(b->scanners);
	LARGE_FREE(&b->out);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

struct dw_scanner *dw_index_build_scanner(struct dw_index_build *b, unsigned int worker)
{
	return &b->scanners[worker];
}

int dw_index_build_add(struct dw_index_build *b, size_t unit, unsigned int worker,
		       struct cairn_err *err)
{
	const struct dw_scanner *s = &b->scanners[worker];
	pthread_mutex_lock(&b->lock);
	int rc = deliver(b, unit, s->funcs.p, s->funcs.n, err);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

void dw_index_build_take(struct dw_index_build *b, struct dw_func_index *ret)
{
	*ret = (struct dw_func_index){.p = b->out.p, .n = b->out.n, .cap = b->out.cap};
	for (unsigned int i = 0; i < b->n_workers; i++)
		ret->n_dies += b->scanners[i].n_dies;
	b->out.p = NULL;
	b->out.n = b->out.cap = 0;
}

static int index_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct dw_index_build *b = ctx;
	int rc = dw_scan_unit(&b->scanners[worker], &b->dw->units[item], err);
	return rc < 0 ? rc : dw_index_build_add(b, item, worker, err);
}

int dwarf_index_functions(const struct dwarf *dw, unsigned int threads, struct dw_func_index *ret,
			  struct cairn_err *err)
{
	struct dw_index_build *b;
	int rc = dw_index_build_new(dw, threads, &b, err);
	if (rc >= 0)
		rc = pool_run(dw->n_units, threads, index_unit, b, err);
	if (rc >= 0)
		dw_index_build_take(b, ret);
	dw_index_build_free(b);
	return rc < 0 ? rc : 0;
}

void dw_func_index_fini(struct dw_func_index *index)
{
	pages_free(index->p, index->cap, sizeof(*index->p));
	*index = (struct dw_func_index){0};
}

/* Among entries [lo, hi). */
static uint32_t find_in(const struct dw_func_index *index, size_t lo, size_t hi, dw_off die)
{
	size_t at = SEARCH(lo, hi, i, index->p[i].die < die);
	return at < hi && index->p[at].die == die ? (uint32_t)at : DW_FUNC_NONE;
}

uint32_t dw_func_index_find(const struct dw_func_index *index, dw_off die)
{
	return find_in(index, 0, index->n, die);
}

/* In steps that double, up to one that goes past it. */
uint32_t dw_func_index_find_near(const struct dw_func_index *index, uint32_t near, dw_off die)
{
	size_t lo = near, hi = near, step = 16;
	if (near >= index->n)
		return dw_func_index_find(index, die);
	for (; lo && index->p[lo].die > die; step *= 2) {
		hi = lo;
		lo = lo > step ? lo - step : 0;
	}
	for (; hi < index->n && index->p[hi].die <= die; step *= 2) {
		lo = hi;
		hi = index->n - hi > step ? hi + step : index->n;
	}
	return find_in(index, lo, hi, die);
}
