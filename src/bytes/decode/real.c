/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floats
 *
 * They are printed with as few digits as read back to the same bits. The formats, by size and name:
 *
 *     SIZE      FORMAT                        PRINTED
 *     2         IEEE half; bf16 by name       shortest, as of a binary format with 11 and 8 bits
 *     4, 8      IEEE single, double           shortest
 *     10,12,16  x87 extended, 80 bits used    shortest, by trying digits; encodings that the x87
 *                                             refuses as bytes
 *     16        IEEE quad, when the name has  as x87's when its low 49 fraction bits are zero (0.5,
 *               "128" in it or the ABI's      all integers to 2^64), else as bytes
 *               long double is one
 *
 * The text must not depend on the locale of the program that uses the library (a decimal comma is
 * not JSON). So printf, which x87 needs, is called in the C locale of this thread.
 */
#include "decode/out.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- digits to text ---- */

/*
 * Up to this power of 10 a number is written out; "1e+17" is shorter than 18 digits. From 0.0001
 * down, too.
 */
enum { PLAIN_MAX = 17, PLAIN_MIN = -4 };

static char *put_exponent(char *at, int e)
{
	*at++ = 'e';
	*at++ = e < 0 ? '-' : '+';
	e = e < 0 ? -e : e;
	if (e < 10)
		*at++ = '0';
	return put_u64(at, (uint64_t)e);
}

/* digits * 10^exponent as %g has it: 1.5, 0.001, 1e-05. */
static char *put_decimal(char *at, uint64_t digits, int exponent)
{
	char text[24];
	int n = (int)(put_u64(text, digits) - text);
	int point = n + exponent; /* digits before it */

	if (point > PLAIN_MAX || point - 1 < PLAIN_MIN) {
		*at++ = text[0];
		if (n > 1)
			*at++ = '.';
		memcpy(at, text + 1, (size_t)n - 1);
		return put_exponent(at + n - 1, point - 1);
	}
	if (point <= 0) {
		at = (char *)memcpy(at, "0.", 2) + 2;
		memset(at, '0', (size_t)-point);
		memcpy(at - point, text, (size_t)n);
		return at - point + n;
	}
	int before = n < point ? n : point;
	memcpy(at, text, (size_t)before);
	memset(at + before, '0', (size_t)(point - before));
	at += point;
	if (n > point) {
		*at++ = '.';
		memcpy(at, text + point, (size_t)(n - point));
		at += n - point;
	}
	return at;
}

static char *put_not_finite(char *at, bool nan, bool minus, bool json)
{
	const char *text = nan     ? (json ? "\"NaN\"" : "nan")
			   : minus ? (json ? "\"-Infinity\"" : "-inf")
				   : (json ? "\"Infinity\"" : "inf");

	return stpcpy(at, text);
}

/* A binary format of IEEE 754 with at most 64 bits. */
struct format {
	uint8_t bits, fraction;
};

static char *put_ieee(char *at, uint64_t v, struct format f, bool json)
{
	unsigned int exponent_bits = f.bits - f.fraction - 1u;
	uint64_t fraction = v & ((UINT64_C(1) << f.fraction) - 1);
	int top = (1 << exponent_bits) - 1, exponent = (int)(v >> f.fraction) & top;
	/* power of 2 of the last bit of the smallest number */
	int lowest = 1 - (top >> 1) - f.fraction;
	bool minus = v >> (f.bits - 1) & 1;

	if (exponent == top)
		return put_not_finite(at, fraction, minus, json);
	if (minus)
		*at++ = '-';
	if (!exponent && !fraction) {
		*at++ = '0';
		return at;
	}
	int ten, two = exponent ? lowest + exponent - 1 : lowest;
	uint64_t significand = exponent ? fraction | UINT64_C(1) << f.fraction : fraction;
	uint64_t digits = shortest_decimal(significand, two, !fraction && exponent > 1, &ten);
	return put_decimal(at, digits, ten);
}

/* ---- x87 and quad ---- */

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
	value_u128 bits = bits_at(bytes, 0, 128, false);
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

enum { DIGITS_LONG_DOUBLE = 21 };

static char *put_long_double(char *at, long double v, bool json)
{
	if (!isfinite(v))
		return put_not_finite(at, isnan(v), v < 0, json);
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t before = c ? uselocale(c) : (locale_t)0;
	int digits = 0, n;
	do
		n = sprintf(at, "%.*Lg", ++digits, v);
	while (digits < DIGITS_LONG_DOUBLE && strtold(at, NULL) != v);
	if (c) {
		uselocale(before);
		freelocale(c);
	}
	return at + n;
}

/* ---- a FLOAT ---- */

/* A name is more specific than the machine: _Float128 is a quad everywhere. */
static enum cairn_long_double wide_format(const struct cairn_type *t, const struct look *look)
{
	bool is_named = t->name && (strstr(t->name, "128") || strstr(t->name, "quad"));
	return is_named ? CAIRN_LONG_DOUBLE_QUAD : look->long_double;
}

/*
 * Writes a real of @size bytes in this machine's order, at most 64; NULL: not a format that is
 * known here.
 */
static char *put_real(char *at, const struct cairn_type *t, uint64_t size, const uint8_t *bytes,
		      const struct look *look)
{
	static const struct format half = {16, 10}, bfloat = {16, 7}, single = {32, 23},
				   dbl = {64, 52};
	uint64_t low = (uint64_t)bits_at(bytes, 0, size < 8 ? (unsigned int)size * 8 : 64, false);
	long double v;

	switch (size) {
	case 2:
		return put_ieee(at, low, t->name && strstr(t->name, "bf") ? bfloat : half,
				look->json);
	case 4:
		return put_ieee(at, low, single, look->json);
	case 8:
		return put_ieee(at, low, dbl, look->json);
	case 16:
		if (wide_format(t, look) == CAIRN_LONG_DOUBLE_QUAD)
			return quad_value(bytes, &v) ? put_long_double(at, v, look->json) : NULL;
		if (wide_format(t, look) == CAIRN_LONG_DOUBLE_OTHER)
			return NULL;
		break;
	case 10:
	case 12:
		break;
	default:
		return NULL;
	}
	if (!x87_value(low, (unsigned int)bits_at(bytes, 64, 16, false), &v))
		return NULL;
	return put_long_double(at, v, look->json);
}

/* From a big-endian machine: reversed, up to a size that no real exceeds. */
enum { REAL_MAX = 16 };

static void out_one(struct cairn_text_out *out, const struct look *look, const struct cairn_type *t,
		    uint64_t size, const uint8_t *bytes, bool wants_plus)
{
	char text[96], *end = NULL;
	uint8_t turned[REAL_MAX];

	if (size && size <= REAL_MAX) {
		for (uint64_t i = 0; i < size; i++)
			turned[i] = bytes[look->big_endian ? size - 1 - i : i];
		end = put_real(text, t, size, turned, look);
	}
	if (wants_plus && !(end && text[0] == '-'))
		out_put(out, "+");
	if (end)
		out_bytes(out, text, (size_t)(end - text));
	else
		out_hex_number(out, look, bytes, size);
}

void out_real(struct cairn_text_out *out, const struct look *look, const struct cairn_type *t,
	      const uint8_t *bytes)
{
	uint64_t half = t->size / 2;

	if (t->encoding != CAIRN_ENC_COMPLEX || half * 2 != t->size) {
		out_one(out, look, t, t->size, bytes, false);
		return;
	}
	out_put(out, look->json ? "[" : "");
	out_one(out, look, t, half, bytes, false);
	out_put(out, look->json ? "," : "");
	out_one(out, look, t, half, bytes + half, !look->json);
	out_put(out, look->json ? "]" : "i");
}
