/* SPDX-License-Identifier: BSD-2-Clause */
/* From a group of index entries to a struct cairn_function with typed arguments. */
#ifndef SITES_FUNCTION_H
#define SITES_FUNCTION_H

#include "dwarf/types.h"
#include "sites/group.h"

/*
 * functions_build - the functions of @n groups
 *
 * @threads  for the stage that is independent for each site
 * @types    filled with the types of parameters; one thread
 * @arena    holds all that the result points to; names point into the input and into the groups
 * @ret      @n functions, in the order of the groups
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 */
int functions_build(const struct site_env *env, unsigned int threads, const struct group *groups,
		    size_t n, struct dw_types *types, struct arena *arena,
		    struct cairn_function *ret, struct cairn_err *err);

#endif
