/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory of cgroup v2
 *
 * The kernel tells a program the number of a task's cgroup, and of each cgroup around it by its
 * level. The number is that of the directory. The level is counted here from the directory up to
 * the root, whose number is 1. In a container the root may be out of reach. Then each level is
 * compared.
 *
 * A map of cgroups would do the same, but a program that may sleep cannot have one.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/scope.h"
#include "trace/attach/kernel.h"
#include "trace/attach/traced.h"
#include "trace.skel.h"

#define ROOT_NUMBER 1
/* Directories of container managers are 4 to 8 deep. Each level costs a call at a hit. */
#define LEVEL_MAX   31

static bool is_cgroup(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Steps from @fd, which is closed, up to the hierarchy's root; -1: it cannot be reached. */
static int level_of(int fd)
{
	struct stat st;

	for (int level = 0; level <= LEVEL_MAX; level++) {
		bool is_known = is_cgroup(fd) && !fstat(fd, &st);
		int up = is_known && st.st_ino != ROOT_NUMBER
				 ? openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				 : -1;
		close(fd);
		if (is_known && st.st_ino == ROOT_NUMBER)
			return level;
		if (up < 0)
			return -1;
		fd = up;
	}
	close(fd);
	return -1;
}

int cgroup_find(const char *path, struct trace_cgroup *ret, struct cairn_err *err)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_set(err, -ENOENT, "%s: %s", path, strerror(errno));
	if (!is_cgroup(fd) || fstat(fd, &st))
		return err_set(err, -ENOENT, "%s is no directory of cgroup v2", path);
	int level = level_of(dup(fd));
	ret->id = st.st_ino;
	ret->level_first = level < 0 ? 0 : (uint8_t)level;
	ret->level_last = level < 0 ? LEVEL_MAX : (uint8_t)level;
	return 0;
}

int cairn_trace_cgroup_look(struct cairn_trace *t)
{
	struct trace_cgroup now;
	int e;

	if (!t->opts.cgroup || !t->kernel)
		return 0;
	e = cgroup_find(t->opts.cgroup, &now, NULL);
	if (e < 0 || now.id == t->cgroup.id)
		return e;
	t->cgroup.id = now.id;
	__atomic_store_n(&t->kernel->bpf->bss->cgroup_id, now.id, __ATOMIC_RELAXED);
	return 1;
}
