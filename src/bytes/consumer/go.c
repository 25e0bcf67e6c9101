/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go
 *
 *	type Event struct {
 *		Pid  uint32
 *		_    [4]byte
 *		When int64 `align:"when"`
 *	}
 *
 * The compiler aligns scalars to their size up to that of a word, so int64 and float64 to 4 on 386,
 * arm and mips, where C may use 8. There are no unions, bit-fields and attributes. A struct whose
 * last member has no size is one byte longer before it is rounded up: a pointer to that member must
 * not point past the struct.
 */
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"
#include "layout/place.h"

static const struct scalar_name scalars[] = {
	{"bool", CAIRN_C_BOOL, CAIRN_T_INT, CAIRN_ENC_BOOL},
	{"int8", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_SIGNED_CHAR},
	{"uint8", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"byte", CAIRN_C_CHAR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED_CHAR},
	{"int16", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"uint16", CAIRN_C_SHORT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"int32", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"rune", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"uint32", CAIRN_C_INT, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"int64", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"uint64", CAIRN_C_LLONG, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"int", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_SIGNED},
	{"uint", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"uintptr", CAIRN_C_PTR, CAIRN_T_INT, CAIRN_ENC_UNSIGNED},
	{"float32", CAIRN_C_FLOAT, CAIRN_T_FLOAT, 0},
	{"float64", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, 0},
	{"complex64", CAIRN_C_FLOAT, CAIRN_T_FLOAT, CAIRN_ENC_COMPLEX},
	{"complex128", CAIRN_C_DOUBLE, CAIRN_T_FLOAT, CAIRN_ENC_COMPLEX},
	{"Pointer", CAIRN_C_PTR, CAIRN_T_PTR, 0}, /* unsafe.Pointer */
	{0},
};

static uint32_t align_of_scalar(const struct reader *r, const struct scalar_name *s)
{
	uint32_t word = r->abi->scalars[CAIRN_C_PTR].size, size = r->abi->scalars[s->scalar].size;

	return size < word ? size : word;
}

/* ---- types ---- */

static int parse_type(struct reader *r, struct form_type **ret);
static int parse_struct(struct reader *r, struct declared *d);

static int parse_words(struct reader *r, const struct token *at, uint64_t n, struct form_type **ret)
{
	*ret = new_form(r, FORM_WORDS, at);
	if (!*ret)
		return -ENOMEM;
	(*ret)->known = n;
	return 0;
}

/* [N]T, []T, [...]T */
static int parse_array(struct reader *r, struct form_type **ret)
{
	struct form_type *of = NULL;
	struct token at = r->tok;
	int rc = read_token(r);
	struct spot count = spot_of(&r->tok);
	bool slice = at_punct(r, ']');

	rc = rc ? rc : skip_to_close(r);
	rc = rc ? rc : need_punct(r, ']');
	rc = rc ? rc : parse_type(r, &of);
	if (rc || slice)
		return rc ? rc : parse_words(r, &at, 3, ret);
	*ret = array_of(r, of, count, &at);
	return *ret ? 0 : -ENOMEM;
}

static int parse_inline(struct reader *r, struct form_type **ret)
{
	struct token none = {.kind = TOKEN_NAME,
			     .p = r->tok.p,
			     .line = r->tok.line,
			     .line_start = r->tok.line_start,
			     .file = r->tok.file};
	struct declared *d = declare(r, DECLARED_STRUCT, &none);
	int rc = d ? parse_struct(r, d) : -ENOMEM;

	*ret = rc ? NULL : new_form(r, FORM_INLINE, &none);
	if (*ret)
		(*ret)->decl = d;
	return rc ? rc : *ret ? 0 : -ENOMEM;
}

/*
 * map[K]V, chan T, <-chan T, func(T) (U, error), interface{...}: the types inside have no part in
 * the layout.
 */
static int parse_reference(struct reader *r, struct form_type **ret)
{
	struct token at = r->tok;
	bool interface = at_word(r, "interface");
	unsigned long line = r->tok.line;
	int rc = read_token(r);

	while (!rc && !at_end(r) && r->tok.line == line && !at_punct(r, '}') && !at_punct(r, ';') &&
	       !at_punct(r, ')') && r->tok.kind != TOKEN_STRING) {
		bool group = at_punct(r, '(') || at_punct(r, '[') || at_punct(r, '{');

		rc = group ? skip_group(r) : read_token(r);
		if (interface && group)
			break;
	}
	return rc ? rc : parse_words(r, &at, interface ? 2 : 1, ret);
}

/* pkg.Name[T]; those of structs take no room, strings two words. */
static int parse_named(struct reader *r, struct form_type **ret)
{
	struct token package = {0}, name = r->tok;
	int rc = read_token(r);

	if (!rc && at_punct(r, '.')) {
		package = name;
		rc = read_token(r);
		rc = rc ? rc : need_name(r, &name);
	}
	if (!rc && at_punct(r, '[') && !r->begins_line) {
		rc = skip_group(r);
		*ret = rc ? NULL : new_form(r, FORM_UNKNOWN, &name);
	} else if (!rc && !package.n &&
		   (token_is(&name, "string") || token_is(&name, "error") ||
		    token_is(&name, "any"))) {
		return parse_words(r, &name, 2, ret);
	} else if (!rc && package.n && token_is(&package, "structs")) {
		*ret = new_form(r, FORM_EMPTY, &name);
	} else if (!rc) {
		bool foreign = package.n && !token_is(&package, "unsafe");

		*ret = new_form(r, foreign ? FORM_UNKNOWN : FORM_NAME, &name);
	}
	return rc ? rc : *ret ? 0 : -ENOMEM;
}

static int parse_any_type(struct reader *r, struct form_type **ret)
{
	struct form_type *of = NULL;
	struct token at = r->tok;
	int rc;

	if (at_punct(r, '[')) {
		return parse_array(r, ret);
	} else if (at_punct(r, '*')) {
		rc = read_token(r);
		rc = rc ? rc : parse_type(r, &of);
		*ret = rc ? NULL : new_form(r, FORM_POINTER, &at);
		return rc ? rc : *ret ? 0 : -ENOMEM;
	} else if (at_punct(r, '(')) {
		rc = read_token(r);
		rc = rc ? rc : parse_type(r, ret);
		return rc ? rc : need_punct(r, ')');
	} else if (at_word(r, "struct")) {
		return parse_inline(r, ret);
	} else if (at_word(r, "map") || at_word(r, "chan") || at_word(r, "func") ||
		   at_word(r, "interface") || at_punct(r, '<')) {
		return parse_reference(r, ret);
	}
	return at_name(r) ? parse_named(r, ret) : complain(r, "expected a type");
}

static int parse_type(struct reader *r, struct form_type **ret)
{
	int rc = enter_nesting(r);

	if (rc)
		return rc;
	rc = parse_any_type(r, ret);
	leave_nesting(r);
	return rc;
}

/* ---- structs ---- */

static bool ends_field(const struct reader *r)
{
	return r->begins_line || at_punct(r, ';') || at_punct(r, '}') ||
	       r->tok.kind == TOKEN_STRING || at_end(r);
}

/* An embedded type is a field of its own name, and its fields are found through it. */
static int add_embedded(struct reader *r, struct declared *d, struct token *name, bool pointer)
{
	struct form_type *type = NULL;
	struct token package = {0};
	int rc = 0;

	if (at_punct(r, '.')) {
		package = *name;
		rc = read_token(r);
		rc = rc ? rc : need_name(r, name);
	}
	if (rc)
		return rc;
	struct declared_member *m = add_member(r, d, name);
	enum form form = pointer ? FORM_POINTER : FORM_NAME;
	if (package.n && !pointer)
		form = token_is(&package, "structs") ? FORM_EMPTY : FORM_UNKNOWN;
	type = new_form(r, form, name);
	if (!m || !type)
		return -ENOMEM;
	m->type = type;
	m->anonymous = form == FORM_NAME;
	return 0;
}

/* A, B T */
static int parse_names(struct reader *r, struct declared *d, struct token *name)
{
	size_t first = d->members.n;
	struct form_type *type = NULL;
	int rc = add_member(r, d, name) ? 0 : -ENOMEM;

	while (!rc && at_punct(r, ',')) {
		rc = read_token(r);
		rc = rc ? rc : need_name(r, name);
		if (!rc && !add_member(r, d, name))
			rc = -ENOMEM;
	}
	rc = rc ? rc : parse_type(r, &type);
	for (size_t i = first; i < d->members.n; i++)
		d->members.p[i].type = type;
	return rc;
}

static int parse_field(struct reader *r, struct declared *d)
{
	struct token name;
	int pointer = take_punct(r, '*');
	int rc = pointer < 0 ? pointer : need_name(r, &name);

	if (rc)
		return rc;
	if (pointer || at_punct(r, '.') || ends_field(r))
		rc = add_embedded(r, d, &name, pointer);
	else
		rc = parse_names(r, d, &name);
	if (!rc && r->tok.kind == TOKEN_STRING)
		rc = read_token(r);
	if (!rc && !ends_field(r))
		rc = complain(r, "expected the end of a field");
	return rc;
}

/* At the word struct. */
static int parse_struct(struct reader *r, struct declared *d)
{
	int rc = read_token(r);

	rc = rc ? rc : need_punct(r, '{');
	while (!rc && !at_punct(r, '}'))
		rc = at_punct(r, ';') ? read_token(r) : parse_field(r, d);
	return rc ? rc : read_token(r);
}

/* ---- declarations ---- */

/* NAME T, NAME = T; NAME[T any] has no layout of its own. */
static int parse_type_declaration(struct reader *r)
{
	struct declared *d;
	int rc = declare_next(r, DECLARED_ALIAS, &d);

	if (rc)
		return rc;
	if (at_punct(r, '=')) {
		rc = read_token(r);
	} else if (at_punct(r, '[')) {
		struct lexer lx = r->lx;
		struct token tok = r->tok;

		/* [N]T is an array, [T any] is not: two names follow one another. */
		rc = read_token(r);
		bool generic = !rc && at_name(r) && !read_token(r) && at_name(r);
		r->lx = lx;
		r->tok = tok;
		if (generic) {
			d->why_not = "a generic type has no layout of its own";
			return rc ? rc : skip_group(r);
		}
	}
	if (rc)
		return rc;
	if (!at_word(r, "struct"))
		return parse_type(r, &d->type);
	d->kind = DECLARED_STRUCT;
	rc = enter_nesting(r);
	rc = rc ? rc : parse_struct(r, d);
	leave_nesting(r);
	return rc;
}

/* NAME [T] = N; one of a group may have none. */
static int parse_constant(struct reader *r)
{
	struct token name;
	int rc = need_name(r, &name);

	while (!rc && !r->begins_line && !at_punct(r, '=') && !at_punct(r, ')') && !at_end(r))
		rc = read_token(r);
	if (rc || !at_punct(r, '=') || r->begins_line)
		return rc;
	rc = read_token(r);
	struct declared *d = rc ? NULL : declare(r, DECLARED_CONST, &name);
	if (!d)
		return rc ? rc : -ENOMEM;
	d->value = spot_of(&r->tok);
	while (!rc && !r->begins_line && !at_punct(r, ')') && !at_punct(r, ';') && !at_end(r))
		rc = at_punct(r, '(') || at_punct(r, '{') || at_punct(r, '[') ? skip_group(r)
									      : read_token(r);
	return rc;
}

/* type X ..., type ( X ...; Y ... ), and the same of const. */
static int parse_group(struct reader *r, int (*one)(struct reader *r))
{
	int rc = read_token(r);

	if (rc || !at_punct(r, '('))
		return rc ? rc : at_name(r) ? one(r) : 0;
	rc = read_token(r);
	while (!rc && !at_punct(r, ')') && !at_end(r))
		rc = at_name(r) ? one(r) : read_token(r);
	return rc ? rc : take_punct(r, ')') < 0 ? -EBADMSG : 0;
}

static int parse(struct reader *r)
{
	int rc = 0;

	while (!rc && !at_end(r)) {
		if (at_word(r, "type") && r->begins_line)
			rc = parse_group(r, parse_type_declaration);
		else if (at_word(r, "const") && r->begins_line)
			rc = parse_group(r, parse_constant);
		else
			rc = read_token(r);
	}
	return rc;
}

static int place(struct reader *r, struct declared *d, struct cairn_place_record *rec)
{
	uint64_t at = 0;

	rec->align = 1;
	for (size_t i = 0; i < rec->n_members; i++) {
		struct cairn_place_member *m = &rec->members[i];

		at = round_up(at, m->align);
		m->bit_off = 8 * at;
		at += m->size;
		if (at > CAIRN_LAYOUT_SIZE_MAX)
			return complain_at(r, &d->at, -EBADMSG, "larger than 2^40 bytes");
		rec->align = m->align > rec->align ? m->align : rec->align;
		if (i + 1 == rec->n_members && !m->size && at)
			at++;
	}
	rec->size = round_up(at, rec->align);
	return 0;
}

const struct language go_language = {
	.id = CAIRN_LANG_GO,
	.name = "Go",
	.suffix = ".go",
	.parse = parse,
	.place = place,
	.scalars = scalars,
	.align = align_of_scalar,
	.line_comment = '/',
	.shift_binds = true,
};
