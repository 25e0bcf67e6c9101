/* SPDX-License-Identifier: BSD-2-Clause */
/* What the printers of events share. */
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
/* A string of JSON, with its quotation marks. */
void print_json_text(const char *s, FILE *out);
/* The site of an event, as cairn_site_text(); returns @buf. */
const char *print_where(const struct cairn_event *event, char *buf, size_t size);

#endif
