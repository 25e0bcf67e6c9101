/* SPDX-License-Identifier: BSD-2-Clause */
/* The rings in which perf events of all processors report, one for each processor. */
#ifndef PERF_RING_H
#define PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "base/err.h"
#include "base/vec.h"

struct perf_ring {
	int fd;
	struct perf_event_mmap_page *page; /* and the records after it */
	size_t bytes;                      /* of records; a power of two */
};

struct perf_rings {
	VEC(struct perf_ring) list;
	/* A record in one piece: it may run over the ring's end. The kernel's size has 16 bits. */
	union {
		struct perf_event_header header;
		uint64_t words[(UINT16_MAX + 1) / 8];
	} record;
};

/*
 * perf_open - an event on one processor
 *
 * @pid  -1: all processes
 * Returns a file descriptor; -ENODEV: the processor is switched off; the errors of
 * perf_event_open(2).
 */
int perf_open(struct perf_event_attr *attr, int pid, int processor);

/* The number of processors that there may be, switched on or off. */
int perf_n_processors(void);

/*
 * perf_rings_add - a ring for an event
 *
 * @fd     taken over, also after an error
 * @bytes  a power of two, at least a page
 * Returns 0; -ENOMEM, the errors of mmap(2).
 */
int perf_rings_add(struct perf_rings *r, int fd, size_t bytes, struct cairn_err *err);

/*
 * perf_rings_take - hand out the records that are there
 *
 * @fn  gets r->record, until the next one; a result other than 0 ends the call
 * Returns 0 or the result of @fn. -EBADMSG: a ring is damaged; it is emptied.
 */
int perf_rings_take(struct perf_rings *r, int (*fn)(void *ctx, const struct perf_event_header *h),
		    void *ctx);

void perf_rings_fini(struct perf_rings *r);

#endif
