/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --lock: layouts that have to stay
 *
 * The types as they are now are written as a lock file, into memory; with --update that is the new file. Else it is read
 * back, and what differs between the two is told: both sides have gone the same way, so nothing differs that the format
 * cannot say.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/file.h>
#include <cairn/lock.h>

#include "layout_compare.h"
#include "say.h"

struct lock_run {
	const char *lock_path, *path;
	struct cairn_lock *locked; /* NULL: there is no file yet */
	struct layout_side now;
	char *text;                /* the lock file as it would be written now */
	size_t size;
	int missing;               /* STATUS_NO: a locked type is gone, which was told */
};

static int read_lock(struct lock_run *l)
{
	struct cairn_err err = {0};
	size_t size;
	char *text;

	if (access(l->lock_path, F_OK))
		return STATUS_YES;
	int status = layout_read_text(l->lock_path, &text, &size);
	if (status)
		return status;
	int rc = cairn_lock_read(text, size, l->lock_path, &l->locked, &err);
	free(text);
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

/* A name as a pattern that only it matches. */
static char *pattern_of(const char *name)
{
	char *pattern = malloc(2 * strlen(name) + 1), *p = pattern;

	for (; pattern && *name && *name != '#'; name++) {
		if (strchr("*?[\\", *name) && strpbrk(name, "*?["))
			*p++ = '\\';
		*p++ = *name;
	}
	if (pattern)
		*p = 0;
	return pattern;
}

/* The types that are locked, as far as they are still there. */
static int select_locked(struct lock_run *l)
{
	size_t n;
	const uint32_t *ids = cairn_lock_ids(l->locked, &n);
	const char *last = "";
	int status = STATUS_YES;

	for (size_t i = 0; i < n && status <= STATUS_NO; i++) {
		const char *name = cairn_types_get(cairn_lock_types(l->locked), ids[i])->name;
		char *pattern = pattern_of(name);
		struct cairn_err err = {0};
		/* All of one name, of any kind, at once. */
		int64_t found = pattern && strcmp(pattern, last)
					? cairn_source_select(l->now.source.source, pattern, &l->now.list, &err)
					: 1;

		if (!pattern || found < 0)
			status = fail_err(pattern ? (int)found : -ENOMEM, &err, STATUS_NOT_HERE);
		free(pattern);
		last = name;
	}
	return status;
}

static int select_now(struct lock_run *l, char *const *patterns, size_t n_patterns)
{
	int status = STATUS_YES;

	if (l->locked)
		status = select_locked(l);
	if (!status && (n_patterns || !l->locked)) {
		status = layout_select(l->now.source.source, patterns, n_patterns, &l->now.list);
		if (status == STATUS_NO)
			l->missing = STATUS_NO;
	}
	return status;
}

static int write_now(struct lock_run *l, const struct cairn_abi *abi)
{
	struct cairn_err err = {0};
	FILE *out;
	int rc, status = abi ? layout_retarget(&l->now.source, abi, &l->now.list) : STATUS_YES;

	if (status)
		return status;
	abi = layout_abi(&l->now.source);
	out = open_memstream(&l->text, &l->size);
	if (!out)
		return fail(STATUS_NOT_HERE, "no memory");
	rc = cairn_lock_write(layout_types(&l->now.source), l->now.list.ids, l->now.list.n, abi ? abi->name : NULL, out,
			      &err);
	bool is_cut = ferror(out);
	/* glibc tells that it could not cut the buffer to its size by there being none. */
	if (fclose(out) || is_cut || !l->text)
		rc = -ENOMEM;
	return rc < 0 ? fail_err(rc, &err, STATUS_NOT_HERE) : STATUS_YES;
}

static int update(const struct lock_run *l)
{
	struct cairn_err err = {0};
	int rc = cairn_file_write(l->lock_path, l->text, l->size, &err);

	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

static int side_of(const struct cairn_lock *lock, const char *label, struct layout_side *ret)
{
	size_t n;
	const uint32_t *ids = cairn_lock_ids(lock, &n);

	*ret = (struct layout_side){.label = label, .types = cairn_lock_types(lock)};
	if (cairn_lock_abi(lock))
		ret->abi = cairn_abi_find(cairn_lock_abi(lock));
	ret->list.ids = calloc(n + 1, sizeof(*ids));
	if (!ret->list.ids)
		return fail(STATUS_NOT_HERE, "no memory");
	if (n)
		memcpy(ret->list.ids, ids, n * sizeof(*ids));
	ret->list.n = n;
	return STATUS_YES;
}

static int verify(const struct lock_run *l, bool json)
{
	struct cairn_lock *now = NULL;
	struct cairn_err err = {0};
	struct layout_side sides[2] = {{.label = NULL}, {.label = NULL}};
	int rc = cairn_lock_read(l->text, l->size, l->path, &now, &err);
	int status = rc < 0 ? fail_err(rc, &err, STATUS_NOT_HERE) : side_of(l->locked, l->lock_path, &sides[0]);

	if (!status)
		status = side_of(now, l->path, &sides[1]);
	if (!status)
		status = layout_compare_sides(sides, "in", json);
	if (status <= STATUS_NO && sides[0].abi != sides[1].abi)
		say(stderr, "cairn: locked on %s, laid out for %s\n", sides[0].abi ? sides[0].abi->name : "another ABI",
			sides[1].abi ? sides[1].abi->name : "one that is not known");
	if (status == STATUS_NO)
		say(stderr, "cairn: layouts have drifted; if they had to, say --lock %s --update\n", l->lock_path);
	free(sides[0].list.ids);
	free(sides[1].list.ids);
	cairn_lock_free(now);
	return status;
}

static int run(struct lock_run *l, const struct cairn_abi *abi, const struct layout_values *values,
	       char *const *patterns, size_t n_patterns)
{
	int status = read_lock(l);

	if (status)
		return status;
	if (!l->locked && !values->update)
		return fail(STATUS_USAGE, "there is no %s yet; --update writes it", l->lock_path);
	status = layout_open(l->path, abi, values, &l->now.source);
	status = status ? status : select_now(l, patterns, n_patterns);
	status = status ? status : write_now(l, abi);
	if (status)
		return status;
	return values->update ? update(l) : verify(l, values->json);
}

int layout_lock(const char *path, const struct cairn_abi *abi, const struct layout_values *values, char *const *patterns,
		size_t n_patterns)
{
	struct lock_run l = {.lock_path = values->lock, .path = path};
	int status = run(&l, abi, values, patterns, n_patterns);

	free(l.text);
	cairn_lock_free(l.locked);
	layout_close_side(&l.now);
	return status > l.missing ? status : l.missing;
}
