/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/named_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btfgen/type_classes.h"

uint64_t named_key(uint8_t kind, const char *name)
{
	return map_hash_bytes(name, strlen(name)) ^ (uint64_t)kind << 32;
}

static int by_die(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	return x->die < y->die ? -1 : x->die > y->die;
}

/* A name may stand for several classes, and each worker has met its own first. */
static int take(struct named_types *ret, struct map *typedefs, const struct named *n)
{
	struct map *known = n->is_typedef ? typedefs : &ret->known;
	uint64_t unused;
	if (map_get(known, n->key, &unused))
		return 0;
	bool fits = n->is_typedef ? VEC_ADD(&ret->typedefs, n->die)
				  : VEC_ADD(&ret->definitions, n->die);
	return fits && map_put(known, n->key, 1) >= 0 ? 0 : -ENOMEM;
}

static int take_all(const struct classes *c, struct named_types *ret)
{
	struct named *sorted = malloc((c->named.n + 1) * sizeof(*sorted));
	struct map typedefs = {0};
	int rc = sorted ? 0 : -ENOMEM;
	if (sorted && c->named.n) {
		memcpy(sorted, c->named.p, c->named.n * sizeof(*sorted));
		qsort(sorted, c->named.n, sizeof(*sorted), by_die);
	}
	for (size_t i = 0; rc >= 0 && i < c->named.n; i++)
		rc = take(ret, &typedefs, &sorted[i]);
	map_fini(&typedefs);
	free(sorted);
	return rc;
}

int named_find(const struct classes *c, size_t n_units, struct named_types *ret)
{
	ret->is_whole = !c->has_others;
	if (!ret->is_whole)
		return 0;
	ret->has_inner = calloc(n_units + 1, sizeof(*ret->has_inner));
	if (!ret->has_inner)
		return -ENOMEM;
	/* Numbers of units in spans begin at 1. */
	for (size_t i = 0; i < c->spans.n; i++)
		ret->has_inner[c->spans.p[i].unit - 1] = c->spans.p[i].has_inner;
	return take_all(c, ret);
}

void named_fini(struct named_types *n)
{
	VEC_FREE(&n->definitions);
	VEC_FREE(&n->typedefs);
	map_fini(&n->known);
	free(n->has_inner);
	n->has_inner = NULL;
}

bool named_may_be_defined(const struct named_types *n, enum cairn_type_kind kind, const char *name)
{
	uint8_t as = kind == CAIRN_T_UNION  ? TYPE_UNION
		     : kind == CAIRN_T_ENUM ? TYPE_ENUM
					    : TYPE_STRUCT;
	uint64_t unused;
	return !n->is_whole || map_get(&n->known, named_key(as, name), &unused);
}
