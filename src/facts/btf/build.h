/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building records, by kind
 *
 * Each adds one record and gives its id in *@ret. Names are offsets from cairn_btf_add_string().
 * All return 0, -ENOMEM, -ERANGE (more than 2^31 ids, or 2^24 elements) or -EINVAL (the kind cannot
 * express it); after an error nothing was added. Ids may be those of records that are added later.
 *
 * One builder belongs to one thread at a time.
 */
#ifndef BTF_BUILD_H
#define BTF_BUILD_H

#include <cairn/btf.h>

#include "btf/shape.h"

/* A string by offset, the builder's or its base's; valid until the next string is added. */
const char *btf_builder_string(const struct cairn_btf_builder *b, uint32_t off);

enum cairn_btf_dialect btf_builder_dialect(const struct cairn_btf_builder *b);

/* Id that the next record gets. */
uint32_t btf_builder_next_id(const struct cairn_btf_builder *b);

/*
 * btf_add_space - a record whose @n_words words the caller fills in
 *
 * @info  BTF_INFO(kind, kflag, vlen), not checked
 * Returns the words after the first three, not set, valid until the next record is added; NULL and
 * *@rc.
 */
uint32_t *btf_add_space(struct cairn_btf_builder *b, uint32_t name, uint32_t info, uint32_t ref,
			uint32_t n_words, uint32_t *ret, int *rc);

/* The first word of a record of this builder; NULL: no such id. */
uint32_t *btf_builder_record(struct cairn_btf_builder *b, uint32_t id);

/* @encoding  CAIRN_BTF_INT_* bits */
int btf_add_int(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes, uint32_t encoding,
		uint32_t bits, uint32_t *ret);
int btf_add_float(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes, uint32_t *ret);

/* PTR, CONST, VOLATILE, RESTRICT; TYPEDEF and TYPE_TAG with a name. */
int btf_add_ref(struct cairn_btf_builder *b, enum cairn_btf_kind kind, uint32_t name, uint32_t type,
		uint32_t *ret);
int btf_add_array(struct cairn_btf_builder *b, uint32_t type, uint32_t index_type, uint32_t n,
		  uint32_t *ret);

/*
 * @kind  STRUCT or UNION. The form with bit-field sizes is chosen when a member has one; then
 *        offsets are below 2^24 bits and sizes below 2^8, else -EINVAL.
 */
int btf_add_struct(struct cairn_btf_builder *b, enum cairn_btf_kind kind, uint32_t name,
		   uint32_t bytes, const struct cairn_btf_member *members, uint32_t n,
		   uint32_t *ret);

/* ENUM64 when @bytes is above 4 or a value does not fit 32 bits, else ENUM. */
int btf_add_enum(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes, bool is_signed,
		 const struct cairn_btf_enumerator *values, uint32_t n, uint32_t *ret);
int btf_add_fwd(struct cairn_btf_builder *b, uint32_t name, bool is_union, uint32_t *ret);

/* "..." is a last parameter {0, 0}. */
int btf_add_func_proto(struct cairn_btf_builder *b, uint32_t return_type,
		       const struct cairn_btf_param *params, uint32_t n, uint32_t *ret);
int btf_add_func(struct cairn_btf_builder *b, uint32_t name, enum cairn_btf_linkage linkage,
		 uint32_t func_proto, uint32_t *ret);
int btf_add_var(struct cairn_btf_builder *b, uint32_t name, enum cairn_btf_linkage linkage,
		uint32_t type, uint32_t *ret);
int btf_add_datasec(struct cairn_btf_builder *b, uint32_t name, uint32_t bytes,
		    const struct cairn_btf_secinfo *vars, uint32_t n, uint32_t *ret);

/*
 * @component     of the struct, union or prototype; -1: the whole of @type
 * @is_attribute  the name is that of any attribute, not of btf_decl_tag (Linux 6.15)
 */
int btf_add_decl_tag(struct cairn_btf_builder *b, uint32_t name, uint32_t type, int32_t component,
		     bool is_attribute, uint32_t *ret);

/*
 * -EOPNOTSUPP: the dialect has no words for it. A constant that is no address must not be flagged
 * ADDR; NULL is none.
 */
int btf_add_loc_param(struct cairn_btf_builder *b, const struct cairn_btf_loc_param *param,
		      uint32_t *ret);

/* @params  ids of LOC_PARAM, 0 where there is no location */
int btf_add_loc_proto(struct cairn_btf_builder *b, const uint32_t *params, uint32_t n,
		      uint32_t *ret);

/*
 * @locs has func, loc_proto, offset; v1: name_off, func_proto, loc_proto, offset. They are in the
 * given order.
 */
int btf_add_locsec(struct cairn_btf_builder *b, uint32_t name, const struct cairn_btf_loc *locs,
		   uint32_t n, uint32_t *ret);

/* ---- for code that transforms a blob ---- */

/*
 * The strings of @btf at their old offsets; into a builder without own strings. @btf is split from
 * the builder's base.
 */
int btf_builder_adopt_strings(struct cairn_btf_builder *b, const struct cairn_btf *btf);

/* Header size and layout entries as @btf has them, so that finish() gives its very bytes. */
void btf_builder_adopt_form(struct cairn_btf_builder *b, const struct cairn_btf *btf);

/*
 * Layout entries of the kinds above LOCSEC from the nearest layout section of @btf's chain, so that
 * records of kinds that are not known here may be added. They are written only when the builder
 * writes a layout section.
 */
void btf_builder_learn_kinds(struct cairn_btf_builder *b, const struct cairn_btf *btf);

#endif
