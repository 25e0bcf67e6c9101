/* SPDX-License-Identifier: BSD-2-Clause */
/* Types that functions define for themselves; the essay is in type_locals.c. */
#ifndef DWARF_TYPE_LOCALS_H
#define DWARF_TYPE_LOCALS_H

#include "base/vec.h"
#include "dwarf/dwarf.h"

struct dw_type_local {
	dw_off off;
	uint64_t key; /* of its name and look */
	char *name;   /* "ns::f::inner" */
};

struct dw_type_locals {
	VEC(struct dw_type_local) v; /* in the order of the input */
};

/*
 * @in_units  by number of the unit: whether functions may define types in it; NULL: in each
 * @ret       dw_type_locals_fini()ed by the caller, also after a failure
 */
int dw_type_locals_list(const struct dwarf *dw, unsigned int threads, const bool *in_units,
			struct dw_type_locals *ret, struct cairn_err *err);
void dw_type_locals_fini(struct dw_type_locals *list);

#endif
