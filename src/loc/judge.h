/* SPDX-License-Identifier: BSD-2-Clause */
/* All copies of many functions judged: do their places count calls? */
#ifndef LOC_JUDGE_H
#define LOC_JUDGE_H

#include "loc/batch.h"

/*
 * judge_counts - set count_doubts and n_behind of every copy's places
 *
 * @in  batch_build() succeeded
 * Returns 0 or -ENOMEM.
 * Cost: decodes each function that has copies in it, and passes over its instructions for each.
 */
int judge_counts(const struct site_env *env, unsigned int threads, const struct batch *in, struct cairn_err *err);

#endif
