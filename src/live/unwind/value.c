/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value of a location in a frame
 *
 * A location is a straight line of steps over one accumulator (cairn/location.h). A step that reads
 * a register which the callees did not keep, or memory that was not copied, ends it: there is no
 * value then, and no part of one.
 *
 * The caller's frame gives the value of a register at a function's entry, and perhaps only the
 * caller's caller does (cairn_sites_call_value()).
 *
 * A location that names a slot of the frame must be in the frame. Memory below the stack pointer
 * belongs to a callee, or to a signal handler, except for the red zone of the innermost function.
 */
#include <string.h>

#include "unwind/stacks.h"

enum {
	RBP = 6,
	RSP = 7,
	RED_ZONE = 128,
	WORD_BYTES = 8,
	/* Callers that are queried one after the other for a value that they only passed on. */
	CALLERS_MAX = 16,
};

struct machine {
	const struct cairn_stacks *stacks;
	const struct cairn_thread_stack *thread;
	struct cairn_sites *sites;
	size_t number; /* of the frame */
	const struct cairn_stack_frame *frame;
	struct cairn_regs regs;
	unsigned int n_callers;
	uint64_t acc;
	uint64_t slots[CAIRN_LOC_SLOTS];
	enum cairn_unavailable why;
};

/* Frames that are of the moment; the thread is the first member of this module's struct. */
static size_t n_then(const struct cairn_thread_stack *thread)
{
	return ((const struct thread_walk *)(const void *)thread)->n_then;
}

static uint64_t give_up(struct machine *m, enum cairn_unavailable why)
{
	if (m->why == CAIRN_AVAILABLE)
		m->why = why;
	return 0;
}

static void read_memory(struct machine *m, uint64_t at, void *ret, size_t n)
{
	const struct cairn_stacks *s = m->stacks;
	if (s->core ? !core_read(s->core, at, ret, n)
		    : !snapshot_read_any(&s->snapshot, at, ret, n))
		give_up(m, CAIRN_UNAVAIL_NOT_COPIED);
}

static uint64_t load(struct machine *m, uint64_t at, unsigned int size)
{
	uint64_t value = 0;
	if (size > WORD_BYTES)
		return give_up(m, CAIRN_UNAVAIL_UNSUPPORTED);
	read_memory(m, at, &value, size);
	return value;
}

/*
 * No callee keeps one. Those of interrupted code are in the signal's frame, and not looked for.
 */
static uint64_t vector(struct machine *m, unsigned int n)
{
	const struct thread_walk *t = (const struct thread_walk *)(const void *)m->thread;
	if (m->number && !m->frame->is_exact)
		return give_up(m, CAIRN_UNAVAIL_NOT_KEPT);
	if (m->number || !t->vectors.is_known || n < VECTORS_FIRST ||
	    n >= VECTORS_FIRST + VECTORS_N)
		return give_up(m, CAIRN_UNAVAIL_VECTOR_REGISTER);
	return t->vectors.low[n - VECTORS_FIRST];
}

static uint64_t reg(struct machine *m, unsigned int n)
{
	if (n >= 16)
		return vector(m, n);
	if (!(m->regs.known & UINT32_C(1) << n))
		return give_up(m, CAIRN_UNAVAIL_NOT_KEPT);
	return m->regs.r[n];
}

static enum cairn_unavailable run(struct machine *m, const struct cairn_location *loc, void *ret,
				  size_t n);

static uint64_t passed(struct machine *m, const struct cairn_loc_step *asked)
{
	const struct cairn_stack_frame *caller;
	struct cairn_location where;
	uint64_t value = 0;
	if (m->number + 1 >= n_then(m->thread))
		return give_up(m, CAIRN_UNAVAIL_NOT_COPIED);
	if (m->number + 1 >= m->thread->n_frames)
		return give_up(m, CAIRN_UNAVAIL_ENTRY_VALUE);
	caller = m->thread->frames[m->number + 1];
	/*
	 * A frame that a signal interrupted called no function. The caller of a frame that is only
	 * assumed is not certain either.
	 */
	if (caller->is_exact || m->frame->is_signal || m->frame->is_assumed || caller->is_assumed ||
	    caller->bin != m->frame->bin || m->n_callers == CALLERS_MAX)
		return give_up(m, CAIRN_UNAVAIL_ENTRY_VALUE);
	if (cairn_sites_call_value(m->sites, m->frame->vaddr,
				   (struct cairn_vaddr){caller->vaddr.v + 1}, asked, &where,
				   NULL) < 0)
		return give_up(m, CAIRN_UNAVAIL_ENTRY_VALUE);
	struct machine outer = {.stacks = m->stacks,
				.thread = m->thread,
				.sites = m->sites,
				.number = m->number + 1,
				.frame = caller,
				.n_callers = m->n_callers + 1};
	cairn_stacks_regs(m->thread, outer.number, &outer.regs);
	if (run(&outer, &where, &value, sizeof(value)) != CAIRN_AVAILABLE)
		return give_up(m, CAIRN_UNAVAIL_ENTRY_VALUE);
	return value;
}

static uint64_t extend(uint64_t v, unsigned int size, bool with_sign)
{
	unsigned int shift = size && size < WORD_BYTES ? 64 - 8 * size : 0;
	v <<= shift;
	return with_sign ? (uint64_t)((int64_t)v >> shift) : v >> shift;
}

static uint64_t binary(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;
	switch ((enum cairn_loc_op)op) {
	case CAIRN_LOC_ADD:
		return a + b;
	case CAIRN_LOC_SUB:
		return a - b;
	case CAIRN_LOC_MUL:
		return a * b;
	case CAIRN_LOC_AND:
		return a & b;
	case CAIRN_LOC_OR:
		return a | b;
	case CAIRN_LOC_XOR:
		return a ^ b;
	case CAIRN_LOC_SHL:
		return b > 63 ? 0 : a << b;
	case CAIRN_LOC_SHR:
		return b > 63 ? 0 : a >> b;
	case CAIRN_LOC_SAR:
		return (uint64_t)(x >> (b > 63 ? 63 : b));
	case CAIRN_LOC_EQ:
		return x == y;
	case CAIRN_LOC_NE:
		return x != y;
	case CAIRN_LOC_LT:
		return x < y;
	case CAIRN_LOC_LE:
		return x <= y;
	case CAIRN_LOC_GT:
		return x > y;
	case CAIRN_LOC_GE:
		return x >= y;
	default:
		return give_up(m, CAIRN_UNAVAIL_UNSUPPORTED);
	}
}

static void binary_step(struct machine *m, const struct cairn_loc_step *s)
{
	uint64_t slot = m->slots[(uint64_t)s->imm % CAIRN_LOC_SLOTS];
	switch ((enum cairn_loc_operand)s->operand) {
	case CAIRN_LOC_IMM:
		m->acc = binary(m, s->op, m->acc, (uint64_t)s->imm);
		return;
	case CAIRN_LOC_OPERAND_REG:
		m->acc = binary(m, s->op, m->acc, reg(m, s->reg));
		return;
	case CAIRN_LOC_SLOT:
		m->acc = binary(m, s->op, slot, m->acc);
		return;
	}
	give_up(m, CAIRN_UNAVAIL_UNSUPPORTED);
}

static void step(struct machine *m, const struct cairn_loc_step *s)
{
	switch ((enum cairn_loc_op)s->op) {
	case CAIRN_LOC_REG:
		m->acc = reg(m, s->reg);
		return;
	case CAIRN_LOC_CONST:
		m->acc = (uint64_t)s->imm;
		return;
	case CAIRN_LOC_ADDR:
		m->acc = (uint64_t)s->imm + (m->frame->at.v - m->frame->vaddr.v);
		return;
	case CAIRN_LOC_LOAD:
		m->acc = load(m, m->acc, s->size);
		return;
	case CAIRN_LOC_SEXT:
		m->acc = extend(m->acc, s->size, true);
		return;
	case CAIRN_LOC_ZEXT:
		m->acc = extend(m->acc, s->size, false);
		return;
	case CAIRN_LOC_NEG:
		m->acc = -m->acc;
		return;
	case CAIRN_LOC_NOT:
		m->acc = ~m->acc;
		return;
	case CAIRN_LOC_ENTRY_REG:
	case CAIRN_LOC_ENTRY_PARAM:
		m->acc = passed(m, s);
		return;
	case CAIRN_LOC_SAVE:
		m->slots[(uint64_t)s->imm % CAIRN_LOC_SLOTS] = m->acc;
		return;
	default:
		binary_step(m, s);
	}
}

/* Whether a place that counts from the stack or frame pointer is below the frame. */
static bool is_below(const struct machine *m, const struct cairn_piece *p)
{
	bool of_frame = p->n_steps <= 2 && p->n_steps && p->steps[0].op == CAIRN_LOC_REG &&
			(p->steps[0].reg == RSP || p->steps[0].reg == RBP);
	return of_frame && m->acc < m->regs.r[RSP] - (m->frame->is_exact ? RED_ZONE : 0);
}

static void read_piece(struct machine *m, const struct cairn_piece *p, uint8_t *ret, size_t n)
{
	for (uint32_t i = 0; i < p->n_steps; i++)
		step(m, &p->steps[i]);
	switch (p->kind) {
	case CAIRN_PIECE_VALUE:
		if (n > WORD_BYTES)
			give_up(m, CAIRN_UNAVAIL_UNSUPPORTED);
		else
			memcpy(ret, &m->acc, n);
		return;
	case CAIRN_PIECE_MEMORY:
		if (is_below(m, p))
			give_up(m, CAIRN_UNAVAIL_NOT_LIVE);
		else if (m->why == CAIRN_AVAILABLE)
			read_memory(m, m->acc, ret, n);
		return;
	case CAIRN_PIECE_BYTES:
		if (n > p->size)
			give_up(m, CAIRN_UNAVAIL_PARTLY);
		else
			memcpy(ret, p->bytes, n);
		return;
	case CAIRN_PIECE_MISSING:
		give_up(m, CAIRN_UNAVAIL_PARTLY);
		return;
	}
	give_up(m, CAIRN_UNAVAIL_UNSUPPORTED);
}

static enum cairn_unavailable run(struct machine *m, const struct cairn_location *loc, void *ret,
				  size_t n)
{
	size_t done = 0;
	m->why = loc->why;
	for (uint32_t i = 0; i < loc->n_pieces && m->why == CAIRN_AVAILABLE && done < n; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		size_t size = p->size && p->size < n - done ? p->size : n - done;
		if (p->off != done)
			return CAIRN_UNAVAIL_PARTLY;
		read_piece(m, p, (uint8_t *)ret + done, size);
		done += size;
	}
	if (m->why == CAIRN_AVAILABLE && done < n)
		return CAIRN_UNAVAIL_PARTLY;
	return m->why;
}

enum cairn_unavailable cairn_stacks_value(const struct cairn_stacks *stacks,
					  const struct cairn_thread_stack *thread, size_t frame,
					  struct cairn_sites *sites,
					  const struct cairn_location *loc, void *ret, size_t n)
{
	struct machine m = {.stacks = stacks,
			    .thread = thread,
			    .sites = sites,
			    .number = frame,
			    .frame = thread->frames[frame]};
	if (frame >= n_then(thread))
		return CAIRN_UNAVAIL_NOT_COPIED;
	/* A frame reached by an assumption may be no frame at all. */
	for (size_t i = 0; i <= frame; i++)
		if (thread->frames[i]->is_assumed)
			return CAIRN_UNAVAIL_NO_CFA;
	cairn_stacks_regs(thread, frame, &m.regs);
	return run(&m, loc, ret, n);
}
