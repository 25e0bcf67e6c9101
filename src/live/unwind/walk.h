/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module unwind takes the stacks of threads, processes and core files.
 *
 * This header: a walk, from frame to frame, over the code of a process. Within this module only.
 */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include <cairn/stack.h>

#include "base/arena.h"
#include "base/vec.h"
#include "code/runtime.h"
#include "code/space.h"
#include "unwind/interpreter_frame.h"
#include "unwind/called.h"

/*
 * The known registers of a frame. Most are the same as in the frame inside of it: words[first] and
 * later have those that differ, r[n] of bit n in @changed, in this order.
 */
struct frame_regs {
	uint32_t known, changed, first;
};

/*
 * The place of an address, and how a frame there is left: the threads of a pool stand at the same
 * places.
 */
struct walk_place {
	uint64_t at; /* 0: an empty slot */
	const struct code_image *image;
	struct cairn_vaddr vaddr;
	const struct cairn_unwind_rule *rule;
	const struct cairn_stack_frame *frame; /* that was there last */
};

enum { WALK_PLACES = 256 }; /* a power of two */

/*
 * One walk's result, in memory that the next one takes again, but for the frames: they last until
 * walk_forget().
 */
struct walk {
	struct arena kept; /* frames */
	VEC(const struct cairn_stack_frame *) frames;
	VEC(struct frame_regs) regs; /* one for each frame; none of a target without */
	VEC(uint64_t) words;
	enum cairn_walk_end end;
	char why[512];
	struct walk_place places[WALK_PLACES];
	struct called_known called[CALLED_KNOWN];
};

/* Frames beyond this are a recursion that no user reads to its end. */
enum { WALK_MAX_FRAMES = 1024 };

/* The target of the walk. */
struct walk_target {
	uint16_t machine;
	/* of AArch64: bits of an address of code that a signature takes; 0: not known, or none */
	uint64_t signature;
	struct code_space *space;
	struct code_runtime *runtime;            /* resolved; NULL: only files have code */
	struct code_memory code;                 /* instructions, for undescribed code */
	struct interpreter_frame_states *states; /* NULL: the target does not run */
	bool no_registers;                       /* of frames are kept */
	cairn_read_memory read;                  /* stacks, as they were */
	void *ctx;
};

/*
 * walk_run - the frames from @regs outwards
 *
 * @walk  zeroed, or of an earlier walk; walk_forget() when the mappings are others since
 * @max   frames; 0: WALK_MAX_FRAMES
 * Returns 0 however the walk ended; -ENOMEM.
 */
int walk_run(struct walk *walk, const struct walk_target *target, const struct cairn_regs *regs,
	     size_t max, struct cairn_err *err);

/* No frames. */
void walk_empty(struct walk *walk);
/* Forgets the results per place, and all frames so far. */
void walk_forget(struct walk *walk);
void walk_fini(struct walk *walk);

#endif
