/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/walker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "walk/command.h"

/* Some thousand mappings, in the time between two calls. */
#define REPORT_BYTES ((size_t)256 * 1024)

/*
 * How long stacks wait for tables: those of all processes, or of the ones that are asked for. A
 * table takes milliseconds, and on a machine whose processors others have, seconds.
 */
#define TABLES_WITHIN_NS     100000000ull
#define OWN_TABLES_WITHIN_NS 10000000000ull
/* How often all processes are looked at because reports are lost. */
#define RECOVER_EVERY_NS     500000000u
/* How often files are looked at because somebody may write them. */
#define FILES_EVERY_NS       1000000000u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- what is watched ---- */

int walker_init(struct walker *w, struct cairn_err *err)
{
	*w = (struct walker){0};
	return files_init(&w->files, err);
}

void walker_fini(struct walker *w)
{
	watched_fini(&w->processes);
	tables_fini(&w->tables);
	files_fini(&w->files);
	reports_close(&w->reports);
	VEC_FREE(&w->to_look);
}

int walker_open(struct walker *w, const struct walker_maps *maps, bool all, struct cairn_err *err)
{
	const struct reports_opts report_opts = {.pid = -1, .ring_bytes = REPORT_BYTES};
	int rc;

	watched_init(&w->processes, &w->files, maps->segments, maps->regions, maps->processes, all);
	w->processes.tables = &w->tables;
	files_tell_kernel(&w->files, maps->inodes);
	rc = tables_init(&w->tables, maps->rows, maps->pages, maps->rules, err);
	return rc ? rc : reports_open(&w->reports, &report_opts, err);
}

int walker_add(struct walker *w, int pid, struct cairn_err *err)
{
	return watched_add(&w->processes, pid, true, err);
}

int walker_add_running(struct walker *w, struct cairn_err *err)
{
	return watched_add_running(&w->processes, err);
}

int walker_know_command(struct walker *w, const char *program, struct cairn_err *err)
{
	return command_know_files(&w->files, program, err);
}

int walker_add_command(struct walker *w, int pid, struct cairn_err *err)
{
	return watched_add_command(&w->processes, pid, err);
}

int walker_publish(struct walker *w, struct cairn_err *err)
{
	return watched_publish(&w->processes, err);
}

/* ---- keeping up ---- */

static int apply(struct walker *w, const struct report *r, struct cairn_err *err)
{
	switch (r->kind) {
	case REPORT_MAPPED:
		return watched_mapped(&w->processes, r->pid, r->time_ns, &r->mapping, err);
	case REPORT_FORKED:
		return watched_forked(&w->processes, r->parent, r->pid, r->time_ns, err);
	case REPORT_EXECED:
		return watched_execed(&w->processes, r->pid, r->time_ns, err);
	case REPORT_EXITED:
		return watched_exited(&w->processes, r->pid, r->time_ns, err);
	}
	return 0;
}

static int take_reports(struct walker *w, struct cairn_err *err)
{
	uint64_t now = now_ns();
	int rc = reports_take(&w->reports, err);

	w->processes.reported_ns = now;
	for (size_t i = 0; i < w->reports.batch.n && rc == 0; i++)
		rc = apply(w, &w->reports.batch.p[i], err);
	if (rc || w->reports.n_lost == w->n_recovered || now < w->recover_after_ns)
		return rc;
	w->n_recovered = w->reports.n_lost;
	w->recover_after_ns = now + RECOVER_EVERY_NS;
	return watched_recover(&w->processes, now, err);
}

static void on_ready(void *ctx, uint32_t number, const struct walk_file *file)
{
	struct walker *w = ctx;

	watched_file_ready(&w->processes, number, file);
	w->n_files += file->pages.n > 0;
}

static int on_written(void *ctx, uint32_t number)
{
	struct walker *w = ctx;
	struct cairn_err err = {0};

	return watched_file_written(&w->processes, number, &err);
}

/* Files that are written again while processes run them. */
static int look_at_files(struct walker *w, struct cairn_err *err)
{
	uint64_t now = now_ns();

	if (now < w->files_after_ns)
		return 0;
	w->files_after_ns = now + FILES_EVERY_NS;
	return files_find_written(&w->files, on_written, w) < 0 ? err_nomem(err, "files") : 0;
}

int walker_follow(struct walker *w, struct cairn_err *err)
{
	int rc = take_reports(w, err);

	rc = rc ? rc : watched_look_for_ends(&w->processes, now_ns(), err);
	rc = rc ? rc : watched_look_at_registries(&w->processes, err);
	return rc ? rc : watched_look_at_made(&w->processes, false, err);
}

int walker_tell(struct walker *w, struct cairn_err *err)
{
	int rc = look_at_files(w, err);

	rc = rc ? rc : watched_read_outdated(&w->processes, now_ns(), err);
	rc = rc ? rc : files_put_tables(&w->files, &w->tables, on_ready, w, err);
	return rc ? rc : watched_publish(&w->processes, err);
}

int walker_update(struct walker *w, struct cairn_err *err)
{
	int rc = walker_follow(w, err);

	return rc ? rc : walker_tell(w, err);
}

int walker_look(struct walker *w, struct cairn_err *err)
{
	uint64_t now = now_ns();
	int rc = 0;

	for (size_t i = 0; i < w->to_look.n && rc == 0; i++)
		rc = watched_look(&w->processes, w->to_look.p[i], now, err);
	w->to_look.n = 0;
	return rc ? rc : watched_publish(&w->processes, err);
}

int walker_prepare(struct walker *w, int timeout_ms, struct cairn_err *err)
{
	struct pollfd done = {.fd = w->files.done_fd, .events = POLLIN};
	int rc = walker_update(w, err);

	if (rc < 0 || !files_n_waited_for(&w->files))
		return rc;
	if (poll(&done, 1, timeout_ms) < 0 && errno == EINTR)
		return -EINTR;
	rc = walker_update(w, err);
	return rc ? rc : (int)files_n_waited_for(&w->files);
}

int walker_wait_for_tables(struct walker *w, struct cairn_err *err)
{
	uint64_t now = now_ns();
	uint64_t until = now + (w->processes.all ? TABLES_WITHIN_NS : OWN_TABLES_WITHIN_NS);
	int rc = 1;

	while (rc > 0 && now < until) {
		rc = walker_prepare(w, (int)((until - now + 999999) / 1000000), err);
		now = now_ns();
	}
	rc = rc == -ENOMEM ? rc : walker_update(w, err);
	/* Putting a large table in takes a while, in which processes go on. */
	return rc ? rc : walker_update(w, err);
}

/* ---- stacks ---- */

bool walker_is_uncertain(const struct walker *w, int pid, uint64_t time_ns)
{
	return watched_is_uncertain(&w->processes, pid, time_ns);
}

/*
 * Frames that were in no known file when they were taken: reports that came since may tell their
 * file. How many of @frames are others then.
 */
static size_t find_files(const struct walker *w, const struct walk_taken *t, uint64_t *frames,
			 size_t n)
{
	size_t n_found = 0;

	for (size_t i = t->n_kernel; i < n; i++) {
		uint64_t frame = frames[i], found;

		if (!(frame & WALK_RAW) || frame & WALK_MADE)
			continue;
		found = watched_frame_at(&w->processes, t->pid, walk_unfiled_address(frame),
					 t->time_ns);
		frames[i] = found ? found | (frame & WALK_ASSUMED) : frame;
		n_found += found != 0;
	}
	return n_found;
}

/*
 * A stack that was made by hand begins in the last frame; its page was not in memory when the
 * kernel's program looked. Returns the end of such a stack, or that of @t.
 */
static uint8_t find_begin(const struct walker *w, const struct walk_taken *t, uint64_t *frames)
{
	size_t n = t->n;

	if (t->end != WALK_END_UNDESCRIBED || n <= t->n_kernel ||
	    !files_begins_context(&w->files, frames[n - 1]))
		return t->end;
	frames[n - 1]++;
	for (size_t i = t->n_kernel; i < n; i++)
		if (frames[i] & WALK_ASSUMED)
			return WALK_END_ASSUMED;
	return WALK_END_COMPLETE;
}

bool walker_resolve(const struct walker *w, const struct walk_taken *taken, uint64_t *own,
		    struct walk_taken *ret)
{
	*ret = *taken;
	ret->frames = own;
	memcpy(own, taken->frames, taken->n * sizeof(*own));
	ret->n = watched_sound(&w->processes, taken);
	ret->end = ret->n < taken->n ? WALK_END_NO_MAPPING : find_begin(w, taken, own);
	return find_files(w, taken, own, ret->n) || ret->n < taken->n || ret->end != taken->end;
}

/* The file in which a stack ends. */
static uint32_t file_of_last(const struct walk_taken *t)
{
	return t->n ? t->frames[t->n - 1] >> WALK_FILE_SHIFT & WALK_FILE_MASK : 0;
}

int walker_learn(struct walker *w, const struct walk_taken *t, uint8_t end, bool is_new)
{
	if (t->end == WALK_END_NOT_READY && is_new)
		files_hurry(&w->files, file_of_last(t));
	if (t->end == WALK_END_NO_PROCESS || t->end == WALK_END_NO_MAPPING ||
	    (end == WALK_END_UNDESCRIBED && is_new))
		return VEC_ADD(&w->to_look, t->pid) ? 0 : -ENOMEM;
	return 0;
}
