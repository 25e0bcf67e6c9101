/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that a shell would find. */
#ifndef LAUNCH_PATH_H
#define LAUNCH_PATH_H

#include <stddef.h>

/*
 * path_search - the program of that name in the directories of $PATH that are absolute
 *
 * @n  bytes of the name, which has no slash
 * Returns a string to be freed; NULL: there is none, or no memory.
 */
char *path_search(const char *name, size_t n);

#endif
