/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a number that the code passes to a copy, and constants that are described instead of it. */
#ifndef SITES_QUIRKS_HIDDEN_DIFFERENCE_H
#define SITES_QUIRKS_HIDDEN_DIFFERENCE_H

#include "sites/quirks/quirks.h"

/*
 * hidden_difference_check - reject constants if the code computes another argument
 *
 * Returns 0 or -ENOMEM.
 * Cost: nothing for a copy without constants. Otherwise decodes some instructions around the site;
 * if they have a difference that no argument describes, adds the cost of event_count_is_in_loop().
 */
int hidden_difference_check(const struct quirk_query *q);

#endif
