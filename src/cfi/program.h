/* SPDX-License-Identifier: BSD-2-Clause */
/* Running the instructions of an FDE; the essay is in program.c. Within this module only. */
#ifndef CFI_PROGRAM_H
#define CFI_PROGRAM_H

#include "cfi/cfi.h"
#include "cfi/entry.h"

/*
 * program_row_at - the row that holds at @at, which lies in [fde->lo, fde->hi)
 *
 * Returns 0, or as cfi_row_at(). No allocation.
 */
int program_row_at(const struct frame_section *sec, const struct frame_fde *fde, uint64_t at,
		   struct cfi_row *ret, struct cairn_err *err);

#endif
