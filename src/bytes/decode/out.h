/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Putting values into a struct cairn_text_out: numbers, text, floats
 *
 * None of these allocates, none reads past its input. Room is checked once per number and once per
 * block of text, so that each byte costs only a store. A failed flush is remembered in out->failed;
 * later output is dropped.
 */
#ifndef DECODE_OUT_H
#define DECODE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cairn/decode.h>

typedef unsigned __int128 value_u128;

/* How values look; the same for all of one plan. */
struct look {
	bool json, hex, big_endian;
	enum cairn_long_double long_double;
};

/* The longest text that is put without asking for room again; below CAIRN_TEXT_OUT_MIN. */
enum { OUT_ROOM = 448 };

void out_flush(struct cairn_text_out *out);

/* At least OUT_ROOM bytes from the result on. out_end() takes over the bytes written there. */
static inline char *out_room(struct cairn_text_out *out)
{
	if (out->size - out->n < OUT_ROOM)
		out_flush(out);
	return out->buf + out->n;
}

static inline void out_end(struct cairn_text_out *out, const char *at)
{
	out->n = (size_t)(at - out->buf);
}

void out_bytes(struct cairn_text_out *out, const char *text, size_t n);

static inline void out_put(struct cairn_text_out *out, const char *text)
{
	out_bytes(out, text, strlen(text));
}

/* ---- number.c: each writes at @at, at most 64 bytes, and returns the end ---- */

char *put_u64(char *at, uint64_t v);
char *put_u128(char *at, value_u128 v);
/* The low @width bits, 1 to 128, as a number with a sign or without. */
char *put_int(char *at, value_u128 bits, unsigned int width, bool is_signed);
/* 0x... */
char *put_hex(char *at, value_u128 bits);

/* An integer as @look wants it. */
void out_int(struct cairn_text_out *out, const struct look *look, value_u128 bits,
	     unsigned int width, bool is_signed);
/* 0x...; in JSON a string. */
void out_hex(struct cairn_text_out *out, const struct look *look, value_u128 bits);
/* Any number of bytes as one hexadecimal number, all digits; in JSON a string. */
void out_hex_number(struct cairn_text_out *out, const struct look *look, const uint8_t *bytes,
		    uint64_t n);
/* Bytes in the order of memory; in JSON a string. */
void out_hex_dump(struct cairn_text_out *out, const struct look *look, const uint8_t *bytes,
		  uint64_t n);

/*
 * @width bits (1 to 128) from bit @bit_off of @bytes, which holds them all; the rest of the result
 * is 0. Bits are counted from the least significant one of each byte, on big-endian machines from
 * the most significant one.
 */
value_u128 bits_at(const uint8_t *bytes, uint64_t bit_off, unsigned int width, bool big_endian);

/* ---- shortest.c ---- */

/*
 * shortest_decimal - the fewest digits that lie nearer to @significand * 2^@exponent than to its
 * neighbours
 *
 * @irregular  the neighbour below is only half as far away: a power of 2, not the smallest
 * Returns the digits, without trailing zeros; *@ret_exponent is the power of 10 to multiply them
 * with. Exponents are those of finite doubles and all narrower formats; the significand is not 0
 * and below 2^53.
 */
uint64_t shortest_decimal(uint64_t significand, int exponent, bool irregular, int *ret_exponent);

/* ---- real.c ---- */

/* A FLOAT of t->size bytes, which are there; complex too. */
void out_real(struct cairn_text_out *out, const struct look *look, const struct cairn_type *t,
	      const uint8_t *bytes);

/* ---- text.c ---- */

/* 'c' */
void out_char(struct cairn_text_out *out, const struct look *look, uint8_t byte, bool is_signed);

/*
 * Quoted and escaped, up to the first NUL; @tail ("..." or NULL) marks that there is more, unless a
 * NUL came: after the quotes, in JSON inside.
 */
void out_text(struct cairn_text_out *out, const struct look *look, const uint8_t *s, uint64_t n,
	      const char *tail);

/* The same of characters of 2 or 4 bytes; of the end only whole ones are shown. */
void out_wide_text(struct cairn_text_out *out, const struct look *look, const uint8_t *s,
		   uint64_t n, unsigned int unit, const char *tail);

/* Quoted and escaped, with all NULs; @more: only the beginning, as with a tail of "...". */
void out_all_text(struct cairn_text_out *out, const struct look *look, const uint8_t *s, uint64_t n,
		  bool more);

/* A name from the input, without control characters; in JSON escaped but not quoted. */
void out_name(struct cairn_text_out *out, bool json, const char *name);

#endif
