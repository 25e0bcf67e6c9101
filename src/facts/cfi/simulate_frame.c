/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the entry of a function along all direct jumps
 *
 * Two facts are followed. The first is the distance of the CFA from rsp and, once rbp was made from
 * rsp, from rbp: a push adds 8, "sub $N,%rsp" N, "mov %rsp,%rbp" makes the two equal, leave goes
 * back. The second is the source of each register's value:
 *
 *	f:	mov  %rbx,%rax          rax: rbx's
 *		mov  8(%rdi),%ebx       rbx: new. 32 bits are not the old value
 *		mov  16(%rdi),%rbp      rbp: loaded. It may have been saved there
 *		xor  %rcx,%rbp          rbp: changed. After a second "xor %rcx,%rbp" it may be the
 *		                        old value: loaded
 *		mov  %rax,%rbx          rbx: rbx's
 *		ret
 *
 * Nothing is known of memory, so that a loaded value may be any. A register counts as overwritten
 * only if an instruction computed its value; such a value is the caller's only by chance.
 *
 * At a join of paths the distances are those of the path that came first; the callback that
 * compares them with a row sees all. The possible contents of registers are united, and each
 * addition is followed once more: a new content on one of the paths to an instruction is new on a
 * path to all later ones. The number of rounds is limited, since a file could have code that makes
 * it long; the rest is not reported.
 */
#include "cfi/simulate_frame.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "cfi/convention.h"
#include "insn/values.h"

enum { FP = 6, SP = 7, N_REGS = 16, MAX_WAYS = 16 };

/* One function. */
struct run {
	struct simulation *f;
	uint64_t lo, hi;
	const uint8_t *code;
	const struct sim_ops *ops;
	void *ctx;
	uint16_t kept;
};

static void apply_stack(struct sim_state *s, const struct insn_stack *insn)
{
	const struct sim_state before = *s;
	const struct {
		enum insn_stack_from from;
		int64_t add;
		bool *knows;
		int64_t *off;
	} to[] = {{insn->sp, insn->sp_add, &s->knows_sp, &s->sp},
		  {insn->fp, insn->fp_add, &s->knows_fp, &s->fp}};
	for (size_t i = 0; i < 2; i++) {
		if (to[i].from == STACK_KEPT)
			continue;
		bool is_sp = to[i].from == STACK_FROM_SP;
		*to[i].knows =
			to[i].from != STACK_UNKNOWN && (is_sp ? before.knows_sp : before.knows_fp);
		*to[i].off = (is_sp ? before.sp : before.fp) - to[i].add;
	}
}

static void apply_frame(struct sim_state *s, const struct insn_stack *insn)
{
	if (insn->sp == STACK_UNKNOWN || insn->fp == STACK_UNKNOWN) {
		s->knows_frame = false;
	} else if (insn->sp == STACK_FROM_FP || insn->fp == STACK_FROM_SP) {
		/* Not both: an instruction that exchanges them makes them unknown. */
		s->knows_frame = true;
		s->frame = insn->sp == STACK_FROM_FP ? insn->sp_add : -insn->fp_add;
	} else {
		s->frame += insn->sp == STACK_FROM_SP ? insn->sp_add : 0;
		s->frame -= insn->fp == STACK_FROM_FP ? insn->fp_add : 0;
	}
}

/* leave, or pop %rbp where rsp is rbp. */
static bool takes_from_frame(const struct sim_state *s, const struct insn_stack *insn)
{
	if (insn->fp != STACK_UNKNOWN || insn->sp_add != 8)
		return false;
	return insn->sp == STACK_FROM_FP ||
	       (insn->sp == STACK_FROM_SP && s->knows_frame && s->frame == 0);
}

/* A value that is changed once may be changed back. */
static uint16_t changed(uint16_t value)
{
	uint16_t ret = value & SIM_NEW;
	if (value & (uint16_t) ~(SIM_NEW | SIM_CHANGED))
		ret |= SIM_CHANGED;
	if (value & SIM_CHANGED)
		ret |= SIM_LOADED;
	return ret;
}

static void apply_values(struct sim_state *s, const struct insn_values *v)
{
	const struct sim_state before = *s;
	for (unsigned int reg = 0; reg < N_REGS; reg++) {
		uint16_t bit = (uint16_t)(1u << reg), value = before.regs[reg];
		if (v->computed & bit)
			value = SIM_NEW;
		if (v->loaded & bit)
			value = SIM_LOADED;
		if (v->moved & bit)
			value = before.regs[v->from[reg]];
		if (v->changed & bit)
			value = changed(value);
		s->regs[reg] = v->may_keep & bit ? value | before.regs[reg] : value;
	}
	/*
	 * This does not depend on its source: a stack slot never has a caller's value of another
	 * register.
	 */
	s->regs[SP] = SIM_NEW;
}

static void apply_call(const struct run *r, struct sim_state *s)
{
	for (unsigned int reg = 0; reg < N_REGS; reg++)
		if (!(r->kept & 1u << reg) && reg != SP)
			s->regs[reg] = SIM_LOADED;
}

static bool add_ways(struct sim_state *s, const struct sim_state *way)
{
	bool is_more = false;
	for (unsigned int reg = 0; reg < N_REGS; reg++) {
		is_more |= (way->regs[reg] & ~s->regs[reg]) != 0;
		s->regs[reg] |= way->regs[reg];
	}
	return is_more;
}

/* The state to go on with; NULL: nothing new, or no memory when *@ret_rc is set. */
static struct sim_reached *reach(struct simulation *f, uint64_t off, const struct sim_point *p,
				 int *ret_rc)
{
	uint32_t number = f->seen.p[off];
	if (number) {
		struct sim_reached *known = &f->reached.p[number - 1];
		return add_ways(&known->state, &p->state) && known->n_ways++ < MAX_WAYS ? known
											: NULL;
	}
	if (!VEC_ADD(&f->reached, ((struct sim_reached){.state = p->state}))) {
		*ret_rc = -ENOMEM;
		return NULL;
	}
	f->seen.p[off] = (uint32_t)f->reached.n;
	return &f->reached.p[f->reached.n - 1];
}

static bool is_inside(const struct run *r, uint64_t at)
{
	return at >= r->lo && at < r->hi;
}

static int add_place(struct run *r, const struct sim_point *p)
{
	return !is_inside(r, p->at) || VEC_ADD(&r->f->todo, *p) ? 0 : -ENOMEM;
}

static int go_on(struct run *r, const struct sim_point *p, const struct insn_stack *insn,
		 const struct insn_values *values)
{
	struct sim_point next = {.from = p->at, .state = p->state};
	if ((insn->is_return || (insn->jumps && !is_inside(r, insn->target))) && r->ops->leave) {
		int rc = r->ops->leave(r->ctx, p, insn);
		if (rc)
			return rc;
	}
	apply_values(&next.state, values);
	apply_stack(&next.state, insn);
	if (takes_from_frame(&p->state, insn))
		next.state.regs[FP] = SIM_LEFT;
	apply_frame(&next.state, insn);
	if (insn->is_call)
		apply_call(r, &next.state);
	next.is_after_call = insn->is_call || (insn->is_padding && p->is_after_call);
	next.at = p->at + insn->len;
	int rc = insn->goes_on ? add_place(r, &next) : 0;
	next.at = insn->target;
	return rc || !insn->jumps ? rc : add_place(r, &next);
}

static int sim_point(struct run *r, const struct sim_point *p)
{
	uint64_t off = p->at - r->lo;
	struct sim_point here = *p;
	struct insn_stack insn;
	struct insn_values values;
	int rc = r->ops->arrive(r->ctx, p);
	if (rc)
		return rc;
	if (!p->state.knows_sp && !p->state.knows_fp && !r->ops->goes_on_blind) {
		r->f->n_ends++;
		return 0;
	}
	const struct sim_reached *reached = reach(r->f, off, p, &rc);
	if (!reached)
		return rc;
	here.state = reached->state;
	if (!insn_stack(r->code + off, r->hi - p->at, p->at, &insn) ||
	    !insn_values(r->code + off, r->hi - p->at, &values)) {
		r->f->n_ends++;
		return 0;
	}
	return go_on(r, &here, &insn, &values);
}

static int begin(struct run *r, const struct sim_entry *entry)
{
	struct simulation *f = r->f;
	size_t n = r->hi - r->lo;
	/* A part of a function that only landing pads reach may begin with padding. */
	struct sim_point p = {.at = entry->at,
			      .from = entry->at,
			      .is_after_call = true,
			      .state = {.knows_sp = true, .sp = 8}};
	for (unsigned int reg = 0; reg < N_REGS; reg++)
		p.state.regs[reg] = r->kept & (uint16_t)~entry->overwritten & 1u << reg
					    ? (uint16_t)(1u << reg)
					    : SIM_NEW;
	f->seen.n = f->todo.n = f->reached.n = 0;
	if (!VEC_RESERVE(&f->seen, n))
		return -ENOMEM;
	memset(f->seen.p, 0, n * sizeof(*f->seen.p));
	f->seen.n = n;
	return add_place(r, &p);
}

int sim_run(struct simulation *f, uint64_t lo, uint64_t hi, const uint8_t *code,
	    const struct sim_entry *entry, const struct sim_ops *ops, void *ctx)
{
	struct run r = {f, lo, hi, code, ops, ctx, (uint16_t)convention_of(EM_X86_64)->kept};
	if (hi - lo > SIM_MAX_BYTES)
		return 0;
	int rc = begin(&r, entry);
	while (!rc && f->todo.n) {
		struct sim_point p = f->todo.p[--f->todo.n];
		rc = sim_point(&r, &p);
		if (rc == SIM_END)
			rc = 0;
	}
	return rc;
}

int sim_compare(const struct cairn_unwind_rule *rule, const struct sim_state *s)
{
	if (rule->cfa != CAIRN_UNWIND_CFA_REG ||
	    rule->flags & (CAIRN_UNWIND_OUTERMOST | CAIRN_UNWIND_SIGNAL))
		return 0;
	if (rule->reg == SP && s->knows_sp)
		return rule->off == s->sp ? 1 : -1;
	if (rule->reg == FP && s->knows_fp)
		return rule->off == s->fp ? 1 : -1;
	return 0;
}

void sim_fini(struct simulation *f)
{
	VEC_FREE(&f->todo);
	VEC_FREE(&f->seen);
	VEC_FREE(&f->reached);
}
