/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_windows.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/text.h>

#include "clock.h"
#include "interrupt.h"
#include "json.h"
#include "notify.h"
#include "push_sender.h"
#include "say.h"

/* A window, and what the run had counted before it. */
struct window {
	struct cairn_profile *profile;
	struct cairn_prof_counts before, now;
	int status; /* of writing and pushing it */
};

/* Files of the windows that stay, as a ring. */
struct kept {
	char **paths; /* n_keep times as many as there are outputs */
	size_t n, next;
};

/* ---- files ---- */

/* The file takes the place of one that is too old. */
static void keep_path(struct kept *kept, char *path)
{
	char *old = kept->paths[kept->next];

	if (old)
		profile_remove(old);
	free(old);
	kept->paths[kept->next] = path;
	kept->next = (kept->next + 1) % kept->n;
}

static int write_window(const struct profile_windows *w, const struct window *window, size_t type,
			struct kept *kept)
{
	int64_t time_ns = cairn_profile_run(window->profile).time_ns;
	int status = STATUS_YES;

	for (size_t i = 0; i < w->out->n; i++) {
		char *path = profile_window_name(w->out->items[i], time_ns);
		struct opt_list one = {(const char **)&path, 1};
		int r = path ? profile_write_all(window->profile, type, &one, w->title)
			     : fail(STATUS_NOT_HERE, "no memory");

		status = status == STATUS_YES ? r : status;
		if (r == STATUS_YES)
			keep_path(kept, path);
		else
			free(path);
	}
	return status;
}

/* ---- lines ---- */

static double seconds_of(const struct window *window)
{
	return (double)cairn_profile_run(window->profile).duration_ns / 1e9;
}

static void say_window(const struct profile_run *run, const struct window *window)
{
	uint64_t n = window->now.n_samples - window->before.n_samples;
	struct spool_counts dropped = {0};

	say(stdout, "%.1f s: %s, %" PRIu64 " lost, %.3f s of own processor time",
	    seconds_of(window), cairn_counted(n, "sample").text,
	    window->now.n_lost - window->before.n_lost,
	    (double)(window->now.own_cpu_ns - window->before.own_cpu_ns) / 1e9);
	if (run->push)
		spool_counts(&run->push->spool, &dropped);
	if (dropped.n_dropped)
		say(stdout, ", %" PRIu64 " dropped since the spool was made", dropped.n_dropped);
	say(stdout, "\n");
}

static void json_window(const struct profile_run *run, const struct window *window)
{
	struct cairn_profile_run r = cairn_profile_run(window->profile);
	struct spool_counts dropped = {0};
	struct json j = {.out = stdout};

	if (run->push)
		spool_counts(&run->push->spool, &dropped);
	json_open(&j, NULL, '{');
	json_bool(&j, "window", true);
	json_int(&j, "time_ns", r.time_ns);
	json_int(&j, "duration_ns", r.duration_ns);
	json_uint(&j, "samples", window->now.n_samples - window->before.n_samples);
	json_uint(&j, "lost", window->now.n_lost - window->before.n_lost);
	json_uint(&j, "stacks", cairn_profile_n_samples(window->profile));
	json_uint(&j, "walk_ns", window->now.walk_ns - window->before.walk_ns);
	json_uint(&j, "own_cpu_ns", window->now.own_cpu_ns - window->before.own_cpu_ns);
	json_uint(&j, "files", window->now.n_files);
	json_uint(&j, "kernel_bytes", window->now.kernel_bytes);
	json_uint(&j, "dropped_ever", dropped.n_dropped);
	json_close(&j);
}

/* Each text once in a while: a run without an end would say some of them for ever. */
struct told {
	char *texts[32];
	size_t next;
};

static bool is_told(struct told *told, const char *text)
{
	size_t n = sizeof(told->texts) / sizeof(told->texts[0]);

	for (size_t i = 0; i < n; i++)
		if (told->texts[i] && !strcmp(told->texts[i], text))
			return true;
	free(told->texts[told->next]);
	told->texts[told->next] = strdup(text);
	told->next = (told->next + 1) % n;
	return false;
}

static void say_notes(const struct profile_run *run, struct told *told)
{
	const char *note;

	for (size_t i = 0; (note = cairn_prof_note(run->prof, i)); i++)
		if (!is_told(told, note))
			say(stderr, "cairn: %s\n", note);
}

/* ---- windows ---- */

/* State that outlives a window. */
struct state {
	struct kept kept;
	struct told told;
	struct push_sender sender;
	bool json;
};

/* Sampling goes on while it is written; a server is waited for by another process. */
static void finish_window(struct profile_run *run, const struct profile_windows *w,
			  struct window *window, struct state *state)
{
	size_t type = cairn_profile_n_types(window->profile) - 1;
	int pushed = STATUS_YES;

	window->status = STATUS_YES;
	if (cairn_profile_n_samples(window->profile)) {
		window->status = write_window(w, window, type, &state->kept);
		if (run->push)
			pushed = profile_push_add(run->push, window->profile);
		window->status = window->status == STATUS_YES ? pushed : window->status;
	}
	if (run->push)
		push_sender_start(&state->sender, run->push);
	state->json ? json_window(run, window) : say_window(run, window);
	fflush(stdout);
	say_notes(run, &state->told);
	cairn_profile_close(window->profile);
	window->profile = NULL;
}

/*
 * The window that ends; the last one is what is left after the stop. If it cannot be made, what was
 * counted is of the next one.
 */
static int take_window(struct profile_run *run, struct window *window, bool last,
		       struct cairn_err *err)
{
	struct cairn_err unsaid;
	int r;

	/* Without memory to take over what is there, the rest can be shown all the same. */
	if (last)
		cairn_prof_stop(run->prof, &unsaid);
	r = last ? cairn_prof_profile(run->prof, &window->profile, err)
		 : cairn_prof_window(run->prof, &window->profile, err);
	if (r < 0)
		return r;
	window->before = window->now;
	cairn_prof_counts(run->prof, &window->now);
	profile_note_losses(window->profile, &window->before, &window->now);
	return 0;
}

static bool is_over(const struct profile_run *run, double left)
{
	return interrupt_seen() || cairn_prof_targets_gone(run->prof) || left <= 0;
}

/* Windows in turn that could not be made, until it is given up. */
enum { FAILURES_MAX = 3 };

/* The samples stay, for the next window; after the last one there is none. */
static int say_failure(const struct profile_run *run, const struct window *window, bool last,
		       const struct cairn_err *err)
{
	struct cairn_prof_counts now;

	fail_told(STATUS_YES, err);
	if (!last)
		return fail(STATUS_NOT_HERE, "a window could not be made: what was sampled is in "
					     "the next one");
	cairn_prof_counts(run->prof, &now);
	return fail(STATUS_NOT_HERE, "the last window could not be made: %s of it are lost",
		    cairn_counted(now.n_samples - window->now.n_samples, "sample").text);
}

/* The memory of a busy minute is not kept through the quiet ones after it. */
static void give_memory_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* A window, from its samples to its files. @failed: windows in turn that could not be made. */
static int one_window(struct profile_run *run, const struct profile_windows *w,
		      struct window *window, struct state *state, bool last, size_t *failed)
{
	struct cairn_err err = {0};

	if (take_window(run, window, last, &err) < 0) {
		++*failed;
		return say_failure(run, window, last, &err);
	}
	*failed = 0;
	if (last)
		notify("STOPPING=1");
	finish_window(run, w, window, state);
	give_memory_back();
	return window->status;
}

/* This includes what was added while the last sender was sending. */
static int send_rest(struct profile_run *run, struct state *state)
{
	push_sender_wait(&state->sender);
	if (!run->push)
		return STATUS_YES;
	push_sender_start(&state->sender, run->push);
	return push_sender_wait(&state->sender);
}

static int run_windows(struct profile_run *run, const struct profile_windows *w, double limit,
		       struct state *state)
{
	double end = clock_now_seconds() + (limit ? limit : 1e12);
	struct window window = {0};
	struct cairn_err err = {0};
	int status = STATUS_YES, r = 0, sent;
	size_t n_failed = 0;
	bool last = false;

	while (!last) {
		double left = end - clock_now_seconds();

		if (left > 0)
			r = profile_sample(run->prof, left < w->seconds ? left : w->seconds, &err);
		last = r < 0 || n_failed >= FAILURES_MAX || is_over(run, end - clock_now_seconds());
		int one = one_window(run, w, &window, state, last, &n_failed);
		status = status == STATUS_YES ? one : status;
	}
	sent = send_rest(run, state);
	status = status == STATUS_YES ? sent : status;
	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : status;
}

int profile_windows_run(struct profile_run *run, const struct profile_windows *w, double limit,
			bool json)
{
	struct state state = {.kept.n = w->n_keep * w->out->n, .json = json};
	struct kept *kept = &state.kept;
	int status;

	kept->paths = calloc(kept->n + 1, sizeof(*kept->paths));
	if (!kept->paths)
		return fail(STATUS_NOT_HERE, "no memory");
	notify("READY=1");
	status = run_windows(run, w, limit, &state);
	for (size_t i = 0; i < kept->n; i++)
		free(kept->paths[i]);
	free(kept->paths);
	for (size_t i = 0; i < sizeof(state.told.texts) / sizeof(state.told.texts[0]); i++)
		free(state.told.texts[i]);
	return status;
}
