/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of a trace's events, for formats that have types. */
#ifndef EXPORT_EVENT_VALUE_H
#define EXPORT_EVENT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/trace.h>

#include "base/arena.h"

enum event_value_kind {
	EVENT_BOOL,
	EVENT_INT,  /* fits an int64_t */
	EVENT_UINT, /* only a uint64_t */
	EVENT_FLOAT,
	EVENT_STRING, /* UTF-8 */
	EVENT_JSON,   /* a struct or an array, or why there is no value */
};

struct event_value {
	enum event_value_kind kind;
	bool truth;
	int64_t number;
	uint64_t natural;
	double real;
	const char *text; /* in the arena */
};

/*
 * event_value - a value as JSON has it
 *
 * Returns 0, -ENOMEM, or what cairn_event_value_print() returned.
 */
int event_value(const struct cairn_event *event, uint32_t i, struct arena *arena,
		struct event_value *ret);

/* The nanoseconds of the value $duration; false: the event has none. */
bool event_duration(const struct cairn_event *event, uint64_t *ret);

/* Not in a trace: a number and its name. */
struct event_absence {
	const char *name;
	uint64_t n;
};

enum { EVENT_ABSENCES_MAX = 7 };

/* Those that are not 0, of EVENT_ABSENCES_MAX; returns how many. */
size_t event_absences(const struct cairn_trace_stats *stats, struct event_absence *ret);

#endif
