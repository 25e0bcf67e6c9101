/* SPDX-License-Identifier: BSD-2-Clause */
#include "say.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"

enum {
	/* They stand for the format's own newlines and tabs until the arguments are among them. */
	NEWLINE = 1,
	TAB = 2,
	FORMAT_MAX = 1024,
	/* Longer text is rare, and takes memory. */
	TEXT_MAX = 2048,
};

static const char marks[] = {NEWLINE, TAB, 0};

/* An answer without this text would be another answer. */
static void end_without_memory(void)
{
	fputs("cairn: out of memory for the text of the answer\n", stderr);
	exit(STATUS_NOT_HERE);
}

void say_name(FILE *out, const char *name)
{
	if (name)
		cairn_quote_put(name, CAIRN_QUOTE_TEXT, out);
}

void say_lines(FILE *out, const char *text)
{
	char *line = strdup(text), *at = line;

	if (!line)
		end_without_memory();
	while (at && *at) {
		size_t n = strcspn(at, "\n\t");
		char end = at[n];

		at[n] = 0;
		say_name(out, at);
		fputc(end == '\t' ? '\t' : '\n', out);
		at += end ? n + 1 : n;
	}
	free(line);
}

static size_t n_marks(const char *text)
{
	size_t n = 0;

	for (; *(text += strcspn(text, marks)); text++)
		n++;
	return n;
}

/* A format that does not fit is our bug, and is cut. */
static void mark_format(const char *format, char to[FORMAT_MAX])
{
	size_t n = strnlen(format, FORMAT_MAX - 1);

	for (size_t i = 0; i < n; i++)
		to[i] = format[i] == '\n' ? NEWLINE : format[i] == '\t' ? TAB : format[i];
	to[n] = 0;
}

/* An argument that holds a mark costs the line breaks, and cannot make one. */
static void put_marked(FILE *out, char *text, bool is_forged)
{
	while (!is_forged) {
		size_t n = strcspn(text, marks);
		char mark = text[n];

		text[n] = 0;
		say_name(out, text);
		if (!mark)
			return;
		fputc(mark == TAB ? '\t' : '\n', out);
		text += n + 1;
	}
	say_name(out, text);
	fputc('\n', out);
}

void vsay(FILE *out, const char *format, va_list args)
{
	char marked[FORMAT_MAX], small[TEXT_MAX], *text = small;
	va_list again;

	mark_format(format, marked);
	va_copy(again, args);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	int n = vsnprintf(small, sizeof(small), marked, args);
	if (n >= (int)sizeof(small) && vasprintf(&text, marked, again) < 0)
		end_without_memory();
#pragma GCC diagnostic pop
	va_end(again);
	put_marked(out, text, n_marks(text) != n_marks(marked));
	if (text != small)
		free(text);
}

void say(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(out, format, args);
	va_end(args);
}
