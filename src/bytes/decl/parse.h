/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module decl reads declarations of C and lays their types out for an ABI.
 *
 *	text ──► lex.c ──► decl.c  one declaration after another; skips bodies and initialisers
 *	         ├── specifiers.c    static const unsigned long, typeof, attributes (attributes.c)
 *	         │     ├── record.c  struct and union: members, then placed by layout
 *	         │     └── enums.c
 *	         ├── declarator.c    *const (*name[4])(int)
 *	         ├── initialiser.c   the length of an array that has none
 *	         └── expr.c          constant expressions (arith.c, number.c, text.c)
 *	          tokens.c   one is read ahead  symbols.c  names to ids
 *	          nodes.c    nodes of the graph, sizes and alignments
 *
 * A parser function returns 0 or a negative errno; the error is then set, and everything unwinds.
 * Grammar nests (a struct in a struct, parentheses), and so do the functions, up to DEPTH_MAX
 * calls: enter() counts, so that a hostile nesting is an error and no stack overflow.
 */
#ifndef DECL_PARSE_H
#define DECL_PARSE_H

#include "base/map.h"
#include "base/vec.h"
#include "decl/decl.h"
#include "decl/lex.h"
#include "types/build.h"

enum {
	/* Real headers nest less than 20 deep, macro-made expressions less than 100. */
	DEPTH_MAX = 200,
	/*
	 * Typedefs, qualifiers, arrays in a row before a type; cairn_types_resolve() goes no
	 * further either.
	 */
	CHAIN_MAX = 1000,
	/* pointers, arrays and functions in one declarator */
	STEPS_MAX = 64,
};

enum symbol_kind {
	SYMBOL_TYPEDEF,
	SYMBOL_STRUCT, /* one name space with UNION and ENUM in C; the kind is checked */
	SYMBOL_UNION,
	SYMBOL_ENUM,
	SYMBOL_ENUMERATOR,
	SYMBOL_VARIABLE, /* function, too */
};

struct symbol {
	enum symbol_kind kind;
	const char *name;
	uint32_t type;
	int64_t value; /* ENUMERATOR */
	size_t next;   /* another symbol of the same hash, plus 1 */
};

/* The types that the language has without being declared; an index in struct parser's table. */
enum basic {
	B_BOOL,
	B_CHAR,
	B_SCHAR,
	B_UCHAR,
	B_SHORT,
	B_USHORT,
	B_INT,
	B_UINT,
	B_LONG,
	B_ULONG,
	B_LLONG,
	B_ULLONG,
	B_INT128,
	B_UINT128,
	B_FLOAT16,
	B_BFLOAT16,
	B_FLOAT,
	B_DOUBLE,
	B_LDOUBLE,
	B_FLOAT64X,
	B_FLOAT128,
	B_GNU_FLOAT128,
	B_IBM128,
	B_DECIMAL32,
	B_DECIMAL64,
	B_DECIMAL128,
	B_VA_LIST,
	N_BASICS
};

struct decl {
	struct cairn_types *types;
	VEC(struct symbol) symbols;
	struct map by_name; /* hash of kind and name to index in symbols */
};

struct parser {
	struct decl *decl;
	struct cairn_types *types;
	const struct cairn_abi *abi;
	struct arena *arena; /* of the graph */
	struct cairn_err *err;
	struct lexer lx;
	struct token tok;   /* the one to be read next */
	struct token ahead; /* after it, when has_ahead */
	bool has_ahead;
	int peek_error; /* of peek_token() */
	unsigned int depth;
	uint32_t basics[N_BASICS];
	uint32_t complexes[N_BASICS]; /* _Complex of each */
	/* width and sign to the _BitInt, and from there to its width */
	struct map bit_ints;
};

/* ---- tokens.c ---- */

int next(struct parser *p);
/*
 * The token after the next one; NULL after an error, which is reported, and is then in peek_error.
 */
const struct token *peek_token(struct parser *p);
/* Read @punct, or the error "expected ..." */
int expect(struct parser *p, int punct);
/* Read @punct if it is there: 1, else 0; or a negative errno. */
int accept(struct parser *p, int punct);
/* Skips from an opening bracket, which is next, past the one that closes it. */
int skip_balanced(struct parser *p);
char *dup_name(struct parser *p, const struct token *t);

static inline bool is_punct(const struct parser *p, int punct)
{
	return token_is_punct(&p->tok, punct);
}

static inline bool is_word(const struct parser *p, const char *word)
{
	return token_is(&p->tok, word);
}

int enter(struct parser *p);
static inline void leave(struct parser *p)
{
	p->depth--;
}

#define fail_at(p, t, code, ...) lex_error(&(p)->lx, t, code, (p)->err, __VA_ARGS__)
#define fail_here(p, ...)        fail_at(p, &(p)->tok, -EBADMSG, __VA_ARGS__)

/* ---- symbols.c ---- */

const struct symbol *symbol_find(const struct decl *d, enum symbol_kind kind, const char *name,
				 size_t n);
int symbol_add(struct parser *p, const struct symbol *s);

/* ---- nodes.c ---- */

/* Add a node; *@ret 0 and -ENOMEM when there is no memory. */
int node_add(struct parser *p, const struct cairn_type *t, uint32_t *ret);
/*
 * The struct, union or enum of that tag, or a new one that is only declared; an empty @name is
 * always a new one.
 */
int node_tagged(struct parser *p, enum cairn_type_kind kind, const struct token *name,
		uint32_t *ret);
int node_derive(struct parser *p, enum cairn_type_kind kind, uint32_t ref, uint32_t *ret);
/* -EBADMSG, reported at the next token: the ABI has no such type. */
int node_basic(struct parser *p, enum basic basic, uint32_t *ret);
/* Its name, when the ABI does not have it; else NULL. */
const char *missing_basic(const struct parser *p, enum basic basic);
int node_complex(struct parser *p, enum basic basic, uint32_t *ret);
/* _BitInt(@width); -EBADMSG, reported at @at: not of that width, or none at all. */
int node_bit_int(struct parser *p, int64_t width, bool is_unsigned, const struct token *at,
		 uint32_t *ret);
bool is_bit_int(const struct parser *p, uint32_t id);
/* The bits that a value of an integer type has, for bit-fields; 0: it is no integer. */
uint64_t value_bits(const struct parser *p, uint32_t id);
int node_vector(struct parser *p, uint32_t element, uint64_t bytes, uint32_t *ret);

/* Bytes; false for void, functions, and types that are only declared. A flexible array has 0. */
bool size_of(const struct parser *p, uint32_t id, uint64_t *ret);
/* As a member; attributes of typedefs and _Atomic counted. At least 1. */
uint32_t align_of(const struct parser *p, uint32_t id);
/*
 * The alignment of a member of that type. Microsoft's compiler ignores a typedef's attribute that
 * lowers it.
 */
uint32_t member_align_of(const struct parser *p, uint32_t id);
static inline const struct cairn_type *resolve(const struct parser *p, uint32_t id)
{
	return cairn_types_get(p->types, cairn_types_resolve(p->types, id));
}
/*
 * The part of a struct's alignment that an attribute demanded, on it or on a member. Microsoft's
 * rules only.
 */
uint32_t required_align_of(const struct parser *p, uint32_t id);
int check_chain(struct parser *p, uint32_t id, const struct token *at);

/* ---- attributes.c ---- */

struct attributes {
	bool packed, ms_struct, gcc_struct;
	uint32_t aligned; /* 0: none */
	/* that much of it by __declspec: of a struct that is defined after it */
	uint32_t declspec_aligned;
	uint64_t vector_size;    /* bytes; 0: none */
	uint32_t vector_elems;   /* ext_vector_type(N) */
	const struct mode *mode; /* mode(DI) and so on */
};

/* Any number of __attribute__((...)), _Alignas(...), [[...]] and __declspec(...) that are next. */
int parse_attributes(struct parser *p, struct attributes *to);
bool is_attribute(const struct parser *p);
/* The type that vector_size and mode make of @id; those two are then taken out of @attrs. */
int apply_type_attributes(struct parser *p, struct attributes *attrs, uint32_t *id);

/* ---- specifiers.c ---- */

struct specifiers {
	uint32_t type;
	bool is_typedef;
	/* A struct, union or enum was defined or named: "struct S;" declares something. */
	bool has_tag;
	struct attributes attrs; /* of the declared name, not of the type */
};

int parse_specifiers(struct parser *p, struct specifiers *ret);
/*
 * Microsoft's: __cdecl and similar words. They stand where qualifiers may, and also after the
 * parenthesis of a declarator.
 */
bool is_convention(const struct token *t);
/* Whether the token begins a type (or a storage class, an attribute): it begins a declaration. */
bool begins_type(const struct parser *p, const struct token *t);

/* ---- declarator.c ---- */

struct declarator {
	struct token name; /* n == 0: none */
	uint32_t type;
	struct attributes attrs;
};

/* @base and the derivations around a name, which may be missing. @parameter: "[]" is a pointer. */
int parse_declarator(struct parser *p, uint32_t base, bool parameter, struct declarator *ret);
/* "unsigned long *(*)[4]", as in casts and sizeof. */
int parse_type_name(struct parser *p, uint32_t *ret);

/* ---- record.c, enums.c ---- */

/*
 * Parses after the word struct, union or enum. Takes from @before the attributes of the struct, and
 * leaves those of the names declared with it.
 */
int parse_record(struct parser *p, bool is_union, struct attributes *before, uint32_t *ret);
int parse_enum(struct parser *p, uint32_t *ret);

/* ---- initialiser.c ---- */

/*
 * After "=", to the comma or semicolon that ends it, or from one brace to the other: *@type, an
 * array without a count, gets the number of the initialiser's elements. If they cannot be counted
 * here, its size is not known.
 */
int count_initialiser(struct parser *p, uint32_t *type);
/* To the comma or semicolon, brace or bracket that ends it. */
int skip_initialiser(struct parser *p);

/* ---- expr.c ---- */

/*
 * The value of an expression. For an lvalue: its type, and with is_address its address, so that
 * &((struct S *)0)->m is an offset.
 */
struct value {
	uint32_t type;
	uint64_t v; /* the bits, extended by the type's sign to 64 */
	bool known;
	bool is_lvalue; /* v is an address */
	bool is_bit_field;
};

/* A conditional expression (no comma). A value that is not known is no error. */
int parse_expr(struct parser *p, struct value *ret);
/* The same, which must be known. */
int parse_constant(struct parser *p, int64_t *ret, bool *ret_unsigned);
bool begins_static_assert(const struct parser *p);
/* From its word to its semicolon. */
int parse_static_assert(struct parser *p);
/* typeof( type or expression ) */
int parse_typeof(struct parser *p, uint32_t *ret);

#endif
