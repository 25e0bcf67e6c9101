/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few shapes of DWARF expressions that call frame information consists of. Within this module
 * only.
 */
#ifndef CFI_EXPR_H
#define CFI_EXPR_H

#include "cfi/cfi.h"

/* DW_OP_*: DWARF 5, table 7.9 */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	N_LITS = 32,
};

/* "register reg + off", the whole expression. False for any other. */
bool expr_is_reg_offset(const uint8_t *expr, size_t len, uint8_t *ret_reg, int64_t *ret_off);

/* "pc + off" of x86-64, put together of numbers, sums and differences. */
bool expr_is_pc_offset(const uint8_t *expr, size_t len, int64_t *ret_off);

/* "*(register reg + off) + add" */
struct expr_deref {
	uint8_t reg;
	int64_t off, add;
};
bool expr_is_deref(const uint8_t *expr, size_t len, struct expr_deref *ret);

/*
 * The one that linkers write for a procedure linkage table: "rsp + off + ((rip & mask) >= from) <<
 * shift". An entry is mask + 1 bytes; from its byte @from on something more is on the stack.
 */
struct expr_plt {
	int64_t off;
	uint8_t mask, from, shift;
};
bool expr_is_plt(const uint8_t *expr, size_t len, struct expr_plt *ret);

#endif
