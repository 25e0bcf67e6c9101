/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Characters and strings: 'a', L'\x41', u8"text" "more\n"
 *
 * A string is needed for its size only. Its units have 1, 2 or 4 bytes, which is known when the
 * last of those that stand side by side was read ("a" L"b" is wide), so they are counted in all
 * three sizes on the way.
 */
#include <errno.h>
#include <string.h>

#include "decl/expr.h"

/* A code point, or an escape for a unit of any number. */
struct one {
	uint64_t v;
	bool is_code_point; /* above 0x7f it has several units in a narrow string */
};

static unsigned int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned int)((c | 0x20) - 'a' + 10) : 16;
}

static uint64_t read_hex(const struct token *t, size_t *at, size_t most)
{
	uint64_t v = 0;

	for (size_t n = 0; n < most && *at < t->n && hex_digit(t->p[*at]) < 16; n++)
		v = v << 4 | hex_digit(t->p[(*at)++]);
	return v;
}

static uint64_t read_octal(const struct token *t, size_t *at)
{
	uint64_t v = 0;

	for (size_t n = 0; n < 3 && *at < t->n && t->p[*at] >= '0' && t->p[*at] <= '7'; n++)
		v = v << 3 | (uint64_t)(t->p[(*at)++] - '0');
	return v;
}

/* After the backslash. */
static struct one read_escape(const struct token *t, size_t *at)
{
	static const char names[] = "n\nt\tr\ra\ab\bf\fv\ve\033E\033";
	char c = t->p[*at];

	if (c >= '0' && c <= '7')
		return (struct one){.v = read_octal(t, at)};
	(*at)++;
	if (c == 'x')
		return (struct one){.v = read_hex(t, at, t->n)};
	if (c == 'u' || c == 'U')
		return (struct one){.v = read_hex(t, at, c == 'u' ? 4 : 8), .is_code_point = true};
	for (size_t i = 0; i + 1 < sizeof(names); i += 2)
		if (names[i] == c)
			return (struct one){.v = (unsigned char)names[i + 1]};
	return (struct one){.v = (unsigned char)c};
}

/* The bytes of UTF-8 that begin with @c: 2 to 4; 1 when it begins none. */
static size_t length_of_utf8(unsigned char c)
{
	return c >= 0xf0 && c < 0xf8   ? 4
	       : c >= 0xe0 && c < 0xf0 ? 3
	       : c >= 0xc2 && c < 0xe0 ? 2
				       : 1;
}

/* Invalid UTF-8 is taken byte by byte. */
static struct one read_one(const struct token *t, size_t *at)
{
	unsigned char c = (unsigned char)t->p[*at];
	size_t n = length_of_utf8(c);

	if (c == '\\' && *at + 1 < t->n) {
		(*at)++;
		return read_escape(t, at);
	}
	uint64_t v = n == 1 ? c : c & (0xffU >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if (*at + i >= t->n || (t->p[*at + i] & 0xc0) != 0x80) {
			(*at)++;
			return (struct one){.v = c};
		}
		v = v << 6 | (t->p[*at + i] & 0x3f);
	}
	*at += n;
	return (struct one){.v = v, .is_code_point = n > 1};
}

static size_t units_of(struct one c, unsigned int bytes)
{
	if (!c.is_code_point || c.v < 0x80 || bytes == 4)
		return 1;
	if (bytes == 2)
		return c.v < 0x10000 ? 1 : 2;
	return c.v < 0x800 ? 2 : c.v < 0x10000 ? 3 : 4;
}

/* By the prefix before the quote. */
static enum basic type_of_prefix(const struct parser *p, const struct token *t)
{
	enum basic wide = p->abi->wchar_unsigned ? B_UINT : B_INT;

	if (t->p[0] == 'L')
		return p->abi->wchar_size == 2 ? B_USHORT : wide;
	if (t->p[0] == 'U')
		return B_UINT;
	return t->p[0] == 'u' && t->p[1] != '8' ? B_USHORT : B_CHAR;
}

static size_t begin_of(const struct token *t, char quote)
{
	return (size_t)((const char *)memchr(t->p, quote, t->n) - t->p) + 1;
}

int parse_char(struct parser *p, struct value *ret)
{
	struct token t = p->tok;
	enum basic basic = type_of_prefix(p, &t);
	size_t at = begin_of(&t, '\'');
	uint32_t type;
	uint64_t v = 0;
	int rc = node_basic(p, basic, &type);

	if (rc)
		return rc;
	/* 'abcd' is a number of four bytes, as magic numbers are written. */
	for (size_t n = 0; at + 1 < t.n && n < 4; n++) {
		uint64_t c = read_one(&t, &at).v;

		v = n ? v << 8 | (c & 0xff) : fit_to(p, type, c);
	}
	if (basic == B_CHAR)
		rc = node_basic(p, B_INT, &type);
	*ret = value_of(p, type, v);
	return rc ? rc : next(p);
}

/* Adds the units of one string, in 1, 2 and 4 bytes. */
static void count_units(const struct token *t, uint64_t count[3])
{
	for (size_t at = begin_of(t, '"'); at + 1 < t->n;) {
		struct one c = read_one(t, &at);

		for (unsigned int i = 0; i < 3; i++)
			count[i] += units_of(c, 1U << i);
	}
}

int parse_string(struct parser *p, struct value *ret)
{
	struct cairn_type t = {.kind = CAIRN_T_ARRAY, .has_count = true};
	enum basic basic = B_CHAR;
	/* NUL */
	uint64_t count[3] = {1, 1, 1}, size;
	int rc = 0;

	while (!rc && p->tok.kind == TOKEN_STRING) {
		if (type_of_prefix(p, &p->tok) != B_CHAR)
			basic = type_of_prefix(p, &p->tok);
		count_units(&p->tok, count);
		rc = next(p);
	}
	rc = rc ? rc : node_basic(p, basic, &t.ref);
	if (rc)
		return rc;
	size = cairn_types_get(p->types, t.ref)->size;
	t.count = count[size / 2];
	t.size = t.count * size;
	*ret = (struct value){.is_lvalue = true};
	return node_add(p, &t, &ret->type);
}
