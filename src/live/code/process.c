/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a running process, as it sees them. */
#include "code/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "code/timed_read.h"
#include "code/vdso.h"
#include "elf/elf.h"

static int read_memory(const void *ctx, uint64_t at, void *ret, size_t n, struct cairn_err *err)
{
	int pid = *(const int *)ctx;
	ssize_t got = timed_read_read(pid, at, ret, n);
	if (got < 0)
		return err_set(err, -errno, "[vdso] of process %d: %m", pid);
	return (size_t)got == n ? 0
				: err_set(err, -EFAULT, "[vdso] of process %d: %zd bytes of %zu",
					  pid, got, n);
}

/*
 * Finds a path by which the file of a mapping can be opened. Its name as the process sees it may be
 * another file's now: then the mapping leads to it. A process that has ended meanwhile has neither,
 * and the name must do, if device and inode show that it is the file.
 */
static void find_mapped(int pid, const struct code_mapping *m, char *path, size_t size)
{
	struct stat st;
	snprintf(path, size, "/proc/%d/root%s", pid, m->path);
	if (stat(path, &st) == 0 && st.st_ino == m->ino)
		return;
	if (stat(m->path, &st) == 0 && st.st_ino == m->ino && st.st_dev == m->dev)
		snprintf(path, size, "%s", m->path);
	else
		snprintf(path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->lo, m->hi);
}

int code_open_mapped(int pid, const struct code_mapping *m, struct cairn_binary **ret,
		     uint8_t **ret_bytes, struct cairn_err *err)
{
	char path[4200];
	if (!m->ino)
		return vdso_open(m, read_memory, &pid, ret, ret_bytes, err);
	find_mapped(pid, m, path, sizeof(path));
	int rc = binary_open_alone(path, ret, err);
	return rc == -ENOMEM ? rc : 0;
}

static int open_for_space(void *ctx, const struct code_mapping *m, struct cairn_binary **ret,
			  uint8_t **ret_bytes, struct cairn_err *err)
{
	return code_open_mapped((int)(intptr_t)ctx, m, ret, ret_bytes, err);
}

int code_space_open_pid(int pid, unsigned int threads, struct code_space **ret,
			struct cairn_err *err)
{
	struct code_source source = {
		.open = open_for_space, .ctx = (void *)(intptr_t)pid, .threads = threads};
	struct code_maps maps;
	int rc = code_maps_read(pid, &maps, err);
	return rc < 0 ? rc : code_space_new(&maps, &source, ret, err);
}

int code_space_refresh_pid(struct code_space *space, int pid, struct cairn_err *err)
{
	struct code_maps maps;
	int rc = code_maps_read(pid, &maps, err);
	if (rc == 0)
		code_space_remap(space, &maps);
	return rc;
}
