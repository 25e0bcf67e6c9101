/* SPDX-License-Identifier: BSD-2-Clause */
/* The decoder as this module uses it; no other module of the library sees Zydis. */
#ifndef INSN_ZYDIS_H
#define INSN_ZYDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#include "insn/insn.h"

_Static_assert(INSN_MAX_BYTES == ZYDIS_MAX_INSTRUCTION_LENGTH, "one length of instructions");

/* A decoder for 64-bit code. Making one sets a few words; it needs no lock and no storage. */
static inline ZydisDecoder zydis_decoder(void)
{
	ZydisDecoder d;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return d;
}

static inline size_t zydis_window(size_t n)
{
	return n < INSN_MAX_BYTES ? n : INSN_MAX_BYTES;
}

/* Zydis also knows the Xeon Phi of 2012, whose encodings mean something else everywhere else. */
static inline bool zydis_is_foreign(const ZydisDecodedInstruction *zi)
{
	return zi->meta.isa_set >= ZYDIS_ISA_SET_KNCE &&
	       zi->meta.isa_set <= ZYDIS_ISA_SET_KNC_PF_HINT;
}

/* Prefixes, opcode and length, no operands; false when there is no valid instruction. */
static inline bool zydis_instruction(const ZydisDecoder *d, const uint8_t *bytes, size_t n,
				     ZydisDecodedInstruction *ret)
{
	ZyanStatus rc = ZydisDecoderDecodeInstruction(d, NULL, bytes, zydis_window(n), ret);
	return ZYAN_SUCCESS(rc) && !zydis_is_foreign(ret);
}

/*
 * The same with all operands, hidden ones included. A displacement that there is none of is 0:
 * version 5 of the library has no flag for it.
 */
static inline bool zydis_full(const ZydisDecoder *d, const uint8_t *bytes, size_t n,
			      ZydisDecodedInstruction *ret,
			      ZydisDecodedOperand ret_ops[ZYDIS_MAX_OPERAND_COUNT])
{
	ZyanStatus rc = ZydisDecoderDecodeFull(d, bytes, zydis_window(n), ret, ret_ops);
	return ZYAN_SUCCESS(rc) && !zydis_is_foreign(ret);
}

/* The result of insn_decode() for an instruction at @at that zydis_full() has decoded. */
struct insn zydis_insn(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *ops,
		       uint64_t at);

/* DWARF number of the general register that holds @reg, 0 to 15; -1 for any other register. */
int zydis_dwarf_reg(ZydisRegister reg);
/* The same as a bit of a mask; 0 for any other register. */
uint16_t zydis_reg_bit(ZydisRegister reg);

#endif
