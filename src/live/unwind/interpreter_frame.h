/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a frame is left that is another function's: traces of an interpreter. Within this module
 * only.
 */
#ifndef UNWIND_INTERPRETER_FRAME_H
#define UNWIND_INTERPRETER_FRAME_H

#include <cairn/unwind.h>

#include "base/vec.h"
#include "code/memory.h"
#include "code/space.h"

enum { BORROW_STATE_WORDS = 32 };

/* An interpreter's own state, at the moment that the threads stood still. */
struct interpreter_frame_state {
	uint64_t at;
	uint64_t words[BORROW_STATE_WORDS];
	bool is_read;
};

/*
 * Which states those are is known only after a walk. So a first walk learns where they are, and
 * that it would have needed them; interpreter_frame_catch() reads them at the next stop.
 */
struct interpreter_frame_states {
	VEC(struct interpreter_frame_state) list;
	bool has_missed; /* since interpreter_frame_catch() */
};

struct borrow {
	uint16_t machine;
	struct code_space *space;
	const struct code_memory *memory; /* of code, and of states when @states is NULL */
	/* NULL: the memory that @memory reads does not change */
	struct interpreter_frame_states *states;
	cairn_read_memory read; /* the stack */
	void *ctx;
};

/* While the threads stand still. Cost: a read for each state that was seen. */
void interpreter_frame_catch(struct interpreter_frame_states *states,
			     const struct code_memory *memory);

/*
 * interpreter_frame_caller - from code that runs in the frame of its interpreter to the caller of
 * that
 *
 * @regs  the frame's, replaced by the caller's
 * Returns 1 when there is such a frame, 0 when there is none, -ENOMEM. Cost: a look at each second
 * word of two kilobytes.
 */
int interpreter_frame_caller(const struct borrow *b, struct cairn_regs *regs,
			     struct cairn_err *err);

#endif
