/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of operators
 *
 * Everything that is no path is arithmetic with C's rules: types smaller than int become int, the
 * operands of an operator are converted to the larger of their types, and unsigned wins among
 * equals. So "n == -1" with an unsigned n means the same as in C. Numbers that are added to a
 * pointer count elements. A comparison of a char pointer or array with a string literal compares
 * the strings. This is not C, but it is what the user means.
 */
#include "trace/expr/check.h"

static int check_truth(const struct check *c, struct expr *e);

/*
 * The arithmetic type of a path: an integer, an enumeration, a bool, a pointer, a bit-field; or a
 * float, which can be compared.
 */
static int path_arithmetic(const struct check *c, struct expr *e)
{
	char name[120];
	const struct cairn_type *t;

	if (e->is_address) {
		e->is_long = e->is_unsigned = true;
		if (e->a)
			expr_be_pointer(e, e->a->type);
		return 0;
	}
	t = type_resolved(c->types, e->type);
	if (type_is_reference(t))
		return WRONG(c, e, "a reference; write * before it to compare its target");
	if (type_is_pointer(t) || t->kind == CAIRN_T_ARRAY || t->kind == CAIRN_T_UNSPECIFIED) {
		expr_be_pointer(e, t->ref);
		return 0;
	}
	e->is_float = t->kind == CAIRN_T_FLOAT && (t->size == 4 || t->size == 8);
	if (e->is_float && !t->byte_swapped)
		return 0;
	if ((t->kind != CAIRN_T_INT && t->kind != CAIRN_T_ENUM) || !t->size || t->size > 8)
		return WRONG(c, e, "%s cannot be part of %s",
			     check_type_text(c, e->type, name, sizeof(name)), c->part_of);
	if (t->byte_swapped)
		return WRONG(c, e, "%s is stored in the other byte order, and cannot be part of %s",
			     check_type_text(c, e->type, name, sizeof(name)), c->part_of);
	/* Only the inside of an enumeration says whether it has a sign. */
	int r = t->kind == CAIRN_T_ENUM ? check_complete(c, e->type) : 0;
	if (r < 0)
		return r;
	t = type_resolved(c->types, e->type);
	bool is_signed = type_is_signed(c->types, e->type);
	uint64_t bits = e->bit_size ? e->bit_size : t->size * 8;
	e->is_long = bits > 32;
	/* Types smaller than int fit int. */
	e->is_unsigned = !is_signed && bits >= 32;
	return 0;
}

/* ---- pointers ---- */

/* The size by which an addition to a pointer counts; 0: not known. */
static uint64_t stride_of(const struct check *c, const struct expr *pointer)
{
	const struct cairn_type *t = type_resolved(c->types, pointer->pointee);

	if (!pointer->pointee || t->kind == CAIRN_T_VOID || t->kind == CAIRN_T_FUNC)
		return 1;
	return cairn_types_size(c->types, pointer->pointee);
}

/* p + n, n + p, p - n, p - q; everything else takes a pointer for an unsigned long. */
static int check_pointers(const struct check *c, struct expr *e)
{
	const struct expr *pointer = e->a->is_pointer ? e->a : e->b;
	char name[120];
	bool both = e->a->is_pointer && e->b->is_pointer;

	if (e->op == FETCH_SUB && !e->a->is_pointer)
		return WRONG(c, e, "a pointer cannot be subtracted from a number");
	if (both && e->op == FETCH_ADD)
		return WRONG(c, e, "two pointers cannot be added");
	int r = check_complete(c, pointer->pointee);
	if (r < 0)
		return r;
	e->stride = stride_of(c, pointer);
	if (!e->stride)
		return WRONG(c, e, "the size of %s is not known",
			     check_type_text(c, pointer->pointee, name, sizeof(name)));
	e->is_long = true;
	e->is_unsigned = !both;
	e->is_pointer = !both;
	e->pointee = both ? 0 : pointer->pointee;
	return 0;
}

static int check_binary(const struct check *c, struct expr *e)
{
	if (e->b->kind == EXPR_STRING)
		return check_string(c, e, e->a, e->b);
	if (e->a->kind == EXPR_STRING)
		return check_string(c, e, e->b, e->a);
	int r = check_condition(c, e->a);
	if (r == 0)
		r = check_condition(c, e->b);
	if (r < 0)
		return r;
	if (e->a->is_float || e->b->is_float)
		return check_floats(c, e);
	if (op_is_comparison(e->op))
		return 0;
	if (e->op == FETCH_SHL || e->op == FETCH_SHR) {
		e->is_long = e->a->is_long;
		e->is_unsigned = e->a->is_unsigned;
		return 0;
	}
	if ((e->a->is_pointer || e->b->is_pointer) && (e->op == FETCH_ADD || e->op == FETCH_SUB))
		return check_pointers(c, e);
	e->is_long = e->a->is_long || e->b->is_long;
	e->is_unsigned = (e->a->is_unsigned && e->a->is_long == e->is_long) ||
			 (e->b->is_unsigned && e->b->is_long == e->is_long);
	return 0;
}

static int check_unary(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e->a);

	if (r < 0)
		return r;
	e->is_float = e->kind == EXPR_MINUS && e->a->kind == EXPR_FLOAT;
	if (e->a->is_float && !e->is_float)
		return check_no_float(c, e->a);
	if (e->kind == EXPR_NOT)
		return 0;
	e->is_long = e->a->is_long;
	e->is_unsigned = e->a->is_unsigned;
	return r;
}

/* a ? b : c, whose type is that of b + c, or of the pointer that one of both is. */
static int check_choice(const struct check *c, struct expr *e)
{
	int r = check_truth(c, e->a);

	if (r == 0)
		r = check_condition(c, e->b);
	if (r == 0)
		r = check_condition(c, e->c);
	if (r < 0)
		return r;
	if (e->b->is_float || e->c->is_float)
		return check_no_float(c, e->b->is_float ? e->b : e->c);
	const struct expr *pointer = e->b->is_pointer ? e->b : e->c;
	e->is_pointer = pointer->is_pointer;
	e->pointee = pointer->pointee;
	e->is_text = pointer->is_text;
	e->unit = pointer->unit;
	e->is_long = e->b->is_long || e->c->is_long;
	e->is_unsigned = (e->b->is_unsigned && e->b->is_long == e->is_long) ||
			 (e->c->is_unsigned && e->c->is_long == e->is_long);
	return 0;
}

int check_condition(const struct check *c, struct expr *e)
{
	int r;

	switch (e->kind) {
	case EXPR_CHOICE:
		return check_choice(c, e);
	case EXPR_INT:
	case EXPR_KNOWN:
		return 0;
	case EXPR_FLOAT:
		e->is_float = true;
		return 0;
	case EXPR_CAST:
		return check_cast(c, e);
	case EXPR_SIZEOF:
		return check_sizeof(c, e);
	case EXPR_STR:
	case EXPR_BUF:
		return WRONG(c, e, "%s%s() is a value of its own%s", e->is_wide ? "w" : "",
			     e->kind == EXPR_STR ? "str" : "buf",
			     e->kind == EXPR_STR ? ", or compared with == and !=" : "");
	case EXPR_STRING:
		return WRONG(c, e, "a string can only be compared with == and !=");
	case EXPR_NAME:
		r = check_name(c, e);
		if (r < 0 || e->kind != EXPR_NAME)
			return r;
		return path_arithmetic(c, e);
	case EXPR_MEMBER:
	case EXPR_ARROW:
	case EXPR_INDEX:
	case EXPR_DEREF:
	case EXPR_ADDRESS:
		r = check_path(c, e);
		return r < 0 ? r : path_arithmetic(c, e);
	case EXPR_MINUS:
	case EXPR_INVERT:
	case EXPR_NOT:
		return check_unary(c, e);
	case EXPR_BINARY:
		return check_binary(c, e);
	case EXPR_AND:
	case EXPR_OR:
		r = check_truth(c, e->a);
		return r < 0 ? r : check_truth(c, e->b);
	}
	return 0;
}

/* Where only "is it 0" counts, a float would be compared with 0.0 by C. */
static int check_truth(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e);

	return r == 0 && e->is_float ? WRONG(c, e, "a float; compare it: write x != 0") : r;
}

int expr_type_condition(const struct expr_scope *scope, struct expr *e, struct cairn_err *err)
{
	struct check c = check_in(scope, err);
	int r = check_condition(&c, e);

	if (r == 0 && e->is_float)
		return check_no_float(&c, e);
	return r;
}
