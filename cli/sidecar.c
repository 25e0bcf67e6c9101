/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

bool sidecar_cache_dir(char *buf, size_t size)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = -1;

	/* The specification of XDG_CACHE_HOME: a relative path is to be ignored. */
	if (xdg && xdg[0] == '/')
		n = snprintf(buf, size, "%s/cairn", xdg);
	else if (home && home[0] == '/')
		n = snprintf(buf, size, "%s/.cache/cairn", home);
	return n > 0 && (size_t)n < size;
}

bool sidecar_is_named(const char *path)
{
	static const char suffix[] = ".cairn";
	size_t n = strlen(path);

	return n >= sizeof(suffix) && !strcmp(path + n - (sizeof(suffix) - 1), suffix);
}

static int open_named(const struct cairn_binary *bin, const char *file, struct cairn_pack **ret)
{
	struct cairn_pack_opts opts = {.size = sizeof(opts)};
	struct cairn_err err = {0};
	int r;

	opts.build_id = cairn_binary_build_id(bin, &opts.build_id_len);
	r = cairn_pack_open(file, &opts, ret, &err);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

int sidecar_for(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret)
{
	char dir[4096];
	struct cairn_pack_search search = {
		.size = sizeof(search),
		.threads = wish->jobs,
		.may_make = true,
		.cache_dir = wish->keep && sidecar_cache_dir(dir, sizeof(dir)) ? dir : NULL,
	};
	struct cairn_err err = {0};
	int r;

	if (wish->file)
		return open_named(bin, wish->file, ret);
	r = cairn_pack_for(bin, &search, ret, &err);
	if (search.note[0])
		fail(STATUS_YES, "%s", search.note);
	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}
