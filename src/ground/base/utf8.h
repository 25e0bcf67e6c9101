/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Characters of UTF-8, and which of them a terminal or a reader could take for something else than
 * text.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * utf8_length - length of the character that begins at @s
 *
 * @n  bytes that can be seen, at least 1
 * Returns 1 to 4 and the character; 0 when none begins there: overlong forms, surrogates and values
 * beyond U+10FFFF are none.
 */
static inline size_t utf8_length(const uint8_t *s, size_t n, uint32_t *ret)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	if ((s[0] >= 0x80 && s[0] < 0xc2) || s[0] >= 0xf8 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	*ret = c;
	return (len > 1 && c < lowest[len]) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0
											   : len;
}

/*
 * Not a control character, an end of a line or a paragraph, or one that changes the direction of
 * text.
 */
static inline bool utf8_is_safe(uint32_t c)
{
	return c >= 0x20 && (c < 0x7f || c > 0x9f) && c != 0x61c && (c < 0x200e || c > 0x200f) &&
	       (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069);
}

#endif
