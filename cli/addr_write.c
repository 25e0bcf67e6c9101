/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames as text and as JSON
 *
 * A hundred thousand addresses are common, so an answer is put together here, without printf() and with one call of stdio.
 */
#include <string.h>

#include "addr.h"
#include "demangle.h"
#include "json.h"

/* ---- text ---- */

/* What is not written yet. */
struct text {
	FILE *out;
	size_t n;
	char buf[8192];
};

static void flush_text(struct text *t)
{
	fwrite_unlocked(t->buf, 1, t->n, t->out);
	t->n = 0;
}

/* What does not fit any more: names of C++ can be of any length. */
static __attribute__((noinline)) void put_past(struct text *t, const char *chars, size_t n)
{
	flush_text(t);
	fwrite_unlocked(chars, 1, n, t->out);
}

/* Inlined, because most of what is put is a few characters whose number is known. */
static inline __attribute__((always_inline)) void put_chars(struct text *t, const char *chars, size_t n)
{
	if (n > sizeof(t->buf) - t->n) {
		put_past(t, chars, n);
		return;
	}
	memcpy(t->buf + t->n, chars, n);
	t->n += n;
}

static inline __attribute__((always_inline)) void put(struct text *t, const char *text)
{
	put_chars(t, text, strlen(text));
}

static void put_decimal(struct text *t, uint64_t value)
{
	char digits[24], *end = digits + sizeof(digits), *at = end;

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	put_chars(t, at, (size_t)(end - at));
}

static void put_address(struct text *t, uint64_t value)
{
	char digits[24], *end = digits + sizeof(digits), *at = end;

	do
		*--at = "0123456789abcdef"[value % 16];
	while (value /= 16);
	*--at = 'x';
	*--at = '0';
	put_chars(t, at, (size_t)(end - at));
}

static void put_frame(struct text *t, const struct cairn_frame *frame)
{
	put(t, frame->function ? demangled(frame->function) : "?");
	if (!frame->file)
		return;
	put(t, " at ");
	put(t, frame->file);
	if (!frame->line)
		return;
	put(t, ":");
	put_decimal(t, frame->line);
	if (!frame->column)
		return;
	put(t, ":");
	put_decimal(t, frame->column);
}

/* Whose code it is, and which generation. */
static void put_code(struct text *t, const struct cairn_code_range *code)
{
	put(t, "  [");
	put(t, cairn_code_source_text(code->source));
	if (code->owner) {
		put(t, ": ");
		put(t, code->owner);
	}
	if (code->generation) {
		put(t, ", generation ");
		put_decimal(t, code->generation);
	}
	put(t, "]");
}

void addr_text(FILE *out, const struct addr_answer *answer)
{
	struct text t;

	t.out = out;
	t.n = 0;
	put_address(&t, answer->addr);
	put(&t, "  ");
	if (!answer->n)
		put(&t, "?");
	for (size_t i = 0; i < answer->n; i++) {
		if (i)
			put(&t, "\n    inlined into ");
		put_frame(&t, &answer->frames[i]);
	}
	if (answer->path) {
		put(&t, "  (");
		put(&t, answer->path);
		put(&t, ")");
	} else if (answer->code) {
		put_code(&t, answer->code);
	}
	put(&t, "\n");
	flush_text(&t);
}

/* ---- JSON ---- */

static void json_position(struct json *j, const struct cairn_frame *frame)
{
	json_text(j, "file", frame->file);
	json_uint(j, "line", frame->line);
	json_uint(j, "column", frame->column);
}

void addr_json(FILE *out, const struct addr_answer *answer)
{
	struct json j = {.out = out};

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
	json_close(&j);
}
