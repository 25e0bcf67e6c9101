/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds the sites of many functions, as far as this needs no types
 *
 * Each site is built by itself, with the extra sites that the first ones lead to. All of them are
 * then analysed together for event counts (analyse.h). Names and types of parameters are added
 * later (function.c), or are not needed (copies.c).
 */
#ifndef SITES_BATCH_H
#define SITES_BATCH_H

#include "sites/extra_entries.h"

struct batch {
	const struct group *groups;
	size_t n;
	/*
	 * One request for each entry of each group, in that order; n_extra[g] requests of group g
	 * follow those of the groups before it.
	 */
	struct site_requests first, further;
	size_t *n_extra;
	/* As their requests stand; site.n_shared is 0 where there turned out to be no code. */
	struct built_site *first_sites, *extra_sites;
};

/*
 * batch_build - the sites of @n groups
 *
 * @threads  as in pool_run(); the outcome does not depend on it
 * @arena    holds the data of the sites
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM. batch_fini() in all cases.
 * Cost: decodes the functions around the sites.
 */
int batch_build(struct batch *b, const struct site_env *env, unsigned int threads,
		const struct group *groups, size_t n, struct arena *arena, struct cairn_err *err);
void batch_fini(struct batch *b);

/* The built sites of one group: those of its entries, and the further ones. */
struct group_sites {
	struct built_site *first, *further;
	size_t n_first, n_extra;
};

/* From the first group to the next: with *@s zeroed at first, for groups 0, 1, ... */
void batch_next_group(const struct batch *b, size_t group, struct group_sites *s);

static inline struct built_site *group_site(const struct group_sites *s, size_t i)
{
	return i < s->n_first ? &s->first[i] : &s->further[i - s->n_first];
}

/* removed_param_check() for the sites of a group. Returns 0 or -ENOMEM. */
int batch_check_removed_params(const struct group_sites *s);

#endif
