/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/err.h"
#include "base/scope.h"

enum {
	MAX_DIRECTORY = 48, /* /run/user/4294967295/cairn/codectl */
	MAX_PATH = 64,
	MAX_TEXT = 512, /* four lines of at most 60 bytes */
};

/* ---- the directory ---- */

static void directory_of(uid_t uid, char ret[MAX_DIRECTORY])
{
	struct stat st;
	snprintf(ret, MAX_DIRECTORY, "/run/user/%u", uid);
	if (uid == 0)
		snprintf(ret, MAX_DIRECTORY, "/run/cairn/codectl");
	else if (stat(ret, &st) == 0 && st.st_uid == uid)
		snprintf(ret, MAX_DIRECTORY, "/run/user/%u/cairn/codectl", uid);
	else
		snprintf(ret, MAX_DIRECTORY, "/tmp/cairn-%u/codectl", uid);
}

/* A file that others may write or replace counts as theirs. */
static int check_owner(const struct stat *st, uid_t uid, const char *path, struct cairn_err *err)
{
	if (st->st_uid != uid && st->st_uid != 0)
		return err_set(err, -EPERM,
			       "%s is user %u's: not believed for a process of user %u", path,
			       st->st_uid, uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EPERM, "%s may be written by others: not believed", path);
	return 0;
}

static int check_directory(const char *path, uid_t uid, struct cairn_err *err)
{
	struct stat st;
	if (lstat(path, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -EPERM, "%s is no directory", path);
	return check_owner(&st, uid, path, err);
}

/* Both directories, the upper one first, since a user who may write it may replace the other. */
static int check_directories(const char *path, uid_t uid, struct cairn_err *err)
{
	char upper[MAX_DIRECTORY];
	snprintf(upper, sizeof(upper), "%s", path);
	*strrchr(upper, '/') = 0;
	int rc = check_directory(upper, uid, err);
	return rc < 0 ? rc : check_directory(path, uid, err);
}

static int make_directory(const char *path, struct cairn_err *err)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	return err_set(err, -errno, "%s: %s", path, strerror(errno));
}

static int make_directories(const char *path, struct cairn_err *err)
{
	char upper[MAX_DIRECTORY];
	snprintf(upper, sizeof(upper), "%s", path);
	*strrchr(upper, '/') = 0;
	int rc = make_directory(upper, err);
	/* Nothing is made in one that another user made. */
	if (rc == 0)
		rc = check_directory(upper, geteuid(), err);
	if (rc == 0)
		rc = make_directory(path, err);
	return rc < 0 ? rc : check_directories(path, geteuid(), err);
}

static void path_of(const char *directory, int pid, char ret[MAX_PATH])
{
	snprintf(ret, MAX_PATH, "%s/%d", directory, pid);
}

/* ---- writing ---- */

int notice_leave(const struct notice *n, struct cairn_err *err)
{
	char directory[MAX_DIRECTORY], path[MAX_PATH], text[MAX_TEXT];
	struct atomic_file f;
	directory_of(geteuid(), directory);
	int rc = make_directories(directory, err);
	if (rc < 0)
		return rc;
	path_of(directory, n->process.pid, path);
	int size = snprintf(text, sizeof(text),
			    "supervisor %d %" PRIu64 "\nprocess %d %" PRIu64 "\nprogram %" PRIx64
			    " %" PRIx64 "\nregistry %" PRIx64 " %" PRIx64 "\n",
			    n->supervisor, n->supervisor_start, n->process.pid, n->process.start,
			    n->process.program[0], n->process.program[1], n->registry, n->size);
	rc = atomic_file_open(&f, path, 0600, err);
	if (rc < 0)
		return rc;
	rc = atomic_file_write(&f, text, (size_t)size, err);
	if (rc == 0)
		return atomic_file_commit(&f, err);
	atomic_file_abort(&f);
	return rc;
}

void notice_take_back(int pid)
{
	char directory[MAX_DIRECTORY], path[MAX_PATH];
	directory_of(geteuid(), directory);
	path_of(directory, pid, path);
	unlink(path);
}

/* ---- reading ---- */

static int read_text(const char *path, uid_t uid, char text[MAX_TEXT], struct cairn_err *err)
{
	struct stat st;
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	int rc = check_owner(&st, uid, path, err);
	if (rc < 0)
		return rc;
	ssize_t n = read(fd, text, MAX_TEXT - 1);
	if (n < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	text[n] = 0;
	return 0;
}

static bool parse(const char *text, struct notice *ret)
{
	struct notice n = {0};
	int end = 0;
	sscanf(text,
	       "supervisor %d %" SCNu64 "\nprocess %d %" SCNu64 "\nprogram %" SCNx64 " %" SCNx64
	       "\nregistry %" SCNx64 " %" SCNx64 "\n%n",
	       &n.supervisor, &n.supervisor_start, &n.process.pid, &n.process.start,
	       &n.process.program[0], &n.process.program[1], &n.registry, &n.size, &end);
	*ret = n;
	return end && !text[end] && text[end - 1] == '\n' && n.supervisor > 0 && n.size &&
	       n.registry + n.size > n.registry;
}

static bool owner_of(int pid, uid_t *ret)
{
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	bool is_there = stat(path, &st) == 0;
	*ret = is_there ? st.st_uid : 0;
	return is_there;
}

static bool is_same(const struct target_id *a, const struct target_id *b)
{
	return a->pid == b->pid && a->start == b->start &&
	       !memcmp(a->program, b->program, sizeof(a->program));
}

/* A supervisor of another user could be any process, whose memory this user must not see. */
static bool is_true(const struct notice *n, int pid, uid_t uid)
{
	struct target_id process, supervisor;
	uid_t its_uid;
	return target_identify(pid, &process) && is_same(&process, &n->process) &&
	       target_identify(n->supervisor, &supervisor) &&
	       supervisor.start == n->supervisor_start && owner_of(n->supervisor, &its_uid) &&
	       (its_uid == uid || its_uid == 0);
}

int notice_find(int pid, struct notice *ret, bool *ret_is_stale, struct cairn_err *err)
{
	char directory[MAX_DIRECTORY], path[MAX_PATH], text[MAX_TEXT];
	uid_t uid;
	*ret_is_stale = false;
	if (!owner_of(pid, &uid))
		return err_set(err, -ENOENT, "process %d has ended", pid);
	directory_of(uid, directory);
	path_of(directory, pid, path);
	int rc = read_text(path, uid, text, err);
	if (rc == 0)
		rc = check_directories(directory, uid, err);
	if (rc < 0)
		return rc;
	if (!parse(text, ret))
		return err_set(err, -EBADMSG, "%s is no notice of a supervisor", path);
	*ret_is_stale = !is_true(ret, pid, uid);
	return *ret_is_stale ? err_set(err, -ENOENT,
				       "%s: the supervisor has ended, or the process runs another "
				       "program",
				       path)
			     : 0;
}
