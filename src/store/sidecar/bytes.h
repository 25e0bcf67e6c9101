/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Appending numbers to a growing row of bytes. A failed allocation is remembered, and checked once
 * at the end.
 */
#ifndef SIDECAR_BYTES_H
#define SIDECAR_BYTES_H

#include <stdbool.h>

#include "base/vec.h"

struct bytes {
	VEC(uint8_t) v;
	bool failed;
};

static inline void put_u8(struct bytes *b, uint8_t value)
{
	if (!VEC_ADD(&b->v, value))
		b->failed = true;
}

static inline void put_bytes(struct bytes *b, const void *p, size_t n)
{
	const uint8_t *from = p;
	while (b->v.cap - b->v.n < n) {
		size_t cap = b->v.cap ? b->v.cap * 2 : 64;
		uint8_t *grown = cap > SIZE_MAX / 4 ? NULL : realloc(b->v.p, cap);
		if (!grown) {
			b->failed = true;
			return;
		}
		b->v.p = grown;
		b->v.cap = cap;
	}
	if (n)
		memcpy(b->v.p + b->v.n, from, n);
	b->v.n += n;
}

static inline void put_u32(struct bytes *b, uint32_t value)
{
	put_bytes(b, &value, sizeof(value));
}

static inline void put_uleb(struct bytes *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(b, (uint8_t)(value | 0x80));
	put_u8(b, (uint8_t)value);
}

/* 0, -1, 1, -2 are 0, 1, 2, 3. */
static inline uint32_t fold(uint32_t difference)
{
	return difference << 1 ^ (uint32_t)((int32_t)difference >> 31);
}

static inline uint32_t unfold(uint32_t folded)
{
	return folded >> 1 ^ -(folded & 1);
}

/* Signed, folded in the same way. */
static inline void put_sleb(struct bytes *b, int64_t value)
{
	put_uleb(b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

#endif
