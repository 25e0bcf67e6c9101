/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of structs that depend on a discriminant; the essay is in types_variants.c. */
#ifndef DWARF_TYPES_VARIANTS_H
#define DWARF_TYPES_VARIANTS_H

#include "dwarf/types_ids.h"

/* The name of a discriminant that has none in the debug information. */
#define DISCRIMINANT_NAME "__discriminant"

/*
 * Bytes before the first member of a variant part, or of one variant, counted from the struct
 * around both.
 */
uint64_t dw_variants_base(const struct dw_die *die);

/*
 * True if each variant has its values, so that its discriminant selects the present one.
 */
bool dw_variants_are_known(const struct dw_die *part);

/* A number over all values of a variant part, and where its discriminant is: 0 is never one. */
uint32_t dw_variants_digest(const struct dw_die *part);

/* True when a variant is one member and nothing else: *@ret. */
bool dw_variant_is_single(const struct dw_die *variant, struct dw_die *ret);

/* A discriminant as a member, by its DIE. 0 or negative. */
int dw_types_discriminant(struct dw_types *r, const struct dw_die *die, struct cairn_member *ret,
			  struct cairn_err *err);

/*
 * Adds the discriminant of the enclosing enum to a struct of Rust that was read, @die, if no member
 * has its bytes. Its type is then on the work list. 0 or negative.
 */
int dw_types_add_discriminant(struct dw_types *r, const struct dw_die *die, uint32_t id,
			      struct cairn_err *err);

/* A variant part as a union, a variant as a struct, from the outside; fills *@t. */
int dw_types_read_part(struct dw_types *r, const struct dw_die *die, uint32_t id,
		       struct cairn_type *t, struct cairn_err *err);

/* A struct whose size depends on its discriminant has the size of its largest variant. */
int dw_types_want_extent(struct dw_types *r, const struct dw_die *die, uint32_t id,
			 struct cairn_err *err);

/* Computes the sizes that wait for those of their members. */
void dw_types_size_extents(struct dw_types *r);

/*
 * t->variants of a union that was read, whose members are in the order of @part's children. 0 or
 * negative.
 */
int dw_types_variants(struct dw_types *r, const struct dw_die *part, struct cairn_type *t,
		      struct cairn_err *err);

#endif
