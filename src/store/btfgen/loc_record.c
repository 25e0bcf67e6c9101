/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A location is a short program over registers and memory; a record is one of six shapes:
 *
 *	steps of the piece           kind    flags of the record  says
 *	CONST c                      VALUE   CONST                c
 *	ADDR a                       VALUE   CONST ADDR           base + (a - base at link time)
 *	REG r                        VALUE   REG                  r
 *	REG r, ADD k                 VALUE   REG OFFSET           r + k
 *	REG r, [ADD k]               MEMORY  REG DEREF [OFFSET]   the value at r + k
 *	REG r, [ADD k], LOAD n       VALUE   REG DEREF [OFFSET]   the same, if n is the value's size
 *	two pieces, REG a and REG b  VALUE   REG, two numbers     8 bytes in a, the rest in b
 *
 * Whatever else there is (chains of loads, masks, shifts, values in three pieces) has no record. A
 * step that only cuts to the width of the value changes nothing of it and is dropped.
 *
 * A constant that is no address is never flagged ADDR: a null pointer stays null wherever the
 * object is loaded.
 */
#include "btfgen/loc_record.h"

enum { WORD = 8 };

/*
 * REG r and perhaps ADD k at the start of a program. Returns the number of steps that these are; 0
 * when there are none.
 */
static uint32_t reg_and_offset(const struct cairn_piece *p, struct cairn_btf_loc_param *ret)
{
	if (!p->n_steps || p->steps[0].op != CAIRN_LOC_REG)
		return 0;
	ret->flags = CAIRN_BTF_LOC_REG;
	ret->n_regs = 1;
	ret->reg[0] = p->steps[0].reg;
	if (p->n_steps < 2 || p->steps[1].op != CAIRN_LOC_ADD ||
	    p->steps[1].operand != CAIRN_LOC_IMM)
		return 1;
	ret->offset = p->steps[1].imm;
	if (ret->offset)
		ret->flags |= CAIRN_BTF_LOC_OFFSET;
	return 2;
}

/* The constant as its type has it: cut to size, and negative where the type has negative values. */
static void set_constant(int64_t c, const struct loc_value *value, struct cairn_btf_loc_param *ret)
{
	unsigned int unused =
		value->bytes && value->bytes < WORD ? 64 - 8 * (unsigned int)value->bytes : 0;
	ret->flags = CAIRN_BTF_LOC_CONST;
	ret->value = (int64_t)((uint64_t)c << unused >> unused);
	if (!value->is_signed)
		return;
	int64_t s = (int64_t)((uint64_t)c << unused) >> unused;
	if (s >= 0)
		return;
	ret->value = s;
	ret->flags |= CAIRN_BTF_LOC_SIGNED;
}

static bool set_bytes(const struct cairn_piece *p, const struct loc_value *value,
		      struct cairn_btf_loc_param *ret)
{
	uint64_t c = 0;
	if (p->size > WORD || (value->bytes && p->size < value->bytes))
		return false;
	for (uint32_t i = 0; i < p->size; i++)
		c |= (uint64_t)p->bytes[i] << 8 * i;
	set_constant((int64_t)c, value, ret);
	return true;
}

/*
 * Whether the steps from @s, of at most @left, only change bits that the value does not have.
 * Returns their number.
 */
static uint32_t cuts_only(const struct cairn_loc_step *s, uint32_t left, uint64_t bytes)
{
	uint64_t mask = bytes < WORD ? ((uint64_t)1 << 8 * bytes) - 1 : UINT64_MAX;
	if (s->op == CAIRN_LOC_ZEXT || s->op == CAIRN_LOC_SEXT)
		return s->size >= bytes;
	if (s->operand != CAIRN_LOC_IMM)
		return 0;
	if (s->op == CAIRN_LOC_AND)
		return ((uint64_t)s->imm & mask) == mask;
	/* Up and down again: an extension from a narrower type. */
	if (s->op != CAIRN_LOC_SHL || left < 2 || s[1].operand != CAIRN_LOC_IMM ||
	    s[1].imm != s->imm)
		return 0;
	bool down = s[1].op == CAIRN_LOC_SHR || s[1].op == CAIRN_LOC_SAR;
	return down && s->imm >= 0 && s->imm < 64 && (uint64_t)(64 - s->imm) >= 8 * bytes ? 2 : 0;
}

/* A value of at most a word in one register or computed from it. */
static bool set_value(const struct cairn_piece *p, const struct loc_value *value,
		      struct cairn_btf_loc_param *ret)
{
	uint32_t n = reg_and_offset(p, ret);
	if (!n)
		return false;
	/* With an unknown width, no part can be known to be all of it. */
	if (n < p->n_steps && !value->bytes)
		return false;
	if (n < p->n_steps && p->steps[n].op == CAIRN_LOC_LOAD) {
		if (p->steps[n++].size < value->bytes)
			return false;
		ret->flags |= CAIRN_BTF_LOC_DEREF;
	}
	while (n < p->n_steps) {
		uint32_t cut = cuts_only(&p->steps[n], p->n_steps - n, value->bytes);
		if (!cut)
			return false;
		n += cut;
	}
	return true;
}

static bool two_registers(const struct cairn_location *loc, const struct loc_value *value,
			  struct cairn_btf_loc_param *ret)
{
	const struct cairn_piece *a = &loc->pieces[0], *b = &loc->pieces[1];
	struct cairn_btf_loc_param low = {0}, high = {0};
	if (loc->n_pieces != 2 || a->kind != CAIRN_PIECE_VALUE || b->kind != CAIRN_PIECE_VALUE ||
	    a->off || a->size != WORD || b->off != WORD || value->bytes <= WORD ||
	    value->bytes > 2 * WORD)
		return false;
	if (reg_and_offset(a, &low) != 1 || a->n_steps != 1 || reg_and_offset(b, &high) != 1 ||
	    b->n_steps != 1)
		return false;
	ret->flags = CAIRN_BTF_LOC_REG;
	ret->n_regs = 2;
	ret->reg[0] = low.reg[0];
	ret->reg[1] = high.reg[0];
	return true;
}

static bool is_whole(const struct cairn_piece *p, const struct loc_value *value)
{
	return !p->off && (!p->size || p->size >= value->bytes);
}

bool loc_record(const struct cairn_location *loc, const struct loc_value *value,
		struct cairn_btf_loc_param *ret, enum cairn_btfgen_loss *ret_loss)
{
	const struct cairn_piece *p = loc->pieces;
	*ret = (struct cairn_btf_loc_param){
		.size = value->bytes <= UINT32_MAX ? (uint32_t)value->bytes : 0};
	if (!ret->size)
		ret->size = WORD;
	*ret_loss = CAIRN_N_LOSSES;
	if (loc->why != CAIRN_AVAILABLE || !loc->n_pieces)
		return false;
	*ret_loss = CAIRN_LOSS_LOC_PIECES;
	if (loc->n_pieces != 1 || !is_whole(p, value))
		return loc->n_pieces == 2 && two_registers(loc, value, ret);
	if (p->kind == CAIRN_PIECE_BYTES) {
		*ret_loss = CAIRN_LOSS_LOC_BYTES;
		return set_bytes(p, value, ret);
	}
	*ret_loss = CAIRN_LOSS_LOC_LONG;
	if (p->kind == CAIRN_PIECE_MEMORY) {
		bool plain = reg_and_offset(p, ret) == p->n_steps && p->n_steps;
		ret->flags |= CAIRN_BTF_LOC_DEREF;
		return plain;
	}
	if (p->kind != CAIRN_PIECE_VALUE || !p->n_steps || value->bytes > WORD)
		return false;
	if (p->n_steps == 1 && p->steps[0].op == CAIRN_LOC_CONST) {
		set_constant(p->steps[0].imm, value, ret);
		return true;
	}
	if (p->n_steps == 1 && p->steps[0].op == CAIRN_LOC_ADDR) {
		*ret_loss = CAIRN_LOSS_LOC_FAR;
		ret->flags = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_ADDR;
		ret->value = (int64_t)((uint64_t)p->steps[0].imm - value->base);
		return (uint64_t)p->steps[0].imm >= value->base;
	}
	return set_value(p, value, ret);
}
