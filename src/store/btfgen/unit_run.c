/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain types and rows of plain children, without the walker
 *
 * Nine of ten of a kernel's DIEs are types, members, enumerators, bounds and unnamed parameters: a
 * name, a type, a number, all of fixed size; types follow one another, and children stand in rows
 * of ten. So for each abbreviation a plan is made when a unit is entered, which says whether its
 * DIEs are of these and where the three things stand, and they are read by themselves:
 *
 *	code 17: member, 12 bytes, name strp at +0, type ref4 at +6, place data1 at +10
 *	code 42: member, 8 bytes after its name, type ref4 at +2, place data2 at +6
 *
 * Any other DIE (a function, a number in LEB128, a reference to another unit) ends the stretch. The
 * walker delivers it, and the next stretch begins after it. The walker would read everything here
 * in the same way.
 */
#include "btfgen/unit_impl.h"

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

/* Maximum of the fixed bytes in a plan: a longer DIE describes more than a type of C. */
enum { FIXED_MAX = 48 };

/* Attributes with which a DIE is for the walker. */
static bool has_other(const struct dw_attr_slot *places, enum role role)
{
	static const uint8_t others[] = {BIT_OFFSET, EXTERNAL,   ABSTRACT_ORIGIN, SPECIFICATION,
					 SIGNATURE,  ANNOTATION, LOWER_BOUND};
	for (size_t i = 0; i < sizeof(others); i++)
		if (places[others[i]].how != DW_HOW_ABSENT)
			return true;
	return role != ROLE_TYPE && places[DECLARATION].how != DW_HOW_ABSENT;
}

/*
 * The begin of a DIE's fixed bytes: after its code, or after a name that comes first.
 */
static bool plan_bytes(struct unit_plan *p, const struct dw_walker *w, const struct dw_shape *s)
{
	const struct dw_attr_slot *name = &w->all_places.p[s->places + NAME];
	p->fixed = (uint8_t)s->fixed;
	if (s->then == DW_THEN_END)
		return s->fixed <= FIXED_MAX;
	const struct dw_step *next = w->table->p[s - w->shapes]->more;
	if (s->then != DW_THEN_STR || s->fixed || name->how != DW_HOW_STRING || name->run ||
	    next->then != DW_THEN_END)
		return false;
	p->name_before = true;
	p->fixed = (uint8_t)next->fixed;
	return next->fixed <= FIXED_MAX;
}

static bool plan_name(struct unit_plan *p, struct dw_attr_slot name)
{
	p->has_name = name.how != DW_HOW_ABSENT;
	p->name = (uint8_t)name.off;
	return p->name_before || !p->has_name || name.how == DW_HOW_STRP;
}

static bool plan_type(struct unit_plan *p, struct dw_attr_slot type)
{
	p->has_type = type.how != DW_HOW_ABSENT;
	p->type = (uint8_t)type.off;
	return !p->has_type || type.how == DW_HOW_REF4;
}

static bool plan_number(struct unit_plan *p, const struct dw_walker *w, struct dw_attr_slot number)
{
	if (number.how == DW_HOW_IMPLICIT) {
		p->constant = (uint32_t)w->implicit.p[number.off];
		return w->implicit.p[number.off] == p->constant;
	}
	p->number = (uint8_t)number.off;
	p->number_mask = number.how == DW_HOW_U8    ? 0xff
			 : number.how == DW_HOW_U16 ? 0xffff
						    : 0xffffffff;
	if (number.how == DW_HOW_ABSENT)
		p->number = p->number_mask = 0;
	return number.how == DW_HOW_ABSENT || number.how == DW_HOW_U8 || number.how == DW_HOW_U16 ||
	       number.how == DW_HOW_U32;
}

static bool plan_bits(struct unit_plan *p, const struct dw_walker *w, struct dw_attr_slot bits)
{
	p->has_bits = bits.how == DW_HOW_U8;
	p->bits = (uint8_t)bits.off;
	if (bits.how == DW_HOW_IMPLICIT) {
		p->n_bits = (uint8_t)w->implicit.p[bits.off];
		return w->implicit.p[bits.off] == p->n_bits;
	}
	return bits.how == DW_HOW_ABSENT || p->has_bits;
}

static bool plan_member(struct unit_plan *p, const struct dw_walker *w,
			const struct dw_attr_slot *places)
{
	bool bytes = places[MEMBER_LOCATION].how != DW_HOW_ABSENT,
	     in_bits = places[DATA_BIT_OFFSET].how != DW_HOW_ABSENT;
	if ((bytes && in_bits) || !plan_bits(p, w, places[BIT_SIZE]) ||
	    !plan_number(p, w, places[in_bits ? DATA_BIT_OFFSET : MEMBER_LOCATION]))
		return false;
	p->shift = in_bits ? 0 : 3;
	p->is_rare = p->has_bits || (!in_bits && p->number_mask > 0xffff);
	return in_bits || p->constant <= 0xffff;
}

/* The number of elements; an upper bound is one less. */
static bool plan_bound(struct unit_plan *p, const struct dw_walker *w,
		       const struct dw_attr_slot *places)
{
	bool has_upper = places[UPPER_BOUND].how != DW_HOW_ABSENT,
	     has_count = places[COUNT].how != DW_HOW_ABSENT;
	p->add = has_upper;
	return !(has_upper && has_count) && !p->has_name &&
	       plan_number(p, w, places[has_upper ? UPPER_BOUND : COUNT]);
}

static bool plan_declaration(struct unit_plan *p, struct dw_attr_slot declaration)
{
	p->declaration = declaration.how == DW_HOW_PRESENT;
	return p->declaration || declaration.how == DW_HOW_ABSENT;
}

/*
 * The role of a type's children; 0 if it has none. A child that has children itself is for the
 * walker.
 */
static enum role inside(enum type_kind kind)
{
	static const uint8_t roles[] = {[TYPE_STRUCT] = ROLE_MEMBER,   [TYPE_UNION] = ROLE_MEMBER,
					[TYPE_ENUM] = ROLE_ENUMERATOR, [TYPE_PROTO] = ROLE_PARAM,
					[TYPE_ARRAY] = ROLE_SUBRANGE,  [TYPE_OPAQUE] = 0};
	return (enum role)roles[kind];
}

static bool plan_of_type(struct unit_plan *p, const struct dw_walker *w, const struct dw_shape *s,
			 const struct dw_attr_slot *places)
{
	p->has_children = s->has_children;
	if (p->has_children && !inside((enum type_kind)p->kind))
		return false;
	switch ((enum type_kind)p->kind) {
	case TYPE_PTR:
		return s->tag == DW_TAG_pointer_type;
	case TYPE_CONST:
		return s->tag == DW_TAG_const_type;
	case TYPE_TYPEDEF:
	case TYPE_VOLATILE:
	case TYPE_RESTRICT:
	case TYPE_ARRAY:
		return true;
	case TYPE_PROTO:
		return places[BYTE_SIZE].how == DW_HOW_ABSENT;
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ENUM:
		/* The underlying type of an enumeration does not matter. */
		p->has_type = false;
		return plan_declaration(p, places[DECLARATION]) &&
		       plan_number(p, w, places[BYTE_SIZE]);
	default:
		return false;
	}
}

static bool is_planned(struct unit_plan *p, const struct dw_walker *w, const struct dw_shape *s,
		       const struct dw_attr_slot *places)
{
	if (has_other(places, (enum role)s->role) || !plan_bytes(p, w, s) ||
	    !plan_name(p, places[NAME]) || !plan_type(p, places[TYPE]))
		return false;
	switch ((enum role)s->role) {
	case ROLE_TYPE:
		return plan_of_type(p, w, s, places);
	case ROLE_MEMBER:
		return !s->has_children && plan_member(p, w, places);
	case ROLE_ENUMERATOR:
		return !s->has_children && plan_number(p, w, places[CONST_VALUE]);
	case ROLE_SUBRANGE:
		return !s->has_children && plan_bound(p, w, places);
	case ROLE_PARAM:
		return !s->has_children;
	default:
		return false;
	}
}

enum { N_BYTE_CODES = 0x80 };

static void make_plan(struct unit_plan *p, const struct dw_walker *w, const struct dw_shape *s)
{
	uint8_t kind = (uint8_t)kind_of(s->tag);
	*p = (struct unit_plan){.kind = kind};
	if (s->role == DW_ROLE_PASS || s->role == DW_ROLE_PRUNE)
		return;
	if (is_planned(p, w, s, w->all_places.p + s->places))
		p->role = s->role;
	else
		*p = (struct unit_plan){.kind = kind};
}

/*
 * One plan per code: none for the code of a null entry, and none after the last while a code has
 * one byte.
 */
int unit_make_plans(struct unit_types *u)
{
	const struct dw_walker *w = &u->walker;
	size_t n = w->table->n + 1, room = n > N_BYTE_CODES ? n : N_BYTE_CODES;
	if (u->plans_of == w->table)
		return 0;
	if (room > u->plans.cap) {
		struct unit_plan *grown = realloc(u->plans.p, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		u->plans.p = grown;
		u->plans.cap = room;
	}
	u->plans.p[0] = (struct unit_plan){0};
	for (size_t i = 1; i < n; i++)
		make_plan(&u->plans.p[i], w, &w->shapes[i - 1]);
	for (size_t i = n; i < room; i++)
		u->plans.p[i] = (struct unit_plan){0};
	u->plans_of = w->table;
	return 0;
}

/* ---- reading ---- */

/*
 * The state for reading a stretch. It is separate so that the loops keep it in registers instead of
 * loading it from the unit at each DIE.
 */
struct run {
	const struct unit_plan *plans;
	size_t n_plans;
	/* the end of the bytes that can be read without a check of the unit's end */
	const uint8_t *end;
	const char *str;
	uint32_t str_n;
	uint32_t ref_lo, ref_n, ref_bias;
	struct short_names *short_names;
};

static struct run run_of(const struct unit_types *u)
{
	const struct dw_walker *w = &u->walker;
	/*
	 * A code, a short name, the fixed bytes, and the bytes read past a number that has less
	 * than four.
	 */
	enum { DIE_MAX = 2 + 4 + FIXED_MAX + 4 };
	return (struct run){.plans = u->plans.p,
			    .n_plans = w->table->n + 1,
			    .end = w->end - w->unit->dies > DIE_MAX ? w->end - DIE_MAX
								    : w->unit->dies,
			    .str = u->str,
			    .str_n = u->str_n < UINT32_MAX ? (uint32_t)u->str_n : UINT32_MAX,
			    .ref_lo = (uint32_t)w->ref_lo,
			    .ref_n = w->ref_n < UINT32_MAX ? (uint32_t)w->ref_n : UINT32_MAX,
			    .ref_bias = u->ref_bias,
			    .short_names = u->short_names};
}

/*
 * The plan of the DIE at *@p. Moves *@p past the code and a leading name; *@ret is that name then.
 * Returns a plan without a role when the DIE is for the walker, also when it is too near to the
 * unit's end for an unchecked read.
 */
static inline const struct unit_plan *next_plan(const struct run *r, const uint8_t **p,
						const char **ret)
{
	const uint8_t *at = *p;
	const struct unit_plan *none = r->plans;
	if (at >= r->end)
		return none;
	size_t code = *at++;
	if (code >= N_BYTE_CODES) {
		code = (code & 0x7f) | (size_t)*at << 7;
		if (*at++ >= 0x80 || code >= r->n_plans)
			return none;
	}
	const struct unit_plan *plan = &r->plans[code];
	if (plan->name_before) {
		uint32_t text;
		unsigned int bytes = unit_short_text(at, &text);
		if (!bytes)
			return none;
		*ret = unit_short_name(r->short_names, at, text);
		at += bytes;
	}
	*p = at;
	return plan;
}

/*
 * False when the DIE is for the walker after all: a string out of bounds, a reference out of the
 * unit, more elements than BTF can count.
 */
static inline bool take_name(const struct run *r, const struct unit_plan *plan, const uint8_t *at,
			     const char **ret)
{
	if (!plan->has_name || plan->name_before)
		return true;
	uint32_t name = dw_load_u32(at + plan->name);
	*ret = r->str + name;
	return name < r->str_n;
}

static inline bool take_ref(const struct run *r, const struct unit_plan *plan, const uint8_t *at,
			    local_off *ret)
{
	if (!plan->has_type)
		return true;
	uint32_t off = dw_load_u32(at + plan->type);
	*ret = r->ref_bias + off;
	return off - r->ref_lo < r->ref_n;
}

static inline uint32_t number_at(const struct unit_plan *plan, const uint8_t *at)
{
	return (dw_load_u32(at + plan->number) & plan->number_mask) + plan->constant;
}

/*
 * If the number of bytes has more bits than a number of 32 bits can hold, the walker reads the
 * member.
 */
static inline bool take_rare_member(const struct unit_plan *plan, const uint8_t *at, struct elem *e)
{
	if (plan->has_bits)
		e->bit_size = at[plan->bits];
	return number_at(plan, at) <= UINT32_MAX >> plan->shift;
}

static inline bool take_elem(const struct run *r, const struct unit_plan *plan, const uint8_t *at,
			     enum role role, struct elem *e)
{
	local_off type = 0;
	switch (role) {
	case ROLE_ENUMERATOR:
		e->value = number_at(plan, at);
		return true;
	case ROLE_SUBRANGE:
		e->value = number_at(plan, at) + (uint64_t)plan->add;
		return e->value <= UINT32_MAX;
	case ROLE_MEMBER:
		e->bit_off = number_at(plan, at) << plan->shift;
		e->bit_size = plan->n_bits;
		if (__builtin_expect(plan->is_rare, 0) && !take_rare_member(plan, at, e))
			return false;
		break;
	default:
		e->bit_off = 0;
		break;
	}
	bool ok = take_ref(r, plan, at, &type);
	e->type = type;
	return ok;
}

/*
 * Elements of types[owner] as long as they have @role and a plan. Returns where the row ends; NULL
 * and walker.rc: no memory.
 */
static inline __attribute__((always_inline)) const uint8_t *
take_row_of(struct unit_types *u, const struct run *r, uint32_t owner, enum role role,
	    const uint8_t *p)
{
	if (!u->elems.p && !unit_grow_elems(u))
		return NULL;
	const struct run run = *r;
	size_t from = u->elems.n;
	struct elem *e = u->elems.p + from, *full = u->elems.p + u->elems.cap;
	for (;; e++) {
		const uint8_t *at = p;
		const char *name = NULL;
		const struct unit_plan *plan = next_plan(&run, &at, &name);
		if (plan->role != role)
			break;
		if (e == full) {
			u->elems.n = (size_t)(e - u->elems.p);
			e = unit_grow_elems(u);
			if (!e)
				return NULL;
			full = u->elems.p + u->elems.cap;
		}
		e->owner = owner;
		e->bit_size = e->what = e->zero = 0;
		e->is_negative = false;
		if (!take_name(&run, plan, at, &name) || !take_elem(&run, plan, at, role, e))
			break;
		e->name = name;
		p = at + plan->fixed;
	}
	u->elems.n = (size_t)(e - u->elems.p);
	uint32_t n = (uint32_t)(u->elems.n - from);
	u->types.p[owner].n_elems += n;
	u->walker.n_dies += n;
	return p;
}

/* A loop for each role, that need not ask for it at each DIE. */
static const uint8_t *take_row(struct unit_types *u, const struct run *r, uint32_t owner,
			       enum role role, const uint8_t *p)
{
	switch (role) {
	case ROLE_MEMBER:
		return take_row_of(u, r, owner, ROLE_MEMBER, p);
	case ROLE_ENUMERATOR:
		return take_row_of(u, r, owner, ROLE_ENUMERATOR, p);
	case ROLE_PARAM:
		return take_row_of(u, r, owner, ROLE_PARAM, p);
	default:
		return take_row_of(u, r, owner, ROLE_SUBRANGE, p);
	}
}

int unit_take_run(struct unit_types *u, uint32_t owner, enum role role)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = &u->types.p[owner];
	/* The elements in between are for the sort of scattered ones. */
	if (w->table->codes || (t->n_elems && t->elem + t->n_elems != u->elems.n))
		return 0;
	if (!t->n_elems)
		t->elem = (uint32_t)u->elems.n;
	const struct run run = run_of(u);
	const uint8_t *p = take_row(u, &run, owner, role, w->next);
	if (!p)
		return w->rc;
	w->next = p;
	return 0;
}

static inline bool take_type(const struct run *r, const struct unit_plan *plan, const uint8_t *at,
			     const char *name, struct type_die *t)
{
	*t = (struct type_die){.kind = plan->kind};
	if (!take_name(r, plan, at, &name) || !take_ref(r, plan, at, &t->ref))
		return false;
	switch (plan->kind) {
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ENUM:
		t->name = name;
		t->size = number_at(plan, at);
		t->declaration = plan->declaration;
		t->stop = name;
		if (!name && t->declaration)
			t->kind = TYPE_ALIAS;
		break;
	case TYPE_TYPEDEF:
		t->name = name;
		if (!name)
			t->kind = TYPE_ALIAS;
		break;
	}
	return true;
}

/* Room for one more type and its place. */
static inline bool reserve_type(struct unit_types *u)
{
	if (u->types.n < u->types.cap && u->offs.n < u->offs.cap)
		return true;
	return u->types.n < OWNER_FUNC / 2 && VEC_RESERVE(&u->types, 1) && VEC_RESERVE(&u->offs, 1);
}

/* Go on with the walker inside of types[owner], which is a child of the root, at @p. */
static int leave_inside(struct unit_types *u, uint32_t owner, const uint8_t *p)
{
	u->walker.next = p;
	u->walker.level = 2;
	u->open.n = 0;
	struct open_scope s = {.name = u->types.p[owner].name,
			       .depth = 1,
			       .i = owner,
			       .tagged = owner,
			       .component = -1};
	return VEC_ADD(&u->open, s) ? 0 : -ENOMEM;
}

int unit_take_types(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	if (w->level != 1 || w->table->codes || u->has_namespaces)
		return 0;
	const struct run run = run_of(u);
	const uint8_t *start = w->unit->sec->p + u->unit_off;
	for (const uint8_t *p = w->next;;) {
		const uint8_t *at = p;
		const char *name = NULL;
		const struct unit_plan *plan = next_plan(&run, &at, &name);
		w->next = p;
		if (plan->role != ROLE_TYPE)
			return 0;
		if (!reserve_type(u))
			return -ENOMEM;
		uint32_t i = (uint32_t)u->types.n;
		struct type_die *t = &u->types.p[i];
		if (!take_type(&run, plan, at, name, t))
			return 0;
		u->offs.p[i] = u->ref_bias + (uint32_t)(p - start);
		u->types.n = u->offs.n = i + 1;
		w->n_dies++;
		p = at + plan->fixed;
		if (!plan->has_children)
			continue;
		t->elem = (uint32_t)u->elems.n;
		p = take_row(u, &run, i, inside((enum type_kind)plan->kind), p);
		if (!p)
			return w->rc;
		if (*p)
			return leave_inside(u, i, p);
		p++;
	}
}
