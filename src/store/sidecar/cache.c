/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of sidecars
 *
 * A file's modification time is its last use; the oldest files go first. Files are written whole
 * and renamed, and a reader that has mapped one keeps it when it is removed: no reader needs a
 * lock. Makers take turns by a lock on the directory itself. So there is no lock file to leave
 * over, and a killed maker's lock ends with it.
 */
#include "sidecar/cache.h"

#include <cairn/file.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/vec.h"
#include "sidecar/trust.h"

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

char *cairn_sidecar_cached_path(const char *cache_dir, const uint8_t *build_id, size_t len)
{
	return cache_path(cache_dir, build_id, len);
}

void cache_touch(const char *path)
{
	/* The file of another user, or a read-only system: it is only pruned earlier. */
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

#define ATTEMPT   ".attempt"
#define TEMPORARY ".tmp"

/* Older than any that is still being written, and longer ago than an attempt matters. */
enum { LEFTOVER_SECONDS = 3600 };

static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);
	return n > m && !strcmp(name + n - m, suffix);
}

/* The files that a killed maker leaves: ".0123abcd.cairn.4711-0.tmp", "0123abcd.cairn.attempt". */
static bool is_leftover(const char *name, const struct stat *st)
{
	bool ours = ends_in(name, SUFFIX ATTEMPT) ||
		    (name[0] == '.' && strstr(name, SUFFIX ".") && ends_in(name, TEMPORARY));
	return ours && st->st_mtim.tv_sec + LEFTOVER_SECONDS < time(NULL);
}

static int prune(int dir, DIR *listing, uint64_t max_bytes, struct cairn_sidecar_pruned *ret)
{
	VEC(struct cached) files = {0};
	bool ok = true;
	for (struct dirent *e; ok && (e = readdir(listing));) {
		struct stat st;
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (is_leftover(e->d_name, &st))
			(void)unlinkat(dir, e->d_name, 0);
		if (!ends_in(e->d_name, SUFFIX))
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

/* As root only a directory that no other user can write. */
static int open_dir(const char *path, struct cairn_err *err)
{
	if (!geteuid())
		return trusted_open(path, err);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_set(err, -errno, "%s: %m", path) : fd;
}

int cairn_sidecar_prune(const char *cache_dir, uint64_t max_bytes, struct cairn_sidecar_pruned *ret,
			struct cairn_err *err)
{
	*ret = (struct cairn_sidecar_pruned){0};
	int dir = open_dir(cache_dir, err);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	DIR *listing = fdopendir(dir);
	if (!listing) {
		close(dir);
		return err_nomem(err, "a directory");
	}
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

/* A descriptor of the cache's directory, which is made when it is missing. */
static int prepare(const char *dir, struct cairn_err *err)
{
	if (!geteuid())
		return trusted_make(dir, err);
	int rc = make_directory(dir, err);
	return rc < 0 ? rc : open_dir(dir, err);
}

int cache_lock(const char *dir, struct cairn_err *err)
{
	int fd = prepare(dir, err);
	if (fd < 0)
		return fd;
	/* On a file system without locks, the worst result is that the same work is done twice. */
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	return fd;
}

/* ---- attempts ---- */

/* Debug information that cannot be read, or too little memory, will still be so in a moment. */
enum { RETRY_SECONDS = 600 };

int cache_attempt(const char *path, bool again)
{
	SCOPE_FREE char *mark = NULL;
	struct stat st;
	if (asprintf(&mark, "%s" ATTEMPT, path) < 0) {
		mark = NULL;
		return -ENOMEM;
	}
	if (!again && !lstat(mark, &st) && st.st_mtim.tv_sec + RETRY_SECONDS > time(NULL))
		return -EAGAIN;
	(void)unlink(mark);
	SCOPE_CLOSE int fd = open(mark, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : 0;
}

void cache_attempt_done(const char *path)
{
	SCOPE_FREE char *mark = NULL;
	if (asprintf(&mark, "%s" ATTEMPT, path) < 0)
		mark = NULL;
	else
		(void)unlink(mark);
}

int cache_keep(const char *dir, const char *path, const void *bytes, size_t size,
	       uint64_t max_bytes, struct cairn_err *err)
{
	struct cairn_sidecar_pruned pruned;
	SCOPE_CLOSE int fd = prepare(dir, err);
	int rc = fd < 0 ? fd : cairn_file_write(path, bytes, size, err);
	return rc < 0 ? rc
		      : cairn_sidecar_prune(dir, max_bytes ? max_bytes : CAIRN_SIDECAR_CACHE_BYTES,
					    &pruned, err);
}
