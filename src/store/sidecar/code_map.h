/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses at which a binary has code. */
#ifndef SIDECAR_CODE_MAP_H
#define SIDECAR_CODE_MAP_H

#include <cairn/binary.h>

#include "sidecar/gather.h"

/* A stretch of code, in the form of .cairn.pages. */
struct span {
	uint32_t at, size;
	uint32_t first_page;
};

struct code_map {
	struct code_span all;
	VEC(struct span) spans; /* sorted */
};

struct elf_section;
bool is_code_section(const struct elf_section *s);

/*
 * Returns 0, -ERANGE (code that spans 4 GiB or more), -ENOMEM. code_map_fini() also after an error.
 */
int code_map_make(const struct cairn_binary *bin, struct code_map *ret, struct cairn_err *err);
void code_map_fini(struct code_map *map);

#endif
