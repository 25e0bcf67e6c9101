/* SPDX-License-Identifier: BSD-2-Clause */
#include "launch/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *path_search(const char *name, size_t n)
{
	const char *dir = getenv("PATH"), *end;

	for (dir = dir ? dir : "/usr/bin:/bin"; *dir; dir = *end ? end + 1 : end) {
		char *path;

		end = strchrnul(dir, ':');
		if (*dir != '/' ||
		    asprintf(&path, "%.*s/%.*s", (int)(end - dir), dir, (int)n, name) < 0)
			continue;
		if (!access(path, X_OK))
			return path;
		free(path);
	}
	return NULL;
}
