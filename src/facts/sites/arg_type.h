/* SPDX-License-Identifier: BSD-2-Clause */
/* What the type of a parameter is, typedefs aside. */
#ifndef SITES_ARG_TYPE_H
#define SITES_ARG_TYPE_H

#include "dwarf/dwarf.h"

/*
 * A parameter's type without typedefs and tags that stand for the type that they refer to;
 * @through_const: also without qualifiers that only make it unassignable. False if it has none, or
 * a damaged one.
 */
bool arg_type_without_names(const struct dw_die *formal, bool through_const, struct dw_die *ret);

/* Whether a parameter's type is a pointer or a reference, typedefs aside. Cost: reads its type. */
bool arg_is_pointer(const struct dw_unit *unit, dw_off formal);

/* Whether it is C's _Bool or C++'s bool, typedefs and qualifiers aside. */
bool arg_is_bool(const struct dw_unit *unit, dw_off formal);

#endif
