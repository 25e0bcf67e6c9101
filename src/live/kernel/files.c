/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files in which a kernel or a module may be
 *
 * Nothing in a running kernel names its vmlinux. Distributions agree on some paths, and debug files
 * have a name by build-id. Modules are listed in modules.dep, with the folder of each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "elf/elf.h"
#include "kernel/kernel.h"

/* Those with debug information first. */
static const char *const in_debug_dir[] = {"boot/vmlinux-%s", "lib/modules/%s/vmlinux",
					   "boot/vmlinux-%s.debug", "lib/modules/%s/vmlinux.debug"};
static const char *const in_root[] = {"lib/modules/%s/build/vmlinux", "lib/modules/%s/vmlinux",
				      "boot/vmlinux-%s"};

struct search {
	const struct cairn_kernel *kernel;
	const struct cairn_binary_opts *opts;
	VEC(char) log; /* a line for each place */
	struct cairn_binary *found;
};

/* @line is quoted by err_set(). */
static int note(struct search *s, const struct cairn_err *line)
{
	return VEC_APPEND(&s->log, line->msg, strlen(line->msg)) && VEC_ADD(&s->log, '\n')
		       ? 0
		       : -ENOMEM;
}

/* 1 if it is the one; else 0, and it is closed. */
static int take_if_build(struct search *s, const char *path, struct cairn_binary *bin)
{
	struct cairn_err err = {0};
	if (kernel_is_build(s->kernel, bin)) {
		s->found = bin;
		return 1;
	}
	err_set(&err, -ESTALE, "%s: of another build", path);
	cairn_binary_close(bin);
	return note(s, &err);
}

/* 1 if it is the one; 0: the next. */
static int try_file(struct search *s, const char *path)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	int rc = cairn_binary_open(path, s->opts, &bin, &err);
	if (rc == -ENOMEM)
		return rc;
	return rc < 0 ? note(s, &err) : take_if_build(s, path, bin);
}

/* "DIR/.build-id/12/3456.debug", malloc()ed. */
static char *build_id_path(const struct cairn_kernel *k, const char *dir)
{
	size_t n = strlen(dir), size = n + 2 * k->build_id_len + 32;
	char *path = malloc(size);
	int at = path ? snprintf(path, size, "%s/.build-id/%02x/", dir, k->build_id[0]) : 0;
	for (size_t i = 1; path && i < k->build_id_len; i++)
		at += snprintf(path + at, size - (size_t)at, "%02x", k->build_id[i]);
	if (path)
		snprintf(path + at, size - (size_t)at, ".debug");
	return path;
}

/* The patterns come from the tables above: each has one %s. */
static int try_pattern(struct search *s, const char *dir, const char *pattern)
{
	SCOPE_FREE char *path = NULL;
	const char *hole = strstr(pattern, "%s");
	int n = asprintf(&path, "%s/%.*s%s%s", dir, (int)(hole - pattern), pattern,
			 s->kernel->release, hole + 2);
	if (n < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return try_file(s, path);
}

static int try_debug_dir(struct search *s, const char *dir)
{
	int rc = 0;
	for (size_t i = 0; i < sizeof(in_debug_dir) / sizeof(*in_debug_dir) && !rc; i++)
		rc = try_pattern(s, dir, in_debug_dir[i]);
	if (rc)
		return rc;
	SCOPE_FREE char *path = build_id_path(s->kernel, dir);
	return path ? try_file(s, path) : -ENOMEM;
}

static int find_kernel(struct search *s)
{
	SCOPE_FREE char *debug = kernel_path(s->kernel, "usr/lib/debug");
	int rc = debug ? 0 : -ENOMEM;
	for (size_t i = 0; s->opts && i < s->opts->n_debug_dirs && !rc; i++)
		rc = try_debug_dir(s, s->opts->debug_dirs[i]);
	if (!rc)
		rc = try_debug_dir(s, debug);
	for (size_t i = 0; i < sizeof(in_root) / sizeof(*in_root) && !rc; i++)
		rc = try_pattern(s, s->kernel->root, in_root[i]);
	return rc;
}

/* The only candidate. */
static int find_named(struct search *s, struct cairn_err *err)
{
	const char *path = s->opts->debug_file;
	struct cairn_binary_opts opts = *s->opts;
	opts.debug_file = NULL;
	int rc = cairn_binary_open(path, &opts, &s->found, err);
	if (rc < 0 || kernel_is_build(s->kernel, s->found))
		return rc;
	cairn_binary_close(s->found);
	s->found = NULL;
	return err_set(err, -ESTALE, "%s is of another build than the one that runs", path);
}

/* ---- modules ---- */

/* "kernel/drivers/block/loop.ko.xz:" is module loop. */
static bool is_file_of(const char *path, size_t n, const char *module)
{
	const char *base = memrchr(path, '/', n);
	size_t len = strlen(module);
	base = base ? base + 1 : path;
	if ((size_t)(path + n - base) < len + 3 || memcmp(base + len, ".ko", 3))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((base[i] == '-' ? '_' : base[i]) != module[i])
			return false;
	return true;
}

/* Its path in modules.dep, malloc()ed; NULL: none, or no memory. */
static char *listed_module(const char *list, const char *module)
{
	SCOPE_FCLOSE FILE *file = fopen(list, "re");
	SCOPE_FREE char *line = NULL;
	size_t cap = 0;
	while (file && getline(&line, &cap, file) > 0) {
		size_t n = strcspn(line, ":\n");
		if (is_file_of(line, n, module))
			return strndup(line, n);
	}
	return NULL;
}

static bool is_compressed(const char *path)
{
	size_t n = strlen(path);
	return n > 3 && strcmp(path + n - 3, ".ko");
}

/* The only candidate: another one would be another module's. */
static int open_compressed(struct search *s, const char *path, struct cairn_err *err)
{
	struct cairn_binary *bin;
	int rc = binary_open_unpacked(path, s->opts, &bin, err);
	return rc < 0 ? rc : take_if_build(s, path, bin);
}

static int find_module(struct search *s, struct cairn_err *err)
{
	const struct cairn_kernel *k = s->kernel;
	SCOPE_FREE char *list = kernel_path(k, "lib/modules/%s/modules.dep", k->release);
	SCOPE_FREE char *name = list ? listed_module(list, k->module) : NULL;
	struct cairn_err line = {0};
	if (!name) {
		err_set(&line, -ENOENT, "%s: does not list %s", list ? list : "", k->module);
		return list ? note(s, &line) : -ENOMEM;
	}
	SCOPE_FREE char *path = kernel_path(k, "lib/modules/%s/%s", k->release, name);
	if (!path)
		return -ENOMEM;
	return is_compressed(path) ? open_compressed(s, path, err) : try_file(s, path);
}

static int find(struct search *s, struct cairn_err *err)
{
	if (s->opts && s->opts->debug_file)
		return find_named(s, err);
	return s->kernel->module ? find_module(s, err) : find_kernel(s);
}

int cairn_kernel_find(const struct cairn_kernel *k, const struct cairn_binary_opts *opts,
		      struct cairn_binary **ret, struct cairn_err *err)
{
	struct search s = {.kernel = k, .opts = opts};
	int rc = find(&s, err);
	if (rc == -ENOMEM)
		err_nomem(err, "a search for files");
	if (!rc && !s.found) {
		rc = VEC_ADD(&s.log, '\0')
			     ? err_lines(err, -ENOENT, s.log.p,
					 "no file of %s %s was found:", kernel_name(k), k->release)
			     : err_nomem(err, "a search for files");
	}
	VEC_FREE(&s.log);
	*ret = s.found;
	return rc < 0 ? rc : 0;
}
