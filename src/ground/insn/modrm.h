/* SPDX-License-Identifier: BSD-2-Clause */
/* How long an instruction's operands are. Within this module only. */
#ifndef INSN_MODRM_H
#define INSN_MODRM_H

#include <stdint.h>

/* In insn_modrm: a SIB byte follows, and when that has no base, a displacement. */
enum { INSN_MODRM_BYTES = 7, INSN_MODRM_SIB = 8 };

/*
 * Bytes of a ModRM byte, its SIB and its displacement. By a table: which of the cases is next
 * cannot be predicted, and a wrong guess costs as much as the rest of a step.
 */
#define ROWS_OF(a, sib, b) a, a, a, a, sib, b, a, a
#define MOD_OF(a, sib, b)                                                                          \
	ROWS_OF(a, sib, b), ROWS_OF(a, sib, b), ROWS_OF(a, sib, b), ROWS_OF(a, sib, b),            \
		ROWS_OF(a, sib, b), ROWS_OF(a, sib, b), ROWS_OF(a, sib, b), ROWS_OF(a, sib, b)
static const uint8_t insn_modrm[256] = {MOD_OF(1, 2 | INSN_MODRM_SIB, 5), MOD_OF(2, 3, 2),
					MOD_OF(5, 6, 5), MOD_OF(1, 1, 1)};
#undef MOD_OF
#undef ROWS_OF

/* The same where two bytes are there. */
static inline unsigned int insn_modrm_bytes_of(const uint8_t *p)
{
	unsigned int bytes = insn_modrm[*p];
	if (__builtin_expect(bytes & INSN_MODRM_SIB, 0))
		return (bytes & INSN_MODRM_BYTES) + 4 * ((p[1] & 7) == 5);
	return bytes;
}

/* The same; 0 when the first two bytes are not there. */
static inline unsigned int insn_modrm_bytes(const uint8_t *p, const uint8_t *end)
{
	return end - p < 2 ? p < end && *p >= 0xc0 : insn_modrm_bytes_of(p);
}

#endif
