/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/table.h"

#include "insn/zydis.h"

enum { ENTRY_BYTES = 4, WHOLE_BYTES = 8 };

static bool is_general(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && zydis_dwarf_reg(op->reg.value) >= 0;
}

/* The low byte of a register by its number; not ah, bh, ch, dh. */
static bool is_low(const ZydisDecodedOperand *op)
{
	return is_general(op) &&
	       (op->reg.value < ZYDIS_REGISTER_AH || op->reg.value > ZYDIS_REGISTER_BH);
}

static uint8_t number(const ZydisDecodedOperand *op)
{
	return (uint8_t)zydis_dwarf_reg(op->reg.value);
}

/* A number that an operand of @bits compares with: without what the sign has above them. */
static uint64_t unsigned_number(const ZydisDecodedOperand *op, unsigned int bits)
{
	return op->imm.value.u & (bits < 64 ? (1ull << bits) - 1 : UINT64_MAX);
}

static void register_and_number(struct insn_table *t, enum insn_table_kind kind,
				const ZydisDecodedOperand *ops)
{
	if (!is_low(&ops[0]) || ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	t->kind = kind;
	t->to = t->from = number(&ops[0]);
	t->value = unsigned_number(&ops[1], ops[0].size);
}

/* Writes of 8 and 16 bits keep the rest of the register. */
static void copy(struct insn_table *t, const ZydisDecodedOperand *ops)
{
	if (!is_low(&ops[0]) || !is_low(&ops[1]) || ops[0].size < 32)
		return;
	t->kind = INSN_TABLE_COPY;
	t->to = number(&ops[0]);
	t->from = number(&ops[1]);
}

static bool is_indexed(const ZydisDecodedOperand *op, unsigned int scale)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.scale == scale &&
	       zydis_reg_bit(op->mem.index) &&
	       ZydisRegisterGetClass(op->mem.index) == ZYDIS_REGCLASS_GPR64 &&
	       (op->mem.segment == ZYDIS_REGISTER_DS || op->mem.segment == ZYDIS_REGISTER_SS);
}

static void load(struct insn_table *t, const ZydisDecodedOperand *ops)
{
	const ZydisDecodedOperand *from = &ops[1];

	if (ops[0].size != 64 || !is_indexed(from, ENTRY_BYTES) || from->mem.disp.value ||
	    ZydisRegisterGetClass(from->mem.base) != ZYDIS_REGCLASS_GPR64)
		return;
	t->kind = INSN_TABLE_LOAD;
	t->to = number(&ops[0]);
	t->base = (uint8_t)zydis_dwarf_reg(from->mem.base);
	t->index = (uint8_t)zydis_dwarf_reg(from->mem.index);
}

static void address(struct insn_table *t, const ZydisDecodedOperand *ops, uint64_t end)
{
	if (ops[0].size != 64 || ops[1].mem.base != ZYDIS_REGISTER_RIP)
		return;
	t->kind = INSN_TABLE_ADDRESS;
	t->to = number(&ops[0]);
	t->value = end + (uint64_t)ops[1].mem.disp.value;
}

static void sum(struct insn_table *t, const ZydisDecodedOperand *ops)
{
	if (!is_general(&ops[0]) || !is_general(&ops[1]) || ops[0].size != 64)
		return;
	t->kind = INSN_TABLE_SUM;
	t->to = number(&ops[0]);
	t->from = number(&ops[1]);
}

static void jump(struct insn_table *t, const ZydisDecodedOperand *op)
{
	if (is_general(op)) {
		t->kind = INSN_TABLE_JUMP;
		t->from = number(op);
	} else if (is_indexed(op, WHOLE_BYTES) && op->mem.base == ZYDIS_REGISTER_NONE &&
		   op->mem.disp.value >= 0) {
		t->kind = INSN_TABLE_JUMP_WHOLE;
		t->index = (uint8_t)zydis_dwarf_reg(op->mem.index);
		t->value = (uint64_t)op->mem.disp.value;
	}
}

static enum insn_relation relation(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JNBE:
		return INSN_ABOVE;
	case ZYDIS_MNEMONIC_JNB:
		return INSN_ABOVE_OR_EQUAL;
	case ZYDIS_MNEMONIC_JB:
		return INSN_BELOW;
	case ZYDIS_MNEMONIC_JBE:
		return INSN_BELOW_OR_EQUAL;
	default:
		return INSN_UNRELATED;
	}
}

static bool writes_flags(const ZydisDecodedInstruction *zi)
{
	const ZydisAccessedFlags *f = zi->cpu_flags;

	return f && f->modified | f->set_0 | f->set_1 | f->undefined;
}

static void describe(struct insn_table *t, const ZydisDecodedInstruction *zi,
		     const ZydisDecodedOperand *ops, uint64_t end)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_CMP:
		register_and_number(t, INSN_TABLE_COMPARE, ops);
		break;
	case ZYDIS_MNEMONIC_AND:
		if (ops[0].size >= 32)
			register_and_number(t, INSN_TABLE_MASK, ops);
		break;
	case ZYDIS_MNEMONIC_MOVSXD:
		load(t, ops);
		if (t->kind == INSN_TABLE_OTHER)
			copy(t, ops);
		break;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_CDQE:
		copy(t, ops);
		break;
	case ZYDIS_MNEMONIC_MOVSX:
		/* A byte of 128 or more, which a comparison may let pass, is negative after it. */
		if (ops[1].size > 8)
			copy(t, ops);
		break;
	case ZYDIS_MNEMONIC_LEA:
		address(t, ops, end);
		break;
	case ZYDIS_MNEMONIC_ADD:
		sum(t, ops);
		break;
	case ZYDIS_MNEMONIC_JMP:
		jump(t, ops);
		break;
	default:
		break;
	}
}

bool insn_table(const uint8_t *bytes, size_t n, uint64_t at, struct insn_table *ret)
{
	ZydisDecoder d = zydis_decoder();
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct insn insn;

	*ret = (struct insn_table){0};
	if (!zydis_full(&d, bytes, n, &zi, ops))
		return false;
	insn = zydis_insn(&zi, ops, at);
	ret->writes = insn.writes;
	ret->writes_flags = writes_flags(&zi);
	if (insn.flow == INSN_CALL || insn.flow == INSN_CALL_INDIRECT || insn.flow == INSN_TRAP) {
		ret->writes |= INSN_CALL_WRITES;
		ret->writes_flags = true;
	}
	if (insn.flow == INSN_BRANCH) {
		ret->kind = INSN_TABLE_BRANCH;
		ret->relation = relation(zi.mnemonic);
	} else {
		describe(ret, &zi, ops, at + zi.length);
	}
	return true;
}
