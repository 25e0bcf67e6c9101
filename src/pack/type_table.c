/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types as far as their names need
 *
 * Each unit of a program has types of its own, so that a kernel's graph has hundreds of thousands, most of them alike. A
 * record is written in terms of other records' numbers, and an equal one is not written again:
 *
 *	unit 1: id 7 "char", id 9 pointer to 7    ──►  number 1 "char", number 2 pointer to 1
 *	unit 2: id 81 "char", id 80 pointer to 81 ──►  the same two
 *
 * What a type refers to is numbered before it, with a stack. Members are left out, so nothing refers to itself
 * but damaged types; there the reference becomes void.
 */
#include <errno.h>

#include "pack/format.h"
#include "pack/place_table.h"

#define TYPE_BUSY UINT32_MAX

void type_table_fini(struct type_table *t)
{
	VEC_FREE(&t->number);
	VEC_FREE(&t->stack);
	record_set_fini(&t->records);
}

static bool has_parameters(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_FUNC;
}

/* 0 for void, and for what is being numbered further down the stack. */
static uint32_t number_of(const struct type_table *t, uint32_t id)
{
	uint32_t number = id < t->number.n ? t->number.p[id] : 0;
	return number && number != TYPE_BUSY ? number - 1 : 0;
}

static uint8_t flags_of(const struct cairn_type *t)
{
	bool members = t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
	return (uint8_t)((t->bare_name ? TYPE_BARE_NAME : 0) | (t->declaration ? TYPE_DECLARATION : 0) |
			 (t->unread || members ? TYPE_UNREAD : 0) | (t->prototyped ? TYPE_PROTOTYPED : 0) |
			 (t->variadic ? TYPE_VARIADIC : 0) | (t->has_count ? TYPE_HAS_COUNT : 0) |
			 (t->vector ? TYPE_VECTOR : 0));
}

static int put_type(struct type_table *t, const struct cairn_type *type)
{
	struct bytes *b = &t->records.record;
	uint32_t name;
	int rc = strings_add(t->strings, type->name, &name);
	put_u8(b, (uint8_t)type->kind);
	put_u8(b, (uint8_t)type->encoding);
	put_u8(b, flags_of(type));
	put_uleb(b, name);
	put_uleb(b, type->size);
	put_uleb(b, number_of(t, type->ref));
	put_uleb(b, number_of(t, type->container));
	put_uleb(b, type->count);
	uint32_t n = has_parameters(type) ? type->n_members : 0;
	put_uleb(b, n);
	for (uint32_t i = 0; i < n; i++)
		put_uleb(b, number_of(t, type->members[i].type));
	return rc;
}

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

int type_table_add(struct type_table *t, uint32_t id, uint32_t *ret)
{
	/* Number 0 is void. */
	if (!t->records.starts.n &&
	    (put_type(t, cairn_types_get(t->graph, 0)) < 0 || record_set_add(&t->records, ret) < 0))
		return -ENOMEM;
	if (!want(t, id))
		return -ENOMEM;
	while (t->stack.n) {
		uint32_t top = t->stack.p[t->stack.n - 1], number;
		const struct cairn_type *type = cairn_types_get(t->graph, top);
		if (!t->number.p[top]) {
			t->number.p[top] = TYPE_BUSY;
			if (!want_references(t, type))
				return -ENOMEM;
			continue;
		}
		t->stack.n--;
		if (t->number.p[top] != TYPE_BUSY)
			continue;
		int rc = put_type(t, type);
		if (rc >= 0)
			rc = record_set_add(&t->records, &number);
		if (rc < 0)
			return rc;
		t->number.p[top] = number + 1;
	}
	*ret = number_of(t, id);
	return 0;
}
