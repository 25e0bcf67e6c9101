/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strings of wide characters, as another program has them: units of 2 bytes (UTF-16) or 4 (UTF-32)
 *
 * Any value may be in a unit. A number that is no character is kept as the number that it is.
 */
#ifndef BASE_WIDE_H
#define BASE_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes before the unit that is 0; all whole units if none is. */
size_t wide_length(const uint8_t *s, size_t n, unsigned int unit);

/* @n, or less if it would part a pair of surrogates. */
size_t wide_cut(const uint8_t *s, size_t n, unsigned int unit);

/*
 * wide_take - the character at the beginning of @s
 *
 * @n        bytes that can be seen, at least one unit
 * Returns its bytes. If it is no character, ret->n_utf8 is 0: an unpaired surrogate, or a number
 * beyond U+10FFFF.
 */
struct wide_char {
	uint32_t number;
	uint8_t utf8[4];
	uint8_t n_utf8;
};
size_t wide_take(const uint8_t *s, size_t n, unsigned int unit, bool big_endian,
		 struct wide_char *ret);

/* An escape of C or JSON for a number that is no character; @ret has room for 16 bytes. */
const char *wide_escape(uint32_t number, bool json, char *ret);

#endif
