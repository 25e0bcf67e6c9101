/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes `cairn trace` is of. */
#ifndef CLI_TRACE_WHICH_H
#define CLI_TRACE_WHICH_H

#include "cmd.h"
#include "trace.h"

/* The numbers of -p, "1,2" each. An exit status. */
int trace_which_pids(const struct opt_list *list, struct session *session);
/* The file for the command's output, replaced if it exists. An exit status. */
int trace_which_output(const char *path, int *ret);
/* Tells that a probe's library is not mapped yet, once it is added. */
void trace_which_awaited(struct session *session, uint32_t probe);
/* Tells which processes are traced, unless they are named. */
void trace_which_attached(const struct session *session);
/* "process 12"; "one of 3 processes". As snprintf. */
int trace_which_text(const struct session *session, char *buf, size_t size);

#endif
