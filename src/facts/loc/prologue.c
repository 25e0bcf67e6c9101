/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parameters that the prologue stores to their slots
 *
 * Without optimisation LLVM describes a parameter by one slot of the frame, for the whole function.
 * At the entry the slot holds garbage:
 *
 *	text:	sub  $0x28, %rsp		s is described at rsp + 0x10, 16 bytes
 *		mov  %rdx, (%rsp)
 *		mov  %rdi, 0x10(%rsp)		so its first half was in rdi,
 *		mov  %rsi, 0x18(%rsp)		and its second in rsi
 *		call ...			prologue_end: the first statement
 *
 * A documented calling convention gives the same (abi.c); Rust's is not documented. The code gives
 * it, too: a store before the first statement can only be the arrival of the parameter whose slot
 * it is. The stored register must still have its value at the entry, on a straight line from there,
 * and the stores have to fill the slot. The first statement begins where the line table ends the
 * prologue: at the first instruction that belongs to a statement.
 *
 * Values that did not fit into registers are in the caller's frame. The prologue loads them from
 * there, and the same holds for the loaded register; or the description leads there itself. The
 * unwind rows give the distance from the stack pointer, and the prologue may have stored only to
 * this function's own frame.
 *
 * An object that Rust passes by its address is described only from there on: as the memory that the
 * register points to, or by a slot that holds the address. The same holds for them.
 */
#include <errno.h>
#include <string.h>

#include "base/search.h"
#include "dwarf/constants.h"
#include "insn/insn.h"
#include "loc/loc.h"

enum {
	RBP = 6,
	RSP = 7,
	REGISTERS = 16, /* general ones */
	NONE = 0xff,
	ON_STACK = 0xfe,
	WORD_BYTES = 8,
	/* The size of a prologue, in bytes of code; a variadic function stores 14 registers. */
	PROLOGUE_MAX = 512,
	/* The size of a parameter in a slot. */
	SLOT_MAX = 64,
	/* Registers that are put aside for a while. */
	ASIDE_MAX = 8,
	PIECES_MAX = 16,
};

/* The value at the entry that a register holds: of a register, or of a stack argument. */
struct held {
	uint8_t reg;   /* NONE: something else */
	uint8_t bytes; /* its number of low bytes that are held */
	int64_t off;   /* ON_STACK: from the CFA */
};

struct arrival {
	uint32_t off;
	struct held from;
};

/* In the frame. */
struct aside {
	int64_t off; /* from rsp */
	struct held held;
};

struct prologue {
	const struct loc_context *ctx;
	struct held held[REGISTERS];
	/* The slot, by the frame's register. */
	unsigned int base;
	int64_t off;
	unsigned int bytes;    /* 0: no slot is wanted */
	uint64_t filled;       /* one bit for each byte */
	bool stores_elsewhere; /* to memory that may be the caller's */
	struct aside aside[ASIDE_MAX];
	unsigned int n_aside;
	struct arrival arrivals[PIECES_MAX];
	unsigned int n_arrivals;
};

/*
 * The address at which the first statement begins; 0 if the line table does not mark it, or it is
 * the entry.
 */
static uint64_t prologue_end(const struct loc_context *ctx, const struct dw_unit *unit)
{
	const struct dw_row *rows;
	int64_t n = dw_unit_rows(unit, &rows, NULL);
	int64_t from = SEARCH(0, n, i, rows[i].at.v < ctx->at.v);
	for (; from < n && rows[from].at.v <= ctx->at.v + PROLOGUE_MAX; from++) {
		bool is_after = rows[from].at.v > ctx->at.v;
		/* At the entry itself the sequence before it may end. */
		if (rows[from].end_sequence && is_after)
			return 0;
		if (rows[from].prologue_end && !rows[from].end_sequence)
			return is_after ? rows[from].at.v : 0;
	}
	return 0;
}

static uint64_t bits_of(unsigned int off, unsigned int bytes)
{
	return (bytes < SLOT_MAX ? ((uint64_t)1 << bytes) - 1 : UINT64_MAX) << off;
}

/* A store to the slot; false if it is no copy of a passed value. */
static bool see_store(struct prologue *p, const uint8_t *code, size_t n)
{
	struct insn_slot_move m;
	if (!insn_moves_slot(code, n, p->base, &m) || !m.is_store || m.off < p->off)
		return false;
	uint64_t at = (uint64_t)(m.off - p->off);
	struct held from = p->held[m.reg];
	if (from.reg == NONE || m.bytes > from.bytes || at >= p->bytes || m.bytes > p->bytes - at ||
	    p->filled & bits_of((unsigned int)at, m.bytes) || p->n_arrivals == PIECES_MAX)
		return false;
	p->filled |= bits_of((unsigned int)at, m.bytes);
	from.bytes = (uint8_t)m.bytes;
	p->arrivals[p->n_arrivals++] = (struct arrival){(uint32_t)at, from};
	return true;
}

/*
 * The distance from the CFA of the memory at @off from register @base, before the instruction at
 * @at; false if the unwind rows do not give it.
 */
static bool from_cfa(const struct prologue *p, uint64_t at, unsigned int base, int64_t off,
		     int64_t *ret)
{
	struct cfi_row row;
	if (!p->ctx->cfi || cfi_row_at(p->ctx->cfi, (struct cairn_vaddr){at}, &row, NULL) != 1 ||
	    row.cfa != CFI_CFA_REG_OFFSET || row.cfa_reg != base ||
	    __builtin_sub_overflow(off, row.cfa_off, ret))
		return false;
	return true;
}

/* A store by the stack pointer or the frame pointer, and a push, go below the CFA. */
static void see_stores(struct prologue *p, uint64_t at, const uint8_t *code,
		       const struct insn *insn)
{
	struct insn_slot_move m;
	int64_t off;
	if (!insn->writes_memory || insn->writes & 1u << RSP)
		return;
	for (unsigned int base = RBP; base <= RSP; base++)
		if (insn_moves_slot(code, insn->len, base, &m) && m.is_store &&
		    from_cfa(p, at, base, m.off, &off) && off + (int64_t)m.bytes <= 0)
			return;
	p->stores_elsewhere = true;
}

/* A load of a value that the caller put there. */
static struct held loaded(const struct prologue *p, uint64_t at, const uint8_t *code, size_t n,
			  unsigned int *to)
{
	struct insn_slot_move m;
	int64_t off;
	for (unsigned int base = RBP; base <= RSP && !p->stores_elsewhere; base++) {
		if (!insn_moves_slot(code, n, base, &m) || m.is_store ||
		    !from_cfa(p, at, base, m.off, &off) || off < 0)
			continue;
		*to = m.reg;
		return (struct held){ON_STACK, (uint8_t)m.bytes, off};
	}
	return (struct held){.reg = NONE};
}

/* A register that is stored, and saved values that a store overwrites. */
static void put_aside(struct prologue *p, const uint8_t *code, const struct insn *insn)
{
	struct insn_slot_move m;
	bool is_store = insn_moves_slot(code, insn->len, RSP, &m) && m.is_store;
	if (insn->writes & 1u << RSP || (insn->writes_memory && !is_store)) {
		p->n_aside = 0;
		return;
	}
	for (unsigned int i = 0; is_store && i < p->n_aside; i++)
		if (m.off < p->aside[i].off + WORD_BYTES &&
		    p->aside[i].off < m.off + (int64_t)m.bytes)
			p->aside[i--] = p->aside[--p->n_aside];
	if (!is_store || p->held[m.reg].reg == NONE || m.bytes > p->held[m.reg].bytes ||
	    p->n_aside == ASIDE_MAX)
		return;
	p->aside[p->n_aside] = (struct aside){m.off, p->held[m.reg]};
	p->aside[p->n_aside++].held.bytes = (uint8_t)m.bytes;
}

static struct held narrowed(struct held from, unsigned int bytes)
{
	if (from.reg == NONE || bytes > from.bytes)
		return (struct held){.reg = NONE};
	from.bytes = (uint8_t)bytes;
	return from;
}

/*
 * The value that the instruction leaves in register *@to; NONE for any value that was not passed.
 */
static struct held moved_to(const struct prologue *p, uint64_t at, const uint8_t *code, size_t n,
			    unsigned int *to)
{
	struct insn_slot_move m;
	unsigned int from, bytes;
	if (insn_copies_register(code, n, to, &from, &bytes))
		return narrowed(p->held[from], bytes);
	if (insn_keeps_lowest_bit(code, n, to) && p->held[*to].reg != NONE)
		/* A bool, whose byte is 0 or 1 already, as in every convention. */
		return (struct held){p->held[*to].reg, 1, p->held[*to].off};
	if (insn_moves_slot(code, n, RSP, &m) && !m.is_store) {
		*to = m.reg;
		for (unsigned int i = 0; i < p->n_aside; i++)
			if (p->aside[i].off == m.off)
				return narrowed(p->aside[i].held, m.bytes);
	}
	return loaded(p, at, code, n, to);
}

static void see_registers(struct prologue *p, uint64_t at, const uint8_t *code,
			  const struct insn *insn)
{
	unsigned int to = REGISTERS;
	struct held moved = moved_to(p, at, code, insn->len, &to);
	for (unsigned int r = 0; r < REGISTERS; r++)
		if (insn->writes & 1u << r)
			p->held[r] = r == to ? moved : (struct held){.reg = NONE};
}

static bool see_insn(struct prologue *p, uint64_t at, const uint8_t *code, size_t n,
		     struct insn *insn)
{
	if (!insn_decode(code, n, 0, insn) || insn->flow != INSN_NEXT)
		return false;
	if (p->bytes && insn_accesses(code, insn->len, p->base, p->off, p->bytes).stores &&
	    !see_store(p, code, insn->len))
		return false;
	/* The slot is relative to the register's value after the prologue. */
	if (p->n_arrivals && insn->writes & 1u << p->base)
		return false;
	see_stores(p, at, code, insn);
	put_aside(p, code, insn);
	see_registers(p, at, code, insn);
	return true;
}

/*
 * Whether the line to the first statement, at @end, is straight, and each store to the slot was an
 * arrival.
 */
static bool follow(struct prologue *p, uint64_t end)
{
	const uint8_t *code;
	size_t n;
	uint64_t at = p->ctx->at.v;
	for (unsigned int r = 0; r < REGISTERS; r++)
		p->held[r] = (struct held){(uint8_t)r, WORD_BYTES, 0};
	p->held[RSP].reg = NONE;
	if (!elf_code_at(p->ctx->code, p->ctx->at, &code, &n))
		return false;
	while (at < end) {
		struct insn insn;
		if (!see_insn(p, at, code, n, &insn))
			return false;
		at += insn.len;
		code += insn.len;
		n -= insn.len;
	}
	return at == end;
}

/* ---- the description ---- */

/* The parts of a parameter's expression that a prologue can establish. */
struct said {
	bool is_slot;    /* in the frame at off; else the register's target */
	bool is_address; /* the slot has its address */
	unsigned int reg;
	int64_t off;
};

static bool frame_register(const struct dw_die *function, unsigned int *ret)
{
	struct dw_value v;
	bool is_block = dw_attr(function, DW_AT_frame_base, &v, NULL) == 1 &&
			(v.cls == DW_CLASS_EXPRLOC || v.cls == DW_CLASS_BLOCK);
	*ret = is_block && v.block.n == 1 ? v.block.p[0] - (unsigned int)DW_OP_reg0 : REGISTERS;
	return *ret == RSP || *ret == RBP;
}

static bool read_sleb(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
	uint64_t v = 0;
	for (unsigned int shift = 0; *p < end && shift < 63; shift += 7) {
		uint8_t b = *(*p)++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = (int64_t)(b & 0x40 ? v | UINT64_MAX << (shift + 7) : v);
			return true;
		}
	}
	return false;
}

static bool read_expr(const struct loc_context *ctx, const uint8_t *p, uint64_t n, struct said *ret)
{
	const uint8_t *end = p + n;
	uint8_t op = n ? *p++ : 0;
	if (op != DW_OP_fbreg && (op < DW_OP_breg0 || op >= DW_OP_breg0 + REGISTERS))
		return false;
	*ret = (struct said){.is_slot = op == DW_OP_fbreg, .reg = op - (unsigned int)DW_OP_breg0};
	if (!read_sleb(&p, end, &ret->off) ||
	    (ret->is_slot && !frame_register(&ctx->function, &ret->reg)))
		return false;
	ret->is_address = ret->is_slot && p < end && *p == DW_OP_deref;
	p += ret->is_address;
	/*
	 * If an object is described at a distance from a register, the register is a frame pointer
	 * of some kind.
	 */
	return p == end && (ret->is_slot || !ret->off);
}

struct description {
	uint64_t end; /* of the prologue */
	struct dw_loc_entry is;
	bool found;
};

static int see_entry(void *arg, const struct dw_loc_entry *e)
{
	struct description *d = arg;
	if (!d->found && (e->everywhere || (e->lo.v <= d->end && d->end < e->hi.v))) {
		d->is = *e;
		d->found = true;
	}
	return 0;
}

/* ---- the location ---- */

/*
 * Steps to a register, or to the address of a stack argument; then to its content, with
 * @is_address.
 */
enum { ARRIVAL_STEPS = 3, RETURN_BYTES = 8 };

static uint32_t put_steps(const struct held *from, bool is_address, struct cairn_loc_step *steps)
{
	uint32_t n = 0;
	if (from->reg != ON_STACK) {
		steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = from->reg};
		return n;
	}
	/* At the entry the return address is between the stack pointer and the CFA. */
	steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_REG, .reg = RSP};
	steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_ADD, .imm = RETURN_BYTES + from->off};
	if (is_address)
		steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_LOAD, .size = WORD_BYTES};
	return n;
}

/* In the register that filled the slot; with @is_address, at the address in it. */
static int arrived(const struct prologue *p, bool is_address, struct arena *arena,
		   struct cairn_location *ret)
{
	struct cairn_piece *pieces = arena_array(arena, p->n_arrivals, sizeof(*pieces));
	struct cairn_loc_step *steps =
		arena_array(arena, p->n_arrivals, ARRIVAL_STEPS * sizeof(*steps));
	if (!pieces || !steps)
		return -ENOMEM;
	for (unsigned int i = 0; i < p->n_arrivals; i++, steps += ARRIVAL_STEPS) {
		const struct arrival *a = &p->arrivals[i];
		bool is_in_memory = is_address || a->from.reg == ON_STACK;
		pieces[i] = (struct cairn_piece){
			.kind = is_in_memory ? CAIRN_PIECE_MEMORY : CAIRN_PIECE_VALUE,
			.off = a->off,
			.size = p->n_arrivals > 1 ? a->from.bytes : 0,
			.n_steps = put_steps(&a->from, is_address, steps),
			.steps = steps,
		};
	}
	*ret = (struct cairn_location){.n_pieces = p->n_arrivals, .pieces = pieces};
	return 1;
}

/* In the caller's frame, at @off from the CFA; the prologue leaves it there. */
static int by_callers_frame(struct prologue *p, const struct said *s, int64_t off, uint64_t end,
			    struct arena *arena, struct cairn_location *ret)
{
	if (!follow(p, end) || p->stores_elsewhere)
		return 0;
	p->arrivals[p->n_arrivals++] = (struct arrival){0, {ON_STACK, WORD_BYTES, off}};
	return arrived(p, s->is_address, arena, ret);
}

static int by_slot(struct prologue *p, const struct dw_die *formal, const struct said *s,
		   uint64_t end, struct arena *arena, struct cairn_location *ret)
{
	uint64_t bytes = s->is_address ? WORD_BYTES : dw_type_bytes(formal);
	int64_t off;
	if (bytes && from_cfa(p, end, s->reg, s->off, &off) && off >= 0)
		return by_callers_frame(p, s, off, end, arena, ret);
	if (!bytes || bytes > SLOT_MAX)
		return 0;
	p->base = s->reg;
	p->off = s->off;
	p->bytes = (unsigned int)bytes;
	if (!follow(p, end) || p->filled != bits_of(0, p->bytes))
		return 0;
	return s->is_address && p->n_arrivals != 1 ? 0 : arrived(p, s->is_address, arena, ret);
}

static int by_register(struct prologue *p, const struct said *s, uint64_t end, struct arena *arena,
		       struct cairn_location *ret)
{
	const struct held *held = &p->held[s->reg];
	if (!follow(p, end) || held->reg == NONE || held->bytes != WORD_BYTES)
		return 0;
	p->arrivals[p->n_arrivals++] = (struct arrival){0, *held};
	return arrived(p, true, arena, ret);
}

int loc_from_prologue(const struct loc_context *ctx, const struct dw_die *formal,
		      struct arena *arena, struct cairn_location *ret)
{
	struct prologue p = {.ctx = ctx};
	struct description d = {.end = prologue_end(ctx, formal->unit)};
	struct said said;
	if (!d.end || dw_locations(formal, DW_AT_location, see_entry, &d, NULL) < 0 || !d.found ||
	    !read_expr(ctx, d.is.expr, d.is.expr_len, &said))
		return 0;
	return said.is_slot ? by_slot(&p, formal, &said, d.end, arena, ret)
			    : by_register(&p, &said, d.end, arena, ret);
}
