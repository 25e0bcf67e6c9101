/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf-map files: /tmp/perf-PID.map
 *
 *	7f3a4c000 1c0 LazyCompile:~fib /srv/a.js:3
 *	address   size name	(both hexadecimal)
 *
 * Appended to by node --perf-basic-prof, the JVM (jcmd Compiler.perfmap), .NET, BEAM, and others.
 * It has names and nothing else: no end of a function's life, no generation. The last line about an
 * address counts.
 */
#ifndef CODE_PERF_MAP_H
#define CODE_PERF_MAP_H

#include "code/name_map.h"
#include "code/process_file.h"

struct perf_name {
	uint64_t lo;
	const char *name;
};

struct perf_map {
	char path[64];
	struct stat st; /* of the file that was read */
	struct name_map names;
	VEC(struct perf_name) items;
	char *text;
};

/*
 * perf_map_parse - the lines of a file
 *
 * @text  malloc()ed, the map's also after an error; @n bytes and a NUL
 * Returns 0: malformed lines are left out, and so is a last line without its end, which is still
 * being written. -ENOMEM. Cost: O(n log n).
 */
int perf_map_parse(char *text, size_t n, struct perf_map *ret);

/*
 * perf_map_refresh - read the map of a process, if it changed since
 *
 * Returns 0, also when there is none; as process_file_read().
 */
int perf_map_refresh(struct perf_map *m, int pid, struct cairn_err *err);

/* The function at @at and where it begins; NULL: none. */
const char *perf_map_find(const struct perf_map *m, uint64_t at, uint64_t *ret_lo);

void perf_map_fini(struct perf_map *m);

#endif
