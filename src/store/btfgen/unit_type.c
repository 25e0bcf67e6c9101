/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/unit_impl.h"

#include "dwarf/impl.h"
#include "dwarf/types_variants.h"

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
	local_off off =
		u->ref_bias +
		(uint32_t)((uint64_t)(u->walker.die - u->walker.unit->sec->p) - u->unit_off);
	if (VEC_ADD(&u->offs, off))
		return t;
	u->walker.rc = -ENOMEM;
	return NULL;
}

/*
 * 0 when there is none, and when BTF cannot count so many. In the second case only the type's name
 * is written, if it has one.
 */
static uint32_t size_of(struct unit_types *u, struct type_die *t)
{
	uint64_t n = dw_seen_uint(&u->walker, BYTE_SIZE, 0);
	if (n <= UINT32_MAX)
		return (uint32_t)n;
	u->losses[CAIRN_LOSS_LARGE]++;
	t->declaration = t->name;
	if (!t->name)
		t->kind = TYPE_ALIAS;
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

/* The distinctions that BTF makes: negative numbers or not, and no integer at all. */
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

/* Types have children that the walker has not reached yet: first its row of plain ones. */
static int see_children(struct unit_types *u, struct type_die *t)
{
	static const uint8_t roles[] = {[TYPE_STRUCT] = ROLE_MEMBER,
					[TYPE_UNION] = ROLE_MEMBER,
					[TYPE_ENUM] = ROLE_ENUMERATOR,
					[TYPE_PROTO] = ROLE_PARAM,
					[TYPE_OPAQUE] = 0};
	uint32_t i = (uint32_t)(t - u->types.p);
	if (!dw_walker_has_children(&u->walker))
		return 0;
	int rc = unit_open_scope(u, i, t->name);
	return rc < 0 || !roles[t->kind] ? rc : unit_take_run(u, i, (enum role)roles[t->kind]);
}

/* With a size it is no prototype but a value: Go's functions, which point to a closure. */
static int say_as_pointer(struct unit_types *u, struct type_die *t)
{
	t->kind = TYPE_PTR;
	t->ref = 0;
	u->losses[CAIRN_LOSS_FUNC_VALUE]++;
	return see_children(u, t);
}

/* Its place among scopes: members of functions and namespaces are no children of the root. */
static void note_place(struct unit_types *u, struct type_die *t)
{
	bool is_inner = u->walker.depth > 1;
	u->has_inner |= is_inner && type_may_be_named(t);
	t->is_inner = is_inner && u->is_c;
}

int unit_see_type(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = add_type(u, (enum type_kind)unit_plan_of(u)->kind);
	if (!t)
		return w->rc;
	note_place(u, t);
	switch (t->kind) {
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ENUM:
		t->declaration = dw_seen_flag(w, DECLARATION);
		t->name = unit_full_name(u, unit_own_name(u));
		t->size = size_of(u, t);
		if (dw_seen(w, SIGNATURE)) {
			/* The type is in a type unit, and this its proxy. */
			t->kind = TYPE_ALIAS;
			t->ref = unit_ref(u, SIGNATURE);
		}
		/* The DIE describes nothing, not even a name: Clang's unnamed class in a class. */
		if (t->declaration && !t->name)
			t->kind = TYPE_ALIAS;
		t->stop = t->name && t->kind != TYPE_ALIAS;
		break;
	case TYPE_TYPEDEF:
		t->name = unit_full_name(u, unit_own_name(u));
		t->ref = unit_ref(u, TYPE);
		if (!t->name)
			t->kind = TYPE_ALIAS;
		break;
	case TYPE_BASE:
		t->name = unit_own_name(u);
		t->encoding = encoding_of(dw_seen_uint(w, ENCODING, 0));
		t->size = size_of(u, t);
		/* GCC records the bits of _BitInt; BTF has whole bytes. */
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
		/*
		 * The only such type that has values is decltype(nullptr): 0, as wide as a pointer.
		 */
		if (unit_own_name(u) && strstr(unit_own_name(u), "nullptr"))
			t->kind = TYPE_PTR;
		break;
	case TYPE_PROTO:
		t->ref = unit_ref(u, TYPE);
		if (dw_seen(w, BYTE_SIZE))
			return say_as_pointer(u, t);
		break;
	default:
		t->ref = unit_ref(u, TYPE);
		/* Nothing is inside of a pointer but tags. */
		if (!dw_walker_has_children(w) && dw_walker_tag(w) == DW_TAG_pointer_type &&
		    !dw_seen(w, ANNOTATION))
			return 0;
		break;
	}
	note_losses(u, t);
	int rc = unit_see_annotations_of(u, (uint32_t)(t - u->types.p), -1);
	return rc < 0 ? rc : see_children(u, t);
}

static uint64_t bound_of(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	uint64_t n = dw_seen_uint(w, COUNT, UINT64_MAX);
	if (n != UINT64_MAX)
		return n;
	/*
	 * An upper bound of -1 is how GCC says "int a[0]" and "int a[]" alike; without one it is
	 * "[]".
	 */
	n = dw_seen_uint(w, UPPER_BOUND, UINT64_MAX) + 1;
	/* It is as wide as an address. */
	if (w->unit->addr_size == 4)
		n = (uint32_t)n;
	uint64_t low = dw_seen_uint(w, LOWER_BOUND, 0);
	return n >= low ? n - low : 0;
}

/*
 * A number below 2^32 that divides @n and leaves one below 2^32; 0: there is none, or none that is
 * small.
 */
static uint64_t small_divisor(uint64_t n)
{
	enum { DIVISOR_MAX = 1 << 16 };
	for (uint64_t d = n / UINT32_MAX; d <= DIVISOR_MAX; d++)
		if (d > 1 && n % d == 0 && n / d <= UINT32_MAX)
			return d;
	return 0;
}

static int add_bound(struct unit_types *u, uint64_t n)
{
	struct elem *e = unit_add_elem(u, unit_owner(u));
	if (!e)
		return u->walker.rc;
	e->value = n;
	return 0;
}

/*
 * If BTF cannot count the elements, they are written as nested arrays of the same total, or without
 * a number if they cannot be split.
 */
int unit_see_subrange(struct unit_types *u)
{
	struct type_die *t = unit_type_owner(u);
	if (!t || t->kind != TYPE_ARRAY)
		return unit_see_type(u);
	uint64_t n = bound_of(u);
	if (n <= UINT32_MAX)
		return add_bound(u, n);
	u->losses[CAIRN_LOSS_LARGE]++;
	uint64_t rows = small_divisor(n);
	int rc = rows ? add_bound(u, rows) : 0;
	return rc < 0 ? rc : add_bound(u, rows ? n / rows : 0);
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

/*
 * A union or struct without a name, of the DIE at hand, that is member of @owner and as large.
 * UINT32_MAX and walker.rc: no memory.
 */
static uint32_t add_part(struct unit_types *u, enum type_kind kind, uint32_t owner)
{
	struct type_die *t = add_type(u, kind);
	struct elem *e = t ? unit_add_elem(u, owner) : NULL;
	if (!e)
		return UINT32_MAX;
	e->type = u->offs.p[u->types.n - 1];
	t->size = u->types.p[owner].size;
	return (uint32_t)u->types.n - 1;
}

int unit_see_member(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	uint32_t owner = unit_owner(u);
	struct type_die *t = owner < OWNER_FUNC ? &u->types.p[owner] : NULL;
	/* Static members of C++ have no place in it. */
	if (!t || (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION) ||
	    dw_seen_flag(w, DECLARATION) || dw_seen_flag(w, EXTERNAL))
		return 0;
	uint64_t bits = dw_seen_uint(w, BIT_SIZE, 0), at = bit_offset(u, bits);
	enum dw_how how = (enum dw_how)w->places[MEMBER_LOCATION].how;
	if (how != DW_HOW_U8 && how != DW_HOW_U16 && !has_plain_place(u, &at)) {
		u->losses[CAIRN_LOSS_UNPLACED]++;
		return 0;
	}
	if (at > UINT32_MAX || bits > UINT8_MAX) {
		u->losses[CAIRN_LOSS_FAR_MEMBER]++;
		return 0;
	}
	bool is_discriminant = t->variants;
	/* BTF's members of unions have no offset. */
	uint32_t in = is_discriminant && at ? add_part(u, TYPE_STRUCT, owner) : owner;
	struct elem *e = in == UINT32_MAX ? NULL : unit_add_elem(u, in);
	if (!e)
		return w->rc;
	e->name = unit_own_name(u);
	if (!e->name && is_discriminant)
		e->name = DISCRIMINANT_NAME;
	e->type = unit_ref(u, TYPE);
	e->bit_off = (uint32_t)at;
	e->bit_size = (uint8_t)bits;
	/* The tag's position tells which member it belongs to: the one before it. */
	int rc = unit_see_annotations_of(u, owner, 0);
	if (rc < 0 || dw_walker_has_children(w))
		return rc < 0 ? rc : unit_open_part(u, owner, 0);
	/* A bit-field or a short name came between two rows. */
	return unit_take_run(u, owner, ROLE_MEMBER);
}

int unit_see_variant_part(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	uint32_t owner = unit_owner(u);
	struct type_die *t = owner < OWNER_FUNC ? &u->types.p[owner] : NULL;
	struct dw_die part;
	bool known = t && t->kind == TYPE_STRUCT && t->size &&
		     dw_die_parse(w->unit, w->die, &part, NULL) > 0 && dw_variants_are_known(&part);
	if (!known) {
		u->losses[CAIRN_LOSS_VARIANT]++;
		return 0;
	}
	uint32_t i = add_part(u, TYPE_UNION, owner);
	if (i == UINT32_MAX)
		return w->rc;
	u->types.p[i].variants = dw_variants_digest(&part);
	return unit_open_scope(u, i, NULL);
}

/* BTF's members of unions have no offset. */
static bool is_at_start(const struct dw_die *member)
{
	return !dw_udata(member, DW_AT_data_member_location, 0) &&
	       !dw_udata(member, DW_AT_data_bit_offset, 0);
}

/* One that is a single member is a member of the union. */
int unit_see_variant(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	uint32_t owner = unit_owner(u);
	struct dw_die variant, only;
	if (owner >= OWNER_FUNC || !u->types.p[owner].variants)
		return 0;
	bool single = dw_die_parse(w->unit, w->die, &variant, NULL) > 0 &&
		      dw_variant_is_single(&variant, &only) && is_at_start(&only);
	uint32_t i = single ? owner : add_part(u, TYPE_STRUCT, owner);
	return i == UINT32_MAX ? w->rc : unit_open_scope(u, i, NULL);
}

int unit_see_enumerator(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	struct type_die *t = unit_type_owner(u);
	struct elem *e = t && t->kind == TYPE_ENUM ? unit_add_elem(u, unit_owner(u)) : NULL;
	if (!e)
		return w->rc;
	uint8_t how = w->places[CONST_VALUE].how;
	e->name = unit_own_name(u);
	e->value = dw_seen_uint(w, CONST_VALUE, 0);
	/*
	 * Other forms do not say whether they have a sign, and are written for values that have
	 * none.
	 */
	e->is_negative = (how == DW_HOW_SLEB || how == DW_HOW_IMPLICIT) && (int64_t)e->value < 0;
	return dw_walker_has_children(w) ? 0 : unit_take_run(u, unit_owner(u), ROLE_ENUMERATOR);
}

int unit_see_param(struct unit_types *u)
{
	uint32_t owner = unit_owner(u);
	if (owner == SCOPE_ONLY || (!(owner & OWNER_FUNC) && u->types.p[owner].kind != TYPE_PROTO))
		return 0;
	struct elem *e = unit_add_elem(u, owner);
	if (!e)
		return u->walker.rc;
	e->name = unit_own_name(u);
	e->type = unit_ref(u, TYPE);
	if (!(owner & OWNER_FUNC))
		return 0;
	int32_t number = (int32_t)u->funcs.p[owner & ~(uint32_t)OWNER_FUNC].n_elems - 1;
	int rc = unit_see_annotations_of(u, owner, number);
	return rc < 0 ? rc : unit_open_part(u, owner, number);
}

int unit_see_variadic(struct unit_types *u)
{
	uint32_t owner = unit_owner(u);
	if (owner == SCOPE_ONLY)
		return 0;
	if (owner & OWNER_FUNC)
		u->funcs.p[owner & ~(uint32_t)OWNER_FUNC].variadic = true;
	else
		u->types.p[owner].variadic = true;
	return 0;
}
