/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats: the text that an event is printed as
 *
 *	{$time} {$comm:>15} {req->path:s} {len:08x} {{literal}}
 *
 *	format := { text | "{{" | "}}" | "{" expr { ":" ( "str" | "hex" ) } [ ":" spec ] "}" }
 *	spec   := [ [ fill ] align ] [ "+" ] [ "#" ] [ "0" ] [ width ] [ "." precision ] [ type ]
 *	align  := "<" | ">" | "^", and "-" for "<" as in printf
 *	type   := d u x X o b c s f e g
 *
 * A format is parsed twice, as the texts of aggregates are: once when it is given, and its
 * expressions again for each probe, where they become values that are fetched. Some names are known
 * without fetching anything (enum format_known); they stand alone in a field.
 */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include "trace/trace.h"

enum { FORMAT_FIELDS_MAX = 64 };

enum format_known {
	FORMAT_VALUE, /* none of them: an expression */
	FORMAT_TIME,
	FORMAT_DELTA,
	FORMAT_PID,
	FORMAT_TID,
	FORMAT_COMM,
	FORMAT_FUNCTION,
	FORMAT_SITE,
};

struct format_spec {
	uint32_t at;  /* of the spec in the text; of the field if it has none */
	char fill[5]; /* one character */
	char align;   /* '<', '>', '^'; 0: by the kind of value */
	bool has_plus, is_alternate, has_zero;
	bool has_precision;
	uint16_t width, precision;
	char type; /* 0: none */
};

struct format_field {
	uint32_t from, n_text; /* the text before it: literal[from, from + n_text) */
	uint32_t at;           /* of its expression in the format */
	enum format_known known;
	struct format_spec spec;
};

struct trace_format {
	const char *text;
	char *literal; /* all literal text, without what stands for a brace or a newline */
	uint32_t n_fields;
	struct format_field fields[FORMAT_FIELDS_MAX];
	uint32_t end_from, n_end; /* the text after the last field */
	bool needs_delta;
	/* Room for a field that is shorter than its width; NULL until one is. */
	FILE *scratch;
	char *scratch_bytes;
	size_t n_scratch;
};

/* The kind of a field's value, so how it is printed. */
enum format_class {
	FORMAT_INT,
	FORMAT_NAMED, /* an integer that has a text: enumerators, bool, characters, "5 ns" */
	FORMAT_POINTER,
	FORMAT_FLOAT,
	FORMAT_TEXT,
	FORMAT_OTHER,
};

/* A field for one probe. */
struct format_use {
	uint8_t value; /* its number among the probe's */
	uint8_t class; /* enum format_class */
	bool is_signed;
};

/*
 * format_parse - text to fields
 *
 * Returns 0; -EINVAL, -ERANGE with a caret under the mistake; -ENOMEM.
 */
int format_parse(struct arena *arena, const char *text, struct trace_format **ret,
		 struct cairn_err *err);
void format_free(struct trace_format *f); /* takes NULL; the rest is the arena's */

/*
 * format_add_values - the expressions of a format become values of a probe
 *
 * A probe without a list has only those. A value that is listed already is not fetched twice.
 * Returns 0, -ERANGE: too many values, or as format_parse().
 */
int format_add_values(struct cairn_trace *t, struct probe_text *text, struct cairn_err *err);

/* Compares each field with its value, whose type is known now. Returns 0, -EINVAL or -ENOMEM. */
int format_plan(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/* Prints an event, without a newline. Returns 0 or a negative errno from @out. */
int format_print(const struct cairn_event *event, FILE *out);

#endif
