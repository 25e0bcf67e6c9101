/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of types: members, parameters, enumerators (types_place.c: positions of members)
 *
 * Clang 14 leaves the width out if it is the type's full width, and rounds the position down to a
 * byte. So "short b : 16" at bit 3 of a packed struct looks like a plain short at byte 0, and gdb
 * prints -7 for -1; see docs/findings/clang-full-width-bit-field.md. In C no member of a struct
 * overlaps another, so one that starts inside the bit-field before it is such a case, and its
 * position is not known.
 */
#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/types_inside.h"
#include "dwarf/types_place.h"
#include "dwarf/types_variants.h"

#include <errno.h>

/* ---- members ---- */

struct members {
	VEC(struct cairn_member) v;
	uint64_t base; /* bytes that the struct around a variant has before it */
	/* No member that follows can start before this bit; 0 when nothing is known. */
	uint64_t bits_end;
};

/*
 * See the essay. More may be meant: a full-width bit-field may end up to 7 bits after its apparent
 * end.
 */
static void check_overlap(const struct dw_die *die, uint16_t around, struct members *to,
			  struct cairn_member *m)
{
	if (around == DW_TAG_union_type || !dw_unit_is_clang(die->unit))
		return;
	bool overlaps = !m->bit_size && m->bit_off < to->bits_end;
	to->bits_end = 0;
	if (m->bit_size) {
		to->bits_end = m->bit_off + m->bit_size;
	} else if (overlaps) {
		to->bits_end = m->bit_off + dw_type_bits(die) + 7;
		m->dynamic = true;
	}
}

static int finish_members(struct dw_types *r, struct members *m, struct cairn_type *t,
			  struct cairn_err *err)
{
	struct cairn_member *copy = arena_array(types_arena(r->graph), m->v.n, sizeof(*copy));
	if (!copy)
		return err_nomem(err, "members of types");
	if (m->v.n)
		memcpy(copy, m->v.p, m->v.n * sizeof(*copy));
	t->members = copy;
	t->n_members = (uint32_t)m->v.n;
	return 0;
}

static int add_member(struct dw_types *r, const struct dw_die *die, uint16_t around,
		      struct members *to, struct cairn_err *err)
{
	/* A static member is somewhere else. */
	if (dw_flag(die, DW_AT_external) || dw_flag(die, DW_AT_declaration))
		return 0;
	struct cairn_member *m = VEC_PUSH(&to->v);
	if (!m)
		return err_nomem(err, "members of types");
	m->name = dw_str(die, DW_AT_name);
	m->is_base_class = die->tag == DW_TAG_inheritance;
	m->align = (uint32_t)dw_udata(die, DW_AT_alignment, 0);
	dw_types_place(die, m);
	m->bit_off -= m->dynamic ? 0 : 8 * to->base;
	check_overlap(die, around, to, m);
	return dw_types_ref(r, die, &m->type, err);
}

/* A variant part, or a variant that is not one member. */
static int add_part(struct dw_types *r, const struct dw_die *die, uint32_t type, struct members *to,
		    struct cairn_err *err)
{
	struct cairn_member *m = type ? VEC_PUSH(&to->v) : NULL;
	uint64_t base = dw_variants_base(die);
	if (!m)
		return err_nomem(err, "members of types");
	m->type = type;
	m->bit_off = base > to->base ? 8 * (base - to->base) : 0;
	return 0;
}

/* If no fact selects a variant, bytes are shown, not a guess. */
static int add_variants(struct dw_types *r, const struct dw_die *part, uint64_t size,
			struct members *to, struct cairn_err *err)
{
	if (!dw_variants_are_known(part))
		return add_part(r, part, dw_types_opaque(r, "<variants>", size), to, err);
	return add_part(r, part, dw_types_id(r, part->off), to, err);
}

static int add_variant(struct dw_types *r, const struct dw_die *variant, struct members *to,
		       struct cairn_err *err)
{
	struct dw_die only;
	if (dw_variant_is_single(variant, &only))
		return add_member(r, &only, DW_TAG_union_type, to, err);
	return add_part(r, variant, dw_types_id(r, variant->off), to, err);
}

/* It stands in the variant part. */
static int add_discriminant(struct dw_types *r, const struct dw_die *die, struct members *to,
			    struct cairn_err *err)
{
	struct cairn_member *m = VEC_PUSH(&to->v);
	if (!m)
		return err_nomem(err, "members of types");
	int rc = dw_types_discriminant(r, die, m, err);
	m->bit_off -= 8 * to->base;
	return rc;
}

/*
 * Only the parameter of Rust's Vec<T> gives the type of its elements: it keeps a pointer to bytes.
 */
static int read_parameter(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			  struct cairn_err *err)
{
	const char *name = dw_str(die, DW_AT_name);
	if (dw_unit_language(die->unit) != DW_LANG_Rust || !name || strcmp(name, "T") != 0)
		return 0;
	return dw_types_ref(r, die, &t->ref, err);
}

static int add_inside(struct dw_types *r, const struct dw_die *die, const struct dw_die *child,
		      struct cairn_type *t, struct members *to, struct cairn_err *err)
{
	switch (child->tag) {
	case DW_TAG_member:
		if (die->tag == DW_TAG_variant_part)
			return add_discriminant(r, child, to, err);
		return add_member(r, child, die->tag, to, err);
	case DW_TAG_inheritance:
		return add_member(r, child, die->tag, to, err);
	case DW_TAG_variant_part:
		return add_variants(r, child, t->size, to, err);
	case DW_TAG_variant:
		return die->tag == DW_TAG_variant_part ? add_variant(r, child, to, err) : 0;
	case DW_TAG_template_type_parameter:
		return read_parameter(r, child, t, err);
	}
	return 0;
}

int dw_types_members(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
		     struct cairn_err *err)
{
	struct members members = {.base = dw_variants_base(die)};
	struct dw_die child;
	int rc = dw_die_child(die, &child, err);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, err)) {
		int added = add_inside(r, die, &child, t, &members, err);
		if (added < 0) {
			rc = added;
			break;
		}
	}
	if (rc >= 0)
		rc = finish_members(r, &members, t, err);
	if (rc >= 0 && die->tag == DW_TAG_variant_part)
		rc = dw_types_variants(r, die, t, err);
	VEC_FREE(&members.v);
	return rc;
}

/* ---- parameters of function types ---- */

int dw_types_parameters(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			struct cairn_err *err)
{
	struct members params = {0};
	struct dw_die child;
	int rc = dw_die_child(die, &child, err);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, err)) {
		if (child.tag == DW_TAG_unspecified_parameters)
			t->variadic = true;
		/* An artificial one is "this", which is not written. */
		if (child.tag != DW_TAG_formal_parameter || dw_flag(&child, DW_AT_artificial))
			continue;
		struct cairn_member *m = VEC_PUSH(&params.v);
		int added = m ? dw_types_ref(r, &child, &m->type, err)
			      : err_nomem(err, "parameters of types");
		if (added < 0) {
			rc = added;
			break;
		}
		m->name = dw_str(&child, DW_AT_name);
	}
	if (rc >= 0)
		rc = finish_members(r, &params, t, err);
	VEC_FREE(&params.v);
	return rc;
}

/* ---- enumerators ---- */

struct enumerators {
	VEC(struct cairn_enumerator) v;
	bool negative;
};

static int add_enumerator(const struct dw_die *die, struct enumerators *to, struct cairn_err *err)
{
	struct dw_value v;
	const char *name = dw_str(die, DW_AT_name);
	if (!name || dw_attr(die, DW_AT_const_value, &v, NULL) <= 0)
		return 0;
	if (v.cls != DW_CLASS_UDATA && v.cls != DW_CLASS_SDATA)
		return 0;
	to->negative |= v.cls == DW_CLASS_SDATA && v.s < 0;
	const struct cairn_enumerator e = {name, v.s};
	return VEC_ADD(&to->v, e) ? 0 : err_nomem(err, "enumerators");
}

/*
 * By its underlying type, by its own encoding, or else by its values. An enum that is only declared
 * may have none of these (Clang declares enums of class templates); then its bytes are all that can
 * be shown.
 */
static enum cairn_type_encoding encoding_of(const struct dw_die *die,
					    const struct enumerators *list)
{
	struct dw_die under;
	uint64_t encoding = dw_udata(die, DW_AT_encoding, DW_ATE_void);
	if (dw_find_after(die, DW_AT_encoding, &under))
		encoding = dw_udata(&under, DW_AT_encoding, DW_ATE_void);
	if (encoding == DW_ATE_void && !list->v.n)
		return CAIRN_ENC_OPAQUE;
	if (encoding == DW_ATE_void)
		return list->negative ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
	bool sign = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	return sign ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
}

/* The forms data1 to data8 say nothing about a sign: 0xff of a signed char is -1. */
static int64_t fit(int64_t v, uint64_t size, bool is_signed)
{
	if (!size || size >= sizeof(v))
		return v;
	unsigned int unused = 64 - 8 * (unsigned int)size;
	uint64_t high = (uint64_t)v << unused;
	return is_signed ? (int64_t)high >> unused : (int64_t)(high >> unused);
}

int dw_types_enumerators(struct dw_types *r, const struct dw_die *die, struct cairn_type *t,
			 struct cairn_err *err)
{
	struct enumerators list = {0};
	struct dw_die child;
	int rc = dw_die_child(die, &child, err);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, err)) {
		if (child.tag != DW_TAG_enumerator)
			continue;
		int added = add_enumerator(&child, &list, err);
		if (added < 0) {
			rc = added;
			break;
		}
	}
	struct cairn_enumerator *copy = NULL;
	if (rc >= 0) {
		copy = arena_array(types_arena(r->graph), list.v.n, sizeof(*copy));
		rc = copy ? 0 : err_nomem(err, "enumerators");
	}
	if (!rc) {
		t->encoding = encoding_of(die, &list);
		bool sign = t->encoding == CAIRN_ENC_SIGNED;
		for (size_t i = 0; i < list.v.n; i++)
			copy[i] = (struct cairn_enumerator){list.v.p[i].name,
							    fit(list.v.p[i].value, t->size, sign)};
		t->enumerators = copy;
		t->n_enumerators = (uint32_t)list.v.n;
	}
	VEC_FREE(&list.v);
	return rc;
}
