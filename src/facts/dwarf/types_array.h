/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays; the essay is in types_array.c. */
#ifndef DWARF_TYPES_ARRAY_H
#define DWARF_TYPES_ARRAY_H

#include "dwarf/types_ids.h"

/* Fills *@t for the outermost dimension, whose id is @id, and adds nodes for the others. */
int dw_types_read_array(struct dw_types *r, const struct dw_die *die, uint32_t id,
			struct cairn_type *t, struct cairn_err *err);
/* Sizes of all arrays that were read; their elements are known by now. */
int dw_types_size_arrays(struct dw_types *r, struct cairn_err *err);

#endif
