/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

void text_flush(struct text *t)
{
	if (t->n)
		fwrite_unlocked(t->buf, 1, t->n, t->out);
	t->n = 0;
}

void text_put_past(struct text *t, const char *chars, size_t n)
{
	if (!t->out) {
		n = t->size - t->n;
	} else {
		text_flush(t);
		if (n > t->size) {
			/* Names of C++ can be of any length. */
			fwrite_unlocked(chars, 1, n, t->out);
			return;
		}
	}
	memcpy(t->buf + t->n, chars, n);
	t->n += n;
}

char *text_room(struct text *t, size_t max)
{
	if (t->out && max > t->size - t->n)
		text_flush(t);
	return t->buf + t->n;
}

void text_put_decimal(struct text *t, uint64_t value)
{
	char digits[20], *end = digits + sizeof(digits), *at = end;

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	text_put_chars(t, at, (size_t)(end - at));
}

void text_put_hex(struct text *t, uint64_t value)
{
	char digits[16], *end = digits + sizeof(digits), *at = end;

	do
		*--at = "0123456789abcdef"[value % 16];
	while (value /= 16);
	text_put_chars(t, at, (size_t)(end - at));
}

void text_put_spaces(struct text *t, size_t n)
{
	static const char spaces[] = "                                                                ";

	for (; n > sizeof(spaces) - 1; n -= sizeof(spaces) - 1)
		text_put_chars(t, spaces, sizeof(spaces) - 1);
	text_put_chars(t, spaces, n);
}
