/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which kernel or module runs, and where its code begins
 *
 *	/proc/sys/kernel/osrelease          6.1.0-13-amd64
 *	/sys/kernel/notes                   ELF notes, the build-id among them
 *	/proc/kallsyms                      _text, or _stext: the first code
 *	/sys/module/loop/notes/NAME         ELF notes of a module
 *	/sys/module/loop/sections/.text     0xffffffffc03a1000
 *
 * What is built into the kernel has no notes and no sections in /sys/module.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/scope.h"
#include "elf/elf.h"
#include "kernel/kernel.h"

enum { MAX_NOTES = 1 << 16, MAX_SECTIONS = 4096, LINE = 128 };

/* ---- small files ---- */

/* Up to @size bytes. Returns their number, or a negative errno. */
static ssize_t read_file(const char *path, void *to, size_t size)
{
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = fd < 0 ? -1 : 0;
	while (fd >= 0 && n < size && (got = read(fd, (char *)to + n, size - n)) > 0)
		n += (size_t)got;
	return got < 0 ? -errno : (ssize_t)n;
}

/* The first line. */
static ssize_t read_line(const char *path, char line[static LINE])
{
	ssize_t n = read_file(path, line, LINE - 1);
	if (n < 0)
		return n;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return n;
}

static int fail_at(const char *path, ssize_t code, struct cairn_err *err)
{
	return err_set(err, (int)code, "%s: %s", path, strerror((int)-code));
}

/* ---- the build-id ---- */

/* 1 if the notes have one, which is taken. */
static int take_build_id(struct cairn_kernel *k, const char *path, struct cairn_err *err)
{
	SCOPE_FREE uint8_t *notes = malloc(MAX_NOTES);
	const uint8_t *id;
	size_t len;
	if (!notes)
		return err_nomem(err, "notes");
	ssize_t n = read_file(path, notes, MAX_NOTES);
	if (n < 0)
		return fail_at(path, n, err);
	if (!elf_notes_build_id(notes, (size_t)n, &id, &len))
		return 0;
	k->build_id = malloc(len);
	if (!k->build_id)
		return err_nomem(err, "a build-id");
	memcpy(k->build_id, id, len);
	k->build_id_len = len;
	return 1;
}

static int no_build_id(const struct cairn_kernel *k, const char *where, struct cairn_err *err)
{
	return err_set(err, -ENODATA, "%s has no build-id: none in %s", kernel_name(k), where);
}

static int see_release(struct cairn_kernel *k, struct cairn_err *err)
{
	SCOPE_FREE char *path = kernel_path(k, "proc/sys/kernel/osrelease");
	char line[LINE];
	ssize_t n = path ? read_line(path, line) : -ENOMEM;
	if (n < 0)
		return path ? fail_at(path, n, err) : err_nomem(err, "a path");
	k->release = strdup(line);
	return k->release ? 0 : err_nomem(err, "a kernel's release");
}

/* ---- the kernel ---- */

struct first_code {
	uint64_t at;
	bool is_there;
};

static int is_first_code(void *ctx, const struct kallsym *s)
{
	struct first_code *first = ctx;
	if (strcmp(s->name, "_text") && strcmp(s->name, "_stext"))
		return 0;
	first->at = s->at;
	first->is_there = true;
	return 1;
}

static int see_kernel(struct cairn_kernel *k, struct cairn_err *err)
{
	SCOPE_FREE char *notes = kernel_path(k, "sys/kernel/notes");
	struct first_code first = {0};
	int rc = notes ? take_build_id(k, notes, err) : err_nomem(err, "a path");
	if (rc <= 0)
		return rc < 0 ? rc : no_build_id(k, notes, err);
	rc = kallsyms_read(k, is_first_code, &first, err);
	if (rc < 0)
		return rc;
	if (!first.is_there)
		return err_set(err, -EBADMSG, "%s/proc/kallsyms has neither _text nor _stext",
			       k->root);
	k->text = first.at;
	return k->text ? 0 : kallsyms_hidden(k, err);
}

/* ---- a module ---- */

static int not_loaded(const struct cairn_kernel *k, struct cairn_err *err)
{
	SCOPE_FREE char *path = kernel_path(k, "sys/module/%s", k->module);
	if (path && !access(path, F_OK))
		return err_set(err, -ENOENT,
			       "%s is built into the kernel: its functions are the kernel's",
			       k->module);
	return err_set(err, -ENOENT, "no module %s is loaded: /proc/modules lists those that are",
		       k->module);
}

/* Each file of a folder, "." and ".." left out. 0, or the first result that is not 0. */
static int each_file(const char *folder, struct cairn_kernel *k,
		     int (*visit)(struct cairn_kernel *k, const char *folder, const char *name,
				  struct cairn_err *err),
		     struct cairn_err *err)
{
	DIR *dir = opendir(folder);
	int rc = dir ? 0 : -errno;
	for (struct dirent *e; !rc && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			rc = visit(k, folder, e->d_name, err);
	if (dir)
		closedir(dir);
	return rc;
}

static int see_note(struct cairn_kernel *k, const char *folder, const char *name,
		    struct cairn_err *err)
{
	SCOPE_FREE char *path = NULL;
	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return err_nomem(err, "a path");
	}
	return take_build_id(k, path, err);
}

static int add_section(struct cairn_kernel *k, const char *name, uint64_t at, struct cairn_err *err)
{
	struct kernel_section section = {strdup(name), at};
	if (section.name && k->sections.n < MAX_SECTIONS && VEC_ADD(&k->sections, section))
		return 0;
	free(section.name);
	return k->sections.n < MAX_SECTIONS ? err_nomem(err, "the sections of a module")
					    : err_set(err, -EBADMSG, "%s has more than %d sections",
						      k->module, MAX_SECTIONS);
}

/* "0xffffffffc03a1000"; zeros, or no permission: hidden. */
static int see_section(struct cairn_kernel *k, const char *folder, const char *name,
		       struct cairn_err *err)
{
	SCOPE_FREE char *path = NULL;
	char line[LINE], *end;
	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return err_nomem(err, "a path");
	}
	ssize_t n = read_line(path, line);
	if (n == -EACCES || n == -EPERM)
		return kallsyms_hidden(k, err);
	if (n < 0)
		return fail_at(path, n, err);
	uint64_t at = strtoull(line, &end, 16);
	if (*end || !isxdigit((unsigned char)line[0]))
		return err_set(err, -EBADMSG, "%s: no address", path);
	return at ? add_section(k, name, at, err) : kallsyms_hidden(k, err);
}

static int by_address(const void *a, const void *b)
{
	const struct kernel_section *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static int see_sections(struct cairn_kernel *k, struct cairn_err *err)
{
	SCOPE_FREE char *folder = kernel_path(k, "sys/module/%s/sections", k->module);
	int rc = folder ? each_file(folder, k, see_section, err) : err_nomem(err, "a path");
	if (k->sections.n)
		qsort(k->sections.p, k->sections.n, sizeof(*k->sections.p), by_address);
	return rc == -ENOENT ? not_loaded(k, err) : rc;
}

static int see_module(struct cairn_kernel *k, struct cairn_err *err)
{
	SCOPE_FREE char *folder = kernel_path(k, "sys/module/%s/notes", k->module);
	int rc = folder ? each_file(folder, k, see_note, err) : err_nomem(err, "a path");
	if (rc == -ENOENT)
		return not_loaded(k, err);
	if (rc <= 0)
		return rc < 0 ? rc : no_build_id(k, folder, err);
	rc = kernel_see_folder(k, err);
	return rc < 0 ? rc : see_sections(k, err);
}

/* ---- open and close ---- */

/* Module names have underscores where their files may have dashes. */
static int take_module(struct cairn_kernel *k, const char *name, struct cairn_err *err)
{
	if (!name)
		return 0;
	if (!name[0] || strchr(name, '/') || name[0] == '.')
		return err_set(err, -EINVAL, "\"%s\" is no name of a module", name);
	k->module = strdup(name);
	for (char *at = k->module; at && *at; at++)
		if (*at == '-')
			*at = '_';
	return k->module ? 0 : err_nomem(err, "a module's name");
}

static int take_root(struct cairn_kernel *k, const char *root, struct cairn_err *err)
{
	size_t n = root ? strlen(root) : 0;
	while (n && root[n - 1] == '/')
		n--;
	k->root = n ? strndup(root, n) : strdup("");
	return k->root ? 0 : err_nomem(err, "a path");
}

int cairn_kernel_open(const struct cairn_kernel_opts *opts, struct cairn_kernel **ret,
		      struct cairn_err *err)
{
	struct cairn_kernel_opts o;
	struct cairn_kernel *k = NULL;
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc >= 0 && !(k = calloc(1, sizeof(*k))))
		rc = err_nomem(err, "a kernel");
	if (rc >= 0)
		rc = take_root(k, o.root, err);
	if (rc >= 0)
		rc = take_module(k, o.module, err);
	if (rc >= 0)
		rc = see_release(k, err);
	if (rc >= 0)
		rc = k->module ? see_module(k, err) : see_kernel(k, err);
	if (rc < 0) {
		cairn_kernel_close(k);
		return rc;
	}
	*ret = k;
	return 0;
}

void cairn_kernel_close(struct cairn_kernel *k)
{
	if (!k)
		return;
	cairn_binary_close(k->image);
	VEC_FREE(&k->image_bytes.v);
	for (size_t i = 0; i < k->sections.n; i++)
		free(k->sections.p[i].name);
	VEC_FREE(&k->sections);
	VEC_FREE(&k->pieces);
	VEC_FREE(&k->data);
	free(k->build_id);
	free(k->release);
	free(k->module);
	free(k->root);
	free(k);
}

const char *cairn_kernel_release(const struct cairn_kernel *k)
{
	return k->release;
}

const uint8_t *cairn_kernel_build_id(const struct cairn_kernel *k, size_t *ret_len)
{
	*ret_len = k->build_id_len;
	return k->build_id;
}
