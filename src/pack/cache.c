/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of sidecars
 *
 * A file's modification time is when it was used last; the oldest go first. Files are written whole and renamed into
 * place, and a reader that has one mapped keeps it when it is removed: no lock is needed between processes.
 */
#include "pack/cache.h"

#include <cairn/file.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/vec.h"
#include "pack/trust.h"

#define SUFFIX ".cairn"

char *cache_path(const char *dir, const uint8_t *build_id, size_t len)
{
	size_t n = strlen(dir);
	char *path = malloc(n + 1 + 2 * len + sizeof(SUFFIX));
	if (!path)
		return NULL;
	char *to = path + sprintf(path, "%s/", dir);
	for (size_t i = 0; i < len; i++)
		to += sprintf(to, "%02x", build_id[i]);
	strcpy(to, SUFFIX);
	return path;
}

void cache_touch(const char *path)
{
	/* Somebody else's file, or a read-only system: it is pruned earlier, no more. */
	(void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- pruning ---- */

struct cached {
	char name[256];
	struct timespec used;
	uint64_t size;
};

static int latest_first(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;
	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec > y->used.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_sidecar(const char *name)
{
	size_t n = strlen(name);
	return n > sizeof(SUFFIX) - 1 && !strcmp(name + n - (sizeof(SUFFIX) - 1), SUFFIX);
}

static int prune(int dir, DIR *listing, uint64_t max_bytes, struct cairn_pack_pruned *ret)
{
	VEC(struct cached) files = {0};
	bool ok = true;
	for (struct dirent *e; ok && (e = readdir(listing));) {
		struct stat st;
		if (!is_sidecar(e->d_name) || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		struct cached *c = VEC_PUSH(&files);
		ok = c;
		if (!ok)
			break;
		snprintf(c->name, sizeof(c->name), "%s", e->d_name);
		c->used = st.st_mtim;
		c->size = (uint64_t)st.st_size;
	}
	if (files.n)
		qsort(files.p, files.n, sizeof(*files.p), latest_first);
	for (size_t i = 0; ok && i < files.n; i++) {
		const struct cached *c = &files.p[i];
		bool keep = ret->kept_bytes + c->size <= max_bytes || unlinkat(dir, c->name, 0) < 0;
		*(keep ? &ret->n_kept : &ret->n_removed) += 1;
		*(keep ? &ret->kept_bytes : &ret->removed_bytes) += c->size;
	}
	VEC_FREE(&files);
	return ok ? 0 : -ENOMEM;
}

int cairn_pack_prune(const char *cache_dir, uint64_t max_bytes, struct cairn_pack_pruned *ret,
		     struct cairn_err *err)
{
	*ret = (struct cairn_pack_pruned){0};
	DIR *listing = opendir(cache_dir);
	if (!listing && errno == ENOENT)
		return 0;
	if (!listing)
		return err_set(err, -errno, "%s: %m", cache_dir);
	int rc = prune(dirfd(listing), listing, max_bytes, ret);
	closedir(listing);
	return rc < 0 ? err_nomem(err, "the files of the cache") : 0;
}

/* ---- keeping ---- */

/* mkdir -p, for the owner alone. */
static int make_directory(const char *dir, struct cairn_err *err)
{
	SCOPE_FREE char *path = strdup(dir);
	if (!path)
		return err_nomem(err, "a path");
	for (char *p = path + 1;; p++) {
		if (*p && *p != '/')
			continue;
		char keep = *p;
		*p = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_set(err, -errno, "%s: %m", path);
		*p = keep;
		if (!keep)
			return 0;
	}
}

int cache_keep(const char *dir, const char *path, const void *bytes, size_t size, uint64_t max_bytes,
	       struct cairn_err *err)
{
	struct cairn_pack_pruned pruned;
	int rc = make_directory(dir, err);
	if (rc >= 0 && !geteuid()) {
		SCOPE_CLOSE int fd = trusted_open(dir, err);
		rc = fd < 0 ? fd : 0;
	}
	if (rc >= 0)
		rc = cairn_file_write(path, bytes, size, err);
	return rc < 0 ? rc : cairn_pack_prune(dir, max_bytes ? max_bytes : CAIRN_PACK_CACHE_BYTES, &pruned, err);
}
