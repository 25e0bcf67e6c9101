/* SPDX-License-Identifier: BSD-2-Clause */
#include "distil/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "dwarf/constants.h"

enum { TAG_LLVM_ANNOTATION = 0x6000, TAG_GNU_ANNOTATION = 0x6001 };

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
	N_SLOTS
};

static const uint16_t slot_attrs[N_SLOTS] = {
	[NAME] = DW_AT_name,
	[TYPE] = DW_AT_type,
	[BYTE_SIZE] = DW_AT_byte_size,
	[MEMBER_LOCATION] = DW_AT_data_member_location,
	[DATA_BIT_OFFSET] = DW_AT_data_bit_offset,
	[BIT_SIZE] = DW_AT_bit_size,
	[BIT_OFFSET] = DW_AT_bit_offset,
	[ENCODING] = DW_AT_encoding,
	[DECLARATION] = DW_AT_declaration,
	[EXTERNAL] = DW_AT_external,
	[UPPER_BOUND] = DW_AT_upper_bound,
	[LOWER_BOUND] = DW_AT_lower_bound,
	[COUNT] = DW_AT_count,
	[CONST_VALUE] = DW_AT_const_value,
	[ABSTRACT_ORIGIN] = DW_AT_abstract_origin,
	[SPECIFICATION] = DW_AT_specification,
	[LOW_PC] = DW_AT_low_pc,
	[RANGES] = DW_AT_ranges,
	[LOCATION] = DW_AT_location,
	[SIGNATURE] = DW_AT_signature,
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
	ROLE_VARIANT,
};

/* What becomes of a tag; kinds of types apart, where 0 is no type. */
static uint8_t role_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_member:
		return ROLE_MEMBER;
	case DW_TAG_formal_parameter:
		return ROLE_PARAM;
	case DW_TAG_unspecified_parameters:
		return ROLE_VARIADIC;
	case DW_TAG_enumerator:
		return ROLE_ENUMERATOR;
	case DW_TAG_subrange_type:
	case DW_TAG_generic_subrange:
		return ROLE_SUBRANGE;
	case DW_TAG_inheritance:
		return ROLE_BASE_CLASS;
	case DW_TAG_subprogram:
		return ROLE_FUNC;
	case DW_TAG_variable:
		return ROLE_VARIABLE;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return ROLE_NAMESPACE;
	case TAG_LLVM_ANNOTATION:
	case TAG_GNU_ANNOTATION:
		return ROLE_ANNOTATION;
	case DW_TAG_variant_part:
		return ROLE_VARIANT;
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
		return DW_ROLE_PRUNE;
	case DW_TAG_array_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_ptr_to_member_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
	case DW_TAG_base_type:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
	case DW_TAG_dynamic_type:
	case DW_TAG_unspecified_type:
	case DW_TAG_string_type:
	case DW_TAG_set_type:
	case DW_TAG_file_type:
	case DW_TAG_coarray_type:
		return ROLE_TYPE;
	}
	return DW_ROLE_PASS;
}

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

static const struct dw_wish wish = {slot_attrs, N_SLOTS, role_of};

void unit_types_init(struct unit_types *u, const struct dwarf *dw, bool whole, bool want_vars, struct arena *names,
		     struct map *names_by_hash)
{
	*u = (struct unit_types){.dw = dw,
				 .whole = whole,
				 .want_vars = want_vars,
				 .names = names,
				 .names_by_hash = names_by_hash,
				 .bias_types = dw->file[0].sec[DW_SEC_INFO].n,
				 .bias_alt = dw->file[0].sec[DW_SEC_INFO].n + dw->file[0].sec[DW_SEC_TYPES].n,
				 .end = dw->file[0].sec[DW_SEC_INFO].n + dw->file[0].sec[DW_SEC_TYPES].n +
					dw->file[1].sec[DW_SEC_INFO].n};
	dw_walker_init(&u->walker, &wish);
}

void unit_types_fini(struct unit_types *u)
{
	dw_walker_fini(&u->walker);
	VEC_FREE(&u->types);
	VEC_FREE(&u->edges);
	VEC_FREE(&u->elems);
	VEC_FREE(&u->funcs);
	VEC_FREE(&u->vars);
	VEC_FREE(&u->bodies);
	VEC_FREE(&u->open);
	VEC_FREE(&u->plans);
	VEC_FREE(&u->starts);
	VEC_FREE(&u->rank);
}

void unit_types_clear(struct unit_types *u)
{
	u->types.n = u->elems.n = u->funcs.n = u->vars.n = u->bodies.n = 0;
	u->starts.n = u->rank.n = 0;
	u->scattered = false;
}

/* ---- places ---- */

static uint64_t bias_of(const struct unit_types *u, dw_off tag)
{
	if (tag == DW_OFF_ALT)
		return u->bias_alt;
	return tag == DW_OFF_TYPES ? u->bias_types : 0;
}

/* Of a reference; 0 and u->walker.rc when it leads out of what is read. */
static local_off local_of(struct unit_types *u, dw_off off)
{
	const dw_off tags = DW_OFF_ALT | DW_OFF_TYPES;
	if (!off)
		return 0;
	if (u->whole)
		return (local_off)((off & ~tags) + bias_of(u, off & tags));
	uint64_t at = off - (u->unit_off | u->unit_tag);
	if (at < u->unit_end)
		return (local_off)at;
	u->walker.rc = -EXDEV;
	return 0;
}

static inline local_off local_ref(struct unit_types *u, enum slot slot)
{
	const struct dw_walker *w = &u->walker;
	struct dw_place place = w->places[slot];
	if (place.how == DW_HOW_ABSENT)
		return 0;
	if (place.how == DW_HOW_REF4) {
		uint32_t off = dw_load_u32(dw_seen_at(w, place));
		if (off - w->ref_lo < w->ref_n)
			return u->ref_bias + off;
	}
	return local_of(u, dw_seen_ref(&u->walker, slot));
}

dw_off unit_die_off(const struct unit_types *u, local_off off)
{
	if (!u->whole)
		return (u->unit_off + off) | u->unit_tag;
	if (off >= u->bias_alt)
		return (off - u->bias_alt) | DW_OFF_ALT;
	return off >= u->bias_types ? (off - u->bias_types) | DW_OFF_TYPES : off;
}

/* ---- names ---- */

static bool has_namespaces(const struct dw_unit *unit)
{
	switch (unit->language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_C23:
	case DW_LANG_Mips_Assembler:
		return false;
	}
	return true;
}

/* The name of the DIE at hand, in place; NULL when it has none. */
static inline const char *own_name(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct dw_place place = w->places[NAME];
	if (place.how == DW_HOW_STRP) {
		uint32_t off = dw_load_u32(dw_seen_at(w, place));
		if (off < u->str_n)
			return u->str + off;
	}
	/* That one in place has an end was seen when the walker stepped over it. */
	if (place.how == DW_HOW_STRING)
		return (const char *)dw_seen_at(w, place);
	return dw_seen_str(w, NAME);
}

/* SCOPE::NAME, kept once for all units. */
static const char *qualify(struct unit_types *u, const char *scope, const char *name)
{
	size_t n = strlen(scope), m = strlen(name);
	char buf[256], *p = n + m + 3 <= sizeof(buf) ? buf : malloc(n + m + 3);
	if (!p)
		return NULL;
	memcpy(p, scope, n);
	memcpy(p + n, "::", 2);
	memcpy(p + n + 2, name, m + 1);
	const char *found = NULL;
	for (uint64_t h = hash_bytes(p, n + m + 2), at;; h++) {
		if (!map_get(u->names_by_hash, h, &at)) {
			found = arena_strdup(u->names, p);
			if (found && map_put(u->names_by_hash, h, (uint64_t)(uintptr_t)found) < 0)
				found = NULL;
			break;
		}
		if (!strcmp((const char *)(uintptr_t)at, p)) {
			found = (const char *)(uintptr_t)at;
			break;
		}
	}
	if (p != buf)
		free(p);
	return found;
}

/* NULL when it has no name, or when out of memory, which u->walker.rc says. */
static const char *full_name(struct unit_types *u, const char *name)
{
	if (!name || !u->has_namespaces)
		return name && *name ? name : NULL;
	for (size_t i = u->open.n; i-- > 0;) {
		/* What is declared inside a function is not qualified. */
		if (u->open.p[i].i != SCOPE_ONLY && u->open.p[i].i & OWNER_FUNC)
			break;
		if (!u->open.p[i].name)
			continue;
		const char *full = qualify(u, u->open.p[i].name, name);
		if (!full)
			u->walker.rc = -ENOMEM;
		return full;
	}
	return *name ? name : NULL;
}

/* ---- scopes ---- */

static int open_scope(struct unit_types *u, uint32_t i, const char *name)
{
	struct open_scope s = {.name = name, .depth = u->walker.depth, .i = i};
	return dw_walker_has_children(&u->walker) && !VEC_ADD(&u->open, s) ? -ENOMEM : 0;
}

/* The owner of the DIE at hand when it is its direct parent; else SCOPE_ONLY. */
static uint32_t owner_of(const struct unit_types *u)
{
	const struct open_scope *s = u->open.n ? &u->open.p[u->open.n - 1] : NULL;
	return s && s->depth + 1 == u->walker.depth ? s->i : SCOPE_ONLY;
}

static struct type_die *type_owner(const struct unit_types *u)
{
	uint32_t owner = owner_of(u);
	return owner == SCOPE_ONLY || owner & OWNER_FUNC ? NULL : &u->types.p[owner];
}

/* A new element of an owner. NULL and w->rc when out of memory. */
static inline struct elem *add_elem(struct unit_types *u, uint32_t owner)
{
	bool of_func = owner & OWNER_FUNC;
	uint32_t i = owner & ~(uint32_t)OWNER_FUNC;
	uint32_t *first = of_func ? &u->funcs.p[i].elem : &u->types.p[i].elem;
	uint32_t *n = of_func ? &u->funcs.p[i].n_elems : &u->types.p[i].n_elems;
	if (u->elems.n == u->elems.cap) {
		if (u->elems.n >= UINT32_MAX / 2 || !VEC_PUSH(&u->elems)) {
			u->walker.rc = -ENOMEM;
			return NULL;
		}
		u->elems.n--;
	}
	if (!*n)
		*first = (uint32_t)u->elems.n;
	else if (*first + *n != u->elems.n)
		u->scattered = true;
	++*n;
	struct elem *e = &u->elems.p[u->elems.n++];
	*e = (struct elem){.owner = owner};
	return e;
}

/* ---- plans ---- */

/*
 * What an abbreviation says of all its DIEs, found out once: the kind of type, and whether a member has a name, a type and
 * a place in bytes and nothing else that matters, as nearly all have.
 */
enum { PLAN_KNOWN = 1 << 7, PLAN_SIMPLE = 1 << 6, PLAN_KIND = PLAN_SIMPLE - 1 };

static bool is_simple_member(const struct dw_walker *w)
{
	static const uint8_t others[] = {DATA_BIT_OFFSET, BIT_SIZE, BIT_OFFSET, DECLARATION, EXTERNAL};
	uint8_t how = w->places[MEMBER_LOCATION].how;
	for (size_t i = 0; i < sizeof(others); i++)
		if (dw_seen(w, others[i]))
			return false;
	return how == DW_HOW_U8 || how == DW_HOW_U16 || how == DW_HOW_ABSENT;
}

static uint8_t make_plan(struct unit_types *u, uint8_t *plan)
{
	const struct dw_walker *w = &u->walker;
	*plan = PLAN_KNOWN | (uint8_t)kind_of(dw_walker_tag(w)) | (is_simple_member(w) ? PLAN_SIMPLE : 0);
	return *plan;
}

static inline uint8_t plan_of(struct unit_types *u)
{
	uint8_t *plan = &u->plans.p[u->walker.shape - u->walker.shapes];
	return *plan ? *plan : make_plan(u, plan);
}

static int forget_plans(struct unit_types *u, const struct dw_abbrevs *table)
{
	if (u->plans_of == table)
		return 0;
	if (table->n > u->plans.cap) {
		uint8_t *grown = realloc(u->plans.p, table->n);
		if (!grown)
			return -ENOMEM;
		u->plans.p = grown;
		u->plans.cap = table->n;
	}
	if (table->n)
		memset(u->plans.p, 0, table->n);
	u->plans_of = table;
	return 0;
}

/* ---- types ---- */

static void add_start(struct unit_types *u, local_off off)
{
	u->starts.p[off / 64] |= (uint64_t)1 << off % 64;
}

static inline struct type_die *add_type(struct unit_types *u, enum type_kind kind)
{
	if (u->types.n == u->types.cap) {
		if (u->types.n >= OWNER_FUNC / 2 || !VEC_PUSH(&u->types)) {
			u->walker.rc = -ENOMEM;
			return NULL;
		}
		u->types.n--;
	}
	struct type_die *t = &u->types.p[u->types.n++];
	*t = (struct type_die){.kind = (uint8_t)kind};
	t->off = u->ref_bias + (uint32_t)((uint64_t)(u->walker.die - u->walker.unit->sec->p) - u->unit_off);
	add_start(u, t->off);
	return t;
}

static uint32_t size_of(struct unit_types *u, struct type_die *t)
{
	uint64_t n = dw_seen_uint(&u->walker, BYTE_SIZE, 0);
	if (n <= UINT32_MAX)
		return (uint32_t)n;
	u->losses[CAIRN_LOSS_TYPE]++;
	t->kind = TYPE_OPAQUE;
	return 0;
}

static void note_losses(struct unit_types *u, const struct type_die *t)
{
	uint16_t tag = dw_walker_tag(&u->walker);
	if (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type)
		u->losses[CAIRN_LOSS_REFERENCE]++;
	else if (tag == DW_TAG_ptr_to_member_type)
		u->losses[CAIRN_LOSS_MEMBER_POINTER]++;
	else if (t->kind == TYPE_OPAQUE)
		u->losses[CAIRN_LOSS_TYPE]++;
}

/* As far as BTF tells them apart: whether there are negative numbers, and what is no integer. */
static uint8_t encoding_of(uint64_t encoding)
{
	switch (encoding) {
	case DW_ATE_boolean:
	case DW_ATE_float:
	case DW_ATE_complex_float:
	case DW_ATE_imaginary_float:
	case DW_ATE_decimal_float:
	case DW_ATE_signed:
		return (uint8_t)encoding;
	case DW_ATE_signed_char:
		return DW_ATE_signed;
	}
	return DW_ATE_unsigned;
}

static int see_type(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = add_type(u, plan_of(u) & PLAN_KIND);
	if (!t)
		return w->rc;
	switch (t->kind) {
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ENUM:
		t->size = size_of(u, t);
		t->declaration = dw_seen_flag(w, DECLARATION);
		t->name = full_name(u, own_name(u));
		if (dw_seen(w, SIGNATURE)) {
			/* The type is in a type unit, and this its proxy. */
			t->kind = TYPE_ALIAS;
			t->ref = local_ref(u, SIGNATURE);
		}
		t->stop = t->name && t->kind != TYPE_ALIAS;
		break;
	case TYPE_TYPEDEF:
		t->name = full_name(u, own_name(u));
		t->ref = local_ref(u, TYPE);
		if (!t->name)
			t->kind = TYPE_ALIAS;
		break;
	case TYPE_BASE:
		t->name = own_name(u);
		t->encoding = encoding_of(dw_seen_uint(w, ENCODING, 0));
		t->size = size_of(u, t);
		/* GCC says bits of _BitInt; whole bytes are what BTF has. */
		if (!t->size)
			t->size = (uint32_t)(dw_seen_uint(w, BIT_SIZE, 0) + 7) / 8;
		break;
	case TYPE_OPAQUE:
		t->size = size_of(u, t);
		/* A pointer to a data member without a size has that of an address. */
		if (dw_walker_tag(w) == DW_TAG_ptr_to_member_type && !t->size)
			t->size = w->unit->addr_size;
		break;
	case TYPE_VOID:
		break;
	default:
		t->ref = local_ref(u, TYPE);
		/* Nothing is inside of a pointer but tags. */
		if (!dw_walker_has_children(w) && dw_walker_tag(w) == DW_TAG_pointer_type)
			return 0;
		break;
	}
	note_losses(u, t);
	return open_scope(u, (uint32_t)u->types.n - 1, t->name);
}

static int see_subrange(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = type_owner(u);
	if (!t || t->kind != TYPE_ARRAY)
		return see_type(u);
	struct elem *e = add_elem(u, owner_of(u));
	if (!e)
		return w->rc;
	uint64_t n = dw_seen_uint(w, COUNT, UINT64_MAX);
	if (n == UINT64_MAX) {
		/* An upper bound of -1 is how GCC says "int a[0]" and "int a[]" alike; without one it is "[]". */
		n = dw_seen_uint(w, UPPER_BOUND, UINT64_MAX) + 1;
		uint64_t low = dw_seen_uint(w, LOWER_BOUND, 0);
		n = n >= low ? n - low : 0;
	}
	/* A data4 of 0xffffffff is -1, too. */
	e->value = n <= UINT32_MAX ? n : 0;
	return 0;
}

/* ---- members ---- */

static uint64_t bit_offset(struct unit_types *u, uint64_t bit_size)
{
	struct dw_walker *w = &u->walker;
	if (dw_seen(w, DATA_BIT_OFFSET))
		return dw_seen_uint(w, DATA_BIT_OFFSET, 0);
	uint64_t at = dw_seen_uint(w, MEMBER_LOCATION, 0) * 8;
	/* DWARF 3: counted from the other end of a storage unit of byte_size bytes. */
	if (bit_size && dw_seen(w, BIT_OFFSET))
		at += dw_seen_uint(w, BYTE_SIZE, 0) * 8 - dw_seen_uint(w, BIT_OFFSET, 0) - bit_size;
	return at;
}

/* GCC before DWARF 3 wrote an expression, "plus_uconst N". */
static bool has_plain_place(struct unit_types *u, uint64_t *ret)
{
	struct dw_value v;
	if (!dw_seen(&u->walker, MEMBER_LOCATION))
		return true;
	int rc = dw_seen_value(&u->walker, MEMBER_LOCATION, &v);
	if (rc <= 0 || (v.cls != DW_CLASS_BLOCK && v.cls != DW_CLASS_EXPRLOC))
		return rc >= 0;
	if (v.block.n < 2 || v.block.p[0] != DW_OP_plus_uconst)
		return false;
	struct cursor_src src = {.file = "", .section = "", .base = v.block.p};
	struct cursor c = cursor_of(&src, v.block.p + 1, v.block.n - 1, false, NULL);
	*ret = cur_uleb(&c) * 8;
	return !c.failed && !cur_more(&c);
}

static inline int see_simple_member(struct unit_types *u, uint32_t owner)
{
	const struct dw_walker *w = &u->walker;
	struct dw_place place = w->places[MEMBER_LOCATION];
	struct elem *e = add_elem(u, owner);
	if (!e)
		return w->rc;
	e->name = own_name(u);
	e->type = local_ref(u, TYPE);
	if (place.how == DW_HOW_U8)
		e->bit_off = 8u * *dw_seen_at(w, place);
	else if (place.how == DW_HOW_U16)
		e->bit_off = 8u * dw_load_u16(dw_seen_at(w, place));
	return 0;
}

static int see_member(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	uint32_t owner = owner_of(u);
	struct type_die *t = owner < OWNER_FUNC ? &u->types.p[owner] : NULL;
	if (t && (t->kind == TYPE_STRUCT || t->kind == TYPE_UNION) && plan_of(u) & PLAN_SIMPLE)
		return see_simple_member(u, owner);
	/* Static members of C++ have no place in it. */
	if (!t || (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION) || dw_seen_flag(w, DECLARATION) ||
	    dw_seen_flag(w, EXTERNAL))
		return 0;
	uint64_t bits = dw_seen_uint(w, BIT_SIZE, 0), at = bit_offset(u, bits);
	enum dw_how how = (enum dw_how)w->places[MEMBER_LOCATION].how;
	if (how != DW_HOW_U8 && how != DW_HOW_U16 && !has_plain_place(u, &at)) {
		u->losses[dw_walker_tag(w) == DW_TAG_inheritance ? CAIRN_LOSS_VIRTUAL_BASE : CAIRN_LOSS_FAR_MEMBER]++;
		return 0;
	}
	if (at > UINT32_MAX || bits > UINT8_MAX) {
		u->losses[CAIRN_LOSS_FAR_MEMBER]++;
		return 0;
	}
	struct elem *e = add_elem(u, owner_of(u));
	if (!e)
		return w->rc;
	e->name = own_name(u);
	e->type = local_ref(u, TYPE);
	e->bit_off = (uint32_t)at;
	e->bit_size = (uint16_t)bits;
	return 0;
}

static int see_enumerator(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = type_owner(u);
	struct elem *e = t && t->kind == TYPE_ENUM ? add_elem(u, owner_of(u)) : NULL;
	if (!e)
		return w->rc;
	uint8_t how = w->places[CONST_VALUE].how;
	e->name = own_name(u);
	e->value = dw_seen_uint(w, CONST_VALUE, 0);
	/* Other forms do not say whether they have a sign, and are written for values that have none. */
	e->is_negative = (how == DW_HOW_SLEB || how == DW_HOW_IMPLICIT) && (int64_t)e->value < 0;
	return 0;
}

static int see_param(struct unit_types *u)
{
	uint32_t owner = owner_of(u);
	if (owner == SCOPE_ONLY || (!(owner & OWNER_FUNC) && u->types.p[owner].kind != TYPE_PROTO))
		return 0;
	struct elem *e = add_elem(u, owner);
	if (!e)
		return u->walker.rc;
	e->name = own_name(u);
	e->type = local_ref(u, TYPE);
	return 0;
}

static int see_variadic(struct unit_types *u)
{
	uint32_t owner = owner_of(u);
	if (owner == SCOPE_ONLY)
		return 0;
	if (owner & OWNER_FUNC)
		u->funcs.p[owner & ~(uint32_t)OWNER_FUNC].variadic = true;
	else
		u->types.p[owner].variadic = true;
	return 0;
}

/* btf_decl_tag of a type; btf_type_tag of a pointer. Others belong to things that keep no tags. */
static int see_annotation(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	const char *name = own_name(u), *value = dw_seen_str(w, CONST_VALUE);
	struct type_die *t = type_owner(u);
	if (!t || !name || !value || !*value)
		return 0;
	bool fits = !strcmp(name, t->kind == TYPE_PTR ? "btf_type_tag" : "btf_decl_tag");
	bool takes = t->kind == TYPE_PTR || t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_TYPEDEF;
	struct elem *e = fits && takes ? add_elem(u, owner_of(u)) : NULL;
	if (!e)
		return w->rc;
	e->name = value;
	e->what = ELEM_TAG;
	return 0;
}

/* ---- functions and variables ---- */

static bool has_code(struct unit_types *u, uint64_t *ret)
{
	struct cairn_vaddr at;
	*ret = 0;
	if (dw_seen_addr(&u->walker, LOW_PC, &at)) {
		*ret = at.v;
		return at.v || u->walker.unit->file->relocatable;
	}
	return dw_seen(&u->walker, RANGES);
}

static int see_func(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	local_off self = local_of(u, dw_walker_off(w)), origin = self;
	uint64_t addr;
	bool has_body = has_code(u, &addr);
	if (dw_seen(w, ABSTRACT_ORIGIN))
		origin = local_ref(u, ABSTRACT_ORIGIN);
	if (w->rc < 0)
		return w->rc;
	if (has_body && !VEC_ADD(&u->bodies, ((struct body_die){.off = self, .origin = origin, .addr = addr})))
		return -ENOMEM;
	if (origin != self)
		return open_scope(u, SCOPE_ONLY, NULL);
	struct func_die f = {.off = self, .name = own_name(u), .external = dw_seen_flag(w, EXTERNAL)};
	f.ref = local_ref(u, TYPE);
	f.declaration = dw_seen_flag(w, DECLARATION);
	if (dw_seen(w, SPECIFICATION)) {
		/* Declared in its class; few of the many DIEs of functions have this. */
		struct dw_die die = dw_walker_die(w);
		char buf[1024];
		int n = dw_qualified_name(u->dw, &die, buf, sizeof(buf));
		f.name = n > 0 ? qualify(u, "", buf) : NULL;
		f.name = f.name ? f.name + 2 : dw_str_deep(&die, DW_AT_name);
		f.external = true;
		if (!f.ref)
			f.ref = local_of(u, dw_ref_deep(&die, DW_AT_type));
	} else {
		f.name = full_name(u, f.name);
	}
	if (!VEC_ADD(&u->funcs, f))
		return -ENOMEM;
	return open_scope(u, (uint32_t)(u->funcs.n - 1) | OWNER_FUNC, f.name);
}

static int see_variable(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct dw_value v;
	if (!u->want_vars || !dw_seen(w, LOCATION))
		return 0;
	struct dw_place place = w->places[LOCATION];
	if (place.how != DW_HOW_FORM && place.how != DW_HOW_FAR)
		return 0;
	/* Most are local, on the stack or in a list. */
	if (place.form == DW_FORM_sec_offset || place.form == DW_FORM_loclistx)
		return 0;
	if (place.form == DW_FORM_exprloc && place.how == DW_HOW_FORM) {
		const uint8_t *expr = dw_seen_at(w, place);
		if (expr[0] && expr[0] < 0x80 && expr[1] != DW_OP_addr && expr[1] != DW_OP_addrx)
			return 0;
	}
	int rc = dw_seen_value(w, LOCATION, &v);
	if (rc <= 0 || (v.cls != DW_CLASS_EXPRLOC && v.cls != DW_CLASS_BLOCK) || !v.block.n)
		return rc < 0 ? rc : 0;
	struct var_die var = {.external = dw_seen_flag(w, EXTERNAL)};
	struct cursor_src src = {.file = u->dw->file[0].path, .section = "a variable's location", .base = v.block.p};
	struct cursor c = cursor_of(&src, v.block.p + 1, v.block.n - 1, false, NULL);
	uint8_t op = v.block.p[0];
	if (op == DW_OP_addr)
		var.addr = cur_uint(&c, w->unit->addr_size);
	else if (op != DW_OP_addrx || dw_unit_addrx(w->unit, cur_uleb(&c), &var.addr, NULL) != 1)
		return 0;
	if (c.failed || cur_more(&c)) {
		u->losses[CAIRN_LOSS_VARIABLE]++;
		return 0;
	}
	struct dw_die die = dw_walker_die(w);
	var.name = dw_seen(w, SPECIFICATION) || dw_seen(w, ABSTRACT_ORIGIN) ? dw_str_deep(&die, DW_AT_name)
									  : full_name(u, own_name(u));
	var.ref = dw_seen(w, TYPE) ? local_ref(u, TYPE) : local_of(u, dw_ref_deep(&die, DW_AT_type));
	if (dw_seen(w, SPECIFICATION))
		var.external = true;
	return !var.name || VEC_ADD(&u->vars, var) ? w->rc : -ENOMEM;
}

static int see_namespace(struct unit_types *u)
{
	const char *name = own_name(u);
	return open_scope(u, SCOPE_ONLY, full_name(u, name ? name : "(anonymous namespace)"));
}

static int see(struct unit_types *u, int role)
{
	while (u->open.n && u->open.p[u->open.n - 1].depth >= u->walker.depth)
		u->open.n--;
	switch ((enum role)role) {
	case ROLE_TYPE:
		return see_type(u);
	case ROLE_MEMBER:
	case ROLE_BASE_CLASS:
		return see_member(u);
	case ROLE_PARAM:
		return see_param(u);
	case ROLE_VARIADIC:
		return see_variadic(u);
	case ROLE_ENUMERATOR:
		return see_enumerator(u);
	case ROLE_SUBRANGE:
		return see_subrange(u);
	case ROLE_FUNC:
		return see_func(u);
	case ROLE_VARIABLE:
		return see_variable(u);
	case ROLE_NAMESPACE:
		return see_namespace(u);
	case ROLE_ANNOTATION:
		return see_annotation(u);
	case ROLE_VARIANT:
		u->losses[CAIRN_LOSS_VARIANT]++;
		return 0;
	}
	return 0;
}

int unit_types_reserve(struct unit_types *u, uint64_t end)
{
	size_t words = (size_t)(end / 64 + 1);
	if (words > u->starts.cap) {
		uint64_t *grown = realloc(u->starts.p, words * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		u->starts.p = grown;
		u->starts.cap = words;
	}
	if (words > u->starts.n)
		memset(u->starts.p + u->starts.n, 0, (words - u->starts.n) * sizeof(*u->starts.p));
	u->starts.n = words;
	return 0;
}

int unit_types_read(struct unit_types *u, const struct dw_unit *unit, struct cairn_err *err)
{
	u->unit_off = unit->off;
	u->unit_tag = unit->tag;
	u->unit_end = (uint64_t)(unit->end - unit->sec->p) - unit->off;
	u->ref_bias = u->whole ? (uint32_t)(unit->off + bias_of(u, unit->tag)) : 0;
	const struct dw_section *str = &unit->file->sec[DW_SEC_STR];
	u->str = (const char *)str->p;
	u->str_n = str->ends_in_nul ? str->n : 0;
	u->has_namespaces = has_namespaces(unit);
	u->open.n = 0;
	uint64_t end = u->whole ? u->end : u->unit_end;
	if (end > UINT32_MAX)
		return err_set(err, -ERANGE, "%s: %s larger than 4 GiB", unit->file->path,
			       u->whole ? "units that refer to each other, together" : "a unit");
	int rc = unit_types_reserve(u, end);
	if (rc >= 0)
		rc = forget_plans(u, unit->abbrevs);
	if (rc >= 0)
		rc = dw_walker_enter(&u->walker, unit, err);
	while (rc >= 0 && (rc = dw_walker_next(&u->walker)) > 0)
		rc = see(u, rc);
	return rc == -ENOMEM ? err_nomem(err, "the types of a unit") : rc;
}

/* ---- behind the walk ---- */

static void count_starts(struct unit_types *u)
{
	uint32_t n = 0;
	for (size_t i = 0; i < u->starts.n; i++) {
		u->rank.p[i] = n;
		n += count_bits(u->starts.p[i]);
	}
}

static uint32_t *first_elem(struct unit_types *u, uint32_t owner, uint32_t **ret_n)
{
	if (owner & OWNER_FUNC) {
		struct func_die *f = &u->funcs.p[owner & ~(uint32_t)OWNER_FUNC];
		*ret_n = &f->n_elems;
		return &f->elem;
	}
	*ret_n = &u->types.p[owner].n_elems;
	return &u->types.p[owner].elem;
}

/* Put the elements of each owner in a row, in their order: types inside a class stand between its members. */
static int gather(struct unit_types *u)
{
	struct elem *sorted = malloc(u->elems.n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	uint32_t at = 0;
	for (size_t i = 0; i < u->types.n; at += u->types.p[i++].n_elems)
		u->types.p[i].elem = at;
	for (size_t i = 0; i < u->funcs.n; at += u->funcs.p[i++].n_elems)
		u->funcs.p[i].elem = at;
	for (size_t i = 0; i < u->elems.n; i++) {
		uint32_t *n;
		sorted[(*first_elem(u, u->elems.p[i].owner, &n))++] = u->elems.p[i];
	}
	for (size_t i = 0; i < u->types.n; i++)
		u->types.p[i].elem -= u->types.p[i].n_elems;
	for (size_t i = 0; i < u->funcs.n; i++)
		u->funcs.p[i].elem -= u->funcs.p[i].n_elems;
	free(u->elems.p);
	u->elems.p = sorted;
	u->elems.cap = u->elems.n;
	return 0;
}

int unit_types_finish(struct unit_types *u)
{
	if (u->types.n > u->edges.cap) {
		free(u->edges.p);
		u->edges.p = malloc(u->types.cap * sizeof(*u->edges.p));
		u->edges.cap = u->edges.p ? u->types.cap : 0;
		if (!u->edges.p)
			return -ENOMEM;
	}
	if (u->types.n)
		memset(u->edges.p, 0, u->types.n * sizeof(*u->edges.p));
	u->edges.n = u->types.n;
	if (u->starts.n > u->rank.cap) {
		uint32_t *grown = realloc(u->rank.p, u->starts.n * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		u->rank.p = grown;
		u->rank.cap = u->starts.n;
	}
	u->rank.n = u->starts.n;
	count_starts(u);
	return u->scattered && u->elems.n ? gather(u) : 0;
}
