/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of events in the formats of other programs, chosen by their names. */
#ifndef CLI_TRACE_EXPORTS_H
#define CLI_TRACE_EXPORTS_H

#include <cairn/trace.h>

#include "cmd.h"

struct trace_exports;

/* Whether -o NAME means such a file. */
bool trace_exports_is_name(const char *name);

/* Opens those of the names that mean one; an exit status. *@ret stays NULL if none does. */
int trace_exports_open(const struct opt_list *names, struct trace_exports **ret);

/* Writes an event to all of them. Takes NULL. Returns 0 or a negative errno. */
int trace_exports_event(struct trace_exports *x, const struct cairn_event *event);
/* Writes what is there. Takes NULL. Returns 0 or a negative errno. */
int trace_exports_flush(struct trace_exports *x);
/* The name of the file that could not be written; NULL: there is none. */
const char *trace_exports_failed(const struct trace_exports *x);
/*
 * Takes NULL. Reports what could not be written, unless it was; an exit status.
 *
 * @stats  of the trace; NULL: the probes were not set, and nothing is written at the end
 */
int trace_exports_close(struct trace_exports *x, const struct cairn_trace_stats *stats);

#endif
