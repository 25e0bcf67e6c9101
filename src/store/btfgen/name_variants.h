/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variants: the meaning of a name in each unit
 *
 * References end at names (type_classes.h), and a few names mean different things in different
 * units. In a kernel, 11 of 10,000 structs do, each in two drivers that do not know each other. A
 * type that leads to such a name must not be shared between those units: a->p->x would be read with
 * the other unit's layout.
 *
 *	a.c: struct s { int x; };   struct user { struct s *p; };  "struct user" is one class:
 *	b.c: struct s { long y; };  struct user { struct s *p; };  8 bytes, "p" at 0: "struct s" *
 *
 * So an *instance* of a class is the class and the set of ambiguous definitions that it leads to in
 * a unit: here (user, {s of a.c}) and (user, {s of b.c}). Most instances have the empty set; they
 * are the class itself.
 *
 *  - A unit that defines no ambiguous name has empty sets only, and nothing is computed for it.
 *  - In one that does, the sets are found by walking backwards from these definitions, over classes
 *    that the unit has.
 *  - The instance with the empty set (units that only declare the name) is the same as the only
 *    other one, when there is exactly one. With more, it keeps a forward declaration.
 *  - From there a name leads to its only instance; when it has several, to a forward declaration.
 */
#ifndef BTFGEN_NAME_VARIANTS_H
#define BTFGEN_NAME_VARIANTS_H

#include "btfgen/type_classes.h"

struct instance {
	uint32_t class_;
	uint32_t set; /* 0: the empty one */
	/* set not 0: of the class and then of its elements, with instances for classes */
	const edge_t *edges;
	uint32_t next;    /* of the same class; UINT32_MAX at the end */
	uint32_t base_id; /* that the base has it by; 0 none */
	bool used;
};

struct variants {
	const struct classes *c;
	VEC(struct instance) v; /* v[i] is that of class i with the empty set, for all classes */
	/* sorted: which instance a class is in a unit, where it is not the empty one */
	VEC(struct unit_variant) in_units;
	/* per class: the instance that stands for that with the empty set */
	uint32_t *same_as;
	/* per group: instance + 1, or group | EDGE_GROUP: forward declaration */
	edge_t *of_group;
	struct arena arena;
};

struct unit_variant {
	uint32_t unit, class_, instance;
};

/* After base_keep_known(). Returns 0 or -ENOMEM. @ret is for name_variants_fini() also then. */
int name_variants_find(const struct classes *c, struct variants *ret, struct cairn_err *err);
void name_variants_fini(struct variants *v);

/* The instance of a class in a unit, also that of the empty set where another stands for it. */
uint32_t name_variants_instance(const struct variants *v, uint32_t unit, uint32_t class_);

/*
 * The target of an edge in a unit: 0 is void, instance + 1, or a group | EDGE_GROUP with only a
 * declaration.
 */
edge_t name_variants_edge(const struct variants *v, uint32_t unit, edge_t edge);

/* The same of an edge of an instance. */
edge_t name_variants_resolve(const struct variants *v, edge_t edge);

#endif
