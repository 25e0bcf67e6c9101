/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/stack.h"

#include "insn/insn.h"
#include "insn/zydis.h"

enum { FP = 6, SP = 7 };

static bool is_register(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

/* "rsp + add" or "rbp + add", as a register or as the address of lea. */
static bool source(const ZydisDecodedOperand *op, bool is_lea, enum insn_stack_from *ret,
		   int64_t *ret_add)
{
	ZydisRegister reg = ZYDIS_REGISTER_NONE;
	if (!is_lea && op->type == ZYDIS_OPERAND_TYPE_REGISTER)
		reg = op->reg.value;
	if (is_lea && op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE)
		reg = op->mem.base;
	if (reg != ZYDIS_REGISTER_RSP && reg != ZYDIS_REGISTER_RBP)
		return false;
	*ret = reg == ZYDIS_REGISTER_RSP ? STACK_FROM_SP : STACK_FROM_FP;
	*ret_add = is_lea ? op->mem.disp.value : 0;
	return true;
}

/*
 * mov and lea to one of the two, and sums with a number; everything else that writes them makes
 * them unknown.
 */
static bool is_computed(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
			struct insn_stack *ret)
{
	bool is_sp = is_register(&ops[0], ZYDIS_REGISTER_RSP);
	enum insn_stack_from *from = is_sp ? &ret->sp : &ret->fp;
	int64_t *add = is_sp ? &ret->sp_add : &ret->fp_add;
	if (!is_sp && !is_register(&ops[0], ZYDIS_REGISTER_RBP))
		return false;
	if (zi->mnemonic == ZYDIS_MNEMONIC_MOV || zi->mnemonic == ZYDIS_MNEMONIC_LEA)
		return source(&ops[1], zi->mnemonic == ZYDIS_MNEMONIC_LEA, from, add);
	if ((zi->mnemonic != ZYDIS_MNEMONIC_ADD && zi->mnemonic != ZYDIS_MNEMONIC_SUB) ||
	    ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	*from = is_sp ? STACK_FROM_SP : STACK_FROM_FP;
	*add = zi->mnemonic == ZYDIS_MNEMONIC_ADD ? ops[1].imm.value.s : -ops[1].imm.value.s;
	return true;
}

/* Pushes and pops; Zydis gives their width as that of the hidden memory operand. */
static bool moves_stack(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
			struct insn_stack *ret)
{
	int64_t width = zi->operand_width / 8;
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		ret->sp_add = -width;
		break;
	case ZYDIS_MNEMONIC_POP:
		if (is_register(&ops[0], ZYDIS_REGISTER_RSP))
			return false;
		if (is_register(&ops[0], ZYDIS_REGISTER_RBP))
			ret->fp = STACK_UNKNOWN;
		ret->sp_add = width;
		break;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		ret->sp_add = width;
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		ret->sp = STACK_FROM_FP;
		ret->sp_add = 8;
		ret->fp = STACK_UNKNOWN;
		return true;
	default:
		return false;
	}
	ret->sp = STACK_FROM_SP;
	return true;
}

static bool writes(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops, int dwarf_reg)
{
	for (size_t i = 0; i < zi->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    zydis_dwarf_reg(ops[i].reg.value) == dwarf_reg)
			return true;
	return false;
}

static void read_flow(const ZydisDecodedInstruction *zi, const uint8_t *bytes, size_t n,
		      uint64_t at, struct insn_stack *ret)
{
	struct insn insn;
	if (!insn_decode(bytes, n, at, &insn))
		return;
	ret->target = insn.target;
	ret->is_call = insn.flow == INSN_CALL || insn.flow == INSN_CALL_INDIRECT;
	ret->is_return = insn.flow == INSN_RETURN;
	ret->jumps = insn.flow == INSN_JUMP || insn.flow == INSN_BRANCH;
	ret->goes_on = ret->is_call || insn.flow == INSN_NEXT || insn.flow == INSN_BRANCH ||
		       zi->mnemonic == ZYDIS_MNEMONIC_SYSCALL;
}

bool insn_stack(const uint8_t *bytes, size_t n, uint64_t at, struct insn_stack *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	*ret = (struct insn_stack){0};
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return false;
	ret->len = zi.length;
	ret->is_padding = zi.mnemonic == ZYDIS_MNEMONIC_NOP;
	read_flow(&zi, bytes, n, at, ret);
	if (ret->is_call) {
		if (ret->target == at + zi.length) {
			ret->sp = STACK_FROM_SP;
			ret->sp_add = -8;
		}
		return true;
	}
	if (moves_stack(&zi, ops, ret) || is_computed(&zi, ops, ret))
		return true;
	if (writes(&zi, ops, SP))
		ret->sp = STACK_UNKNOWN;
	if (writes(&zi, ops, FP))
		ret->fp = STACK_UNKNOWN;
	return true;
}
