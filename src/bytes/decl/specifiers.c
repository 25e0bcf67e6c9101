/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declaration specifiers: "static const unsigned long", "typedef struct { ... }"
 *
 * Words may come in any order ("long const unsigned"), so they are counted, and the type is decided
 * when they end. A typedef's name is a type only while no other has been seen: in "unsigned size"
 * the name declares.
 */
#include <errno.h>
#include <string.h>

#include "decl/parse.h"

enum word_class {
	W_NONE,
	W_IGNORED, /* storage classes and function specifiers */
	W_TYPEDEF,
	W_CONST,
	W_VOLATILE,
	W_RESTRICT,
	W_ATOMIC,
	W_STRUCT,
	W_UNION,
	W_ENUM,
	W_TYPEOF,
	W_SIGNED,
	W_UNSIGNED,
	W_SHORT,
	W_LONG,
	W_LONG_LONG,
	W_COMPLEX,
	W_BIT_INT,
	W_BASE, /* the rest of the table gives the base */
};

/* The meaning of a base word on its own. */
enum base { BASE_NONE, BASE_VOID, BASE_CHAR, BASE_INT, BASE_DOUBLE, BASE_OTHER };

/* clang-format off */
static const struct word {
	const char *text;
	enum word_class class;
	enum base base;
	enum basic basic; /* of BASE_OTHER */
} words[] = {
	{"typedef", W_TYPEDEF},	    {"extern", W_IGNORED},	  {"static", W_IGNORED},
	{"auto", W_IGNORED},	    {"register", W_IGNORED},	  {"inline", W_IGNORED},
	{"__inline", W_IGNORED},    {"__inline__", W_IGNORED},	  {"_Noreturn", W_IGNORED},
	{"__thread", W_IGNORED},    {"_Thread_local", W_IGNORED}, {"__extension__", W_IGNORED},
	{"thread_local", W_IGNORED}, {"constexpr", W_IGNORED},
	{"const", W_CONST},	    {"__const", W_CONST},	  {"__const__", W_CONST},
	{"volatile", W_VOLATILE},   {"__volatile", W_VOLATILE},	  {"__volatile__", W_VOLATILE},
	{"restrict", W_RESTRICT},   {"__restrict", W_RESTRICT},	  {"__restrict__", W_RESTRICT},
	{"_Atomic", W_ATOMIC},	    {"struct", W_STRUCT},	  {"union", W_UNION},
	{"enum", W_ENUM},	    {"typeof", W_TYPEOF},	  {"__typeof", W_TYPEOF},
	{"__typeof__", W_TYPEOF},   {"typeof_unqual", W_TYPEOF},  {"__typeof_unqual__", W_TYPEOF},
	{"signed", W_SIGNED},	    {"__signed", W_SIGNED},	  {"__signed__", W_SIGNED},
	{"unsigned", W_UNSIGNED},   {"short", W_SHORT},		  {"long", W_LONG},
	{"_Complex", W_COMPLEX},    {"__complex__", W_COMPLEX},	  {"__complex", W_COMPLEX},
	{"void", W_BASE, BASE_VOID}, {"char", W_BASE, BASE_CHAR}, {"int", W_BASE, BASE_INT},
	{"double", W_BASE, BASE_DOUBLE},
	{"float", W_BASE, BASE_OTHER, B_FLOAT},
	{"_Bool", W_BASE, BASE_OTHER, B_BOOL},
	{"__int128", W_BASE, BASE_OTHER, B_INT128},
	{"__int128_t", W_BASE, BASE_OTHER, B_INT128},
	{"__uint128_t", W_BASE, BASE_OTHER, B_UINT128},
	{"_Float16", W_BASE, BASE_OTHER, B_FLOAT16},
	{"__fp16", W_BASE, BASE_OTHER, B_FLOAT16},
	{"__bf16", W_BASE, BASE_OTHER, B_BFLOAT16},
	{"_Float32", W_BASE, BASE_OTHER, B_FLOAT},
	{"_Float64", W_BASE, BASE_OTHER, B_DOUBLE},
	{"_Float32x", W_BASE, BASE_OTHER, B_DOUBLE},
	{"_Float64x", W_BASE, BASE_OTHER, B_FLOAT64X},
	{"_Float128", W_BASE, BASE_OTHER, B_FLOAT128},
	{"__float128", W_BASE, BASE_OTHER, B_GNU_FLOAT128},
	{"__ibm128", W_BASE, BASE_OTHER, B_IBM128},
	{"_Decimal32", W_BASE, BASE_OTHER, B_DECIMAL32},
	{"_Decimal64", W_BASE, BASE_OTHER, B_DECIMAL64},
	{"_Decimal128", W_BASE, BASE_OTHER, B_DECIMAL128},
	{"_BitInt", W_BIT_INT},	    {"_ExtInt", W_BIT_INT},
	{"__builtin_va_list", W_BASE, BASE_OTHER, B_VA_LIST},
};
/* clang-format on */

/* Words that Clang knows for Windows only. Elsewhere they are names, which headers define. */
/* clang-format off */
static const struct word microsoft_words[] = {
	{"__int8", W_BASE, BASE_CHAR}, {"__int16", W_SHORT},	     {"__int32", W_BASE, BASE_INT},
	{"__int64", W_LONG_LONG},      {"__forceinline", W_IGNORED}, {"__unaligned", W_IGNORED},
	{"__w64", W_IGNORED},
};
/* clang-format on */

static const struct word *word_in(const struct word *list, size_t n, const struct token *t)
{
	for (size_t i = 0; i < n; i++)
		if (token_is(t, list[i].text))
			return &list[i];
	return NULL;
}

static const struct word *word_of(const struct parser *p, const struct token *t)
{
	const struct word *w =
		t->kind == TOKEN_NAME ? word_in(words, sizeof(words) / sizeof(words[0]), t) : NULL;

	if (w || t->kind != TOKEN_NAME || !p->abi->ms)
		return w;
	return word_in(microsoft_words, sizeof(microsoft_words) / sizeof(microsoft_words[0]), t);
}

bool is_convention(const struct token *t)
{
	static const struct word conventions[] = {{"__cdecl"},    {"__stdcall"},    {"__fastcall"},
						  {"__thiscall"}, {"__vectorcall"}, {"__regcall"},
						  {"__pascal"}};

	return t->kind == TOKEN_NAME &&
	       word_in(conventions, sizeof(conventions) / sizeof(conventions[0]), t);
}

static const struct symbol *typedef_of(const struct parser *p, const struct token *t)
{
	const struct symbol *s =
		t->kind == TOKEN_NAME ? symbol_find(p->decl, SYMBOL_TYPEDEF, t->p, t->n) : NULL;

	return s && s->kind == SYMBOL_TYPEDEF ? s : NULL;
}

/* GCC and Clang do not agree on these as keywords: headers define those that one of them lacks. */
static bool is_soft(const struct word *w)
{
	return w->base == BASE_OTHER && w->text[0] == '_' && w->basic != B_BOOL;
}

/* C23 has it as a keyword, before it was a macro: without either, it cannot mean anything else. */
static bool is_bool(const struct parser *p, const struct token *t)
{
	return token_is(t, "bool") && !symbol_find(p->decl, SYMBOL_TYPEDEF, t->p, t->n);
}

bool begins_type(const struct parser *p, const struct token *t)
{
	return word_of(p, t) || typedef_of(p, t) || is_bool(p, t) || token_is(t, "__attribute__") ||
	       token_is(t, "__attribute") || token_is(t, "_Alignas") || token_is(t, "__declspec");
}

struct counted {
	unsigned int n_long, n_short, n_signed, n_unsigned, n_complex;
	const struct word *base;
	int64_t width; /* of _BitInt, when has_width */
	bool has_width;
	uint32_t type; /* struct, typedef, typeof; valid when has_type */
	bool has_type;
	bool is_const, is_volatile, is_atomic;
};

static bool is_complete(const struct counted *c)
{
	return c->base || c->has_type || c->has_width || c->n_long || c->n_short || c->n_signed ||
	       c->n_unsigned || c->n_complex;
}

static enum basic integer_of(const struct counted *c)
{
	enum basic basic = c->n_short      ? B_SHORT
			   : c->n_long > 1 ? B_LLONG
			   : c->n_long     ? B_LONG
					   : B_INT;

	if (c->base && c->base->base == BASE_CHAR)
		return c->n_unsigned ? B_UCHAR : c->n_signed ? B_SCHAR : B_CHAR;
	if (c->base && c->base->base == BASE_OTHER)
		basic = c->base->basic;
	return c->n_unsigned ? (enum basic)(basic + 1) : basic;
}

/* "unsigned _Complex" is one of int, "_Complex" alone one of double. */
static enum basic basic_of(const struct counted *c)
{
	bool sized = c->n_long || c->n_short || c->n_signed || c->n_unsigned;

	if ((c->base && c->base->base == BASE_DOUBLE) || (!c->base && c->n_complex && !sized))
		return c->n_long ? B_LDOUBLE : B_DOUBLE;
	return integer_of(c);
}

static bool has_complex(enum basic basic)
{
	return basic != B_BOOL && basic != B_BFLOAT16 && basic != B_IBM128 &&
	       basic != B_DECIMAL32 && basic != B_DECIMAL64 && basic != B_DECIMAL128 &&
	       basic != B_VA_LIST;
}

static bool is_contradictory(const struct counted *c)
{
	bool sized = c->n_long || c->n_short, sign = c->n_signed || c->n_unsigned;
	enum base base = c->base ? c->base->base : BASE_NONE;

	if (c->has_type)
		return c->base || c->has_width || sized || sign || c->n_complex;
	if (c->n_long > 2 || (c->n_long && c->n_short) || (c->n_signed && c->n_unsigned))
		return true;
	if (c->has_width)
		return c->base || sized || c->n_complex;
	if (base == BASE_OTHER && sign)
		return c->base->basic != B_INT128 || sized;
	if (base == BASE_VOID)
		return sized || sign || c->n_complex;
	return (base == BASE_CHAR && sized) ||
	       (base == BASE_DOUBLE && (sign || c->n_short || c->n_long > 1)) ||
	       (base == BASE_OTHER && sized);
}

static int decide(struct parser *p, const struct counted *c, const struct token *at, uint32_t *ret)
{
	if (!is_complete(c))
		return fail_at(p, at, -EBADMSG, "expected a type");
	if (is_contradictory(c))
		return fail_at(p, at, -EBADMSG, "these words make no type");
	*ret = c->type;
	if (c->has_type || (c->base && c->base->base == BASE_VOID))
		return 0;
	if (c->has_width)
		return node_bit_int(p, c->width, c->n_unsigned, at, ret);
	enum basic basic = basic_of(c);
	if (missing_basic(p, basic))
		return fail_at(p, at, -EBADMSG, "the ABI %s has no %s", p->abi->name,
			       missing_basic(p, basic));
	if (c->n_complex && !has_complex(basic))
		return fail_at(p, at, -EBADMSG, "there is no _Complex of this type");
	return c->n_complex ? node_complex(p, basic, ret) : node_basic(p, basic, ret);
}

static int set_type(struct counted *c, int rc)
{
	c->has_type = true;
	return rc;
}

/* _Atomic(type), or the qualifier */
static int parse_atomic(struct parser *p, struct counted *c)
{
	int rc = next(p);

	if (rc || !is_punct(p, '(')) {
		c->is_atomic = true;
		return rc;
	}
	rc = next(p);
	rc = rc ? rc : parse_type_name(p, &c->type);
	rc = rc ? rc : expect(p, ')');
	rc = rc ? rc : node_derive(p, CAIRN_T_ATOMIC, c->type, &c->type);
	return set_type(c, rc);
}

/* The width of a _BitInt, in parentheses */
static int parse_bit_int(struct parser *p, struct counted *c)
{
	int rc = expect(p, '(');

	if (!rc && c->has_width)
		return fail_here(p, "these words make no type");
	c->has_width = true;
	rc = rc ? rc : parse_constant(p, &c->width, NULL);
	return rc ? rc : expect(p, ')');
}

/* One word; it is read. */
static int take_word(struct parser *p, const struct word *w, struct counted *c,
		     struct specifiers *ret)
{
	if (w->class == W_ATOMIC)
		return parse_atomic(p, c);
	int rc = next(p);
	if (rc)
		return rc;
	switch (w->class) {
	case W_TYPEDEF:
		ret->is_typedef = true;
		break;
	case W_CONST:
		c->is_const = true;
		break;
	case W_VOLATILE:
		c->is_volatile = true;
		break;
	case W_STRUCT:
	case W_UNION:
		ret->has_tag = true;
		return set_type(c, parse_record(p, w->class == W_UNION, &ret->attrs, &c->type));
	case W_ENUM:
		ret->has_tag = true;
		return set_type(c, parse_enum(p, &c->type));
	case W_TYPEOF:
		return set_type(c, parse_typeof(p, &c->type));
	case W_SIGNED:
		c->n_signed++;
		break;
	case W_UNSIGNED:
		c->n_unsigned++;
		break;
	case W_SHORT:
		c->n_short++;
		break;
	case W_LONG:
		c->n_long++;
		break;
	case W_LONG_LONG:
		c->n_long += 2;
		break;
	case W_COMPLEX:
		c->n_complex++;
		break;
	case W_BIT_INT:
		return parse_bit_int(p, c);
	case W_BASE:
		/* "double complex", "int long": two base words are none of those. */
		if (c->base)
			return fail_here(p, "these words make no type");
		c->base = w;
		break;
	default:
		break;
	}
	return 0;
}

/* Whether the next token is read as a part of the type; 1 or 0, or a negative errno. */
static int take(struct parser *p, struct counted *c, struct specifiers *ret)
{
	const struct word *w = word_of(p, &p->tok);
	const struct symbol *s;
	int rc;

	if (w && is_soft(w) && (c->base || c->has_type))
		return 0;
	if (w && is_soft(w) && typedef_of(p, &p->tok))
		w = NULL;
	if (w) {
		rc = take_word(p, w, c, ret);
		return rc ? rc : 1;
	}
	if (is_attribute(p)) {
		rc = parse_attributes(p, &ret->attrs);
		return rc ? rc : 1;
	}
	if (is_convention(&p->tok)) {
		rc = next(p);
		return rc ? rc : 1;
	}
	if (is_complete(c))
		return 0;
	s = typedef_of(p, &p->tok);
	if (!s && !is_bool(p, &p->tok))
		return 0;
	rc = s ? 0 : node_basic(p, B_BOOL, &c->type);
	if (s)
		c->type = s->type;
	c->has_type = true;
	rc = rc ? rc : next(p);
	return rc ? rc : 1;
}

static int qualify(struct parser *p, const struct counted *c, uint32_t *id)
{
	int rc = c->is_volatile ? node_derive(p, CAIRN_T_VOLATILE, *id, id) : 0;

	if (!rc && c->is_const)
		rc = node_derive(p, CAIRN_T_CONST, *id, id);
	if (!rc && c->is_atomic)
		rc = node_derive(p, CAIRN_T_ATOMIC, *id, id);
	return rc;
}

int parse_specifiers(struct parser *p, struct specifiers *ret)
{
	struct counted c = {0};
	struct token at = p->tok;
	int rc;

	*ret = (struct specifiers){0};
	while ((rc = take(p, &c, ret)) > 0)
		;
	rc = rc ? rc : decide(p, &c, &at, &ret->type);
	rc = rc ? rc : apply_type_attributes(p, &ret->attrs, &ret->type);
	return rc ? rc : qualify(p, &c, &ret->type);
}
