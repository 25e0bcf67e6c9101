/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdbool.h>
#include <stdlib.h>

#include <cairn/text.h>

#include "quoted.h"

/* Digits of the largest number, and a multiple of what is copied at once. */
enum { DIGITS_MAX = 24 };

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

#define EACH_BYTE (UINT64_MAX / 0xff) /* 0x0101010101010101 */

/* The highest bit of a byte that is below ' ' or above '~'; bits of others may be set with it. */
static inline uint64_t not_ascii(uint64_t bytes)
{
	return (((bytes - EACH_BYTE * ' ') & ~bytes) | (bytes + EACH_BYTE) | bytes) & EACH_BYTE
											      << 7;
}

static inline uint64_t bytes_at(const char *p)
{
	uint64_t bytes;

	memcpy(&bytes, p, sizeof(bytes));
	return bytes;
}

/* All of up to 7 bytes, some of them twice; the rest are spaces. */
static inline uint64_t few_bytes(const char *p, size_t n)
{
	uint32_t first = ' ' * (uint32_t)EACH_BYTE, last = first;

	if (n >= sizeof(first)) {
		memcpy(&first, p, sizeof(first));
		memcpy(&last, p + n - sizeof(last), sizeof(last));
	} else if (n) {
		memcpy(&first, (char[]){p[0], p[n / 2], p[n - 1], ' '}, sizeof(first));
	}
	return first | (uint64_t)last << 32;
}

/*
 * Whether a name is printable; with @to, it is copied there as far as it was looked at, always at
 * most @n bytes. All output goes through here, so eight bytes are looked at and copied at once. The
 * last ones may be twice.
 */
static inline bool copy_ascii(char *to, const char *name, size_t n)
{
	enum { STEP = sizeof(uint64_t) };
	uint64_t found = 0;

	if (n < STEP) {
		found = not_ascii(few_bytes(name, n));
		for (size_t i = 0; to && i < n; i++)
			to[i] = name[i];
		return !found;
	}
	for (size_t i = 0;; i = i + STEP < n - STEP ? i + STEP : n - STEP) {
		uint64_t bytes = bytes_at(name + i);

		found |= not_ascii(bytes);
		if (to)
			memcpy(to + i, &bytes, STEP);
		if (i == n - STEP)
			return !found;
	}
}

static bool is_ascii(const char *name, size_t n)
{
	return copy_ascii(NULL, name, n);
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
	if (n <= t->size - t->n && copy_ascii(t->buf + t->n, name, n))
		t->n += n;
	else if (is_ascii(name, n))
		text_put_past(t, name, n);
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

/* The digits of a number, from the last to the first. */
struct digits {
	char text[2 * DIGITS_MAX]; /* the second half is only copied */
	char *at;
};

/* Copies a known number of bytes, which takes no call; those after the digits are written over. */
static inline void put_digits(struct text *t, const struct digits *d)
{
	size_t n = (size_t)(d->text + DIGITS_MAX - d->at);

	if (t->size - t->n < DIGITS_MAX) {
		text_put_past(t, d->at, n);
		return;
	}
	memcpy(t->buf + t->n, d->at, DIGITS_MAX);
	t->n += n;
}

void text_put_decimal(struct text *t, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	struct digits d;

	memset(d.text + DIGITS_MAX, 0, DIGITS_MAX);
	for (d.at = d.text + DIGITS_MAX; value >= 10; value /= 100)
		memcpy(d.at -= 2, pairs + 2 * (value % 100), 2);
	if (value || d.at == d.text + DIGITS_MAX)
		*--d.at = (char)('0' + value);
	put_digits(t, &d);
}

void text_put_hex(struct text *t, uint64_t value)
{
	struct digits d;

	memset(d.text + DIGITS_MAX, 0, DIGITS_MAX);
	d.at = d.text + DIGITS_MAX;
	do
		*--d.at = "0123456789abcdef"[value % 16];
	while (value /= 16);
	put_digits(t, &d);
}

void text_put_spaces(struct text *t, size_t n)
{
	static const char spaces[] =
		"                                                                ";

	for (; n > sizeof(spaces) - 1; n -= sizeof(spaces) - 1)
		text_put_chars(t, spaces, sizeof(spaces) - 1);
	text_put_chars(t, spaces, n);
}
