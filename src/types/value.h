/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing values: what value.c (structs, arrays, enums) asks of value_scalar.c (numbers, text)
 *
 * All of these write to a locked stream and leave it to the caller to look at ferror(). None reads
 * more than it is given, none allocates.
 */
#ifndef TYPES_VALUE_H
#define TYPES_VALUE_H

#include <stdio.h>

#include <cairn/types.h>

typedef unsigned __int128 value_u128;

struct printer {
	const struct cairn_types *types;
	FILE *out;
	bool json, hex;
	uint32_t max_elems, max_depth;
	/* Values that may still be printed; see "out of all proportion" in cairn/types.h. */
	uint64_t budget;
};

void value_put(const struct printer *p, const char *s);

/* A word that is no value: <@text>, or null in JSON. */
void value_put_note(const struct printer *p, const char *text);

/* What was left out: ... or "..." */
void value_put_more(const struct printer *p);

/*
 * @width bits (1 to 128) from bit @bit_off of @bytes, which holds them all; the rest of the result
 * is 0.
 */
value_u128 value_bits(const uint8_t *bytes, uint64_t bit_off, unsigned int width);

/* An integer of @width bits in decimal, or in hexadecimal when asked for. */
void value_put_int(const struct printer *p, value_u128 bits, unsigned int width, bool is_signed);

/* 0x...; in JSON a string. */
void value_put_hex(const struct printer *p, value_u128 bits);

/* Any number of bytes as one little-endian hexadecimal number, all digits; in JSON a string. */
void value_put_hex_bytes(const struct printer *p, const uint8_t *bytes, uint64_t n);

/* A FLOAT of t->size bytes, which are there. */
void value_put_float(const struct printer *p, const struct cairn_type *t, const uint8_t *bytes);

/* 'c' */
void value_put_char(const struct printer *p, uint8_t byte, bool is_signed);

/*
 * Quoted and escaped; @tail ("..." or NULL) tells that there is more: behind the quotes, in JSON
 * inside.
 */
void value_put_text(const struct printer *p, const char *s, size_t n, const char *tail);

/* A name from the input: as it is, without control characters; in JSON escaped but not quoted. */
void value_put_name(const struct printer *p, const char *name);

#endif
