/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparing layouts: compare.c pairs members, compare_changes.c has the list of changes,
 * compare_value.c looks at the types of a pair, fields.c lists members.
 */
#ifndef LAYOUT_COMPARE_H
#define LAYOUT_COMPARE_H

#include <cairn/layout/compare.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

/* A member, those of anonymous members included, with its place in the struct around them. */
struct field {
	const char *name; /* NULL: none */
	uint32_t type;
	uint32_t bit_size;
	uint64_t bit_off;
	uint64_t size; /* bytes of the type */
	bool unplaced; /* its offset is not known: bit_off means nothing */
	bool in_union;
	uint32_t in;    /* the innermost union that it belongs to: index plus 1; 0: none */
	uint32_t arm;   /* and which of its members it is, or is part of */
	size_t partner; /* index on the other side plus 1; 0: none yet */
};

/*
 * A field that needs no partner: it is one arm of a union that another field stands for, or that
 * field.
 */
#define PARTNER_UNION SIZE_MAX

/* A union whose members count as members of the struct around it. */
struct field_union {
	uint64_t lo, hi;  /* bits */
	uint32_t in, arm; /* the union around it, as in struct field */
	uint32_t shown;   /* the arm that the other side has, plus 1; 0: none yet */
	/* the field of bytes on the other side that stands for all of it, plus 1; 0: none */
	size_t bytes;
};

struct fields {
	VEC(struct field) v;
	VEC(struct field_union) unions;
	/*
	 * bits that an anonymous struct or union has: field_range_key() to index in unions + 1, or
	 * 0
	 */
	struct map anonymous;
	size_t n_anonymous;
	uint64_t end; /* in bits, after the member that reaches furthest of those with an offset */
};

/*
 * fields_collect - the members of @id in their order
 *
 * Base classes are members without a name that are not gone into.
 * @like  the members that another language declares here; NULL: none. A struct or union to which
 *        that language had to give a name, as it has none without (__bindgen_anon_1), counts as the
 *        anonymous one that it stands for.
 * Returns 0 or -ENOMEM; fields_free() also after a failure.
 */
int fields_collect(const struct cairn_types *types, uint32_t id, const struct fields *like,
		   struct fields *ret);
void fields_free(struct fields *fields);
/* True when a byte of [@lo, @hi), bits, belongs to one of them. */
bool fields_cover(const struct fields *fields, uint64_t lo, uint64_t hi);

/* "pad", "__reserved1", "_": no program reads it. */
bool is_padding_name(const char *name);
static inline uint64_t field_range_key(uint64_t lo, uint64_t hi)
{
	return (lo << 24) ^ (hi * UINT64_C(0x9e3779b97f4a7c15));
}

/* Without case and underscores, as a hash. */
uint64_t folded_hash(const char *name);

struct cairn_changes {
	struct arena arena;
	VEC(struct cairn_change) v;
	bool cut;
	size_t n_ignored, n_unplaced;
};

struct compare {
	const struct cairn_types *types[2];
	struct cairn_compare_opts opts;
	struct cairn_changes *to;
	/* pairs of structs that do not differ: id of the first << 32 | id of the second */
	struct map *same;
	const char *path; /* "inner." of the struct being compared; "" */
	uint64_t base[2]; /* where it begins, bits */
	bool unplaced[2]; /* that is not known */
	unsigned int depth;
	/* of the enums being compared: one of them does not tell large from negative values */
	bool unsure_sign;
	bool no_memory;
};

static inline const struct cairn_type *compare_type(const struct compare *c, int side, uint32_t id)
{
	return cairn_types_get(c->types[side], cairn_types_resolve(c->types[side], id));
}

/* Add a change; @f, of each side, may be NULL. */
/* ---- compare_changes.c ---- */

/* Changes so far, the ignored ones too. */
size_t n_reported(const struct compare *c);
void change_add(struct compare *c, enum cairn_change_kind kind, const struct field *a,
		const struct field *b);
void change_add_enumerator(struct compare *c, enum cairn_change_kind kind,
			   const struct cairn_enumerator *a, const struct cairn_enumerator *b);

/* Both are structs or unions, or arrays of such; then which. Those are compared by the caller. */
bool inner_records(const struct compare *c, uint32_t a, uint32_t b, uint32_t ret[2]);
/*
 * The kind of difference between the values of two members of equal size; CAIRN_CHANGE_N_KINDS:
 * none, or inside of them.
 */
enum cairn_change_kind compare_values(const struct compare *c, uint32_t a, uint32_t b);
/* In another language, a value that is one arm of the union @a. */
bool is_one_arm(const struct compare *c, uint32_t a, uint32_t b);
/* In another language, an array of bytes, which may stand for anything. */
bool are_bytes(const struct compare *c, uint32_t b);
/* The element, after all dimensions, when @id is an array. */
uint32_t innermost(const struct compare *c, int side, uint32_t id);
/*
 * Enumerators of @a, which are missing in @b or have another value there, and the other way round.
 */
void compare_enums(struct compare *c, const struct cairn_type *a, const struct cairn_type *b);

#endif
