/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Location expressions for .cairn.dwarf
 *
 * An expression is copied operation by operation. References are changed: an index of .debug_addr
 * becomes the address, a base type becomes one of the integer types that every unit has, and a
 * removed parameter becomes a DIE that stands for it. An operation that loc/expr.c does not know
 * ends the copy after its byte, as it ends the reader's work. Damaged bytes are copied unchanged.
 */
#include "sidecar/reduced_out.h"

#include "base/cursor.h"
#include "dwarf/constants.h"

/* The operands of an operation. */
enum operands {
	UNKNOWN,
	NOTHING,
	BYTES_1,
	BYTES_2,
	BYTES_4,
	BYTES_8,
	NUMBER,
	SIGNED,
	NUMBERS, /* two */
	REGISTER_SIGNED,
	BLOCK, /* a length, and that number of bytes */
	INDEX_ADDRESS,
	INDEX_CONSTANT, /* into .debug_addr */
	TYPE,
	REGISTER_TYPE,
	SIZE_TYPE,
	CONSTANT_TYPE, /* a type, a length of one byte, and that number of bytes */
	REMOVED,
};

static const uint8_t all_operands[256] = {
	[DW_OP_const1u] = BYTES_1,
	[DW_OP_const1s] = BYTES_1,
	[DW_OP_const2u] = BYTES_2,
	[DW_OP_const2s] = BYTES_2,
	[DW_OP_const4u] = BYTES_4,
	[DW_OP_const4s] = BYTES_4,
	[DW_OP_const8u] = BYTES_8,
	[DW_OP_const8s] = BYTES_8,
	[DW_OP_constu] = NUMBER,
	[DW_OP_consts] = SIGNED,
	[DW_OP_constx] = INDEX_CONSTANT,
	[DW_OP_GNU_const_index] = INDEX_CONSTANT,
	[DW_OP_const_type] = CONSTANT_TYPE,
	[DW_OP_GNU_const_type] = CONSTANT_TYPE,
	[DW_OP_lit0... DW_OP_lit31] = NOTHING,
	[DW_OP_reg0... DW_OP_reg31] = NOTHING,
	[DW_OP_breg0... DW_OP_breg31] = SIGNED,
	[DW_OP_regx] = NUMBER,
	[DW_OP_bregx] = REGISTER_SIGNED,
	[DW_OP_regval_type] = REGISTER_TYPE,
	[DW_OP_GNU_regval_type] = REGISTER_TYPE,
	[DW_OP_addr] = BYTES_8,
	[DW_OP_addrx] = INDEX_ADDRESS,
	[DW_OP_GNU_addr_index] = INDEX_ADDRESS,
	[DW_OP_fbreg] = SIGNED,
	[DW_OP_call_frame_cfa] = NOTHING,
	[DW_OP_entry_value] = BLOCK,
	[DW_OP_GNU_entry_value] = BLOCK,
	[DW_OP_implicit_value] = BLOCK,
	[DW_OP_GNU_parameter_ref] = REMOVED,
	[DW_OP_stack_value] = NOTHING,
	[DW_OP_piece] = NUMBER,
	[DW_OP_bit_piece] = NUMBERS,
	[DW_OP_plus] = NOTHING,
	[DW_OP_minus] = NOTHING,
	[DW_OP_mul] = NOTHING,
	[DW_OP_and] = NOTHING,
	[DW_OP_or] = NOTHING,
	[DW_OP_xor] = NOTHING,
	[DW_OP_shl] = NOTHING,
	[DW_OP_shr] = NOTHING,
	[DW_OP_shra] = NOTHING,
	[DW_OP_eq] = NOTHING,
	[DW_OP_ne] = NOTHING,
	[DW_OP_lt] = NOTHING,
	[DW_OP_le] = NOTHING,
	[DW_OP_gt] = NOTHING,
	[DW_OP_ge] = NOTHING,
	[DW_OP_nop] = NOTHING,
	[DW_OP_dup] = NOTHING,
	[DW_OP_over] = NOTHING,
	[DW_OP_pick] = BYTES_1,
	[DW_OP_drop] = NOTHING,
	[DW_OP_swap] = NOTHING,
	[DW_OP_rot] = NOTHING,
	[DW_OP_plus_uconst] = NUMBER,
	[DW_OP_neg] = NOTHING,
	[DW_OP_not] = NOTHING,
	[DW_OP_deref] = NOTHING,
	[DW_OP_deref_size] = BYTES_1,
	[DW_OP_deref_type] = SIZE_TYPE,
	[DW_OP_GNU_deref_type] = SIZE_TYPE,
	[DW_OP_convert] = TYPE,
	[DW_OP_GNU_convert] = TYPE,
	[DW_OP_reinterpret] = TYPE,
	[DW_OP_GNU_reinterpret] = TYPE,
};

static struct cursor cursor_over(struct cursor_src *src, const uint8_t *expr, uint64_t n)
{
	*src = (struct cursor_src){.file = "", .section = "a location expression", .base = expr};
	return cursor_of(src, expr, n, false, NULL);
}

/* Step over the operands; @ret_block: of a BLOCK its bytes. */
static void skip(struct cursor *c, enum operands operands, struct cursor *ret_block)
{
	switch (operands) {
	case BYTES_1:
		cur_bytes(c, 1);
		return;
	case BYTES_2:
		cur_bytes(c, 2);
		return;
	case BYTES_4:
	case REMOVED:
		cur_bytes(c, 4);
		return;
	case BYTES_8:
		cur_bytes(c, 8);
		return;
	case NUMBERS:
	case REGISTER_TYPE:
		cur_uleb(c);
		cur_uleb(c);
		return;
	case REGISTER_SIGNED:
		cur_uleb(c);
		cur_sleb(c);
		return;
	case SIGNED:
		cur_sleb(c);
		return;
	case NUMBER:
	case INDEX_ADDRESS:
	case INDEX_CONSTANT:
	case TYPE:
		cur_uleb(c);
		return;
	case BLOCK:
		*ret_block = cur_sub(c, cur_uleb(c));
		return;
	case SIZE_TYPE:
		cur_u8(c);
		cur_uleb(c);
		return;
	case CONSTANT_TYPE:
		cur_uleb(c);
		cur_bytes(c, cur_u8(c));
		return;
	case UNKNOWN:
	case NOTHING:
		return;
	}
}

void out_expr_asks(const uint8_t *expr, uint64_t n, uint32_t *ret)
{
	struct cursor_src src;
	struct cursor c = cursor_over(&src, expr, n), block = {0};
	while (cur_more(&c)) {
		uint8_t op = cur_u8(&c);
		if (all_operands[op] == UNKNOWN)
			return;
		skip(&c, all_operands[op], &block);
		if (c.failed)
			return;
		if (all_operands[op] == REMOVED)
			*ret |= ASKED_REMOVED;
		bool is_entry = op == DW_OP_entry_value || op == DW_OP_GNU_entry_value;
		if (is_entry && cur_left(&block) == 1 && block.pos[0] >= DW_OP_reg0 &&
		    block.pos[0] < DW_OP_reg0 + 16)
			*ret |= 1u << (block.pos[0] - DW_OP_reg0);
	}
}

/* The stand-in of a base type, as int_type_at() of loc/expr.c reads it. */
static uint32_t int_type(const struct dw_unit *unit, uint64_t off)
{
	struct dw_die die;
	if (!off)
		return 0;
	if (dw_die_near(unit, dw_unit_off(unit) + off, &die, NULL) != 1)
		return OUT_NO_INT_TYPE;
	uint64_t size = dw_udata(&die, DW_AT_byte_size, 0), enc = dw_udata(&die, DW_AT_encoding, 0);
	bool is_signed = enc == DW_ATE_signed || enc == DW_ATE_signed_char;
	bool is_unsigned = enc == DW_ATE_unsigned || enc == DW_ATE_unsigned_char ||
			   enc == DW_ATE_boolean || enc == DW_ATE_UTF || enc == DW_ATE_address;
	if ((!is_signed && !is_unsigned) || size < 1 || size > OUT_INT_BYTES_MAX)
		return OUT_NO_INT_TYPE;
	return out_int_type((unsigned int)size, is_signed);
}

/* ---- writing ---- */

struct copy {
	const struct dw_unit *unit;
	struct bytes to;
	VEC(struct removed_ref) refs; /* counted from the start of the expression */
};

static void put_indexed(struct copy *x, uint64_t index, uint8_t op, uint8_t direct)
{
	uint64_t value = 0;
	/* There is no .debug_addr: an address that cannot be read here cannot be read there. */
	if (dw_unit_addrx(x->unit, index, &value, NULL) != 1) {
		put_u8(&x->to, op);
		put_uleb(&x->to, index);
		return;
	}
	put_u8(&x->to, direct);
	out_u64(&x->to, value);
}

static void put_type(struct copy *x, uint64_t off)
{
	put_uleb(&x->to, int_type(x->unit, off));
}

static void put_constant(struct copy *x, struct cursor *c)
{
	put_type(x, cur_uleb(c));
	uint8_t n = cur_u8(c);
	put_u8(&x->to, n);
	put_bytes(&x->to, cur_bytes(c, n), n);
}

static void put_removed(struct copy *x, uint64_t off)
{
	struct removed_ref ref = {.at = (uint32_t)x->to.v.n, .die = dw_unit_off(x->unit) + off};
	if (!VEC_ADD(&x->refs, ref))
		x->to.failed = true;
	put_u32(&x->to, 0);
}

/*
 * One that refers to something else; @c is at its operands, which are there. False: it is to be
 * copied.
 */
static bool put_changed(struct copy *x, uint8_t op, struct cursor c)
{
	switch ((enum operands)all_operands[op]) {
	case INDEX_ADDRESS:
		put_indexed(x, cur_uleb(&c), op, DW_OP_addr);
		return true;
	case INDEX_CONSTANT:
		put_indexed(x, cur_uleb(&c), op, DW_OP_const8u);
		return true;
	case REGISTER_TYPE:
		put_u8(&x->to, op);
		put_uleb(&x->to, cur_uleb(&c));
		put_type(x, cur_uleb(&c));
		return true;
	case TYPE:
		put_u8(&x->to, op);
		put_type(x, cur_uleb(&c));
		return true;
	case SIZE_TYPE:
		put_u8(&x->to, op);
		put_u8(&x->to, cur_u8(&c));
		put_type(x, cur_uleb(&c));
		return true;
	case CONSTANT_TYPE:
		put_u8(&x->to, op);
		put_constant(x, &c);
		return true;
	case REMOVED:
		put_u8(&x->to, op);
		put_removed(x, cur_u32(&c));
		return true;
	default:
		return false;
	}
}

static void copy_all(struct copy *x, struct cursor *c)
{
	struct cursor block;
	while (cur_more(c)) {
		const uint8_t *from = c->pos;
		uint8_t op = cur_u8(c);
		struct cursor operands = *c;
		skip(c, all_operands[op], &block);
		if (c->failed) {
			put_bytes(&x->to, from, (size_t)(c->end - from));
			return;
		}
		if (!put_changed(x, op, operands))
			put_bytes(&x->to, from, (size_t)(c->pos - from));
		if (all_operands[op] == UNKNOWN)
			return;
	}
}

void out_expr(struct out_unit *u, struct bytes *to, bool in_list, const struct dw_unit *unit,
	      const uint8_t *expr, uint64_t n)
{
	struct cursor_src src;
	struct cursor c = cursor_over(&src, expr, n);
	struct copy x = {.unit = unit};
	copy_all(&x, &c);
	put_uleb(to, x.to.v.n);
	size_t base = to->v.n;
	put_bytes(to, x.to.v.p, x.to.v.n);
	for (size_t i = 0; i < x.refs.n; i++) {
		struct removed_ref ref = {.at = (uint32_t)base + x.refs.p[i].at,
					  .in_list = in_list,
					  .die = x.refs.p[i].die};
		if (!VEC_ADD(&u->refs, ref))
			to->failed = true;
	}
	to->failed |= x.to.failed;
	VEC_FREE(&x.to.v);
	VEC_FREE(&x.refs);
}
