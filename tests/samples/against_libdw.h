/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second opinion on DWARF: libdw of elfutils, asked the same questions
 *
 * Every DIE in turn: place, tag, and of every attribute the form and the value; ranges; bounds and
 * first operation of every location list entry; the rows of every line table. Differences are
 * printed.
 */
#ifndef SAMPLES_AGAINST_LIBDW_H
#define SAMPLES_AGAINST_LIBDW_H

#include <stdint.h>

#include "dwarf/index.h"

struct against_libdw {
	uint64_t dies, attrs, ranges, locations, rows;     /* compared */
	uint64_t inlined_with_code, subprograms_with_code; /* as libdw counts them */
	uint64_t refused_by_libdw; /* location lists with DW_OP_GNU_uninit */
	uint64_t differences;      /* the first few are printed to stderr */
};

/* @path  file that holds the DWARF. Returns 0; -ENOENT when libdw cannot open it. */
int against_libdw(const struct dwarf *dw, const char *path, struct against_libdw *ret);

/* Compares an index with libdw's counts; true when they are equal. */
bool index_agrees(const struct dw_func_index *index, const struct against_libdw *libdw);

#endif
