/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that Clang put on the stack and describes by their slot's address; the essay is in
 * spill.c.
 */
#ifndef LOC_CLANG_SPILL_H
#define LOC_CLANG_SPILL_H

#include "dwarf/dwarf.h"

/*
 * spill_is_address - whether an expression computes with a frame address and means the value that
 * is stored there
 *
 * @function  the out-of-line function around, whose frame base counts
 * Cost: reads the first bytes of the expression.
 */
bool spill_is_address(const struct dw_unit *unit, const struct dw_die *function,
		      const uint8_t *expr, uint64_t len);

#endif
