/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers with only as many bits as they need
 *
 * Fields of a record have widths that are the same for all records of a table, or of a block. So
 * record i begins at bit i * (sum of widths), and any field of it is read with one load:
 *
 *	widths 3, 5  bytes 4d 02  record 0: 101, 01001 (5, 9)  record 1: 010, 00000 (2, 0)
 *
 * The lowest bit comes first. BITS_SLACK bytes that belong to the same mapping follow the last bit,
 * so that the load never checks how many are left.
 */
#ifndef SIDECAR_BITS_H
#define SIDECAR_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf/guard.h"

enum {
	BITS_SLACK = 8,
	BITS_WIDTH_MAX = 32,
};

/* @n bits at @p, and BITS_SLACK bytes after the last. */
struct bits {
	const uint8_t *p;
	uint64_t n;
};

/* The field of @width bits (at most 32) at bit @at; 0 when it is not all there. */
static inline uint32_t bits_get(const struct bits *b, uint64_t at, unsigned int width)
{
	uint64_t word;
	/*
	 * A field without width gives 0 here, too; else the load would read bit 0 of an empty
	 * array.
	 */
	if (__builtin_expect(at + width - 1 >= b->n, 0))
		return 0;
	memcpy(&word, b->p + at / 8, sizeof(word));
	return (uint32_t)(word >> at % 8 & (((uint64_t)1 << width) - 1));
}

/* Have the field at bit @at fetched meanwhile. */
static inline void bits_prefetch(const struct bits *b, uint64_t at)
{
	if (at < b->n)
		__builtin_prefetch(b->p + at / 8);
}

/* How many bits @value needs; 0 for 0. */
static inline unsigned int bits_width(uint32_t value)
{
	return value ? 32 - (unsigned int)__builtin_clz(value) : 0;
}

/*
 * A table in its mapped form: TABLE_HEAD bytes, the records, then zero bytes: at least BITS_SLACK,
 * and up to a multiple of 8.
 *	0  4  number of records
 *	4  4  width of each field; 0 of those that all records have 0 in, but of several records at
 *	      least one bit
 */
enum {
	TABLE_FIELDS = 4,
	TABLE_HEAD = 8,
};

struct table {
	struct guard *guard; /* NULL: bytes that need no checking */
	struct bits bits;
	uint32_t n;
	uint32_t record_width;
	uint8_t width[TABLE_FIELDS];
	uint8_t start[TABLE_FIELDS];
};

/* Field @field of record @i; 0 when there is none, or its checksum differs. */
static inline uint32_t table_get(const struct table *t, uint32_t i, unsigned int field)
{
	uint64_t at = (uint64_t)i * t->record_width + t->start[field];
	if (__builtin_expect(at + t->width[field] - 1 >= t->bits.n, 0) ||
	    !guard_near(t->guard, t->bits.p + at / 8))
		return 0;
	return bits_get(&t->bits, at, t->width[field]);
}

/*
 * The table at @p, of which there are @size bytes at least 4-aligned; its own size, or 0 when it is
 * damaged.
 */
static inline uint64_t table_read(struct table *t, struct guard *guard, const uint8_t *p,
				  uint64_t size)
{
	*t = (struct table){.guard = guard};
	if (size < TABLE_HEAD + BITS_SLACK || (guard && !guard_check(guard, p, TABLE_HEAD)))
		return 0;
	memcpy(&t->n, p, sizeof(t->n));
	memcpy(t->width, p + sizeof(t->n), sizeof(t->width));
	for (int i = 0; i < TABLE_FIELDS; i++) {
		if (t->width[i] > BITS_WIDTH_MAX)
			return 0;
		t->start[i] = (uint8_t)t->record_width;
		t->record_width += t->width[i];
	}
	/* So the bytes bound the number of records, and a reader of all records ends. */
	if (t->n > 1 && !t->record_width)
		return 0;
	t->bits = (struct bits){p + TABLE_HEAD, (uint64_t)t->n * t->record_width};
	uint64_t own = TABLE_HEAD + (((t->bits.n + 7) / 8 + BITS_SLACK + 7) & ~(uint64_t)7);
	return own <= size ? own : 0;
}

#endif
