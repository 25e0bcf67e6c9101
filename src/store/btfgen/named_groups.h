/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names: which DIEs a program of C first names its types by
 *
 * dwarf/type_index.h lists the definitions and typedefs of any program, by a walk over all of it.
 * The BTF generator has just read all types, once per class: a kernel has 2.4 million such DIEs,
 * and 30,000 of them have a name that earlier units have not named. For C the two lists are equal.
 * Names of other languages have scopes.
 */
#ifndef BTFGEN_NAMED_GROUPS_H
#define BTFGEN_NAMED_GROUPS_H

#include <cairn/types.h>

#include "base/map.h"
#include "base/vec.h"
#include "dwarf/dwarf.h"

struct classes;

struct named_types {
	/* false: units are of other languages, or one cluster, and nothing else here is filled */
	bool is_whole;
	VEC(dw_off) definitions; /* structs, unions and enums: of each name the first, ascending */
	VEC(dw_off) typedefs;    /* and base types */
	struct map known;        /* keys of definitions */
	bool *has_inner;         /* by unit: whether functions may define types in it */
};

/* @kind: enum type_kind */
uint64_t named_key(uint8_t kind, const char *name);

/*
 * Lists the names of all @n_units units. Returns 0 or -ENOMEM. @ret, all zero before, is for
 * named_fini() in either case.
 */
int named_find(const struct classes *c, size_t n_units, struct named_types *ret);
void named_fini(struct named_types *n);

/*
 * Whether a unit may define a struct, union or enum of that name: true, too, where it is not known.
 */
bool named_may_be_defined(const struct named_types *n, enum cairn_type_kind kind, const char *name);

#endif
