/* SPDX-License-Identifier: BSD-2-Clause */
/* All copies of many functions judged: do their places count calls? */
#ifndef LOC_JUDGE_H
#define LOC_JUDGE_H

#include "loc/group.h"

/*
 * Built sites of @n_groups functions. @first has one request for each entry of each group, in that order; @further has
 * n_further[g] of group g behind those of the groups before it. The sites stand as their requests do.
 */
struct judge_input {
	const struct group *groups;
	size_t n_groups;
	const size_t *n_further;
	const struct site_request *first, *further;
	struct built_site *first_sites, *further_sites;
};

/*
 * judge_counts - set count_doubts and n_behind of every copy's places
 *
 * Returns 0 or -ENOMEM.
 * Cost: decodes each function that has copies in it, and passes over its instructions for each.
 */
int judge_counts(const struct site_env *env, unsigned int threads, const struct judge_input *in, struct cairn_err *err);

#endif
