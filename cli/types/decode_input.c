/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of a file: raw, hexadecimal, or in JSON objects
 *
 * A JSON object keeps all it has; only the member with the bytes is replaced by the value:
 *
 *	{"time":7,"data":"01000000"}		{"time":7,"data":{"pid":1}}
 *
 * The bytes are a string in hexadecimal, or an array of numbers or of "0x.." as bpftool writes
 * them. A record that does not fit its type is reported on stderr, and the next one is read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "decode.h"
#include "lines.h"
#include "quoted.h"

/* A ring buffer record has 30 bits of length; nothing longer is one. */
static const size_t RECORD_MAX = (size_t)1 << 30;
/* A record of 8 MiB as an array of "0xff", which is the longest form. */
static const size_t LINE_MAX_BYTES = (size_t)64 << 20;

struct input {
	struct decode_sink *sink;
	const char *name;
	FILE *file;
	uint64_t n; /* records seen */
};

static int bad(struct input *in, const char *what)
{
	in->sink->n_bad++;
	return fail(STATUS_DAMAGED, "%s: record %" PRIu64 ": %s", in->name, in->n, what);
}

/* Whether the record's length is right. */
static bool is_right(struct input *in, size_t n)
{
	enum cairn_record_rule rule =
		in->sink->values->perf ? CAIRN_RECORD_PERF : CAIRN_RECORD_EXACT;
	struct cairn_err err = {0};

	if (cairn_decode_check(in->sink->decode, n, rule, &err) == 0)
		return true;
	in->sink->n_bad++;
	fail_lines(STATUS_DAMAGED, err.msg, "%s: record %" PRIu64 ": ", in->name, in->n);
	return false;
}

static void put_record(struct input *in, const uint8_t *bytes, size_t n)
{
	in->n++;
	if (!is_right(in, n))
		return;
	cairn_decode_run(in->sink->decode, bytes, n, &in->sink->out);
	cairn_text_put(&in->sink->out, "\n", 1);
}

/* ---- raw ---- */

/* Everything is one record: nothing else shows where a flexible array ends. */
static int read_whole(struct input *in)
{
	size_t n = 0, cap = 1 << 16;
	uint8_t *bytes = malloc(cap);

	for (size_t got = 1; bytes && got && n <= RECORD_MAX; n += got) {
		if (n == cap) {
			uint8_t *grown = realloc(bytes, cap *= 2);
			if (!grown)
				free(bytes);
			bytes = grown;
		}
		got = bytes ? fread(bytes + n, 1, cap - n, in->file) : 0;
	}
	if (!bytes)
		return fail(STATUS_NOT_HERE, "no memory");
	if (n <= RECORD_MAX)
		put_record(in, bytes, n);
	free(bytes);
	if (n > RECORD_MAX)
		return fail(STATUS_DAMAGED,
			    "%s: it is one record, as the type ends in a flexible array, and has "
			    "more than %zu bytes",
			    in->name, RECORD_MAX);
	return STATUS_YES;
}

static int read_raw(struct input *in, size_t size)
{
	size_t room = size < (1 << 18) ? (1 << 20) / size * size : size, have = 0, got;
	uint8_t *bytes = malloc(room);

	if (!bytes)
		return fail(STATUS_NOT_HERE, "no memory for records of %zu bytes", size);
	while (!in->sink->out.failed && (got = fread(bytes + have, 1, room - have, in->file)) > 0) {
		size_t off = 0;
		have += got;
		for (; have - off >= size; off += size)
			put_record(in, bytes + off, size);
		memmove(bytes, bytes + off, have - off);
		have -= off;
	}
	/* The last perf record may lack its padding. */
	if (have && in->sink->values->perf && have >= cairn_decode_size(in->sink->decode)) {
		put_record(in, bytes, have);
	} else if (have) {
		char what[96];
		snprintf(what, sizeof(what),
			 "the input ends in it: %zu of %zu bytes, at offset %" PRIu64, have, size,
			 in->n * size);
		in->n++;
		bad(in, what);
	}
	free(bytes);
	return STATUS_YES;
}

/* ---- hexadecimal ---- */

static int digit_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/*
 * In place: digits in pairs, with blanks, colons, commas, quotes and "0x" between them. False:
 * something else.
 */
static bool parse_hex(char *text, size_t n, size_t *ret_n)
{
	uint8_t *to = (uint8_t *)text;

	*ret_n = 0;
	for (size_t i = 0; i < n;) {
		int high = digit_of(text[i]), low = i + 1 < n ? digit_of(text[i + 1]) : -1;

		if (high == 0 && i + 1 < n && (text[i + 1] == 'x' || text[i + 1] == 'X'))
			i += 2;
		else if (strchr(" \t\r\n:,\"", text[i]))
			i++;
		else if (high < 0 || low < 0)
			return false;
		else {
			to[(*ret_n)++] = (uint8_t)(high << 4 | low);
			i += 2;
		}
	}
	return true;
}

static int read_hex(struct input *in, char *line, size_t n)
{
	size_t n_bytes;

	if (strspn(line, " \t\r\n") >= n || line[0] == '#')
		return STATUS_YES;
	if (parse_hex(line, n, &n_bytes)) {
		put_record(in, (uint8_t *)line, n_bytes);
		return STATUS_YES;
	}
	in->n++;
	return bad(in, "not hexadecimal: digits in pairs are expected");
}

/* ---- JSON ---- */

/* The position after the string that begins at @at; NULL: it does not end. */
static char *skip_string(char *at, char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at < end ? at + 1 : NULL;
}

/* The position after a value: a string, or all up to the comma or bracket that closes it. */
static char *skip_value(char *at, char *end)
{
	int depth = 0;

	for (; at && at < end; at++) {
		if (*at == '"') {
			at = skip_string(at, end);
			if (!at)
				return NULL;
			at--;
		} else if (*at == '{' || *at == '[') {
			depth++;
		} else if (*at == '}' || *at == ']' || *at == ',') {
			if (!depth)
				return at;
			depth -= *at != ',';
		}
	}
	return at;
}

static char *skip_blanks(char *at, char *end)
{
	while (at < end && strchr(" \t\r\n", *at))
		at++;
	return at;
}

/* The value of member @name of the object that the line is: [*@ret, *@ret_end). */
static bool find_field(char *line, char *end, const char *name, char **ret, char **ret_end)
{
	size_t n = strlen(name);
	char *at = skip_blanks(line, end);

	if (at >= end || *at != '{')
		return false;
	for (at = skip_blanks(at + 1, end); at < end && *at == '"'; at = skip_blanks(at, end)) {
		char *key = at + 1, *key_end = skip_string(at, end);
		at = key_end ? skip_blanks(key_end, end) : end;
		if (at >= end || *at != ':')
			return false;
		char *value = skip_blanks(at + 1, end), *value_end = skip_value(value, end);
		if (!value_end)
			return false;
		if ((size_t)(key_end - 1 - key) == n && !memcmp(key, name, n)) {
			*ret = value;
			*ret_end = value_end;
			return true;
		}
		if (value_end >= end || *value_end != ',')
			return false;
		at = skip_blanks(value_end + 1, end);
	}
	return false;
}

/* [1, 255] and ["0x01", "0xff"], and a string of digits, in place. */
static bool parse_bytes(char *value, char *end, size_t *ret_n)
{
	while (end > value && strchr(" \t\r\n", end[-1]))
		end--;
	if (*value == '"' || (*value == '[' && memchr(value, '"', (size_t)(end - value)))) {
		/* bpftool drops no leading zero: "0x0a". */
		size_t n = (size_t)(end - value);
		if (n < 2)
			return false;
		bool ok = parse_hex(value + 1, n - 2, ret_n);
		memmove(value, value + 1, ok ? *ret_n : 0);
		return ok;
	}
	if (*value != '[')
		return false;
	*ret_n = 0;
	for (char *at = value + 1, *next; at < end && *at != ']'; at = next) {
		unsigned long v = strtoul(at, &next, 10);
		if (next == at || v > 255)
			return false;
		value[(*ret_n)++] = (char)v;
		next += strspn(next, ", \t");
	}
	return true;
}

static bool is_shown_by_terminals(char c)
{
	return (c >= ' ' && c < 0x7f) || c == '\t';
}

static void put_json_name(struct cairn_text_out *out, const char *text, size_t n)
{
	char *quoted = quoted_copy(text, n, CAIRN_QUOTE_JSON, &n);

	cairn_text_put(out, quoted ? quoted : "\\ufffd", quoted ? n : 6);
	free(quoted);
}

/*
 * JSON from the library: characters that a terminal would obey are escaped. They can only be inside
 * of strings.
 */
static void put_json(struct cairn_text_out *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t same = i;

		while (same < n && is_shown_by_terminals(text[same]))
			same++;
		cairn_text_put(out, text + i, same - i);
		size_t length = same;
		while (length < n && !is_shown_by_terminals(text[length]))
			length++;
		put_json_name(out, text + same, length - same);
		i = length;
	}
}

/* In text the value alone is shown: the rest of the line is JSON. */
static int read_json(struct input *in, char *line, size_t n)
{
	const char *field = in->sink->values->field ? in->sink->values->field : "data";
	struct cairn_text_out *out = &in->sink->out;
	bool json = in->sink->values->json;
	char *value, *end, what[128];
	size_t n_bytes;

	if (strspn(line, " \t\r\n") >= n)
		return STATUS_YES;
	in->n++;
	while (n && strchr("\r\n", line[n - 1]))
		n--;
	if (!find_field(line, line + n, field, &value, &end)) {
		snprintf(what, sizeof(what), "no JSON object with a member \"%.60s\"", field);
		return bad(in, what);
	}
	if (!parse_bytes(value, end, &n_bytes))
		return bad(in, "its bytes are neither hexadecimal nor an array of numbers");
	if (!is_right(in, n_bytes))
		return STATUS_YES;
	if (json)
		put_json(out, line, (size_t)(value - line));
	cairn_decode_run(in->sink->decode, value, n_bytes, out);
	if (json)
		put_json(out, end, (size_t)(line + n - end));
	cairn_text_put(out, "\n", 1);
	return STATUS_YES;
}

static int read_lines(struct input *in, int (*read_line)(struct input *in, char *line, size_t n))
{
	size_t cap = 0;
	char *line = NULL;
	ssize_t n = 0;

	while (!in->sink->out.failed && (n = line_read(in->file, &line, &cap, LINE_MAX_BYTES)) >= 0)
		read_line(in, line, (size_t)n);
	free(line);
	if (n == -EFBIG)
		return fail(STATUS_DAMAGED,
			    "%s: after record %" PRIu64 " a line has more than %zu bytes; larger "
			    "records are read with --format raw",
			    in->name, in->n, LINE_MAX_BYTES);
	return n == -ENOMEM ? fail(STATUS_NOT_HERE, "no memory for a line of %s", in->name)
			    : STATUS_YES;
}

/* ---- entry ---- */

static int read_records(struct input *in)
{
	const struct decode_values *v = in->sink->values;
	size_t size = cairn_decode_size(in->sink->decode);

	if (v->format && !strcmp(v->format, "hex"))
		return read_lines(in, read_hex);
	if (v->format && !strcmp(v->format, "json"))
		return read_lines(in, read_json);
	if (v->record_size)
		size = v->record_size;
	else if (cairn_decode_is_flexible(in->sink->decode))
		return read_whole(in);
	else if (v->perf)
		/* With the length before it, a sample is padded to a multiple of 8. */
		size = (size + 4 + 7) / 8 * 8 - 4;
	if (size > RECORD_MAX)
		return fail(STATUS_USAGE, "no record has %zu bytes", size);
	return read_raw(in, size);
}

int decode_input(struct decode_sink *sink, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	struct input in = {.sink = sink, .name = is_stdin ? "standard input" : path};

	in.file = is_stdin ? stdin : fopen(path, "re");
	if (!in.file)
		return fail(STATUS_USAGE, "cannot open %s: %m", path);
	int status = read_records(&in);
	if (!status && ferror(in.file))
		status = fail(STATUS_USAGE, "cannot read %s: %m", in.name);
	if (!is_stdin)
		fclose(in.file);
	return status ? status : sink->n_bad ? STATUS_DAMAGED : STATUS_YES;
}
