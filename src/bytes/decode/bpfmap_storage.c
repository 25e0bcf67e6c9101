/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that are kept with tasks, cgroups, sockets and files
 *
 * The kernel stores each beside its owner and has no list of them that a process could read. But a
 * process that has a descriptor of an owner may look its value up. So all reachable owners are
 * visited:
 *
 *     task_storage   every thread in /proc: pidfd_open(tid, PIDFD_THREAD); before Linux 6.9 only
 *                    the first thread of a process
 *     cgrp_storage   every folder of /sys/fs/cgroup: open()
 *     inode_storage  files that processes hold open, /proc/PID/fd, exe, cwd, root, map_files:
 *                    open(O_PATH)
 *     sk_storage     sockets that processes hold open, /proc/PID/fd: pidfd_getfd()
 *
 * O_PATH opens the inode and not the file, so that no driver notices. A copy of a socket's
 * descriptor is closed at once; it takes nothing from the process. Owners that no process holds
 * open (a socket that is still closing, a cached inode) are not reached. Sockets and inodes are
 * identified by their numbers, as many processes share them: each is shown once.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "base/map.h"
#include "base/scope.h"
#include "decode/bpfmap.h"

/* O_EXCL of pidfd_open(), since Linux 6.9: the thread and not its process. */
enum { PIDFD_OF_THREAD = O_EXCL };

/* Folders of cgroups in each other; a kernel lets root have more, but no system has. */
enum { CGROUP_DEPTH = 64 };

enum { PATH_ROOM = 4096 };

struct storage {
	struct cairn_bpfmap *map;
	bpfmap_entry_fn *on_entry;
	void *ctx;
	struct cairn_bpfmap_stats *stats;
	struct cairn_err *err;
	uint8_t *value;
	struct map seen; /* hash of device and number of inodes */
};

static void scope_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define SCOPE_DIR __attribute__((cleanup(scope_closedir)))

/* The next entry that is a number; 0 at the end. */
static int next_number(DIR *dir)
{
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (isdigit((unsigned char)e->d_name[0]))
			return atoi(e->d_name);
	return 0;
}

/*
 * The value of the owner that @fd stands for, if it has one. Owners that ended have none, and some
 * files can have none.
 */
static int look_up(struct storage *s, int fd, const struct cairn_bpfmap_owner *owner)
{
	struct cairn_bpfmap_entry entry = {.owner = owner,
					   .value = s->value,
					   .n_value = s->map->info.value_size,
					   .n_cpus = 1,
					   .stride = s->map->info.value_size};
	int rc = bpf_map_lookup_elem(s->map->fd, &fd, s->value);

	s->stats->owners++;
	if (rc == -EPERM)
		return err_set(s->err, rc, "looking up a value of map %u: %s", s->map->info.id,
			       strerror(-rc));
	if (rc)
		return 0;
	s->stats->entries++;
	return s->on_entry(s->ctx, &entry);
}

static void read_comm(int pid, int tid, char *ret, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	SCOPE_FCLOSE FILE *f = fopen(path, "re");
	if (!f || !fgets(ret, (int)size, f))
		ret[0] = 0;
	ret[strcspn(ret, "\n")] = 0;
}

/* ---- tasks ---- */

static int look_at_task(struct storage *s, int pid, int tid)
{
	char comm[64];
	SCOPE_CLOSE int fd = (int)syscall(SYS_pidfd_open, tid, PIDFD_OF_THREAD);

	if (fd < 0 && errno == EINVAL && tid == pid)
		fd = (int)syscall(SYS_pidfd_open, tid, 0);
	if (fd < 0)
		return 0;
	read_comm(pid, tid, comm, sizeof(comm));
	return look_up(s, fd, &(struct cairn_bpfmap_owner){"task", (uint64_t)tid, comm});
}

static int each_task(struct storage *s, int pid)
{
	char path[64];
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	SCOPE_DIR DIR *dir = opendir(path);
	for (int tid; !rc && (tid = next_number(dir));)
		rc = look_at_task(s, pid, tid);
	return rc;
}

/* ---- files and sockets ---- */

/* Whether this is the first time; *@rc is set when there is no memory to remember it. */
static bool is_new(struct storage *s, const struct stat *st, int *rc)
{
	const uint64_t key[] = {st->st_dev, st->st_ino};
	uint64_t hash = map_hash_bytes(key, sizeof(key)), known;

	if (map_get(&s->seen, hash, &known))
		return false;
	if (map_put(&s->seen, hash, 1) < 0)
		*rc = err_nomem(s->err, "owners of values");
	return !*rc;
}

/* @path: a link in /proc. */
static int look_at_inode(struct storage *s, const char *path)
{
	char name[PATH_ROOM];
	struct stat st;
	int rc = 0;
	SCOPE_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !is_new(s, &st, &rc))
		return rc;
	ssize_t n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = 0;
	return look_up(s, fd, &(struct cairn_bpfmap_owner){"inode", st.st_ino, name});
}

static int look_at_socket(struct storage *s, const char *path, int pid, int number)
{
	char comm[64], name[128];
	struct stat st;
	int rc = 0;

	if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode) || !is_new(s, &st, &rc))
		return rc;
	SCOPE_CLOSE int process = (int)syscall(SYS_pidfd_open, pid, 0);
	SCOPE_CLOSE int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, number, 0);
	if (fd < 0)
		return 0;
	read_comm(pid, pid, comm, sizeof(comm));
	snprintf(name, sizeof(name), "%s %d, descriptor %d", comm, pid, number);
	return look_up(s, fd, &(struct cairn_bpfmap_owner){"socket", st.st_ino, name});
}

static int each_descriptor(struct storage *s, int pid, bool sockets)
{
	char path[PATH_ROOM];
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	SCOPE_DIR DIR *dir = opendir(path);
	for (struct dirent *e; !rc && dir && (e = readdir(dir));) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, e->d_name);
		rc = sockets ? look_at_socket(s, path, pid, atoi(e->d_name))
			     : look_at_inode(s, path);
	}
	return rc;
}

static int each_inode(struct storage *s, int pid)
{
	static const char *const links[] = {"exe", "cwd", "root"};
	char path[PATH_ROOM];
	int rc = each_descriptor(s, pid, false);

	for (size_t i = 0; !rc && i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, links[i]);
		rc = look_at_inode(s, path);
	}
	snprintf(path, sizeof(path), "/proc/%d/map_files", pid);
	SCOPE_DIR DIR *dir = opendir(path);
	for (struct dirent *e; !rc && dir && (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%s", pid, e->d_name);
		rc = look_at_inode(s, path);
	}
	return rc;
}

static int each_socket(struct storage *s, int pid)
{
	return each_descriptor(s, pid, true);
}

static int each_process(struct storage *s, int (*look)(struct storage *s, int pid))
{
	SCOPE_DIR DIR *dir = opendir("/proc");
	int rc = dir ? 0 : err_set(s->err, -errno, "/proc: %s", strerror(errno));

	for (int pid; !rc && (pid = next_number(dir));)
		rc = look(s, pid);
	return rc;
}

/* ---- cgroups ---- */

static int look_at_cgroup(struct storage *s, const char *path)
{
	struct stat st;
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return look_up(s, fd, &(struct cairn_bpfmap_owner){"cgroup", st.st_ino, path});
}

/*
 * Opens the next folder in @dir, whose path is @path, and appends its name to the path. NULL: there
 * is none.
 */
static DIR *next_folder(DIR *dir, char *path, size_t size)
{
	size_t n = strlen(path);

	for (struct dirent *e; (e = readdir(dir));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
		    (size_t)snprintf(path + n, size - n, "/%s", e->d_name) >= size - n)
			continue;
		DIR *in = opendir(path);
		if (in)
			return in;
	}
	path[n] = 0;
	return NULL;
}

static int each_cgroup(struct storage *s)
{
	char path[PATH_ROOM] = "/sys/fs/cgroup";
	DIR *dirs[CGROUP_DEPTH];
	int depth = 0, rc = 0;

	/* If the first version is mounted, too, the second has a folder of its own. */
	if (!access("/sys/fs/cgroup/unified", F_OK))
		strcpy(path, "/sys/fs/cgroup/unified");
	dirs[0] = opendir(path);
	if (!dirs[0])
		return err_set(s->err, -errno, "%s: %s", path, strerror(errno));
	rc = look_at_cgroup(s, path);
	while (depth >= 0) {
		DIR *in = !rc && depth + 1 < CGROUP_DEPTH
				  ? next_folder(dirs[depth], path, sizeof(path))
				  : NULL;
		if (in) {
			dirs[++depth] = in;
			rc = look_at_cgroup(s, path);
			continue;
		}
		closedir(dirs[depth--]);
		*strrchr(path, '/') = 0;
	}
	return rc;
}

int bpfmap_each_owner(struct cairn_bpfmap *map, bpfmap_entry_fn *on_entry, void *ctx,
		      struct cairn_bpfmap_stats *stats, struct cairn_err *err)
{
	struct storage s = {
		.map = map, .on_entry = on_entry, .ctx = ctx, .stats = stats, .err = err};
	int rc;

	s.value = calloc(1, map->info.value_size);
	if (!s.value)
		return err_nomem(err, "a value of a map");
	switch (map->info.kind) {
	case BPF_MAP_TYPE_TASK_STORAGE:
		rc = each_process(&s, each_task);
		break;
	case BPF_MAP_TYPE_INODE_STORAGE:
		rc = each_process(&s, each_inode);
		break;
	case BPF_MAP_TYPE_SK_STORAGE:
		rc = each_process(&s, each_socket);
		break;
	default:
		rc = each_cgroup(&s);
	}
	map_fini(&s.seen);
	free(s.value);
	return rc;
}
