/* SPDX-License-Identifier: BSD-2-Clause */
#include "handlers/handlers.h"

#include <errno.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/err.h"
#include "base/scope.h"
#include "launch/path.h"
#include "trace/attach/link.h"
#include "trace/weigh.h"

struct attachment {
	const struct bpf_program *prog;
	const char *target;
	bool of_kernel;
	const struct cairn_loc_attach_opts *opts;
	const struct cairn_loc_opts *handlers;
	struct kernels kernels;
	struct cairn_trace *trace;
	struct loc_rows rows;
	struct loc_table table;
	uint32_t first; /* entry of its rows */
	bool has_rows;
	struct trace_links links;
};

/* ---- the target ---- */

/* By its SEC(). */
static bool is_of_kernel(const struct bpf_program *prog)
{
	return !strncmp(bpf_program__section_name(prog), "kloc", 4);
}

static bool is_bare_program(const char *text, size_t n)
{
	return !memchr(text, '/', n) && !memmem(text, n, ".so", 3);
}

/* As libbpf finds the file of a uprobe. */
static char *full_target(const struct attachment *a)
{
	const char *target = a->target, *colon = strchr(target, ':');
	size_t n = colon ? (size_t)(colon - target) : 0;
	char *full = NULL;

	if (a->of_kernel || !colon || !n || !is_bare_program(target, n))
		return strdup(target);
	/* The program that a shell would run: "redis-server:lookupKey". */
	SCOPE_FREE char *path = path_search(target, n);
	if (!path)
		return strdup(target);
	return asprintf(&full, "%s%s", path, colon) < 0 ? NULL : full;
}

static int check_kernel_target(const struct attachment *a, struct cairn_err *err)
{
	if (a->opts->pid)
		return err_set(err, -EINVAL,
			       "%s: a probe of the kernel has the hits of all processes",
			       a->target);
	return *a->target ? 0 : err_set(err, -EINVAL, "the target is [MODULE:]FUNC");
}

static int check_target(const struct attachment *a, struct cairn_err *err)
{
	const char *colon = strchr(a->target, ':');

	if (a->of_kernel)
		return check_kernel_target(a, err);
	if (colon && colon != a->target && colon[1])
		return 0;
	return err_set(err, -EINVAL, "\"%s\": the target is PATH:FUNC", a->target);
}

/* ---- planning ---- */

static struct cairn_trace_opts trace_opts(struct attachment *a)
{
	const struct cairn_loc_opts *h = a->handlers;

	return (struct cairn_trace_opts){
		.size = sizeof(struct cairn_trace_opts),
		.pid = a->opts->pid,
		.best_effort = a->opts->best_effort,
		.debug_dirs = h->debug_dirs,
		.n_debug_dirs = h->n_debug_dirs,
		.find_sidecar = h->find_sidecar,
		.find_sidecar_ctx = h->find_sidecar_ctx,
		.of_kernel = a->of_kernel,
		.find_kernel = kernels_find,
		.find_kernel_ctx = &a->kernels,
	};
}

static int plan(struct attachment *a, struct cairn_err *err)
{
	const struct cairn_trace_opts opts = trace_opts(a);
	SCOPE_FREE char *text = full_target(a);
	int e = text ? cairn_trace_open(&opts, &a->trace, err) : err_nomem(err, "a target");

	if (e < 0)
		return e;
	trace_locate(a->trace, table_needs(a->prog));
	e = cairn_trace_add(a->trace, text, err);
	return e < 0 ? e : trace_check(a->trace, err);
}

/* ---- rows ---- */

static int put_rows(struct attachment *a, struct cairn_err *err)
{
	int e = table_find(a->prog, &a->table, err);

	e = e ? e : rows_make(a->trace, a->opts->cookie, &a->rows, err);
	/* It reads no arguments. */
	if (e || a->table.fd < 0 || !a->rows.entries.n)
		return e;
	e = table_put(&a->table, a->rows.entries.p, (uint32_t)a->rows.entries.n, &a->first, err);
	a->has_rows = !e;
	return e;
}

static int set_cookies(struct attachment *a, struct cairn_err *err)
{
	for (uint32_t i = 0; i < cairn_trace_n_sites(a->trace); i++) {
		if (cairn_trace_site(a->trace, i)->refused)
			continue;
		uint64_t cookie = a->has_rows ? rows_cookie(&a->rows, i, a->first) : 0;
		if (trace_set_cookie(a->trace, i, cookie) < 0)
			return err_nomem(err, "cookies");
	}
	return 0;
}

/* ---- links ---- */

static enum cairn_trace_backend backend_of(const struct attachment *a)
{
	if (a->of_kernel)
		return CAIRN_BACKEND_KPROBE;
	return (uint32_t)bpf_program__expected_attach_type(a->prog) == LINK_UPROBE_MULTI
		       ? CAIRN_BACKEND_UPROBE_MULTI
		       : CAIRN_BACKEND_UPROBE;
}

static void forget_programs(struct trace_links *l)
{
	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		l->program_fds[i] = l->follow_fds[i] = l->return_fds[i] = -1;
		l->enter_fds[i] = l->exit_fds[i] = -1;
		l->copy_enter_fds[i] = l->copy_exit_fds[i] = l->copy_reset_fds[i] = -1;
	}
}

static int set_links(struct attachment *a, struct cairn_err *err)
{
	struct trace_links *l = &a->links;

	l->backend = backend_of(a);
	l->pid = a->opts->pid;
	forget_programs(l);
	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++)
		l->program_fds[i] = bpf_program__fd(a->prog);
	return trace_set_links(a->trace, l, err);
}

static void report(const struct attachment *a)
{
	uint32_t n = cairn_trace_n_sites(a->trace);

	if (a->opts->n_sites)
		*a->opts->n_sites = a->links.n_attached;
	if (a->opts->n_left_out)
		*a->opts->n_left_out = n - a->links.n_attached;
}

static int attach(struct attachment *a, struct bpf_link **ret, struct cairn_err *err)
{
	uint32_t link = 0;
	int e = check_target(a, err);

	e = e ? e : plan(a, err);
	e = e ? e : put_rows(a, err);
	e = e ? e : set_cookies(a, err);
	e = e ? e : set_links(a, err);
	e = e ? e : link_bundle(&a->links, ret, &link, err);
	if (e && a->has_rows)
		table_drop(&a->table, a->first);
	if (e)
		return e;
	if (a->has_rows)
		table_own(&a->table, a->first, link);
	report(a);
	return 0;
}

static int attach_and_close(struct attachment *a, struct bpf_link **ret, struct cairn_err *err)
{
	int e = attach(a, ret, err);

	links_detach(&a->links);
	links_fini(&a->links);
	rows_fini(&a->rows);
	cairn_trace_close(a->trace);
	return e;
}

int loc_attach(const struct bpf_program *prog, const char *target,
	       const struct cairn_loc_attach_opts *opts, const struct cairn_loc_opts *handlers,
	       struct bpf_link **ret, struct cairn_err *err)
{
	struct attachment a = {.prog = prog,
			       .target = target,
			       .of_kernel = is_of_kernel(prog),
			       .opts = opts,
			       .handlers = handlers,
			       .kernels = {.opts = handlers, .root = "/"}};
	int e;

	if (bpf_program__fd(prog) < 0)
		return err_set(err, -EINVAL, "program %s is not loaded", bpf_program__name(prog));
	if (!a.of_kernel)
		return attach_and_close(&a, ret, err);
	kernels_lock();
	e = attach_and_close(&a, ret, err);
	kernels_unlock();
	return e;
}
