/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that are served, with their registries. */
#ifndef SERVE_PROCESSES_H
#define SERVE_PROCESSES_H

#include <cairn/err.h>

#include "base/vec.h"
#include "code/target.h"
#include "serve/served.h"

struct process {
	struct target_id id;
	int ended;             /* pidfd: readable when it has ended */
	struct served *served; /* its registry; NULL: nothing was ever registered */
};

struct processes {
	VEC(struct process *) all; /* in no order: a supervisor serves tens of them */
	int epoll;                 /* reports each process's end, with its pid as data; borrowed */
};

/*
 * process_get - a process by its pid, in its present state
 *
 * Returns 0; -ESRCH when it has ended; -ENOMEM, the errors of open(2) and mmap(2).
 */
int process_get(struct processes *ps, int pid, struct process **ret, struct cairn_err *err);

/* The registry of a process that has ended goes with it. */
void process_end(struct processes *ps, int pid);
void processes_fini(struct processes *ps);

#endif
