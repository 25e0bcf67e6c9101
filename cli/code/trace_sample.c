/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some of the hits
 *
 * Counts and sums are those of the hits that were taken. They are never multiplied: what is shown
 * is what was seen, with 1/N beside it, and the number of the others.
 */
#include "trace_sample.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "say.h"

int trace_sample_read(const char *text, uint32_t *ret)
{
	char *end = NULL;

	errno = 0;
	unsigned long n = !strncmp(text, "1/", 2) && isdigit((unsigned char)text[2])
				  ? strtoul(text + 2, &end, 10)
				  : 0;
	if (!n || *end || n > CAIRN_TRACE_SAMPLE_MAX)
		return fail(STATUS_USAGE, "--sample %s: write 1/N with N from 1 to %u", text,
			    CAIRN_TRACE_SAMPLE_MAX);
	*ret = (uint32_t)n;
	return STATUS_YES;
}

int trace_guard_read(const char *text, double *ret)
{
	char *end = NULL;

	*ret = 0;
	if (!strcmp(text, "off"))
		return STATUS_YES;
	double percent = isdigit((unsigned char)*text) ? strtod(text, &end) : 0;
	if (!end || strcmp(end, "%") != 0 || !(percent > 0) || percent > 1e9)
		return fail(STATUS_USAGE, "--max-slowdown %s: write a percentage, 10%%, or off",
			    text);
	*ret = percent / 100;
	return STATUS_YES;
}

static void report_action(const struct session *session, const struct cairn_trace_load *load)
{
	if (load->of_machine)
		say(stderr,
		    "this machine is slowed down by about %.0f %% (%.0f hits a second in all "
		    "processes "
		    "that run this code, also those that are not traced): ",
		    load->slowdown * 100, load->hits_per_s);
	else
		say(stderr,
		    "the traced process is slowed down by about %.0f %% (%.0f hits a second): ",
		    load->slowdown * 100, load->hits_per_s);
	if (load->detached)
		say(stderr,
		    "the probes are removed, since reaching them costs too much even if no hit is "
		    "taken");
	else
		say(stderr, "1/%" PRIu32 " of the hits are taken from now on", load->sample);
	say(stderr, "; --max-slowdown sets the limit, %g%%, or off\n", session->max_slowdown * 100);
}

/* The time of the last action, from the trace itself. */
static void note_action(struct session *session, const struct cairn_trace_load *load)
{
	struct cairn_trace_stats stats = {.size = sizeof(stats)};

	session->slowdown = load->slowdown;
	session->has_given_up = load->detached;
	if (cairn_trace_stats(session->trace, &stats, NULL, NULL) < 0)
		return;
	session->sample = stats.sample;
	session->sampled_since_ns = stats.sampled_since_ns;
}

void trace_guard_look(struct session *session)
{
	struct cairn_trace_load load;
	struct cairn_err err = {0};

	if (!session->max_slowdown)
		return;
	if (cairn_trace_guard(session->trace, session->max_slowdown, &load, &err) < 0) {
		if (session->has_limit || !cairn_trace_probe(session->trace, 0)->of_kernel)
			say(stderr, "--max-slowdown is off: %s\n", err.msg);
		session->max_slowdown = 0;
		return;
	}
	if (!load.acted)
		return;
	report_action(session, &load);
	note_action(session, &load);
}

int trace_sample_text(const struct session *session, char *buf, size_t size)
{
	if (session->sampled_since_ns)
		return snprintf(buf, size, "1/%" PRIu32 " of the hits since %.3f s",
				session->sample, (double)session->sampled_since_ns / 1e9);
	return snprintf(buf, size, "1/%" PRIu32 " of the hits", session->sample);
}

void trace_sample_summary(const struct session *session, const struct cairn_trace_stats *stats)
{
	uint64_t undrawn = stats->total.undrawn;
	char text[80];

	if (stats->sample > 1 || undrawn) {
		trace_sample_text(session, text, sizeof(text));
		say(stderr, "%s were taken: %s %s left out\n", text,
		    cairn_counted(undrawn, "hit").text, undrawn == 1 ? "was" : "were");
	}
	if (stats->given_up_ns)
		say(stderr,
		    "the probes were removed after %.3f s, as the slowdown was about %.0f %%: "
		    "later "
		    "hits were not counted\n",
		    (double)stats->given_up_ns / 1e9, session->slowdown * 100);
}

void trace_sample_put(struct json *j, const struct session *session)
{
	if (session->sample > 1)
		json_uint(j, "sample", session->sample);
	if (session->sampled_since_ns)
		json_uint(j, "sample_since_ns", session->sampled_since_ns);
}

void trace_guard_put(struct json *j, const struct session *session,
		     const struct cairn_trace_stats *stats)
{
	if (!session->slowdown)
		return;
	json_uint(j, "slowdown_percent", (uint64_t)(session->slowdown * 100 + 0.5));
	if (stats->given_up_ns)
		json_uint(j, "given_up_ns", stats->given_up_ns);
}
