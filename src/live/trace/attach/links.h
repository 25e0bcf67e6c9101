/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of a trace's sites to a program of the kernel. */
#ifndef TRACE_LINKS_H
#define TRACE_LINKS_H

#include "trace/trace.h"

/* What a link's hits are, which is known of those of the kernel. */
enum link_role {
	LINK_OF_HITS,
	LINK_OF_ENTRIES, /* of functions that have a link for returns, too */
	LINK_OF_RETURNS,
	LINK_OF_COPIES,      /* their entries */
	LINK_OF_COPY_EXITS,  /* those that are missed are returns */
	LINK_OF_COPY_RESETS, /* no hits of anything */
	LINK_OF_MULTI,       /* of many hits: kernel_multi.h */
	LINK_N_ROLES
};

/* Of kernel probes: what never reached a program. */
struct links_missed {
	uint64_t hits;
	uint64_t returns; /* of calls that were seen to begin */
	bool is_unknown;  /* the kernel does not tell how many more */
};

struct trace_links {
	enum cairn_trace_backend backend;
	int pid;                          /* hits of this process alone; 0: of all */
	int program_fds[TRACE_N_CLASSES]; /* for records of each class; -1: none are of it */
	/*
	 * The same for probes that follow their calls, which a profile has none of. By sessions
	 * there is one program; else one is for entries, and return_fds for returns.
	 */
	int follow_fds[TRACE_N_CLASSES], return_fds[TRACE_N_CLASSES];
	/* And for those that follow them by exits.h. */
	int enter_fds[TRACE_N_CLASSES], exit_fds[TRACE_N_CLASSES];
	/* And for inlined copies: copies.h. */
	int copy_enter_fds[TRACE_N_CLASSES], copy_exit_fds[TRACE_N_CLASSES];
	int copy_reset_fds[TRACE_N_CLASSES];
	/* For sites with by_multi, if there are any, of the same instructions: kernel_multi.h. */
	int multi_fds[TRACE_N_CLASSES];
	bool has_kernel_multi;
	uint32_t located_program; /* of sites with trace_set_program(), those of this number */
	bool has_sessions;
	VEC(int)
	fds; /* and, for single uprobes, perf events: closing them in reverse order detaches */
	VEC(uint8_t) roles; /* enum link_role; of the kernel, where each descriptor is a link */
	uint32_t n, n_attached;
	struct links_missed missed; /* of those that were detached */
};

/* How a probe's calls are followed. */
enum link_follows {
	LINKS_FOLLOW_NONE,
	LINKS_FOLLOW_RETURNS,
	LINKS_FOLLOW_EXITS,
	LINKS_FOLLOW_COPIES, /* of an inlined copy */
};

static inline enum link_follows links_follow(const struct trace_probe *p)
{
	if (!p->returns)
		return LINKS_FOLLOW_NONE;
	return p->by_exits ? LINKS_FOLLOW_EXITS : LINKS_FOLLOW_RETURNS;
}

static inline enum link_follows links_follow_site(const struct trace_probe *p,
						  const struct trace_site *site)
{
	return site->copy ? LINKS_FOLLOW_COPIES : links_follow(p);
}

/*
 * links_attach - links for every site that is ready; all or none but with best_effort
 *
 * Returns 0; -EPERM with the permitted command, -ENOENT for a site that the kernel refuses, -ESRCH,
 * -ENOMEM, or the errors of bpf(2).
 */
int links_attach(struct cairn_trace *t, struct trace_links *l, struct cairn_err *err);

/* The hits and returns that kernel probes have missed so far. */
struct links_missed links_missed(const struct trace_links *l);

/* Closes them; the programs stay. */
void links_detach(struct trace_links *l);
/* Frees what is noted of them. Closes nothing. */
void links_fini(struct trace_links *l);

#endif
