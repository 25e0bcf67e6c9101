/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a struct consists of, from .BTF
 *
 * The two sections were made from the same debug information but know nothing of each other's numbers. They meet at
 * names: a struct, union or enum with a name, or a typedef of one without, of this size. Where several have name
 * and size, it is not known which is meant, and the type stays unread. Below such a type, members are BTF's own, copied into
 * the graph as they are met: a struct that a member points to is copied as a name, and completed when it is asked for.
 *
 *	graph 7: struct node, 24 bytes, unread         .BTF 812: struct node, 24 bytes: next, x
 *	    graph 7: next: graph 90, x: graph 91       graph 90: pointer to 7, graph 91: int
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "btf/types.h"
#include "pack/sites_types.h"

static bool is_struct(enum cairn_type_kind kind)
{
	return kind == CAIRN_T_STRUCT || kind == CAIRN_T_UNION || kind == CAIRN_T_CLASS;
}

/* BTF knows no classes. */
static bool same_kind(enum cairn_type_kind a, enum cairn_type_kind b)
{
	return a == b || (is_struct(a) && is_struct(b) && (a == CAIRN_T_UNION) == (b == CAIRN_T_UNION));
}

static int open_whole(struct pack_types *t, struct cairn_err *err)
{
	size_t size;
	const void *bytes = cairn_pack_section(t->pack, ".BTF", &size);
	int rc = 0;
	if (t->opened || !bytes)
		return 0;
	rc = cairn_btf_open_mem(bytes, size, cairn_pack_path(t->pack), NULL, &t->btf, err);
	if (rc >= 0)
		rc = btf_types(t->btf, 8, &t->whole, err);
	t->opened = rc >= 0;
	return rc;
}

/* ---- meeting ---- */

/* The struct, union or enum behind a typedef, when it has no name of its own. */
static uint32_t unnamed_behind(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_get(types, id)->ref);
	bool has_content = is_struct(t->kind) || t->kind == CAIRN_T_ENUM;
	return has_content && !t->name ? cairn_types_get(types, id)->ref : 0;
}

/* The one type in .BTF of that kind, name and size; 0 when there is none, or several. @behind: a typedef's. */
static uint32_t find_whole(const struct pack_types *t, const struct cairn_type *like, const char *name, bool behind)
{
	uint32_t found = 0, n = cairn_types_count(t->whole);
	for (uint32_t i = 1; i < n; i++) {
		const struct cairn_type *own = cairn_types_get(t->whole, i);
		if (behind ? own->kind != CAIRN_T_TYPEDEF : !same_kind(own->kind, like->kind))
			continue;
		if (!own->name || strcmp(own->name, name))
			continue;
		uint32_t id = behind ? unnamed_behind(t->whole, i) : i;
		const struct cairn_type *to = cairn_types_get(t->whole, id);
		if (!id || id == found || !same_kind(to->kind, like->kind) || to->size != like->size || to->declaration)
			continue;
		if (found)
			return 0;
		found = id;
	}
	return found;
}

static int join(struct pack_types *t, uint32_t id, uint32_t whole)
{
	return map_put(&t->to_whole, id, whole) < 0 ? -ENOMEM : map_put(&t->from_whole, whole, id);
}

/* Join what the typedef @id stands for, when that has no name. */
static int meet_behind(struct pack_types *t, uint32_t id)
{
	uint64_t known;
	uint32_t behind = unnamed_behind(t->graph, id);
	const char *name = cairn_types_get(t->graph, id)->name;
	if (!behind || !name || map_get(&t->to_whole, behind, &known))
		return 0;
	uint32_t whole = find_whole(t, cairn_types_get(t->graph, behind), name, true);
	return whole ? join(t, behind, whole) : 0;
}

static int meet(struct pack_types *t, uint32_t id, uint32_t *ret)
{
	uint64_t known;
	const struct cairn_type *type = cairn_types_get(t->graph, id);
	*ret = 0;
	if (map_get(&t->to_whole, id, &known)) {
		*ret = (uint32_t)known;
		return 0;
	}
	if (!type->name)
		return 0;
	*ret = find_whole(t, type, type->name, false);
	return *ret ? join(t, id, *ret) : 0;
}

/* ---- copying ---- */

/* The id in the graph of a type of .BTF, reserved when it is new; then it waits in wanted. */
static uint32_t copy_of(struct pack_types *t, uint32_t whole, int *rc)
{
	uint64_t known;
	if (!whole)
		return 0;
	if (map_get(&t->from_whole, whole, &known))
		return (uint32_t)known;
	uint32_t id = types_reserve(t->graph);
	if (!id || join(t, id, whole) < 0 || !VEC_ADD(&t->wanted, whole))
		*rc = -ENOMEM;
	return id;
}

static const struct cairn_member *copy_members(struct pack_types *t, const struct cairn_type *from, int *rc)
{
	struct cairn_member *m = arena_array(types_arena(t->graph), from->n_members, sizeof(*m));
	if (!m) {
		*rc = -ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < from->n_members; i++) {
		m[i] = from->members[i];
		m[i].type = copy_of(t, from->members[i].type, rc);
	}
	return m;
}

/* What was reserved, as far as its name needs: of structs not their members. */
static int copy_wanted(struct pack_types *t)
{
	int rc = 0;
	while (rc >= 0 && t->wanted.n) {
		uint64_t id = 0;
		uint32_t whole = t->wanted.p[--t->wanted.n];
		struct cairn_type type = *cairn_types_get(t->whole, whole);
		map_get(&t->from_whole, whole, &id);
		type.ref = copy_of(t, type.ref, &rc);
		type.container = copy_of(t, type.container, &rc);
		if (is_struct(type.kind)) {
			type.members = NULL;
			type.n_members = 0;
			type.unread = !type.declaration;
		} else if (type.n_members) {
			type.members = copy_members(t, &type, &rc);
		}
		types_set(t->graph, (uint32_t)id, &type);
	}
	return rc;
}

/* Members or enumerators of @id from its counterpart. */
static int fill(struct pack_types *t, uint32_t id, uint32_t whole)
{
	struct cairn_type type = *cairn_types_get(t->graph, id);
	const struct cairn_type *from = cairn_types_get(t->whole, whole);
	int rc = 0;
	type.unread = false;
	type.enumerators = from->enumerators;
	type.n_enumerators = from->n_enumerators;
	type.encoding = type.kind == CAIRN_T_ENUM ? from->encoding : type.encoding;
	type.members = copy_members(t, from, &rc);
	type.n_members = rc < 0 ? 0 : from->n_members;
	types_set(t->graph, id, &type);
	return rc < 0 ? rc : copy_wanted(t);
}

/* ---- completing ---- */

static bool has_content(const struct cairn_type *type)
{
	return is_struct(type->kind) || type->kind == CAIRN_T_ENUM;
}

static bool is_incomplete(const struct cairn_type *type)
{
	return is_struct(type->kind) ? type->unread : type->kind == CAIRN_T_ENUM && !type->n_enumerators;
}

static bool want_inside(struct pack_types *t, uint32_t id, struct map *seen)
{
	uint64_t found;
	if (!id || map_get(seen, id, &found))
		return true;
	return map_put(seen, id, 1) >= 0 && VEC_ADD(&t->inside, id);
}

/* One type, and then all that a value of it contains. */
static int complete_one(struct pack_types *t, uint32_t id, struct map *seen)
{
	const struct cairn_type *type = cairn_types_get(t->graph, id);
	uint32_t whole;
	int rc = 0;
	if (type->kind == CAIRN_T_TYPEDEF)
		rc = meet_behind(t, id);
	if (rc >= 0 && is_incomplete(type)) {
		rc = meet(t, id, &whole);
		if (rc >= 0 && whole)
			rc = fill(t, id, whole);
		else if (!type->declaration)
			t->n_lost++;
	}
	if (rc < 0 || type->kind == CAIRN_T_PTR || type->kind == CAIRN_T_REF || type->kind == CAIRN_T_RREF ||
	    type->kind == CAIRN_T_FUNC || type->kind == CAIRN_T_MEMBER_PTR)
		return rc;
	type = cairn_types_get(t->graph, id);
	bool ok = has_content(type) || want_inside(t, type->ref, seen);
	for (uint32_t i = 0; ok && i < type->n_members; i++)
		ok = want_inside(t, type->members[i].type, seen);
	return ok ? 0 : -ENOMEM;
}

int pack_types_complete(struct pack_types *t, uint32_t id, struct cairn_err *err)
{
	struct map seen;
	int rc = open_whole(t, err);
	if (rc < 0)
		return rc;
	if (!t->whole) {
		t->n_lost++;
		return 0;
	}
	map_init(&seen);
	t->inside.n = 0;
	rc = want_inside(t, id, &seen) ? 0 : -ENOMEM;
	while (rc >= 0 && t->inside.n)
		rc = complete_one(t, t->inside.p[--t->inside.n], &seen);
	map_fini(&seen);
	return rc < 0 ? err_nomem(err, "types") : 0;
}
