/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides by lines whether a call may begin at an instruction of a copy that is none of its sites;
 * the essay is in clang_entry_lines.c.
 */
#ifndef SITES_QUIRKS_CLANG_ENTRY_LINES_H
#define SITES_QUIRKS_CLANG_ENTRY_LINES_H

#include "sites/event_count.h"

/*
 * entry_lines_begin_at - an instruction that is reached past the sites belongs to the copy's first
 * code
 *
 * @i  one of the copy's. False in GCC's code, which has entries. Cost: a search in the unit's
 *     positions.
 */
bool entry_lines_begin_at(const struct event_count *p, uint32_t i);

/*
 * entry_lines_repeat_at - the first statement of a site is at an instruction once more
 *
 * Not where a straight line leads there from the site: then it is the same statement, with the
 * caller's instructions in between.
 */
bool entry_lines_repeat_at(const struct event_count *p, uint32_t i);

#endif
