/* SPDX-License-Identifier: BSD-2-Clause */
/* The effect of an instruction on the stack pointer and the frame pointer. */
#ifndef INSN_STACK_H
#define INSN_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The new value of one of the two registers. */
enum insn_stack_from {
	STACK_KEPT,
	STACK_FROM_SP, /* the old rsp, + add */
	STACK_FROM_FP, /* the old rbp, + add */
	STACK_UNKNOWN,
};

struct insn_stack {
	uint8_t len;
	enum insn_stack_from sp, fp;
	int64_t sp_add, fp_add;
	bool goes_on, jumps; /* control may get to the next instruction; to target */
	bool is_call, is_return, is_padding; /* padding: a nop */
	uint64_t target;
};

/*
 * insn_stack - decode one instruction
 *
 * A call leaves rsp unchanged after its return: the return pops the pushed address. A call of the
 * next instruction only pushes.
 * @at  address of the first byte, for targets
 * Returns false when the bytes are no instruction. Cost: one decode, no allocation. Threads: any.
 */
bool insn_stack(const uint8_t *bytes, size_t n, uint64_t at, struct insn_stack *ret);

#endif
