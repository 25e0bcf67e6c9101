/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the head of a probe to a file and a function
 *
 *	/lib/x86_64-linux-gnu/libc.so.6:malloc.c:tcache_get
 *	`------------ PATH ------------' `FILE--' `-FUNC---'
 *
 * The first part is PATH when it starts with / or ., when it looks like a library (NAME.so,
 * NAME.so.N), when a file of that name is there and is ELF, or when it is the name of the program
 * that the traced processes run. So "server:handle" means the program and "server.c:handle" the source.
 * "::" belongs to a C++ name and separates nothing.
 *
 * find_path.c has the file that PATH means.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/btf/sites.h>
#include <cairn/text.h>

#include "base/scope.h"
#include "elf/elf.h"
#include "elf/versions.h"
#include "sites/spec.h"
#include "trace/place/find_path.h"
#include "trace/place/foreign.h"
#include "trace/place/overload.h"
#include "trace/place/in_kernel.h"
#include "trace/place/kernel_limit.h"
#include "trace/attach/copies.h"
#include "trace/attach/kernel.h"

/* Names shown for an ambiguous or unknown function. */
#define SHOWN_MAX 8
/* Splits the head; *@ret_path is NULL without PATH. */
static int split(struct cairn_trace *t, const char *head, const char **ret_path,
		 const char **ret_spec)
{
	const char *colon = spec_colon(head, head + strlen(head));

	*ret_path = NULL;
	*ret_spec = head;
	if (!colon)
		return 0;
	const char *path = arena_strndup(&t->arena, head, (size_t)(colon - head));
	if (!path)
		return -ENOMEM;
	bool is_path = path[0] == '/' || path[0] == '.' || path_looks_like_library(path) ||
		       path_is_elf(path);
	/* "main:5" is a line of a function. */
	bool is_line = colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
	if (!is_path && (is_line || !path_is_program(t, path)))
		return 0;
	*ret_path = is_path ? path : NULL;
	*ret_spec = colon + 1;
	return 0;
}

/* A probe without a file, and no process or command that gives one. */
static int no_file(const char *spec, struct cairn_err *err)
{
	int e = library_without_so(spec, err);

	if (e < 0)
		return e;
	if (!access(spec, F_OK))
		return err_set(err, -EINVAL, "%s is a file; which function? Write %s:FUNC", spec,
			       spec);
	if (foreign_is_kernel_function(spec))
		return err_set(err, -EINVAL,
			       "%s is a function of the kernel: write kernel:%s, or give -k. Of "
			       "a program it would be PATH:%s",
			       spec, spec, spec);
	return err_set(err, -EINVAL,
		       "%s: which file? Write PATH:%s, or name a process or a command", spec, spec);
}

/* Returns 0 with f->sites NULL when there is no sidecar. */
static int open_sidecar(struct cairn_trace *t, struct trace_file *f, struct cairn_err *err)
{
	/* A sidecar has the facts without that assumption. */
	if (!t->opts.find_sidecar || t->opts.assume_unmodified)
		return 0;
	int e = t->opts.find_sidecar(t->opts.find_sidecar_ctx, f->bin, &f->sidecar, err);

	return e < 0 || !f->sidecar ? e : cairn_sidecar_sites(f->sidecar, f->bin, &f->sites, err);
}

static int open_debug_info(struct cairn_trace *t, struct trace_file *f, struct cairn_err *err)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts),
					.threads = t->opts.threads,
					.assume_unmodified = t->opts.assume_unmodified};

	return cairn_sites_open(f->bin, &opts, &f->sites, err);
}

int resolve_sites(struct cairn_trace *t, struct trace_file *f, struct cairn_err *err)
{
	int e = f->sites ? 0 : open_sidecar(t, f, err);

	if (e < 0 || f->sites)
		return e;
	/* A stripped file may have BTF with sites; else the search for debug information is told. */
	if (!cairn_binary_has_dwarf(f->bin))
		e = cairn_btf_sites_open(f->bin, NULL, &f->sites, err);
	return f->sites || (e < 0 && e != -ENODATA) ? e : open_debug_info(t, f, err);
}

int resolve_again(struct cairn_trace *t, struct trace_file *f, struct cairn_err *err)
{
	/* Earlier probes go on using the sidecar's facts. */
	copies_forget_file(f);
	f->sidecar_sites = f->sites;
	f->sites = NULL;
	return open_debug_info(t, f, err);
}

int trace_add_file(struct cairn_trace *t, const char *path, const char *shown,
		   struct cairn_binary *bin, struct cairn_sites *sites, struct trace_file **ret,
		   struct cairn_err *err)
{
	struct trace_file *f = arena_alloc(&t->arena, sizeof(*f));

	if (!f || !(f->path = arena_strdup(&t->arena, path)) ||
	    !(f->shown = arena_strdup(&t->arena, shown)))
		return err_nomem(err, "a probed file");
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f->fd < 0 || fstat(f->fd, &f->stat)) {
		int e = -errno;
		if (f->fd >= 0)
			close(f->fd);
		return err_set(err, e, "%s: %s", shown, strerror(-e));
	}
	if (!VEC_ADD(&t->files, f)) {
		close(f->fd);
		return err_nomem(err, "a probed file");
	}
	f->bin = bin;
	f->sites = sites;
	*ret = f;
	return 0;
}

/* Attaching would succeed, and never give an event. */
static int refuse_kernel(const char *shown, struct cairn_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "%s is a Linux kernel or a module of one, which no process maps: user "
		       "probes never fire there. Its functions are traced where it runs: "
		       "cairn trace -k FUNC, of a module -k MODULE:FUNC",
		       shown);
}

static int open_file(struct cairn_trace *t, const char *path, const char *shown,
		     struct trace_file **ret, struct cairn_err *err)
{
	struct cairn_binary_opts opts = {.size = sizeof(opts),
					 .debug_dirs = t->opts.debug_dirs,
					 .n_debug_dirs = t->opts.n_debug_dirs};
	struct cairn_binary *bin;
	struct stat st;

	if (stat(path, &st))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	for (size_t i = 0; i < t->files.n; i++) {
		struct trace_file *f = t->files.p[i];
		*ret = f;
		if (f->stat.st_dev == st.st_dev && f->stat.st_ino == st.st_ino)
			return 0;
	}
	int e = cairn_binary_open(path, &opts, &bin, err);
	if (e < 0)
		return e;
	e = cairn_binary_is_kernel(bin) ? refuse_kernel(shown, err)
					: trace_add_file(t, path, shown, bin, NULL, ret, err);
	if (e < 0)
		cairn_binary_close(bin);
	return e;
}

int resolve_file(struct cairn_trace *t, const char *name, struct trace_file **ret,
		 struct cairn_err *err)
{
	struct found_path found;
	int e = find_path(t, name, &found, err);

	e = e < 0 ? e : open_file(t, found.path, found.shown, ret, err);
	if (e == 0)
		(*ret)->is_awaited = found.is_awaited;
	return e;
}

static int unknown_function(struct trace_file *f, const char *spec, struct cairn_err *err)
{
	const char *names[SHOWN_MAX], *which;
	char list[600] = "", hint[600], is[300];
	size_t at = 0;
	int n = cairn_sites_suggest(f->sites, spec, names, SHOWN_MAX, NULL);

	for (int i = 0; i < n && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "",
				       names[i]);
	int e = library_without_so(spec, err);
	if (e < 0)
		return e;
	if (cairn_sites_imports(f->sites, spec))
		return err_set(err, -ENXIO,
			       "%s is not in %s, which takes it from a shared library: write "
			       "LIBRARY:%s, as in libc.so.6:%s",
			       spec, f->shown, spec, spec);
	if (cairn_sites_spec_hint(spec, hint, sizeof(hint)))
		return err_set(err, -ENXIO, "%s has no function %s: %s", f->shown, spec, hint);
	if (cairn_binary_symbol_text(f->bin, spec, is, sizeof(is)))
		return err_set(err, -ENXIO, "%s has no function %s: %s", f->shown, spec, is);
	if (cairn_sites_missing(f->sites, &which))
		return err_lines(
			err, -ENXIO, which,
			"no function %s is known of %s, of which not all .dwo files were found:",
			spec, f->shown);
	if (n <= 0 && !f->kernel && foreign_is_kernel_function(spec))
		return err_set(err, -ENXIO,
			       "%s has no function %s, which is one of the kernel: write kernel:%s",
			       f->shown, spec, spec);
	if (n <= 0)
		return err_set(err, -ENXIO, "%s has no function %s, nor one with a similar name",
			       f->shown, spec);
	return err_set(err, -ENXIO, "%s has no function %s; perhaps you mean: %s", f->shown, spec,
		       list);
}

static int ambiguous_function(struct trace_file *f, const char *spec,
			      const struct cairn_function_list *found, struct cairn_err *err)
{
	char list[1000] = "", one[500], shown[500];
	size_t at = 0;

	for (size_t i = 0; i < found->n && i < SHOWN_MAX && at < sizeof(list); i++) {
		snprintf(one, sizeof(one), "%s:%u:%s",
			 found->p[i]->decl_file ? found->p[i]->decl_file : "?",
			 found->p[i]->decl_line, found->p[i]->name);
		cairn_quote(one, CAIRN_QUOTE_TEXT, shown, sizeof(shown));
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s  %s", i ? "\n" : "",
				       shown);
	}
	if (found->n > SHOWN_MAX && at < sizeof(list))
		snprintf(list + at, sizeof(list) - at, "\n  ...");
	return err_lines(
		err, -ENOTUNIQ, list,
		"%s has %zu functions %s; choose one by FILE:FUNC, FILE:LINE:FUNC or FUNC(TYPES):",
		f->shown, found->n, spec);
}

struct default_version {
	struct cairn_vaddr at;
	bool is_found;
};

static int take_default(void *ctx, struct cairn_vaddr at)
{
	*(struct default_version *)ctx = (struct default_version){at, true};
	return 0;
}

static bool is_body_at(const struct cairn_function *f, struct cairn_vaddr at)
{
	for (uint32_t i = 0; i < f->n_sites; i++)
		if (f->sites[i].kind == CAIRN_SITE_OUT_OF_LINE && f->sites[i].at.v == at.v)
			return true;
	return false;
}

/*
 * Of several functions with one symbol, those of other versions: the linker takes the default one.
 * Returns 1 if that is one of them, and leaves it.
 */
static int choose_version(struct cairn_trace *t, const struct trace_file *f, const char *spec,
			  struct cairn_function_list *ret, struct cairn_err *err)
{
	struct default_version chosen = {0};
	int e = elf_visit_version(binary_main(f->bin), spec, NULL, take_default, &chosen, err);
	const struct cairn_function **one = arena_array(&t->arena, 1, sizeof(*one));

	if (e < 0 || !one)
		return e < 0 ? e : err_nomem(err, "a probe");
	for (size_t i = 0; chosen.is_found && i < ret->n; i++)
		if (is_body_at(ret->p[i], chosen.at))
			*one = ret->p[i];
	if (!*one)
		return 0;
	ret->p = one;
	ret->n = 1;
	return 1;
}

static int no_overload(const struct trace_file *f, const struct probe_text *text,
		       const struct cairn_function_list *found, struct cairn_err *err)
{
	char list[1000] = "", one[500], shown[500];
	size_t at = 0;

	for (size_t i = 0; i < found->n && i < SHOWN_MAX && at < sizeof(list); i++) {
		overload_list(cairn_sites_types(f->sites), found->p[i], one, sizeof(one));
		cairn_quote(one, CAIRN_QUOTE_TEXT, shown, sizeof(shown));
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s  %s%s", i ? "\n" : "",
				       found->p[i]->name, shown);
	}
	if (found->n > SHOWN_MAX && at < sizeof(list))
		snprintf(list + at, sizeof(list) - at, "\n  ...");
	return err_lines(err, -ENXIO, list,
			 "%s has no function with the parameters %s; it has:", f->shown,
			 text->types);
}

/* Leaves the functions with the parameters that the probe's text has. */
static int choose_overloads(struct cairn_trace *t, const struct trace_file *f,
			    const struct probe_text *text, struct cairn_function_list *ret,
			    struct cairn_err *err)
{
	const struct cairn_function **list = arena_array(&t->arena, ret->n + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return err_nomem(err, "a probe");
	for (size_t i = 0; i < ret->n; i++)
		if (overload_is(cairn_sites_types(f->sites), ret->p[i], text->types))
			list[n++] = ret->p[i];
	if (!n)
		return no_overload(f, text, ret, err);
	ret->p = list;
	ret->n = n;
	return 0;
}

int resolve_head(struct cairn_trace *t, const struct probe_text *text, struct trace_file **ret_file,
		 const char **ret_spec, struct cairn_err *err)
{
	const char *name;

	if (in_kernel_is_head(t, text->head))
		return in_kernel_resolve(t, text, ret_file, ret_spec, err);
	if (in_kernel(t))
		return err_set(err, -EOPNOTSUPP,
			       "%s: a trace has probes of the kernel or of programs, not of both",
			       text->text);
	if (split(t, text->head, &name, ret_spec) < 0)
		return err_nomem(err, "a probe");
	if (!**ret_spec)
		return probe_error(err, -EINVAL, text->text, 0, "a function's name is missing");
	if (!name && !t->opts.pid && !t->opts.exe)
		return no_file(*ret_spec, err);
	return resolve_file(t, name, ret_file, err);
}

int resolve_probe(struct cairn_trace *t, const struct probe_text *text,
		  struct trace_file **ret_file, const char **ret_spec,
		  struct cairn_function_list *ret, struct cairn_err *err)
{
	const char *spec;
	struct trace_file *f;

	int e = resolve_head(t, text, &f, &spec, err);
	if (e < 0)
		return e;
	*ret_spec = spec;
	e = resolve_sites(t, f, err);
	/* A file without debug information has symbols. */
	if (e == 0 || e == -ENODATA)
		*ret_file = f;
	if (e < 0)
		return e;
	e = cairn_sites_find(f->sites, spec, ret, err);
	if (e == -E2BIG && f->kernel)
		return kernel_limit_exceeded(t, f, text->text, spec, err);
	if (e < 0)
		return e;
	if (!ret->n && ret->found == CAIRN_FOUND_INDIRECT)
		return err_set(err, -ENXIO,
			       "%s is an indirect function, whose resolver does not show its "
			       "implementations",
			       spec);
	if (!ret->n)
		return unknown_function(f, spec, err);
	e = text->types ? choose_overloads(t, f, text, ret, err) : 0;
	if (e < 0)
		return e;
	if (ret->n > 1 && ret->found == CAIRN_FOUND_SYMBOL)
		e = choose_version(t, f, spec, ret, err);
	if (e < 0)
		return e;
	if (ret->n > 1 && (ret->found == CAIRN_FOUND_NAME || ret->found == CAIRN_FOUND_SYMBOL))
		return ambiguous_function(f, spec, ret, err);
	return f->kernel ? kernel_limit_check(t, f, ret, text->text, spec, err) : 0;
}
