/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_place.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

/* Something that is there is replaced, if it is of the same kind. */
static int why_not(const char *path, const char *parent, bool is_directory)
{
	struct stat st;

	if (stat(path, &st))
		return access(parent, W_OK | X_OK) ? errno : 0;
	if (S_ISDIR(st.st_mode) != is_directory)
		return is_directory ? ENOTDIR : EISDIR;
	return access(path, W_OK) ? errno : 0;
}

int trace_place_check(const char *path, bool is_directory)
{
	char *copy = strdup(path);
	int e = copy ? why_not(path, dirname(copy), is_directory) : ENOMEM;

	free(copy);
	return e ? fail(STATUS_USAGE, "cannot write %s: %s", path, strerror(e)) : STATUS_YES;
}
