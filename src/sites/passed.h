/* SPDX-License-Identifier: BSD-2-Clause */
/* What a caller passed in a register; the essay is in passed.c. */
#ifndef SITES_PASSED_H
#define SITES_PASSED_H

#include "sites/active.h"

/* A call that frames on a stack tell of. */
struct passed_call {
	const struct active *active; /* the code of all functions */
	uint32_t callee, caller;   /* out-of-line functions, entries of the index */
	struct cairn_vaddr ret_pc; /* where it returns to, in the caller */
};

/*
 * passed_in - where in the caller's frame the value is that a register had when the callee was entered, or that was meant for a parameter
 *
 * @asked  CAIRN_LOC_ENTRY_REG or CAIRN_LOC_ENTRY_PARAM
 * @arena  holds the location
 * Returns 0 and *@ret: a value, or CAIRN_UNAVAIL_ENTRY_VALUE where it is not certain; -EBADMSG, -ENOMEM.
 * Cost: decodes the callee, and reads the call sites of the caller.
 */
int passed_in(const struct site_env *env, const struct passed_call *call, const struct cairn_loc_step *asked,
	      struct arena *arena, struct cairn_location *ret, struct cairn_err *err);

#endif
