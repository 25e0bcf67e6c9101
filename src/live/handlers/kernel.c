/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of the kernel that runs, and of its modules
 *
 * It is found once and kept until the registration ends or changes: showing that it is of the
 * kernel that runs compares all functions. A module may be loaded again elsewhere meanwhile.
 */
#include "handlers/handlers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/btf/sites.h>
#include <cairn/kernel.h>

#include "base/err.h"
#include "base/scope.h"

struct source {
	char *module; /* NULL: the kernel */
	struct cairn_kernel *kernel;
	struct cairn_binary *own; /* to be closed; NULL: @bin is the kernel's image */
	const struct cairn_binary *bin;
	struct cairn_sidecar *sidecar; /* NULL: the debug information answers */
	struct cairn_sites *sites;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct source *) kept;

static void source_free(struct source *s)
{
	cairn_sites_close(s->sites);
	cairn_sidecar_close(s->sidecar);
	cairn_binary_close(s->own);
	cairn_kernel_close(s->kernel);
	free(s->module);
	free(s);
}

/* ---- finding one ---- */

static int check_kprobes(const struct cairn_kernel *kernel, struct cairn_err *err)
{
	int type = cairn_kernel_kprobe_type(kernel);

	if (type == -ENOMEM)
		return err_nomem(err, "the functions of the kernel");
	if (type >= 0)
		return 0;
	return err_set(err, type,
		       "this kernel has no kprobes (CONFIG_KPROBE_EVENTS): none of its functions "
		       "can be probed");
}

/* The caller's file is a sidecar, which is its own binary, or vmlinux. */
static int open_named(struct source *s, const char *path, const struct cairn_binary_opts *files,
		      struct cairn_err *err)
{
	struct cairn_binary_opts of_vmlinux = *files;
	int e = cairn_sidecar_open(path, NULL, &s->sidecar, err);

	of_vmlinux.debug_file = path;
	if (e == -EBADMSG)
		return cairn_kernel_find(s->kernel, &of_vmlinux, &s->own, err);
	return e < 0 ? e : cairn_binary_open(path, NULL, &s->own, err);
}

static int open_file(struct source *s, const struct cairn_loc_opts *o, struct cairn_err *err)
{
	const struct cairn_binary_opts files = {.size = sizeof(files),
						.debug_dirs = o->debug_dirs,
						.n_debug_dirs = o->n_debug_dirs};
	int e = o->kernel_file && !s->module ? open_named(s, o->kernel_file, &files, err)
					     : cairn_kernel_find(s->kernel, &files, &s->own, err);

	s->bin = s->own;
	return e;
}

/* A stripped file may have BTF with sites. */
static int open_own_sites(struct source *s, const struct cairn_loc_opts *o, struct cairn_err *err)
{
	const struct cairn_sites_opts opts = {.size = sizeof(opts)};
	const struct cairn_btf_sites_opts btf_opts = {.size = sizeof(btf_opts), .sysfs = o->sysfs};
	int e = cairn_binary_has_dwarf(s->bin)
			? -ENODATA
			: cairn_btf_sites_open(s->bin, &btf_opts, &s->sites, err);

	return e == -ENODATA ? cairn_sites_open(s->bin, &opts, &s->sites, err) : e;
}

static int open_sites(struct source *s, const struct cairn_loc_opts *o, struct cairn_err *err)
{
	int e = 0;

	if (o->find_sidecar && !s->sidecar)
		e = o->find_sidecar(o->find_sidecar_ctx, s->bin, &s->sidecar, err);
	if (e < 0)
		return e;
	return s->sidecar ? cairn_sidecar_sites(s->sidecar, s->bin, &s->sites, err)
			  : open_own_sites(s, o, err);
}

/* ---- the kernel's own BTF ---- */

/* "FOLDER/NAME", malloc()ed; NULL: no memory. */
static char *btf_path(const struct cairn_loc_opts *o, const char *root, const char *name)
{
	char *path;
	int n = o->sysfs ? asprintf(&path, "%s/%s", o->sysfs, name)
			 : asprintf(&path, "%s/sys/kernel/btf/%s", root, name);

	return n < 0 ? NULL : path;
}

static bool has_inline(const char *path)
{
	SCOPE_FREE char *sites = NULL;

	if (asprintf(&sites, "%s.inline", path) < 0)
		sites = NULL;
	return sites && !access(sites, F_OK);
}

/* 1 if it describes the kernel; 0: there is none. The BTF of a module continues the kernel's. */
static int open_btf(struct source *s, const struct cairn_loc_opts *o, const char *root,
		    struct cairn_err *err)
{
	SCOPE_FREE char *types = btf_path(o, root, s->module ? s->module : "vmlinux");
	SCOPE_FREE char *base = s->module ? btf_path(o, root, "vmlinux") : NULL;
	const char *const bases[] = {base};
	const struct cairn_btf_sites_opts opts = {
		.size = sizeof(opts), .file = types, .bases = bases, .n_bases = base ? 1 : 0};

	if (!types || (s->module && !base))
		return err_nomem(err, "the BTF of the kernel");
	if (!has_inline(types))
		return 0;
	int e = cairn_kernel_image(s->kernel, &s->bin, err);
	e = e < 0 ? e : cairn_btf_sites_open(s->bin, &opts, &s->sites, err);
	return e < 0 ? e : 1;
}

/* A sidecar and debug information know more than BTF, which comes last. */
static int open_description(struct source *s, const struct cairn_loc_opts *o, const char *root,
			    struct cairn_err *err)
{
	struct cairn_err of_btf = {0};
	int e = open_file(s, o, err);

	if (e != -ENOENT || (o->kernel_file && !s->module))
		return e < 0 ? e : open_sites(s, o, err);
	int found = open_btf(s, o, root, &of_btf);
	if (found < 0)
		*err = of_btf;
	return found ? found : e;
}

static int open_source(struct source *s, const struct cairn_loc_opts *o, const char *root,
		       struct cairn_err *err)
{
	const struct cairn_kernel_opts opts = {
		.size = sizeof(opts), .module = s->module, .root = root};
	int e = cairn_kernel_open(&opts, &s->kernel, err);

	e = e ? e : check_kprobes(s->kernel, err);
	e = e ? e : open_description(s, o, root, err);
	return e < 0 ? e : cairn_kernel_bind(s->kernel, s->bin, s->sidecar, true, err);
}

static int add_source(const struct kernels *k, const char *module, struct source **ret,
		      struct cairn_err *err)
{
	struct source *s = calloc(1, sizeof(*s));
	int e = -ENOMEM;

	if (s && module)
		s->module = strdup(module);
	if (s && (!module || s->module))
		e = open_source(s, k->opts, k->root, err);
	else
		err_nomem(err, "the functions of the kernel");
	if (!e && !VEC_ADD(&kept, s))
		e = err_nomem(err, "the functions of the kernel");
	if (e < 0 && s)
		source_free(s);
	*ret = s;
	return e;
}

/* ---- those that are kept ---- */

static bool is_of(const struct source *s, const char *module)
{
	return s->module && module ? !strcmp(s->module, module) : s->module == module;
}

/* NULL: there is none. One that was unloaded is forgotten. */
static struct source *find_kept(const char *module)
{
	for (size_t i = 0; i < kept.n; i++) {
		struct source *s = kept.p[i];
		if (!is_of(s, module))
			continue;
		if (cairn_kernel_is_there(s->kernel))
			return s;
		kept.p[i] = kept.p[--kept.n];
		source_free(s);
		return NULL;
	}
	return NULL;
}

int kernels_find(void *ctx, const char *module, struct cairn_trace_kernel *ret,
		 struct cairn_err *err)
{
	struct source *s = find_kept(module);
	int e = s ? 0 : add_source(ctx, module, &s, err);

	if (e < 0)
		return e;
	*ret = (struct cairn_trace_kernel){
		.kernel = s->kernel, .bin = s->bin, .sites = s->sites, .sidecar = s->sidecar};
	return 0;
}

void kernels_lock(void)
{
	pthread_mutex_lock(&lock);
}

void kernels_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void kernels_forget(void)
{
	kernels_lock();
	while (kept.n)
		source_free(kept.p[--kept.n]);
	VEC_FREE(&kept);
	kernels_unlock();
}
