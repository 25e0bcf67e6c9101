/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON, written as it comes
 *
 *	struct json j = {.out = stdout};
 *	json_open(&j, NULL, '{');
 *	json_text(&j, "name", "malloc");
 *	json_open(&j, "args", '[');
 *	json_close(&j);
 *	json_close(&j);         // ends the outermost: {"name":"malloc","args":[]} and a newline
 *
 * One object per line. In arrays the key is NULL. Nothing is kept but one bit per level.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 64

/*
 * The number of the output's set of keys and words. It changes when one of them gets another name
 * or meaning; docs/json.md lists the changes.
 */
#define JSON_SCHEMA 2

struct json {
	FILE *out;
	unsigned int depth;
	uint64_t has_items; /* bit per level: a comma is due before the next item */
	uint64_t is_array;  /* bit per level */
};

/* @bracket is { or [. Deeper than JSON_DEPTH_MAX is our bug. */
void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j);

/* NULL is null. Bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json *j, const char *key, const char *text);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_int(struct json *j, const char *key, int64_t value);
/* As a string "0x1f": readers of JSON cut integers beyond 2^53. */
void json_hex(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);
/* "summary": true, and the schema's number: the begin of the last object of an output. */
void json_summary(struct json *j);
void json_null(struct json *j, const char *key);
/* The key of a value that the caller writes to @j->out: one value, as JSON. */
void json_key(struct json *j, const char *key);

#endif
