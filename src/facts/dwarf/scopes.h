/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the scopes that enclose a DIE: namespaces, classes, functions; the essay is in scopes.c. */
#ifndef DWARF_SCOPES_H
#define DWARF_SCOPES_H

#include "dwarf/constants.h"
#include "dwarf/impl.h"

/* Nested deeper than this is no program's. */
enum { DW_SCOPES_MAX = 64 };

struct dw_scope {
	dw_off lo, hi; /* of the DIE, and of the first one after its children */
	/* where a class that is defined out of its scope is declared; 0 none */
	dw_off specification;
	const char *name; /* NULL: none, or that of a function, which is seldom needed */
	uint32_t outer;   /* index in the unit's list */
	uint16_t tag;
};

/* False for C, where a struct inside another is in no scope. */
bool dw_has_scopes(const struct dw_unit *u);

/* Tags of a unit's first DIE. */
static inline bool dw_is_unit(uint16_t tag)
{
	return tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit ||
	       tag == DW_TAG_skeleton_unit || tag == DW_TAG_type_unit;
}

/* Tags whose names qualify the types inside: namespaces and classes. */
bool dw_is_scope(uint16_t tag);

/*
 * dw_scopes_around - the scopes that a DIE stands in, from the inside out
 *
 * @off  of the DIE; may be 0, which is in none
 * @ret  the returned number of them; borrowed until dwarf_close()
 * Returns their number, 0 in C; -ERANGE: more than DW_SCOPES_MAX, or a ring; -EBADMSG, -EOPNOTSUPP,
 * -ENOMEM.
 * Cost: O(log scopes); the first time one walk over the unit. Threads: any.
 */
int dw_scopes_around(const struct dwarf *dw, dw_off off, const struct dw_scope *ret[DW_SCOPES_MAX],
		     struct cairn_err *err);

#endif
