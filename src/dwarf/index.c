/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function index of a whole file
 *
 * Units are scanned in parallel and handed out in order, so they are finished nearly in order. Each result is
 * appended to the index as soon as all units before it have been: the index exists once, not a second time
 * in pieces, and is the same for any number of threads.
 */
#include "dwarf/index.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/large_vec.h"
#include "base/pool.h"
#include "dwarf/scan.h"

/* A unit that was finished before its turn. */
struct waiting {
	struct dw_func *p;
	size_t n;
	bool done;
};

struct build {
	const struct dwarf *dw;
	struct dw_scanner *scanners; /* one per worker */
	pthread_mutex_t lock;	     /* for what follows */
	struct waiting *waiting;     /* by unit */
	size_t next;		     /* the unit whose turn it is */
	VEC(struct dw_func) out;
};

static int append(struct build *b, const struct dw_func *p, size_t n, struct cairn_err *err)
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
static int deliver(struct build *b, size_t unit, const struct dw_func *p, size_t n,
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

static int index_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct build *b = ctx;
	struct dw_scanner *s = &b->scanners[worker];
	int rc = dw_scan_unit(s, &b->dw->units[item], err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&b->lock);
	rc = deliver(b, item, s->funcs.p, s->funcs.n, err);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

int dwarf_index_functions(const struct dwarf *dw, unsigned int threads, struct dw_func_index *ret,
			  struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct build b = {.dw = dw, .lock = PTHREAD_MUTEX_INITIALIZER};
	b.scanners = calloc(width, sizeof(*b.scanners));
	b.waiting = calloc(dw->n_units + 1, sizeof(*b.waiting));
	for (unsigned int i = 0; b.scanners && i < width; i++)
		dw_scanner_init(&b.scanners[i], NULL);
	int rc = b.scanners && b.waiting ? pool_run(dw->n_units, threads, index_unit, &b, err)
					 : err_nomem(err, "the function index");
	uint64_t n_dies = 0;
	for (unsigned int i = 0; b.scanners && i < width; i++) {
		n_dies += b.scanners[i].n_dies;
		dw_scanner_fini(&b.scanners[i]);
	}
	for (size_t i = 0; b.waiting && i < dw->n_units; i++)
		free(b.waiting[i].p);
	free(b.waiting);
	free(b.scanners);
	if (rc < 0) {
		LARGE_FREE(&b.out);
		return rc;
	}
	*ret = (struct dw_func_index){.p = b.out.p, .n = b.out.n, .cap = b.out.cap, .n_dies = n_dies};
	return 0;
}

void dw_func_index_fini(struct dw_func_index *index)
{
	pages_free(index->p, index->cap, sizeof(*index->p));
	*index = (struct dw_func_index){0};
}

/* Among entries [lo, hi). */
static uint32_t find_in(const struct dw_func_index *index, size_t lo, size_t hi, dw_off die)
{
	size_t end = hi;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (index->p[mid].die < die)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < end && index->p[lo].die == die ? (uint32_t)lo : DW_FUNC_NONE;
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
