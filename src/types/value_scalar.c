/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers and text of values
 *
 * Floats are printed with as few digits as read back to the same bits: for 0.1 the loop tries 0.1
 * at one digit and is done, for 1/3 it goes on to 17. The formats, by size and name:
 *
 *	SIZE      FORMAT                        HOLDS
 *	2         IEEE half; bf16 by name       exactly in float
 *	4, 8      IEEE single, double
 *	10,12,16  x87 extended, 80 bits used    long double; encodings that the x87 refuses as bytes
 *	16        IEEE quad, when the name has  by long double when its low 49 fraction bits are
 *	          "128" in it                   zero (0.5, all integers to 2^64), else as bytes
 *
 * The text must not depend on the locale of the program that uses the library (a decimal comma is
 * not JSON), so floats are formatted in the C locale of this thread.
 */
#include "types/value.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void value_put(const struct printer *p, const char *s)
{
	while (*s)
		putc_unlocked(*s++, p->out);
}

void value_put_note(const struct printer *p, const char *text)
{
	if (p->json) {
		value_put(p, "null");
		return;
	}
	value_put(p, "<");
	value_put(p, text);
	value_put(p, ">");
}

void value_put_more(const struct printer *p)
{
	value_put(p, p->json ? "\"...\"" : "...");
}

value_u128 value_bits(const uint8_t *bytes, uint64_t bit_off, unsigned int width)
{
	const uint8_t *at = bytes + bit_off / 8;
	unsigned int shift = bit_off % 8;
	value_u128 v = 0;
	/* Byte by byte: 128 bits at an odd offset lie in 17 bytes, more than the widest integer. */
	for (unsigned int got = 0; got < width + shift; got += 8, at++) {
		if (got < shift)
			v = *at >> shift;
		else
			v |= (value_u128)*at << (got - shift);
	}
	if (width < 128)
		v &= ((value_u128)1 << width) - 1;
	return v;
}

void value_put_hex(const struct printer *p, value_u128 bits)
{
	char text[40];
	uint64_t high = (uint64_t)(bits >> 64);
	if (high)
		snprintf(text, sizeof(text), "0x%" PRIx64 "%016" PRIx64, high, (uint64_t)bits);
	else
		snprintf(text, sizeof(text), "0x%" PRIx64, (uint64_t)bits);
	value_put(p, p->json ? "\"" : "");
	value_put(p, text);
	value_put(p, p->json ? "\"" : "");
}

void value_put_int(const struct printer *p, value_u128 bits, unsigned int width, bool is_signed)
{
	if (p->hex) {
		value_put_hex(p, bits);
		return;
	}
	if (is_signed && bits >> (width - 1) & 1) {
		value_put(p, "-");
		bits = -bits;
		if (width < 128)
			bits &= ((value_u128)1 << width) - 1;
	}
	char digits[40];
	size_t at = sizeof(digits);
	digits[--at] = 0;
	do {
		digits[--at] = (char)('0' + (int)(bits % 10));
		bits /= 10;
	} while (bits);
	value_put(p, digits + at);
}

void value_put_hex_bytes(const struct printer *p, const uint8_t *bytes, uint64_t n)
{
	value_put(p, p->json ? "\"0x" : "0x");
	for (uint64_t i = n; i-- > 0;) {
		putc_unlocked("0123456789abcdef"[bytes[i] >> 4], p -> out);
		putc_unlocked("0123456789abcdef"[bytes[i] & 15], p -> out);
	}
	value_put(p, p->json ? "\"" : "");
}

static bool put_not_finite(const struct printer *p, long double v)
{
	if (isfinite(v))
		return false;
	if (isnan(v))
		value_put(p, p->json ? "\"NaN\"" : "nan");
	else if (v < 0)
		value_put(p, p->json ? "\"-Infinity\"" : "-inf");
	else
		value_put(p, p->json ? "\"Infinity\"" : "inf");
	return true;
}

/*
 * Digits after which a float, a double and a long double are always told apart from their
 * neighbours.
 */
enum { DIGITS_FLOAT = 9, DIGITS_DOUBLE = 17, DIGITS_LONG_DOUBLE = 21 };

static bool reads_back(const char *text, long double v, int max_digits)
{
	switch (max_digits) {
	case DIGITS_FLOAT:
		return strtof(text, NULL) == (float)v;
	case DIGITS_DOUBLE:
		return strtod(text, NULL) == (double)v;
	default:
		return strtold(text, NULL) == v;
	}
}

static void put_float(const struct printer *p, long double v, int max_digits)
{
	char text[64];
	if (put_not_finite(p, v))
		return;
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before = c ? uselocale(c) : (locale_t)0;
	int digits = 0;
	do
		snprintf(text, sizeof(text), "%.*Lg", ++digits, v);
	while (digits < max_digits && !reads_back(text, v, max_digits));
	if (c) {
		uselocale(before);
		freelocale(c);
	}
	value_put(p, text);
}

static long double half_value(uint16_t bits, bool bfloat)
{
	if (bfloat) {
		uint32_t wide = (uint32_t)bits << 16;
		float f;
		memcpy(&f, &wide, sizeof(f));
		return f;
	}
	int exp = bits >> 10 & 31;
	int frac = bits & 1023;
	long double sign = bits >> 15 ? -1.0L : 1.0L;
	if (exp == 31)
		return frac ? (long double)NAN : sign * (long double)INFINITY;
	return sign * (exp ? ldexpl(1024 + frac, exp - 25) : ldexpl(frac, -24));
}

/*
 * x87: 64 bits with an explicit leading one, 15 of exponent, the sign. A leading zero with an
 * exponent other than zero is an encoding that the processor refuses, and printf of it is
 * undefined.
 */
static bool x87_value(uint64_t mantissa, unsigned int sign_exp, long double *ret)
{
	if ((sign_exp & 0x7fff) && !(mantissa >> 63))
		return false;
	unsigned char bytes[sizeof(long double)] = {0};
	uint16_t top = (uint16_t)sign_exp;
	memcpy(bytes, &mantissa, sizeof(mantissa));
	memcpy(bytes + sizeof(mantissa), &top, sizeof(top));
	memcpy(ret, bytes, sizeof(*ret));
	return true;
}

static bool quad_value(const uint8_t *bytes, long double *ret)
{
	enum { FRACTION = 112, LOST = FRACTION - 63 };
	value_u128 bits = value_bits(bytes, 0, 128);
	unsigned int sign_exp = (unsigned int)(bits >> FRACTION);
	value_u128 fraction = bits & (((value_u128)1 << FRACTION) - 1);
	bool nan = (sign_exp & 0x7fff) == 0x7fff && fraction;
	if (nan) {
		*ret = (long double)NAN;
		return true;
	}
	if (fraction & (((value_u128)1 << LOST) - 1))
		return false;
	uint64_t mantissa = (uint64_t)(fraction >> LOST);
	if (sign_exp & 0x7fff)
		mantissa |= UINT64_C(1) << 63;
	return x87_value(mantissa, sign_exp, ret);
}

static bool is_quad(const struct cairn_type *t)
{
	return t->name && (strstr(t->name, "128") || strstr(t->name, "quad"));
}

/* The value of a real of @size bytes and the digits that tell it apart; false: not one we know. */
static bool real_value(const struct cairn_type *t, uint64_t size, const uint8_t *bytes,
		       long double *ret, int *ret_digits)
{
	float f;
	double d;
	*ret_digits = DIGITS_FLOAT;
	switch (size) {
	case 2:
		*ret = half_value((uint16_t)value_bits(bytes, 0, 16),
				  t->name && strstr(t->name, "bf"));
		return true;
	case sizeof(f):
		memcpy(&f, bytes, sizeof(f));
		*ret = f;
		return true;
	case sizeof(d):
		memcpy(&d, bytes, sizeof(d));
		*ret = d;
		*ret_digits = DIGITS_DOUBLE;
		return true;
	case 10:
	case 12:
	case 16:
		*ret_digits = DIGITS_LONG_DOUBLE;
		if (size == 16 && is_quad(t))
			return quad_value(bytes, ret);
		return x87_value((uint64_t)value_bits(bytes, 0, 64),
				 (unsigned int)value_bits(bytes, 64, 16), ret);
	}
	return false;
}

static void put_real(const struct printer *p, const struct cairn_type *t, uint64_t size,
		     const uint8_t *bytes)
{
	long double v;
	int digits;
	if (real_value(t, size, bytes, &v, &digits))
		put_float(p, v, digits);
	else
		value_put_hex_bytes(p, bytes, size);
}

/* Whether the text of a real brings its own sign: "1-2i" needs no plus. */
static bool shows_minus(const struct cairn_type *t, uint64_t size, const uint8_t *bytes)
{
	long double v;
	int digits;
	return real_value(t, size, bytes, &v, &digits) && !isnan(v) && signbit(v);
}

void value_put_float(const struct printer *p, const struct cairn_type *t, const uint8_t *bytes)
{
	uint64_t half = t->size / 2;
	if (t->encoding != CAIRN_ENC_COMPLEX || half * 2 != t->size) {
		put_real(p, t, t->size, bytes);
		return;
	}
	value_put(p, p->json ? "[" : "");
	put_real(p, t, half, bytes);
	if (p->json)
		value_put(p, ",");
	else if (!shows_minus(t, half, bytes + half))
		value_put(p, "+");
	put_real(p, t, half, bytes + half);
	value_put(p, p->json ? "]" : "i");
}

/*
 * Length of the valid UTF-8 sequence at @s, 0 when it is none. Overlong forms, surrogates and what
 * lies beyond U+10FFFF are not valid, and a terminal takes U+0080 to U+009F for control characters.
 */
static size_t utf8_len(const uint8_t *s, size_t n, uint32_t *ret)
{
	static const uint32_t lowest[] = {0, 0, 0xa0, 0x800, 0x10000};
	size_t len = s[0] >= 0xf0 && s[0] < 0xf8 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] >= 0xf8 || len > n)
		return 0;
	uint32_t c = s[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < lowest[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return len;
}

static void put_escaped(const struct printer *p, uint8_t c, char quote)
{
	static const char codes[] = "\aa\bb\ff\nn\rr\tt\vv";
	char text[8] = {(char)c, 0};
	if (c == quote || c == '\\')
		snprintf(text, sizeof(text), "\\%c", c);
	else if (p->json && (c < 0x20 || c == 0x7f))
		snprintf(text, sizeof(text), "\\u%04x", c);
	else if (p->json && c >= 0x80)
		snprintf(text, sizeof(text), "\\ufffd");
	else if (c < 0x20 || c >= 0x7f)
		/*
		 * Octal, always three digits: "\0331" is unambiguous, "\x1b1" is another character.
		 */
		snprintf(text, sizeof(text), "\\%03o", c);
	for (size_t i = 0; !p->json && codes[i]; i += 2)
		if (c == (uint8_t)codes[i])
			snprintf(text, sizeof(text), "\\%c", codes[i + 1]);
	value_put(p, text);
}

static void put_utf8(const struct printer *p, const char *s, size_t n, char quote)
{
	const uint8_t *at = (const uint8_t *)s;
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c;
		len = utf8_len(at + i, n - i, &c);
		for (size_t k = 0; k < len; k++)
			putc_unlocked(at[i + k], p->out);
		if (!len) {
			put_escaped(p, at[i], quote);
			len = 1;
		}
	}
}

void value_put_char(const struct printer *p, uint8_t byte, bool is_signed)
{
	if (p->json && byte >= 0x80) {
		value_put_int(p, byte, 8, is_signed);
		return;
	}
	char quote = p->json ? '"' : '\'';
	putc_unlocked(quote, p->out);
	if (!p->json && !byte)
		value_put(p, "\\0");
	else
		put_escaped(p, byte, quote);
	putc_unlocked(quote, p->out);
}

void value_put_text(const struct printer *p, const char *s, size_t n, const char *tail)
{
	putc_unlocked('"', p->out);
	put_utf8(p, s, n, '"');
	if (tail && p->json)
		value_put(p, "...");
	putc_unlocked('"', p->out);
	if (tail && !p->json)
		value_put(p, tail);
}

void value_put_name(const struct printer *p, const char *name)
{
	put_utf8(p, name, strlen(name), p->json ? '"' : 0);
}
