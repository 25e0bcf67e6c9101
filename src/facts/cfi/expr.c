/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Expressions in call frame information, by example
 *
 *	DW_OP_breg6 -16                                     saved at rbp - 16: a realigned stack
 *	DW_OP_breg7 160; DW_OP_deref                        CFA = *(rsp + 160): a signal trampoline
 *	DW_OP_breg7 8; DW_OP_deref; DW_OP_plus_uconst 8     CFA = *(rsp + 8) + 8: OpenSSL, OCaml
 *	DW_OP_breg7 8; DW_OP_breg16 0; DW_OP_lit15; DW_OP_and; DW_OP_lit11; DW_OP_ge; DW_OP_lit3;
 *	DW_OP_shl; DW_OP_plus                               the PLT: rsp + 8; rsp + 16 from byte 11
 *
 *	DW_OP_breg16 12; DW_OP_const4s 7; DW_OP_minus      pc + 5: a stub of glibc 2.3 to
 *	                                                   2.17 that was jumped to
 *
 * Nothing else was found in the call frame information of 13 large programs, so nothing else is
 * read.
 */
#include "cfi/expr.h"

#include "base/cursor.h"

static struct cursor begin(const uint8_t *expr, size_t len)
{
	static const struct cursor_src src = {.file = "", .section = "an expression"};
	return cursor_of(&src, expr, len, false, NULL);
}

static bool take_breg(struct cursor *c, uint8_t *ret_reg, int64_t *ret_off)
{
	uint8_t op = cur_u8(c);
	*ret_reg = op - OP_BREG0;
	*ret_off = cur_sleb(c);
	return !c->failed && op >= OP_BREG0 && op < OP_BREG0 + CFI_N_REGS;
}

static bool take_op(struct cursor *c, uint8_t op)
{
	return cur_u8(c) == op && !c->failed;
}

static bool take_small(struct cursor *c, uint8_t *ret)
{
	uint8_t op = cur_u8(c);
	*ret = op == OP_CONST1U ? cur_u8(c) : op - OP_LIT0;
	return !c->failed && (op == OP_CONST1U || (op >= OP_LIT0 && op < OP_LIT0 + N_LITS));
}

bool expr_is_reg_offset(const uint8_t *expr, size_t len, uint8_t *ret_reg, int64_t *ret_off)
{
	struct cursor c = begin(expr, len);
	return take_breg(&c, ret_reg, ret_off) && !cur_more(&c);
}

/*
 * The addition after the dereference: none, an operation with a number, or a number and "plus".
 */
static bool take_addition(struct cursor *c, int64_t *ret)
{
	uint8_t small;
	*ret = 0;
	if (!cur_more(c))
		return true;
	if (*c->pos == OP_PLUS_UCONST) {
		cur_u8(c);
		uint64_t add = cur_uleb(c);
		*ret = (int64_t)add;
		return !c->failed && add <= INT32_MAX;
	}
	if (!take_small(c, &small))
		return false;
	*ret = small;
	return take_op(c, OP_PLUS);
}

bool expr_is_deref(const uint8_t *expr, size_t len, struct expr_deref *ret)
{
	struct cursor c = begin(expr, len);
	return take_breg(&c, &ret->reg, &ret->off) && take_op(&c, OP_DEREF) &&
	       take_addition(&c, &ret->add) && !cur_more(&c);
}

bool expr_is_plt(const uint8_t *expr, size_t len, struct expr_plt *ret)
{
	enum { RSP = 7, RIP = 16 };
	struct cursor c = begin(expr, len);
	uint8_t sp, pc;
	int64_t pc_off;
	return take_breg(&c, &sp, &ret->off) && sp == RSP && take_breg(&c, &pc, &pc_off) &&
	       pc == RIP && pc_off == 0 && take_small(&c, &ret->mask) && take_op(&c, OP_AND) &&
	       take_small(&c, &ret->from) && take_op(&c, OP_GE) && take_small(&c, &ret->shift) &&
	       take_op(&c, OP_SHL) && take_op(&c, OP_PLUS) && !cur_more(&c) &&
	       (ret->mask & (ret->mask + 1)) == 0 && ret->shift < 8;
}

/* ---- the pc and a number, however it is put together ---- */

enum { RIP = 16, FOLD_DEPTH = 4 };

/* n_pc times the pc, and a number. */
struct fold_value {
	int n_pc;
	uint64_t number;
};

struct fold {
	struct fold_value v[FOLD_DEPTH];
	unsigned int n;
};

static bool fold_push(struct fold *f, int n_pc, uint64_t number)
{
	if (f->n == FOLD_DEPTH)
		return false;
	f->v[f->n++] = (struct fold_value){n_pc, number};
	return true;
}

static bool fold_two(struct fold *f, int sign)
{
	if (f->n < 2)
		return false;
	const struct fold_value *b = &f->v[--f->n];
	struct fold_value *a = &f->v[f->n - 1];
	a->n_pc += sign * b->n_pc;
	a->number += (uint64_t)sign * b->number;
	return true;
}

static bool fold_skip(struct cursor *c)
{
	int16_t distance = (int16_t)cur_u16(c);
	cur_skip(c, (uint16_t)distance);
	return distance >= 0;
}

static bool fold_op(struct fold *f, struct cursor *c)
{
	uint8_t op = cur_u8(c);
	if (op >= OP_LIT0 && op < OP_LIT0 + N_LITS)
		return fold_push(f, 0, op - OP_LIT0);
	switch (op) {
	case OP_BREG0 + RIP:
		return fold_push(f, 1, (uint64_t)cur_sleb(c));
	case OP_CONST1U:
		return fold_push(f, 0, cur_u8(c));
	case OP_CONST1S:
		return fold_push(f, 0, (uint64_t)(int8_t)cur_u8(c));
	case OP_CONST2U:
		return fold_push(f, 0, cur_u16(c));
	case OP_CONST2S:
		return fold_push(f, 0, (uint64_t)(int16_t)cur_u16(c));
	case OP_CONST4U:
		return fold_push(f, 0, cur_u32(c));
	case OP_CONST4S:
		return fold_push(f, 0, (uint64_t)(int32_t)cur_u32(c));
	case OP_CONSTU:
		return fold_push(f, 0, cur_uleb(c));
	case OP_CONSTS:
		return fold_push(f, 0, (uint64_t)cur_sleb(c));
	case OP_PLUS:
		return fold_two(f, 1);
	case OP_MINUS:
		return fold_two(f, -1);
	case OP_PLUS_UCONST:
		return fold_push(f, 0, cur_uleb(c)) && fold_two(f, 1);
	case OP_SKIP:
		return fold_skip(c);
	default:
		return false;
	}
}

bool expr_is_pc_offset(const uint8_t *expr, size_t len, int64_t *ret_off)
{
	struct cursor c = begin(expr, len);
	struct fold f = {0};
	while (cur_more(&c))
		if (!fold_op(&f, &c) || c.failed)
			return false;
	*ret_off = (int64_t)f.v[0].number;
	return f.n == 1 && f.v[0].n_pc == 1;
}
