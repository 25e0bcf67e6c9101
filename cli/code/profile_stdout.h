/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard output of `cairn profile`, whose reader may stop reading
 *
 * It is waited for until Ctrl-C. What it has not taken then is kept until sampling has ended, and
 * after that the reader has a second for each piece of it, and five in all.
 */
#ifndef CLI_PROFILE_STDOUT_H
#define CLI_PROFILE_STDOUT_H

#include <stdio.h>

struct trace_output;

struct profile_stdout {
	struct trace_output *output;
	FILE *plain; /* what stdout was before */
};

/* From here on stdout is one that does this. Returns an exit status. */
int profile_stdout_begin(struct profile_stdout *s);

/* Says what was dropped. Returns @status, or if that is 0 the one of what could not be written. */
int profile_stdout_end(struct profile_stdout *s, int status);

#endif
