/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiling comparisons of floats, of which the kernel's machine sees the bits alone. */
#include "trace/expr/operand.h"

#include <string.h>

#define FLOAT_SIGN     (UINT64_C(1) << 63)
#define FLOAT_INFINITY UINT64_C(0x7ff0000000000000)

/*
 * acc = a number that is in the order of the floats: their bits without the sign, negated if there
 * was one, so that 0 and -0 are one. And temp = whether it is a number at all. @infinity has the
 * bits of infinity; those of a float are in the upper half.
 */
static enum cairn_unavailable load_float(struct compiler *c, const struct expr *e,
					 unsigned int temp, uint64_t infinity)
{
	struct fetch_program *p = c->program;
	struct operand o = {0};
	uint64_t size = cairn_types_size(c->types, e->type);
	struct fetch_op *op;

	c->temp = temp;
	TRY(operand_of_path(c, e, &o));
	TRY(operand_load(c, &o, size));
	if (size == sizeof(float))
		fetch_emit_imm(p, FETCH_SHL, 32);
	fetch_emit(p, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp + 1);
	fetch_emit_imm(p, FETCH_AND, (int64_t)~FLOAT_SIGN);
	fetch_emit_imm(p, FETCH_ULE, (int64_t)infinity);
	fetch_emit(p, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp);
	fetch_emit(p, FETCH_REG)->reg = (uint8_t)(FETCH_TEMP + temp + 1);
	fetch_emit_imm(p, FETCH_AND, (int64_t)~FLOAT_SIGN);
	fetch_emit(p, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp + 2);
	fetch_emit(p, FETCH_REG)->reg = (uint8_t)(FETCH_TEMP + temp + 1);
	fetch_emit_imm(p, FETCH_SAR, 63);
	fetch_emit(p, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp + 1);
	op = fetch_emit(p, FETCH_XOR);
	op->flags = FETCH_F_FILE;
	op->reg = (uint8_t)(FETCH_TEMP + temp + 2);
	op = fetch_emit(p, FETCH_SUB);
	op->flags = FETCH_F_FILE;
	op->reg = (uint8_t)(FETCH_TEMP + temp + 1);
	fetch_barrier(p);
	return CAIRN_AVAILABLE;
}

static int64_t order_of_bits(uint64_t bits)
{
	int64_t magnitude = (int64_t)(bits & ~FLOAT_SIGN);

	return bits & FLOAT_SIGN ? -magnitude : magnitude;
}

/*
 * The order of a constant beside a float of 4 bytes. One between two floats becomes the lower one,
 * and the comparison the one that then means the same. False: nothing is equal to it.
 */
static bool order_beside_float(double v, enum fetch_code *op, int64_t *ret)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	*ret = order_of_bits((uint64_t)bits << 32);
	if ((double)f == v)
		return true;
	/* The order of the next lower float. */
	if ((double)f > v)
		*ret -= INT64_C(1) << 32;
	*op = *op == FETCH_LT ? FETCH_LE : *op;
	*op = *op == FETCH_GE ? FETCH_GT : *op;
	return *op != FETCH_EQ && *op != FETCH_NE;
}

/* acc, the order of a float, compared with a constant; what a NaN is to it comes after. */
static void compare_constant(struct compiler *c, const struct expr *e, bool is_double)
{
	enum fetch_code op = e->op;
	int64_t order;
	double v;

	memcpy(&v, &e->b->value, sizeof(v));
	if (is_double)
		order = order_of_bits(e->b->value);
	else if (!order_beside_float(v, &op, &order)) {
		fetch_emit(c->program, FETCH_CONST)->imm = op == FETCH_NE;
		return;
	}
	fetch_emit_imm(c->program, op, order);
}

/* A NaN is unequal to everything, also to itself, and neither less nor greater. */
static void apply_nan(struct compiler *c, const struct expr *e, unsigned int temp)
{
	struct fetch_program *p = c->program;
	bool is_unequal = e->op == FETCH_NE;

	if (is_unequal)
		fetch_emit_imm(p, FETCH_EQ, 0);
	struct fetch_op *op = fetch_emit(p, FETCH_AND);
	op->flags = FETCH_F_FILE;
	op->reg = (uint8_t)(FETCH_TEMP + temp);
	if (is_unequal)
		fetch_emit_imm(p, FETCH_EQ, 0);
}

/* Temporaries: whether b is a number, its order, whether a is one, and two for the making. */
enum cairn_unavailable floats_compare(struct compiler *c, const struct expr *e, unsigned int temp)
{
	enum { B_IS_NUMBER, B_ORDER, A_IS_NUMBER, N_TEMPS = A_IS_NUMBER + 3 };
	struct fetch_program *p = c->program;
	bool is_double = cairn_types_size(c->types, e->a->type) == sizeof(double);
	uint64_t infinity = is_double ? FLOAT_INFINITY : UINT64_C(0x7f80000000000000);

	if (!operand_has_temp(c, temp + N_TEMPS - 1))
		return CAIRN_AVAILABLE;
	if (e->b->kind == EXPR_FLOAT) {
		TRY(load_float(c, e->a, temp, infinity));
		compare_constant(c, e, is_double);
		apply_nan(c, e, temp);
		return CAIRN_AVAILABLE;
	}
	TRY(load_float(c, e->b, temp + B_IS_NUMBER, infinity));
	fetch_emit(p, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp + B_ORDER);
	TRY(load_float(c, e->a, temp + A_IS_NUMBER, infinity));
	struct fetch_op *op = fetch_emit(p, e->op);
	op->flags = FETCH_F_FILE;
	op->reg = (uint8_t)(FETCH_TEMP + temp + B_ORDER);
	apply_nan(c, e, temp + A_IS_NUMBER);
	apply_nan(c, e, temp + B_IS_NUMBER);
	return CAIRN_AVAILABLE;
}
