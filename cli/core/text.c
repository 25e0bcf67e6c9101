/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdbool.h>
#include <stdlib.h>

#include <cairn/quote.h>

#include "quoted.h"

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

static bool is_ascii(const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)(name[i] - ' ') >= 0x7f - ' ')
			return false;
	return true;
}

static void put_quoted(struct text *t, const char *name, size_t n)
{
	static const char instead[] = "<a name: no memory>";
	char *quoted = quoted_copy(name, n, CAIRN_QUOTE_TEXT, &n);

	text_put_chars(t, quoted ? quoted : instead, quoted ? n : sizeof(instead) - 1);
	free(quoted);
}

void text_put_name_chars(struct text *t, const char *name, size_t n)
{
	if (is_ascii(name, n))
		text_put_chars(t, name, n);
	else
		put_quoted(t, name, n);
}

void text_take_name(struct text *t, size_t n, size_t max)
{
	size_t there = n < max ? n : max - 1;
	char *name;

	if (is_ascii(t->buf + t->n, there)) {
		t->n += there;
		return;
	}
	/* It is quoted into the site where it stands. */
	name = strndup(t->buf + t->n, there);
	if (name)
		put_quoted(t, name, there);
	free(name);
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
	static const char spaces[] =
		"                                                                ";

	for (; n > sizeof(spaces) - 1; n -= sizeof(spaces) - 1)
		text_put_chars(t, spaces, sizeof(spaces) - 1);
	text_put_chars(t, spaces, n);
}
