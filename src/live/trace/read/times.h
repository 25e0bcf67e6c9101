/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of time that events are shown with. */
#ifndef TRACE_TIMES_H
#define TRACE_TIMES_H

#include "trace/trace.h"

/* The moment from which the times of a trace's events are counted. */
struct trace_times {
	uint64_t wall_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	bool needs_delta;
	struct map last; /* by thread, the time of its last event */
};

/* When the probes are attached. Returns 0 or -ENOMEM. */
int times_begin(struct cairn_trace *t, struct cairn_err *err);
void times_free(struct trace_times *times); /* takes NULL */

/* Sets the times of an event, in the order in which events are handed out. Returns 0 or -ENOMEM. */
int times_note(struct trace_times *times, struct cairn_event *event);

/* The event's time of the kind that is shown, in nanoseconds. */
uint64_t event_time_ns(const struct cairn_event *event);

/* The time as text: "    0.000412", "2026-05-03T10:20:30.123456+02:00". */
void print_time(const struct cairn_event *event, FILE *out);
/* Members of a JSON object that only some kinds have, each with a comma before it. */
void print_time_members(const struct cairn_event *event, FILE *out);

#endif
