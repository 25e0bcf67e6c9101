/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of `cairn trace`. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/trace.h>

#include "sidecar.h"

/* More probed files have to wait for another trace until their sidecars are made. */
#define KEPT_FILES_MAX 16

struct trace_exports;
struct trace_output;
struct kernel_source;

struct session {
	struct cairn_trace *trace;
	struct sidecar_wish wish;
	/* Files that had no sidecar. */
	const struct cairn_binary *unkept[KEPT_FILES_MAX];
	size_t n_unkept;
	/* Sidecars that answered, and of which binaries. */
	const struct cairn_sidecar *sidecars[KEPT_FILES_MAX];
	const struct cairn_binary *sidecar_bins[KEPT_FILES_MAX];
	size_t n_sidecars;
	struct kernel_source *kernels; /* sources of kernel probes */
	int kernel_status;             /* of the one that could not be opened */
	const char *debug_file;        /* of the kernel */
	FILE *out;                     /* events, and in JSON the summary */
	const char *out_name;          /* of its file; NULL: it is standard output */
	struct trace_output *output;   /* of it; NULL: it is standard output */
	/* Files in the formats of other programs; NULL: there are none. */
	struct trace_exports *exports;
	bool is_attached;
	bool json;
	bool fail_on_loss;
	uint32_t sample; /* one of so many hits; 0 and 1: all */
	uint64_t sampled_since_ns;
	double max_slowdown; /* 0.1: 10 %; 0: no limit */
	bool has_limit;      /* it was given */
	double slowdown;     /* when the guard acted last; 0: it did not */
	bool has_given_up;   /* the probes were removed */
	bool has_command;
	bool of_process; /* a command or processes that are named, not all of them */
	bool looks;      /* which probed files are mapped is of interest */
	int *pids;       /* of -p */
	size_t n_pids;
	const char *cgroup, *comm;
	bool has_no_cgroup; /* its directory is gone for now */
	int command_output; /* a descriptor; 0: the command's output is ours */
	bool wants_children;
	bool told_symbols; /* that copies of functions known by their symbols cannot be known */
	/*
	 * By probe: true if its file was seen among the process's mappings. NULL
	 * until the first look.
	 */
	bool *mapped;
	bool mapped_is_whole; /* a file that is not in it was never mapped */
	bool all_mapped;
	unsigned int n_looks; /* that could see something */
	uint64_t next_look_ns;
	uint64_t max_events; /* 0: no limit */
	uint64_t n_events;
	struct aggregate_session *aggregates; /* NULL: hits are events */
	struct cairn_trace_graph *graph;      /* NULL: events are lines */
	uint64_t every_ns;                    /* between tables; 0: one at the end */
	struct stack_names *names;            /* of frames; NULL: no stacks are wanted */
	int status;                           /* of what was written in the end */
	const char *profile;                  /* file for rows by $stack; NULL */
};

/* ---- sidecars ---- */

/* The one of @bin, for the library (cairn_trace_opts.find_sidecar); @ctx is the session. */
int trace_find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		       struct cairn_err *err);
/*
 * Instead of a sidecar that could not be believed the debug information answered, if there is any:
 * a new one is made of it.
 */
void trace_note_trouble(struct session *session);
/* Makes those that were missing, so that the next trace of these files starts at once. */
void trace_keep_sidecars(const struct session *session);

/* ---- the run ---- */

/*
 * trace_watch - events or tables of a trace that is attached, until its end, and the summary
 *
 * @duration_ns  0: until Ctrl-C, the targets' end or enough events, which end it in any case
 * Returns an exit status, after a message.
 */
int trace_watch(struct session *session, uint64_t duration_ns);

/* ---- what is said ---- */

/* The meaning of a probe's text, where it is not one function; @first: the first of its probes. */
void trace_added(struct session *session, const char *text, uint32_t first);
/*
 * Prints the sites that would be attached and the values that would be fetched. An exit status:
 * STATUS_NO when they would be refused.
 */
int trace_plan(const struct session *session, bool best_effort, bool verbose);
/* The sites that are not attached, and why. Nothing when there are none. */
void trace_refusals(const struct cairn_trace *t, FILE *out);
/* The sites where events may not be calls, and why. Nothing when there are none. */
void trace_caveats(const struct cairn_trace *t, FILE *out);
/*
 * Reports the .dwo files that were not found: calls may be missed. Returns their number; usually 0,
 * without a report.
 */
size_t trace_missing(const struct cairn_trace *t);
/* One line of talk: it runs. */
void trace_attached(const struct session *session, unsigned int n_sites);
/* Sites, events, losses, times; an exit status. */
int trace_summary(const struct session *session);

#endif
