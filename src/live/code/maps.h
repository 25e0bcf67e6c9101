/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a process: /proc/PID/maps, read and searched. */
#ifndef CODE_MAPS_H
#define CODE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cairn/err.h>

#include "base/vec.h"

struct code_mapping {
	uint64_t lo, hi; /* addresses [lo, hi) */
	uint64_t off;    /* in the file, of lo */
	dev_t dev;
	ino_t ino; /* 0: no file */
	bool is_executable, is_readable, is_writable, is_shared, is_deleted;
	/* "/usr/lib/...", "[stack]", "[vdso]"; "" of an anonymous one; without " (deleted)" */
	const char *path;
};

struct code_maps {
	VEC(struct code_mapping) p; /* by address, without overlaps */
	char *text;                 /* holds the paths */
};

/*
 * code_maps_parse - the text of /proc/PID/maps
 *
 * @text  malloc()ed, NUL-terminated; the result's, also after an error
 * Malformed lines are left out; a line that overlaps belongs to the line above. Returns 0; -ENOMEM.
 */
int code_maps_parse(char *text, struct code_maps *ret, struct cairn_err *err);

/*
 * code_maps_read - the present mappings of @pid
 *
 * Returns 0; -ESRCH when there is no such process, -EACCES without permission, -ENOMEM, the errors
 * of read(2). Cost: one read of the file; the kernel formats about a microsecond per line.
 */
int code_maps_read(int pid, struct code_maps *ret, struct cairn_err *err);

void code_maps_fini(struct code_maps *maps);

/*
 * The index of the first mapping that ends after @at; one past the last when none does. Cost: O(log
 * n).
 */
size_t code_maps_first(const struct code_maps *maps, uint64_t at);

/* The mapping that holds @at, NULL when none does. Cost: O(log n). */
const struct code_mapping *code_maps_find(const struct code_maps *maps, uint64_t at);

#endif
