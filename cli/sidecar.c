/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debuginfod.h"
#include "keep.h"

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

/* CAIRN_CACHE: "off", or "read" to make none unasked. */
static bool cache_is(const char *word)
{
	const char *set = getenv("CAIRN_CACHE");

	return set && !strcmp(set, word);
}

/* The cache's directory in @dir; NULL where none is wanted. */
static const char *cache_for(const struct sidecar_wish *wish, char *dir, size_t size)
{
	return !wish->no_cache && !cache_is("off") && sidecar_cache_dir(dir, size) ? dir : NULL;
}

static int open_named(const struct cairn_binary *bin, const char *file, bool must_be_trusted, struct cairn_pack **ret,
		      struct cairn_err *err)
{
	struct cairn_pack_opts opts = {.size = sizeof(opts), .must_be_trusted = must_be_trusted};

	opts.build_id = cairn_binary_build_id(bin, &opts.build_id_len);
	return cairn_pack_open(file, &opts, ret, err);
}

/* So that the next one need not ask the network. Without a cache the answer is as good. */
static void keep_copy(const struct cairn_pack *pack, const struct sidecar_wish *wish)
{
	struct cairn_pack_search search = {.size = sizeof(search)};
	struct cairn_err err = {0};
	char dir[4096];

	search.cache_dir = cache_is("read") ? NULL : cache_for(wish, dir, sizeof(dir));
	if (search.cache_dir && cairn_pack_keep_copy(pack, &search, &err) < 0)
		fail(STATUS_YES, "not kept: %s", err.msg);
}

static int fetch_sidecar(const struct cairn_binary *bin, const struct sidecar_wish *wish, const char *urls,
			 struct cairn_pack **ret, struct cairn_err *err)
{
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	char *path;
	int r;

	/* What went wrong was said; other sources may do. */
	if (debuginfod_fetch(urls, DEBUGINFOD_SIDECAR, id, len, &path) < 0 || !path)
		return 0;
	r = open_named(bin, path, !geteuid(), ret, err);
	free(path);
	if (!r)
		keep_copy(*ret, wish);
	return r;
}

/* Any server has debug files. The sidecar that is made of one is kept, as it is of one that lies here. */
static int make_of_debug_file(const struct cairn_binary *bin, const struct sidecar_wish *wish, const char *file,
			      struct cairn_pack **ret, struct cairn_err *err)
{
	struct cairn_pack_search search = {
		.size = sizeof(search), .threads = wish->jobs, .may_make = true, .places = !wish->lines};
	struct cairn_binary_opts opts = {.size = sizeof(opts), .debug_file = file};
	struct cairn_binary *whole;
	char dir[4096];
	int r = cairn_binary_open(cairn_binary_path(bin), &opts, &whole, err);

	if (r < 0)
		return r;
	search.cache_dir = cache_is("read") ? NULL : cache_for(wish, dir, sizeof(dir));
	r = cairn_pack_for(whole, &search, ret, err);
	if (search.note[0])
		fail(STATUS_YES, "%s", search.note);
	cairn_binary_close(whole);
	return r;
}

static int fetch_debug_file(const struct cairn_binary *bin, const struct sidecar_wish *wish, const char *urls,
			    struct cairn_pack **ret, struct cairn_err *err)
{
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	char *path;
	int r;

	if (debuginfod_fetch(urls, DEBUGINFOD_DEBUG_FILE, id, len, &path) < 0 || !path)
		return 0;
	r = make_of_debug_file(bin, wish, path, ret, err);
	free(path);
	return r;
}

/* From the network, when it may be asked and there is a reason to: what can be answered here is. */
static int download(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret,
		    struct cairn_err *err)
{
	const char *urls = debuginfod_wanted(wish->debuginfod);
	int r;

	if (wish->debuginfod && !urls) {
		fail(STATUS_USAGE, "--debuginfod: which server? DEBUGINFOD_URLS is not set");
		return 0;
	}
	if (!urls || cairn_binary_has_dwarf(bin))
		return 0;
	r = fetch_sidecar(bin, wish, urls, ret, err);
	return r < 0 || *ret ? r : fetch_debug_file(bin, wish, urls, ret, err);
}

/* Everything but --pack. *@ret stays NULL when there is none. */
static int find(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack_search *search,
		struct cairn_pack **ret, struct cairn_err *err)
{
	char dir[4096];
	int r;

	if (sidecar_is_named(cairn_binary_path(bin)))
		return open_named(bin, cairn_binary_path(bin), false, ret, err);
	search->cache_dir = cache_for(wish, dir, sizeof(dir));
	r = cairn_pack_for(bin, search, ret, err);
	search->cache_dir = NULL;
	if (search->note[0])
		fail(STATUS_YES, "%s", search->note);
	return r == -ENOENT ? download(bin, wish, ret, err) : r;
}

/* One that the search allows to be made. */
static int make(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret,
		struct cairn_err *err)
{
	struct cairn_pack_search search = {.size = sizeof(search), .threads = wish->jobs, .may_make = true};
	struct sidecar_wish only_make = *wish;

	only_make.no_cache |= cache_is("read");
	return find(bin, &only_make, &search, ret, err);
}

static int tell(int r, const struct cairn_binary *bin, const struct cairn_pack *pack, const struct cairn_err *err)
{
	if (r < 0)
		return fail_err(r, err, STATUS_USAGE);
	if (pack)
		return STATUS_YES;
	return fail_lines(STATUS_NOT_HERE, cairn_binary_search_log(bin), "%s has neither debug information nor symbols\n",
			  cairn_binary_path(bin));
}

int sidecar_make(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret)
{
	struct cairn_err err = {0};
	int r;

	*ret = NULL;
	r = make(bin, wish, ret, &err);
	return tell(r, bin, *ret, &err);
}

int sidecar_for(const struct cairn_binary *bin, const struct sidecar_wish *wish, struct cairn_pack **ret)
{
	struct cairn_pack_search search = {.size = sizeof(search), .threads = wish->jobs};
	struct cairn_err err = {0};
	int r;

	*ret = NULL;
	r = wish->file ? open_named(bin, wish->file, false, ret, &err) : find(bin, wish, &search, ret, &err);
	if (!r && !*ret)
		r = make(bin, wish, ret, &err);
	return tell(r, bin, *ret, &err);
}

/* ---- places ---- */

int sidecar_find(void *wish, const struct cairn_binary *bin, struct cairn_pack **ret, struct cairn_err *err)
{
	struct cairn_pack_search search = {.size = sizeof(search), .places = !((const struct sidecar_wish *)wish)->lines};
	const struct sidecar_wish *w = wish;

	*ret = NULL;
	if (w->none)
		return 0;
	if (w->file) {
		int r = open_named(bin, w->file, false, ret, err);

		if (r != -ESTALE || !w->many)
			return r;
	}
	return find(bin, w, &search, ret, err);
}

int sidecar_sites_open(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		       const struct cairn_sites_opts *opts, struct sidecar_sites *ret)
{
	struct cairn_err err = {0};
	int r = 0;

	*ret = (struct sidecar_sites){0};
	/* A sidecar says what holds without that assumption. */
	if (!opts->assume_unmodified)
		r = sidecar_find((void *)wish, bin, &ret->pack, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
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

/* ---- keeping ---- */

void sidecar_keep(const struct cairn_binary *bin, const struct sidecar_wish *wish)
{
	char dir[4096];
	size_t len;

	cairn_binary_build_id(bin, &len);
	if (!len || wish->none || cache_is("read") || !cache_for(wish, dir, sizeof(dir)))
		return;
	keep_in_background(cairn_binary_path(bin), wish->debug_dirs.items, wish->debug_dirs.n);
}
