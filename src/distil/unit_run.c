/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of children that are alike
 *
 * Two thirds of a kernel's DIEs are members, enumerators and unnamed parameters: a name, a type, a number, all of fixed
 * size, and they stand in rows of ten. So for each abbreviation a plan is made when a unit is entered, which says whether its
 * DIEs are such children and where the three things stand, and a row is read by itself:
 *
 *	code 17: member, 12 bytes, name strp at +0, type ref4 at +6, place data1 at +10
 *
 * A child that is anything else (a bit-field, a name in place, a constant in LEB128) ends the row; the walker delivers it, and
 * behind it the next row begins. Nothing is read here that the walker would read differently.
 */
#include "distil/unit_impl.h"

#include <stdlib.h>

static enum type_kind kind_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_base_type:
		return TYPE_BASE;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return TYPE_PTR;
	case DW_TAG_array_type:
		return TYPE_ARRAY;
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_structure_type:
		return TYPE_STRUCT;
	case DW_TAG_union_type:
		return TYPE_UNION;
	case DW_TAG_enumeration_type:
		return TYPE_ENUM;
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
		return TYPE_TYPEDEF;
	case DW_TAG_const_type:
	case DW_TAG_immutable_type:
		return TYPE_CONST;
	case DW_TAG_volatile_type:
		return TYPE_VOLATILE;
	case DW_TAG_restrict_type:
		return TYPE_RESTRICT;
	case DW_TAG_subroutine_type:
		return TYPE_PROTO;
	case DW_TAG_unspecified_type:
		return TYPE_VOID;
	case DW_TAG_atomic_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
	case DW_TAG_dynamic_type:
	case DW_TAG_subrange_type:
	case DW_TAG_generic_subrange:
		return TYPE_ALIAS;
	}
	return TYPE_OPAQUE;
}

/* Slots that mean the same for a child, by its role; N_SLOTS: it has no number. */
static enum slot number_of(enum role role)
{
	if (role == ROLE_MEMBER)
		return MEMBER_LOCATION;
	return role == ROLE_ENUMERATOR ? CONST_VALUE : N_SLOTS;
}

static bool has_other(const struct dw_place *places)
{
	static const uint8_t others[] = {DATA_BIT_OFFSET, BIT_SIZE, BIT_OFFSET, DECLARATION, EXTERNAL, ABSTRACT_ORIGIN,
					 ANNOTATION};
	for (size_t i = 0; i < sizeof(others); i++)
		if (places[others[i]].how != DW_HOW_ABSENT)
			return true;
	return false;
}

static bool is_in_row(const struct dw_place *places, const struct dw_shape *s)
{
	enum slot number = number_of((enum role)s->role);
	uint8_t name = places[NAME].how, type = places[TYPE].how;
	uint8_t how = number == N_SLOTS ? DW_HOW_ABSENT : places[number].how;
	if (s->then != DW_THEN_END || s->has_children || has_other(places))
		return false;
	if ((name != DW_HOW_STRP && name != DW_HOW_ABSENT) || (type != DW_HOW_REF4 && type != DW_HOW_ABSENT))
		return false;
	return how == DW_HOW_ABSENT || how == DW_HOW_U8 || how == DW_HOW_U16 || how == DW_HOW_U32;
}

static void make_plan(struct unit_plan *p, const struct dw_walker *w, const struct dw_shape *s)
{
	enum slot number = number_of((enum role)s->role);
	*p = (struct unit_plan){.kind = (uint8_t)kind_of(s->tag)};
	if (s->role != ROLE_MEMBER && s->role != ROLE_ENUMERATOR && s->role != ROLE_PARAM)
		return;
	const struct dw_place *places = w->all_places + s->places;
	if (!is_in_row(places, s))
		return;
	p->role = s->role;
	p->fixed = s->fixed;
	p->has_name = places[NAME].how != DW_HOW_ABSENT;
	p->has_type = places[TYPE].how != DW_HOW_ABSENT;
	p->name = places[NAME].off;
	p->type = places[TYPE].off;
	if (number == N_SLOTS || places[number].how == DW_HOW_ABSENT)
		return;
	p->number = places[number].off;
	p->number_bytes = places[number].how == DW_HOW_U8 ? 1 : places[number].how == DW_HOW_U16 ? 2 : 4;
}

int unit_make_plans(struct unit_types *u)
{
	const struct dw_walker *w = &u->walker;
	size_t n = w->table->n;
	if (u->plans_of == w->table)
		return 0;
	if (n > u->plans.cap) {
		struct unit_plan *grown = realloc(u->plans.p, n * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		u->plans.p = grown;
		u->plans.cap = n;
	}
	for (size_t i = 0; i < n; i++)
		make_plan(&u->plans.p[i], w, &w->shapes[i]);
	u->plans_of = w->table;
	return 0;
}

/* What a row is read with: apart, so that the loop below keeps it in registers instead of asking the unit at each child. */
struct run {
	const struct unit_plan *plans;
	uint64_t n_plans;
	const char *str;
	uint32_t str_n;
	uint32_t ref_lo, ref_n, ref_bias;
};

static struct run run_of(const struct unit_types *u)
{
	const struct dw_walker *w = &u->walker;
	return (struct run){.plans = u->plans.p,
			    .n_plans = w->table->n,
			    .str = u->str,
			    .str_n = u->str_n < UINT32_MAX ? (uint32_t)u->str_n : UINT32_MAX,
			    .ref_lo = (uint32_t)w->ref_lo,
			    .ref_n = w->ref_n < UINT32_MAX ? (uint32_t)w->ref_n : UINT32_MAX,
			    .ref_bias = u->ref_bias};
}

/* The plan of the DIE at *@p, which moves behind the code; NULL for a null entry and for long codes. */
static inline const struct unit_plan *next_plan(const struct run *r, const uint8_t **p, const uint8_t *end)
{
	const uint8_t *at = *p;
	if (end - at < 2)
		return NULL;
	uint64_t code = *at++;
	if (code >= 0x80) {
		if (*at >= 0x80)
			return NULL;
		code = (code & 0x7f) | (uint64_t)*at++ << 7;
	}
	*p = at;
	return code - 1 < r->n_plans ? &r->plans[code - 1] : NULL;
}

static inline uint32_t number_at(const uint8_t *at, const struct unit_plan *plan)
{
	const uint8_t *p = at + plan->number;
	switch (plan->number_bytes) {
	case 1:
		return *p;
	case 2:
		return dw_load_u16(p);
	case 4:
		return dw_load_u32(p);
	}
	return 0;
}

/* False when the DIE is for the walker after all: a reference or a string out of bounds, a place far away. */
static inline bool take(const struct run *r, const struct unit_plan *plan, const uint8_t *at, uint32_t owner, struct elem *e)
{
	struct elem to = {.owner = owner};
	uint32_t number = number_at(at, plan);
	if (plan->has_name) {
		uint32_t name = dw_load_u32(at + plan->name);
		if (name >= r->str_n)
			return false;
		to.name = r->str + name;
	}
	if (plan->role == ROLE_ENUMERATOR) {
		to.value = number;
	} else {
		uint32_t type = plan->has_type ? dw_load_u32(at + plan->type) : 0;
		if ((plan->has_type && type - r->ref_lo >= r->ref_n) || number > UINT32_MAX / 8)
			return false;
		to.type = plan->has_type ? r->ref_bias + type : 0;
		to.bit_off = number * 8;
	}
	*e = to;
	return true;
}

int unit_take_run(struct unit_types *u, uint32_t owner, enum role role)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = &u->types.p[owner];
	const struct run run = run_of(u);
	const uint8_t *p = w->next, *end = w->end;
	/* What stands between is for the sorting of scattered ones. */
	if (w->table->codes || (t->n_elems && t->elem + t->n_elems != u->elems.n))
		return 0;
	if (!u->elems.p && !unit_grow_elems(u))
		return w->rc;
	if (!t->n_elems)
		t->elem = (uint32_t)u->elems.n;
	size_t from = u->elems.n;
	struct elem *e = u->elems.p + from, *full = u->elems.p + u->elems.cap;
	for (;; e++) {
		const uint8_t *at = p;
		const struct unit_plan *plan = next_plan(&run, &at, end);
		if (!plan || plan->role != role || plan->fixed > end - at)
			break;
		if (e == full) {
			u->elems.n = (size_t)(e - u->elems.p);
			e = unit_grow_elems(u);
			if (!e)
				return w->rc;
			full = u->elems.p + u->elems.cap;
		}
		if (!take(&run, plan, at, owner, e))
			break;
		p = at + plan->fixed;
	}
	u->elems.n = (size_t)(e - u->elems.p);
	uint32_t n = (uint32_t)(u->elems.n - from);
	t->n_elems += n;
	w->n_dies += n;
	w->next = p;
	return 0;
}
