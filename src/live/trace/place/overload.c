/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/place/overload.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sites/spelling.h"

enum { LIST_MAX = 1000, DEPTH_MAX = 64 };

/* ---- in a probe's text ---- */

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_blanks(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* The ")" of the list at @s; NULL: there is none. */
static const char *list_end(const char *s)
{
	int depth = 0;

	for (; *s; s++) {
		if (*s == '"' || *s == '\'')
			return NULL;
		depth += *s == '(';
		depth -= *s == ')';
		if (!depth)
			return s;
	}
	return NULL;
}

/* A word that no expression has outside of parentheses. */
static bool is_type_word(const char *s, size_t n)
{
	static const char *const words[] = {
		"void",    "int",      "char",     "short", "long",    "unsigned",
		"signed",  "float",    "double",   "bool",  "_Bool",   "wchar_t",
		"char8_t", "char16_t", "char32_t", "const", "volatile"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == n && !strncmp(s, words[i], n))
			return true;
	return false;
}

/* "struct rec"; a variable of C may be named "class". */
static bool is_tag(const char *s, size_t n)
{
	static const char *const words[] = {"struct", "union", "enum", "class"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == n && !strncmp(s, words[i], n))
			return is_word_char(*skip_blanks(s + n));
	return false;
}

/* One element, [s, end): "int", "T *" and "..." can only be types. */
static bool is_surely_type(const char *s, const char *end)
{
	const char *last = end;
	int depth = 0;

	while (last > s && isspace((unsigned char)last[-1]))
		last--;
	if (last > s && (last[-1] == '*' || last[-1] == '&' || last[-1] == '.'))
		return true;
	while (s < end) {
		size_t n = 0;
		while (s + n < end && is_word_char(s[n]))
			n++;
		if (n && !depth && (is_type_word(s, n) || is_tag(s, n)))
			return true;
		depth += *s == '(' || *s == '[';
		depth -= *s == ')' || *s == ']';
		s += n ? n : 1;
	}
	return false;
}

static bool has_surely_type(const char *s, const char *end)
{
	int depth = 0;

	for (const char *from = s; s <= end; s++) {
		depth += s < end && (*s == '(' || *s == '[');
		depth -= s < end && (*s == ')' || *s == ']');
		if (s < end && (depth || *s != ','))
			continue;
		if (is_surely_type(from, s))
			return true;
		from = s + 1;
	}
	return false;
}

/* Qualifiers of a method, after its list. */
static const char *skip_qualifiers(const char *s)
{
	static const char *const words[] = {"const", "volatile", "noexcept"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *at = skip_blanks(s);
		size_t n = strlen(words[i]);
		if (!strncmp(at, words[i], n) && !is_word_char(at[n]))
			s = at + n;
	}
	return s;
}

size_t overload_length(const char *s)
{
	const char *close = list_end(s), *after = close ? skip_qualifiers(close + 1) : NULL;

	if (!close)
		return 0;
	bool is_list =
		after != close + 1 || *skip_blanks(after) == '(' || has_surely_type(s + 1, close);
	return is_list ? (size_t)(after - s) : 0;
}

/* ---- of a function ---- */

static bool is_this(const struct cairn_function *f, uint32_t i)
{
	return !i && f->params[0].name && !strcmp(f->params[0].name, "this");
}

/* A type without typedefs: qualifiers and pointers after what they belong to. */
static void plain_name(const struct cairn_types *types, uint32_t id, unsigned int depth, char *buf,
		       size_t size)
{
	const struct cairn_type *t = cairn_types_get(types, id);
	const char *after = t->kind == CAIRN_T_PTR        ? "*"
			    : t->kind == CAIRN_T_REF      ? "&"
			    : t->kind == CAIRN_T_RREF     ? "&&"
			    : t->kind == CAIRN_T_CONST    ? " const"
			    : t->kind == CAIRN_T_VOLATILE ? " volatile"
			    : t->kind == CAIRN_T_TYPEDEF  ? ""
							  : NULL;

	if (!after || depth == DEPTH_MAX) {
		cairn_types_name(types, id, buf, size);
		return;
	}
	plain_name(types, t->ref, depth + 1, buf, size);
	size_t n = strlen(buf);
	snprintf(buf + n, size - n, "%s", after);
}

static size_t list_of(const struct cairn_types *types, const struct cairn_function *f,
		      bool is_plain, char *buf, size_t size)
{
	char one[LIST_MAX];
	size_t at = 0;

	at += (size_t)snprintf(buf, size, "(");
	for (uint32_t i = 0; i < f->n_params; i++) {
		if (is_this(f, i))
			continue;
		if (is_plain)
			plain_name(types, f->params[i].type, 0, one, sizeof(one));
		else
			cairn_types_name(types, f->params[i].type, one, sizeof(one));
		at += (size_t)snprintf(at < size ? buf + at : NULL, at < size ? size - at : 0,
				       "%s%s", at > 1 ? ", " : "", one);
	}
	const char *more = at > 1 ? ", ..." : "...";

	return at + (size_t)snprintf(at < size ? buf + at : NULL, at < size ? size - at : 0, "%s)",
				     f->variadic ? more : "");
}

static bool is_const_method(const struct cairn_types *types, const struct cairn_function *f)
{
	if (!f->n_params || !is_this(f, 0))
		return false;
	const struct cairn_type *t = cairn_types_get(types, f->params[0].type);
	while (t->kind == CAIRN_T_CONST || t->kind == CAIRN_T_TYPEDEF)
		t = cairn_types_get(types, t->ref);
	return t->kind == CAIRN_T_PTR && cairn_types_get(types, t->ref)->kind == CAIRN_T_CONST;
}

size_t overload_list(const struct cairn_types *types, const struct cairn_function *function,
		     char *buf, size_t size)
{
	size_t n = list_of(types, function, false, buf, size);

	if (!is_const_method(types, function))
		return n;
	return n + (size_t)snprintf(n < size ? buf + n : NULL, n < size ? size - n : 0, " const");
}

/* C++ leaves out "struct" and the like. */
static void remove_tags(char *text)
{
	char *to = text;
	bool is_start = true;

	for (const char *from = text; *from;) {
		size_t n = 0;
		while (is_word_char(from[n]))
			n++;
		if (n && is_start && is_tag(from, n)) {
			from = skip_blanks(from + n);
			continue;
		}
		is_start = !is_word_char(*from);
		*to++ = *from++;
	}
	*to = 0;
}

/* The types of a list in one spelling: those of template arguments are. */
static bool spell(const char *list, size_t n, char *buf, size_t size)
{
	char text[LIST_MAX];
	const char *inside = n > 2 ? skip_blanks(list + 1) : "";
	bool is_void = n > 2 && !strncmp(inside, "void", 4) && *skip_blanks(inside + 4) == ')';
	int len = snprintf(text, sizeof(text), "f<%.*s>", is_void || n < 2 ? 0 : (int)n - 2,
			   list + 1);

	if (len < 0 || (size_t)len >= sizeof(text))
		return false;
	remove_tags(text);
	return spelling_of(text, buf, size);
}

static bool is_same_list(const char *wanted, const char *list, size_t n)
{
	char one[LIST_MAX], other[LIST_MAX];

	return spell(wanted, (size_t)(list_end(wanted) + 1 - wanted), one, sizeof(one)) &&
	       spell(list, n, other, sizeof(other)) && !strcmp(one, other);
}

bool overload_is(const struct cairn_types *types, const struct cairn_function *function,
		 const char *list)
{
	bool is_const = strstr(list_end(list), "const") != NULL;

	if (is_const != is_const_method(types, function))
		return false;
	for (int is_plain = 0; is_plain < 2; is_plain++) {
		char own[LIST_MAX];
		size_t n = list_of(types, function, is_plain, own, sizeof(own));
		if (n < sizeof(own) && is_same_list(list, own, n))
			return true;
	}
	return false;
}
