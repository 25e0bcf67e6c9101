/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/users.h"

#include <errno.h>
#include <stdlib.h>

static void sum_up(uint32_t *first, size_t n)
{
	for (size_t i = 1; i < n + 2; i++)
		first[i] += first[i - 1];
}

int users_find(const struct classes *c, struct users *ret)
{
	struct user_list *classes = &ret->of_class, *groups = &ret->of_group;
	size_t n_edges[2] = {0, 0};
	edge_t e;
	classes->first = calloc(c->v.n + 2, sizeof(uint32_t));
	groups->first = calloc(c->groups.n + 2, sizeof(uint32_t));
	if (!classes->first || !groups->first)
		return -ENOMEM;
	for (size_t i = 0; i < c->v.n; i++) {
		const struct type_class *k = &c->v.p[i];
		FOR_CLASS_EDGES(k, e)
		{
			bool to_group = e & EDGE_GROUP;
			uint32_t *first = to_group ? groups->first : classes->first;
			first[(to_group ? e & ~EDGE_GROUP : e - 1) + 2]++;
			n_edges[to_group]++;
		}
	}
	classes->from = malloc((n_edges[0] + 1) * sizeof(uint32_t));
	groups->from = malloc((n_edges[1] + 1) * sizeof(uint32_t));
	if (!classes->from || !groups->from)
		return -ENOMEM;
	sum_up(classes->first, c->v.n);
	sum_up(groups->first, c->groups.n);
	for (size_t i = 0; i < c->v.n; i++) {
		const struct type_class *k = &c->v.p[i];
		FOR_CLASS_EDGES(k, e)
		{
			if (e & EDGE_GROUP)
				groups->from[groups->first[(e & ~EDGE_GROUP) + 1]++] = (uint32_t)i;
			else
				classes->from[classes->first[e]++] = (uint32_t)i;
		}
	}
	return 0;
}

void users_fini(struct users *u)
{
	free(u->of_class.first);
	free(u->of_class.from);
	free(u->of_group.first);
	free(u->of_group.from);
}
