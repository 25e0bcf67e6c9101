/* SPDX-License-Identifier: BSD-2-Clause */
/* Names near to one that was not found. */
#ifndef LOC_SUGGEST_H
#define LOC_SUGGEST_H

#include "dwarf/index.h"

/*
 * suggest_names - the names of the index nearest to @wanted, nearest first, each once
 *
 * @ret  room for @max; borrowed from the index's input
 * Returns how many were found: none when nothing is near.
 * Cost: one comparison of O(length squared) for each name of similar length.
 */
size_t suggest_names(const struct dw_func_index *index, const char *wanted, const char **ret, size_t max);

#endif
