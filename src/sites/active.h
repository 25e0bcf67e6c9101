/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that an address is in, and where their parameters are there; the essay is in active.c. */
#ifndef SITES_ACTIVE_H
#define SITES_ACTIVE_H

#include "dwarf/types.h"
#include "sites/site.h"

/* Code of one out-of-line function. */
struct active_code {
	uint64_t lo, hi;
	uint64_t reach; /* largest hi of this and all before */
	uint32_t entry; /* of the index */
};

/* All of them, by address. */
struct active {
	VEC(struct active_code) code;
};

/*
 * active_init - list the code of all functions
 *
 * @env  with an index of all functions
 * Returns 0, -EBADMSG, -ENOMEM; active_fini() in all cases.
 * Cost: reads the DIE of each function that has code.
 */
int active_init(struct active *a, const struct site_env *env, struct cairn_err *err);
void active_fini(struct active *a);

/* The function whose code holds @at; DW_FUNC_NONE. Of several (folded ones) that which begins last. */
uint32_t active_function(const struct active *a, struct cairn_vaddr at);

/*
 * active_at - as cairn_sites_at()
 *
 * @types  filled with the types of parameters
 * @arena  holds what the result points to
 * Returns the number of functions, 0 when no function has code there; -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 */
int active_at(const struct active *a, const struct site_env *env, struct dw_types *types, struct arena *arena,
	      struct cairn_vaddr pc, bool is_exact, const struct cairn_active **ret, struct cairn_err *err);

#endif
