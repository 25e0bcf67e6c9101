/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Expressions of one operation
 *
 * Nine of ten arguments are in a register, a constant, at a fixed distance from a register's
 * content, or gone except for the memory that they point to. Those are built here without the stack
 * machine of expr.c.
 */
#include "loc/one_op.h"

#include <errno.h>

#include "dwarf/constants.h"

enum { REG_COUNT = 16 };

/* The steps for a register are the same for all locations, and shared. */
#define IN_REGISTER(n)                                                                             \
	{                                                                                          \
		.op = CAIRN_LOC_REG, .reg = (n)                                                    \
	}
static const struct cairn_loc_step register_steps[REG_COUNT] = {
	IN_REGISTER(0),  IN_REGISTER(1),  IN_REGISTER(2),  IN_REGISTER(3),
	IN_REGISTER(4),  IN_REGISTER(5),  IN_REGISTER(6),  IN_REGISTER(7),
	IN_REGISTER(8),  IN_REGISTER(9),  IN_REGISTER(10), IN_REGISTER(11),
	IN_REGISTER(12), IN_REGISTER(13), IN_REGISTER(14), IN_REGISTER(15),
};
#undef IN_REGISTER
#define IN_REGISTER(n)                                                                             \
	{                                                                                          \
		.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = &register_steps[n]               \
	}
static const struct cairn_piece register_pieces[REG_COUNT] = {
	IN_REGISTER(0),  IN_REGISTER(1),  IN_REGISTER(2),  IN_REGISTER(3),
	IN_REGISTER(4),  IN_REGISTER(5),  IN_REGISTER(6),  IN_REGISTER(7),
	IN_REGISTER(8),  IN_REGISTER(9),  IN_REGISTER(10), IN_REGISTER(11),
	IN_REGISTER(12), IN_REGISTER(13), IN_REGISTER(14), IN_REGISTER(15),
};
#undef IN_REGISTER

/*
 * The constant that an operation of @n bytes pushes; false for another operation, or another
 * length.
 */
static bool constant_of(const uint8_t *p, uint64_t n, int64_t *ret)
{
	if (n == 1 && *p >= DW_OP_lit0 && *p <= DW_OP_lit31) {
		*ret = *p - DW_OP_lit0;
		return true;
	}
	switch (n << 8 | *p) {
	case 2 << 8 | DW_OP_const1u:
		*ret = p[1];
		return true;
	case 2 << 8 | DW_OP_const1s:
		*ret = (int8_t)p[1];
		return true;
	case 3 << 8 | DW_OP_const2u:
		*ret = p[1] | p[2] << 8;
		return true;
	case 3 << 8 | DW_OP_const2s:
		*ret = (int16_t)(p[1] | p[2] << 8);
		return true;
	}
	return false;
}

/* The distance of a DW_OP_bregN of @n bytes; false when it is not short. */
static bool distance_of(const uint8_t *p, uint64_t n, int64_t *ret)
{
	if (n == 2 && p[1] < 0x80) {
		*ret = p[1] - (p[1] & 0x40) * 2;
		return true;
	}
	if (n != 3 || p[1] < 0x80 || p[2] >= 0x80)
		return false;
	*ret = (p[1] & 0x7f) + p[2] * 0x80 - (p[2] & 0x40) * 0x100;
	return true;
}

/* A register and a distance: a value, or where the value is. */
static int near_register(uint8_t reg, int64_t distance, bool is_value, struct arena *arena,
			 struct cairn_location *ret)
{
	struct {
		struct cairn_piece piece;
		struct cairn_loc_step steps[2];
	} *made = arena_alloc(arena, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->steps[0] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = reg};
	made->steps[1] = (struct cairn_loc_step){
		.op = CAIRN_LOC_ADD, .operand = CAIRN_LOC_IMM, .imm = distance};
	made->piece =
		(struct cairn_piece){.kind = is_value ? CAIRN_PIECE_VALUE : CAIRN_PIECE_MEMORY,
				     .n_steps = distance ? 2 : 1,
				     .steps = made->steps};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = &made->piece};
	return 1;
}

int loc_one_op(const uint8_t *expr, uint64_t len, struct arena *arena, struct cairn_location *ret)
{
	int64_t v;
	if (!len)
		return 0;
	if (len == 1 && (unsigned int)(*expr - DW_OP_reg0) < REG_COUNT) {
		*ret = (struct cairn_location){.n_pieces = 1,
					       .pieces = &register_pieces[*expr - DW_OP_reg0]};
		return 1;
	}
	if (*expr == DW_OP_implicit_pointer || *expr == DW_OP_GNU_implicit_pointer) {
		*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_IMPLICIT_POINTER};
		return 1;
	}
	bool is_value = expr[len - 1] == DW_OP_stack_value;
	uint64_t n = len - is_value;
	if (is_value && n && constant_of(expr, n, &v))
		return loc_constant(v, arena, ret) < 0 ? -ENOMEM : 1;
	if (n && (unsigned int)(*expr - DW_OP_breg0) < REG_COUNT && distance_of(expr, n, &v))
		return near_register(*expr - DW_OP_breg0, v, is_value, arena, ret);
	return 0;
}

int loc_constant(int64_t value, struct arena *arena, struct cairn_location *ret)
{
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	struct cairn_loc_step *step = arena_alloc(arena, sizeof(*step));
	if (!piece || !step)
		return -ENOMEM;
	*step = (struct cairn_loc_step){.op = CAIRN_LOC_CONST, .imm = value};
	*piece = (struct cairn_piece){.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = step};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 0;
}
