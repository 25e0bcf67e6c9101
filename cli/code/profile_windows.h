/* SPDX-License-Identifier: BSD-2-Clause */
/* A run without an end, cut into windows: each is a profile of its own. */
#ifndef CLI_PROFILE_WINDOWS_H
#define CLI_PROFILE_WINDOWS_H

#include "profile_run.h"

struct profile_windows {
	double seconds;       /* of a window */
	unsigned long n_keep; /* files of as many windows stay */
	const struct opt_list *out;
	const char *title;
};

/*
 * profile_windows_run - sample, and write and push each window, until Ctrl-C or the targets' end
 *
 * The run was started. A window that cannot be made, written or pushed is reported, and the run
 * goes on; what was sampled in one that cannot be made is in the next one.
 * Returns an exit status: that of the first one that could not be written, else that of the last
 * push.
 */
int profile_windows_run(struct profile_run *run, const struct profile_windows *w, double limit,
			bool json);

#endif
