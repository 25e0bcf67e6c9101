/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cairn/text.h>

/* The message up to here is one line of safe text; how long it is. */
static size_t quote_line(struct cairn_err *err)
{
	char line[sizeof(err->msg)];
	ssize_t n = cairn_quote(err->msg, CAIRN_QUOTE_TEXT, line, sizeof(line));

	memcpy(err->msg, line, sizeof(line));
	return n < (ssize_t)sizeof(line) ? (size_t)n : strlen(line);
}

/* Returns the message's length. */
static size_t set_line(struct cairn_err *err, int code, const char *fmt, va_list ap)
{
	if (!err)
		return 0;
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	err->code = code;
	return quote_line(err);
}

int err_set(struct cairn_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_line(err, code, fmt, ap);
	va_end(ap);
	return code;
}

int err_lines(struct cairn_err *err, int code, const char *lines, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	size_t n = set_line(err, code, fmt, ap);
	va_end(ap);
	if (err && *lines)
		snprintf(err->msg + n, sizeof(err->msg) - n, "\n%s", lines);
	return code;
}

int err_while(struct cairn_err *err, int code, const char *fmt, ...)
{
	if (!err)
		return code;
	char story[sizeof(err->msg)];
	memcpy(story, err->msg, sizeof(story));
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	size_t n = quote_line(err);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", story);
	err->code = code;
	return code;
}

int err_nomem(struct cairn_err *err, const char *what)
{
	return err_set(err, -ENOMEM, "out of memory for %s", what);
}
