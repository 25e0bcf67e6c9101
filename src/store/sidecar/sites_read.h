/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of functions in a sidecar, read into the same structs that the debug information fills in
 *
 * The record of a function has its name, prototype and sites; sites.c chooses which records are
 * read.
 */
#ifndef SIDECAR_SITES_READ_H
#define SIDECAR_SITES_READ_H

#include <cairn/sites.h>

#include "base/arena.h"
#include "sidecar/sites_types.h"

/*
 * sites_read_name - the names of function @number, and where it is declared
 *
 * @ret  its strings are the sidecar's; name is "" when it has none; all else is 0
 * Returns false when the record is damaged. Cost: the first bytes of one record, no allocation.
 */
bool sites_read_name(const struct cairn_sidecar *p, uint32_t number, struct cairn_function *ret);

/*
 * sites_read_function - all of function @number
 *
 * @types  of the sidecar; types that the function needs are added
 * @arena  holds sites, chains and locations
 * Returns 0; -EBADMSG: the record is damaged, as @err says. A damaged location is an unavailable
 * one. -ENOMEM.
 */
int sites_read_function(struct sidecar_types *types, struct arena *arena, uint32_t number,
			struct cairn_function *ret, struct cairn_err *err);

#endif
