/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/read/times.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "trace/show/format.h"
#include "trace/show/print.h"

#define SECOND UINT64_C(1000000000)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

int times_begin(struct cairn_trace *t, struct cairn_err *err)
{
	struct trace_times *times = calloc(1, sizeof(*times));

	times_free(t->times);
	t->times = NULL;
	if (!times)
		return err_nomem(err, "a trace");
	map_init(&times->last);
	/* A clock that is set later shows in no event. */
	times->wall_offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	times->needs_delta =
		t->opts.time == CAIRN_TIME_DELTA || (t->format && t->format->needs_delta);
	t->times = times;
	return 0;
}

void times_free(struct trace_times *times)
{
	if (times)
		map_fini(&times->last);
	free(times);
}

int times_note(struct trace_times *times, struct cairn_event *event)
{
	uint64_t last = 0;

	event->wall_ns = event->time_ns + times->wall_offset_ns;
	if (!times->needs_delta)
		return 0;
	event->has_delta = map_get(&times->last, event->tid, &last);
	event->delta_ns = event->has_delta && event->time_ns > last ? event->time_ns - last : 0;
	return map_put(&times->last, event->tid, event->time_ns);
}

uint64_t event_time_ns(const struct cairn_event *e)
{
	switch (e->time) {
	case CAIRN_TIME_MONOTONIC:
		return e->time_ns;
	case CAIRN_TIME_WALL:
		return e->wall_ns;
	case CAIRN_TIME_DELTA:
		return e->delta_ns;
	case CAIRN_TIME_RELATIVE:
		break;
	}
	return e->since_ns;
}

/* A second as text, up to the fraction and after it. */
struct second {
	time_t at;
	bool is_known;
	char before[40], after[8];
};

/* Events of one second share it, as converting takes longer than all the rest of a line. */
static const struct second *second_of(uint64_t ns)
{
	static __thread struct second last;
	time_t at = (time_t)(ns / SECOND);
	struct tm tm;

	if (last.is_known && last.at == at)
		return &last;
	last = (struct second){.at = at, .is_known = true};
	if (!localtime_r(&at, &tm))
		return &last;
	long minutes = tm.tm_gmtoff / 60, size = minutes < 0 ? -minutes : minutes;
	strftime(last.before, sizeof(last.before), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(last.after, sizeof(last.after), "%c%02ld:%02ld", minutes < 0 ? '-' : '+',
		 size / 60 % 100, size % 60);
	return &last;
}

/* "    0.000412": five digits at least, and six; faster than by printf. */
static void put_seconds(uint64_t ns, FILE *out)
{
	enum { FRACTION = 6, WIDTH = 12 };
	char text[40], *end = text + sizeof(text), *s = end;
	uint64_t us = ns % SECOND / 1000;

	for (int i = 0; i < FRACTION; i++, us /= 10)
		*--s = (char)('0' + us % 10);
	*--s = '.';
	s = print_digits(s, ns / SECOND);
	while (end - s < WIDTH)
		*--s = ' ';
	fwrite(s, 1, (size_t)(end - s), out);
}

void print_time(const struct cairn_event *e, FILE *out)
{
	uint64_t ns = event_time_ns(e);

	if (e->time == CAIRN_TIME_WALL)
		fprintf(out, "%s.%06" PRIu64 "%s", second_of(ns)->before, ns % SECOND / 1000,
			second_of(ns)->after);
	else if (e->time == CAIRN_TIME_DELTA && !e->has_delta)
		fputs("           -", out);
	else
		put_seconds(ns, out);
}

void print_time_members(const struct cairn_event *e, FILE *out)
{
	if (e->time == CAIRN_TIME_WALL)
		fprintf(out, ",\"wall\":\"%s.%09" PRIu64 "%s\"", second_of(e->wall_ns)->before,
			e->wall_ns % SECOND, second_of(e->wall_ns)->after);
	if (e->time == CAIRN_TIME_DELTA && e->has_delta)
		fprintf(out, ",\"delta_ns\":%" PRIu64, e->delta_ns);
	else if (e->time == CAIRN_TIME_DELTA)
		fputs(",\"delta_ns\":null", out);
}
