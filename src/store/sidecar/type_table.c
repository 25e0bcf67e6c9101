/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/type_table.h"

#include <errno.h>

#include "base/err.h"
#include "sidecar/bits_out.h"
#include "sidecar/format.h"
#include "sidecar/sidecar_impl.h"

#define TYPE_BUSY UINT32_MAX

void type_table_fini(struct type_table *t)
{
	VEC_FREE(&t->number);
	VEC_FREE(&t->stack);
	record_set_fini(&t->outsides);
	VEC_FREE(&t->contents);
	VEC_FREE(&t->insides.v);
	VEC_FREE(&t->listed);
}

static bool has_parameters(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_FUNC;
}

static bool is_aggregate(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

static bool has_content(const struct cairn_type *t)
{
	return is_aggregate(t) || t->kind == CAIRN_T_ENUM;
}

/* 0 for void, and for a type that is being numbered further down the stack. */
static uint32_t number_of(const struct type_table *t, uint32_t id)
{
	uint32_t number = id < t->number.n ? t->number.p[id] : 0;
	return number && number != TYPE_BUSY ? number - 1 : 0;
}

/* ---- records ---- */

static uint32_t facts_of(const struct cairn_type *t)
{
	return (t->name && *t->name ? TYPE_NAME : 0) |
	       (t->size != sidecar_usual_size(t->kind) ? TYPE_SIZE : 0) | (t->ref ? TYPE_REF : 0) |
	       (t->bare_name ? TYPE_BARE_NAME : 0) | (t->encoding ? TYPE_ENCODING : 0) |
	       (t->has_count ? TYPE_HAS_COUNT : 0) |
	       (t->n_members || t->n_enumerators ? TYPE_INSIDE : 0) |
	       (t->declaration ? TYPE_DECLARATION : 0) | (t->prototyped ? TYPE_PROTOTYPED : 0) |
	       (t->variadic ? TYPE_VARIADIC : 0) | (t->vector ? TYPE_VECTOR : 0) |
	       (t->byte_swapped ? TYPE_BYTE_SWAPPED : 0) | (t->container ? TYPE_CONTAINER : 0) |
	       (t->align ? TYPE_ALIGN : 0) | (t->variants ? TYPE_VARIANTS : 0) |
	       (t->is_variant ? TYPE_IS_VARIANT : 0);
}

static int put_name(const struct type_table *t, struct bytes *b, const char *name)
{
	uint32_t string;
	int rc = strings_add(t->strings, name, &string);
	put_uleb(b, string);
	return rc;
}

static int put_outside(const struct type_table *t, const struct cairn_type *type, struct bytes *b)
{
	uint32_t facts = facts_of(type);
	int rc = 0;
	put_u8(b, (uint8_t)type->kind);
	put_uleb(b, facts);
	if (facts & TYPE_NAME)
		rc = put_name(t, b, type->name);
	if (facts & TYPE_SIZE)
		put_uleb(b, type->size);
	if (facts & TYPE_REF)
		put_uleb(b, number_of(t, type->ref));
	if (facts & TYPE_ENCODING)
		put_u8(b, (uint8_t)type->encoding);
	if (facts & TYPE_HAS_COUNT)
		put_uleb(b, type->count);
	if (facts & TYPE_CONTAINER)
		put_uleb(b, number_of(t, type->container));
	if (facts & TYPE_ALIGN)
		put_uleb(b, type->align);
	return rc;
}

static void put_parameters(const struct type_table *t, const struct cairn_type *type,
			   struct bytes *b)
{
	put_uleb(b, type->n_members);
	for (uint32_t i = 0; i < type->n_members; i++)
		put_uleb(b, number_of(t, type->members[i].type));
}

/* Offsets count from that of the member before. */
static int put_member(const struct type_table *t, const struct cairn_member *m, uint64_t before,
		      struct bytes *b)
{
	int64_t off = (int64_t)(m->bit_off - before);
	bool in_bits = off % 8;
	int rc = 0;
	put_u8(b, (uint8_t)((m->name ? MEMBER_NAME : 0) | (m->bit_size ? MEMBER_BITS : 0) |
			    (m->dynamic ? MEMBER_DYNAMIC : 0) |
			    (m->is_base_class ? MEMBER_BASE : 0) | (m->align ? MEMBER_ALIGN : 0) |
			    (m->is_discriminant ? MEMBER_DISCRIMINANT : 0) |
			    (in_bits ? MEMBER_OFF_IN_BITS : 0)));
	if (m->name)
		rc = put_name(t, b, m->name);
	put_uleb(b, number_of(t, m->type));
	put_sleb(b, in_bits ? off : off / 8);
	if (m->bit_size)
		put_uleb(b, m->bit_size);
	if (m->align)
		put_uleb(b, m->align);
	return rc;
}

static int put_members(const struct type_table *t, const struct cairn_type *type, struct bytes *b)
{
	uint64_t before = 0;
	int rc = 0;
	put_uleb(b, type->n_members);
	for (uint32_t i = 0; rc >= 0 && i < type->n_members; i++) {
		rc = put_member(t, &type->members[i], before, b);
		before = type->members[i].bit_off;
	}
	return rc;
}

static void put_variants(const struct type_table *t, const struct cairn_type *type, struct bytes *b)
{
	const struct cairn_variants *v = type->variants;
	put_uleb(b, number_of(t, v->type));
	put_uleb(b, v->bit_size);
	put_sleb(b, v->bit_off);
	for (uint32_t i = 0; i < type->n_members; i++) {
		const struct cairn_variant *of = &v->of[i];
		put_uleb(b, of->n_ranges);
		for (uint32_t k = 0; k < of->n_ranges; k++) {
			put_sleb(b, (int64_t)of->ranges[k].lo);
			put_sleb(b, (int64_t)(of->ranges[k].hi - of->ranges[k].lo));
		}
	}
}

/* Most values are the one before and 1. */
static int put_enumerators(const struct type_table *t, const struct cairn_type *type,
			   struct bytes *b)
{
	uint64_t expected = 0;
	int rc = 0;
	put_uleb(b, type->n_enumerators);
	for (uint32_t i = 0; rc >= 0 && i < type->n_enumerators; i++) {
		rc = put_name(t, b, type->enumerators[i].name);
		put_sleb(b, (int64_t)((uint64_t)type->enumerators[i].value - expected));
		expected = (uint64_t)type->enumerators[i].value + 1;
	}
	return rc;
}

static int put_inside(const struct type_table *t, const struct cairn_type *type, struct bytes *b)
{
	if (!(facts_of(type) & TYPE_INSIDE))
		return 0;
	if (type->kind == CAIRN_T_ENUM)
		return put_enumerators(t, type, b);
	if (!is_aggregate(type)) {
		put_parameters(t, type, b);
		return 0;
	}
	int rc = put_members(t, type, b);
	if (type->variants)
		put_variants(t, type, b);
	return rc;
}

/* ---- structs, unions and enums ---- */

static bool may_be_defined(const struct type_table *t, const struct cairn_type *type)
{
	return type->name && named_may_be_defined(&t->meanings->named, type->kind, type->name);
}

/*
 * The definition that a declaration stands for, which another unit has: its meaning; 0 when there
 * is none.
 */
static int meaning_elsewhere(struct type_table *t, uint32_t id, uint32_t *ret)
{
	dw_off die;
	if (!may_be_defined(t, cairn_types_get(t->graph, id)))
		return 0;
	int rc = dwarf_type_defined_elsewhere(t->reader, id, &die, NULL);
	if (rc > 0)
		*ret = meaning_of(t->meanings, die);
	return rc == -ENOMEM ? rc : 0;
}

/*
 * The meaning of @id, and the id of the description that has the inside: another id when @id is a
 * declaration.
 */
static int find_meaning(struct type_table *t, uint32_t id, uint32_t *ret_meaning,
			uint32_t *ret_definition)
{
	const struct cairn_type *type = cairn_types_get(t->graph, id);
	int rc = 0;
	*ret_meaning = meaning_of(t->meanings, dwarf_type_die(t->reader, id));
	*ret_definition = id;
	if (!type->declaration)
		return 0;
	if (!*ret_meaning)
		rc = meaning_elsewhere(t, id, ret_meaning);
	dw_off die = t->meanings->definition.p[*ret_meaning];
	if (rc >= 0 && die)
		rc = dwarf_type(t->reader, die, ret_definition, NULL);
	return rc == -ENOMEM ? rc : 0;
}

/* The facts that are known before the inside is read; the name is the one in the current unit. */
static struct cairn_type outside_of(const struct type_table *t, uint32_t id, uint32_t definition)
{
	const struct cairn_type *called = cairn_types_get(t->graph, id);
	struct cairn_type type = *cairn_types_get(t->graph, definition);
	type.name = called->name;
	type.bare_name = called->bare_name;
	type.encoding = CAIRN_ENC_UNSIGNED;
	type.byte_swapped = false;
	/* A struct's ref is read with the members. */
	type.ref = type.kind == CAIRN_T_ENUM ? type.ref : 0;
	type.n_members = type.n_enumerators = 0;
	type.variants = NULL;
	type.is_variant = false;
	return type;
}

/*
 * Its number by meaning and outside. A description without a known meaning is a type of its own; a
 * declaration is its name.
 */
static int number_content(struct type_table *t, uint32_t id, uint32_t *ret)
{
	uint32_t meaning, definition;
	struct bytes *key = &t->outsides.record;
	int rc = find_meaning(t, id, &meaning, &definition);
	if (rc < 0)
		return rc;
	struct cairn_type type = outside_of(t, id, definition);
	size_t before = t->outsides.starts.n;
	rc = put_outside(t, &type, key);
	put_uleb(key, meaning);
	put_uleb(key, meaning || type.declaration ? 0 : dwarf_type_die(t->reader, id));
	if (rc >= 0)
		rc = record_set_add(&t->outsides, ret);
	if (rc < 0 || t->outsides.starts.n == before)
		return rc;
	struct content_record c = {.number = *ret, .called = id, .definition = definition};
	return VEC_ADD(&t->contents, c) ? 0 : -ENOMEM;
}

/* ---- numbers ---- */

/* Pushes @id unless it has a number; false when out of memory. */
static bool want(struct type_table *t, uint32_t id)
{
	while (t->number.n <= id)
		if (!VEC_ADD(&t->number, 0))
			return false;
	return !id || t->number.p[id] || VEC_ADD(&t->stack, id);
}

static bool want_references(struct type_table *t, const struct cairn_type *type)
{
	bool ok = want(t, type->ref) && want(t, type->container);
	for (uint32_t i = 0; ok && has_parameters(type) && i < type->n_members; i++)
		ok = want(t, type->members[i].type);
	return ok;
}

/* The types that it refers to have their numbers. */
static int number_type(struct type_table *t, uint32_t id, uint32_t *ret)
{
	const struct cairn_type *type = cairn_types_get(t->graph, id);
	if (has_content(type))
		return number_content(t, id, ret);
	int rc = put_outside(t, type, &t->outsides.record);
	if (rc >= 0)
		rc = put_inside(t, type, &t->outsides.record);
	return rc < 0 ? rc : record_set_add(&t->outsides, ret);
}

int type_table_add(struct type_table *t, uint32_t id, uint32_t *ret)
{
	/* Number 0 is void. */
	if (!t->outsides.starts.n && number_type(t, 0, ret) < 0)
		return -ENOMEM;
	if (!want(t, id))
		return -ENOMEM;
	while (t->stack.n) {
		uint32_t top = t->stack.p[t->stack.n - 1], number;
		if (!t->number.p[top]) {
			t->number.p[top] = TYPE_BUSY;
			if (!want_references(t, cairn_types_get(t->graph, top)))
				return -ENOMEM;
			continue;
		}
		t->stack.n--;
		if (t->number.p[top] != TYPE_BUSY)
			continue;
		int rc = number_type(t, top, &number);
		if (rc < 0)
			return rc;
		t->number.p[top] = number + 1;
	}
	*ret = number_of(t, id);
	return 0;
}

/* ---- insides ---- */

static int number_members(struct type_table *t, const struct cairn_type *type)
{
	uint32_t unused;
	/* The type that a Rust struct is made for is read with its members. */
	int rc = type->ref ? type_table_add(t, type->ref, &unused) : 0;
	if (rc >= 0 && type->variants)
		rc = type_table_add(t, type->variants->type, &unused);
	for (uint32_t i = 0; rc >= 0 && i < type->n_members; i++)
		rc = type_table_add(t, type->members[i].type, &unused);
	return rc;
}

/* A declaration of an enum may have its sign; other types that are only declared have no inside. */
static int open_content(struct type_table *t, uint32_t id)
{
	const struct cairn_type *type = cairn_types_get(t->graph, id);
	if (!type->declaration)
		return dwarf_type_open(t->reader, id, NULL);
	if (type->kind != CAIRN_T_ENUM)
		return 0;
	return may_be_defined(t, type) ? dwarf_type_open(t->reader, id, NULL)
				       : dwarf_type_open_undefined(t->reader, id, NULL);
}

/* The outside is the one that it was numbered by, with the facts that only the inside has. */
static int write_content(struct type_table *t, size_t i)
{
	struct content_record c = t->contents.p[i];
	const struct cairn_type *called = cairn_types_get(t->graph, c.called);
	int rc = open_content(t, c.definition);
	struct cairn_type type = *cairn_types_get(t->graph, c.definition);
	type.name = called->name;
	type.bare_name = called->bare_name;
	if (rc != -ENOMEM)
		rc = number_members(t, &type);
	c.from = t->insides.v.n;
	if (rc >= 0)
		rc = put_outside(t, &type, &t->insides);
	if (rc >= 0)
		rc = put_inside(t, &type, &t->insides);
	c.size = t->insides.v.n - c.from;
	t->contents.p[i] = c;
	return rc;
}

struct listing {
	struct type_table *table;
	uint32_t kind; /* TYPE_NAME_KIND */
};

static int list_named(const struct listing *l, dw_off die, const char *scoped,
		      struct cairn_err *err)
{
	struct type_table *t = l->table;
	uint32_t id, number, name = 0;
	int rc = dwarf_type(t->reader, die, &id, err);
	if (rc == -ENOMEM)
		return rc;
	rc = type_table_add(t, id, &number);
	if (rc >= 0 && scoped)
		rc = strings_add(t->strings, scoped, &name);
	if (rc < 0)
		return rc;
	return VEC_ADD(&t->listed, number) && VEC_ADD(&t->listed, l->kind) &&
			       VEC_ADD(&t->listed, name)
		       ? 0
		       : -ENOMEM;
}

static int list_one(void *ctx, dw_off die, struct cairn_err *err)
{
	return list_named(ctx, die, NULL, err);
}

static int list_local(void *ctx, dw_off die, const char *name, struct cairn_err *err)
{
	return list_named(ctx, die, name, err);
}

static int list_each(struct listing *l, const dw_off *dies, size_t n, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < n; i++)
		rc = list_one(l, dies[i], err);
	return rc;
}

static int list_definitions(const struct type_table *t, struct listing *l, struct cairn_err *err)
{
	const struct named_types *named = &t->meanings->named;
	return named->is_whole ? list_each(l, named->definitions.p, named->definitions.n, err)
			       : dwarf_type_definitions(t->reader, list_one, l, err);
}

static int list_typedefs(const struct type_table *t, struct listing *l, struct cairn_err *err)
{
	const struct named_types *named = &t->meanings->named;
	return named->is_whole ? list_each(l, named->typedefs.p, named->typedefs.n, err)
			       : dwarf_type_typedefs(t->reader, list_one, l, err);
}

int type_table_finish(struct type_table *t, struct cairn_err *err)
{
	struct listing definitions = {t, 0}, typedefs = {t, 1}, locals = {t, 2};
	uint32_t unused;
	int rc = type_table_add(t, 0, &unused);
	if (rc >= 0)
		rc = list_definitions(t, &definitions, err);
	if (rc >= 0)
		rc = list_typedefs(t, &typedefs, err);
	if (rc >= 0)
		rc = dwarf_type_locals(t->reader, t->meanings->named.has_inner, list_local, &locals,
				       err);
	for (; rc >= 0 && t->n_done < t->contents.n; t->n_done++)
		rc = write_content(t, t->n_done);
	return rc == -ENOMEM ? err_nomem(err, "the types of a program") : rc;
}

/* ---- sections ---- */

static uint32_t end_of(const struct record_set *s, size_t i)
{
	return i + 1 < s->starts.n ? s->starts.p[i + 1] : (uint32_t)s->data.v.n;
}

void encode_types(const struct type_table *t, struct bytes *ret)
{
	VEC(uint32_t) starts = {0};
	struct bytes all = {0};
	const struct content_record *c = t->contents.p;
	for (size_t i = 0; i < t->outsides.starts.n; i++) {
		uint32_t from = t->outsides.starts.p[i];
		all.failed |= !VEC_ADD(&starts, (uint32_t)all.v.n);
		if (c < t->contents.p + t->contents.n && c->number == i) {
			/* If all are empty there is no memory to count from. */
			if (c->size)
				put_bytes(&all, t->insides.v.p + c->from, c->size);
			c++;
		} else {
			put_bytes(&all, t->outsides.data.v.p + from,
				  end_of(&t->outsides, i) - from);
		}
	}
	all.failed |= t->insides.failed;
	if (!all.failed)
		put_records(&all, starts.p, starts.n, NULL, ret);
	ret->failed |= all.failed;
	VEC_FREE(&starts);
	VEC_FREE(&all.v);
}

void encode_type_names(const struct type_table *t, struct bytes *ret)
{
	put_table(t->listed.p, t->listed.n / 3, 3, ret);
}
