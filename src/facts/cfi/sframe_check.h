/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares SFrame with the unwind table. Within this module only. */
#ifndef CFI_SFRAME_CHECK_H
#define CFI_SFRAME_CHECK_H

#include <cairn/unwind.h>

#include "cfi/table.h"

/*
 * sframe_check - report where the section .sframe, if there is one, has another CFA, frame pointer
 * or return address than @table
 *
 * Linkage tables, whose rows SFrame repeats, are skipped.
 * Returns 0, the result of @tell, or as cairn_sframe_open().
 */
int sframe_check(const struct cairn_binary *bin, const struct unwind_table *table,
		 int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found), void *ctx,
		 struct cairn_unwind_checked *told, struct cairn_err *err);

#endif
