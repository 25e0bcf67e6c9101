/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cursor: the only way input bytes are read
 *
 * A cursor walks over one section (or a part of one). A read past the end, an overlong LEB128 or a
 * string without NUL marks it failed, sets the error once (file, section, offset, the thing being
 * read) and yields zeros from then on. So a parser may read a whole record and check once:
 *
 *	struct cursor c = cursor_of(&src, data, size, big_endian, err);
 *	uint16_t version = cur_u16(&c);
 *	uint64_t len = cur_uleb(&c);
 *	if (c.failed)
 *		return -EBADMSG;	// err is filled
 *
 * A loop over input must end when the cursor failed: test cur_more(), never pos alone.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

/* The source of the bytes, for the error text; outlives the cursor. */
struct cursor_src {
	const char *file;    /* path shown to the user */
	const char *section; /* ".debug_info", or "ELF header" */
	const uint8_t *base; /* offset 0 of that section */
};

struct cursor {
	const uint8_t *pos, *end;
	const struct cursor_src *src;
	struct cairn_err *err;
	bool big_endian;
	bool failed;
};

static inline struct cursor cursor_of(const struct cursor_src *src, const uint8_t *data,
				      size_t size, bool big_endian, struct cairn_err *err)
{
	/* An empty section may have no bytes at all, and adding even 0 to NULL is not allowed. */
	return (struct cursor){.pos = data,
			       .end = size ? data + size : data,
			       .src = src,
			       .err = err,
			       .big_endian = big_endian};
}

/*
 * Mark failed at the current position; @what names the thing being read. The first failure stays.
 */
void cur_fail(struct cursor *c, const char *what);

static inline size_t cur_left(const struct cursor *c)
{
	return (size_t)(c->end - c->pos);
}

static inline bool cur_more(const struct cursor *c)
{
	return !c->failed && c->pos < c->end;
}

/* Offset of the next byte from the start of the section. */
static inline uint64_t cur_off(const struct cursor *c)
{
	return (uint64_t)(c->pos - c->src->base);
}

static inline bool cur_need(struct cursor *c, uint64_t n, const char *what)
{
	if (!c->failed && n <= cur_left(c))
		return true;
	cur_fail(c, what);
	return false;
}

static inline uint8_t cur_u8(struct cursor *c)
{
	return cur_need(c, 1, "a byte") ? *c->pos++ : 0;
}

static inline uint16_t cur_u16(struct cursor *c)
{
	uint16_t v;
	if (!cur_need(c, sizeof(v), "2 bytes"))
		return 0;
	memcpy(&v, c->pos, sizeof(v));
	c->pos += sizeof(v);
	return c->big_endian ? __builtin_bswap16(v) : v;
}

static inline uint32_t cur_u32(struct cursor *c)
{
	uint32_t v;
	if (!cur_need(c, sizeof(v), "4 bytes"))
		return 0;
	memcpy(&v, c->pos, sizeof(v));
	c->pos += sizeof(v);
	return c->big_endian ? __builtin_bswap32(v) : v;
}

static inline uint64_t cur_u64(struct cursor *c)
{
	uint64_t v;
	if (!cur_need(c, sizeof(v), "8 bytes"))
		return 0;
	memcpy(&v, c->pos, sizeof(v));
	c->pos += sizeof(v);
	return c->big_endian ? __builtin_bswap64(v) : v;
}

/* Unsigned integer of @size bytes, 1 to 8. */
uint64_t cur_uint(struct cursor *c, unsigned int size);

/*
 * LEB128 that fits 64 bits; padding bytes (0x80 ... 0x00) are allowed, value bits beyond 64 fail.
 */
uint64_t cur_uleb_slow(struct cursor *c);
int64_t cur_sleb(struct cursor *c);

static inline uint64_t cur_uleb(struct cursor *c)
{
	if (cur_more(c) && *c->pos < 0x80)
		return *c->pos++;
	/* Two bytes cover the rest of most streams. */
	if (!c->failed && c->end - c->pos >= 2 && c->pos[1] < 0x80) {
		uint64_t v = (uint64_t)(c->pos[0] & 0x7f) | (uint64_t)c->pos[1] << 7;
		c->pos += 2;
		return v;
	}
	return cur_uleb_slow(c);
}

/*
 * An unsigned LEB128 of up to three bytes at *@p, which moves past it. False when it is longer or
 * incomplete: for loops that keep their position in a register, and leave rare and wrong input to a
 * cursor.
 */
static inline bool cur_uleb_short(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	const uint8_t *at = *p;
	if (end - at < 3)
		return false;
	if (at[0] < 0x80) {
		*ret = at[0];
		*p = at + 1;
	} else if (at[1] < 0x80) {
		*ret = (at[0] & 0x7fu) | (uint32_t)at[1] << 7;
		*p = at + 2;
	} else {
		*ret = (at[0] & 0x7fu) | (at[1] & 0x7fu) << 7 | (uint32_t)at[2] << 14;
		*p = at + 3;
		return at[2] < 0x80;
	}
	return true;
}

static inline void cur_skip(struct cursor *c, uint64_t n)
{
	if (cur_need(c, n, "skipped bytes"))
		c->pos += n;
}

/* Skip one LEB128 of any length. */
static inline void cur_skip_leb(struct cursor *c)
{
	while (cur_more(c))
		if (*c->pos++ < 0x80)
			return;
	cur_fail(c, "a LEB128 number");
}

/* @n bytes in place, valid as long as the input; NULL when they are not there. */
static inline const uint8_t *cur_bytes(struct cursor *c, uint64_t n)
{
	if (!cur_need(c, n, "a block"))
		return NULL;
	const uint8_t *p = c->pos;
	c->pos += n;
	return p;
}

/* NUL-terminated string in place; "" when it has no end. */
const char *cur_str(struct cursor *c);

/*
 * A cursor over the next @n bytes, which the outer one steps over. Failed when they are not there.
 */
struct cursor cur_sub(struct cursor *c, uint64_t n);

#endif
