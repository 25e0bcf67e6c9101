/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hits of members, from a CSV file
 *
 *	member,hits		e_pid,1042
 *	type,member,hits	event,e_pid,1042
 *
 * A first line without a number is a heading; empty lines and those that begin with # are skipped.
 * Hits of a member that is named several times are added.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "lines.h"

/* The maximum of a profile; only a wrong file has more. */
static const size_t WEIGHTS_MAX = 1 << 20;
/* Names of C++ have some KB. */
static const size_t LINE_MAX_BYTES = 1 << 20;

static bool add(struct layout_weights *w, const char *type, const char *member, uint64_t hits)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		struct layout_hits *grown = realloc(w->items, cap * sizeof(*grown));

		if (!grown)
			return false;
		w->items = grown;
		w->cap = cap;
	}
	struct layout_hits *h = &w->items[w->n++];
	*h = (struct layout_hits){
		.type = type ? strdup(type) : NULL, .member = strdup(member), .hits = hits};
	return h->member && (h->type || !type);
}

static char *trim(char *s)
{
	s += strspn(s, " \t\"");
	for (size_t n = strlen(s); n && strchr(" \t\r\n\"", s[n - 1]); n--)
		s[n - 1] = 0;
	return s;
}

/* Up to three fields; their number. */
static size_t split(char *line, char **fields)
{
	size_t n = 0;

	for (char *s = line; s && n < 4; n++) {
		char *comma = strchr(s, ',');

		if (comma)
			*comma = 0;
		fields[n] = trim(s);
		s = comma ? comma + 1 : NULL;
	}
	return n;
}

static int read_line(const char *path, unsigned long number, char *line, struct layout_weights *w)
{
	char *fields[4], *end = NULL;
	size_t n;

	if (*trim(line) == '#' || !*trim(line))
		return STATUS_YES;
	n = split(line, fields);
	errno = 0;
	uint64_t hits = n >= 2 && n <= 3 ? strtoull(fields[n - 1], &end, 10) : 0;
	if (!end || end == fields[n - 1] || *end || errno || *fields[n - 1] == '-') {
		if (number == 1 && n >= 2 && n <= 3)
			return STATUS_YES;
		return fail(STATUS_USAGE, "%s:%lu: expected member,hits or type,member,hits", path,
			    number);
	}
	if (w->n >= WEIGHTS_MAX)
		return fail(STATUS_USAGE, "%s: more than %zu lines", path, WEIGHTS_MAX);
	if (!add(w, n == 3 ? fields[0] : NULL, fields[n - 2], hits))
		return fail(STATUS_NOT_HERE, "no memory");
	return STATUS_YES;
}

int layout_weights_read(const char *path, struct layout_weights *ret)
{
	FILE *in = fopen(path, "re");
	unsigned long number = 0;
	int status = STATUS_YES;
	size_t cap = 0;
	ssize_t n = 0;
	char *line = NULL;

	if (!in)
		return fail(STATUS_USAGE, "cannot open %s: %m", path);
	while (!status && (n = line_read(in, &line, &cap, LINE_MAX_BYTES)) > 0)
		status = read_line(path, ++number, line, ret);
	if (n == -EFBIG)
		status = fail(STATUS_USAGE, "%s:%lu: a line of more than %zu bytes", path,
			      number + 1, LINE_MAX_BYTES);
	if (n == -ENOMEM)
		status = fail(STATUS_NOT_HERE, "no memory");
	if (!status && ferror(in))
		status = fail(STATUS_USAGE, "cannot read %s", path);
	free(line);
	fclose(in);
	return status;
}

uint64_t layout_weight(const struct layout_weights *w, const char *type, const char *member)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->items[i].member, member) &&
		    (!w->items[i].type || (type && !strcmp(w->items[i].type, type))))
			sum += w->items[i].hits;
	return sum;
}

void layout_weights_free(struct layout_weights *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->items[i].type);
		free(w->items[i].member);
	}
	free(w->items);
}
