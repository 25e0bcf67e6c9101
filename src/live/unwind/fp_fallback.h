/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the walk leaves a frame without a description: by its frame pointer, if it has one. Within
 * this module only.
 */
#ifndef UNWIND_FP_FALLBACK_H
#define UNWIND_FP_FALLBACK_H

#include <cairn/unwind.h>

#include "code/maps.h"
#include "code/memory.h"

struct assume {
	uint16_t machine;
	const struct code_maps *maps;
	const struct code_memory *code; /* where instructions are read */
	cairn_read_memory read;         /* the stack */
	void *ctx;
};

/*
 * fp_fallback_caller - from a frame to its caller by the convention of code that keeps frame
 * pointers
 *
 * @is_exact  the frame's pc is an instruction that is about to run: it may be before, or after, the
 *	       life of the frame
 * @regs      the frame's, replaced by the caller's
 * @ret_why   the assumption, or why there is no caller; static words
 * Returns whether the caller is as a caller must be. Threads: any.
 */
bool fp_fallback_caller(const struct assume *a, bool is_exact, struct cairn_regs *regs,
			const char **ret_why);

/*
 * The same for AArch64, where the caller's stack pointer is not known afterwards. It also reports
 * if x29 marks the end of the chain: it is 0.
 */
bool fp_fallback_caller_arm(const struct assume *a, bool is_exact, struct cairn_regs *regs,
			    const char **ret_why);
bool fp_fallback_outermost_arm(bool is_exact, const struct cairn_regs *regs);

#endif
