/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames without a description
 *
 * V8, the JVM with -XX:+PreserveFramePointer, .NET and others begin their functions so that frames
 * are a list:
 *
 *	55		push %rbp		the caller's frame pointer
 *	48 89 e5	mov %rsp,%rbp		this frame
 *	...				rbp + 8: the return address; rbp: the caller's rbp
 *	5d		pop %rbp
 *	c3		ret
 *
 * After the first two, and up to the pop, rbp gives the caller. Elsewhere rbp still (or again)
 * belongs to the caller, and a step by it would skip a frame. So at an instruction that is about to
 * run the next ones are examined. If they lead to "push %rbp, mov %rsp,%rbp", or to a return,
 * without changing the stack pointer on the way, then the return address is on top of the stack.
 *
 * Nothing guarantees that rbp is a frame pointer there at all. Code that uses it for something else
 * is noticed in nearly all cases: rbp must point into the stack, above the stack pointer, and the
 * supposed return address must be in code, after a call. A frame found this way is very probably
 * right, and is marked.
 *
 * The JVM's interpreter does not call: it pushes the address of a stub, and jumps. So a return into
 * code without a file needs no call before it, if the caller's frame passes all other checks.
 */
#include "unwind/fp_fallback.h"

#include <elf.h>

#include "cfi/rule.h"
#include "code/runtime.h"
#include "insn/call.h"
#include "insn/insn.h"

enum {
	RBP = 6,
	RSP = 7,
	WINDOW = 64, /* bytes of instructions: V8's functions test two things before they push */
	MAX_STEPS = 12,
};

enum frame_state {
	FRAME,        /* rbp is this frame's */
	NO_FRAME,     /* the return address is on top of the stack */
	FRAME_PUSHED, /* the caller's rbp is on top of the stack, the return address after it */
};

static bool is_push_rbp(const uint8_t *p, size_t n)
{
	return n && p[0] == 0x55;
}

/* Both ways to write mov %rsp,%rbp. */
static bool is_set_rbp(const uint8_t *p, size_t n)
{
	return n >= 3 && p[0] == 0x48 &&
	       ((p[1] == 0x89 && p[2] == 0xe5) || (p[1] == 0x8b && p[2] == 0xec));
}

/* @p: the instruction that is about to run. */
static enum frame_state state_of(const uint8_t *p, size_t n)
{
	for (unsigned int i = 0; i < MAX_STEPS; i++) {
		struct insn insn;
		if (is_push_rbp(p, n) && is_set_rbp(p + 1, n - 1))
			return NO_FRAME;
		if (!insn_decode(p, n, 0, &insn))
			return FRAME;
		if (insn.flow == INSN_RETURN)
			return NO_FRAME;
		if (insn.writes & (1 << RSP | 1 << RBP) ||
		    (insn.flow != INSN_NEXT && insn.flow != INSN_BRANCH))
			return FRAME;
		p += insn.len;
		n -= insn.len;
	}
	return FRAME;
}

static enum frame_state state_at(const struct assume *a, uint64_t pc)
{
	uint8_t bytes[1 + WINDOW];
	size_t n = a->code->read(a->code->ctx, pc - 1, bytes, sizeof(bytes));
	if (n < 2)
		return FRAME;
	if (is_push_rbp(bytes, 1) && is_set_rbp(bytes + 1, n - 1))
		return FRAME_PUSHED;
	return state_of(bytes + 1, n - 1);
}

static void rule_of_state(enum frame_state state, struct rule_words *ret)
{
	switch (state) {
	case FRAME:
		rule_cfa(ret, CAIRN_UNWIND_CFA_REG, 0, RBP, 16, 0);
		break;
	case FRAME_PUSHED:
		rule_cfa(ret, CAIRN_UNWIND_CFA_REG, 0, RSP, 16, 0);
		break;
	case NO_FRAME:
		rule_cfa(ret, CAIRN_UNWIND_CFA_REG, 0, RSP, 8, 0);
		return;
	}
	rule_add(ret, RBP, CAIRN_UNWIND_AT_CFA, -16);
	/*
	 * Only the function's author knows which other registers it saves for its caller, and
	 * where.
	 */
	static const uint8_t others[] = {3, 12, 13, 14, 15};
	for (size_t i = 0; i < sizeof(others); i++)
		rule_add(ret, others[i], CAIRN_UNWIND_LOST, 0);
}

static bool is_frame_at(const struct assume *a, uint64_t sp, uint64_t fp)
{
	const struct code_mapping *stack = code_maps_find(a->maps, sp);
	return stack && !(fp & 7) && fp >= sp && fp < stack->hi && stack->hi - fp >= 16;
}

static bool is_after_call(const struct assume *a, uint64_t pc)
{
	uint8_t bytes[INSN_CALL_LONGEST];
	const struct code_mapping *m = code_maps_find(a->maps, pc - 1);
	return m && m->is_executable && pc - m->lo >= sizeof(bytes) &&
	       code_memory_all(a->code, pc - sizeof(bytes), bytes, sizeof(bytes)) &&
	       insn_ends_with_call(bytes + sizeof(bytes));
}

/* Returned to by a jump: as the JVM's interpreter is. */
static bool is_stub_with_frame(const struct assume *a, const struct cairn_regs *regs)
{
	const struct code_mapping *stub = code_maps_find(a->maps, regs->pc.v), *caller;
	uint64_t ret_addr;
	if (!stub || !code_is_anonymous(stub) || !is_frame_at(a, regs->r[RSP], regs->r[RBP]) ||
	    !a->read(a->ctx, (struct cairn_addr){regs->r[RBP] + 8}, &ret_addr, sizeof(ret_addr)))
		return false;
	caller = code_maps_find(a->maps, ret_addr);
	return caller && (code_is_anonymous(caller) || is_after_call(a, ret_addr));
}

static bool step(const struct assume *a, enum frame_state state, struct cairn_regs *regs)
{
	struct rule_words words = {0};
	rule_of_state(state, &words);
	return cairn_unwind_step((const struct cairn_unwind_rule *)words.words, a->machine, a->read,
				 a->ctx, regs) == CAIRN_STEP_OK;
}

bool fp_fallback_caller(const struct assume *a, bool is_exact, struct cairn_regs *regs,
			const char **ret_why)
{
	struct cairn_regs caller = *regs;
	if (a->machine == EM_AARCH64)
		return fp_fallback_caller_arm(a, is_exact, regs, ret_why);
	if (a->machine != EM_X86_64 || (~regs->known & (1 << RSP | 1 << RBP))) {
		*ret_why = "its frame pointer is not known";
		return false;
	}
	enum frame_state state = is_exact ? state_at(a, regs->pc.v) : FRAME;
	if (state == FRAME && !is_frame_at(a, regs->r[RSP], regs->r[RBP])) {
		*ret_why = "rbp, which could be its frame pointer, does not point into the stack";
		return false;
	}
	bool has_stepped = step(a, state, &caller);
	if (has_stepped && is_after_call(a, caller.pc.v)) {
		*ret_why = "its callee keeps a frame pointer";
	} else if (has_stepped && is_stub_with_frame(a, &caller)) {
		*ret_why = "its callee keeps a frame pointer, and was jumped to";
	} else {
		*ret_why = state == FRAME ? "rbp does not lead to a return address"
					  : "the top of the stack is no return address";
		return false;
	}
	*regs = caller;
	return true;
}
