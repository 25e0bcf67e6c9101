/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a running process, as it sees them. */
#include "code/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/err.h"
#include "elf/elf.h"

/* The vDSO is one or two pages; nothing that calls itself so is larger. */
enum { MAX_VDSO = 1 << 20 };

static int open_vdso(int pid, const struct code_mapping *m, struct cairn_binary **ret, uint8_t **ret_bytes,
		     struct cairn_err *err)
{
	size_t size = m->hi - m->lo;
	if (size > MAX_VDSO) {
		err_set(err, -ERANGE, "[vdso]: %zu bytes", size);
		return 0;
	}
	uint8_t *bytes = *ret_bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	struct iovec here = {bytes, size}, there = {(void *)(uintptr_t)m->lo, size};
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)size) {
		err_set(err, -errno, "[vdso] of process %d: %m", pid);
		return 0;
	}
	int rc = binary_open_mem(bytes, size, "[vdso]", ret, err);
	return rc == -ENOMEM ? rc : 0;
}

/*
 * Where the file behind a mapping can be opened. Its name as the process sees it may be another file's now: then the mapping leads to
 * it. A process that has ended meanwhile has neither, and the name has to do, if device and inode say that it is the file.
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

static int open_mapped(void *ctx, const struct code_mapping *m, struct cairn_binary **ret,
		       uint8_t **ret_bytes, struct cairn_err *err)
{
	int pid = (int)(intptr_t)ctx;
	char path[4200];
	if (!m->ino)
		return open_vdso(pid, m, ret, ret_bytes, err);
	find_mapped(pid, m, path, sizeof(path));
	int rc = cairn_binary_open(path, NULL, ret, err);
	return rc == -ENOMEM ? rc : 0;
}

int code_space_open_pid(int pid, unsigned int threads, struct code_space **ret, struct cairn_err *err)
{
	struct code_source source = {.open = open_mapped, .ctx = (void *)(intptr_t)pid, .threads = threads};
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
