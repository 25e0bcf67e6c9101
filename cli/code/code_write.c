/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of code as text and as JSON
 *
 *	from           to             source     unwind        generation  owner
 *	55d0c0a01000   55d0c0a05000   file       file                   -  /usr/bin/luajit
 *	7f10a2c00000   7f10a2c10000   jit        rows                  12  luajit traces
 *	                              not trusted: /usr/lib/libc.so.6 is mapped there
 */
#include <inttypes.h>
#include <string.h>

#include "code.h"
#include "demangled.h"
#include "json.h"
#include "say.h"

void code_text_head(FILE *out)
{
	fprintf(out, "%-16s %-16s %-10s %-13s %10s  %s\n", "from", "to", "source", "unwind",
		"generation", "owner");
}

static const char *mark_of(enum code_event event)
{
	static const char *const marks[] = {[CODE_THERE] = "",
					    [CODE_ADDED] = "+ ",
					    [CODE_REMOVED] = "- ",
					    [CODE_CHANGED] = "~ "};

	return marks[event];
}

static void put_why(FILE *out, const struct cairn_code_range *r)
{
	if (!r->why)
		return;
	fprintf(out, "%34s%s", "", r->is_trusted ? "" : "not trusted: ");
	say_name(out, r->why);
	fputc('\n', out);
}

void code_text(FILE *out, const struct cairn_code_range *r, enum code_event event)
{
	fprintf(out, "%s%016" PRIx64 " %016" PRIx64 " %-10s %-13s ", mark_of(event), r->lo.v,
		r->hi.v, cairn_code_source_text(r->source), cairn_code_unwind_text(r->unwind));
	if (r->generation)
		fprintf(out, "%10" PRIu64 "  ", r->generation);
	else
		fprintf(out, "%10s  ", "-");
	say_name(out, r->owner ? r->owner : "-");
	if (r->n_names)
		fprintf(out, ", %zu name%s", r->n_names, r->n_names == 1 ? "" : "s");
	if (r->is_removed)
		fputs(" (removed)", out);
	fputc('\n', out);
	put_why(out, r);
}

static void json_range(struct json *j, const struct cairn_code_range *r)
{
	json_hex(j, "lo", r->lo.v);
	json_hex(j, "hi", r->hi.v);
	json_text(j, "source", cairn_code_source_text(r->source));
	json_text(j, "unwind", cairn_code_unwind_text(r->unwind));
	json_text(j, "owner", r->owner);
	json_uint(j, "generation", r->generation);
	json_uint(j, "since_ns", r->since_ns);
	json_uint(j, "until_ns", r->until_ns);
	json_bool(j, "removed", r->is_removed);
	json_bool(j, "trusted", r->is_trusted);
	json_text(j, "why", r->why);
	json_uint(j, "rows", r->n_rows);
	json_uint(j, "names", r->n_names);
}

void code_json(FILE *out, const struct cairn_code_range *r, enum code_event event)
{
	static const char *const names[] = {[CODE_THERE] = "there",
					    [CODE_ADDED] = "added",
					    [CODE_REMOVED] = "removed",
					    [CODE_CHANGED] = "changed"};
	struct json j = {.out = out};

	json_open(&j, NULL, '{');
	json_text(&j, "event", names[event]);
	json_range(&j, r);
	json_close(&j);
}

void code_notes(const struct cairn_code *code, bool json)
{
	for (size_t i = 0; cairn_code_note(code, i); i++) {
		struct json j = {.out = stdout};

		if (!json) {
			fputs("cairn: ", stderr);
			say_name(stderr, cairn_code_note(code, i));
			fputc('\n', stderr);
			continue;
		}
		json_open(&j, NULL, '{');
		json_text(&j, "event", "note");
		json_text(&j, "note", cairn_code_note(code, i));
		json_close(&j);
	}
}

/* ---- one address ---- */

static void put_frame(FILE *out, const struct cairn_frame *f, bool is_outermost, uint64_t off)
{
	const char *name = demangled_or(f->function, f->name);

	fputs("    ", out);
	say_name(out, name ? name : "?");
	if (is_outermost)
		fprintf(out, "+0x%" PRIx64, off);
	if (f->file) {
		fputs(" at ", out);
		say_name(out, f->file);
		if (f->line)
			fprintf(out, ":%" PRIu32, f->line);
	}
	fputs(is_outermost ? "\n" : " (inlined)\n", out);
}

void code_at_text(FILE *out, struct cairn_addr at, const struct cairn_code_range *r,
		  const struct cairn_frame *frames, int n, uint64_t off)
{
	if (!r) {
		fprintf(out, "0x%" PRIx64 ": no code is there\n", at.v);
		return;
	}
	code_text(out, r, CODE_THERE);
	for (int i = 0; i < n; i++)
		put_frame(out, &frames[i], i + 1 == n, off);
}

static void json_frames(struct json *j, const struct cairn_frame *frames, int n)
{
	json_open(j, "functions", '[');
	for (int i = 0; i < n; i++) {
		json_open(j, NULL, '{');
		json_text(j, "name", frames[i].name);
		json_text(j, "file", frames[i].file);
		json_uint(j, "line", frames[i].line);
		json_close(j);
	}
	json_close(j);
}

void code_at_json(FILE *out, struct cairn_addr at, const struct cairn_code_range *r,
		  const struct cairn_frame *frames, int n, uint64_t off)
{
	struct json j = {.out = out};

	json_open(&j, NULL, '{');
	json_hex(&j, "at", at.v);
	json_bool(&j, "is_code", r);
	if (r)
		json_range(&j, r);
	json_frames(&j, frames, n);
	if (n)
		json_uint(&j, "function_off", off);
	json_close(&j);
}
