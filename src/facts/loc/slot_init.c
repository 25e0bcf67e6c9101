/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that are described for all of a function, and are not there at each of its instructions
 *
 * Unoptimised code keeps each parameter in a slot of the frame, and describes it once, for the
 * whole function:
 *
 *	f:      push %rbp                    n is described at CFA - 36, which is not written yet
 *		mov  %rsp, %rbp              as above
 *		mov  %edi, -20(%rbp)         as above: this is the instruction that is about to run
 *		...                          now it is
 *		pop  %rbp                    Clang counts from rbp, the caller's from here on
 *		ret
 *
 * A debugger that stops in the first lines shows garbage. So a slot counts once control has passed
 * a store to it. The store must be on the straight line from the entry, where compilers put it. The
 * unwind row at the store shows which slot it writes, as rsp and rbp change on the way. A frame
 * base that is a register counts where the row is that of most of the function.
 *
 * A stack argument is there from the beginning, if the caller put it there: Clang's callers leave
 * out arguments that the function does not use. The slot belongs to the function, and optimising
 * compilers use it for other things, above all for the arguments of a tail call.
 */
#include "dwarf/constants.h"
#include "loc/code.h"
#include "loc/loc.h"

enum {
	RBP = 6,
	RSP = 7,
	/*
	 * Instructions before the last parameter is stored; a variadic function stores 14 registers
	 * first.
	 */
	INSNS_MAX = 256,
	WORD_BYTES = 8,
	/* Rows of one function that are checked, and different ones among them. */
	ROWS_MAX = 256,
	KINDS_MAX = 16,
	/* Bytes of an object that are followed. */
	OBJECT_MAX = 256,
};

/* ---- the frame ---- */

struct kind {
	uint32_t reg;
	int64_t off;
	uint64_t bytes;
};

static bool is_row(const struct kind *k, const struct cfi_row *row)
{
	return row->cfa == CFI_CFA_REG_OFFSET && row->cfa_reg == k->reg && row->cfa_off == k->off;
}

static struct kind *kind_of(struct kind kinds[KINDS_MAX], unsigned int *n,
			    const struct cfi_row *row)
{
	for (unsigned int i = 0; i < *n; i++)
		if (is_row(&kinds[i], row))
			return &kinds[i];
	if (*n == KINDS_MAX)
		return NULL;
	kinds[*n] = (struct kind){.reg = row->cfa_reg, .off = row->cfa_off};
	return &kinds[(*n)++];
}

bool loc_frame_is_set_up(const struct loc_context *ctx, unsigned int reg)
{
	struct kind kinds[KINDS_MAX], *most = NULL;
	struct cairn_vaddr lo, hi;
	struct cfi_row row;
	unsigned int n = 0;
	if (!ctx->cfi || !cfi_fde_at(ctx->cfi, ctx->at, &lo, &hi))
		return false;
	for (int i = 0; lo.v < hi.v; lo = row.hi, i++) {
		if (i == ROWS_MAX || cfi_row_at(ctx->cfi, lo, &row, NULL) != 1 || row.hi.v <= lo.v)
			return false;
		if (row.cfa != CFI_CFA_REG_OFFSET)
			continue;
		struct kind *k = kind_of(kinds, &n, &row);
		if (!k)
			return false;
		k->bytes += row.hi.v - lo.v;
		if (!most || k->bytes > most->bytes)
			most = k;
	}
	return most && most->reg == reg && cfi_row_at(ctx->cfi, ctx->at, &row, NULL) == 1 &&
	       is_row(most, &row);
}

/* ---- a slot ---- */

/* Whether the word at the CFA + @off is written between the function's entry and ctx->next. */
static bool is_stored(const struct loc_context *ctx, int64_t off, unsigned int bytes)
{
	struct cfi_row row = {0};
	const uint8_t *code;
	size_t n;
	if (!elf_code_at(ctx->code, ctx->entry, &code, &n))
		return false;
	uint64_t pc = ctx->entry.v;
	for (int i = 0; i < INSNS_MAX && pc != ctx->next.v; i++) {
		struct insn insn;
		if (!insn_decode(code, n, pc, &insn) ||
		    (pc >= row.hi.v &&
		     cfi_row_at(ctx->cfi, (struct cairn_vaddr){pc}, &row, NULL) != 1))
			return false;
		if (row.cfa == CFI_CFA_REG_OFFSET && insn.flow == INSN_NEXT &&
		    insn_accesses(code, n, row.cfa_reg, row.cfa_off + off, bytes).stores)
			return true;
		/*
		 * Calls are passed: such as that of mcount(), which comes before the function's
		 * work.
		 */
		if (insn.flow != INSN_NEXT && insn.flow != INSN_CALL &&
		    insn.flow != INSN_CALL_INDIRECT)
			return false;
		pc += insn.len;
		code += insn.len;
		n -= insn.len;
	}
	return false;
}

static bool has_arrived(const struct loc_context *ctx, int64_t off, uint64_t bytes)
{
	if (!bytes || bytes > OBJECT_MAX)
		return false;
	for (uint64_t i = 0; i < bytes; i += WORD_BYTES)
		if (!is_stored(ctx, off + (int64_t)i,
			       bytes - i < WORD_BYTES ? (unsigned int)(bytes - i) : WORD_BYTES))
			return false;
	return true;
}

struct storing {
	const struct loc_context *ctx;
	struct cairn_vaddr since, to;
	int64_t off; /* from the CFA */
	unsigned int bytes;
	bool has_left, is_stored, is_past;
	uint64_t n_visits;
};

static int note_store(void *arg, const struct code_insn *insn)
{
	struct storing *s = arg;
	s->n_visits++;
	s->is_past = insn->at >= s->to.v && insn->at >= s->since.v;
	if (s->is_past)
		return -1;
	bool is_before = insn->at + insn->step.len == s->since.v;
	struct cfi_row row;
	if (!is_before && (s->has_left || insn->at < s->since.v || insn->at >= s->to.v))
		return 0;
	/* A call writes its return address, below the frame. */
	if (insn->step.flow == INSN_NEXT &&
	    cfi_row_at(s->ctx->cfi, (struct cairn_vaddr){insn->at}, &row, NULL) == 1 &&
	    row.cfa == CFI_CFA_REG_OFFSET)
		s->is_stored |= insn_accesses(insn->bytes, insn->step.len, row.cfa_reg,
					      row.cfa_off + s->off, s->bytes)
					.stores;
	if (!is_before && insn->step.flow != INSN_NEXT && insn->step.flow != INSN_CALL &&
	    insn->step.flow != INSN_CALL_INDIRECT)
		s->has_left = true;
	return 0;
}

static bool is_word_stored(struct storing *s)
{
	struct frame_addresses *taken = s->ctx->taken;
	if (taken && taken->n_visits > CODE_VISITS_MAX)
		return false;
	int rc = code_visit(s->ctx->code, &s->ctx->function, note_store, s);
	if (taken)
		taken->n_visits += s->n_visits;
	return (rc == 0 || s->is_past) && s->is_stored;
}

bool loc_is_stored_since(const struct loc_context *ctx, struct cairn_vaddr since, int64_t off,
			 uint64_t bytes)
{
	if (!bytes || bytes > OBJECT_MAX)
		return false;
	for (uint64_t i = 0; i < bytes; i += WORD_BYTES) {
		struct storing s = {.ctx = ctx,
				    .since = since,
				    .to = ctx->is_now ? ctx->next : ctx->at,
				    .off = off + (int64_t)i};
		s.bytes = bytes - i < WORD_BYTES ? (unsigned int)(bytes - i) : WORD_BYTES;
		if (!is_word_stored(&s))
			return false;
	}
	return true;
}

/* ---- a register ---- */

struct keeping {
	uint16_t reg; /* as a mask */
	bool is_read;
};

static int note_keeping(void *arg, const struct code_insn *insn)
{
	struct keeping *k = arg;
	struct insn decoded;
	bool is_call = insn->step.flow == INSN_CALL || insn->step.flow == INSN_CALL_INDIRECT;
	if (!insn_decode(insn->bytes, insn->step.len, insn->at, &decoded))
		return -1;
	k->is_read |= decoded.reads & k->reg;
	return (decoded.writes | (is_call ? INSN_CALL_WRITES : 0)) & k->reg ? -1 : 0;
}

bool loc_function_keeps_register(const struct loc_context *ctx, unsigned int reg)
{
	struct keeping k = {.reg = reg < 16 ? (uint16_t)(1u << reg) : 0};
	return !ctx->inlined && k.reg &&
	       code_visit(ctx->code, &ctx->function, note_keeping, &k) == 0 && k.is_read;
}

/* ---- stack arguments ---- */

struct use {
	const struct loc_context *ctx;
	int64_t off; /* from the CFA */
	uint64_t bytes;
	struct cfi_row row;
	bool is_read, is_written;
};

static int note_use(void *arg, const struct code_insn *insn)
{
	struct use *u = arg;
	struct cairn_vaddr pc = {insn->at};
	if ((pc.v < u->row.lo.v || pc.v >= u->row.hi.v) &&
	    cfi_row_at(u->ctx->cfi, pc, &u->row, NULL) != 1)
		return -1;
	if (u->row.cfa != CFI_CFA_REG_OFFSET)
		return -1;
	struct insn_access access = insn_accesses(insn->bytes, insn->step.len, u->row.cfa_reg,
						  u->row.cfa_off + u->off, (unsigned int)u->bytes);
	u->is_read |= access.loads;
	/* "rep movs" over an address that was taken puts the arguments of a tail call there. */
	u->is_written |= access.stores || access.takes_address;
	return 0;
}

static bool is_intact(const struct loc_context *ctx, int64_t off, uint64_t bytes)
{
	struct use u = {.ctx = ctx, .off = off, .bytes = bytes};
	return ctx->cfi && bytes && bytes <= OBJECT_MAX &&
	       code_visit(ctx->code, &ctx->function, note_use, &u) == 0 && u.is_read &&
	       !u.is_written;
}

/* ---- a location ---- */

/* A location that counts from the stack or frame pointer. */
static bool is_slot(const struct cairn_piece *p, unsigned int *ret_reg, int64_t *ret_off)
{
	const struct cairn_loc_step *s = p->steps;
	if (p->kind != CAIRN_PIECE_MEMORY || !p->n_steps || s[0].op != CAIRN_LOC_REG ||
	    (s[0].reg != RSP && s[0].reg != RBP))
		return false;
	*ret_reg = s[0].reg;
	*ret_off = p->n_steps > 1 && s[1].op == CAIRN_LOC_ADD && s[1].operand == CAIRN_LOC_IMM
			   ? s[1].imm
			   : 0;
	return true;
}

static bool slot_holds(const struct loc_context *ctx, const struct dw_unit *unit,
		       const struct cairn_piece *p, unsigned int reg, int64_t off,
		       struct cairn_vaddr since, bool everywhere)
{
	bool is_gcc = dw_unit_is_gcc(unit), is_followed = is_gcc && dw_unit_is_optimised(unit);
	struct cfi_row row;
	if (!is_gcc && !loc_frame_is_set_up(ctx, reg))
		return false;
	if (!ctx->cfi || cfi_row_at(ctx->cfi, ctx->at, &row, NULL) != 1 ||
	    row.cfa != CFI_CFA_REG_OFFSET || row.cfa_reg != reg)
		return !everywhere && !is_followed;
	uint64_t bytes = p->size || !ctx->formal ? p->size : dw_type_bytes(ctx->formal);
	off -= row.cfa_off;
	if (off >= 0)
		return (is_gcc && !is_followed) || is_intact(ctx, off, bytes);
	if (everywhere)
		return !ctx->inlined && has_arrived(ctx, off, bytes);
	return !is_followed || loc_is_stored_since(ctx, since, off, bytes);
}

/*
 * In memory that something else than the stack or frame pointer leads to, and that is not at a
 * fixed address.
 */
static bool is_pointed_to(const struct cairn_piece *p)
{
	return p->kind == CAIRN_PIECE_MEMORY && p->n_steps && p->steps[0].op != CAIRN_LOC_ADDR;
}

/*
 * GCC does not notice that one register of several is written. It describes struct s { long a, b; }
 * in rdx and rcx up to the write of rdx, also after "mov state, %rcx"
 * (docs/findings/gcc-half-of-a-pair-is-written.md).
 */
static bool half_holds(const struct loc_context *ctx, const struct dw_unit *unit,
		       const struct cairn_piece *p)
{
	if (!dw_unit_is_gcc(unit) || p->kind != CAIRN_PIECE_VALUE || p->n_steps != 1 ||
	    p->steps[0].op != CAIRN_LOC_REG)
		return true;
	return flow_unchanged(ctx->flow, ctx->at, p->steps[0].reg);
}

bool loc_holds_now(const struct loc_context *ctx, const struct dw_unit *unit,
		   const struct cairn_location *loc, struct cairn_vaddr since, bool everywhere)
{
	bool is_followed = dw_unit_is_gcc(unit) && dw_unit_is_optimised(unit);
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		unsigned int reg;
		int64_t off;
		bool in_slot = is_slot(p, &reg, &off);
		if (in_slot && !slot_holds(ctx, unit, p, reg, off, since, everywhere))
			return false;
		if (!in_slot && is_followed && is_pointed_to(p) &&
		    !loc_is_by_reference(ctx->formal))
			return false;
		if (loc->n_pieces > 1 && !half_holds(ctx, unit, p))
			return false;
	}
	return true;
}
