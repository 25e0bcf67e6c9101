/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small files that together use every part of DWARF that is read: what truncation, flipped bits,
 * failing allocations and the fuzzer start from. In each, "add" is an inlined function with one
 * copy.
 */
#ifndef SAMPLES_DWARF_SEEDS_H
#define SAMPLES_DWARF_SEEDS_H

#include "dwarf_builder.h"

enum { DWARF_SEEDS = 3 }; /* version 5; version 4 with a type unit; version 2 in 64-bit DWARF */

struct db *dwarf_seed(unsigned int i);

/* Each seed's bytes, for a fuzzer. */
void dwarf_seeds_put(void (*put)(const void *bytes, size_t size));

#endif
