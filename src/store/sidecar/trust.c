/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening a file found in a cache
 *
 * A sidecar decides which bytes of which process are read. If root takes one from a directory where
 * another user could have put it, that user decides. So the path is walked from / component by
 * component. Each component is opened below the previous one without following symbolic links, and
 * is checked through its descriptor: the checked file is the one that is used, whatever is renamed
 * meanwhile.
 *
 *     /            root, 0755                      good
 *     /tmp         root, 1777                      good: sticky, others can replace only their own
 *                                                  files
 *     /tmp/x       uid 1000, 0755, caller is root  refused: its owner could replace the files in it
 *     /home/a/.cache/cairn, caller is a             good as long as a and root alone can write
 *
 * A symbolic link is refused: its target would have to be walked in the same way, and caches have
 * none. If a path is reached through one (/var/run), the caller that names the directory resolves
 * it first.
 */
#include "sidecar/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

/* NULL when the file or directory is good, else why not. */
static const char *objection(const struct stat *st)
{
	bool others_write = st->st_mode & (S_IWGRP | S_IWOTH);
	if (st->st_uid && st->st_uid != geteuid())
		return "belongs to another user";
	if (others_write && !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return "can be written by other users";
	return NULL;
}

static int check(int fd, const char *path, size_t len, struct cairn_err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "%.*s: %m", (int)len, path);
	const char *why = objection(&st);
	return why ? err_set(err, -EPERM, "%s: not trusted: %.*s %s", path, (int)(len ? len : 1),
			     len ? path : "/", why)
		   : 0;
}

/* Opens component [@from, @to) of @path below @dir. */
static int step(int dir, const char *path, size_t from, size_t to, bool make, struct cairn_err *err)
{
	char name[NAME_MAX + 1];
	bool last = path[to] == 0;
	if (to - from > NAME_MAX)
		return err_set(err, -ENAMETOOLONG, "%s: a component is longer than %d bytes", path,
			       NAME_MAX);
	memcpy(name, path + from, to - from);
	name[to - from] = 0;
	if (make && mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %m", path);
	int fd = openat(dir, name,
			(last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY) | O_NOFOLLOW |
				O_CLOEXEC);
	if (fd >= 0)
		return fd;
	struct stat st;
	int code = -errno;
	if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
		return err_set(err, -EPERM, "%s: not trusted: %.*s is a symbolic link", path,
			       (int)to, path);
	return err_set(err, code, "%s: %s", path, strerror(-code));
}

static int walk(const char *path, bool make, struct cairn_err *err)
{
	SCOPE_CLOSE int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, -errno, "/: %m");
	int rc = check(dir, path, 0, err);
	for (size_t from = 1; rc >= 0;) {
		size_t to = from + strcspn(path + from, "/");
		int fd = step(dir, path, from, to, make, err);
		if (fd < 0)
			return fd;
		close(dir);
		dir = fd;
		rc = check(fd, path, to, err);
		if (rc < 0)
			break;
		if (!path[to]) {
			dir = -1;
			return fd;
		}
		from = to + strspn(path + to, "/");
	}
	return rc;
}

/* An absolute path without "." and "..", symbolic links left in: walk() refuses those. */
static bool is_plain(const char *path)
{
	return path[0] == '/' && !strstr(path, "/../") && !strstr(path, "/./");
}

static int open_plain(const char *path, bool make, struct cairn_err *err)
{
	if (is_plain(path))
		return walk(path, make, err);
	SCOPE_FREE char *dir = getcwd(NULL, 0), *whole = NULL;
	if (!dir || path[0] == '/' || strstr(path, "../"))
		return err_set(err, -EPERM,
			       "%s: not trusted: expected an absolute path without \"..\"", path);
	if (asprintf(&whole, "%s/%s", dir, path) < 0) {
		whole = NULL;
		return err_nomem(err, "a path");
	}
	return walk(whole, make, err);
}

int trusted_open(const char *path, struct cairn_err *err)
{
	return open_plain(path, false, err);
}

int trusted_make(const char *path, struct cairn_err *err)
{
	return open_plain(path, true, err);
}

/* ---- the sources of a sidecar ---- */

/*
 * The file that was opened is looked at again by its path, which must not lead to another one by
 * now.
 */
static int check_again(const char *path, const struct elf_origin *origin, struct cairn_err *err)
{
	SCOPE_FREE char *real = realpath(path, NULL);
	struct stat st;
	if (!real && errno == ENOMEM)
		return err_nomem(err, "a path");
	if (!real)
		return err_set(err, -EPERM, "%s: not trusted: %m", path);
	SCOPE_CLOSE int fd = trusted_open(real, err);
	if (fd < 0)
		return fd == -ENOMEM ? fd : -EPERM;
	if (fstat(fd, &st) < 0 || st.st_dev != origin->dev || st.st_ino != origin->ino)
		return err_set(err, -EPERM, "%s: not trusted: %s is another file by now", path,
			       real);
	return 0;
}

static int check_origin(void *ctx, const char *path, const struct elf_origin *origin)
{
	struct cairn_err *err = ctx;
	if (!origin->is_file)
		return 0;
	if (origin->owner && origin->owner != geteuid())
		return err_set(err, -EPERM, "%s: not trusted: it belongs to another user", path);
	return geteuid() ? 0 : check_again(path, origin, err);
}

int trusted_source(const struct cairn_binary *bin, struct cairn_err *err)
{
	return binary_visit_origins(bin, check_origin, err);
}
