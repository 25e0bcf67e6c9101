/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether bytes end with a call, which comes before a return address. Within the library only. */
#ifndef INSN_CALL_H
#define INSN_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes that the longest call has: opcode ff, ModRM, SIB, displacement of 32 bits. Prefixes do not
 * matter.
 */
enum { INSN_CALL_LONGEST = 7, INSN_CALL_REL32 = 5 };

/*
 * Length of "call r/m" with this ModRM byte and, where it has one, SIB byte; the opcode is ff /2.
 */
static inline unsigned int insn_call_length(uint8_t modrm, uint8_t sib)
{
	unsigned int mod = modrm >> 6, rm = modrm & 7, n = 2;
	if (mod == 3)
		return n;
	if (rm == 4)
		n++;
	if (mod == 1)
		return n + 1;
	return mod == 2 || rm == 5 || (rm == 4 && (sib & 7) == 5) ? n + 4 : n;
}

/*
 * Whether the INSN_CALL_LONGEST bytes before @end can be read as ending with a call through a
 * register or memory. Signals: safe.
 */
static inline bool insn_ends_with_indirect_call(const uint8_t *end)
{
	for (unsigned int n = 2; n <= INSN_CALL_LONGEST; n++) {
		const uint8_t *call = end - n;
		if (call[0] == 0xff && (call[1] >> 3 & 7) == 2 &&
		    insn_call_length(call[1], n > 2 ? call[2] : 0) == n)
			return true;
	}
	return false;
}

/*
 * insn_ends_with_call - whether the INSN_CALL_LONGEST bytes before @end can be read as ending with
 * a call
 *
 * Instructions have no marks at their ends: other bytes may read as a call, too. Signals: safe.
 */
static inline bool insn_ends_with_call(const uint8_t *end)
{
	return end[-INSN_CALL_REL32] == 0xe8 || insn_ends_with_indirect_call(end);
}

#endif
