/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/scope.h"

/* As the kernel's. */
enum { LINKS_MAX = 40 };

struct walk {
	const char *shown;
	int dir;
	char *rest; /* the rest of the path */
	unsigned int n_links;
	/* a link in /proc that is last is a name: its target may have no path */
	bool keeps_proc;
	struct cairn_err *err;
};

static int failed(const struct walk *w)
{
	int code = -errno;

	return err_set(w->err, code, "%s: cannot make a new file beside it: %s", w->shown,
		       strerror(-code));
}

/* From here on @path is walked, from the root when it is absolute. */
static int walk_on(struct walk *w, char *path)
{
	int dir = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : w->dir;

	free(w->rest);
	w->rest = path;
	if (dir < 0)
		return failed(w);
	if (dir != w->dir) {
		close(w->dir);
		w->dir = dir;
	}
	return 0;
}

/*
 * Root trusts no other user. Others trust the owner of the directory, but not all users that may
 * write to it: the rule of fs.protected_symlinks.
 */
static bool is_planted(const struct walk *w, const struct stat *st)
{
	struct stat dir;

	if (!geteuid() || !st->st_uid || st->st_uid == geteuid())
		return !geteuid() && st->st_uid;
	return fstat(w->dir, &dir) ||
	       ((dir.st_mode & S_ISVTX) && (dir.st_mode & S_IWOTH) && dir.st_uid != st->st_uid);
}

/*
 * Puts the target of link @name in the directory, whose owner is known, before the rest of the
 * path.
 */
static int follow(struct walk *w, const char *name, const struct stat *st, const char *left)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(w->dir, name, to, sizeof(to) - 1);
	char *path;

	if (n < 0)
		return failed(w);
	to[n] = 0;
	if (is_planted(w, st))
		return err_set(
			w->err, -EPERM,
			"%s: not written: %s is a symbolic link of another user (uid %u), to %s",
			w->shown, name, (unsigned int)st->st_uid, to);
	if (w->n_links++ == LINKS_MAX)
		return err_set(w->err, -ELOOP, "%s: more than %d symbolic links", w->shown,
			       LINKS_MAX);
	if (asprintf(&path, "%s%s%s", to, *left ? "/" : "", left) < 0)
		return err_nomem(w->err, "a path");
	return walk_on(w, path);
}

static int enter(struct walk *w, const char *name, const char *left)
{
	int next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (next < 0)
		return failed(w);
	if (fstat(next, &st) < 0 || S_ISLNK(st.st_mode)) {
		close(next);
		return follow(w, name, &st, left);
	}
	char *rest = strdup(left);
	if (!rest) {
		close(next);
		return err_nomem(w->err, "a path");
	}
	free(w->rest);
	w->rest = rest;
	close(w->dir);
	w->dir = next;
	return 0;
}

static bool is_in_proc(int dir)
{
	struct statfs fs;

	return !fstatfs(dir, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* 1: the last component is reached, in *@ret; 0: one was walked. */
static int step(struct walk *w, char **ret)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(from, "/");
	const char *left = from + n + strspn(from + n, "/");
	SCOPE_FREE char *name = strndup(from, n);
	struct stat st;

	if (!name)
		return err_nomem(w->err, "a path");
	if (*left)
		return enter(w, name, left);
	bool is_link = n && !fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode);
	if (is_link && !(w->keeps_proc && is_in_proc(w->dir)))
		return follow(w, name, &st, left);
	*ret = strdup(n ? name : ".");
	return *ret ? 1 : err_nomem(w->err, "a path");
}

static int open_walked(struct walk *w, const char *path, char **ret_name)
{
	char *all = strdup(path);
	int rc;

	*ret_name = NULL;
	w->dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!all)
		rc = err_nomem(w->err, "a path");
	else
		rc = w->dir < 0 ? failed(w) : walk_on(w, all);
	while (!rc)
		rc = step(w, ret_name);
	free(w->rest);
	if (rc == 1)
		return w->dir;
	if (w->dir >= 0)
		close(w->dir);
	return rc;
}

int own_path_open(const char *path, char **ret_name, struct cairn_err *err)
{
	struct walk w = {.shown = path, .err = err};

	return open_walked(&w, path, ret_name);
}

/* A pipe that another user made is his ear. One without a name was handed to us. */
static int check_pipe(const struct walk *w, const char *name)
{
	struct stat st;

	if (fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISFIFO(st.st_mode) ||
	    !is_planted(w, &st))
		return 0;
	return err_set(w->err, -EPERM, "%s: not written: it is a pipe of another user (uid %u)",
		       w->shown, (unsigned int)st.st_uid);
}

int own_path_open_special(const char *path, struct cairn_err *err)
{
	struct walk w = {.shown = path, .keeps_proc = true, .err = err};
	SCOPE_FREE char *name = NULL;
	SCOPE_CLOSE int dir = open_walked(&w, path, &name);

	if (dir < 0)
		return dir;
	bool is_in = is_in_proc(dir);
	int rc = check_pipe(&w, name);
	int fd = rc ? rc
		    : openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOCTTY | (is_in ? 0 : O_NOFOLLOW));
	return rc || fd >= 0 ? fd
			     : err_set(err, -errno, "%s: cannot open it for writing: %s", path,
				       strerror(errno));
}
