/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of a probe's text, which are those of C, and errors in it. */
#include "trace/expr/parser.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

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

void parser_fail(struct parser *p, int code, uint32_t at, const char *what)
{
	if (!p->code)
		p->code = probe_error(p->err, code, p->text, at, "%s", what);
	p->token = TOK_END;
}

void *parser_bytes(struct parser *p, size_t size)
{
	void *bytes = arena_alloc(p->arena, size);

	if (!bytes && !p->code)
		p->code = err_nomem(p->err, "an expression");
	return bytes;
}

static bool lex_name_starts(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == '$';
}

bool lex_name_goes_on(char c)
{
	return lex_name_starts(c) || isdigit((unsigned char)c);
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

	p->string = parser_bytes(p, strlen(s) + 1);
	p->n_string = 0;
	if (!p->string)
		return;
	while (*s && *s != '"') {
		unsigned char c;

		if (!read_char(&s, &c))
			return parser_fail(p, -EINVAL, (uint32_t)(s - p->text), "no such escape");
		if (!c)
			return parser_fail(p, -EINVAL, (uint32_t)(s - 1 - p->text),
					   "a string ends at a NUL, so it cannot hold one");
		p->string[p->n_string++] = (char)c;
	}
	if (*s != '"')
		return parser_fail(p, -EINVAL, p->at, "this string has no end");
	p->pos = s + 1;
	p->token = TOK_STRING;
}

static void lex_char(struct parser *p)
{
	const char *s = p->pos + 1;
	unsigned char c;

	if (!*s || *s == '\'' || !read_char(&s, &c) || *s != '\'')
		return parser_fail(p, -EINVAL, p->at, "not a character constant");
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
	if (lex_name_goes_on(*end))
		return parser_fail(p, -EINVAL, (uint32_t)(end - p->text), "not part of a number");
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
		return parser_fail(p, -EINVAL, p->at, "this number does not fit 64 bits");
	bool decimal = *p->pos != '0';
	p->is_unsigned = p->is_long = false;
	for (; *end && strchr("uUlL", *end); end++) {
		p->is_unsigned |= *end == 'u' || *end == 'U';
		p->is_long |= *end == 'l' || *end == 'L';
	}
	if (lex_name_goes_on(*end) || (*end == '.' && isdigit((unsigned char)end[1])))
		return parser_fail(p, -EINVAL, (uint32_t)(end - p->text), "not part of an integer");
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
		while (lex_name_goes_on(*s) || (*s == '.' && lex_name_goes_on(s[1])))
			s++;
	}
	return !strncmp(s, "::", 2) && (lex_name_starts(s[2]) || s[2] == '\'') ? s + 2 : NULL;
}

/* Scopes and a name, without the quotes. */
static void lex_name(struct parser *p)
{
	const char *s = p->pos, *end;
	uint32_t n = 0;

	while ((end = scope_end(s)))
		s = end;
	while (lex_name_goes_on(*s))
		s++;
	p->string = parser_bytes(p, (size_t)(s - p->pos) + 1);
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

void parser_next(struct parser *p)
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
	else if (lex_name_starts(c) || (c == '\'' && scope_end(p->pos)))
		lex_name(p);
	else if (isdigit((unsigned char)c))
		lex_int(p);
	else if (c == '\'')
		lex_char(p);
	else
		lex_punct(p);
}

bool parser_is_punct(const struct parser *p, uint32_t punct)
{
	return p->token == TOK_PUNCT && p->punct == punct;
}

void parser_expect(struct parser *p, char punct, const char *what)
{
	if (!parser_is_punct(p, P1(punct)))
		return parser_fail(p, -EINVAL, p->at, what);
	parser_next(p);
}
