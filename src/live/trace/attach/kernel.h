/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side of a trace: programs, maps, links. */
#ifndef TRACE_KERNEL_H
#define TRACE_KERNEL_H

#include "trace/attach/links.h"

struct trace_bpf;
struct ring_buffer;

struct trace_kernel {
	struct trace_bpf *bpf;
	struct ring_buffer *ring;
	struct trace_links links;
	bool sleepable, has_children;
	int fork_link, exit_link;
	int walk_links[2]; /* forks and execs, for stacks */
	/* The callback of the poll in progress. */
	int (*on_event)(void *ctx, const struct cairn_event *event);
	void *ctx;
	int stop, n_delivered;
	uint64_t began_ns; /* the last look into the ring */
	struct decode_space *space;
	uint64_t n_running; /* children of the traced process that ran before probes were set */
	uint64_t n_broken;  /* records that cannot be ours */
};

/*
 * kernel_load - load the programs that the planned probes need and fill the tables
 *
 * Tries the best first: sleepable programs for uprobe_multi, then without sleeping, then single
 * uprobes.
 * Returns 0; -EPERM with the permitted command, -EOPNOTSUPP, or the errors of bpf(2).
 */
int kernel_load(struct cairn_trace *t, struct trace_kernel **ret, struct cairn_err *err);
/*
 * Closes all that loading and attaching have opened except the programs and maps: events can still
 * be read.
 */
void kernel_detach(struct trace_kernel *k);
void kernel_free(struct trace_kernel *k);

/* Sums a probe's counters over the processors; returns 0 or a negative errno. */
int kernel_counts(const struct trace_kernel *k, uint32_t probe, struct cairn_trace_counts *ret);
/* The draws of one of so many, rounded to the nearest; 0: each hit is taken. */
uint32_t trace_draw_below(uint32_t one_of);
uint64_t kernel_missed(const struct trace_kernel *k);

/* From now on note what the command maps, as far as the kernel reports it here. */
void mapped_watch(struct cairn_trace *t);

/*
 * verify_files - compare the mapped files and memory with the analysed ones; sets sites refused, or
 * fails
 */
int verify_files(struct cairn_trace *t, struct cairn_err *err);

#endif
