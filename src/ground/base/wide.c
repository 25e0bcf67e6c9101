/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/wide.h"

#include <stdio.h>
#include <string.h>

static uint32_t unit_at(const uint8_t *s, unsigned int unit)
{
	uint32_t ret = 0;

	memcpy(&ret, s, unit);
	return ret;
}

size_t wide_length(const uint8_t *s, size_t n, unsigned int unit)
{
	size_t at = 0;

	while (n - at >= unit && unit_at(s + at, unit))
		at += unit;
	return at;
}

static bool is_first_of_pair(uint32_t c)
{
	return c >= 0xd800 && c < 0xdc00;
}

static bool is_second_of_pair(uint32_t c)
{
	return c >= 0xdc00 && c < 0xe000;
}

size_t wide_cut(const uint8_t *s, size_t n, unsigned int unit)
{
	bool parts_pair = unit == 2 && n >= 2 && is_first_of_pair(unit_at(s + n - 2, 2)) &&
			  is_second_of_pair(unit_at(s + n, 2));

	return parts_pair ? n - 2 : n;
}

static size_t put_utf8(uint32_t c, uint8_t to[4])
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (uint8_t)(0x80 | (c & 0x3f));
	to[0] = (uint8_t)(heads[n] | c);
	return n;
}

static uint32_t number_at(const uint8_t *s, unsigned int unit, bool big_endian)
{
	uint32_t v = unit_at(s, unit), swapped = __builtin_bswap32(v);

	return big_endian ? swapped >> (32 - 8 * unit) : v;
}

size_t wide_take(const uint8_t *s, size_t n, unsigned int unit, bool big_endian,
		 struct wide_char *ret)
{
	uint32_t c = number_at(s, unit, big_endian);
	uint32_t second = unit == 2 && n >= 4 ? number_at(s + 2, 2, big_endian) : 0;
	bool is_pair = unit == 2 && is_first_of_pair(c) && is_second_of_pair(second);

	if (is_pair)
		c = 0x10000 + ((c - 0xd800) << 10) + (second - 0xdc00);
	bool is_char = c <= 0x10ffff && (c < 0xd800 || c >= 0xe000);
	*ret = (struct wide_char){.number = c};
	ret->n_utf8 = is_char ? (uint8_t)put_utf8(c, ret->utf8) : 0;
	return is_pair ? 4 : unit;
}

const char *wide_escape(uint32_t number, bool json, char *ret)
{
	if (json)
		strcpy(ret, "\\ufffd");
	else
		snprintf(ret, 16, number > 0xffff ? "\\U%08x" : "\\u%04x", number);
	return ret;
}
