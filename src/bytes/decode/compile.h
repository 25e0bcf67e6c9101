/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing a plan: shared by compile.c (types), enums.c, arms.c and variants.c. */
#ifndef DECODE_COMPILE_H
#define DECODE_COMPILE_H

#include "base/map.h"
#include "base/vec.h"
#include "decode/plan.h"

/*
 * The position of a value from the base, and the end of the part of the record that it may see:
 * UINT64_MAX for the record's end.
 */
struct view {
	uint64_t off, end;
	/* it is directly inside of a struct whose enums are in the other byte order */
	bool swapped;
};

/* No record is longer, and sums of offsets below it do not overflow. */
#define OFF_MAX (UINT64_C(1) << 56)

struct compiler {
	const struct cairn_types *types;
	struct look look;
	bool padding;
	uint32_t max_elems, max_depth;
	uint32_t n_tails; /* structs that were looked at for a flexible array at their end */
	const struct cairn_value_arm *arms;
	size_t n_arms;
	bool *arm_used;
	VEC(struct op) ops;
	VEC(char) text;
	uint32_t pending; /* text from here on stands before the next operation */
	VEC(struct loop) loops;
	VEC(struct recipe_plan) recipes;
	bool raw;
	VEC(struct enum_plan) enums;
	VEC(struct case_of) cases;
	VEC(struct variant_test) variants;
	VEC(struct cairn_variant_range) ranges;
	VEC(struct cairn_type) reals;
	struct map enum_of; /* type and width: index of enums + 1 */
	struct arena *arena;
	struct cairn_err *err;
	int rc; /* the first failure; from then on nothing is written */
};

/* ---- emit.c ---- */

const struct cairn_type *type_of(const struct compiler *c, uint32_t id);
void add_text(struct compiler *c, const char *text);
void add_name(struct compiler *c, const char *name);
void out_of_memory(struct compiler *c);
/* <@text>, in JSON null */
void add_note(struct compiler *c, const char *text);
void add_separator(struct compiler *c, bool *first);
void add_key(struct compiler *c, const struct cairn_member *m, uint32_t i);
/* Returns its index. It takes the text that is pending. */
uint32_t emit(struct compiler *c, struct op op);
/* The index of the next operation, as the target of a jump: pending text is put before it. */
uint32_t label(struct compiler *c);
void set_next(struct compiler *c, uint32_t op, uint32_t next);
/* The order of the bytes of a @t, a scalar, in @v. */
bool is_big_endian(const struct compiler *c, const struct cairn_type *t, struct view v);
/* No piece of @size bytes at @off from a view can be there, whatever the record's length. */
bool is_outside(struct view v, uint64_t off, uint64_t size);

/* ---- compile.c ---- */

void compile_member(struct compiler *c, const struct cairn_type *t, uint32_t i, struct view v,
		    unsigned int depth);
/* All members of @id, or of a union the arm that is there, without brackets. */
void compile_members(struct compiler *c, uint32_t id, struct view v, unsigned int depth,
		     bool *first);

/* ---- enums.c ---- */

/* Index in c->enums of the meaning of the @width low bits of enum @t. */
uint32_t compile_enum(struct compiler *c, const struct cairn_type *t, unsigned int width);

/* ---- variants.c ---- */

/*
 * The union that member @m is, when a discriminant says which of its members is there; NULL: it is
 * none, or all are shown.
 */
const struct cairn_type *variants_of(const struct compiler *c, const struct cairn_member *m);
/* The members present in such a union, as members of the struct around it. */
void compile_variants(struct compiler *c, uint32_t union_id, struct view v, unsigned int depth,
		      bool *first);
/* A struct that is nothing but such a union, an enum of Rust; false: it is something else. */
bool compile_enum_value(struct compiler *c, const struct cairn_type *t, struct view v,
			unsigned int depth);

/* ---- arms.c ---- */

/* Is there a choice for a union that is a member of this name (NULL: none)? */
bool has_choice(const struct compiler *c, const struct cairn_type *u, const char *name);

/*
 * The chosen arms of union @u, which is member @m of @around: @around_view and @v are theirs.
 */
void compile_arms(struct compiler *c, uint32_t around, struct view around_view,
		  const struct cairn_member *m, const struct cairn_type *u, struct view v,
		  unsigned int depth, bool *first);
/* All choices were of something. */
int check_arms(const struct compiler *c, struct cairn_err *err);

#endif
