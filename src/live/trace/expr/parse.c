/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grammar of probes
 *
 *	probe     := head [ parameters ] [ "(" [ value { "," value } ] ")" ] [ "if" expr ]
 *	head      := everything up to the list, the condition or the end; resolve.c takes it apart,
 *	             and usdt.c after "usdt:"
 *	value     := expr { ":" ( "str" | "hex" ) }
 *	             or, as the number of a hit: expr [ ":" ( "bytes" | "ns" ) ]
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
 *
 * The parameters are a list of types, which tells functions of one name apart (overload.h).
 *
 * The head is cut off first because a C++ name is no token of C: it may hold "::", templates with
 * commas and parentheses, and "operator()". It ends at the first "(" outside of < > that does not
 * belong to an operator's name, or at the word "if" after a blank.
 */
#include "trace/expr/expr.h"
#include "trace/place/foreign.h"
#include "trace/place/overload.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "base/vec.h"

enum { STRING_MOST = 2047 };

enum token {
	TOK_END,
	TOK_NAME,
	TOK_INT,
	TOK_STRING,
	TOK_FLOAT,
	TOK_PUNCT, /* p->punct: the characters, as one number */
};

struct parser {
	struct arena *arena;
	struct cairn_err *err;
	const char *text;
	const char *pos; /* after the current token */
	int code;        /* of the first error */
	bool weighs;
	unsigned int depth;

	enum token token;
	uint32_t at;
	uint32_t punct;
	char *string;
	uint32_t n_string;
	uint64_t value;
	bool is_unsigned, is_long;
	bool is_wide; /* STRING */
};

#define P1(a)    ((uint32_t)(a))
#define P2(a, b) ((uint32_t)(a) << 8 | (uint32_t)(b))

int probe_error(struct cairn_err *err, int code, const char *text, uint32_t at, const char *fmt,
		...)
{
	char story[400], before[CAIRN_ERR_MSG_MAX], shown[CAIRN_ERR_MSG_MAX],
		lines[2 * CAIRN_ERR_MSG_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(story, sizeof(story), fmt, args);
	va_end(args);
	/* The caret is below the character, quoted or not. */
	snprintf(before, sizeof(before), "%.*s", (int)at, text);
	ssize_t column = cairn_quote(before, CAIRN_QUOTE_TEXT, NULL, 0);
	cairn_quote(text, CAIRN_QUOTE_TEXT, shown, sizeof(shown));
	snprintf(lines, sizeof(lines), "%s\n%*s", shown, (int)column + 1, "^");
	return err_lines(err, code, lines, "%s", story);
}

static void fail(struct parser *p, int code, uint32_t at, const char *what)
{
	if (!p->code)
		p->code = probe_error(p->err, code, p->text, at, "%s", what);
	p->token = TOK_END;
}

static void *node_bytes(struct parser *p, size_t size)
{
	void *bytes = arena_alloc(p->arena, size);

	if (!bytes && !p->code)
		p->code = err_nomem(p->err, "an expression");
	return bytes;
}

static bool name_starts(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == '$';
}

static bool name_goes_on(char c)
{
	return name_starts(c) || isdigit((unsigned char)c);
}

/* One character, after a backslash or plain; *@s moves past it. False at an unknown escape. */
static bool read_char(const char **s, unsigned char *ret)
{
	static const char from[] = "abfnrtv\\'\"?0e", to[] = "\a\b\f\n\r\t\v\\'\"?\0\033";
	const char *known;
	unsigned int hex;
	int used;

	if (**s != '\\') {
		*ret = (unsigned char)*(*s)++;
		return true;
	}
	(*s)++;
	if (**s == 'x' && sscanf(*s + 1, "%2x%n", &hex, &used) == 1) {
		*ret = (unsigned char)hex;
		*s += 1 + used;
		return true;
	}
	known = **s ? strchr(from, **s) : NULL;
	if (!known)
		return false;
	*ret = (unsigned char)to[known - from];
	(*s)++;
	return true;
}

/* The quotation mark of a string; NULL: none begins here. L, u and U say that it is wide. */
static const char *string_begin(const char *s)
{
	bool is_wide = *s == 'L' || *s == 'u' || *s == 'U';

	return s[is_wide] == '"' ? s + is_wide : NULL;
}

static void lex_string(struct parser *p)
{
	const char *s = string_begin(p->pos) + 1;

	p->is_wide = *p->pos != '"';

	p->string = node_bytes(p, strlen(s) + 1);
	p->n_string = 0;
	if (!p->string)
		return;
	while (*s && *s != '"') {
		unsigned char c;

		if (!read_char(&s, &c))
			return fail(p, -EINVAL, (uint32_t)(s - p->text), "no such escape");
		if (!c)
			return fail(p, -EINVAL, (uint32_t)(s - 1 - p->text),
				    "a string ends at a NUL, so it cannot hold one");
		p->string[p->n_string++] = (char)c;
	}
	if (*s != '"')
		return fail(p, -EINVAL, p->at, "this string has no end");
	p->pos = s + 1;
	p->token = TOK_STRING;
}

static void lex_char(struct parser *p)
{
	const char *s = p->pos + 1;
	unsigned char c;

	if (!*s || *s == '\'' || !read_char(&s, &c) || *s != '\'')
		return fail(p, -EINVAL, p->at, "not a character constant");
	p->pos = s + 1;
	p->token = TOK_INT;
	p->value = (uint64_t)(int64_t)(signed char)c;
	p->is_unsigned = p->is_long = false;
}

/*
 * C's rule: the first of int, unsigned (not for decimal), long, unsigned long that holds the value.
 */
static void type_of_literal(struct parser *p, bool decimal)
{
	uint64_t v = p->value;

	if (!p->is_long && !p->is_unsigned && v <= INT32_MAX)
		return;
	if (!p->is_long && (p->is_unsigned || !decimal) && v <= UINT32_MAX) {
		p->is_unsigned = true;
		return;
	}
	p->is_long = true;
	if (v > INT64_MAX)
		p->is_unsigned = true;
}

/* Digits with a point, or an exponent. */
static bool is_float(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return (s[0] != '0' || (s[1] != 'x' && s[1] != 'X')) &&
	       ((s[n] == '.' && isdigit((unsigned char)s[n + 1])) ||
		((s[n] == 'e' || s[n] == 'E') &&
		 (isdigit((unsigned char)s[n + 1]) || s[n + 1] == '-' || s[n + 1] == '+')));
}

static void lex_float(struct parser *p)
{
	char *end;
	double v = strtod(p->pos, &end);

	if (*end == 'f' || *end == 'F') {
		v = (float)v;
		end++;
	}
	if (name_goes_on(*end))
		return fail(p, -EINVAL, (uint32_t)(end - p->text), "not part of a number");
	memcpy(&p->value, &v, sizeof(v));
	p->pos = end;
	p->token = TOK_FLOAT;
}

static void lex_int(struct parser *p)
{
	char *end;

	if (is_float(p->pos))
		return lex_float(p);
	errno = 0;
	p->value = strtoull(p->pos, &end, 0);
	if (errno)
		return fail(p, -EINVAL, p->at, "this number does not fit 64 bits");
	bool decimal = *p->pos != '0';
	p->is_unsigned = p->is_long = false;
	for (; *end && strchr("uUlL", *end); end++) {
		p->is_unsigned |= *end == 'u' || *end == 'U';
		p->is_long |= *end == 'l' || *end == 'L';
	}
	if (name_goes_on(*end) || (*end == '.' && isdigit((unsigned char)end[1])))
		return fail(p, -EINVAL, (uint32_t)(end - p->text), "not part of an integer");
	type_of_literal(p, decimal);
	p->pos = end;
	p->token = TOK_INT;
}

/* The end of a scope and its "::" at @s; NULL: there is none. A file's name has dots. */
static const char *scope_end(const char *s)
{
	if (*s == '\'') {
		s = strchr(s + 1, '\'');
		s = s ? s + 1 : "";
	} else {
		while (name_goes_on(*s) || (*s == '.' && name_goes_on(s[1])))
			s++;
	}
	return !strncmp(s, "::", 2) && (name_starts(s[2]) || s[2] == '\'') ? s + 2 : NULL;
}

/* Scopes and a name, without the quotes. */
static void lex_name(struct parser *p)
{
	const char *s = p->pos, *end;
	uint32_t n = 0;

	while ((end = scope_end(s)))
		s = end;
	while (name_goes_on(*s))
		s++;
	p->string = node_bytes(p, (size_t)(s - p->pos) + 1);
	if (!p->string) {
		p->token = TOK_END;
		return;
	}
	for (; p->pos < s; p->pos++)
		if (*p->pos != '\'')
			p->string[n++] = *p->pos;
	p->string[n] = 0;
	p->n_string = n;
	p->token = TOK_NAME;
}

static void lex_punct(struct parser *p)
{
	static const char *const twos[] = {"->", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||"};

	p->token = TOK_PUNCT;
	for (size_t i = 0; i < sizeof(twos) / sizeof(twos[0]); i++) {
		if (strncmp(p->pos, twos[i], 2))
			continue;
		p->punct = P2(twos[i][0], twos[i][1]);
		p->pos += 2;
		return;
	}
	p->punct = P1(*p->pos++);
}

static void next(struct parser *p)
{
	if (p->code) {
		p->token = TOK_END;
		return;
	}
	while (isspace((unsigned char)*p->pos))
		p->pos++;
	p->at = (uint32_t)(p->pos - p->text);
	char c = *p->pos;
	if (!c)
		p->token = TOK_END;
	else if (string_begin(p->pos))
		lex_string(p);
	else if (name_starts(c) || (c == '\'' && scope_end(p->pos)))
		lex_name(p);
	else if (isdigit((unsigned char)c))
		lex_int(p);
	else if (c == '\'')
		lex_char(p);
	else
		lex_punct(p);
}

static bool is_punct(const struct parser *p, uint32_t punct)
{
	return p->token == TOK_PUNCT && p->punct == punct;
}

static void expect(struct parser *p, char punct, const char *what)
{
	if (!is_punct(p, P1(punct)))
		return fail(p, -EINVAL, p->at, what);
	next(p);
}

static struct expr *node(struct parser *p, enum expr_kind kind, struct expr *a, struct expr *b)
{
	struct expr *e = node_bytes(p, sizeof(*e));

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
	fail(p, -ERANGE, p->at, "nested too deep");
	return false;
}

static struct expr *parse_expr(struct parser *p);
static struct expr *parse_unary(struct parser *p);

/* ---- types ---- */

static bool is_word(const struct parser *p, const char *word)
{
	return p->token == TOK_NAME && !strcmp(p->string, word);
}

static void skip_qualifiers(struct parser *p)
{
	while (is_word(p, "const") || is_word(p, "volatile") || is_word(p, "restrict"))
		next(p);
}

/* The words of a type; "a::b" is one. Empty: there is none. */
static const char *read_words(struct parser *p)
{
	const char *words = "", *gap = "";

	for (skip_qualifiers(p); p->token == TOK_NAME && p->string[0] != '$'; skip_qualifiers(p)) {
		words = arena_printf(p->arena, "%s%s%s", words, gap, p->string);
		next(p);
		gap = " ";
		if (is_punct(p, P1(':')) && *p->pos == ':') {
			next(p);
			next(p);
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
	struct expr_type_name *type = node_bytes(p, sizeof(*type));

	if (!type)
		return NULL;
	*type = (struct expr_type_name){.words = read_words(p)};
	for (; *type->words && is_punct(p, P1('*')); skip_qualifiers(p)) {
		type->n_pointers++;
		next(p);
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
	return p->token == TOK_NAME ? strcmp(p->string, "if") != 0
				    : p->token == TOK_INT || p->token == TOK_STRING ||
					      p->token == TOK_FLOAT || is_punct(p, P1('(')) ||
					      is_punct(p, P1('~')) || is_punct(p, P1('!'));
}

/*
 * "(type)" with the parser after it; NULL: it is something else, and the parser where it was.
 * @needs_operand  an operand must come after it, if it could be a name
 */
static struct expr_type_name *read_type_in_parentheses(struct parser *p, bool needs_operand)
{
	struct parser before = *p;

	next(p);
	struct expr_type_name *type = read_type(p);
	if (type && is_punct(p, P1(')'))) {
		next(p);
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

	next(p);
	if (!e || !enter(p))
		return NULL;
	if (is_punct(p, P1('(')))
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

	next(p);
	if (!e || !enter(p))
		return NULL;
	e->at = at;
	e->a = parse_expr(p);
	if (kind == EXPR_BUF && !is_punct(p, P1(',')))
		fail(p, -EINVAL, p->at, "buf() takes an address and a number of bytes: buf(p, n)");
	if (is_punct(p, P1(','))) {
		next(p);
		e->b = parse_expr(p);
	}
	if (e->b && kind == EXPR_STR && e->b->kind != EXPR_INT)
		fail(p, -EINVAL, e->b->at,
		     "the limit of str() is a number; buf(p, n) takes an expression");
	expect(p, ')', "a closing ) is missing here");
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
	next(p);
	if (!is_punct(p, P1('(')))
		return e;
	bool is_wide = !strcmp(e->name, "wstr");
	if (!e->scopes && (!strcmp(e->name, "str") || is_wide || !strcmp(e->name, "buf"))) {
		struct expr *call = parse_call(p, e->name[0] == 'b' ? EXPR_BUF : EXPR_STR, e->at);
		if (call)
			call->is_wide = is_wide;
		return call;
	}
	fail(p, -EINVAL, p->at,
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
	next(p);
	struct expr *e = parse_expr(p);
	expect(p, ')', "a closing ) is missing here");
	return e;
}

static struct expr *parse_primary(struct parser *p)
{
	static const enum expr_kind kinds[] = {
		[TOK_INT] = EXPR_INT, [TOK_STRING] = EXPR_STRING, [TOK_FLOAT] = EXPR_FLOAT};
	struct expr *e;

	if (p->token == TOK_NAME)
		return parse_name(p);
	if (is_punct(p, P1('(')))
		return parse_parentheses(p);
	if (p->token == TOK_END || p->token == TOK_PUNCT) {
		fail(p, -EINVAL, p->at, "a name or a constant is missing here");
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
	next(p);
	return e;
}

static struct expr *parse_member(struct parser *p, enum expr_kind kind, struct expr *a)
{
	next(p);
	struct expr *e = node(p, kind, a, NULL);
	if (p->token != TOK_NAME)
		fail(p, -EINVAL, p->at, "a member's name is missing here");
	if (p->code || !e)
		return NULL;
	e->name = p->string;
	next(p);
	return e;
}

static struct expr *parse_index(struct parser *p, struct expr *a)
{
	next(p);
	struct expr *e = node(p, EXPR_INDEX, a, NULL);
	if (!e)
		return NULL;
	if (is_punct(p, P1(']')))
		fail(p, -EINVAL, p->at, "an index is missing here");
	e->b = parse_expr(p);
	expect(p, ']', "a closing ] is missing here");
	return p->code ? NULL : e;
}

static struct expr *parse_postfix(struct parser *p)
{
	struct expr *e = parse_primary(p);
	unsigned int links = 0;

	while (!p->code) {
		if (++links > EXPR_DEPTH_MAX)
			fail(p, -ERANGE, p->at, "nested too deep");
		else if (is_punct(p, P1('.')))
			e = parse_member(p, EXPR_MEMBER, e);
		else if (is_punct(p, P2('-', '>')))
			e = parse_member(p, EXPR_ARROW, e);
		else if (is_punct(p, P1('[')))
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
		if (!is_punct(p, P1(kinds[i].punct)))
			continue;
		struct expr *e = node(p, kinds[i].kind, NULL, NULL);
		next(p);
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
			fail(p, -ERANGE, p->at, "too many operators in a row");
		next(p);
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

	while (!p->code && is_punct(p, punct)) {
		struct expr *both = node(p, kind, e, NULL);
		if (++links > EXPR_DEPTH_MAX)
			fail(p, -ERANGE, p->at, "too many operators in a row");
		next(p);
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

	next(p);
	if (!e)
		return NULL;
	e->b = parse_expr(p);
	expect(p, ':', "a : is missing here, after the value of ?");
	e->c = parse_expr(p);
	return p->code ? NULL : e;
}

static struct expr *parse_expr(struct parser *p)
{
	if (!enter(p))
		return NULL;
	struct expr *e = parse_chain(p, EXPR_OR);
	if (!p->code && is_punct(p, P1('?')))
		e = parse_choice(p, e);
	p->depth--;
	return p->code ? NULL : e;
}

static void parse_modifiers(struct parser *p, struct probe_value_text *v)
{
	while (!p->code && is_punct(p, P1(':'))) {
		next(p);
		if (p->token == TOK_NAME && !strcmp(p->string, "str"))
			v->as_string = true;
		else if (p->token == TOK_NAME && !strcmp(p->string, "hex"))
			v->hex = true;
		else
			return fail(p, -EINVAL, p->at, "only :str and :hex are known");
		next(p);
	}
}

static void parse_unit(struct parser *p, struct probe_value_text *v)
{
	if (p->code || !is_punct(p, P1(':')))
		return;
	next(p);
	if (p->token == TOK_NAME && !strcmp(p->string, "bytes"))
		v->unit = "bytes";
	else if (p->token == TOK_NAME && !strcmp(p->string, "ns"))
		v->unit = "nanoseconds";
	else
		return fail(p, -EINVAL, p->at, "only the units :bytes and :ns are known");
	next(p);
}

/* str(), wstr() and buf() around the whole of a value. */
static void unwrap(struct parser *p, struct probe_value_text *v)
{
	struct expr *e = v->expr;

	if (p->code || !e || (e->kind != EXPR_STR && e->kind != EXPR_BUF))
		return;
	v->expr = e->a;
	v->as_string = e->kind == EXPR_STR;
	v->is_wide = e->is_wide;
	if (e->kind == EXPR_BUF)
		v->n_bytes = e->b;
	else if (e->b && (e->b->value < 1 || e->b->value > STRING_MOST))
		fail(p, -ERANGE, e->b->at,
		     e->is_wide ? "wstr() shows 1 to 2047 characters"
				: "str() shows 1 to 2047 bytes");
	else if (e->b)
		v->most = (uint32_t)e->b->value;
}

/* The text of a value without the blanks around it. */
static const char *value_text(struct parser *p, uint32_t from, uint32_t to)
{
	while (to > from && isspace((unsigned char)p->text[to - 1]))
		to--;
	char *text = arena_strndup(p->arena, p->text + from, to - from);
	if (!text && !p->code)
		p->code = err_nomem(p->err, "an expression");
	return text;
}

static void parse_values(struct parser *p, struct probe_text *ret)
{
	ret->has_list = true;
	ret->values = arena_array(p->arena, FETCH_VALUES_MAX, sizeof(*ret->values));
	if (!ret->values) {
		p->code = err_nomem(p->err, "a probe");
		return;
	}
	next(p);
	while (!p->code && !is_punct(p, P1(')'))) {
		if (p->weighs && ret->n_values)
			return fail(p, -EINVAL, p->at,
				    "a hit has one number: write one expression");
		if (ret->n_values == FETCH_VALUES_MAX)
			return fail(p, -ERANGE, p->at, "more than 32 values");
		struct probe_value_text *v = &ret->values[ret->n_values++];
		uint32_t from = p->at;
		v->expr = parse_expr(p);
		v->text = value_text(p, from, p->at);
		if (p->weighs)
			parse_unit(p, v);
		else
			parse_modifiers(p, v);
		unwrap(p, v);
		if (!is_punct(p, P1(',')))
			break;
		next(p);
		if (is_punct(p, P1(')')))
			fail(p, -EINVAL, p->at, "a value is missing here");
	}
	expect(p, ')', "a comma or a closing ) is missing here");
}

/* Go's methods of pointers: main.(*Counter).grow */
static bool is_receiver(const char *text, size_t i)
{
	return text[i] == '(' && i && text[i - 1] == '.' && text[i + 1] == '*' &&
	       strchr(text + i, ')');
}

/*
 * Length of the head and its list of types, which end at the list of values, at the condition or
 * with the text. *@ret_name: that of the head alone.
 */
static size_t head_length(const char *text, size_t *ret_name)
{
	int angle = 0;
	size_t n_types;

	*ret_name = SIZE_MAX;

	for (size_t i = 0; text[i]; i++) {
		bool in_operator = i >= 8 && !strncmp(text + i - 8, "operator", 8);
		if (text[i] == '<' && in_operator)
			i += text[i + 1] == '<';
		else if (text[i] == '<')
			angle++;
		else if (text[i] == '>' && angle > 0)
			angle--;
		else if (text[i] == '(' && in_operator && text[i + 1] == ')')
			i++;
		else if (is_receiver(text, i))
			i += strcspn(text + i, ")") - 1;
		else if (text[i] == '(' && !angle && *ret_name == SIZE_MAX &&
			 (n_types = overload_length(text + i))) {
			*ret_name = i;
			i += n_types - 1;
		} else if (text[i] == '(' && !angle)
			return i;
		else if (i && isspace((unsigned char)text[i]) && !strncmp(text + i + 1, "if", 2) &&
			 !name_goes_on(text[i + 3]))
			return i;
	}
	return strlen(text);
}

/* The head ends in ":88" or "+0x1c": a line, or an offset. Names of C++ have no such end. */
static bool is_place(const char *head)
{
	size_t n = strlen(head), digits = n;
	while (digits && isxdigit((unsigned char)head[digits - 1]))
		digits--;
	if (digits > 1 && head[digits - 1] == 'x' && head[digits - 2] == '0')
		digits -= 2;
	if (digits < 2 || digits == n || !isdigit((unsigned char)head[digits]))
		return false;
	if (head[digits - 1] == '+')
		return true;
	/* A line is decimal, and "::" belongs to a name. */
	return head[digits - 1] == ':' && head[digits - 2] != ':' &&
	       strspn(head + digits, "0123456789") == n - digits;
}

static int parse_head(struct arena *arena, const char *text, size_t len, struct probe_text *ret,
		      struct cairn_err *err)
{
	size_t from = 0;

	while (from < len && isspace((unsigned char)text[from]))
		from++;
	while (len > from && isspace((unsigned char)text[len - 1]))
		len--;
	const char *other = foreign_kind(text + from, len - from);
	if (other)
		return probe_error(err, -EOPNOTSUPP, text, (uint32_t)from, "%s", other);
	if (!strncmp(text + from, "usdt:", 5)) {
		ret->kind = PROBE_OF_USDT;
		from += 5;
	} else if (!strncmp(text + from, "uprobe:", 7)) {
		from += 7;
	} else if (!strncmp(text + from, "u:", 2)) {
		from += 2;
	}
	if (from >= len)
		return probe_error(err, -EINVAL, text, (uint32_t)from, "%s",
				   ret->kind == PROBE_OF_USDT
					   ? "a probe's name is missing: usdt:FILE:PROVIDER:NAME"
					   : "a function's name is missing");
	ret->head = arena_strndup(arena, text + from, len - from);
	if (!ret->head)
		return err_nomem(err, "a probe");
	if (ret->kind == PROBE_OF_FUNCTION && is_place(ret->head))
		ret->kind = PROBE_OF_PLACE;
	return 0;
}

static int parse(struct arena *arena, const char *text, bool weighs, struct probe_text *ret,
		 struct cairn_err *err)
{
	if (strlen(text) > PROBE_TEXT_MAX)
		return err_set(err, -ERANGE, "a probe of %zu characters; the limit is %d",
			       strlen(text), PROBE_TEXT_MAX);
	*ret = (struct probe_text){.text = arena_strdup(arena, text)};
	if (!ret->text)
		return err_nomem(err, "a probe");
	size_t name, head = head_length(ret->text, &name);
	bool has_types = name != SIZE_MAX;
	int e = parse_head(arena, ret->text, has_types ? name : head, ret, err);
	if (e < 0)
		return e;
	if (has_types && ret->kind != PROBE_OF_FUNCTION)
		return probe_error(err, -EINVAL, ret->text, (uint32_t)name,
				   "a list of types tells functions apart, and this is none");
	ret->types = has_types ? arena_strndup(arena, ret->text + name, head - name) : NULL;
	if (has_types && !ret->types)
		return err_nomem(err, "a probe");
	struct parser p = {.arena = arena,
			   .err = err,
			   .text = ret->text,
			   .pos = ret->text + head,
			   .weighs = weighs};
	next(&p);
	if (is_punct(&p, P1('(')))
		parse_values(&p, ret);
	if (!p.code && p.token == TOK_NAME && !strcmp(p.string, "if")) {
		next(&p);
		ret->condition_text = ret->text + p.at;
		ret->condition = parse_expr(&p);
	}
	if (!p.code && p.token != TOK_END)
		fail(&p, -EINVAL, p.at, "this does not belong here");
	return p.code;
}

int probe_parse(struct arena *arena, const char *text, struct probe_text *ret,
		struct cairn_err *err)
{
	return parse(arena, text, false, ret, err);
}

int probe_parse_weighed(struct arena *arena, const char *text, struct probe_text *ret,
			struct cairn_err *err)
{
	return parse(arena, text, true, ret, err);
}

/* An integer with an optional minus. */
static int64_t parse_integer(struct parser *p)
{
	bool negative = is_punct(p, P1('-'));
	uint64_t limit = (uint64_t)INT64_MAX + negative, value;

	if (negative)
		next(p);
	if (p->token != TOK_INT) {
		fail(p, -EINVAL, p->at, "an integer is missing here");
		return 0;
	}
	value = p->value;
	if (value > limit)
		fail(p, -ERANGE, p->at, "this does not fit a signed 64-bit number");
	next(p);
	return (int64_t)(negative ? -value : value);
}

static void parse_range(struct parser *p, int64_t range[3])
{
	for (int i = 0; i < 3; i++) {
		expect(p, ',',
		       "a histogram of steps is EXPR,FROM,TO,STEP: a comma is missing here");
		range[i] = parse_integer(p);
	}
}

static struct parser parser_of(struct arena *arena, const char *text, struct cairn_err *err)
{
	return (struct parser){.arena = arena, .err = err, .text = text, .pos = text};
}

static int parse_all(struct parser *p)
{
	if (!p->code && p->token != TOK_END)
		fail(p, -EINVAL, p->at, "this does not belong here");
	return p->code;
}

int probe_parse_number(struct arena *arena, const char *text, int64_t *range,
		       struct probe_value_text *ret, struct cairn_err *err)
{
	struct parser p = parser_of(arena, text, err);

	next(&p);
	uint32_t from = p.at;
	ret->expr = parse_expr(&p);
	ret->text = value_text(&p, from, p.at);
	if (range)
		parse_range(&p, range);
	return parse_all(&p);
}

int probe_parse_keys(struct arena *arena, const char *text, uint32_t max,
		     struct probe_value_text *ret, uint32_t *ret_n, struct cairn_err *err)
{
	struct parser p = parser_of(arena, text, err);

	*ret_n = 0;
	do {
		next(&p);
		uint32_t from = p.at;
		if (*ret_n == max)
			fail(&p, -ERANGE, p.at, "there are too many keys before this one");
		if (p.code)
			return p.code;
		struct probe_value_text *v = &ret[(*ret_n)++];
		*v = (struct probe_value_text){.expr = parse_expr(&p)};
		v->text = value_text(&p, from, p.at);
		parse_modifiers(&p, v);
		unwrap(&p, v);
	} while (!p.code && is_punct(&p, P1(',')));
	return parse_all(&p);
}

int probe_parse_field(struct arena *arena, const char *text, uint32_t *at,
		      struct probe_value_text *ret, struct cairn_err *err)
{
	struct parser p = parser_of(arena, text, err);

	p.pos = text + *at;
	next(&p);
	uint32_t from = p.at;
	ret->expr = parse_expr(&p);
	ret->text = value_text(&p, from, p.at);
	unwrap(&p, ret);
	*at = p.at;
	return p.code;
}
