/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations shared by the files that fill struct unit_types; each file calls those listed after
 * it
 *
 *	unit.c       the walk, and the work after it
 *	unit_code.c  functions and variables
 *	unit_type.c  types, their members, enumerators, bounds and parameters
 *	unit_run.c   the same of plain ones, without the walker; the facts about abbreviations
 *	unit_tags.c  btf_decl_tag and btf_type_tag
 *	unit_names.c names, qualified where the language has namespaces
 *	unit_store.c places of DIEs, open scopes, and room for elements
 */
#ifndef BTFGEN_UNIT_IMPL_H
#define BTFGEN_UNIT_IMPL_H

#include <errno.h>

#include "btfgen/unit.h"
#include "dwarf/constants.h"

enum slot {
	NAME,
	TYPE,
	BYTE_SIZE,
	MEMBER_LOCATION,
	DATA_BIT_OFFSET,
	BIT_SIZE,
	BIT_OFFSET,
	ENCODING,
	DECLARATION,
	EXTERNAL,
	UPPER_BOUND,
	LOWER_BOUND,
	COUNT,
	CONST_VALUE,
	ABSTRACT_ORIGIN,
	SPECIFICATION,
	LOW_PC,
	RANGES,
	LOCATION,
	SIGNATURE,
	ANNOTATION,
	N_SLOTS
};

enum role {
	ROLE_TYPE = 1,
	ROLE_MEMBER,
	ROLE_PARAM,
	ROLE_VARIADIC,
	ROLE_ENUMERATOR,
	ROLE_SUBRANGE,
	ROLE_BASE_CLASS,
	ROLE_FUNC,
	ROLE_VARIABLE,
	ROLE_NAMESPACE,
	ROLE_ANNOTATION,
	ROLE_VARIANT_PART,
	ROLE_VARIANT,
	ROLE_INLINED,
};

/* unit_store.c */

/* Places are from now on those of @unit, alone or within the cluster. 0 or -ENOMEM. */
int unit_begin_places(struct unit_types *u, const struct dw_unit *unit);
local_off unit_local_of(struct unit_types *u, dw_off off);
int unit_open_scope(struct unit_types *u, uint32_t i, const char *name);
/* Opens a DIE that is no scope and can have tags: a member, a parameter, a variable. */
int unit_open_part(struct unit_types *u, uint32_t tagged, int32_t component);
struct elem *unit_grow_elems(struct unit_types *u);

/* unit_names.c */
const char *unit_qualify(struct unit_types *u, const char *scope, const char *name);
const char *unit_full_name(struct unit_types *u, const char *name);

/* unit_type.c: each reads the DIE at hand. */
int unit_see_type(struct unit_types *u);
int unit_see_subrange(struct unit_types *u);
int unit_see_member(struct unit_types *u);
/*
 * A part of a struct that depends on a discriminant is a union without a name, and a variant that
 * is not one member a struct.
 */
int unit_see_variant_part(struct unit_types *u);
int unit_see_variant(struct unit_types *u);
int unit_see_enumerator(struct unit_types *u);
int unit_see_param(struct unit_types *u);
int unit_see_variadic(struct unit_types *u);

/* unit_run.c */
static inline const struct unit_plan *unit_plan_of(const struct unit_types *u)
{
	return &u->plans.p[u->walker.shape - u->walker.shapes + 1];
}

/*
 * Takes the next plain children of the root, with their contents. Languages without namespaces. 0
 * or -ENOMEM.
 */
int unit_take_types(struct unit_types *u);
/* For the unit that the walker has entered. 0 or -ENOMEM. */
int unit_make_plans(struct unit_types *u);
/*
 * Takes the next children of types[owner], as long as they have @role and nothing unusual. 0 or
 * -ENOMEM.
 */
int unit_take_run(struct unit_types *u, uint32_t owner, enum role role);

/* unit_code.c */
int unit_see_func(struct unit_types *u);
int unit_see_variable(struct unit_types *u);

/* unit_tags.c */
/* The current DIE is a tag of the DIE that contains it. */
int unit_see_annotation(struct unit_types *u);
/*
 * The tags that the DIE at hand refers to, of @owner or its member or parameter number @component.
 */
int unit_see_annotations_of(struct unit_types *u, uint32_t owner, int32_t component);

/*
 * The attr that a reference leads to; 0 and walker.rc when it leads outside of the data that is
 * read.
 */
static inline local_off unit_ref(struct unit_types *u, enum slot slot)
{
	const struct dw_walker *w = &u->walker;
	struct dw_attr_slot attr = w->places[slot];
	if (attr.how == DW_HOW_ABSENT)
		return 0;
	if (attr.how == DW_HOW_REF4) {
		uint32_t off = dw_load_u32(dw_seen_at(w, attr));
		if (off - w->ref_lo < w->ref_n)
			return u->ref_bias + off;
	}
	return unit_local_of(u, dw_seen_ref(&u->walker, slot));
}

/* The letters of a name in place. Returns its bytes with the 0; 0 when there are more than four. */
static inline unsigned int unit_short_text(const uint8_t *p, uint32_t *ret)
{
	uint32_t text = dw_load_u32(p), ends = (text - 0x01010101) & ~text & 0x80808080;
	*ret = text & ((ends & -ends) - 1);
	return ends ? (unsigned int)__builtin_ctz(ends) / 8 + 1 : 0;
}

/* The address of a name in place, that of an earlier one that is equal where that is remembered. */
static inline const char *unit_short_name(struct short_names *names, const uint8_t *p,
					  uint32_t text)
{
	size_t i = text * 0x9e3779b1u >> 20;
	if (!names->slot[i].at || names->slot[i].text != text) {
		names->slot[i].at = (const char *)p;
		names->slot[i].text = text;
	}
	return names->slot[i].at;
}

/* The name of the DIE at hand, in attr; NULL when it has none. */
static inline const char *unit_own_name(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct dw_attr_slot attr = w->places[NAME];
	if (attr.how == DW_HOW_STRP) {
		uint32_t off = dw_load_u32(dw_seen_at(w, attr));
		if (off < u->str_n)
			return u->str + off;
	}
	/* The walker checked that a string in attr has an end when it stepped over it. */
	if (attr.how == DW_HOW_STRING) {
		const uint8_t *p = dw_seen_at(w, attr);
		uint32_t text;
		return w->unit->end - p >= 4 && unit_short_text(p, &text)
			       ? unit_short_name(u->short_names, p, text)
			       : (const char *)p;
	}
	return dw_seen_str(w, NAME);
}

/* The owner of the DIE at hand when it is its direct parent; else SCOPE_ONLY. */
static inline uint32_t unit_owner(const struct unit_types *u)
{
	const struct open_scope *s = u->open.n ? &u->open.p[u->open.n - 1] : NULL;
	return s && s->depth + 1 == u->walker.depth ? s->i : SCOPE_ONLY;
}

static inline struct type_die *unit_type_owner(const struct unit_types *u)
{
	uint32_t owner = unit_owner(u);
	return owner == SCOPE_ONLY || owner & OWNER_FUNC ? NULL : &u->types.p[owner];
}

/* A new element of an owner. NULL and walker.rc when out of memory. */
static inline struct elem *unit_add_elem(struct unit_types *u, uint32_t owner)
{
	bool of_func = owner & OWNER_FUNC;
	uint32_t i = owner & ~(uint32_t)OWNER_FUNC;
	uint32_t *first = of_func ? &u->funcs.p[i].elem : &u->types.p[i].elem;
	uint32_t *n = of_func ? &u->funcs.p[i].n_elems : &u->types.p[i].n_elems;
	if (u->elems.n == u->elems.cap && !unit_grow_elems(u))
		return NULL;
	if (!*n)
		*first = (uint32_t)u->elems.n;
	else if (*first + *n != u->elems.n)
		u->scattered = true;
	++*n;
	struct elem *e = &u->elems.p[u->elems.n++];
	*e = (struct elem){.owner = owner};
	return e;
}

#endif
