/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters that were stored to a slot of the frame on all paths
 *
 * If a register is about to be overwritten, for example by a call, GCC stores the variable to a
 * slot. The store is often long before the call, but GCC describes the slot only from the call on:
 *
 *	514:	mov  %rdx, 0x10(%rsp)		[0x4e0, 0x529) rdx
 *	...
 *	525:	call pthread_enable_asynccancel	[0x529, 0x55c) CFA - 32
 *	52a:	mov  0x10(%rsp), %rdx
 *
 * So after the call the value is there if the store ran. It did if on every path from the
 * function's entry the last store to the slot was one of the register that describes the variable
 * at that store. It is a forward data-flow problem with one bit:
 *
 *	at the entry, and at code that no known path reaches		not there
 *	after a store of the variable's register to the slot		there
 *	after another store that touches the slot			not there
 *	where paths meet						there, if all of them agree
 *
 * A slot whose address is taken is excluded: it may be written through a pointer, and a store that
 * nothing reads may be missing (docs/findings/gcc-removed-store-described.md).
 */
#include <stdlib.h>

#include "dwarf/constants.h"
#include "insn/insn.h"
#include "loc/code.h"
#include "loc/cfg.h"
#include "loc/loc.h"

enum {
	/* Registers of one parameter; more are not considered. */
	REGISTERS_MAX = 32,
	WORD_BYTES = 8,
	REGISTERS = 16, /* general ones */
};

/* A range of addresses in which the parameter is described in a register. */
struct in_register {
	struct cairn_vaddr lo, hi;
	unsigned int reg;
};

/* The state before an instruction; the larger one wins where paths meet. */
enum state { UNREACHED, THERE, NOT_THERE };

enum effect { NONE, PUTS, SPOILS };

struct spill_search {
	const struct loc_context *ctx;
	int64_t off; /* of the slot, from the CFA */
	unsigned int bytes;
	struct in_register registers[REGISTERS_MAX];
	unsigned int n_registers;
	const struct cfg *g;
	uint8_t *effects, *states; /* one for each instruction */
};

static int note_register(void *arg, const struct dw_loc_entry *e)
{
	struct spill_search *s = arg;
	bool is_register =
		e->expr_len == 1 && e->expr[0] >= DW_OP_reg0 && e->expr[0] < DW_OP_reg0 + REGISTERS;
	if (is_register && !e->everywhere && s->n_registers < REGISTERS_MAX)
		s->registers[s->n_registers++] =
			(struct in_register){e->lo, e->hi, e->expr[0] - DW_OP_reg0};
	return 0;
}

static bool is_in(const struct spill_search *s, uint64_t at, unsigned int reg)
{
	for (unsigned int i = 0; i < s->n_registers; i++)
		if (s->registers[i].reg == reg && s->registers[i].lo.v <= at &&
		    at < s->registers[i].hi.v)
			return true;
	return false;
}

/* Returns false when nothing is known about the function. */
static bool effect_of(struct spill_search *s, const struct cfg_insn *insn, uint8_t *ret)
{
	const uint8_t *code;
	struct cfi_row row;
	size_t n;
	unsigned int reg, bytes;
	if (!elf_code_at(s->ctx->code, (struct cairn_vaddr){insn->at}, &code, &n) ||
	    cfi_row_at(s->ctx->cfi, (struct cairn_vaddr){insn->at}, &row, NULL) != 1 ||
	    row.cfa != CFI_CFA_REG_OFFSET)
		return false;
	int64_t off = row.cfa_off + s->off;
	struct insn_access access = insn_accesses(code, insn->len, row.cfa_reg, off, s->bytes);
	if (access.takes_address)
		return false;
	/* The return address that a call writes is below the frame. */
	*ret = access.stores && !insn->is_call ? SPOILS : NONE;
	if (insn_stores_register(code, insn->len, row.cfa_reg, off, &reg, &bytes) &&
	    bytes >= s->bytes && is_in(s, insn->at, reg))
		*ret = PUTS;
	return true;
}

static uint8_t after(const struct spill_search *s, uint32_t i)
{
	if (s->states[i] == UNREACHED || s->effects[i] == NONE)
		return s->states[i];
	return s->effects[i] == PUTS ? THERE : NOT_THERE;
}

/* One pass; whether something changed. */
static bool propagate(struct spill_search *s)
{
	bool is_changed = false;
	for (uint32_t i = 0; i < s->g->v.n; i++) {
		uint8_t state = after(s, i);
		uint32_t k = 0, next;
		while (state != UNREACHED && (next = cfg_next(s->g, i, &k)) != GRAPH_NONE) {
			is_changed |= s->states[next] < state;
			s->states[next] = s->states[next] < state ? state : s->states[next];
		}
	}
	return is_changed;
}

static bool solve(struct spill_search *s)
{
	for (size_t i = 0; i < s->g->v.n; i++)
		if (!effect_of(s, &s->g->v.p[i], &s->effects[i]))
			return false;
	s->states[s->g->entry] = NOT_THERE;
	for (size_t i = 0; i < s->g->orphans.n; i++)
		s->states[s->g->orphans.p[i]] = NOT_THERE;
	size_t left = CODE_VISITS_MAX / (s->g->v.n + 1) + 2;
	while (left && propagate(s))
		left--;
	return left;
}

/*
 * The stopped program's position: before the next instruction, or after the call that it is in.
 */
static bool is_there(const struct spill_search *s)
{
	const struct loc_context *ctx = s->ctx;
	if (ctx->next.v == ctx->at.v) {
		uint32_t i = cfg_at(s->g, ctx->at.v);
		return i != GRAPH_NONE && s->states[i] == THERE;
	}
	size_t i = cfg_from(s->g, ctx->next.v);
	if (!i || s->g->v.p[i - 1].at + s->g->v.p[i - 1].len != ctx->next.v)
		return false;
	return after(s, (uint32_t)i - 1) == THERE;
}

static bool search(struct spill_search *s, struct cfg *g)
{
	bool ret = false;
	s->g = g;
	s->effects = calloc(g->v.n, 1);
	s->states = calloc(g->v.n, 1);
	if (s->effects && s->states && g->entry != GRAPH_NONE)
		ret = solve(s) && is_there(s);
	free(s->effects);
	free(s->states);
	return ret;
}

bool loc_is_spilled(const struct loc_context *ctx, int64_t off, uint64_t bytes)
{
	struct spill_search s = {.ctx = ctx, .off = off, .bytes = (unsigned int)bytes};
	struct cfg *g = NULL;
	if (!ctx->formal || !ctx->cfi || !bytes || bytes > WORD_BYTES || off >= 0)
		return false;
	if (dw_locations(ctx->formal, DW_AT_location, note_register, &s, NULL) < 0 ||
	    !s.n_registers || cfg_new(ctx->code, &ctx->function, ctx->entry, &g) < 0 || !g)
		return false;
	bool ret = search(&s, g);
	cfg_free(g);
	return ret;
}
