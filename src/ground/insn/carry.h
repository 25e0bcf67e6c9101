/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How one instruction carries a number on: from a register to another one, to the stack, and back.
 */
#ifndef INSN_CARRY_H
#define INSN_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "insn/insn.h"

enum insn_carries {
	CARRY_NOTHING,    /* any other instruction */
	CARRY_DIFFERENCE, /* sub %from,%to of two registers: a new number */
	CARRY_COPY,       /* mov %from,%to */
	CARRY_SAVE,       /* mov %from,off(%base) */
	CARRY_RESTORE,    /* mov off(%base),%to */
};

/* Registers by DWARF number. */
struct insn_carry {
	enum insn_carries what;
	uint8_t from, to;
	uint8_t base; /* of a stack slot: rsp or rbp */
	int64_t off;
};

/*
 * insn_carry - decode one instruction
 *
 * @ret_insn  as of insn_decode(), of which @at is the address
 *
 * For general registers, 32 or 64 bits of them.
 * Returns false when the bytes are no instruction. Cost: one decode, no allocation. Threads: any.
 */
bool insn_carry(const uint8_t *bytes, size_t n, uint64_t at, struct insn *ret_insn,
		struct insn_carry *ret);

#endif
