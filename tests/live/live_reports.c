/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings as the kernel reports them are those of /proc/PID/maps: paths, permissions, sharing
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "code/maps.h"
#include "perf/reports.h"

enum { SKIPPED = 77, RING_BYTES = 1 << 16, N_KINDS = 5 };

static const struct kind {
	const char *what;
	int protection, flags;
	bool of_file;
} kinds[N_KINDS] = {
	{"memory", PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, false},
	{"memory that can be written", PROT_READ | PROT_WRITE | PROT_EXEC,
	 MAP_PRIVATE | MAP_ANONYMOUS, false},
	{"shared memory", PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, false},
	{"memory of a file", PROT_READ | PROT_EXEC, MAP_SHARED, true},
	{"a private mapping of it", PROT_READ | PROT_EXEC, MAP_PRIVATE, true},
};

/* The list of mappings has " (deleted)" elsewhere. */
static bool has_path(const struct code_mapping *told, const char *path)
{
	size_t n = strlen(path);

	return strncmp(told->path, path, n) == 0 &&
	       (!told->path[n] || strcmp(told->path + n, " (deleted)") == 0);
}

/* Memory of no file has an offset in reports, which means nothing. */
static bool is_same(const struct code_mapping *is, const struct code_mapping *told)
{
	return is->lo == told->lo && is->ino == told->ino && is->dev == told->dev &&
	       (!is->ino || is->off == told->off) && is->is_readable == told->is_readable &&
	       is->is_writable == told->is_writable && is->is_shared == told->is_shared &&
	       is->is_executable == told->is_executable && has_path(told, is->path);
}

static const struct code_mapping *reported(const struct reports *r, uint64_t at)
{
	for (size_t i = r->batch.n; i-- > 0;)
		if (r->batch.p[i].kind == REPORT_MAPPED && r->batch.p[i].mapping.lo == at)
			return &r->batch.p[i].mapping;
	return NULL;
}

/* Returns whether it differs. */
static bool look_at(const struct reports *r, const struct code_maps *maps, const struct kind *kind,
		    uint64_t at)
{
	const struct code_mapping *is = code_maps_find(maps, at), *told = reported(r, at);
	bool ok = is && told && is_same(is, told);

	printf("%s: %s\n", kind->what, ok ? "the same" : "differs");
	if (!ok && is && told)
		printf("    \"%s\" is reported, and \"%s\" is mapped\n", told->path, is->path);
	return !ok;
}

int main(void)
{
	struct reports_opts opts = {
		.pid = getpid(), .mappings_only = true, .ring_bytes = RING_BYTES};
	long page = sysconf(_SC_PAGESIZE);
	struct cairn_err err = {0};
	struct code_maps maps;
	struct reports r;
	void *at[N_KINDS];
	int n_wrong = 0;

	if (reports_open(&r, &opts, &err) < 0) {
		printf("skipped: %s\n", err.msg);
		return SKIPPED;
	}
	int fd = memfd_create("of-a-file", 0);
	if (fd < 0 || ftruncate(fd, page))
		return 1;
	for (size_t i = 0; i < N_KINDS; i++) {
		at[i] = mmap(NULL, (size_t)page, kinds[i].protection, kinds[i].flags,
			     kinds[i].of_file ? fd : -1, 0);
		/* So that the next one is not joined to it. */
		mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at[i] == MAP_FAILED)
			return 1;
	}
	if (reports_take(&r, &err) < 0 || code_maps_read(getpid(), &maps, &err) < 0)
		return 1;
	for (size_t i = 0; i < N_KINDS; i++)
		n_wrong += look_at(&r, &maps, &kinds[i], (uint64_t)(uintptr_t)at[i]);
	code_maps_fini(&maps);
	reports_close(&r);
	return n_wrong != 0;
}
