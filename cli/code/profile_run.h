/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of `cairn profile`, as its files share it. */
#ifndef CLI_PROFILE_RUN_H
#define CLI_PROFILE_RUN_H

#include <cairn/prof.h>

#include "profile.h"
#include "push.h"

struct profile_run {
	struct cairn_prof *prof;
	struct cairn_prof_counts counts;
	const struct cairn_profile *profile;
	struct cairn_profile_shares shares;
	struct profile_threads threads;
	size_t type;       /* of the profile's values, that is shown */
	unsigned int hz;   /* 0: each event is a sample */
	uint64_t since_ns; /* when it was opened, of clock_now_ns() */
	double seconds;    /* from start to stop */
	size_t n_top;      /* functions to show */
	bool fail_on_loss; /* then losses are an exit status */
	struct push *push; /* where the profile is sent; NULL */
};

/*
 * profile_report - the summary: what was sampled, how stacks end, what it cost, threads, functions
 *
 * Returns an exit status: STATUS_NO without a sample, STATUS_LOST.
 */
int profile_report(const struct profile_run *run, bool json);

/* Losses from @before to @now, as comments of the profile, for its files. */
void profile_note_losses(struct cairn_profile *p, const struct cairn_prof_counts *before,
			 const struct cairn_prof_counts *now);

/*
 * Samples for so many seconds; 0: until Ctrl-C or the targets' end, which end it in any case.
 * Returns 0, or as cairn_prof_poll().
 */
int profile_sample(struct cairn_prof *prof, double seconds, struct cairn_err *err);

/*
 * Makes the unwind tables of processes that run already, for some seconds at most; until Ctrl-C.
 * Returns 0 or -ENOMEM.
 */
int profile_prepare(struct cairn_prof *prof, struct cairn_err *err);

/* Into the spool, with the host's name. An exit status, after a message. */
int profile_push_add(struct push *push, struct cairn_profile *profile);

/* A line on a terminal while it samples: samples, losses and the time left. */
struct profile_progress {
	uint64_t shown_ns;
};
void profile_progress(struct profile_progress *progress, const struct cairn_prof *prof,
		      uint64_t left_ns);
/* The same for @n unwind tables that are still to be made. */
void profile_progress_tables(struct profile_progress *progress, int n);
void profile_progress_end(struct profile_progress *progress);

#endif
