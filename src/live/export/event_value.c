/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON of a value is what all formats have, so a value is taken from there. */
#include "export/event_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

/* UTF-8 of a character below U+10000, which is all that our printer escapes. */
static char *put_character(char *to, unsigned int c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* The text between the quotation marks of JSON, in place. */
static void unescape(char *s)
{
	static const char from[] = "ntrbf", to[] = "\n\t\r\b\f";
	char *out = s;

	for (s++; *s && *s != '"'; s++) {
		unsigned int c = 0;
		const char *known;

		if (*s != '\\') {
			*out++ = *s;
			continue;
		}
		s++;
		known = strchr(from, *s);
		if (*s == 'u' && sscanf(s + 1, "%4x", &c) == 1) {
			out = put_character(out, c);
			s += 4;
		} else {
			*out++ = known ? to[known - from] : *s;
		}
	}
	*out = 0;
}

static void take_number(const char *text, struct event_value *ret)
{
	errno = 0;
	ret->kind = EVENT_INT;
	ret->number = strtoll(text, NULL, 10);
	if (!errno)
		return;
	errno = 0;
	ret->kind = EVENT_UINT;
	ret->natural = strtoull(text, NULL, 10);
	/* A number of 128 bits. */
	if (errno || text[0] == '-')
		ret->kind = EVENT_JSON;
}

static void classify(char *text, struct event_value *ret)
{
	ret->text = text;
	if (text[0] == '"') {
		ret->kind = EVENT_STRING;
		unescape(text);
	} else if (!strcmp(text, "true") || !strcmp(text, "false")) {
		ret->kind = EVENT_BOOL;
		ret->truth = text[0] == 't';
	} else if (text[strspn(text, "-0123456789")] == 0) {
		take_number(text, ret);
	} else if (text[strspn(text, "-+0123456789.eE")] == 0) {
		ret->kind = EVENT_FLOAT;
		ret->real = strtod(text, NULL);
	} else {
		ret->kind = EVENT_JSON;
	}
}

int event_value(const struct cairn_event *event, uint32_t i, struct arena *arena,
		struct event_value *ret)
{
	SCOPE_FREE char *text = NULL;
	char *copy;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	r = cairn_event_value_print(event, i, CAIRN_VALUE_JSON, out);
	if (fclose(out) && r == 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	copy = arena_strndup(arena, text, size);
	if (!copy)
		return -ENOMEM;
	*ret = (struct event_value){0};
	classify(copy, ret);
	return 0;
}

bool event_duration(const struct cairn_event *event, uint64_t *ret)
{
	for (uint32_t i = 0; i < event->n_values; i++) {
		const struct cairn_event_value *v = &event->values[i];

		if (strcmp(v->what->text, "$duration") || v->state != CAIRN_VALUE_OK ||
		    v->n_bytes != sizeof(*ret))
			continue;
		memcpy(ret, v->bytes, sizeof(*ret));
		return true;
	}
	return false;
}

size_t event_absences(const struct cairn_trace_stats *stats, struct event_absence *ret)
{
	const struct event_absence all[EVENT_ABSENCES_MAX] = {
		{"sample", stats->sample > 1 ? stats->sample : 0},
		{"sample_since_ns", stats->sample > 1 ? stats->sampled_since_ns : 0},
		{"undrawn", stats->total.undrawn},
		{"lost", stats->total.lost},
		{"entries_lost", stats->total.entries_lost},
		{"missed", stats->missed},
		{"given_up_ns", stats->given_up_ns}};
	size_t n = 0;

	for (size_t i = 0; i < EVENT_ABSENCES_MAX; i++)
		if (all[i].n)
			ret[n++] = all[i];
	return n;
}
