/* SPDX-License-Identifier: BSD-2-Clause */
/* All copies of many functions judged: do their sites count calls? */
#ifndef SITES_ANALYSE_H
#define SITES_ANALYSE_H

#include "sites/batch.h"

/*
 * analyse_counts - set count_caveats and n_bypasses of every copy's sites
 *
 * @in  batch_build() succeeded
 * Returns 0 or -ENOMEM.
 * Cost: decodes each function that has copies in it, and passes over its instructions once per
 * copy.
 */
int analyse_counts(const struct site_env *env, unsigned int threads, const struct batch *in,
		   struct cairn_err *err);

/*
 * The same for callers that analyse batch by batch: workers with their memory, which has room for
 * the instructions and variables of the largest function. NULL when there is none. Used by one call
 * at a time.
 */
struct analysis;
struct analysis *analysis_new(const struct site_env *env, unsigned int threads);
int analysis_count(struct analysis *analysis, const struct batch *in, struct cairn_err *err);
void analysis_free(struct analysis *analysis);

#endif
