/* SPDX-License-Identifier: BSD-2-Clause */
/* How one instruction accesses a place in memory: a register and a distance from it */
#include "insn/insn.h"

#include "insn/zydis.h"

static struct insn_access access_of(const ZydisDecodedInstruction *zi,
				    const ZydisDecodedOperand *ops, unsigned int dwarf_reg,
				    int64_t off, unsigned int size)
{
	struct insn_access ret = {0};
	for (unsigned int i = 0; i < zi->operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    zydis_dwarf_reg(op->mem.base) != (int)dwarf_reg ||
		    op->mem.index != ZYDIS_REGISTER_NONE)
			continue;
		int64_t at = op->mem.disp.value;
		bool is_address = op->mem.type == ZYDIS_MEMOP_TYPE_AGEN;
		if (at >= off + (int64_t)size || at + (is_address ? 1 : op->size / 8) <= off)
			continue;
		ret.loads |= is_address || op->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		ret.takes_address |= is_address;
		ret.stores |= (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
	}
	return ret;
}

struct insn_access insn_accesses(const uint8_t *bytes, size_t n, unsigned int dwarf_reg,
				 int64_t off, unsigned int size)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return (struct insn_access){.loads = true, .stores = true, .takes_address = true};
	return access_of(&zi, ops, dwarf_reg, off, size);
}

bool insn_decode_near(const uint8_t *bytes, size_t n, unsigned int dwarf_reg, int64_t off,
		      unsigned int size, struct insn *ret, struct insn_access *access,
		      bool *stores_near)
{
	enum { WIDEST = 64 };
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	*ret = (struct insn){0};
	*access = (struct insn_access){0};
	*stores_near = false;
	if (!(insn_named_registers(bytes, n, &ret->len) >> dwarf_reg & 1))
		return true;
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return false;
	*ret = zydis_insn(&zi, ops, 0);
	*access = access_of(&zi, ops, dwarf_reg, off, size);
	*stores_near = access_of(&zi, ops, dwarf_reg, off - WIDEST + 1, 2 * WIDEST - 1).stores;
	return true;
}

bool insn_stores_register(const uint8_t *bytes, size_t n, unsigned int dwarf_reg, int64_t off,
			  unsigned int *ret_reg, unsigned int *ret_bytes)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	if (!zydis_full(&d, bytes, n, &zi, ops) || zi.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY || ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	const ZydisDecodedOperandMem *to = &ops[0].mem;
	int64_t at = to->disp.value;
	bool is_high =
		ops[1].reg.value >= ZYDIS_REGISTER_AH && ops[1].reg.value <= ZYDIS_REGISTER_BH;
	int reg = zydis_dwarf_reg(ops[1].reg.value);
	if (zydis_dwarf_reg(to->base) != (int)dwarf_reg || to->index != ZYDIS_REGISTER_NONE ||
	    at != off || reg < 0 || is_high)
		return false;
	*ret_reg = (unsigned int)reg;
	*ret_bytes = ops[0].size / 8;
	return true;
}
