/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computing with constants as C does
 *
 * A value is kept in 64 bits, extended by its type's sign. So comparing and dividing need to know
 * only whether the common type is signed. A value that exceeds these 64 bits (__int128, floating)
 * is unknown, never wrong.
 */
#include <errno.h>

#include "decl/expr.h"

bool is_unsigned_type(const struct parser *p, uint32_t type)
{
	const struct cairn_type *t = resolve(p, type);

	if (t->kind == CAIRN_T_PTR)
		return true;
	return t->encoding == CAIRN_ENC_UNSIGNED || t->encoding == CAIRN_ENC_UNSIGNED_CHAR ||
	       t->encoding == CAIRN_ENC_BOOL;
}

bool is_integer(const struct parser *p, uint32_t type)
{
	const struct cairn_type *t = resolve(p, type);

	return (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_ENUM) &&
	       t->encoding != CAIRN_ENC_OPAQUE;
}

uint64_t fit_to(const struct parser *p, uint32_t type, uint64_t v)
{
	const struct cairn_type *t = resolve(p, type);
	unsigned int unused = t->size && t->size < 8 ? 64 - 8 * (unsigned int)t->size : 0;

	if (t->encoding == CAIRN_ENC_BOOL)
		return v != 0;
	v <<= unused;
	return is_unsigned_type(p, type) ? v >> unused : (uint64_t)((int64_t)v >> unused);
}

struct value value_of(const struct parser *p, uint32_t type, uint64_t v)
{
	const struct cairn_type *t = resolve(p, type);
	bool fits = (is_integer(p, type) || t->kind == CAIRN_T_PTR) && t->size <= 8;

	return (struct value){.type = type, .v = fit_to(p, type, v), .known = fits};
}

int promote(struct parser *p, struct value *v)
{
	const struct cairn_type *t = resolve(p, v->type);
	bool was_lvalue = v->is_lvalue;

	if (t->kind == CAIRN_T_ARRAY && !t->vector) {
		int rc = node_derive(p, CAIRN_T_PTR, t->ref, &v->type);

		/* The value of an array is its address. */
		*v = (struct value){.type = v->type, .v = v->v, .known = was_lvalue && v->known};
		return rc;
	}
	if (was_lvalue)
		v->known = false;
	v->is_lvalue = v->is_bit_field = false;
	if (t->kind == CAIRN_T_ENUM ||
	    (t->kind == CAIRN_T_INT && t->size < p->abi->scalars[CAIRN_C_INT].size)) {
		bool wide = t->size > 4, is_unsigned = t->size >= 4 && is_unsigned_type(p, v->type);

		return node_basic(p, (enum basic)((wide ? B_LLONG : B_INT) + is_unsigned),
				  &v->type);
	}
	return 0;
}

/* The larger wins; of equals the unsigned one. */
static uint32_t common_type(const struct parser *p, const struct value *a, const struct value *b)
{
	const struct cairn_type *x = resolve(p, a->type), *y = resolve(p, b->type);

	if (x->kind != y->kind)
		return x->kind == CAIRN_T_FLOAT || x->kind == CAIRN_T_PTR ? a->type : b->type;
	if (x->size != y->size)
		return x->size > y->size ? a->type : b->type;
	return is_unsigned_type(p, a->type) ? a->type : b->type;
}

static bool is_comparison(int op)
{
	return op == P_EQ || op == P_NE || op == '<' || op == '>' || op == P_LE || op == P_GE ||
	       op == P_AND || op == P_OR;
}

static uint64_t compare(int op, uint64_t a, uint64_t b, bool is_unsigned)
{
	int order = is_unsigned ? (a > b) - (a < b)
				: ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);

	switch (op) {
	case P_EQ:
		return order == 0;
	case P_NE:
		return order != 0;
	case '<':
		return order < 0;
	case '>':
		return order > 0;
	case P_LE:
		return order <= 0;
	case P_GE:
		return order >= 0;
	case P_AND:
		return a && b;
	default:
		return a || b;
	}
}

static uint64_t divide(int op, uint64_t a, uint64_t b, bool is_unsigned)
{
	if (is_unsigned)
		return op == '/' ? a / b : a % b;
	/* The one division that overflows. */
	if ((int64_t)b == -1)
		return op == '/' ? -a : 0;
	return (uint64_t)(op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

static uint64_t arithmetic(int op, uint64_t a, uint64_t b, bool is_unsigned)
{
	switch (op) {
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	case '/':
	case '%':
		return divide(op, a, b, is_unsigned);
	case '&':
		return a & b;
	case '|':
		return a | b;
	case '^':
		return a ^ b;
	case P_SHL:
		return b < 64 ? a << b : 0;
	default:
		if (is_unsigned)
			return b < 64 ? a >> b : 0;
		return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
	}
}

/* Pointer plus or minus integer: counted in elements. The other side is scaled in place. */
static bool scale(const struct parser *p, uint32_t pointer, uint64_t *v)
{
	uint64_t size = 1;

	if (cairn_types_resolve(p->types, resolve(p, pointer)->ref) &&
	    !size_of(p, resolve(p, pointer)->ref, &size))
		return false;
	*v *= size;
	return true;
}

int compute(struct parser *p, const struct token *op, struct value *a, const struct value *b)
{
	uint32_t type = common_type(p, a, b);
	uint64_t x = a->v, y = b->v;
	bool known = a->known && b->known, is_unsigned = is_unsigned_type(p, type);

	if (op->punct == P_SHL || op->punct == P_SHR) {
		type = a->type;
		is_unsigned = is_unsigned_type(p, type);
	}
	if ((op->punct == '/' || op->punct == '%') && !y) {
		if (known)
			return fail_at(p, op, -EBADMSG, "a division by 0");
		/* An unknown value is not divided either. */
		y = 1;
	}
	if (is_comparison(op->punct)) {
		/* One side alone may decide. */
		if (op->punct == P_AND && ((a->known && !x) || (b->known && !y)))
			known = true, x = 0;
		if (op->punct == P_OR && ((a->known && x) || (b->known && y)))
			known = true, x = 1;
		int rc = node_basic(p, B_INT, &a->type);
		*a = (struct value){.type = a->type,
				    .v = compare(op->punct, x, y, is_unsigned),
				    .known = known};
		return rc;
	}
	if (resolve(p, type)->kind == CAIRN_T_PTR) {
		bool a_is = resolve(p, a->type)->kind == CAIRN_T_PTR,
		     b_is = resolve(p, b->type)->kind == CAIRN_T_PTR;

		/* The difference of two is seldom needed, and never in a layout. */
		if ((a_is && b_is) || !scale(p, type, a_is ? &y : &x))
			known = false;
	}
	*a = value_of(p, type, arithmetic(op->punct, x, y, is_unsigned));
	a->known = a->known && known;
	return 0;
}

int compute_unary(struct parser *p, int op, struct value *v)
{
	int rc = promote(p, v);

	if (rc)
		return rc;
	if (op == '!') {
		v->v = !v->v;
		return node_basic(p, B_INT, &v->type);
	}
	bool known = v->known;
	*v = value_of(p, v->type, op == '-' ? -v->v : op == '~' ? ~v->v : v->v);
	v->known = v->known && known;
	return 0;
}

void convert(const struct parser *p, uint32_t type, struct value *v)
{
	bool known = v->known && (!v->is_lvalue || resolve(p, v->type)->kind == CAIRN_T_ARRAY);

	*v = value_of(p, type, v->v);
	v->known = v->known && known;
}
