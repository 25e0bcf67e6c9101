/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * btf_decl_tag of functions and variables, as BTF has them
 *
 * A function is declared in many units, and may have other tags in each: its record has all of
 * them, each once, those of the first declaration first.
 */
#ifndef BTFGEN_TAGS_H
#define BTFGEN_TAGS_H

#include "btfgen/funcs.h"

/*
 * DECL_TAG records of the functions that are in main, or of those that have got their id in another
 * blob. 0, -ERANGE, -ENOMEM.
 */
int tags_emit_of_functions(const struct func_table *f, bool in_main, struct cairn_btf_builder *b);

/*
 * Writes DECL_TAG records of the variable that a DIE describes; its record is @id. 0, -ERANGE,
 * -ENOMEM.
 */
int tags_emit_of_variable(const struct classes *c, dw_off die, uint32_t id,
			  struct cairn_btf_builder *b);

#endif
