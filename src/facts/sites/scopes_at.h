/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that an address is in, and where their parameters are there; the essay is in
 * active.c.
 */
#ifndef SITES_SCOPES_AT_H
#define SITES_SCOPES_AT_H

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

/*
 * The function whose code holds @at; DW_FUNC_NONE. If there are several (folded ones), the one that
 * begins last.
 */
uint32_t active_function(const struct active *a, struct cairn_vaddr at);

/*
 * The type of a parameter: an id in the type graph of the provider. Returns 0 or as
 * dwarf_type_of().
 */
struct active_types {
	int (*type_of)(void *ctx, const struct dw_die *formal, uint32_t *ret,
		       struct cairn_err *err);
	void *ctx;
};

enum { ACTIVE_ALL = UINT32_MAX };

/*
 * active_removed - the parameters that GCC removed, and may describe by the argument of another
 * copy of the same function
 *
 * @function  out of line, @entry: a copy in it, made by GCC
 * @visit     is called with an argument (a number, or ACTIVE_ALL) of a copy: for all copies of the
 *            same function in @function, or with ACTIVE_ALL for @entry alone. A result other than 0
 *            ends the walk.
 * Returns 0, -EBADMSG, -ENOMEM, or the result of @visit. Cost: evaluates all copies.
 */
int active_removed(const struct site_env *env, struct site_worker *w, uint32_t function,
		   uint32_t entry, int (*visit)(void *ctx, uint32_t copy, uint32_t arg), void *ctx,
		   struct cairn_err *err);

/*
 * active_scope - one of the functions that an address is in, with its parameters there
 *
 * @function  out of line; @entry: itself, or a copy inlined in it
 * Returns 1, -EBADMSG, -ENOMEM.
 */
int active_scope(const struct site_env *env, struct site_worker *w,
		 const struct active_types *types, uint32_t function, uint32_t entry,
		 struct cairn_vaddr at, struct cairn_vaddr next, struct cairn_scope *ret,
		 struct cairn_err *err);

/*
 * active_at - as cairn_sites_at()
 *
 * @types  gives the types of parameters
 * @arena  holds the data that the result points to
 * Returns the number of functions, 0 when no function has code there; -EBADMSG, -EOPNOTSUPP,
 * -ENOMEM.
 */
int active_at(const struct active *a, const struct site_env *env, const struct active_types *types,
	      struct arena *arena, struct cairn_vaddr pc, bool is_exact,
	      const struct cairn_scope **ret, struct cairn_err *err);

#endif
