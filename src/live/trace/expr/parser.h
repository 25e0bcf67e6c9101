/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A probe's text as tokens, and the parser's state; for the files that parse
 *
 * The first error ends the text: from then on every token is TOK_END, and code is what failed.
 */
#ifndef TRACE_PARSER_H
#define TRACE_PARSER_H

#include "trace/expr/expr.h"

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

/* ---- lex.c ---- */

/* Moves to the next token. */
void parser_next(struct parser *p);
/* Notes the first error, at @at of the text. */
void parser_fail(struct parser *p, int code, uint32_t at, const char *what);
/* Memory of the arena, zeroed; NULL: there is none, and that is noted. */
void *parser_bytes(struct parser *p, size_t size);
bool parser_is_punct(const struct parser *p, uint32_t punct);
/* Moves past @punct, or fails with @what. */
void parser_expect(struct parser *p, char punct, const char *what);
bool lex_name_goes_on(char c);

/* ---- parse_expr.c ---- */

/* An expression from the current token on; NULL: the parser failed. */
struct expr *expr_parse(struct parser *p);

#endif
