/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filling a struct cairn_err: the deepest frame states the fact, each caller may put "while" before
 * it.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <cairn/err.h>

/*
 * err_set - state the fact
 *
 * @err   may be NULL
 * @code  negative errno
 * @fmt   one line; names in it may be any bytes, and are quoted as text, newlines too
 * Returns @code, so that a caller can say "return err_set(...)".
 */
__attribute__((format(printf, 3, 4))) int err_set(struct cairn_err *err, int code, const char *fmt,
						  ...);

/*
 * err_lines - state the fact in one line, and the details in more
 *
 * @lines  safe text (cairn/text.h) with newlines between its lines, which are whole; names in it
 *	    are quoted already
 * Returns @code.
 */
__attribute__((format(printf, 4, 5))) int err_lines(struct cairn_err *err, int code,
						    const char *lines, const char *fmt, ...);

/*
 * err_while - put the current action before a message that is already set: "while FMT: message"
 *
 * Returns err->code, or @code when @err is NULL.
 */
__attribute__((format(printf, 3, 4))) int err_while(struct cairn_err *err, int code,
						    const char *fmt, ...);

/* Out of memory; says which thing was to be made. */
int err_nomem(struct cairn_err *err, const char *what);

#endif
