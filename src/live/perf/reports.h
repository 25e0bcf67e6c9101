/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel reports of processes: mappings of code, forks, execs and ends, in the order in
 * which they happened
 *
 * Polling /proc/PID/maps misses a command that ends soon, and a library that is loaded and closed
 * between two polls; so it cannot tell "not called" from "not there". The kernel can.
 */
#ifndef PERF_REPORTS_H
#define PERF_REPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "code/maps.h"
#include "perf/ring.h"

enum report_kind { REPORT_MAPPED, REPORT_FORKED, REPORT_EXECED, REPORT_EXITED };

struct report {
	enum report_kind kind;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	int pid, parent;  /* parent: of a fork */
	struct code_mapping mapping;
};

struct reports {
	struct perf_rings rings;
	VEC(struct report) batch;
	struct arena paths; /* of the batch */
	uint64_t n_lost;    /* reports; 1 for a ring that is damaged */
};

struct reports_opts {
	int pid;            /* and what it starts from now on; -1: all processes */
	bool mappings_only; /* no forks, execs and ends */
	size_t ring_bytes;  /* of each processor: a power of two, at least a page */
};

/*
 * reports_open - from now on note what happens to processes
 *
 * Returns 0; -EPERM, -EACCES and the other errors of perf_event_open(2), -ENOMEM. reports_close()
 * in both cases. Cost: an event and a ring for each processor.
 */
int reports_open(struct reports *r, const struct reports_opts *opts, struct cairn_err *err);

/*
 * Takes what happened since the last call into r->batch, until the next one. Returns 0 or -ENOMEM.
 */
int reports_take(struct reports *r, struct cairn_err *err);

void reports_close(struct reports *r);

#endif
