/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States the facts of an ABI about calls, by DWARF register numbers: shared by the code that makes
 * unwind rules and the code that applies them.
 */
#ifndef CFI_CONVENTION_H
#define CFI_CONVENTION_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

struct convention {
	uint8_t sp, fp, ra;
	/* the call pushed the return address: it is at CFA - 8; else it is in its register */
	bool ra_at_cfa;
	uint32_t kept; /* bit per register that a callee has to keep */
};

/* x86-64 psABI, figure 3.4: rbx, rbp, r12 to r15. AAPCS64, 6.1.1: x19 to x29. */
static inline const struct convention *convention_of(uint16_t machine)
{
	static const struct convention x86_64 = {
		.sp = 7, .fp = 6, .ra = 16, .ra_at_cfa = true, .kept = 0xf048};
	static const struct convention aarch64 = {.sp = 31, .fp = 29, .ra = 30, .kept = 0x3ff80000};
	return machine == EM_AARCH64 ? &aarch64 : &x86_64;
}

#endif
