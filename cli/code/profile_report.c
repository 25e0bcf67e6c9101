/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a run of `cairn profile`: while it samples, and at its end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/text.h>

#include "clock.h"
#include "cmd.h"
#include "profile_run.h"
#include "say.h"

/* Often enough to be alive, rarely enough to cost nothing. */
#define PROGRESS_EVERY_NS 200000000u

#define LOST_MAPPINGS ": code there may have no names for a moment, or older ones"

/* ---- progress ---- */

void profile_progress(struct profile_progress *progress, const struct cairn_prof *prof,
		      uint64_t left_ns)
{
	struct cairn_prof_counts c;
	uint64_t now = clock_now_ns();

	if (!isatty(STDERR_FILENO) || now - progress->shown_ns < PROGRESS_EVERY_NS)
		return;
	progress->shown_ns = now;
	cairn_prof_counts(prof, &c);
	fprintf(stderr, "\r\033[K%s, %" PRIu64 " lost", cairn_counted(c.n_samples, "sample").text,
		c.n_lost);
	if (left_ns)
		fprintf(stderr, ", %" PRIu64 " s left", (left_ns + 999999999) / 1000000000u);
	fputs("; Ctrl-C ends", stderr);
	fflush(stderr);
}

void profile_progress_tables(struct profile_progress *progress, int n)
{
	uint64_t now = clock_now_ns();

	if (!isatty(STDERR_FILENO) || now - progress->shown_ns < PROGRESS_EVERY_NS)
		return;
	progress->shown_ns = now;
	fprintf(stderr, "\r\033[K%s to make before sampling begins",
		cairn_counted((uint64_t)n, "unwind table").text);
	fflush(stderr);
}

void profile_progress_end(struct profile_progress *progress)
{
	if (progress->shown_ns)
		fputs("\r\033[K", stderr);
	progress->shown_ns = 0;
}

/* ---- losses ---- */

static int note_lost(struct cairn_profile *p, uint64_t n, const char *what, const char *more)
{
	char text[160];

	snprintf(text, sizeof(text), "%s lost%s", cairn_counted(n, what).text, more);
	return n ? cairn_profile_add_comment(p, text, NULL) : 0;
}

void profile_note_losses(struct cairn_profile *p, const struct cairn_prof_counts *before,
			 const struct cairn_prof_counts *now)
{
	int r = note_lost(p, now->n_lost - before->n_lost, "sample", "");

	if (r == 0)
		r = note_lost(p, now->n_lost_mappings - before->n_lost_mappings, "mapping report",
			      LOST_MAPPINGS);
	if (r < 0)
		fail(STATUS_YES, "no memory: the files do not say what was lost");
}

/* ---- ends of stacks ---- */

static bool is_cut(enum cairn_prof_end end)
{
	return end != CAIRN_PROF_COMPLETE && end != CAIRN_PROF_ASSUMED && end != CAIRN_PROF_NO_USER;
}

static uint64_t n_cut(const struct cairn_prof_counts *c)
{
	uint64_t n = 0;

	for (int end = 0; end < CAIRN_PROF_N_ENDS; end++)
		n += is_cut((enum cairn_prof_end)end) ? c->n_ends[end] : 0;
	return n;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* The reasons of stacks that are cut, the most frequent first. */
static size_t cut_ends(const struct cairn_prof_counts *c, int ends[CAIRN_PROF_N_ENDS])
{
	size_t n = 0;

	for (int end = 0; end < CAIRN_PROF_N_ENDS; end++) {
		size_t at = n;

		if (!is_cut((enum cairn_prof_end)end) || !c->n_ends[end])
			continue;
		for (; at && c->n_ends[ends[at - 1]] < c->n_ends[end]; at--)
			ends[at] = ends[at - 1];
		ends[at] = end;
		n++;
	}
	return n;
}

static void show_ends(const struct cairn_prof_counts *c)
{
	int ends[CAIRN_PROF_N_ENDS];
	size_t n = cut_ends(c, ends);

	say(stdout, "stacks: %.2f %% complete, %.2f %% with assumed frames, %.2f %% cut\n",
	    percent(c->n_ends[CAIRN_PROF_COMPLETE] + c->n_ends[CAIRN_PROF_NO_USER], c->n_samples),
	    percent(c->n_ends[CAIRN_PROF_ASSUMED], c->n_samples), percent(n_cut(c), c->n_samples));
	for (size_t i = 0; i < n; i++)
		say(stdout, "  %.2f %% %s: %s\n", percent(c->n_ends[ends[i]], c->n_samples),
		    cairn_prof_end_id((enum cairn_prof_end)ends[i]),
		    cairn_prof_end_text((enum cairn_prof_end)ends[i]));
}

/* ---- text ---- */

/* Hits of a probe that are no samples, and samples that have no number. */
static void show_hits(const struct profile_run *run)
{
	const struct cairn_prof_counts *c = &run->counts;
	const char *reason, *word;
	uint64_t n;

	if (c->n_filtered)
		say(stdout, "%s did not meet the condition\n",
		    cairn_counted(c->n_filtered, "hit").text);
	if (c->n_undecided)
		say(stdout,
		    "%s undecided, and not sampled: the condition's memory could not be read\n",
		    cairn_counted(c->n_undecided, "hit").text);
	for (size_t i = 0; (reason = cairn_prof_without_value(run->prof, i, &word, &n)); i++)
		say(stdout, "%s in no sum of %s: %s\n", cairn_counted(n, "hit").text,
		    cairn_profile_type(run->profile, run->type)->type, reason);
}

static void show_samples(const struct profile_run *run)
{
	const struct cairn_prof_counts *c = &run->counts;

	say(stdout, "%s", cairn_prof_event_text(run->prof));
	if (run->hz)
		say(stdout, " at %u Hz", run->hz);
	say(stdout, ", %.2f s: %s, %" PRIu64 " lost, %s\n", run->seconds,
	    cairn_counted(c->n_samples, "sample").text, c->n_lost,
	    cairn_counted(c->n_stacks, "different stack").text);
	show_hits(run);
	if (c->n_lost_mappings)
		say(stdout, "%s lost%s\n", cairn_counted(c->n_lost_mappings, "mapping report").text,
		    LOST_MAPPINGS);
	if (c->n_left_out)
		say(stdout, "no room for the code of %s: stacks end there\n",
		    cairn_counted(c->n_left_out, "process").text);
	if (c->n_late)
		say(stdout, "%s taken when the task had read pages of its stack\n",
		    cairn_counted(c->n_late, "sample").text);
}

static void show_cost(const struct profile_run *run)
{
	const struct cairn_prof_counts *c = &run->counts;
	double n = c->n_samples ? (double)c->n_samples : 1;

	say(stdout, "cost: %.1f us a sample in the kernel, %.2f s of processor time here",
	    (double)c->walk_ns / n / 1e3, (double)c->own_cpu_ns / 1e9);
	say(stdout, "; %s of %s in %.1f MB there\n", cairn_counted(c->n_rows, "unwind row").text,
	    cairn_counted(c->n_files, "file").text, (double)c->kernel_bytes / 1e6);
}

static void show_text(const struct profile_run *run)
{
	const char *unit = cairn_profile_type(run->profile, run->type)->unit;

	show_samples(run);
	show_ends(&run->counts);
	show_cost(run);
	putchar('\n');
	profile_show_threads(&run->threads, unit, run->n_top / 2);
	profile_show_shares(&run->shares, unit, run->n_top);
}

/* ---- JSON ---- */

static void json_hits(struct json *j, const struct profile_run *run)
{
	const char *word;
	uint64_t n;

	json_uint(j, "filtered", run->counts.n_filtered);
	json_uint(j, "undecided", run->counts.n_undecided);
	json_open(j, "without_value", '{');
	for (size_t i = 0; cairn_prof_without_value(run->prof, i, &word, &n); i++)
		json_uint(j, word, n);
	json_close(j);
}

static void show_json(const struct profile_run *run)
{
	const struct cairn_prof_counts *c = &run->counts;
	const struct cairn_profile_type *t = cairn_profile_type(run->profile, run->type);
	struct json j = {.out = stdout};

	profile_json_shares(&run->shares);
	json_open(&j, NULL, '{');
	json_summary(&j);
	json_text(&j, "event", cairn_prof_event_text(run->prof));
	json_uint(&j, "hz", run->hz);
	json_text(&j, "value", t->type);
	json_text(&j, "unit", t->unit);
	json_int(&j, "sum", run->shares.sum);
	json_uint(&j, "samples", c->n_samples);
	json_uint(&j, "lost", c->n_lost);
	json_uint(&j, "lost_mappings", c->n_lost_mappings);
	json_uint(&j, "left_out", c->n_left_out);
	json_uint(&j, "late", c->n_late);
	if (cairn_prof_probes(run->prof))
		json_hits(&j, run);
	json_uint(&j, "stacks", c->n_stacks);
	json_uint(&j, "functions", run->shares.n);
	profile_json_threads(&j, &run->threads);
	json_open(&j, "ends", '{');
	for (int end = 0; end < CAIRN_PROF_N_ENDS; end++)
		json_uint(&j, cairn_prof_end_id((enum cairn_prof_end)end), c->n_ends[end]);
	json_close(&j);
	json_int(&j, "duration_ns", (int64_t)(run->seconds * 1e9));
	json_uint(&j, "walk_ns", c->walk_ns);
	json_uint(&j, "own_cpu_ns", c->own_cpu_ns);
	if (c->first_sample_ns)
		json_uint(&j, "first_sample_ns", c->first_sample_ns);
	json_uint(&j, "files", c->n_files);
	json_uint(&j, "rows", c->n_rows);
	json_uint(&j, "kernel_bytes", c->kernel_bytes);
	json_close(&j);
}

/* ---- the report ---- */

static void say_notes(const struct cairn_prof *prof)
{
	const char *note;

	fflush(stdout);
	for (size_t i = 0; (note = cairn_prof_note(prof, i)); i++)
		say_lines(stderr, note);
}

static void say_command(const struct cairn_prof *prof)
{
	int status = cairn_prof_status(prof);

	if (status == -1)
		return;
	if (WIFSIGNALED(status))
		say(stderr, "the command was ended by signal %d (%s)\n", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		say(stderr, "the command ended with exit status %d\n", WEXITSTATUS(status));
}

int profile_report(const struct profile_run *run, bool json)
{
	if (json)
		show_json(run);
	else
		show_text(run);
	say_notes(run->prof);
	say_command(run->prof);
	if (!run->counts.n_samples && run->counts.n_lost)
		return fail(run->fail_on_loss ? STATUS_LOST : STATUS_NO,
			    "no sample was taken: %s lost",
			    cairn_counted(run->counts.n_lost, "sample").text);
	if (!run->counts.n_samples)
		return fail(STATUS_NO, "no sample was taken: nothing that is profiled ran, or it "
				       "ended at once");
	if (run->fail_on_loss && run->counts.n_lost)
		return fail(STATUS_LOST, "%s lost",
			    cairn_counted(run->counts.n_lost, "sample").text);
	return STATUS_YES;
}
