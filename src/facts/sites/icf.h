/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds functions that the linker folded: the addresses at which the bodies of several begin. */
#ifndef SITES_ICF_H
#define SITES_ICF_H

#include "sites/group.h"

struct icf_name {
	const char *name; /* of a symbol, borrowed */
	struct cairn_vaddr at;
};

/* The addresses to which the symbol tables give several functions' names. */
struct icf_candidates {
	struct symbol_name at;
	VEC(struct icf_name) names; /* in order of name */
};

/*
 * icf_candidates_find - look for addresses with several names
 *
 * @ret  icf_candidates_fini() frees it, also after an error
 * Returns 0, -ENOMEM, or an error of elf_symbols().
 * Cost: one pass over the symbols.
 */
int icf_candidates_find(const struct cairn_binary *bin, struct icf_candidates *ret,
			struct cairn_err *err);
void icf_candidates_fini(struct icf_candidates *c);

/* Whether a body of one of the groups begins at one of them. */
bool fold_concerns(const struct site_env *env, const struct groups *groups,
		   const struct icf_candidates *candidates);

/*
 * icf_find - those of them at which several functions were folded
 *
 * @env  with an index of all functions
 * @ret  symbol_name_fini() frees it; sorted
 * Returns 0, -EBADMSG, -ENOMEM.
 * Cost: reads each body's DIE, when there is any candidate.
 */
int icf_find(const struct site_env *env, const struct icf_candidates *candidates,
	     struct symbol_name *ret, struct cairn_err *err);

#endif
