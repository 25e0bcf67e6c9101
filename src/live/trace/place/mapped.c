/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which probed files a process has mapped
 *
 * A library that the command never loads must not look like a function that is never called. For a
 * command, the kernel reports each mapping as it happens (perf/reports.h). If that is not allowed,
 * and for a process that runs already, /proc/PID/maps shows the present mappings, which is less:
 * then "not seen" is all that is known.
 */
#include <errno.h>
#include <string.h>

#include "trace/attach/kernel.h"
#include "trace/place/procmap.h"
#include "trace/attach/traced.h"

/*
 * A program maps some tens of files as code, each in a record of 100 bytes and more. A power of
 * two.
 */
#define RING_BYTES ((size_t)32 * 1024)

static bool same_last_name(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');

	return !strcmp(x ? x + 1 : a, y ? y + 1 : b);
}

void mapped_watch(struct cairn_trace *t)
{
	const struct reports_opts opts = {
		.pid = t->child.pid, .mappings_only = true, .ring_bytes = RING_BYTES};
	struct cairn_err err;
	int e = reports_open(&t->mappings, &opts, &err);

	t->has_mappings = e == 0 && t->mappings.rings.list.n;
	if (!t->has_mappings)
		reports_close(&t->mappings);
}

static void note_mapping(struct cairn_trace *t, int pid, const struct code_mapping *mapping)
{
	if (!mapping->ino)
		return;
	t->mappings_seen = true;
	/* A child that is not followed gives no event, whatever it maps. */
	if (pid != t->pid && !t->opts.follow_children)
		return;
	for (size_t i = 0; i < t->files.n; i++) {
		struct trace_file *f = t->files.p[i];
		/*
		 * The device is not stat's on overlayfs and btrfs; there the name has to do, and
		 * under another name it may be the file.
		 */
		if (mapping->ino != f->stat.st_ino)
			continue;
		if (mapping->dev == f->stat.st_dev || same_last_name(mapping->path, f->path))
			f->was_mapped = true;
		else
			t->mappings_unsure = true;
	}
}

/* Returns whether no mapping was missed: something was seen, and no ring ran over. */
static bool take_mappings(struct cairn_trace *t)
{
	struct cairn_err err;
	int e = reports_take(&t->mappings, &err);

	for (size_t i = 0; i < t->mappings.batch.n; i++)
		note_mapping(t, t->mappings.batch.p[i].pid, &t->mappings.batch.p[i].mapping);
	t->mappings_unsure |= e < 0;
	return t->mappings_seen && !t->mappings_unsure && !t->mappings.n_lost;
}

static bool is_in(const struct procmap *m, const struct trace_file *f)
{
	for (size_t i = 0; i < m->e.n; i++)
		if (procmap_is_file(m, &m->e.p[i], &f->stat))
			return true;
	return false;
}

static int look_at(struct cairn_trace *t, int pid, struct cairn_err *err)
{
	struct procmap m;
	int e = procmap_read(pid, &m, err);

	for (size_t i = 0; i < t->files.n && e == 0; i++)
		t->files.p[i]->was_mapped |= is_in(&m, t->files.p[i]);
	procmap_free(&m);
	return e;
}

/* Some of several processes may have ended. */
static int look(struct cairn_trace *t, struct cairn_err *err)
{
	int e = 0, seen = 0;

	for (size_t i = 0; i < t->n_traced; i++) {
		int r = look_at(t, t->traced[i].pid, err);
		e = r < 0 ? r : e;
		seen += r == 0;
	}
	return seen ? 0 : e;
}

int cairn_trace_mapped(struct cairn_trace *t, bool *ret, bool *ret_whole, struct cairn_err *err)
{
	bool is_whole = false;
	int e = 0, missing = 0;

	if (!t->n_traced)
		return err_set(err, -EINVAL, "every process is traced, not one");
	if (t->has_mappings)
		is_whole = take_mappings(t);
	if (!is_whole)
		e = look(t, err);
	for (size_t i = 0; i < t->probes.n; i++) {
		ret[i] = t->probes.p[i]->file->was_mapped;
		missing += !ret[i];
	}
	*ret_whole = is_whole;
	return e < 0 ? e : missing;
}
