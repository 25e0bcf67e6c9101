/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs of sites
 *
 * Sites whose programs are byte for byte the same share one: the 900 copies of a small function
 * need 10 to 30 programs. A value that is a constant at a site is computed here and costs nothing
 * per hit.
 */
#include "trace/plan/plan.h"

#include <errno.h>
#include <string.h>

#include "trace/aggregate/aggregate.h"
#include "trace/attach/copies.h"
#include "trace/attach/returns.h"
#include "trace/expr/compile.h"
#include "trace/place/in_kernel.h"

/*
 * The constant bytes of a value whose operations, [@from, p->n), depend on nothing; they are
 * removed.
 */
static const uint8_t *fold_constant(struct cairn_trace *t, struct fetch_program *p, uint32_t from,
				    const struct value_layout *l)
{
	struct fetch_machine m = {.n_record = UINT16_MAX};
	uint8_t *record = calloc(1, UINT16_MAX), *bytes = NULL;

	if (!record)
		return NULL;
	m.record = record;
	fetch_emit(p, FETCH_END);
	if (!p->full && fetch_run(&m, p->ops + from, p->n - from, false) == FETCH_DONE && !m.faults)
		bytes = arena_alloc(&t->arena, l->n_bytes);
	if (bytes)
		memcpy(bytes, record + l->out, l->n_bytes);
	p->n -= !p->full;
	if (bytes)
		p->n = from;
	free(record);
	return bytes;
}

static bool needs_result(const struct expr *e)
{
	return e && (e->special == EXPR_RETURN || needs_result(e->a) || needs_result(e->b) ||
		     needs_result(e->c));
}

/* The reason why a copy's end is not known may be known; its result never is. */
static const char *reason_at(const struct trace_site *site, const struct expr *e,
			     enum cairn_unavailable why)
{
	if (why != CAIRN_UNAVAIL_NO_END)
		return cairn_unavailable_text(why);
	if (site->pub.site->kind == CAIRN_SITE_INLINED && needs_result(e))
		return copies_no_result;
	return site->no_end ? site->no_end : cairn_unavailable_text(why);
}

static const char *reason_for(struct cairn_trace *t, const struct trace_probe *p,
			      const struct trace_site *site, uint32_t param, const char *text,
			      const struct expr *e, enum cairn_unavailable why)
{
	const struct cairn_function *f = p->pub.function;
	const char *name = param < f->n_params ? f->params[param].name : NULL;
	const char *what = reason_at(site, e, why);

	if (!name || !strcmp(name, text))
		return arena_printf(&t->arena, "%s is unavailable: %s", text, what);
	return arena_printf(&t->arena, "%s is unavailable, because of %s: %s", text, name, what);
}

static enum cairn_unavailable compile_one(const struct trace_probe *p, struct compiler *c,
					  uint32_t i)
{
	const struct probe_value_text *v = &p->text->values[i];

	if (v->n_bytes)
		return compile_bytes(c, v->expr, v->n_bytes, &p->layouts[i], i);
	return compile_value(c, v->expr, p->pub.values[i].is_string, &p->layouts[i], i);
}

/*
 * Whether an expression belongs to the part of the site's program that is compiled: the only one,
 * or if the site's calls are followed that of the entry or of the return.
 */
static bool is_of_part(const struct trace_site *site, const struct compiler *c,
		       const struct expr *e)
{
	return !site->follows || returns_needs(e) == (c->result != NULL);
}

static int own_slots(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		     struct cairn_err *err)
{
	uint32_t n = p->pub.n_values;

	site->pub.values = site->slots = arena_array(&t->arena, n + 1u, sizeof(*site->slots));
	site->constants = arena_array(&t->arena, n + 1u, sizeof(*site->constants));
	return site->slots && site->constants ? 0 : err_nomem(err, "a site");
}

/*
 * A listed value that is unavailable refuses the site. That an inlined copy has no return is no
 * surprise: its events say so.
 */
static void note_unavailable(struct cairn_trace *t, const struct trace_probe *p,
			     struct trace_site *site, const struct compiler *c, uint32_t i,
			     enum cairn_unavailable why)
{
	const struct cairn_trace_value *v = &p->pub.values[i];
	const struct expr *e = p->text->values[i].expr;

	site->slots[i].unavailable = reason_at(site, e, why);
	if (v->listed && why != CAIRN_UNAVAIL_NO_END && !site->pub.refused)
		site->pub.refused = reason_for(t, p, site, c->culprit, v->text, e, why);
}

static void compile_values(struct cairn_trace *t, const struct trace_probe *p,
			   struct trace_site *site, struct compiler *c)
{
	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		const struct expr *e = p->text->values[i].expr;
		uint32_t from = c->program->n;
		if (!is_of_part(site, c, e))
			continue;
		enum cairn_unavailable why = compile_one(p, c, i);
		if (why != CAIRN_AVAILABLE)
			note_unavailable(t, p, site, c, i, why);
		else if (compile_is_constant(c->program, from))
			site->constants[i].bytes =
				fold_constant(t, c->program, from, &p->layouts[i]);
	}
}

/* A site that does not have the number is probed all the same: its hits count. */
static int compile_weight(struct cairn_trace *t, const struct trace_probe *p,
			  struct trace_site *site, struct compiler *c, struct cairn_err *err)
{
	enum cairn_unavailable why;
	int r = own_slots(t, p, site, err);

	if (r < 0)
		return r;
	site->weight = TRACE_WEIGHT_NONE;
	if (!p->pub.n_values)
		return 0;
	why = compile_condition(c, p->text->values[0].expr);
	site->why = why;
	site->weight = why == CAIRN_AVAILABLE ? TRACE_WEIGHT_FETCHED : TRACE_WEIGHT_UNAVAILABLE;
	if (why != CAIRN_AVAILABLE)
		site->slots->unavailable = cairn_unavailable_text(why);
	return 0;
}

/* A site that does not have what is summed up is refused, as for listed values. */
static void compile_parts(struct cairn_trace *t, const struct trace_probe *p,
			  struct trace_site *site, struct compiler *c)
{
	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		if (!is_of_part(site, c, p->parts[i].expr))
			continue;
		enum cairn_unavailable why = aggregate_compile(p, c, i);
		if (why == CAIRN_AVAILABLE)
			continue;
		site->slots[i].unavailable = reason_at(site, p->parts[i].expr, why);
		if (!site->pub.refused)
			site->pub.refused =
				reason_for(t, p, site, c->culprit, p->pub.values[i].text,
					   p->parts[i].expr, why);
	}
}

static bool same_program(const struct cairn_trace *t, uint32_t i, const struct fetch_program *p,
			 bool has_condition)
{
	const struct trace_program *q = &t->programs.p[i];

	return q->n == p->n && q->has_condition == has_condition &&
	       !memcmp(t->ops.p + q->op, p->ops, p->n * sizeof(p->ops[0]));
}

/* The index of a program with these operations, added when it is new. */
int plan_keep_program(struct cairn_trace *t, const struct fetch_program *p, bool has_condition,
		      uint32_t *ret, struct cairn_err *err)
{
	uint64_t hash = map_hash_bytes(p->ops, p->n * sizeof(p->ops[0])), first = 0;

	map_get(&t->program_ids, hash, &first);
	for (uint64_t i = first; i; i = t->program_next.p[i - 1]) {
		if (!same_program(t, (uint32_t)i - 1, p, has_condition))
			continue;
		*ret = (uint32_t)i - 1;
		return 0;
	}
	struct trace_program q = {
		.op = (uint32_t)t->ops.n, .n = p->n, .has_condition = has_condition};
	for (uint32_t i = 0; i < p->n; i++)
		if (!VEC_ADD(&t->ops, p->ops[i]))
			return err_nomem(err, "fetch programs");
	if (!VEC_ADD(&t->programs, q) || !VEC_ADD(&t->program_next, (uint32_t)first) ||
	    map_put(&t->program_ids, hash, t->programs.n) < 0)
		return err_nomem(err, "fetch programs");
	*ret = (uint32_t)t->programs.n - 1;
	return 0;
}

static void compile_if(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		       struct compiler *c, const struct expr *condition)
{
	enum cairn_unavailable why = condition ? compile_condition(c, condition) : CAIRN_AVAILABLE;

	if (why != CAIRN_AVAILABLE && !site->pub.refused)
		site->pub.refused =
			reason_for(t, p, site, c->culprit, "the condition", condition, why);
}

/* The numbers that the entry keeps for the return. */
static void compile_kept_numbers(struct cairn_trace *t, const struct trace_probe *p,
				 struct trace_site *site, struct compiler *c)
{
	enum cairn_unavailable why = returns_keep(p, c);

	if (why != CAIRN_AVAILABLE && !site->pub.refused)
		site->pub.refused =
			reason_for(t, p, site, c->culprit, "a number of the entry", NULL, why);
}

static int end_program(const struct trace_probe *p, struct fetch_program *program,
		       struct cairn_err *err)
{
	fetch_emit(program, FETCH_END);
	if (!program->full)
		return 0;
	return err_set(err, -ERANGE, "%s: fetching the values takes more than %d operations",
		       p->text->text, FETCH_OPS_MAX);
}

static struct compiler compiler_of(const struct trace_probe *p, const struct trace_site *site,
				   struct fetch_program *program)
{
	*program = (struct fetch_program){.slide = in_kernel_slide(p->file, site)};
	return (struct compiler){.types = p->pub.types,
				 .function = p->pub.function,
				 .site = site->pub.site,
				 .at = site->pub.at,
				 .program = program};
}

/* The condition of the part of the program that is run at the hit. */
const struct expr *plan_first_condition(const struct trace_probe *p)
{
	return p->returns ? p->returns->at_entry : p->text->condition;
}

/*
 * The program for a site, in its present state; a refused site keeps its reason. If its calls are
 * followed, it is the part of the entry.
 */
int plan_site_program(struct cairn_trace *t, struct trace_probe *p, struct trace_site *planned,
		      struct fetch_program *program, struct cairn_err *err)
{
	struct compiler c = compiler_of(p, planned, program);
	int r = 0;

	compile_if(t, p, planned, &c, plan_first_condition(p));
	if (p->returns && !planned->follows)
		compile_if(t, p, planned, &c, p->returns->at_return);
	if (t->weighs)
		r = compile_weight(t, p, planned, &c, err);
	else
		r = own_slots(t, p, planned, err);
	if (r < 0)
		return r;
	if (t->aggregates)
		compile_parts(t, p, planned, &c);
	else if (!t->weighs)
		compile_values(t, p, planned, &c);
	if (planned->follows)
		compile_kept_numbers(t, p, planned, &c);
	return end_program(p, program, err);
}

/* The part of the return, after that of the entry. */
int plan_return_program(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
			struct fetch_program *program, struct cairn_err *err)
{
	struct compiler c = compiler_of(p, site, program);

	c.result = site->result;
	compile_if(t, p, site, &c, p->returns->at_return);
	if (t->aggregates)
		compile_parts(t, p, site, &c);
	else
		compile_values(t, p, site, &c);
	return end_program(p, program, err);
}
