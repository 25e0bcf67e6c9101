/* SPDX-License-Identifier: BSD-2-Clause */
/* Rejects arguments of an inlined copy that a variable around it shows to be stale. */
#ifndef SITES_AROUND_H
#define SITES_AROUND_H

#include "loc/cfg.h"
#include "sites/event_count.h"
#include "sites/site.h"

/*
 * A bit for each of several expressions: two sets without a common bit have no expression in
 * common.
 */
struct expr_set {
	uint64_t wholes, ends; /* their last operations */
};

/* A variable or parameter of a scope, or all of a scope. */
struct known {
	struct expr_set exprs;  /* its entries */
	bool has_value;    /* a variable: DW_AT_const_value */
	bool has_constant; /* a variable: one of its entries */
	bool has_another;  /* a parameter: two of its entries are constants, and not the same */
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
struct around_scopes {
	dw_off container, to;   /* the last copy's */
	struct dw_locals walk;
	VEC(struct known_scope) open; /* the function itself is the first */
	VEC(struct known_variable) variables; /* of those scopes, declared before the copy */
	VEC(struct dw_loc_entry) entries;     /* the locations of variables */
	uint32_t entries_left; /* to be read */
};
void around_scopes_fini(struct around_scopes *s);

/* The function that copies are in. */
struct around {
	const struct dw_die *container;
	struct graph *graph; /* its code */
	struct event_count_scratch *scratch; /* has room for a mark per instruction */
	struct around_scopes *known;
};

/*
 * around_doubt - reject arguments of a GCC-made copy that have the description of an outer variable
 * at another point
 *
 * @at  the instruction of its site; GRAPH_NONE when none begins there
 * @b   built; its container is a->container. No other check has rejected an argument of it, or
 *      event_count_analyse() has run on it
 * Returns 0 or -ENOMEM.
 * Cost: nothing for a copy whose arguments are in registers and memory. Otherwise reads the DIEs of
 * the container up to the copy's, once for all copies that are checked in their order. Also reads
 * the locations of the outer variables that can say something about an argument. If a scope has a
 * variable with a constant, it also passes over the scope's code.
 */
int around_doubt(const struct around *a, struct built_site *b, uint32_t at);

#endif
