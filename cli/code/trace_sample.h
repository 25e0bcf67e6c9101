/* SPDX-License-Identifier: BSD-2-Clause */
/* Some of the hits of `cairn trace`. */
#ifndef CLI_TRACE_SAMPLE_H
#define CLI_TRACE_SAMPLE_H

#include "json.h"
#include "trace.h"

/* "1/N". An exit status. */
int trace_sample_read(const char *text, uint32_t *ret);
/* "10%", "off". An exit status. */
int trace_guard_read(const char *text, double *ret);
/* Whether the traced processes are slowed down too much; acts, and tells it. */
void trace_guard_look(struct session *session);
/* "1/8 of the hits", and since when. As snprintf. */
int trace_sample_text(const struct session *session, char *buf, size_t size);
/* That the counts of the summary are of some of the hits, and of how many. Nothing if of all. */
void trace_sample_summary(const struct session *session, const struct cairn_trace_stats *stats);
/* The member of a table or a summary; nothing if all hits are taken. */
void trace_sample_put(struct json *j, const struct session *session);
/* Those of the summary, if the guard acted. */
void trace_guard_put(struct json *j, const struct session *session,
		     const struct cairn_trace_stats *stats);

#endif
