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

/* ---- places ---- */

/* *@ret stays NULL when there is none. */
static int find_with_places(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret)
{
	char dir[4096];
	struct cairn_pack_search search = {
		.size = sizeof(search),
		.places = true,
		.cache_dir = wish->keep && sidecar_cache_dir(dir, sizeof(dir)) ? dir : NULL,
	};
	struct cairn_err err = {0};
	int r;

	if (wish->file)
		return open_named(bin, wish->file, ret);
	if (sidecar_is_named(cairn_binary_path(bin)))
		return open_named(bin, cairn_binary_path(bin), ret);
	r = cairn_pack_for(bin, &search, ret, &err);
	if (search.note[0])
		fail(STATUS_YES, "%s", search.note);
	return r < 0 && r != -ENOENT ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}

int sidecar_sites_open(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		       const struct cairn_sites_opts *opts, struct sidecar_sites *ret)
{
	struct cairn_err err = {0};
	int status, r;

	*ret = (struct sidecar_sites){0};
	/* A sidecar says what holds without that assumption. */
	if (!wish->none && !opts->assume_unmodified) {
		status = find_with_places(bin, wish, &ret->pack);
		if (status)
			return status;
	}
	r = ret->pack ? cairn_pack_sites(ret->pack, bin, &ret->sites, &err)
		      : cairn_sites_open(bin, opts, &ret->sites, &err);
	if (r >= 0)
		return STATUS_YES;
	sidecar_sites_close(ret);
	return fail_err(r, &err, STATUS_NOT_HERE);
}

void sidecar_sites_close(struct sidecar_sites *source)
{
	cairn_sites_close(source->sites);
	cairn_pack_close(source->pack);
}
