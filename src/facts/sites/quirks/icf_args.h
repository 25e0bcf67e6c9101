/* SPDX-License-Identifier: BSD-2-Clause */
/* Bodies of one function, and copies of one, in code that the linker merged. */
#ifndef SITES_QUIRKS_ICF_ARGS_H
#define SITES_QUIRKS_ICF_ARGS_H

#include "loc/loc.h"

/*
 * icf_args_are_one_call - whether a call that hits one of two sites of a function hits the other,
 * too
 *
 * Bodies at one address, or copies at one address in different functions.
 */
bool icf_args_are_one_call(const struct cairn_site *a, const struct cairn_site *b);

/*
 * icf_args_settle - make unavailable the arguments that merged sites describe differently
 *
 * @sites  of one function, sorted by address
 * @arena  for the arguments of sites that are changed
 * Returns 0 or -ENOMEM.
 */
int icf_args_settle(struct cairn_site *sites, uint32_t n, struct arena *arena);

#endif
