/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the printers of events. */
#ifndef TRACE_PRINT_H
#define TRACE_PRINT_H

#include <stdio.h>

#include <cairn/trace.h>

enum {
	/*
	 * For an event's site, which is one line with all its values: a name longer than that is
	 * cut.
	 */
	WHERE_MAX = 1024,
};

/* Text that is safe for a terminal, or for JSON, without quotation marks. */
void print_escaped(const uint8_t *s, size_t n, bool json, FILE *out);
/* Text that has no quotation marks around it, so that those in it mean nothing. */
void print_unquoted(const uint8_t *s, size_t n, FILE *out);
/* The same of wide characters (base/wide.h); what is no character is shown as a number. */
void print_escaped_wide(const uint8_t *s, size_t n, unsigned int unit, bool json, FILE *out);
void print_unquoted_wide(const uint8_t *s, size_t n, unsigned int unit, FILE *out);
/* A string of JSON, with its quotation marks. */
void print_json_text(const char *s, FILE *out);
/* The decimal digits of a number, before @end; returns the first one. */
static inline char *print_digits(char *end, uint64_t n)
{
	do {
		*--end = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	return end;
}
/* The name of the event's function, and a value as text, in the event's style. */
void print_styled_name(const struct cairn_event *event, FILE *out);
int print_styled_value(const struct cairn_event *event, uint32_t i, FILE *out);
/* The site of an event, as cairn_site_text(); returns @buf. */
const char *print_where(const struct cairn_event *event, char *buf, size_t size);

#endif
