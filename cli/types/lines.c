/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool grow(char **line, size_t *room)
{
	size_t more = *room ? 2 * *room : 256;
	char *grown = realloc(*line, more);

	if (!grown)
		return false;
	*line = grown;
	*room = more;
	return true;
}

ssize_t line_read(FILE *in, char **line, size_t *room, size_t max)
{
	size_t n = 0;
	int c = 0;

	while (c != '\n' && (c = getc_unlocked(in)) != EOF) {
		if (n == max)
			return -EFBIG;
		if (n + 2 > *room && !grow(line, room))
			return -ENOMEM;
		(*line)[n++] = (char)c;
	}
	if (!n)
		return -1;
	(*line)[n] = 0;
	return (ssize_t)n;
}
