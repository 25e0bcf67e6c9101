/* SPDX-License-Identifier: BSD-2-Clause */
/* Joined facts into the bytes of sections; format.h says what they mean. Each function may be called once per output. */
#ifndef PACK_ENCODE_H
#define PACK_ENCODE_H

#include "elf/functions.h"
#include "pack/join.h"

void encode_files(const struct joined *j, struct bytes *ret);
void encode_functions(const struct joined *j, struct bytes *ret);
/* Index of blocks, then the blocks. */
void encode_frames(const struct joined *j, struct bytes *ret);
/*
 * Which frame and which line each address belongs to: .cairn.pages and .cairn.code. @spans cover all code.
 * @ret_n  number of changes of frame and of line
 */
void encode_code(const struct joined *j, const struct pack_span *spans, size_t n_spans,
		 const struct pack_symbol *symbols, size_t n_symbols, struct bytes *ret_pages, struct bytes *ret_code,
		 uint64_t ret_n[2]);
/* Names of @functions and linker names to numbers. */
void encode_names(const struct joined *j, struct bytes *ret);

/* Returns 0, -ENOMEM, -ERANGE. */
int encode_symbols(const struct functions *f, struct code_span span, struct strings *strings, struct bytes *ret);

#endif
