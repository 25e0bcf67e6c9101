/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cairn/text.h>

#include "base/opts.h"
#include "trace/aggregate/aggregate.h"
#include "trace/show/format.h"
#include "trace/attach/guard.h"
#include "trace/place/in_kernel.h"
#include "trace/place/kernel_symbol.h"
#include "trace/attach/copies.h"
#include "trace/attach/kernel.h"
#include "trace/attach/kernel_text.h"
#include "trace/place/move.h"
#include "trace/attach/returns.h"
#include "trace/stacks/stacks.h"
#include "trace/read/times.h"
#include "trace/attach/traced.h"
#include "trace/weigh.h"
#include "types/build.h"

/* Defaults and limits of fetched values; trace.h of the public headers promises them. */
#define STRING_SHOWN_DEFAULT 63
#define VALUE_BYTES_DEFAULT  512

static int check_which(const struct cairn_trace_opts *o, struct cairn_err *err)
{
	bool has_pids = o->pid || o->n_pids, has_filter = o->cgroup || o->comm;

	if (o->pid < 0 || (has_pids && o->argv) || (o->argv && !o->exe))
		return err_set(err, -EINVAL, "name a process or a command with its file, not both");
	if (has_filter && (has_pids || o->argv))
		return err_set(err, -EINVAL,
			       "a cgroup and a name limit all processes, and not named ones");
	if (o->comm && (!o->comm[0] || strlen(o->comm) >= COMM_BYTES))
		return err_set(err, -EINVAL,
			       "%s: the kernel keeps 1 to %d bytes of a process's name", o->comm,
			       COMM_BYTES - 1);
	return 0;
}

static int take_opts(struct cairn_trace *t, const struct cairn_trace_opts *opts,
		     struct cairn_err *err)
{
	int rc = opts_take(&t->opts, sizeof(t->opts), opts, err);
	if (rc < 0)
		return rc;
	rc = check_which(&t->opts, err);
	if (rc < 0)
		return rc;
	if (t->opts.sample > CAIRN_TRACE_SAMPLE_MAX)
		return err_set(err, -EINVAL, "at most one of %u hits can be left",
			       CAIRN_TRACE_SAMPLE_MAX);
	if (t->opts.string_bytes >= FETCHED_MAX || t->opts.value_bytes > FETCHED_MAX)
		return err_set(err, -EINVAL,
			       "at most %d bytes of a string and %d of a value can be fetched",
			       FETCHED_MAX - 1, FETCHED_MAX);
	if (t->opts.shows_calls && t->opts.stack_frames)
		return err_set(err, -EINVAL,
			       "calls that are followed to their return have no "
			       "stacks yet");
	rc = t->opts.cgroup ? cgroup_find(t->opts.cgroup, &t->cgroup, err) : 0;
	return rc < 0 ? rc : traced_take_opts(t, err);
}

static void set_style(struct cairn_trace *t)
{
	static const struct cairn_trace_style plain = {"", "", "", ""};

	t->style = t->opts.style ? *t->opts.style : plain;
}

static void set_sizes(struct cairn_trace *t)
{
	t->string_shown = t->opts.string_bytes ? t->opts.string_bytes : STRING_SHOWN_DEFAULT;
	t->string_bytes = STRING_BYTES_MIN;
	while (t->string_bytes <= t->string_shown)
		t->string_bytes *= 2;
	t->value_bytes = t->opts.value_bytes ? t->opts.value_bytes : VALUE_BYTES_DEFAULT;
}

int cairn_trace_open(const struct cairn_trace_opts *opts, struct cairn_trace **ret,
		     struct cairn_err *err)
{
	struct cairn_trace *t = calloc(1, sizeof(*t));
	int e;

	if (!t)
		return err_nomem(err, "a trace");
	arena_init(&t->arena);
	map_init(&t->program_ids);
	child_init(&t->child);
	e = take_opts(t, opts, err);
	if (e < 0) {
		cairn_trace_close(t);
		return e;
	}
	set_sizes(t);
	set_style(t);
	t->sample = t->opts.sample;
	if (t->opts.stack_frames)
		e = stacks_want(t, STACKS_WHOLE, t->opts.stack_frames, err);
	if (e == 0 && t->opts.format)
		e = format_parse(&t->arena, t->opts.format, &t->format, err);
	if (e < 0) {
		cairn_trace_close(t);
		return e;
	}
	*ret = t;
	return 0;
}

static void close_file(struct trace_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	mover_free(f->mover);
	copies_forget_file(f);
	code_walk_fini(&f->walk);
	cairn_sites_close(f->own_sites);
	if (f->kernel)
		return;
	cairn_sites_close(f->sites);
	cairn_usdt_close(f->usdt);
	cairn_sites_close(f->sidecar_sites);
	cairn_sidecar_close(f->sidecar);
	cairn_binary_close(f->bin);
}

void cairn_trace_close(struct cairn_trace *t)
{
	if (!t)
		return;
	trace_guard_close(&t->guard);
	kernel_free(t->kernel);
	stacks_free(t->stacks);
	format_free(t->format);
	times_free(t->times);
	child_end(&t->child);
	reports_close(&t->mappings);
	traced_close(t);
	for (size_t i = 0; i < t->files.n; i++)
		close_file(t->files.p[i]);
	VEC_FREE(&t->files);
	VEC_FREE(&t->probes);
	VEC_FREE(&t->sites);
	VEC_FREE(&t->programs);
	VEC_FREE(&t->program_next);
	VEC_FREE(&t->ops);
	map_fini(&t->program_ids);
	types_free(t->words);
	arena_fini(&t->arena);
	free(t);
}

static int add_planned(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	int e = plan_probe(t, p, err);

	if (e < 0)
		return e;
	if (!VEC_ADD(&t->probes, p)) {
		t->sites.n = p->pub.first_site;
		return err_nomem(err, "a probe");
	}
	return (int)t->probes.n - 1;
}

static int parse_probe(struct cairn_trace *t, const char *probe, const struct probe_text **ret,
		       struct cairn_err *err)
{
	struct probe_text *text = arena_alloc(&t->arena, sizeof(*text));

	if (!text)
		return err_nomem(err, "a probe");
	*ret = text;
	if (t->format) {
		int e = probe_parse(&t->arena, probe, text, err);
		return e < 0 ? e : format_add_values(t, text, err);
	}
	return t->weighs ? probe_parse_weighed(&t->arena, probe, text, err)
			 : probe_parse(&t->arena, probe, text, err);
}

static int may_add(const struct cairn_trace *t, size_t n, const char *probe, struct cairn_err *err)
{
	if (t->kernel)
		return err_set(err, -EINVAL, "probes are added before attaching");
	if (n <= TRACE_PROBES_MAX - t->probes.n)
		return 0;
	if (n == 1)
		return err_set(err, -E2BIG, "more than %d probes", TRACE_PROBES_MAX);
	return err_set(err, -E2BIG, "%s matches %zu functions; a trace has at most %d", probe, n,
		       TRACE_PROBES_MAX);
}

static int add_target(struct cairn_trace *t, struct trace_file *file,
		      const struct trace_target *target, enum cairn_found found,
		      const struct probe_text *text, struct cairn_err *err)
{
	const struct cairn_function *function = target->function;
	struct trace_probe *p = arena_alloc(&t->arena, sizeof(*p));
	bool of_many = found == CAIRN_FOUND_PATTERN || found == CAIRN_FOUND_INDIRECT;

	if (!p)
		return err_nomem(err, "a probe");
	p->file = file;
	p->text = text;
	p->semaphores = target->semaphores;
	p->pub = (struct cairn_trace_probe){.text = of_many ? function->name : text->text,
					    .path = file->shown,
					    .function = function,
					    .found = found,
					    .is_symbol = target->is_symbol,
					    .is_import = target->is_import,
					    .is_awaited = file->is_awaited,
					    .of_kernel = file->kernel != NULL,
					    .types = target->types,
					    .condition = text->condition_text};
	p->no_returns = returns_refused(t, p);
	return add_planned(t, p, err);
}

int trace_add_function(struct cairn_trace *t, struct trace_file *file,
		       const struct cairn_function *function, const struct cairn_types *types,
		       const char *probe, struct cairn_err *err)
{
	const struct trace_target target = {.function = function, .types = types};
	const struct probe_text *text = NULL;
	int e = may_add(t, 1, probe, err);

	if (e == 0)
		e = parse_probe(t, probe, &text, err);
	return e < 0 ? e : add_target(t, file, &target, CAIRN_FOUND_NAME, text, err);
}

/* Functions of a pattern of which no code is left cannot be called, and are left out. */
static int add_all(struct cairn_trace *t, struct trace_file *file, const struct trace_targets *list,
		   const char *probe, struct cairn_err *err)
{
	size_t first = t->probes.n;

	for (size_t i = 0; i < list->n; i++) {
		const struct probe_text *text = NULL;
		/* Each anew: the meaning of an expression depends on the function. */
		int e = parse_probe(t, probe, &text, err);
		if (e == 0)
			e = add_target(t, file, &list->p[i], list->found, text, err);
		if (e < 0 && (e != -ENXIO || list->n == 1))
			return e;
	}
	if (t->probes.n == first)
		return err_set(err, -ENXIO, "%s: the matching functions have no code left", probe);
	return (int)first;
}

/* The functions that the debug information has. */
static int take_functions(struct cairn_trace *t, const struct trace_file *file,
			  const struct cairn_function_list *list, struct trace_targets *ret,
			  struct cairn_err *err)
{
	struct trace_target *targets = arena_array(&t->arena, list->n + 1, sizeof(*targets));
	int e = targets ? 0 : err_nomem(err, "probes");

	for (size_t i = 0; i < list->n && e == 0; i++) {
		if (list->p[i]->params_unknown)
			e = symbol_target(t, file, list->p[i], &targets[i], err);
		else
			targets[i] = (struct trace_target){.function = list->p[i],
							   .types = cairn_sites_types(file->sites)};
	}
	*ret = (struct trace_targets){.p = targets, .n = list->n, .found = list->found};
	return e;
}

/* True if the debug information may have facts that the sidecar did not. */
static bool can_ask_again(const struct trace_file *f)
{
	return f && f->sidecar && !f->sidecar_sites && cairn_binary_has_dwarf(f->bin);
}

/* @code: that of the debug information, with its story in @err. */
static int resolve_kernel_symbol(struct cairn_trace *t, const struct trace_file *f,
				 const char *spec, int code, struct trace_targets *ret,
				 struct cairn_err *err)
{
	struct cairn_err symbol_err = {0};
	int n = kernel_symbol_resolve(t, f, spec, ret, &symbol_err);

	if (n < 0 && err)
		*err = symbol_err;
	return n ? (n < 0 ? n : 0) : code;
}

/*
 * What the debug information does not have may be a symbol. When there is neither, the story of the
 * debug information is told.
 */
static int resolve_functions(struct cairn_trace *t, const struct probe_text *text,
			     struct trace_file **ret_file, struct trace_targets *ret,
			     struct cairn_err *err)
{
	struct cairn_function_list list;
	const char *spec = NULL;
	int e = resolve_probe(t, text, ret_file, &spec, &list, err);

	if (e == 0)
		return take_functions(t, *ret_file, &list, ret, err);
	if ((e != -ENODATA && e != -ENXIO) || !spec || can_ask_again(*ret_file))
		return e;
	if (in_kernel(t))
		return resolve_kernel_symbol(t, *ret_file, spec, e, ret, err);
	if (text->types)
		return e == -ENXIO
			       ? e
			       : err_set(err, -EOPNOTSUPP,
					 "%s has no debug information, and without it functions "
					 "of one name are told apart by their symbols",
					 (*ret_file)->shown);
	struct cairn_err symbol_err = {0};
	int n = resolve_symbol(t, *ret_file, spec, ret, &symbol_err);
	if (n < 0 && err)
		*err = symbol_err;
	if (n == 0)
		return no_symbol(*ret_file, spec, e, err);
	return n < 0 ? n : 0;
}

static int resolve(struct cairn_trace *t, const struct probe_text *text,
		   struct trace_file **ret_file, struct trace_targets *ret, struct cairn_err *err)
{
	const char *spec;

	switch (text->kind) {
	case PROBE_OF_USDT:
		if (t->opts.of_kernel)
			return in_kernel_resolve(t, text, ret_file, &spec, err);
		return resolve_usdt(t, text, ret_file, ret, err);
	case PROBE_OF_PLACE:
		return resolve_place(t, text, ret_file, ret, err);
	case PROBE_OF_FUNCTION:
		break;
	}
	return resolve_functions(t, text, ret_file, ret, err);
}

/* *@ret_file is set once it is known. */
static int try_add(struct cairn_trace *t, const char *probe, struct trace_file **ret_file,
		   struct cairn_err *err)
{
	struct trace_targets list;
	const struct probe_text *text = NULL;
	int e = may_add(t, 1, probe, err);

	if (e == 0)
		e = parse_probe(t, probe, &text, err);
	if (e == 0)
		e = resolve(t, text, ret_file, &list, err);
	if (e == 0)
		e = may_add(t, list.n, probe, err);
	if (e == 0)
		e = add_all(t, *ret_file, &list, probe, err);
	return e;
}

int cairn_trace_add(struct cairn_trace *t, const char *probe, struct cairn_err *err)
{
	size_t n_probes = t->probes.n, n_sites = t->sites.n;
	struct trace_file *file = NULL;
	int e = try_add(t, probe, &file, err);

	if (can_ask_again(file) &&
	    (e < 0 || file->wants_debug_info || cairn_sidecar_sites_lost(file->sites))) {
		t->probes.n = n_probes;
		t->sites.n = n_sites;
		e = resolve_again(t, file, err);
		if (e == 0)
			e = try_add(t, probe, &file, err);
	}
	if (e < 0) {
		t->probes.n = n_probes;
		t->sites.n = n_sites;
	}
	return e;
}

uint32_t cairn_trace_n_probes(const struct cairn_trace *t)
{
	return (uint32_t)t->probes.n;
}

const struct cairn_trace_probe *cairn_trace_probe(const struct cairn_trace *t, uint32_t i)
{
	return i < t->probes.n ? &t->probes.p[i]->pub : NULL;
}

uint32_t cairn_trace_n_sites(const struct cairn_trace *t)
{
	return (uint32_t)t->sites.n;
}

const struct cairn_trace_site *cairn_trace_site(const struct cairn_trace *t, uint32_t i)
{
	return i < t->sites.n ? &t->sites.p[i]->pub : NULL;
}

uint32_t cairn_trace_n_programs(const struct cairn_trace *t)
{
	return (uint32_t)t->programs.n;
}

int cairn_trace_program_print(const struct cairn_trace *t, uint32_t program, FILE *out)
{
	if (program >= t->programs.n)
		return -EINVAL;
	const struct trace_program *p = &t->programs.p[program];
	return fetch_print(t->ops.p + p->op, p->n, out);
}

int cairn_trace_pid(const struct cairn_trace *t)
{
	return t->pid;
}

size_t cairn_trace_missing(const struct cairn_trace *t, const char **ret)
{
	size_t n = 0;

	*ret = "";
	for (size_t i = 0; i < t->files.n; i++) {
		const struct cairn_sites *sites = t->files.p[i]->sites;
		const char *which = "";
		size_t missing = sites ? cairn_sites_missing(sites, &which) : 0;
		if (missing && !n)
			*ret = which;
		n += missing;
	}
	return n;
}

/* An undescribed site is in no list, and its missing calls would not be noticed. */
static int check_missing(const struct cairn_trace *t, struct cairn_err *err)
{
	const char *which;
	size_t n = cairn_trace_missing(t, &which);

	if (!n || t->opts.best_effort)
		return 0;
	return err_set(err, -ENODATA,
		       "%zu .dwo file%s of split debug information not found, so calls could be "
		       "missed; --best-effort traces the known ones",
		       n, n == 1 ? "" : "s");
}

/* All or none: the promise that no call of a function that was named is missed silently. */
static int check_refused(const struct cairn_trace *t, struct cairn_err *err)
{
	uint32_t refused = 0, ready = 0;
	const struct trace_site *first = NULL;
	char where[200];

	for (size_t i = 0; i < t->sites.n; i++) {
		const struct trace_site *site = t->sites.p[i];
		refused += site->pub.refused != NULL;
		ready += !site->pub.refused;
		if (site->pub.refused && (!first || trace_may_leave_out(t, first)))
			first = site;
	}
	if (!t->sites.n)
		return err_set(err, -EINVAL, "no probe was added");
	if (!first || (trace_may_leave_out(t, first) && ready))
		return 0;
	cairn_site_text(t->probes.p[first->pub.probe]->pub.function, first->pub.site,
			t->opts.show_name, where, sizeof(where));
	return err_lines(err, -ENOENT, ready ? "--best-effort attaches the others" : "",
			 "%u of %s cannot be probed as requested; the first, %s: %s", refused,
			 cairn_counted(refused + ready, "site").text, where, first->pub.refused);
}

/* Calls are counted by the programs of one size of record. */
static void take_one_class(struct cairn_trace *t)
{
	uint32_t n = 0;

	for (size_t i = 0; i < t->probes.n; i++)
		n = t->probes.p[i]->n_record > n ? t->probes.p[i]->n_record : n;
	for (size_t i = 0; i < t->probes.n; i++)
		t->probes.p[i]->n_record = n;
}

/* Where there are no kprobes, a best effort attaches nothing. */
static int check_sites(const struct cairn_trace *t, struct cairn_err *err)
{
	int e = in_kernel_check(t, err);

	if (e < 0 || in_kernel_has_no_kprobes(t))
		return e;
	return check_refused(t, err);
}

static int attach_all(struct cairn_trace *t, struct cairn_err *err)
{
	uint64_t start = trace_now_ns();
	int e = traced_open(t, err);

	e = e ? e : verify_files(t, err);
	e = e ? e : check_sites(t, err);
	if (e == 0 && t->stacks && in_kernel(t))
		kernel_text_look(t);
	if (e == 0 && t->aggregates)
		e = aggregates_finish(t, err);
	if (e < 0)
		return e;
	if (t->opts.shows_calls)
		take_one_class(t);
	uint64_t load = trace_now_ns();
	e = kernel_load(t, &t->kernel, err);
	t->load_ns = trace_now_ns() - load;
	if (e < 0)
		return e;
	t->attached_at_ns = trace_now_ns();
	e = times_begin(t, err);
	if (e < 0)
		return e;
	if (t->aggregates)
		t->aggregates->from_ns = t->attached_at_ns;
	e = links_attach(t, &t->kernel->links, err);
	if (e < 0)
		return e;
	t->attach_ns = trace_now_ns() - start - t->load_ns;
	if (!t->kernel->links.n_attached && !in_kernel_has_no_kprobes(t))
		return check_refused(t, err);
	return (int)t->kernel->links.n_attached;
}

static int start_command(struct cairn_trace *t, struct cairn_err *err)
{
	t->child.output = t->opts.command_output ? t->opts.command_output : -1;
	int e = child_start(&t->child, t->opts.exe, t->opts.argv, err);

	if (e == 0)
		e = traced_set(t, t->child.pid, err);
	if (e == 0)
		mapped_watch(t);
	return e;
}

int cairn_trace_attach(struct cairn_trace *t, struct cairn_err *err)
{
	int e = check_missing(t, err);

	if (e == 0)
		e = check_sites(t, err);
	if (e < 0)
		return e;
	if (t->kernel)
		return err_set(err, -EINVAL, "already attached");
	if (t->stacks)
		e = stacks_prepare(t, err);
	if (e == 0 && t->opts.argv)
		e = start_command(t, err);
	if (e == 0)
		e = attach_all(t, err);
	if (e < 0) {
		reports_close(&t->mappings);
		t->has_mappings = false;
		kernel_free(t->kernel);
		t->kernel = NULL;
		child_end(&t->child);
		traced_close(t);
	}
	if (e < 0 && t->opts.argv) {
		t->n_traced = 0;
		t->pid = 0;
	}
	return e;
}

void trace_weigh(struct cairn_trace *t)
{
	t->weighs = true;
}

const char *trace_weight(const struct cairn_trace *t, const char **ret_unit)
{
	const struct trace_probe *p = t->probes.n ? t->probes.p[0] : NULL;

	if (!p || !p->pub.n_values)
		return NULL;
	*ret_unit = p->text->values[0].unit ? p->text->values[0].unit : "count";
	return p->pub.values[0].text;
}

enum cairn_unavailable trace_weight_missing(const struct cairn_trace *t, uint32_t site)
{
	return site < t->sites.n ? t->sites.p[site]->why : CAIRN_AVAILABLE;
}

int trace_set_links(struct cairn_trace *t, struct trace_links *l, struct cairn_err *err)
{
	int e = links_attach(t, l, err);

	return e || l->n_attached ? e : check_refused(t, err);
}

int trace_check(struct cairn_trace *t, struct cairn_err *err)
{
	int e = in_kernel_check(t, err);

	e = e ? e : check_missing(t, err);
	e = e ? e : check_refused(t, err);
	e = e ? e : verify_files(t, err);
	return e ? e : check_refused(t, err);
}

int cairn_trace_start(struct cairn_trace *t, struct cairn_err *err)
{
	return child_go(&t->child, t->opts.exe, err);
}

bool cairn_trace_status(struct cairn_trace *t, int *ret)
{
	if (!child_reap(&t->child))
		return false;
	*ret = t->child.status;
	return true;
}

void cairn_trace_detach(struct cairn_trace *t)
{
	if (!t->kernel || !t->kernel->links.fds.n)
		return;
	uint64_t start = trace_now_ns();
	kernel_detach(t->kernel);
	t->detach_ns = trace_now_ns() - start;
}
