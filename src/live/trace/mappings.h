/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executable mappings of a command from its first instruction on, as the kernel reports them.
 */
#ifndef TRACE_MAPPINGS_H
#define TRACE_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mappings;

/* One executable mapping of a file. */
struct mapping {
	int pid;
	dev_t dev; /* the file system's, which on overlayfs and btrfs is not stat's */
	uint64_t inode;
	const char *path; /* until the next one */
};

/*
 * mappings_open - from now on note the mappings of a process, its threads and its children
 *
 * @pid  it must not have begun to run the code of interest
 * Returns NULL where perf_event_open(2) is not allowed, or memory is short: then look at
 * /proc/PID/maps. Cost: a perf event and a ring of 36 KB for each processor.
 */
struct mappings *mappings_open(int pid);

/* Hands out the mappings since the last call; a processor's in their order. Never waits. */
void mappings_take(struct mappings *m, void (*on_mapping)(void *ctx, const struct mapping *mapping),
		   void *ctx);

/* No mapping has been missed: something was seen, and no ring ran over. */
bool mappings_are_whole(const struct mappings *m);

void mappings_close(struct mappings *m); /* NULL is fine */

#endif
