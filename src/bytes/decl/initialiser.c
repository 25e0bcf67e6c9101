/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Initialisers
 *
 * They have no layout, but for arrays that are as long as their initialiser:
 *
 *	static const char *const names[] = {"a", [3] = "d", "e"};	five
 *	struct counters { long n[sizeof(names) / sizeof(names[0])]; };
 *
 * Elements that are arrays and structs may stand without braces; then they are not counted, and the
 * array's size is not known.
 */
#include "decl/expr.h"

#include <errno.h>

int skip_initialiser(struct parser *p)
{
	int rc = 0;

	while (!rc && !is_punct(p, ',') && !is_punct(p, ';') && !is_punct(p, '}')) {
		if (p->tok.kind == TOKEN_END)
			return fail_here(p, "expected ';', and here the text ends");
		rc = is_punct(p, '(') || is_punct(p, '[') || is_punct(p, '{') ? skip_balanced(p)
									      : next(p);
	}
	return rc;
}

struct counting {
	bool scalars; /* the elements are: each stands alone */
	bool known;
	uint64_t at, count;
};

/* [3] = and [3 ... 5] = */
static int parse_designator(struct parser *p, struct counting *c)
{
	int64_t n = 0;
	int rc = next(p);

	rc = rc ? rc : parse_constant(p, &n, NULL);
	if (!rc && is_punct(p, P_ELLIPSIS)) {
		rc = next(p);
		rc = rc ? rc : parse_constant(p, &n, NULL);
	}
	rc = rc ? rc : expect(p, ']');
	if (rc)
		return rc;
	/* [3].member and [3][1] belong to the same element, and so may the next ones. */
	if (n < 0 || n >= INT64_C(1) << 40 || !is_punct(p, '='))
		c->known = false;
	c->at = (uint64_t)n;
	return is_punct(p, '=') ? next(p) : 0;
}

static int count_element(struct parser *p, struct counting *c)
{
	int rc = is_punct(p, '[') ? parse_designator(p, c) : 0;

	if (!rc && !c->scalars && !is_punct(p, '{'))
		c->known = false;
	rc = rc ? rc : skip_initialiser(p);
	c->at++;
	c->count = c->at > c->count ? c->at : c->count;
	return rc;
}

/* From one brace to the other. */
static int count_list(struct parser *p, struct counting *c)
{
	int rc = expect(p, '{');

	while (!rc && !is_punct(p, '}')) {
		rc = count_element(p, c);
		if (!rc && is_punct(p, ';'))
			return fail_here(p, "expected '}'");
		if (!rc && !is_punct(p, '}'))
			rc = expect(p, ',');
	}
	return rc ? rc : next(p);
}

/* A string as the whole of it */
static int count_string(struct parser *p, uint64_t element, struct counting *c)
{
	struct value v;
	int rc = parse_string(p, &v);

	if (rc)
		return rc;
	const struct cairn_type *t = cairn_types_get(p->types, v.type);
	c->count = t->count;
	c->known =
		element && t->size / t->count == element && (is_punct(p, ';') || is_punct(p, ','));
	return skip_initialiser(p);
}

int count_initialiser(struct parser *p, uint32_t *type)
{
	struct cairn_type t = *resolve(p, *type);
	const struct cairn_type *of = resolve(p, t.ref);
	struct counting c = {.known = true,
			     .scalars = of->kind != CAIRN_T_STRUCT && of->kind != CAIRN_T_UNION &&
					(of->kind != CAIRN_T_ARRAY || of->vector)};
	uint64_t size = 0;
	int rc;

	if (!size_of(p, t.ref, &size))
		c.known = false;
	if (is_punct(p, '{')) {
		const struct token *after = peek_token(p);

		if (!after)
			return p->peek_error;
		/* {"text"} is one string, too. */
		c.known = c.known && !(after->kind == TOKEN_STRING && of->kind == CAIRN_T_INT);
		rc = count_list(p, &c);
	} else if (p->tok.kind == TOKEN_STRING) {
		rc = count_string(p, size, &c);
	} else {
		c.known = false;
		rc = skip_initialiser(p);
	}
	if (rc)
		return rc;
	c.known = c.known && (!size || c.count <= CAIRN_LAYOUT_SIZE_MAX / size);
	t.has_count = c.known;
	t.declaration = !c.known;
	t.count = c.known ? c.count : 0;
	t.size = t.count * size;
	return node_add(p, &t, type);
}
