/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

/*
 * The last number in a line of /proc/PID/status: of "NStgid:	4711	17" that in the innermost
 * namespace, of "Uid:" the one by which it makes files. False: no such line.
 */
static bool read_status(int pid, const char *field, long *ret)
{
	char name[64], line[1024];
	size_t n = strlen(field);
	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	SCOPE_FCLOSE FILE *f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, field, n) != 0)
			continue;
		char *at = line + n, *after;
		bool found = false;
		for (long v; (v = strtol(at, &after, 10)), after != at; at = after) {
			*ret = v;
			found = true;
		}
		return found;
	}
	return false;
}

int process_own_number(int pid)
{
	long own;
	/* Not NSpid, which is the thread's if @pid is one. */
	return read_status(pid, "NStgid:", &own) ? (int)own : pid;
}

/* Symbolic links lead to where the process would get, and not out of its root. */
static int open_in_root(int pid, const char *path)
{
	char name[64];
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	SCOPE_CLOSE int root = open(name, O_PATH | O_CLOEXEC | O_DIRECTORY);
	if (root < 0)
		return -errno;
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int check_owner(int pid, const char *path, off_t max, const struct stat *st,
		       struct cairn_err *err)
{
	long uid;
	if (!S_ISREG(st->st_mode))
		return err_set(err, -EACCES, "%s of process %d: no regular file; not believed",
			       path, pid);
	if (!read_status(pid, "Uid:", &uid) || (st->st_uid != 0 && st->st_uid != (uid_t)uid))
		return err_set(err, -EACCES,
			       "%s of process %d: belongs to user %u and not to the process's; not "
			       "believed",
			       path, pid, st->st_uid);
	if (st->st_size > max)
		return err_set(err, -ERANGE, "%s of process %d: more than %lld bytes", path, pid,
			       (long long)max);
	return 0;
}

static int read_bytes(int fd, struct process_file *f)
{
	size_t size = (size_t)f->st.st_size;
	f->bytes = malloc(size + 1);
	if (!f->bytes)
		return -ENOMEM;
	while (f->n < size) {
		ssize_t got = read(fd, f->bytes + f->n, size - f->n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		f->n += (size_t)got;
	}
	f->bytes[f->n] = 0;
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int process_file_read(int pid, const char *path, off_t max, const struct stat *known,
		      struct process_file *ret, bool *ret_same, struct cairn_err *err)
{
	*ret = (struct process_file){0};
	*ret_same = false;
	int opened = open_in_root(pid, path);
	if (opened == -ENOENT)
		return 0;
	if (opened < 0)
		return err_set(err, opened, "%s of process %d: %s", path, pid, strerror(-opened));
	SCOPE_CLOSE int fd = opened;
	if (fstat(fd, &ret->st) < 0)
		return err_set(err, -errno, "%s of process %d: %m", path, pid);
	int rc = check_owner(pid, path, max, &ret->st, err);
	if (rc < 0)
		return rc;
	*ret_same = known && is_same(known, &ret->st);
	return *ret_same ? 0 : read_bytes(fd, ret) < 0 ? err_nomem(err, path) : 0;
}
