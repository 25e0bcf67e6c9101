/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides by lines whether a call may begin at an instruction of a copy that is none of its sites;
 * the essay is in beginning.c.
 */
#ifndef SITES_BEGINNING_H
#define SITES_BEGINNING_H

#include "sites/event_count.h"

/*
 * beginning_is_passed - an instruction that is reached past the sites belongs to the copy's first
 * code
 *
 * @i  one of the copy's. False in GCC's code, which has entries. Cost: a search in the unit's
 *     positions.
 */
bool beginning_is_passed(const struct event_count *p, uint32_t i);

/*
 * beginning_is_repeated - the first statement of a site is at an instruction once more
 *
 * Not where a straight line leads there from the site: then it is the same statement, with the
 * caller's instructions in between.
 */
bool beginning_is_repeated(const struct event_count *p, uint32_t i);

#endif
