/* SPDX-License-Identifier: BSD-2-Clause */
/* Definitions of types by name; the essay is in type_index.c. */
#ifndef DWARF_TYPE_INDEX_H
#define DWARF_TYPE_INDEX_H

#include "dwarf/dwarf.h"

struct dw_type_index;

/* The listed types: structs, unions and enums; typedefs and base types; or both. */
enum dw_type_names { DW_DEFINITIONS = 1, DW_TYPEDEFS = 2, DW_ALL_NAMES = 3 };

int dw_type_index_new(const struct dwarf *dw, enum dw_type_names names, unsigned int threads,
		      struct dw_type_index **ret, struct cairn_err *err);
void dw_type_index_free(struct dw_type_index *index);
/* Those of the listed types that are among @names, sorted; free(). NULL: no memory. */
dw_off *dw_type_index_offsets(const struct dw_type_index *index, enum dw_type_names names,
			      size_t *ret_n);

/*
 * The definition of that name. 1 and *@ret; 0 none; -ENOTUNIQ. In one unit only:
 * dw_type_index_in_unit(), which lists nothing.
 */
int dw_type_index_find(const struct dw_type_index *index, uint16_t tag, const char *name,
		       dw_off *ret, struct cairn_err *err);
int dw_type_index_in_unit(const struct dw_unit *u, uint16_t tag, const char *name, dw_off *ret,
			  struct cairn_err *err);

#endif
