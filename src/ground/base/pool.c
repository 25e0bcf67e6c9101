/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* More workers than this gain nothing on the inputs at hand and cost stacks. */
enum { POOL_MAX = 64 };

struct pool {
	size_t n;
	int (*fn)(void *, size_t, unsigned int, struct cairn_err *);
	void *ctx;
	_Atomic size_t next;
	_Atomic bool stop;
};

struct worker {
	struct pool *pool;
	unsigned int id;
	pthread_t thread;
	bool started;
	/* The first failure of this worker: its lowest, since items are handed out in order. */
	int rc;
	size_t failed_item;
	struct cairn_err err;
};

unsigned int pool_width(unsigned int threads)
{
	if (!threads) {
		cpu_set_t set;
		threads = sched_getaffinity(0, sizeof(set), &set) == 0
				  ? (unsigned int)CPU_COUNT(&set)
				  : 1;
	}
	return threads < 1 ? 1 : threads > POOL_MAX ? POOL_MAX : threads;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->pool;
	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		size_t item = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
		if (item >= p->n)
			break;
		w->rc = p->fn(p->ctx, item, w->id, &w->err);
		if (w->rc < 0) {
			w->failed_item = item;
			atomic_store_explicit(&p->stop, true, memory_order_relaxed);
			break;
		}
	}
	return NULL;
}

int pool_run(size_t n, unsigned int threads,
	     int (*fn)(void *ctx, size_t item, unsigned int worker, struct cairn_err *err),
	     void *ctx, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	if (width > n)
		width = n ? (unsigned int)n : 1;
	struct pool pool = {.n = n, .fn = fn, .ctx = ctx};
	struct worker *workers = calloc(width, sizeof(*workers));
	if (!workers)
		return err_nomem(err, "worker threads");
	for (unsigned int i = 0; i < width; i++) {
		workers[i].pool = &pool;
		workers[i].id = i;
		/* Worker 0 is the caller. A thread that cannot be started only makes it slower. */
		if (i > 0)
			workers[i].started =
				pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
	}
	work(&workers[0]);
	struct worker *first = NULL;
	for (unsigned int i = 0; i < width; i++) {
		struct worker *w = &workers[i];
		if (w->started)
			pthread_join(w->thread, NULL);
		if (w->rc < 0 && (!first || w->failed_item < first->failed_item))
			first = w;
	}
	int rc = first ? first->rc : 0;
	if (first && err)
		*err = first->err;
	free(workers);
	return rc;
}
