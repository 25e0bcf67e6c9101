/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jumps through a table of a switch
 *
 * Code that may be loaded anywhere keeps a switch's targets as distances from their table, 32 bits
 * each:
 *
 *	lea    table(%rip), %rdx
 *	movslq (%rdx,%rax,4), %rax	an entry
 *	add    %rdx, %rax		entry + table
 *	jmp    *%rax
 *
 * Pointers to functions are stored whole, also in tables of them. So a jump to such a sum is one of
 * a switch, and stays in its function. A value that is loaded whole, as code linked to one address
 * does (jmp *table(,%rax,8)), may be either.
 */
#include "insn/insn.h"
#include "insn/zydis.h"

enum { ENTRY_BYTES = 4 };

/* The general registers that hold an entry, and an entry + something, as bit masks. */
struct holds {
	uint16_t entries, sums;
};

static bool is_entry(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	return zi->mnemonic == ZYDIS_MNEMONIC_MOVSXD && zi->operand_width == 64 &&
	       ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY && ops[1].mem.scale == ENTRY_BYTES &&
	       zydis_reg_bit(ops[1].mem.index);
}

/* For an addition of two registers the mask of both; else 0. */
static uint16_t added(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops)
{
	if (zi->mnemonic != ZYDIS_MNEMONIC_ADD || zi->operand_width != 64 ||
	    ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return 0;
	return zydis_reg_bit(ops[0].reg.value) | zydis_reg_bit(ops[1].reg.value);
}

static void note(struct holds *h, const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
		 uint16_t writes)
{
	bool is_sum = (added(zi, ops) & h->entries) != 0;
	h->entries &= (uint16_t)~writes;
	h->sums &= (uint16_t)~writes;
	if (is_entry(zi, ops))
		h->entries |= zydis_reg_bit(ops[0].reg.value);
	else if (is_sum)
		h->sums |= zydis_reg_bit(ops[0].reg.value);
}

bool insn_is_table_jump(const uint8_t *code, size_t n)
{
	ZydisDecoder d = zydis_decoder();
	struct holds h = {0};
	while (n) {
		ZydisDecodedInstruction zi;
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		struct insn insn;
		if (!zydis_full(&d, code, n, &zi, ops) || !insn_decode(code, n, 0, &insn))
			return false;
		if (insn.len == n)
			return insn.flow == INSN_JUMP_INDIRECT &&
			       ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			       (h.sums & zydis_reg_bit(ops[0].reg.value));
		if (insn.flow != INSN_NEXT)
			h = (struct holds){0};
		note(&h, &zi, ops, insn.writes);
		code += insn.len;
		n -= insn.len;
	}
	return false;
}
