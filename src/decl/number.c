/* SPDX-License-Identifier: BSD-2-Clause */
/* Literals: 0x1fUL, 1.5f, 'a', L'\x41' */
#include <errno.h>
#include <string.h>

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
		fits = fits && !__builtin_mul_overflow(*ret, base, ret) && !__builtin_add_overflow(*ret, d, ret);
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

static int floating(struct parser *p, const struct token *t, struct value *ret)
{
	char last = t->p[t->n - 1] | 0x20;

	/* Floating values are not computed with: who needs one is told that it is not known. */
	*ret = (struct value){0};
	return node_basic(p, last == 'f' ? B_FLOAT : last == 'l' ? B_LDOUBLE : B_DOUBLE, &ret->type);
}

/* The first type that holds it; @longs: 1 or 2 "l". A decimal number is unsigned only when it says so. */
static int type_of_integer(struct parser *p, uint64_t v, unsigned int base, bool is_unsigned, unsigned int longs,
			   uint32_t *ret)
{
	static const enum basic types[] = {B_INT, B_LONG, B_LLONG};

	for (size_t i = longs; i < 3; i++) {
		unsigned int bits = 8 * (i == 0 ? p->abi->scalars[CAIRN_C_INT].size
						: p->abi->scalars[i == 1 ? CAIRN_C_LONG : CAIRN_C_LLONG].size);

		if (!is_unsigned && v < UINT64_C(1) << (bits - 1))
			return node_basic(p, types[i], ret);
		if ((is_unsigned || base != 10) && (bits == 64 || v < UINT64_C(1) << bits))
			return node_basic(p, (enum basic)(types[i] + 1), ret);
	}
	return node_basic(p, B_ULLONG, ret);
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
		else
			return fail_here(p, "\"%.*s\" is no number", t.n > 40 ? 40 : (int)t.n, t.p);
	}
	*ret = (struct value){.v = v, .known = true};
	int rc = type_of_integer(p, v, base, is_unsigned, longs, &ret->type);
	return rc ? rc : next(p);
}

/* One character or escape; @*at is moved behind it. */
static uint64_t read_char(const struct token *t, size_t *at)
{
	static const char names[] = "n\nt\tr\ra\ab\bf\fv\ve\033";
	uint64_t v;
	char c = t->p[(*at)++];

	if (c != '\\' || *at >= t->n)
		return (unsigned char)c;
	c = t->p[(*at)++];
	if (c == 'x') {
		read_digits(t, at, 16, &v);
		return v;
	}
	if (c >= '0' && c <= '7') {
		v = 0;
		for (size_t i = (*at)--; *at < t->n && *at < i + 2 && t->p[*at] >= '0' && t->p[*at] <= '7'; (*at)++)
			v = 8 * v + (uint64_t)(t->p[*at] - '0');
		return v;
	}
	for (size_t i = 0; i + 1 < sizeof(names); i += 2)
		if (names[i] == c)
			return (unsigned char)names[i + 1];
	return (unsigned char)c;
}

int parse_char(struct parser *p, struct value *ret)
{
	struct token t = p->tok;
	bool wide = t.p[0] != '\'';
	size_t at = (size_t)((const char *)memchr(t.p, '\'', t.n) - t.p) + 1;
	uint32_t type;
	uint64_t v = 0;
	int rc = node_basic(p, wide ? B_INT : B_CHAR, &type);

	if (rc)
		return rc;
	/* 'abcd' is a number of four bytes, as magic numbers are written. */
	for (size_t n = 0; at + 1 < t.n && n < 4; n++) {
		uint64_t c = read_char(&t, &at);

		v = n ? v << 8 | (c & 0xff) : fit_to(p, type, c);
	}
	rc = node_basic(p, B_INT, &type);
	*ret = value_of(p, type, v);
	return rc ? rc : next(p);
}
