/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads call frame information: the rule for the CFA at an address
 *
 * Reads .eh_frame and .debug_frame of x86-64 and AArch64. The location encoder turns "frame base
 * plus k" (frame base = CFA, in GCC's and Clang's -O code) into "register plus offset" at one
 * address. unwind_table_build() (cfi/table.h) makes the rows of a whole file, which unwinders
 * search.
 */
#ifndef CFI_CFI_H
#define CFI_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/err.h>

#include "elf/elf.h"

struct cfi;

enum cfi_cfa_kind {
	CFI_CFA_UNDESCRIBED, /* no FDE covers the address, or its rule is one we do not express */
	CFI_CFA_REG_OFFSET,  /* CFA = reg + off */
	CFI_CFA_EXPR,        /* CFA = DWARF expression */
};

/* The rule of one register in the caller's frame. */
enum cfi_reg_kind {
	CFI_REG_UNSPECIFIED, /* no rule: callee-saved registers keep their value, by the ABI */
	CFI_REG_UNDEFINED,
	CFI_REG_SAME,
	CFI_REG_AT_CFA,   /* saved in memory at CFA + off */
	CFI_REG_IS_CFA,   /* value is CFA + off */
	CFI_REG_REGISTER, /* in register number off */
	CFI_REG_AT_REG,   /* saved in memory at register base + off */
	CFI_REG_IS_REG,   /* value is register base + off */
	CFI_REG_EXPR,     /* saved at the address that another expression gives */
	CFI_REG_VAL_EXPR, /* is the value that another expression gives */
};

struct cfi_reg {
	enum cfi_reg_kind kind;
	uint8_t base; /* DWARF register number */
	int64_t off;
};

/* x86-64: rax ... r15 and the return address column; AArch64: x0 ... x30, sp. */
enum { CFI_N_REGS = 32 };

struct cfi_row {
	/* The row holds for [lo, hi). */
	struct cairn_vaddr lo, hi;
	enum cfi_cfa_kind cfa;
	uint32_t cfa_reg; /* DWARF register number */
	int64_t cfa_off;
	const uint8_t *cfa_expr; /* in place, as long as the binary; cfa_expr_len bytes */
	uint32_t cfa_expr_len;
	struct cfi_reg regs[CFI_N_REGS];
	bool signal_frame;
};

/*
 * cfi_open - index the FDEs of a binary: .eh_frame of the main file, then .debug_frame of main and
 * debug file; where several describe an address, the first of these wins
 *
 * @bin  borrowed, must outlive the result
 * @ret  the caller's, cfi_close()
 * Returns 0 also when there is no CFI at all; lookups then find nothing. A damaged entry, or one of
 * an unknown version or encoding, is skipped (its addresses are undescribed) and counted, see
 * cfi_damaged(). Negative:
 *   -EBADMSG  the chain of entries leads out of the section, or as elf_section()
 *   -ENOMEM, and the errors of elf_section()
 * Cost: one pass over the headers of all entries, a sort. Threads: the result may be read from any.
 */
int cfi_open(const struct cairn_binary *bin, struct cfi **ret, struct cairn_err *err);
/* Takes NULL. */
void cfi_close(struct cfi *cfi);

/*
 * cfi_row_at - the row that covers @at
 *
 * A CFA rule that names a register beyond the CFI_N_REGS columns is CFI_CFA_UNDESCRIBED; rules of
 * such registers are dropped.
 * Returns 1 and *@ret, or 0 when no FDE covers it. Negative: -EBADMSG when the FDE's program is
 * damaged, -EOPNOTSUPP when it uses an operation that is not known, -ERANGE when it nests
 * remembered states deeper than 16.
 * Cost: O(log FDEs) + the FDE's program. No allocation. Threads: any.
 */
int cfi_row_at(const struct cfi *cfi, struct cairn_vaddr at, struct cfi_row *ret,
	       struct cairn_err *err);

/* Bounds of the FDE that covers @at: a function or a part of one. False when none. */
bool cfi_fde_at(const struct cfi *cfi, struct cairn_vaddr at, struct cairn_vaddr *ret_lo,
		struct cairn_vaddr *ret_hi);

/*
 * Whether the unwinder can continue somewhere in the FDE that covers @at, at a landing pad: its CIE
 * announces language specific data. True also when no FDE covers @at or its CIE cannot be read.
 */
bool cfi_may_land(const struct cfi *cfi, struct cairn_vaddr at);

/* Number of entries that were skipped; see cfi_open(). */
uint64_t cfi_damaged(const struct cfi *cfi);

/* Number of FDEs that cover something. */
size_t cfi_n_fdes(const struct cfi *cfi);

#endif
