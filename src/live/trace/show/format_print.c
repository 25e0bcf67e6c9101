/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing an event by its format. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "trace/show/format.h"
#include "trace/show/print.h"
#include "trace/read/times.h"

enum { NUMBER_MAX = 400 };

/* An integer, as its bits and whether they are negative. */
struct integer {
	uint64_t bits;
	bool is_negative;
};

static unsigned int n_bits_of(const struct cairn_event_value *v)
{
	return v->what->bit_size ? v->what->bit_size : 8 * v->n_bytes;
}

static struct integer integer_of(const struct cairn_event_value *v, bool is_signed)
{
	unsigned int n_bits = n_bits_of(v);
	struct integer ret = {0};

	memcpy(&ret.bits, v->bytes, v->n_bytes < 8 ? v->n_bytes : 8);
	if (n_bits && n_bits < 64 && is_signed && ret.bits >> (n_bits - 1) & 1)
		ret.bits |= ~UINT64_C(0) << n_bits;
	ret.is_negative = is_signed && (int64_t)ret.bits < 0;
	return ret;
}

/* The bits that the type has: a negative int has 32 of them in hexadecimal. */
static uint64_t own_bits(const struct cairn_event_value *v, uint64_t bits)
{
	unsigned int n = v ? n_bits_of(v) : 64;

	return n && n < 64 ? bits & ((UINT64_C(1) << n) - 1) : bits;
}

/* ---- padding ---- */

static size_t n_characters(const char *s, size_t n)
{
	size_t ret = 0;

	for (size_t i = 0; i < n; i++)
		ret += ((uint8_t)s[i] & 0xc0) != 0x80;
	return ret;
}

static void fill(const struct format_spec *spec, size_t n, FILE *out)
{
	while (n--)
		fputs(spec->fill, out);
}

/* @is_number: to the right, if nothing else is said. */
static void put_padded(const struct format_spec *spec, bool is_number, const char *s, size_t n,
		       FILE *out)
{
	size_t shown = n_characters(s, n), room = spec->width > shown ? spec->width - shown : 0;
	char usual = is_number ? '>' : '<', align = spec->align ? spec->align : usual;
	size_t middle = align == '^' ? room / 2 : 0, before = align == '>' ? room : middle;

	fill(spec, before, out);
	fwrite(s, 1, n, out);
	fill(spec, room - before, out);
}

/* ---- numbers ---- */

static char *put_digits(uint64_t n, unsigned int base, const char *digits, char *end)
{
	do {
		*--end = digits[n % base];
		n /= base;
	} while (n);
	return end;
}

static unsigned int base_of(char type)
{
	switch (type) {
	case 'x':
	case 'X':
		return 16;
	case 'o':
		return 8;
	case 'b':
		return 2;
	default:
		return 10;
	}
}

static const char *prefix_of(char type)
{
	switch (type) {
	case 'x':
		return "0x";
	case 'X':
		return "0X";
	case 'o':
		return "0";
	case 'b':
		return "0b";
	default:
		return "";
	}
}

/* The sign and the prefix come before the zeros that fill the width. */
static void put_signed_digits(const struct format_spec *spec, const char *before, const char *s,
			      size_t n, FILE *out)
{
	char text[NUMBER_MAX];
	size_t n_before = strlen(before), total = n_before + n;
	size_t zeros =
		spec->has_zero && !spec->align && spec->width > total ? spec->width - total : 0;

	if (!zeros) {
		memcpy(text, before, n_before);
		memcpy(text + n_before, s, n);
		put_padded(spec, true, text, total, out);
		return;
	}
	fputs(before, out);
	while (zeros--)
		fputc('0', out);
	fwrite(s, 1, n, out);
}

static void put_integer(const struct format_spec *spec, char type,
			const struct cairn_event_value *v, struct integer number, FILE *out)
{
	bool is_decimal = type == 'd' || !type;
	bool is_negative = is_decimal && number.is_negative;
	uint64_t bits = is_decimal ? number.bits : own_bits(v, number.bits);
	char text[72], *end = text + sizeof(text), before[4] = "";
	const char *plus = is_decimal && spec->has_plus ? "+" : "",
		   *sign = is_negative ? "-" : plus;
	char *s = put_digits(is_negative ? -bits : bits, base_of(type),
			     type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef", end);

	snprintf(before, sizeof(before), "%s%s", sign, spec->is_alternate ? prefix_of(type) : "");
	put_signed_digits(spec, before, s, (size_t)(end - s), out);
}

static void put_character(const struct format_spec *spec, struct integer number, FILE *out)
{
	const uint8_t c = (uint8_t)number.bits;
	char text[8] = {(char)c};

	if (c < 0x20 || c > 0x7e)
		snprintf(text, sizeof(text), "\\%03o", c);
	put_padded(spec, false, text, strlen(text), out);
}

static void put_float(const struct format_spec *spec, const struct cairn_event_value *v, FILE *out)
{
	char text[NUMBER_MAX], how[16];
	const char *s = text;
	float narrow;
	double d = 0;

	if (v->n_bytes == sizeof(narrow)) {
		memcpy(&narrow, v->bytes, sizeof(narrow));
		d = narrow;
	} else {
		memcpy(&d, v->bytes, sizeof(d));
	}
	snprintf(how, sizeof(how), "%%%s%s.*%c", spec->has_plus ? "+" : "",
		 spec->is_alternate ? "#" : "", spec->type ? spec->type : 'g');
	/* Longer fractions than that have no digits that mean something. */
	int precision = spec->precision < 60 ? spec->precision : 60;
	int n = snprintf(text, sizeof(text), how, spec->has_precision ? precision : 6, d);
	char sign[2] = {*s == '-' || *s == '+' ? *s++ : 0};
	put_signed_digits(spec, sign, s, (size_t)(n - (s - text)), out);
}

/* ---- text ---- */

static int begin_scratch(struct trace_format *f)
{
	if (!f->scratch)
		f->scratch = open_memstream(&f->scratch_bytes, &f->n_scratch);
	if (!f->scratch)
		return -ENOMEM;
	rewind(f->scratch);
	return 0;
}

/* At most as many characters as the precision says. */
static size_t cut(const struct format_spec *spec, const char *s, size_t n)
{
	size_t i = 0, shown = 0;

	for (; spec->has_precision && i < n; i++) {
		shown += ((uint8_t)s[i] & 0xc0) != 0x80;
		if (shown > spec->precision)
			return i;
	}
	return n;
}

static int end_scratch(struct trace_format *f, const struct format_spec *spec, bool is_number,
		       FILE *out)
{
	if (fflush(f->scratch))
		return -ENOMEM;
	put_padded(spec, is_number, f->scratch_bytes, cut(spec, f->scratch_bytes, f->n_scratch),
		   out);
	return 0;
}

/* Text without quotation marks, safe for a terminal. */
static void put_plain(const struct cairn_event_value *v, FILE *out)
{
	size_t n = v->n_bytes;

	/* An array ends at its NUL, too. */
	if (!v->what->is_string && !v->what->is_bytes)
		n = strnlen((const char *)v->bytes, n);
	if (v->what->unit_bytes)
		print_unquoted_wide(v->bytes, n, v->what->unit_bytes, out);
	else
		print_unquoted(v->bytes, n, out);
	if (v->truncated)
		fputs("...", out);
}

/* Why there is no value: "<optimised out>", "NULL", "<unreadable at 0x10>". */
static void put_reason(const struct cairn_event_value *v, FILE *out)
{
	if (v->state == CAIRN_VALUE_UNAVAILABLE)
		fprintf(out, "<%s>", v->reason);
	else if (!strcmp(v->reason, "NULL"))
		fputs("NULL", out);
	else
		fprintf(out, "<unreadable%s>", v->reason[0] == 'a' ? " " : "");
}

static int put_as_text(const struct cairn_event *e, const struct format_spec *spec,
		       const struct format_use *use, FILE *out)
{
	const struct cairn_event_value *v = &e->values[use->value];

	if (v->state != CAIRN_VALUE_OK) {
		put_reason(v, out);
		return 0;
	}
	if (use->class == FORMAT_TEXT && spec->type == 's') {
		put_plain(v, out);
		return 0;
	}
	return cairn_event_value_print(e, use->value, CAIRN_VALUE_TEXT, out);
}

static bool is_padded(const struct format_spec *spec)
{
	return spec->width || spec->has_precision;
}

/* ---- fields ---- */

static void put_known_text(const struct cairn_event *e, enum format_known known, FILE *out)
{
	char where[WHERE_MAX];

	switch (known) {
	case FORMAT_COMM:
		print_unquoted((const uint8_t *)e->comm, strlen(e->comm), out);
		break;
	case FORMAT_FUNCTION:
		cairn_quote_put(e->probe->function->name, CAIRN_QUOTE_TEXT, out);
		break;
	case FORMAT_SITE:
		cairn_quote_put(print_where(e, where, sizeof(where)), CAIRN_QUOTE_TEXT, out);
		break;
	case FORMAT_TIME:
		print_time(e, out);
		break;
	case FORMAT_DELTA:
		if (e->has_delta)
			fprintf(out, "%" PRIu64 " ns", e->delta_ns);
		else
			fputc('-', out);
		break;
	default:
		break;
	}
}

static uint64_t known_number(const struct cairn_event *e, enum format_known known)
{
	switch (known) {
	case FORMAT_PID:
		return e->pid;
	case FORMAT_TID:
		return e->tid;
	case FORMAT_DELTA:
		return e->delta_ns;
	default:
		return event_time_ns(e);
	}
}

static int put_known(const struct cairn_event *e, const struct format_field *field,
		     struct trace_format *f, FILE *out)
{
	const struct format_spec *spec = &field->spec;
	bool is_number = field->known == FORMAT_PID || field->known == FORMAT_TID;
	bool is_time = field->known == FORMAT_TIME || field->known == FORMAT_DELTA;
	/* A first event has no delta. */
	bool has_number = is_number || field->known == FORMAT_TIME || e->has_delta;

	if (is_number || (is_time && has_number && spec->type && spec->type != 's')) {
		put_integer(spec, spec->type, NULL,
			    (struct integer){.bits = known_number(e, field->known)}, out);
		return 0;
	}
	if (!is_padded(spec)) {
		put_known_text(e, field->known, out);
		return 0;
	}
	if (begin_scratch(f) < 0)
		return -ENOMEM;
	put_known_text(e, field->known, f->scratch);
	return end_scratch(f, spec, is_time, out);
}

/* True if it was a number that is printed as one. */
static bool put_number(const struct cairn_event_value *v, const struct format_spec *spec,
		       const struct format_use *use, FILE *out)
{
	if (v->state != CAIRN_VALUE_OK || spec->type == 's' || v->n_bytes > 8)
		return false;
	if (use->class == FORMAT_FLOAT && (spec->type || spec->has_precision)) {
		put_float(spec, v, out);
		return true;
	}
	if (use->class != FORMAT_INT && (use->class > FORMAT_POINTER || !spec->type))
		return false;
	if (use->class == FORMAT_INT && !spec->type && v->what->hex)
		return false;
	struct integer number = integer_of(v, use->is_signed && spec->type != 'u');
	if (spec->type == 'c')
		put_character(spec, number, out);
	else
		put_integer(spec, spec->type, v, number, out);
	return true;
}

static int put_field(const struct cairn_event *e, uint32_t i, FILE *out)
{
	/* One thread prints the events of a trace. */
	struct trace_format *f = (struct trace_format *)(uintptr_t)e->format;
	const struct format_field *field = &f->fields[i];
	const struct format_use *use = &((const struct trace_probe *)e->probe)->format[i];

	if (field->known)
		return put_known(e, field, f, out);
	if (put_number(&e->values[use->value], &field->spec, use, out))
		return 0;
	if (!is_padded(&field->spec))
		return put_as_text(e, &field->spec, use, out);
	if (begin_scratch(f) < 0)
		return -ENOMEM;
	int r = put_as_text(e, &field->spec, use, f->scratch);
	return r < 0 ? r : end_scratch(f, &field->spec, use->class < FORMAT_TEXT, out);
}

int format_print(const struct cairn_event *e, FILE *out)
{
	const struct trace_format *f = e->format;
	int r = 0;

	for (uint32_t i = 0; i < f->n_fields && r == 0; i++) {
		fwrite(f->literal + f->fields[i].from, 1, f->fields[i].n_text, out);
		r = put_field(e, i, out);
	}
	fwrite(f->literal + f->end_from, 1, f->n_end, out);
	if (r == 0 && ferror(out))
		r = -EIO;
	return r;
}
