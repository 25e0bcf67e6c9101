/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the same bytes mean the same
 *
 * In one language: the kinds must be equal, integers of equal sign, pointers point to types of
 * equal name. Typedefs and the names of integers do not matter: a long and a long long of 8 bytes
 * are read alike.
 *
 * Another language has other types for it. A pointer is an integer there, an enum the integer that
 * stores it, a union an array of bytes or one of its members, and a wrapper ("struct Pid(u32)") is
 * its content. A type that would give another value, or would be undefined there, is still a
 * difference: a bool or an enum for a member that the program stores as an integer.
 */
#include "layout/compare.h"
#include "layout/view.h"

static const enum cairn_change_kind SAME = CAIRN_CHANGE_N_KINDS;

static bool is_signed(const struct cairn_type *t)
{
	return t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR;
}

static bool is_pointer(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF;
}

uint32_t innermost(const struct compare *c, int side, uint32_t id)
{
	const struct cairn_type *t = compare_type(c, side, id);

	for (unsigned int i = 0; i < NEST_MAX && t->kind == CAIRN_T_ARRAY; i++)
		t = compare_type(c, side, id = t->ref);
	return cairn_types_resolve(c->types[side], id);
}

/* The type that a struct only wraps. */
static const struct cairn_type *unwrap(const struct compare *c, int side,
				       const struct cairn_type *t)
{
	for (unsigned int i = 0; i < NEST_MAX; i++) {
		if (!is_aggregate(t) || t->n_members != 1 || t->members[0].bit_size ||
		    cairn_types_size(c->types[side], t->members[0].type) != t->size)
			break;
		t = compare_type(c, side, t->members[0].type);
	}
	return t;
}

/*
 * The struct that the one called @id does nothing but wrap, where @other's does not: struct
 * Held(Inner).
 */
static uint32_t unwrap_record(const struct compare *c, int side, uint32_t id, uint32_t other)
{
	for (unsigned int i = 0; i < NEST_MAX && compare_type(c, !side, other)->n_members != 1;
	     i++) {
		const struct cairn_type *t = compare_type(c, side, id);
		const struct cairn_type *in =
			t->n_members == 1 ? compare_type(c, side, t->members[0].type) : t;

		if (in == t || !is_aggregate(in) || in->size != t->size)
			break;
		id = cairn_types_resolve(c->types[side], t->members[0].type);
	}
	return id;
}

static bool is_byte(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_INT && t->size == 1 && t->encoding != CAIRN_ENC_BOOL;
}

static bool is_plain_char(const struct cairn_type *t)
{
	return is_byte(t) && t->name && !strcmp(t->name, "char");
}

/* An integer can hold every value that the enum has. */
static bool holds_enum(const struct cairn_type *integer, const struct cairn_type *e)
{
	if (is_signed(integer) == is_signed(e))
		return true;
	for (uint32_t i = 0; i < e->n_enumerators; i++)
		if (e->enumerators[i].value < 0 ||
		    (integer->size < 8 && e->enumerators[i].value >> (8 * integer->size - 1)))
			return false;
	return true;
}

/* @a is stored, @b believed; their kinds differ. */
static bool may_stand_for(const struct cairn_type *a, const struct cairn_type *b)
{
	if (b->kind == CAIRN_T_INT && b->encoding != CAIRN_ENC_BOOL &&
	    b->encoding != CAIRN_ENC_OPAQUE)
		return is_pointer(a) || (a->kind == CAIRN_T_ENUM && holds_enum(b, a));
	return is_pointer(b) && a->kind == CAIRN_T_INT && !is_signed(a);
}

static enum cairn_change_kind compare_ints(const struct compare *c, const struct cairn_type *a,
					   const struct cairn_type *b)
{
	bool bool_a = a->encoding == CAIRN_ENC_BOOL, bool_b = b->encoding == CAIRN_ENC_BOOL;

	if ((a->encoding == CAIRN_ENC_OPAQUE) != (b->encoding == CAIRN_ENC_OPAQUE))
		return CAIRN_CHANGE_TYPE;
	/* 0 and 1 are read as well by an integer. */
	if (bool_a != bool_b)
		return c->opts.other_language && bool_a ? SAME : CAIRN_CHANGE_TYPE;
	return is_signed(a) == is_signed(b) ? SAME : CAIRN_CHANGE_SIGN;
}

static enum cairn_change_kind compare_pointers(const struct compare *c, const struct cairn_type *a,
					       const struct cairn_type *b)
{
	char name[2][256];

	if (c->opts.other_language)
		return SAME;
	/* A typedef is another word for the same. */
	uint32_t to_a = cairn_types_resolve(c->types[0], a->ref),
		 to_b = cairn_types_resolve(c->types[1], b->ref);
	if (compare_type(c, 0, to_a)->kind != compare_type(c, 1, to_b)->kind)
		return CAIRN_CHANGE_TYPE;
	if (!is_aggregate(compare_type(c, 0, to_a)))
		return SAME;
	cairn_types_name(c->types[0], to_a, name[0], sizeof(name[0]));
	cairn_types_name(c->types[1], to_b, name[1], sizeof(name[1]));
	return strcmp(name[0], name[1]) ? CAIRN_CHANGE_TYPE : SAME;
}

static enum cairn_change_kind compare_kinds(const struct compare *c, const struct cairn_type *a,
					    const struct cairn_type *b)
{
	if (is_pointer(a) && is_pointer(b))
		return compare_pointers(c, a, b);
	if (a->kind != b->kind)
		return c->opts.other_language && may_stand_for(a, b) ? SAME : CAIRN_CHANGE_TYPE;
	switch (a->kind) {
	case CAIRN_T_INT:
		return compare_ints(c, a, b);
	case CAIRN_T_FLOAT:
		return a->encoding == b->encoding ? SAME : CAIRN_CHANGE_TYPE;
	default:
		return SAME;
	}
}

/*
 * Bytes may be read as bytes, whatever they mean to the program, and the sign of a string's bytes
 * does not matter.
 */
bool are_bytes(const struct compare *c, uint32_t b)
{
	return c->opts.other_language && compare_type(c, 1, b)->kind == CAIRN_T_ARRAY &&
	       is_byte(compare_type(c, 1, innermost(c, 1, b)));
}

bool inner_records(const struct compare *c, uint32_t a, uint32_t b, uint32_t ret[2])
{
	if ((compare_type(c, 0, a)->kind == CAIRN_T_ARRAY) !=
	    (compare_type(c, 1, b)->kind == CAIRN_T_ARRAY))
		return false;
	ret[0] = innermost(c, 0, a);
	ret[1] = innermost(c, 1, b);
	if (!is_aggregate(compare_type(c, 0, ret[0])) || !is_aggregate(compare_type(c, 1, ret[1])))
		return false;
	if (c->opts.other_language) {
		ret[0] = unwrap_record(c, 0, ret[0], ret[1]);
		ret[1] = unwrap_record(c, 1, ret[1], ret[0]);
	}
	return true;
}

static enum cairn_change_kind compare_plain(const struct compare *c, uint32_t id_a, uint32_t id_b)
{
	const struct cairn_type *a = compare_type(c, 0, id_a), *b = compare_type(c, 1, id_b);

	if (are_bytes(c, id_b))
		return SAME;
	if (a->kind == CAIRN_T_ARRAY && b->kind == CAIRN_T_ARRAY) {
		a = compare_type(c, 0, innermost(c, 0, id_a));
		b = compare_type(c, 1, innermost(c, 1, id_b));
		if (a->size != b->size)
			return CAIRN_CHANGE_TYPE;
		/* Text, on machines whose char differs. */
		if (is_plain_char(a) && is_plain_char(b))
			return SAME;
	}
	if (is_aggregate(a) && is_aggregate(b))
		return SAME;
	if (c->opts.other_language) {
		a = unwrap(c, 0, a);
		b = unwrap(c, 1, b);
	}
	enum cairn_change_kind kind = compare_kinds(c, a, b);
	if (kind == SAME && a->size > 1 &&
	    a->byte_swapped != (b->byte_swapped != c->opts.byte_order_differs))
		kind = CAIRN_CHANGE_BYTE_ORDER;
	return kind;
}

bool is_one_arm(const struct compare *c, uint32_t id_a, uint32_t id_b)
{
	const struct cairn_type *a = compare_type(c, 0, id_a), *b = compare_type(c, 1, id_b);

	if (!c->opts.other_language || a->kind != CAIRN_T_UNION || is_aggregate(b))
		return false;
	for (uint32_t i = 0; i < a->n_members; i++) {
		uint32_t arm = a->members[i].type;

		if (!a->members[i].bit_size &&
		    cairn_types_size(c->types[0], arm) == cairn_types_size(c->types[1], id_b) &&
		    compare_plain(c, arm, id_b) == SAME)
			return true;
	}
	return false;
}

enum cairn_change_kind compare_values(const struct compare *c, uint32_t id_a, uint32_t id_b)
{
	return is_one_arm(c, id_a, id_b) ? SAME : compare_plain(c, id_a, id_b);
}

/* ---- enumerators ---- */

/* An enumerator's value as far as both sides know it. */
static uint64_t known_value(const struct compare *c, const struct cairn_enumerator *e)
{
	return c->unsure_sign ? (uint32_t)e->value : (uint64_t)e->value;
}

static const struct cairn_enumerator *find_enumerator(const struct compare *c,
						      const struct cairn_type *in,
						      const struct cairn_enumerator *e,
						      const struct map *index)
{
	uint64_t at;

	if (!map_get(index, c->opts.other_language ? known_value(c, e) : map_hash_str(e->name),
		     &at))
		return NULL;
	/* Two names with one hash: the right one is then somewhere else. */
	if (c->opts.other_language || !strcmp(in->enumerators[at].name, e->name))
		return &in->enumerators[at];
	for (uint32_t i = 0; i < in->n_enumerators; i++)
		if (!strcmp(in->enumerators[i].name, e->name))
			return &in->enumerators[i];
	return NULL;
}

static bool index_enumerators(const struct compare *c, const struct cairn_type *t, struct map *ret)
{
	for (uint32_t i = t->n_enumerators; i-- > 0;) {
		const struct cairn_enumerator *e = &t->enumerators[i];

		if (map_put(ret, c->opts.other_language ? known_value(c, e) : map_hash_str(e->name),
			    i) < 0)
			return false;
	}
	return true;
}

/* If several have one name, which no compiler accepts, the first counts. */
void compare_enums(struct compare *c, const struct cairn_type *a, const struct cairn_type *b)
{
	struct map in_a = {0}, in_b = {0};

	c->unsure_sign = a->unsure_sign || b->unsure_sign;
	if (!index_enumerators(c, a, &in_a) || !index_enumerators(c, b, &in_b))
		c->no_memory = true;
	for (uint32_t i = 0; i < a->n_enumerators && !c->no_memory; i++) {
		const struct cairn_enumerator *e = &a->enumerators[i],
					      *other = find_enumerator(c, b, e, &in_b);

		if (find_enumerator(c, a, e, &in_a) != e)
			continue;
		if (!other)
			change_add_enumerator(c, CAIRN_CHANGE_REMOVED, e, NULL);
		else if (known_value(c, other) != known_value(c, e))
			change_add_enumerator(c, CAIRN_CHANGE_ENUMERATOR, e, other);
	}
	for (uint32_t i = 0; i < b->n_enumerators && !c->no_memory; i++)
		if (!find_enumerator(c, a, &b->enumerators[i], &in_a))
			change_add_enumerator(c, CAIRN_CHANGE_ADDED, NULL, &b->enumerators[i]);
	map_fini(&in_a);
	map_fini(&in_b);
}
