/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding the sidecar of a binary: beside it, in the cache, or by making it. */
#include <cairn/sidecar.h>
#include <cairn/text.h>

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/inputs.h"
#include "base/opts.h"
#include "base/scope.h"
#include "elf/guard.h"
#include "sidecar/cache.h"
#include "sidecar/names_memo.h"
#include "sidecar/sidecar_impl.h"
#include "sidecar/trust.h"
#include "sidecar_maker.h"

/* One line of safe text more. */
__attribute__((format(printf, 2, 3))) static void note(struct cairn_sidecar_search *s,
						       const char *fmt, ...)
{
	char line[sizeof(s->note)];
	size_t n = strlen(s->note);
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (n && n + 1 < sizeof(s->note))
		s->note[n++] = '\n';
	cairn_quote(line, CAIRN_QUOTE_TEXT, s->note + n, sizeof(s->note) - n);
}

/* The lines after the first line of a message were reported when they arose. */
static int first_line(const struct cairn_err *err)
{
	return (int)strcspn(err->msg, "\n");
}

/* The request. */
struct wanted {
	const struct cairn_binary *bin;
	const uint8_t *id;
	size_t id_len;
	bool has_code; /* else the binary is a debug file, which nothing can be compared with */
};

/* A program has the same names as what objcopy --only-keep-debug made of it. */
static bool has_names(const struct cairn_sidecar *sidecar, uint32_t names)
{
	return names == sidecar->binding->names || names == sidecar->header->debug_names;
}

/*
 * A cached one is found by the build-id, and compared with code. A file of the same code may have
 * other names: it gets its own sidecar, or its user a note. A stripped file has none of its own,
 * and takes those of its debug file if that was looked for.
 */
static bool has_names_of(struct cairn_sidecar_search *s, const struct wanted *w,
			 const struct cairn_sidecar *sidecar)
{
	const char *path = cairn_sidecar_path(sidecar);
	const struct elf *debug = binary_separate_debug(w->bin);
	uint32_t own = names_print(binary_main(w->bin), path, NAMES_OF_BINARY);
	if (debug && !has_names(sidecar, names_print(debug, path, NAMES_OF_DEBUG_FILE)))
		return false;
	if (!own || has_names(sidecar, own))
		return true;
	if (cairn_binary_has_dwarf(w->bin))
		return false;
	note(s, "%s: made of a file that has other symbols or debug information than %s", path,
	     cairn_binary_path(w->bin));
	return true;
}

/* True if it is as good as one that could be made instead. */
static bool suffices(struct cairn_sidecar_search *s, const struct wanted *w,
		     const struct cairn_sidecar *sidecar, bool in_cache)
{
	if (s->sites && !cairn_sidecar_has_sites(sidecar))
		return false;
	/* Made of symbols, before the debug information was there. */
	if (!sidecar->header->n_frames && cairn_binary_has_dwarf(w->bin))
		return false;
	/* The user who wrote one beside the binary chose its maker. */
	if (in_cache && sidecar->header->maker != SIDECAR_MAKER && cairn_binary_has_dwarf(w->bin))
		return false;
	if (in_cache && !has_names_of(s, w, sidecar))
		return false;
	/*
	 * The sidecar was made of a debug file alone, and the code that it could not be compared
	 * with is here.
	 */
	if (!cairn_sidecar_is_bound(sidecar) && w->has_code && cairn_binary_has_dwarf(w->bin))
		return false;
	if (cairn_sidecar_is_current(sidecar))
		return true;
	if (cairn_binary_has_dwarf(w->bin))
		return false;
	note(s,
	     "%s: made by an older version of cairn, whose analysis may differ; there is no debug "
	     "information to make it anew",
	     cairn_sidecar_path(sidecar));
	return true;
}

/* A file of the cache could not be opened, as the whole cache cannot be read. */
static bool is_closed(const struct cairn_sidecar_search *s, int rc)
{
	return rc == -EACCES && s->cache_dir && access(s->cache_dir, R_OK | X_OK) < 0;
}

/* Returns 0; anything else is no sidecar, and noted unless there is no file. */
static int try_open(struct cairn_sidecar_search *s, const char *path, const struct wanted *w,
		    bool in_cache, struct cairn_sidecar **ret)
{
	struct cairn_sidecar_opts opts = {
		.size = sizeof(opts),
		.binary = w->bin,
		.must_be_trusted = !geteuid(),
	};
	struct cairn_err err = {0};
	struct cairn_sidecar *sidecar;
	int rc = cairn_sidecar_open(path, &opts, &sidecar, &err);
	if (!rc && !suffices(s, w, sidecar, in_cache)) {
		cairn_sidecar_close(sidecar);
		return -ENOENT;
	}
	if (!rc)
		*ret = sidecar;
	/*
	 * After an upgrade every cached one is of another version; it is made anew, without a
	 * message.
	 */
	bool outdated = rc == -EOPNOTSUPP && in_cache && cairn_binary_has_dwarf(w->bin);
	/* All files of such a cache have one note, so a caller can show it once. */
	if (in_cache && is_closed(s, rc))
		note(s,
		     "%s: Permission denied: sidecars are neither taken from this cache nor "
		     "kept in it",
		     s->cache_dir);
	else if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR && !outdated)
		note(s, "%.*s", first_line(&err), err.msg);
	return rc;
}

/*
 * PATH.cairn, with the links on the way to PATH resolved; the resolved path is then walked without
 * following links.
 */
static int try_beside(struct cairn_sidecar_search *s, const struct wanted *w,
		      struct cairn_sidecar **ret)
{
	SCOPE_FREE char *real = realpath(cairn_binary_path(w->bin), NULL), *path = NULL;
	struct stat st;
	if (!real)
		return -ENOENT;
	if (asprintf(&path, "%s.cairn", real) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* Usually the file does not exist, and then its possible writers do not matter. */
	if (lstat(path, &st) < 0 && errno == ENOENT)
		return -ENOENT;
	return try_open(s, path, w, false, ret);
}

/*
 * All files that the sidecar is made of are known when it is made: then it is decided whether it
 * may be kept.
 */
static int keep(const struct cairn_binary *bin, const struct cairn_sidecar_search *s,
		const char *cached, const struct cairn_sidecar_image *image, struct cairn_err *err)
{
	int rc = trusted_source(bin, err);
	/* The stored sidecar could not show the next caller that something is missing. */
	if (rc >= 0 && image->n_missing)
		return err_lines(err, -ENODATA, image->missing,
				 "%s: %zu .dwo file%s of split debug information not found",
				 cairn_binary_path(bin), image->n_missing,
				 image->n_missing == 1 ? "" : "s");
	return rc < 0 ? rc
		      : cache_keep(s->cache_dir, cached, image->bytes, image->size, s->cache_bytes,
				   err);
}

static int make_and_keep(const struct cairn_binary *bin, struct cairn_sidecar_search *s,
			 const char *cached, struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_make_opts opts = {
		.size = sizeof(opts), .threads = s->threads, .sites = s->sites};
	struct cairn_sidecar_image image;
	struct cairn_err unkept = {0};
	int rc = cairn_sidecar_make(bin, &opts, &image, err);
	if (rc < 0)
		return rc == -ENODATA ? -ENOENT : rc;
	if (image.n_left_out)
		note(s, "%s: %u damaged unit%s left out: %.*s", cairn_binary_path(bin),
		     image.n_left_out, image.n_left_out == 1 ? "" : "s",
		     first_line(&image.left_out_why), image.left_out_why.msg);
	/* The next caller gets the message, too. */
	else if (cached && keep(bin, s, cached, &image, &unkept) < 0)
		note(s, "not kept in the cache: %.*s", first_line(&unkept), unkept.msg);
	rc = cairn_sidecar_open_image(&image, cairn_binary_path(bin), ret, err);
	cairn_sidecar_image_free(&image);
	return rc;
}

static struct wanted wanted_of(const struct cairn_binary *bin)
{
	struct wanted w = {.bin = bin};
	const struct elf_load *l;
	size_t n = elf_loads(binary_main(bin), &l);
	w.id = cairn_binary_build_id(bin, &w.id_len);
	for (size_t i = 0; i < n; i++)
		w.has_code |= l[i].flags & PF_X && l[i].n_bytes;
	return w;
}

static int search_for(const struct cairn_binary *bin, struct cairn_sidecar_search *s,
		      struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct wanted w = wanted_of(bin);
	SCOPE_FREE char *cached = NULL;
	if (w.id_len && !s->anew && !try_beside(s, &w, ret))
		return 0;
	/*
	 * With a debug file alone, nothing shows whether the cached sidecar was made of another
	 * debug file with the same build-id.
	 */
	if (w.id_len && s->cache_dir && w.has_code) {
		cached = cache_path(s->cache_dir, w.id, w.id_len);
		if (!cached)
			return err_nomem(err, "a path");
		int rc = s->anew ? -ENOENT : try_open(s, cached, &w, true, ret);
		if (!rc) {
			cache_touch(cached);
			return 0;
		}
		/* It was noted, and keeping one would fail for the same reason. */
		if (is_closed(s, rc)) {
			free(cached);
			cached = NULL;
		}
	}
	if (!s->may_make)
		return err_set(err, -ENOENT, "%s: no sidecar", cairn_binary_path(bin));
	return make_and_keep(bin, s, cached, ret, err);
}

static int check_size(const struct cairn_sidecar_search *search, struct cairn_err *err)
{
	if (opts_tail_is_zero(search, sizeof(*search)))
		return 0;
	return err_set(err, -EINVAL,
		       "struct cairn_sidecar_search: more is set than the %zu known bytes",
		       sizeof(*search));
}

int cairn_sidecar_for(const struct cairn_binary *bin, struct cairn_sidecar_search *search,
		      struct cairn_sidecar **ret, struct cairn_err *err)
{
	int rc = check_size(search, err);
	if (rc < 0)
		return rc;
	search->note[0] = 0;
	return search_for(bin, search, ret, err);
}

/* ---- keeping ---- */

/* In the cache, and good. */
static bool is_kept(const char *cached, const struct wanted *w, bool with_args)
{
	struct cairn_sidecar_search s = {.size = sizeof(s), .sites = true};
	struct cairn_sidecar *sidecar = NULL;
	bool kept = !try_open(&s, cached, w, true, &sidecar) &&
		    !cairn_sidecar_compare(sidecar, NULL) &&
		    !guard_check_all(sidecar->guard, cached, NULL) &&
		    (!with_args || cairn_sidecar_has_args(sidecar));
	cairn_sidecar_close(sidecar);
	return kept;
}

int cairn_sidecar_keep(const struct cairn_binary *bin, const struct cairn_sidecar_search *search,
		       struct cairn_sidecar_image *ret, struct cairn_err *err)
{
	struct cairn_sidecar_make_opts opts = {.size = sizeof(opts),
					       .threads = search->threads,
					       .sites = true,
					       .args = search->args};
	struct wanted w = wanted_of(bin);
	*ret = (struct cairn_sidecar_image){0};
	int rc = check_size(search, err);
	if (rc < 0)
		return rc;
	if (!w.id_len || !search->cache_dir)
		return err_set(err, -EINVAL, "%s: nothing to keep it by: no %s",
			       cairn_binary_path(bin), w.id_len ? "cache" : "build-id");
	if (!w.has_code)
		return err_set(err, -EINVAL,
			       "%s has no code: its sidecar could be compared with nothing, and is "
			       "not kept; name the program",
			       cairn_binary_path(bin));
	if (!cairn_binary_has_dwarf(bin))
		return err_lines(err, -ENODATA, cairn_binary_search_log(bin),
				 "%s has no debug information", cairn_binary_path(bin));
	SCOPE_FREE char *cached = cache_path(search->cache_dir, w.id, w.id_len);
	if (!cached)
		return err_nomem(err, "a path");
	rc = trusted_source(bin, err);
	if (rc < 0)
		return rc;
	SCOPE_CLOSE int lock = cache_lock(search->cache_dir, err);
	if (lock < 0)
		return lock;
	if (is_kept(cached, &w, search->args))
		return 0;
	rc = cache_attempt(cached, !search->background);
	if (rc < 0)
		return err_set(err, rc, "%s: %s", cached,
			       rc == -EAGAIN ? "could not be made a short time ago"
					     : strerror(-rc));
	rc = cairn_sidecar_make(bin, &opts, ret, err);
	if (rc >= 0)
		rc = keep(bin, search, cached, ret, err);
	/*
	 * If the file is still being written, a caller may soon make the sidecar from the whole
	 * file.
	 */
	if (rc >= 0 || cairn_binary_shortened(bin))
		cache_attempt_done(cached);
	if (rc < 0)
		cairn_sidecar_image_free(ret);
	return rc < 0 ? rc : 1;
}

int cairn_sidecar_keep_copy(const struct cairn_sidecar *sidecar,
			    const struct cairn_sidecar_search *search, struct cairn_err *err)
{
	size_t id_len, size;
	const uint8_t *id = cairn_sidecar_build_id(sidecar, &id_len),
		      *bytes = elf_whole(sidecar->elf, &size);
	int rc = check_size(search, err);
	if (rc < 0)
		return rc;
	if (!id_len || !search->cache_dir)
		return err_set(err, -EINVAL, "%s: nothing to keep it by: no %s",
			       cairn_sidecar_path(sidecar), id_len ? "cache" : "build-id");
	rc = cairn_sidecar_check(sidecar, err);
	if (rc >= 0)
		rc = cairn_sidecar_compare(sidecar, err);
	if (rc >= 0)
		rc = input_check(cairn_sidecar_shortened(sidecar), err);
	if (rc < 0)
		return rc;
	SCOPE_FREE char *cached = cache_path(search->cache_dir, id, id_len);
	if (!cached)
		return err_nomem(err, "a path");
	SCOPE_CLOSE int lock = cache_lock(search->cache_dir, err);
	return lock < 0 ? lock
			: cache_keep(search->cache_dir, cached, bytes, size, search->cache_bytes,
				     err);
}
