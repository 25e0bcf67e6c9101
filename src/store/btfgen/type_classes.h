/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classes: types that say the same
 *
 * A class is the type of a term (interned.h), once a part of the BTF output leads to it, with a
 * record of its own:
 *
 *     struct file { struct inode *i; };  struct file, 8 bytes, "i" at 0: pointer to "struct inode"
 *     struct { int a; } *p;              pointer to a struct of 4 bytes, "a" at 0: signed int
 *
 * A reference that ends at a name leads to the *group* of that kind and name. Usually the group has
 * one class, or none (a forward declaration). name_variants.h decides the meaning when it has
 * several. If the unit defines the name twice, a reference leads to the class that it means.
 *
 * The record of a class is made from the first DIE seen, and is the same whichever that is. So
 * workers collect classes in tables of their own, and type_classes_merge() joins them.
 */
#ifndef BTFGEN_TYPE_CLASSES_H
#define BTFGEN_TYPE_CLASSES_H

#include "base/large_vec.h"
#include "btfgen/interned.h"

/* The target of a class's reference: 0 is void, a class + 1, or a group with EDGE_GROUP. */
typedef uint32_t edge_t;
#define EDGE_GROUP (1u << 31)

struct class_elem {
	const char *name;
	union {
		struct {
			edge_t edge;
			uint32_t bit_off;
		};
		uint64_t value;
	};
	uint16_t bit_size;
	bool is_negative;
	uint8_t what; /* enum elem_kind */
};

struct type_class {
	struct h128 hash;
	uint64_t first; /* unit << 32 | position in it, of its first DIE */
	const char *name;
	const struct class_elem *elems;
	uint32_t n_elems;
	uint32_t size;
	edge_t edge;
	uint32_t group;   /* + 1, of a definition with a name */
	uint32_t base_id; /* that the base has it by; 0 none */
	uint8_t kind;     /* enum type_kind */
	uint8_t encoding;
	bool variadic;
	bool is_named; /* struct named has one of its DIEs */
};

struct name_group {
	struct h128 hash;
	const char *name;
	uint8_t kind;
};

/* A function as its declaration says it. */
struct func {
	dw_off die;
	const char *name;
	uint64_t name_hash; /* hash_bytes() of it */
	uint32_t proto;     /* class */
	uint32_t unit;
	bool external;
	bool declaration;
};

struct variable {
	dw_off die;
	const char *name;
	uint64_t addr;
	edge_t type;
	uint32_t unit;
	bool external;
};

struct body {
	dw_off die, origin;
	uint64_t addr;
	/* func_bodies_see(): it has code, which is that of the function and not of a clone */
	bool is_whole;
	/* func_bodies_see(): the linker took another file's function of that name */
	bool is_dead;
	bool is_silent;  /* func_bodies_see(): its unit does not describe its parameters */
	bool is_changed; /* func_bodies_see(): its parameters are not where its prototype says */
};

/* A btf_decl_tag of a function or variable. */
struct decl_tag {
	dw_off die; /* of the DIE that has it */
	const char *text;
	int32_t component; /* number of the parameter; -1: the whole */
	uint32_t order;    /* among those of one unit */
};

/* A description of a struct, union or enum, and its meaning in its unit. */
struct content {
	dw_off die;
	/*
	 * the class that it defines; of a declaration its group; 0: nothing that BTF is to have
	 * leads to it
	 */
	edge_t edge;
};

/* A definition, typedef or base type by which a unit of C names a class, outside of functions. */
struct named {
	uint64_t key; /* of kind and name */
	dw_off die;
	bool is_typedef; /* or a base type */
};

/* Classes, by unit: definitions, typedefs, base types, prototypes of functions. */
struct root_list {
	uint32_t *p;
	size_t n, cap;
};

/* By unit. */
struct func_list {
	struct func *p;
	size_t n, cap;
};

/* One worker's lists. The largest lists stay where they are when workers are joined. */
struct class_lists {
	struct root_list roots;
	struct func_list funcs;
};

/* The results of one worker, and those of all workers. */
struct classes {
	/* Large: v, roots, funcs and bodies. */
	VEC(struct type_class) v;
	VEC(struct name_group) groups;
	struct root_list roots; /* of one worker */
	struct func_list funcs;
	VEC(struct variable) vars;
	VEC(struct body) bodies;
	VEC(struct decl_tag) tags;    /* once merged: by DIE */
	VEC(struct content) contents; /* with want_contents, of every unit in the order of DIEs */
	bool want_contents;
	/* with want_contents; of each class the first that the worker met */
	VEC(struct named) named;
	/* units with types of other languages than C, whose names are not in named */
	bool has_others;
	VEC(struct unit_span) spans;
	VEC(struct class_lists) lists; /* once merged: by unit_span.part */
	struct arena arena;
	struct interned interned;   /* of one worker */
	VEC(struct to_build) build; /* scratch */
	uint64_t losses[CAIRN_N_LOSSES];
};

/*
 * The additions of one unit: [from, to) of each list. Once merged: of the lists of a part, of roots
 * and functions.
 */
struct unit_span {
	uint32_t unit, part;
	struct span {
		uint32_t from, to;
	} roots, funcs, vars, bodies, contents;
	bool has_inner; /* unit_types.has_inner */
};

static inline const uint32_t *type_classes_roots(const struct classes *c, const struct unit_span *s)
{
	return c->lists.p[s->part].roots.p;
}

static inline const struct func *type_classes_funcs(const struct classes *c,
						    const struct unit_span *s)
{
	return c->lists.p[s->part].funcs.p;
}

/* A class whose record is still to be made, from types[type] or from funcs[type - FROM_FUNC]. */
struct to_build {
	uint32_t class_, type;
};

int type_classes_init(struct classes *c);
void type_classes_fini(struct classes *c);

/* Frees the data that the main part was made from: classes, groups and variables stay. */
void type_classes_trim(struct classes *c);

/*
 * type_classes_add - the classes of a unit that was read
 *
 * @index  of the unit: units are given in increasing order; BASE_UNIT is the base (base.h), of
 *	    which all types are kept
 * Returns 0 or -ENOMEM, -ERANGE.
 */
enum { BASE_UNIT = 0 };
int type_classes_add(struct classes *c, struct unit_types *u, uint32_t index,
		     struct cairn_err *err);

/*
 * type_classes_merge - one table from those of @n workers
 *
 * @parts  their spans are disjoint; emptied
 * @ret    classes in the order of their first DIE, spans in the order of units. From
 *	    type_classes_init().
 */
int type_classes_merge(struct classes *parts, unsigned int n, struct classes *ret,
		       struct cairn_err *err);

#endif
