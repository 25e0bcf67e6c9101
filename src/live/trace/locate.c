/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/locate.h"

#include <errno.h>
#include <string.h>

#include <cairn/text.h>

void trace_locate(struct cairn_trace *t, uint32_t n_needed)
{
	t->locates = true;
	t->n_needed = n_needed;
}

/* ---- planning ---- */

static int check_text(const struct cairn_trace *t, const struct trace_probe *p,
		      struct cairn_err *err)
{
	const struct probe_text *text = p->text;

	if (text->kind != PROBE_OF_FUNCTION || text->has_list || text->condition)
		return err_set(
			err, -EINVAL,
			"%s: the name of a function is wanted, without a list or a condition",
			text->text);
	if (p->pub.found == CAIRN_FOUND_PATTERN)
		return err_set(err, -EINVAL,
			       "%s is a pattern, and the arguments are those of one function",
			       text->text);
	if (p->pub.types == t->words)
		return err_set(err, -ENODATA,
			       "%s: no debug information says where the arguments of %s are; a "
			       "plain kprobe or uprobe needs none",
			       p->file->shown, p->pub.function->name);
	return 0;
}

static int check_needed(const struct cairn_trace *t, const struct trace_probe *p,
			struct cairn_err *err)
{
	const struct cairn_function *f = p->pub.function;

	if (t->n_needed <= f->n_params)
		return 0;
	return err_set(err, -EINVAL, "the program takes %s, and %s has %u",
		       cairn_counted(t->n_needed, "argument").text, f->name, f->n_params);
}

/* A number is handed over in 8 bytes. */
static int check_size(const struct cairn_trace *t, const struct trace_probe *p, uint32_t i,
		      uint64_t size, struct cairn_err *err)
{
	if (i >= t->n_needed || size <= 8)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "argument %u of %s has %llu bytes, and BPF_LOC_PROG() takes at most 8: "
		       "bpf_loc_arg() reads it",
		       i, p->pub.function->name, (unsigned long long)size);
}

static int plan_arg(struct cairn_trace *t, struct trace_probe *p, uint32_t i, struct expr *name,
		    struct cairn_trace_value *value, struct cairn_err *err)
{
	const struct cairn_param *param = &p->pub.function->params[i];
	struct probe_value_text *text = &p->text->values[i];
	struct value_layout *l = &p->layouts[i];
	int e = p->file->sites ? cairn_sites_complete_type(p->file->sites, param->type, err) : 0;

	if (e < 0)
		return e;
	uint64_t size = cairn_types_size(p->pub.types, param->type);
	*name = (struct expr){.kind = EXPR_NAME,
			      .name = param->name ? param->name : "",
			      .is_path = true,
			      .param = i,
			      .type = param->type};
	text->expr = name;
	text->text = param->name ? param->name : arena_printf(&t->arena, "argument %u", i);
	*value = (struct cairn_trace_value){
		.text = text->text, .type = param->type, .listed = i < t->n_needed};
	l->out = (uint16_t)(LOCATE_BYTES_MAX * i);
	l->cut = !size || size > LOCATE_BYTES_MAX;
	l->n_bytes = (uint16_t)(l->cut ? 1 : size);
	return text->text ? check_size(t, p, i, size, err) : err_nomem(err, "a probe");
}

int locate_plan(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	struct probe_text *text = (struct probe_text *)p->text;
	const struct cairn_function *f = p->pub.function;
	uint32_t n = f->n_params < LOCATE_ARGS_MAX ? f->n_params : LOCATE_ARGS_MAX;
	struct expr *names = arena_array(&t->arena, n + 1u, sizeof(*names));
	struct cairn_trace_value *values = arena_array(&t->arena, n + 1u, sizeof(*values));
	int e = check_text(t, p, err);

	e = e ? e : check_needed(t, p, err);
	if (e < 0)
		return e;
	text->values = arena_array(&t->arena, n + 1u, sizeof(*text->values));
	p->layouts = arena_array(&t->arena, n + 1u, sizeof(*p->layouts));
	if (!names || !values || !text->values || !p->layouts)
		return err_nomem(err, "a probe");
	p->pub.values = values;
	p->pub.n_values = text->n_values = n;
	for (uint32_t i = 0; i < n && e == 0; i++)
		e = plan_arg(t, p, i, &names[i], &values[i], err);
	return e;
}

/* ---- what was planned ---- */

uint32_t trace_located_n(const struct cairn_trace *t, uint32_t site)
{
	const struct trace_site *s = t->sites.p[site];

	return s->pub.refused ? 0 : t->probes.p[s->pub.probe]->pub.function->n_params;
}

/* The operations of a value are next to each other. */
static void find_ops(const struct cairn_trace *t, const struct trace_site *s, uint32_t arg,
		     struct trace_located_arg *ret)
{
	const struct trace_program *program = &t->programs.p[s->pub.program];
	const struct fetch_op *ops = t->ops.p + program->op;
	uint32_t from = 0, to;

	while (from < program->n && ops[from].value != arg)
		from++;
	for (to = from; to < program->n && ops[to].value == arg;)
		to++;
	ret->ops = ops + from;
	ret->n_ops = to - from;
}

void trace_located_arg(const struct cairn_trace *t, uint32_t site, uint32_t arg,
		       struct trace_located_arg *ret)
{
	const struct trace_site *s = t->sites.p[site];
	const struct trace_probe *p = t->probes.p[s->pub.probe];

	*ret = (struct trace_located_arg){0};
	if (arg >= p->pub.n_values)
		return;
	const struct value_layout *l = &p->layouts[arg];
	ret->is_large = l->cut;
	ret->n_bytes = (uint8_t)l->n_bytes;
	ret->out = l->out;
	ret->is_signed = type_is_signed(p->pub.types, p->pub.values[arg].type);
	ret->is_available = !l->cut && !s->slots[arg].unavailable;
	ret->constant = s->constants[arg].bytes;
	if (ret->is_available && !ret->constant)
		find_ops(t, s, arg, ret);
}

static struct trace_located *located(struct cairn_trace *t, uint32_t site)
{
	struct trace_site *s = t->sites.p[site];

	if (!s->located)
		s->located = arena_array(&t->arena, 1, sizeof(*s->located));
	return s->located;
}

int trace_set_cookie(struct cairn_trace *t, uint32_t site, uint64_t cookie)
{
	struct trace_located *l = located(t, site);

	if (!l)
		return -ENOMEM;
	l->cookie = cookie;
	return 0;
}

int trace_set_program(struct cairn_trace *t, uint32_t site, uint32_t program)
{
	struct trace_located *l = located(t, site);

	if (!l)
		return -ENOMEM;
	l->program = program;
	return 0;
}

int trace_register_word(unsigned int dwarf_reg)
{
	/* rax rdx rcx rbx rsi rdi rbp rsp, r8 to r15, rip */
	static const int8_t words[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};

	return dwarf_reg < sizeof(words) ? words[dwarf_reg] : -1;
}
