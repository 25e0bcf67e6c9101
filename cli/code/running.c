/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source of answers about the running kernel
 *
 * A sidecar or debug information knows more than BTF: whether events count calls, and why an
 * argument has no location. So BTF comes after them, and the network last.
 */
#include "running.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/text.h>

#include "cmd.h"
#include "debuginfod.h"
#include "say.h"

#define INLINE_SUFFIX ".inline"

static const char *root(void)
{
	const char *set = getenv("CAIRN_KERNEL_ROOT");

	return set ? set : "";
}

/* ---- sources; each returns 1 if it is one, 0 if there is none, or a negative errno ---- */

/* A sidecar is its own binary: nothing else of that kernel need be here. */
static int use_sidecar(struct running *r, struct sidecar_wish *wish, const char *path,
		       struct cairn_err *err)
{
	int code = cairn_binary_open(path, NULL, &r->own, err);

	r->bin = r->own;
	wish->file = path;
	return code < 0 ? code : 1;
}

/* One that may not be used is reported, and other sources may do. */
static int use_cache(struct running *r, struct sidecar_wish *wish, struct cairn_err *err)
{
	struct cairn_sidecar_opts opts = {.size = sizeof(opts), .must_be_trusted = !geteuid()};
	struct cairn_sidecar *sidecar;
	char dir[4096];
	int code;

	if (wish->none || !sidecar_cache_for(wish, dir, sizeof(dir)))
		return 0;
	opts.build_id = cairn_kernel_build_id(r->kernel, &opts.build_id_len);
	r->file = cairn_sidecar_cached_path(dir, opts.build_id, opts.build_id_len);
	if (!r->file)
		return -ENOMEM;
	code = cairn_sidecar_open(r->file, &opts, &sidecar, err);
	if (code >= 0) {
		cairn_sidecar_close(sidecar);
		return use_sidecar(r, wish, r->file, err);
	}
	if (code != -ENOENT)
		fail_told(STATUS_YES, err);
	free(r->file);
	r->file = NULL;
	return 0;
}

/* The BTF of a module continues that of its kernel. */
static int use_btf(struct running *r, struct sidecar_wish *wish, struct cairn_err *err)
{
	int code = cairn_kernel_image(r->kernel, &r->bin, err);

	if (!wish->btf || !wish->btf[0])
		wish->btf = r->file;
	if (r->base && !wish->btf_bases.n) {
		r->bases[0] = r->base;
		wish->btf_bases = (struct opt_list){.items = r->bases, .n = 1};
	}
	return code < 0 ? code : 1;
}

/* The folder with the kernel's BTF. */
static int btf_path(const char *name, char **ret)
{
	const char *sysfs = getenv("CAIRN_SYSFS_BTF");
	int n = sysfs ? asprintf(ret, "%s/%s", sysfs, name)
		      : asprintf(ret, "%s/sys/kernel/btf/%s", root(), name);

	if (n < 0)
		*ret = NULL;
	return n < 0 ? -ENOMEM : 0;
}

static int find_btf(struct running *r, const char *module)
{
	int code = btf_path(module[0] ? module : "vmlinux", &r->file);

	return code < 0 || !module[0] ? code : btf_path("vmlinux", &r->base);
}

static int use_kernel_btf(struct running *r, const char *module, struct sidecar_wish *wish,
			  struct cairn_err *err)
{
	char *sites = NULL;
	bool is_there;

	if (find_btf(r, module) < 0 || asprintf(&sites, "%s" INLINE_SUFFIX, r->file) < 0)
		return -ENOMEM;
	is_there = !access(sites, F_OK);
	free(sites);
	return is_there ? use_btf(r, wish, err) : 0;
}

/* From the debuginfod client's cache, else from a server, if the user asked for it. */
static int use_debuginfod(struct running *r, const struct sidecar_wish *wish, struct cairn_err *err)
{
	const char *urls = debuginfod_wanted(wish->debuginfod);
	char *path = NULL;
	size_t len;
	const uint8_t *id = cairn_kernel_build_id(r->kernel, &len);
	int code;

	if (!debuginfod_asked(wish->debuginfod))
		return 0;
	debuginfod_cached(DEBUGINFOD_DEBUG_FILE, id, len, &path);
	if (!path && urls && debuginfod_fetch(urls, DEBUGINFOD_DEBUG_FILE, id, len, &path) < 0)
		path = NULL;
	if (!path)
		return 0;
	code = cairn_binary_open(path, NULL, &r->own, err);
	r->bin = r->own;
	free(path);
	return code < 0 ? code : 1;
}

/* @where: the places that were looked at. */
static int use_file(struct running *r, const struct cairn_binary_opts *opts,
		    struct cairn_err *where, struct cairn_err *err)
{
	int code = cairn_kernel_find(r->kernel, opts, &r->own, where);

	r->bin = r->own;
	if (code == -ENOENT && !opts->debug_file)
		return 0;
	*err = *where;
	return code < 0 ? code : 1;
}

/* ---- the search ---- */

static int report_nothing(const struct running *r, const struct cairn_err *where)
{
	return fail_lines(STATUS_NOT_HERE, where->msg,
			  "nothing describes the functions of the running kernel (%s). Install its "
			  "debug package, name vmlinux with --debug-file or a sidecar of it with "
			  "--sidecar, or download it with --debuginfod\n",
			  cairn_kernel_release(r->kernel));
}

static int find_source(struct running *r, const char *module, const struct cairn_binary_opts *opts,
		       struct sidecar_wish *wish, struct cairn_err *where, struct cairn_err *err)
{
	int found;

	if (wish->btf)
		return find_btf(r, module) < 0 ? -ENOMEM : use_btf(r, wish, err);
	found = use_file(r, opts, where, err);
	if (!found && wish->file && !module[0])
		return use_sidecar(r, wish, wish->file, err);
	if (!found && !module[0])
		found = use_cache(r, wish, err);
	if (!found)
		found = use_kernel_btf(r, module, wish, err);
	return found ? found : use_debuginfod(r, wish, err);
}

int running_open(const char *module, const struct cairn_binary_opts *opts,
		 struct sidecar_wish *wish, struct running *ret)
{
	struct cairn_kernel_opts kernel_opts = {
		.size = sizeof(kernel_opts), .module = module[0] ? module : NULL, .root = root()};
	struct cairn_err err = {0}, where = {0};
	int code;

	*ret = (struct running){0};
	code = cairn_kernel_open(&kernel_opts, &ret->kernel, &err);
	if (code < 0)
		return fail_err(code, &err, STATUS_NO);
	code = find_source(ret, module, opts, wish, &where, &err);
	if (code < 0)
		return fail_err(code, &err, STATUS_USAGE);
	return code ? STATUS_YES : report_nothing(ret, &where);
}

void running_close(struct running *r)
{
	cairn_binary_close(r->own);
	cairn_kernel_close(r->kernel);
	free(r->file);
	free(r->base);
	free(r->sites);
}

int running_bind(struct running *r, const struct cairn_sidecar *sidecar, bool is_whole)
{
	struct cairn_err err = {0};
	int code = cairn_kernel_bind(r->kernel, r->bin, sidecar, is_whole, &err);

	return code < 0 ? fail_err(code, &err, STATUS_NO) : STATUS_YES;
}

/* ---- functions ---- */

const struct cairn_function *running_function(struct running *r,
					      const struct cairn_function *function,
					      struct cairn_function *room)
{
	struct cairn_site *sites;
	uint64_t at;
	uint32_t n = 0;

	if (!function->n_sites)
		return function;
	sites = reallocarray(r->sites, function->n_sites, sizeof(*sites));
	if (!sites)
		return NULL;
	r->sites = sites;
	for (uint32_t i = 0; i < function->n_sites; i++)
		if (cairn_kernel_address(r->kernel, function->sites[i].at, &at))
			sites[n++] = function->sites[i];
	r->n_left_out += function->n_sites - n;
	*room = *function;
	room->sites = sites;
	room->n_sites = n;
	return room;
}

void running_report(const struct running *r)
{
	if (!r->n_left_out)
		return;
	fflush(stdout);
	say(stderr, "%s left out: the kernel frees this code when it has run\n",
	    cairn_counted(r->n_left_out, "site").text);
}
