/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a function use the red zone?
 *
 * The System V ABI promises that no other code touches the 128 bytes below rsp, so a leaf function
 * may keep its variables there without moving rsp. A probe that pushes something onto the stack
 * breaks the promise. Two shapes occur in compiled code:
 *
 *	mov %edi,-0x14(%rsp)		gcc -O2: below rsp directly
 *
 *	push %rbp			-O0 and -fno-omit-frame-pointer: below rbp,
 *	mov  %rsp,%rbp			and rsp was never lowered
 *	mov  %edi,-0x14(%rbp)
 *
 * The first is a memory operand with base rsp and a negative displacement. For the second the depth
 * to which the prologue lowers rsp below rbp is summed up (push: 8, sub $N,%rsp: N) from "mov
 * %rsp,%rbp" to the first instruction that is no straight line; an operand below that depth is in
 * the red zone. A lea counts like an access: the address is going to be used.
 *
 * Every doubt is answered "yes": undecodable bytes, rbp set from rsp by anything but that mov. One
 * case is not noticed: a pointer made from rsp by arithmetic in another register. No compiler was
 * seen to aim such a pointer below rsp.
 */
#include "insn/insn.h"

#include "insn/zydis.h"

struct frame {
	bool rbp_is_frame;   /* rbp was set from rsp */
	bool depth_is_known; /* still in the straight line of the prologue */
	int64_t depth_bytes; /* how far rsp is below rbp at least */
};

static bool is_reg(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

static bool is_below(const struct frame *f, const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
		return false;
	if (op->mem.base == ZYDIS_REGISTER_RSP)
		return op->mem.disp.value < 0;
	if (op->mem.base == ZYDIS_REGISTER_RBP && f->rbp_is_frame)
		return op->mem.disp.value < -f->depth_bytes;
	return false;
}

/* Follow the prologue; returns false when rbp is set from rsp in a way that is not understood. */
static bool frame_step(struct frame *f, const ZydisDecodedInstruction *zi,
		       const ZydisDecodedOperand *ops)
{
	if (zi->mnemonic == ZYDIS_MNEMONIC_MOV && is_reg(&ops[0], ZYDIS_REGISTER_RBP) &&
	    is_reg(&ops[1], ZYDIS_REGISTER_RSP)) {
		*f = (struct frame){.rbp_is_frame = true, .depth_is_known = true};
		return true;
	}
	if (zi->mnemonic == ZYDIS_MNEMONIC_LEA && is_reg(&ops[0], ZYDIS_REGISTER_RBP) &&
	    ops[1].mem.base == ZYDIS_REGISTER_RSP)
		return false;
	if (!f->depth_is_known)
		return true;
	if (zi->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || zi->mnemonic == ZYDIS_MNEMONIC_POP ||
	    zi->mnemonic == ZYDIS_MNEMONIC_LEAVE)
		f->depth_is_known = false;
	else if (zi->mnemonic == ZYDIS_MNEMONIC_PUSH)
		f->depth_bytes += 8;
	else if (zi->mnemonic == ZYDIS_MNEMONIC_SUB && is_reg(&ops[0], ZYDIS_REGISTER_RSP) &&
		 ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && ops[1].imm.value.s > 0)
		f->depth_bytes += ops[1].imm.value.s;
	return true;
}

/* An operand of a nop or prefetch has the form of an address and is none. */
static bool is_hint(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_NOP ||
	       zi->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	       zi->meta.category == ZYDIS_CATEGORY_PREFETCH;
}

bool insn_uses_red_zone(const uint8_t *code, size_t n)
{
	ZydisDecoder d = zydis_decoder();
	struct frame f = {0};
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	for (size_t at = 0; at < n; at += zi.length) {
		if (!zydis_full(&d, code + at, n - at, &zi, ops))
			return true;
		if (is_hint(&zi))
			continue;
		/* Hidden operands, as that of push, come last and never lie below rsp for good. */
		for (size_t i = 0; i < zi.operand_count_visible; i++)
			if (is_below(&f, &ops[i]))
				return true;
		if (!frame_step(&f, &zi, ops))
			return true;
	}
	return false;
}
