/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/values.h"

#include "insn/zydis.h"

static bool is_general64(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_GPR64;
}

static uint16_t bit(const ZydisDecodedOperand *op)
{
	return (uint16_t)(1u << zydis_dwarf_reg(op->reg.value));
}

static void move(struct insn_values *v, const ZydisDecodedOperand *to,
		 const ZydisDecodedOperand *from)
{
	v->moved |= bit(to);
	v->from[zydis_dwarf_reg(to->reg.value)] = (uint8_t)zydis_dwarf_reg(from->reg.value);
}

/* All 64 bits of @to come from @from. False: not so. */
static bool copy(struct insn_values *v, const ZydisDecodedOperand *to,
		 const ZydisDecodedOperand *from)
{
	if (!is_general64(to))
		return false;
	if (is_general64(from))
		move(v, to, from);
	else if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	else
		v->loaded |= bit(to);
	return true;
}

/* "lea N(%r)" */
static bool lea(struct insn_values *v, const ZydisDecodedOperand *to,
		const ZydisDecodedOperand *address)
{
	bool is_sum = is_general64(to) && address->mem.index == ZYDIS_REGISTER_NONE &&
		      ZydisRegisterGetClass(address->mem.base) == ZYDIS_REGCLASS_GPR64;
	if (!is_sum)
		return false;
	v->moved |= bit(to);
	v->from[zydis_dwarf_reg(to->reg.value)] = (uint8_t)zydis_dwarf_reg(address->mem.base);
	v->changed |= address->mem.disp.value ? bit(to) : 0;
	return true;
}

static bool exchange(struct insn_values *v, const ZydisDecodedOperand *a,
		     const ZydisDecodedOperand *b)
{
	if (is_general64(a))
		return copy(v, a, b) && (!is_general64(b) || copy(v, b, a));
	return copy(v, b, a);
}

static bool is_one_register(const ZydisDecodedOperand *ops)
{
	return is_general64(&ops[0]) && is_general64(&ops[1]) &&
	       ops[0].reg.value == ops[1].reg.value;
}

/* True if it keeps part of its inputs. False: everything that is written is computed anew. */
static bool keeps(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
		  struct insn_values *v)
{
	if (zi->meta.category == ZYDIS_CATEGORY_CMOV) {
		bool is_copy = copy(v, &ops[0], &ops[1]);
		v->may_keep = v->moved | v->loaded;
		return is_copy;
	}
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_POP:
		/* The memory that pop reads is a hidden operand. */
		return copy(v, &ops[0], &ops[zi->mnemonic == ZYDIS_MNEMONIC_POP ? 2 : 1]);
	case ZYDIS_MNEMONIC_LEAVE:
		v->loaded = (uint16_t)(1u << zydis_dwarf_reg(ZYDIS_REGISTER_RBP));
		return true;
	case ZYDIS_MNEMONIC_LEA:
		return lea(v, &ops[0], &ops[1]);
	case ZYDIS_MNEMONIC_XCHG:
		return exchange(v, &ops[0], &ops[1]);
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
		return is_one_register(ops);
	case ZYDIS_MNEMONIC_ADD:
		v->changed = is_general64(&ops[0]) ? bit(&ops[0]) : 0;
		return v->changed;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_XOR:
		v->changed = is_general64(&ops[0]) && !is_one_register(ops) ? bit(&ops[0]) : 0;
		return v->changed;
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
	case ZYDIS_MNEMONIC_BSWAP:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
		v->changed = is_general64(&ops[0]) ? bit(&ops[0]) : 0;
		return v->changed;
	default:
		return false;
	}
}

bool insn_values(const uint8_t *bytes, size_t n, struct insn_values *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	*ret = (struct insn_values){0};
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return false;
	if (keeps(&zi, ops, ret))
		return true;
	*ret = (struct insn_values){0};
	for (size_t i = 0; i < zi.operand_count; i++) {
		const ZydisDecodedOperand *op = &ops[i];
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || zydis_dwarf_reg(op->reg.value) < 0)
			continue;
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			ret->computed |= bit(op);
		if (op->actions & ZYDIS_OPERAND_ACTION_CONDWRITE)
			ret->may_keep |= bit(op);
	}
	return true;
}
