/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that a program will have mapped when it begins
 *
 * Its loader lists them: `ld.so --list PROGRAM`. Nothing of the program runs. Only loaders that are
 * known to have that option are run.
 */
#ifndef LAUNCH_NEEDED_H
#define LAUNCH_NEEDED_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/err.h>

#include "base/vec.h"

struct needed {
	VEC(char *) paths; /* absolute */
};

/*
 * needed_list - the libraries of a program, and its loader
 *
 * @program  absolute path
 * A program without a loader, or with an unknown one, has none. So has one whose loader fails or
 * takes more than 5 seconds. Returns 0; -ENOMEM. needed_free() in both cases.
 */
int needed_list(const char *program, struct needed *ret, struct cairn_err *err);
void needed_free(struct needed *n);

/*
 * needed_loader - the path of the loader in the first @n bytes of a program
 *
 * False: there is none, or none that is known to list.
 */
bool needed_loader(const void *bytes, size_t n, char *ret, size_t size);

/* The paths of what the loader prints, @n bytes. 0 or -ENOMEM. */
int needed_parse(const char *text, size_t n, struct needed *ret);

#endif
