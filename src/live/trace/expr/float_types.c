/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparisons of floats
 *
 * No instruction of the kernel's machine has them; bits can be compared (floats.c).
 */
#include "trace/expr/check.h"

#include <string.h>

int check_no_float(const struct check *c, const struct expr *e)
{
	return WRONG(c, e,
		     "floats can be shown, be keys, and be compared with numbers; the kernel's "
		     "programs cannot calculate with them");
}

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* A number beside a float becomes one, by C's rules: an integer beside a float is rounded to it. */
static int float_literal(const struct check *c, const struct expr *beside, struct expr *e)
{
	bool negative = e->kind == EXPR_MINUS;
	struct expr *number = negative ? e->a : e;
	double v;

	if (number->kind == EXPR_FLOAT)
		memcpy(&v, &number->value, sizeof(v));
	else if (number->kind == EXPR_INT && number->is_unsigned)
		v = (double)number->value;
	else if (number->kind == EXPR_INT)
		v = (double)(int64_t)number->value;
	else
		return WRONG(c, e,
			     "a float is compared with a number, or with a float of the same "
			     "size");
	if (number->kind == EXPR_INT && cairn_types_size(c->types, beside->type) == sizeof(float))
		v = number->is_unsigned ? (float)number->value : (float)(int64_t)number->value;
	e->kind = EXPR_FLOAT;
	e->is_float = true;
	e->value = bits_of(negative ? -v : v);
	return 0;
}

/* Its meaning with the operands exchanged. */
static enum fetch_code exchanged(enum fetch_code op)
{
	switch (op) {
	case FETCH_LT:
		return FETCH_GT;
	case FETCH_LE:
		return FETCH_GE;
	case FETCH_GT:
		return FETCH_LT;
	case FETCH_GE:
		return FETCH_LE;
	default:
		return op;
	}
}

int check_floats(const struct check *c, struct expr *e)
{
	if (!op_is_comparison(e->op))
		return check_no_float(c, e->a->is_float ? e->a : e->b);
	if (!e->a->is_path || !e->a->is_float) {
		struct expr *a = e->a;
		e->a = e->b;
		e->b = a;
		e->op = exchanged(e->op);
	}
	if (!e->a->is_path)
		return check_no_float(c, e->a);
	if (!e->b->is_path || !e->b->is_float)
		return float_literal(c, e->a, e->b);
	if (cairn_types_size(c->types, e->a->type) != cairn_types_size(c->types, e->b->type))
		return WRONG(c, e->b,
			     "a float is compared with a number, or with a float of the "
			     "same size");
	return 0;
}
