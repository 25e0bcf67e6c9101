/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of a probe: the listed ones, or its function's parameters, with their types. */
#include "trace/plan/plan.h"

#include <errno.h>
#include <string.h>

#include "trace/attach/returns.h"
#include "trace/show/format.h"

/* Every parameter as if it had been listed; unnamed ones are left out, having nothing to show. */
static int all_parameters(struct cairn_trace *t, const struct cairn_function *f,
			  struct probe_text *text, struct cairn_err *err)
{
	uint32_t n = f->n_params < FETCH_VALUES_MAX ? f->n_params : FETCH_VALUES_MAX;

	/* Registers that may hold arguments are shown when they are listed. */
	if (f->params_unknown)
		n = 0;
	text->values = arena_array(&t->arena, n ? n : 1, sizeof(*text->values));
	struct expr *names = arena_array(&t->arena, n ? n : 1, sizeof(*names));
	if (!text->values || !names)
		return err_nomem(err, "a probe");
	for (uint32_t i = 0; i < n; i++) {
		if (!f->params[i].name)
			continue;
		names[i] = (struct expr){.kind = EXPR_NAME,
					 .name = f->params[i].name,
					 .is_path = true,
					 .param = i,
					 .type = f->params[i].type};
		text->values[text->n_values++] =
			(struct probe_value_text){.text = f->params[i].name, .expr = &names[i]};
	}
	return 0;
}

/*
 * Completes the types that recipes read, and their elements; vectors of vectors of vectors are
 * enough.
 */
static int complete_recipes(const struct expr_scope *scope, uint32_t type, unsigned int depth,
			    struct cairn_err *err)
{
	enum { ELEMENTS_MAX = 3 };
	struct recipe_at found[TARGETS_MAX];

	if (!scope->sites || depth == ELEMENTS_MAX)
		return 0;
	int r = cairn_sites_complete_type(scope->sites, type, err);
	unsigned int n = r < 0 ? 0 : recipe_all(scope->types, type, found, TARGETS_MAX);
	for (unsigned int i = 0; i < n && r >= 0; i++)
		if (found[i].recipe.element)
			r = complete_recipes(scope, found[i].recipe.element, depth + 1, err);
	return r;
}

/* A reference to such a value stands for it, as "a.x" of a reference does for "a->x". */
static int follow_reference(struct cairn_trace *t, const struct expr_scope *scope,
			    struct probe_value_text *v, struct cairn_err *err)
{
	struct expr *e = v->expr, *deref;
	const struct cairn_type *type =
		cairn_types_get(scope->types, cairn_types_resolve(scope->types, e->type));
	struct recipe recipe;

	if (!scope->sites || e->is_address || v->hex || v->as_string ||
	    (type->kind != CAIRN_T_REF && type->kind != CAIRN_T_RREF) ||
	    !recipe_may_be(scope->types, type->ref))
		return 0;
	uint32_t target = type->ref;
	int r = cairn_sites_complete_type(scope->sites, target, err);
	if (r < 0 || !recipe_of(scope->types, target, &recipe))
		return r;
	deref = arena_alloc(&t->arena, sizeof(*deref));
	if (!deref)
		return err_nomem(err, "a probe");
	*deref = (struct expr){
		.kind = EXPR_DEREF, .at = e->at, .a = e, .is_path = true, .type = target};
	v->expr = deref;
	return 0;
}

static int complete_for_value(struct cairn_trace *t, const struct expr_scope *scope,
			      struct probe_value_text *v, struct cairn_err *err)
{
	int r = follow_reference(t, scope, v, err);

	return r < 0 || v->expr->is_address ? r : complete_recipes(scope, v->expr->type, 0, err);
}

static bool is_text_pointer(const struct cairn_types *types, uint32_t id)
{
	bool is_wide = type_wide_unit(types, id) != 0 &&
		       cairn_types_get(types, cairn_types_resolve(types, id))->kind == CAIRN_T_PTR;

	return is_wide || type_is_char_pointer(types, id);
}

static int describe_value(struct cairn_trace *t, const struct trace_probe *p,
			  struct probe_value_text *v, bool listed, struct cairn_trace_value *ret,
			  struct cairn_err *err)
{
	const struct cairn_types *types = p->pub.types;
	struct expr_scope scope = probe_scope(p);
	int r;

	if (v->is_of_format)
		scope.text = t->format->text;
	r = expr_type_value(&scope, v->expr, err);

	if (r == 0 && v->n_bytes)
		r = expr_type_condition(&scope, v->n_bytes, err);
	if (r == 0 && v->expr->is_path && !v->as_string && !v->n_bytes)
		r = complete_for_value(t, &scope, v, err);
	if (r < 0)
		return r;
	const struct expr *e = v->expr;
	uint8_t unit = v->n_bytes ? 0 : expr_wide_unit(&scope, e, v->is_wide);
	bool pointer =
		e->is_path ? !e->is_address && is_text_pointer(types, e->type) : e->is_text || unit;
	if ((v->as_string || v->n_bytes) && !expr_may_be_string(&scope, e))
		return probe_error(err, -EINVAL, scope.text, e->at,
				   "%s needs a pointer or an "
				   "array",
				   v->n_bytes ? "buf()" : ":str");
	*ret = (struct cairn_trace_value){
		.text = v->text,
		.type = e->is_address ? 0 : e->type,
		.listed = listed && !v->is_of_format,
		.is_string = v->as_string || (pointer && !v->hex && !v->n_bytes),
		.is_bytes = v->n_bytes != NULL,
		.is_number = !e->is_path,
		.is_unsigned = e->is_unsigned,
		.hex = v->hex || (e->is_address && !e->special) || (!e->is_path && e->is_pointer),
		.bit_size = (uint8_t)e->bit_size,
		.unit = e->special == EXPR_DURATION ? "ns" : NULL,
	};
	ret->unit_bytes = ret->is_string ? unit : 0;
	return 0;
}

static bool is_text_of_another(const struct cairn_trace_value *values, uint32_t n, const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(values[i].text, text))
			return true;
	return false;
}

/* Texts are keys in JSON: of "n, n:hex, n" the second is called "n:hex", the third "n (2)". */
static const char *unique_text(struct cairn_trace *t, const struct cairn_trace_value *values,
			       uint32_t n, const struct probe_value_text *v)
{
	const char *text = v->text;

	if (is_text_of_another(values, n, text) && (v->hex || v->as_string))
		text = arena_printf(&t->arena, "%s%s%s", text, v->as_string ? ":str" : "",
				    v->hex ? ":hex" : "");
	for (uint32_t i = 2; text && is_text_of_another(values, n, text); i++)
		text = arena_printf(&t->arena, "%s (%u)", v->text, i);
	return text;
}

/* The number of a hit is an expression like a condition. */
int plan_weight(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	const struct probe_value_text *v = p->text->values;
	struct cairn_trace_value *value = arena_alloc(&t->arena, sizeof(*value));
	const struct expr_scope scope = probe_scope(p);
	unsigned int class;
	int r = 0;

	if (!value)
		return err_nomem(err, "a probe");
	p->n_record = trace_record_class(sizeof(struct trace_record), &class);
	p->pub.values = value;
	p->pub.n_values = p->text->n_values;
	if (p->pub.n_values) {
		*value = (struct cairn_trace_value){.text = v->text, .listed = true};
		r = expr_type_condition(&scope, v->expr, err);
	}
	if (r == 0 && p->text->condition)
		r = expr_type_condition(&scope, p->text->condition, err);
	return r;
}

static uint32_t record_size(const struct trace_probe *p, uint32_t needed)
{
	unsigned int class;

	return p->returns ? returns_class(needed) : trace_record_class(needed, &class);
}

/* What comes after the values, at the end of a record. */
static uint32_t n_end_of_record(const struct cairn_trace *t)
{
	if (t->stacks)
		return sizeof(struct trace_stack_ref);
	return t->opts.shows_calls ? sizeof(struct trace_call_ref) : 0;
}

/* Each takes many operations: where nothing is listed the first are text, the others addresses. */
static void limit_wide(struct cairn_trace_value *v, uint32_t *n_wide)
{
	enum { WIDE_MAX = 5 };

	if (!v->unit_bytes || (*n_wide)++ < WIDE_MAX)
		return;
	v->is_string = false;
	v->unit_bytes = 0;
}

int plan_values(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	uint32_t n_wide = 0;
	enum { MANY_VALUES = 16 };
	struct probe_text *text = (struct probe_text *)p->text;
	/* A line has many variables: those that are listed are fetched. */
	bool is_listed = text->has_list || text->kind == PROBE_OF_PLACE;
	int r = is_listed ? 0 : all_parameters(t, p->pub.function, text, err);

	if (r < 0)
		return r;
	struct cairn_trace_value *values =
		arena_array(&t->arena, text->n_values + 1u, sizeof(*values));
	p->layouts = arena_array(&t->arena, text->n_values + 1u, sizeof(*p->layouts));
	if (!values || !p->layouts)
		return err_nomem(err, "a probe");
	p->pub.values = values;
	p->pub.n_values = text->n_values;
	r = t->opts.shows_calls ? returns_of_calls(t, p, err) : 0;
	for (uint32_t i = 0; i < text->n_values && r == 0; i++) {
		text->values[i].text = unique_text(t, values, i, &text->values[i]);
		if (!text->values[i].text)
			return err_nomem(err, "a probe");
		r = describe_value(t, p, &text->values[i], text->has_list, &values[i], err);
		if (!text->has_list)
			limit_wide(&values[i], &n_wide);
		if (r == 0 && text->values[i].n_bytes)
			r = returns_take_bytes(t, p, &text->values[i], i, err);
		else if (r == 0)
			r = returns_take(t, p, (const struct expr **)&text->values[i].expr, i, err);
		values[i].at_return = returns_needs(text->values[i].expr) ||
				      returns_needs(text->values[i].n_bytes);
	}
	if (r == 0 && t->format)
		r = format_plan(t, p, err);
	if (r < 0)
		return r;
	if (text->condition) {
		const struct expr_scope scope = probe_scope(p);
		r = expr_type_condition(&scope, text->condition, err);
		if (r == 0)
			r = returns_take_condition(t, p, err);
		if (r < 0)
			return r;
	}
	/* Targets are the first to go: many values need the operations, long strings the room. */
	unsigned int targets = p->pub.n_values > MANY_VALUES ? 1 : TARGETS_MAX;
	uint32_t end = n_end_of_record(t), needed = plan_layout(t, p, targets) + end;
	p->n_record = record_size(p, needed);
	while (!p->n_record && targets--) {
		needed = plan_layout(t, p, targets) + end;
		p->n_record = record_size(p, needed);
	}
	if (!p->n_record)
		return err_set(err, -ERANGE,
			       "%s: the values need %u bytes per event, the limit is %d; list "
			       "fewer of them",
			       text->text, needed, p->returns ? 2048 : 4096);
	return 0;
}
