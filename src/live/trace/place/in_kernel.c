/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of the running kernel
 *
 *	kernel:vfs_write                    a function of the kernel
 *	kernel:loop:lo_rw_aio               of a module: no name of a module has a dot, which the
 *	kernel:fs/read_write.c:vfs_write    file of a function has
 *
 * A source has link-time addresses, and cairn_kernel_address() says where they are. A kprobe's
 * registers have the address after its breakpoint, which may be that of another instruction than
 * the site's: at the entry of a function the kernel puts a probe behind ENDBR. So no fetch program
 * computes with it, and addresses in code are constants here.
 */
#include "trace/place/in_kernel.h"

#include <errno.h>
#include <string.h>

#include <cairn/text.h>

#include "sites/spec.h"
#include "trace/place/kernel_limit.h"

#define PREFIX "kernel:"

#define NO_KPROBES "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)"

bool in_kernel(const struct cairn_trace *t)
{
	return t->files.n && t->files.p[0]->kernel;
}

/* "kernel::f" is a function of C++. */
static bool has_prefix(const char *head)
{
	size_t n = strlen(PREFIX);

	return !strncmp(head, PREFIX, n) && head[n] != ':';
}

bool in_kernel_is_head(const struct cairn_trace *t, const char *head)
{
	return t->opts.of_kernel || has_prefix(head);
}

/* ---- the source ---- */

static int split(struct cairn_trace *t, const char *head, const char **ret_module,
		 const char **ret_spec)
{
	const char *colon;

	if (has_prefix(head))
		head += strlen(PREFIX);
	*ret_module = NULL;
	*ret_spec = head;
	colon = spec_colon(head, head + strlen(head));
	if (!colon || memchr(head, '.', (size_t)(colon - head)))
		return 0;
	*ret_spec = colon + 1;
	*ret_module = arena_strndup(&t->arena, head, (size_t)(colon - head));
	return *ret_module ? 0 : -ENOMEM;
}

static bool is_module(const struct trace_file *f, const char *module)
{
	return f->module && module ? !strcmp(f->module, module) : f->module == module;
}

static int add_source(struct cairn_trace *t, const struct cairn_trace_kernel *source,
		      const char *module, struct trace_file **ret, struct cairn_err *err)
{
	struct trace_file *f = arena_alloc(&t->arena, sizeof(*f));

	if (!f || !VEC_ADD(&t->files, f))
		return err_nomem(err, "a source of kernel probes");
	f->fd = -1;
	f->path = f->shown = module ? module : "the kernel";
	f->bin = (struct cairn_binary *)source->bin;
	f->sites = source->sites;
	f->kernel = source->kernel;
	f->kernel_sidecar = source->sidecar;
	f->module = module;
	f->kprobe_type = cairn_kernel_kprobe_type(source->kernel);
	f->was_mapped = true;
	f->in_brackets = arena_printf(&t->arena, "[%s]", module ? module : "kernel");
	if (!f->in_brackets)
		return err_nomem(err, "a source of kernel probes");
	*ret = f;
	return 0;
}

static int open_source(struct cairn_trace *t, const char *module, struct trace_file **ret,
		       struct cairn_err *err)
{
	struct cairn_trace_kernel source = {0};

	for (size_t i = 0; i < t->files.n; i++) {
		*ret = t->files.p[i];
		if (is_module(t->files.p[i], module))
			return 0;
	}
	if (!t->opts.find_kernel)
		return err_set(err, -EOPNOTSUPP, "functions of the kernel are not probed here");
	int e = t->opts.find_kernel(t->opts.find_kernel_ctx, module, &source, err);
	return e < 0 ? e : add_source(t, &source, module, ret, err);
}

int in_kernel_lines(const struct cairn_trace *t, struct trace_file *f, struct cairn_err *err)
{
	const struct cairn_sites_opts opts = {.size = sizeof(opts), .threads = t->opts.threads};

	if (!f->kernel_sidecar || f->own_sites || !cairn_binary_has_dwarf(f->bin))
		return 0;
	/* Earlier probes go on using the sidecar's facts. */
	int e = cairn_sites_open(f->bin, &opts, &f->own_sites, err);
	if (e < 0)
		return e;
	f->sites = f->own_sites;
	return 0;
}

/* Features of user probes that kernel probes do not have. */
static const char *missing(const struct cairn_trace *t, const struct probe_text *text)
{
	if (t->files.n && !in_kernel(t))
		return "a trace has probes of the kernel or of programs, not of both";
	if (text->kind == PROBE_OF_USDT)
		return "the kernel has no USDT probes";
	if (t->opts.backend != CAIRN_BACKEND_AUTO && t->opts.backend != CAIRN_BACKEND_KPROBE)
		return "functions of the kernel have kprobes, and no other kind of probe";
	return NULL;
}

int in_kernel_resolve(struct cairn_trace *t, const struct probe_text *text, struct trace_file **ret,
		      const char **ret_spec, struct cairn_err *err)
{
	const char *module, *why = missing(t, text);

	if (why)
		return err_set(err, -EOPNOTSUPP, "%s: %s", text->text, why);
	if (split(t, text->head, &module, ret_spec) < 0)
		return err_nomem(err, "a probe");
	if (!**ret_spec)
		return probe_error(err, -EINVAL, text->text, 0, "a function's name is missing");
	return open_source(t, module, ret, err);
}

/* ---- sites ---- */

bool in_kernel_plan(const struct trace_probe *p, const struct cairn_site *site, bool best_effort,
		    struct trace_site *planned)
{
	if (!cairn_kernel_address(p->file->kernel, site->at, &planned->pub.running))
		return false;
	planned->pub.site = site;
	planned->pub.at = site->at;
	planned->pub.off = site->off;
	/* Where code could not be read, the kernel looks at it: it refuses what it may not probe. */
	if (site->hazard != CAIRN_HAZARD_NONE && site->hazard != CAIRN_HAZARD_NOT_CHECKED)
		planned->pub.refused = cairn_hazard_text(site->hazard);
	else if (site->count_caveats & CAIRN_COUNT_NO_ENTRY && !best_effort)
		planned->pub.refused = cairn_count_caveat_text(CAIRN_COUNT_NO_ENTRY);
	else if (p->file->kprobe_type < 0)
		planned->pub.refused = NO_KPROBES;
	return true;
}

/* Data of a module is moved apart from its code. */
struct fetch_slide in_kernel_slide(const struct trace_file *f, const struct trace_site *site)
{
	return (struct fetch_slide){.is_of_kernel = f->kernel != NULL,
				    .is_of_module = f->module != NULL,
				    .kernel = f->kernel,
				    .by = site->pub.running - site->pub.site->at.v};
}

int in_kernel_check_sites(const struct cairn_trace *t, const struct trace_probe *p,
			  struct cairn_err *err)
{
	const struct cairn_function *f = p->pub.function;

	if (t->sites.n + p->pub.n_sites > KERNEL_SITES_MAX)
		return err_set(err, -ERANGE,
			       "%s: more than %d places in the kernel, each of which is a probe of "
			       "its own; name fewer functions",
			       p->text->text, KERNEL_SITES_MAX);
	if (p->pub.n_sites || !p->pub.n_left_out)
		return 0;
	return err_set(err, -ENXIO, "%s: %s, in code that the kernel frees when it has run",
		       f->name, cairn_counted(p->pub.n_left_out, "site").text);
}

/* ---- attaching ---- */

bool in_kernel_has_no_kprobes(const struct cairn_trace *t)
{
	return in_kernel(t) && t->files.p[0]->kprobe_type < 0;
}

/* Even reading the kernel's memory is forbidden then. */
static bool is_locked(const struct cairn_trace *t)
{
	return in_kernel(t) && cairn_kernel_is_locked(t->files.p[0]->kernel);
}

int in_kernel_check(const struct cairn_trace *t, struct cairn_err *err)
{
	for (size_t i = 0; in_kernel(t) && i < t->files.n; i++)
		if (!cairn_kernel_is_there(t->files.p[i]->kernel))
			return err_set(err, -ESTALE, "module %s was unloaded meanwhile",
				       t->files.p[i]->module);
	if (is_locked(t))
		return err_set(err, -EPERM,
			       "lockdown forbids kernel probes: its mode is confidentiality "
			       "(/sys/kernel/security/lockdown), which lasts until the next boot");
	if (!in_kernel_has_no_kprobes(t) || t->opts.best_effort)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       NO_KPROBES ", so %s cannot be probed; --best-effort goes on without them",
		       cairn_counted(t->sites.n, "site").text);
}

uint32_t in_kernel_unloaded(const struct cairn_trace *t)
{
	uint32_t n = 0;

	for (size_t i = 0; in_kernel(t) && i < t->sites.n; i++) {
		const struct trace_site *site = t->sites.p[i];
		const struct trace_file *f = t->probes.p[site->pub.probe]->file;
		n += site->attached && f->module && !cairn_kernel_is_there(f->kernel);
	}
	return n;
}
