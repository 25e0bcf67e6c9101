/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns joined facts into the bytes of sections; format.h documents them. Each function may be
 * called once per output.
 */
#ifndef SIDECAR_ENCODE_H
#define SIDECAR_ENCODE_H

#include "elf/functions.h"
#include "sidecar/code_map.h"
#include "sidecar/join.h"

/* As in .cairn.symbols. */
struct symbol_entry {
	uint32_t at, size, name, kind;
};

struct symbol_table {
	VEC(struct symbol_entry) v; /* sorted by address */
};

/* Returns 0, -ENOMEM, -ERANGE (more than 4 GiB of strings). */
int symbol_table_make(const struct functions *f, struct code_span span, struct strings *strings,
		      struct symbol_table *ret);
void encode_symbols(const struct symbol_table *symbols, struct bytes *ret);

void encode_files(const struct joined *j, struct bytes *ret);
void encode_functions(const struct joined *j, struct bytes *ret);
/* Names of functions and linker names to numbers. */
void encode_names(const struct joined *j, struct bytes *ret);

/* Table of blocks, then the blocks. */
void encode_frames(const struct joined *j, struct bytes *ret);
/* The function of a unit's frame, by appearance; 0 when nothing is known. */
uint32_t function_of_frame(const struct joined *j, size_t unit, uint32_t frame);

/*
 * Which frame and which line each address belongs to: .cairn.pages and .cairn.code
 * @ret_n  number of changes of the frame, and of rows
 */
void encode_code(const struct joined *j, const struct code_map *map,
		 const struct symbol_table *symbols, struct bytes *ret_pages,
		 struct bytes *ret_code, uint64_t ret_n[2]);

#endif
