/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The types, functions and variables of one unit, as arrays
 *
 * A kernel has 2,800 units which together describe 3 million types, all but 100,000 of them again
 * and again. They are never all in memory: a worker reads one unit into these arrays, hashes its
 * types, keeps the new ones, and reads the next unit into the same arrays. References are offsets
 * of DIEs. The offsets of types are kept in order. For every 4 bytes of a unit, an array holds the
 * last type that begins there, so one load turns an offset into an index. Stale entries of earlier
 * units are recognised by their base number.
 *
 *	.debug_info                                types[]                     elems[]
 *	0x2d structure_type "list_head" 16 bytes   0 STRUCT size 16 elems 0-1  next: at 0, 0x51
 *	0x3a   member "next" 0x51, at 0                                        prev: at 64, 0x51
 *	0x45   member "prev" 0x51, at 8
 *	0x51 pointer_type 0x2d                     1 PTR ref 0x2d
 *
 * When units refer to each other's types (link-time optimisation, dwz, type units), all units are
 * read into one such set of arrays: a "cluster". This costs memory, and is correct.
 */
#ifndef BTFGEN_UNIT_H
#define BTFGEN_UNIT_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "btfgen/hash.h"
#include "dwarf/walk.h"

#include <cairn/btf/from_dwarf.h>

enum type_kind {
	TYPE_BASE,
	TYPE_PTR,
	TYPE_ARRAY,
	TYPE_STRUCT,
	TYPE_UNION,
	TYPE_ENUM,
	TYPE_TYPEDEF,
	TYPE_CONST,
	TYPE_VOLATILE,
	TYPE_RESTRICT,
	TYPE_TAG, /* btf_type_tag */
	TYPE_PROTO,
	TYPE_ALIAS, /* DW_TAG_atomic_type and such: for BTF, the type that it refers to */
	TYPE_VOID,
	TYPE_OPAQUE, /* a number of bytes */
};

/* A place in the cluster's units. Every DIE has one, in the order of the file; 0 is none. */
typedef uint32_t local_off;

/* Bits of a place that are in one of those steps; a cluster is large, so that its steps are. */
enum { UNIT_STEP = 2, CLUSTER_STEP = 4 };

/*
 * The end of all local offsets. With the base numbers added, and with one offset that is in no step
 * any more, they fit into 32 bits.
 */
#define UNIT_END_MAX (UINT32_MAX - (2u << CLUSTER_STEP))

/* One DIE that is a type. */
struct type_die {
	const char *name; /* NULL when it has none */
	local_off ref;
	uint32_t size;
	uint32_t elem, n_elems;
	uint32_t own; /* of a definition with a name: the term of all that it says, interned.h */
	/*
	 * of a variant part: a number over the values of its members, which BTF has no words for;
	 * else 0
	 */
	uint32_t variants;
	uint8_t kind;
	uint8_t encoding; /* DW_ATE_* of BASE */
	bool declaration;
	bool variadic;  /* PROTO */
	bool stop;      /* a named struct, union or enum: others see its name only */
	bool conflicts; /* its unit defines several of that name */
	bool is_inner;  /* of C: a function defines it for itself */
};

/* A struct, union, enum or typedef: a type that a program's text can define in a function. */
static inline bool type_may_be_named(const struct type_die *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_ENUM ||
	       t->kind == TYPE_TYPEDEF;
}

/* A member, parameter, enumerator or array bound; tags come after the others. */
struct elem {
	const char *name;
	union {
		struct {
			local_off type;
			uint32_t bit_off;
		};
		uint64_t value;
	};
	uint32_t owner;   /* types[], or funcs[] with OWNER_FUNC */
	uint8_t bit_size; /* 0: not a bit-field */
	bool is_negative; /* value of an enumerator */
	uint8_t what;     /* enum elem_kind */
	uint8_t zero;
};

/* MEMBER_TAG: of the last plain element before it. */
enum elem_kind { ELEM_PLAIN, ELEM_TAG, ELEM_MEMBER_TAG };
/*
 * The owner of an element or a tag: an index of types[] if unmarked. Types are fewer than either.
 */
enum { OWNER_VAR = 1u << 30, OWNER_FUNC = 1u << 31 };

/* A function that has a declaration of its own, that is, no DW_AT_abstract_origin. */
struct func_die {
	const char *name;   /* qualified in C++ */
	local_off off, ref; /* ref: the return type */
	uint32_t elem, n_elems;
	bool variadic, external;
	bool declaration;
};

struct var_die {
	const char *name;
	local_off off, ref;
	uint64_t addr;
	bool external;
	bool declaration;
};

/*
 * A btf_decl_tag of a function, its parameter or a variable; those of types and members are
 * elements.
 */
struct tag_die {
	const char *text;
	uint32_t owner;    /* funcs[] with OWNER_FUNC, vars[] with OWNER_VAR */
	int32_t component; /* number of the parameter; -1: the whole */
};

/* Code of a function: the DIE with the addresses. */
struct body_die {
	local_off off;
	local_off origin; /* of the function it is a body of; its own when it says all itself */
	uint64_t addr;
};

/*
 * A section of units, and its begin in the order of local_off: one section after the other, as in
 * dw_off.
 */
struct unit_section {
	dw_off tag; /* of its DIEs, above their offset */
	uint64_t start;
};

struct open_scope {
	const char *name; /* qualified, in languages with namespaces */
	uint64_t depth;
	uint32_t i;        /* types[], or funcs[] | OWNER_FUNC, or SCOPE_ONLY */
	uint32_t tagged;   /* the owner of tags inside; SCOPE_ONLY: they are not taken */
	int32_t component; /* number of the member or parameter; -1: the whole */
};
#define SCOPE_ONLY UINT32_MAX

/* The facts that all DIEs of an abbreviation share, see unit_run.c. */
struct unit_plan {
	uint8_t kind;     /* enum type_kind, of a type */
	uint8_t role;     /* 0: read by the walker, and the members below are not set */
	bool name_before; /* a string, before the bytes of fixed size */
	bool has_name, has_type, has_children;
	bool is_rare; /* a member: it has its bits in the DIE, or may be too far away for BTF */
	bool has_bits;
	bool declaration;
	uint8_t fixed; /* bytes, from which these are offsets: */
	uint8_t name, type, number, bits;
	uint8_t n_bits;       /* of each such member, unless it has its own */
	uint8_t shift, add;   /* of a member's place, to bits; of an array's bound */
	uint32_t number_mask; /* its bits of the four bytes there */
	uint32_t constant;    /* to be added to it */
};

/*
 * Names in place, of up to three letters, for which GCC writes no offset: the first place of each,
 * so that equal ones have one address as they have in .debug_str. Direct-mapped; two that meet in a
 * slot only have more addresses than one.
 */
enum { SHORT_NAMES = 1 << 12 };
struct short_names {
	struct {
		const char *at;
		uint32_t text;
	} slot[SHORT_NAMES];
};

/* The begin of a type: its place, which differs in each unit, and its index in types[]. */
struct unit_place {
	uint32_t place, i;
};

struct unit_types {
	struct dw_walker walker;
	struct dw_scanner *functions; /* receives all of them, for an index; NULL: none */
	VEC(struct type_die) types;
	/* per type: its term as others see it. Apart, since these are read all the time */
	VEC(uint32_t) edges;
	VEC(struct elem) elems;
	VEC(struct func_die) funcs;
	VEC(struct var_die) vars;
	VEC(struct body_die) bodies;
	VEC(struct tag_die) tags;
	VEC(struct open_scope) open;
	VEC(struct unit_plan) plans; /* of the unit's abbreviations, by code: unit_run.c */
	const struct dw_abbrevs *plans_of;
	bool scattered; /* elements of one owner are not all in a row */
	bool has_namespaces;
	bool is_c;
	/* types that are no children of a root: of functions, and outside of C of scopes */
	bool has_inner;
	bool want_vars;
	/*
	 * dimensions are multiplied: the base does not tell them, and equal types shall be found in
	 * it
	 */
	bool flat_arrays;
	VEC(local_off) offs; /* of types[], ascending */
	/* by step of the units: the last of types[] that begins there, if one does */
	VEC(struct unit_place) at;
	/*
	 * of unit_place.place: the number added to a local_off. Places of earlier units are lower.
	 */
	uint32_t base;
	uint32_t end_of_places; /* of the unit at hand */
	const struct dwarf *dw;
	bool whole;                        /* a cluster of all units */
	uint8_t step;                      /* bits of a place that are in a step of u->at */
	VEC(struct unit_section) sections; /* of a cluster */
	uint64_t end;                      /* of the last of them */
	uint64_t unit_off, unit_tag, unit_end;
	uint32_t ref_bias; /* converts a reference inside the unit to its local_off */
	/* .debug_str of the unit's file, when all strings in it have an end */
	const char *str;
	uint64_t str_n;
	uint64_t losses[CAIRN_N_LOSSES];
	/* Names made by us; they stay. */
	struct arena *names;
	struct map *names_by_hash;
	struct short_names *short_names;
};

/* @functions may be NULL. 0 or -ENOMEM. */
int unit_types_init(struct unit_types *u, const struct dwarf *dw, bool whole, bool want_vars,
		    struct dw_scanner *functions, struct arena *names, struct map *names_by_hash);
void unit_types_fini(struct unit_types *u);

/*
 * unit_types_read - add the DIEs of a unit; of a cluster, call it for each unit in order
 *
 * Returns 0; -EXDEV: it refers to another unit, and @u was not made for a cluster; -EBADMSG,
 * -EOPNOTSUPP, -ERANGE, -ENOMEM.
 */
int unit_types_read(struct unit_types *u, const struct dw_unit *unit, struct cairn_err *err);

/* After the last unit_types_read(): get the arrays ready. 0 or -ENOMEM. */
int unit_types_finish(struct unit_types *u);

/* Forget the units that were read. */
void unit_types_clear(struct unit_types *u);

/* The type at a local offset; NO_TYPE for void and for DIEs that are no types. */
#define NO_TYPE UINT32_MAX
uint32_t unit_type_index_slow(const struct unit_types *u, local_off off);
static inline uint32_t unit_type_index(const struct unit_types *u, local_off off)
{
	if (off >> u->step >= u->at.n)
		return NO_TYPE;
	const struct unit_place *at = &u->at.p[off >> u->step];
	if (__builtin_expect(at->place == u->base + off, 1))
		return at->i;
	return unit_type_index_slow(u, off);
}

static inline struct type_die *unit_type_at(const struct unit_types *u, local_off off)
{
	uint32_t i = unit_type_index(u, off);
	return i == NO_TYPE ? NULL : &u->types.p[i];
}

/* The place of a DIE as dwarf.h says it. */
dw_off unit_die_off(const struct unit_types *u, local_off off);

#endif
