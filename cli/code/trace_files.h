/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of -o: events, events in other programs' formats, profiles of stacks. */
#ifndef CLI_TRACE_FILES_H
#define CLI_TRACE_FILES_H

#include "cmd.h"
#include "trace.h"

struct file_values {
	struct opt_list out;
	const char *rotate;
	bool repeats; /* tables are shown again and again */
};

/* Opens the files, before the probes are set. An exit status. */
int trace_files_open(const struct file_values *values, struct session *session);

/* An event for the files that have a format of their own; 0 or a negative errno. */
int trace_files_event(const struct session *session, const struct cairn_event *event);
/* Writes what is there. The first failure is returned: 0 or a negative errno. */
int trace_files_flush(const struct session *session);
/*
 * The thing that could not be written, if that is known: a file's name, or "the events". NULL:
 * nothing.
 */
const char *trace_files_failed(const struct session *session);
/* Why, for the failure @r of what wrote them: the same, or the errno that it did not know. */
int trace_files_error(const struct session *session, int r);
/* After all was written: says what a reader did not take. An exit status. */
int trace_files_dropped(const struct session *session);
/* An exit status: what could not be written, and was not reported before. */
int trace_files_close(struct session *session);

#endif
