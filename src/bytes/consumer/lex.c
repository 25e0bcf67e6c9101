/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens of four languages
 *
 * They agree on names, numbers and brackets. Punctuators are single characters here: ">>" closes
 * two lists of type arguments more often than it shifts. The differences:
 *
 *     comments  // and slash-star; in Rust they nest; # in Python
 *     strings   "..." with \ everywhere; """...""" in Java and Python, over lines; '...' in Python,
 *               elsewhere one character, in Rust perhaps a lifetime ('a); `...` in Go; r"..."
 *               r#"..."# in Rust
 *     ends      a line ends a field in Go and indents a class in Python: begins_line, and columns
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"

static int peek(const struct lexer *lx, size_t i)
{
	return (size_t)(lx->end - lx->p) > i ? (unsigned char)lx->p[i] : -1;
}

static bool is_name_char(int c)
{
	return c == '_' || c == '$' || c >= 0x80 || (c >= 0 && isalnum(c));
}

/* One character; lines are counted. */
static void step(struct lexer *lx)
{
	if (*lx->p++ != '\n')
		return;
	lx->line++;
	lx->line_start = lx->p;
}

/* ---- between tokens ---- */

static int skip_comment(struct reader *r)
{
	struct lexer *lx = &r->lx;
	struct token at = lex_here(lx);
	size_t depth = 0;

	while (lx->p < lx->end) {
		if (peek(lx, 0) == '/' && peek(lx, 1) == '*' &&
		    (!depth || r->lang->nested_comments)) {
			depth++;
			lx->p += 2;
		} else if (peek(lx, 0) == '*' && peek(lx, 1) == '/') {
			lx->p += 2;
			if (!--depth)
				return 0;
		} else {
			step(lx);
		}
	}
	return lex_error(lx, &at, -EBADMSG, r->err, "a comment without an end");
}

static bool begins_line_comment(const struct reader *r)
{
	int c = r->lang->line_comment;

	return peek(&r->lx, 0) == c && (c != '/' || peek(&r->lx, 1) == '/');
}

static int skip_blanks(struct reader *r)
{
	struct lexer *lx = &r->lx;
	int rc = 0;

	while (lx->p < lx->end && !rc) {
		int c = peek(lx, 0);

		if (begins_line_comment(r)) {
			while (lx->p < lx->end && *lx->p != '\n')
				lx->p++;
		} else if (c == '/' && peek(lx, 1) == '*' && r->lang->line_comment == '/') {
			rc = skip_comment(r);
		} else if (isspace(c) || (c == '\\' && peek(lx, 1) == '\n')) {
			step(lx);
		} else {
			break;
		}
	}
	return rc;
}

/* ---- strings ---- */

static bool has_triple(const struct reader *r, int quote)
{
	const struct lexer *lx = &r->lx;

	return (r->lang->id == CAIRN_LANG_JAVA || r->lang->id == CAIRN_LANG_PYTHON) &&
	       peek(lx, 0) == quote && peek(lx, 1) == quote && peek(lx, 2) == quote;
}

/* At the quote. */
static int lex_string(struct reader *r, struct token *t)
{
	struct lexer *lx = &r->lx;
	int quote = peek(lx, 0);
	size_t n = has_triple(r, quote) ? 3 : 1, closed = 0;
	bool over_lines = n == 3 || quote == '`' || r->lang->id == CAIRN_LANG_RUST;

	t->kind = TOKEN_STRING;
	for (lx->p += n; lx->p < lx->end && closed < n;) {
		int c = peek(lx, 0);

		if (c == '\n' && !over_lines)
			break;
		closed = c == quote ? closed + 1 : 0;
		if (c == '\\' && quote != '`' && peek(lx, 1) >= 0)
			step(lx);
		step(lx);
	}
	return closed == n ? 0 : lex_error(lx, t, -EBADMSG, r->err, "a string without an end");
}

/* r"..." r#"..."#, at the r; 0 and nothing read when it is neither. */
static int lex_raw_string(struct reader *r, struct token *t)
{
	struct lexer *lx = &r->lx;
	size_t hashes = 0, closed = 0, i = peek(lx, 0) == 'b' ? 2 : 1;

	while (peek(lx, i + hashes) == '#')
		hashes++;
	if (peek(lx, i + hashes) != '"')
		return 0;
	t->kind = TOKEN_STRING;
	for (lx->p += i + hashes + 1; lx->p < lx->end; step(lx)) {
		if (peek(lx, 0) != '"')
			continue;
		for (closed = 0; closed < hashes && peek(lx, 1 + closed) == '#';)
			closed++;
		if (closed < hashes)
			continue;
		lx->p += 1 + hashes;
		return 0;
	}
	return lex_error(lx, t, -EBADMSG, r->err, "a string without an end");
}

/* 'x' and '\n'; of a lifetime only the quote. */
static void lex_character(struct reader *r, struct token *t)
{
	struct lexer *lx = &r->lx;
	size_t n = 1;

	while (n < 12 && peek(lx, n) >= 0 && peek(lx, n) != '\n' && peek(lx, n) != '\'')
		n += peek(lx, n) == '\\' ? 2 : 1;
	if (r->lang->id == CAIRN_LANG_RUST && is_name_char(peek(lx, 1)) && peek(lx, 2) != '\'' &&
	    peek(lx, 1) < 0x80)
		n = 0;
	else if (peek(lx, n) != '\'')
		n = 0;
	else
		t->kind = TOKEN_CHAR;
	lx->p += n + 1;
}

static bool is_string_prefix(const struct reader *r, const struct token *t, size_t n)
{
	int quote = peek(&r->lx, 0);

	if (r->lang->id != CAIRN_LANG_PYTHON || n > 2 || (quote != '"' && quote != '\''))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("rRbBuUfF", t->p[i]))
			return false;
	return true;
}

/* ---- tokens ---- */

static void lex_number(struct lexer *lx)
{
	while (is_name_char(peek(lx, 0)) ||
	       (peek(lx, 0) == '.' && peek(lx, 1) >= 0 && isdigit(peek(lx, 1))))
		lx->p++;
}

static int lex_name(struct reader *r, struct token *t)
{
	struct lexer *lx = &r->lx;
	bool raw = r->lang->id == CAIRN_LANG_RUST &&
		   (peek(lx, 0) == 'r' || (peek(lx, 0) == 'b' && peek(lx, 1) == 'r'));

	if (raw) {
		int rc = lex_raw_string(r, t);

		if (rc || t->kind == TOKEN_STRING)
			return rc;
	}
	/* r#type is the name type. */
	if (raw && peek(lx, 1) == '#' && is_name_char(peek(lx, 2))) {
		lx->p += 2;
		t->p = lx->p;
	}
	t->kind = TOKEN_NAME;
	while (is_name_char(peek(lx, 0)))
		lx->p++;
	if (is_string_prefix(r, t, (size_t)(lx->p - t->p)))
		return lex_string(r, t);
	return 0;
}

int read_token(struct reader *r)
{
	struct lexer *lx = &r->lx;
	unsigned long line = r->tok.p ? r->tok.line : 0;
	int rc = skip_blanks(r);

	if (rc)
		return rc;
	struct token *t = &r->tok;
	*t = lex_here(lx);
	r->begins_line = t->line != line;
	if (lx->p >= lx->end) {
		t->kind = TOKEN_END;
		t->n = 0;
		return 0;
	}
	int c = peek(lx, 0);
	if (isdigit(c)) {
		t->kind = TOKEN_NUMBER;
		lex_number(lx);
	} else if (is_name_char(c)) {
		rc = lex_name(r, t);
	} else if (c == '"' || (c == '`' && r->lang->id == CAIRN_LANG_GO) ||
		   (c == '\'' && r->lang->id == CAIRN_LANG_PYTHON)) {
		rc = lex_string(r, t);
	} else if (c == '\'') {
		t->punct = c;
		lex_character(r, t);
	} else {
		t->punct = c;
		lx->p++;
	}
	t->n = (size_t)(lx->p - t->p);
	return rc;
}

struct spot spot_of(const struct token *t)
{
	return (struct spot){t->p, t->line_start, t->line};
}

int go_to(struct reader *r, struct spot at)
{
	r->lx.p = at.p;
	r->lx.line_start = at.line_start;
	r->lx.line = at.line;
	r->tok.line = 0;
	return read_token(r);
}

/* ---- helpers for parsers ---- */

static bool opens(const struct reader *r)
{
	return at_punct(r, '(') || at_punct(r, '[') || at_punct(r, '{');
}

static bool closes(const struct reader *r)
{
	return at_punct(r, ')') || at_punct(r, ']') || at_punct(r, '}');
}

int skip_group(struct reader *r)
{
	struct token first = r->tok;
	size_t depth = 0;
	int rc = 0;

	while (!rc) {
		if (at_end(r))
			return complain_at(r, &first, -EBADMSG, "'%.*s' is not closed",
					   (int)first.n, first.p);
		if (opens(r))
			depth++;
		else if (closes(r) && !--depth)
			return read_token(r);
		rc = read_token(r);
	}
	return rc;
}

int skip_to_close(struct reader *r)
{
	int rc = 0;

	while (!rc && !closes(r)) {
		if (at_end(r))
			return complain(r, "expected a closing bracket, and here the text ends");
		rc = opens(r) ? skip_group(r) : read_token(r);
	}
	return rc;
}

int take_punct(struct reader *r, int punct)
{
	int rc = at_punct(r, punct) ? read_token(r) : 1;

	return rc < 0 ? rc : !rc;
}

int take_word(struct reader *r, const char *word)
{
	int rc = at_word(r, word) ? read_token(r) : 1;

	return rc < 0 ? rc : !rc;
}

int need_punct(struct reader *r, int punct)
{
	if (at_punct(r, punct))
		return read_token(r);
	if (at_end(r))
		return complain(r, "expected '%c', and here the text ends", punct);
	return complain(r, "expected '%c' instead of \"%.*s\"", punct,
			r->tok.n > 40 ? 40 : (int)r->tok.n, r->tok.p);
}

int need_name(struct reader *r, struct token *ret)
{
	if (!at_name(r))
		return complain(r, "expected a name");
	*ret = r->tok;
	return read_token(r);
}

char *copy_token(struct reader *r, const struct token *t)
{
	return arena_strndup(r->arena, t->p, t->n);
}

void string_body(const struct token *t, const char **ret, size_t *ret_n)
{
	const char *p = t->p, *end = t->p + t->n;
	size_t quotes = 1;

	while (p < end && *p != '"' && *p != '\'' && *p != '`')
		p++;
	if (end - p >= 6 && p[1] == *p && p[2] == *p)
		quotes = 3;
	*ret = p + quotes;
	*ret_n = end - p > (ptrdiff_t)(2 * quotes) ? (size_t)(end - p) - 2 * quotes : 0;
}

int enter_nesting(struct reader *r)
{
	if (r->depth == FOREIGN_DEPTH_MAX)
		return complain_at(r, &r->tok, -ERANGE, "nested deeper than %d", FOREIGN_DEPTH_MAX);
	r->depth++;
	return 0;
}
