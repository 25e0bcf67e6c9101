/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sorting by name
 *
 * The kernel (7.0) and libbpf find a name by bisection if the named records are in ascending order
 * of their names (as bytes), after all records without a name. So "" comes first, as strcmp() has
 * it. Records of one name are ordered by kind, then as they were. Strings stay where they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "btf/move.h"

struct key {
	const char *name;
	uint32_t kind, id;
};

static int by_name(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = x->name == y->name ? 0 : strcmp(x->name, y->name);
	if (order)
		return order;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static struct key *sorted_keys(const struct cairn_btf *btf)
{
	uint32_t n = btf->end_id - btf->start_id;
	struct key *keys = malloc((n + 1) * sizeof(*keys));
	struct cairn_btf_type t;
	if (!keys)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		cairn_btf_type(btf, btf->start_id + i, &t);
		keys[i] = (struct key){.name = t.name, .kind = t.kind, .id = t.id};
	}
	qsort(keys, n, sizeof(*keys), by_name);
	return keys;
}

/* @map  of the whole chain; set here */
static int write_sorted(const struct cairn_btf *btf, const struct key *keys, uint32_t *map,
			void **ret, size_t *ret_size, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = btf->base,
					    .dialect = btf->dialect,
					    .big_endian = btf->big_endian,
					    .layout = btf->layout != NULL};
	struct btf_move m = {.btf = btf, .map = map};
	uint32_t n = btf->end_id - btf->start_id;
	for (uint32_t id = 0; id < btf->start_id; id++)
		map[id] = id;
	for (uint32_t i = 0; i < n; i++)
		map[keys[i].id] = btf->start_id + i;
	int rc = cairn_btf_builder_new(&opts, &m.b, err);
	if (rc < 0)
		return rc;
	btf_builder_adopt_form(m.b, btf);
	rc = btf_builder_adopt_strings(m.b, btf);
	if (rc < 0)
		err_set(err, rc, "no room for the strings of %s", btf->name);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = btf_move_record(&m, keys[i].id, err);
	if (rc == 0)
		rc = cairn_btf_finish(m.b, ret, ret_size, err);
	cairn_btf_builder_free(m.b);
	return rc;
}

static int sort(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		struct cairn_err *err)
{
	int rc = btf_check_movable(btf, err);
	if (rc < 0)
		return rc;
	SCOPE_FREE struct key *keys = sorted_keys(btf);
	SCOPE_FREE uint32_t *all = malloc(btf->end_id * sizeof(*all));
	if (!keys || !all)
		return err_nomem(err, "sorting BTF");
	rc = write_sorted(btf, keys, all, ret, ret_size, err);
	if (rc == 0 && map)
		memcpy(map, all + btf->start_id, (btf->end_id - btf->start_id) * sizeof(*map));
	return rc;
}

int cairn_btf_sort(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		   struct cairn_err *err)
{
	int rc = sort(btf, map, ret, ret_size, err);
	return btf_verdict(btf, rc, ret, err);
}
