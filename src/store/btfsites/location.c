/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A LOC_PARAM as a location
 *
 *	record             location
 *	CONST              CONST c
 *	CONST ADDR         ADDR a, counted from the object's lowest section
 *	REG                REG r
 *	REG OFFSET         REG r, ADD k
 *	REG DEREF OFFSET   the value is in memory at REG r, ADD k
 *	REG, two numbers   8 bytes in the first, the rest in the second
 *
 * The writer's table is in btfgen/loc_record.c.
 */
#include <errno.h>

#include "btfsites/btfsites.h"

enum { GENERAL = 16, VECTOR_FIRST = 17, VECTOR_LAST = 32 };

static int unavailable(struct cairn_location *ret, enum cairn_unavailable why)
{
	*ret = (struct cairn_location){.why = why};
	return 0;
}

/* One piece of at most two steps. */
static int one_piece(struct arena *arena, enum cairn_piece_kind kind, struct cairn_loc_step first,
		     int64_t add, struct cairn_location *ret)
{
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	struct cairn_loc_step *steps = arena_array(arena, 2, sizeof(*steps));
	if (!piece || !steps)
		return -ENOMEM;
	steps[0] = first;
	steps[1] = (struct cairn_loc_step){.op = CAIRN_LOC_ADD, .imm = add};
	*piece = (struct cairn_piece){.kind = kind, .n_steps = add ? 2 : 1, .steps = steps};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 0;
}

static int two_registers(const struct cairn_btf_loc_param *p, uint64_t bytes, struct arena *arena,
			 struct cairn_location *ret)
{
	struct cairn_piece *pieces = arena_array(arena, 2, sizeof(*pieces));
	struct cairn_loc_step *steps = arena_array(arena, 2, sizeof(*steps));
	if (!pieces || !steps)
		return -ENOMEM;
	for (uint32_t i = 0; i < 2; i++) {
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = (uint8_t)p->reg[i]};
		pieces[i] = (struct cairn_piece){.off = i * BTFSITES_WORD,
						 .size = i ? (uint32_t)bytes - BTFSITES_WORD
							   : BTFSITES_WORD,
						 .n_steps = 1,
						 .steps = &steps[i]};
	}
	*ret = (struct cairn_location){.n_pieces = 2, .pieces = pieces};
	return 0;
}

/* Why the registers cannot be read; CAIRN_AVAILABLE: they can. */
static enum cairn_unavailable trouble_with_registers(const struct cairn_btf_loc_param *p)
{
	for (uint32_t i = 0; i < p->n_regs; i++) {
		if (p->reg[i] == CAIRN_BTF_LOC_FBREG)
			return CAIRN_UNAVAIL_NO_CFA;
		if (p->reg[i] >= VECTOR_FIRST && p->reg[i] <= VECTOR_LAST)
			return CAIRN_UNAVAIL_VECTOR_REGISTER;
		if (p->reg[i] >= GENERAL)
			return CAIRN_UNAVAIL_UNSUPPORTED;
	}
	return CAIRN_AVAILABLE;
}

static int constant(const struct btf_sites *s, const struct cairn_btf_loc_param *p,
		    struct arena *arena, struct cairn_location *ret)
{
	struct cairn_loc_step step = {.op = CAIRN_LOC_CONST, .imm = p->value};
	if (p->flags & CAIRN_BTF_LOC_ADDR) {
		/* Its sections are placed one by one: there is no base. */
		if (s->relocatable)
			return unavailable(ret, CAIRN_UNAVAIL_UNSUPPORTED);
		step.op = CAIRN_LOC_ADDR;
		step.imm = (int64_t)(s->base + (uint64_t)p->value);
	}
	return one_piece(arena, CAIRN_PIECE_VALUE, step, 0, ret);
}

static int in_registers(const struct cairn_btf_loc_param *p, uint64_t bytes, struct arena *arena,
			struct cairn_location *ret)
{
	enum cairn_unavailable why = trouble_with_registers(p);
	bool in_memory = p->flags & CAIRN_BTF_LOC_DEREF;
	if (why != CAIRN_AVAILABLE)
		return unavailable(ret, why);
	/* The record has fewer bytes than the parameter's type. */
	if (bytes > p->size || (!in_memory && bytes > (uint64_t)p->n_regs * BTFSITES_WORD))
		return unavailable(ret, CAIRN_UNAVAIL_PARTLY);
	if (p->n_regs == 2 && bytes <= BTFSITES_WORD)
		return unavailable(ret, CAIRN_UNAVAIL_DAMAGED);
	if (p->n_regs == 2)
		return two_registers(p, bytes, arena, ret);
	struct cairn_loc_step step = {.op = CAIRN_LOC_REG, .reg = (uint8_t)p->reg[0]};
	return one_piece(arena, in_memory ? CAIRN_PIECE_MEMORY : CAIRN_PIECE_VALUE, step,
			 p->flags & CAIRN_BTF_LOC_OFFSET ? p->offset : 0, ret);
}

int btfsites_location(const struct btf_sites *s, uint32_t param, uint64_t bytes,
		      struct arena *arena, struct cairn_location *ret)
{
	struct cairn_btf_type t;
	if (!param)
		return unavailable(ret, CAIRN_UNAVAIL_NOT_RECORDED);
	if (!cairn_btf_type(s->inlined, param, &t) || t.kind != CAIRN_BTF_LOC_PARAM)
		return unavailable(ret, CAIRN_UNAVAIL_DAMAGED);
	struct cairn_btf_loc_param p = cairn_btf_loc_param(s->inlined, &t);
	if (p.flags & CAIRN_BTF_LOC_CONST)
		return bytes > BTFSITES_WORD ? unavailable(ret, CAIRN_UNAVAIL_PARTLY)
					     : constant(s, &p, arena, ret);
	if (p.flags & CAIRN_BTF_LOC_REG)
		return in_registers(&p, bytes, arena, ret);
	return unavailable(ret, CAIRN_UNAVAIL_NOT_RECORDED);
}
