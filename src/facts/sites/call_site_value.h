/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the value that a caller passed in a register; the essay is in call_site_value.c. */
#ifndef SITES_CALL_SITE_VALUE_H
#define SITES_CALL_SITE_VALUE_H

#include "sites/scopes_at.h"

/* A call, as two frames of a stack give it. */
struct passed_call {
	const struct active *active; /* the code of all functions */
	uint32_t callee, caller;     /* out-of-line functions, entries of the index */
	struct cairn_vaddr ret_pc;   /* where it returns to, in the caller */
};

/*
 * passed_in - the location, in the caller's frame, of a register's value at the callee's entry, or
 * of the value for a removed parameter
 *
 * @asked  CAIRN_LOC_ENTRY_REG or CAIRN_LOC_ENTRY_PARAM
 * @arena  holds the location
 * Returns 0 and *@ret: a value, or CAIRN_UNAVAIL_ENTRY_VALUE where it is not certain; -EBADMSG,
 * -ENOMEM.
 * Cost: decodes the callee, and reads the call sites of the caller.
 */
int passed_in(const struct site_env *env, const struct passed_call *call,
	      const struct cairn_loc_step *asked, struct arena *arena, struct cairn_location *ret,
	      struct cairn_err *err);

/*
 * passed_between - the same for addresses: one in the callee, and where it returns to
 *
 * Unavailable where one of them is in no function.
 */
int passed_between(const struct site_env *env, const struct active *active,
		   struct cairn_vaddr callee, struct cairn_vaddr ret_pc,
		   const struct cairn_loc_step *asked, struct arena *arena,
		   struct cairn_location *ret, struct cairn_err *err);

/* ---- call sites ---- */

/*
 * call_sites_visit - visit the calls that a function records, its inlined copies included, in the
 * order of their DIEs
 *
 * @visit  with a result other than 0 ends the walk
 * Returns 0, -EBADMSG, or the result of @visit.
 */
int call_sites_visit(const struct dw_die *function,
		     int (*visit)(void *ctx, const struct dw_die *site), void *ctx,
		     struct cairn_err *err);

/* The return address of a call; false if the debug information does not record it. */
bool call_site_return(const struct dw_die *site, struct cairn_vaddr *ret);

/* The facts that a child of a call site records. */
struct call_param {
	bool is_told; /* else nothing is known, and it may be no parameter */
	struct expression value;
	unsigned int reg; /* in which it is passed */
	dw_off removed;   /* the parameter that GCC removed and whose value this is; 0 */
};
enum { CALL_PARAM_NO_REG = 255 };

void call_param_of(const struct dw_die *param, struct call_param *ret);

#endif
