/* SPDX-License-Identifier: BSD-2-Clause */
/* Rejects arguments of an inlined copy that a variable around it shows to be stale. */
#ifndef SITES_QUIRKS_STALE_OUTER_VARIABLE_H
#define SITES_QUIRKS_STALE_OUTER_VARIABLE_H

#include "sites/quirks/quirks.h"

/*
 * A bit for each of several expressions: two sets without a common bit have no expression in
 * common.
 */
struct expr_set {
	uint64_t wholes, ends; /* their last operations */
};

/* A variable or parameter of a scope, or all of a scope. */
struct known {
	struct expr_set exprs; /* its entries */
	bool has_value;        /* a variable: DW_AT_const_value */
	bool has_constant;     /* a variable: one of its entries */
	bool has_another;      /* a parameter: two of its entries are constants, and not the same */
};

/* A variable's location is read when a copy's arguments are compared with it. */
struct known_variable {
	struct dw_die die;
	bool is_parameter, is_read;
	/* Then: */
	struct known is;
	bool is_constant; /* DW_AT_const_value */
	int64_t value;
	uint32_t entries, n_entries; /* of its location, those that may be compared */
};

struct known_scope {
	struct known has;
	struct dw_die die;
	uint32_t variables; /* the first of its own */
	bool has_unread_parameters, has_unread_others;
};

/*
 * The scopes around one copy after another of a function, in order of their DIEs. Zeroed at first,
 * and begun anew when the container is another one.
 */
struct outer_scopes {
	dw_off container, to; /* the last copy's */
	struct dw_locals walk;
	VEC(struct known_scope) open;         /* the function itself is the first */
	VEC(struct known_variable) variables; /* of those scopes, declared before the copy */
	VEC(struct dw_loc_entry) entries;     /* the locations of variables */
	uint32_t entries_left;                /* to be read */
};
void outer_scopes_fini(struct outer_scopes *s);

/*
 * stale_outer_variable_check - reject arguments that have the description of an outer variable at
 * another point
 *
 * Returns 0 or -ENOMEM.
 * Cost: nothing for a copy whose arguments are in registers and memory. Otherwise reads the DIEs of
 * the container up to the copy's, once for all copies that are checked in their order. Also reads
 * the locations of the outer variables that can say something about an argument. If a scope has a
 * variable with a constant, it also passes over the scope's code.
 */
int stale_outer_variable_check(const struct quirk_query *q);

#endif
