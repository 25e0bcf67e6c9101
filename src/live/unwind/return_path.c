/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way out of a frame
 *
 * PyPy's code has frames of one fixed size, and rbp points into the heap. Others have frames of a
 * size that differs from function to function. No description has it, but the code itself has: at
 * its end it takes the frame down and returns.
 *
 *	here:	ucomisd (%r11),%xmm0
 *		jne stub		a guard
 *		...			a loop, perhaps, that never returns
 *	stub:	push $descriptor
 *		movabs $0x7f33440c5790,%r11
 *		push %r11
 *		lea -0x22a0(%r11),%r11
 *		jmp *%r11
 *	leave:	pop 0x20(%rbp)
 *		pop 0x10(%rbp)
 *		mov 0x60(%rsp),%rbp
 *		add $0xb8,%rsp
 *		ret			the return address is at rsp, counted from here
 *
 * So the instructions are followed from the frame's address on all paths, the nearest first. Where
 * the stack pointer is known at a return, the caller's frame is, too. A jump through a register is
 * followed if an instruction before has put a number there.
 *
 * A call may take its arguments off the stack, as PyPy's helpers do, and one that does not return
 * has no instruction after it. So paths past a call are followed only if those without one reach no
 * return, then those past two calls, and so on. Such a call is taken to leave the stack as it was.
 *
 * After an error, a helper may take down its caller's frame too, and return from there. So the
 * lowest of the returns counts.
 *
 * Two paths that get to one instruction with different stack pointers show that one of them is not
 * a path. Then nothing is known. So a result is no proof, but no word of the stack is taken because
 * of its looks, and old frames are not seen at all.
 */
#include "unwind/return_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "code/runtime.h"
#include "insn/insn.h"
#include "insn/stack.h"

enum {
	RBP = 6,
	RSP = 7,
	N_REGS = 16,
	MAX_POINTS = 1024,
	/* A point is put off again when less is known there: seldom. */
	MAX_TURNS = 4 * MAX_POINTS,
	MAX_CALLS = 256,
	/* After the first return, twice the way to it and so many more may lead to a lower one. */
	MORE_TURNS = 64,
	SLOTS = 2048, /* a power of two */
	PAGE = 4096,
	PAGES = 8, /* a power of two */
	WORD = 8,
};

/* Before an instruction. */
struct point {
	uint64_t at;
	uint64_t r[N_REGS]; /* by DWARF number; the stack pointer is always known */
	uint16_t known;
	uint16_t n_calls; /* on the way */
};

struct page {
	uint64_t at; /* 0: empty */
	size_t n;
	uint8_t bytes[PAGE];
};

struct follow {
	const struct return_path *p;
	uint64_t begin_sp;
	bool is_contradicted;
	bool has_end;
	struct point end; /* at a return */
	uint64_t end_sp;  /* after it */
	size_t n_points, n_turns, next, n_calls, next_call;
	size_t last; /* of the turns, once a return was found */
	struct point points[MAX_POINTS];
	uint16_t slots[SLOTS];         /* 1 + the index of a point, by its address */
	uint16_t turns[MAX_TURNS];     /* points to go on from */
	struct point calls[MAX_CALLS]; /* after them, for when nothing else is left */
	struct page pages[PAGES];
};

/* ---- the bytes of an instruction ---- */

static const struct page *page_of(struct follow *f, uint64_t at)
{
	uint64_t begin = at & ~(uint64_t)(PAGE - 1);
	struct page *page = &f->pages[begin / PAGE % PAGES];
	if (page->at != begin) {
		page->at = begin;
		page->n = f->p->code->read(f->p->code->ctx, begin, page->bytes, PAGE);
	}
	return page;
}

static size_t fetch(struct follow *f, uint64_t at, uint8_t bytes[INSN_MAX_BYTES])
{
	size_t n = 0;
	while (n < INSN_MAX_BYTES) {
		const struct page *page = page_of(f, at + n);
		size_t off = (at + n) % PAGE, part = INSN_MAX_BYTES - n;
		if (off >= page->n)
			return n;
		part = part < page->n - off ? part : page->n - off;
		memcpy(bytes + n, page->bytes + off, part);
		n += part;
	}
	return n;
}

/* ---- points ---- */

static uint16_t *slot_of(struct follow *f, uint64_t at)
{
	size_t i = (at ^ at >> 11) % SLOTS;
	while (f->slots[i] && f->points[f->slots[i] - 1].at != at)
		i = (i + 1) % SLOTS;
	return &f->slots[i];
}

static void put_off(struct follow *f, size_t i)
{
	if (f->n_turns < MAX_TURNS)
		f->turns[f->n_turns++] = (uint16_t)i;
}

static bool knows(const struct point *p, unsigned int reg)
{
	return p->known >> reg & 1;
}

static void set(struct point *p, unsigned int reg, bool is_known, uint64_t value)
{
	p->known = (uint16_t)((p->known & ~(1u << reg)) | (unsigned int)is_known << reg);
	p->r[reg] = value;
}

/* The knowledge that both paths share; true if that is less than @known has. */
static bool meet(struct point *known, const struct point *p)
{
	uint16_t had = known->known;
	for (unsigned int i = 0; i < N_REGS; i++)
		if (!knows(p, i) || known->r[i] != p->r[i])
			known->known &= (uint16_t) ~(1u << i);
	return had != known->known;
}

static void go_to(struct follow *f, const struct point *p)
{
	const struct code_mapping *m = code_maps_find(f->p->maps, p->at);
	uint16_t *slot = slot_of(f, p->at);
	if (!m || !code_is_anonymous(m))
		return;
	if (*slot) {
		struct point *known = &f->points[*slot - 1];
		f->is_contradicted |= known->r[RSP] != p->r[RSP] && known->n_calls == p->n_calls;
		if (known->n_calls == p->n_calls && meet(known, p))
			put_off(f, *slot - 1u);
	} else if (f->n_points < MAX_POINTS) {
		f->points[f->n_points++] = *p;
		*slot = (uint16_t)f->n_points;
		put_off(f, f->n_points - 1);
	}
}

static void arrive_at_return(struct follow *f, const struct point *p, const uint8_t *insn)
{
	enum { RET_N = 0xc2 };
	uint64_t at = p->r[RSP], sp = at + WORD;
	if (insn[0] == RET_N)
		sp += insn[1] | (uint64_t)insn[2] << 8;
	if (f->has_end && f->end.r[RSP] < at)
		return;
	bool is_same = f->has_end && f->end.r[RSP] == at;
	f->is_contradicted |= is_same && f->end_sp != sp;
	if (is_same)
		meet(&f->end, p);
	else
		f->end = *p;
	if (!f->has_end)
		f->last = 2 * f->next + MORE_TURNS;
	f->end_sp = sp;
	f->has_end = true;
}

static void go_past_call(struct follow *f, const struct point *p)
{
	if (f->n_calls == MAX_CALLS)
		return;
	f->calls[f->n_calls] = *p;
	f->calls[f->n_calls++].n_calls++;
}

/* ---- one instruction ---- */

/* A value that was pushed on the way is not in the memory of the stack. */
static void load_fp(struct follow *f, uint64_t at, struct point *next)
{
	uint64_t value = 0;
	bool is_there = at >= f->begin_sp &&
			f->p->read(f->p->ctx, (struct cairn_addr){at}, &value, sizeof(value));
	set(next, RBP, is_there, value);
}

static void change_fp(struct follow *f, const struct point *p, const uint8_t *insn, size_t n,
		      const struct insn_stack *s, struct point *next)
{
	enum { POP_RBP = 0x5d, LEAVE = 0xc9 };
	struct insn_slot_move move;
	if (s->fp == STACK_FROM_FP || s->fp == STACK_FROM_SP) {
		unsigned int from = s->fp == STACK_FROM_FP ? RBP : RSP;
		set(next, RBP, knows(p, from), p->r[from] + (uint64_t)s->fp_add);
	}
	if (s->fp != STACK_UNKNOWN)
		return;
	set(next, RBP, false, 0);
	if (n == 1 && insn[0] == POP_RBP)
		load_fp(f, p->r[RSP], next);
	else if (n == 1 && insn[0] == LEAVE && knows(p, RBP))
		load_fp(f, p->r[RBP], next);
	else if (insn_moves_slot(insn, n, RSP, &move) && !move.is_store && move.reg == RBP &&
		 move.bytes == WORD)
		load_fp(f, p->r[RSP] + (uint64_t)move.off, next);
}

/* False if the stack pointer is not known after the instruction. */
static bool change_sp(const struct point *p, const struct insn_stack *s, struct point *next)
{
	unsigned int from = s->sp == STACK_FROM_FP ? RBP : RSP;
	if (s->sp != STACK_KEPT)
		next->r[RSP] = p->r[from] + (uint64_t)s->sp_add;
	return s->sp != STACK_UNKNOWN && knows(p, from);
}

/* Instructions number the first eight registers otherwise than DWARF does. */
static unsigned int dwarf_number(unsigned int reg)
{
	static const uint8_t numbers[] = {0, 2, 1, 3, RSP, RBP, 4, 5};
	return reg < sizeof(numbers) ? numbers[reg] : reg;
}

/* movabs $number,%reg, or mov $number of 32 bits, which clears the others. */
static bool loads_number(const uint8_t *insn, size_t n, struct point *next)
{
	enum { REX_B = 1, REX_W = 8, MOV = 0xb8 };
	bool has_rex = (insn[0] & 0xf0) == 0x40;
	unsigned int rex = has_rex ? insn[0] : 0, op = insn[has_rex];
	size_t size = rex & REX_W ? 8 : 4;
	uint64_t value = 0;
	if ((op & 0xf8) != MOV || n != 1u + has_rex + size)
		return false;
	memcpy(&value, insn + n - size, size);
	set(next, dwarf_number((op & 7) | (rex & REX_B) << 3), true, value);
	return true;
}

/* lea distance(%reg),%reg */
static bool adds_number(const uint8_t *insn, size_t n, const struct point *p, struct point *next)
{
	enum { LEA = 0x8d, LOW = 0x48, HIGH = 0x4d, MOD_32 = 0x80, SIB = 4 };
	int32_t distance;
	unsigned int low = insn[2] & 7;
	if (n != 3 + sizeof(distance) || (insn[0] != LOW && insn[0] != HIGH) || insn[1] != LEA ||
	    low == SIB || insn[2] != (MOD_32 | low << 3 | low))
		return false;
	memcpy(&distance, insn + 3, sizeof(distance));
	unsigned int reg = dwarf_number(low | (insn[0] == HIGH ? 8 : 0));
	set(next, reg, knows(p, reg), p->r[reg] + (uint64_t)(int64_t)distance);
	return true;
}

/* rsp and rbp apart */
static void change_others(const struct point *p, const uint8_t *insn, size_t n,
			  const struct insn *decoded, struct point *next)
{
	bool is_call = decoded->flow == INSN_CALL || decoded->flow == INSN_CALL_INDIRECT;
	unsigned int written = decoded->writes | (is_call ? INSN_CALL_WRITES : 0);
	next->known &= (uint16_t) ~(written & ~(1u << RSP | 1u << RBP));
	if (!loads_number(insn, n, next))
		adds_number(insn, n, p, next);
}

/* jmp *%reg of a known number. */
static bool jumps_to_number(const uint8_t *insn, size_t n, const struct point *p, uint64_t *ret)
{
	enum { REX_B = 0x41, GROUP = 0xff, JMP = 0xe0 };
	bool is_high = insn[0] == REX_B;
	if (n != 2u + is_high || insn[is_high] != GROUP || (insn[is_high + 1] & 0xf8) != JMP)
		return false;
	unsigned int reg = dwarf_number((insn[is_high + 1] & 7) | (is_high ? 8 : 0));
	*ret = p->r[reg];
	return knows(p, reg);
}

static void run(struct follow *f, const struct point *p)
{
	uint8_t bytes[INSN_MAX_BYTES];
	size_t n = fetch(f, p->at, bytes);
	struct point next = *p;
	struct insn_stack s;
	struct insn insn;
	if (!insn_stack(bytes, n, p->at, &s) || !insn_decode(bytes, n, p->at, &insn))
		return;
	if (s.is_return) {
		arrive_at_return(f, p, bytes);
		return;
	}
	if (!change_sp(p, &s, &next))
		return;
	change_fp(f, p, bytes, s.len, &s, &next);
	change_others(p, bytes, s.len, &insn, &next);
	next.at = p->at + s.len;
	if (s.is_call)
		go_past_call(f, &next);
	else if (s.goes_on)
		go_to(f, &next);
	next.at = s.target;
	if (s.jumps || jumps_to_number(bytes, s.len, p, &next.at))
		go_to(f, &next);
}

static bool caller_at(const struct follow *f, struct cairn_regs *ret)
{
	const struct point *end = &f->end;
	uint64_t at = end->r[RSP];
	*ret = (struct cairn_regs){.known = 1 << RSP};
	if (!f->has_end || f->is_contradicted || at < f->begin_sp ||
	    !f->p->read(f->p->ctx, (struct cairn_addr){at}, &ret->pc.v, sizeof(ret->pc.v)))
		return false;
	ret->r[RSP] = f->end_sp;
	ret->r[RBP] = end->r[RBP];
	ret->known |= end->known & 1u << RBP;
	return true;
}

static void run_all(struct follow *f)
{
	while (f->next < f->n_turns && f->next < f->last && !f->is_contradicted) {
		const struct point at = f->points[f->turns[f->next++]];
		run(f, &at);
	}
}

/* One call further than before; false if there is none. */
static bool go_further(struct follow *f)
{
	size_t n = f->n_calls;
	if (f->has_end || f->is_contradicted || f->next_call == n)
		return false;
	while (f->next_call < n)
		go_to(f, &f->calls[f->next_call++]);
	return true;
}

int return_path_follow(const struct return_path *p, const struct cairn_regs *regs,
		       struct cairn_regs *ret, struct cairn_err *err)
{
	struct follow *f = calloc(1, sizeof(*f));
	if (!f)
		return err_nomem(err, "the instructions up to a return");
	struct point begin = {.at = regs->pc.v, .known = (uint16_t)(regs->known | 1u << RSP)};
	memcpy(begin.r, regs->r, sizeof(begin.r));
	f->p = p;
	f->begin_sp = begin.r[RSP];
	f->last = MAX_TURNS;
	go_to(f, &begin);
	do
		run_all(f);
	while (go_further(f));
	int rc = caller_at(f, ret);
	free(f);
	return rc;
}
