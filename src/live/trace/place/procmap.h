/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a process maps as code. */
#ifndef TRACE_PROCMAP_H
#define TRACE_PROCMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cairn/addr.h>

#include "base/err.h"
#include "base/vec.h"

/* One executable mapping of a file. */
struct procmap_entry {
	struct cairn_addr lo, hi;
	struct cairn_foff off; /* of lo in the file */
	uint64_t inode;
	bool deleted;
	char *path; /* as the kernel shows it, without " (deleted)" */
};

struct procmap {
	int pid;
	VEC(struct procmap_entry) e;
};

/*
 * procmap_read - the executable file mappings of a process, by address
 *
 * Returns 0; -ESRCH: it has ended; -EPERM: it may not be looked at; -ENOMEM. procmap_free() takes
 * the result of a failure, too.
 */
int procmap_read(int pid, struct procmap *ret, struct cairn_err *err);
void procmap_free(struct procmap *m);

/*
 * procmap_path - a name by which an entry's very file can be opened, deleted or not, whatever the
 * namespace
 *
 * Needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
 */
void procmap_path(const struct procmap *m, const struct procmap_entry *e, char *buf, size_t size);

/* Whether an entry maps the file that @st describes. */
bool procmap_is_file(const struct procmap *m, const struct procmap_entry *e, const struct stat *st);

#endif
