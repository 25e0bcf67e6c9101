/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/carry.h"

#include "insn/zydis.h"

enum { RBP = 6, RSP = 7 };

static bool is_number(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->size >= 32 &&
	       zydis_dwarf_reg(op->reg.value) >= 0;
}

static bool is_slot(const ZydisDecodedOperand *op, struct insn_carry *c)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	int base = zydis_dwarf_reg(op->mem.base);
	c->base = (uint8_t)base;
	c->off = op->mem.disp.value;
	return base == RSP || base == RBP;
}

static enum insn_carries carries(const ZydisDecodedOperand *to, const ZydisDecodedOperand *from,
				 struct insn_carry *c)
{
	if (is_number(to))
		c->to = (uint8_t)zydis_dwarf_reg(to->reg.value);
	if (is_number(from))
		c->from = (uint8_t)zydis_dwarf_reg(from->reg.value);
	if (is_number(to) && is_number(from))
		return CARRY_COPY;
	if (is_number(from) && is_slot(to, c))
		return CARRY_SAVE;
	return is_number(to) && is_slot(from, c) ? CARRY_RESTORE : CARRY_NOTHING;
}

bool insn_carry(const uint8_t *bytes, size_t n, uint64_t at, struct insn *ret_insn,
		struct insn_carry *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	*ret = (struct insn_carry){0};
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return false;
	*ret_insn = zydis_insn(&zi, ops, at);
	if (zi.mnemonic == ZYDIS_MNEMONIC_MOV) {
		ret->what = carries(&ops[0], &ops[1], ret);
	} else if (zi.mnemonic == ZYDIS_MNEMONIC_SUB &&
		   carries(&ops[0], &ops[1], ret) == CARRY_COPY) {
		ret->what = ret->from != ret->to ? CARRY_DIFFERENCE : CARRY_NOTHING;
	}
	return true;
}
