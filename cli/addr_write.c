/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames as text and as JSON. A hundred thousand addresses are common, so numbers are not printed by printf(). */
#include <string.h>

#include "addr.h"
#include "json.h"

static void put(FILE *out, const char *text)
{
	fputs_unlocked(text, out);
}

static void put_decimal(FILE *out, uint32_t value)
{
	char digits[16], *at = digits + sizeof(digits) - 1;

	*at = 0;
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	put(out, at);
}

static void put_address(FILE *out, uint64_t value)
{
	char digits[24], *at = digits + sizeof(digits) - 1;

	*at = 0;
	do
		*--at = "0123456789abcdef"[value % 16];
	while (value /= 16);
	put(out, "0x");
	put(out, at);
}

static void put_frame(FILE *out, const struct cairn_frame *frame)
{
	put(out, frame->function ? frame->function : "?");
	if (!frame->file)
		return;
	put(out, " at ");
	put(out, frame->file);
	if (!frame->line)
		return;
	put(out, ":");
	put_decimal(out, frame->line);
	if (!frame->column)
		return;
	put(out, ":");
	put_decimal(out, frame->column);
}

void addr_text(FILE *out, const struct addr_answer *answer)
{
	put_address(out, answer->addr);
	put(out, "  ");
	if (!answer->n)
		put(out, "?");
	for (size_t i = 0; i < answer->n; i++) {
		if (i)
			put(out, "\n    inlined into ");
		put_frame(out, &answer->frames[i]);
	}
	if (answer->path) {
		put(out, "  (");
		put(out, answer->path);
		put(out, ")");
	}
	put(out, "\n");
}

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
