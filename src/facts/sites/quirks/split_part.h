/* SPDX-License-Identifier: BSD-2-Clause */
/* Inlined copies that are no calls: parts of functions that GCC split. */
#ifndef SITES_QUIRKS_SPLIT_PART_H
#define SITES_QUIRKS_SPLIT_PART_H

#include "sites/site.h"

/*
 * split_part_is - whether an inlined copy is the split-off rest of a function that was put back
 *
 * @entry     of the index: the copy
 * @copy      its DIE
 * @abstract  the function it is a copy of
 * Returns 1, 0, -EBADMSG.
 * Cost: some DIEs; nothing for copies that are called at another line than that of their
 * declaration.
 */
int split_part_is(const struct site_env *env, uint32_t entry, const struct dw_die *copy,
		  const struct abstract *abstract, struct cairn_err *err);

#endif
