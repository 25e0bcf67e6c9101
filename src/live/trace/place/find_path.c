/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the PATH of a probe to the file to open
 *
 * A library without a directory is looked up among the mappings of the processes, then in the
 * default directories of the reference system's dynamic linker. The effect of LD_LIBRARY_PATH or an
 * rpath on a command is not guessed: give the path.
 *
 * In a running process the file is the one it maps, even when another one has taken its name since.
 * A path is looked up in the root of the process first: a container has files of its own. There a
 * file is opened by /proc/PID/root/PATH, so that its debug information is found beside it, too.
 *
 * A library that is not mapped may be loaded later, so it is probed as well. Another file that is
 * not mapped is refused: it will hardly ever be.
 *
 * Of several processes the first one that maps the file has it. The others must map the same.
 */
#include "trace/place/find_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "launch/permission.h"
#include "sites/spec.h"
#include "trace/place/procmap.h"
#include "trace/attach/traced.h"

/* Longest path of an executable (PATH_MAX of Linux). */
#define PATH_BYTES 4096

static const char *const library_dirs[] = {"/lib/x86_64-linux-gnu",
					   "/usr/lib/x86_64-linux-gnu",
					   "/lib64",
					   "/usr/lib64",
					   "/lib",
					   "/usr/lib",
					   "/usr/local/lib"};

#define N_LIBRARY_DIRS (sizeof(library_dirs) / sizeof(library_dirs[0]))

bool path_looks_like_library(const char *name)
{
	const char *so = strstr(name, ".so");

	return so && so != name && (!so[3] || so[3] == '.');
}

/* "libc.so.6" for "libc". */
static bool is_version_of(const char *file, const char *name, size_t n_name)
{
	return !strncmp(file, name, n_name) && !strncmp(file + n_name, ".so", 3) &&
	       (!file[n_name + 3] || file[n_name + 3] == '.');
}

/*
 * Whether it is the better of two names: the shortest with a version, which programs ask for, as of
 * libssl.so, libssl.so.3 and libssl.so.3.0.
 * The one without is for the linker.
 */
static bool is_better(const char *file, const char *than)
{
	size_t n = strlen(file), n_than = strlen(than);
	bool has_version = strstr(file, ".so.") != NULL, had = strstr(than, ".so.") != NULL;

	if (!*than || has_version != had)
		return !*than || has_version;
	return n != n_than ? n < n_than : strcmp(file, than) < 0;
}

static void look_in(const char *dir, const char *name, size_t n_name, char *buf, size_t size)
{
	DIR *d = opendir(dir);
	char path[512];
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (!is_version_of(entry->d_name, name, n_name) || !is_better(entry->d_name, buf))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (path_is_elf(path))
			snprintf(buf, size, "%s", entry->d_name);
	}
	if (d)
		closedir(d);
}

int library_without_so(const char *spec, struct cairn_err *err)
{
	const char *colon = spec_colon(spec, spec + strlen(spec));
	size_t n = colon ? (size_t)(colon - spec) : 0;
	char library[256] = "";

	if (n <= strlen("lib") || strncmp(spec, "lib", strlen("lib")) != 0)
		return 0;
	for (size_t i = 0; i < N_LIBRARY_DIRS && !*library; i++)
		look_in(library_dirs[i], spec, n, library, sizeof(library));
	return *library ? err_set(err, -EINVAL, "%s: the library's name is %s; write %s%s", spec,
				  library, library, colon)
			: 0;
}

bool path_is_elf(const char *path)
{
	char magic[4];
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	       !memcmp(magic, "\177ELF", sizeof(magic));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_bare(const char *name)
{
	return !strchr(name, '/');
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* ---- the root of a process ---- */

/* True if both names lead to files, and not to the same. */
static bool differs(int pid, const char *name, const char *own)
{
	struct stat its_st, own_st;
	char its[40];

	snprintf(its, sizeof(its), "/proc/%d/%s", pid, name);
	return !stat(its, &its_st) && !stat(own, &own_st) && !is_same_file(&its_st, &own_st);
}

/* Other mounts, or another directory as the root of the same ones. */
static bool has_own_root(int pid)
{
	return differs(pid, "ns/mnt", "/proc/self/ns/mnt") || differs(pid, "root/", "/");
}

/* Follows symbolic links as the process would. */
static bool stat_in_root(int pid, const char *path, struct stat *ret)
{
	char name[40];
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	SCOPE_CLOSE int root = open(name, O_PATH | O_CLOEXEC | O_DIRECTORY);
	SCOPE_CLOSE int fd =
		root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd >= 0 && !fstat(fd, ret);
}

/* NULL: the file has no such name, as an absolute symbolic link leads to it; or no memory. */
static const char *name_in_root(struct arena *arena, int pid, const char *path,
				const struct stat *file)
{
	const char *name = arena_printf(arena, "/proc/%d/root%s", pid, path);
	struct stat st;

	return name && !stat(name, &st) && is_same_file(&st, file) ? name : NULL;
}

/* ---- mapped files ---- */

struct process_view {
	struct cairn_trace *t;
	const char *name;
	int pid;
	bool has_own_root;
	struct procmap map;
};

static const struct procmap_entry *entry_of_file(const struct procmap *m, const struct stat *st)
{
	for (size_t i = 0; i < m->e.n; i++)
		if (procmap_is_file(m, &m->e.p[i], st))
			return &m->e.p[i];
	return NULL;
}

/* The entry that the name means: by its path, by its file, or a library by its name. */
static const struct procmap_entry *find_mapped(const struct process_view *v)
{
	const struct procmap_entry *found = NULL;
	struct stat st;

	if (v->has_own_root && v->name[0] == '/' && stat_in_root(v->pid, v->name, &st))
		found = entry_of_file(&v->map, &st);
	if (!found && !stat(v->name, &st))
		found = entry_of_file(&v->map, &st);
	for (size_t i = 0; i < v->map.e.n && !found; i++) {
		const struct procmap_entry *e = &v->map.e.p[i];
		if (!strcmp(e->path, v->name) ||
		    (is_bare(v->name) && !strcmp(base_name(e->path), v->name)))
			found = e;
	}
	return found;
}

/* The name to open a mapped file by: one of its own where that still is the same file. */
static const char *openable(const struct process_view *v, const struct procmap_entry *e)
{
	const char *name = NULL;
	struct stat st;
	char path[80];

	if (!e->deleted && !stat(e->path, &st) && procmap_is_file(&v->map, e, &st))
		return arena_strdup(&v->t->arena, e->path);
	procmap_path(&v->map, e, path, sizeof(path));
	if (v->has_own_root && !e->deleted && !stat(path, &st))
		name = name_in_root(&v->t->arena, v->pid, e->path, &st);
	return name ? name : arena_strdup(&v->t->arena, path);
}

/* ---- libraries that are not mapped yet ---- */

/* By the name in the process's root, and in ours if that is the same. 1, 0 or -ENOMEM. */
static int take_unmapped(const struct process_view *v, const char *path, struct found_path *ret,
			 struct cairn_err *err)
{
	struct arena *arena = &v->t->arena;
	struct stat st;

	if (v->has_own_root && !stat_in_root(v->pid, path, &st))
		return 0;
	const char *name = v->has_own_root ? name_in_root(arena, v->pid, path, &st)
					   : arena_strdup(arena, path);
	if (!name && !v->has_own_root)
		return err_nomem(err, "a path");
	if (!name || !path_is_elf(name))
		return 0;
	*ret = (struct found_path){.path = name, .is_awaited = true};
	ret->shown = arena_strdup(arena, path);
	return ret->shown ? 1 : err_nomem(err, "a path");
}

static int find_unmapped(const struct process_view *v, struct found_path *ret,
			 struct cairn_err *err)
{
	char path[PATH_BYTES];
	int found = 0;

	if (!path_looks_like_library(base_name(v->name)))
		return 0;
	if (!is_bare(v->name))
		return take_unmapped(v, v->name, ret, err);
	for (size_t i = 0; i < N_LIBRARY_DIRS && found == 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", library_dirs[i], v->name);
		found = take_unmapped(v, path, ret, err);
	}
	return found;
}

/* ---- one process, and several ---- */

static int open_view(struct process_view *v, struct cairn_err *err)
{
	int e = procmap_read(v->pid, &v->map, err);

	if (e == -EPERM)
		return permission_error(err, "looking at the process");
	v->has_own_root = e == 0 && has_own_root(v->pid);
	return e;
}

/* 1: it maps the file; 0; or an error. @st is the file's. */
static int path_in_process(struct process_view *v, struct found_path *ret, struct stat *st,
			   struct cairn_err *err)
{
	int e = open_view(v, err);
	const struct procmap_entry *entry = e == 0 ? find_mapped(v) : NULL;

	if (!entry)
		return e;
	*ret = (struct found_path){.path = openable(v, entry),
				   .shown = arena_strdup(&v->t->arena, entry->path)};
	if (!ret->path || !ret->shown)
		return err_nomem(err, "a path");
	if (stat(ret->path, st))
		return err_set(err, -errno, "%s: %s", ret->shown, strerror(errno));
	return 1;
}

static int differ(const struct cairn_trace *t, size_t i, size_t j, const char *name,
		  struct cairn_err *err)
{
	return err_set(err, -ENXIO,
		       "processes %d and %d map different files as %s; trace them one by one",
		       t->traced[i].pid, t->traced[j].pid, name);
}

static int not_mapped(const struct cairn_trace *t, const char *name, struct cairn_err *err)
{
	if (t->n_traced > 1)
		return err_set(err, -ENXIO, "none of the %zu processes maps %s", t->n_traced, name);
	return err_set(err, -ENXIO, "process %d does not map %s", t->opts.pid, name);
}

static int path_unmapped(struct cairn_trace *t, const char *name, struct found_path *ret,
			 struct cairn_err *err)
{
	struct process_view v = {.t = t,
				 .name = name,
				 .pid = t->opts.pid,
				 .has_own_root = has_own_root(t->opts.pid)};
	int found = find_unmapped(&v, ret, err);

	if (found)
		return found < 0 ? found : 0;
	return not_mapped(t, name, err);
}

static int path_in_processes(struct cairn_trace *t, const char *name, struct found_path *ret,
			     struct cairn_err *err)
{
	struct stat first = {0};
	size_t n_found = 0, at = 0;

	for (size_t i = 0; i < t->n_traced; i++) {
		struct process_view v = {.t = t, .name = name, .pid = t->traced[i].pid};
		struct found_path found;
		struct stat st;
		int r = path_in_process(&v, &found, &st, err);
		procmap_free(&v.map);
		if (r < 0)
			return r;
		if (r && n_found && !is_same_file(&first, &st))
			return differ(t, at, i, name, err);
		if (r && !n_found++) {
			*ret = found;
			first = st;
			at = i;
		}
	}
	return n_found ? 0 : path_unmapped(t, name, ret, err);
}

static int path_of_library(struct cairn_trace *t, const char *name, struct found_path *ret,
			   struct cairn_err *err)
{
	for (size_t i = 0; i < N_LIBRARY_DIRS; i++) {
		char *path = arena_printf(&t->arena, "%s/%s", library_dirs[i], name);
		if (!path)
			return err_nomem(err, "a path");
		*ret = (struct found_path){.path = path, .shown = path};
		if (path_is_elf(path))
			return 0;
	}
	return err_set(err, -ENOENT, "%s is not in the usual library directories; give its path",
		       name);
}

/* ---- executables ---- */

/* A process that has ended looks the same here as one that has no executable. */
static int no_exe(int pid, int e, struct cairn_err *err)
{
	if (e != -ENOENT)
		return err_set(err, e, "process %d: %s", pid, strerror(-e));
	if (kill(pid, 0) && errno == ESRCH)
		return err_set(err, -ESRCH, "there is no process %d", pid);
	return err_set(err, e, "process %d: has no executable (a kernel thread or a zombie)", pid);
}

/*
 * The executable: by its own name where that is the file that runs, as debug files are found beside
 * it.
 */
static int path_of_exe(struct cairn_trace *t, int pid, struct found_path *ret, struct stat *running,
		       struct cairn_err *err)
{
	struct stat named;
	char exe[PATH_BYTES];
	char *link = arena_printf(&t->arena, "/proc/%d/exe", pid);
	ssize_t n = link ? readlink(link, exe, sizeof(exe) - 1) : -1;

	if (n < 0 && errno == EACCES)
		return permission_error(err, "looking at the process");
	if (n < 0 || stat(link, running))
		return no_exe(pid, -errno, err);
	exe[n] = 0;
	*ret = (struct found_path){.path = link, .shown = arena_strdup(&t->arena, exe)};
	if (!ret->shown)
		return err_nomem(err, "a path");
	if (!stat(exe, &named) && is_same_file(&named, running)) {
		ret->path = ret->shown;
		return 0;
	}
	const char *inside = has_own_root(pid) ? name_in_root(&t->arena, pid, exe, running) : NULL;
	if (inside)
		ret->path = inside;
	return 0;
}

static int path_of_executables(struct cairn_trace *t, struct found_path *ret, struct cairn_err *err)
{
	struct stat first, st;
	struct found_path other;
	int e = path_of_exe(t, t->traced[0].pid, ret, &first, err);

	for (size_t i = 1; i < t->n_traced && e == 0; i++) {
		e = path_of_exe(t, t->traced[i].pid, &other, &st, err);
		if (e == 0 && !is_same_file(&first, &st))
			e = err_set(err, -ENXIO,
				    "processes %d and %d run different programs; write PATH:FUNC",
				    t->traced[0].pid, t->traced[i].pid);
	}
	return e;
}

/* Whether it runs a program of that name, also one that was deleted since. */
static bool runs(int pid, const char *name)
{
	static const char deleted[] = " (deleted)";
	char link[32], exe[PATH_BYTES];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	ssize_t n = readlink(link, exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = 0;
	const char *base = base_name(exe);
	size_t n_name = strlen(name);
	return !strncmp(base, name, n_name) && (!base[n_name] || !strcmp(base + n_name, deleted));
}

bool path_is_program(const struct cairn_trace *t, const char *name)
{
	bool is_it = t->opts.exe && !strcmp(base_name(t->opts.exe), name);

	for (size_t i = 0; i < t->n_traced; i++) {
		is_it = runs(t->traced[i].pid, name);
		if (!is_it)
			return false;
	}
	return is_it;
}

int find_path(struct cairn_trace *t, const char *name, struct found_path *ret,
	      struct cairn_err *err)
{
	if (!name && t->n_traced)
		return path_of_executables(t, ret, err);
	if (!name && t->opts.exe)
		name = t->opts.exe;
	if (t->n_traced)
		return path_in_processes(t, name, ret, err);
	*ret = (struct found_path){.path = name, .shown = name};
	if (is_bare(name) && path_looks_like_library(name) && access(name, R_OK))
		return path_of_library(t, name, ret, err);
	return 0;
}
