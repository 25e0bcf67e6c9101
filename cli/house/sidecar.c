/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/btf/sites.h>

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

const char *sidecar_cache_for(const struct sidecar_wish *wish, char *dir, size_t size)
{
	return !wish->no_cache && !cache_is("off") && sidecar_cache_dir(dir, size) ? dir : NULL;
}

static int open_named(const struct cairn_binary *bin, const char *file, bool must_be_trusted,
		      struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_opts opts = {.size = sizeof(opts), .must_be_trusted = must_be_trusted};

	/* A query about a sidecar itself has no code to compare. */
	if (!sidecar_is_named(cairn_binary_path(bin)))
		opts.binary = bin;
	return cairn_sidecar_open(file, &opts, ret, err);
}

void sidecar_say_unbound(const struct cairn_sidecar *sidecar)
{
	if (sidecar && !cairn_sidecar_is_bound(sidecar))
		fail(STATUS_YES,
		     "%s is unbound: it was made of a debug file alone, and cannot be compared "
		     "with any code; make it with: cairn "
		     "sidecar PROGRAM",
		     cairn_sidecar_path(sidecar));
	if (sidecar && cairn_sidecar_path(sidecar) && cairn_sidecar_left_out(sidecar) &&
	    sidecar_is_named(cairn_sidecar_path(sidecar)))
		fail(STATUS_YES,
		     "%s was made without %u damaged unit%s, and it has only symbols of their code",
		     cairn_sidecar_path(sidecar), cairn_sidecar_left_out(sidecar),
		     cairn_sidecar_left_out(sidecar) == 1 ? "" : "s");
}

void sidecar_say_unbound_file(const char *path)
{
	struct cairn_sidecar *sidecar;

	/* Other errors in it are reported by its reader. */
	if (!sidecar_is_named(path) || cairn_sidecar_open(path, NULL, &sidecar, NULL) < 0)
		return;
	sidecar_say_unbound(sidecar);
	cairn_sidecar_close(sidecar);
}

int sidecar_trouble(const struct cairn_sidecar *sidecar)
{
	struct cairn_err err = {0};
	int r = sidecar ? cairn_sidecar_trouble(sidecar, &err) : 0;

	return r < 0 ? fail_err(r, &err, STATUS_NO) : STATUS_YES;
}

/* So that the next one need not ask the network. Without a cache the answer is as good. */
static void keep_copy(const struct cairn_sidecar *sidecar, const struct sidecar_wish *wish)
{
	struct cairn_sidecar_search search = {.size = sizeof(search)};
	struct cairn_err err = {0};
	char dir[4096];

	search.cache_dir = cache_is("read") ? NULL : sidecar_cache_for(wish, dir, sizeof(dir));
	if (search.cache_dir && cairn_sidecar_keep_copy(sidecar, &search, &err) < 0)
		fail_lines(STATUS_YES, err.msg, "not kept: ");
}

/*
 * From the servers at @urls; NULL: from the client's cache alone. The path is the caller's; NULL:
 * it is nowhere.
 */
static char *fetch(const struct cairn_binary *bin, const char *urls, enum debuginfod_file file)
{
	size_t len;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	char *path = NULL;

	/* The error was reported; other sources may do. */
	if (!urls)
		debuginfod_cached(file, id, len, &path);
	else if (debuginfod_fetch(urls, file, id, len, &path) < 0)
		path = NULL;
	return path;
}

static int fetch_sidecar(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			 const char *urls, struct cairn_sidecar **ret, struct cairn_err *err)
{
	char *path = fetch(bin, urls, DEBUGINFOD_SIDECAR);
	int r;

	if (!path)
		return 0;
	r = open_named(bin, path, !geteuid(), ret, err);
	free(path);
	if (!r)
		keep_copy(*ret, wish);
	if (r != -ESTALE)
		return r;
	/* The server's is of another file with that build-id. */
	fail_told(STATUS_YES, err);
	return 0;
}

/* A stack has many files, and the same is noted of each when the cache cannot be read. */
static void tell_note(const char *note)
{
	static char told[sizeof(((struct cairn_sidecar_search *)0)->note)];

	if (!note[0] || !strcmp(note, told))
		return;
	snprintf(told, sizeof(told), "%s", note);
	fail_lines(STATUS_YES, note, "%s", "");
}

/*
 * Any server has debug files. The sidecar made from one is kept, as with a local debug file.
 */
static int make_of_debug_file(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			      const char *file, struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_search search = {.size = sizeof(search),
					      .threads = wish->jobs,
					      .may_make = true,
					      .sites = !wish->lines};
	struct cairn_binary_opts opts = {.size = sizeof(opts), .debug_file = file};
	struct cairn_binary *whole;
	char dir[4096];
	int r = cairn_binary_open(cairn_binary_path(bin), &opts, &whole, err);

	if (r < 0)
		return r;
	search.cache_dir = cache_is("read") ? NULL : sidecar_cache_for(wish, dir, sizeof(dir));
	r = cairn_sidecar_for(whole, &search, ret, err);
	tell_note(search.note);
	cairn_binary_close(whole);
	return r;
}

static int fetch_debug_file(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			    const char *urls, struct cairn_sidecar **ret, struct cairn_err *err)
{
	char *path = fetch(bin, urls, DEBUGINFOD_DEBUG_FILE);
	int r;

	if (!path)
		return 0;
	r = make_of_debug_file(bin, wish, path, ret, err);
	free(path);
	return r;
}

static int fetch_any(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		     const char *urls, struct cairn_sidecar **ret, struct cairn_err *err)
{
	int r = fetch_sidecar(bin, wish, urls, ret, err);

	return r < 0 || *ret ? r : fetch_debug_file(bin, wish, urls, ret, err);
}

/*
 * The file in the client's cache is damaged, or of another file: the servers may have the right
 * one.
 */
static int fetch_cached(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			struct cairn_sidecar **ret)
{
	struct cairn_err err = {0};
	int r = fetch_any(bin, wish, NULL, ret, &err);

	if (r < 0)
		fail_told(STATUS_YES, &err);
	return r == -ENOMEM ? r : 0;
}

char *sidecar_debug_file(const struct cairn_binary *bin, const struct sidecar_wish *wish)
{
	const char *urls = debuginfod_wanted(wish->debuginfod);
	char *path =
		debuginfod_asked(wish->debuginfod) ? fetch(bin, NULL, DEBUGINFOD_DEBUG_FILE) : NULL;

	return path || !urls ? path : fetch(bin, urls, DEBUGINFOD_DEBUG_FILE);
}

static void say_no_server(void)
{
	char *cache = debuginfod_cache_text();

	fail(STATUS_USAGE,
	     "--debuginfod: it is not in the client's cache (%s), and DEBUGINFOD_URLS is not set",
	     cache ? cache : "no memory for the list");
	free(cache);
}

/*
 * From the debuginfod client's cache, then from the network, if they may be used and there is a
 * reason to: queries that can be answered locally are.
 */
static int download(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		    struct cairn_sidecar **ret, struct cairn_err *err)
{
	const char *urls = debuginfod_wanted(wish->debuginfod);
	int r;

	if (wish->offline || !debuginfod_asked(wish->debuginfod) || cairn_binary_has_dwarf(bin))
		return 0;
	r = fetch_cached(bin, wish, ret);
	if (r < 0 || *ret)
		return r;
	if (wish->debuginfod && !urls)
		say_no_server();
	return urls ? fetch_any(bin, wish, urls, ret, err) : 0;
}

/* Everything but --sidecar. *@ret stays NULL when there is none. */
static int find(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		struct cairn_sidecar_search *search, struct cairn_sidecar **ret,
		struct cairn_err *err)
{
	char dir[4096];
	int r;

	if (sidecar_is_named(cairn_binary_path(bin)))
		return open_named(bin, cairn_binary_path(bin), false, ret, err);
	search->cache_dir = sidecar_cache_for(wish, dir, sizeof(dir));
	r = cairn_sidecar_for(bin, search, ret, err);
	search->cache_dir = NULL;
	tell_note(search->note);
	return r == -ENOENT ? download(bin, wish, ret, err) : r;
}

/* One that the search allows to be made. */
static int make(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_search search = {
		.size = sizeof(search), .threads = wish->jobs, .may_make = true};
	struct sidecar_wish only_make = *wish;

	only_make.no_cache |= cache_is("read");
	return find(bin, &only_make, &search, ret, err);
}

struct cairn_sidecar *sidecar_another(const struct cairn_binary *bin,
				      const struct sidecar_wish *wish,
				      const struct cairn_sidecar *sidecar)
{
	struct cairn_sidecar_search search = {
		.size = sizeof(search), .threads = wish->jobs, .may_make = true, .anew = true};
	struct cairn_err err = {0};
	struct cairn_sidecar *made = NULL;
	char dir[4096];

	sidecar_trouble(sidecar);
	if (!bin || wish->file || sidecar_is_named(cairn_binary_path(bin)) ||
	    !cairn_binary_has_dwarf(bin))
		return NULL;
	search.cache_dir = cache_is("read") ? NULL : sidecar_cache_for(wish, dir, sizeof(dir));
	if (cairn_sidecar_for(bin, &search, &made, &err) < 0)
		fail_err(-EBADMSG, &err, STATUS_NO);
	return made;
}

static int tell(int r, const struct cairn_binary *bin, const struct cairn_sidecar *sidecar,
		const struct cairn_err *err)
{
	if (r < 0)
		return fail_err(r, err, STATUS_USAGE);
	if (sidecar)
		return STATUS_YES;
	return fail_lines(STATUS_NOT_HERE, cairn_binary_search_log(bin),
			  "%s has neither debug information nor symbols\n", cairn_binary_path(bin));
}

int sidecar_make(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		 struct cairn_sidecar **ret)
{
	struct cairn_err err = {0};
	int r;

	*ret = NULL;
	r = make(bin, wish, ret, &err);
	return tell(r, bin, *ret, &err);
}

static int find_or_make(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_search search = {.size = sizeof(search), .threads = wish->jobs};
	int r;

	*ret = NULL;
	r = wish->file ? open_named(bin, wish->file, false, ret, err)
		       : find(bin, wish, &search, ret, err);
	if (!r && !*ret)
		r = make(bin, wish, ret, err);
	if (!r)
		sidecar_say_unbound(*ret);
	return r;
}

int sidecar_for(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		struct cairn_sidecar **ret)
{
	struct cairn_err err = {0};
	int r = find_or_make(bin, wish, ret, &err);

	return tell(r, bin, *ret, &err);
}

int sidecar_if_any(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		   struct cairn_sidecar **ret)
{
	struct cairn_err err = {0};
	int r = find_or_make(bin, wish, ret, &err);

	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* ---- sites ---- */

static bool has_build_id(const char *file, const struct cairn_binary *bin)
{
	struct cairn_sidecar_opts opts = {.size = sizeof(opts)};
	struct cairn_sidecar *sidecar = NULL;
	bool has;

	opts.build_id = cairn_binary_build_id(bin, &opts.build_id_len);
	has = !cairn_sidecar_open(file, &opts, &sidecar, NULL);
	cairn_sidecar_close(sidecar);
	return has;
}

static int find_wanted(const struct sidecar_wish *w, const struct cairn_binary *bin,
		       struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_search search = {.size = sizeof(search), .sites = !w->lines};

	*ret = NULL;
	if (w->none)
		return 0;
	if (w->file) {
		int r = open_named(bin, w->file, false, ret, err);

		if (r != -ESTALE || !w->many)
			return r;
		/* With another build-id it belongs to another binary. */
		if (has_build_id(w->file, bin))
			fail_told(STATUS_YES, err);
	}
	return find(bin, w, &search, ret, err);
}

int sidecar_find(void *wish, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		 struct cairn_err *err)
{
	int r = find_wanted(wish, bin, ret, err);

	if (!r)
		sidecar_say_unbound(*ret);
	return r;
}

int sidecar_btf_sites(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		      struct cairn_sites **ret, struct cairn_err *err)
{
	struct cairn_btf_sites_opts opts = {
		.size = sizeof(opts),
		.file = wish->btf && wish->btf[0] ? wish->btf : NULL,
		.bases = wish->btf_bases.items,
		.n_bases = wish->btf_bases.n,
		.sysfs = getenv("CAIRN_SYSFS_BTF"),
	};

	return cairn_btf_sites_open(bin, &opts, ret, err);
}

/* A damaged blob is reported, a missing one is not: then the search for debug information is. */
static int open_without_sidecar(const struct cairn_binary *bin, const struct sidecar_wish *wish,
				const struct cairn_sites_opts *opts, struct cairn_sites **ret,
				struct cairn_err *err)
{
	int r;

	if (cairn_binary_has_dwarf(bin) || wish->none)
		return cairn_sites_open(bin, opts, ret, err);
	r = sidecar_btf_sites(bin, wish, ret, err);
	return r == -ENODATA ? cairn_sites_open(bin, opts, ret, err) : r;
}

int sidecar_sites_open(const struct cairn_binary *bin, const struct sidecar_wish *wish,
		       const struct cairn_sites_opts *opts, struct sidecar_sites *ret)
{
	struct cairn_err err = {0};
	int r = 0;

	*ret = (struct sidecar_sites){0};
	if (wish->btf) {
		r = sidecar_btf_sites(bin, wish, &ret->sites, &err);
		return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
	}
	/* A sidecar has the facts without that assumption. */
	if (!opts->assume_unmodified)
		r = sidecar_find((void *)wish, bin, &ret->sidecar, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	r = ret->sidecar ? cairn_sidecar_sites(ret->sidecar, bin, &ret->sites, &err)
			 : open_without_sidecar(bin, wish, opts, &ret->sites, &err);
	if (r >= 0)
		return STATUS_YES;
	sidecar_sites_close(ret);
	return fail_err(r, &err, STATUS_NOT_HERE);
}

/* All queries, tried once before anything is printed. */
static int try_all(const struct sidecar_sites *source, char *const *names, size_t n,
		   struct cairn_err *err)
{
	struct cairn_function_list list;
	int r = n ? 0 : cairn_sidecar_compare(source->sidecar, err);

	for (size_t i = 0; i < n && r >= 0; i++)
		r = cairn_sites_is_pattern(names[i])
			    ? cairn_sidecar_compare(source->sidecar, err)
			    : cairn_sites_find(source->sites, names[i], &list, err);
	/* Other errors are reported at the second query. */
	return cairn_sidecar_trouble(source->sidecar, err);
}

int sidecar_sites_settle(const struct cairn_binary *bin, const struct sidecar_wish *wish,
			 const struct cairn_sites_opts *opts, char *const *names, size_t n,
			 struct sidecar_sites *source)
{
	struct sidecar_wish none = *wish;
	struct cairn_err err = {0};
	int r = source->sidecar ? try_all(source, names, n, &err) : 0;

	if (r >= 0)
		return STATUS_YES;
	sidecar_sites_close(source);
	*source = (struct sidecar_sites){0};
	if (wish->file || sidecar_is_named(cairn_binary_path(bin)) || !cairn_binary_has_dwarf(bin))
		return fail_err(r, &err, STATUS_NO);
	fail_told(STATUS_YES, &err);
	none.none = true;
	return sidecar_sites_open(bin, &none, opts, source);
}

void sidecar_sites_close(struct sidecar_sites *source)
{
	cairn_sites_close(source->sites);
	cairn_sidecar_close(source->sidecar);
}

/* ---- keeping ---- */

void sidecar_keep(const struct cairn_binary *bin, const struct sidecar_wish *wish)
{
	char dir[4096];
	size_t len;

	cairn_binary_build_id(bin, &len);
	if (!len || wish->none || cache_is("read") || !sidecar_cache_for(wish, dir, sizeof(dir)))
		return;
	keep_in_background(cairn_binary_path(bin), wish->debug_dirs.items, wish->debug_dirs.n);
}
