/* SPDX-License-Identifier: BSD-2-Clause */
/* All copies of many functions judged: do their places count calls? */
#ifndef SITES_ANALYSE_H
#define SITES_ANALYSE_H

#include "sites/batch.h"

/*
 * judge_counts - set count_doubts and n_behind of every copy's places
 *
 * @in  batch_build() succeeded
 * Returns 0 or -ENOMEM.
 * Cost: decodes each function that has copies in it, and passes over its instructions for each.
 */
int judge_counts(const struct site_env *env, unsigned int threads, const struct batch *in, struct cairn_err *err);

/*
 * The same for who judges batch by batch: workers with their memory, which has room for the instructions and variables of the largest
 * function. NULL when there is none. Used by one call at a time.
 */
struct judges;
struct judges *judges_new(const struct site_env *env, unsigned int threads);
int judges_count(struct judges *judges, const struct batch *in, struct cairn_err *err);
void judges_free(struct judges *judges);

#endif
