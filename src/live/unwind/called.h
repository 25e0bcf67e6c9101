/* SPDX-License-Identifier: BSD-2-Clause */
/* The target of a call, compared with the callee on the stack. Within this module only. */
#ifndef UNWIND_CALLED_H
#define UNWIND_CALLED_H

#include <cairn/err.h>

#include "code/memory.h"
#include "code/space.h"

/* An answer that was found: JITs call the same few functions again and again. */
struct called_known {
	/* 0 of both: an empty slot; callee is 0 for code that is in no file */
	uint64_t target, callee;
	bool is_other;
};

enum { CALLED_KNOWN = 64 }; /* a power of two */

struct called {
	uint16_t machine;
	struct code_space *space;
	const struct code_memory *code; /* where instructions are read */
	struct called_known *known; /* CALLED_KNOWN of them, zeroed when the mappings are others */
};

/*
 * called_is_other - whether the call before a return address cannot have led to a callee
 *
 * @callee      an address in the function that would return to @ret_addr
 * @ret_target  the function that is called instead; set with 1
 * Returns 1: the call's target is known, and neither the target nor any function that it jumps to
 * is the callee. 0: the call may have led there, or the target is not known. -ENOMEM. Cost: a read
 * of the call; for a new target in a file one pass over its instructions, for the first one without
 * a symbol code_space_fde(). Threads: one at a time.
 */
int called_is_other(const struct called *c, uint64_t callee, uint64_t ret_addr,
		    uint64_t *ret_target, struct cairn_err *err);

#endif
