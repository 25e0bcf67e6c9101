/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>
#include <cairn/trace_export.h>

#include "trace_output.h"
#include "trace_place.h"

enum { EXPORTS_MAX = 8 };

struct export
{
	const char *name;
	struct trace_output *output;
	struct cairn_perfetto *perfetto; /* or ctf */
	struct cairn_event_ctf *ctf;
};

struct trace_exports {
	size_t n;
	struct export items[EXPORTS_MAX];
	const char *failed;
};

/* The name that Perfetto's own tools give their files. */
static const char *const ends[] = {".pftrace", ".perfetto", ".perfetto-trace"};

static bool is_ctf(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && !strcmp(name + n - 4, ".ctf");
}

bool trace_exports_is_name(const char *name)
{
	size_t n = strlen(name);

	if (is_ctf(name))
		return true;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

/* Before the probes are set: what is found at the end costs all events. */
static int check_ctf(const char *name)
{
	static const char *const files[] = {"metadata", "stream"};
	struct cairn_err err = {0};
	int status = trace_place_check(name, true);

	if (status)
		return status;
	int r = cairn_file_check_directory(name, files, 2, &err);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

static int open_one(const char *name, struct export *x)
{
	struct cairn_err err = {0};
	int status, r;

	x->name = name;
	if (is_ctf(name)) {
		r = cairn_event_ctf_new(&x->ctf, &err);
		return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : check_ctf(name);
	}
	status = trace_output_open(name, NULL, &x->output);
	if (status)
		return status;
	r = cairn_perfetto_new(&x->perfetto, &err);
	if (r == 0)
		r = cairn_perfetto_begin(x->perfetto, trace_output_stream(x->output));
	if (r == 0)
		r = trace_output_ends(x->output, false);
	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}

int trace_exports_open(const struct opt_list *names, struct trace_exports **ret)
{
	int status = STATUS_YES;

	for (size_t i = 0; i < names->n && !status; i++) {
		if (!trace_exports_is_name(names->items[i]))
			continue;
		if (!*ret)
			*ret = calloc(1, sizeof(**ret));
		if (!*ret)
			return fail(STATUS_NOT_HERE, "no memory");
		if ((*ret)->n == EXPORTS_MAX)
			return fail(STATUS_USAGE, "at most %d files can be written at a time",
				    EXPORTS_MAX);
		status = open_one(names->items[i], &(*ret)->items[(*ret)->n++]);
	}
	return status;
}

static int take_event(struct export *x, const struct cairn_event *event)
{
	if (x->ctf)
		return cairn_event_ctf_event(x->ctf, event);
	int r = cairn_perfetto_event(x->perfetto, event, trace_output_stream(x->output));
	int e = trace_output_ends(x->output, true);

	/* The stream does not know why it failed. */
	return e < 0 ? e : r;
}

int trace_exports_event(struct trace_exports *x, const struct cairn_event *event)
{
	int r = 0;

	for (size_t i = 0; x && i < x->n && r == 0; i++) {
		r = take_event(&x->items[i], event);
		if (r < 0)
			x->failed = x->items[i].name;
	}
	return r;
}

int trace_exports_flush(struct trace_exports *x)
{
	int r = 0;

	for (size_t i = 0; x && i < x->n && r == 0; i++) {
		if (x->items[i].ctf)
			continue;
		r = trace_output_flush(x->items[i].output);
		if (r < 0)
			x->failed = x->items[i].name;
	}
	return r;
}

const char *trace_exports_failed(const struct trace_exports *x)
{
	return x ? x->failed : NULL;
}

/* Once the events are all there. */
static int finish(struct export *x, const struct cairn_trace_stats *stats)
{
	struct cairn_err err = {0};
	int r = 0;

	if (x->ctf)
		r = cairn_event_ctf_write(x->ctf, x->name, stats, &err);
	else if (x->perfetto && !trace_output_has_failed(x->output))
		/* Bytes that its stream does not take are reported when it is closed. */
		cairn_perfetto_end(x->perfetto, stats, trace_output_stream(x->output));

	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}

static int close_one(struct export *x, const struct cairn_trace_stats *stats)
{
	int status = stats ? finish(x, stats) : STATUS_YES;
	int e = trace_output_close(x->output);

	if (e < 0)
		status = fail(STATUS_NOT_HERE, "cannot write %s: %s", x->name,
			      e == -ETIMEDOUT ? "its reader does not read" : strerror(-e));
	cairn_perfetto_free(x->perfetto);
	cairn_event_ctf_free(x->ctf);
	return status;
}

int trace_exports_close(struct trace_exports *x, const struct cairn_trace_stats *stats)
{
	int status = STATUS_YES;

	for (size_t i = 0; x && i < x->n; i++) {
		int one = close_one(&x->items[i], stats);
		status = one ? one : status;
	}
	free(x);
	return status;
}
