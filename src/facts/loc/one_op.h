/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions of one operation. */
#ifndef LOC_ONE_OP_H
#define LOC_ONE_OP_H

#include "loc/loc.h"

/*
 * loc_one_op - the result of loc_from_expr() for an expression of one operation, with
 * DW_OP_stack_value or without
 *
 * Returns 1 and *@ret; 0 when it is not that simple, or unusual, or damaged; -ENOMEM.
 */
int loc_one_op(const uint8_t *expr, uint64_t len, struct arena *arena, struct cairn_location *ret);

#endif
