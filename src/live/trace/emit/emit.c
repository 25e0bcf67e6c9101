/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/emit/emit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"

static const struct emit_tool *const tools[] = {&emit_bpftrace, &emit_perf, &emit_gdb,
						&emit_libbpf};

enum { N_TOOLS = sizeof(tools) / sizeof(tools[0]) };

const struct cairn_emit_tool *cairn_emit_tool(const char *name)
{
	for (size_t i = 0; i < N_TOOLS; i++)
		if (!strcmp(tools[i]->pub.name, name))
			return &tools[i]->pub;
	return NULL;
}

/* ---- what is refused ---- */

static int refuse(const struct emission *e, const char *what, const char *instead)
{
	return err_set(e->err, -EOPNOTSUPP, "--emit %s: no %s there; %s", e->tool->pub.name, what,
		       instead ? instead : e->tool->instead);
}

/* Options of the trace that no tool is told. */
static int check_options(const struct emission *e)
{
	const struct cairn_trace_opts *o = &e->t->opts;
	const char *here = "cairn trace itself does it";

	if (o->cgroup)
		return refuse(e, "--cgroup", "name processes with -p");
	if (o->comm)
		return refuse(e, "--comm", "write a condition: FUNC if $comm == \"NAME\"");
	if (o->follow_children)
		return refuse(e, "-f", "without -p the probes are in all processes");
	if (o->shows_calls)
		return refuse(e, "--graph", here);
	if (o->format)
		return refuse(e, "--format", "list the values in the probe: FUNC(EXPR, ...)");
	if (o->sample > 1)
		return refuse(e, "--sample", here);
	if (o->stack_frames)
		return refuse(e, "--stack", here);
	return e->t->probes.n ? 0 : err_set(e->err, -EINVAL, "no probe was added");
}

static int check_item(const struct emission *e, const struct aggregate_item *item)
{
	char what[64];
	const char *why;

	snprintf(what, sizeof(what), "--%s", emit_aggregate_name(item->kind));
	if (!(e->tool->aggregates >> item->kind & 1))
		return refuse(e, what, NULL);
	why = e->tool->refuses_item ? e->tool->refuses_item(item) : NULL;
	return why ? probe_error(e->err, -EOPNOTSUPP, item->given, 0, "--emit %s: %s: %s",
				 e->tool->pub.name, what, why)
		   : 0;
}

static int check_aggregates(const struct emission *e)
{
	const struct aggregates *a = e->t->aggregates;

	for (uint32_t i = 0; a && i < a->n_items; i++) {
		int r = check_item(e, &a->items[i]);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; a && i < a->n_keys; i++)
		if (!(e->tool->keys >> a->keys[i].kind & 1))
			return err_set(e->err, -EOPNOTSUPP,
				       "--emit %s: --by %s: no such key there; %s",
				       e->tool->pub.name, a->keys[i].text, e->tool->instead);
	if (a && a->clears)
		return refuse(e, "--clear", "the script shows one table, when it ends");
	return 0;
}

static int check_path(const struct emission *e, const struct trace_file *f)
{
	char *path = emit_path(f);
	struct stat now;
	int r = 0;

	if (!path)
		return err_set(e->err, -errno, "%s: %s", f->path, strerror(errno));
	if (stat(path, &now) || now.st_dev != f->stat.st_dev || now.st_ino != f->stat.st_ino)
		r = err_set(e->err, -EOPNOTSUPP,
			    "%s is another file here than in the process's file system, which a "
			    "script cannot name; %s",
			    path, e->tool->instead);
	else if (cairn_quote(path, e->tool->pub.path, NULL, 0) < 0)
		r = err_set(e->err, -EOPNOTSUPP,
			    "%s: %s has no way to write this path; give the file another name",
			    path, e->tool->pub.name);
	free(path);
	return r;
}

static int check_probe(const struct emission *e, const struct trace_probe *p)
{
	if (p->pub.of_kernel)
		return err_set(e->err, -EOPNOTSUPP,
			       "--emit %s: %s is of the kernel; cairn sites --running FUNC --emit "
			       "tracefs writes kprobes",
			       e->tool->pub.name, p->pub.text);
	if (p->returns)
		return err_set(e->err, -EOPNOTSUPP,
			       "--emit %s: %s: the script has probes at the entries alone, no $ret "
			       "and no $duration; without them it can be written",
			       e->tool->pub.name, p->pub.text);
	if (p->text->condition && !e->tool->has_condition)
		return probe_error(e->err, -EOPNOTSUPP, p->text->text, p->text->condition->at,
				   "%s has no conditions; %s", e->tool->pub.name, e->tool->instead);
	return check_path(e, p->file);
}

static const char *refuses_value(const struct emission *e, const struct emit_value *v)
{
	const char *why = e->tool->language ? emit_refuses(e->tool->language, v) : NULL;

	if (v->form == EMIT_MISSING)
		return v->why;
	return why || !e->tool->refuses ? why : e->tool->refuses(v);
}

static int check_value(struct emission *e, const struct trace_site *site, uint32_t i)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	const char *text, *why;

	emit_value(e, site, i, &e->value);
	why = refuses_value(e, &e->value);
	if (!why || !p->pub.values[i].listed)
		return 0;
	const struct expr *expr = emit_expr(e, p, i, &text);
	return probe_error(e->err, -EOPNOTSUPP, text, expr ? expr->at : 0,
			   "%s cannot have this value: %s", e->tool->pub.name, why);
}

static int check_site(struct emission *e, const struct trace_site *site)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];
	int r = 0;

	if (site->semaphore)
		return err_set(e->err, -EOPNOTSUPP,
			       "--emit %s: %s has a semaphore, which the script would not set; "
			       "bpftrace takes usdt:PATH:PROVIDER:NAME",
			       e->tool->pub.name, p->pub.text);
	if (emit_condition(e, site, &e->value)) {
		const char *why = refuses_value(e, &e->value);
		if (why)
			return probe_error(e->err, -EOPNOTSUPP, p->text->text,
					   p->text->condition ? p->text->condition->at : 0,
					   "%s cannot decide this: %s", e->tool->pub.name, why);
	}
	for (uint32_t i = 0; i < p->pub.n_values && r == 0; i++)
		r = check_value(e, site, i);
	return r;
}

static bool is_a_call(const struct trace_site *site)
{
	return site->pub.site->kind != CAIRN_SITE_PART &&
	       !(site->pub.site->count_caveats & CAIRN_COUNT_MERGED);
}

static int check_sites(struct emission *e)
{
	uint32_t n_ready = 0;
	int r = 0;

	for (size_t i = 0; i < e->t->sites.n && r == 0; i++) {
		const struct trace_site *site = e->t->sites.p[i];
		const char *function = e->t->probes.p[site->pub.probe]->pub.function->name;
		if (site->pub.refused && is_a_call(site) && !trace_may_leave_out(e->t, site))
			return err_set(e->err, -ENOENT,
				       "%s: the site at 0x%" PRIx64 " is refused: %s; with "
				       "--best-effort the script has the others",
				       function, site->pub.site->at.v, site->pub.refused);
		if (site->pub.refused)
			continue;
		n_ready++;
		r = check_site(e, site);
	}
	return r < 0 || n_ready ? r : err_set(e->err, -ENOENT, "no site can be probed");
}

static int check(struct emission *e)
{
	int r = check_options(e);

	if (r == 0)
		r = check_aggregates(e);
	for (size_t i = 0; i < e->t->probes.n && r == 0; i++)
		r = check_probe(e, e->t->probes.p[i]);
	return r < 0 ? r : check_sites(e);
}

/* ---- the script ---- */

static void put_left_out(const struct emission *e)
{
	for (size_t i = 0; i < e->t->sites.n; i++) {
		const struct trace_site *site = e->t->sites.p[i];
		if (!site->pub.refused)
			continue;
		fprintf(e->out, "%s left out: 0x%" PRIx64 ": ", e->tool->pub.comment,
			site->pub.site->at.v);
		cairn_quote_put(site->pub.refused, CAIRN_QUOTE_COMMENT, e->out);
		fputc('\n', e->out);
	}
}

int cairn_trace_emit(const struct cairn_trace *t, const struct cairn_emit_tool *tool, FILE *out,
		     struct cairn_err *err)
{
	struct emission *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return err_nomem(err, "a script");
	*e = (struct emission){.t = t, .out = out, .err = err};
	for (size_t i = 0; i < N_TOOLS; i++)
		if (&tools[i]->pub == tool)
			e->tool = tools[i];
	r = check(e);
	if (r == 0)
		r = e->tool->write(e);
	if (r == 0)
		put_left_out(e);
	if (r == 0 && ferror(out))
		r = err_set(err, -EIO, "the script cannot be written");
	free(e);
	return r;
}
