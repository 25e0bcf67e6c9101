/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of preprocessed C. Line markers and pragmas are obeyed on the way and are no tokens. */
#ifndef DECL_LEX_H
#define DECL_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

enum token_kind {
	TOKEN_END,
	TOKEN_NAME, /* keywords, too */
	TOKEN_NUMBER,
	TOKEN_CHAR,
	TOKEN_STRING,
	TOKEN_PUNCT,
};

/*
 * Punctuators of one character are that character; longer ones are named here. Those that no
 * declaration needs (assignments) are one number.
 */
enum {
	P_ARROW = 256,
	P_SHL,
	P_SHR,
	P_LE,
	P_GE,
	P_EQ,
	P_NE,
	P_AND,
	P_OR,
	P_ELLIPSIS,
	P_INCREMENT, /* ++ and -- */
	P_ASSIGN,    /* += and so on */
	P_DOUBLE_COLON,
};

struct token {
	enum token_kind kind;
	int punct;
	const char *p; /* in the text */
	size_t n;
	/* Its position, as the preprocessor's line markers count. */
	const char *file;
	unsigned long line;
	const char *line_start;
};

/* #pragma pack(push, N) */
struct pack_entry {
	uint32_t pack;
	const char *label; /* NULL: none */
	size_t label_n;
};

struct lexer {
	const char *p, *end;
	const char *line_start;
	const char *file;
	unsigned long line;
	struct arena *arena; /* for names of files */
	struct cairn_err *err;
	uint32_t pack;  /* #pragma pack now in force; 0: none */
	bool ms_struct; /* #pragma ms_struct on */
	VEC(struct pack_entry) packs;
};

/* The character at the cursor as a token, for errors of the lexer itself. */
static inline struct token lex_here(const struct lexer *lx)
{
	return (struct token){.kind = TOKEN_PUNCT,
			      .p = lx->p,
			      .n = 1,
			      .file = lx->file,
			      .line = lx->line,
			      .line_start = lx->line_start};
}

void lex_init(struct lexer *lx, const char *text, size_t size, const char *name,
	      struct arena *arena, struct cairn_err *err);
void lex_fini(struct lexer *lx);

/* The next token: 0, at the end TOKEN_END again and again; -EBADMSG, -ERANGE, -ENOMEM. */
int lex_next(struct lexer *lx, struct token *ret);

/*
 * err_set() with file, line and column of @at before the text, and its line with a caret after it.
 */
__attribute__((format(printf, 5, 6))) int lex_error(const struct lexer *lx, const struct token *at,
						    int code, struct cairn_err *err,
						    const char *format, ...);

static inline bool token_is(const struct token *t, const char *name)
{
	size_t n = t->n;

	for (size_t i = 0; i < n; i++)
		if (name[i] != t->p[i])
			return false;
	return t->kind == TOKEN_NAME && !name[n];
}

static inline bool token_is_punct(const struct token *t, int punct)
{
	return t->kind == TOKEN_PUNCT && t->punct == punct;
}

#endif
