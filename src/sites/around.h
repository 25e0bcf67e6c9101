/* SPDX-License-Identifier: BSD-2-Clause */
/* What the variables around a copy tell about its arguments. */
#ifndef SITES_AROUND_H
#define SITES_AROUND_H

#include "loc/graph.h"
#include "sites/passage.h"
#include "sites/site.h"

/* Of an expression, and of its last steps (0: it is too short). Unequal ones have unequal expressions. */
struct expr_print {
	uint32_t whole, end;
};

/* What of an entry is compared with each argument. Nearly all entries are neither constant nor what an argument is. */
struct known_print {
	struct expr_print expr;
	bool is_constant;
};

/* A bit for each of several prints: two sets without a common bit have no print in common. */
struct print_set {
	uint64_t wholes, ends;
};

/* A variable or parameter of a scope. Where it is, is read when a copy's arguments are compared with it. */
struct known_variable {
	struct dw_die die;
	bool is_read;
	/* Then: */
	bool is_constant;
	bool has_constant;           /* it is, or one of its entries */
	struct print_set prints;     /* of its entries */
	int64_t value;               /* DW_AT_const_value */
	uint32_t entries, n_entries; /* of its location, those that may be compared */
};

/* A scope in a scope. */
struct known_inner {
	dw_off off;
	uint32_t scope; /* its number + 1 when it was entered */
};

struct known_scope {
	struct dw_die die;
	uint32_t variables, n_variables;
	uint32_t inners, n_inners;
};

/*
 * The scopes of a function that were looked at: its copies have most of them in common. Zeroed at first, and forgotten when
 * the container is another one.
 */
struct around_scopes {
	dw_off container;
	VEC(struct known_scope) scopes; /* the function itself is the first */
	VEC(struct known_variable) variables;
	VEC(struct known_inner) inners;
	VEC(struct dw_loc_entry) entries; /* what variables are somewhere */
	VEC(struct known_print) prints;   /* of each of them */
};
void around_scopes_fini(struct around_scopes *s);

/* The function that copies are in. */
struct around {
	const struct dw_die *container;
	struct graph *graph; /* its code */
	struct passage_scratch *scratch; /* has room for a mark per instruction */
	struct around_scopes *known;
};

/*
 * around_doubt - take back arguments of a copy made by GCC that are described as a variable around it was at another moment
 *
 * @at  the instruction of its place; GRAPH_NONE when none begins there
 * @b   built; its container is a->container, and nothing else was taken back of it or passage_judge() was asked about it
 * Returns 0 or -ENOMEM.
 * Cost: nothing for a copy whose arguments are in registers and memory. Else reads those of the variables of the scopes around the copy that
 * can tell something about one of its arguments, once for all copies of the container that are asked about one behind the other, and passes over
 * the code of a scope that has a constant one.
 */
int around_doubt(const struct around *a, struct built_site *b, uint32_t at);

#endif
