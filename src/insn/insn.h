/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions: boundaries, effects, and what a user probe does to them
 *
 * Decoding is Zydis'; what is ours is the kernel's view: whether a uprobe on this instruction
 * fires at all, whether it is emulated (fast) or single-stepped out of line (slow), and whether it
 * can corrupt the program. include/cairn/hazards.h explains the traps to users.
 */
#ifndef INSN_INSN_H
#define INSN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/hazards.h>

enum insn_flow {
	INSN_NEXT,          /* control continues with the next instruction, and only there */
	INSN_JUMP,          /* direct, to target */
	INSN_JUMP_INDIRECT,
	INSN_BRANCH,        /* conditional, to target or next */
	INSN_CALL,          /* direct, to target */
	INSN_CALL_INDIRECT,
	INSN_RETURN,
	INSN_TRAP,          /* int3, ud2, hlt, syscall, int n: leaves the straight line */
};

struct insn {
	uint8_t len;
	enum insn_flow flow;
	/* Of INSN_JUMP, INSN_BRANCH, INSN_CALL: address, counted as @at was when decoding. */
	uint64_t target;
	/* General registers (DWARF numbers 0-15) written in whole or part, as a bit mask. */
	uint16_t writes;
	uint16_t reads;
	bool writes_memory;
	bool reads_memory;
	bool has_rep; /* may be interrupted and resumed in the middle */
};

/*
 * insn_decode - decode one instruction
 *
 * @bytes, @n  what is there; at most 15 are looked at
 * @at         address of the first byte, for targets
 * Returns false when they are no complete, valid 64-bit instruction.
 * Cost: one table-driven decode, no allocation. Threads: any. Signals: safe.
 */
bool insn_decode(const uint8_t *bytes, size_t n, uint64_t at, struct insn *ret);

/* DWARF register number of x86-64 to name ("rdi"), and for a width of 1, 2, 4 or 8 bytes ("edi"). */
const char *insn_reg_name(unsigned int dwarf_reg);

/*
 * insn_uprobe - what the kernel does with a uprobe on this instruction
 *
 * By the rules of arch/x86/kernel/uprobes.c, 64-bit, of Linux 6.18; see the essay in uprobe.c.
 */
struct insn_uprobe {
	enum cairn_hazard hazard;
	bool emulated; /* the kernel emulates it: no single step */
};
struct insn_uprobe insn_uprobe(const uint8_t *bytes, size_t n);

/*
 * insn_boundaries - mark the start of every instruction of a piece of code by linear decoding
 *
 * @bits  one bit per byte of code, (n + 7) / 8 bytes, zeroed by the caller
 * Returns the number of bytes that could not be decoded (each is stepped over as one byte).
 */
size_t insn_boundaries(const uint8_t *code, size_t n, uint8_t *bits);

/* Whether the code [@code, @code + @n) uses memory below rsp without having moved rsp: the red zone. */
bool insn_uses_red_zone(const uint8_t *code, size_t n);

#endif
