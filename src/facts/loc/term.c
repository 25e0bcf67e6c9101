/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arithmetic on terms
 *
 * Constants are computed on the spot, and additions of constants merged: most locations end as one
 * or two steps.
 *
 * If the right side of a binary operation is more than a constant or a register, the left side has
 * to be kept. It is saved to a slot while the right side is computed. The slot's number is the
 * number of slots that the right side uses itself, so nesting costs one slot a level.
 */
#include "loc/term.h"

#include <stddef.h>

void term_init(struct term *t)
{
	t->n = t->slots = 0;
	t->failed = false;
	t->type = (struct int_type){0};
}

void term_add(struct term *t, struct cairn_loc_step step)
{
	if (t->n == CAIRN_LOC_STEPS_MAX)
		t->failed = true;
	else
		t->steps[t->n++] = step;
}

static bool is_const(const struct term *t)
{
	return t->n == 1 && t->steps[0].op == CAIRN_LOC_CONST;
}

static bool is_reg(const struct term *t)
{
	return t->n == 1 && t->steps[0].op == CAIRN_LOC_REG;
}

static bool fold_constants(uint8_t op, int64_t l, int64_t r, int64_t *ret)
{
	uint64_t a = (uint64_t)l, b = (uint64_t)r;
	switch (op) {
	case CAIRN_LOC_ADD:
		*ret = (int64_t)(a + b);
		return true;
	case CAIRN_LOC_SUB:
		*ret = (int64_t)(a - b);
		return true;
	case CAIRN_LOC_MUL:
		*ret = (int64_t)(a * b);
		return true;
	case CAIRN_LOC_AND:
		*ret = (int64_t)(a & b);
		return true;
	case CAIRN_LOC_OR:
		*ret = (int64_t)(a | b);
		return true;
	case CAIRN_LOC_XOR:
		*ret = (int64_t)(a ^ b);
		return true;
	case CAIRN_LOC_SHL:
		*ret = b < 64 ? (int64_t)(a << b) : 0;
		return true;
	case CAIRN_LOC_SHR:
		*ret = b < 64 ? (int64_t)(a >> b) : 0;
		return true;
	case CAIRN_LOC_SAR:
		*ret = l >> (b < 64 ? b : 63);
		return true;
	case CAIRN_LOC_EQ:
		*ret = l == r;
		return true;
	case CAIRN_LOC_NE:
		*ret = l != r;
		return true;
	case CAIRN_LOC_LT:
		*ret = l < r;
		return true;
	case CAIRN_LOC_LE:
		*ret = l <= r;
		return true;
	case CAIRN_LOC_GT:
		*ret = l > r;
		return true;
	case CAIRN_LOC_GE:
		*ret = l >= r;
		return true;
	}
	return false;
}

/* term OP constant, merging runs of additions and dropping operations without effect. */
static void op_imm(struct term *t, uint8_t op, int64_t imm)
{
	struct cairn_loc_step *last = t->n ? &t->steps[t->n - 1] : NULL;
	if (op == CAIRN_LOC_SUB) {
		op = CAIRN_LOC_ADD;
		imm = (int64_t)(0 - (uint64_t)imm);
	}
	if (op == CAIRN_LOC_ADD && imm == 0)
		return;
	if (op == CAIRN_LOC_ADD && last && last->op == CAIRN_LOC_ADD &&
	    last->operand == CAIRN_LOC_IMM) {
		last->imm = (int64_t)((uint64_t)last->imm + (uint64_t)imm);
		if (!last->imm)
			t->n--;
		return;
	}
	if (op == CAIRN_LOC_ADD && t->n == 1 && last->op == CAIRN_LOC_ADDR) {
		last->imm = (int64_t)((uint64_t)last->imm + (uint64_t)imm);
		return;
	}
	term_add(t, (struct cairn_loc_step){.op = op, .operand = CAIRN_LOC_IMM, .imm = imm});
}

void term_add_imm(struct term *t, int64_t imm)
{
	op_imm(t, CAIRN_LOC_ADD, imm);
}

static bool commutes(uint8_t op)
{
	return op == CAIRN_LOC_ADD || op == CAIRN_LOC_MUL || op == CAIRN_LOC_AND ||
	       op == CAIRN_LOC_OR || op == CAIRN_LOC_XOR || op == CAIRN_LOC_EQ ||
	       op == CAIRN_LOC_NE;
}

/* Cut a term to the integer type it has, so that its 64 bits are that type's value. */
void term_canonical(struct term *t)
{
	if (!t->type.size || t->type.size >= 8)
		return;
	uint8_t op = t->type.is_signed ? CAIRN_LOC_SEXT : CAIRN_LOC_ZEXT;
	if (is_const(t)) {
		unsigned int shift = 64 - 8 * t->type.size;
		uint64_t up = (uint64_t)t->steps[0].imm << shift;
		t->steps[0].imm = t->type.is_signed ? (int64_t)up >> shift : (int64_t)(up >> shift);
		return;
	}
	const struct cairn_loc_step *last = t->n ? &t->steps[t->n - 1] : NULL;
	if (last && last->op == op && last->size == t->type.size)
		return;
	term_add(t, (struct cairn_loc_step){.op = op, .size = t->type.size});
}

void term_extend(struct term *t, bool is_signed)
{
	struct int_type type = t->type;
	t->type.is_signed = is_signed;
	term_canonical(t);
	t->type = type;
}

/* l OP r where r needs steps of its own: SAVE l; r; slot OP acc. */
static void combine_through_slot(struct term *l, const struct term *r, uint8_t op)
{
	uint8_t slot = r->slots;
	if (slot >= CAIRN_LOC_SLOTS) {
		l->failed = true;
		return;
	}
	term_add(l, (struct cairn_loc_step){.op = CAIRN_LOC_SAVE, .imm = slot});
	for (unsigned int i = 0; i < r->n; i++)
		term_add(l, r->steps[i]);
	term_add(l, (struct cairn_loc_step){.op = op, .operand = CAIRN_LOC_SLOT, .imm = slot});
	if (l->slots < slot + 1)
		l->slots = (uint8_t)(slot + 1);
}

void term_binary(struct term *l, struct term *r, uint8_t op)
{
	l->failed |= r->failed;
	int64_t folded;
	if (is_const(l) && is_const(r) &&
	    fold_constants(op, l->steps[0].imm, r->steps[0].imm, &folded)) {
		l->steps[0].imm = folded;
	} else {
		if (commutes(op) && (is_const(l) || (is_reg(l) && !is_const(r) && !is_reg(r)))) {
			struct term swap = *l;
			*l = *r;
			*r = swap;
		}
		if (is_const(r))
			op_imm(l, op, r->steps[0].imm);
		else if (is_reg(r))
			term_add(l, (struct cairn_loc_step){.op = op,
							    .operand = CAIRN_LOC_OPERAND_REG,
							    .reg = r->steps[0].reg});
		else
			combine_through_slot(l, r, op);
	}
	if (op >= CAIRN_LOC_EQ)
		l->type = (struct int_type){0};
	else
		term_canonical(l);
}

void term_unary(struct term *t, uint8_t op, uint8_t size)
{
	/*
	 * GCC writes DW_OP_not, which is bitwise, where it means the opposite of a comparison: 255
	 * instead of 1. The intended value is not known.
	 */
	if (op == CAIRN_LOC_NOT && t->n && t->steps[t->n - 1].op >= CAIRN_LOC_EQ) {
		t->failed = true;
		return;
	}
	if (is_const(t) && op == CAIRN_LOC_NEG) {
		t->steps[0].imm = (int64_t)(0 - (uint64_t)t->steps[0].imm);
	} else if (is_const(t) && op == CAIRN_LOC_NOT) {
		t->steps[0].imm = ~t->steps[0].imm;
	} else {
		term_add(t, (struct cairn_loc_step){.op = op, .size = size});
	}
	if (op == CAIRN_LOC_LOAD)
		t->type = (struct int_type){0};
	else
		term_canonical(t);
}

/* The low 31 bits at most: no sign bit of a 32-bit value among them. */
static bool is_small_mask(const struct cairn_loc_step *s)
{
	return s->op == CAIRN_LOC_AND && s->operand == CAIRN_LOC_IMM && s->imm >= 0 &&
	       s->imm <= INT32_MAX;
}

bool term_is_extended(const struct term *t, bool is_signed)
{
	if (t->type.size)
		return true;
	if (!t->n)
		return false;
	const struct cairn_loc_step *last = &t->steps[t->n - 1];
	bool has_imm = last->operand == CAIRN_LOC_IMM;
	switch (last->op) {
	case CAIRN_LOC_CONST:
		return last->imm >= 0 && (!is_signed || last->imm <= INT32_MAX);
	case CAIRN_LOC_LOAD:
		return last->size == 8 || !is_signed;
	case CAIRN_LOC_ADDR:
	case CAIRN_LOC_SEXT:
	case CAIRN_LOC_ZEXT:
		return true;
	case CAIRN_LOC_AND:
		return has_imm && last->imm >= 0 && (!is_signed || is_small_mask(last));
	case CAIRN_LOC_SHL:
		/* Nothing would be left of 32 bits: this is one half of an extension. */
		return has_imm && last->imm >= 32;
	default:
		return last->op >= CAIRN_LOC_EQ && last->op <= CAIRN_LOC_GE;
	}
}

bool term_is_cut(const struct term *t)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct cairn_loc_step *s = &t->steps[i];
		if (s->op == CAIRN_LOC_SEXT || s->op == CAIRN_LOC_ZEXT || s->op >= CAIRN_LOC_EQ ||
		    (s->op == CAIRN_LOC_LOAD && s->size < 8) ||
		    (s->op == CAIRN_LOC_AND && s->operand == CAIRN_LOC_IMM && s->imm >= 0) ||
		    (s->op == CAIRN_LOC_SHL && s->operand == CAIRN_LOC_IMM && s->imm >= 32))
			return true;
	}
	return false;
}

bool term_reads_vector(const struct term *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		if ((t->steps[i].op == CAIRN_LOC_REG ||
		     t->steps[i].operand == CAIRN_LOC_OPERAND_REG) &&
		    t->steps[i].reg >= TERM_VECTOR_FIRST)
			return true;
	return false;
}
