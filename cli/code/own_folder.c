/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path is followed from its beginning. What was looked at stays what it is, as only we and root
 * may change it; so each step is made in a folder that can be trusted. A link that we or root made
 * leads to where its maker wants, if that place can be trusted, too.
 */
#include "own_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct cairn_err *err, int code, const char *path, const char *why)
{
	err->code = -code;
	snprintf(err->msg, sizeof(err->msg), "%.300s: %s", path, why);
	return -code;
}

/* In a namespace of users the owner of the root has no number, and is trusted all the same. */
static bool is_trusted(uid_t owner)
{
	struct stat root;

	return owner == 0 || owner == geteuid() || (!stat("/", &root) && owner == root.st_uid);
}

/*
 * In a folder where all may write, as /tmp, nobody may rename what is another's if the sticky bit
 * says so.
 */
static int check_one(const char *path, const struct stat *st, struct cairn_err *err)
{
	if (!is_trusted(st->st_uid))
		return refuse(err, EPERM, path,
			      "another user owns it, who could put another folder there");
	if (S_ISDIR(st->st_mode) && st->st_mode & S_IWOTH && !(st->st_mode & S_ISVTX))
		return refuse(err, EPERM, path,
			      "other users may write there, and put another folder there");
	return 0;
}

/* Calls @step for each beginning of a path that ends before a slash, and for all of it. */
static int each_beginning(const char *path, int (*step)(const char *path, struct cairn_err *err),
			  struct cairn_err *err)
{
	char *copy = strdup(path);
	int r = copy ? 0 : refuse(err, ENOMEM, path, "out of memory");

	for (char *at = copy; r == 0 && at && *at;) {
		at = strchr(at + 1, '/');
		if (at)
			*at = 0;
		r = step(copy, err);
		if (at)
			*at = '/';
	}
	free(copy);
	return r;
}

static int check_real(const char *path, struct cairn_err *err)
{
	struct stat st;

	return lstat(path, &st) < 0 ? refuse(err, errno, path, strerror(errno))
				    : check_one(path, &st, err);
}

static int check_target(const char *path, struct cairn_err *err)
{
	char real[PATH_MAX];

	return realpath(path, real) ? each_beginning(real, check_real, err)
				    : refuse(err, errno, path, strerror(errno));
}

static int make_one(const char *path, struct cairn_err *err)
{
	struct stat st;
	int r;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return refuse(err, errno, path, strerror(errno));
	if (lstat(path, &st) < 0)
		return refuse(err, errno, path, strerror(errno));
	r = check_one(path, &st, err);
	return r == 0 && S_ISLNK(st.st_mode) ? check_target(path, err) : r;
}

int own_folder_make(const char *path, struct cairn_err *err)
{
	int r = each_beginning(path, make_one, err);

	return r < 0 ? r : check_target(path, err);
}
