/* SPDX-License-Identifier: BSD-2-Clause */
/* Before and after the events: the plan, the refused sites, the counters. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cairn/text.h>

#include "cmd.h"
#include "demangled.h"
#include "json.h"
#include "say.h"
#include "trace.h"
#include "trace_aggregate.h"
#include "trace_sample.h"
#include "trace_kernel.h"
#include "trace_stack.h"
#include "trace_which.h"

/* A refused site is listed, of thousands the first ones; the rest is counted. */
#define REFUSALS_MAX 20

/* ---- the plan ---- */

/* The location of a parameter's value at a site; an expression has only its text. */
static void plan_value(const struct cairn_trace_probe *probe, const struct cairn_trace_site *site,
		       uint32_t value, FILE *out)
{
	const char *text = probe->values[value].text;
	char location[1024];

	if (site->values[value].unavailable) {
		say(out, "      %s: unavailable: %s\n", text, site->values[value].unavailable);
		return;
	}
	for (uint32_t i = 0; i < site->site->n_args; i++) {
		const struct cairn_arg *arg = &site->site->args[i];

		if (!arg->name || strcmp(arg->name, text))
			continue;
		cairn_location_text(&arg->loc, NULL, NULL, location, sizeof(location));
		say(out, "      %s: %s\n", text, location);
	}
}

static void plan_text(const struct cairn_trace *t, const struct cairn_trace_site *site,
		      bool verbose, FILE *out)
{
	const struct cairn_trace_probe *probe = cairn_trace_probe(t, site->probe);
	char text[1024];

	cairn_site_text(probe->function, site->site, shown_name, text, sizeof(text));
	say(out, "  0x%" PRIx64 "  %s%s%s\n", probe->of_kernel ? site->running : site->site->at.v,
	    text, site->refused ? ": refused: " : "", site->refused ? site->refused : "");
	if (site->refused)
		return;
	for (uint32_t bit = 1; bit && bit <= site->site->count_caveats; bit <<= 1)
		if (site->site->count_caveats & bit)
			say(out, "      %s\n", cairn_count_caveat_text(bit));
	if (site->moved)
		say(out, "      probed at 0x%" PRIx64 ", a cheaper instruction of the same block\n",
		    site->at.v);
	for (uint32_t i = 0; i < probe->n_values; i++)
		plan_value(probe, site, i, out);
	if (verbose)
		say(out, "      fetched by program %" PRIu32 "\n", site->program);
}

static void plan_json(const struct cairn_trace *t, const struct cairn_trace_site *site, FILE *out)
{
	const struct cairn_trace_probe *probe = cairn_trace_probe(t, site->probe);
	struct json j = {.out = out};
	char text[1024];

	cairn_site_text(probe->function, site->site, NULL, text, sizeof(text));
	json_open(&j, NULL, '{');
	json_uint(&j, "probe", site->probe);
	json_text(&j, "function", probe->function->name);
	json_text(&j, "site", text);
	json_hex(&j, "addr", site->site->at.v);
	if (probe->of_kernel) {
		json_hex(&j, "running", site->running);
	} else {
		json_hex(&j, "probed_addr", site->at.v);
		json_hex(&j, "probed_offset", site->off.v);
		json_bool(&j, "moved", site->moved);
		json_bool(&j, "emulated", site->emulated);
	}
	json_text(&j, "refused", site->refused);
	json_open(&j, "count_caveats", '[');
	for (uint32_t bit = 1; bit && bit <= site->site->count_caveats; bit <<= 1)
		if (site->site->count_caveats & bit)
			json_text(&j, NULL, cairn_count_caveat_id(bit));
	json_close(&j);
	json_open(&j, "unavailable", '{');
	for (uint32_t i = 0; i < probe->n_values; i++)
		if (site->values && site->values[i].unavailable)
			json_text(&j, probe->values[i].text, site->values[i].unavailable);
	json_close(&j);
	json_close(&j);
}

static void plan_probe(const struct session *session, const struct cairn_trace_probe *probe,
		       bool verbose)
{
	if (!session->json)
		say(session->out, "%s  %" PRIu32 " %s in %s\n", probe->text, probe->n_sites,
		    probe->n_sites == 1 ? "site" : "sites", probe->path);
	for (uint32_t i = 0; i < probe->n_sites; i++) {
		const struct cairn_trace_site *site =
			cairn_trace_site(session->trace, probe->first_site + i);

		if (session->json)
			plan_json(session->trace, site, session->out);
		else
			plan_text(session->trace, site, verbose, session->out);
	}
}

size_t trace_missing(const struct cairn_trace *t)
{
	const char *which;
	size_t n = cairn_trace_missing(t, &which);

	warn_of_missing_dwo(n, which, "calls that only they describe are not seen");
	return n;
}

int trace_plan(const struct session *session, bool best_effort, bool verbose)
{
	const struct cairn_trace *t = session->trace;
	bool incomplete = trace_missing(t) && !best_effort;
	uint32_t ready = 0, refused = 0, needed = 0;

	for (uint32_t i = 0; i < cairn_trace_n_probes(t); i++) {
		const struct cairn_trace_probe *probe = cairn_trace_probe(t, i);

		plan_probe(session, probe, verbose);
		ready += probe->n_ready;
		refused += probe->n_refused;
		/* A pattern asks for all functions that can be probed. */
		needed += probe->found == CAIRN_FOUND_PATTERN ? 0 : probe->n_refused;
	}
	for (uint32_t i = 0; verbose && i < cairn_trace_n_programs(t) && !session->json; i++) {
		say(session->out, "program %" PRIu32 "\n", i);
		cairn_trace_program_print(t, i, session->out);
	}
	if (incomplete)
		say(stderr, "nothing would be attached; --best-effort attaches the known sites\n");
	if (refused)
		say(stderr, "%" PRIu32 " of %s %s refused%s\n", refused,
		    cairn_counted((uint64_t)refused + ready, "site").text,
		    refused == 1 ? "is" : "are",
		    best_effort || !needed
			    ? ""
			    : ", so nothing would be attached; --best-effort attaches the others");
	return ready && !incomplete && (!needed || best_effort) ? STATUS_YES : STATUS_NO;
}

void trace_refusals(const struct cairn_trace *t, FILE *out)
{
	uint32_t shown = 0, more = 0;
	char text[1024];

	for (uint32_t i = 0; i < cairn_trace_n_sites(t); i++) {
		const struct cairn_trace_site *site = cairn_trace_site(t, i);

		if (!site->refused)
			continue;
		if (shown == REFUSALS_MAX) {
			more++;
			continue;
		}
		shown++;
		cairn_site_text(cairn_trace_probe(t, site->probe)->function, site->site, shown_name,
				text, sizeof(text));
		say(out, "  %s %s (0x%" PRIx64 "): %s\n",
		    cairn_trace_probe(t, site->probe)->function->name, text, site->site->at.v,
		    site->refused);
	}
	if (more)
		say(out, "  and %" PRIu32 " more; cairn trace --dry-run lists them all\n", more);
}

static uint32_t n_with_caveats(const struct cairn_trace *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cairn_trace_n_sites(t); i++) {
		const struct cairn_trace_site *site = cairn_trace_site(t, i);

		n += !site->refused && site->site->count_caveats;
	}
	return n;
}

void trace_caveats(const struct cairn_trace *t, FILE *out)
{
	uint32_t shown = 0, n = n_with_caveats(t);
	char text[1024];

	if (n)
		say(out,
		    "the number of events may differ from the number of calls at %" PRIu32
		    " of these sites:\n",
		    n);
	for (uint32_t i = 0; i < cairn_trace_n_sites(t) && shown < REFUSALS_MAX; i++) {
		const struct cairn_trace_site *site = cairn_trace_site(t, i);

		if (site->refused || !site->site->count_caveats)
			continue;
		shown++;
		cairn_site_text(cairn_trace_probe(t, site->probe)->function, site->site, shown_name,
				text, sizeof(text));
		say(out, "  %s %s (0x%" PRIx64 ")",
		    cairn_trace_probe(t, site->probe)->function->name, text, site->site->at.v);
		for (uint32_t bit = 1; bit && bit <= site->site->count_caveats; bit <<= 1)
			if (site->site->count_caveats & bit)
				say(out, ": %s", cairn_count_caveat_text(bit));
		fputc('\n', out);
	}
	if (n > shown)
		say(out, "  and %" PRIu32 " more; cairn trace --dry-run lists them all\n",
		    n - shown);
}

/* The first value that is read at the end of a call and is unavailable at the site; or n_values. */
static uint32_t value_without_end(const struct cairn_trace_probe *probe,
				  const struct cairn_trace_site *site)
{
	uint32_t i = site->refused || !site->values ? probe->n_values : 0;

	while (i < probe->n_values && !(probe->values[i].at_return && site->values[i].unavailable))
		i++;
	return i;
}

static uint32_t n_without_end(const struct cairn_trace *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cairn_trace_n_sites(t); i++) {
		const struct cairn_trace_site *site = cairn_trace_site(t, i);
		const struct cairn_trace_probe *probe = cairn_trace_probe(t, site->probe);

		n += value_without_end(probe, site) < probe->n_values;
	}
	return n;
}

/* The sites whose events do not have what is read at the end of a call. */
static void report_without_end(const struct cairn_trace *t, FILE *out)
{
	uint32_t shown = 0, n = n_without_end(t);
	char text[1024];

	if (n)
		say(out,
		    "what is read at the end of a call is unavailable at %" PRIu32
		    " of these sites:\n",
		    n);
	for (uint32_t i = 0; i < cairn_trace_n_sites(t) && n && shown < REFUSALS_MAX; i++) {
		const struct cairn_trace_site *site = cairn_trace_site(t, i);
		const struct cairn_trace_probe *probe = cairn_trace_probe(t, site->probe);
		uint32_t value = value_without_end(probe, site);

		if (value == probe->n_values)
			continue;
		shown++;
		cairn_site_text(probe->function, site->site, shown_name, text, sizeof(text));
		say(out, "  %s %s (0x%" PRIx64 "): %s: %s\n", probe->function->name, text,
		    site->site->at.v, probe->values[value].text, site->values[value].unavailable);
	}
	if (n > shown)
		say(out, "  and %" PRIu32 " more; cairn trace --dry-run lists them all\n",
		    n - shown);
}

/* For a master that forked its workers long ago. */
static void report_running_children(const struct session *session)
{
	struct cairn_trace_stats stats = {.size = sizeof(stats)};

	if (cairn_trace_stats(session->trace, &stats, NULL, NULL) < 0)
		return;
	if (session->wants_children && !stats.children_known)
		say(stderr,
		    "children are not traced: the kernel does not report them here, as in a pid "
		    "namespace other than the first (a container); run this on the host\n");
	if (!stats.children_known || !stats.n_running)
		return;
	say(stderr, "%" PRIu64 " %s already %s traced%s\n", stats.n_running,
	    stats.n_running == 1 ? "child process that runs" : "child processes that run",
	    stats.children_followed ? (stats.n_running == 1 ? "is" : "are")
	    : stats.n_running == 1  ? "is not"
				    : "are not",
	    stats.children_followed ? ", too" : "; -f follows children");
}

void trace_attached(const struct session *session, unsigned int n_sites)
{
	say(stderr, "%u %s attached%s\n", n_sites, n_sites == 1 ? "site" : "sites",
	    session->has_command ? "" : "; Ctrl-C ends and removes them");
	trace_which_attached(session);
	report_running_children(session);
	trace_refusals(session->trace, stderr);
	trace_caveats(session->trace, stderr);
	report_without_end(session->trace, stderr);
	fflush(stderr);
}

/* ---- the summary ---- */

static const char *backend_word(enum cairn_trace_backend backend)
{
	switch (backend) {
	case CAIRN_BACKEND_UPROBE_MULTI:
		return "uprobe_multi";
	case CAIRN_BACKEND_UPROBE:
		return "uprobe";
	case CAIRN_BACKEND_UPROBE_SESSION:
		return "uprobe_session";
	case CAIRN_BACKEND_KPROBE:
		return "kprobe";
	case CAIRN_BACKEND_AUTO:
		break;
	}
	return NULL;
}

/* One of the functions that a name stands for. */
static bool is_of_many(const struct cairn_trace_probe *probe)
{
	return probe->found == CAIRN_FOUND_PATTERN || probe->found == CAIRN_FOUND_INDIRECT;
}

static uint64_t n_without_return(const struct cairn_trace_counts *counts)
{
	return counts->unwound + counts->unfinished + counts->too_deep + counts->apart;
}

/* Among a pattern's many functions, those without a remark are only counted. */
static bool is_silent(const struct cairn_trace_probe *probe,
		      const struct cairn_trace_counts *counts)
{
	return is_of_many(probe) && !counts->events && !counts->lost && !counts->filtered &&
	       !counts->undecided && !counts->undrawn && !n_without_return(counts);
}

/* Calls that were seen to begin, and have no event. */
static void returns_text(const struct cairn_trace_counts *counts, bool of_kernel)
{
	static const struct {
		size_t at;
		const char *text, *in_kernel;
	} reasons[] = {
		{offsetof(struct cairn_trace_counts, unwound),
		 "left by longjmp, an exception, or under more than 64 return probes",
		 "whose return the kernel did not report"},
		{offsetof(struct cairn_trace_counts, unfinished),
		 "still running at the end, or their thread ended",
		 "still running at the end, or their return was not reported: the kernel follows "
		 "some 10 calls of a function at a time, those of other processes, too"},
		{offsetof(struct cairn_trace_counts, too_deep), "nested too deep to be followed",
		 "beyond those that are followed at a time"},
		{offsetof(struct cairn_trace_counts, apart),
		 "on another stack of the thread, where a return probe would do harm", ""},
	};
	const char *separator = ": ";

	if (!n_without_return(counts))
		return;
	say(stderr, "  %s did not return", cairn_counted(n_without_return(counts), "call").text);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		uint64_t n = *(const uint64_t *)((const char *)counts + reasons[i].at);
		if (!n)
			continue;
		say(stderr, "%s%" PRIu64 " %s", separator, n,
		    of_kernel ? reasons[i].in_kernel : reasons[i].text);
		separator = "; ";
	}
	fputc('\n', stderr);
}

static void counts_text(const char *what, const char *noun, const struct cairn_trace_counts *counts,
			bool of_kernel)
{
	say(stderr, "%s: %s, %" PRIu64 " lost", what, cairn_counted(counts->events, noun).text,
	    counts->lost);
	if (counts->failed)
		say(stderr, ", %" PRIu64 " refused by the kernel's map and counted among others",
		    counts->failed);
	if (counts->entries_lost)
		say(stderr, ", and the entries of %s",
		    cairn_counted(counts->entries_lost, "call").text);
	if (counts->filtered)
		say(stderr, ", %" PRIu64 " did not meet the condition", counts->filtered);
	if (counts->undrawn)
		say(stderr, ", %" PRIu64 " left out by sampling", counts->undrawn);
	if (counts->undecided)
		say(stderr, ", %" PRIu64 " undecided: the condition's memory could not be read",
		    counts->undecided);
	fputc('\n', stderr);
	returns_text(counts, of_kernel);
}

/* Whether a probe's file was there to be called. */
enum presence { PRESENT, ABSENT, UNKNOWN };

/*
 * The looks that are needed: at the first look a command has only just been executed, and has
 * loaded no library.
 */
#define LOOKS_MIN 2

static enum presence presence(const struct session *session, uint32_t probe,
			      const struct cairn_trace_counts *counts)
{
	if (counts->events || counts->lost || counts->filtered || counts->undecided ||
	    counts->undrawn || n_without_return(counts))
		return PRESENT;
	if (!session->looks)
		/* A process that ran was not attached to without the file. */
		return session->of_process ? PRESENT : UNKNOWN;
	if (session->mapped && session->mapped[probe])
		return PRESENT;
	if (session->mapped_is_whole)
		return ABSENT;
	return session->n_looks < LOOKS_MIN ? UNKNOWN : ABSENT;
}

/*
 * Another probe has shown that the file of this one was mapped, or its absence has already been
 * reported.
 */
static bool is_told(const struct session *session, uint32_t probe,
		    const struct cairn_trace_counts *counts)
{
	const char *path = cairn_trace_probe(session->trace, probe)->path;

	if (probe && !strcmp(path, cairn_trace_probe(session->trace, probe - 1)->path))
		return true;
	for (uint32_t i = 0; i < cairn_trace_n_probes(session->trace); i++)
		if (counts[i].events && !strcmp(path, cairn_trace_probe(session->trace, i)->path))
			return true;
	return false;
}

static void report_absence(const struct session *session, const struct cairn_trace_probe *probe,
			   enum presence there)
{
	char who[40];

	trace_which_text(session, who, sizeof(who));
	if (there == ABSENT && session->mapped_is_whole)
		say(stderr, "no event of %s: %s never mapped %s\n", probe->text, who, probe->path);
	else if (there == ABSENT)
		say(stderr, "no event of %s: %s was never seen among the files that %s maps\n",
		    probe->text, probe->path, who);
	else if (there == UNKNOWN)
		say(stderr,
		    "no event of %s: whether %s mapped %s could not be seen; it ended too soon, or "
		    "may not be looked at\n",
		    probe->text, who, probe->path);
}

/* A library that is never loaded must not look like a function that is never called. */
static void report_absent(const struct session *session, const struct cairn_trace_counts *counts)
{
	for (uint32_t i = 0; session->looks && i < cairn_trace_n_probes(session->trace); i++) {
		const struct cairn_trace_probe *probe = cairn_trace_probe(session->trace, i);
		enum presence there = presence(session, i, &counts[i]);

		if (there != PRESENT && is_of_many(probe) && is_told(session, i, counts))
			continue;
		report_absence(session, probe, there);
	}
}

static void summary_text(const struct session *session, const struct cairn_trace_stats *stats,
			 const struct cairn_trace_counts *counts)
{
	const char *noun = session->aggregates ? "hit" : "event";
	uint32_t n_silent = 0;

	for (uint32_t i = 0; i < cairn_trace_n_probes(session->trace); i++) {
		const struct cairn_trace_probe *probe = cairn_trace_probe(session->trace, i);

		if (is_silent(probe, &counts[i]))
			n_silent++;
		else
			counts_text(probe->text, noun, &counts[i], probe->of_kernel);
	}
	if (n_silent)
		say(stderr, "%" PRIu32 " %s: 0 %ss, 0 lost\n", n_silent,
		    n_silent == 1 ? "function more" : "functions more", noun);
	if (session->aggregates)
		aggregate_summary(session);
	trace_sample_summary(session, stats);
	if (session->names)
		trace_stack_summary(stats);
	report_absent(session, counts);
	if (stats->missed)
		say(stderr, "%s more %s lost before %s reached a probe's program\n",
		    cairn_counted(stats->missed, "hit").text, stats->missed == 1 ? "was" : "were",
		    stats->missed == 1 ? "it" : "they");
	trace_kernel_summary(stats);
	if (stats->children_known && stats->n_children && !stats->children_followed)
		say(stderr, "%" PRIu64 " child %s not traced; -f follows %s\n", stats->n_children,
		    stats->n_children == 1 ? "process was" : "processes were",
		    stats->n_children == 1 ? "it" : "them");
	else if (session->of_process && !stats->children_known && !session->wants_children)
		say(stderr,
		    "child processes, if there were any, were not traced: the kernel does not "
		    "report them here, as in a pid namespace other than the first (a container)\n");
	if (n_with_caveats(session->trace))
		say(stderr, "at %s the number of events may differ from the number of calls\n",
		    cairn_counted(n_with_caveats(session->trace), "site").text);
	say(stderr, "%" PRIu32 " of %s, %s; attached in %.1f ms, detached in %.1f ms\n",
	    stats->n_attached, cairn_counted(stats->n_attached + stats->n_refused, "site").text,
	    cairn_counted(stats->n_links, "link").text, (double)stats->attach_ns / 1e6,
	    (double)stats->detach_ns / 1e6);
}

static void put_counts(struct json *j, const struct cairn_trace_counts *counts, bool of_aggregates,
		       bool follows)
{
	json_uint(j, "events", counts->events);
	json_uint(j, "lost", counts->lost);
	json_uint(j, "filtered", counts->filtered);
	json_uint(j, "undecided", counts->undecided);
	if (counts->undrawn)
		json_uint(j, "undrawn", counts->undrawn);
	if (of_aggregates)
		json_uint(j, "failed", counts->failed);
	if (!follows)
		return;
	json_uint(j, "unwound", counts->unwound);
	json_uint(j, "unfinished", counts->unfinished);
	json_uint(j, "too_deep", counts->too_deep);
	json_uint(j, "apart", counts->apart);
	if (counts->entries_lost)
		json_uint(j, "entries_lost", counts->entries_lost);
}

static void put_mapped(struct json *j, enum presence there)
{
	if (there == UNKNOWN)
		json_null(j, "mapped");
	else
		json_bool(j, "mapped", there == PRESENT);
}

static bool is_of_kernel(const struct cairn_trace *t)
{
	return cairn_trace_n_probes(t) && cairn_trace_probe(t, 0)->of_kernel;
}

static void summary_json(const struct session *session, const struct cairn_trace_stats *stats,
			 const struct cairn_trace_counts *counts)
{
	struct json j = {.out = session->out};

	json_open(&j, NULL, '{');
	json_summary(&j);
	json_uint(&j, "sites", stats->n_attached + stats->n_refused);
	json_uint(&j, "attached", stats->n_attached);
	json_uint(&j, "refused", stats->n_refused);
	json_uint(&j, "with_caveats", n_with_caveats(session->trace));
	if (stats->follows)
		json_uint(&j, "without_end", n_without_end(session->trace));
	put_counts(&j, &stats->total, session->aggregates, stats->follows);
	json_uint(&j, "missed", stats->missed);
	trace_sample_put(&j, session);
	trace_guard_put(&j, session, stats);
	if (is_of_kernel(session->trace)) {
		json_bool(&j, "missed_unknown", stats->missed_unknown);
		if (stats->follows)
			json_uint(&j, "returns_missed", stats->returns_missed);
		json_uint(&j, "unloaded", stats->n_unloaded);
	}
	if (session->names) {
		json_uint(&j, "stacks", stats->n_stacks);
		json_uint(&j, "stacks_lost", stats->n_stacks_lost);
		json_uint(&j, "stacks_cut", stats->n_stacks_cut);
	}
	json_text(&j, "backend", backend_word(stats->backend));
	json_uint(&j, "links", stats->n_links);
	json_uint(&j, "attach_ns", stats->attach_ns);
	json_uint(&j, "detach_ns", stats->detach_ns);
	if (stats->children_known)
		json_uint(&j, "children", stats->n_children);
	else
		json_null(&j, "children");
	json_bool(&j, "children_followed", stats->children_followed);
	json_open(&j, "probes", '[');
	for (uint32_t i = 0; i < cairn_trace_n_probes(session->trace); i++) {
		json_open(&j, NULL, '{');
		json_text(&j, "probe", cairn_trace_probe(session->trace, i)->text);
		put_counts(&j, &counts[i], session->aggregates, stats->follows);
		put_mapped(&j, presence(session, i, &counts[i]));
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

/* How the command ended matters when it ended badly; that it still runs, always. */
static void report_command(const struct session *session)
{
	int status;

	if (!session->has_command)
		return;
	if (!cairn_trace_status(session->trace, &status))
		say(stderr, "the command goes on as process %d\n", cairn_trace_pid(session->trace));
	else if (WIFSIGNALED(status))
		say(stderr, "the command was ended by signal %d (%s)\n", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		say(stderr, "the command ended with exit status %d\n", WEXITSTATUS(status));
}

int trace_summary(const struct session *session)
{
	struct cairn_trace_stats stats = {.size = sizeof(stats)};
	uint32_t n = cairn_trace_n_probes(session->trace);
	struct cairn_trace_counts *counts = calloc(n ? n : 1, sizeof(*counts));
	struct cairn_err err = {0};
	int r;

	if (!counts)
		return fail(STATUS_NOT_HERE, "no memory");
	r = cairn_trace_stats(session->trace, &stats, counts, &err);
	if (r < 0) {
		free(counts);
		return fail_err(r, &err, STATUS_NOT_HERE);
	}
	report_command(session);
	summary_text(session, &stats, counts);
	if (session->json)
		summary_json(session, &stats, counts);
	free(counts);
	bool has_lost = stats.total.lost || stats.total.entries_lost || stats.missed ||
			stats.n_stacks_lost || session->slowdown > 0;
	return session->fail_on_loss && has_lost ? STATUS_LOST : STATUS_YES;
}
