/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Integers
 *
 * Decimal digits come in pairs from a table: a division by 100 for two of them, none for less than
 * that. printf needs ten times as long for the same number, most of it for reading its format.
 */
#include "decode/out.h"

#include <errno.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

void out_flush(struct cairn_text_out *out)
{
	int rc = out->failed   ? out->failed
		 : !out->flush ? -ENOSPC
			       : out->flush(out->ctx, out->buf, out->n);

	if (rc < 0)
		out->failed = rc;
	out->n = 0;
}

void out_bytes(struct cairn_text_out *out, const char *text, size_t n)
{
	while (n) {
		size_t take = n < OUT_ROOM ? n : OUT_ROOM;
		char *at = out_room(out);

		memcpy(at, text, take);
		out_end(out, at + take);
		text += take;
		n -= take;
	}
}

/* ---- decimal ---- */

static unsigned int n_digits(uint64_t v)
{
	unsigned int n = 1;

	for (; v >= 10000; v /= 10000)
		n += 4;
	return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

char *put_u64(char *at, uint64_t v)
{
	char *end = at + n_digits(v), *p = end;

	for (; v >= 100; v /= 100)
		memcpy(p -= 2, pairs + v % 100 * 2, 2);
	if (v >= 10)
		memcpy(p - 2, pairs + v * 2, 2);
	else
		p[-1] = (char)('0' + v);
	return end;
}

char *put_u128(char *at, value_u128 v)
{
	static const uint64_t group = UINT64_C(10000000000000000000); /* 10^19 */

	if (v <= UINT64_MAX)
		return put_u64(at, (uint64_t)v);
	at = put_u128(at, v / group);
	char zeros[32], *end = put_u64(zeros, (uint64_t)(v % group));
	size_t n = (size_t)(end - zeros);
	memset(at, '0', 19 - n);
	memcpy(at + 19 - n, zeros, n);
	return at + 19;
}

char *put_int(char *at, value_u128 bits, unsigned int width, bool is_signed)
{
	if (is_signed && bits >> (width - 1) & 1) {
		*at++ = '-';
		bits = -bits;
		if (width < 128)
			bits &= ((value_u128)1 << width) - 1;
	}
	return bits <= UINT64_MAX ? put_u64(at, (uint64_t)bits) : put_u128(at, bits);
}

void out_int(struct cairn_text_out *out, const struct look *look, value_u128 bits,
	     unsigned int width, bool is_signed)
{
	if (look->hex)
		out_hex(out, look, bits);
	else
		out_end(out, put_int(out_room(out), bits, width, is_signed));
}

/* ---- hexadecimal ---- */

char *put_hex(char *at, value_u128 bits)
{
	int shift = 124;

	*at++ = '0';
	*at++ = 'x';
	while (shift && !(bits >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[bits >> shift & 15];
	return at;
}

void out_hex(struct cairn_text_out *out, const struct look *look, value_u128 bits)
{
	char *at = out_room(out);

	if (look->json)
		*at++ = '"';
	at = put_hex(at, bits);
	if (look->json)
		*at++ = '"';
	out_end(out, at);
}

static void out_hex_byte(struct cairn_text_out *out, uint8_t byte)
{
	char *at = out_room(out);

	*at++ = "0123456789abcdef"[byte >> 4];
	*at++ = "0123456789abcdef"[byte & 15];
	out_end(out, at);
}

void out_hex_number(struct cairn_text_out *out, const struct look *look, const uint8_t *bytes,
		    uint64_t n)
{
	out_put(out, look->json ? "\"0x" : "0x");
	for (uint64_t i = 0; i < n; i++)
		out_hex_byte(out, bytes[look->big_endian ? i : n - 1 - i]);
	out_put(out, look->json ? "\"" : "");
}

void out_hex_dump(struct cairn_text_out *out, const struct look *look, const uint8_t *bytes,
		  uint64_t n)
{
	out_put(out, look->json ? "\"" : "");
	for (uint64_t i = 0; i < n; i++)
		out_hex_byte(out, bytes[i]);
	out_put(out, look->json ? "\"" : "");
}

/* ---- bits ---- */

value_u128 bits_at(const uint8_t *bytes, uint64_t bit_off, unsigned int width, bool big_endian)
{
	const uint8_t *at = bytes + bit_off / 8;
	unsigned int shift = bit_off % 8;
	unsigned int n = (shift + width + 7) / 8;
	value_u128 v = 0;

	/* Byte by byte: 128 bits at an odd offset lie in 17 bytes, more than the widest integer. */
	if (big_endian) {
		unsigned int below = n * 8 - shift - width;
		for (unsigned int i = 0; i + 1 < n; i++)
			v = v << 8 | at[i];
		v = v << (8 - below) | at[n - 1] >> below;
	} else {
		for (unsigned int i = 0; i < n; i++)
			v |= i ? (value_u128)at[i] << (8 * i - shift)
			       : (value_u128)(at[0] >> shift);
	}
	if (width < 128)
		v &= ((value_u128)1 << width) - 1;
	return v;
}
