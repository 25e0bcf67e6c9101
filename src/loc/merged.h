/* SPDX-License-Identifier: BSD-2-Clause */
/* Bodies of one function that the linker merged into one. */
#ifndef LOC_MERGED_H
#define LOC_MERGED_H

#include "loc/loc.h"

/*
 * merged_settle - make unavailable what bodies at one address say differently
 *
 * @sites  of one function, sorted by address
 * @arena  for the arguments of sites that are changed
 * Returns 0 or -ENOMEM.
 */
int merged_settle(struct cairn_site *sites, uint32_t n, struct arena *arena);

#endif
