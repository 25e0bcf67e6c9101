/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories of files that appear whole or not at all. */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/file.h>

#include "base/err.h"
#include "base/own_path.h"
#include "base/scope.h"

/* Names tried; each is taken only when a killed process with our id left it. */
#define TMP_NAMES_MAX 1000
#define NAMES_MAX     8

/* A directory that is made beside the one that it becomes. */
struct making {
	const char *shown; /* as the caller spelt it */
	int parent, fd;
	char *name, *tmp; /* in the parent; tmp NULL: not made, or gone */
	const struct cairn_file *files;
	size_t n;
};

static int sys_err(struct cairn_err *err, const char *path, const char *what)
{
	int code = -errno;

	return err_set(err, code, "%s: cannot %s: %s", path, what, strerror(-code));
}

/* ---- the one that is there ---- */

static bool is_ours(const struct making *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->files[i].path, name))
			return true;
	return false;
}

/* An entry's words about the directory. */
struct entries {
	size_t n_ours;
	char *other; /* the first one that is none of the files; to be freed */
};

static int look(const struct making *m, int fd, struct entries *ret)
{
	DIR *list = fdopendir(fd);
	struct dirent *entry;

	if (!list) {
		close(fd);
		return -errno;
	}
	while (!ret->other && (entry = readdir(list))) {
		if (is_ours(m, entry->d_name))
			ret->n_ours++;
		else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			ret->other = strdup(entry->d_name);
	}
	closedir(list);
	return 0;
}

/* A directory appears whole: one with some of the files is somebody else's. */
static int check_entries(const struct making *m, const struct entries *e, struct cairn_err *err)
{
	if (e->other)
		return err_set(err, -ENOTEMPTY, "%s: has another file, %s, and is not replaced",
			       m->shown, e->other);
	if (e->n_ours && e->n_ours < m->n)
		return err_set(err, -ENOTEMPTY,
			       "%s: has some of the %zu files, and not all, and is not replaced",
			       m->shown, m->n);
	return 1;
}

/* 1: there is one that may be replaced; 0: none. */
static int check_present(const struct making *m, struct cairn_err *err)
{
	int fd = openat(m->parent, m->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;
	struct entries entries = {0};

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return sys_err(err, m->shown, "replace it as a directory");
	rc = look(m, fd, &entries);
	rc = rc < 0 ? err_set(err, rc, "%s: cannot read it: %s", m->shown, strerror(-rc))
		    : check_entries(m, &entries, err);
	free(entries.other);
	return rc;
}

/* ---- the new one ---- */

/* The parent's owner may have put another one there, which root would write to. */
static int open_tmp(struct making *m, struct cairn_err *err)
{
	struct stat st;

	m->fd = openat(m->parent, m->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m->fd < 0 || fstat(m->fd, &st))
		return sys_err(err, m->shown, "make a directory beside it");
	if (st.st_uid != geteuid())
		return err_set(err, -EPERM, "%s: the directory beside it was replaced", m->shown);
	return 0;
}

static int make_tmp(struct making *m, struct cairn_err *err)
{
	for (unsigned int n = 0; n < TMP_NAMES_MAX; n++) {
		if (asprintf(&m->tmp, ".%.200s.%d-%u.tmp", m->name, (int)getpid(), n) < 0) {
			m->tmp = NULL;
			return err_nomem(err, "a directory's name");
		}
		if (!mkdirat(m->parent, m->tmp, 0777))
			return open_tmp(m, err);
		free(m->tmp);
		m->tmp = NULL;
		if (errno != EEXIST)
			break;
	}
	return sys_err(err, m->shown, "make a directory beside it");
}

static int write_bytes(int fd, const struct cairn_file *file)
{
	const char *at = file->bytes;

	for (size_t left = file->size; left;) {
		ssize_t n = write(fd, at, left);

		if (n < 0 && errno != EINTR)
			return -1;
		at += n < 0 ? 0 : n;
		left -= n < 0 ? 0 : (size_t)n;
	}
	return fsync(fd);
}

static int write_files(const struct making *m, struct cairn_err *err)
{
	for (size_t i = 0; i < m->n; i++) {
		SCOPE_CLOSE int fd =
			openat(m->fd, m->files[i].path,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

		if (fd < 0 || write_bytes(fd, &m->files[i]))
			return sys_err(err, m->shown, "write it");
	}
	return fsync(m->fd) ? sys_err(err, m->shown, "write it to disk") : 0;
}

/* Removes the files of the directory, and then it. All else in it stays. */
static void remove_named(const struct making *m, const char *name)
{
	SCOPE_CLOSE int fd =
		openat(m->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < m->n; i++)
		unlinkat(fd, m->files[i].path, 0);
	unlinkat(m->parent, name, AT_REMOVEDIR);
}

/* After the exchange the old one has the temporary name. */
static int put_in_place(struct making *m, bool replaces, struct cairn_err *err)
{
	if (renameat2(m->parent, m->tmp, m->parent, m->name, replaces ? RENAME_EXCHANGE : 0))
		return sys_err(err, m->shown, "put it in its place");
	if (!replaces) {
		free(m->tmp);
		m->tmp = NULL;
	}
	return 0;
}

/* The new name is on disk only when the parent is; the rename is done in any case. */
static void sync_parent(const struct making *m)
{
	SCOPE_CLOSE int fd = openat(m->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)!fsync(fd);
}

static int make(struct making *m, struct cairn_err *err)
{
	int replaces, rc;

	m->parent = own_path_open(m->shown, &m->name, err);
	if (m->parent < 0)
		return m->parent;
	replaces = check_present(m, err);
	rc = replaces < 0 ? replaces : make_tmp(m, err);
	rc = rc < 0 ? rc : write_files(m, err);
	rc = rc < 0 ? rc : put_in_place(m, replaces, err);
	if (rc == 0)
		sync_parent(m);
	if (m->tmp)
		remove_named(m, m->tmp);
	return rc;
}

int cairn_file_write_directory(const char *path, const struct cairn_file *files, size_t n,
			       struct cairn_err *err)
{
	struct making m = {.shown = path, .parent = -1, .fd = -1, .files = files, .n = n};
	int rc = make(&m, err);

	if (m.fd >= 0)
		close(m.fd);
	if (m.parent >= 0)
		close(m.parent);
	free(m.name);
	free(m.tmp);
	return rc;
}

/* Opens the parent of a directory that has the @names, and looks: as check_present(). */
static int find(struct making *m, struct cairn_file *files, const char *const *names,
		struct cairn_err *err)
{
	if (m->n > NAMES_MAX)
		return err_set(err, -EINVAL, "%s: at most %d files", m->shown, NAMES_MAX);
	for (size_t i = 0; i < m->n; i++)
		files[i].path = names[i];
	m->parent = own_path_open(m->shown, &m->name, err);
	return m->parent < 0 ? m->parent : check_present(m, err);
}

static void leave(struct making *m)
{
	if (m->parent >= 0)
		close(m->parent);
	free(m->name);
}

int cairn_file_check_directory(const char *path, const char *const *names, size_t n,
			       struct cairn_err *err)
{
	struct cairn_file files[NAMES_MAX] = {0};
	struct making m = {.shown = path, .parent = -1, .files = files, .n = n};
	int rc = find(&m, files, names, err);

	leave(&m);
	return rc < 0 ? rc : 0;
}

int cairn_file_remove_directory(const char *path, const char *const *names, size_t n,
				struct cairn_err *err)
{
	struct cairn_file files[NAMES_MAX] = {0};
	struct making m = {.shown = path, .parent = -1, .files = files, .n = n};
	int rc = find(&m, files, names, err);

	if (rc > 0)
		remove_named(&m, m.name);
	leave(&m);
	return rc < 0 ? rc : 0;
}
