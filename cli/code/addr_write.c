/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames as text and as JSON. */
#include "addr.h"
#include "demangled.h"
#include "json.h"
#include "text.h"

/* ---- text ---- */

static void put_frame(struct text *t, const struct cairn_frame *frame)
{
	text_put_name(t, frame->function ? demangled(frame->function) : "?");
	if (!frame->file)
		return;
	text_put(t, " at ");
	text_put_name(t, frame->file);
	if (!frame->line)
		return;
	text_put(t, ":");
	text_put_decimal(t, frame->line);
	if (!frame->column)
		return;
	text_put(t, ":");
	text_put_decimal(t, frame->column);
}

/* The owner of the code, and its generation. */
static void put_code(struct text *t, const struct cairn_code_range *code)
{
	text_put(t, "  [");
	text_put(t, cairn_code_source_text(code->source));
	if (code->owner) {
		text_put(t, ": ");
		text_put_name(t, code->owner);
	}
	if (code->generation) {
		text_put(t, ", generation ");
		text_put_decimal(t, code->generation);
	}
	text_put(t, "]");
}

void addr_text(struct text *t, const struct addr_answer *answer)
{
	text_put(t, "0x");
	text_put_hex(t, answer->addr);
	text_put(t, "  ");
	if (!answer->n)
		text_put(t, "?");
	for (size_t i = 0; i < answer->n; i++) {
		if (i)
			text_put(t, "\n    inlined into ");
		put_frame(t, &answer->frames[i]);
	}
	if (answer->path) {
		text_put(t, "  (");
		text_put_name(t, answer->path);
		text_put(t, ")");
	} else if (answer->code) {
		put_code(t, answer->code);
	}
	for (size_t i = 0; i < answer->n_begin; i++) {
		text_put(t, "\n    site of ");
		text_put_name(t, demangled(answer->begin[i]));
	}
	text_put(t, "\n");
}

/* ---- JSON ---- */

static void json_position(struct json *j, const struct cairn_frame *frame)
{
	json_text(j, "file", frame->file);
	json_uint(j, "line", frame->line);
	json_uint(j, "column", frame->column);
}

void addr_json(struct text *t, const struct addr_answer *answer)
{
	struct json j = {.out = t->out};

	json_open(&j, NULL, '{');
	json_hex(&j, "addr", answer->addr);
	if (answer->path) {
		json_text(&j, "path", answer->path);
		json_hex(&j, "vaddr", answer->vaddr);
	}
	if (answer->code) {
		json_open(&j, "code", '{');
		json_text(&j, "source", cairn_code_source_text(answer->code->source));
		json_text(&j, "owner", answer->code->owner);
		json_uint(&j, "generation", answer->code->generation);
		json_bool(&j, "trusted", answer->code->is_trusted);
		json_close(&j);
	}
	json_open(&j, "frames", '[');
	for (size_t i = 0; i < answer->n; i++) {
		json_open(&j, NULL, '{');
		json_text(&j, "function", answer->frames[i].function);
		json_text(&j, "name", answer->frames[i].name);
		json_position(&j, &answer->frames[i]);
		json_close(&j);
	}
	json_close(&j);
	json_open(&j, "sites", '[');
	for (size_t i = 0; i < answer->n_begin; i++)
		json_text(&j, NULL, answer->begin[i]);
	json_close(&j);
	json_close(&j);
}
