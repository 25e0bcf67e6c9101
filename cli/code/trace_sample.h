/* SPDX-License-Identifier: BSD-2-Clause */
/* Some of the hits of `cairn trace`. */
#ifndef CLI_TRACE_SAMPLE_H
#define CLI_TRACE_SAMPLE_H

#include "json.h"
#include "trace.h"

/* "1/N". An exit status. */
int trace_sample_read(const char *text, uint32_t *ret);
/* That the counts of the summary are of some of the hits, and of how many. Nothing if of all. */
void trace_sample_summary(const struct cairn_trace_stats *stats);
/* The member of a table or a summary; nothing if all hits are taken. */
void trace_sample_put(struct json *j, const struct cairn_trace_stats *stats);

#endif
