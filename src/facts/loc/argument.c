/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which location of a parameter holds at an address
 *
 * A parameter has a constant (DW_AT_const_value), one location for its whole scope, or a list of
 * locations for parts of it. From a list we take the entry that contains the address. We take
 * neither the first one nor the nearest.
 *
 * Views. Several source statements can stand between two instructions. For
 *
 *	static inline int f(int n) { n--; return g(n); }
 *
 * both "n is rbx" and "n is rbx - 1" hold at the same address, one before and one after the n--.
 * GCC numbers the positions at one address as views and gives each entry a pair of them. So entries
 * are compared as (address, view), and the site is (entry_pc, entry view). In Debian's libc most
 * entry views are not 0; a reader that drops them prints the later value.
 *
 *	site (0x10, view 2):
 *	entry [0x10 view 1, 0x10 view 3) rbx		this one, though 0x10 == 0x10
 *	entry [0x10 view 3, 0x40 view 0) rbx - 1
 *
 * GCC writes the entry as a line row of its own, say view k, and where a location begins it writes
 * the number of the next row. Most arguments are bound before that row and begin at k. Some are
 * bound after it and begin at k + 1. This is still before the first statement, because a statement
 * has a row of its own, and its changes begin at k + 2 or later. So when nothing holds at k, an
 * entry that begins at k + 1 does. This needs the entry's row, which is there when
 * DW_AT_GNU_entry_view is. Such a parameter was removed: see sites/quirks/removed_param.c.
 *
 * Padding. The first instruction of a loop is often aligned. GCC puts the label of a location
 * before the padding and the line rows after it, while the view numbers of the location count those
 * rows:
 *
 *	0x38da  nopw			   entry [0x38da view 2, 0x38da view 6) rsi
 *	0x38e0  movswq 8(%rsi), %rax	   rows at 0x38e0: view 0, 1, 2 (the entry), 3, ...
 *
 * Compared literally, all of 0x38da comes before the entry, and the last location wins, which is a
 * later value. Nothing happens in the nops, so a bound in them is moved to the instruction after
 * them. If the line table has rows of its own before the nops, the view may count those as well:
 * then nothing is known unless both readings agree.
 *
 * A list without views (Clang's, and GCC's with -gno-variable-location-views) is compared by
 * address alone.
 *
 * A stopped program's position (is_now) has no view: all statements of that address are done, so
 * the last location counts.
 *
 * Locations for the whole scope. A variable may be described in a stack slot, or with GCC in a
 * register, for all of its scope. This does not say when it got there. At the first instruction of
 * the scope it usually has not yet: such locations are not used, unless the caller put the value
 * there. The caller did if the function reads that register and never writes it. A computed value
 * (stack_value) or a constant needs no arrival. A list entry begins where the value arrived, with
 * one exception: GCC lets an entry for a stack slot begin at the instruction that stores it, or
 * some instructions before.
 */
#include <errno.h>
#include <string.h>

#include <cairn/location.h>

#include "base/search.h"
#include "dwarf/constants.h"
#include "dwarf/loclists.h"
#include "dwarf/near.h"
#include "insn/insn.h"
#include "loc/loc.h"
#include "loc/clang_spill.h"

/* All entries that hold at the site; they have to agree. */
struct search {
	struct loc_context *ctx;
	const struct dw_unit *unit;
	struct arena *arena;
	struct cairn_location found;
	unsigned int n_found, n_entries;
	bool everywhere;
	/* it lives in registers: DW_OP_regN, as opposed to being computed from them */
	bool is_register;
	bool continues;    /* it did not begin at this entry */
	bool as_it_stands; /* bounds in the padding are not moved */
	bool moved;        /* some were */
	bool next_view;    /* search for an entry that begins one view after the site's */
	int rc;
	/*
	 * the start of the first of several adjacent entries with the same description as the found
	 * one
	 */
	struct cairn_vaddr since;
	/* The same of the entry before, and that: from here on nothing is cleared. */
	struct cairn_vaddr last_since;
	struct dw_loc_entry last;
};

static void search_init(struct search *s, struct loc_context *ctx, const struct dw_unit *unit,
			struct arena *arena)
{
	memset(s, 0, offsetof(struct search, last_since));
	s->ctx = ctx;
	s->unit = unit;
	s->arena = arena;
}

static bool before_or_at(struct cairn_vaddr a, uint64_t view_a, struct cairn_vaddr b,
			 uint64_t view_b)
{
	return a.v < b.v || (a.v == b.v && view_a <= view_b);
}

static inline bool holds(const struct dw_loc_entry *e, struct cairn_vaddr at, uint64_t view)
{
	if (e->everywhere)
		return true;
	if (!e->has_views)
		return e->lo.v <= at.v && at.v < e->hi.v;
	return before_or_at(e->lo, e->view_lo, at, view) &&
	       !before_or_at(e->hi, e->view_hi, at, view);
}

bool loc_entry_holds(const struct dw_loc_entry *e, struct cairn_vaddr at, uint64_t view)
{
	return holds(e, at, view);
}

static bool begins_next(const struct dw_loc_entry *e, struct cairn_vaddr at, uint64_t view)
{
	return e->has_views && e->lo.v == at.v && e->view_lo == view + 1 && holds(e, at, view + 1);
}

/* Whether the line table has a row in [lo, hi). */
static bool has_rows(const struct dw_unit *unit, struct cairn_vaddr lo, struct cairn_vaddr hi)
{
	const struct dw_row *rows;
	int64_t n = dw_unit_rows(unit, &rows, NULL);
	int64_t from = SEARCH(0, n, i, rows[i].at.v < lo.v);
	return n < 0 || (from < n && rows[from].at.v < hi.v);
}

static struct cairn_vaddr out_of_padding(struct search *s, struct cairn_vaddr bound)
{
	struct loc_context *ctx = s->ctx;
	if (s->as_it_stands || bound.v < ctx->padding.v || bound.v >= ctx->at.v)
		return bound;
	if (ctx->find_padding) {
		ctx->padding = ctx->find_padding(ctx->padding_of, ctx->at);
		ctx->find_padding = NULL;
		return out_of_padding(s, bound);
	}
	s->moved = true;
	return ctx->at;
}

/* The address from which on the description of @e holds. */
static struct cairn_vaddr said_since(struct search *s, const struct dw_loc_entry *e)
{
	const struct dw_loc_entry *last = &s->last;
	bool goes_on = s->n_entries && last->hi.v == e->lo.v && last->expr_len == e->expr_len &&
		       memcmp(last->expr, e->expr, e->expr_len) == 0;
	if (!goes_on)
		s->last_since = e->lo;
	s->last = *e;
	return s->last_since;
}

/* Returns 0 or -ENOMEM. @e is moved where it begins or ends in the padding. */
static int see_entry(struct search *s, struct dw_loc_entry *e)
{
	struct loc_context *ctx = s->ctx;
	/* Arrival is checked only for a stopped program's position. */
	struct cairn_vaddr since = ctx->is_now ? said_since(s, e) : e->lo;
	s->n_entries++;
	if (!e->everywhere && (e->hi.v < ctx->padding.v || e->lo.v > ctx->at.v))
		return 0;
	if (e->has_views && ctx->padding.v < ctx->at.v) {
		e->lo = out_of_padding(s, e->lo);
		e->hi = out_of_padding(s, e->hi);
	}
	if (s->next_view ? !begins_next(e, ctx->at, ctx->view) : !holds(e, ctx->at, ctx->view))
		return 0;
	struct cairn_location loc;
	int rc = loc_from_expr(ctx, s->unit, e->expr, e->expr_len, s->arena, &loc);
	if (rc < 0)
		return rc;
	if (loc.why == CAIRN_AVAILABLE &&
	    spill_is_address(s->unit, &ctx->function, e->expr, e->expr_len))
		loc = (struct cairn_location){.why = CAIRN_UNAVAIL_SLOT_ADDRESS,
					      .quirk = CAIRN_QUIRK_SPILL_ADDRESS};
	s->since = since;
	if (s->n_found++ && !loc_equal(&s->found, &loc))
		s->found = (struct cairn_location){.why = CAIRN_UNAVAIL_AMBIGUOUS};
	else
		s->found = loc;
	ctx->expr = (struct expression){e->expr, e->expr_len};
	s->everywhere = e->everywhere;
	s->is_register = e->expr_len && e->expr[0] >= DW_OP_reg0 && e->expr[0] <= DW_OP_reg31;
	s->continues |= e->everywhere || e->lo.v != ctx->at.v || e->view_lo < ctx->view_from;
	ctx->plain_list |= !e->everywhere && !e->has_views;
	return 0;
}

bool loc_equal(const struct cairn_location *a, const struct cairn_location *b)
{
	if (a->why != b->why || a->n_pieces != b->n_pieces)
		return false;
	for (uint32_t i = 0; i < a->n_pieces; i++) {
		const struct cairn_piece *x = &a->pieces[i], *y = &b->pieces[i];
		if (x->kind != y->kind || x->off != y->off || x->size != y->size ||
		    x->n_steps != y->n_steps)
			return false;
		if (x->n_steps && memcmp(x->steps, y->steps, x->n_steps * sizeof(*x->steps)))
			return false;
		if (x->kind == CAIRN_PIECE_BYTES && memcmp(x->bytes, y->bytes, x->size))
			return false;
	}
	return true;
}

/*
 * Whether the slot by which a piece is found is at or above the CFA: the caller wrote it before the
 * call.
 */
static bool is_callers(const struct loc_context *ctx, const struct cairn_piece *p)
{
	if (ctx->inlined || ctx->row_state != 1 || ctx->row.cfa != CFI_CFA_REG_OFFSET ||
	    ctx->row.cfa_reg != p->steps[0].reg)
		return false;
	bool adds = p->n_steps > 1 && p->steps[1].op == CAIRN_LOC_ADD &&
		    p->steps[1].operand == CAIRN_LOC_IMM;
	uint32_t n = adds ? 2 : 1;
	/* The slot holds the address of an object that is passed by its address. */
	bool is_slot = p->n_steps == n || p->steps[n].op == CAIRN_LOC_LOAD;
	return is_slot && (adds ? p->steps[1].imm : 0) >= ctx->row.cfa_off;
}

/*
 * Whether a piece is in memory at a fixed distance from the frame (rsp, rbp): a stack slot of the
 * function's own.
 */
static bool is_frame_memory(const struct loc_context *ctx, const struct cairn_location *loc)
{
	enum { RBP = 6, RSP = 7 };
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		if (p->kind != CAIRN_PIECE_MEMORY || !p->n_steps || p->steps[0].op != CAIRN_LOC_REG)
			continue;
		if (p->steps[0].reg != RSP && p->steps[0].reg != RBP)
			continue;
		if (!is_callers(ctx, p))
			return true;
	}
	return false;
}

/* The stack slot that a piece is; false when it is none. */
static bool slot_of(const struct cairn_piece *p, unsigned int *ret_reg, int64_t *ret_off)
{
	if (p->kind != CAIRN_PIECE_MEMORY || !p->n_steps || p->steps[0].op != CAIRN_LOC_REG)
		return false;
	*ret_reg = p->steps[0].reg;
	*ret_off = p->n_steps > 1 && p->steps[1].op == CAIRN_LOC_ADD ? p->steps[1].imm : 0;
	return true;
}

/*
 * True if a slot is written before it is read, on the straight line from the site. The slot's
 * content at the site is then dead, and the description is of later.
 */
static bool is_filled_after(const struct loc_context *ctx, unsigned int reg, int64_t off)
{
	enum {
		/*
		 * The instructions of one statement, with those that the scheduler moved between.
		 */
		INSNS_MAX = 32,
		SLOT_BYTES = 8,
	};
	const uint8_t *code;
	size_t n;
	if (!elf_code_at(ctx->code, ctx->is_now ? ctx->next : ctx->at, &code, &n))
		return true;
	for (int i = 0; i < INSNS_MAX; i++) {
		struct insn insn;
		struct insn_access access;
		bool stores_near;
		if (!insn_decode_near(code, n, reg, off, SLOT_BYTES, &insn, &access, &stores_near))
			return !i;
		if (!i && stores_near)
			return true;
		if (access.loads || access.stores)
			return !access.loads;
		if (insn.flow != INSN_NEXT || insn.writes & 1u << reg)
			return false;
		code += insn.len;
		n -= insn.len;
	}
	return false;
}

/* Whether a slot in @loc is not written yet at the site. */
static bool is_stored_later(const struct loc_context *ctx, const struct cairn_location *loc)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		unsigned int reg;
		int64_t off;
		if (slot_of(&loc->pieces[i], &reg, &off) && is_filled_after(ctx, reg, off))
			return true;
	}
	return false;
}

/*
 * True if the value is in a slot into which all paths put it, so that the description of the slot
 * can be of no other value.
 */
static bool was_put_there(const struct search *s)
{
	struct loc_context *ctx = s->ctx;
	unsigned int reg;
	int64_t off;
	if (!ctx->is_now || ctx->inlined || s->everywhere || !dw_unit_is_gcc(s->unit) ||
	    s->found.n_pieces != 1 || !slot_of(&s->found.pieces[0], &reg, &off) ||
	    s->found.pieces[0].size || s->found.pieces[0].n_steps > 2)
		return false;
	if (!loc_row(ctx) || ctx->row.cfa != CFI_CFA_REG_OFFSET || ctx->row.cfa_reg != reg)
		return false;
	return loc_is_spilled(ctx, off - ctx->row.cfa_off, dw_type_bytes(ctx->formal));
}

/*
 * All of it is one register, in which the function was given it: it reads the register and never
 * writes it.
 */
static bool has_kept_register(const struct search *s)
{
	const struct cairn_piece *p = s->found.pieces;
	return s->found.n_pieces == 1 && p->n_steps == 1 && p->steps->op == CAIRN_LOC_REG &&
	       loc_function_keeps_register(s->ctx, p->steps->reg);
}

static bool is_whole_scope_register(const struct search *s)
{
	return s->everywhere && s->is_register && dw_unit_is_gcc(s->unit);
}

/* Whether the value may be in memory, or computed from memory, to which nothing stores it. */
static bool may_lack_store(const struct search *s)
{
	return s->ctx->formal && dw_unit_is_gcc(s->unit) && dw_unit_is_optimised(s->unit) &&
	       !loc_is_shown(s->ctx, &s->found, s->since);
}

/* True if the description cannot hold yet before the first instruction. */
static bool is_too_early(const struct search *s)
{
	struct loc_context *ctx = s->ctx;
	if (is_whole_scope_register(s))
		return !has_kept_register(s);
	if (ctx->is_now)
		return !loc_holds_now(ctx, s->unit, &s->found, s->since, s->everywhere) ||
		       (!s->everywhere && is_frame_memory(ctx, &s->found) &&
			is_stored_later(ctx, &s->found));
	if (!is_frame_memory(ctx, &s->found))
		return false;
	return s->everywhere || is_stored_later(ctx, &s->found);
}

static int literal_bytes(const struct dw_value *v, struct arena *arena, struct cairn_location *ret)
{
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	*piece = (struct cairn_piece){.kind = CAIRN_PIECE_BYTES};
	if (v->cls == DW_CLASS_STRING) {
		piece->bytes = (const uint8_t *)v->str;
		piece->size = (uint32_t)strlen(v->str) + 1;
	} else {
		piece->bytes = v->block.p;
		piece->size = v->block.n < UINT32_MAX ? (uint32_t)v->block.n : UINT32_MAX;
	}
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 0;
}

static int constant(const struct dw_value *v, struct arena *arena, struct cairn_location *ret)
{
	switch (v->cls) {
	case DW_CLASS_UDATA:
	case DW_CLASS_SDATA:
		return loc_constant(v->cls == DW_CLASS_SDATA ? v->s : (int64_t)v->u, arena, ret);
	case DW_CLASS_ADDRESS:
		return loc_constant((int64_t)v->addr.v, arena, ret);
	case DW_CLASS_BLOCK:
	case DW_CLASS_EXPRLOC:
	case DW_CLASS_STRING:
		return literal_bytes(v, arena, ret);
	default:
		*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_UNSUPPORTED};
		return 0;
	}
}

/* An address counts: it does not change either. */
static bool is_constant(const struct cairn_location *loc)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		bool literal = p->kind == CAIRN_PIECE_BYTES;
		bool value = p->kind == CAIRN_PIECE_VALUE && p->n_steps == 1 &&
			     p->steps[0].op != CAIRN_LOC_REG;
		if (!literal && !value)
			return false;
	}
	return loc->n_pieces;
}

/* Turns the entries that were found into a result; @rc is search_list()'s. */
static void conclude(const struct search *s, int rc, struct cairn_location *ret)
{
	*ret = s->found;
	if (rc < 0)
		ret->why = CAIRN_UNAVAIL_DAMAGED;
	else if (!s->n_entries)
		ret->why = CAIRN_UNAVAIL_OPTIMISED_OUT;
	else if (!s->n_found)
		ret->why = CAIRN_UNAVAIL_NOT_LIVE;
	else if (ret->why == CAIRN_AVAILABLE && may_lack_store(s))
		*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_STORED_YET,
					       .quirk = CAIRN_QUIRK_REMOVED_STORE};
	else if (ret->why == CAIRN_AVAILABLE && is_too_early(s) && !was_put_there(s))
		*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_NOT_STORED_YET,
					       .quirk = is_whole_scope_register(s)
								? CAIRN_QUIRK_WHOLE_SCOPE_REGISTER
								: CAIRN_QUIRK_NONE};
	if (s->ctx->must_begin && s->continues && ret->why == CAIRN_AVAILABLE)
		ret->why = CAIRN_UNAVAIL_MAY_HAVE_CHANGED;
}

/* Returns 0, or the error of the list. */
static int see_entries(const struct dw_die *formal, struct search *s)
{
	struct dw_loc_list list;
	struct dw_loc_entry e;
	int rc = dw_loc_begin(&list, formal, DW_AT_location, NULL);
	while (rc > 0 && (rc = dw_loc_next(&list, &e)) > 0) {
		s->rc = see_entry(s, &e);
		if (s->rc < 0)
			return s->rc;
	}
	return rc;
}

/* Returns as see_entries(). */
static int search_list(const struct dw_die *formal, struct search *s)
{
	int rc = see_entries(formal, s);
	if (rc < 0 || s->n_found || !s->n_entries || !s->ctx->has_entry_view)
		return rc;
	s->next_view = true;
	return see_entries(formal, s);
}

/* True if a list gives another result when its bounds in the padding are used unchanged. */
static bool is_read_otherwise(const struct dw_die *formal, struct search *s)
{
	struct search other;
	struct expression expr = s->ctx->expr;
	search_init(&other, s->ctx, s->unit, s->arena);
	other.as_it_stands = true;
	search_list(formal, &other);
	s->ctx->expr = expr;
	s->rc = s->rc < 0 ? s->rc : other.rc;
	return !s->n_found != !other.n_found || (s->n_found && !loc_equal(&s->found, &other.found));
}

int loc_of_argument(struct loc_context *ctx, const struct dw_die *formal, struct arena *arena,
		    struct cairn_location *ret)
{
	struct dw_value v;
	ctx->bound = BOUND_ALWAYS;
	ctx->expr = (struct expression){0};
	int rc = dw_attr_at(formal, DW_SLOT_CONST_VALUE, DW_AT_const_value, &v, NULL);
	if (rc == 1) {
		rc = constant(&v, arena, ret);
		if (ctx->must_begin && ret->why == CAIRN_AVAILABLE)
			ret->why = CAIRN_UNAVAIL_MAY_HAVE_CHANGED;
		return rc;
	}

	ctx->formal = formal;
	struct search s;
	search_init(&s, ctx, formal->unit, arena);
	rc = search_list(formal, &s);
	if (s.moved && has_rows(s.unit, ctx->padding, ctx->at) && is_read_otherwise(formal, &s)) {
		s.found = (struct cairn_location){.why = CAIRN_UNAVAIL_AMBIGUOUS};
		s.n_found = s.n_entries;
	}
	ctx->bound = s.next_view && s.n_found                ? BOUND_AFTER
		     : s.everywhere && is_constant(&s.found) ? BOUND_ALWAYS
							     : BOUND_BEFORE;
	if (s.rc >= 0)
		conclude(&s, rc, ret);
	ctx->formal = NULL;
	return s.rc < 0 ? s.rc : 0;
}
