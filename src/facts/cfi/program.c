/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From instructions to the row at one address
 *
 * The unwind table of a function has a row per range of addresses and a column per register. It is
 * stored as the difference from row to row:
 *
 *	CIE:	def_cfa rsp+8; offset ra at cfa-8	the row with which every function begins
 *	FDE:	advance 1	row [lo, lo+1) ends	  push %rbp
 *		def_cfa_offset 16; offset rbp at cfa-16
 *		advance 3	row [lo+1, lo+4) ends	  mov %rsp,%rbp
 *		def_cfa_register rbp
 *		...		the last row ends at hi
 *
 * The row at an address is found by running the instructions until one advances beyond it.
 * "restore" goes back to the CIE's rule of one register, "remember_state" and "restore_state" push
 * and pop a whole row (before and after an early return). A state is small and nesting beyond one
 * is hardly seen, so the stack is an array.
 *
 * Each instruction is a byte; three have an operand in its low 6 bits. The table ops[] has one line
 * for each of the others.
 */
#include "cfi/program.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "cfi/convention.h"
#include "cfi/expr.h"

/* GCC and Clang nest once. 16 states are 9 KB of stack. */
enum { MAX_REMEMBERED = 16 };

struct machine {
	const struct frame_section *sec;
	const struct frame_cie *cie;
	struct cursor c;
	const struct program_rules *initial; /* NULL while the CIE's own instructions run */
	uint64_t lo, end;                    /* of the current row; of the FDE */
	int (*row)(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *rules);
	void *ctx;
	int stop; /* the result of row() */
	size_t n_remembered;
	struct program_rules now;
	struct program_rules remembered[MAX_REMEMBERED];
};

static int bad(struct machine *m, const char *what)
{
	return err_set(m->c.err, -EBADMSG, "%s: %s+0x%" PRIx64 ": %s", m->c.src->file,
		       m->c.src->section, cur_off(&m->c), what);
}

/* ---- addresses ---- */

/*
 * A CIE may name another column than the ABI's for the return address. The rule of that column is
 * the rule of the return address; without one the return address is in that register.
 */
static int give_row(struct machine *m, uint64_t lo, uint64_t hi)
{
	uint8_t column = m->cie->ra_column, ra = convention_of(m->sec->machine)->ra;
	if (column == ra)
		return m->row(m->ctx, lo, hi, &m->now);
	struct program_rules row = m->now;
	row.regs[ra] = row.regs[column];
	if (row.regs[ra].kind == CFI_REG_UNSPECIFIED || row.regs[ra].kind == CFI_REG_SAME)
		row.regs[ra] = (struct cfi_reg){.kind = CFI_REG_REGISTER, .off = column};
	row.set |= UINT32_C(1) << ra;
	return m->row(m->ctx, lo, hi, &row);
}

/* Some compilers advance beyond the function; rows end with it. */
static void end_row(struct machine *m, uint64_t hi)
{
	uint64_t lo = m->lo;
	m->lo = hi;
	if (hi > m->end)
		hi = m->end;
	if (lo < hi)
		m->stop = give_row(m, lo, hi);
}

static int move_to(struct machine *m, uint64_t loc)
{
	if (!m->initial)
		return bad(m, "a CIE advances the location");
	if (loc < m->lo)
		return bad(m, "the location goes backwards");
	end_row(m, loc);
	return 0;
}

static int advance(struct machine *m, uint64_t delta)
{
	uint64_t bytes, loc;
	if (__builtin_mul_overflow(delta, m->cie->code_align, &bytes) ||
	    __builtin_add_overflow(m->lo, bytes, &loc))
		return bad(m, "the location advances beyond the address space");
	return move_to(m, loc);
}

static int op_set_loc(struct machine *m)
{
	uint64_t loc = frame_read_address(m->sec, &m->c, m->cie->pointer_encoding);
	return m->c.failed ? -EBADMSG : move_to(m, loc);
}

static int op_advance1(struct machine *m)
{
	return advance(m, cur_u8(&m->c));
}

static int op_advance2(struct machine *m)
{
	return advance(m, cur_u16(&m->c));
}

static int op_advance4(struct machine *m)
{
	return advance(m, cur_u32(&m->c));
}

static int op_advance8(struct machine *m)
{
	return advance(m, cur_u64(&m->c));
}

/* ---- the CFA ---- */

static int scaled(struct machine *m, int64_t factored, int64_t *ret)
{
	if (__builtin_mul_overflow(factored, m->cie->data_align, ret))
		return bad(m, "an offset does not fit 64 bits");
	return 0;
}

static int unscaled(struct machine *m, int64_t *ret)
{
	uint64_t off = cur_uleb(&m->c);
	*ret = (int64_t)off;
	return off > INT64_MAX ? bad(m, "an offset does not fit 64 bits") : 0;
}

static int set_cfa(struct machine *m, uint64_t reg, int64_t off)
{
	m->now.cfa = CFI_CFA_REG_OFFSET;
	m->now.cfa_reg = reg;
	m->now.cfa_off = off;
	return 0;
}

static int op_def_cfa(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	int64_t off;
	int rc = unscaled(m, &off);
	return rc < 0 ? rc : set_cfa(m, reg, off);
}

static int op_def_cfa_sf(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	int64_t off;
	int rc = scaled(m, cur_sleb(&m->c), &off);
	return rc < 0 ? rc : set_cfa(m, reg, off);
}

static int op_def_cfa_register(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	if (m->now.cfa != CFI_CFA_REG_OFFSET)
		return bad(m,
			   "the CFA has no register plus offset whose register could be changed");
	m->now.cfa_reg = reg;
	return 0;
}

static int change_cfa_offset(struct machine *m, int64_t off)
{
	if (m->now.cfa != CFI_CFA_REG_OFFSET)
		return bad(m, "the CFA has no register plus offset whose offset could be changed");
	m->now.cfa_off = off;
	return 0;
}

static int op_def_cfa_offset(struct machine *m)
{
	int64_t off;
	int rc = unscaled(m, &off);
	return rc < 0 ? rc : change_cfa_offset(m, off);
}

static int op_def_cfa_offset_sf(struct machine *m)
{
	int64_t off;
	int rc = scaled(m, cur_sleb(&m->c), &off);
	return rc < 0 ? rc : change_cfa_offset(m, off);
}

static int op_def_cfa_expression(struct machine *m)
{
	uint64_t n = cur_uleb(&m->c);
	const uint8_t *expr = cur_bytes(&m->c, n);
	if (!expr || n > UINT32_MAX)
		return bad(m, "the CFA's expression is cut off");
	m->now.cfa = CFI_CFA_EXPR;
	m->now.cfa_expr = expr;
	m->now.cfa_expr_len = (uint32_t)n;
	return 0;
}

/* ---- registers ---- */

/* Rules of registers that have no column (vector registers) are read and dropped. */
static int set_reg_rule(struct machine *m, uint64_t reg, struct cfi_reg rule)
{
	if (reg >= CFI_N_REGS)
		return 0;
	m->now.regs[reg] = rule;
	m->now.set |= UINT32_C(1) << reg;
	return 0;
}

static int set_reg(struct machine *m, uint64_t reg, enum cfi_reg_kind kind, int64_t off)
{
	return set_reg_rule(m, reg, (struct cfi_reg){.kind = kind, .off = off});
}

static int set_reg_scaled(struct machine *m, uint64_t reg, enum cfi_reg_kind kind, int64_t factored)
{
	int64_t off;
	int rc = scaled(m, factored, &off);
	return rc < 0 ? rc : set_reg(m, reg, kind, off);
}

static int set_reg_unsigned(struct machine *m, uint64_t reg, enum cfi_reg_kind kind)
{
	int64_t factored;
	int rc = unscaled(m, &factored);
	return rc < 0 ? rc : set_reg_scaled(m, reg, kind, factored);
}

/*
 * Nearly all expressions are one operation, "register n plus k": how code that realigns its stack
 * and signal trampolines say where registers are.
 */
static int set_reg_expr(struct machine *m, enum cfi_reg_kind kind)
{
	uint64_t reg = cur_uleb(&m->c);
	uint64_t n = cur_uleb(&m->c);
	const uint8_t *expr = cur_bytes(&m->c, n);
	struct cfi_reg rule = {.kind = kind};
	if (expr && expr_is_reg_offset(expr, n, &rule.base, &rule.off))
		rule.kind = kind == CFI_REG_EXPR ? CFI_REG_AT_REG : CFI_REG_IS_REG;
	else if (expr && kind == CFI_REG_VAL_EXPR && m->sec->machine == EM_X86_64 &&
		 expr_is_pc_offset(expr, n, &rule.off))
		rule = (struct cfi_reg){.kind = CFI_REG_IS_REG,
					.base = (uint8_t)convention_of(EM_X86_64)->ra,
					.off = rule.off};
	else
		rule = (struct cfi_reg){.kind = kind};
	return m->c.failed ? -EBADMSG : set_reg_rule(m, reg, rule);
}

static int restore_reg(struct machine *m, uint64_t reg)
{
	if (!m->initial)
		return bad(m, "a CIE restores a register to the rule that it is about to give");
	if (reg >= CFI_N_REGS)
		return 0;
	m->now.regs[reg] = m->initial->regs[reg];
	m->now.set = (m->now.set & ~(UINT32_C(1) << reg)) | (m->initial->set & UINT32_C(1) << reg);
	return 0;
}

static int op_offset_extended(struct machine *m)
{
	return set_reg_unsigned(m, cur_uleb(&m->c), CFI_REG_AT_CFA);
}

static int op_offset_extended_sf(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	return set_reg_scaled(m, reg, CFI_REG_AT_CFA, cur_sleb(&m->c));
}

/* GCC 2 and 3: the offset's sign is turned round. */
static int op_negative_offset_extended(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	int64_t factored;
	int rc = unscaled(m, &factored);
	return rc < 0 ? rc : set_reg_scaled(m, reg, CFI_REG_AT_CFA, -factored);
}

static int op_val_offset(struct machine *m)
{
	return set_reg_unsigned(m, cur_uleb(&m->c), CFI_REG_IS_CFA);
}

static int op_val_offset_sf(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	return set_reg_scaled(m, reg, CFI_REG_IS_CFA, cur_sleb(&m->c));
}

static int op_register(struct machine *m)
{
	uint64_t reg = cur_uleb(&m->c);
	int64_t in;
	int rc = unscaled(m, &in);
	return rc < 0 ? rc : set_reg(m, reg, CFI_REG_REGISTER, in);
}

static int op_restore_extended(struct machine *m)
{
	return restore_reg(m, cur_uleb(&m->c));
}

static int op_undefined(struct machine *m)
{
	return set_reg(m, cur_uleb(&m->c), CFI_REG_UNDEFINED, 0);
}

static int op_same_value(struct machine *m)
{
	return set_reg(m, cur_uleb(&m->c), CFI_REG_SAME, 0);
}

static int op_expression(struct machine *m)
{
	return set_reg_expr(m, CFI_REG_EXPR);
}

static int op_val_expression(struct machine *m)
{
	return set_reg_expr(m, CFI_REG_VAL_EXPR);
}

/* ---- whole rows ---- */

static int op_remember_state(struct machine *m)
{
	if (m->n_remembered == MAX_REMEMBERED)
		return err_set(m->c.err, -ERANGE,
			       "%s: %s+0x%" PRIx64 ": more than %d remembered states",
			       m->c.src->file, m->c.src->section, cur_off(&m->c), MAX_REMEMBERED);
	m->remembered[m->n_remembered++] = m->now;
	return 0;
}

static int op_restore_state(struct machine *m)
{
	if (m->n_remembered == 0)
		return bad(m, "a state is restored that was not remembered");
	m->now = m->remembered[--m->n_remembered];
	return 0;
}

/*
 * AArch64: from here on the return address is signed, or no longer. The number is SPARC's
 * elsewhere.
 */
static int op_negate_ra_state(struct machine *m)
{
	if (m->sec->machine != EM_AARCH64)
		return err_set(m->c.err, -EOPNOTSUPP,
			       "%s: %s+0x%" PRIx64
			       ": a call frame instruction of another architecture",
			       m->c.src->file, m->c.src->section, cur_off(&m->c) - 1);
	m->now.ra_signed = !m->now.ra_signed;
	return 0;
}

static int op_nop(struct machine *m)
{
	return 0;
}

/* Bytes of arguments on the stack: matters to exception landing pads only. */
static int op_args_size(struct machine *m)
{
	cur_skip_leb(&m->c);
	return 0;
}

static int (*const ops[0x40])(struct machine *m) = {
	[0x00] = op_nop,
	[0x01] = op_set_loc,
	[0x02] = op_advance1,
	[0x03] = op_advance2,
	[0x04] = op_advance4,
	[0x05] = op_offset_extended,
	[0x06] = op_restore_extended,
	[0x07] = op_undefined,
	[0x08] = op_same_value,
	[0x09] = op_register,
	[0x0a] = op_remember_state,
	[0x0b] = op_restore_state,
	[0x0c] = op_def_cfa,
	[0x0d] = op_def_cfa_register,
	[0x0e] = op_def_cfa_offset,
	[0x0f] = op_def_cfa_expression,
	[0x10] = op_expression,
	[0x11] = op_offset_extended_sf,
	[0x12] = op_def_cfa_sf,
	[0x13] = op_def_cfa_offset_sf,
	[0x14] = op_val_offset,
	[0x15] = op_val_offset_sf,
	[0x16] = op_val_expression,
	[0x1d] = op_advance8,                 /* MIPS, used by 64-bit linkers */
	[0x2d] = op_negate_ra_state,          /* AArch64 */
	[0x2e] = op_args_size,                /* GNU */
	[0x2f] = op_negative_offset_extended, /* GNU */
};

static int step(struct machine *m)
{
	uint8_t byte = cur_u8(&m->c), low = byte & 0x3f;
	switch (byte >> 6) {
	case 1:
		return advance(m, low);
	case 2:
		return set_reg_unsigned(m, low, CFI_REG_AT_CFA);
	case 3:
		return restore_reg(m, low);
	default:
		break;
	}
	if (!ops[low])
		return err_set(m->c.err, -EOPNOTSUPP,
			       "%s: %s+0x%" PRIx64 ": call frame instruction 0x%x is not known",
			       m->c.src->file, m->c.src->section, cur_off(&m->c) - 1, byte);
	return ops[low](m);
}

static int run(struct machine *m, const struct cursor *program, struct cairn_err *err)
{
	m->c = *program;
	m->c.err = err;
	while (cur_more(&m->c) && !m->stop) {
		int rc = step(m);
		/* Bytes read beyond the end are no instruction, whatever they mean. */
		if (m->c.failed)
			return -EBADMSG;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int program_run(const struct frame_section *sec, const struct frame_fde *fde,
		int (*row)(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *rules),
		void *ctx, struct cairn_err *err)
{
	struct machine m;
	/* The remembered states need no clearing: none is read before it is written. */
	memset(&m, 0, offsetof(struct machine, remembered));
	m.sec = sec;
	m.cie = &fde->cie;
	m.lo = fde->lo;
	m.end = fde->hi;
	m.row = row;
	m.ctx = ctx;
	int rc = run(&m, &fde->cie.program, err);
	if (rc < 0)
		return rc;
	struct program_rules initial = m.now;
	m.initial = &initial;
	m.n_remembered = 0;
	rc = run(&m, &fde->program, err);
	if (rc < 0)
		return rc;
	if (!m.stop)
		end_row(&m, m.end);
	return m.stop;
}

/* ---- the row at one address ---- */

struct search {
	uint64_t at;
	bool is_signal_frame;
	struct cfi_row *ret;
};

static int take_row(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *r)
{
	struct search *search = ctx;
	if (hi <= search->at)
		return 0;
	struct cfi_row *ret = search->ret;
	*ret = (struct cfi_row){.lo = {lo},
				.hi = {hi},
				.cfa = r->cfa,
				.cfa_expr = r->cfa == CFI_CFA_EXPR ? r->cfa_expr : NULL,
				.cfa_expr_len = r->cfa == CFI_CFA_EXPR ? r->cfa_expr_len : 0,
				.signal_frame = search->is_signal_frame};
	if (r->cfa == CFI_CFA_REG_OFFSET && r->cfa_reg >= CFI_N_REGS)
		ret->cfa = CFI_CFA_UNDESCRIBED;
	if (ret->cfa == CFI_CFA_REG_OFFSET) {
		ret->cfa_reg = (uint32_t)r->cfa_reg;
		ret->cfa_off = r->cfa_off;
	}
	memcpy(ret->regs, r->regs, sizeof(ret->regs));
	return 1;
}

int program_row_at(const struct frame_section *sec, const struct frame_fde *fde, uint64_t at,
		   struct cfi_row *ret, struct cairn_err *err)
{
	struct search search = {.at = at, .is_signal_frame = fde->cie.is_signal_frame, .ret = ret};
	int rc = program_run(sec, fde, take_row, &search, err);
	return rc < 0 ? rc : 0;
}
