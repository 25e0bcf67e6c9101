/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "say.h"

int fail(int status, const char *format, ...)
{
	va_list args;

	/* Earlier answers come first, also when both streams are one file. */
	fflush(stdout);
	va_start(args, format);
	fputs("cairn: ", stderr);
	vsay(stderr, format, args);
	fputc('\n', stderr);
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

	fflush(stdout);
	va_start(args, format);
	fputs("cairn: ", stderr);
	vsay(stderr, format, args);
	fprintf(stderr, "%s\n", lines);
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
