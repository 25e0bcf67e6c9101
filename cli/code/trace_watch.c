/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace that is attached: its events or tables until its end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cmd.h"
#include "interrupt.h"
#include "say.h"
#include "trace.h"
#include "trace_aggregate.h"
#include "trace_files.h"
#include "trace_output.h"
#include "trace_sample.h"
#include "trace_stack.h"

/*
 * A signal that comes between the test of the flag and the wait is seen after so long: Ctrl-C in
 * 100 ms.
 */
#define POLL_MS 50

static int print_event(const struct session *session, const struct cairn_event *event)
{
	enum cairn_value_style style = session->json ? CAIRN_VALUE_JSON : CAIRN_VALUE_TEXT;

	/* Files with formats of their own are enough. */
	if (session->exports && !session->out_name)
		return 0;
	if (session->graph)
		return cairn_trace_graph_print(session->graph, event, session->out);
	return session->names ? trace_stack_print(session, event)
			      : cairn_event_print(event, style, session->out);
}

static int on_event(void *ctx, const struct cairn_event *event)
{
	struct session *session = ctx;
	int r = print_event(session, event);

	if (r == 0)
		r = trace_files_event(session, event);
	if (r < 0)
		return r;
	/* A call is one event. */
	session->n_events += !event->call || event->call->moment != CAIRN_CALL_ENTRY;
	return session->max_events && session->n_events >= session->max_events;
}

/* Why the loop is over; 0 while it is not. */
static bool is_over(struct session *session, uint64_t end_ns)
{
	return interrupt_seen() || session->has_given_up ||
	       cairn_trace_target_gone(session->trace) || (end_ns && clock_now_ns() >= end_ns);
}

static int wait_ms(uint64_t end_ns)
{
	uint64_t now = clock_now_ns(), left_ms;

	if (!end_ns)
		return POLL_MS;
	left_ms = end_ns > now ? (end_ns - now + 999999) / 1000000 : 0;
	return left_ms < POLL_MS ? (int)left_ms : POLL_MS;
}

/* A process that may not be read (set-user-id), or has ended unseen, does not count as a look. */
static void look_at_mapped(struct session *session)
{
	int missing;

	if (!session->looks || session->all_mapped)
		return;
	if (!session->mapped)
		session->mapped =
			calloc(cairn_trace_n_probes(session->trace), sizeof(*session->mapped));
	if (!session->mapped)
		return;
	missing = cairn_trace_mapped(session->trace, session->mapped, &session->mapped_is_whole,
				     NULL);
	session->all_mapped = missing == 0;
	session->n_looks += missing >= 0;
}

static void look_at_cgroup(struct session *session)
{
	int e = cairn_trace_cgroup_look(session->trace);

	if (e == -ENOENT && !session->has_no_cgroup)
		say(stderr, "%s is gone: no hit is chosen until it is made again\n",
		    session->cgroup);
	if (e == 1)
		say(stderr, "%s was made again: hits of its first %d ms may be missing\n",
		    session->cgroup, POLL_MS);
	session->has_no_cgroup = e == -ENOENT;
}

/* At once, and then every POLL_MS until the command has mapped all probed files. */
static void look_now_and_then(struct session *session)
{
	uint64_t now = clock_now_ns();

	if (now < session->next_look_ns)
		return;
	session->next_look_ns = now + POLL_MS * 1000000ull;
	look_at_mapped(session);
	look_at_cgroup(session);
	trace_guard_look(session);
}

/*
 * Returns 0 or a negative errno. Only the first flush reports a failure; it drops the unwritten
 * events.
 */
static int flush_events(const struct session *session)
{
	if (session->graph)
		cairn_trace_graph_flush(session->graph, session->out);
	return trace_files_flush(session);
}

/*
 * Hands out events until the end is reached. Returns 1 when on_event() wanted no more, 0, or an
 * error.
 */
static int watch(struct session *session, uint64_t end_ns, struct cairn_err *err)
{
	while (!is_over(session, end_ns)) {
		int r;

		look_now_and_then(session);
		r = cairn_trace_poll(session->trace, wait_ms(end_ns), on_event, session, err);

		/*
		 * poll's own count says nothing here: 1 may be one event, or the last that was
		 * wanted.
		 */
		if (session->max_events && session->n_events >= session->max_events)
			return 1;
		if (r < 0 && r != -EINTR)
			return r;
		r = flush_events(session);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Handles the events that were still in the ring. */
static int drain(struct session *session, struct cairn_err *err)
{
	int r;

	do {
		r = cairn_trace_poll(session->trace, 0, on_event, session, err);
		if (session->max_events && session->n_events >= session->max_events)
			return 0;
	} while (r > 0 || r == -EINTR);
	return r;
}

/* With stacks the time is for taking them over. Returns 0 or an error. */
static int wait_with_stacks(struct session *session, uint64_t at_ns, struct cairn_err *err)
{
	uint64_t now = clock_now_ns(), left_ns = at_ns > now ? at_ns - now : 0;
	int ms = left_ns < POLL_MS * 1000000ull ? (int)(left_ns / 1000000) : POLL_MS;
	int r = cairn_trace_poll(session->trace, ms, on_event, session, err);

	return r < 0 && r != -EINTR ? r : 0;
}

static void wait_until(uint64_t at_ns)
{
	uint64_t now = clock_now_ns(), left_ns = at_ns > now ? at_ns - now : 0;
	struct timespec pause = {.tv_nsec = POLL_MS * 1000000};

	if (left_ns < POLL_MS * 1000000ull)
		pause.tv_nsec = (long)left_ns;
	nanosleep(&pause, NULL);
}

/* One table. Hits that are still in progress are in the next one. */
static int show_table(struct session *session, struct cairn_err *err)
{
	int r = aggregate_show(session, false, err);

	if (r == -EAGAIN)
		return 0;
	return r < 0 ? r : flush_events(session);
}

/* Shows tables until the end is reached; returns 0 or an error. */
static int watch_tables(struct session *session, uint64_t every_ns, uint64_t end_ns,
			struct cairn_err *err)
{
	uint64_t next_ns = every_ns ? clock_now_ns() + every_ns : UINT64_MAX;

	while (!is_over(session, end_ns)) {
		look_now_and_then(session);
		uint64_t until_ns = end_ns && end_ns < next_ns ? end_ns : next_ns;
		int r = session->names ? wait_with_stacks(session, until_ns, err) : 0;
		if (r < 0)
			return r;
		if (!session->names)
			wait_until(until_ns);
		/* The last table is shown without the probes. */
		if (clock_now_ns() < next_ns || is_over(session, end_ns))
			continue;
		r = show_table(session, err);
		if (r < 0)
			return r;
		/* An interval that could not be kept is left out. */
		while (next_ns <= clock_now_ns())
			next_ns += every_ns;
	}
	return 0;
}

/* The rest, once the probes are gone: events in the ring, or the last table. */
static int finish(struct session *session, bool has_enough, struct cairn_err *err)
{
	bool has_rest = !has_enough && (!session->aggregates || session->names);
	int r = has_rest ? drain(session, err) : 0;

	if (r >= 0 && session->graph)
		r = cairn_trace_graph_end(session->graph, session->out);
	return r < 0 || !session->aggregates ? r : aggregate_show(session, true, err);
}

int trace_watch(struct session *session, uint64_t duration_ns)
{
	struct cairn_err err = {0};
	uint64_t end_ns = 0;
	int r = cairn_trace_start(session->trace, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	if (duration_ns)
		end_ns = clock_now_ns() + duration_ns;
	trace_output_until(session->output, end_ns);
	if (session->aggregates)
		r = watch_tables(session, session->every_ns, end_ns, &err);
	else
		r = watch(session, end_ns, &err);
	look_at_mapped(session);
	cairn_trace_detach(session->trace);
	trace_output_probes_gone(session->output);
	if (r >= 0)
		r = finish(session, r == 1, &err);
	if (r >= 0) {
		int flushed = flush_events(session);
		r = flushed < 0 ? flushed : r;
	}
	if (r < 0 && trace_files_failed(session)) {
		fail(STATUS_NOT_HERE, "cannot write %s: %s", trace_files_failed(session),
		     strerror(-trace_files_error(session, r)));
		if (!session->out_name)
			fail_only_on_stderr();
		return STATUS_NOT_HERE;
	}
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	r = trace_summary(session);
	int dropped = trace_files_dropped(session);
	if (session->status)
		return session->status;
	return dropped ? dropped : r;
}
