/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events as lines of text or JSON. Their values are printed by print_value.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "trace/show/format.h"
#include "trace/show/print.h"
#include "trace/read/times.h"

/* " 12/13 ", faster than by printf. */
static void put_ids(const struct cairn_event *e, FILE *out)
{
	char text[32], *end = text + sizeof(text), *s = end;

	*--s = ' ';
	s = print_digits(s, e->tid);
	*--s = '/';
	s = print_digits(s, e->pid);
	*--s = ' ';
	fwrite(s, 1, (size_t)(end - s), out);
}

static int print_text(const struct cairn_event *e, FILE *out)
{
	char where[WHERE_MAX];

	if (e->format) {
		int r = format_print(e, out);
		fputc('\n', out);
		return r;
	}
	print_where(e, where, sizeof(where));
	print_time(e, out);
	put_ids(e, out);
	print_escaped((const uint8_t *)e->comm, strlen(e->comm), false, out);
	fputc(' ', out);
	print_styled_name(e, out);
	fputc(' ', out);
	fputs(e->style->faint, out);
	cairn_quote_put(where, CAIRN_QUOTE_TEXT, out);
	fputs(e->style->off, out);
	fputc(':', out);
	for (uint32_t i = 0; i < e->n_values; i++) {
		fputs(i ? ", " : " ", out);
		cairn_quote_put(e->values[i].what->text, CAIRN_QUOTE_TEXT, out);
		fputc('=', out);
		int r = print_styled_value(e, i, out);
		if (r < 0)
			return r;
	}
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}

static const char *kind_word(const struct cairn_site *site)
{
	if (site->kind == CAIRN_SITE_PLACE)
		return "place";
	return site->kind == CAIRN_SITE_INLINED ? "inlined" : "out-of-line";
}

static void put_site(const struct cairn_function *function, const struct cairn_site *site,
		     FILE *out)
{
	char where[WHERE_MAX];

	fprintf(out, ",\"kind\":\"%s\",\"site\":", kind_word(site));
	cairn_site_text(function, site, NULL, where, sizeof(where));
	print_json_text(where, out);
	fprintf(out, ",\"address\":\"0x%" PRIx64 "\"", site->at.v);
	if (site->n_chain && site->chain[0].call_file) {
		fputs(",\"call_file\":", out);
		print_json_text(site->chain[0].call_file, out);
		fprintf(out, ",\"call_line\":%u", site->chain[0].call_line);
	}
}

static void put_call(const struct cairn_event *e, FILE *out)
{
	const struct cairn_event_call *call = e->call;

	if (call->moment == CAIRN_CALL_ENTRY)
		fputs(",\"call\":\"entry\"", out);
	fprintf(out, ",\"depth\":%u", call->depth);
	if (call->moment == CAIRN_CALL_RETURN)
		fprintf(out, ",\"duration_ns\":%" PRIu64, e->time_ns - call->entered_ns);
}

static int print_json(const struct cairn_event *e, FILE *out)
{
	bool any = false;

	fprintf(out,
		"{\"time_ns\":%" PRIu64 ",\"since_ns\":%" PRIu64 ",\"pid\":%u,\"tid\":%u,\"comm\":",
		e->time_ns, e->since_ns, e->pid, e->tid);
	print_json_text(e->comm, out);
	print_time_members(e, out);
	fputs(",\"function\":", out);
	print_json_text(e->probe->function->name, out);
	put_site(e->probe->function, e->site->site, out);
	fputs(",\"args\":{", out);
	for (uint32_t i = 0; i < e->n_values; i++) {
		if (i)
			fputc(',', out);
		print_json_text(e->values[i].what->text, out);
		fputc(':', out);
		int r = cairn_event_value_print(e, i, CAIRN_VALUE_JSON, out);
		if (r < 0)
			return r;
		any |= e->values[i].truncated;
	}
	fputc('}', out);
	if (e->at_return)
		fputs(",\"call\":\"return\"", out);
	if (e->call)
		put_call(e, out);
	if (any) {
		const char *separator = "";
		fputs(",\"truncated\":[", out);
		for (uint32_t i = 0; i < e->n_values; i++) {
			if (!e->values[i].truncated)
				continue;
			fputs(separator, out);
			print_json_text(e->values[i].what->text, out);
			separator = ",";
		}
		fputc(']', out);
	}
	return ferror(out) ? -EIO : 0;
}

static void no_more(void *ctx, const struct cairn_event *event, FILE *out)
{
}

int cairn_event_print(const struct cairn_event *event, enum cairn_value_style style, FILE *out)
{
	return cairn_event_print_with(event, style, no_more, NULL, out);
}

int cairn_event_print_with(const struct cairn_event *event, enum cairn_value_style style,
			   void (*more)(void *ctx, const struct cairn_event *event, FILE *out),
			   void *ctx, FILE *out)
{
	bool json = style == CAIRN_VALUE_JSON;
	int r = json ? print_json(event, out) : print_text(event, out);

	if (r < 0)
		return r;
	more(ctx, event, out);
	fputs(json ? "}\n" : "", out);
	return ferror(out) ? -EIO : 0;
}
