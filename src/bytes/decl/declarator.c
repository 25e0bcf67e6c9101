/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarators: the text around a name
 *
 * From the name outwards, the part after it comes before the part before it, and parentheses first
 * of all:
 *
 *	int * (*const table[4])(char)
 *
 *     steps, from the name: array of 4,  const pointer to,  function (char),  pointer to; base: int
 *
 * The steps are collected in that order; the type is then built from the base, last step first.
 */
#include <errno.h>

#include <cairn/text.h>

#include "decl/parse.h"

enum step_kind { STEP_PTR, STEP_ARRAY, STEP_FUNC };

struct step {
	enum step_kind kind;
	struct token at;
	bool is_const, is_volatile, is_restrict, is_atomic; /* PTR */
	uint8_t bytes;                                      /* PTR: __ptr32, __ptr64; 0: neither */
	bool has_count;                                     /* ARRAY */
	uint64_t count;
	struct cairn_member *params; /* FUNC */
	uint32_t n_params;
	bool variadic, prototyped;
};

struct steps {
	struct step p[STEPS_MAX];
	size_t n;
};

static int push(struct parser *p, struct steps *to, const struct step *s)
{
	if (to->n == STEPS_MAX)
		return fail_at(p, &s->at, -ERANGE,
			       "more than %d pointers, arrays and functions around a name",
			       STEPS_MAX);
	to->p[to->n++] = *s;
	return 0;
}

/* ---- pointers ---- */

static int pointer_qualifiers(struct parser *p, struct step *s, struct attributes *attrs)
{
	for (;;) {
		int rc;

		if (is_word(p, "const") || is_word(p, "__const")) {
			s->is_const = true;
			rc = next(p);
		} else if (is_word(p, "volatile") || is_word(p, "__volatile__")) {
			s->is_volatile = true;
			rc = next(p);
		} else if (is_word(p, "restrict") || is_word(p, "__restrict") ||
			   is_word(p, "__restrict__")) {
			s->is_restrict = true;
			rc = next(p);
		} else if (is_word(p, "_Atomic")) {
			s->is_atomic = true;
			rc = next(p);
		} else if (p->abi->ms && (is_word(p, "__ptr32") || is_word(p, "__ptr64"))) {
			s->bytes = is_word(p, "__ptr32") ? 4 : 8;
			rc = next(p);
		} else if (is_convention(&p->tok) || (p->abi->ms && is_word(p, "__unaligned"))) {
			rc = next(p);
		} else if (is_word(p, "_Nullable") || is_word(p, "_Nonnull") ||
			   is_word(p, "__extension__")) {
			rc = next(p);
		} else if (is_attribute(p)) {
			rc = parse_attributes(p, attrs);
		} else {
			return 0;
		}
		if (rc)
			return rc;
	}
}

static int parse_pointers(struct parser *p, struct steps *to, struct attributes *attrs)
{
	int rc = is_attribute(p) ? parse_attributes(p, attrs) : 0;

	while (!rc && is_convention(&p->tok))
		rc = next(p);
	while (!rc && (is_punct(p, '*') || is_punct(p, '^'))) {
		struct step s = {.kind = STEP_PTR, .at = p->tok};

		rc = next(p);
		rc = rc ? rc : pointer_qualifiers(p, &s, attrs);
		rc = rc ? rc : push(p, to, &s);
	}
	return rc;
}

/* ---- arrays ---- */

/* In a parameter the outermost count means nothing, and the others may be other parameters. */
static int parameter_count(struct parser *p, struct step *s)
{
	const struct token *after = p->tok.kind == TOKEN_NUMBER ? peek_token(p) : NULL;
	int64_t n = 0;
	int rc = p->peek_error;

	if (!rc && after && token_is_punct(after, ']')) {
		rc = parse_constant(p, &n, NULL);
		s->has_count = true;
		s->count = (uint64_t)n;
	}
	while (!rc && !is_punct(p, ']') && p->tok.kind != TOKEN_END)
		rc = is_punct(p, '(') || is_punct(p, '[') ? skip_balanced(p) : next(p);
	return rc;
}

static int parse_array(struct parser *p, bool parameter, struct steps *to)
{
	struct step s = {.kind = STEP_ARRAY, .at = p->tok};
	int64_t n;
	int rc = next(p);

	if (!rc && parameter) {
		rc = parameter_count(p, &s);
	} else if (!rc && !is_punct(p, ']')) {
		struct token at = p->tok;
		bool is_unsigned;

		rc = parse_constant(p, &n, &is_unsigned);
		if (!rc && n < 0)
			return fail_at(p, &at, is_unsigned ? -ERANGE : -EBADMSG,
				       "an array cannot have %lld elements", (long long)n);
		s.has_count = true;
		s.count = (uint64_t)n;
	}
	rc = rc ? rc : expect(p, ']');
	return rc ? rc : push(p, to, &s);
}

/* ---- functions ---- */

typedef VEC(struct cairn_member) param_list;

/* Arrays and functions are passed as pointers. */
static int decay(struct parser *p, uint32_t *type)
{
	const struct cairn_type *t = cairn_types_get(p->types, *type);

	if (t->kind == CAIRN_T_ARRAY && !t->vector)
		return node_derive(p, CAIRN_T_PTR, t->ref, type);
	return t->kind == CAIRN_T_FUNC ? node_derive(p, CAIRN_T_PTR, *type, type) : 0;
}

static int parse_parameter(struct parser *p, param_list *to)
{
	struct specifiers specs;
	struct declarator d;
	int rc = parse_specifiers(p, &specs);

	rc = rc ? rc : parse_declarator(p, specs.type, true, &d);
	rc = rc ? rc : decay(p, &d.type);
	if (rc)
		return rc;
	struct cairn_member *m = VEC_PUSH(to);
	if (!m)
		return err_nomem(p->err, "parameters");
	m->type = d.type;
	if (d.name.n && !(m->name = dup_name(p, &d.name)))
		return err_nomem(p->err, "parameters");
	return 0;
}

static int parse_parameters(struct parser *p, struct step *s, param_list *params)
{
	int rc = 0;

	s->prototyped = true;
	while (!rc) {
		if (is_punct(p, P_ELLIPSIS)) {
			s->variadic = true;
			return next(p);
		}
		rc = parse_parameter(p, params);
		if (rc || !is_punct(p, ','))
			break;
		rc = next(p);
	}
	return rc;
}

static bool is_void_only(const struct parser *p, const param_list *params)
{
	return params->n == 1 && !params->p[0].name && !params->p[0].type;
}

static int keep_parameters(struct parser *p, struct step *s, const param_list *params)
{
	if (is_void_only(p, params) || !params->n)
		return 0;
	s->params = arena_array(p->arena, params->n, sizeof(*s->params));
	if (!s->params)
		return err_nomem(p->err, "parameters");
	memcpy(s->params, params->p, params->n * sizeof(*s->params));
	s->n_params = (uint32_t)params->n;
	return 0;
}

static int parse_function(struct parser *p, struct steps *to)
{
	struct step s = {.kind = STEP_FUNC, .at = p->tok};
	param_list params = {0};
	int rc = next(p);

	if (!rc && (begins_type(p, &p->tok) || is_punct(p, P_ELLIPSIS))) {
		rc = parse_parameters(p, &s, &params);
		rc = rc ? rc : keep_parameters(p, &s, &params);
	} else {
		/* f(), and f(a, b) of before the standard */
		while (!rc && (p->tok.kind == TOKEN_NAME || is_punct(p, ',')))
			rc = next(p);
	}
	VEC_FREE(&params);
	rc = rc ? rc : expect(p, ')');
	return rc ? rc : push(p, to, &s);
}

/* ---- all of it ---- */

static int parse_steps(struct parser *p, bool parameter, struct steps *to, struct declarator *ret);

/* "(" begins parameters when a type or ")" follows it, else it groups. */
static int is_group(struct parser *p)
{
	const struct token *after;

	if (!is_punct(p, '('))
		return 0;
	after = peek_token(p);
	if (!after)
		return p->peek_error;
	if (token_is(after, "__attribute__") || is_convention(after))
		return 1;
	return !token_is_punct(after, ')') && !begins_type(p, after) &&
	       !token_is_punct(after, P_ELLIPSIS);
}

static int parse_suffixes(struct parser *p, bool parameter, struct steps *to)
{
	int rc = 0;

	while (!rc) {
		if (is_punct(p, '[') && !is_attribute(p))
			rc = parse_array(p, parameter, to);
		else if (is_punct(p, '('))
			rc = parse_function(p, to);
		else
			break;
	}
	return rc;
}

static int parse_direct(struct parser *p, bool parameter, struct steps *to, struct declarator *ret)
{
	int rc = is_group(p);

	if (rc < 0)
		return rc;
	if (rc) {
		rc = next(p);
		rc = rc ? rc : parse_steps(p, parameter, to, ret);
		rc = rc ? rc : expect(p, ')');
	} else if (p->tok.kind == TOKEN_NAME) {
		ret->name = p->tok;
		rc = next(p);
	}
	return rc ? rc : parse_suffixes(p, parameter, to);
}

static int parse_steps(struct parser *p, bool parameter, struct steps *to, struct declarator *ret)
{
	/* They are before the name, so they come after the steps of parse_direct(); in reverse. */
	struct steps *pointers;
	int rc = enter(p);

	if (rc)
		return rc;
	pointers = malloc(sizeof(*pointers));
	if (!pointers)
		return err_nomem(p->err, "a declarator");
	pointers->n = 0;
	rc = parse_pointers(p, pointers, &ret->attrs);
	rc = rc ? rc : parse_direct(p, parameter, to, ret);
	while (!rc && pointers->n)
		rc = push(p, to, &pointers->p[--pointers->n]);
	free(pointers);
	leave(p);
	return rc;
}

static int build_pointer(struct parser *p, const struct step *s, uint32_t *id)
{
	struct cairn_type t = {
		.kind = CAIRN_T_PTR, .ref = *id, .size = s->bytes, .abi_align = s->bytes};
	int rc = s->bytes ? node_add(p, &t, id) : node_derive(p, CAIRN_T_PTR, *id, id);

	if (!rc && s->is_restrict)
		rc = node_derive(p, CAIRN_T_RESTRICT, *id, id);
	if (!rc && s->is_volatile)
		rc = node_derive(p, CAIRN_T_VOLATILE, *id, id);
	if (!rc && s->is_const)
		rc = node_derive(p, CAIRN_T_CONST, *id, id);
	if (!rc && s->is_atomic)
		rc = node_derive(p, CAIRN_T_ATOMIC, *id, id);
	return rc;
}

static int build_array(struct parser *p, const struct step *s, bool parameter, uint32_t *id)
{
	struct cairn_type t = {
		.kind = CAIRN_T_ARRAY, .ref = *id, .has_count = s->has_count, .count = s->count};
	const struct cairn_type *element = resolve(p, *id);
	uint64_t size = 0;

	if (element->kind == CAIRN_T_FUNC)
		return fail_at(p, &s->at, -EBADMSG, "an array of functions");
	/*
	 * An array of a type that is only declared is no error in a parameter or an extern
	 * declaration, and has no size.
	 */
	if (!size_of(p, *id, &size) && !parameter && s->has_count)
		return fail_at(p, &s->at, -EBADMSG, "an array of elements whose size is not known");
	if (size % align_of(p, *id))
		return fail_at(p, &s->at, -EBADMSG,
			       "an array of elements of %s that are aligned to %u",
			       cairn_counted(size, "byte").text, align_of(p, *id));
	if (s->has_count && size && s->count > CAIRN_LAYOUT_SIZE_MAX / size)
		return fail_at(p, &s->at, -ERANGE, "an array of more than 2^40 bytes");
	t.size = s->has_count ? s->count * size : 0;
	int rc = check_chain(p, *id, &s->at);
	return rc ? rc : node_add(p, &t, id);
}

static int build_function(struct parser *p, const struct step *s, uint32_t *id)
{
	struct cairn_type t = {.kind = CAIRN_T_FUNC,
			       .ref = *id,
			       .prototyped = true,
			       .variadic = s->variadic,
			       .members = s->params,
			       .n_members = s->n_params};
	return node_add(p, &t, id);
}

static int build(struct parser *p, const struct steps *steps, bool parameter, uint32_t *id)
{
	int rc = 0;

	for (size_t i = steps->n; i-- > 0 && !rc;) {
		const struct step *s = &steps->p[i];

		if (s->kind == STEP_PTR)
			rc = build_pointer(p, s, id);
		else if (s->kind == STEP_ARRAY)
			rc = build_array(p, s, parameter, id);
		else
			rc = build_function(p, s, id);
	}
	return rc;
}

int parse_declarator(struct parser *p, uint32_t base, bool parameter, struct declarator *ret)
{
	struct steps *steps = malloc(sizeof(*steps));
	int rc;

	*ret = (struct declarator){.type = base};
	if (!steps)
		return err_nomem(p->err, "a declarator");
	steps->n = 0;
	rc = parse_steps(p, parameter, steps, ret);
	/* After the declarator: another name in the object file, attributes. */
	while (!rc && (is_attribute(p) || is_word(p, "__asm__") || is_word(p, "asm") ||
		       is_word(p, "__asm"))) {
		if (is_attribute(p)) {
			rc = parse_attributes(p, &ret->attrs);
			continue;
		}
		rc = next(p);
		rc = rc ? rc : skip_balanced(p);
	}
	/* vector_size and mode are about the type that the specifiers named. */
	rc = rc ? rc : apply_type_attributes(p, &ret->attrs, &ret->type);
	rc = rc ? rc : build(p, steps, parameter, &ret->type);
	free(steps);
	return rc;
}

int parse_type_name(struct parser *p, uint32_t *ret)
{
	struct specifiers specs;
	struct declarator d;
	struct token at = p->tok;
	int rc = enter(p);

	if (rc)
		return rc;
	rc = parse_specifiers(p, &specs);
	rc = rc ? rc : parse_declarator(p, specs.type, false, &d);
	if (!rc && d.name.n)
		rc = fail_at(p, &d.name, -EBADMSG, "a name where only a type is allowed");
	rc = rc ? rc : check_chain(p, d.type, &at);
	leave(p);
	*ret = rc ? 0 : d.type;
	return rc;
}
