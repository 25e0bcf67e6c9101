/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of structs that depend on a discriminant
 *
 * Rust's enums and Ada's variant records have DIEs for alternative parts of a struct, only one of
 * which is present:
 *
 *	structure_type Shape, 16 bytes
 *	  variant_part, discr: the member below         union {
 *	    member u16 at 0, artificial                   u16 __discriminant;
 *	    variant, discr_value 0                        struct Shape::Circle Circle;	0
 *	      member Circle at 0: Shape::Circle
 *	    variant, discr_value 1                        struct Shape::Rect Rect;	1
 *	      member Rect at 0: Shape::Rect             }
 *
 * The variant part becomes a union without a name, of the same DIE, with the values of each member
 * beside it (struct cairn_variants). A variant that has not exactly one member, as in Ada, becomes
 * a struct without a name. Both begin at their first member and end after their last one, so that
 * nothing looks like a hole: all offsets in DWARF count from the struct around them.
 *
 * A variant without values is present for all values that no other one has: Rust stores Some of
 * Option<&T> without a discriminant, and None as the pointer 0.
 */
#include "dwarf/types_variants.h"

#include <errno.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/scopes.h"
#include "dwarf/types_place.h"

/* Variant parts in variants: programs have two or three. */
enum { PART_DEPTH_MAX = 16, DISCRIMINANT_BITS_MAX = 64 };

static bool is_part(const struct dw_die *die)
{
	return die->tag == DW_TAG_variant_part || die->tag == DW_TAG_variant;
}

/* Larger than any address space. */
static const uint64_t SIZE_LIMIT = UINT64_C(1) << 56;

/* ---- where it begins ---- */

static uint64_t first_byte(const struct dw_die *die, unsigned int depth)
{
	struct dw_die child;
	uint64_t first = UINT64_MAX;
	int rc = depth < PART_DEPTH_MAX ? dw_die_child(die, &child, NULL) : 0;
	for (; rc > 0; rc = dw_die_sibling(&child, &child, NULL)) {
		struct cairn_member m = {0};
		uint64_t at = UINT64_MAX;
		if (is_part(&child)) {
			at = first_byte(&child, depth + 1);
		} else if (child.tag == DW_TAG_member) {
			dw_types_place(&child, &m);
			at = m.dynamic ? UINT64_MAX : m.bit_off / 8;
		}
		first = at < first ? at : first;
	}
	return first;
}

uint64_t dw_variants_base(const struct dw_die *die)
{
	uint64_t first = is_part(die) ? first_byte(die, 0) : 0;
	return first == UINT64_MAX ? 0 : first;
}

bool dw_variant_is_single(const struct dw_die *variant, struct dw_die *ret)
{
	struct dw_die child;
	size_t n = 0;
	int rc = dw_die_child(variant, &child, NULL);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, NULL)) {
		if (child.tag == DW_TAG_variant_part)
			return false;
		if (child.tag == DW_TAG_member && !n++)
			*ret = child;
	}
	return n == 1;
}

/* ---- values ---- */

/* The DIE of the discriminant of @part. */
static bool find_discriminant(const struct dw_die *part, struct dw_die *ret)
{
	dw_off off = dw_ref(part, DW_AT_discr);
	return off && dw_die_at(part->unit->dw, off, ret, NULL) > 0 && ret->tag == DW_TAG_member;
}

static bool is_signed(const struct dw_die *member)
{
	struct dw_die type;
	uint64_t encoding = DW_ATE_void;
	if (dw_find_after(member, DW_AT_encoding, &type))
		encoding = dw_udata(&type, DW_AT_encoding, DW_ATE_void);
	return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

/* Values of a variant: their number, a digest of them, and when they are kept all of them. */
struct ranges {
	size_t n;
	uint32_t digest;
	bool is_unknown; /* a form or a number that is not read */
	bool keep, no_memory;
	VEC(struct cairn_variant_range) v;
};

static uint32_t mix(uint32_t h, uint64_t n)
{
	enum { FNV_PRIME = 16777619 };
	for (int i = 0; i < 8; i++)
		h = (h ^ (uint8_t)(n >> 8 * i)) * FNV_PRIME;
	return h;
}

static void add_range(struct ranges *ranges, uint64_t lo, uint64_t hi)
{
	struct cairn_variant_range range = {lo, hi};
	ranges->n++;
	ranges->digest = mix(mix(ranges->digest, lo), hi);
	if (ranges->keep)
		ranges->no_memory |= !VEC_ADD(&ranges->v, range);
}

/* DW_AT_discr_list: labels and ranges. */
static void add_list(const struct dw_die *variant, const struct dw_value *v, bool sign,
		     struct ranges *ranges)
{
	enum { LABEL, RANGE };
	struct cursor c = cursor_of(&variant->unit->sec->src, v->block.p, v->block.n, false, NULL);
	while (cur_more(&c)) {
		uint8_t what = cur_u8(&c);
		uint64_t lo = sign ? (uint64_t)cur_sleb(&c) : cur_uleb(&c), hi = lo;
		if (what == RANGE)
			hi = sign ? (uint64_t)cur_sleb(&c) : cur_uleb(&c);
		ranges->is_unknown |= c.failed || what > RANGE;
		if (ranges->is_unknown)
			return;
		add_range(ranges, lo, hi);
	}
}

/*
 * LLVM writes a signed value in the fewest bytes of the forms data1 to data8 that keep its sign: -5
 * of 16 bits is fb.
 */
static uint64_t with_sign(const struct dw_value *v)
{
	switch (v->form) {
	case DW_FORM_data1:
		return (uint64_t)(int8_t)v->u;
	case DW_FORM_data2:
		return (uint64_t)(int16_t)v->u;
	case DW_FORM_data4:
		return (uint64_t)(int32_t)v->u;
	}
	return v->u;
}

/* Values of one variant; none: it is there for all others. */
static void add_values(const struct dw_die *variant, bool sign, struct ranges *ranges)
{
	struct dw_value v;
	if (dw_attr(variant, DW_AT_discr_value, &v, NULL) > 0) {
		ranges->is_unknown |= v.cls != DW_CLASS_UDATA && v.cls != DW_CLASS_SDATA;
		v.u = sign ? with_sign(&v) : v.u;
		add_range(ranges, v.u, v.u);
	} else if (dw_attr(variant, DW_AT_discr_list, &v, NULL) > 0) {
		ranges->is_unknown |= v.cls != DW_CLASS_BLOCK && v.cls != DW_CLASS_EXPRLOC;
		if (!ranges->is_unknown)
			add_list(variant, &v, sign, ranges);
	}
}

static uint64_t discriminant_bits(const struct dw_die *member)
{
	struct dw_die type;
	uint64_t bits = dw_udata(member, DW_AT_bit_size, 0);
	if (!bits && dw_find_after(member, DW_AT_byte_size, &type))
		bits = 8 * dw_udata(&type, DW_AT_byte_size, 0);
	return bits;
}

static bool is_readable(const struct dw_die *member)
{
	struct cairn_member m = {0};
	uint64_t bits = discriminant_bits(member);
	dw_types_place(member, &m);
	return bits && bits <= DISCRIMINANT_BITS_MAX && !m.dynamic;
}

/* One variant needs no discriminant. At most one can be the one for all other values. */
bool dw_variants_are_known(const struct dw_die *part)
{
	struct dw_die discriminant, child;
	bool has_discriminant = find_discriminant(part, &discriminant), known = true;
	bool sign = has_discriminant && is_signed(&discriminant);
	size_t n = 0, n_others = 0;
	int rc = dw_die_child(part, &child, NULL);
	for (; rc > 0 && known; rc = dw_die_sibling(&child, &child, NULL)) {
		struct ranges ranges = {0};
		if (child.tag != DW_TAG_variant)
			continue;
		add_values(&child, sign, &ranges);
		n++;
		n_others += !ranges.n;
		known = !ranges.is_unknown;
	}
	if (!known || !n || n_others > 1)
		return false;
	return has_discriminant ? is_readable(&discriminant) : n == 1 && n_others == 1;
}

uint32_t dw_variants_digest(const struct dw_die *part)
{
	struct dw_die discriminant, child;
	struct cairn_member at = {0};
	uint32_t h = 2166136261;
	bool sign = find_discriminant(part, &discriminant) && is_signed(&discriminant);
	if (find_discriminant(part, &discriminant)) {
		dw_types_place(&discriminant, &at);
		h = mix(mix(h, at.bit_off), discriminant_bits(&discriminant) << 1 | sign);
	}
	int rc = dw_die_child(part, &child, NULL);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, NULL)) {
		struct ranges ranges = {0};
		if (child.tag == DW_TAG_variant)
			add_values(&child, sign, &ranges);
		h = mix(mix(h, ranges.n), ranges.digest);
	}
	return h ? h : 1;
}

/* ---- a struct that is a variant ---- */

static bool is_variant_of(const struct dw_die *part, dw_off type)
{
	struct dw_die child, member;
	int rc = dw_die_child(part, &child, NULL);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, NULL))
		if (child.tag == DW_TAG_variant && dw_variant_is_single(&child, &member) &&
		    dw_ref(&member, DW_AT_type) == type)
			return true;
	return false;
}

/*
 * The discriminant of the enum around a struct that is one of its variants. 1 and *@ret; 0;
 * -ENOMEM.
 */
static int discriminant_around(const struct dw_die *variant_struct, struct dw_die *ret,
			       struct cairn_err *err)
{
	const struct dw_scope *scopes[DW_SCOPES_MAX];
	struct dw_die around, child;
	int n = dw_scopes_around(variant_struct->unit->dw, variant_struct->off, scopes, NULL);
	if (n == -ENOMEM)
		return err_nomem(err, "scopes of types");
	if (n <= 0 || dw_die_at(variant_struct->unit->dw, scopes[0]->lo, &around, NULL) <= 0)
		return 0;
	int rc = dw_die_child(&around, &child, NULL);
	for (; rc > 0; rc = dw_die_sibling(&child, &child, NULL))
		if (child.tag == DW_TAG_variant_part && find_discriminant(&child, ret) &&
		    is_variant_of(&child, variant_struct->off))
			return is_readable(ret);
	return 0;
}

int dw_types_discriminant(struct dw_types *r, const struct dw_die *die, struct cairn_member *ret,
			  struct cairn_err *err)
{
	*ret = (struct cairn_member){.name = dw_str(die, DW_AT_name), .is_discriminant = true};
	ret->name = ret->name ? ret->name : DISCRIMINANT_NAME;
	dw_types_place(die, ret);
	return dw_types_ref(r, die, &ret->type, err);
}

/* Whether a member of @t reaches into bits [@from, @to). */
static bool is_taken(const struct dw_types *r, const struct cairn_type *t, uint64_t from,
		     uint64_t to)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		uint64_t bits = m->bit_size ? m->bit_size : 8 * cairn_types_size(r->graph, m->type);
		if (m->dynamic || (m->bit_off < to && from < m->bit_off + bits))
			return true;
	}
	return false;
}

int dw_types_add_discriminant(struct dw_types *r, const struct dw_die *die, uint32_t id,
			      struct cairn_err *err)
{
	struct cairn_type *t = types_node(r->graph, id);
	struct cairn_member m;
	struct dw_die discriminant;
	if (dw_unit_language(die->unit) != DW_LANG_Rust || t->kind != CAIRN_T_STRUCT || t->unread ||
	    t->declaration)
		return 0;
	int rc = discriminant_around(die, &discriminant, err);
	t->is_variant = rc > 0;
	if (rc <= 0 || !t->n_members)
		return rc;
	rc = dw_types_discriminant(r, &discriminant, &m, err);
	if (rc < 0 || is_taken(r, t, m.bit_off, m.bit_off + discriminant_bits(&discriminant)))
		return rc;
	struct cairn_member *all =
		arena_array(types_arena(r->graph), t->n_members + 1, sizeof(*all));
	if (!all)
		return err_nomem(err, "members of types");
	all[0] = m;
	memcpy(all + 1, t->members, t->n_members * sizeof(*all));
	t->members = all;
	t->n_members++;
	return 0;
}

/* ---- from the outside ---- */

/* Adds an extent: @bytes, or a @type, at @off of the type with the id. */
static int add_extent(struct dw_types *r, uint32_t id, uint32_t type, uint64_t end,
		      struct cairn_err *err)
{
	__typeof__(r->extents.p) e = VEC_PUSH(&r->extents);
	if (!e)
		return err_nomem(err, "sizes of types");
	e->id = id;
	e->type = type;
	e->end = end;
	return 0;
}

static int want_member(struct dw_types *r, const struct dw_die *die, uint32_t id, uint64_t base,
		       struct cairn_err *err)
{
	struct cairn_member m = {0};
	uint32_t type = 0;
	dw_types_place(die, &m);
	if (m.dynamic || dw_flag(die, DW_AT_external) || dw_flag(die, DW_AT_declaration))
		return 0;
	if (m.bit_size)
		return add_extent(r, id, 0, (m.bit_off + m.bit_size + 7) / 8 - base, err);
	int rc = dw_types_ref(r, die, &type, err);
	return rc < 0 ? rc : add_extent(r, id, type, m.bit_off / 8 - base, err);
}

static int want_members(struct dw_types *r, const struct dw_die *die, uint32_t id, uint64_t base,
			unsigned int depth, struct cairn_err *err)
{
	struct dw_die child;
	int rc = depth < PART_DEPTH_MAX ? dw_die_child(die, &child, err) : 0;
	for (; rc > 0; rc = dw_die_sibling(&child, &child, err)) {
		int wanted = 0;
		if (is_part(&child))
			wanted = want_members(r, &child, id, base, depth + 1, err);
		else if (child.tag == DW_TAG_member)
			wanted = want_member(r, &child, id, base, err);
		if (wanted < 0)
			return wanted;
	}
	return rc;
}

int dw_types_want_extent(struct dw_types *r, const struct dw_die *die, uint32_t id,
			 struct cairn_err *err)
{
	return want_members(r, die, id, dw_variants_base(die), 0, err);
}

void dw_types_size_extents(struct dw_types *r)
{
	for (size_t i = 0; i < r->extents.n; i++) {
		struct cairn_type *t = types_node(r->graph, r->extents.p[i].id);
		uint64_t size = cairn_types_size(r->graph, r->extents.p[i].type),
			 end = r->extents.p[i].end;
		if (t && size < SIZE_LIMIT && end < SIZE_LIMIT && end + size > t->size)
			t->size = end + size;
	}
	r->extents.n = 0;
}

int dw_types_read_part(struct dw_types *r, const struct dw_die *die, uint32_t id,
		       struct cairn_type *t, struct cairn_err *err)
{
	t->kind = die->tag == DW_TAG_variant ? CAIRN_T_STRUCT : CAIRN_T_UNION;
	t->encoding = CAIRN_ENC_UNSIGNED;
	t->bare_name = dw_has_scopes(die->unit);
	t->unread = true;
	return dw_types_want_extent(r, die, id, err);
}

/* ---- from the inside ---- */

static int keep_ranges(struct dw_types *r, const struct ranges *ranges, struct cairn_variant *ret,
		       struct cairn_err *err)
{
	struct cairn_variant_range *copy =
		arena_array(types_arena(r->graph), ranges->v.n, sizeof(*copy));
	if (ranges->no_memory || !copy)
		return err_nomem(err, "variants of types");
	if (ranges->v.n)
		memcpy(copy, ranges->v.p, ranges->v.n * sizeof(*copy));
	*ret = (struct cairn_variant){copy, (uint32_t)ranges->v.n};
	return 0;
}

/* One for each member of the union, also of the discriminant, if it is the first. */
static int read_values(struct dw_types *r, const struct dw_die *part, bool sign,
		       const struct cairn_type *t, struct cairn_variant *ret, struct cairn_err *err)
{
	struct dw_die child;
	uint32_t i = t->n_members && t->members[0].is_discriminant;
	int rc = dw_die_child(part, &child, err);
	for (; rc > 0 && i < t->n_members; rc = dw_die_sibling(&child, &child, err)) {
		struct ranges ranges = {.keep = true};
		if (child.tag != DW_TAG_variant)
			continue;
		add_values(&child, sign, &ranges);
		int kept = keep_ranges(r, &ranges, &ret[i++], err);
		VEC_FREE(&ranges.v);
		if (kept < 0)
			return kept;
	}
	return rc < 0 ? rc : 0;
}

int dw_types_variants(struct dw_types *r, const struct dw_die *part, struct cairn_type *t,
		      struct cairn_err *err)
{
	struct arena *arena = types_arena(r->graph);
	struct cairn_variants *v = arena_array(arena, 1, sizeof(*v));
	struct cairn_variant *list = arena_array(arena, t->n_members, sizeof(*list));
	struct dw_die discriminant;
	struct cairn_member at = {0};
	int rc = 0;
	if (!v || !list)
		return err_nomem(err, "variants of types");
	memset(list, 0, t->n_members * sizeof(*list));
	*v = (struct cairn_variants){.of = list};
	bool found = find_discriminant(part, &discriminant);
	if (found) {
		dw_types_place(&discriminant, &at);
		v->bit_off = (int64_t)(at.bit_off - 8 * dw_variants_base(part));
		v->bit_size = at.bit_size;
		rc = dw_types_ref(r, &discriminant, &v->type, err);
	}
	if (rc >= 0)
		rc = read_values(r, part, found && is_signed(&discriminant), t, list, err);
	t->variants = v;
	return rc;
}
