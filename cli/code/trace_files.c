/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_files.h"

#include <errno.h>
#include <string.h>

#include <cairn/text.h>

#include "trace_aggregate.h"
#include "trace_exports.h"
#include "trace_output.h"
#include "trace_place.h"
#include "trace_profile.h"
#include "trace_stack.h"

static bool has_stacks(const struct session *session)
{
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		if (trace_stack_has_lines(session, i))
			return true;
	return false;
}

static int check_profile(const struct file_values *values, const char *name,
			 const struct session *session)
{
	const char *option = aggregate_not_in_profile(session);

	if (values->repeats)
		return fail(STATUS_USAGE,
			    "%s is written once, at the end, and not each --every TIME", name);
	if (option)
		return fail(STATUS_USAGE,
			    "%s is a profile, which has hits and one --sum for each stack, and no "
			    "place for %s; without -o it is in the table",
			    name, option);
	return STATUS_YES;
}

/* Rows by $stack are a profile, of three kinds; others are a page. */
static int open_whole(const struct file_values *values, const char *name, struct session *session)
{
	bool is_profile = has_stacks(session);
	int status;

	if (session->profile)
		return fail(STATUS_USAGE, "one profile or page can be written at a time");
	session->profile = name;
	if (!is_profile && !aggregate_is_page(name))
		return fail(STATUS_USAGE, "%s is for stacks: give --by '$stack'", name);
	status = is_profile ? check_profile(values, name, session) : STATUS_YES;
	if (status)
		return status;
	status = trace_place_check(name, false);
	return status || is_profile ? status : aggregate_open_page(session, name);
}

/* The file of the events' own lines; of the tables, if hits are summed up. */
static int open_lines(const struct file_values *values, const char *name, struct session *session)
{
	int status;

	if (session->out_name)
		return fail(STATUS_USAGE, "%s and %s would be the same: -o names one file of lines",
			    session->out_name, name);
	session->out_name = name;
	status = trace_output_open(name, values->rotate, &session->output);
	if (!status)
		session->out = trace_output_stream(session->output);
	return status;
}

static int open_file(const struct file_values *values, const char *name, struct session *session)
{
	if (trace_exports_is_name(name))
		return session->aggregates ? fail(STATUS_USAGE,
						  "%s is for events, and hits that are summed up "
						  "make none",
						  name)
					   : STATUS_YES;
	if (!session->aggregates && trace_profile_is_name(name))
		return fail(STATUS_USAGE,
			    "%s is for hits that are summed up: give --count, or --by '$stack'",
			    name);
	if (!trace_profile_is_name(name))
		return open_lines(values, name, session);
	return open_whole(values, name, session);
}

int trace_files_open(const struct file_values *values, struct session *session)
{
	int status = STATUS_YES;

	for (size_t i = 0; i < values->out.n && !status; i++)
		status = open_file(values, values->out.items[i], session);
	if (!status && values->rotate && (!session->output || session->aggregates))
		status = fail(STATUS_USAGE, "--rotate is for events in a file: give -o FILE");
	if (!status)
		status = trace_exports_open(&values->out, &session->exports);
	if (!status && !session->output) {
		status = trace_output_standard(&session->output);
		session->out = status ? stdout : trace_output_stream(session->output);
	}
	return status;
}

int trace_files_event(const struct session *session, const struct cairn_event *event)
{
	int r = trace_exports_event(session->exports, event);

	return r == 0 ? trace_output_ends(session->output, true) : r;
}

int trace_files_flush(const struct session *session)
{
	int r = trace_exports_flush(session->exports);

	if (r == 0)
		r = trace_output_ends(session->output, false);
	return r < 0 ? r : trace_output_flush(session->output);
}

const char *trace_files_failed(const struct session *session)
{
	const char *name = trace_exports_failed(session->exports);

	if (name)
		return name;
	return trace_output_has_failed(session->output) ? "the events" : NULL;
}

/* A printer says that a stream has failed, but not why. */
int trace_files_error(const struct session *session, int r)
{
	if (r != -EIO || trace_exports_failed(session->exports))
		return r;
	int e = trace_output_flush(session->output);
	return e ? e : r;
}

static int say_dropped(const struct session *session, uint64_t n)
{
	const char *name = session->out_name ? session->out_name : "standard output";

	if (session->aggregates)
		return fail(STATUS_NOT_HERE, "the reader of %s does not read: the rest is dropped",
			    name);
	return fail(STATUS_NOT_HERE, "the reader of %s does not read: %s dropped", name,
		    cairn_counted(n, "event").text);
}

int trace_files_dropped(const struct session *session)
{
	uint64_t n;

	if (!trace_output_dropped(session->output, &n))
		return STATUS_YES;
	int status = say_dropped(session, n);
	/* It would come after a piece of an event. */
	if (!session->out_name)
		fail_only_on_stderr();
	return status;
}

int trace_files_close(struct session *session)
{
	struct cairn_trace_stats stats = {.size = sizeof(stats)};
	bool has_stats =
		session->is_attached && cairn_trace_stats(session->trace, &stats, NULL, NULL) >= 0;
	int status = trace_exports_close(session->exports, has_stats ? &stats : NULL);
	int e = trace_output_close(session->output);

	if (e < 0)
		status = fail(STATUS_NOT_HERE, "cannot write %s: %s",
			      session->out_name ? session->out_name : "the events",
			      e == -ETIMEDOUT ? "its reader does not read" : strerror(-e));
	session->output = NULL;
	session->out = stdout;
	return status;
}
