/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that a trace is of, by their numbers, or the command's. */
#ifndef TRACE_TRACED_H
#define TRACE_TRACED_H

#include "trace/trace.h"

/* The kernel keeps so much of a thread's name, with its NUL (TASK_COMM_LEN). */
#define COMM_BYTES 16

struct traced {
	int pid;
	int pidfd; /* -1: not open, or it has ended */
	bool has_ended;
};

/*
 * traced_take_opts - note the processes that the options name, each once
 *
 * Returns 0; -EINVAL: no process id, or too many; -ESRCH: there is no such process; -ENOMEM.
 */
int traced_take_opts(struct cairn_trace *t, struct cairn_err *err);

/* The trace is of this process alone: the command's. Returns 0 or -ENOMEM. */
int traced_set(struct cairn_trace *t, int pid, struct cairn_err *err);

/* From now on their ends are noticed. Returns 0; -ESRCH; the errors of pidfd_open(2). */
int traced_open(struct cairn_trace *t, struct cairn_err *err);
void traced_close(struct cairn_trace *t);

/* Calls @on_end for each that has ended since the last call. True once all have ended. */
bool traced_are_gone(struct cairn_trace *t, void (*on_end)(struct cairn_trace *t, int pid));

/* True if hits are chosen by a table of processes: children are followed, or there are several. */
static inline bool traced_has_table(const struct cairn_trace *t)
{
	return t->n_traced > 1 || (t->n_traced && t->opts.follow_children);
}

/*
 * cgroup_find - what a directory of cgroup v2 is
 *
 * Returns 0; -ENOENT: there is no such directory, or it is not one of cgroup v2 (err).
 */
int cgroup_find(const char *path, struct trace_cgroup *ret, struct cairn_err *err);

#endif
