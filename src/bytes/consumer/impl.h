/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How declarations become a graph, as the files of this module share it; consumer.c is the way in.
 *
 *	text ──► lex.c ──► java.c rust.c go.c python.c  declarations as written, types by name
 *	                           │                     (collected by declared.c)
 *	                           ▼
 *	       graph.c: names to types, sizes and alignments, members placed by the language's rules
 *	       constant.c: array lengths, on demand             format.c: struct.Struct("<IQ")
 *
 * In these languages a type may be used before it is declared, so all declarations are collected
 * first. Functions return 0 or a negative errno, and have then set the error. Nesting in the input
 * nests here up to DEPTH_MAX calls.
 */
#ifndef CONSUMER_IMPL_H
#define CONSUMER_IMPL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "consumer/consumer.h"
#include "decl/lex.h"
#include "types/build.h"

enum {
	/* Types in types, brackets in expressions: real ones nest less than 20 deep. */
	FOREIGN_DEPTH_MAX = 200,
	/* Members of all structs: generated bindings of a kernel have some 100,000. */
	FOREIGN_MEMBERS_MAX = 1 << 20,
};

/* A point of the text that is come back to. */
struct spot {
	const char *p, *line_start;
	unsigned long line;
};

enum form {
	FORM_NAME,
	FORM_ARRAY,
	FORM_POINTER,
	/* a number of words that mean something to the language only: a slice, a string */
	FORM_WORDS,
	FORM_EMPTY,   /* takes no room */
	FORM_INLINE,  /* a struct without a name */
	FORM_LATER,   /* Python: the type that the expression at @at is */
	FORM_UNKNOWN, /* the type is unknown */
};

/* A type in its written form. */
struct form_type {
	enum form form;
	struct token at;      /* NAME: the name, without its package */
	const char *scalar;   /* NAME: the scalar that it is, under another name; NULL: @at is it */
	struct form_type *of; /* ARRAY: element */
	struct spot count;    /* ARRAY: the expression; LATER */
	bool one_factor;      /* ARRAY: of the expression only the first factor */
	uint64_t known;       /* WORDS: how many */
	bool is_unsigned;     /* NAME, Java */
	bool is_swapped;      /* NAME, Python: __ctype_be__ and similar types */
	bool is_atomic;       /* NAME: aligned to its size */
	struct declared *decl; /* INLINE */
	const char *why;       /* UNKNOWN: a sentence, or NULL */
};

struct declared_member {
	const char *name; /* NULL: none */
	struct token at;
	struct form_type *type;
	struct spot bits;     /* of a bit-field; p NULL: it is none */
	struct spot offset;   /* Java: @Offset(N) */
	struct spot union_id; /* Java: @InlineUnion(N) */
	bool anonymous;       /* its members belong to the struct around it */
};

enum declared_kind {
	DECLARED_STRUCT,
	DECLARED_UNION,
	DECLARED_ENUM,
	DECLARED_ALIAS,
	DECLARED_CONST
};
enum declared_state { STATE_NEW, STATE_BUSY, STATE_DONE, STATE_BAD };

struct declared_value {
	const char *name;
	struct spot value; /* p NULL: one more than the last */
};

/* A declaration. */
struct declared {
	enum declared_kind kind;
	const char *name;     /* NULL: none */
	const char *known_as; /* the program's name for it; NULL: none */
	struct token at;
	VEC(struct declared_member) members;
	VEC(struct declared_value) values;
	struct form_type *type; /* ALIAS; ENUM: the type that stores it, NULL: an int */
	struct spot value;      /* CONST, Python's ALIAS: the expression */
	const char *why_not;    /* it cannot be laid out, and why; NULL: it can */
	bool packed, ms, swapped;
	struct spot pack, aligned; /* expressions; p NULL: none */
	uint32_t pack_bytes, aligned_bytes;
	const char *format; /* of struct.Struct: the characters */
	size_t format_n;
	enum declared_state state;
	/* When it is DONE: */
	uint32_t id;
	uint64_t size;
	uint64_t stride; /* distance of two in an array */
	uint32_t align;
};

struct consumer {
	struct cairn_types *types;
	VEC(struct cairn_decl_problem) problems;
};

struct reader;

/* The name of a scalar: as large as one of C's. */
struct scalar_name {
	const char *name;
	enum cairn_scalar scalar;
	enum cairn_type_kind kind;
	enum cairn_type_encoding encoding;
};

struct language {
	enum cairn_lang id;
	const char *name, *suffix;
	/* All declarations of the text, with declare(). */
	int (*parse)(struct reader *r);
	/* Lays out the members of @d, whose types are measured; see graph.c. */
	int (*place)(struct reader *r, struct declared *d, struct cairn_place_record *rec);
	/* The type that the expression at r->tok is, for FORM_LATER; NULL: it has none. */
	int (*parse_type)(struct reader *r, struct form_type **ret);
	const struct scalar_name *scalars; /* name NULL ends */
	/* Alignment of a scalar of that size; NULL: C's. */
	uint32_t (*align)(const struct reader *r, const struct scalar_name *s);
	char line_comment; /* '/': two of them */
	bool nested_comments;
	bool shift_binds; /* << binds like *, as in Go */
};

struct reader {
	struct consumer *f;
	struct cairn_types *types;
	struct arena *arena;
	const struct cairn_abi *abi;
	struct cairn_err *err;
	const struct language *lang;
	struct lexer lx;
	struct token tok; /* the one to be read next */
	bool begins_line; /* tok is the first of its line */
	unsigned int depth;
	size_t n_members;
	VEC(struct declared *) decls;
	struct map by_name;  /* hash of a name to index in decls */
	uint32_t basics[64]; /* ids of the language's scalars, by index in its table */
	uint32_t bytes;      /* a byte, signed as the ABI's char */
};

/* ---- lex.c ---- */

/* The next token into r->tok; -EBADMSG: a string or comment has no end. */
int read_token(struct reader *r);
struct spot spot_of(const struct token *t);
/* Continue there. */
int go_to(struct reader *r, struct spot at);
/* Skips from an opening bracket, which is next, past the one that closes it. */
int skip_group(struct reader *r);
/* Skips from after an open bracket of that kind to the one that closes it, which is then next. */
int skip_to_close(struct reader *r);

static inline bool at_punct(const struct reader *r, int punct)
{
	return token_is_punct(&r->tok, punct);
}

static inline bool at_word(const struct reader *r, const char *word)
{
	return token_is(&r->tok, word);
}

static inline bool at_name(const struct reader *r)
{
	return r->tok.kind == TOKEN_NAME;
}

static inline bool at_end(const struct reader *r)
{
	return r->tok.kind == TOKEN_END;
}

/* The punctuator or word if it is next: 1, else 0; or a negative errno. */
int take_punct(struct reader *r, int punct);
int take_word(struct reader *r, const char *word);
/* The same, or the error "expected ...". */
int need_punct(struct reader *r, int punct);
/* A name; *@ret is its token. */
int need_name(struct reader *r, struct token *ret);
char *copy_token(struct reader *r, const struct token *t);
/* The text between the quotes of a string; escapes stay as they are. */
void string_body(const struct token *t, const char **ret, size_t *ret_n);

int enter_nesting(struct reader *r);
static inline void leave_nesting(struct reader *r)
{
	r->depth--;
}

#define complain_at(r, t, code, ...) lex_error(&(r)->lx, t, code, (r)->err, __VA_ARGS__)
#define complain(r, ...)             complain_at(r, &(r)->tok, -EBADMSG, __VA_ARGS__)

/* ---- declared.c ---- */

/*
 * A new declaration of that name; the first of a name counts. An empty @name has none. NULL: no
 * memory, reported.
 */
struct declared *declare(struct reader *r, enum declared_kind kind, const struct token *name);
/* The same, which C calls @name: Java's @Type(name = "event"). */
struct declared *declare_as(struct reader *r, enum declared_kind kind, const struct token *at,
			    const char *name);
/* A name, which is read, and its declaration. */
int declare_next(struct reader *r, enum declared_kind kind, struct declared **ret);
struct declared *find_declared(const struct reader *r, const char *name, size_t n);
struct declared_member *add_member(struct reader *r, struct declared *d, const struct token *name);
struct form_type *new_form(struct reader *r, enum form form, const struct token *at);
struct form_type *array_of(struct reader *r, struct form_type *of, struct spot count,
			   const struct token *at);

/* Something to know about @d, with the place of @at. */
int note_problem(struct reader *r, const struct declared *d, const char *text, bool laid_out);
int add_node(struct reader *r, const struct cairn_type *t, uint32_t *ret);

/* ---- graph.c ---- */

/* The properties of a type as a member. */
struct measure {
	uint32_t id;
	uint64_t size, stride;
	uint32_t align;
};

int measure(struct reader *r, const struct form_type *type, struct measure *ret);
/* Lay out all that was declared; 0 or -ENOMEM. */
int lay_out_all(struct reader *r);
/* As C places them; so do most languages. */
int place_as_c(struct reader *r, struct declared *d, struct cairn_place_record *rec);

/* ---- constant.c ---- */

/* The value of the expression there; r->tok is restored afterwards. */
int constant_at(struct reader *r, struct spot at, int64_t *ret);
/* The same, of its first operand. */
int factor_at(struct reader *r, struct spot at, int64_t *ret);

/* ---- format.c ---- */

/* The struct that a format is into @t. */
int lay_out_format(struct reader *r, struct declared *d, struct cairn_type *t);

/* For the table in consumer.c; all others ask r->lang. */
extern const struct language java_language, rust_language, go_language, python_language;

#endif
