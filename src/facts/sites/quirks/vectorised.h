/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recognises calls that one vector instruction makes together
 *
 * A compiler makes one pass for 4 or 16 passes of a loop around a call, or for as many equal calls
 * in a row. The copy is passed once, and the others leave no marker. The sign is arithmetic on
 * several numbers at once in the copy's code, while the copy has no loop of its own whose passes
 * these could be. A function that computes with vectors itself, or with neighbouring members of a
 * struct, looks the same.
 */
#ifndef SITES_QUIRKS_VECTORISED_H
#define SITES_QUIRKS_VECTORISED_H

#include "sites/event_count.h"

/*
 * vectorised_is - whether one pass of a copy may be several calls
 *
 * @scratch  with the copy's instructions, which have the bit @own among its marks
 * Cost: the copy's instructions. No allocation.
 */
bool vectorised_is(const struct event_count *p, const struct event_count_scratch *scratch,
		   uint8_t own);

#endif
