/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grammar of probes
 *
 *	probe     := head [ parameters ] [ "(" [ value { "," value } ] ")" ] [ "if" expr ]
 *	head      := everything up to the list, the condition or the end; resolve.c takes it apart,
 *	             and usdt.c after "usdt:"
 *	value     := expr { ":" ( "str" | "hex" ) }
 *	             or, as the number of a hit: expr [ ":" ( "bytes" | "ns" ) ]
 *
 * parse_expr.c has the grammar of expr.
 *
 * The parameters are a list of types, which tells functions of one name apart (overload.h).
 *
 * The head is cut off first because a C++ name is no token of C: it may hold "::", templates with
 * commas and parentheses, and "operator()". It ends at the first "(" outside of < > that does not
 * belong to an operator's name, or at the word "if" after a blank.
 */
#include "trace/expr/parser.h"
#include "trace/place/foreign.h"
#include "trace/place/overload.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { STRING_MOST = 2047 };

static void parse_modifiers(struct parser *p, struct probe_value_text *v)
{
	while (!p->code && parser_is_punct(p, P1(':'))) {
		parser_next(p);
		if (p->token == TOK_NAME && !strcmp(p->string, "str"))
			v->as_string = true;
		else if (p->token == TOK_NAME && !strcmp(p->string, "hex"))
			v->hex = true;
		else
			return parser_fail(p, -EINVAL, p->at, "only :str and :hex are known");
		parser_next(p);
	}
}

static void parse_unit(struct parser *p, struct probe_value_text *v)
{
	if (p->code || !parser_is_punct(p, P1(':')))
		return;
	parser_next(p);
	if (p->token == TOK_NAME && !strcmp(p->string, "bytes"))
		v->unit = "bytes";
	else if (p->token == TOK_NAME && !strcmp(p->string, "ns"))
		v->unit = "nanoseconds";
	else
		return parser_fail(p, -EINVAL, p->at, "only the units :bytes and :ns are known");
	parser_next(p);
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
		parser_fail(p, -ERANGE, e->b->at,
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
	parser_next(p);
	while (!p->code && !parser_is_punct(p, P1(')'))) {
		if (p->weighs && ret->n_values)
			return parser_fail(p, -EINVAL, p->at,
					   "a hit has one number: write one expression");
		if (ret->n_values == FETCH_VALUES_MAX)
			return parser_fail(p, -ERANGE, p->at, "more than 32 values");
		struct probe_value_text *v = &ret->values[ret->n_values++];
		uint32_t from = p->at;
		v->expr = expr_parse(p);
		v->text = value_text(p, from, p->at);
		if (p->weighs)
			parse_unit(p, v);
		else
			parse_modifiers(p, v);
		unwrap(p, v);
		if (!parser_is_punct(p, P1(',')))
			break;
		parser_next(p);
		if (parser_is_punct(p, P1(')')))
			parser_fail(p, -EINVAL, p->at, "a value is missing here");
	}
	parser_expect(p, ')', "a comma or a closing ) is missing here");
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
			 !lex_name_goes_on(text[i + 3]))
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
	parser_next(&p);
	if (parser_is_punct(&p, P1('(')))
		parse_values(&p, ret);
	if (!p.code && p.token == TOK_NAME && !strcmp(p.string, "if")) {
		parser_next(&p);
		ret->condition_text = ret->text + p.at;
		ret->condition = expr_parse(&p);
	}
	if (!p.code && p.token != TOK_END)
		parser_fail(&p, -EINVAL, p.at, "this does not belong here");
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
	bool negative = parser_is_punct(p, P1('-'));
	uint64_t limit = (uint64_t)INT64_MAX + negative, value;

	if (negative)
		parser_next(p);
	if (p->token != TOK_INT) {
		parser_fail(p, -EINVAL, p->at, "an integer is missing here");
		return 0;
	}
	value = p->value;
	if (value > limit)
		parser_fail(p, -ERANGE, p->at, "this does not fit a signed 64-bit number");
	parser_next(p);
	return (int64_t)(negative ? -value : value);
}

static void parse_range(struct parser *p, int64_t range[3])
{
	for (int i = 0; i < 3; i++) {
		parser_expect(p, ',',
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
		parser_fail(p, -EINVAL, p->at, "this does not belong here");
	return p->code;
}

int probe_parse_number(struct arena *arena, const char *text, int64_t *range,
		       struct probe_value_text *ret, struct cairn_err *err)
{
	struct parser p = parser_of(arena, text, err);

	parser_next(&p);
	uint32_t from = p.at;
	ret->expr = expr_parse(&p);
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
		parser_next(&p);
		uint32_t from = p.at;
		if (*ret_n == max)
			parser_fail(&p, -ERANGE, p.at, "there are too many keys before this one");
		if (p.code)
			return p.code;
		struct probe_value_text *v = &ret[(*ret_n)++];
		*v = (struct probe_value_text){.expr = expr_parse(&p)};
		v->text = value_text(&p, from, p.at);
		parse_modifiers(&p, v);
		unwrap(&p, v);
	} while (!p.code && parser_is_punct(&p, P1(',')));
	return parse_all(&p);
}

int probe_parse_field(struct arena *arena, const char *text, uint32_t *at,
		      struct probe_value_text *ret, struct cairn_err *err)
{
	struct parser p = parser_of(arena, text, err);

	p.pos = text + *at;
	parser_next(&p);
	uint32_t from = p.at;
	ret->expr = expr_parse(&p);
	ret->text = value_text(&p, from, p.at);
	unwrap(&p, ret);
	*at = p.at;
	return p.code;
}
