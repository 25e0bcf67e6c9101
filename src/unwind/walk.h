/* SPDX-License-Identifier: BSD-2-Clause */
/* A walk: steps from frame to frame, over the code of a process. Within this module only. */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include <cairn/stack.h>

#include "base/vec.h"
#include "code/runtime.h"
#include "code/space.h"
#include "unwind/borrow.h"

/* One walk's result; the frames are the caller's. */
struct walk {
	VEC(struct cairn_stack_frame) frames;
	enum cairn_walk_end end;
	char why[512];
};

/* Frames beyond this are a recursion that nobody reads to its end. */
enum { WALK_MAX_FRAMES = 1024 };

/* What is walked through. */
struct walk_target {
	uint16_t machine;
	uint64_t signature; /* of AArch64: bits of an address of code that a signature takes; 0: not known, or none */
	struct code_space *space;
	struct code_runtime *runtime; /* settled; NULL: only files have code */
	struct code_memory code; /* instructions, where nobody describes them */
	struct borrow_states *states; /* NULL: the target does not run */
	cairn_read_memory read; /* stacks, as they were */
	void *ctx;
};

/*
 * walk_run - the frames from @regs outwards
 *
 * @walk  zeroed, or of an earlier walk whose memory is used again
 * @max   frames; 0: WALK_MAX_FRAMES
 * Returns 0 however the walk ended; -ENOMEM.
 */
int walk_run(struct walk *walk, const struct walk_target *target, const struct cairn_regs *regs, size_t max,
	     struct cairn_err *err);

#endif
