/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs that point to types which the base only declares
 *
 *	base    struct kernel { struct s *p; }    struct s;
 *	own     struct kernel { struct s *p; }    struct s { int x; }
 *	        struct far { struct kernel *k; }
 *
 * The base's "struct kernel" must not stand for the own one: its pointer leads to a declaration,
 * and a reader that follows it would not find the definition. The base may stand for "struct far",
 * which only leads to such a struct: half of a kernel's structs do.
 *
 * The references are followed backwards from these definitions, up to the first struct with a name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "btf/dedup.h"

struct defined {
	const struct btf_graph *g;
	bool *points;
	/* users[users_at[v]] to users[users_at[v + 1] - 1] refer to v; own ones only */
	uint32_t *users, *users_at;
	VEC(uint32_t) todo;
};

/* Declarations of the base, which a definition in the base does not stand for: kind and name. */
static uint64_t key_of(const struct btf_graph *g, uint32_t node, bool is_union)
{
	return (uint64_t)is_union << 32 | btf_graph_record(g, node)[BTF_RECORD_NAME];
}

static int find_declared(const struct btf_graph *g, struct map *ret)
{
	int rc = 0;
	for (uint32_t node = 1; rc == 0 && node < g->btf->start_id; node++)
		if (btf_graph_kind(g, node) == CAIRN_BTF_FWD && g->stands[node] == node)
			rc = map_put(
				ret,
				key_of(g, node,
				       BTF_KFLAG_OF(btf_graph_record(g, node)[BTF_RECORD_INFO])),
				1);
	return rc;
}

static int find_users(struct defined *d)
{
	const struct btf_graph *g = d->g;
	uint32_t *at = d->users_at = calloc((size_t)g->n + 2, sizeof(*at));
	for (uint32_t node = g->btf->start_id; at && node < g->n; node++) {
		struct btf_fields f = btf_graph_ids(g, node);
		for (uint32_t *id; (id = btf_next(&f));)
			at[g->stands[*id] + 2]++;
	}
	for (uint32_t i = 2; at && i < g->n + 2; i++)
		at[i] += at[i - 1];
	d->users = at ? malloc(((size_t)at[g->n + 1] + 1) * sizeof(*d->users)) : NULL;
	for (uint32_t node = g->btf->start_id; d->users && node < g->n; node++) {
		struct btf_fields f = btf_graph_ids(g, node);
		for (uint32_t *id; (id = btf_next(&f));)
			d->users[at[g->stands[*id] + 1]++] = node;
	}
	return d->users ? 0 : -1;
}

/* The end of a reference: a type that has members, and a name to find them by. */
static bool is_end(const struct btf_graph *g, uint32_t node)
{
	return btf_graph_is_struct(g, node) && btf_graph_record(g, node)[BTF_RECORD_NAME];
}

static int mark_users(struct defined *d, uint32_t of)
{
	for (uint32_t i = d->users_at[of]; i < d->users_at[of + 1]; i++) {
		uint32_t user = d->users[i];
		if (d->points[user])
			continue;
		d->points[user] = true;
		if (!is_end(d->g, user) && !VEC_ADD(&d->todo, user))
			return -1;
	}
	return 0;
}

static int mark_all(struct defined *d, const struct map *declared)
{
	const struct btf_graph *g = d->g;
	int rc = find_users(d);
	for (uint32_t node = g->btf->start_id; rc == 0 && node < g->n; node++) {
		uint64_t found;
		if (!is_end(g, node) ||
		    !map_get(declared, key_of(g, node, btf_graph_kind(g, node) == CAIRN_BTF_UNION),
			     &found))
			continue;
		rc = mark_users(d, node);
		while (rc == 0 && d->todo.n)
			rc = mark_users(d, d->todo.p[--d->todo.n]);
	}
	return rc;
}

bool *btf_point_to_defined(const struct btf_graph *g)
{
	struct defined d = {.g = g, .points = calloc(g->n, sizeof(*d.points))};
	struct map declared;
	map_init(&declared);
	int rc = d.points ? find_declared(g, &declared) : -1;
	if (rc == 0 && declared.n)
		rc = mark_all(&d, &declared);
	map_fini(&declared);
	free(d.users);
	free(d.users_at);
	VEC_FREE(&d.todo);
	if (rc == 0)
		return d.points;
	free(d.points);
	return NULL;
}
