/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <cairn/text.h>

#include "json.h"

static void quote(FILE *out, const char *text)
{
	fputc('"', out);
	cairn_quote_put(text, CAIRN_QUOTE_JSON, out);
	fputc('"', out);
}

static void key(struct json *j, const char *name)
{
	uint64_t level = UINT64_C(1) << j->depth;

	if (j->has_items & level)
		fputc(',', j->out);
	j->has_items |= level;
	assert(!j->depth || !name == !!(j->is_array & level));
	if (!name)
		return;
	quote(j->out, name);
	fputc(':', j->out);
}

void json_open(struct json *j, const char *name, char bracket)
{
	uint64_t inner;

	key(j, name);
	fputc(bracket, j->out);
	j->depth++;
	assert(j->depth < JSON_DEPTH_MAX);
	inner = UINT64_C(1) << j->depth;
	j->has_items &= ~inner;
	j->is_array = bracket == '[' ? j->is_array | inner : j->is_array & ~inner;
}

void json_close(struct json *j)
{
	assert(j->depth);
	fputc(j->is_array & (UINT64_C(1) << j->depth) ? ']' : '}', j->out);
	j->depth--;
	if (j->depth)
		return;
	fputc('\n', j->out);
	j->has_items = 0;
}

void json_text(struct json *j, const char *name, const char *text)
{
	if (!text) {
		json_null(j, name);
		return;
	}
	key(j, name);
	quote(j->out, text);
}

void json_uint(struct json *j, const char *name, uint64_t value)
{
	key(j, name);
	fprintf(j->out, "%" PRIu64, value);
}

void json_int(struct json *j, const char *name, int64_t value)
{
	key(j, name);
	fprintf(j->out, "%" PRId64, value);
}

void json_hex(struct json *j, const char *name, uint64_t value)
{
	key(j, name);
	fprintf(j->out, "\"0x%" PRIx64 "\"", value);
}

void json_bool(struct json *j, const char *name, bool value)
{
	key(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *name)
{
	key(j, name);
	fputs("null", j->out);
}

void json_key(struct json *j, const char *name)
{
	key(j, name);
}

void json_summary(struct json *j)
{
	json_bool(j, "summary", true);
	json_uint(j, "schema", JSON_SCHEMA);
}
