/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources of the values that an instruction leaves in the general registers. */
#ifndef INSN_VALUES_H
#define INSN_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Masks of registers by DWARF number. One that is in none of them is as it was. */
struct insn_values {
	uint16_t computed; /* a new value, in which 64 bits of an older one are not */
	/*
	 * 64 bits from memory or a vector register: a value stored there, perhaps an older one
	 */
	uint16_t loaded;
	uint16_t moved; /* all bits of the old value of from[] of it */
	/*
	 * then, or alone, changed in a way that can be taken back: add and sub, xor, neg, lea N(%r)
	 */
	uint16_t changed;
	uint16_t may_keep; /* of these: perhaps not, by a condition */
	uint8_t from[16];
};

/*
 * insn_values - decode one instruction
 *
 * Returns false when the bytes are no instruction. Cost: one decode, no allocation. Threads: any.
 */
bool insn_values(const uint8_t *bytes, size_t n, struct insn_values *ret);

/*
 * insn_writes_any - whether an instruction of a piece of code, decoded from its beginning on,
 * writes one of @regs
 *
 * @regs  by DWARF number, of rbx, rbp, rsp and r12 to r15. The effect of calls and returns on rsp
 *	   does not count.
 * Returns true also when bytes are no instruction.
 * Cost: a table and the bytes for nearly all instructions of real code that write none of them; a
 * decode for those that may. No allocation. Threads: any.
 */
bool insn_writes_any(const uint8_t *code, size_t n, uint16_t regs);

#endif
