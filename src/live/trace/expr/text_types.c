/* SPDX-License-Identifier: BSD-2-Clause */
/* Which types are text: char * and char[], counted text, and wide characters. */
#include "trace/expr/check.h"

#include <string.h>

#include "base/utf8.h"
#include "decode/recipe.h"

/*
 * Plain char: signed char and unsigned char are integers, as int8_t and uint8_t are made of them.
 */
static bool is_char(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_resolved(types, id);

	return t->kind == CAIRN_T_INT && t->size == 1 && t->name && !strcmp(t->name, "char");
}

bool expr_may_be_string(const struct expr_scope *scope, const struct expr *e)
{
	const struct cairn_types *types = scope->types;

	if (e->special == EXPR_DURATION)
		return false;
	if (!e->is_path)
		return e->is_pointer || e->is_long;
	if (e->is_address)
		return true;
	const struct cairn_type *type = cairn_types_get(types, cairn_types_resolve(types, e->type));
	bool is_word = scope->has_words && type->kind == CAIRN_T_INT && type->size == 8;
	return !e->bit_size &&
	       (is_word || type->kind == CAIRN_T_PTR || type->kind == CAIRN_T_ARRAY);
}

bool type_is_char_pointer(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_resolved(types, id);

	return t->kind == CAIRN_T_PTR && is_char(types, t->ref);
}

bool type_is_char_array(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_resolved(types, id);

	return t->kind == CAIRN_T_ARRAY && is_char(types, t->ref);
}

int expr_may_be_text(const struct expr_scope *scope, const struct expr *e, struct cairn_err *err)
{
	struct recipe recipe;
	int r = 0;

	if (!e->is_path || e->is_address || e->bit_size)
		return 0;
	uint32_t id = cairn_types_resolve(scope->types, e->type);
	const struct cairn_type *t = cairn_types_get(scope->types, id);
	if (t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF)
		id = t->ref;
	if (!recipe_may_be(scope->types, id))
		return 0;
	if (scope->sites)
		r = cairn_sites_complete_type(scope->sites, id, err);
	return r < 0 ? r : recipe_of(scope->types, id, &recipe) && recipe.kind == RECIPE_TEXT;
}

/* ---- wide characters ---- */

static bool is_wide_name(const char *name)
{
	return name &&
	       (!strcmp(name, "wchar_t") || !strcmp(name, "char16_t") || !strcmp(name, "char32_t"));
}

uint8_t type_wide_unit(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_resolved(types, id);

	return t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_ARRAY ? wide_char_bytes(types, t->ref)
								  : 0;
}

uint8_t type_wide_unit_of_words(const struct cairn_types *types, const char *words, uint32_t id)
{
	struct base_type base;

	if (id)
		return wide_char_bytes(types, id);
	return is_wide_name(words) && base_type_of(words, &base) ? base.bytes : 0;
}

/* The bytes of each integer at an address, if they are 2 or 4, as wide characters have; else 4. */
static uint8_t unit_at(const struct cairn_types *types, uint32_t pointee)
{
	const struct cairn_type *t = type_resolved(types, pointee);
	bool is_integer = pointee && t->kind == CAIRN_T_INT;

	return is_integer && (t->size == 2 || t->size == 4) ? (uint8_t)t->size : 4;
}

uint8_t expr_wide_unit(const struct expr_scope *scope, const struct expr *e, bool is_wide)
{
	uint32_t pointee = e->pointee;
	uint8_t own = e->unit;

	if (e->is_path && e->is_address) {
		pointee = e->a ? e->a->type : 0;
		own = e->a && !e->special ? wide_char_bytes(scope->types, pointee) : 0;
	} else if (e->is_path) {
		const struct cairn_type *t = type_resolved(scope->types, e->type);
		bool has_target = t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_ARRAY;
		pointee = has_target ? t->ref : 0;
		own = type_wide_unit(scope->types, e->type);
	}
	return own || !is_wide ? own : unit_at(scope->types, pointee);
}

int expr_wide_text(const struct expr *literal, uint8_t unit, uint32_t *ret, int max)
{
	const uint8_t *s = (const uint8_t *)literal->name;
	int n = 0;

	for (uint32_t i = 0, c = 0; i < literal->n_bytes;) {
		size_t len = utf8_length(s + i, literal->n_bytes - i, &c);
		bool is_pair = unit == 2 && c > 0xffff;
		if (!len)
			return -1;
		if (n + is_pair >= max)
			return -2;
		if (is_pair)
			ret[n++] = 0xd800 + ((c - 0x10000) >> 10);
		ret[n++] = is_pair ? 0xdc00 + (c & 0x3ff) : c;
		i += (uint32_t)len;
	}
	return n;
}
