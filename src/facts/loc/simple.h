/* SPDX-License-Identifier: BSD-2-Clause */
/* Expressions of one operation. */
#ifndef LOC_SIMPLE_H
#define LOC_SIMPLE_H

#include "loc/loc.h"

/*
 * loc_simple - what loc_from_expr() gives, of an expression that is one operation, with
 * DW_OP_stack_value or without
 *
 * Returns 1 and *@ret; 0 when it is not so simple, or unusual, or damaged; -ENOMEM.
 */
int loc_simple(const uint8_t *expr, uint64_t len, struct arena *arena, struct cairn_location *ret);

#endif
