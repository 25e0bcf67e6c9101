/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that src/facts/dwarf can be asked about a file, asked once: for damaged inputs, where
 * the answer does not matter, but coming back does.
 */
#ifndef SAMPLES_DWARF_WALK_H
#define SAMPLES_DWARF_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "dwarf/index.h"

/* What was seen; damaged parts count as errors and are stepped around. */
struct dwarf_walk {
	uint64_t dies, attrs, ranges, locations, rows, functions, errors;
	uint64_t
		walked; /* DIEs that a dw_walker delivered; each has what dw_attr() gives, or we abort */
};

/*
 * Opens @bytes as an ELF file, reads all of its DWARF and closes it. Every error must carry a
 * message and the number that was returned; aborts otherwise. Returns what dwarf_open() returned.
 */
int dwarf_walk_bytes(const void *bytes, size_t size, struct dwarf_walk *ret);

/* The same for an open file. */
void dwarf_walk(const struct dwarf *dw, struct dwarf_walk *ret);

#endif
