/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constant expressions
 *
 * Precedence climbing: parse_binary() reads operators that bind at least as tightly as its caller
 * wants. Every value has a type, so that sizeof and typeof work on any expression. Whether its
 * number is known is another question, which matters only where a number is needed. An lvalue's
 * number is its address, which makes &((struct s *)0)->m.n[2] an offset without a rule of its own.
 */
#include "decl/expr.h"

#include <errno.h>
#include <string.h>

static int parse_cast(struct parser *p, struct value *ret);
static int parse_unary(struct parser *p, struct value *ret);

static const struct {
	int punct;
	unsigned char binds;
} operators[] = {
	{'*', 10},  {'/', 10}, {'%', 10}, {'+', 9},  {'-', 9},   {P_SHL, 8},
	{P_SHR, 8}, {'<', 7},  {'>', 7},  {P_LE, 7}, {P_GE, 7},  {P_EQ, 6},
	{P_NE, 6},  {'&', 5},  {'^', 4},  {'|', 3},  {P_AND, 2}, {P_OR, 1},
};

/* 0: no operator between two values */
static unsigned int binds(const struct token *t)
{
	if (t->kind != TOKEN_PUNCT)
		return 0;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (operators[i].punct == t->punct)
			return operators[i].binds;
	return 0;
}

static int size_value(struct parser *p, uint64_t v, struct value *ret)
{
	uint32_t type;
	int rc = node_basic(p,
			    p->abi->scalars[CAIRN_C_PTR].size == 8
				    ? (p->abi->scalars[CAIRN_C_LONG].size == 8 ? B_ULONG : B_ULLONG)
				    : B_UINT,
			    &type);

	*ret = (struct value){.type = type, .v = v, .known = true};
	return rc;
}

static int int_value(struct parser *p, uint64_t v, struct value *ret)
{
	*ret = (struct value){.v = v, .known = true};
	return node_basic(p, B_INT, &ret->type);
}

/* ---- sizeof, _Alignof, offsetof and similar operators ---- */

/* The type in parentheses, or the type of the unary expression that is next. */
static int parse_operand(struct parser *p, uint32_t *type, struct value *v)
{
	const struct token *after;
	int rc;

	*v = (struct value){0};
	if (is_punct(p, '(')) {
		after = peek_token(p);
		if (!after)
			return p->peek_error;
		if (begins_type(p, after)) {
			rc = next(p);
			rc = rc ? rc : parse_type_name(p, type);
			return rc ? rc : expect(p, ')');
		}
	}
	rc = parse_unary(p, v);
	*type = v->type;
	return rc;
}

/* "extern int table[];" has no size, nor has a flexible array. */
static bool is_countless(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_ARRAY && !t->vector && !t->has_count;
}

static int parse_sizeof(struct parser *p, struct value *ret)
{
	struct token at = p->tok;
	struct value v;
	uint32_t type;
	uint64_t size;
	int rc = next(p);

	rc = rc ? rc : parse_operand(p, &type, &v);
	if (rc)
		return rc;
	/* GCC: void and functions have the size 1. */
	enum cairn_type_kind kind = resolve(p, type)->kind;
	if (kind == CAIRN_T_FUNC || (kind == CAIRN_T_VOID && !cairn_types_resolve(p->types, type)))
		size = 1;
	else if (!size_of(p, type, &size) || is_countless(resolve(p, type)))
		return fail_at(p, &at, -EBADMSG, "sizeof of a type whose size is not known here");
	return size_value(p, size, ret);
}

/*
 * __alignof__ gives the alignment that the ABI prefers for a variable; i386 aligns these two to 4
 * in structs only.
 */
static uint64_t preferred_align(const struct parser *p, uint32_t type)
{
	const struct cairn_type *t = resolve(p, type);
	uint32_t align = align_of(p, type);

	if (align < t->size && t->size == 8 &&
	    (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_FLOAT) && align == t->abi_align)
		return 8;
	return align;
}

static int parse_alignof(struct parser *p, struct value *ret)
{
	bool preferred = !is_word(p, "_Alignof") && !is_word(p, "alignof");
	struct value v;
	uint32_t type;
	int rc = next(p);

	rc = rc ? rc : parse_operand(p, &type, &v);
	return rc ? rc
		  : size_value(p, preferred ? preferred_align(p, type) : align_of(p, type), ret);
}

/* The member, as an lvalue inside @v. */
static int select_member(struct parser *p, struct value *v)
{
	struct cairn_member m;
	char *name;

	if (p->tok.kind != TOKEN_NAME)
		return fail_here(p, "expected the name of a member");
	name = dup_name(p, &p->tok);
	if (!name)
		return err_nomem(p->err, "an expression");
	if (!cairn_types_member(p->types, v->type, name, &m))
		return fail_here(p, "there is no member %s", name);
	v->type = m.type;
	v->v += m.bit_off / 8;
	v->is_lvalue = true;
	v->is_bit_field = m.bit_size != 0;
	return next(p);
}

static int index_value(struct parser *p, struct value *v)
{
	struct value i;
	uint64_t size = 0;
	int rc = next(p);

	rc = rc ? rc : parse_expr(p, &i);
	rc = rc ? rc : expect(p, ']');
	rc = rc ? rc : promote(p, v);
	if (rc)
		return rc;
	const struct cairn_type *t = resolve(p, v->type);
	if (t->kind != CAIRN_T_PTR && t->kind != CAIRN_T_ARRAY)
		return fail_here(p, "only arrays and pointers have elements");
	bool sized = size_of(p, t->ref, &size);
	*v = (struct value){.type = t->ref,
			    .v = v->v + i.v * size,
			    .known = v->known && i.known && sized,
			    .is_lvalue = true};
	return 0;
}

/* __builtin_offsetof(type, m.n[2]) */
static int parse_offsetof(struct parser *p, struct value *ret)
{
	struct value v = {.known = true, .is_lvalue = true};
	struct token at = p->tok;
	int rc = next(p);

	rc = rc ? rc : expect(p, '(');
	rc = rc ? rc : parse_type_name(p, &v.type);
	rc = rc ? rc : expect(p, ',');
	rc = rc ? rc : select_member(p, &v);
	while (!rc && !is_punct(p, ')')) {
		if (is_punct(p, '[')) {
			rc = index_value(p, &v);
			continue;
		}
		rc = expect(p, '.');
		rc = rc ? rc : select_member(p, &v);
	}
	if (!rc && v.is_bit_field)
		rc = fail_at(p, &at, -EBADMSG, "a bit-field has no offset in bytes");
	rc = rc ? rc : expect(p, ')');
	if (rc)
		return rc;
	bool known = v.known;
	rc = size_value(p, v.v, ret);
	ret->known = known;
	return rc;
}

static int parse_constant_p(struct parser *p, struct value *ret)
{
	struct value v;
	int rc = next(p);

	rc = rc ? rc : expect(p, '(');
	rc = rc ? rc : parse_expr(p, &v);
	rc = rc ? rc : expect(p, ')');
	return rc ? rc : int_value(p, v.known && !v.is_lvalue, ret);
}

static bool are_compatible(const struct parser *p, uint32_t a, uint32_t b)
{
	char x[256], y[256];

	a = cairn_types_resolve(p->types, a);
	b = cairn_types_resolve(p->types, b);
	if (a == b)
		return true;
	const struct cairn_type *t = cairn_types_get(p->types, a);
	if (t->kind != CAIRN_T_PTR && t->kind != CAIRN_T_ARRAY && t->kind != CAIRN_T_FUNC)
		return false;
	cairn_types_name(p->types, a, x, sizeof(x));
	cairn_types_name(p->types, b, y, sizeof(y));
	return !strcmp(x, y);
}

static int parse_compatible_p(struct parser *p, struct value *ret)
{
	uint32_t a, b;
	int rc = next(p);

	rc = rc ? rc : expect(p, '(');
	rc = rc ? rc : parse_type_name(p, &a);
	rc = rc ? rc : expect(p, ',');
	rc = rc ? rc : parse_type_name(p, &b);
	rc = rc ? rc : expect(p, ')');
	return rc ? rc : int_value(p, are_compatible(p, a, b), ret);
}

static int parse_choose_expr(struct parser *p, struct value *ret)
{
	struct value which, a, b;
	int rc = next(p);

	rc = rc ? rc : expect(p, '(');
	rc = rc ? rc : parse_expr(p, &which);
	rc = rc ? rc : expect(p, ',');
	rc = rc ? rc : parse_expr(p, &a);
	rc = rc ? rc : expect(p, ',');
	rc = rc ? rc : parse_expr(p, &b);
	if (!rc && !which.known)
		return fail_here(p, "not a constant that can be computed here");
	*ret = which.v ? a : b;
	return rc ? rc : expect(p, ')');
}

static const struct {
	const char *name;
	int (*parse)(struct parser *p, struct value *ret);
} builtins[] = {
	{"sizeof", parse_sizeof},
	{"_Alignof", parse_alignof},
	{"alignof", parse_alignof},
	{"__alignof__", parse_alignof},
	{"__alignof", parse_alignof},
	{"__builtin_offsetof", parse_offsetof},
	{"__builtin_constant_p", parse_constant_p},
	{"__builtin_types_compatible_p", parse_compatible_p},
	{"__builtin_choose_expr", parse_choose_expr},
};

/* ---- primary, postfix ---- */

static int parse_name(struct parser *p, struct value *ret)
{
	const struct symbol *s = symbol_find(p->decl, SYMBOL_ENUMERATOR, p->tok.p, p->tok.n);

	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (is_word(p, builtins[i].name))
			return builtins[i].parse(p, ret);
	if (!s && (is_word(p, "true") || is_word(p, "false"))) {
		bool v = is_word(p, "true");
		int rc = next(p);

		return rc ? rc : int_value(p, v, ret);
	}
	if (s && s->kind == SYMBOL_ENUMERATOR)
		*ret = (struct value){.type = s->type, .v = (uint64_t)s->value, .known = true};
	else if (s && s->kind == SYMBOL_VARIABLE)
		*ret = (struct value){.type = s->type, .is_lvalue = true};
	else
		return fail_here(p, "%.*s is not declared", p->tok.n > 100 ? 100 : (int)p->tok.n,
				 p->tok.p);
	return next(p);
}

/* In parentheses; the statement expression of GCC has a value that is not known. */
static int parse_parenthesised(struct parser *p, struct value *ret)
{
	int rc = next(p);

	if (!rc && is_punct(p, '{')) {
		*ret = (struct value){0};
		rc = skip_balanced(p);
		return rc ? rc : expect(p, ')');
	}
	rc = rc ? rc : parse_expr(p, ret);
	while (!rc && is_punct(p, ',')) {
		rc = next(p);
		rc = rc ? rc : parse_expr(p, ret);
	}
	return rc ? rc : expect(p, ')');
}

static int parse_primary(struct parser *p, struct value *ret)
{
	switch (p->tok.kind) {
	case TOKEN_NUMBER:
		return parse_number(p, ret);
	case TOKEN_CHAR:
		return parse_char(p, ret);
	case TOKEN_STRING:
		return parse_string(p, ret);
	case TOKEN_NAME:
		return parse_name(p, ret);
	default:
		if (is_punct(p, '('))
			return parse_parenthesised(p, ret);
		if (p->tok.kind == TOKEN_END)
			return fail_here(p, "expected an expression, and here the text ends");
		return fail_here(p, "expected an expression");
	}
}

static int call(struct parser *p, struct value *v)
{
	const struct cairn_type *t = resolve(p, v->type);
	uint32_t type = 0;

	if (t->kind == CAIRN_T_PTR)
		t = resolve(p, t->ref);
	if (t->kind == CAIRN_T_FUNC)
		type = t->ref;
	*v = unknown_of(type);
	return skip_balanced(p);
}

static int dereference(struct parser *p, struct value *v)
{
	int rc = promote(p, v);

	if (rc)
		return rc;
	const struct cairn_type *t = resolve(p, v->type);
	if (t->kind == CAIRN_T_FUNC)
		return 0;
	if (t->kind != CAIRN_T_PTR)
		return fail_here(p, "only a pointer points to something");
	*v = (struct value){.type = t->ref, .v = v->v, .known = v->known, .is_lvalue = true};
	return 0;
}

static int parse_postfix(struct parser *p, struct value *ret)
{
	int rc = parse_primary(p, ret);

	while (!rc) {
		if (is_punct(p, '[')) {
			rc = index_value(p, ret);
		} else if (is_punct(p, '(')) {
			rc = call(p, ret);
		} else if (is_punct(p, P_INCREMENT)) {
			*ret = unknown_of(ret->type);
			rc = next(p);
		} else if (is_punct(p, '.') || is_punct(p, P_ARROW)) {
			rc = is_punct(p, P_ARROW) ? dereference(p, ret) : 0;
			rc = rc ? rc : next(p);
			rc = rc ? rc : select_member(p, ret);
		} else {
			break;
		}
	}
	return rc;
}

/* ---- unary ---- */

static int take_address(struct parser *p, const struct token *at, struct value *v)
{
	uint32_t type;

	if (v->is_bit_field)
		return fail_at(p, at, -EBADMSG, "a bit-field has no address");
	int rc = node_derive(p, CAIRN_T_PTR, v->type, &type);
	*v = (struct value){.type = type, .v = v->v, .known = v->is_lvalue && v->known};
	return rc;
}

static int parse_unary_inside(struct parser *p, struct value *ret)
{
	struct token op = p->tok;
	int rc;

	if (is_word(p, "__extension__")) {
		rc = next(p);
		return rc ? rc : parse_cast(p, ret);
	}
	if (op.kind != TOKEN_PUNCT || !memchr("+-~!*&", op.punct < 256 ? op.punct : 1, 6))
		return parse_postfix(p, ret);
	rc = next(p);
	rc = rc ? rc : parse_cast(p, ret);
	if (rc)
		return rc;
	if (op.punct == '*')
		return dereference(p, ret);
	if (op.punct == '&')
		return take_address(p, &op, ret);
	return compute_unary(p, op.punct, ret);
}

static int parse_unary(struct parser *p, struct value *ret)
{
	int rc = enter(p);

	if (rc)
		return rc;
	rc = parse_unary_inside(p, ret);
	leave(p);
	return rc;
}

/* (type) value, or (type){ ... } */
static int parse_cast(struct parser *p, struct value *ret)
{
	const struct token *after = is_punct(p, '(') ? peek_token(p) : NULL;
	uint32_t type;
	int rc;

	if (is_punct(p, '(') && !after)
		return p->peek_error;
	if (!after || !begins_type(p, after))
		return parse_unary(p, ret);
	rc = enter(p);
	rc = rc ? rc : next(p);
	rc = rc ? rc : parse_type_name(p, &type);
	rc = rc ? rc : expect(p, ')');
	if (rc)
		return rc;
	if (is_punct(p, '{')) {
		rc = is_countless(resolve(p, type)) ? count_initialiser(p, &type)
						    : skip_balanced(p);
		*ret = unknown_of(type);
	} else {
		rc = parse_cast(p, ret);
		if (!rc)
			convert(p, type, ret);
	}
	leave(p);
	return rc;
}

/* ---- binary, conditional ---- */

static int parse_binary(struct parser *p, unsigned int at_least, struct value *ret)
{
	struct value right;
	int rc = parse_cast(p, ret);

	while (!rc && binds(&p->tok) >= at_least) {
		struct token op = p->tok;

		rc = promote(p, ret);
		rc = rc ? rc : next(p);
		/* One step for each level of precedence, of which there are ten. */
		rc = rc ? rc : parse_binary(p, binds(&op) + 1, &right);
		rc = rc ? rc : promote(p, &right);
		rc = rc ? rc : compute(p, &op, ret, &right);
	}
	return rc;
}

static int parse_conditional(struct parser *p, struct value *ret)
{
	struct value a, b;
	int rc = next(p);

	/* a ?: b */
	a = *ret;
	if (!rc && !is_punct(p, ':'))
		rc = parse_expr(p, &a);
	rc = rc ? rc : expect(p, ':');
	rc = rc ? rc : parse_expr(p, &b);
	if (rc)
		return rc;
	bool known = ret->known && !ret->is_lvalue;
	*ret = ret->v ? a : b;
	ret->known = ret->known && known;
	return 0;
}

int parse_expr(struct parser *p, struct value *ret)
{
	int rc = enter(p);

	if (rc)
		return rc;
	rc = parse_binary(p, 1, ret);
	if (!rc && is_punct(p, '?'))
		rc = parse_conditional(p, ret);
	leave(p);
	return rc;
}

int parse_constant(struct parser *p, int64_t *ret, bool *ret_unsigned)
{
	struct token at = p->tok;
	struct value v;
	int rc = parse_expr(p, &v);

	if (rc)
		return rc;
	if (!v.known || v.is_lvalue)
		return fail_at(p, &at, -EBADMSG, "not a constant that can be computed here");
	*ret = (int64_t)v.v;
	if (ret_unsigned)
		*ret_unsigned = is_unsigned_type(p, v.type);
	return 0;
}

bool begins_static_assert(const struct parser *p)
{
	return is_word(p, "_Static_assert") || is_word(p, "static_assert");
}

/* An unknown condition passes: the compiler will report it. */
int parse_static_assert(struct parser *p)
{
	int rc = next(p);
	struct token at = p->tok;
	struct value v;

	rc = rc ? rc : expect(p, '(');
	rc = rc ? rc : parse_expr(p, &v);
	if (rc)
		return rc;
	if (v.known && !v.is_lvalue && !v.v)
		return fail_at(p, &at, -EBADMSG, "the static assertion does not hold on %s",
			       p->abi->name);
	while (!rc && (is_punct(p, ',') || p->tok.kind == TOKEN_STRING))
		rc = next(p);
	rc = rc ? rc : expect(p, ')');
	return rc ? rc : expect(p, ';');
}

int parse_typeof(struct parser *p, uint32_t *ret)
{
	struct value v;
	int rc = expect(p, '(');

	if (rc)
		return rc;
	if (begins_type(p, &p->tok)) {
		rc = parse_type_name(p, ret);
	} else {
		rc = parse_expr(p, &v);
		*ret = v.type;
	}
	return rc ? rc : expect(p, ')');
}
