/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls as a tree
 *
 * Each thread has the calls that were seen to begin. An event at depth d is within d of them; what
 * is open beyond that has ended without an event. The newest entry is kept back: if the next event
 * is its return, both are one line. A return belongs to an entry only if it says the same time of
 * it: between the two that are there, others may have been lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "base/opts.h"
#include "trace/show/print.h"
#include "trace/read/times.h"

enum { DEPTH_MAX = 64, TIME_COLUMN = 32 };

struct graph_call {
	const struct cairn_trace_probe *probe; /* NULL: its entry was not seen */
	uint64_t entered_ns;
};

struct graph_thread {
	uint32_t tid, n;
	struct graph_call open[DEPTH_MAX];
};

struct cairn_trace_graph {
	bool with_time, has_begun;
	struct map ids; /* by thread, its index + 1 in threads */
	VEC(struct graph_thread *) threads;
	/* The entry that is kept back: its text, time and arguments, up to the brace. */
	const struct graph_thread *kept;
	uint32_t kept_depth;
	FILE *text;
	char *bytes;
	size_t n_bytes;
	char time[TIME_COLUMN + 1];
};

int cairn_trace_graph_new(const struct cairn_trace_graph_opts *opts, struct cairn_trace_graph **ret,
			  struct cairn_err *err)
{
	struct cairn_trace_graph *g;
	struct cairn_trace_graph_opts taken;
	int e = opts_take(&taken, sizeof(taken), opts, err);

	if (e < 0)
		return e;
	g = calloc(1, sizeof(*g));
	if (!g)
		return err_nomem(err, "a graph of calls");
	g->with_time = taken.with_time;
	map_init(&g->ids);
	g->text = open_memstream(&g->bytes, &g->n_bytes);
	if (!g->text) {
		cairn_trace_graph_free(g);
		return err_nomem(err, "a graph of calls");
	}
	*ret = g;
	return 0;
}

void cairn_trace_graph_free(struct cairn_trace_graph *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->threads.n; i++)
		free(g->threads.p[i]);
	VEC_FREE(&g->threads);
	map_fini(&g->ids);
	if (g->text)
		fclose(g->text);
	free(g->bytes);
	free(g);
}

/* NULL: no memory. */
static struct graph_thread *thread_of(struct cairn_trace_graph *g, uint32_t tid)
{
	uint64_t id = 0;
	struct graph_thread *thread;

	if (map_get(&g->ids, tid, &id))
		return g->threads.p[id - 1];
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	if (!VEC_ADD(&g->threads, thread)) {
		free(thread);
		return NULL;
	}
	return map_put(&g->ids, tid, g->threads.n) < 0 ? NULL : thread;
}

/* ---- the columns ---- */

static void put_header(struct cairn_trace_graph *g, const struct cairn_event *e, FILE *out)
{
	int width = e->time == CAIRN_TIME_WALL ? 32 : 12;

	if (g->has_begun)
		return;
	g->has_begun = true;
	if (g->with_time)
		fprintf(out, "#%*s   DURATION     TID     FUNCTION\n", width - 1, "TIME");
	else
		fputs("# DURATION     TID     FUNCTION\n", out);
}

/* The time of an event, for its line. */
static int note_time(struct cairn_trace_graph *g, const struct cairn_event *e, char *time)
{
	FILE *out;

	time[0] = 0;
	if (!g->with_time)
		return 0;
	out = fmemopen(time, TIME_COLUMN + 1, "w");
	if (!out)
		return -ENOMEM;
	print_time(e, out);
	return fclose(out) ? -ENOMEM : 0;
}

static void put_duration(uint64_t ns, FILE *out)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {" s", 1e9}, {" m", 6e10}};
	size_t i = 0;

	while (i + 1 < sizeof(units) / sizeof(units[0]) && (double)ns >= 1000 * units[i].ns)
		i++;
	fprintf(out, " %7.3f %s", (double)ns / units[i].ns, units[i].unit);
}

/* The beginning of each line; @ns NULL: there is no duration. */
static void put_columns(const struct cairn_trace_graph *g, const char *time, const uint64_t *ns,
			uint32_t tid, uint32_t depth, FILE *out)
{
	if (g->with_time)
		fprintf(out, "%s ", time);
	if (ns)
		put_duration(*ns, out);
	else
		fprintf(out, "%11s", "");
	fprintf(out, " [%6u] | %*s", tid, (int)(2 * depth), "");
}

static void put_name(const struct cairn_trace_probe *probe, FILE *out)
{
	cairn_quote_put(probe->function->name, CAIRN_QUOTE_TEXT, out);
}

/* ---- calls ---- */

/* "f(a=1, b=2", with the values that the moment has. */
static int put_arguments(const struct cairn_event *e, FILE *out)
{
	const char *separator = "";
	int r = 0;

	print_styled_name(e, out);
	fputc('(', out);
	for (uint32_t i = 0; i < e->n_values && r == 0; i++) {
		if (e->values[i].what->at_return)
			continue;
		fputs(separator, out);
		cairn_quote_put(e->values[i].what->text, CAIRN_QUOTE_TEXT, out);
		fputc('=', out);
		r = print_styled_value(e, i, out);
		separator = ", ";
	}
	fputc(')', out);
	return r;
}

/* " = 5, $ret->n=3": $ret needs no name, and the duration has a column. */
static int put_results(const struct cairn_event *e, FILE *out)
{
	const char *separator = " = ";
	int r = 0;

	for (uint32_t i = 0; i < e->n_values && r == 0; i++) {
		const struct cairn_trace_value *what = e->values[i].what;
		if (!what->at_return || !strcmp(what->text, "$duration"))
			continue;
		fputs(separator, out);
		if (strcmp(what->text, "$ret")) {
			cairn_quote_put(what->text, CAIRN_QUOTE_TEXT, out);
			fputc('=', out);
		}
		r = print_styled_value(e, i, out);
		separator = ", ";
	}
	return r;
}

static bool has_results(const struct cairn_event *e)
{
	for (uint32_t i = 0; i < e->n_values; i++)
		if (e->values[i].what->at_return && strcmp(e->values[i].what->text, "$duration"))
			return true;
	return false;
}

/* The text that was kept back, at the beginning of its line. */
static void put_kept(struct cairn_trace_graph *g, const uint64_t *ns, FILE *out)
{
	put_columns(g, g->time, ns, g->kept->tid, g->kept_depth, out);
	fwrite(g->bytes, 1, g->n_bytes, out);
	g->kept = NULL;
}

int cairn_trace_graph_flush(struct cairn_trace_graph *g, FILE *out)
{
	if (!g->kept)
		return 0;
	put_kept(g, NULL, out);
	fputs(" {\n", out);
	return ferror(out) ? -EIO : 0;
}

static void close_call(struct cairn_trace_graph *g, struct graph_thread *thread, const char *why,
		       FILE *out)
{
	const struct cairn_trace_probe *probe = thread->open[--thread->n].probe;
	char blank[TIME_COLUMN + 1];

	if (!probe)
		return;
	snprintf(blank, sizeof(blank), "%*s", (int)strlen(g->time), "");
	put_columns(g, blank, NULL, thread->tid, thread->n, out);
	fputs("} /* ", out);
	put_name(probe, out);
	fprintf(out, ": %s */\n", why);
}

/* Calls beyond @depth have ended without an event. */
static void leave(struct cairn_trace_graph *g, struct graph_thread *thread, uint32_t depth,
		  FILE *out)
{
	if (thread->n > depth)
		cairn_trace_graph_flush(g, out);
	while (thread->n > depth)
		close_call(g, thread, "its return was not seen", out);
}

static int enter(struct cairn_trace_graph *g, struct graph_thread *thread,
		 const struct cairn_event *e, FILE *out)
{
	uint32_t depth = e->call->depth;
	int r;

	leave(g, thread, depth, out);
	cairn_trace_graph_flush(g, out);
	while (thread->n < depth)
		thread->open[thread->n++] = (struct graph_call){0};
	thread->open[thread->n++] = (struct graph_call){e->probe, e->call->entered_ns};
	rewind(g->text);
	r = put_arguments(e, g->text);
	if (r < 0 || fflush(g->text) || note_time(g, e, g->time) < 0)
		return r < 0 ? r : -ENOMEM;
	g->kept = thread;
	g->kept_depth = depth;
	return 0;
}

static int put_end(const struct cairn_event *e, bool is_seen, FILE *out)
{
	int r;

	fputc('}', out);
	r = put_results(e, out);
	fputs(has_results(e) ? "; " : " ", out);
	fprintf(out, "%s/* ", e->style->faint);
	put_name(e->probe, out);
	fprintf(out, "%s */%s\n", is_seen ? "" : ": its entry was not seen", e->style->off);
	return r;
}

/* Whether the call that returns is the one whose entry was seen last at its depth. */
static bool is_of_entry(const struct graph_thread *thread, const struct cairn_event *e)
{
	const struct graph_call *call = &thread->open[e->call->depth];

	return thread->n == e->call->depth + 1 && call->probe == e->probe &&
	       call->entered_ns == e->call->entered_ns;
}

static int leave_call(struct cairn_trace_graph *g, struct graph_thread *thread,
		      const struct cairn_event *e, FILE *out)
{
	uint32_t depth = e->call->depth;
	uint64_t ns = e->time_ns - e->call->entered_ns;
	char time[TIME_COLUMN + 1];
	bool is_seen;
	int r;

	leave(g, thread, depth + 1, out);
	is_seen = is_of_entry(thread, e);
	if (is_seen && g->kept == thread && g->kept_depth == depth) {
		thread->n = depth;
		put_kept(g, &ns, out);
		r = put_results(e, out);
		fputs(";\n", out);
		return r;
	}
	leave(g, thread, is_seen ? depth + 1 : depth, out);
	cairn_trace_graph_flush(g, out);
	thread->n = depth < thread->n ? depth : thread->n;
	if (note_time(g, e, time) < 0)
		return -ENOMEM;
	put_columns(g, time, &ns, thread->tid, depth, out);
	return put_end(e, is_seen, out);
}

/* A hit is a call of which only the beginning is known. */
static int put_hit(struct cairn_trace_graph *g, struct graph_thread *thread,
		   const struct cairn_event *e, FILE *out)
{
	char time[TIME_COLUMN + 1], where[WHERE_MAX];
	int r;

	leave(g, thread, e->call->depth, out);
	cairn_trace_graph_flush(g, out);
	if (note_time(g, e, time) < 0)
		return -ENOMEM;
	put_columns(g, time, NULL, thread->tid, e->call->depth, out);
	r = put_arguments(e, out);
	fprintf(out, "; %s/* ", e->style->faint);
	cairn_quote_put(print_where(e, where, sizeof(where)), CAIRN_QUOTE_TEXT, out);
	fprintf(out, " */%s\n", e->style->off);
	return r;
}

int cairn_trace_graph_print(struct cairn_trace_graph *g, const struct cairn_event *e, FILE *out)
{
	struct graph_thread *thread;
	int r = -EINVAL;

	if (!e->call || e->call->depth >= DEPTH_MAX + (e->call->moment == CAIRN_CALL_NONE))
		return -EINVAL;
	thread = thread_of(g, e->tid);
	if (!thread)
		return -ENOMEM;
	put_header(g, e, out);
	switch (e->call->moment) {
	case CAIRN_CALL_ENTRY:
		r = enter(g, thread, e, out);
		break;
	case CAIRN_CALL_RETURN:
		r = leave_call(g, thread, e, out);
		break;
	case CAIRN_CALL_NONE:
		r = put_hit(g, thread, e, out);
		break;
	}
	if (r == 0 && ferror(out))
		r = -EIO;
	return r;
}

int cairn_trace_graph_end(struct cairn_trace_graph *g, FILE *out)
{
	int r = cairn_trace_graph_flush(g, out);

	for (size_t i = 0; i < g->threads.n && r == 0; i++) {
		while (g->threads.p[i]->n)
			close_call(g, g->threads.p[i], "its return was not seen", out);
		r = ferror(out) ? -EIO : 0;
	}
	return r;
}
