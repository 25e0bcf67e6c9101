/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/attach/link.h"

/* Longest a program of these tests may run. */
#define PATIENCE_MS 20000

const char *session_missing(void)
{
	if (geteuid())
		return "tracing needs root";
	if (!link_multi_is_known())
		return "this kernel has no uprobe_multi";
	return NULL;
}

static int keep(void *ctx, const struct cairn_event *event)
{
	struct session *s = ctx;
	char *text = NULL;
	size_t size = 0;

	if (s->n == SESSION_EVENTS_MAX)
		return 0;
	FILE *out = open_memstream(&text, &size);
	for (uint32_t i = 0; i < event->n_values; i++) {
		fprintf(out, "%s%s=", i ? ", " : "", event->values[i].what->text);
		cairn_event_value_print(event, i, CAIRN_VALUE_TEXT, out);
	}
	fclose(out);
	s->events[s->n++] = text;
	return 0;
}

static void need(int result, const struct cairn_err *err)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s\n", err->msg);
	abort();
}

static void watch(struct session *s, struct cairn_trace *t, unsigned int enough)
{
	for (int ms = 0; ms < PATIENCE_MS && !cairn_trace_target_gone(t); ms += 20) {
		need(cairn_trace_poll(t, 20, keep, s, &s->err), &s->err);
		if (enough && s->n >= enough)
			break;
	}
	cairn_trace_detach(t);
	while (cairn_trace_poll(t, 0, keep, s, NULL) > 0)
		;
}

void session_run_all(struct session *s, const struct session_opts *opts, const char *const *probes)
{
	struct cairn_trace_opts trace = opts->trace;
	char *no_args[] = {(char *)opts->program, NULL};
	struct cairn_trace *t;

	*s = (struct session){.stats.size = sizeof(s->stats)};
	trace.size = sizeof(trace);
	trace.pid = opts->pid;
	trace.exe = opts->program;
	if (opts->program)
		trace.argv = opts->argv ? opts->argv : no_args;
	need(cairn_trace_open(&trace, &t, &s->err), &s->err);
	for (; *probes; probes++)
		need(cairn_trace_add(t, *probes, &s->err), &s->err);
	s->attached = cairn_trace_attach(t, &s->err);
	if (s->attached >= 0) {
		need(cairn_trace_start(t, &s->err), &s->err);
		watch(s, t, opts->enough);
		cairn_trace_status(t, &s->status);
	}
	need(cairn_trace_stats(t, &s->stats, NULL, &s->err), &s->err);
	cairn_trace_close(t);
}

void session_run(struct session *s, const struct session_opts *opts, const char *probe)
{
	const char *const probes[] = {probe, NULL};

	session_run_all(s, opts, probes);
}

void session_free(struct session *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->events[i]);
}

void session_make_copies(struct cairn_site *sites, uint32_t n)
{
	static const struct cairn_inlined_call call = {.function = "copied"};

	for (uint32_t i = 0; i < n; i++) {
		sites[i].kind = CAIRN_SITE_INLINED;
		sites[i].n_chain = 1;
		sites[i].chain = &call;
		sites[i].container = "container";
		sites[i].body = 0; /* names decide */
	}
}
