/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of AArch64 without a description
 *
 *	a9be7bfd	stp x29,x30,[sp,#-32]!	the caller's x29, and where this function returns to
 *	910003fd	mov x29,sp		x29: 8 bytes of caller's x29, 8 of return address
 *	...
 *	a8c27bfd	ldp x29,x30,[sp],#32
 *	d65f03c0	ret
 *
 * The two words do not tell how far above them the caller's stack pointer is. So it is unknown from
 * there on, and a caller whose row is based on it ends the stack. At an instruction that is about
 * to run, the frame may not exist yet, no longer, or never: then the return address is in x30. If
 * the call before x30 leads to here, all instructions from its target on are examined; otherwise
 * the instructions before the pc have to make the frame. If neither decides, nothing is assumed.
 */
#include <string.h>

#include "unwind/fp_fallback.h"

enum {
	FP = 29,
	LR = 30,
	SP = 31,
	INSN = 4,
	RECORD = 16,
	/* From a function's beginning, or to where its frame is made. */
	MAX_INSNS = 4096,
};

static const uint64_t address_bits = (UINT64_C(1) << 48) - 1;

enum arm_state { ARM_UNKNOWN, ARM_FRAME, ARM_NO_FRAME };

/* mov x29,sp or add x29,sp,#n */
static bool makes_frame(uint32_t insn)
{
	return (insn & 0xffc003ff) == 0x910003fd;
}

/* ldp x29,x30,[sp...], in its three forms */
static bool drops_frame(uint32_t insn)
{
	return (insn & 0xfe407fff) == 0xa8407bfd;
}

/* stp x29,x30,[sp...] */
static bool saves_frame(uint32_t insn)
{
	return (insn & 0xfe407fff) == 0xa8007bfd;
}

static bool is_direct_call(uint32_t insn)
{
	return (insn & 0xfc000000) == 0x94000000;
}

/* bl, blr, and those that authenticate */
static bool is_call(uint32_t insn)
{
	return is_direct_call(insn) || (insn & 0xfffffc1f) == 0xd63f0000 ||
	       (insn & 0xfefff800) == 0xd63f0800;
}

/* br, ret, and those that authenticate; b. */
static bool leaves(uint32_t insn)
{
	return (insn & 0xfebff000) == 0xd61f0000 || (insn & 0xfc000000) == 0x14000000;
}

static bool read_insn(const struct assume *a, uint64_t at, uint32_t *ret)
{
	const struct code_mapping *m = code_maps_find(a->maps, at);
	return m && m->is_executable && !(at % INSN) &&
	       code_memory_all(a->code, at, ret, sizeof(*ret));
}

static bool is_after_call(const struct assume *a, uint64_t at)
{
	uint32_t insn;
	return read_insn(a, at - INSN, &insn) && is_call(insn);
}

/* From where a function begins to @pc, in the order of addresses. */
static enum arm_state state_from(const struct assume *a, uint64_t lo, uint64_t pc)
{
	enum arm_state state = ARM_NO_FRAME;
	uint32_t insn;
	for (uint64_t at = lo; at < pc; at += INSN) {
		if (!read_insn(a, at, &insn))
			return ARM_UNKNOWN;
		/* The code after an exit is reached by a jump of unknown origin. */
		if (saves_frame(insn) || leaves(insn) || (is_call(insn) && state != ARM_FRAME))
			state = ARM_UNKNOWN;
		else if (makes_frame(insn))
			state = ARM_FRAME;
		else if (drops_frame(insn))
			state = ARM_NO_FRAME;
	}
	return state;
}

/* Straight back to where the frame is made. */
static enum arm_state state_before(const struct assume *a, uint64_t pc)
{
	uint32_t insn;
	for (unsigned int i = 1; i <= MAX_INSNS && read_insn(a, pc - i * INSN, &insn); i++) {
		if (makes_frame(insn))
			return ARM_FRAME;
		if (drops_frame(insn) || leaves(insn) || saves_frame(insn))
			break;
	}
	return ARM_UNKNOWN;
}

static enum arm_state state_at(const struct assume *a, const struct cairn_regs *regs)
{
	uint64_t pc = regs->pc.v, ret_addr = regs->r[LR] & address_bits;
	uint32_t insn;
	if (regs->known & UINT32_C(1) << LR && read_insn(a, ret_addr - INSN, &insn) &&
	    is_direct_call(insn)) {
		int64_t distance = (int64_t)((uint64_t)insn << 38) >> 36;
		uint64_t target = ret_addr - INSN + (uint64_t)distance;
		if (target <= pc && pc - target <= (uint64_t)MAX_INSNS * INSN)
			return state_from(a, target, pc);
	}
	return state_before(a, pc);
}

static bool is_record_at(const struct assume *a, const struct cairn_regs *regs)
{
	uint64_t fp = regs->r[FP];
	bool has_sp = regs->known & UINT32_C(1) << SP;
	const struct code_mapping *stack = code_maps_find(a->maps, has_sp ? regs->r[SP] : fp);
	return stack && !stack->is_executable && !(fp % 8) && (!has_sp || fp >= regs->r[SP]) &&
	       fp < stack->hi && stack->hi - fp >= RECORD;
}

static const char *leave_frame(const struct assume *a, struct cairn_regs *caller)
{
	uint64_t record[2];
	if (!is_record_at(a, caller))
		return "x29, which could be its frame pointer, does not point into the stack";
	if (!a->read(a->ctx, (struct cairn_addr){caller->r[FP]}, record, sizeof(record)))
		return "the frame that x29 leads to cannot be read";
	/* The chain ends with 0; it never goes down. */
	if (record[0] && record[0] <= caller->r[FP])
		return "x29 leads down the stack";
	caller->pc.v = record[1] & address_bits;
	caller->known = UINT32_C(1) << FP;
	caller->r[FP] = record[0];
	caller->r[LR] = caller->r[SP] = 0;
	return is_after_call(a, caller->pc.v) ? NULL : "x29 does not lead to a return address";
}

static const char *leave_without_frame(const struct assume *a, struct cairn_regs *caller)
{
	caller->pc.v = caller->r[LR] & address_bits;
	caller->known = UINT32_C(1) << FP;
	caller->r[LR] = caller->r[SP] = 0;
	return is_after_call(a, caller->pc.v) ? NULL : "x30 is no return address";
}

bool fp_fallback_caller_arm(const struct assume *a, bool is_exact, struct cairn_regs *regs,
			    const char **ret_why)
{
	struct cairn_regs caller = *regs;
	enum arm_state state = is_exact ? state_at(a, regs) : ARM_FRAME;
	*ret_why = "its frame pointer is not known";
	if (!(regs->known & UINT32_C(1) << FP))
		return false;
	const char *why = "it is not known whether it has made its frame";
	if (state != ARM_UNKNOWN)
		why = state == ARM_FRAME ? leave_frame(a, &caller)
					 : leave_without_frame(a, &caller);
	*ret_why = why                  ? why
		   : state == ARM_FRAME ? "its callee keeps a frame pointer"
					: "its callee has no frame";
	if (!why)
		*regs = caller;
	return !why;
}

bool fp_fallback_outermost_arm(bool is_exact, const struct cairn_regs *regs)
{
	return !is_exact && regs->known & UINT32_C(1) << FP && !regs->r[FP];
}
