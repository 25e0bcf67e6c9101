/* SPDX-License-Identifier: BSD-2-Clause */
/* How long an instruction's operands are. Within this module only. */
#ifndef INSN_MODRM_H
#define INSN_MODRM_H

#include <stdint.h>

/*
 * Bytes of ModRM, SIB and displacement; 0 when the first two are not there. By a table: which of the cases is next cannot be
 * predicted, and a wrong guess costs as much as the rest of a step.
 */
static inline unsigned int insn_modrm_bytes(const uint8_t *p, const uint8_t *end)
{
	static const uint8_t bytes[4][8] = {
		{1, 1, 1, 1, 2, 5, 1, 1},
		{2, 2, 2, 2, 3, 2, 2, 2},
		{5, 5, 5, 5, 6, 5, 5, 5},
		{1, 1, 1, 1, 1, 1, 1, 1},
	};
	if (end - p < 2)
		return p < end && *p >= 0xc0;
	unsigned int mod = *p >> 6, rm = *p & 7;
	/* A SIB byte without a base has a displacement. */
	return bytes[mod][rm] + 4 * (!mod & (rm == 4) & ((p[1] & 7) == 5));
}

#endif
