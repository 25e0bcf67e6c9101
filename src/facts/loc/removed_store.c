/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values in memory to which GCC may have removed the store
 *
 * A variable whose address is taken lives in memory. GCC removes a store that nothing reads, also
 * when a callee gets the address and does not read there. It still describes the variable, and
 * values that it computes from the variable, by that memory
 * (docs/findings/gcc-removed-store-described.md):
 *
 *	lea  0xc(%rsp), %rdi		n: DW_OP_fbreg -12, though nothing was stored there
 *	call touch
 *	...				n + 3: DW_OP_fbreg -12, deref, plus 3
 *
 * So the code has to show that the value is there: an instruction on the straight line to the site
 * stores it, or one on the straight line after it reads it before it is written. A slot of the frame
 * whose address nothing takes is believed: the compiler spilled the value there for itself.
 *
 * At a body's entry C passes nothing by an address that the language hides. A clone (.isra,
 * .constprop) that aligns its stack has its stack arguments described by a register that is only
 * about to get their address.
 */
#include <string.h>

#include "dwarf/constants.h"
#include "insn/insn.h"
#include "loc/loc.h"

enum {
	RBP = 6,
	RSP = 7,
	WORD_BYTES = 8,
	/* Bytes below a slot in which the object around it can begin. */
	OBJECT_MAX = 4096,
	/* Instructions after a site in which its value is read. */
	INSNS_MAX = 32,
};

/* Memory at a register and a distance. */
struct memory {
	unsigned int reg;
	int64_t off;
	uint64_t bytes;
	bool is_frame;
};

struct address_search {
	const struct loc_context *ctx;
	struct cfi_row row;
	struct frame_addresses *found;
};

static void add_address(struct frame_addresses *found, int64_t off)
{
	for (unsigned int i = 0; i < found->n; i++)
		if (found->off[i] == off)
			return;
	if (found->n == FRAME_ADDRESSES_MAX)
		found->is_uncertain = true;
	else
		found->off[found->n++] = off;
}

/* Copies of the stack pointer to the frame pointer are the prologue's: mov %rsp, %rbp. */
static bool is_prologue(const uint8_t *code, size_t n)
{
	static const uint8_t store[] = {0x48, 0x89, 0xe5}, load[] = {0x48, 0x8b, 0xec};
	return n >= sizeof(store) &&
	       (!memcmp(code, store, sizeof(store)) || !memcmp(code, load, sizeof(load)));
}

/* An instruction at @pc takes the address at a register and a distance. Negative: of which slot? */
static int note_address(struct address_search *s, struct cairn_vaddr pc, unsigned int reg,
			int64_t off)
{
	if ((pc.v < s->row.lo.v || pc.v >= s->row.hi.v) &&
	    cfi_row_at(s->ctx->cfi, pc, &s->row, NULL) != 1)
		return -1;
	if (s->row.cfa != CFI_CFA_REG_OFFSET)
		return -1;
	if (s->row.cfa_reg == reg)
		add_address(s->found, off - s->row.cfa_off);
	else if (reg == RSP)
		s->found->is_uncertain = true; /* how far it is from the CFA is not told */
	return 0;
}

/*
 * An instruction is looked for at each byte. Where one only seems to begin, a slot that is the
 * compiler's own is not believed; to decode all of the function takes ten times as long.
 */
static int note_range(void *arg, struct dw_range range)
{
	struct address_search *s = arg;
	const uint8_t *code;
	size_t n;
	unsigned int reg;
	int64_t off;
	if (!elf_code_at(s->ctx->code, range.lo, &code, &n) || range.hi.v - range.lo.v > n)
		return -1;
	n = (size_t)(range.hi.v - range.lo.v);
	for (size_t i = 0; i + 1 < n; i++)
		if (insn_may_take_frame_address(code + i) &&
		    insn_takes_frame_address(code + i, n - i, &reg, &off) &&
		    (off || !is_prologue(code + i, n - i)) &&
		    note_address(s, (struct cairn_vaddr){range.lo.v + i}, reg, off) < 0)
			return -1;
	return 0;
}

static void find_addresses(const struct loc_context *ctx, struct frame_addresses *found)
{
	struct address_search s = {.ctx = ctx, .found = found};
	found->is_known = true;
	found->is_uncertain |= dw_ranges(&ctx->function, note_range, &s, NULL) <= 0;
}

bool loc_slot_has_address(const struct loc_context *ctx, int64_t off)
{
	struct frame_addresses own = {0}, *found = ctx->taken ? ctx->taken : &own;
	if (!found->is_known)
		find_addresses(ctx, found);
	bool is_in = found->is_uncertain;
	for (unsigned int i = 0; i < found->n; i++)
		is_in |= found->off[i] <= off && off < found->off[i] + OBJECT_MAX;
	return is_in;
}

static bool is_read_after(const struct loc_context *ctx, const struct memory *m)
{
	const uint8_t *code;
	size_t n;
	if (m->bytes > WORD_BYTES ||
	    !elf_code_at(ctx->code, ctx->is_now ? ctx->next : ctx->at, &code, &n))
		return false;
	for (int i = 0; i < INSNS_MAX; i++) {
		struct insn insn;
		struct insn_access access;
		bool stores_near;
		if (!insn_decode_near(code, n, m->reg, m->off, (unsigned int)m->bytes, &insn,
				      &access, &stores_near))
			return false;
		if (access.loads && !access.takes_address)
			return true;
		if (access.stores || insn.flow != INSN_NEXT || insn.writes & 1u << m->reg)
			return false;
		code += insn.len;
		n -= insn.len;
	}
	return false;
}

/* Whether memory is a slot of the frame; its distance from the CFA. */
static bool is_slot(struct loc_context *ctx, const struct memory *m, int64_t *ret_off)
{
	if (!m->is_frame || !loc_row(ctx) || ctx->row.cfa != CFI_CFA_REG_OFFSET ||
	    ctx->row.cfa_reg != m->reg)
		return false;
	*ret_off = m->off - ctx->row.cfa_off;
	return true;
}

/*
 * Whether the caller of the function wrote it, a spill, an instruction before the site, or, which
 * takes less to see, one after it reads it.
 */
static bool is_shown(struct loc_context *ctx, const struct memory *m, struct cairn_vaddr since)
{
	int64_t off;
	if (!m->bytes)
		return false;
	if (!is_slot(ctx, m, &off))
		return is_read_after(ctx, m);
	return off >= 0 || !loc_slot_has_address(ctx, off) || is_read_after(ctx, m) ||
	       loc_is_stored_since(ctx, since, off, m->bytes);
}

/* The address that a piece begins to compute at step @k, a register and a distance; where it ends. */
static uint32_t read_address(const struct cairn_piece *p, uint32_t k, struct memory *ret)
{
	const struct cairn_loc_step *s = p->steps;
	*ret = (struct memory){.reg = s[k].reg, .is_frame = s[k].reg == RSP || s[k].reg == RBP};
	if (s[k].op != CAIRN_LOC_REG)
		return k;
	if (++k < p->n_steps && s[k].op == CAIRN_LOC_ADD && s[k].operand == CAIRN_LOC_IMM)
		ret->off = s[k++].imm;
	return k;
}

/* Whether a piece is in memory that the code shows to be written. */
static bool is_piece_shown(struct loc_context *ctx, const struct cairn_piece *p,
			   struct cairn_vaddr since)
{
	struct memory m;
	if (p->kind != CAIRN_PIECE_MEMORY || !p->n_steps || p->steps[0].op == CAIRN_LOC_ADDR)
		return true;
	if (read_address(p, 0, &m) != p->n_steps)
		return false; /* through a pointer that is in memory itself */
	m.bytes = p->size ? p->size : dw_type_bytes(ctx->formal);
	return is_shown(ctx, &m, since);
}

/*
 * The same of what a piece is computed from. A value that is computed from memory outside of the
 * frame is another rule's (sites/args_check.c).
 */
static bool are_loads_shown(struct loc_context *ctx, const struct cairn_piece *p,
			    struct cairn_vaddr since)
{
	for (uint32_t k = 0; k < p->n_steps; k++) {
		struct memory m;
		uint32_t load = read_address(p, k, &m);
		if (load == k || load == p->n_steps || p->steps[load].op != CAIRN_LOC_LOAD)
			continue;
		m.bytes = p->steps[load].size;
		if (m.is_frame && !is_shown(ctx, &m, since))
			return false;
	}
	return true;
}

static bool has_load(const struct cairn_piece *p)
{
	for (uint32_t k = 0; k < p->n_steps; k++)
		if (p->steps[k].op == CAIRN_LOC_LOAD)
			return true;
	return false;
}

static bool are_pieces_shown(struct loc_context *ctx, const struct cairn_location *loc,
			     struct cairn_vaddr since)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++)
		if (!is_piece_shown(ctx, &loc->pieces[i], since) ||
		    (has_load(&loc->pieces[i]) && !are_loads_shown(ctx, &loc->pieces[i], since)))
			return false;
	return true;
}

/* Most arguments are in registers, so the type, which takes longer, is asked last. */
bool loc_is_shown(struct loc_context *ctx, const struct cairn_location *loc,
		  struct cairn_vaddr since)
{
	/* A variable is made by the function itself, whatever its type. */
	bool is_passed = ctx->formal->tag == DW_TAG_formal_parameter;
	return are_pieces_shown(ctx, loc, since) ||
	       (is_passed &&
		(loc_is_by_reference(ctx->formal) ||
		 (!ctx->inlined && !ctx->is_now && loc_may_be_by_reference(ctx->formal))));
}
