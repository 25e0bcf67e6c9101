/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the format that bits.h reads. A failed allocation is remembered in the bytes. */
#ifndef SIDECAR_BITS_OUT_H
#define SIDECAR_BITS_OUT_H

#include "sidecar/bits.h"
#include "sidecar/bytes.h"

/* Bits that do not make a byte yet. */
struct bits_out {
	struct bytes *to;
	uint64_t word;
	unsigned int n;
};

static inline void put_bits(struct bits_out *o, uint32_t value, unsigned int width)
{
	o->word |= (uint64_t)value << o->n;
	for (o->n += width; o->n >= 8; o->n -= 8, o->word >>= 8)
		put_u8(o->to, (uint8_t)o->word);
}

/* Up to the next byte. */
static inline void end_bits(struct bits_out *o)
{
	if (o->n)
		put_u8(o->to, (uint8_t)o->word);
	o->word = o->n = 0;
}

static inline void put_zeroes(struct bytes *b, size_t n)
{
	while (n--)
		put_u8(b, 0);
}

/*
 * @n records of @n_fields numbers (at most TABLE_FIELDS) each, as a table. Aligned to 8 bytes when
 * *@ret was.
 */
void put_table(const uint32_t *values, size_t n, unsigned int n_fields, struct bytes *ret);

#endif
