/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes SFrame as bytes, in the order of the target
 *
 *	HEADER, 28 bytes
 *	0   2   magic: e2 de
 *	2   1   version
 *	3   1   flags: 1 functions are sorted, 2 all code has frame pointers, 4 addresses count from
 *	        their own field
 *	4   1   architecture: 1 AArch64 big-endian, 2 AArch64, 3 x86-64, 4 s390x
 *	5   1   fixed position of the frame pointer, as an offset from the CFA; 0: none
 *	6   1   the same of the return address; x86-64: -8
 *	7   1   bytes of a further header
 *	8   4   number of functions
 *	12  4   number of rows
 *	16  4   bytes of all rows
 *	20  4   start of the functions, from the end of the headers
 *	24  4   start of the rows, from the end of the headers
 *
 *	FUNCTION    version 1: 17 bytes     version 2: 20          version 3: 16, and 5 before its
 *	                                                           rows
 *	address     4 at 0                  4 at 0                 8 at 0
 *	size        4 at 4                  4 at 4                 4 at 8
 *	rows at     4 at 8                  4 at 8                 4 at 12: of the 5 bytes
 *	their n     4 at 12                 4 at 12                2 at 0 of the 5
 *	info        1 at 16                 1 at 16                1 at 2
 *	kind        -                       -                      1 at 3: 0 default, 1 flexible
 *	block       -                       1 at 17, 2 unused      1 at 4
 *
 *	An address counts from the start of the section; with flag 4, and in version 3, from the
 *	field itself.
 *	info: bits 0-3 size of a row's offset (0: 1, 1: 2, 2: 4 bytes); bit 4 blocks; bit 5 key of
 *	AArch64's signatures; bit 7 signal frame (version 3).
 *
 *	ROW: offset (1, 2 or 4 bytes), info, words
 *	info: bit 0 CFA from the stack pointer, else from the frame pointer; bits 1-4 number of
 *	words; bits 5-6 their size (0: 1, 1: 2, 2: 4 bytes); bit 7 the return address is signed. No
 *	words: there is no caller.
 *	default words, signed:  CFA's offset, [return address, not on x86-64], [frame pointer]; both
 *	                        as distances from the CFA
 *	flexible words:         control and offset of the CFA, of the return address (or a 0), of
 *	                        the frame pointer
 *	control, unsigned:      bit 0 from a register, else from the CFA; bit 1 in memory there;
 *	                        bits 3 and up the register
 */
#ifndef CFI_SFRAME_FORMAT_H
#define CFI_SFRAME_FORMAT_H

#include <elf.h>
#include <stdint.h>

#include "cfi/convention.h"

enum {
	SFRAME_MAGIC = 0xdee2,
	SFRAME_HEADER_SIZE = 28,
	SFRAME_ATTRIBUTE_SIZE = 5, /* of a function in version 3 */
	SFRAME_MAX_VERSION = 3,

	SFRAME_SORTED = 1,
	SFRAME_FRAME_POINTER = 2,
	SFRAME_PCREL = 4,

	SFRAME_AARCH64_BE = 1,
	SFRAME_AARCH64 = 2,
	SFRAME_AMD64 = 3,
	SFRAME_S390X = 4,

	SFRAME_INFO_BLOCKS = 1 << 4,
	SFRAME_INFO_SIGNAL = 1 << 7,
	SFRAME_KIND_FLEXIBLE = 1,

	SFRAME_ROW_SP = 1,
	SFRAME_ROW_SIGNED = 1 << 7,

	SFRAME_CONTROL_REG = 1,
	SFRAME_CONTROL_DEREF = 2,
	SFRAME_CONTROL_SHIFT = 3,

	/* the CFA, the return address, the frame pointer: control and offset each */
	SFRAME_MAX_WORDS = 6,
};

/* Bytes of a function's record. */
static inline unsigned int sframe_function_size(unsigned int version)
{
	return version == 1 ? 17 : version == 2 ? 20 : 16;
}

/* Flags that a version has; with any other one libsframe refuses a section. */
static inline uint8_t sframe_flags(unsigned int version)
{
	static const uint8_t flags[] = {[1] = SFRAME_SORTED | SFRAME_FRAME_POINTER,
					[2] = SFRAME_SORTED | SFRAME_FRAME_POINTER | SFRAME_PCREL,
					[3] = SFRAME_SORTED | SFRAME_PCREL};
	return flags[version];
}

/* The facts that SFrame fixes for an architecture. */
struct sframe_abi {
	uint8_t arch;
	uint8_t sp, fp, ra; /* of the convention */
	int8_t fixed_ra;    /* 0: rows say where it is */
};

static inline struct sframe_abi sframe_abi_of(uint16_t machine)
{
	const struct convention *c = convention_of(machine);
	return (struct sframe_abi){.arch = machine == EM_AARCH64 ? SFRAME_AARCH64 : SFRAME_AMD64,
				   .sp = c->sp,
				   .fp = c->fp,
				   .ra = c->ra,
				   .fixed_ra = c->ra_at_cfa ? -8 : 0};
}

#endif
