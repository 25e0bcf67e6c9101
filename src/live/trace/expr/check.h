/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of an expression against its scope; for the files that give types
 *
 * path_types.c has the entry points. A check_...() gives types to its node and to those below it.
 * It returns 0; -EINVAL with a caret under what is wrong; or the result of
 * cairn_sites_complete_type().
 */
#ifndef TRACE_CHECK_H
#define TRACE_CHECK_H

#include "trace/expr/expr.h"

#include <errno.h>

struct check {
	const struct expr_scope *scope;
	const struct cairn_types *types;
	struct cairn_sites *sites;
	const struct cairn_function *function;
	const char *text;
	const char *part_of;
	const char *no_returns;
	struct cairn_err *err;
};

#define WRONG(c, e, ...) probe_error((c)->err, -EINVAL, (c)->text, (e)->at, __VA_ARGS__)

struct check check_in(const struct expr_scope *scope, struct cairn_err *err);

/* ---- types of the graph ---- */

static inline const struct cairn_type *type_resolved(const struct cairn_types *types, uint32_t id)
{
	return cairn_types_get(types, cairn_types_resolve(types, id));
}

static inline bool type_is_reference(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF;
}

static inline bool type_is_pointer(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_PTR || type_is_reference(t);
}

static inline bool type_is_record(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

static inline const char *check_type_text(const struct check *c, uint32_t id, char *buf,
					  size_t size)
{
	cairn_types_name(c->types, id, buf, size);
	return buf;
}

/* Types are read as far as their names; this reads the inside of one. */
static inline int check_complete(const struct check *c, uint32_t id)
{
	return c->sites ? cairn_sites_complete_type(c->sites, id, c->err) : 0;
}

/* ---- name_types.c ---- */

int check_name(const struct check *c, struct expr *e);
bool check_is_param(const struct check *c, const char *name);
/* $ret, $duration */
bool name_is_of_return(const char *name);

/* ---- path_types.c ---- */

int check_path(const struct check *c, struct expr *e);

/* ---- operator_types.c ---- */

int check_condition(const struct check *c, struct expr *e);

/* ---- cast_types.c ---- */

int check_cast(const struct check *c, struct expr *e);
/* Makes a number of the node. */
int check_sizeof(const struct check *c, struct expr *e);

/* ---- float_types.c: floats can be compared, and nothing else be done with them ---- */

int check_floats(const struct check *c, struct expr *e);
/* States that @e is a float where there can be none. Returns -EINVAL. */
int check_no_float(const struct check *c, const struct expr *e);

/* ---- string_types.c ---- */

/* A comparison of @text, a string in memory, with @literal, the one that is written. */
int check_string(const struct check *c, struct expr *e, struct expr *text, struct expr *literal);

/* ---- for several ---- */

/* The node is a pointer to @pointee, which is 0 if it is void or not known. */
static inline void expr_be_pointer(struct expr *e, uint32_t pointee)
{
	e->is_long = e->is_unsigned = e->is_pointer = true;
	e->pointee = pointee;
}

static inline bool op_is_comparison(enum fetch_code op)
{
	return op >= FETCH_EQ && op <= FETCH_GE;
}

#endif
