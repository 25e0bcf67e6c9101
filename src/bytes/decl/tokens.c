/* SPDX-License-Identifier: BSD-2-Clause */
/* The tokens that a parser is at: one is read ahead, and brackets are counted. */
#include "decl/parse.h"

#include <errno.h>

int next(struct parser *p)
{
	if (p->has_ahead) {
		p->tok = p->ahead;
		p->has_ahead = false;
		return 0;
	}
	return lex_next(&p->lx, &p->tok);
}

const struct token *peek_token(struct parser *p)
{
	if (!p->has_ahead)
		p->peek_error = lex_next(&p->lx, &p->ahead);
	if (p->peek_error)
		return NULL;
	p->has_ahead = true;
	return &p->ahead;
}

static const char *name_of_punct(int punct, char buf[4])
{
	buf[0] = (char)punct;
	buf[1] = 0;
	return punct < 256 ? buf : punct == P_ELLIPSIS ? "..." : "another sign";
}

int expect(struct parser *p, int punct)
{
	char text[4];

	if (is_punct(p, punct))
		return next(p);
	if (p->tok.kind == TOKEN_END)
		return fail_here(p, "expected '%s', and here the text ends",
				 name_of_punct(punct, text));
	return fail_here(p, "expected '%s' instead of \"%.*s\"", name_of_punct(punct, text),
			 p->tok.n > 40 ? 40 : (int)p->tok.n, p->tok.p);
}

int skip_balanced(struct parser *p)
{
	struct token first = p->tok;
	uint64_t depth = 0;
	int rc = 0;

	while (!rc) {
		if (p->tok.kind == TOKEN_END)
			return fail_at(p, &first, -EBADMSG, "'%.*s' is not closed", (int)first.n,
				       first.p);
		if (is_punct(p, '(') || is_punct(p, '[') || is_punct(p, '{'))
			depth++;
		else if ((is_punct(p, ')') || is_punct(p, ']') || is_punct(p, '}')) && !--depth)
			return next(p);
		else if (!depth)
			return fail_here(p, "expected '('");
		rc = next(p);
	}
	return rc;
}

char *dup_name(struct parser *p, const struct token *t)
{
	return arena_strndup(p->arena, t->p, t->n);
}

int enter(struct parser *p)
{
	if (p->depth == DEPTH_MAX)
		return fail_at(p, &p->tok, -ERANGE, "nested deeper than %d", DEPTH_MAX);
	p->depth++;
	return 0;
}
