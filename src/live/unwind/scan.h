/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the walk leaves a frame that has no description and no frame pointer: by the words on the
 * stack. Within this module only.
 */
#ifndef UNWIND_SCAN_H
#define UNWIND_SCAN_H

#include <cairn/unwind.h>

#include "unwind/called.h"

struct scan {
	const struct called *called; /* machine, space and code are its */
	cairn_read_memory read;      /* the stack */
	void *ctx;
};

/*
 * scan_return_path - from code that no row describes to the caller to which its own instructions
 * return
 *
 * @callee  an address of the frame's code
 * @regs    the frame's, replaced by the caller's: of those only pc, stack pointer and perhaps rbp
 *          are known
 * Returns 1; 0 if its instructions do not show it, or the call before the return address or the
 * rows from there on contradict it; -ENOMEM. Cost: return_path_follow(), and some steps by rows.
 */
int scan_return_path(const struct scan *s, uint64_t callee, struct cairn_regs *regs,
		     struct cairn_err *err);

/*
 * scan_caller - from code that no row describes to the nearest return address on the stack that can
 * be its caller's
 *
 * @callee  an address of the frame's code
 * @regs    the frame's, replaced by the caller's: of those only pc and stack pointer are known
 * Returns 1; 0 when there is none within SCAN_BYTES; -ENOMEM.
 * Cost: a look at each second word; for those that look like return addresses some steps by rows.
 */
int scan_caller(const struct scan *s, uint64_t callee, struct cairn_regs *regs,
		struct cairn_err *err);

#endif
