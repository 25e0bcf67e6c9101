/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread pool: the same work over many items
 *
 * Items are handed out in order, one at a time, so that a slow one does not hold up a batch. A
 * result is written to the item's own slot, and the caller joins the slots in item order: the
 * outcome is the same for any number of threads.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

#include "base/err.h"

/*
 * pool_run - call @fn(@ctx, item, worker, err) for every item in [0, @n)
 *
 * @threads  workers; 0 means one per processor this process may use
 * @worker   of @fn: in [0, threads), for scratch memory
 * Returns 0, or the error of the *lowest* failing item (so that the message does not depend on
 * timing); items after a failed one may or may not have run.
 */
int pool_run(size_t n, unsigned int threads,
	     int (*fn)(void *ctx, size_t item, unsigned int worker, struct cairn_err *err),
	     void *ctx, struct cairn_err *err);

/* Number of workers that pool_run() uses for @threads; at least 1. */
unsigned int pool_width(unsigned int threads);

#endif
