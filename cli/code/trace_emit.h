/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn trace --emit: a script for another tool instead of a trace. */
#ifndef CLI_TRACE_EMIT_H
#define CLI_TRACE_EMIT_H

#include "trace.h"
#include "trace_aggregate.h"

/* Options that a script cannot have; the library refuses those that it is told. */
struct emit_values {
	bool dry_run, json, has_output, has_limit;
	const char *time;
	const struct aggregate_values *aggregates;
};

/* An exit status, before anything is opened. */
int trace_emit_check(const struct emit_values *values);
/* The script of a planned trace, to standard output; an exit status. */
int trace_emit(const struct session *session, const char *tool);

#endif
