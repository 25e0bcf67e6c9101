/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulates the effect of a function's instructions on its frame, from the entry; the essay is in
 * simulate_frame.c. Within this module only.
 */
#ifndef CFI_SIMULATE_FRAME_H
#define CFI_SIMULATE_FRAME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/shared/unwind.h>

#include "base/vec.h"
#include "insn/stack.h"

/*
 * The possible contents of a register, on one of the paths to an instruction. Bit n, for the
 * numbers of callee-saved registers: the value of register n at the entry. The other bits use the
 * numbers of other registers.
 */
enum {
	SIM_NEW = 1, /* an instruction computed it: it is not the caller's */
	/* a sum, xor and the like of a value that may be the caller's */
	SIM_CHANGED = 2,
	/* from memory, a vector register or a callee: it may have been saved there */
	SIM_LOADED = 4,
	/* for rbp: the value that leave, or a pop, took from the memory that it pointed to */
	SIM_LEFT = 16,
};

/* The distances of the CFA from rsp and rbp, in bytes; and the contents of the registers. */
struct sim_state {
	bool knows_sp, knows_fp;
	bool knows_frame; /* how far rsp is above rbp */
	int64_t sp, fp, frame;
	uint16_t regs[16];
};

/* One instruction, before it is executed. */
struct sim_point {
	uint64_t at, from; /* from: the instruction before */
	struct sim_state state;
	/*
	 * a call precedes it, or padding that follows a call: it is not known whether control ever
	 * comes this way
	 */
	bool is_after_call;
};

enum { SIM_END = INT_MIN };

struct sim_ops {
	/*
	 * Called on each path to an instruction. 0: go on; SIM_END: do not continue from here;
	 * any other result ends the walk.
	 */
	int (*arrive)(void *ctx, const struct sim_point *p);
	/*
	 * @p is a return, or jumps out of the function. May be NULL. 0, or a result that ends the
	 * walk.
	 */
	int (*leave)(void *ctx, const struct sim_point *p, const struct insn_stack *insn);
	bool goes_on_blind; /* also where neither rsp nor rbp is known */
};

/* Kept from one function to the next for its memory; {0} to begin with. */
struct simulation {
	VEC(struct sim_point) todo;
	VEC(uint32_t) seen; /* per byte of code: which of @reached, + 1 */
	VEC(struct sim_reached {
		struct sim_state state;
		uint8_t n_ways;
	})
	reached;
	uint64_t n_ends; /* where it ended by itself: no instruction, or not blind */
};

/*
 * The start of the walk: the CFA is at rsp + 8, and the registers are the caller's except for
 * these, which are overwritten.
 */
struct sim_entry {
	uint64_t at;
	uint16_t overwritten;
};

/*
 * sim_run - follow the instructions of a function from an entry
 *
 * @lo, @hi  link-time addresses; @code has the bytes. At most SIM_MAX_BYTES: a larger function
 *           is not followed
 * Returns 0, -ENOMEM, or the result of an operation.
 * Cost: two decodes per instruction and path that adds a content; there are few.
 */
enum { SIM_MAX_BYTES = 1 << 22 }; /* the largest function seen has 200,000 */
int sim_run(struct simulation *f, uint64_t lo, uint64_t hi, const uint8_t *code,
	    const struct sim_entry *entry, const struct sim_ops *ops, void *ctx);
void sim_fini(struct simulation *f);

/* Whether the instruction at @off in the function has been followed already. */
static inline bool sim_was_at(const struct simulation *f, uint64_t off)
{
	return f->seen.p[off] != 0;
}

/* A rule's CFA: 1 it is where the instructions have it, 0 it cannot be compared, -1 it is not. */
int sim_compare(const struct cairn_unwind_rule *rule, const struct sim_state *s);

/* The bits of a register that show that it does not have the caller's value. */
static inline uint16_t sim_overwritten(const struct sim_state *s, unsigned int reg)
{
	return s->regs[reg] & (uint16_t) ~(1u << reg | SIM_LOADED | SIM_LEFT);
}

#endif
