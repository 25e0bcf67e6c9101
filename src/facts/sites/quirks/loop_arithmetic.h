/* SPDX-License-Identifier: BSD-2-Clause */
/* Rejects integers that are computed from registers in a loop. */
#ifndef SITES_QUIRKS_LOOP_ARITHMETIC_H
#define SITES_QUIRKS_LOOP_ARITHMETIC_H

#include "sites/quirks/quirks.h"

/*
 * loop_arithmetic_check - reject arguments that are computed from registers in a loop
 *
 * Returns 0 or -ENOMEM.
 * Cost: reads the types of computed arguments. If there is one, also passes over the container's
 * instructions that the site leads to.
 */
int loop_arithmetic_check(const struct quirk_query *q);

#endif
