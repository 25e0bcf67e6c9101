/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF: units, abbreviations, attributes, ranges, location lists, line programs, the function
 * index.
 */
#include "fuzz.h"

#include "dwarf_seeds.h"
#include "dwarf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct dwarf_walk seen;
	dwarf_walk_bytes(bytes, size, &seen);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	dwarf_seeds_put(put);
}
