/* SPDX-License-Identifier: BSD-2-Clause */
/* Bodies of one function, and copies of one, in code that the linker merged. */
#ifndef SITES_MERGED_H
#define SITES_MERGED_H

#include "loc/loc.h"

/*
 * merged_are_one - whether a call that hits one of two sites of a function hits the other one, too
 *
 * Bodies at one address, or copies at one address in different functions.
 */
bool merged_are_one(const struct cairn_site *a, const struct cairn_site *b);

/*
 * merged_settle - make unavailable the arguments that merged sites describe differently
 *
 * @sites  of one function, sorted by address
 * @arena  for the arguments of sites that are changed
 * Returns 0 or -ENOMEM.
 */
int merged_settle(struct cairn_site *sites, uint32_t n, struct arena *arena);

#endif
