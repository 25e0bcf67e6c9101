/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One program, wherever its function is
 *
 * It is attached to the function's symbol, or could not be, as no such symbol is left. All other
 * sites of the function get programs of ours. Sites with equal ones share it.
 */
#include "cover/cover.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/err.h"
#include "elf/elf.h"
#include "kernel/symbols.h"
#include "trace/attach/link.h"
#include "trace/weigh.h"

/* The number of a site without one: the first one is there, or the site is left out. */
#define NO_PROGRAM UINT32_MAX

struct second {
	struct cover_built built;
	int fd;
};

struct work {
	struct covered *p;
	const struct cairn_cover_opts *opts;
	struct section section;
	struct cairn_trace *trace;
	struct cover_use use;
	struct cover_params params;
	VEC(struct second) seconds;
};

/* ---- what is not covered ---- */

/* Calls that are not seen: an error, or with best_effort a number. */
static int leave_out(struct work *w, uint32_t n, const char *why, struct cairn_err *err)
{
	struct covered *p = w->p;

	if (!p->pub.why)
		snprintf(p->why, sizeof(p->why), "%s", why);
	p->pub.why = p->why;
	p->pub.n_left_out += n;
	if (w->opts->best_effort)
		return 0;
	return err_set(err, -ENOENT, "program %s, %s: calls would not be seen: %s", p->pub.name,
		       p->pub.section, why);
}

/* ---- sites ---- */

static struct cairn_trace_opts trace_opts(const struct work *w)
{
	const struct cairn_cover_opts *o = w->opts;

	return (struct cairn_trace_opts){
		.size = sizeof(struct cairn_trace_opts),
		.best_effort = o->best_effort,
		.of_kernel = w->section.of_kernel,
		.debug_dirs = o->debug_dirs,
		.n_debug_dirs = o->n_debug_dirs,
		.threads = o->threads,
		.find_sidecar = o->find_sidecar,
		.find_sidecar_ctx = o->find_sidecar_ctx,
		.find_kernel = o->find_kernel,
		.find_kernel_ctx = o->find_kernel_ctx,
		.show_name = o->show_name,
	};
}

static int find_sites(struct work *w, struct cairn_err *err)
{
	const struct cairn_trace_opts opts = trace_opts(w);
	int e = cairn_trace_open(&opts, &w->trace, err);

	if (e < 0)
		return e;
	trace_locate(w->trace, 0);
	e = cairn_trace_add(w->trace, w->section.target, err);
	return e < 0 ? e : 0;
}

/* The symbol to which it is attached. */
static const char *symbol_of(const struct work *w)
{
	const char *colon = strrchr(w->section.target, ':');

	return colon ? colon + 1 : w->section.target;
}

static bool find_user_symbol(const struct work *w, uint64_t *ret)
{
	const struct trace_file *file = w->trace->files.p[0];
	const struct elf_symbol *symbols;
	size_t n;

	if (elf_symbols(binary_symbol_file(file->bin), &symbols, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (symbols[i].name && !strcmp(symbols[i].name, symbol_of(w))) {
			*ret = symbols[i].at.v;
			return true;
		}
	return false;
}

static bool find_kernel_symbol(const struct work *w, uint64_t *ret)
{
	struct kernel_code code;

	if (kernel_code_find(w->trace->files.p[0]->kernel, symbol_of(w), &code, NULL) < 1)
		return false;
	*ret = code.at;
	return true;
}

/* The address of that probe; 0: there is none. */
static uint64_t first_address(const struct work *w)
{
	uint64_t at = 0;
	bool is_found = w->p->pub.is_attached && (w->section.of_kernel ? find_kernel_symbol(w, &at)
								       : find_user_symbol(w, &at));

	return is_found ? at : 0;
}

static bool is_first(const struct work *w, uint32_t site, uint64_t first)
{
	const struct cairn_trace_site *s = cairn_trace_site(w->trace, site);

	if (!first || s->site->kind == CAIRN_SITE_INLINED)
		return false;
	return (w->section.of_kernel ? s->running : s->site->at.v) == first;
}

static uint32_t count_others(const struct work *w, uint64_t first)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cairn_trace_n_sites(w->trace); i++)
		n += !is_first(w, i, first);
	return n;
}

/* ---- second programs ---- */

static bool is_equal(const struct cover_built *a, const struct cover_built *b)
{
	return a->code.insns.n == b->code.insns.n &&
	       !memcmp(a->code.insns.p, b->code.insns.p,
		       a->code.insns.n * sizeof(*a->code.insns.p));
}

static int keep_second(struct work *w, struct cover_built *built, uint32_t *ret,
		       struct cairn_err *err)
{
	for (*ret = 0; *ret < w->seconds.n; ++*ret)
		if (is_equal(&w->seconds.p[*ret].built, built)) {
			built_fini(built);
			return 0;
		}
	if (VEC_ADD(&w->seconds, ((struct second){*built, -1})))
		return 0;
	built_fini(built);
	return err_nomem(err, "programs");
}

/* "argument buf (%rsi) at inlined in f+0x12: optimised out" */
static void site_obstacle(const struct work *w, uint32_t site, unsigned int word, const char *why,
			  char *ret, size_t n)
{
	const struct cairn_trace_site *s = cairn_trace_site(w->trace, site);
	const struct cairn_function *f = cairn_trace_probe(w->trace, s->probe)->function;
	int arg = w->params.of_word[word];
	char where[200];

	cairn_site_text(f, s->site, w->opts->show_name, where, sizeof(where));
	const char *name = arg >= 0 ? f->params[arg].name : NULL;
	bool is_array = w->params.is_array;
	snprintf(ret, n, "it reads %s%s%s%s, %s: %s", is_array ? "" : word_name(word),
		 name && !is_array ? ", " : "", name || is_array ? "argument " : "",
		 name ? name : "", where, why);
}

static int make_second(struct work *w, uint32_t site, uint32_t *ret, struct cairn_err *err)
{
	const struct cover_site at = {.trace = w->trace,
				      .site = site,
				      .of_kernel = w->section.of_kernel,
				      .params = &w->params};
	struct cover_built built;
	char text[400];
	unsigned int word;
	const char *why = prologue_obstacle(&w->use, &at, &word);
	int e;

	*ret = NO_PROGRAM;
	if (why) {
		site_obstacle(w, site, word, why, text, sizeof(text));
		return leave_out(w, 1, text, err);
	}
	e = build_program(w->p->first.insns, w->p->first.n, &w->use, &at, w->p->lost_fd, &built,
			  err);
	if (e < 0 || built.why) {
		why = built.why;
		built_fini(&built);
		return e < 0 ? e : leave_out(w, 1, why, err);
	}
	return keep_second(w, &built, ret, err);
}

/* "inlined in f+0x12: may be hit without a call" */
static void note_caveats(struct work *w, uint32_t site)
{
	const struct cairn_trace_site *s = cairn_trace_site(w->trace, site);
	uint32_t caveats = s->site->count_caveats;
	char where[200];

	if (!caveats || w->p->pub.n_caveats++)
		return;
	cairn_site_text(cairn_trace_probe(w->trace, s->probe)->function, s->site,
			w->opts->show_name, where, sizeof(where));
	snprintf(w->p->caveat, sizeof(w->p->caveat), "%s: %s", where,
		 cairn_count_caveat_text((enum cairn_count_caveat)(caveats & -caveats)));
	w->p->pub.caveat = w->p->caveat;
}

static int make_seconds(struct work *w, uint64_t first, struct cairn_err *err)
{
	int e = 0;

	for (uint32_t i = 0; i < cairn_trace_n_sites(w->trace) && e >= 0; i++) {
		const struct cairn_trace_site *s = cairn_trace_site(w->trace, i);
		uint32_t program = NO_PROGRAM;
		if (s->refused && !is_first(w, i, first))
			e = leave_out(w, 1, s->refused, err);
		else if (!s->refused && !is_first(w, i, first))
			e = make_second(w, i, &program, err);
		if (program != NO_PROGRAM)
			note_caveats(w, i);
		if (e >= 0 && (trace_set_program(w->trace, i, program) < 0 ||
			       trace_set_cookie(w->trace, i, w->p->cookie) < 0))
			e = err_nomem(err, "sites");
	}
	return e;
}

static uint32_t count_sites(const struct work *w, uint32_t program)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cairn_trace_n_sites(w->trace); i++)
		n += w->trace->sites.p[i]->located->program == program;
	return n;
}

static int load_second(struct work *w, uint32_t i, struct cairn_err *err)
{
	struct second *s = &w->seconds.p[i];
	char said[200], text[300];

	s->fd = load_program(&w->p->first, &s->built, w->section.of_kernel, said, sizeof(said));
	if (s->fd >= 0)
		return VEC_ADD(&w->p->fds, s->fd) ? 0 : err_nomem(err, "programs");
	if (s->fd == -ENOMEM || s->fd == -EPERM)
		return err_set(err, s->fd, "loading program %s: %s", w->p->pub.name,
			       strerror(-s->fd));
	snprintf(text, sizeof(text), "the kernel does not load it as a function: %s",
		 *said ? said : strerror(-s->fd));
	return leave_out(w, count_sites(w, i), text, err);
}

/* ---- links ---- */

static enum cairn_trace_backend backend_of(const struct work *w)
{
	if (w->section.of_kernel)
		return CAIRN_BACKEND_KPROBE;
	return link_multi_is_known() ? CAIRN_BACKEND_UPROBE_MULTI : CAIRN_BACKEND_UPROBE;
}

static void forget_programs(struct trace_links *l)
{
	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		l->program_fds[i] = l->follow_fds[i] = l->return_fds[i] = -1;
		l->enter_fds[i] = l->exit_fds[i] = -1;
		l->copy_enter_fds[i] = l->copy_exit_fds[i] = l->copy_reset_fds[i] = -1;
	}
}

static int attach_second(struct work *w, uint32_t i, struct cairn_err *err)
{
	struct trace_links *l = &w->p->links;

	if (w->seconds.p[i].fd < 0)
		return 0;
	forget_programs(l);
	l->located_program = i;
	for (unsigned int k = 0; k < TRACE_N_CLASSES; k++)
		l->program_fds[k] = w->seconds.p[i].fd;
	return trace_set_links(w->trace, l, err);
}

static int attach_seconds(struct work *w, struct cairn_err *err)
{
	int e = 0;

	w->p->links.backend = backend_of(w);
	w->p->links.pid = w->p->pid;
	for (uint32_t i = 0; i < w->seconds.n && e >= 0; i++) {
		e = load_second(w, i, err);
		e = e < 0 ? e : attach_second(w, i, err);
	}
	w->p->pub.n_sites = w->p->links.n_attached;
	return e;
}

/* ---- one program ---- */

static int look_at_program(struct work *w, struct cairn_err *err)
{
	const struct cairn_trace_probe *probe = cairn_trace_probe(w->trace, 0);
	int e = use_find(w->p->first.insns, w->p->first.n, &w->use, err);

	if (e < 0 || w->section.kind != SECTION_FENTRY)
		return e < 0 ? e : params_find(probe->types, probe->function, &w->params, err);
	e = typed_find(w->p->first.fd, probe->function, &w->params, err);
	w->use.why = w->use.why ? w->use.why : w->params.why;
	return e;
}

static int cover_others(struct work *w, uint64_t first, struct cairn_err *err)
{
	int e;

	w->p->lost_fd = load_counter();
	if (w->p->lost_fd < 0)
		return err_set(err, w->p->lost_fd, "a map: %s", strerror(-w->p->lost_fd));
	e = trace_check(w->trace, err);
	e = e < 0 ? e : make_seconds(w, first, err);
	return e < 0 ? e : attach_seconds(w, err);
}

static int cover_found(struct work *w, struct cairn_err *err)
{
	uint64_t first = first_address(w);
	uint32_t n = count_others(w, first);
	const char *why = section_obstacle(w->section.kind);
	int e;

	if (!n)
		return 0;
	why = why ? why : w->p->missing;
	if (why)
		return leave_out(w, n, why, err);
	if (!load_can_link())
		return leave_out(w, n, "this kernel has no links of probes (Linux 5.15)", err);
	e = look_at_program(w, err);
	if (e < 0)
		return e;
	return w->use.why ? leave_out(w, n, w->use.why, err) : cover_others(w, first, err);
}

static int cover(struct work *w, struct cairn_err *err)
{
	struct cairn_err said = {0};
	int e;

	if (w->section.kind == SECTION_PATTERN || w->section.kind == SECTION_OFFSET)
		return leave_out(w, 0, section_obstacle(w->section.kind), err);
	e = find_sites(w, &said);
	if (!e)
		return cover_found(w, err);
	if (e == -ENOMEM || e == -ECANCELED) {
		*err = said;
		return e;
	}
	/* The caller's find_kernel() has told it. */
	return leave_out(w, 0, *said.msg ? said.msg : "its function is not described", err);
}

int program_cover(struct covered *p, const struct cairn_cover_opts *opts, struct cairn_err *err)
{
	struct work w = {.p = p, .opts = opts, .section = p->section};
	int e = 0;

	if (w.section.target) {
		p->pub.target = w.section.target;
		e = cover(&w, err);
	}
	for (size_t i = 0; i < w.seconds.n; i++)
		built_fini(&w.seconds.p[i].built);
	VEC_FREE(&w.seconds);
	use_fini(&w.use);
	cairn_trace_close(w.trace);
	return e;
}

void program_fini(struct covered *p)
{
	links_detach(&p->links);
	links_fini(&p->links);
	while (p->fds.n)
		close(p->fds.p[--p->fds.n]);
	VEC_FREE(&p->fds);
	if (p->lost_fd >= 0)
		close(p->lost_fd);
	p->lost_fd = -1;
}

bool program_has_sites(const char *function, const struct cairn_cover_opts *opts)
{
	struct work w = {.opts = opts, .section = {SECTION_KPROBE, true, function}};
	bool is_found = find_sites(&w, NULL) == 0 && cairn_trace_n_sites(w.trace);

	cairn_trace_close(w.trace);
	return is_found;
}

/* ---- counts ---- */

static uint64_t runs_missed(int fd)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

void program_count(struct covered *p)
{
	uint32_t zero = 0;
	uint64_t lost = 0;

	if (p->lost_fd >= 0 && !bpf_map_lookup_elem(p->lost_fd, &zero, &lost))
		p->pub.n_lost = lost;
	struct links_missed missed = links_missed(&p->links);
	p->pub.n_missed = missed.hits;
	p->pub.missed_is_unknown = missed.is_unknown;
	for (size_t i = 0; i < p->fds.n; i++)
		p->pub.n_missed += runs_missed(p->fds.p[i]);
}
