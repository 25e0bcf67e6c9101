/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planning aggregates
 *
 * The texts are parsed twice: once without types, when they are given, so that mistakes are found
 * before any file is read; and again for every probe, as the meaning of an expression depends on
 * the function. What does not depend on it is laid out at once: in a slot (abi.h) the numbers come
 * first, then the header of the key, then what the kernel knows ($pid and the like), and last the
 * values, which have other sizes in each function. The rest of a shorter key is zeroes.
 */
#include "trace/aggregate/aggregate.h"

#include <errno.h>
#include <string.h>

#include <cairn/text.h>

#include "base/opts.h"
#include "decode/recipe.h"
#include "trace/quantile.h"
#include "trace/attach/returns.h"
#include "trace/stacks/stacks.h"

static uint32_t round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- the texts ---- */

static const struct {
	const char *name;
	enum key_kind kind;
	uint32_t size;
} known_keys[] = {
	{"$pid", KEY_PID, 4},      {"$tid", KEY_TID, 4},        {"$comm", KEY_COMM, 16},
	{"$cpu", KEY_CPU, 4},      {"$cgroup", KEY_CGROUP, 8},  {"$site", KEY_SITE, 4},
	{"$stack", KEY_STACK, 16}, {"$caller", KEY_CALLER, 16},
};

static int unknown_key(const char *by, const struct expr *e, struct cairn_err *err)
{
	return probe_error(err, -EINVAL, by, e->at,
			   "there is no %s; there are $pid, $tid, $comm, $cpu, $uid, $gid, "
			   "$cgroup, $site, $caller, $stack, $ret and $duration",
			   e->name);
}

/* Positions what the kernel knows; *@at is where it goes. */
static int lay_out_known(struct aggregate_key *key, const char *by,
			 const struct probe_value_text *v, uint32_t *at, struct cairn_err *err)
{
	for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++) {
		if (strcmp(known_keys[i].name, v->expr->name))
			continue;
		if (v->as_string || v->hex)
			return probe_error(err, -EINVAL, by, v->expr->at,
					   "%s takes no :str and no :hex", v->expr->name);
		key->kind = known_keys[i].kind;
		key->out = round_up(*at, known_keys[i].size < 8 ? 4 : 8);
		*at = key->out + known_keys[i].size;
		return 0;
	}
	return unknown_key(by, v->expr, err);
}

/*
 * $arg1 and so on are a USDT probe's, $ret and $duration a call's; $uid and $gid are values as in
 * any expression.
 */
static bool is_value(const char *name)
{
	static const char *const values[] = {"$ret", "$duration", "$uid", "$gid"};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (!strcmp(name, values[i]))
			return true;
	return !strncmp(name, "$arg", strlen("$arg"));
}

static bool is_of_kernel(const struct expr *e)
{
	return e->kind == EXPR_NAME && e->name[0] == '$' && !is_value(e->name);
}

static int take_key(struct aggregates *a, const struct probe_value_text *v, uint32_t *at,
		    struct cairn_err *err)
{
	struct aggregate_key *key = &a->keys[a->n_keys];

	key->text = v->text;
	for (uint32_t i = 0; i < a->n_keys; i++)
		if (!strcmp(a->keys[i].text, v->text))
			return probe_error(err, -EINVAL, a->by, v->expr->at, "%s is a key already",
					   v->text);
	a->n_keys++;
	if (is_of_kernel(v->expr))
		return lay_out_known(key, a->by, v, at, err);
	key->kind = KEY_VALUE;
	key->value = a->n_values++;
	return 0;
}

static bool has_key(const struct aggregates *a, enum key_kind kind)
{
	for (uint32_t i = 0; i < a->n_keys; i++)
		if (a->keys[i].kind == kind)
			return true;
	return false;
}

static int want_stacks(struct cairn_trace *t, const struct aggregates *a, struct cairn_err *err)
{
	bool whole = has_key(a, KEY_STACK), caller = has_key(a, KEY_CALLER);

	if (whole && caller)
		return err_set(err, -EINVAL, "%s: $stack has the caller; name one of them", a->by);
	if (t->stacks && !whole)
		return err_set(
			err, -EINVAL,
			"hits that are summed up have no stacks of their own; the key $stack "
			"counts by stack");
	if (t->stacks || (!whole && !caller))
		return 0;
	return stacks_want(t, whole ? STACKS_WHOLE : STACKS_CALLER, 0, err);
}

static int take_keys(struct cairn_trace *t, struct aggregates *a, struct cairn_err *err)
{
	struct probe_value_text values[AGGREGATE_KEYS_MAX];
	uint32_t n = 0, at = 8 * a->n_numbers + AGGREGATE_HEADER;
	int r = a->by ? probe_parse_keys(&t->arena, a->by, AGGREGATE_KEYS_MAX, values, &n, err) : 0;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = take_key(a, &values[i], &at, err);
	if (r == 0)
		r = want_stacks(t, a, err);
	a->values_at = a->by ? round_up(at, 8) : 8 * a->n_numbers;
	a->n_slot = a->values_at;
	return r;
}

/* For "n,0,100,7": the next TO that is FROM plus whole steps. */
static int check_range(const struct aggregate_item *item, struct cairn_err *err)
{
	int64_t from = item->range[0], to = item->range[1], step = item->range[2];
	uint64_t length = (uint64_t)to - (uint64_t)from;
	const char *wrong = from >= to ? "TO must be larger than FROM" : NULL;

	if (!wrong && step <= 0)
		wrong = "STEP must be at least 1";
	if (wrong)
		return err_set(err, -EINVAL, "%s: in EXPR,FROM,TO,STEP %s", item->given, wrong);
	if (length / (uint64_t)step > AGGREGATE_STEPS_MAX)
		return err_set(err, -ERANGE, "%s: %llu steps, the limit is %d; take a longer STEP",
			       item->given, (unsigned long long)(length / (uint64_t)step),
			       AGGREGATE_STEPS_MAX);
	if (length % (uint64_t)step)
		return err_set(
			err, -EINVAL, "%s: TO is not FROM and whole steps; write %s,%lld,%lld,%lld",
			item->given, item->text, (long long)from,
			(long long)(to - (int64_t)(length % (uint64_t)step)), (long long)step);
	return 0;
}

/* Numbers of the same text are one. */
static uint32_t number_of(struct aggregates *a, const struct aggregate_item *item, bool has_range)
{
	for (uint32_t i = 0; &a->items[i] != item; i++)
		if (a->items[i].text && !strcmp(a->items[i].text, item->text))
			return a->items[i].number;
	a->numbers[a->n_numbers] = item->given;
	a->has_range[a->n_numbers] = has_range;
	return a->n_numbers++;
}

static bool is_there(const struct aggregates *a, const struct aggregate_item *item)
{
	for (const struct aggregate_item *i = a->items; i != item; i++)
		if (i->kind == item->kind && (!i->text || !strcmp(i->text, item->text)))
			return true;
	return false;
}

static int take_item(struct cairn_trace *t, struct aggregates *a,
		     const struct cairn_aggregate *from, struct cairn_err *err)
{
	struct aggregate_item *item = &a->items[a->n_items++];
	bool has_range = from->kind == CAIRN_AGGREGATE_LHIST;
	struct probe_value_text v = {0};

	item->kind = from->kind;
	if (from->kind == CAIRN_AGGREGATE_COUNT)
		return is_there(a, item) ? err_set(err, -EINVAL, "the count is asked for twice")
					 : 0;
	item->given = arena_strdup(&t->arena, from->text ? from->text : "");
	if (!item->given)
		return err_nomem(err, "aggregates");
	int r = probe_parse_number(&t->arena, item->given, has_range ? item->range : NULL, &v, err);
	if (r < 0)
		return r;
	item->text = v.text;
	if (is_there(a, item))
		return err_set(err, -EINVAL, "%s: the same is asked for twice", item->given);
	if (has_range)
		r = check_range(item, err);
	item->number = number_of(a, item, has_range);
	return r;
}

static int take_all(struct cairn_trace *t, const struct cairn_aggregate_opts *opts,
		    struct aggregates *a, struct cairn_err *err)
{
	int r = 0;

	if (!opts->n_items || opts->n_items > TRACE_UPDATES_MAX)
		return err_set(err, -ERANGE, "1 to %d aggregates can be asked for, not %zu",
			       TRACE_UPDATES_MAX, opts->n_items);
	for (size_t i = 0; i < opts->n_items && r == 0; i++)
		r = take_item(t, a, &opts->items[i], err);
	if (r == 0 && opts->by && !(a->by = arena_strdup(&t->arena, opts->by)))
		r = err_nomem(err, "aggregates");
	return r == 0 ? take_keys(t, a, err) : r;
}

static uint32_t default_keys(const struct cairn_aggregate_opts *opts)
{
	for (size_t i = 0; i < opts->n_items; i++)
		if (opts->items[i].kind == CAIRN_AGGREGATE_QUANTILES)
			return AGGREGATE_KEYS_OF_QUANTILES;
	return AGGREGATE_KEYS_DEFAULT;
}

int cairn_trace_aggregate(struct cairn_trace *t, const struct cairn_aggregate_opts *opts,
			  struct cairn_err *err)
{
	struct cairn_aggregate_opts taken;
	struct aggregates *a = arena_alloc(&t->arena, sizeof(*a));
	int r = opts_take(&taken, sizeof(taken), opts, err);

	if (r < 0)
		return r;
	if (!a)
		return err_nomem(err, "aggregates");
	if (t->probes.n || t->aggregates)
		return err_set(err, -EINVAL, "aggregates are set once, before probes are added");
	a->max_keys = taken.max_keys ? taken.max_keys : default_keys(&taken);
	a->clears = taken.clears;
	r = take_all(t, &taken, a, err);
	if (r == 0)
		t->aggregates = a;
	return r;
}

/* ---- a probe's expressions ---- */

/* The scope of an aggregate's text. */
static struct expr_scope scope_of(const struct trace_probe *p, const char *text)
{
	struct expr_scope scope = probe_scope(p);

	scope.text = text;
	scope.part_of = "an aggregate";
	return scope;
}

static int plan_number(struct cairn_trace *t, struct trace_probe *p, uint32_t number,
		       struct cairn_trace_value *value, struct cairn_err *err)
{
	struct aggregates *a = t->aggregates;
	const struct expr_scope scope = scope_of(p, a->numbers[number]);
	struct probe_value_text v = {0};
	int64_t range[3];
	int r = probe_parse_number(&t->arena, scope.text, a->has_range[number] ? range : NULL, &v,
				   err);

	if (r == 0)
		r = expr_type_condition(&scope, v.expr, err);
	if (r < 0)
		return r;
	*value = (struct cairn_trace_value){.text = v.text, .listed = true};
	p->parts[number] = (struct aggregate_part){
		.kind = PART_NUMBER, .expr = v.expr, .out = (uint16_t)(8 * number), .n_bytes = 8};
	for (uint32_t i = 0; i < a->n_items; i++) {
		bool is_signed =
			a->items[i].text && a->items[i].number == number && !v.expr->is_unsigned;
		p->is_signed |= (uint8_t)(is_signed << i);
		a->any_signed[i] |= is_signed;
	}
	return 0;
}

/* The replacement for a value of this kind of type, in a key; NULL: nothing is wrong. */
static const char *why_no_key(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *type = cairn_types_get(types, cairn_types_resolve(types, id));

	switch (type->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_FLOAT:
		return type->size && type->size <= 8 ? NULL : "has more than 8 bytes";
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		return "is a reference; write * before it for what it refers to";
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		return "has members; name one of them";
	case CAIRN_T_ARRAY:
		return "is an array; name one of its elements";
	default:
		return "has no value";
	}
}

static bool is_text(const struct cairn_types *types, const struct probe_value_text *v)
{
	if (v->as_string)
		return true;
	return !v->expr->is_address && !v->hex &&
	       (type_is_char_pointer(types, v->expr->type) ||
		type_is_char_array(types, v->expr->type));
}

static void lay_out_string(const struct cairn_trace *t, const struct cairn_types *types,
			   const struct expr *e, struct aggregate_part *part)
{
	enum { STRING_MIN = 16 };
	uint64_t size = e->is_address ? 0 : cairn_types_size(types, e->type);
	uint32_t most = t->string_bytes;

	part->kind = PART_STRING;
	part->n_shown = (uint16_t)t->string_shown;
	if (!e->is_address && type_is_char_array(types, e->type) && size && size < most) {
		/* The bytes after an array without a NUL are not shown. */
		part->n_shown = size < part->n_shown ? (uint16_t)size : part->n_shown;
		for (most = STRING_MIN; most < size;)
			most *= 2;
	}
	part->n_bytes = (uint16_t)most;
}

static int lay_out_path(struct cairn_trace *t, const struct expr_scope *scope,
			const struct probe_value_text *v, struct aggregate_part *part,
			struct cairn_err *err)
{
	const struct cairn_types *types = scope->types;
	const struct expr *e = v->expr;
	char name[120];

	int is_counted = v->as_string || v->hex ? 0 : expr_may_be_text(scope, e, err);

	if (is_counted < 0)
		return is_counted;
	if (is_counted || is_text(types, v)) {
		lay_out_string(t, types, e, part);
		part->is_counted = is_counted;
		return 0;
	}
	const char *why = e->is_address ? NULL : why_no_key(types, e->type);
	if (why) {
		cairn_types_name(types, e->type, name, sizeof(name));
		return probe_error(err, -EINVAL, scope->text, e->at, "%s cannot be a key: it %s",
				   name, why);
	}
	part->kind = PART_TYPED;
	part->n_bytes =
		e->is_address || e->bit_size ? 8 : (uint16_t)cairn_types_size(types, e->type);
	return 0;
}

/* A number, or with :str and str() what is at that address. */
static void lay_out_number(const struct cairn_trace *t, const struct probe_value_text *v,
			   struct aggregate_part *part)
{
	part->kind = PART_NUMBER;
	part->n_bytes = 8;
	if (!v->as_string && !v->expr->is_text)
		return;
	part->kind = PART_STRING;
	part->n_shown = (uint16_t)t->string_shown;
	part->n_bytes = (uint16_t)t->string_bytes;
}

static bool is_wide_text(const struct expr_scope *scope, const struct probe_value_text *v)
{
	const struct expr *e = v->expr;
	bool is_address = e->is_path && e->is_address && !v->as_string;

	return !is_address && expr_wide_unit(scope, e, v->is_wide);
}

static int check_key(const struct expr_scope *scope, const struct probe_value_text *v,
		     struct cairn_err *err)
{
	int r = expr_type_key(scope, v->expr, err);

	if (r < 0)
		return r;
	if (v->n_bytes)
		return probe_error(err, -EINVAL, scope->text, v->expr->at,
				   "buf() is no key; str() is, or a number");
	if (v->most)
		return probe_error(err, -EINVAL, scope->text, v->expr->at,
				   "strings of keys are as long as --str-len says: write str(p)");
	if (v->as_string && !expr_may_be_string(scope, v->expr))
		return probe_error(err, -EINVAL, scope->text, v->expr->at,
				   ":str needs a pointer or an array");
	if (!v->hex && is_wide_text(scope, v))
		return probe_error(err, -EINVAL, scope->text, v->expr->at,
				   "a string of wide characters cannot be a key: the kernel finds "
				   "no end of it; p[0] is its first character, and :hex its "
				   "address");
	return 0;
}

static int plan_key(struct cairn_trace *t, const struct expr_scope *scope,
		    const struct probe_value_text *v, struct aggregate_part *part,
		    struct cairn_trace_value *value, struct cairn_err *err)
{
	const struct expr *e = v->expr;
	int r = check_key(scope, v, err);

	if (r == 0 && e->is_path)
		r = lay_out_path(t, scope, v, part, err);
	else if (r == 0)
		lay_out_number(t, v, part);
	part->expr = e;
	*value = (struct cairn_trace_value){
		.text = v->text,
		.type = e->is_address ? 0 : e->type,
		.listed = true,
		.is_number = !e->is_path,
		.is_unsigned = e->is_unsigned,
		.is_string = part->kind == PART_STRING,
		.hex = v->hex || (e->is_address && !e->special) || (!e->is_path && e->is_pointer),
		.unit = e->special == EXPR_DURATION ? "ns" : NULL,
		.bit_size = e->is_path ? (uint8_t)e->bit_size : 0,
	};
	return r;
}

/* Positions a value of the key at *@at. */
static void place(struct aggregate_part *part, uint32_t *at)
{
	uint32_t align = part->kind == PART_STRING ? 4 : part->n_bytes;
	uint32_t room = part->n_bytes + (part->kind == PART_STRING ? sizeof(struct key_string) : 0);

	while (align & (align - 1))
		align &= align - 1;
	*at = round_up(*at, align ? align : 1);
	part->out = (uint16_t)*at;
	*at += room;
}

static int plan_keys(struct cairn_trace *t, struct trace_probe *p, struct cairn_trace_value *values,
		     struct cairn_err *err)
{
	struct aggregates *a = t->aggregates;
	const struct expr_scope scope = scope_of(p, a->by);
	struct probe_value_text texts[AGGREGATE_KEYS_MAX];
	uint32_t n = 0, at = a->values_at;
	int r = a->by ? probe_parse_keys(&t->arena, a->by, AGGREGATE_KEYS_MAX, texts, &n, err) : 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		uint32_t value = a->n_numbers + a->keys[i].value;
		if (a->keys[i].kind != KEY_VALUE)
			continue;
		r = plan_key(t, &scope, &texts[i], &p->parts[value], &values[value], err);
		place(&p->parts[value], &at);
	}
	at = round_up(at, 8);
	if (r == 0 && at > AGGREGATE_SLOT_MAX)
		return err_set(err, -ERANGE,
			       "%s: the keys and numbers need %u bytes, the limit is %d; "
			       "--str-len makes strings shorter",
			       p->text->text, at, AGGREGATE_SLOT_MAX);
	a->n_slot = at > a->n_slot ? at : a->n_slot;
	return r;
}

static int check_probe(const struct trace_probe *p, struct cairn_err *err)
{
	const struct probe_text *text = p->text;

	if (!text->n_values)
		return 0;
	return probe_error(
		err, -EINVAL, text->text, text->values[0].expr->at,
		"hits that are summed up show no arguments; name this one in --by, --sum "
		"or the like");
}

int aggregate_plan_probe(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err)
{
	const struct aggregates *a = t->aggregates;
	uint32_t n = a->n_numbers + a->n_values;
	struct cairn_trace_value *values = arena_array(&t->arena, n + 1u, sizeof(*values));
	int r = check_probe(p, err);

	p->parts = arena_array(&t->arena, n + 1u, sizeof(*p->parts));
	if (!values || !p->parts)
		return err_nomem(err, "a probe");
	p->pub.values = values;
	p->pub.n_values = n;
	p->n_record = AGGREGATE_SLOT_MAX;
	for (uint32_t i = 0; i < a->n_numbers && r == 0; i++)
		r = plan_number(t, p, i, &values[i], err);
	if (r == 0)
		r = plan_keys(t, p, values, err);
	if (r == 0 && p->text->condition) {
		struct expr_scope scope = scope_of(p, p->text->text);
		scope.part_of = NULL;
		r = expr_type_condition(&scope, p->text->condition, err);
	}
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = returns_take(t, p, &p->parts[i].expr, i, err);
	return r == 0 ? returns_take_condition(t, p, err) : r;
}

enum cairn_unavailable aggregate_compile(const struct trace_probe *p, struct compiler *c,
					 uint32_t value)
{
	const struct aggregate_part *part = &p->parts[value];

	if (part->is_counted)
		return compile_key_text(c, part->expr, part->out,
					(uint32_t)__builtin_ctz(part->n_bytes), part->n_shown,
					value);
	switch (part->kind) {
	case PART_NUMBER:
		return compile_number(c, part->expr, part->out, value);
	case PART_TYPED:
		return compile_key(c, part->expr, part->out, part->n_bytes, value);
	case PART_STRING:
		break;
	}
	return compile_key_string(c, part->expr, part->out, (uint32_t)__builtin_ctz(part->n_bytes),
				  value);
}

/* ---- what the kernel is told ---- */

static uint32_t update_kind(enum cairn_aggregate_kind kind)
{
	static const uint8_t kinds[] = {
		[CAIRN_AGGREGATE_COUNT] = TRACE_UPDATE_NONE,
		[CAIRN_AGGREGATE_SUM] = TRACE_UPDATE_SUM,
		[CAIRN_AGGREGATE_AVG] = TRACE_UPDATE_SUM,
		[CAIRN_AGGREGATE_MIN] = TRACE_UPDATE_MIN,
		[CAIRN_AGGREGATE_MAX] = TRACE_UPDATE_MAX,
		[CAIRN_AGGREGATE_HIST] = TRACE_UPDATE_HIST,
		[CAIRN_AGGREGATE_LHIST] = TRACE_UPDATE_LHIST,
		[CAIRN_AGGREGATE_QUANTILES] = TRACE_UPDATE_QUANTILES,
	};

	return kinds[kind];
}

/* Cells after the one of unreadable numbers. */
static uint32_t lay_out_update(const struct aggregate_item *item, bool any_signed,
			       struct trace_update *u)
{
	*u = (struct trace_update){.kind = update_kind(item->kind), .number = item->number};
	switch (u->kind) {
	case TRACE_UPDATE_SUM:
		return 2;
	case TRACE_UPDATE_HIST:
		u->n_below = any_signed ? 64 : 0;
		u->n_buckets = u->n_below + 1 + 64;
		return u->n_buckets;
	case TRACE_UPDATE_LHIST:
		u->from = item->range[0];
		u->step = (uint64_t)item->range[2];
		u->n_buckets =
			2 + (uint32_t)(((uint64_t)item->range[1] - (uint64_t)u->from) / u->step);
		return u->n_buckets;
	case TRACE_UPDATE_QUANTILES:
		u->n_below = any_signed ? QUANTILE_BELOW : 0;
		u->n_buckets = u->n_below + QUANTILE_BUCKETS;
		return 1 + u->n_buckets;
	}
	return 1;
}

static void tell_known_keys(const struct aggregates *a, struct trace_aggregate_plan *plan)
{
	uint32_t *const offsets[] = {
		[KEY_PID] = &plan->pid,     [KEY_TID] = &plan->tid,       [KEY_COMM] = &plan->comm,
		[KEY_CPU] = &plan->cpu,     [KEY_CGROUP] = &plan->cgroup, [KEY_SITE] = &plan->site,
		[KEY_STACK] = &plan->stack, [KEY_CALLER] = &plan->stack,
	};

	for (uint32_t i = 0; i < a->n_keys; i++)
		if (a->keys[i].kind != KEY_VALUE)
			*offsets[a->keys[i].kind] = a->keys[i].out;
}

int aggregates_finish(struct cairn_trace *t, struct cairn_err *err)
{
	struct aggregates *a = t->aggregates;
	struct trace_aggregate_plan *plan = &a->plan;
	uint32_t n_record = AGGREGATE_SLOT_MIN;

	*plan = (struct trace_aggregate_plan){.n_numbers = a->n_numbers,
					      .n_key = a->by ? a->n_slot - 8 * a->n_numbers : 0,
					      .n_cells = 1,
					      .n_values = a->n_values,
					      .has_known = a->n_keys > a->n_values,
					      .n_probes = (uint32_t)t->probes.n};
	tell_known_keys(a, plan);
	for (uint32_t i = 0; i < a->n_items; i++) {
		struct trace_update *u = &plan->updates[i];
		uint32_t n = lay_out_update(&a->items[i], a->any_signed[i], u);
		u->cell = plan->n_cells;
		plan->n_cells += u->kind == TRACE_UPDATE_NONE ? 0 : 1 + n;
	}
	if (plan->n_cells > AGGREGATE_CELLS_MAX)
		return err_set(err, -ERANGE,
			       "the histograms have %u buckets, the limit is %d; take longer steps",
			       plan->n_cells, AGGREGATE_CELLS_MAX);
	while (n_record < a->n_slot)
		n_record *= 2;
	for (size_t i = 0; i < t->probes.n; i++)
		if (t->probes.p[i]->returns)
			n_record = returns_class(n_record);
	for (size_t i = 0; i < t->probes.n; i++)
		t->probes.p[i]->n_record = n_record;
	a->cleared = arena_array(&t->arena, t->probes.n, sizeof(*a->cleared));
	return a->cleared ? 0 : err_nomem(err, "aggregates");
}

uint32_t cairn_trace_n_keys(const struct cairn_trace *t)
{
	return t->aggregates ? t->aggregates->n_keys : 0;
}

const char *cairn_trace_key_text(const struct cairn_trace *t, uint32_t i)
{
	return i < cairn_trace_n_keys(t) ? t->aggregates->keys[i].text : NULL;
}

const char *cairn_trace_aggregate_text(const struct cairn_trace *t, uint32_t i)
{
	return t->aggregates && i < t->aggregates->n_items ? t->aggregates->items[i].text : NULL;
}
