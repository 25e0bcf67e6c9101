/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All text for people
 *
 * A name, a path or a message may hold bytes that an attacker chose: on a terminal an escape
 * sequence is a command, and a newline forges a line of the answer. So text goes out through here,
 * or through text.h's text_put_name(); JSON goes through json.h.
 */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <stdarg.h>
#include <stdio.h>

/*
 * say - printf() whose arguments cannot be more than text
 *
 * Newlines and tabs of @format are written; all else that is unsafe is quoted as text
 * (cairn/text.h). Escape sequences of ours (style.h) cannot be arguments.
 */
void say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vsay(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* Output of another program, line by line; newlines and tabs stay. */
void say_lines(FILE *out, const char *text);

/* One name, quoted as text; NULL is nothing. */
void say_name(FILE *out, const char *name);

#endif
