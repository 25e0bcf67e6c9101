/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planning: from a probe to sites and programs
 *
 * A probe determines which values are fetched and the position of each value in its records. Both
 * depend on types only, so they are the same at every site. A site adds how the values get there.
 * So decoding needs to know only which values the site has, and sites whose programs are byte for
 * byte the same share one: the 900 copies of a small function need 10 to 30 programs.
 *
 * The promise "never miss silently" decides which sites are refused: for a hazard, an address
 * outside of the file, and a listed value or a condition that is not available there. A value that
 * was not listed never refuses; it is shown as unavailable with its reason.
 *
 * A value that is a constant at a site is computed here and costs nothing per hit.
 */
#include "trace/trace.h"

#include <errno.h>
#include <string.h>

#include "elf/elf.h"
#include "insn/insn.h"
#include "sites/quirks/icf_args.h"
#include "sites/usdt.h"
#include "trace/aggregate/aggregate.h"
#include "trace/expr/compile.h"
#include "trace/show/format.h"
#include "trace/place/in_kernel.h"
#include "trace/place/move.h"
#include "trace/attach/copies.h"
#include "trace/attach/returns.h"
#include "trace/locate.h"

uint32_t trace_record_class(uint32_t n_bytes, unsigned int *ret_index)
{
#define AS_NUMBER(n) n,
	static const uint32_t classes[] = {TRACE_CLASSES(AS_NUMBER)};

	for (unsigned int i = 0; i < TRACE_N_CLASSES; i++) {
		if (n_bytes > classes[i])
			continue;
		*ret_index = i;
		return classes[i];
	}
	return 0;
}

static uint32_t round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* Bytes of a value that are fetched, and how they are to be read. */
static void lay_out_value(const struct cairn_trace *t, const struct cairn_types *types,
			  const struct expr *e, struct value_layout *l)
{
	uint64_t size = e->is_address || !e->type ? 8 : cairn_types_size(types, e->type);

	if (e->bit_size) {
		l->bit_shift = e->bit_off % 8;
		l->bit_size = (uint8_t)e->bit_size;
		size = (l->bit_shift + e->bit_size + 7) / 8;
	}
	l->cut = size > t->value_bytes;
	l->n_bytes = (uint16_t)(l->cut ? t->value_bytes : size);
}

static uint32_t target_bytes(const struct cairn_trace *t, const struct recipe *recipe)
{
	enum { TARGET_MIN = 16 };
	uint32_t ret = TARGET_MIN;

	if (recipe->kind == RECIPE_TEXT)
		return t->string_bytes;
	/* A quarter of the limit of a struct: there may be several. */
	while (ret < t->value_bytes / 4)
		ret *= 2;
	return ret;
}

/*
 * Lays out room for the targets of a value's recipes, after its own bytes; returns the bytes of
 * all. *@left targets are still allowed.
 */
static uint32_t lay_out_targets(struct cairn_trace *t, const struct cairn_trace_value *v,
				const struct cairn_types *types, uint32_t out, unsigned int *left,
				struct value_layout *l)
{
	struct recipe_at found[TARGETS_MAX];
	unsigned int n =
		v->type && !v->hex && !l->bit_size ? recipe_all(types, v->type, found, *left) : 0;
	struct target_layout *targets = n ? arena_array(&t->arena, n, sizeof(*targets)) : NULL;
	uint32_t at = round_up(out + l->n_bytes, 8);

	l->n_targets = 0;
	for (unsigned int i = 0; i < n && targets; i++) {
		uint32_t bytes = target_bytes(t, &found[i].recipe);
		if (found[i].off + found[i].recipe.size > l->n_bytes)
			break;
		targets[i] = (struct target_layout){
			.is = found[i],
			.out = (uint16_t)at,
			.n_shown = (uint16_t)(found[i].recipe.kind == RECIPE_TEXT ? t->string_shown
										  : bytes),
			.log = (uint8_t)__builtin_ctz(bytes),
		};
		l->n_targets++;
		at += bytes;
	}
	l->targets = targets;
	l->state = (uint16_t)at;
	*left -= l->n_targets;
	return l->n_targets ? at + 8 - out : l->n_bytes;
}

/* A string of wide characters, with its head; returns the bytes of both. */
static uint32_t lay_out_wide(const struct cairn_trace *t, const struct probe_value_text *v,
			     uint8_t unit, struct value_layout *l)
{
	uint32_t shown = v->most ? v->most : t->string_shown, room = STRING_BYTES_MIN;

	while (room / unit <= shown && room < FETCHED_MAX)
		room *= 2;
	shown = shown < room / unit ? shown : room / unit - 1;
	l->unit = unit;
	l->n_bytes = (uint16_t)room;
	l->n_shown = (uint16_t)(shown * unit);
	return room + BYTES_HEAD;
}

/* A string, or bytes, with their head; returns the bytes of both. */
static uint32_t lay_out_text(const struct cairn_trace *t, const struct probe_value_text *v,
			     struct value_layout *l)
{
	uint32_t shown = v->most ? v->most : t->string_shown, room = STRING_BYTES_MIN;

	if (v->n_bytes)
		shown = t->value_bytes;
	while (room <= shown && room < FETCHED_MAX)
		room *= 2;
	l->n_bytes = (uint16_t)room;
	l->n_shown = (uint16_t)shown;
	return room + (v->n_bytes ? BYTES_HEAD : STRING_POINTER_BYTES + STRING_LENGTH_BYTES);
}

/* Sites each value in the record; returns the bytes needed. */
static uint32_t lay_out(struct cairn_trace *t, struct trace_probe *p, unsigned int targets)
{
	uint32_t at = sizeof(struct trace_record);

	for (uint32_t i = 0; i < p->pub.n_values; i++) {
		struct value_layout *l = &p->layouts[i];
		uint32_t room;
		if (p->pub.values[i].is_string || p->pub.values[i].is_bytes) {
			uint8_t unit = p->pub.values[i].unit_bytes;
			room = unit ? lay_out_wide(t, &p->text->values[i], unit, l)
				    : lay_out_text(t, &p->text->values[i], l);
			at = round_up(at, 8);
		} else {
			lay_out_value(t, p->pub.types, p->text->values[i].expr, l);
			room = p->pub.values[i].is_number ? 8 : l->n_bytes;
			at = round_up(at, room >= 8 ? 8 : room > 2 ? 4 : room ? room : 1);
			if (!p->pub.values[i].is_number)
				room = lay_out_targets(t, &p->pub.values[i], p->pub.types, at,
						       &targets, l);
		}
		l->out = (uint16_t)at;
		at += room;
		if (at > UINT16_MAX)
			return at;
	}
	return at;
}

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
static int plan_weight(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
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

static int plan_values(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
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
	uint32_t end = n_end_of_record(t), needed = lay_out(t, p, targets) + end;
	p->n_record = record_size(p, needed);
	while (!p->n_record && targets--) {
		needed = lay_out(t, p, targets) + end;
		p->n_record = record_size(p, needed);
	}
	if (!p->n_record)
		return err_set(err, -ERANGE,
			       "%s: the values need %u bytes per event, the limit is %d; list "
			       "fewer of them",
			       text->text, needed, p->returns ? 2048 : 4096);
	return 0;
}

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
static int intern_program(struct cairn_trace *t, const struct fetch_program *p, bool has_condition,
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
static const struct expr *first_condition(const struct trace_probe *p)
{
	return p->returns ? p->returns->at_entry : p->text->condition;
}

/*
 * The program for a site, in its present state; a refused site keeps its reason. If its calls are
 * followed, it is the part of the entry.
 */
static int compile_site(struct cairn_trace *t, struct trace_probe *p, struct trace_site *planned,
			struct fetch_program *program, struct cairn_err *err)
{
	struct compiler c = compiler_of(p, planned, program);
	int r = 0;

	compile_if(t, p, planned, &c, first_condition(p));
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
static int compile_return(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
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

/*
 * True if reaching the site is no call of its own: a split part, or a call that was merged with
 * another one, which has a site.
 */
static bool is_no_call(const struct cairn_site *site)
{
	return site->kind == CAIRN_SITE_PART || site->count_caveats & CAIRN_COUNT_MERGED;
}

/* Not from the debug information, which took over when a sidecar did not know something. */
static bool is_from_sidecar(const struct trace_file *f)
{
	return f->sidecar && !f->sidecar_sites;
}

/*
 * Whatever the source of the site: an instruction must begin there, in the mapped file, and it must
 * be the described one.
 */
static void check_code(const struct trace_probe *p, struct trace_site *site)
{
	struct trace_file *f = p->file;

	/* What describes a kernel was compared with what runs, and need not have its code. */
	if (f->kernel)
		return;
	if (is_from_sidecar(f) && !cairn_sidecar_is_bound(f->sidecar))
		site->pub.refused =
			"the sidecar is unbound: it was made of a debug file alone, and cannot be "
			"compared with the code here; make it with: cairn sidecar PROGRAM";
	if (site->pub.refused)
		return;
	if (boundary_at(&f->walk, f->bin, f->mover, site->pub.at) == BOUNDARY_NO)
		site->pub.refused = cairn_hazard_text(CAIRN_HAZARD_NOT_A_BOUNDARY);
	else if (is_from_sidecar(f) && !cairn_sidecar_covers(f->sidecar, site->pub.at))
		site->pub.refused = "the sidecar is of another file: the code there differs";
}

/* A program may compute arguments, or come past a probe at all, only with its semaphore set. */
static void plan_semaphore(const struct trace_probe *p, const struct cairn_site *site,
			   struct trace_site *planned)
{
	uint64_t at = p->semaphores ? p->semaphores[site - p->pub.function->sites] : 0;

	if (at == USDT_SEMAPHORE_NOWHERE)
		planned->pub.refused =
			"its semaphore is not in the file, so the kernel cannot set it";
	else
		planned->semaphore = at;
}

/*
 * Linux 6.18 makes a call of a 5-byte nop, to a page that children do not inherit:
 * docs/findings/uprobe-nop5-ends-children.md. insn_uprobe() knows such nops by their hazard.
 */
static void judge_insn(struct trace_site *planned, struct insn_uprobe probe)
{
	planned->is_long_nop = probe.hazard == CAIRN_HAZARD_NOP5_RED_ZONE;
	planned->pub.emulated = probe.emulated;
	if (planned->is_long_nop && !planned->pub.refused)
		planned->pub.refused =
			"a probe on this 5-byte nop ends children that the program forks";
}

/* False: the site is left out. */
static bool plan_site(const struct trace_probe *p, const struct cairn_site *site, bool best_effort,
		      struct trace_site *planned)
{
	const uint8_t *code;
	size_t n_code;

	if (p->file->kernel)
		return in_kernel_plan(p, site, best_effort, planned);
	planned->pub.site = site;
	planned->pub.at = site->at;
	planned->pub.off = site->off;
	plan_semaphore(p, site, planned);
	if (!site->has_off)
		planned->pub.refused = "its address is not in the file";
	else if (site->hazard != CAIRN_HAZARD_NONE)
		planned->pub.refused = cairn_hazard_text(site->hazard);
	else if (site->count_caveats & CAIRN_COUNT_NO_ENTRY && !best_effort)
		planned->pub.refused = cairn_count_caveat_text(CAIRN_COUNT_NO_ENTRY);
	if (elf_code_at(binary_main(p->file->bin), site->at, &code, &n_code))
		judge_insn(planned, insn_uprobe(code, n_code));
	else if (!planned->pub.refused)
		planned->pub.refused = cairn_hazard_text(CAIRN_HAZARD_NOT_A_BOUNDARY);
	return true;
}

/* A planned that is refused for nothing but the instruction that stands there. */
static bool may_move_off(const struct cairn_trace *t, const struct trace_site *planned)
{
	const struct cairn_site *site = planned->pub.site;

	return site->has_off && (site->hazard != CAIRN_HAZARD_NONE || planned->is_long_nop) &&
	       site->hazard != CAIRN_HAZARD_NOT_A_BOUNDARY && site->hazard != CAIRN_HAZARD_TRAP &&
	       (t->opts.best_effort || !(site->count_caveats & CAIRN_COUNT_NO_ENTRY));
}

static int move_site(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
		     struct cairn_err *err)
{
	const char *refused = site->pub.refused;
	struct fetch_program program;

	/* A return probe needs the return address where the entry has it. */
	if (site->follows || (refused ? !may_move_off(t, site) : site->pub.emulated))
		return 0;
	site->pub.refused = NULL;
	int r = compile_site(t, p, site, &program, err);
	if (r == 0 && !site->pub.refused && mover_add(p->file->mover, site, &program) < 0)
		r = err_nomem(err, "moving probes");
	/* Until it has been moved. */
	if (refused)
		site->pub.refused = refused;
	return r;
}

/*
 * If it is exact, probes go to instructions that the kernel need not single-step, and off those
 * with a hazard.
 */
static int move_sites(struct cairn_trace *t, struct trace_probe *p, uint32_t n,
		      struct cairn_err *err)
{
	if (!p->file->mover || t->opts.no_move)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		int r = move_site(t, p, &p->sites[i], err);
		if (r < 0)
			return r;
	}
	mover_finish(p->file->mover);
	return 0;
}

static int finish_site(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
		       struct cairn_err *err)
{
	struct fetch_program program;
	int r = compile_site(t, p, site, &program, err);

	if (r == 0 && !site->pub.refused)
		r = intern_program(t, &program, first_condition(p) != NULL, &site->pub.program,
				   err);
	if (r == 0 && site->follows)
		r = compile_return(t, p, site, &program, err);
	if (r == 0 && site->follows && !site->pub.refused)
		r = intern_program(t, &program, p->returns->at_return != NULL,
				   &site->return_program, err);
	if (r < 0)
		return r;
	p->pub.n_ready += !site->pub.refused;
	p->pub.n_refused += site->pub.refused != NULL;
	return VEC_ADD(&t->sites, site) ? 0 : err_nomem(err, "sites");
}

/* One call passes all sites that are one, and makes one event: that of the first. */
static bool is_another_name_of_the_same(const struct cairn_function *f, uint32_t i)
{
	for (uint32_t k = i; k-- > 0 && f->sites[k].at.v == f->sites[i].at.v;)
		if (!is_no_call(&f->sites[k]) && icf_args_are_one_call(&f->sites[k], &f->sites[i]))
			return true;
	return false;
}

static int plan_sites(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	const struct cairn_function *f = p->pub.function;
	uint32_t n = 0;

	if (f->n_sites > TRACE_SITES_MAX - t->sites.n)
		return err_set(err, -ERANGE, "%s has %u sites; a trace has at most %u sites",
			       f->name, f->n_sites, TRACE_SITES_MAX);
	p->sites = arena_array(&t->arena, f->n_sites + 1u, sizeof(*p->sites));
	if (!p->sites)
		return err_nomem(err, "sites");
	p->pub.first_site = (uint32_t)t->sites.n;
	/* A file with damaged unwind tables can be traced, but nothing in it moved. */
	if (!p->file->kernel && !p->file->mover &&
	    mover_new(p->file->bin, &p->file->mover, NULL) < 0)
		p->file->mover = NULL;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		if (is_no_call(&f->sites[i]) || is_another_name_of_the_same(f, i))
			continue;
		p->sites[n].pub.probe = (uint32_t)t->probes.n;
		if (!plan_site(p, &f->sites[i], t->opts.best_effort, &p->sites[n])) {
			p->pub.n_left_out++;
			continue;
		}
		check_code(p, &p->sites[n]);
		if (returns_plan_site(t, p, &p->sites[n++], err) < 0)
			return -ENOMEM;
	}
	p->pub.n_sites = n;
	int r = p->file->kernel ? in_kernel_check_sites(t, p, err) : 0;
	if (r < 0)
		return r;
	if (!n)
		return err_set(err, -ENXIO,
			       "%s has no code: no body and no inlined copy is left of it",
			       f->name);
	r = move_sites(t, p, n, err);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		/* At the moved site, the code may belong to another page. */
		if (p->sites[i].pub.at.v != p->sites[i].pub.site->at.v)
			check_code(p, &p->sites[i]);
		r = finish_site(t, p, &p->sites[i], err);
	}
	return r;
}

/* What hits have. */
static int plan_contents(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	if (t->aggregates)
		return aggregate_plan_probe(t, p, err);
	if (t->weighs)
		return plan_weight(t, p, err);
	if (!t->locates)
		return plan_values(t, p, err);
	unsigned int class;
	p->n_record = trace_record_class(sizeof(struct trace_record), &class);
	return locate_plan(t, p, err);
}

int plan_probe(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	size_t sites = t->sites.n;
	int r = plan_contents(t, p, err);

	if (r == 0)
		r = plan_sites(t, p, err);
	/* Unused programs stay; they are harmless. */
	if (r < 0)
		t->sites.n = sites;
	return r;
}
