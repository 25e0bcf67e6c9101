/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "json.h"

/*
 * Length of the UTF-8 sequence at @s, or 0 when there is none: overlong forms, surrogates and what lies
 * beyond U+10FFFF are none. A string ends with NUL, which is never a continuation byte.
 */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char first_lo, first_hi, second_lo, second_hi, length;
	} forms[] = {
		{0x01, 0x7f, 0x00, 0xff, 1},
		{0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].first_lo || s[0] > forms[i].first_hi)
			continue;
		if (forms[i].length > 1 && (s[1] < forms[i].second_lo || s[1] > forms[i].second_hi))
			return 0;
		for (size_t k = 2; k < forms[i].length; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].length;
	}
	return 0;
}

static void quote(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	while (*s) {
		size_t length = utf8_length(s);

		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else if (length)
			fwrite(s, 1, length, out);
		else
			fputs("\xef\xbf\xbd", out);
		s += length ? length : 1;
	}
	fputc('"', out);
}

static void key(struct json *j, const char *name)
{
	uint64_t level = UINT64_C(1) << j->depth;

	if (j->has_items & level)
		fputc(',', j->out);
	j->has_items |= level;
	assert(!j->depth || !name == !!(j->is_array & level));
	if (!name)
		return;
	quote(j->out, name);
	fputc(':', j->out);
}

void json_open(struct json *j, const char *name, char bracket)
{
	uint64_t inner;

	key(j, name);
	fputc(bracket, j->out);
	j->depth++;
	assert(j->depth < JSON_DEPTH_MAX);
	inner = UINT64_C(1) << j->depth;
	j->has_items &= ~inner;
	j->is_array = bracket == '[' ? j->is_array | inner : j->is_array & ~inner;
}

void json_close(struct json *j)
{
	assert(j->depth);
	fputc(j->is_array & (UINT64_C(1) << j->depth) ? ']' : '}', j->out);
	j->depth--;
	if (j->depth)
		return;
	fputc('\n', j->out);
	j->has_items = 0;
}

void json_text(struct json *j, const char *name, const char *text)
{
	if (!text) {
		json_null(j, name);
		return;
	}
	key(j, name);
	quote(j->out, text);
}

void json_uint(struct json *j, const char *name, uint64_t value)
{
	key(j, name);
	fprintf(j->out, "%" PRIu64, value);
}

void json_int(struct json *j, const char *name, int64_t value)
{
	key(j, name);
	fprintf(j->out, "%" PRId64, value);
}

void json_hex(struct json *j, const char *name, uint64_t value)
{
	key(j, name);
	fprintf(j->out, "\"0x%" PRIx64 "\"", value);
}

void json_bool(struct json *j, const char *name, bool value)
{
	key(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *name)
{
	key(j, name);
	fputs("null", j->out);
}

void json_key(struct json *j, const char *name)
{
	key(j, name);
}
