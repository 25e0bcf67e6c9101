/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enums
 *
 * An enum is an int, or unsigned when nothing in it is negative, unless a value needs more, it is
 * packed, or its type is written down ("enum e : char").
 */
#include <errno.h>

#include "decl/parse.h"

struct values {
	VEC(struct cairn_enumerator) v;
	int64_t min;
	uint64_t max;
	int64_t last;
	bool last_unsigned; /* it is above INT64_MAX */
};

static void widen(struct values *to, int64_t v, bool is_unsigned)
{
	if (v < 0 && !is_unsigned)
		to->min = v < to->min ? v : to->min;
	else
		to->max = (uint64_t)v > to->max ? (uint64_t)v : to->max;
	to->last = v;
	to->last_unsigned = is_unsigned;
}

/* The type of a constant: int if it fits. */
static int type_of_value(struct parser *p, int64_t v, bool is_unsigned, uint32_t *ret)
{
	bool small = !is_unsigned || v >= 0;

	if (small && v >= INT32_MIN && v <= INT32_MAX)
		return node_basic(p, B_INT, ret);
	if (small && v >= 0 && v <= UINT32_MAX)
		return node_basic(p, B_UINT, ret);
	return node_basic(p, is_unsigned ? B_ULLONG : B_LLONG, ret);
}

static int parse_enumerator(struct parser *p, struct values *to)
{
	struct token name = p->tok;
	struct attributes ignored = {0};
	int64_t v = to->v.n ? (int64_t)((uint64_t)to->last + 1) : 0;
	bool is_unsigned = to->last_unsigned || (to->v.n && to->last == INT64_MAX);
	int rc = next(p);

	rc = rc ? rc : parse_attributes(p, &ignored);
	if (!rc && is_punct(p, '=')) {
		rc = next(p);
		rc = rc ? rc : parse_constant(p, &v, &is_unsigned);
		is_unsigned = is_unsigned && v < 0;
	}
	if (rc)
		return rc;
	struct symbol s = {.kind = SYMBOL_ENUMERATOR, .name = dup_name(p, &name), .value = v};
	struct cairn_enumerator e = {s.name, v};
	if (!s.name || !VEC_ADD(&to->v, e))
		return err_nomem(p->err, "enumerators");
	widen(to, v, is_unsigned);
	rc = type_of_value(p, v, is_unsigned, &s.type);
	return rc ? rc : symbol_add(p, &s);
}

static int parse_list(struct parser *p, struct values *to)
{
	int rc = expect(p, '{');

	while (!rc && !is_punct(p, '}')) {
		if (p->tok.kind != TOKEN_NAME)
			return fail_here(p, "expected the name of an enumerator or '}'");
		rc = parse_enumerator(p, to);
		if (!rc && !is_punct(p, '}'))
			rc = expect(p, ',');
	}
	return rc ? rc : next(p);
}

static unsigned int bytes_for(const struct values *v)
{
	for (unsigned int bytes = 1; bytes < 8; bytes *= 2) {
		unsigned int bits = 8 * bytes;

		if (v->min >= -(INT64_C(1) << (bits - 1)) &&
		    v->max < UINT64_C(1) << (bits - (v->min < 0)))
			return bytes;
	}
	return 8;
}

static void choose_type(const struct parser *p, const struct values *v, bool packed,
			struct cairn_type *t)
{
	static const enum cairn_scalar by_bytes[] = {
		[1] = CAIRN_C_CHAR, [2] = CAIRN_C_SHORT, [4] = CAIRN_C_INT, [8] = CAIRN_C_LLONG};
	unsigned int bytes = bytes_for(v);

	if (!packed && bytes < 4)
		bytes = 4;
	/* Microsoft's are always int, packed or not. */
	if (p->abi->ms)
		bytes = 4;
	t->size = p->abi->scalars[by_bytes[bytes]].size;
	t->abi_align = p->abi->scalars[by_bytes[bytes]].align;
	t->encoding = v->min < 0 || p->abi->ms ? CAIRN_ENC_SIGNED : CAIRN_ENC_UNSIGNED;
}

/* enum e : unsigned char */
static int parse_underlying(struct parser *p, struct cairn_type *t)
{
	struct specifiers specs;
	int rc = next(p);

	rc = rc ? rc : parse_specifiers(p, &specs);
	if (rc)
		return rc;
	const struct cairn_type *under = resolve(p, specs.type);
	if (under->kind != CAIRN_T_INT || under->encoding == CAIRN_ENC_OPAQUE)
		return fail_here(p, "an enum must have an integer type");
	t->size = under->size;
	t->abi_align = align_of(p, specs.type);
	bool is_unsigned = under->encoding == CAIRN_ENC_UNSIGNED ||
			   under->encoding == CAIRN_ENC_UNSIGNED_CHAR ||
			   under->encoding == CAIRN_ENC_BOOL;
	t->encoding = is_unsigned ? CAIRN_ENC_UNSIGNED : CAIRN_ENC_SIGNED;
	t->declaration = false;
	return 0;
}

static int keep(struct parser *p, const struct values *v, struct cairn_type *t)
{
	struct cairn_enumerator *copy = arena_array(p->arena, v->v.n, sizeof(*copy));

	if (!copy)
		return err_nomem(p->err, "enumerators");
	for (size_t i = 0; i < v->v.n; i++)
		copy[i] = v->v.p[i];
	t->enumerators = copy;
	t->n_enumerators = (uint32_t)v->v.n;
	t->declaration = false;
	return 0;
}

static int parse_body(struct parser *p, struct attributes *attrs, struct cairn_type *t)
{
	struct values values = {0};
	bool has_type = !t->declaration;
	int rc = parse_list(p, &values);

	rc = rc ? rc : parse_attributes(p, attrs);
	if (!rc && !has_type)
		choose_type(p, &values, attrs->packed, t);
	if (!rc && attrs->aligned > t->abi_align)
		t->align = t->abi_align = attrs->aligned;
	rc = rc ? rc : keep(p, &values, t);
	VEC_FREE(&values.v);
	return rc;
}

/* "e :" and "e {" and the text between the braces. */
static int parse_rest(struct parser *p, struct attributes *attrs, const struct token *name,
		      uint32_t id)
{
	struct cairn_type t = *cairn_types_get(p->types, id);
	bool defined = t.n_enumerators;
	int rc = 0;

	/* A colon after a known enum begins the width of a bit-field: "enum e : 3;" */
	if (is_punct(p, ':')) {
		const struct token *after = peek_token(p);

		if (!after)
			return p->peek_error;
		if (begins_type(p, after))
			rc = parse_underlying(p, &t);
	}
	if (!rc && is_punct(p, '{') && defined)
		return fail_at(p, name, -EBADMSG, "defined a second time");
	if (!rc && is_punct(p, '{'))
		rc = parse_body(p, attrs, &t);
	if (!rc)
		types_set(p->types, id, &t);
	return rc;
}

int parse_enum(struct parser *p, uint32_t *ret)
{
	struct attributes attrs = {0};
	struct token name = {0};
	int rc = enter(p);

	if (rc)
		return rc;
	rc = parse_attributes(p, &attrs);
	if (!rc && p->tok.kind == TOKEN_NAME) {
		name = p->tok;
		rc = next(p);
	}
	if (!rc && !name.n && !is_punct(p, '{') && !is_punct(p, ':'))
		rc = fail_here(p, "expected the name of an enum or '{'");
	rc = rc ? rc : node_tagged(p, CAIRN_T_ENUM, &name, ret);
	rc = rc ? rc : parse_rest(p, &attrs, &name, *ret);
	leave(p);
	return rc;
}
