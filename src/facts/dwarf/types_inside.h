/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the parts of types; the essay is in types_inside.c. */
#ifndef DWARF_TYPES_INSIDE_H
#define DWARF_TYPES_INSIDE_H

#include "dwarf/types_ids.h"

/* Members of a struct, parameters of a function type, enumerators; added to *@t. 0 or negative. */
int dw_types_members(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		     struct cairn_err *err);
int dw_types_parameters(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err);
int dw_types_enumerators(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err);

/*
 * The position of a member, from the start of the struct: bit_off, bit_size and dynamic of a zeroed
 * *@m.
 */
void dw_types_place(const struct dw_die *die, struct cairn_member *m);

/*
 * The first DIE with @at among @die's type and the types that its typedefs and qualifiers lead to.
 * False if there is none.
 */
bool dw_find_after(const struct dw_die *die, uint16_t at, struct dw_die *ret);

#endif
