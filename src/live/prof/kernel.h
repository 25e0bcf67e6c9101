/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's side of a profile: programs, maps, events. */
#ifndef PROF_KERNEL_H
#define PROF_KERNEL_H

#include <cairn/prof.h>

#include "base/vec.h"
#include "trace/weigh.h"
#include "walk/walker.h"

/* Samples a second where none are asked for. */
enum { PROF_DEFAULT_HZ = 99 };

struct profile_bpf;
struct cairn_trace;
struct ring_buffer;

struct prof_kernel {
	struct profile_bpf *bpf;
	struct ring_buffer *ring;
	VEC(int) events; /* perf events, one for each processor */
	VEC(int) links;
	enum cairn_prof_event event; /* that is really counted */
	struct cairn_trace *probes;  /* of CAIRN_PROF_PROBE; NULL */
	struct trace_links probe_links;
	bool has_stopped;
};

/*
 * prof_kernel_load - load the programs, and follow forks and execs from now on
 *
 * @probes     of CAIRN_PROF_PROBE, checked (trace/weigh.h); else NULL; borrowed
 * @on_record  of the ring; a negative result ends the reading
 * Returns 0; -EPERM, -EOPNOTSUPP (no BTF, too old), -ENOENT (no such cgroup), the errors of bpf(2).
 * prof_kernel_free() in both cases.
 */
int prof_kernel_load(struct prof_kernel *k, const struct cairn_prof_opts *opts,
		     struct cairn_trace *probes,
		     int (*on_record)(void *ctx, void *record, size_t size), void *ctx,
		     struct cairn_err *err);

struct walker_maps prof_kernel_maps(const struct prof_kernel *k);

/*
 * prof_kernel_start - samples from now on
 *
 * Returns 0; the errors of perf_event_open(2), of links_attach() and of tracepoint_attach().
 */
int prof_kernel_start(struct prof_kernel *k, const struct cairn_prof_opts *opts,
		      struct cairn_err *err);
/* From now on each stack is sent again, once, with another hash. */
void prof_kernel_next_window(struct prof_kernel *k);
void prof_kernel_stop(struct prof_kernel *k);

/* Sums over the processors. */
void prof_kernel_counts(const struct prof_kernel *k, struct cairn_prof_counts *ret);

/* The memory of its fixed maps. */
size_t prof_kernel_bytes(const struct prof_kernel *k);

void prof_kernel_free(struct prof_kernel *k);

#endif
