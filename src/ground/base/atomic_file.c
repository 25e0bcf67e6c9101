/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>

#include "base/own_path.h"
#include "base/scope.h"

/*
 * Names tried for a temporary file; each is taken only when a killed process with our id left it.
 */
#define TMP_NAMES_MAX 1000

static int sys_err(struct cairn_err *err, const char *path, const char *what)
{
	int code = -errno;

	return err_set(err, code, "%s: cannot %s: %s", path, what, strerror(-code));
}

/* ".NAME.PID-N.tmp" */
static char *tmp_name(const char *name, unsigned int n)
{
	char *tmp;

	/* A name as long as the file system allows leaves no room for ours. */
	if (asprintf(&tmp, ".%.200s.%d-%u.tmp", name, (int)getpid(), n) < 0)
		return NULL;
	return tmp;
}

/*
 * A file without a name can be given one through /proc only; without it, it could never be
 * committed.
 */
static bool can_be_linked(int fd)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return !access(name, F_OK);
}

static int open_nameless(int dir, mode_t mode)
{
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	if (fd < 0 || can_be_linked(fd))
		return fd;
	close(fd);
	return -1;
}

static int open_named(struct atomic_file *f, mode_t mode)
{
	for (unsigned int n = 0; n < TMP_NAMES_MAX; n++) {
		f->tmp = tmp_name(f->name, n);
		if (!f->tmp)
			return -1;
		int fd = openat(f->dir, f->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		free(f->tmp);
		f->tmp = NULL;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* A terminal, a pipe, /dev/null. */
static int open_special(struct atomic_file *f, struct cairn_err *err)
{
	struct stat st;

	f->fd = own_path_open_special(f->shown, err);
	if (f->fd < 0)
		return f->fd;
	if (!fstat(f->fd, &st) && S_ISREG(st.st_mode))
		return err_set(err, -EAGAIN, "%s: became another file while it was opened",
			       f->shown);
	return 0;
}

/* The file that would be opened as @path is: a new one, a regular one, or neither. */
static int open_target(struct atomic_file *f, mode_t mode, struct cairn_err *err)
{
	struct stat st;

	if (!stat(f->shown, &st) && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "%s: is a directory", f->shown);
	if (!stat(f->shown, &st) && !S_ISREG(st.st_mode))
		return open_special(f, err);
	f->dir = own_path_open(f->shown, &f->name, err);
	if (f->dir < 0)
		return f->dir;
	bool exists = !fstatat(f->dir, f->name, &st, AT_SYMLINK_NOFOLLOW);
	if (exists && !S_ISREG(st.st_mode))
		return err_set(err, -EAGAIN, "%s: became another file while it was opened",
			       f->shown);
	f->fd = open_nameless(f->dir, mode);
	if (f->fd < 0)
		f->fd = open_named(f, mode);
	if (f->fd < 0)
		return sys_err(err, f->shown, "make a new file beside it");
	if (exists && fchmod(f->fd, st.st_mode & 0777))
		return sys_err(err, f->shown, "keep its permissions");
	return 0;
}

int atomic_file_open(struct atomic_file *f, const char *path, mode_t mode, struct cairn_err *err)
{
	*f = (struct atomic_file){.fd = -1, .dir = -1, .shown = path};
	int r = open_target(f, mode, err);

	if (r < 0)
		atomic_file_abort(f);
	return r;
}

int atomic_file_write(struct atomic_file *f, const void *bytes, size_t size, struct cairn_err *err)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(f->fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sys_err(err, f->shown, "write it");
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/*
 * linkat() does not replace, so that the file gets a temporary name first; then all is as if it
 * always had one.
 */
static int give_tmp_name(struct atomic_file *f)
{
	char fd_name[32];

	snprintf(fd_name, sizeof(fd_name), "/proc/self/fd/%d", f->fd);
	for (unsigned int n = 0; n < TMP_NAMES_MAX; n++) {
		f->tmp = tmp_name(f->name, n);
		if (!f->tmp)
			return -1;
		if (!linkat(AT_FDCWD, fd_name, f->dir, f->tmp, AT_SYMLINK_FOLLOW))
			return 0;
		free(f->tmp);
		f->tmp = NULL;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/*
 * The new name is on disk only when the directory is. A failed sync of it is no error: the rename
 * is done.
 */
static void sync_dir(int dir)
{
	SCOPE_CLOSE int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)!fsync(fd);
}

/* All bytes on disk, though no reader sees them yet. */
static int sync_bytes(struct atomic_file *f, struct cairn_err *err)
{
	return f->name && fsync(f->fd) ? sys_err(err, f->shown, "write it to disk") : 0;
}

/* Seen from here on. @f has been synced. */
static int put_in_place(struct atomic_file *f, struct cairn_err *err)
{
	if (!f->name)
		return 0;
	if (!f->tmp && give_tmp_name(f))
		return sys_err(err, f->shown, "name the new file");
	if (renameat(f->dir, f->tmp, f->dir, f->name))
		return sys_err(err, f->shown, "replace it");
	free(f->tmp);
	f->tmp = NULL;
	sync_dir(f->dir);
	return 0;
}

int atomic_file_commit(struct atomic_file *f, struct cairn_err *err)
{
	int r = sync_bytes(f, err);

	if (!r)
		r = put_in_place(f, err);
	atomic_file_abort(f);
	return r;
}

void atomic_file_abort(struct atomic_file *f)
{
	if (f->tmp)
		unlinkat(f->dir, f->tmp, 0);
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir >= 0)
		close(f->dir);
	free(f->tmp);
	free(f->name);
	*f = (struct atomic_file){.fd = -1, .dir = -1};
}

/* Written and synced, and not seen yet; nothing is left open after an error. */
static int write_unseen(struct atomic_file *f, const struct cairn_file *file, struct cairn_err *err)
{
	int r = atomic_file_open(f, file->path, 0666, err);

	if (!r)
		r = atomic_file_write(f, file->bytes, file->size, err);
	return r < 0 ? r : sync_bytes(f, err);
}

/* So that no reader finds the old one beside a new first file. */
static int take_away(const struct atomic_file *f, struct cairn_err *err)
{
	if (!f->name)
		return 0;
	if (unlinkat(f->dir, f->name, 0) && errno != ENOENT)
		return sys_err(err, f->shown, "remove the old one");
	sync_dir(f->dir);
	return 0;
}

/*
 * From here on an error leaves the first file, old or new, without some that go with it, and never
 * with another's.
 */
static int show_together(struct atomic_file *files, size_t n, struct cairn_err *err)
{
	int r = 0;

	for (size_t i = 1; !r && i < n; i++)
		r = take_away(&files[i], err);
	for (size_t i = 0; !r && i < n; i++)
		r = put_in_place(&files[i], err);
	return r;
}

int cairn_file_write_together(const struct cairn_file *files, size_t n, struct cairn_err *err)
{
	SCOPE_FREE struct atomic_file *unseen = calloc(n ? n : 1, sizeof(*unseen));
	size_t n_open = 0;
	int r = unseen ? 0 : err_set(err, -ENOMEM, "no memory for %zu files", n);

	for (; !r && n_open < n; n_open++)
		r = write_unseen(&unseen[n_open], &files[n_open], err);
	if (!r)
		r = show_together(unseen, n, err);
	while (n_open)
		atomic_file_abort(&unseen[--n_open]);
	return r;
}

int cairn_file_write(const char *path, const void *bytes, size_t size, struct cairn_err *err)
{
	return cairn_file_write_together(&(struct cairn_file){path, bytes, size}, 1, err);
}

int cairn_file_create(const char *path, struct cairn_err *err)
{
	SCOPE_FREE char *name = NULL;
	struct stat st, dir_st;

	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		struct atomic_file special = {.shown = path};
		int r = open_special(&special, err);
		return r < 0 ? r : special.fd;
	}
	SCOPE_CLOSE int dir = own_path_open(path, &name, err);
	if (dir < 0)
		return dir;
	int fd = openat(dir, name,
			O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0)
		return sys_err(err, path, "open it for writing");
	/* A second name in another user's directory may be that of a file of ours. */
	bool planted = !geteuid() && !fstat(fd, &st) && !fstat(dir, &dir_st) && dir_st.st_uid &&
		       st.st_nlink > 1;
	if (planted || ftruncate(fd, 0) < 0) {
		int code = planted ? err_set(err, -EPERM,
					     "%s: has other names, and is in a directory of "
					     "another user",
					     path)
				   : sys_err(err, path, "empty it");
		close(fd);
		return code;
	}
	return fd;
}
