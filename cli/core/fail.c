/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "say.h"

/* Failures so far, as lines of JSON; out NULL: not wanted. */
static struct {
	FILE *out;
	char *text;
	size_t n;
} json_errors;

void fail_as_json(void)
{
	json_errors.out = open_memstream(&json_errors.text, &json_errors.n);
}

void fail_print_json(FILE *out)
{
	if (!json_errors.out)
		return;
	fclose(json_errors.out);
	json_errors.out = NULL;
	fwrite(json_errors.text, 1, json_errors.n, out);
	free(json_errors.text);
}

void fail_only_on_stderr(void)
{
	if (!json_errors.out)
		return;
	fclose(json_errors.out);
	free(json_errors.text);
	json_errors.out = NULL;
}

/* A warning, whose status is STATUS_YES, is none. */
static void keep_json(int status, const char *format, va_list args, const char *lines)
{
	struct json j = {.out = json_errors.out};
	char *text, *whole;

	if (!json_errors.out || status == STATUS_YES || vasprintf(&text, format, args) < 0)
		return;
	if (asprintf(&whole, "%s%s", text, lines) >= 0) {
		flockfile(j.out); /* Files are written by another thread than the summary. */
		json_open(&j, NULL, '{');
		json_text(&j, "error", whole);
		json_int(&j, "status", status);
		json_close(&j);
		funlockfile(j.out);
		free(whole);
	}
	free(text);
}

/* Earlier answers come first, also when both streams are one file. */
static void report(int status, const char *format, va_list args, const char *lines)
{
	va_list again;

	va_copy(again, args);
	fflush(stdout);
	fputs("cairn: ", stderr);
	vsay(stderr, format, args);
	fprintf(stderr, "%s\n", lines);
	keep_json(status, format, again, lines);
	va_end(again);
}

int fail(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(status, format, args, "");
	va_end(args);
	return status;
}

int fail_told(int status, const struct cairn_err *err)
{
	return fail_lines(status, err->msg, "%s", "");
}

int fail_lines(int status, const char *lines, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(status, format, args, lines);
	va_end(args);
	return status;
}

static int status_of(int code, int missing)
{
	switch (code) {
	case -ENOENT:
		return missing;
	case -EINVAL:
	case -EISDIR:
	case -ENOTDIR:
	case -E2BIG:
		return STATUS_USAGE;
	case -ESRCH:
	case -ENXIO:
	case -ENOTUNIQ:
		return STATUS_NO;
	case -EBADMSG:
	case -ERANGE:
		return STATUS_DAMAGED;
	default:
		/*
		 * No debug information, no permission, no memory, a form or kernel that is not
		 * known here.
		 */
		return STATUS_NOT_HERE;
	}
}

int fail_err(int code, const struct cairn_err *err, int missing)
{
	return fail_lines(status_of(code, missing), err->msg[0] ? err->msg : strerror(-code), "%s",
			  "");
}

int fail_asked(int code, const struct cairn_err *err)
{
	return fail_err(code == -ERANGE ? -E2BIG : code, err, STATUS_USAGE);
}
