/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel reports of processes: mappings of code, forks, execs and ends, in the order in
 * which they happened
 */
#ifndef PROF_REPORTS_H
#define PROF_REPORTS_H

#include "base/arena.h"
#include "code/maps.h"
#include "prof/perf_ring.h"

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
	uint64_t n_lost;
};

/*
 * reports_open - from now on note what happens to all processes
 *
 * Returns 0; -EPERM, -EACCES and the other errors of perf_event_open(2). reports_close() in both
 * cases. Cost: a ring of 256 KiB for each processor.
 */
int reports_open(struct reports *r, struct cairn_err *err);

/* What happened since the last call, in r->batch, until the next one. Returns 0 or -ENOMEM. */
int reports_take(struct reports *r, struct cairn_err *err);

void reports_close(struct reports *r);

#endif
