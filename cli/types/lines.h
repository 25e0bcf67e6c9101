/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of a file that the user gave: getline(3) with a limit. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdio.h>
#include <sys/types.h>

/*
 * line_read - the next line, with its newline and a NUL after it
 *
 * @line, @room  as of getline(3): NULL and 0 at first; free(*@line) in any case
 * @max          a longer line, such as /dev/zero has, is not read to its end
 * Returns its length; -1 at the end, or with ferror(@in); -EFBIG; -ENOMEM.
 */
ssize_t line_read(FILE *in, char **line, size_t *room, size_t max);

#endif
