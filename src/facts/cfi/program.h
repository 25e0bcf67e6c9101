/* SPDX-License-Identifier: BSD-2-Clause */
/* Running the instructions of an FDE; the essay is in program.c. Within this module only. */
#ifndef CFI_PROGRAM_H
#define CFI_PROGRAM_H

#include "cfi/cfi.h"
#include "cfi/frame_entry.h"

/* The rules of one row. */
struct program_rules {
	enum cfi_cfa_kind cfa;
	uint64_t cfa_reg;
	int64_t cfa_off;
	const uint8_t *cfa_expr; /* for CFI_CFA_EXPR: cfa_expr_len bytes, in place */
	uint32_t cfa_expr_len;
	bool ra_signed; /* AArch64: the return address in its register is signed */
	uint32_t set;   /* bit n: regs[n] is not CFI_REG_UNSPECIFIED */
	struct cfi_reg regs[CFI_N_REGS];
};

/*
 * program_run - the rows of an FDE in the order of their addresses
 *
 * @row  called for each row [lo, hi), none of them empty, all within the FDE; @rules lives until it
 *       returns. A result other than 0 ends the run.
 * Returns 0, the result of @row, or as cfi_row_at(). Rows before the damage have been visited then.
 * No allocation; @row is called once per row.
 */
int program_run(const struct frame_section *sec, const struct frame_fde *fde,
		int (*row)(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *rules),
		void *ctx, struct cairn_err *err);

/*
 * program_row_at - the row that holds at @at, which lies in [fde->lo, fde->hi)
 *
 * Returns 0, or as cfi_row_at(). No allocation.
 */
int program_row_at(const struct frame_section *sec, const struct frame_fde *fde, uint64_t at,
		   struct cfi_row *ret, struct cairn_err *err);

#endif
