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

#endif
