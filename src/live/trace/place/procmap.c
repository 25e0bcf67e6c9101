/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/place/procmap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"

static bool add_line(struct procmap *m, char *line)
{
	unsigned long long lo, hi, off, inode;
	unsigned int major, minor;
	char perms[5];
	int path = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &lo, &hi, perms, &off, &major, &minor,
		   &inode, &path) < 7 ||
	    !path || perms[2] != 'x' || !inode)
		return true;
	line[strcspn(line, "\n")] = 0;
	static const char mark[] = " (deleted)";
	size_t n = strlen(line + path), k = sizeof(mark) - 1;
	bool deleted = n > k && !strcmp(line + path + n - k, mark);
	if (deleted)
		line[path + (int)(n - k)] = 0;
	struct procmap_entry *e = VEC_PUSH(&m->e);
	if (!e)
		return false;
	*e = (struct procmap_entry){.lo = {lo},
				    .hi = {hi},
				    .off = {off},
				    .inode = inode,
				    .deleted = deleted,
				    .path = strdup(line + path)};
	return e->path != NULL;
}

int procmap_read(int pid, struct procmap *ret, struct cairn_err *err)
{
	SCOPE_FREE char *line = NULL;
	size_t cap = 0;
	char path[40];
	bool any = false;

	*ret = (struct procmap){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	SCOPE_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return err_set(err,
			       errno == ENOENT   ? -ESRCH
			       : errno == EACCES ? -EPERM
						 : -errno,
			       errno == ENOENT ? "there is no process %d"
					       : "process %d may not be looked at",
			       pid);
	while (getline(&line, &cap, f) > 0) {
		any = true;
		if (!add_line(ret, line))
			return err_nomem(err, "the mappings of a process");
	}
	/* A process that is ending has no mappings any more; a read can also fail with ESRCH. */
	if (!any)
		return err_set(err, -ESRCH,
			       "process %d has no mappings: it has ended, or is a kernel thread",
			       pid);
	return 0;
}

void procmap_free(struct procmap *m)
{
	for (size_t i = 0; i < m->e.n; i++)
		free(m->e.p[i].path);
	VEC_FREE(&m->e);
}

void procmap_path(const struct procmap *m, const struct procmap_entry *e, char *buf, size_t size)
{
	snprintf(buf, size, "/proc/%d/map_files/%llx-%llx", m->pid, (unsigned long long)e->lo.v,
		 (unsigned long long)e->hi.v);
}

bool procmap_is_file(const struct procmap *m, const struct procmap_entry *e, const struct stat *st)
{
	struct stat mapped;
	char path[80];

	if (e->inode != st->st_ino)
		return false;
	procmap_path(m, e, path, sizeof(path));
	/*
	 * The device in maps is not stat's on overlayfs and btrfs, so both are taken from stat. If
	 * that is not permitted the inode must do.
	 */
	if (stat(path, &mapped))
		return true;
	return mapped.st_dev == st->st_dev && mapped.st_ino == st->st_ino;
}
