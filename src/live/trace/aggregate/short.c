/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short programs (abi.h): made of fetch programs that need registers only
 *
 * A program is short if each of its parts is: a register or a constant, possibly cut, possibly one
 * operation with a constant, possibly cut again, and then the part's end. Anything else stays with
 * the interpreter, which has the same operations.
 */
#include <string.h>

#include "trace/aggregate/aggregate.h"

/* A program that is read from front to back. */
struct reading {
	const struct fetch_op *op, *end;
};

static bool is_next(const struct reading *in, uint8_t code)
{
	return in->op < in->end && in->op->code == code;
}

static uint8_t cut_to(uint32_t n_bytes, bool is_signed)
{
	return (uint8_t)((64 - 8 * n_bytes) | (is_signed ? TRACE_SHORT_SIGNED : 0));
}

static void take_cut(struct reading *in, uint8_t *how)
{
	bool is_signed = is_next(in, FETCH_SEXT);

	if (!is_signed && !is_next(in, FETCH_ZEXT))
		return;
	*how = cut_to(in->op->size, is_signed);
	in->op++;
}

/* An operation that always has a result. */
static bool is_simple(const struct fetch_op *op)
{
	bool divides = op->code >= FETCH_DIV && op->code <= FETCH_UMOD;

	return op->code >= FETCH_ADD && op->code < FETCH_N_CODES && !op->flags &&
	       (!divides || op->imm);
}

/* A value, up to what is done with it. */
static bool take_value(struct reading *in, struct trace_short_value *v)
{
	if (is_next(in, FETCH_CONST)) {
		v->code = FETCH_CONST;
		v->imm = in->op++->imm;
		return true;
	}
	if (!is_next(in, FETCH_REG) || in->op->reg > FETCH_FILE_IP)
		return false;
	v->reg = in->op++->reg;
	take_cut(in, &v->before);
	if (in->op < in->end && is_simple(in->op)) {
		v->code = in->op->code;
		v->imm = in->op++->imm;
		take_cut(in, &v->after);
	}
	return true;
}

static bool take_condition(struct reading *in, struct trace_short_value *v)
{
	if (!take_value(in, v) || !is_next(in, FETCH_FILTER))
		return false;
	in->op++;
	return true;
}

/* The low bytes of a stored value count. False if it was cut to fewer, which has another sign. */
static bool cut_to_store(struct trace_short_value *v, uint32_t n_bytes)
{
	uint8_t how = cut_to(n_bytes, false);

	if ((v->after & ~TRACE_SHORT_SIGNED) > how)
		return !(v->after & TRACE_SHORT_SIGNED) || n_bytes == 8;
	if (n_bytes < 8)
		v->after = how;
	return true;
}

/* Its operations up to its store. NULL: they are not short. */
static const struct fetch_op *take_stored(struct reading *in, struct trace_short_value *v)
{
	bool is_direct = is_next(in, FETCH_STORE_REG) && in->op->reg <= FETCH_FILE_IP;

	if (is_direct)
		v->reg = in->op->reg;
	else if (!take_value(in, v) || !is_next(in, FETCH_STORE))
		return NULL;
	return cut_to_store(v, in->op->size) ? in->op++ : NULL;
}

static bool take_number(struct reading *in, struct trace_short_value *v)
{
	const struct fetch_op *store = take_stored(in, v);

	return store && store->out == 0 && store->size == 8;
}

/* In one word of the key, which begins at @key_at, and after what ends at *@end. */
static bool take_key(struct reading *in, struct trace_short_value *v, uint32_t key_at,
		     uint32_t *end)
{
	const struct fetch_op *store = take_stored(in, v);

	if (!store || store->out < *end || store->out % store->size)
		return false;
	*end = store->out + store->size;
	v->word = (uint8_t)((store->out - key_at) / 8);
	v->shift = (uint8_t)(8 * ((store->out - key_at) % 8));
	return v->word < TRACE_SHORT_KEY / 8;
}

static bool take_parts(const struct aggregates *a, struct reading *in, struct trace_short *ret)
{
	uint32_t end = a->values_at;

	if (a->n_numbers && !take_number(in, &ret->number))
		return false;
	for (uint32_t i = 0; i < a->n_values; i++)
		if (!take_key(in, &ret->values[i], 8 * a->n_numbers, &end))
			return false;
	return is_next(in, FETCH_END);
}

bool aggregate_shorten(const struct cairn_trace *t, uint32_t program, struct trace_short *ret)
{
	const struct aggregates *a = t->aggregates;
	const struct trace_program *p = &t->programs.p[program];
	struct reading in = {t->ops.p + p->op, t->ops.p + p->op + p->n};

	*ret = (struct trace_short){0};
	if (a->clears || t->stacks || a->n_numbers > 1 || a->n_values > TRACE_SHORT_VALUES ||
	    a->plan.n_key > TRACE_SHORT_KEY)
		return false;
	if (p->has_condition && !take_condition(&in, &ret->condition))
		return false;
	return take_parts(a, &in, ret);
}

static void note_short(struct cairn_trace *t, const struct trace_site *site, bool is_first)
{
	struct aggregates *a = t->aggregates;
	bool has_condition = t->programs.p[site->pub.program].has_condition;
	struct trace_short its;

	if (site->follows || !aggregate_shorten(t, site->pub.program, &its)) {
		a->is_short = false;
		return;
	}
	if (is_first) {
		a->common = its;
		a->has_condition = has_condition;
	}
	if (a->has_condition != has_condition || memcmp(&a->common, &its, sizeof(its)))
		a->is_common = false;
}

/*
 * The header of all keys is zero where there is one probe, as short programs read no memory that
 * could be missing. A shorter key is hashed and compared in less time.
 */
void aggregates_note_short(struct cairn_trace *t)
{
	struct aggregates *a = t->aggregates;
	bool is_first = true;

	a->is_short = true;
	a->is_common = t->probes.n == 1;
	for (size_t i = 0; i < t->sites.n; i++) {
		if (t->sites.p[i]->pub.refused)
			continue;
		note_short(t, t->sites.p[i], is_first);
		is_first = false;
	}
	a->is_common = a->is_common && a->is_short && !is_first;
	a->key_from = a->is_common ? TRACE_SHORT_HEADER : 0;
}
