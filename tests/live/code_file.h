/* SPDX-License-Identifier: BSD-2-Clause */
/* A file with machine code that can be mapped, run and probed. For live tests. */
#ifndef LIVE_CODE_FILE_H
#define LIVE_CODE_FILE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct code_file {
	char path[40];
	int fd;
	size_t n;
	uint8_t *map; /* NULL until code_file_map() */
};

/* Out of disk or memory ends the test. */
static inline struct code_file code_file_new(const uint8_t *code, size_t n)
{
	struct code_file f = {.path = "/tmp/cairn-code-XXXXXX", .n = n};
	f.fd = mkstemp(f.path);
	if (f.fd < 0 || write(f.fd, code, n) != (ssize_t)n) {
		perror(f.path);
		exit(1);
	}
	return f;
}

static inline void code_file_map(struct code_file *f)
{
	void *map = mmap(NULL, f->n, PROT_READ | PROT_EXEC, MAP_PRIVATE, f->fd, 0);
	if (map == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	f->map = map;
}

static inline void code_file_free(struct code_file *f)
{
	if (f->map)
		munmap(f->map, f->n);
	close(f->fd);
	unlink(f->path);
}

/*
 * Counts the hits of this process at an offset; a negative errno. With @on_return, of the return.
 */
static inline int perf_uprobe(const char *path, uint64_t off, int on_return)
{
	int type = -1;
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	if (!f || fscanf(f, "%d", &type) != 1)
		type = -1;
	if (f)
		fclose(f);
	if (type < 0)
		return -ENOENT;
	struct perf_event_attr attr = {.type = (uint32_t)type,
				       .size = sizeof(attr),
				       .uprobe_path = (uintptr_t)path,
				       .probe_offset = off,
				       .config = (uint64_t)on_return};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static inline uint64_t perf_hits(int fd)
{
	uint64_t hits = 0;
	return read(fd, &hits, sizeof(hits)) == sizeof(hits) ? hits : UINT64_MAX;
}

#endif
