/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stack arguments, in copies inlined into the function that got them
 *
 * GCC moves the prologue after an early return (shrink-wrapping). A copy inlined before the
 * prologue may have an argument that came on the stack, and GCC computes its slot as if the
 * prologue had run:
 *
 *	g:	movl $1, sink		the copy: y is described at CFA + 8; it is at CFA
 *		test %edi, %edi
 *		jne  1f
 *		ret
 *	1:	sub  $8, %rsp		the prologue
 *
 * See docs/findings/gcc-stack-argument-before-prologue.md. The code shows the case: nothing has
 * been pushed yet, so that the CFA is rsp + 8, and elsewhere in the function it is farther away. If
 * the prologue did not move, the code before it is the first instructions of the body, which rarely
 * hold a copy: little is lost.
 *
 * Elsewhere a slot of the frame itself is described as far above the CFA as it is below, in the
 * caller's frame. The function's own parameters give its stack arguments: a slot at or above the
 * CFA that is none of theirs is wrong.
 *
 * The function must also use the argument: Clang's callers leave out unused ones. So some
 * instruction has to load from the slot. Its unwind row gives the slot's distance from the stack or
 * frame pointer.
 */
#include "base/cursor.h"
#include "dwarf/constants.h"
#include "insn/insn.h"
#include "loc/loc.h"

enum {
	RSP = 7,
	/* The size of the return address, which the call pushed. */
	RET_ADDR_BYTES = 8,
	/*
	 * Rows that are checked; a function has a few for each prologue, epilogue and call with
	 * stack arguments.
	 */
	ROWS_MAX = 4096,
};

static bool is_at_call(const struct cfi_row *row)
{
	return row->cfa == CFI_CFA_REG_OFFSET && row->cfa_reg == RSP &&
	       row->cfa_off == RET_ADDR_BYTES;
}

/* Whether the frame is still as the call left it, and grows elsewhere. */
static bool is_before_prologue(const struct loc_context *ctx)
{
	struct cairn_vaddr lo, hi;
	if (ctx->row_state != 1 || !is_at_call(&ctx->row) ||
	    !cfi_fde_at(ctx->cfi, ctx->at, &lo, &hi))
		return false;
	struct cfi_row row;
	for (int i = 0; i < ROWS_MAX && lo.v < hi.v; i++, lo = row.hi) {
		if (cfi_row_at(ctx->cfi, lo, &row, NULL) != 1 || !is_at_call(&row) ||
		    row.hi.v <= lo.v)
			return true;
	}
	return lo.v < hi.v;
}

struct slot_search {
	uint64_t wanted, bytes;
	bool found;
};

/* Whether the location is a slot at or above the CFA that holds the byte wanted. */
static int visit_location(void *arg, const struct dw_loc_entry *e)
{
	static const struct cursor_src here = {.file = "", .section = "a location expression"};
	struct slot_search *s = arg;
	struct cursor_src src = here;
	src.base = e->expr;
	struct cursor c = cursor_of(&src, e->expr, e->expr_len, false, NULL);
	if (!e->expr_len || cur_u8(&c) != DW_OP_fbreg)
		return 0;
	int64_t off = cur_sleb(&c);
	if (c.failed || cur_more(&c) || off < 0)
		return 0;
	uint64_t slot = (uint64_t)off / 8 * 8, end = ((uint64_t)off + s->bytes + 7) / 8 * 8;
	s->found |= slot <= s->wanted && s->wanted < end;
	return s->found;
}

static bool is_own_argument(const struct loc_context *ctx, uint64_t off)
{
	struct slot_search s = {.wanted = off};
	struct dw_die child;
	int rc = dw_die_child(&ctx->function, &child, NULL);
	for (; rc == 1 && !s.found; rc = dw_die_sibling(&child, &child, NULL)) {
		if (child.tag != DW_TAG_formal_parameter)
			continue;
		s.bytes = dw_type_bytes(&child);
		dw_locations(&child, DW_AT_location, visit_location, &s, NULL);
	}
	return s.found;
}

bool loc_stack_argument_holds(const struct loc_context *ctx, const struct dw_unit *unit,
			      int64_t off)
{
	/* Without a row the frame base is not the CFA. */
	if (!ctx->inlined || !dw_unit_is_gcc(unit) || ctx->row_state != 1)
		return true;
	return !is_before_prologue(ctx) && is_own_argument(ctx, (uint64_t)off);
}

/* ---- use ---- */

struct load_search {
	struct elf *code;
	const struct cfi *cfi;
	int64_t off; /* from the CFA */
	bool found;
};

static int find_load(void *arg, struct dw_range range)
{
	enum { WORD_BYTES = 8 };
	struct load_search *s = arg;
	struct cfi_row row = {0};
	const uint8_t *bytes;
	size_t n;
	if (!elf_code_at(s->code, range.lo, &bytes, &n))
		return 0;
	if (n > range.hi.v - range.lo.v)
		n = (size_t)(range.hi.v - range.lo.v);
	for (size_t at = 0; at < n;) {
		struct cairn_vaddr pc = {range.lo.v + at};
		struct insn insn;
		if (!insn_decode(bytes + at, n - at, pc.v, &insn))
			return 0;
		if (pc.v >= row.hi.v && cfi_row_at(s->cfi, pc, &row, NULL) != 1)
			return 0;
		if (insn.len && row.cfa == CFI_CFA_REG_OFFSET &&
		    insn_accesses(bytes + at, n - at, row.cfa_reg, row.cfa_off + s->off, WORD_BYTES)
			    .loads) {
			s->found = true;
			return 1;
		}
		at += insn.len;
	}
	return 0;
}

bool loc_stack_argument_is_used(struct elf *code, const struct cfi *cfi,
				const struct dw_die *function, int64_t off)
{
	struct load_search s = {.code = code, .cfi = cfi, .off = off};
	if (cfi)
		dw_ranges(function, find_load, &s, NULL);
	return s.found;
}
