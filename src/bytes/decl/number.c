/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers: 0x1fUL, 1.5f, 3wb */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "decl/expr.h"

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return 99;
}

/* Digits from @*at; false when they do not fit 64 bits. */
static bool read_digits(const struct token *t, size_t *at, unsigned int base, uint64_t *ret)
{
	bool fits = true;

	for (*ret = 0; *at < t->n; (*at)++) {
		if (t->p[*at] == '\'')
			continue;
		unsigned int d = (unsigned int)digit_of(t->p[*at]);
		if (d >= base)
			break;
		fits = fits && !__builtin_mul_overflow(*ret, base, ret) &&
		       !__builtin_add_overflow(*ret, d, ret);
	}
	return fits;
}

static bool is_floating(const struct token *t, unsigned int base)
{
	for (size_t i = 0; i < t->n; i++) {
		char c = t->p[i] | 0x20;

		if (t->p[i] == '.' || (base == 16 ? c == 'p' : c == 'e'))
			return true;
	}
	return false;
}

/* Floating values are not computed: a caller that needs one gets an unknown value. */
static int floating(struct parser *p, const struct token *t, struct value *ret)
{
	/* clang-format off */
	static const struct {
		const char *suffix;
		enum basic basic;
	} suffixes[] = {
		/* Longer ones first. */
		{"f128", B_FLOAT128}, {"f64x", B_FLOAT64X},  {"f32x", B_DOUBLE},
		{"bf16", B_BFLOAT16}, {"f16", B_FLOAT16},    {"f32", B_FLOAT},
		{"f64", B_DOUBLE},    {"df", B_DECIMAL32},   {"dd", B_DECIMAL64},
		{"dl", B_DECIMAL128}, {"q", B_GNU_FLOAT128}, {"w", B_FLOAT64X},
		{"f", B_FLOAT},	      {"l", B_LDOUBLE},
	};
	/* clang-format on */
	bool is_complex = false;
	size_t n = t->n;

	*ret = (struct value){0};
	/* GNU C: an imaginary number */
	if (n && ((t->p[n - 1] | 0x20) == 'i' || (t->p[n - 1] | 0x20) == 'j')) {
		is_complex = true;
		n--;
	}
	enum basic basic = B_DOUBLE;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t m = strlen(suffixes[i].suffix);

		if (n > m && !strncasecmp(t->p + n - m, suffixes[i].suffix, m)) {
			basic = suffixes[i].basic;
			break;
		}
	}
	return is_complex ? node_complex(p, basic, &ret->type) : node_basic(p, basic, &ret->type);
}

/*
 * The first type that holds it; @longs: 1 or 2 "l". A decimal number is unsigned only when it says
 * so.
 */
static int type_of_integer(struct parser *p, uint64_t v, unsigned int base, bool is_unsigned,
			   unsigned int longs, uint32_t *ret)
{
	static const enum basic types[] = {B_INT, B_LONG, B_LLONG};

	for (size_t i = longs; i < 3; i++) {
		unsigned int bits =
			8 * (i == 0 ? p->abi->scalars[CAIRN_C_INT].size
				    : p->abi->scalars[i == 1 ? CAIRN_C_LONG : CAIRN_C_LLONG].size);

		if (!is_unsigned && v < UINT64_C(1) << (bits - 1))
			return node_basic(p, types[i], ret);
		if ((is_unsigned || base != 10) && (bits == 64 || v < UINT64_C(1) << bits))
			return node_basic(p, (enum basic)(types[i] + 1), ret);
	}
	return node_basic(p, B_ULLONG, ret);
}

/* After "3wb" or "3uwb", "wbu" at the end: the narrowest _BitInt that holds it. */
static int parse_bit_int_rest(struct parser *p, size_t at, uint64_t v, bool is_unsigned,
			      struct value *ret)
{
	struct token t = p->tok;
	int64_t width = v ? 64 - __builtin_clzll(v) : 1;

	if (at < t.n && (t.p[at] | 0x20) == 'u') {
		is_unsigned = true;
		at++;
	}
	if (at != t.n)
		return fail_here(p, "\"%.*s\" is no number", t.n > 40 ? 40 : (int)t.n, t.p);
	*ret = (struct value){0};
	int rc = node_bit_int(p, width + !is_unsigned, is_unsigned, &t, &ret->type);
	return rc ? rc : next(p);
}

int parse_number(struct parser *p, struct value *ret)
{
	struct token t = p->tok;
	unsigned int base = 10, longs = 0;
	bool is_unsigned = false;
	size_t at = 0;
	uint64_t v;

	if (t.n > 2 && t.p[0] == '0' && (t.p[1] | 0x20) == 'x') {
		base = 16;
		at = 2;
	} else if (t.n > 2 && t.p[0] == '0' && (t.p[1] | 0x20) == 'b') {
		base = 2;
		at = 2;
	} else if (t.p[0] == '0') {
		base = 8;
	}
	if (is_floating(&t, base)) {
		int rc = floating(p, &t, ret);

		return rc ? rc : next(p);
	}
	if (!read_digits(&t, &at, base, &v))
		return fail_here(p, "a number that does not fit 64 bits");
	for (; at < t.n; at++) {
		char c = t.p[at] | 0x20;

		if (c == 'u')
			is_unsigned = true;
		else if (c == 'l' && longs < 2)
			longs++;
		else if (c == 'w' && at + 1 < t.n && (t.p[at + 1] | 0x20) == 'b')
			return parse_bit_int_rest(p, at + 2, v, is_unsigned, ret);
		else
			return fail_here(p, "\"%.*s\" is no number", t.n > 40 ? 40 : (int)t.n, t.p);
	}
	*ret = (struct value){.v = v, .known = true};
	int rc = type_of_integer(p, v, base, is_unsigned, longs, &ret->type);
	return rc ? rc : next(p);
}
