/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fetch program taken apart
 *
 * First is the condition, up to FILTER; then the operations of each value, which bear its number.
 * The last of them say where the value lies in the record: what they store is the accumulator, or
 * memory at its address.
 */
#include <string.h>

#include "trace/emit/emit.h"

static const struct trace_program *program_of(const struct emission *e,
					      const struct trace_site *site)
{
	return &e->t->programs.p[site->pub.program];
}

static const struct fetch_op *ops_of(const struct emission *e, const struct trace_site *site)
{
	return e->t->ops.p + program_of(e, site)->op;
}

/* The operation and its text. */
static uint32_t length_of(const struct fetch_op *op)
{
	return op->code == FETCH_STREQ ? 3 : 1;
}

/* Operations of the condition, with FILTER; 0: there is none. */
static uint32_t condition_length(const struct emission *e, const struct trace_site *site)
{
	const struct trace_program *p = program_of(e, site);
	const struct fetch_op *ops = ops_of(e, site);

	for (uint32_t i = 0; p->has_condition && i < p->n; i += length_of(&ops[i]))
		if (ops[i].code == FETCH_FILTER)
			return i + 1;
	return 0;
}

bool emit_condition(const struct emission *e, const struct trace_site *site, struct emit_value *ret)
{
	uint32_t n = condition_length(e, site);

	if (!n)
		return false;
	*ret = (struct emit_value){.form = EMIT_NUMBER, .n = n - 1};
	memcpy(ret->ops, ops_of(e, site), ret->n * sizeof(*ret->ops));
	return true;
}

static void append(struct emit_value *v, struct fetch_op op)
{
	v->ops[v->n++] = op;
}

static void missing(struct emit_value *v, const char *why)
{
	*v = (struct emit_value){.form = EMIT_MISSING, .why = why};
}

static void copy_operations(const struct emission *e, const struct trace_site *site, uint32_t value,
			    struct emit_value *ret)
{
	const struct trace_program *p = program_of(e, site);
	const struct fetch_op *ops = ops_of(e, site);

	for (uint32_t i = condition_length(e, site); i < p->n && ops[i].code != FETCH_END;) {
		uint32_t n = length_of(&ops[i]);
		for (uint32_t k = 0; ops[i].value == value && k < n && i + k < p->n; k++)
			append(ret, ops[i + k]);
		i += n;
	}
}

static bool is_store(const struct fetch_op *op)
{
	return op->code == FETCH_STORE || op->code == FETCH_STORE_REG || op->code == FETCH_COPY ||
	       op->code == FETCH_STRING || op->code == FETCH_BYTES;
}

static uint32_t n_stores(const struct emit_value *v)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->n; i += length_of(&v->ops[i]))
		n += is_store(&v->ops[i]);
	return n;
}

/* The accumulator is what the last operation stored. Returns the bytes; 0: it is no number. */
static uint32_t take_store(struct emit_value *v)
{
	struct fetch_op op = v->ops[v->n - 1];

	v->n--;
	switch (op.code) {
	case FETCH_STORE:
		return op.size;
	case FETCH_STORE_REG:
		append(v, (struct fetch_op){.code = FETCH_REG, .reg = op.reg});
		return op.size;
	case FETCH_COPY:
		if (op.size > 3)
			return 0;
		if (op.imm)
			append(v, (struct fetch_op){.code = FETCH_ADD, .imm = op.imm});
		append(v, (struct fetch_op){.code = FETCH_LOAD, .size = (uint8_t)(1u << op.size)});
		return 1u << op.size;
	default:
		return 0;
	}
}

/* The stores before a string's last operation have its address, or whether it is NULL. */
static void take_string(struct emit_value *v)
{
	uint32_t n = 0;

	v->form = EMIT_STRING;
	for (uint32_t i = 0; i < v->n; i++)
		if (!is_store(&v->ops[i]))
			v->ops[n++] = v->ops[i];
	v->n = n;
}

static bool has_jump(const struct emit_value *v)
{
	for (uint32_t i = 0; i < v->n; i += length_of(&v->ops[i]))
		if (v->ops[i].code == FETCH_JZ || v->ops[i].code == FETCH_JNZ ||
		    v->ops[i].code == FETCH_STREQ)
			return true;
	return false;
}

/* ---- types ---- */

static const char *why_no_number(const struct cairn_type *type)
{
	switch (type->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		return type->size <= 8 ? NULL : "it has more than 8 bytes";
	case CAIRN_T_FLOAT:
		return "it is a floating-point number";
	case CAIRN_T_ARRAY:
		return "it is an array: name one of its elements";
	default:
		return "it has members: name one of them";
	}
}

static void extend(struct emit_value *v, uint32_t n_bytes)
{
	if (n_bytes < 8)
		append(v, (struct fetch_op){.code = v->is_signed ? FETCH_SEXT : FETCH_ZEXT,
					    .size = (uint8_t)n_bytes});
}

static void take_bits(struct emit_value *v, uint32_t shift, uint32_t size)
{
	append(v, (struct fetch_op){.code = FETCH_SHL, .imm = 64 - shift - size});
	append(v,
	       (struct fetch_op){.code = v->is_signed ? FETCH_SAR : FETCH_SHR, .imm = 64 - size});
}

/* Signs and widths: the accumulator becomes the value as 64 bits. */
static void take_number(const struct trace_probe *p, uint32_t i, struct emit_value *v)
{
	const struct cairn_trace_value *value = &p->pub.values[i];
	const struct cairn_type *type =
		value->type ? cairn_types_get(p->pub.types,
					      cairn_types_resolve(p->pub.types, value->type))
			    : NULL;
	const struct value_layout *layout = p->layouts ? &p->layouts[i] : NULL;
	const char *why = type && !value->is_number ? why_no_number(type) : NULL;
	uint32_t n_bytes = v->n ? take_store(v) : 0;

	if (why || !n_bytes) {
		missing(v, why ? why : "it is not one number");
		return;
	}
	v->form = EMIT_NUMBER;
	if (p->parts && p->parts[i].kind == PART_NUMBER)
		v->is_signed = !p->parts[i].expr->is_unsigned;
	else if (value->is_number)
		v->is_signed = !value->is_unsigned;
	else
		v->is_signed = type && type_is_signed(p->pub.types, value->type);
	v->is_hex = value->hex || (type && !value->is_number && type->kind != CAIRN_T_INT &&
				   type->kind != CAIRN_T_ENUM);
	if (layout && layout->bit_size)
		take_bits(v, layout->bit_shift, layout->bit_size);
	else
		extend(v, n_bytes);
}

/* The same for every hit: its bytes are those that would be stored. */
static void take_constant(const struct trace_probe *p, const struct trace_site *site, uint32_t i,
			  struct emit_value *v)
{
	const struct value_layout *layout = &p->layouts[i];
	uint64_t number = 0;

	if (layout->n_bytes > 8)
		return;
	memcpy(&number, site->constants[i].bytes, layout->n_bytes);
	append(v, (struct fetch_op){.code = FETCH_CONST, .imm = number});
	append(v, (struct fetch_op){.code = FETCH_STORE, .size = (uint8_t)layout->n_bytes});
}

/* Of events the layout says how much of a string is shown, of keys their part. */
static uint32_t most_of(const struct trace_probe *p, uint32_t i)
{
	return p->parts ? p->parts[i].n_shown : p->layouts[i].n_shown;
}

void emit_value(const struct emission *e, const struct trace_site *site, uint32_t i,
		struct emit_value *ret)
{
	const struct trace_probe *p = e->t->probes.p[site->pub.probe];

	*ret = (struct emit_value){.form = EMIT_NUMBER};
	if (site->slots[i].unavailable) {
		missing(ret, site->slots[i].unavailable);
		return;
	}
	if (!p->parts && site->constants[i].bytes)
		take_constant(p, site, i, ret);
	else
		copy_operations(e, site, i, ret);
	if (p->pub.values[i].is_bytes) {
		missing(ret, "it is buf()");
	} else if (p->pub.values[i].is_string && ret->n && !has_jump(ret) &&
		   ret->ops[ret->n - 1].code == FETCH_STRING) {
		take_string(ret);
		ret->most = most_of(p, i);
	} else if (p->pub.values[i].unit_bytes) {
		missing(ret, "it is a string of wide characters");
	} else if (p->parts && p->parts[i].is_counted) {
		missing(ret, "it is text whose bytes are counted, and that may have no NUL");
	} else if (p->pub.values[i].is_string) {
		missing(ret, "it is not the address of a string");
	} else if (n_stores(ret) != 1) {
		missing(ret, "it is in several pieces, or has members: name one of them");
	} else {
		take_number(p, i, ret);
	}
}

const struct expr *emit_expr(const struct emission *e, const struct trace_probe *p, uint32_t i,
			     const char **ret_text)
{
	const struct aggregates *a = e->t->aggregates;

	if (!a) {
		*ret_text = p->text->text;
		return p->text->values[i].expr;
	}
	*ret_text = i < a->n_numbers ? a->numbers[i] : a->by;
	return p->parts[i].expr;
}
