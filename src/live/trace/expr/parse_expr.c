/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grammar of expressions
 *
 *	expr      := or [ "?" expr ":" expr ]
 *	or        := and { "||" and }
 *	and       := binary { "&&" binary }
 *	binary    := C's levels | ^ & ==,!= <,<=,>,>= <<,>> +,- *,/,%, by precedence climbing
 *	unary     := { "*" | "&" | "-" | "~" | "!" | "(" type ")" } postfix
 *	             | "sizeof" ( "(" type ")" | unary )
 *	postfix   := primary { "." name | "->" name | "[" expr "]" }
 *	primary   := { scope "::" } name | integer | float | 'c' | "string" | "(" expr ")"
 *	             | ( "str" | "wstr" ) "(" expr [ "," integer ] ")" | "buf" "(" expr "," expr ")"
 *	             | ( "L" | "u" | "U" ) "string"
 *	scope     := name | name "." name (of a file) | "'" any characters "'"
 *	type      := words of a name, "::" between them in C++, and "*"s
 *
 * Whether "(a)" is a type shows from what comes after it, as no name is known here: "(a) b" and
 * "(a *)" can only be casts, "(a) - b" is one if "a" is a type of C.
 */
#include "trace/expr/parser.h"

#include <errno.h>
#include <string.h>

static struct expr *node(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b)
{
	struct expr *e = parser_bytes(p, sizeof(*e));

	if (!e)
		return NULL;
	e->kind = kind;
	e->at = p->at;
	e->a = a;
	e->b = b;
	return e;
}

static bool enter(struct parser *p)
{
	if (p->depth++ < EXPR_DEPTH_MAX)
		return true;
	parser_fail(p, -ERANGE, p->at, "nested too deep");
	return false;
}

static struct expr *parse_unary(struct parser *p);

/* ---- types ---- */

static bool is_word(const struct parser *p, const char *word)
{
	return p->token == TOK_NAME && !strcmp(p->string, word);
}

static void skip_qualifiers(struct parser *p)
{
	while (is_word(p, "const") || is_word(p, "volatile") || is_word(p, "restrict"))
		parser_next(p);
}

/* The words of a type; "a::b" is one. Empty: there is none. */
static const char *read_words(struct parser *p)
{
	const char *words = "", *gap = "";

	for (skip_qualifiers(p); p->token == TOK_NAME && p->string[0] != '$'; skip_qualifiers(p)) {
		words = arena_printf(p->arena, "%s%s%s", words, gap, p->string);
		parser_next(p);
		gap = " ";
		if (parser_is_punct(p, P1(':')) && *p->pos == ':') {
			parser_next(p);
			parser_next(p);
			gap = "::";
		}
		if (!words) {
			p->code = p->code ? p->code : err_nomem(p->err, "a type");
			return "";
		}
	}
	return strcmp(gap, "::") ? words : "";
}

/* NULL: what is here is no type; the parser is then somewhere in it. */
static struct expr_type_name *read_type(struct parser *p)
{
	struct expr_type_name *type = parser_bytes(p, sizeof(*type));

	if (!type)
		return NULL;
	*type = (struct expr_type_name){.words = read_words(p)};
	for (; *type->words && parser_is_punct(p, P1('*')); skip_qualifiers(p)) {
		type->n_pointers++;
		parser_next(p);
	}
	return *type->words && !p->code ? type : NULL;
}

static bool is_tagged(const char *words)
{
	return !strncmp(words, "struct ", 7) || !strncmp(words, "union ", 6) ||
	       !strncmp(words, "enum ", 5) || !strncmp(words, "class ", 6);
}

/* It cannot be the name of a parameter. */
static bool is_surely_type(const struct expr_type_name *type)
{
	struct base_type base;

	return type->n_pointers || is_tagged(type->words) || !strcmp(type->words, "void") ||
	       strchr(type->words, ' ') || base_type_of(type->words, &base);
}

static bool begins_operand(const struct parser *p)
{
	return p->token == TOK_NAME
		       ? strcmp(p->string, "if") != 0
		       : p->token == TOK_INT || p->token == TOK_STRING || p->token == TOK_FLOAT ||
				 parser_is_punct(p, P1('(')) || parser_is_punct(p, P1('~')) ||
				 parser_is_punct(p, P1('!'));
}

/*
 * "(type)" with the parser after it; NULL: it is something else, and the parser where it was.
 * @needs_operand  an operand must come after it, if it could be a name
 */
static struct expr_type_name *read_type_in_parentheses(struct parser *p, bool needs_operand)
{
	struct parser before = *p;

	parser_next(p);
	struct expr_type_name *type = read_type(p);
	if (type && parser_is_punct(p, P1(')'))) {
		parser_next(p);
		if (is_surely_type(type) || (needs_operand && begins_operand(p)))
			return type;
	}
	if (p->code && before.code == 0 && p->code == -ENOMEM)
		return NULL;
	*p = before;
	return NULL;
}

static struct expr *parse_cast(struct parser *p, struct expr_type_name *type, uint32_t at)
{
	struct expr *e = node(p, EXPR_CAST, NULL, NULL);

	if (!e || !enter(p))
		return NULL;
	e->at = at;
	e->type_name = type;
	e->a = parse_unary(p);
	p->depth--;
	return p->code ? NULL : e;
}

static struct expr *parse_sizeof(struct parser *p)
{
	struct expr *e = node(p, EXPR_SIZEOF, NULL, NULL);

	parser_next(p);
	if (!e || !enter(p))
		return NULL;
	if (parser_is_punct(p, P1('(')))
		e->type_name = read_type_in_parentheses(p, false);
	if (!e->type_name)
		e->a = parse_unary(p);
	p->depth--;
	return p->code ? NULL : e;
}

/* ---- primaries ---- */

/* str(p), str(p, n), the same of wstr, buf(p, n) */
static struct expr *parse_call(struct parser *p, enum expr_kind kind, uint32_t at)
{
	struct expr *e = node(p, kind, NULL, NULL);

	parser_next(p);
	if (!e || !enter(p))
		return NULL;
	e->at = at;
	e->a = expr_parse(p);
	if (kind == EXPR_BUF && !parser_is_punct(p, P1(',')))
		parser_fail(p, -EINVAL, p->at,
			    "buf() takes an address and a number of bytes: buf(p, n)");
	if (parser_is_punct(p, P1(','))) {
		parser_next(p);
		e->b = expr_parse(p);
	}
	if (e->b && kind == EXPR_STR && e->b->kind != EXPR_INT)
		parser_fail(p, -EINVAL, e->b->at,
			    "the limit of str() is a number; buf(p, n) takes an expression");
	parser_expect(p, ')', "a closing ) is missing here");
	p->depth--;
	return p->code ? NULL : e;
}

/* "a.c::f::x" is the name "x" in the scopes "a.c::f". */
static void set_name(struct expr *e, char *text, uint32_t n)
{
	uint32_t at = n;

	while (at && text[at - 1] != ':')
		at--;
	e->name = text + at;
	e->n_bytes = n - at;
	if (at < 2)
		return;
	text[at - 2] = 0;
	e->scopes = text;
}

static struct expr *parse_name(struct parser *p)
{
	struct expr *e = node(p, EXPR_NAME, NULL, NULL);

	if (!e)
		return NULL;
	set_name(e, p->string, p->n_string);
	parser_next(p);
	if (!parser_is_punct(p, P1('(')))
		return e;
	bool is_wide = !strcmp(e->name, "wstr");
	if (!e->scopes && (!strcmp(e->name, "str") || is_wide || !strcmp(e->name, "buf"))) {
		struct expr *call = parse_call(p, e->name[0] == 'b' ? EXPR_BUF : EXPR_STR, e->at);
		if (call)
			call->is_wide = is_wide;
		return call;
	}
	parser_fail(
		p, -EINVAL, p->at,
		"functions cannot be called; only str(p), str(p, n), wstr(p), buf(p, n) and sizeof "
		"are known");
	return NULL;
}

static struct expr *parse_parentheses(struct parser *p)
{
	uint32_t at = p->at;
	struct expr_type_name *type = read_type_in_parentheses(p, true);

	if (type)
		return parse_cast(p, type, at);
	parser_next(p);
	struct expr *e = expr_parse(p);
	parser_expect(p, ')', "a closing ) is missing here");
	return e;
}

static struct expr *parse_primary(struct parser *p)
{
	static const enum expr_kind kinds[] = {
		[TOK_INT] = EXPR_INT, [TOK_STRING] = EXPR_STRING, [TOK_FLOAT] = EXPR_FLOAT};
	struct expr *e;

	if (p->token == TOK_NAME)
		return parse_name(p);
	if (parser_is_punct(p, P1('(')))
		return parse_parentheses(p);
	if (p->token == TOK_END || p->token == TOK_PUNCT) {
		parser_fail(p, -EINVAL, p->at, "a name or a constant is missing here");
		return NULL;
	}
	e = node(p, kinds[p->token], NULL, NULL);
	if (!e)
		return NULL;
	e->name = p->string;
	e->n_bytes = p->n_string;
	e->value = p->value;
	e->is_unsigned = p->is_unsigned;
	e->is_long = p->is_long;
	e->is_wide = e->kind == EXPR_STRING && p->is_wide;
	parser_next(p);
	return e;
}

static struct expr *parse_member(struct parser *p, enum expr_kind kind, struct expr *a)
{
	parser_next(p);
	struct expr *e = node(p, kind, a, NULL);
	if (p->token != TOK_NAME)
		parser_fail(p, -EINVAL, p->at, "a member's name is missing here");
	if (p->code || !e)
		return NULL;
	e->name = p->string;
	parser_next(p);
	return e;
}

static struct expr *parse_index(struct parser *p, struct expr *a)
{
	parser_next(p);
	struct expr *e = node(p, EXPR_INDEX, a, NULL);
	if (!e)
		return NULL;
	if (parser_is_punct(p, P1(']')))
		parser_fail(p, -EINVAL, p->at, "an index is missing here");
	e->b = expr_parse(p);
	parser_expect(p, ']', "a closing ] is missing here");
	return p->code ? NULL : e;
}

static struct expr *parse_postfix(struct parser *p)
{
	struct expr *e = parse_primary(p);
	unsigned int links = 0;

	while (!p->code) {
		if (++links > EXPR_DEPTH_MAX)
			parser_fail(p, -ERANGE, p->at, "nested too deep");
		else if (parser_is_punct(p, P1('.')))
			e = parse_member(p, EXPR_MEMBER, e);
		else if (parser_is_punct(p, P2('-', '>')))
			e = parse_member(p, EXPR_ARROW, e);
		else if (parser_is_punct(p, P1('[')))
			e = parse_index(p, e);
		else
			return e;
	}
	return NULL;
}

static struct expr *parse_unary(struct parser *p)
{
	static const struct {
		char punct;
		enum expr_kind kind;
	} kinds[] = {{'*', EXPR_DEREF},
		     {'&', EXPR_ADDRESS},
		     {'-', EXPR_MINUS},
		     {'~', EXPR_INVERT},
		     {'!', EXPR_NOT}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!parser_is_punct(p, P1(kinds[i].punct)))
			continue;
		struct expr *e = node(p, kinds[i].kind, NULL, NULL);
		parser_next(p);
		if (!e || !enter(p))
			return NULL;
		e->a = parse_unary(p);
		p->depth--;
		return p->code ? NULL : e;
	}
	return is_word(p, "sizeof") ? parse_sizeof(p) : parse_postfix(p);
}

/* 0 when the token is no binary operator; the loosest, |, is 1. */
static unsigned int binary_level(const struct parser *p, enum fetch_code *ret)
{
	static const struct {
		uint32_t punct;
		uint8_t level;
		uint8_t code;
	} ops[] = {
		{P1('|'), 1, FETCH_OR},       {P1('^'), 2, FETCH_XOR},
		{P1('&'), 3, FETCH_AND},      {P2('=', '='), 4, FETCH_EQ},
		{P2('!', '='), 4, FETCH_NE},  {P1('<'), 5, FETCH_LT},
		{P2('<', '='), 5, FETCH_LE},  {P1('>'), 5, FETCH_GT},
		{P2('>', '='), 5, FETCH_GE},  {P2('<', '<'), 6, FETCH_SHL},
		{P2('>', '>'), 6, FETCH_SHR}, {P1('+'), 7, FETCH_ADD},
		{P1('-'), 7, FETCH_SUB},      {P1('*'), 8, FETCH_MUL},
		{P1('/'), 8, FETCH_DIV},      {P1('%'), 8, FETCH_MOD},
	};

	for (size_t i = 0; p->token == TOK_PUNCT && i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (ops[i].punct != p->punct)
			continue;
		*ret = ops[i].code;
		return ops[i].level;
	}
	return 0;
}

/*
 * Operators of at least @level; recursion goes up one level per call, so at most 8 deep per
 * nesting.
 */
static struct expr *parse_binary(struct parser *p, unsigned int level)
{
	struct expr *e = parse_unary(p);
	enum fetch_code code;
	unsigned int found, links = 0;

	while (!p->code && (found = binary_level(p, &code)) >= level && found) {
		struct expr *both = node(p, EXPR_BINARY, e, NULL);
		if (++links > EXPR_DEPTH_MAX)
			parser_fail(p, -ERANGE, p->at, "too many operators in a row");
		parser_next(p);
		if (!both || p->code)
			return NULL;
		both->op = code;
		both->b = parse_binary(p, found + 1);
		e = both;
	}
	return p->code ? NULL : e;
}

static struct expr *parse_chain(struct parser *p, enum expr_kind kind)
{
	uint32_t punct = kind == EXPR_OR ? P2('|', '|') : P2('&', '&');
	struct expr *e = kind == EXPR_OR ? parse_chain(p, EXPR_AND) : parse_binary(p, 1);
	unsigned int links = 0;

	while (!p->code && parser_is_punct(p, punct)) {
		struct expr *both = node(p, kind, e, NULL);
		if (++links > EXPR_DEPTH_MAX)
			parser_fail(p, -ERANGE, p->at, "too many operators in a row");
		parser_next(p);
		if (!both || p->code)
			return NULL;
		both->b = kind == EXPR_OR ? parse_chain(p, EXPR_AND) : parse_binary(p, 1);
		e = both;
	}
	return p->code ? NULL : e;
}

/* After the "?". */
static struct expr *parse_choice(struct parser *p, struct expr *condition)
{
	struct expr *e = node(p, EXPR_CHOICE, condition, NULL);

	parser_next(p);
	if (!e)
		return NULL;
	e->b = expr_parse(p);
	parser_expect(p, ':', "a : is missing here, after the value of ?");
	e->c = expr_parse(p);
	return p->code ? NULL : e;
}

struct expr *expr_parse(struct parser *p)
{
	if (!enter(p))
		return NULL;
	struct expr *e = parse_chain(p, EXPR_OR);
	if (!p->code && parser_is_punct(p, P1('?')))
		e = parse_choice(p, e);
	p->depth--;
	return p->code ? NULL : e;
}
