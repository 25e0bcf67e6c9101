/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Java, in hello-ebpf's annotations
 *
 *	@Type record Event(@Unsigned int pid, @Size(256) String filename, @Size(4) long[] when) {}
 *
 * Records and classes with @Type are structs, those that extend Union unions, enums enums. The
 * layout is the one that hello-ebpf computes when it reads bytes, with its differences from C (each
 * of them was read in its source):
 *
 *  - the size ends with the last member; only arrays pad their elements. So a nested struct is
 *    smaller than in C, and the member after it comes too early
 *  - @Offset(N) moves one member; the next one is placed as if it had not been moved
 *  - a TypedEnum<T, Short> has 2 bytes; the C that is generated from it has an int
 *  - Int128 swaps its halves
 *
 * Types have one size on every machine: long and pointers 8 bytes. char is one unsigned byte.
 */
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"
#include "layout/place.h"

static const struct scalar_name scalars[] = {
	{"boolean", CAIRN_C_BOOL, CAIRN_T_INT, CAIRN_ENC_BOOL},
	{"byte", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"char", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"short", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"int", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"long", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"float", CAIRN_C_FLOAT, CAIRN_T_FLOAT, 0},
	{"double", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, 0},
	{"Boolean", CAIRN_C_BOOL, CAIRN_T_INT, CAIRN_ENC_BOOL},
	{"Byte", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"Short", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"Integer", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"Long", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	/* Not decoded: its value is no 128-bit integer. */
	{"Int128", CAIRN_C_INT128, CAIRN_T_INT, CAIRN_ENC_OPAQUE},
	{"UInt128", CAIRN_C_INT128, CAIRN_T_INT, CAIRN_ENC_OPAQUE},
	{0},
};

static uint32_t align_of_scalar(const struct reader *r, const struct scalar_name *s)
{
	return r->abi->scalars[s->scalar].size;
}

/* ---- annotations ---- */

enum { SIZES_MAX = 16 }; /* dimensions of one array */

struct annotations {
	bool type, is_unsigned;
	char *name;        /* @Type(name = "..."), @EnumMember(name = "...") */
	struct spot value; /* @EnumMember(value = N) */
	struct spot offset, union_id;
	struct spot sizes[SIZES_MAX];
	size_t n_sizes;
};

static int take_name(struct reader *r, char **ret)
{
	const char *p;
	size_t n;

	if (r->tok.kind != TOKEN_STRING)
		return complain(r, "expected a string");
	string_body(&r->tok, &p, &n);
	*ret = arena_strndup(r->arena, p, n);
	return *ret ? read_token(r) : err_nomem(r->err, "names of types");
}

static int skip_expression(struct reader *r)
{
	int rc = 0;

	while (!rc && !at_punct(r, ',') && !at_punct(r, ')') && !at_punct(r, ';')) {
		if (at_end(r))
			return complain(r, "expected ')', and here the text ends");
		rc = at_punct(r, '(') || at_punct(r, '{') || at_punct(r, '[') ? skip_group(r)
									      : read_token(r);
	}
	return rc;
}

/* name = "event", value = 3, or 3 alone. */
static int parse_argument(struct reader *r, const struct token *of, struct annotations *to)
{
	struct spot value = spot_of(&r->tok);
	struct token key = {0};
	int rc = 0;

	if (at_name(r)) {
		key = r->tok;
		rc = read_token(r);
		if (!rc && at_punct(r, '=')) {
			rc = read_token(r);
			value = spot_of(&r->tok);
		} else {
			key.n = 0;
		}
	}
	if (!rc && key.n && token_is(&key, "name") &&
	    (token_is(of, "Type") || token_is(of, "EnumMember")))
		rc = take_name(r, &to->name);
	if (token_is(of, "Offset"))
		to->offset = value;
	else if (token_is(of, "InlineUnion"))
		to->union_id = value;
	else if (token_is(of, "EnumMember") && (!key.n || token_is(&key, "value")))
		to->value = value;
	else if (token_is(of, "Size") && to->n_sizes < SIZES_MAX)
		to->sizes[to->n_sizes++] = value;
	return rc ? rc : skip_expression(r);
}

/* At the @. */
static int parse_annotation(struct reader *r, struct annotations *to)
{
	struct token name = {0};
	int rc = read_token(r);

	rc = rc ? rc : need_name(r, &name);
	while (!rc && at_punct(r, '.')) {
		rc = read_token(r);
		rc = rc ? rc : need_name(r, &name);
	}
	if (rc)
		return rc;
	to->type |= token_is(&name, "Type");
	to->is_unsigned |= token_is(&name, "Unsigned");
	if (!at_punct(r, '('))
		return 0;
	rc = read_token(r);
	while (!rc && !at_punct(r, ')')) {
		rc = parse_argument(r, &name, to);
		if (!rc && at_punct(r, ';'))
			rc = need_punct(r, ')');
		if (!rc && !at_punct(r, ')'))
			rc = need_punct(r, ',');
	}
	return rc ? rc : read_token(r);
}

static bool is_modifier(const struct reader *r)
{
	static const char *const words[] = {"public",    "private",  "protected", "static",
					    "final",     "abstract", "sealed",    "strictfp",
					    "transient", "volatile", "default",   "synchronized"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (at_word(r, words[i]))
			return true;
	return false;
}

/* Annotations and modifiers before a declaration. */
static int parse_prefix(struct reader *r, struct annotations *to, bool *ret_static)
{
	int rc = 0;

	while (!rc && (at_punct(r, '@') || is_modifier(r))) {
		*ret_static |= at_word(r, "static");
		rc = at_punct(r, '@') ? parse_annotation(r, to) : read_token(r);
		if (!rc && at_word(r, "interface"))
			break;
	}
	return rc;
}

/* ---- types ---- */

/* From after "<" to after ">"; the last name in it is *@ret_last. */
static int parse_type_arguments(struct reader *r, struct token *ret_last)
{
	size_t depth = 1;
	int rc = 0;

	while (!rc && depth) {
		if (at_end(r) || at_punct(r, ';') || at_punct(r, '{'))
			return complain(r, "expected '>'");
		depth += at_punct(r, '<');
		depth -= at_punct(r, '>');
		if (at_name(r))
			*ret_last = r->tok;
		rc = read_token(r);
	}
	return rc;
}

/* A name with its package; *@ret its last part, *@ret_last the last name of its type arguments. */
static int parse_qualified(struct reader *r, struct token *ret, struct token *ret_last)
{
	int rc = need_name(r, ret);

	while (!rc && at_punct(r, '.')) {
		rc = read_token(r);
		rc = rc ? rc : need_name(r, ret);
	}
	if (!rc && at_punct(r, '<')) {
		rc = read_token(r);
		rc = rc ? rc : parse_type_arguments(r, ret_last);
	}
	return rc;
}

/* [] and @Size(4) [], outermost first; *@ret_n of them. */
static int parse_dimensions(struct reader *r, struct annotations *a, size_t *ret_n)
{
	int rc = 0;

	while (!rc && (at_punct(r, '[') || at_punct(r, '@'))) {
		if (at_punct(r, '@')) {
			rc = parse_annotation(r, a);
			continue;
		}
		rc = read_token(r);
		rc = rc ? rc : need_punct(r, ']');
		if (++*ret_n > SIZES_MAX)
			return complain(r, "an array of more than %d dimensions", SIZES_MAX);
	}
	return rc;
}

/* A String has the number of bytes that the last @Size gives. */
static int build_type(struct reader *r, const struct token *name, const struct annotations *a,
		      size_t dimensions, struct form_type **ret)
{
	bool string = token_is(name, "String"), pointer = token_is(name, "Ptr");
	struct form_type *t;

	bool sized = a->n_sizes >= dimensions + string;
	t = new_form(r, !sized ? FORM_UNKNOWN : pointer ? FORM_POINTER : FORM_NAME, name);
	if (!t)
		return -ENOMEM;
	t->why = "it has no @Size for each of its dimensions";
	t->is_unsigned = a->is_unsigned;
	t->scalar = string ? "byte" : NULL;
	for (size_t i = sized ? dimensions + string : 0; i-- > 0 && t;)
		t = array_of(r, t, a->sizes[i], name);
	*ret = t;
	return t ? 0 : -ENOMEM;
}

/*
 * A type and the name declared with it; *@ret_name has no length when none follows (a constructor).
 */
static int parse_typed_name(struct reader *r, struct annotations *a, struct form_type **ret,
			    struct token *ret_name)
{
	struct token type, last;
	size_t dimensions = 0;
	int rc = parse_qualified(r, &type, &last);

	*ret_name = (struct token){0};
	*ret = NULL;
	rc = rc ? rc : parse_dimensions(r, a, &dimensions);
	if (rc || !at_name(r))
		return rc;
	rc = need_name(r, ret_name);
	rc = rc ? rc : parse_dimensions(r, a, &dimensions);
	/* A method or a constant has no use for sizes. */
	if (rc || (at_punct(r, '(') || at_punct(r, '=')))
		return rc;
	return build_type(r, &type, a, dimensions, ret);
}

static int add_typed(struct reader *r, struct declared *d, const struct annotations *a,
		     struct form_type *type, const struct token *name)
{
	struct declared_member *m = add_member(r, d, name);

	if (!m)
		return -ENOMEM;
	m->type = type;
	m->offset = a->offset;
	m->union_id = a->union_id;
	return 0;
}

/* ---- declarations ---- */

static int parse_constant(struct reader *r, const struct token *name)
{
	struct declared *d = declare(r, DECLARED_CONST, name);
	int rc = d ? read_token(r) : -ENOMEM;

	if (!rc)
		d->value = spot_of(&r->tok);
	return rc;
}

/* <T> extends Base implements A<B>: whether Union is among them, and the last type argument. */
static int parse_heritage(struct reader *r, struct declared *d, bool *ret_union,
			  struct token *ret_last)
{
	int rc = 0;

	if (at_punct(r, '<') && d)
		d->why_not = "a struct with type parameters";
	while (!rc && !at_punct(r, '{') && !at_punct(r, '(') && !at_end(r)) {
		*ret_union |= at_word(r, "Union");
		if (at_punct(r, '<')) {
			rc = read_token(r);
			rc = rc ? rc : parse_type_arguments(r, ret_last);
		} else {
			rc = read_token(r);
		}
	}
	return rc;
}

static int parse_components(struct reader *r, struct declared *d)
{
	int rc = need_punct(r, '(');

	while (!rc && !at_punct(r, ')')) {
		struct annotations a = {0};
		struct form_type *type;
		struct token name;
		bool is_static = false;

		rc = parse_prefix(r, &a, &is_static);
		rc = rc ? rc : parse_typed_name(r, &a, &type, &name);
		if (!rc && !type)
			rc = complain(r, "expected the name of a component");
		rc = rc ? rc : add_typed(r, d, &a, type, &name);
		if (!rc && !at_punct(r, ')'))
			rc = need_punct(r, ',');
	}
	return rc ? rc : read_token(r);
}

static int parse_record(struct reader *r, struct declared *d)
{
	struct token last;
	bool is_union = false;
	int rc = parse_heritage(r, d, &is_union, &last);

	return rc ? rc : parse_components(r, d);
}

/* A method's parameters, throws, body; or the text after a field, to the semicolon. */
static int skip_rest(struct reader *r)
{
	int rc = 0;

	while (!rc && !at_punct(r, ';') && !at_punct(r, '}')) {
		bool body = at_punct(r, '{');

		if (at_end(r))
			return complain(r, "expected '}', and here the text ends");
		rc = body || at_punct(r, '(') || at_punct(r, '[') ? skip_group(r) : read_token(r);
		if (body)
			return rc;
	}
	return rc ? rc : take_punct(r, ';') < 0 ? -EBADMSG : 0;
}

static bool begins_declaration(const struct reader *r)
{
	return at_word(r, "record") || at_word(r, "class") || at_word(r, "enum") ||
	       at_word(r, "interface");
}

static int parse_declaration(struct reader *r, const struct annotations *a);

/* int a, b; in a class: all of them, as fields of @d unless they are static. */
static int parse_field(struct reader *r, struct declared *d, struct annotations *a, bool is_static)
{
	struct form_type *type;
	struct token name;
	int rc = parse_typed_name(r, a, &type, &name);

	if (!rc && at_punct(r, '=') && is_static)
		rc = parse_constant(r, &name);
	while (!rc && type && !is_static) {
		rc = add_typed(r, d, a, type, &name);
		if (rc || !at_punct(r, ','))
			break;
		rc = read_token(r);
		rc = rc ? rc : need_name(r, &name);
	}
	return rc ? rc : skip_rest(r);
}

static int parse_class(struct reader *r, struct declared *d)
{
	struct token last;
	bool is_union = false;
	int rc = parse_heritage(r, d, &is_union, &last);

	d->kind = is_union ? DECLARED_UNION : DECLARED_STRUCT;
	rc = rc ? rc : need_punct(r, '{');
	while (!rc && !at_punct(r, '}')) {
		struct annotations a = {0};
		bool is_static = false;

		rc = parse_prefix(r, &a, &is_static);
		if (rc)
			break;
		if (begins_declaration(r))
			rc = parse_declaration(r, &a);
		else if (at_punct(r, ';'))
			rc = read_token(r);
		else if (at_punct(r, '{'))
			rc = skip_group(r);
		else if (at_punct(r, '<'))
			rc = skip_rest(r);
		else
			rc = at_end(r) ? complain(r, "expected '}', and here the text ends")
				       : parse_field(r, d, &a, is_static);
	}
	return rc ? rc : read_token(r);
}

static int parse_enum_member(struct reader *r, struct declared *d)
{
	struct annotations a = {0};
	struct declared_value v = {0};
	struct token name;
	bool is_static = false;
	int rc = parse_prefix(r, &a, &is_static);

	rc = rc ? rc : need_name(r, &name);
	if (!rc && at_punct(r, '('))
		rc = skip_group(r);
	if (!rc && at_punct(r, '{'))
		rc = skip_group(r);
	if (rc)
		return rc;
	v.name = a.name ? a.name : copy_token(r, &name);
	v.value = a.value;
	return v.name && VEC_ADD(&d->values, v) ? 0 : err_nomem(r->err, "enumerators");
}

/* enum Kind implements Enum<Kind>, TypedEnum<Kind, Short> */
static int parse_enum(struct reader *r, struct declared *d)
{
	struct token last = {0};
	bool is_union = false;
	int rc = parse_heritage(r, d, &is_union, &last);

	if (!rc && (token_is(&last, "Byte") || token_is(&last, "Short") ||
		    token_is(&last, "Integer") || token_is(&last, "Long"))) {
		d->type = new_form(r, FORM_NAME, &last);
		rc = d->type ? 0 : -ENOMEM;
	}
	d->kind = DECLARED_ENUM;
	rc = rc ? rc : need_punct(r, '{');
	while (!rc && !at_punct(r, '}') && !at_punct(r, ';')) {
		rc = parse_enum_member(r, d);
		if (!rc && !at_punct(r, '}') && !at_punct(r, ';'))
			rc = need_punct(r, ',');
	}
	rc = rc ? rc : skip_to_close(r);
	return rc ? rc : read_token(r);
}

/*
 * At the word record, class or enum. Without @Type it is no struct, and its body is gone through
 * like any text.
 */
static int parse_declaration(struct reader *r, const struct annotations *a)
{
	struct token word = r->tok, name;
	struct declared *d;
	int rc = read_token(r);

	if (rc || !a->type || !at_name(r) || token_is(&word, "interface"))
		return rc;
	rc = need_name(r, &name);
	rc = rc ? rc : enter_nesting(r);
	if (rc)
		return rc;
	d = declare_as(r, DECLARED_STRUCT, &name, a->name);
	if (!d)
		rc = -ENOMEM;
	else if (token_is(&word, "record"))
		rc = parse_record(r, d);
	else
		rc = token_is(&word, "enum") ? parse_enum(r, d) : parse_class(r, d);
	leave_nesting(r);
	return rc;
}

/* static final int N = 16; */
static int parse_top_constant(struct reader *r)
{
	struct token name = {0};
	int rc = read_token(r);

	for (int i = 0; i < 3 && !rc && at_name(r); i++) {
		name = r->tok;
		rc = read_token(r);
	}
	return !rc && name.n && at_punct(r, '=') ? parse_constant(r, &name) : rc;
}

static int parse(struct reader *r)
{
	int rc = 0;

	while (!rc && !at_end(r)) {
		struct annotations a = {0};
		bool is_static = false;

		if (at_word(r, "final")) {
			rc = parse_top_constant(r);
			continue;
		}
		while (!rc && (at_punct(r, '@') || (is_modifier(r) && !at_word(r, "final"))))
			rc = at_punct(r, '@') ? parse_annotation(r, &a) : read_token(r);
		if (!rc && at_word(r, "final") && a.type)
			rc = parse_prefix(r, &a, &is_static);
		if (rc || at_end(r) || at_word(r, "final"))
			continue;
		rc = begins_declaration(r) ? parse_declaration(r, &a) : read_token(r);
	}
	return rc;
}

/* ---- placing ---- */

/* The begin of the run of members with the same @InlineUnion, or the member itself. */
static int union_of(struct reader *r, const struct declared *d, size_t i, int64_t *ret)
{
	*ret = -1;
	return d->members.p[i].union_id.p ? constant_at(r, d->members.p[i].union_id, ret) : 0;
}

static int offset_of(struct reader *r, const struct declared_member *m, uint64_t natural,
		     uint64_t *ret)
{
	int64_t asked;
	int rc;

	*ret = natural;
	if (!m->offset.p)
		return 0;
	rc = constant_at(r, m->offset, &asked);
	if (!rc &&
	    (asked < 0 || (uint64_t)asked < natural || (uint64_t)asked > CAIRN_LAYOUT_SIZE_MAX))
		rc = complain_at(r, &m->at, -EBADMSG,
				 "@Offset(%lld), but the member comes to lie at %llu",
				 (long long)asked, (unsigned long long)natural);
	*ret = rc ? 0 : (uint64_t)asked;
	return rc;
}

/*
 * hello-ebpf's layoutMembers(): the running offset knows nothing of @Offset, and nothing is padded
 * at the end.
 */
static int place(struct reader *r, struct declared *d, struct cairn_place_record *rec)
{
	uint64_t next = 0, end = 0, start = 0;
	int64_t in_union = -1;

	rec->align = 1;
	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];
		uint64_t at, asked;
		int64_t id;
		int rc = union_of(r, d, i, &id);

		/*
		 * An inline union begins where its first member would, aligned as the strictest of
		 * them.
		 */
		bool joins = id >= 0 && id == in_union;
		at = rec->is_union ? 0 : joins ? start : round_up(next, m->align);
		in_union = id;
		start = at;
		rc = rc ? rc : offset_of(r, &d->members.p[i], at, &asked);
		if (rc)
			return rc;
		m->bit_off = 8 * asked;
		next = max_u64(joins || rec->is_union ? next : 0, at + m->size);
		end = max_u64(end, asked + m->size);
		rec->align = m->align > rec->align ? m->align : rec->align;
		if (end > CAIRN_LAYOUT_SIZE_MAX)
			return complain_at(r, &d->at, -EBADMSG, "larger than 2^40 bytes");
	}
	rec->size = end;
	return 0;
}

const struct language java_language = {
	.id = CAIRN_LANG_JAVA,
	.name = "Java",
	.suffix = ".java",
	.parse = parse,
	.place = place,
	.scalars = scalars,
	.align = align_of_scalar,
	.line_comment = '/',
};
