/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel runs for a script: "#!INTERPRETER [ARGUMENT]", execve(2)
 */
#ifndef LAUNCH_SCRIPT_H
#define LAUNCH_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_LINE_MAX = 256 }; /* BINPRM_BUF_SIZE: the kernel reads no more */

struct script_line {
	char interpreter[SCRIPT_LINE_MAX];
	char argument[SCRIPT_LINE_MAX]; /* all after the interpreter; "" */
};

/* The first line of a script, of which the first @n bytes are at @bytes. False: it is none. */
bool script_parse(const char *bytes, size_t n, struct script_line *ret);

/* The same of a file. False: it is no script, or cannot be read. */
bool script_next(const char *path, struct script_line *ret);

/* The program that env(1) runs for a script's argument "NAME", looked for in $PATH. */
bool script_of_env(const struct script_line *line, char *ret, size_t size);

#endif
