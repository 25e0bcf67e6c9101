/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --lock: layouts that have to stay
 *
 * The present types are written as a lock file, into memory; with --update that is the new file.
 * Otherwise it is read back, and the differences between the two are reported: both sides have
 * taken the same path, so no difference is due to the format.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cairn/layout/compare.h>

#include "layout_compare.h"
#include "say.h"
#include "truncated.h"

struct lock_run {
	const char *lock_path, *path;
	struct cairn_lock *locked; /* NULL: there is no file yet */
	struct layout_side now;
	char *text; /* the lock file as it would be written now */
	size_t size;
	int missing; /* STATUS_NO: a locked type is gone, which was reported */
};

static int read_lock(struct lock_run *l, bool is_update)
{
	struct cairn_err err = {0};
	struct stat st;
	size_t size;
	char *text;

	/* Output to a terminal or a pipe cannot be read back, and the read would wait for it. */
	if (stat(l->lock_path, &st) || (is_update && !S_ISREG(st.st_mode)))
		return STATUS_YES;
	int status = layout_read_text(l->lock_path, &text, &size);
	if (status)
		return status;
	int rc = cairn_lock_read(text, size, l->lock_path, &l->locked, &err);
	free(text);
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

/*
 * Characters of a name without the suffix that distinguishes equal names: "name#2". Rust has names
 * with # inside.
 */
static size_t base_length(const char *name)
{
	const char *hash = strrchr(name, '#');

	return hash && hash[1] && !hash[1 + strspn(hash + 1, "0123456789")] ? (size_t)(hash - name)
									    : strlen(name);
}

static bool same_base(const char *a, const char *b)
{
	size_t n = base_length(a);

	return n == base_length(b) && !memcmp(a, b, n);
}

/* A name as a pattern that only it matches. */
static char *pattern_of(const char *name)
{
	char *pattern = malloc(2 * strlen(name) + 1), *p = pattern;
	const char *end = name + base_length(name);

	for (; pattern && name < end; name++) {
		if (strchr("*?[\\", *name) && strpbrk(name, "*?["))
			*p++ = '\\';
		*p++ = *name;
	}
	if (pattern)
		*p = 0;
	return pattern;
}

/* The word before a name in a lock, which knows no classes. */
static const char *word_of(const struct cairn_types *types, uint32_t id)
{
	const char *kind = layout_kind(types, id);

	return strcmp(kind, "class") ? kind : "struct";
}

/* Some of the @n locked types, of one name. */
struct namesakes {
	const struct cairn_types *types;
	const uint32_t *ids;
	size_t n;
};

static const char *locked_name(const struct namesakes *of, size_t i)
{
	return cairn_types_get(of->types, of->ids[i])->name;
}

static bool is_locked(const struct namesakes *of, const struct cairn_types *types, uint32_t found)
{
	const char *name = cairn_types_get(types, found)->name, *word = word_of(types, found);

	if (!name || strlen(name) != base_length(locked_name(of, 0)) ||
	    strncmp(name, locked_name(of, 0), strlen(name)))
		return false;
	for (size_t i = 0; i < of->n; i++)
		if (!strcmp(word_of(of->types, of->ids[i]), word))
			return true;
	return false;
}

/* Those of the locked kinds: enum a is not struct a. */
static int select_namesakes(struct lock_run *l, const struct namesakes *of)
{
	struct cairn_source_list *list = &l->now.list;
	const struct cairn_types *types;
	size_t kept = list->n;
	char *pattern = pattern_of(locked_name(of, 0));
	struct cairn_err err = {0};
	int64_t found =
		pattern ? cairn_source_select(l->now.source.source, pattern, list, &err) : -ENOMEM;

	free(pattern);
	if (found < 0)
		return fail_err((int)found, &err, STATUS_NOT_HERE);
	types = cairn_source_types(l->now.source.source);
	for (size_t i = kept; i < list->n; i++)
		if (is_locked(of, types, list->ids[i]))
			list->ids[kept++] = list->ids[i];
	list->n = kept;
	return STATUS_YES;
}

/* The locked types that still exist. */
static int select_locked(struct lock_run *l)
{
	size_t n;
	const uint32_t *ids = cairn_lock_ids(l->locked, &n);
	int status = STATUS_YES;

	for (size_t i = 0, end; i < n && !status; i = end) {
		struct namesakes of = {.types = cairn_lock_types(l->locked), .ids = ids + i};

		for (end = i + 1;
		     end < n && same_base(locked_name(&of, 0), locked_name(&of, end - i));)
			end++;
		of.n = end - i;
		status = select_namesakes(l, &of);
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
	rc = cairn_lock_write(layout_types(&l->now.source), l->now.list.ids, l->now.list.n,
			      abi ? abi->name : NULL, out, &err);
	bool is_cut = ferror(out);
	/* If glibc could not cut the buffer to its size, there is no buffer. */
	if (fclose(out) || is_cut || !l->text)
		rc = -ENOMEM;
	return rc < 0 ? fail_err(rc, &err, STATUS_NOT_HERE) : STATUS_YES;
}

static int update(const struct lock_run *l)
{
	struct cairn_err err = {0};
	int rc = write_whole_answer(l->lock_path, l->text, l->size, &err);

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
	int status = rc < 0 ? fail_err(rc, &err, STATUS_NOT_HERE)
			    : side_of(l->locked, l->lock_path, &sides[0]);

	if (!status)
		status = side_of(now, l->path, &sides[1]);
	if (!status)
		status = layout_compare_sides(sides, "in", json);
	if (status <= STATUS_NO && sides[0].abi != sides[1].abi)
		say(stderr, "cairn: locked on %s, laid out for %s\n",
		    sides[0].abi ? sides[0].abi->name : "another ABI",
		    sides[1].abi ? sides[1].abi->name : "one that is not known");
	if (status == STATUS_NO)
		say(stderr,
		    "cairn: layouts have drifted; if this is intended, use --lock %s --update\n",
		    l->lock_path);
	free(sides[0].list.ids);
	free(sides[1].list.ids);
	cairn_lock_free(now);
	return status;
}

static int run(struct lock_run *l, const struct cairn_abi *abi, const struct layout_values *values,
	       char *const *patterns, size_t n_patterns)
{
	int status = read_lock(l, values->update);

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

int layout_lock(const char *path, const struct cairn_abi *abi, const struct layout_values *values,
		char *const *patterns, size_t n_patterns)
{
	struct lock_run l = {.lock_path = values->lock, .path = path};
	int status = run(&l, abi, values, patterns, n_patterns);

	free(l.text);
	cairn_lock_free(l.locked);
	layout_close_side(&l.now);
	return status > l.missing ? status : l.missing;
}
