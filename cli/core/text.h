/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text that is put together from pieces, without printf() and with few calls of stdio
 *
 * Answers of a hundred thousand lines are common, and a line has a dozen pieces of a few
 * characters.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The bytes that are not written yet. */
struct text {
	FILE *out; /* NULL: text that does not fit any more is cut off */
	char *buf;
	size_t size, n;
};

/* A piece for which there is no room left. */
void text_put_past(struct text *t, const char *chars, size_t n);

/* Writes all pending text. */
void text_flush(struct text *t);

/*
 * Room for @max more, at most the size of the buffer: the caller adds the number of bytes it put
 * there to n.
 */
char *text_room(struct text *t, size_t max);

/* Inlined, because most calls put a few characters of a known number. */
static inline __attribute__((always_inline)) void text_put_chars(struct text *t, const char *chars,
								 size_t n)
{
	if (n > t->size - t->n) {
		text_put_past(t, chars, n);
		return;
	}
	memcpy(t->buf + t->n, chars, n);
	t->n += n;
}

static inline __attribute__((always_inline)) void text_put(struct text *t, const char *text)
{
	text_put_chars(t, text, strlen(text));
}

/* A name of any bytes, quoted as text (say.h). */
void text_put_name_chars(struct text *t, const char *name, size_t n);

static inline void text_put_name(struct text *t, const char *name)
{
	text_put_name_chars(t, name, strlen(name));
}

/*
 * The @n characters that were just put into text_room(t, @max), now quoted; @max is at least @n.
 */
void text_take_name(struct text *t, size_t n, size_t max);

void text_put_decimal(struct text *t, uint64_t value);
/* The caller writes the "0x" before it. */
void text_put_hex(struct text *t, uint64_t value);
void text_put_spaces(struct text *t, size_t n);

/* A text that ends with the buffer: text_in() before, text_end() after. @size is at least 1. */
static inline struct text text_in(char *buf, size_t size)
{
	return (struct text){.buf = buf, .size = size - 1};
}

static inline void text_end(struct text *t)
{
	t->buf[t->n] = '\0';
}

#endif
