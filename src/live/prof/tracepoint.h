/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracepoints of the kernel as events of a profile. */
#ifndef PROF_TRACEPOINT_H
#define PROF_TRACEPOINT_H

#include <cairn/err.h>

/*
 * tracepoint_attach - run a program at each event of a tracepoint
 *
 * @name     "CATEGORY:NAME"
 * @program  of type tracepoint; @raw_program of type raw tracepoint, for where the event's number in
 *           tracefs cannot be read
 * Returns a file descriptor that detaches when closed. Negative:
 *   -ENOENT  no such tracepoint (err: where they are listed)
 *   -EPERM   not permitted (err: the command that is)
 *   -EACCES  tracefs is not mounted or cannot be read, and the tracepoint has no raw form (err: the
 *            command that mounts it)
 *   and the errors of perf_event_open(2), ioctl(2) and bpf(2)
 */
int tracepoint_attach(const char *name, int program, int raw_program, struct cairn_err *err);

#endif
