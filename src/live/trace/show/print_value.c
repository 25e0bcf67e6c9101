/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of events, and their sites, as text or JSON. Types print their own values; the text
 * around them is printed here.
 */
#include "trace/show/print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "base/utf8.h"
#include "base/wide.h"
#include "trace/trace.h"

static bool is_own_symbol(const struct cairn_function *function, const char *symbol)
{
	return !strcmp(symbol, function->name) ||
	       (function->linkage_name && !strcmp(symbol, function->linkage_name));
}

static size_t name_as_it_is(const char *linker_name, const char *name, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s", name ? name : linker_name);
	return n < 0 ? 0 : (size_t)n;
}

size_t cairn_site_text(const struct cairn_function *function, const struct cairn_site *site,
		       cairn_show_name show_name, char *buf, size_t size)
{
	uint64_t off =
		(uint64_t)(site->container_off < 0 ? -site->container_off : site->container_off);
	bool is_inlined = site->kind == CAIRN_SITE_INLINED ||
			  (site->kind == CAIRN_SITE_PLACE && site->n_chain);
	char name[WHERE_MAX];
	int n;

	if (!show_name)
		show_name = name_as_it_is;
	if (is_inlined && site->container) {
		show_name(site->symbol, site->container, name, sizeof(name));
		n = snprintf(buf, size, "inlined in %s%s0x%" PRIx64, name,
			     site->container_off < 0 ? "-" : "+", off);
	} else if (is_inlined) {
		n = snprintf(buf, size, "inlined at 0x%" PRIx64, site->at.v);
	} else if (site->kind == CAIRN_SITE_PLACE && site->symbol) {
		show_name(site->symbol, NULL, name, sizeof(name));
		n = snprintf(buf, size, "in %s+0x%" PRIx64, name, site->symbol_off);
	} else if (site->kind == CAIRN_SITE_PLACE) {
		n = snprintf(buf, size, "at 0x%" PRIx64, site->at.v);
	} else if (site->symbol && site->symbol_off == 0 &&
		   !is_own_symbol(function, site->symbol)) {
		show_name(site->symbol, NULL, name, sizeof(name));
		n = snprintf(buf, size, "entry of %s", name);
	} else {
		n = snprintf(buf, size, "entry");
	}
	return n < 0 ? 0 : (size_t)n;
}

/* The bytes that are shown as they are, and of which each is a character. */
static size_t n_plain(const uint8_t *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
		i++;
	return i;
}

/* One character that is not plain; returns its bytes. */
static size_t put_special(const uint8_t *s, size_t n, bool json, FILE *out)
{
	static const char letters[] = "\"\\\n\t\r", names[] = "\"\\ntr";
	uint32_t c = 0;
	size_t len = utf8_length(s, n, &c);
	const char *letter = len == 1 && s[0] ? strchr(letters, s[0]) : NULL;

	if (letter)
		fprintf(out, "\\%c", names[letter - letters]);
	else if (len && utf8_is_safe(c))
		fwrite(s, 1, len, out);
	else if (json)
		fprintf(out, "\\u%04x", len ? c : 0xfffd);
	else
		fprintf(out, "\\%03o", s[0]), len = 1;
	return len ? len : 1;
}

void print_escaped(const uint8_t *s, size_t n, bool json, FILE *out)
{
	for (size_t i = 0; i < n;) {
		size_t plain = n_plain(s + i, n - i);
		fwrite(s + i, 1, plain, out);
		i += plain;
		if (i < n)
			i += put_special(s + i, n - i, json, out);
	}
}

void print_unquoted(const uint8_t *s, size_t n, FILE *out)
{
	const uint8_t *end = s + n, *quote;

	for (; s < end && (quote = memchr(s, '"', (size_t)(end - s))); s = quote + 1) {
		print_escaped(s, (size_t)(quote - s), false, out);
		fputc('"', out);
	}
	print_escaped(s, (size_t)(end - s), false, out);
}

/* Returns the bytes of the character. */
static size_t put_wide_char(const uint8_t *s, size_t n, unsigned int unit, bool json,
			    bool is_quoted, FILE *out)
{
	struct wide_char c;
	size_t taken = wide_take(s, n, unit, false, &c);
	char escape[16];

	if (!c.n_utf8)
		fputs(wide_escape(c.number, json, escape), out);
	else if (is_quoted)
		print_escaped(c.utf8, c.n_utf8, json, out);
	else
		print_unquoted(c.utf8, c.n_utf8, out);
	return taken;
}

void print_escaped_wide(const uint8_t *s, size_t n, unsigned int unit, bool json, FILE *out)
{
	for (size_t i = 0; n - i >= unit;)
		i += put_wide_char(s + i, n - i, unit, json, true, out);
}

void print_unquoted_wide(const uint8_t *s, size_t n, unsigned int unit, FILE *out)
{
	for (size_t i = 0; n - i >= unit;)
		i += put_wide_char(s + i, n - i, unit, false, false, out);
}

static void put_string(const uint8_t *s, size_t n, bool json, FILE *out)
{
	fputc('"', out);
	print_escaped(s, n, json, out);
	fputc('"', out);
}

void print_json_text(const char *s, FILE *out)
{
	put_string((const uint8_t *)s, strlen(s), true, out);
}

static void put_absent(const struct cairn_event_value *v, bool json, FILE *out)
{
	bool unreadable = v->state == CAIRN_VALUE_UNREADABLE;

	if (json) {
		fprintf(out, "{\"%s\":", unreadable ? "unreadable" : "unavailable");
		print_json_text(v->reason, out);
		fputc('}', out);
		return;
	}
	if (unreadable && !strcmp(v->reason, "NULL"))
		fputs("NULL", out);
	else
		fprintf(out, "<%s%s%s>", unreadable ? "unreadable" : "unavailable",
			unreadable && v->reason[0] == 'a' ? " " : ": ", v->reason);
}

/* A bit-field at bit 0 is a member at offset 0. */
static int print_bits(const struct cairn_event *event, const struct cairn_event_value *v,
		      uint8_t bits, const struct cairn_value_opts *opts, FILE *out)
{
	struct cairn_member m = {.type = v->what->type, .bit_size = bits};

	return cairn_value_print_member(event->probe->types, &m, v->bytes, v->n_bytes, opts, out);
}

/* Only the fetched bytes of the process's memory are known. */
static size_t read_target(void *ctx, uint64_t at, void *to, size_t n)
{
	const struct cairn_event_value *v = ctx;

	for (uint32_t i = 0; i < v->n_targets; i++) {
		const struct cairn_event_target *t = &v->targets[i];
		uint64_t off = at - t->at;
		if (at < t->at || off >= t->n_bytes)
			continue;
		if (!t->bytes)
			return CAIRN_VALUE_UNREADABLE_MEMORY;
		n = n < t->n_bytes - off ? n : (size_t)(t->n_bytes - off);
		memcpy(to, t->bytes + off, n);
		return n;
	}
	return 0;
}

/* Most values are, and need no plan of their type. */
static bool is_plain_integer(const struct cairn_event *event, const struct cairn_event_value *v)
{
	const struct cairn_types *types = event->probe->types;
	const struct cairn_type *type;

	if (!v->what->type || v->what->hex)
		return false;
	type = cairn_types_get(types, cairn_types_resolve(types, v->what->type));
	return type->kind == CAIRN_T_INT && type->encoding <= CAIRN_ENC_SIGNED &&
	       (type->size == 4 || type->size == 8) && v->n_bytes == type->size;
}

static void put_integer(const struct cairn_event_value *v, bool is_signed, FILE *out)
{
	char text[24], *end = text + sizeof(text), *s;
	uint64_t n = 0;
	int32_t narrow;

	memcpy(&n, v->bytes, v->n_bytes);
	if (is_signed && v->n_bytes == sizeof(narrow)) {
		memcpy(&narrow, v->bytes, sizeof(narrow));
		n = (uint64_t)(int64_t)narrow;
	}
	bool is_negative = is_signed && (int64_t)n < 0;
	s = print_digits(end, is_negative ? -n : n);
	if (is_negative)
		*--s = '-';
	fwrite(s, 1, (size_t)(end - s), out);
}

static int print_value(const struct cairn_event *event, const struct cairn_event_value *v,
		       bool json, FILE *out)
{
	struct cairn_value_opts opts = {.size = sizeof(opts),
					.style = json ? CAIRN_VALUE_JSON : CAIRN_VALUE_TEXT,
					.hex = v->what->hex,
					.raw = v->what->hex,
					.read = read_target,
					.read_ctx = (void *)(uintptr_t)v};
	uint64_t number = 0;

	if (v->what->bit_size)
		return print_bits(event, v, v->what->bit_size, &opts, out);
	if (is_plain_integer(event, v)) {
		put_integer(v, type_is_signed(event->probe->types, v->what->type), out);
		return 0;
	}
	if (v->what->type || v->n_bytes > 8)
		return cairn_value_print(event->probe->types, v->what->type, v->bytes, v->n_bytes,
					 &opts, out);
	memcpy(&number, v->bytes, v->n_bytes);
	if (v->what->is_number && !v->what->hex) {
		fprintf(out, v->what->is_unsigned ? "%" PRIu64 : "%" PRId64, number);
		return 0;
	}
	if (v->what->unit && !v->what->hex) {
		fprintf(out, json ? "%" PRIu64 : "%" PRIu64 " %s", number, v->what->unit);
		return 0;
	}
	/* An address. */
	fprintf(out, json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64, number);
	return 0;
}

/* In JSON, where text is UTF-8, two digits for each. */
static void put_bytes(const struct cairn_event_value *v, bool json, FILE *out)
{
	if (!json) {
		put_string(v->bytes, v->n_bytes, false, out);
		fputs(v->truncated ? "..." : "", out);
		return;
	}
	fputc('"', out);
	for (uint32_t i = 0; i < v->n_bytes; i++)
		fprintf(out, "%02x", v->bytes[i]);
	fputc('"', out);
}

static void put_wide(const struct cairn_event_value *v, bool json, FILE *out)
{
	fputc('"', out);
	print_escaped_wide(v->bytes, v->n_bytes, v->what->unit_bytes, json, out);
	fputc('"', out);
}

int cairn_event_value_print(const struct cairn_event *event, uint32_t i,
			    enum cairn_value_style style, FILE *out)
{
	bool json = style == CAIRN_VALUE_JSON;

	if (i >= event->n_values)
		return -EINVAL;
	const struct cairn_event_value *v = &event->values[i];
	if (v->state != CAIRN_VALUE_OK) {
		put_absent(v, json, out);
		return ferror(out) ? -EIO : 0;
	}
	if (v->what->is_bytes) {
		put_bytes(v, json, out);
		return ferror(out) ? -EIO : 0;
	}
	if (!v->what->is_string)
		return print_value(event, v, json, out);
	if (v->what->unit_bytes)
		put_wide(v, json, out);
	else
		put_string(v->bytes, v->n_bytes, json, out);
	if (v->truncated && !json)
		fputs("...", out);
	return ferror(out) ? -EIO : 0;
}

const char *print_where(const struct cairn_event *e, char *buf, size_t size)
{
	char text[WHERE_MAX];

	if (!e->at_return) {
		cairn_site_text(e->probe->function, e->site->site, e->show_name, buf, size);
		return buf;
	}
	cairn_site_text(e->probe->function, e->site->site, e->show_name, text, sizeof(text));
	/* "entry", "entry of write" */
	bool is_body = !strncmp(text, "entry", strlen("entry"));
	snprintf(buf, size, "%s%s", is_body ? "return" : "end of copy ",
		 text + (is_body ? strlen("entry") : 0));
	return buf;
}

void print_styled_name(const struct cairn_event *e, FILE *out)
{
	fputs(e->style->name, out);
	cairn_quote_put(e->probe->function->name, CAIRN_QUOTE_TEXT, out);
	fputs(e->style->off, out);
}

int print_styled_value(const struct cairn_event *e, uint32_t i, FILE *out)
{
	bool is_there = e->values[i].state == CAIRN_VALUE_OK;
	int r;

	fputs(is_there ? "" : e->style->bad, out);
	r = cairn_event_value_print(e, i, CAIRN_VALUE_TEXT, out);
	fputs(is_there ? "" : e->style->off, out);
	return r;
}
