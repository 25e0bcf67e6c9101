/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRACE_FAMILY_H
#define TRACE_FAMILY_H

struct cairn_trace;
struct trace_bpf;
struct trace_kernel;

/* family_note_traced - let hits of the processes that the trace is of through; 0 or an error */
int family_note_traced(const struct cairn_trace *t, struct trace_bpf *bpf);

/* One of them has ended, and its number may be given to another one. */
void family_forget(struct cairn_trace *t, int pid);

/*
 * family_find_running - find the children of the traced processes, and theirs, that run already
 *
 * With follow_children their events are let through from now on. Call it once the kernel reports
 * forks and exits, and before probes are set. Sets k->n_running. Children whose parent has ended
 * have another parent, and are not found.
 * Returns 0 or -ENOMEM. Cost: reads /proc/PID/stat of every process at least once.
 */
int family_find_running(const struct cairn_trace *t, struct trace_kernel *k);

#endif
