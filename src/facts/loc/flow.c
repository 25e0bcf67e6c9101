/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of registers at a function's entry: where they survive, and whether they are used
 *
 * Two questions about the same instructions: does a register still hold its entry value here, and
 * is its entry value ever used at all?
 *
 * 1. Unchanged. DW_OP_entry_value(rdi) is the value that rdi had when this function was entered. A
 * debugger finds it in the caller's frame; a probe cannot. But often rdi has simply not been
 * written since, and then it is rdi. This must be known for every path from the entry to the
 * address. So it is a forward data-flow problem over the function's instructions, with one bit per
 * general register:
 *
 *	at the entry      all bits set
 *	after an insn     the bits before it, without the registers it writes; after a call also
 *	                  without those that the convention lets the callee change
 *	where paths meet  the intersection
 *
 *	entry:  mov  %rdi, %rbx		in 1111  out 1111 (rbx cleared)
 *	        call g			          out: rdi, rsi, rax ... cleared
 *	loop:   dec  %ebx		in: from above and from the branch below
 *	        jnz  loop
 *
 * Every doubt is decided against us. An indirect jump may go to any instruction of the function.
 * Some instructions are on no followed path: a landing pad, a block reached through a table in
 * data. Such an instruction is assumed to be reached with nothing unchanged, and so is all code
 * that it reaches. A function that does not decode to the end of each of its ranges has no flow at
 * all.
 *
 * 2. Used. Clang does not pass an argument that it knows the callee ignores: the register of an
 * unused parameter holds garbage, in calls of global functions too. The description of the
 * parameter does not show that. So an entry value counts only if some path from the entry reads the
 * register before writing it. This is the usual liveness, computed backwards:
 *
 *	before an insn    the registers it reads, and those used after it except the ones it writes
 *	at a branch       the union
 *
 * Here, too, doubt is decided against us: a call or a jump out of the function is not taken for a
 * use, and "xor %ecx, %ecx" reads nothing.
 *
 * The check that takes no decoding comes first: calls change registers. Most queries are about a
 * register that is after a call on some path.
 *
 * Cost: linear in the instructions for code without loops; each loop adds a round or two. Jumps
 * backwards that lead to one another add one each, and code can be made of nothing else: after
 * CODE_VISITS_MAX nothing is unchanged, and nothing used.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "loc/code.h"
#include "loc/loc.h"

enum {
	ALL = 0xffff,
	/* rax rdx rcx rsi rdi r8-r11: DWARF numbers 0 1 2 4 5 8-11. */
	CALL_CHANGES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 0xf << 8,
};

struct node {
	uint64_t at;
	uint64_t target; /* of a direct jump or branch */
	const uint8_t *bytes;
	uint16_t kills;
	uint8_t flow; /* enum insn_flow */
	uint8_t len;
	uint16_t reads;
	uint16_t in;   /* unchanged before it */
	uint16_t live; /* used at or after it, before it is written */
	bool reached;
};

struct flow {
	struct node *p;
	size_t n, cap;
	struct cairn_vaddr entry;
	/*
	 * The facts that nodes have: none; then those with the changes of calls only; with the
	 * writes of all instructions; and with uses.
	 */
	enum { RAW, BY_CALLS, BY_ALL, USES } known;
	/* the state after an indirect jump: intersected into every instruction */
	uint16_t anywhere;
};

static int add_node(void *arg, const struct code_insn *insn)
{
	struct node node = {.at = insn->at,
			    .target = insn->step.target,
			    .bytes = insn->bytes,
			    .flow = (uint8_t)insn->step.flow,
			    .len = insn->step.len};
	return VEC_ADD((struct flow *)arg, node) ? 0 : -ENOMEM;
}

static uint16_t changes_of(const struct node *n)
{
	return n->flow == INSN_CALL || n->flow == INSN_CALL_INDIRECT || n->flow == INSN_TRAP
		       ? CALL_CHANGES
		       : 0;
}

/* insn_step() decoded it, so it is an instruction. */
static void decode(struct node *n)
{
	struct insn insn = {.writes = ALL};
	insn_decode(n->bytes, n->len, n->at, &insn);
	n->kills = insn.writes | changes_of(n);
	n->reads = insn_is_zeroing(n->bytes, n->len) ? 0 : insn.reads;
}

static int by_address(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static struct node *node_at(const struct flow *f, uint64_t at)
{
	struct node key = {.at = at};
	return bsearch(&key, f->p, f->n, sizeof(key), by_address);
}

/* A path with @bits unchanged arrives at @to. True if that adds a fact. */
static bool arrive(struct node *to, uint16_t bits)
{
	if (!to || (to->reached && (to->in & bits) == to->in))
		return false;
	to->in &= bits;
	to->reached = true;
	return true;
}

static bool falls_through(const struct node *n)
{
	return n->flow != INSN_JUMP && n->flow != INSN_JUMP_INDIRECT && n->flow != INSN_RETURN;
}

/* One pass over the reached instructions in order of address; true when something changed. */
static bool propagate(struct flow *f)
{
	bool changed = false;
	for (size_t i = 0; i < f->n; i++) {
		struct node *n = &f->p[i];
		if (!n->reached)
			continue;
		n->in &= f->anywhere;
		uint16_t out = n->in & (uint16_t)~n->kills;
		struct node *next =
			i + 1 < f->n && f->p[i + 1].at == n->at + n->len ? &f->p[i + 1] : NULL;
		if (falls_through(n))
			changed |= arrive(next, out);
		if (n->flow == INSN_JUMP || n->flow == INSN_BRANCH)
			changed |= arrive(node_at(f, n->target), out);
		if (n->flow == INSN_JUMP_INDIRECT && (f->anywhere & out) != f->anywhere) {
			f->anywhere &= out;
			changed = true;
		}
	}
	return changed;
}

/* One pass backwards over all instructions; true when something changed. */
static bool propagate_uses(struct flow *f)
{
	bool changed = false;
	for (size_t i = f->n; i-- > 0;) {
		struct node *n = &f->p[i];
		uint16_t after = 0;
		if (falls_through(n) && i + 1 < f->n && f->p[i + 1].at == n->at + n->len)
			after |= f->p[i + 1].live;
		const struct node *target = n->flow == INSN_JUMP || n->flow == INSN_BRANCH
						    ? node_at(f, n->target)
						    : NULL;
		if (target)
			after |= target->live;
		uint16_t live = n->reads | (after & (uint16_t)~n->kills);
		changed |= live != n->live;
		n->live = live;
	}
	return changed;
}

/* Passes until nothing changes. False: there were too many. */
static bool settle(struct flow *f, bool (*pass)(struct flow *f))
{
	size_t left = CODE_VISITS_MAX / (f->n + 1) + 2;
	while (left && pass(f))
		left--;
	return left;
}

static void find_unchanged(struct flow *f)
{
	f->anywhere = ALL;
	for (size_t i = 0; i < f->n; i++) {
		f->p[i].in = ALL;
		f->p[i].reached = false;
	}
	arrive(node_at(f, f->entry.v), ALL);
	bool settled = settle(f, propagate);
	for (size_t i = 0; i < f->n; i++)
		if (!f->p[i].reached)
			arrive(&f->p[i], 0);
	if (!settled || !settle(f, propagate))
		f->anywhere = 0;
}

static void need_calls(struct flow *f)
{
	for (size_t i = 0; f->known == RAW && i < f->n; i++)
		f->p[i].kills = changes_of(&f->p[i]);
	if (f->known == RAW)
		find_unchanged(f);
	f->known = f->known < BY_CALLS ? BY_CALLS : f->known;
}

static void need_all(struct flow *f)
{
	for (size_t i = 0; f->known < BY_ALL && i < f->n; i++)
		decode(&f->p[i]);
	if (f->known < BY_ALL)
		find_unchanged(f);
	f->known = f->known < BY_ALL ? BY_ALL : f->known;
}

static void need_uses(struct flow *f)
{
	need_all(f);
	bool settled = f->known == USES || settle(f, propagate_uses);
	for (size_t i = 0; i < f->n && !settled; i++)
		f->p[i].live = 0;
	f->known = USES;
}

struct flow *flow_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry)
{
	struct flow *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->entry = entry;
	if (code_visit(code, function, add_node, f) < 0) {
		flow_free(f);
		return NULL;
	}
	return f;
}

struct flow *flow_of_range(struct elf *code, struct dw_range range)
{
	struct flow *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->entry = range.lo;
	if (code_visit_range(code, range, add_node, f) < 0) {
		flow_free(f);
		return NULL;
	}
	return f;
}

void flow_free(struct flow *f)
{
	if (f)
		VEC_FREE(f);
	free(f);
}

static bool is_unchanged(const struct flow *f, const struct node *n, unsigned int dwarf_reg)
{
	return n->reached && (n->in & f->anywhere & 1u << dwarf_reg);
}

bool flow_unchanged(struct flow *f, struct cairn_vaddr at, unsigned int dwarf_reg)
{
	const struct node *n = f && dwarf_reg < 16 ? node_at(f, at.v) : NULL;
	if (!n)
		return false;
	need_calls(f);
	if (!is_unchanged(f, n, dwarf_reg))
		return false;
	need_all(f);
	return is_unchanged(f, n, dwarf_reg);
}

bool flow_used(struct flow *f, struct cairn_vaddr at, unsigned int dwarf_reg)
{
	const struct node *n = f && dwarf_reg < 16 ? node_at(f, at.v) : NULL;
	if (n)
		need_uses(f);
	return n && (n->live & 1u << dwarf_reg);
}
