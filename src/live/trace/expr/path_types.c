/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of paths, and the entry points
 *
 * A path (names, members, dereferences) has a type of the graph and is fetched or loaded from its
 * location. Everything else is a number (operator_types.c). A number that is a pointer, as "p + 1"
 * or "(struct rec *)p", may stand where a path may: before -> and [], and after *.
 */
#include "trace/expr/check.h"

#include <string.h>

#include <cairn/text.h>

#include "base/near.h"

/* The type that a pointer or reference points to. */
static int pointee(const struct check *c, const struct expr *e, const struct expr *a, uint32_t *ret)
{
	char name[120];

	if (a->is_address && a->a) {
		*ret = a->a->type;
		return 0;
	}
	if (!a->is_path) {
		*ret = a->pointee;
		return a->pointee ? 0
				  : WRONG(c, e, "this is not a pointer to a type that is known");
	}
	const struct cairn_type *t = type_resolved(c->types, a->type);
	if (!type_is_pointer(t) && t->kind != CAIRN_T_ARRAY)
		return WRONG(c, e, "%s is not a pointer",
			     a->special ? a->name
					: check_type_text(c, a->type, name, sizeof(name)));
	*ret = t->ref;
	return 0;
}

/* Members shown when one is not there: near ones, or else the first. */
#define MEMBERS_SHOWN 6

static int no_member(const struct check *c, const struct expr *e, const struct cairn_type *t,
		     const char *type)
{
	struct near_names near = {.max = MEMBERS_SHOWN};
	char list[240] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < t->n_members; i++)
		if (t->members[i].name)
			near_offer(&near, t->members[i].name,
				   near_rank(e->name, t->members[i].name));
	bool any_near = near.n > 0;
	for (uint32_t i = 0; !any_near && i < t->n_members && near.n < MEMBERS_SHOWN; i++)
		if (t->members[i].name)
			near.names[near.n++] = t->members[i].name;
	for (size_t i = 0; i < near.n && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      near.names[i]);
	if (!near.n)
		return WRONG(c, e, "%s has no member %s", type, e->name);
	return WRONG(c, e, "%s has no member %s; %s: %s%s", type, e->name,
		     any_near ? "perhaps you mean" : "it has", list,
		     !any_near && t->n_members > MEMBERS_SHOWN ? ", ..." : "");
}

static int check_member(const struct check *c, struct expr *e)
{
	char name[120];
	uint32_t in;
	struct cairn_member m;
	int r = check_path(c, e->a);

	if (r < 0)
		return r;
	in = e->a->type;
	if (e->kind == EXPR_MEMBER && (!e->a->is_path || e->a->is_address))
		return WRONG(c, e, "this has no members");
	if (e->kind == EXPR_ARROW || type_is_reference(type_resolved(c->types, in))) {
		r = pointee(c, e, e->a, &in);
		if (r < 0)
			return r;
		/* "a.x" of a reference is "a->x". */
		e->kind = EXPR_ARROW;
	}
	r = check_complete(c, in);
	if (r < 0)
		return r;
	const struct cairn_type *t = type_resolved(c->types, in);
	check_type_text(c, in, name, sizeof(name));
	if (!type_is_record(t))
		return WRONG(c, e,
			     type_is_pointer(t) ? "%s is a pointer: use ->" : "%s has no members",
			     name);
	if (t->declaration)
		return WRONG(c, e, "%s is only declared in the debug information", name);
	if (!cairn_types_member(c->types, in, e->name, &m))
		return no_member(c, e, t, name);
	if (m.dynamic)
		return WRONG(c, e, "%s of %s: offset not known", e->name, name);
	if (t->byte_swapped && type_resolved(c->types, m.type)->kind == CAIRN_T_ENUM)
		return WRONG(c, e,
			     "enums of %s are stored in the other byte order; only the struct as a "
			     "whole can be shown",
			     name);
	e->type = m.type;
	e->bit_off = m.bit_off;
	e->bit_size = m.bit_size;
	return 0;
}

/* The value of an index that is the same at every hit. */
static bool constant_index(const struct expr *b, int64_t *ret)
{
	bool negative = b->kind == EXPR_MINUS;
	const struct expr *constant = negative ? b->a : b;

	if (constant->kind != EXPR_INT)
		return false;
	*ret = negative ? -(int64_t)constant->value : (int64_t)constant->value;
	return true;
}

static int check_constant_index(const struct check *c, struct expr *e, int64_t index)
{
	if (e->n_elements && (index < 0 || (uint64_t)index >= e->n_elements))
		return WRONG(c, e->b->kind == EXPR_MINUS ? e->b->a : e->b, "the array has %s",
			     cairn_counted(e->n_elements, "element").text);
	if (__builtin_mul_overflow(index, (int64_t)e->stride, &e->byte_off) ||
	    e->byte_off > INT32_MAX || e->byte_off < INT32_MIN)
		return WRONG(c, e->b->kind == EXPR_MINUS ? e->b->a : e->b,
			     "this index is too large");
	return 0;
}

static int check_index(const struct check *c, struct expr *e)
{
	char name[120];
	uint32_t element = 0;
	int64_t index;
	int r = check_path(c, e->a);

	if (r == 0)
		r = check_condition(c, e->b);
	if (r == 0)
		r = pointee(c, e, e->a, &element);
	if (r == 0)
		r = check_complete(c, element);
	if (r < 0)
		return r;
	if (e->b->is_pointer || e->b->is_float)
		return WRONG(c, e->b, "an index must be an integer");
	e->type = element;
	e->stride = cairn_types_size(c->types, element);
	if (!e->stride)
		return WRONG(c, e, "the size of %s is not known",
			     check_type_text(c, element, name, sizeof(name)));
	const struct cairn_type *t =
		e->a->is_path && !e->a->is_address ? type_resolved(c->types, e->a->type) : NULL;
	e->n_elements = t && t->kind == CAIRN_T_ARRAY && t->has_count ? t->count : 0;
	e->is_variable = !constant_index(e->b, &index);
	return e->is_variable ? 0 : check_constant_index(c, e, index);
}

int check_path(const struct check *c, struct expr *e)
{
	int r;

	e->is_path = true;
	switch (e->kind) {
	case EXPR_NAME:
		r = check_name(c, e);
		if (r == 0 && e->kind != EXPR_NAME)
			return WRONG(c, e, "%s is a constant", e->name);
		return r;
	case EXPR_MEMBER:
	case EXPR_ARROW:
		return check_member(c, e);
	case EXPR_INDEX:
		return check_index(c, e);
	case EXPR_DEREF:
		r = check_path(c, e->a);
		return r < 0 ? r : pointee(c, e, e->a, &e->type);
	case EXPR_ADDRESS:
		r = check_path(c, e->a);
		if (r == 0 && (!e->a->is_path || e->a->is_address || e->a->bit_size))
			return WRONG(c, e, "this has no address");
		e->is_address = true;
		return r;
	default:
		e->is_path = false;
		return check_condition(c, e);
	}
}

struct check check_in(const struct expr_scope *scope, struct cairn_err *err)
{
	return (struct check){.scope = scope,
			      .types = scope->types,
			      .sites = scope->sites,
			      .function = scope->function,
			      .text = scope->text,
			      .part_of = scope->part_of ? scope->part_of : "a condition",
			      .no_returns = scope->no_returns,
			      .err = err};
}

static bool is_path_kind(enum expr_kind kind)
{
	return kind == EXPR_NAME || kind == EXPR_MEMBER || kind == EXPR_ARROW ||
	       kind == EXPR_INDEX || kind == EXPR_DEREF || kind == EXPR_ADDRESS;
}

int expr_type_path(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	struct check c = check_in(scope, err);
	int r = check_path(&c, e);

	return r < 0 || !e->is_path || e->is_address ? r : check_complete(&c, e->type);
}

int expr_type_key(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	const struct check c = check_in(scope, err);
	/* A name may be an enumerator, $pid and the like. */
	int r = e->kind == EXPR_NAME ? check_name(&c, e) : 0;

	if (r < 0)
		return r;
	return is_path_kind(e->kind) ? expr_type_path(scope, e, err)
				     : expr_type_condition(scope, e, err);
}

int expr_type_value(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	bool is_known = e->kind == EXPR_NAME && e->name[0] == '$' && !name_is_of_return(e->name) &&
			strncmp(e->name, "$arg", strlen("$arg")) != 0;

	return is_path_kind(e->kind) && !is_known ? expr_type_path(scope, e, err)
						  : expr_type_condition(scope, e, err);
}
