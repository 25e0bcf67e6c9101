/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folding a DWARF expression into straight-line steps
 *
 * A DWARF expression is a program for a stack machine (DWARF 5, section 2.5). We run it once, on
 * symbols: every stack entry is a term, the list of steps that would compute it. A constant is a
 * term of one step, and arithmetic on constants is done on the spot. For
 *
 *	DW_OP_fbreg -24; DW_OP_deref; DW_OP_plus_uconst 8	at an address where CFA = rsp + 64
 *
 * the stack holds, one after the other:
 *
 *	[REG rsp; ADD 40]   [REG rsp; ADD 40; LOAD 8]   [REG rsp; ADD 40; LOAD 8; ADD 8]
 *
 * and since no DW_OP_stack_value follows, the value is in memory at that term. Earlier encoders
 * mostly erred on whether an expression gives a value or an address; here one function decides it,
 * piece_finish().
 *
 * Two things are never done: assuming without proof that a register still holds its value at the
 * function's entry (DW_OP_entry_value), and evaluating an expression that needs the caller's frame.
 *
 * Branches and calls in expressions are not followed: no compiler emits them for parameters. Such
 * an expression makes the value unavailable.
 */
#include <errno.h>
#include <string.h>

#include <cairn/location.h>

#include "base/cursor.h"
#include "dwarf/constants.h"
#include "loc/loc.h"
#include "loc/one_op.h"
#include "loc/term.h"

enum {
	/* Entries of the symbolic stack; compilers use up to about 8. */
	STACK_MAX = 24,
	/* Pieces of one value; a 16-byte struct of chars has 16. */
	PIECES_MAX = 64,
	/* DW_OP_entry_value holds an expression; one in another does not occur. */
	NESTING_MAX = 2,
	REG_COUNT = 16,
};

/* The meaning that the operations so far give to the top of the stack. */
enum result {
	RESULT_ADDRESS, /* the default: the term is the value's address */
	RESULT_VALUE,   /* DW_OP_stack_value, DW_OP_regN */
	RESULT_BYTES,   /* DW_OP_implicit_value */
};

struct fold {
	struct loc_context *ctx;
	const struct dw_unit *unit;
	struct arena *arena;
	struct cursor c;
	unsigned int nesting;
	struct term stack[STACK_MAX];
	unsigned int depth;
	enum result result;
	const uint8_t *bytes;
	uint64_t n_bytes;
	struct cairn_piece pieces[PIECES_MAX];
	unsigned int n_pieces;
	uint64_t piece_off; /* where the next piece starts in the value */
	/* First reason found; the expression is given up then. */
	enum cairn_unavailable why;
	enum cairn_quirk quirk; /* the rule that gave it */
	bool nomem;
	/* Bits were shifted down that are above the operand, should it have less than 64. */
	bool has_wide_shift;
};

static void give_up(struct fold *f, enum cairn_unavailable why)
{
	if (f->why == CAIRN_AVAILABLE)
		f->why = why;
}

static void give_up_by(struct fold *f, enum cairn_quirk quirk, enum cairn_unavailable why)
{
	if (f->why == CAIRN_AVAILABLE)
		f->quirk = quirk;
	give_up(f, why);
}

/* ---- the stack ---- */

static struct term *push(struct fold *f)
{
	if (f->depth == STACK_MAX) {
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		f->depth = 1;
	}
	struct term *t = &f->stack[f->depth++];
	term_init(t);
	return t;
}

static void push_step(struct fold *f, struct cairn_loc_step step)
{
	term_add(push(f), step);
}

static void push_const(struct fold *f, int64_t v)
{
	push_step(f, (struct cairn_loc_step){.op = CAIRN_LOC_CONST, .imm = v});
}

/* Entry @i from the top; an expression that takes from an empty stack is damaged. */
static struct term *at_depth(struct fold *f, uint64_t i)
{
	if (i < f->depth)
		return &f->stack[f->depth - 1 - i];
	give_up(f, CAIRN_UNAVAIL_DAMAGED);
	if (!f->depth)
		push_const(f, 0);
	return &f->stack[0];
}

/* Pop two, push their combination. */
static void binary(struct fold *f, uint8_t op)
{
	struct term *l = at_depth(f, 1), *r = at_depth(f, 0);
	if (f->why != CAIRN_AVAILABLE)
		return;
	/*
	 * Steps compare with sign. A value of fewer than 8 bytes without a sign is the same with
	 * one.
	 */
	if (op >= CAIRN_LOC_LT && op <= CAIRN_LOC_GE && l->type.size == 8 && !l->type.is_signed)
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
	term_binary(l, r, op);
	f->depth--;
}

/*
 * DW_OP_shr and DW_OP_shra bring down bits that in a register with an int are not the int's: GCC
 * writes them as if the program's operands had 64 bits
 * (docs/findings/gcc-32-bit-operand-not-extended.md).
 */
static void shift_down(struct fold *f, uint8_t op)
{
	struct term *l = at_depth(f, 1);
	f->has_wide_shift |= !term_is_extended(l, op == CAIRN_LOC_SAR);
	term_extend(l, op == CAIRN_LOC_SAR);
	binary(f, op);
}

/*
 * True if shifts of 64 bits were shifts of 64 bits in the program: no part of @t is narrower, nor
 * is the result.
 */
static bool is_wide(const struct fold *f, const struct term *t)
{
	if (term_is_cut(t))
		return false;
	return f->result == RESULT_ADDRESS ||
	       (f->ctx->formal && dw_type_bytes(f->ctx->formal) == 8);
}

static void unary(struct fold *f, uint8_t op, uint8_t size)
{
	term_unary(at_depth(f, 0), op, size);
}

static void push_copy(struct fold *f, uint64_t i)
{
	struct term copy = *at_depth(f, i);
	*push(f) = copy;
}

static void rotate(struct fold *f)
{
	if (f->depth < 3) {
		give_up(f, CAIRN_UNAVAIL_DAMAGED);
		return;
	}
	struct term top = *at_depth(f, 0);
	*at_depth(f, 0) = *at_depth(f, 1);
	*at_depth(f, 1) = *at_depth(f, 2);
	*at_depth(f, 2) = top;
}

static void swap(struct fold *f)
{
	struct term *a = at_depth(f, 0), *b = at_depth(f, 1), keep = *a;
	*a = *b;
	*b = keep;
}

/* ---- registers and frames ---- */

static void push_reg(struct fold *f, uint64_t reg, int64_t off)
{
	if (reg >= REG_COUNT && !(reg >= TERM_VECTOR_FIRST && reg < 255)) {
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		return;
	}
	struct term *t = push(f);
	term_add(t, (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = (uint8_t)reg});
	term_add_imm(t, off);
}

static void run(struct fold *f);

/* Run an expression inside this one, on the same stack; its result is on top. */
static void run_inner(struct fold *f, const uint8_t *expr, uint64_t len)
{
	if (f->nesting == NESTING_MAX) {
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		return;
	}
	static const struct cursor_src src = {.file = "", .section = "a location expression"};
	struct cursor outer = f->c;
	struct cursor_src inner_src = src;
	inner_src.base = expr;
	f->c = cursor_of(&inner_src, expr, len, false, NULL);
	f->nesting++;
	run(f);
	f->nesting--;
	f->c = outer;
}

bool loc_row(struct loc_context *ctx)
{
	if (!ctx->row_state) {
		ctx->row_state = -1;
		if (ctx->cfi && cfi_row_at(ctx->cfi, ctx->at, &ctx->row, NULL) == 1)
			ctx->row_state = 1;
	}
	return ctx->row_state > 0;
}

static void push_cfa(struct fold *f)
{
	struct loc_context *ctx = f->ctx;
	if (!loc_row(ctx) || ctx->row.cfa == CFI_CFA_UNDESCRIBED)
		give_up(f, CAIRN_UNAVAIL_NO_CFA);
	else if (ctx->row.cfa == CFI_CFA_REG_OFFSET)
		push_reg(f, ctx->row.cfa_reg, ctx->row.cfa_off);
	else
		run_inner(f, ctx->row.cfa_expr, ctx->row.cfa_expr_len);
}

struct frame_base {
	const struct loc_context *ctx;
	const uint8_t *expr;
	uint64_t len;
	bool found;
};

static int frame_base_entry(void *arg, const struct dw_loc_entry *e)
{
	struct frame_base *b = arg;
	if (!e->everywhere && (b->ctx->at.v < e->lo.v || b->ctx->at.v >= e->hi.v))
		return 0;
	b->expr = e->expr;
	b->len = e->expr_len;
	b->found = true;
	return 1;
}

static void push_frame_base(struct fold *f)
{
	struct frame_base b = {.ctx = f->ctx};
	dw_locations(&f->ctx->function, DW_AT_frame_base, frame_base_entry, &b, NULL);
	if (!b.found) {
		give_up(f, CAIRN_UNAVAIL_NO_CFA);
		return;
	}
	if (f->ctx->is_now && b.len && b.expr[0] >= DW_OP_reg0 && b.expr[0] <= DW_OP_reg31 &&
	    !loc_frame_is_set_up(f->ctx, b.expr[0] - DW_OP_reg0)) {
		give_up(f, CAIRN_UNAVAIL_NOT_LIVE);
		return;
	}
	run_inner(f, b.expr, b.len);
	/* As a frame base DW_OP_regN means the register's content. */
	f->result = RESULT_ADDRESS;
}

/*
 * The value that a register had when the function was entered. It is the register's value now, if
 * no instruction on any path from the entry to here writes it; flow.c proves that or does not.
 * Otherwise the call site in the caller has the value.
 */
static void entry_value(struct fold *f, const uint8_t *expr, uint64_t len)
{
	uint64_t reg = UINT64_MAX;
	if (expr && len == 1 && expr[0] >= DW_OP_reg0 && expr[0] <= DW_OP_reg31)
		reg = expr[0] - DW_OP_reg0;
	if (reg < REG_COUNT && (f->ctx->at.v == f->ctx->entry.v ||
				flow_unchanged(f->ctx->flow, f->ctx->at, (unsigned int)reg)))
		push_reg(f, reg, 0);
	else if (reg < REG_COUNT && f->ctx->has_caller)
		push_step(f,
			  (struct cairn_loc_step){.op = CAIRN_LOC_ENTRY_REG, .reg = (uint8_t)reg});
	else
		give_up(f, CAIRN_UNAVAIL_ENTRY_VALUE);
}

/*
 * The value for a parameter that GCC removed from a clone: the caller's call site describes it by
 * that parameter's DIE.
 */
static void removed_parameter(struct fold *f, uint32_t unit_off)
{
	int64_t die = (int64_t)(dw_unit_off(f->unit) + unit_off);
	if (f->ctx->has_caller)
		push_step(f, (struct cairn_loc_step){.op = CAIRN_LOC_ENTRY_PARAM, .imm = die});
	else
		give_up(f, CAIRN_UNAVAIL_CALLER);
}

/* ---- typed operations ---- */

/* The integer type of a base type DIE; false when it is none. */
static bool int_type_at(struct fold *f, uint64_t unit_off, struct int_type *ret)
{
	if (!unit_off) {
		*ret = (struct int_type){0};
		return true;
	}
	struct dw_die die;
	if (dw_die_at(f->ctx->dw, dw_unit_off(f->unit) + unit_off, &die, NULL) != 1)
		return false;
	uint64_t size = dw_udata(&die, DW_AT_byte_size, 0), enc = dw_udata(&die, DW_AT_encoding, 0);
	bool is_signed = enc == DW_ATE_signed || enc == DW_ATE_signed_char;
	bool is_unsigned = enc == DW_ATE_unsigned || enc == DW_ATE_unsigned_char ||
			   enc == DW_ATE_boolean || enc == DW_ATE_UTF || enc == DW_ATE_address;
	if ((!is_signed && !is_unsigned) || size < 1 || size > 8)
		return false;
	*ret = (struct int_type){.size = (uint8_t)size, .is_signed = is_signed};
	return true;
}

static void retype(struct fold *f, uint64_t unit_off)
{
	struct term *t = at_depth(f, 0);
	struct int_type type;
	if (!int_type_at(f, unit_off, &type)) {
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		return;
	}
	/* The term is already its old type's value in 64 bits; cut it to the new one. */
	t->type = type;
	term_canonical(t);
}

static void const_type(struct fold *f)
{
	uint64_t type = cur_uleb(&f->c);
	unsigned int size = cur_u8(&f->c);
	struct cursor bytes = cur_sub(&f->c, size);
	if (size < 1 || size > 8) {
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		return;
	}
	push_const(f, (int64_t)cur_uint(&bytes, size));
	retype(f, type);
}

/* ---- pieces ---- */

/* Make a piece of the result of the operations since the last piece. */
static void piece_finish(struct fold *f, uint64_t size)
{
	if (f->n_pieces == PIECES_MAX || size > UINT32_MAX || f->piece_off > UINT32_MAX) {
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		return;
	}
	struct cairn_piece *p = &f->pieces[f->n_pieces++];
	*p = (struct cairn_piece){.off = (uint32_t)f->piece_off, .size = (uint32_t)size};
	if (f->result == RESULT_BYTES) {
		p->kind = CAIRN_PIECE_BYTES;
		p->bytes = f->bytes;
		if (!size || size > f->n_bytes)
			p->size = (uint32_t)(f->n_bytes < UINT32_MAX ? f->n_bytes : UINT32_MAX);
	} else if (!f->depth) {
		p->kind = CAIRN_PIECE_MISSING;
	} else {
		const struct term *t = at_depth(f, 0);
		p->kind = f->result == RESULT_VALUE ? CAIRN_PIECE_VALUE : CAIRN_PIECE_MEMORY;
		p->n_steps = t->n;
		struct cairn_loc_step *steps = arena_array(f->arena, t->n, sizeof(*steps));
		if (!steps) {
			f->nomem = true;
			return;
		}
		memcpy(steps, t->steps, t->n * sizeof(*steps));
		p->steps = steps;
		/*
		 * The first reason stays, but a vector register is no reason to stop: its name is
		 * worth showing.
		 */
		if (term_reads_vector(t))
			give_up(f, CAIRN_UNAVAIL_VECTOR_REGISTER);
		if (f->has_wide_shift && (size || !is_wide(f, t)))
			give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
	}
	f->piece_off += size;
	f->depth = 0;
	f->result = RESULT_ADDRESS;
}

static void bit_piece(struct fold *f)
{
	uint64_t bits = cur_uleb(&f->c), off = cur_uleb(&f->c);
	if (bits % 8 || off)
		give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
	else
		piece_finish(f, bits / 8);
}

/* ---- operations ---- */

static void value_op(struct fold *f, uint64_t reg)
{
	push_reg(f, reg, 0);
	f->result = RESULT_VALUE;
}

static void addrx(struct fold *f, bool is_address)
{
	uint64_t v = 0;
	if (dw_unit_addrx(f->unit, cur_uleb(&f->c), &v, NULL) != 1)
		give_up(f, CAIRN_UNAVAIL_DAMAGED);
	push_step(f, (struct cairn_loc_step){.op = is_address ? CAIRN_LOC_ADDR : CAIRN_LOC_CONST,
					     .imm = (int64_t)v});
}

static void implicit_value(struct fold *f)
{
	f->n_bytes = cur_uleb(&f->c);
	f->bytes = cur_bytes(&f->c, f->n_bytes);
	f->result = RESULT_BYTES;
}

/* Constants and literals; false when @op is none. */
static bool constant_op(struct fold *f, uint8_t op)
{
	struct cursor *c = &f->c;
	switch (op) {
	case DW_OP_const1u:
		push_const(f, cur_u8(c));
		return true;
	case DW_OP_const1s:
		push_const(f, (int8_t)cur_u8(c));
		return true;
	case DW_OP_const2u:
		push_const(f, cur_u16(c));
		return true;
	case DW_OP_const2s:
		push_const(f, (int16_t)cur_u16(c));
		return true;
	case DW_OP_const4u:
		push_const(f, cur_u32(c));
		return true;
	case DW_OP_const4s:
		push_const(f, (int32_t)cur_u32(c));
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push_const(f, (int64_t)cur_u64(c));
		return true;
	case DW_OP_constu:
		push_const(f, (int64_t)cur_uleb(c));
		return true;
	case DW_OP_consts:
		push_const(f, cur_sleb(c));
		return true;
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		addrx(f, false);
		return true;
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
		const_type(f);
		return true;
	}
	if (op < DW_OP_lit0 || op > DW_OP_lit31)
		return false;
	push_const(f, op - DW_OP_lit0);
	return true;
}

/* Registers, addresses and the frame; false when @op is none. */
static bool place_op(struct fold *f, uint8_t op)
{
	struct cursor *c = &f->c;
	if (op >= DW_OP_reg0 && op <= DW_OP_reg31) {
		value_op(f, op - DW_OP_reg0);
		return true;
	}
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_reg(f, op - DW_OP_breg0, cur_sleb(c));
		return true;
	}
	uint64_t n;
	switch (op) {
	case DW_OP_regx:
		value_op(f, cur_uleb(c));
		return true;
	case DW_OP_bregx:
		n = cur_uleb(c);
		push_reg(f, n, cur_sleb(c));
		return true;
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		push_reg(f, cur_uleb(c), 0);
		retype(f, cur_uleb(c));
		return true;
	case DW_OP_addr:
		push_step(f, (struct cairn_loc_step){
				     .op = CAIRN_LOC_ADDR,
				     .imm = (int64_t)cur_uint(c, dw_unit_addr_size(f->unit))});
		return true;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		addrx(f, true);
		return true;
	case DW_OP_fbreg: {
		int64_t off = cur_sleb(c);
		push_frame_base(f);
		if (f->why == CAIRN_AVAILABLE)
			term_add_imm(at_depth(f, 0), off);
		if (off >= 0 && !loc_stack_argument_holds(f->ctx, f->unit, off))
			give_up_by(f, CAIRN_QUIRK_STACK_ARG_BEFORE_PROLOGUE, CAIRN_UNAVAIL_NO_CFA);
		return true;
	}
	case DW_OP_call_frame_cfa:
		push_cfa(f);
		return true;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		n = cur_uleb(c);
		entry_value(f, cur_bytes(c, n), n);
		return true;
	case DW_OP_GNU_parameter_ref:
		removed_parameter(f, cur_u32(c));
		return true;
	case DW_OP_implicit_value:
		implicit_value(f);
		return true;
	case DW_OP_stack_value:
		f->result = RESULT_VALUE;
		return true;
	case DW_OP_piece:
		piece_finish(f, cur_uleb(c));
		return true;
	case DW_OP_bit_piece:
		bit_piece(f);
		return true;
	}
	return false;
}

static const uint8_t binary_ops[256] = {
	[DW_OP_plus] = CAIRN_LOC_ADD, [DW_OP_minus] = CAIRN_LOC_SUB, [DW_OP_mul] = CAIRN_LOC_MUL,
	[DW_OP_and] = CAIRN_LOC_AND,  [DW_OP_or] = CAIRN_LOC_OR,     [DW_OP_xor] = CAIRN_LOC_XOR,
	[DW_OP_shl] = CAIRN_LOC_SHL,  [DW_OP_shr] = CAIRN_LOC_SHR,   [DW_OP_shra] = CAIRN_LOC_SAR,
	[DW_OP_eq] = CAIRN_LOC_EQ,    [DW_OP_ne] = CAIRN_LOC_NE,     [DW_OP_lt] = CAIRN_LOC_LT,
	[DW_OP_le] = CAIRN_LOC_LE,    [DW_OP_gt] = CAIRN_LOC_GT,     [DW_OP_ge] = CAIRN_LOC_GE,
};

/* Stack shuffling, arithmetic and loads; false when @op is none. */
static bool compute_op(struct fold *f, uint8_t op)
{
	struct cursor *c = &f->c;
	if (binary_ops[op]) {
		if (op == DW_OP_shr || op == DW_OP_shra)
			shift_down(f, binary_ops[op]);
		else
			binary(f, binary_ops[op]);
		return true;
	}
	switch (op) {
	case DW_OP_nop:
		return true;
	case DW_OP_dup:
		push_copy(f, 0);
		return true;
	case DW_OP_over:
		push_copy(f, 1);
		return true;
	case DW_OP_pick:
		push_copy(f, cur_u8(c));
		return true;
	case DW_OP_drop:
		at_depth(f, 0);
		f->depth--;
		return true;
	case DW_OP_swap:
		swap(f);
		return true;
	case DW_OP_rot:
		rotate(f);
		return true;
	case DW_OP_plus_uconst:
		term_add_imm(at_depth(f, 0), (int64_t)cur_uleb(c));
		term_canonical(at_depth(f, 0));
		return true;
	case DW_OP_neg:
		unary(f, CAIRN_LOC_NEG, 0);
		return true;
	case DW_OP_not:
		unary(f, CAIRN_LOC_NOT, 0);
		return true;
	case DW_OP_deref:
		unary(f, CAIRN_LOC_LOAD, dw_unit_addr_size(f->unit));
		return true;
	case DW_OP_deref_size:
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type: {
		uint8_t size = cur_u8(c);
		if (size < 1 || size > 8)
			give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
		unary(f, CAIRN_LOC_LOAD, size);
		if (op != DW_OP_deref_size)
			retype(f, cur_uleb(c));
		return true;
	}
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		retype(f, cur_uleb(c));
		return true;
	}
	return false;
}

/* Operations that are known and mean that there is no value for us. */
static enum cairn_unavailable refusal(uint8_t op)
{
	switch (op) {
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return CAIRN_UNAVAIL_IMPLICIT_POINTER;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		return CAIRN_UNAVAIL_THREAD_LOCAL;
	}
	return CAIRN_UNAVAIL_UNSUPPORTED;
}

static void run(struct fold *f)
{
	while (f->why == CAIRN_AVAILABLE && cur_more(&f->c)) {
		uint8_t op = cur_u8(&f->c);
		if (!constant_op(f, op) && !place_op(f, op) && !compute_op(f, op))
			give_up(f, refusal(op));
		if (f->c.failed)
			give_up(f, CAIRN_UNAVAIL_DAMAGED);
		if (f->depth && f->stack[f->depth - 1].failed)
			give_up(f, CAIRN_UNAVAIL_UNSUPPORTED);
	}
	/*
	 * A vector register is found at the end of a piece, and the pieces after it still count.
	 */
	if (f->why == CAIRN_UNAVAIL_VECTOR_REGISTER && cur_more(&f->c)) {
		f->why = CAIRN_AVAILABLE;
		run(f);
		give_up(f, CAIRN_UNAVAIL_VECTOR_REGISTER);
	}
}

static enum cairn_unavailable whole(const struct fold *f)
{
	unsigned int missing = 0;
	for (unsigned int i = 0; i < f->n_pieces; i++)
		missing += f->pieces[i].kind == CAIRN_PIECE_MISSING;
	if (!missing)
		return CAIRN_AVAILABLE;
	return missing == f->n_pieces ? CAIRN_UNAVAIL_OPTIMISED_OUT : CAIRN_UNAVAIL_PARTLY;
}

/* ---- results ---- */

static int take_pieces(struct fold *f, struct cairn_location *ret)
{
	struct cairn_piece *pieces = arena_array(f->arena, f->n_pieces, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	memcpy(pieces, f->pieces, f->n_pieces * sizeof(*pieces));
	ret->pieces = pieces;
	ret->n_pieces = (uint16_t)f->n_pieces;
	return 0;
}

/*
 * An expression that is not simple. The stack of terms is large; the usual expressions do not need
 * it.
 */
static __attribute__((noinline)) int fold(struct loc_context *ctx, const struct dw_unit *unit,
					  const uint8_t *expr, uint64_t len, struct arena *arena,
					  struct cairn_location *ret)
{
	struct cursor_src src = {.file = "", .section = "a location expression", .base = expr};
	/* Not cleared: the stack's entries are written before they are read. */
	struct fold f;
	f.ctx = ctx;
	f.unit = unit;
	f.arena = arena;
	f.c = cursor_of(&src, expr, len, false, NULL);
	f.nesting = f.depth = f.n_pieces = 0;
	f.result = RESULT_ADDRESS;
	f.bytes = NULL;
	f.n_bytes = f.piece_off = 0;
	f.why = CAIRN_AVAILABLE;
	f.quirk = CAIRN_QUIRK_NONE;
	f.nomem = false;
	f.has_wide_shift = false;

	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_OPTIMISED_OUT};
	if (!len)
		return 0;
	run(&f);
	if (f.why == CAIRN_AVAILABLE && !f.n_pieces)
		piece_finish(&f, 0);
	if (f.nomem)
		return -ENOMEM;
	ret->why = f.why != CAIRN_AVAILABLE ? f.why : whole(&f);
	ret->quirk = (uint16_t)f.quirk;
	if (ret->why == CAIRN_AVAILABLE || ret->why == CAIRN_UNAVAIL_VECTOR_REGISTER ||
	    ret->why == CAIRN_UNAVAIL_PARTLY)
		return take_pieces(&f, ret);
	return 0;
}

int loc_from_expr(struct loc_context *ctx, const struct dw_unit *unit, const uint8_t *expr,
		  uint64_t len, struct arena *arena, struct cairn_location *ret)
{
	int rc = loc_one_op(expr, len, arena, ret);
	return rc ? rc < 0 ? rc : 0 : fold(ctx, unit, expr, len, arena, ret);
}
