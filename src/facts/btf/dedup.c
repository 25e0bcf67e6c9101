/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dedup: load, find equal types, write one of each
 *
 * Among equal types the first stays; a base's comes before all own ones. The remaining types keep
 * their order. So a blob without duplicates comes out as it went in, except for strings, which are
 * written in the order of their first use. The result is therefore idempotent, and the same for any
 * input of the same content and order.
 *
 * Records of unknown kinds are never merged, and are carried as btf/opaque.h says: if there are
 * some, strings keep their offsets, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "btf/build.h"
#include "btf/dedup.h"
#include "btf/opaque.h"
#include "btf/strings.h"

/* ---- the graph ---- */

static void graph_fini(struct btf_graph *g)
{
	free(g->words);
	free(g->records);
	free(g->stands);
	free(g->class_of);
	free(g->members);
	free(g->classes);
}

static int graph_init(struct btf_graph *g, const struct cairn_btf *btf)
{
	size_t n_words = 0, n = btf->end_id;
	for (const struct cairn_btf *p = btf; p; p = p->base)
		n_words += p->n_words;
	*g = (struct btf_graph){.btf = btf, .n = btf->end_id};
	g->words = malloc((n_words + 1) * sizeof(*g->words));
	g->records = calloc(n, sizeof(*g->records));
	g->stands = malloc(n * sizeof(*g->stands));
	g->class_of = malloc(n * sizeof(*g->class_of));
	g->members = malloc(n * sizeof(*g->members));
	g->classes = malloc((n + 1) * sizeof(*g->classes));
	if (n_words >= UINT32_MAX)
		return -ERANGE;
	if (!g->words || !g->records || !g->stands || !g->class_of || !g->members || !g->classes)
		return -ENOMEM;
	for (uint32_t node = 0; node < n; node++)
		g->stands[node] = node;
	return 0;
}

/*
 * One offset per text: the first in the chain of blobs. If no blob has a text twice, as all writers
 * of BTF ensure, that is the offset itself, unless it is in the middle of a string.
 */
struct names {
	const struct cairn_btf *btf;
	struct btf_strings texts;
	bool unique;
	uint32_t *written; /* by own offset: the offset in the result; 0: not yet written */
};

static int names_init(struct names *names, const struct cairn_btf *btf)
{
	names->btf = btf;
	int rc = btf_strings_init(&names->texts, btf);
	names->unique = names->texts.n == names->texts.n_of_base;
	return rc;
}

static void names_fini(struct names *names)
{
	btf_strings_fini(&names->texts);
	free(names->written);
}

/* A base's record can name none of the strings that a blob on top of it has. */
static int one_offset(struct names *names, const struct cairn_btf *owner, uint32_t *off)
{
	if (names->unique && *off < btf_end_string(owner) && btf_string_starts(owner, *off))
		return 0;
	const char *text = cairn_btf_string(owner, *off);
	return text ? btf_strings_add(&names->texts, text, strlen(text), off) : -EBADMSG;
}

static int bad_reference(const struct cairn_btf *btf, uint32_t id, const char *what, uint32_t value,
			 struct cairn_err *err)
{
	const struct cairn_btf *owner = btf_owner(btf, id);
	return err_set(err, -EBADMSG,
		       "%s: BTF: record %u at offset 0x%" PRIx64
		       " refers to %s %u, which does not exist",
		       owner->name, id, btf_record_off(owner, id), what, value);
}

/* A copy of the record with its names made one per text; all its ids exist. */
static int load_record(struct btf_graph *g, struct names *names, const struct cairn_btf *owner,
		       uint32_t id, uint32_t at, struct cairn_err *err)
{
	uint32_t *record = g->words + at, *p;
	memcpy(record, btf_record(owner, id), btf_record_size(owner, id) * sizeof(*record));
	g->records[id] = at;
	uint32_t kind = BTF_KIND_OF(record[BTF_RECORD_INFO]);
	if (btf_is_opaque(kind))
		return 0;
	/* GCC 12 (-gbtf) leaves a number there, another one in each unit; it means nothing. */
	if (kind == CAIRN_BTF_FWD)
		record[BTF_RECORD_REF] = 0;
	for (struct btf_fields f = btf_ids_of(g->shapes[kind], record); (p = btf_next(&f));)
		if (*p >= owner->end_id)
			return bad_reference(g->btf, id, "id", *p, err);
	for (struct btf_fields f = btf_names_of(g->shapes[kind], record); (p = btf_next(&f));) {
		int rc = one_offset(names, owner, p);
		if (rc == -EBADMSG)
			return bad_reference(g->btf, id, "string", *p, err);
		if (rc < 0)
			return err_set(err, rc, "no room for the names of %s", owner->name);
	}
	return 0;
}

/* All blobs of the chain must have the same dialect, if they have LOC kinds. */
static int choose_shapes(struct btf_graph *g, struct cairn_err *err)
{
	enum cairn_btf_dialect dialect = CAIRN_BTF_NO_LOC;
	for (const struct cairn_btf *p = g->btf; p; p = p->base) {
		if (dialect != CAIRN_BTF_NO_LOC && p->dialect != CAIRN_BTF_NO_LOC &&
		    p->dialect != dialect)
			return err_set(err, -EOPNOTSUPP,
				       "%s: LOC records of another dialect than those on top of it",
				       p->name);
		dialect = p->dialect != CAIRN_BTF_NO_LOC ? p->dialect : dialect;
	}
	static const struct btf_shape opaque;
	for (uint32_t kind = 0; kind <= BTF_KIND_MAX; kind++)
		g->shapes[kind] = btf_is_opaque(kind) ? &opaque : btf_shape(kind, dialect);
	return 0;
}

static int load_blob(struct btf_graph *g, struct names *names, const struct cairn_btf *blob,
		     uint32_t *at, struct cairn_err *err)
{
	int rc = 0;
	for (uint32_t id = blob->start_id; rc == 0 && id < blob->end_id; id++) {
		rc = load_record(g, names, blob, id, *at, err);
		*at += btf_record_size(blob, id);
	}
	return rc;
}

static int load(struct btf_graph *g, struct names *names, const struct cairn_btf *btf,
		struct cairn_err *err)
{
	uint32_t at = 0;
	int rc = graph_init(g, btf);
	if (rc == 0)
		rc = names_init(names, btf);
	if (rc < 0)
		return err_set(err, rc, "no room for the graph of %s", btf->name);
	rc = choose_shapes(g, err);
	for (const struct cairn_btf *p = btf; rc == 0 && p; p = p->base)
		rc = load_blob(g, names, p, &at, err);
	return rc;
}

/* ---- the result ---- */

/* The id in the result of each class; classes that keep an own record are in ascending order. */
static uint32_t *number_classes(const struct btf_graph *g)
{
	uint32_t *ids = calloc(g->n_classes, sizeof(*ids));
	uint32_t next = g->btf->start_id;
	if (!ids)
		return NULL;
	for (uint32_t node = 1; node < g->n; node++) {
		const struct btf_class *c = &g->classes[g->class_of[node]];
		if (g->stands[node] == node && (!ids[g->class_of[node]]))
			ids[g->class_of[node]] =
				node < g->btf->start_id ? g->members[c->first] : next++;
	}
	return ids;
}

/* A base's string stays where it is; an own one is added when it is used first. */
static int write_name(struct names *names, uint32_t *off, struct cairn_btf_builder *b)
{
	if (*off < names->btf->start_string)
		return 0;
	uint32_t *written = &names->written[*off - names->btf->start_string];
	int rc = *written ? 0
			  : cairn_btf_add_string(b, btf_strings_at(&names->texts, *off), written);
	*off = *written;
	return rc;
}

static int write_record(const struct btf_graph *g, struct names *names, const uint32_t *ids,
			uint32_t node, struct cairn_btf_builder *b)
{
	const struct btf_shape *shape = btf_graph_shape(g, node);
	uint32_t *from = btf_graph_record(g, node), *p, id;
	uint32_t info = from[BTF_RECORD_INFO];
	uint32_t n = (uint32_t)btf_n_words(shape, BTF_KIND_OF(info), BTF_VLEN_OF(info));
	int rc;
	uint32_t *space =
		btf_add_space(b, from[BTF_RECORD_NAME], info, from[BTF_RECORD_REF], n, &id, &rc);
	if (!space)
		return rc;
	if (n)
		memcpy(space, from + BTF_RECORD_WORDS, n * sizeof(*space));
	uint32_t *record = space - BTF_RECORD_WORDS;
	for (struct btf_fields f = btf_ids_of(shape, record); (p = btf_next(&f));)
		*p = ids[btf_graph_class(g, *p)];
	for (struct btf_fields f = btf_names_of(shape, record); rc == 0 && (p = btf_next(&f));)
		rc = write_name(names, p, b);
	return rc;
}

/* @map  where each id of the chain is in the result; a base's stay */
static int write_records(const struct btf_graph *g, struct names *names, const uint32_t *ids,
			 const uint32_t *map, struct cairn_btf_builder *b, struct cairn_err *err)
{
	size_t n_strings = names->texts.start - g->btf->start_string + names->texts.size;
	struct btf_move m = {.btf = g->btf, .b = b, .map = map};
	int rc = btf_has_opaque(g->btf) ? btf_builder_adopt_strings(b, g->btf) : 0;
	names->written = calloc(n_strings + 1, sizeof(*names->written));
	if (!names->written)
		rc = -ENOMEM;
	for (uint32_t node = g->btf->start_id; rc == 0 && node < g->n; node++) {
		if (g->stands[node] != node || ids[g->class_of[node]] != btf_builder_next_id(b))
			continue;
		if (!btf_is_opaque(btf_graph_kind(g, node)))
			rc = write_record(g, names, ids, node, b);
		else if ((rc = btf_carry_opaque(&m, node, err)) < 0)
			return rc;
	}
	return rc < 0 ? err_set(err, rc, "no room for the result") : 0;
}

static int write_blob(const struct btf_graph *g, struct names *names, const uint32_t *ids,
		      const uint32_t *map, void **ret, size_t *ret_size, struct cairn_err *err)
{
	struct cairn_btf_builder *b;
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = g->btf->base,
					    .dialect = g->btf->dialect,
					    .big_endian = g->btf->big_endian,
					    .layout = g->btf->layout != NULL};
	int rc = cairn_btf_builder_new(&opts, &b, err);
	if (rc < 0)
		return rc;
	btf_builder_adopt_form(b, g->btf);
	rc = write_records(g, names, ids, map, b, err);
	if (rc == 0)
		rc = cairn_btf_finish(b, ret, ret_size, err);
	cairn_btf_builder_free(b);
	return rc;
}

static int find_equal(struct btf_graph *g, struct cairn_err *err)
{
	int n = 1;
	while (n > 0) {
		int rc = btf_partition(g);
		n = rc < 0 ? rc : btf_unify_forwards(g);
	}
	return n < 0 ? err_set(err, n, "no room to compare the types of %s", g->btf->name) : 0;
}

/* The new id of each id of the chain; a base's ids stay. */
static uint32_t *map_ids(const struct btf_graph *g, const uint32_t *ids)
{
	uint32_t *map = malloc(g->n * sizeof(*map));
	for (uint32_t node = 0; map && node < g->n; node++)
		map[node] = node < g->btf->start_id ? node : ids[btf_graph_class(g, node)];
	return map;
}

int cairn_btf_dedup(const struct cairn_btf *btf, uint32_t *map, void **ret, size_t *ret_size,
		    struct cairn_err *err)
{
	struct btf_graph g = {0};
	struct names names = {0};
	SCOPE_FREE uint32_t *ids = NULL;
	SCOPE_FREE uint32_t *all = NULL;
	int rc = load(&g, &names, btf, err);
	if (rc == 0)
		rc = find_equal(&g, err);
	if (rc == 0 && (!(ids = number_classes(&g)) || !(all = map_ids(&g, ids))))
		rc = err_nomem(err, "the new ids");
	if (rc == 0)
		rc = write_blob(&g, &names, ids, all, ret, ret_size, err);
	if (rc == 0 && map)
		memcpy(map, all + btf->start_id, (btf->end_id - btf->start_id) * sizeof(*map));
	names_fini(&names);
	graph_fini(&g);
	return btf_verdict(btf, rc, ret, err);
}
