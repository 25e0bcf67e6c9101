/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading types from the outside. */
#ifndef DWARF_TYPES_READ_H
#define DWARF_TYPES_READ_H

#include "dwarf/types_ids.h"

/* Read everything on the work list, also after a failure; the first failure is reported. */
int dw_types_drain(struct dw_types *r, struct cairn_err *err);
/* A struct, class, union or enum from the outside; fills *@t. */
int dw_types_read_named(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err);

#endif
