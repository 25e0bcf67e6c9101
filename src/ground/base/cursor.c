/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/cursor.h"

#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

void cur_fail(struct cursor *c, const char *what)
{
	if (c->failed)
		return;
	c->failed = true;
	err_set(c->err, -EBADMSG, "%s: %s+0x%" PRIx64 ": the data ends inside %s (%s left)",
		c->src->file, c->src->section, cur_off(c), what,
		cairn_counted(cur_left(c), "byte").text);
	c->pos = c->end;
}

uint64_t cur_uint(struct cursor *c, unsigned int size)
{
	switch (size) {
	case 1:
		return cur_u8(c);
	case 2:
		return cur_u16(c);
	case 4:
		return cur_u32(c);
	case 8:
		return cur_u64(c);
	}
	const uint8_t *p = size < 8 ? cur_bytes(c, size) : NULL;
	uint64_t v = 0;
	for (unsigned int i = 0; p && i < size; i++)
		v |= (uint64_t)p[i] << 8 * (c->big_endian ? size - 1 - i : i);
	return v;
}

uint64_t cur_uleb_slow(struct cursor *c)
{
	uint64_t v = 0;
	for (unsigned int shift = 0; cur_more(c); shift += 7) {
		uint8_t byte = *c->pos++;
		uint64_t bits = byte & 0x7f;
		if (shift < 64 ? bits << shift >> shift != bits : bits != 0)
			break;
		if (shift < 64)
			v |= bits << shift;
		if (byte < 0x80)
			return v;
	}
	cur_fail(c, "an unsigned LEB128 number of at most 64 bits");
	return 0;
}

int64_t cur_sleb(struct cursor *c)
{
	uint64_t v = 0;
	for (unsigned int shift = 0; cur_more(c); shift += 7) {
		uint8_t byte = *c->pos++;
		uint64_t bits = byte & 0x7f;
		/* Beyond bit 63 only copies of the sign may follow. */
		if (shift >= 63 && bits != 0 && bits != 0x7f && !(shift == 63 && bits == 1))
			break;
		if (shift < 64)
			v |= bits << shift;
		if (byte < 0x80) {
			if (shift < 57 && (byte & 0x40))
				v |= ~(uint64_t)0 << (shift + 7);
			return (int64_t)v;
		}
	}
	cur_fail(c, "a signed LEB128 number of at most 64 bits");
	return 0;
}

const char *cur_str(struct cursor *c)
{
	const uint8_t *nul = c->failed ? NULL : memchr(c->pos, 0, cur_left(c));
	if (!nul) {
		cur_fail(c, "a string");
		return "";
	}
	const char *s = (const char *)c->pos;
	c->pos = nul + 1;
	return s;
}

struct cursor cur_sub(struct cursor *c, uint64_t n)
{
	struct cursor sub = *c;
	if (!cur_need(c, n, "a length-prefixed part")) {
		sub.pos = sub.end;
		sub.failed = true;
		return sub;
	}
	sub.end = sub.pos + n;
	c->pos += n;
	return sub;
}
