/* SPDX-License-Identifier: BSD-2-Clause */
/* Casts and sizeof: a type's words to a type of C, or of the graph. */
#include "trace/expr/check.h"

#include <string.h>

static const char *without_tag(const char *words)
{
	static const char *const tags[] = {"struct ", "union ", "enum ", "class "};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (!strncmp(words, tags[i], strlen(tags[i])))
			return words + strlen(tags[i]);
	return words;
}

/* "long unsigned int" and "unsigned long" are one type of C. */
static bool is_same_base(const char *words, const char *name)
{
	struct base_type one, other;

	return base_type_of(words, &one) && base_type_of(name, &other) &&
	       one.bytes == other.bytes && one.is_unsigned == other.is_unsigned &&
	       one.is_bool == other.is_bool;
}

/* How well a type of the graph is the one that is meant; 0: not at all. */
static int closeness(const struct cairn_type *t, const char *words)
{
	const char *name = without_tag(words);
	bool has_name = t->kind == CAIRN_T_TYPEDEF || t->kind == CAIRN_T_ENUM ||
			t->kind == CAIRN_T_INT || type_is_record(t);

	if (!has_name || !t->name || (name != words && t->kind == CAIRN_T_TYPEDEF))
		return 0;
	if (strcmp(t->name, name) != 0)
		return t->kind == CAIRN_T_INT && is_same_base(name, t->name);
	return t->declaration ? 2 : 3;
}

/* A type of the graph by its name, one with members before one that is only declared; 0: none. */
static uint32_t find_type(const struct check *c, const char *words)
{
	uint32_t n = cairn_types_n_types(c->types), found = 0;
	int best = 0;

	for (uint32_t id = 1; id < n && best < 3; id++) {
		int close = closeness(cairn_types_get(c->types, id), words);
		if (close <= best)
			continue;
		best = close;
		found = id;
	}
	return found;
}

static int unknown_type(const struct check *c, const struct expr *e)
{
	return WRONG(c, e,
		     "%s is not a type of C, nor one that the types of %s's parameters are made "
		     "of",
		     e->type_name->words, c->function->name);
}

/* The bytes of a type without pointers, and its type in the graph, if it is there. */
static int base_of(const struct check *c, const struct expr *e, struct base_type *base,
		   uint32_t *ret)
{
	char name[120];

	*ret = 0;
	if (base_type_of(e->type_name->words, base))
		return 0;
	if (!strcmp(e->type_name->words, "float") || !strcmp(e->type_name->words, "double"))
		return check_no_float(c, e);
	*ret = find_type(c, e->type_name->words);
	if (!*ret)
		return unknown_type(c, e);
	int r = check_complete(c, *ret);
	if (r < 0)
		return r;
	const struct cairn_type *t = type_resolved(c->types, *ret);
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM && !type_is_pointer(t)) ||
	    !t->size || t->size > 8 || t->byte_swapped)
		return WRONG(c, e, "nothing can be cast to %s",
			     check_type_text(c, *ret, name, sizeof(name)));
	*base = (struct base_type){.bytes = (uint8_t)t->size,
				   .is_unsigned =
					   type_is_pointer(t) || !type_is_signed(c->types, *ret),
				   .is_bool = t->encoding == CAIRN_ENC_BOOL};
	return 0;
}

/* (T *)e: what T is matters only to what is done with it. */
static int cast_to_pointer(const struct check *c, struct expr *e)
{
	const char *words = e->type_name->words;
	struct base_type base;

	e->cast_bytes = 8;
	expr_be_pointer(e, 0);
	if (e->type_name->n_pointers > 1)
		return 0;
	e->is_text = !strcmp(words, "char");
	e->pointee = find_type(c, words);
	e->unit = type_wide_unit_of_words(c->types, words, e->pointee);
	if (!e->pointee && strcmp(words, "void") != 0 && !base_type_of(words, &base))
		return unknown_type(c, e);
	return 0;
}

int check_cast(const struct check *c, struct expr *e)
{
	struct base_type base = {0};
	int r = check_condition(c, e->a);

	if (r < 0)
		return r;
	if (e->a->is_float)
		return check_no_float(c, e->a);
	if (e->type_name->n_pointers)
		return cast_to_pointer(c, e);
	r = base_of(c, e, &base, &e->type);
	if (r < 0)
		return r;
	e->cast_bytes = base.bytes;
	e->is_bool = base.is_bool;
	e->is_cast_unsigned = base.is_unsigned;
	e->is_long = base.bytes == 8;
	e->is_unsigned = base.is_unsigned && base.bytes >= 4;
	const struct cairn_type *t = type_resolved(c->types, e->type);
	if (e->type && type_is_pointer(t))
		expr_be_pointer(e, t->ref);
	return 0;
}

static int size_of_type(const struct check *c, const struct expr *e, uint64_t *ret)
{
	struct base_type base;

	*ret = 8;
	if (e->type_name->n_pointers)
		return 0;
	if (base_type_of(e->type_name->words, &base)) {
		*ret = base.bytes;
		return 0;
	}
	uint32_t id = find_type(c, e->type_name->words);
	if (!id)
		return unknown_type(c, e);
	int r = check_complete(c, id);
	*ret = cairn_types_size(c->types, id);
	if (r == 0 && !*ret)
		return WRONG(c, e, "the size of %s is not known", e->type_name->words);
	return r;
}

static int size_of_value(const struct check *c, const struct expr *e, uint64_t *ret)
{
	struct expr *a = e->a;
	int r = check_path(c, a);

	if (r < 0)
		return r;
	if (a->bit_size)
		return WRONG(c, a, "a bit-field has no size in bytes");
	if (a->kind == EXPR_CAST)
		*ret = a->cast_bytes;
	else if (!a->is_path || a->is_address)
		*ret = a->is_long || a->is_address ? 8 : 4;
	else if ((r = check_complete(c, a->type)) == 0 &&
		 !(*ret = cairn_types_size(c->types, a->type)))
		return WRONG(c, a, "the size of this is not known");
	return r;
}

/* "sizeof(name)" is of a parameter, or else of a type. */
int check_sizeof(const struct check *c, struct expr *e)
{
	struct expr_type_name type = {0};
	uint64_t size = 0;

	if (e->a && e->a->kind == EXPR_NAME && !check_is_param(c, e->a->name) &&
	    find_type(c, e->a->name)) {
		type.words = e->a->name;
		e->type_name = &type;
	}
	int r = e->type_name ? size_of_type(c, e, &size) : size_of_value(c, e, &size);
	e->kind = EXPR_INT;
	e->is_path = false;
	e->value = size;
	e->is_long = e->is_unsigned = true;
	e->type_name = NULL;
	return r;
}
