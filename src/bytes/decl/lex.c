/* SPDX-License-Identifier: BSD-2-Clause */
#include "decl/decl.h"
#include "decl/lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* #pragma pack(push) without a pop: real headers have two or three. */
enum { PACKS_MAX = 4096 };
/* The part of a source line that an error shows. */
enum { SHOWN_MAX = 160 };

void lex_init(struct lexer *lx, const char *text, size_t size, const char *name,
	      struct arena *arena, struct cairn_err *err)
{
	*lx = (struct lexer){.p = text,
			     .end = text + size,
			     .line_start = text,
			     .file = name,
			     .line = 1,
			     .arena = arena,
			     .err = err};
}

void lex_fini(struct lexer *lx)
{
	VEC_FREE(&lx->packs);
}

/* ---- errors ---- */

/* The line of @at and a caret below; a long line is shown around it. */
static void show_line(const struct lexer *lx, const struct token *at, char *buf, size_t size)
{
	const char *from = at->line_start, *to = at->p;
	char blanks[SHOWN_MAX + 1];
	size_t n;

	if (at->p - from > SHOWN_MAX / 2)
		from = at->p - SHOWN_MAX / 2;
	while (to < lx->end && *to != '\n' && to - from < SHOWN_MAX)
		to++;
	for (n = 0; n < (size_t)(at->p - from); n++)
		blanks[n] = from[n] == '\t' ? '\t' : ' ';
	blanks[n] = 0;
	n = (size_t)snprintf(buf, size, "    ");
	for (; from < to && n + 1 < size; from++)
		buf[n++] = *from == '\t' || ((unsigned char)*from >= ' ' &&
					     (unsigned char)*from < 0x7f)
				   ? *from
				   : '?';
	snprintf(buf + n, size - n, "\n    %s^", blanks);
}

int lex_error(const struct lexer *lx, const struct token *at, int code, struct cairn_err *err,
	      const char *format, ...)
{
	char fact[512], line[2 * SHOWN_MAX + 32];
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	vsnprintf(fact, sizeof(fact), format, args);
	va_end(args);
	show_line(lx, at, line, sizeof(line));
	return err_lines(err, code, line, "%s:%lu:%zu: %s", at->file, at->line,
			 (size_t)(at->p - at->line_start) + 1, fact);
}

/* ---- blanks, comments, directives ---- */

static int peek(const struct lexer *lx, size_t i)
{
	return (size_t)(lx->end - lx->p) > i ? (unsigned char)lx->p[i] : -1;
}

static void new_line(struct lexer *lx)
{
	lx->line++;
	lx->line_start = lx->p;
}

static bool is_name_char(int c)
{
	return c == '_' || c == '$' || c >= 0x80 || (c >= 0 && isalnum(c));
}

static void skip_blanks_in_line(struct lexer *lx)
{
	while (peek(lx, 0) == ' ' || peek(lx, 0) == '\t')
		lx->p++;
}

static void skip_line(struct lexer *lx)
{
	while (lx->p < lx->end && *lx->p != '\n')
		lx->p++;
}

static size_t word_at(const struct lexer *lx)
{
	size_t n = 0;

	while (is_name_char(peek(lx, n)))
		n++;
	return n;
}

static bool take_word(struct lexer *lx, const char *word)
{
	size_t n = word_at(lx);

	if (n != strlen(word) || memcmp(lx->p, word, n))
		return false;
	lx->p += n;
	skip_blanks_in_line(lx);
	return true;
}

static bool take_char(struct lexer *lx, int c)
{
	if (peek(lx, 0) != c)
		return false;
	lx->p++;
	skip_blanks_in_line(lx);
	return true;
}

static unsigned long take_decimal(struct lexer *lx)
{
	unsigned long n = 0;

	for (; peek(lx, 0) >= '0' && peek(lx, 0) <= '9'; lx->p++)
		n = n < 100000000 ? 10 * n + (unsigned long)(*lx->p - '0') : n;
	skip_blanks_in_line(lx);
	return n;
}

/* # 12 "file.h" 1 3 4 */
static int line_marker(struct lexer *lx)
{
	unsigned long line = take_decimal(lx);

	if (take_char(lx, '"')) {
		const char *name = lx->p;

		while (lx->p < lx->end && *lx->p != '"' && *lx->p != '\n')
			lx->p++;
		lx->file = arena_strndup(lx->arena, name, (size_t)(lx->p - name));
		if (!lx->file)
			return err_nomem(lx->err, "names of headers");
	}
	skip_line(lx);
	/* The marker numbers the line after it. */
	lx->line = line ? line - 1 : 0;
	return 0;
}

static int pack_push(struct lexer *lx, const char *label, size_t n)
{
	struct token at = lex_here(lx);

	if (lx->packs.n == PACKS_MAX)
		return lex_error(lx, &at, -ERANGE, lx->err, "more than %d #pragma pack(push)",
				 PACKS_MAX);
	struct pack_entry *e = VEC_PUSH(&lx->packs);
	if (!e)
		return err_nomem(lx->err, "#pragma pack");
	*e = (struct pack_entry){lx->pack, label, n};
	return 0;
}

/* Without a label the last one; with one down to it, or nothing when it is not there. */
static void pack_pop(struct lexer *lx, const char *label, size_t n)
{
	for (size_t i = lx->packs.n; i-- > 0;) {
		const struct pack_entry *e = &lx->packs.p[i];

		if (label && !(e->label && e->label_n == n && !memcmp(e->label, label, n)))
			continue;
		lx->pack = e->pack;
		lx->packs.n = i;
		return;
	}
}

/* (), (4), (push), (push, 4), (push, label, 4), (pop), (pop, label), (pop, 4) */
static int pragma_pack(struct lexer *lx)
{
	bool push, pop;
	const char *label = NULL;
	size_t n = 0;
	int rc = 0;

	if (!take_char(lx, '('))
		return 0;
	push = take_word(lx, "push");
	pop = !push && take_word(lx, "pop");
	take_char(lx, ',');
	if (peek(lx, 0) > '9') {
		label = lx->p;
		n = word_at(lx);
		lx->p += n;
		skip_blanks_in_line(lx);
		take_char(lx, ',');
	}
	bool has_number = peek(lx, 0) >= '0' && peek(lx, 0) <= '9';
	unsigned long number = take_decimal(lx);
	if (push)
		rc = pack_push(lx, label, n);
	else if (pop)
		pack_pop(lx, label, n);
	else if (!has_number)
		lx->pack = 0;
	/* The compilers warn about other numbers, and ignore them. */
	if (has_number && number <= 16 && !(number & (number - 1)))
		lx->pack = (uint32_t)number;
	return rc;
}

static int pragma(struct lexer *lx)
{
	int rc = 0;

	if (take_word(lx, "pack")) {
		rc = pragma_pack(lx);
	} else if (take_word(lx, "ms_struct")) {
		lx->ms_struct = take_word(lx, "on");
	} else if (take_word(lx, "scalar_storage_order")) {
		struct token at = lex_here(lx);

		if (!take_word(lx, "default"))
			return lex_error(lx, &at, -EBADMSG, lx->err,
					 "another byte order in structs is not known here");
	}
	skip_line(lx);
	return rc;
}

static const char *const conditional[] = {"include", "include_next", "import", "if",
					  "ifdef",   "ifndef",       "elif",   "else",
					  "endif",   "error",        "define"};

static int directive(struct lexer *lx)
{
	struct token at = lex_here(lx);

	lx->p++;
	skip_blanks_in_line(lx);
	if (isdigit(peek(lx, 0) < 0 ? 0 : peek(lx, 0)))
		return line_marker(lx);
	if (take_word(lx, "line"))
		return line_marker(lx);
	if (take_word(lx, "pragma"))
		return pragma(lx);
	for (size_t i = 0; i < sizeof(conditional) / sizeof(conditional[0]); i++)
		if (word_at(lx) == strlen(conditional[i]) &&
		    !memcmp(lx->p, conditional[i], strlen(conditional[i])))
			return lex_error(lx, &at, -EBADMSG, lx->err,
					 "#%s: the text must have gone through a preprocessor",
					 conditional[i]);
	skip_line(lx);
	return 0;
}

static int skip_comment(struct lexer *lx)
{
	struct token at = lex_here(lx);

	for (lx->p += 2; lx->p < lx->end; lx->p++) {
		if (*lx->p == '*' && peek(lx, 1) == '/') {
			lx->p += 2;
			return 0;
		}
		if (*lx->p == '\n') {
			lx->p++;
			new_line(lx);
			lx->p--;
		}
	}
	return lex_error(lx, &at, -EBADMSG, lx->err, "a comment without an end");
}

static bool is_first_in_line(const struct lexer *lx)
{
	for (const char *p = lx->p; p-- > lx->line_start;)
		if (*p != ' ' && *p != '\t')
			return false;
	return true;
}

/* To the next token. */
static int skip_blanks(struct lexer *lx)
{
	int rc = 0;

	while (!rc && lx->p < lx->end) {
		int c = peek(lx, 0);

		if (c == '\n') {
			lx->p++;
			new_line(lx);
		} else if (c == ' ' || (c >= '\t' && c <= '\r')) {
			lx->p++;
		} else if (c == '\\' && (peek(lx, 1) == '\n' || peek(lx, 1) == '\r')) {
			lx->p++;
		} else if (c == '/' && peek(lx, 1) == '*') {
			rc = skip_comment(lx);
		} else if (c == '/' && peek(lx, 1) == '/') {
			skip_line(lx);
		} else if (c == '#' && is_first_in_line(lx)) {
			rc = directive(lx);
		} else {
			break;
		}
	}
	return rc;
}

/* ---- tokens ---- */

/* clang-format off */
static const struct {
	char text[4];
	int punct;
} puncts[] = {
	/* Longest first. */
	{"...", P_ELLIPSIS}, {"<<=", P_ASSIGN},	  {">>=", P_ASSIGN},	  {"->", P_ARROW},
	{"<<", P_SHL},	     {">>", P_SHR},	  {"<=", P_LE},		  {">=", P_GE},
	{"==", P_EQ},	     {"!=", P_NE},	  {"&&", P_AND},	  {"||", P_OR},
	{"++", P_INCREMENT}, {"--", P_INCREMENT}, {"+=", P_ASSIGN},	  {"-=", P_ASSIGN},
	{"*=", P_ASSIGN},    {"/=", P_ASSIGN},	  {"%=", P_ASSIGN},	  {"&=", P_ASSIGN},
	{"|=", P_ASSIGN},    {"^=", P_ASSIGN},	  {"::", P_DOUBLE_COLON},
};
/* clang-format on */

static void lex_punct(struct lexer *lx, struct token *t)
{
	t->kind = TOKEN_PUNCT;
	t->punct = (unsigned char)*lx->p;
	t->n = 1;
	for (size_t i = 0; i < sizeof(puncts) / sizeof(puncts[0]); i++) {
		size_t n = strlen(puncts[i].text);

		if ((size_t)(lx->end - lx->p) >= n && !memcmp(lx->p, puncts[i].text, n)) {
			t->punct = puncts[i].punct;
			t->n = n;
			break;
		}
	}
	lx->p += t->n;
}

/* From the opening quote; a line break or the end of the text ends it badly. */
static int lex_quoted(struct lexer *lx, struct token *t)
{
	char quote = *lx->p;

	t->kind = quote == '"' ? TOKEN_STRING : TOKEN_CHAR;
	for (lx->p++; lx->p < lx->end && *lx->p != quote && *lx->p != '\n'; lx->p++)
		if (*lx->p == '\\' && lx->p + 1 < lx->end && lx->p[1] != '\n')
			lx->p++;
	if (lx->p >= lx->end || *lx->p != quote)
		return lex_error(lx, t, -EBADMSG, lx->err, "a %s without an end",
				 quote == '"' ? "string" : "character constant");
	lx->p++;
	return 0;
}

/* A preprocessing number: 0x1fUL, 1e+5, 1.5f. */
static void lex_number(struct lexer *lx)
{
	while (is_name_char(peek(lx, 0)) || peek(lx, 0) == '.' || peek(lx, 0) == '\'') {
		int c = peek(lx, 0) | 0x20, next = peek(lx, 1);

		lx->p++;
		if ((c == 'e' || c == 'p') && (next == '+' || next == '-'))
			lx->p++;
	}
}

/* L'a', u8"text" */
static bool is_prefix_of_quote(const char *p, size_t n, int next)
{
	if (next != '"' && next != '\'')
		return false;
	return (n == 1 && (*p == 'L' || *p == 'u' || *p == 'U')) ||
	       (n == 2 && p[0] == 'u' && p[1] == '8');
}

int lex_next(struct lexer *lx, struct token *ret)
{
	int rc = skip_blanks(lx);

	if (rc)
		return rc;
	*ret = lex_here(lx);
	if (lx->p >= lx->end) {
		ret->kind = TOKEN_END;
		ret->n = 0;
		return 0;
	}
	int c = peek(lx, 0);
	if (isdigit(c) || (c == '.' && peek(lx, 1) >= '0' && peek(lx, 1) <= '9')) {
		ret->kind = TOKEN_NUMBER;
		lex_number(lx);
	} else if (is_name_char(c)) {
		ret->kind = TOKEN_NAME;
		lx->p += word_at(lx);
		if (is_prefix_of_quote(ret->p, (size_t)(lx->p - ret->p), peek(lx, 0)))
			rc = lex_quoted(lx, ret);
	} else if (c == '"' || c == '\'') {
		rc = lex_quoted(lx, ret);
	} else {
		lex_punct(lx, ret);
	}
	ret->n = (size_t)(lx->p - ret->p);
	return rc;
}

/* ---- is a preprocessor needed? ---- */

bool decl_needs_preprocessor(const char *text, size_t size)
{
	const char *end = text + size;

	for (const char *p = text; p < end;
	     p = memchr(p, '\n', (size_t)(end - p)), p = p ? p + 1 : end) {
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (p == end || *p != '#')
			continue;
		for (p++; p < end && (*p == ' ' || *p == '\t');)
			p++;
		for (size_t i = 0; i < sizeof(conditional) / sizeof(conditional[0]); i++)
			if ((size_t)(end - p) >= strlen(conditional[i]) &&
			    !memcmp(p, conditional[i], strlen(conditional[i])))
				return true;
	}
	return false;
}
