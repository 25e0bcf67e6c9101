/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that Clang put on the stack and describes by their slot's address
 *
 *	source		f(a + 26), inlined, and the sum is needed nowhere
 *	before		n is  edi + 26, a value; edi is put at fbreg + 12
 *			DW_OP_breg5 0, DW_OP_plus_uconst 26, DW_OP_stack_value
 *	meant		DW_OP_fbreg 12, DW_OP_deref, DW_OP_plus_uconst 26, DW_OP_stack_value
 *	Clang 14	DW_OP_fbreg 12, DW_OP_plus_uconst 26, DW_OP_stack_value
 *
 * which is the slot's address plus 26 (docs/findings/clang-spilled-value-without-load.md). The same
 * text would describe a pointer into a local array. No byte shows which it is, so no expression of
 * that shape is believed; the address of a local variable itself, without arithmetic, is.
 *
 * rbp counts where it is the frame base; elsewhere it is a register as any other.
 */
#include "loc/clang_spill.h"

#include "base/cursor.h"
#include "dwarf/constants.h"

/* DWARF numbers. */
enum { RBP = 6, RSP = 7 };

static int take_base(void *arg, const struct dw_loc_entry *e)
{
	bool *is_rbp = arg;
	*is_rbp = e->expr_len && e->expr[0] == DW_OP_reg0 + RBP;
	return 1;
}

static bool has_frame_pointer(const struct dw_die *function)
{
	bool is_rbp = false;
	dw_locations(function, DW_AT_frame_base, take_base, &is_rbp, NULL);
	return is_rbp;
}

bool spill_is_address(const struct dw_unit *unit, const struct dw_die *function,
		      const uint8_t *expr, uint64_t len)
{
	if (!dw_unit_is_clang(unit) || !len)
		return false;
	struct cursor_src src = {.file = "", .section = "a location expression", .base = expr};
	struct cursor c = cursor_of(&src, expr, len, false, NULL);
	uint8_t op = cur_u8(&c);
	if (op != DW_OP_fbreg && op != DW_OP_breg0 + RSP &&
	    (op != DW_OP_breg0 + RBP || !has_frame_pointer(function)))
		return false;
	cur_sleb(&c);
	if (c.failed || !cur_more(&c))
		return false;
	switch (cur_u8(&c)) {
	case DW_OP_deref:
	case DW_OP_deref_size:
	case DW_OP_deref_type:
	case DW_OP_stack_value:
	case DW_OP_piece:
	case DW_OP_bit_piece:
		return false;
	}
	/* In memory at a computed address: the end is no DW_OP_stack_value. */
	return expr[len - 1] == DW_OP_stack_value;
}
