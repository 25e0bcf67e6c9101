/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct cairn_err *err, int code, const char *fmt, ...)
{
	if (!err)
		return code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	err->code = code;
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
	int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->msg))
		snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", story);
	err->code = code;
	return code;
}

int err_nomem(struct cairn_err *err, const char *what)
{
	return err_set(err, -ENOMEM, "out of memory for %s", what);
}
