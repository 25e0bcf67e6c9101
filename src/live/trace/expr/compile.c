/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiling expressions
 *
 * While an expression is walked from the inside out, its value is an operand in one of three
 * states:
 *
 *	LOCATED   nothing emitted yet: a location of the site, and an offset into its value
 *	MEMORY    acc holds an address; the value is at acc + offset
 *	SCALAR    acc holds the value itself: an address taken with &
 *
 * Members only move the offset; a dereference emits the load of the pointer and leaves MEMORY.
 * LOCATED is kept as long as possible. So members of structs in registers, or in several pieces,
 * work: the piece that holds the member is chosen at the end.
 *
 * Arithmetic of conditions keeps the accumulator extended to 64 bits according to the node's C
 * type, so that comparisons need no sizes. Narrower results are cut and extended after each
 * operator that can overflow.
 */
#include "trace/expr/operand.h"

#include "trace/expr/global.h"

#include <string.h>

#include <cairn/kernel.h>

/*
 * A file that is compiled several times, with other macros, may declare other parameters each time.
 * The expression was checked against the function's.
 */
static bool is_declared_otherwise(const struct compiler *c, uint32_t param,
				  const struct cairn_arg *arg)
{
	const struct cairn_function *f = c->function;
	char here[256], there[256];

	if (!f || param >= f->n_params)
		return f;
	const struct cairn_param *p = &f->params[param];
	if (p->name && arg->name && strcmp(p->name, arg->name))
		return true;
	if (p->type == arg->type)
		return false;
	cairn_types_name(c->types, p->type, there, sizeof(there));
	cairn_types_name(c->types, arg->type, here, sizeof(here));
	return strcmp(here, there) ||
	       cairn_types_size(c->types, p->type) != cairn_types_size(c->types, arg->type);
}

static enum cairn_unavailable param_operand(struct compiler *c, uint32_t param, struct operand *ret)
{
	const struct cairn_arg *arg = param < c->site->n_args ? &c->site->args[param] : NULL;

	c->culprit = param;
	if (!arg)
		return CAIRN_UNAVAIL_NO_DESCRIPTION;
	if (is_declared_otherwise(c, param, arg))
		return CAIRN_UNAVAIL_OTHER_PARAMETER;
	if (arg->loc.why != CAIRN_AVAILABLE)
		return arg->loc.why;
	if (!arg->loc.n_pieces)
		return CAIRN_UNAVAIL_OPTIMISED_OUT;
	*ret = (struct operand){.state = LOCATED, .loc = &arg->loc, .type = arg->type};
	ret->param_bytes = cairn_types_size(c->types, arg->type);
	return CAIRN_AVAILABLE;
}

/* One of each processor, or in memory that the kernel has freed, has no one address. */
static bool is_in_data(const struct fetch_slide *slide, const struct cairn_location *loc)
{
	const struct cairn_piece *piece = loc->n_pieces == 1 ? &loc->pieces[0] : NULL;
	uint64_t to;

	return piece && piece->n_steps == 1 && piece->steps[0].op == CAIRN_LOC_ADDR &&
	       cairn_kernel_data_address(slide->kernel,
					 (struct cairn_vaddr){(uint64_t)piece->steps[0].imm}, &to);
}

/* A variable of a file: in memory, at the same place of the file everywhere. */
static enum cairn_unavailable global_operand(struct compiler *c, const struct site_global *g,
					     struct operand *ret)
{
	c->culprit = UINT32_MAX;
	if (c->program->slide.is_of_kernel && !is_in_data(&c->program->slide, &g->loc))
		return CAIRN_UNAVAIL_UNSUPPORTED;
	*ret = (struct operand){.state = LOCATED, .loc = &g->loc, .type = g->type};
	ret->param_bytes = cairn_types_size(c->types, g->type);
	return g->loc.why;
}

/* What is known at the return, by the register file that the kernel's program fills (abi.h). */
static enum cairn_unavailable special_operand(struct compiler *c, const struct expr *e,
					      struct operand *ret)
{
	c->culprit = UINT32_MAX;
	if (!c->result)
		return CAIRN_UNAVAIL_NO_END;
	if (e->special == EXPR_RETURN) {
		*ret = (struct operand){.state = LOCATED, .loc = c->result, .type = e->type};
		ret->param_bytes = cairn_types_size(c->types, e->type);
		return c->result->why;
	}
	fetch_emit(c->program, FETCH_REG)->reg =
		(uint8_t)(e->special == EXPR_DURATION ? FETCH_RETURN_DURATION
						      : FETCH_KEPT + e->param);
	*ret = (struct operand){.state = SCALAR};
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable name_operand(struct compiler *c, const struct expr *e,
					   struct operand *ret)
{
	if (e->special)
		return special_operand(c, e, ret);
	return e->global ? global_operand(c, e->global, ret) : param_operand(c, e->param, ret);
}

/* The piece that holds all of [off, off + n) of a located value; NULL with the reason. */
static const struct cairn_piece *piece_of(const struct operand *o, uint64_t n, uint64_t *ret_off,
					  enum cairn_unavailable *why)
{
	uint64_t off = (uint64_t)o->off;

	*why = CAIRN_UNAVAIL_PARTLY;
	for (uint32_t i = 0; i < o->loc->n_pieces; i++) {
		const struct cairn_piece *p = &o->loc->pieces[i];
		uint64_t size = p->size ? p->size : o->param_bytes;
		/* All of a value of unknown size: void *, for example, of a damaged type. */
		if (!size || (off >= p->off && off - p->off < size && n <= size - (off - p->off))) {
			*ret_off = off - p->off;
			if (p->kind != CAIRN_PIECE_MISSING)
				return p;
			*why = CAIRN_UNAVAIL_OPTIMISED_OUT;
			return NULL;
		}
	}
	return NULL;
}

static uint64_t bytes_at(const uint8_t *bytes, uint64_t n)
{
	uint64_t v = 0;

	memcpy(&v, bytes, n < 8 ? n : 8);
	return v;
}

/*
 * acc = the value's @n bytes (at most 8) at @off of a piece, low bytes first; the rest of acc is
 * undefined.
 */
static enum cairn_unavailable load_piece(struct compiler *c, const struct cairn_piece *p,
					 uint64_t off, uint64_t n)
{
	enum cairn_unavailable why = CAIRN_UNAVAIL_UNSUPPORTED;

	switch (p->kind) {
	case CAIRN_PIECE_BYTES:
		if (off + n > p->size)
			return CAIRN_UNAVAIL_PARTLY;
		fetch_emit(c->program, FETCH_CONST)->imm = bytes_at(p->bytes + off, n);
		return CAIRN_AVAILABLE;
	case CAIRN_PIECE_VALUE:
		/* A register has 8 bytes; the rest of a wider value is not described. */
		if (off + n > 8 || !fetch_emit_steps(c->program, p, c->at, &why))
			return why;
		if (off)
			fetch_emit_imm(c->program, FETCH_SHR, (int64_t)(8 * off));
		return CAIRN_AVAILABLE;
	case CAIRN_PIECE_MEMORY:
		if (!fetch_emit_steps(c->program, p, c->at, &why))
			return why;
		fetch_emit_imm(c->program, FETCH_ADD, (int64_t)off);
		fetch_emit(c->program, FETCH_LOAD)->size = (uint8_t)n;
		return CAIRN_AVAILABLE;
	case CAIRN_PIECE_MISSING:
		return CAIRN_UNAVAIL_OPTIMISED_OUT;
	}
	return why;
}

/* acc = the operand's @n bytes, at most 8. */
enum cairn_unavailable operand_load(struct compiler *c, const struct operand *o, uint64_t n)
{
	enum cairn_unavailable why;
	uint64_t off;

	if (o->state == SCALAR)
		return CAIRN_AVAILABLE;
	if (o->state == MEMORY) {
		fetch_emit_imm(c->program, FETCH_ADD, o->off);
		fetch_emit(c->program, FETCH_LOAD)->size = (uint8_t)n;
		return CAIRN_AVAILABLE;
	}
	const struct cairn_piece *p = piece_of(o, n, &off, &why);
	return p ? load_piece(c, p, off, n) : why;
}

/* acc = the operand's address; a value in a register has none. */
enum cairn_unavailable operand_address(struct compiler *c, const struct operand *o)
{
	enum cairn_unavailable why;
	uint64_t off;

	if (o->state == SCALAR)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	if (o->state == MEMORY) {
		fetch_emit_imm(c->program, FETCH_ADD, o->off);
		return CAIRN_AVAILABLE;
	}
	const struct cairn_piece *p = piece_of(o, 1, &off, &why);
	if (!p)
		return why;
	if (p->kind != CAIRN_PIECE_MEMORY)
		return CAIRN_UNAVAIL_IMPLICIT_POINTER;
	if (!fetch_emit_steps(c->program, p, c->at, &why))
		return why;
	fetch_emit_imm(c->program, FETCH_ADD, (int64_t)off);
	return CAIRN_AVAILABLE;
}

static bool is_array(const struct compiler *c, uint32_t type)
{
	return cairn_types_get(c->types, cairn_types_resolve(c->types, type))->kind ==
	       CAIRN_T_ARRAY;
}

/* Replaces the operand by the target of its pointer; an array is its own first element. */
static enum cairn_unavailable follow(struct compiler *c, struct operand *o)
{
	if (o->state != SCALAR && is_array(c, o->type))
		return CAIRN_AVAILABLE;
	TRY(operand_load(c, o, 8));
	*o = (struct operand){.state = MEMORY};
	return CAIRN_AVAILABLE;
}

/* A temporary for a value that is needed later; all in use: the program counts as full. */
bool operand_has_temp(struct compiler *c, unsigned int temp)
{
	if (temp < FETCH_TEMPS)
		return true;
	c->program->full = true;
	return false;
}

/* With 0 where the index in a temporary is not one of the array: 1 / 0 has no result. */
static void check_bound(struct compiler *c, unsigned int temp, uint64_t n_elements)
{
	fetch_emit(c->program, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp);
	fetch_emit(c->program, FETCH_ULT)->imm = n_elements;
	struct fetch_op *op = fetch_emit(c->program, FETCH_UDIV);
	op->imm = 1;
	op->flags = FETCH_F_SWAP;
	fetch_emit(c->program, FETCH_REG)->reg = (uint8_t)(FETCH_TEMP + temp);
	/* The register must not be stored in the place of the product. */
	fetch_barrier(c->program);
}

/* acc = the address of an array's first element, or a pointer's value. */
enum cairn_unavailable operand_base(struct compiler *c, struct operand *o)
{
	return o->state != SCALAR && is_array(c, o->type) ? operand_address(c, o)
							  : operand_load(c, o, 8);
}

/* a[b] with an index that is computed first. */
static enum cairn_unavailable compile_index(struct compiler *c, const struct expr *e,
					    struct operand *ret)
{
	unsigned int temp = c->temp;

	if (!operand_has_temp(c, temp))
		return CAIRN_AVAILABLE;
	TRY(operand_value(c, e->b, temp));
	if (e->n_elements)
		check_bound(c, temp, e->n_elements);
	fetch_emit_imm(c->program, FETCH_MUL, (int64_t)e->stride);
	fetch_emit(c->program, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp);
	c->temp = temp + 1;
	TRY(operand_of_path(c, e->a, ret));
	TRY(operand_base(c, ret));
	c->temp = temp;
	struct fetch_op *op = fetch_emit(c->program, FETCH_ADD);
	op->flags = FETCH_F_FILE;
	op->reg = (uint8_t)(FETCH_TEMP + temp);
	*ret = (struct operand){.state = MEMORY, .type = e->type};
	return CAIRN_AVAILABLE;
}

enum cairn_unavailable operand_of_path(struct compiler *c, const struct expr *e,
				       struct operand *ret)
{
	if (!e->is_path) {
		TRY(operand_value(c, e, c->temp));
		*ret = (struct operand){.state = SCALAR};
		return CAIRN_AVAILABLE;
	}
	if (e->kind == EXPR_INDEX && e->is_variable)
		return compile_index(c, e, ret);
	switch (e->kind) {
	case EXPR_NAME:
		return name_operand(c, e, ret);
	case EXPR_ADDRESS:
		TRY(operand_of_path(c, e->a, ret));
		TRY(operand_address(c, ret));
		*ret = (struct operand){.state = SCALAR};
		return CAIRN_AVAILABLE;
	case EXPR_MEMBER:
		TRY(operand_of_path(c, e->a, ret));
		break;
	default: /* ARROW, INDEX, DEREF: the checker lets nothing else through */
		TRY(operand_of_path(c, e->a, ret));
		TRY(follow(c, ret));
	}
	if (e->kind == EXPR_INDEX)
		ret->off += e->byte_off;
	if (e->kind == EXPR_MEMBER || e->kind == EXPR_ARROW) {
		ret->off += (int64_t)(e->bit_off / 8);
		ret->bit_shift = e->bit_off % 8;
		ret->bit_size = e->bit_size;
	}
	ret->type = e->type;
	return CAIRN_AVAILABLE;
}

/* A whole value of several pieces, each to its site in the record. */
static enum cairn_unavailable store_piece(struct compiler *c, const struct cairn_piece *p,
					  uint32_t off, uint32_t out, uint32_t n)
{
	enum cairn_unavailable why = CAIRN_UNAVAIL_UNSUPPORTED;

	if (p->kind == CAIRN_PIECE_MEMORY) {
		if (!fetch_emit_steps(c->program, p, c->at, &why))
			return why;
		fetch_emit_imm(c->program, FETCH_ADD, off);
		fetch_emit_copy(c->program, out, n);
		return CAIRN_AVAILABLE;
	}
	for (uint32_t done = 0; done < n; done += 8) {
		uint32_t some = n - done < 8 ? n - done : 8;
		TRY(load_piece(c, p, off + done, some));
		fetch_emit_store(c->program, out + done, some);
	}
	return CAIRN_AVAILABLE;
}

enum cairn_unavailable operand_store(struct compiler *c, struct operand o,
				     const struct value_layout *layout)
{
	uint32_t done = 0, start = (uint32_t)o.off;

	while (done < layout->n_bytes) {
		enum cairn_unavailable why;
		uint64_t off;
		o.off = start + done;
		const struct cairn_piece *p = piece_of(&o, 1, &off, &why);
		if (!p)
			return why;
		uint32_t rest = layout->n_bytes - done;
		uint64_t size = p->size ? p->size : o.param_bytes;
		uint32_t some = size && size - off < rest ? (uint32_t)(size - off) : rest;
		TRY(store_piece(c, p, (uint32_t)off, layout->out + done, some));
		done += some;
	}
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable store_string(struct compiler *c, struct operand *o,
					   const struct value_layout *layout)
{
	struct fetch_op *op;

	/* An array's bytes start at its address; a pointer's value is that address. */
	TRY(operand_base(c, o));
	op = fetch_emit(c->program, FETCH_STORE);
	op->out = layout->out;
	op->size = STRING_POINTER_BYTES;
	op = fetch_emit(c->program, FETCH_STRING);
	op->out = layout->out + STRING_POINTER_BYTES;
	op->size = (uint8_t)__builtin_ctz(layout->n_bytes);
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable store_operand(struct compiler *c, struct operand *o, bool is_string,
					    const struct value_layout *layout)
{
	if (is_string)
		return store_string(c, o, layout);
	if (o->state == SCALAR) {
		fetch_emit_store(c->program, layout->out, 8);
		return CAIRN_AVAILABLE;
	}
	if (!layout->n_bytes)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	if (o->state == LOCATED)
		return operand_store(c, *o, layout);
	fetch_emit_imm(c->program, FETCH_ADD, o->off);
	fetch_emit_copy(c->program, layout->out, layout->n_bytes);
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable store_bytes(struct compiler *c, const struct expr *e,
					  const struct expr *n_bytes,
					  const struct value_layout *layout)
{
	struct operand o = {0};

	TRY(operand_value(c, n_bytes, 0));
	fetch_emit(c->program, FETCH_SAVE)->reg = TEMP_VALUE;
	fetch_emit_store(c->program, layout->out + 8u, 8);
	c->temp = 1;
	TRY(operand_of_path(c, e, &o));
	TRY(operand_base(c, &o));
	/* Not as one operation with what is before, which would leave acc alone. */
	struct fetch_op *op = fetch_emit(c->program, FETCH_STORE);
	op->out = layout->out;
	op->size = 8;
	op = fetch_emit(c->program, FETCH_BYTES);
	op->reg = TEMP_VALUE;
	op->out = layout->out + 16u;
	op->size = (uint8_t)__builtin_ctz(layout->n_bytes);
	return CAIRN_AVAILABLE;
}

/* First of all: the path to the address may not be readable, and the record has an older one. */
static void forget_address(struct compiler *c, const struct value_layout *layout)
{
	fetch_emit(c->program, FETCH_CONST)->imm = VALUE_NO_ADDRESS;
	fetch_emit_store(c->program, layout->out, 8);
}

enum cairn_unavailable compile_value(struct compiler *c, const struct expr *e, bool is_string,
				     const struct value_layout *layout, uint32_t value)
{
	uint32_t from = c->program->n;
	struct operand o = {0};

	fetch_barrier(c->program);
	if (layout->n_targets || layout->unit) {
		enum cairn_unavailable missing = layout->unit ? wide_store(c, e, layout, value)
							      : recipes_store(c, e, layout, value);
		c->program->n = missing == CAIRN_AVAILABLE ? c->program->n : from;
		return missing;
	}
	c->temp = 0;
	if (is_string && e->kind != EXPR_NAME)
		forget_address(c, layout);
	enum cairn_unavailable why = operand_of_path(c, e, &o);

	if (why == CAIRN_AVAILABLE)
		why = store_operand(c, &o, is_string, layout);
	if (why != CAIRN_AVAILABLE)
		c->program->n = from;
	else
		fetch_close_value(c->program, from, value);
	return why;
}

enum cairn_unavailable compile_bytes(struct compiler *c, const struct expr *e,
				     const struct expr *n_bytes, const struct value_layout *layout,
				     uint32_t value)
{
	uint32_t from = c->program->n;

	fetch_barrier(c->program);
	forget_address(c, layout);
	enum cairn_unavailable why = store_bytes(c, e, n_bytes, layout);
	if (why != CAIRN_AVAILABLE)
		c->program->n = from;
	else
		fetch_close_value(c->program, from, value);
	return why;
}

/* acc = a path's value as a number, extended to 64 bits by its type. */
static enum cairn_unavailable load_path(struct compiler *c, const struct expr *e)
{
	struct operand o = {0};
	const struct cairn_type *t;
	uint32_t bits, shift = 0;

	TRY(operand_of_path(c, e, &o));
	if (e->is_address)
		return CAIRN_AVAILABLE;
	if (is_array(c, e->type))
		return operand_address(c, &o);
	t = cairn_types_get(c->types, cairn_types_resolve(c->types, e->type));
	bits = (uint32_t)(t->size ? t->size * 8 : 64);
	if (o.bit_size) {
		bits = o.bit_size;
		shift = o.bit_shift;
	}
	if (bits + shift > 64)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	TRY(operand_load(c, &o, (bits + shift + 7) / 8));
	if (bits == 64)
		return CAIRN_AVAILABLE;
	if (shift || bits % 8) {
		fetch_emit_imm(c->program, FETCH_SHL, 64 - bits - shift);
		fetch_emit_imm(c->program,
			       type_is_signed(c->types, e->type) ? FETCH_SAR : FETCH_SHR,
			       64 - bits);
		return CAIRN_AVAILABLE;
	}
	enum fetch_code code = type_is_signed(c->types, e->type) ? FETCH_SEXT : FETCH_ZEXT;
	fetch_emit(c->program, code)->size = (uint8_t)(bits / 8);
	return CAIRN_AVAILABLE;
}

struct arith {
	bool is_long, is_unsigned;
};

static uint64_t convert_constant(uint64_t v, struct arith to)
{
	if (to.is_long)
		return v;
	return to.is_unsigned ? (uint32_t)v : (uint64_t)(int64_t)(int32_t)v;
}

/*
 * Bring acc, extended by @from, to the range of @to. From the narrower to 64 bits nothing is to be
 * done.
 */
static void convert(struct compiler *c, struct arith from, struct arith to)
{
	if (to.is_long || (from.is_unsigned == to.is_unsigned && !from.is_long))
		return;
	fetch_emit(c->program, to.is_unsigned ? FETCH_ZEXT : FETCH_SEXT)->size = 4;
}

static struct arith arith_of(const struct expr *e)
{
	return (struct arith){.is_long = e->is_long, .is_unsigned = e->is_unsigned};
}

static enum fetch_code machine_code(enum fetch_code op, bool is_unsigned)
{
	if (!is_unsigned)
		return op == FETCH_SHR ? FETCH_SAR : op;
	switch (op) {
	case FETCH_LT:
		return FETCH_ULT;
	case FETCH_LE:
		return FETCH_ULE;
	case FETCH_GT:
		return FETCH_UGT;
	case FETCH_GE:
		return FETCH_UGE;
	case FETCH_DIV:
		return FETCH_UDIV;
	case FETCH_MOD:
		return FETCH_UMOD;
	default:
		return op;
	}
}

/* The type in which both operands are combined: the larger one, unsigned among equals. */
static struct arith common(const struct expr *e)
{
	struct arith a = arith_of(e->a), b = arith_of(e->b), to;

	if (e->op == FETCH_SHL || e->op == FETCH_SHR)
		return a;
	to.is_long = a.is_long || b.is_long;
	to.is_unsigned = (a.is_unsigned && a.is_long == to.is_long) ||
			 (b.is_unsigned && b.is_long == to.is_long);
	return to;
}

/* What an operand is multiplied by that is added to a pointer. */
static uint64_t scale_of(const struct expr *e, const struct expr *operand)
{
	return e->is_pointer && !operand->is_pointer && e->stride ? e->stride : 1;
}

static void multiply(struct compiler *c, uint64_t by)
{
	if (by > 1)
		fetch_emit_imm(c->program, FETCH_MUL, (int64_t)by);
}

static enum cairn_unavailable generate_operands(struct compiler *c, const struct expr *e,
						struct arith to, unsigned int temp)
{
	enum fetch_code code = machine_code(e->op, to.is_unsigned);

	if (e->b->kind == EXPR_INT) {
		TRY(operand_value(c, e->a, temp));
		convert(c, arith_of(e->a), to);
		fetch_emit_imm(c->program, code,
			       (int64_t)(convert_constant(e->b->value, to) * scale_of(e, e->b)));
		return CAIRN_AVAILABLE;
	}
	if (!operand_has_temp(c, temp))
		return CAIRN_AVAILABLE;
	TRY(operand_value(c, e->b, temp));
	convert(c, arith_of(e->b), to);
	multiply(c, scale_of(e, e->b));
	fetch_emit(c->program, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp);
	TRY(operand_value(c, e->a, temp + 1));
	convert(c, arith_of(e->a), to);
	multiply(c, scale_of(e, e->a));
	struct fetch_op *op = fetch_emit(c->program, code);
	op->flags = FETCH_F_FILE;
	op->reg = (uint8_t)(FETCH_TEMP + temp);
	return CAIRN_AVAILABLE;
}

/* Cuts the possible overflow of 32-bit arithmetic. */
static void normalise(struct compiler *c, struct arith type)
{
	if (!type.is_long)
		fetch_emit(c->program, type.is_unsigned ? FETCH_ZEXT : FETCH_SEXT)->size = 4;
}

static enum cairn_unavailable generate_string(struct compiler *c, const struct expr *e,
					      unsigned int temp)
{
	struct operand o = {0};
	char text[FETCH_STREQ_BYTES] = {0};
	bool is_comm = e->a->kind == EXPR_KNOWN;

	if (e->text != TEXT_TO_NUL)
		return e->text == TEXT_WIDE ? wide_compare(c, e, temp) : text_compare(c, e, temp);
	c->temp = temp;
	if (!is_comm) {
		TRY(operand_of_path(c, e->a, &o));
		TRY(operand_base(c, &o));
	}
	memcpy(text, e->b->name, e->b->n_bytes);
	fetch_emit(c->program, FETCH_STREQ)->flags = is_comm ? FETCH_F_COMM : 0;
	memcpy(fetch_emit(c->program, FETCH_END), text, 16);
	memcpy(fetch_emit(c->program, FETCH_END), text + 16, 16);
	fetch_barrier(c->program);
	if (e->op == FETCH_NE)
		fetch_emit_imm(c->program, FETCH_EQ, 0);
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable generate_binary(struct compiler *c, const struct expr *e,
					      unsigned int temp)
{
	if (e->is_string)
		return generate_string(c, e, temp);
	if (e->a->is_float)
		return floats_compare(c, e, temp);
	struct arith to = common(e);
	TRY(generate_operands(c, e, to, temp));
	if (e->op < FETCH_EQ)
		normalise(c, to);
	if (e->stride > 1 && !e->is_pointer)
		fetch_emit_imm(c->program, FETCH_DIV, (int64_t)e->stride);
	return CAIRN_AVAILABLE;
}

/* Short circuit: the right side of && may be unreadable unless the left side holds. */
static enum cairn_unavailable generate_chain(struct compiler *c, const struct expr *e,
					     unsigned int temp)
{
	TRY(operand_value(c, e->a, temp));
	uint32_t jump = c->program->n;
	fetch_emit(c->program, e->kind == EXPR_AND ? FETCH_JZ : FETCH_JNZ);
	TRY(operand_value(c, e->b, temp));
	if (!c->program->full)
		c->program->ops[jump].jump = (uint8_t)(c->program->n - jump - 1);
	fetch_barrier(c->program);
	fetch_emit_imm(c->program, FETCH_NE, 0);
	return CAIRN_AVAILABLE;
}

/* Both values go to one temporary, and 0 leads past the second one. */
static enum cairn_unavailable generate_choice(struct compiler *c, const struct expr *e,
					      unsigned int temp)
{
	if (!operand_has_temp(c, temp))
		return CAIRN_AVAILABLE;
	TRY(operand_value(c, e->a, temp));
	uint32_t to_c = c->program->n;
	fetch_emit(c->program, FETCH_JZ);
	fetch_barrier(c->program);
	TRY(operand_value(c, e->b, temp + 1));
	convert(c, arith_of(e->b), arith_of(e));
	fetch_emit(c->program, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp);
	fetch_emit(c->program, FETCH_CONST)->imm = 0;
	uint32_t to_end = c->program->n;
	fetch_emit(c->program, FETCH_JZ);
	fetch_land(c->program, to_c);
	TRY(operand_value(c, e->c, temp + 1));
	convert(c, arith_of(e->c), arith_of(e));
	fetch_emit(c->program, FETCH_SAVE)->reg = (uint8_t)(FETCH_TEMP + temp);
	fetch_land(c->program, to_end);
	fetch_emit(c->program, FETCH_REG)->reg = (uint8_t)(FETCH_TEMP + temp);
	/* The register must not be stored in the place of the value. */
	fetch_barrier(c->program);
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable generate_cast(struct compiler *c, const struct expr *e,
					    unsigned int temp)
{
	TRY(operand_value(c, e->a, temp));
	if (e->is_bool)
		fetch_emit_imm(c->program, FETCH_NE, 0);
	else if (e->cast_bytes < 8)
		fetch_emit(c->program, e->is_cast_unsigned ? FETCH_ZEXT : FETCH_SEXT)->size =
			e->cast_bytes;
	return CAIRN_AVAILABLE;
}

enum cairn_unavailable operand_value(struct compiler *c, const struct expr *e, unsigned int temp)
{
	switch (e->kind) {
	case EXPR_KNOWN:
		fetch_emit(c->program, FETCH_KNOWN)->imm = e->value;
		return CAIRN_AVAILABLE;
	case EXPR_CAST:
		return generate_cast(c, e, temp);
	case EXPR_CHOICE:
		return generate_choice(c, e, temp);
	case EXPR_INT:
		fetch_emit(c->program, FETCH_CONST)->imm = convert_constant(e->value, arith_of(e));
		return CAIRN_AVAILABLE;
	case EXPR_MINUS:
	case EXPR_INVERT:
		TRY(operand_value(c, e->a, temp));
		fetch_emit(c->program, e->kind == EXPR_MINUS ? FETCH_NEG : FETCH_NOT);
		normalise(c, arith_of(e));
		return CAIRN_AVAILABLE;
	case EXPR_NOT:
		TRY(operand_value(c, e->a, temp));
		fetch_emit_imm(c->program, FETCH_EQ, 0);
		return CAIRN_AVAILABLE;
	case EXPR_BINARY:
		return generate_binary(c, e, temp);
	case EXPR_AND:
	case EXPR_OR:
		return generate_chain(c, e, temp);
	default:
		c->temp = temp;
		/* The checker lets no literal of a float through. */
		return e->is_path ? load_path(c, e) : CAIRN_UNAVAIL_UNSUPPORTED;
	}
}

enum cairn_unavailable compile_condition(struct compiler *c, const struct expr *e)
{
	uint32_t from = c->program->n;
	enum cairn_unavailable why = operand_value(c, e, 0);

	if (why == CAIRN_AVAILABLE)
		fetch_emit(c->program, FETCH_FILTER);
	else
		c->program->n = c->program->barrier = from;
	fetch_barrier(c->program);
	return why;
}

static enum cairn_unavailable close_part(struct compiler *c, uint32_t from, uint32_t value,
					 enum cairn_unavailable why)
{
	if (why != CAIRN_AVAILABLE)
		c->program->n = from;
	else
		fetch_close_value(c->program, from, value);
	return why;
}

enum cairn_unavailable compile_number(struct compiler *c, const struct expr *e, uint32_t out,
				      uint32_t value)
{
	uint32_t from = c->program->n;

	fetch_barrier(c->program);
	enum cairn_unavailable why = operand_value(c, e, 0);
	if (why == CAIRN_AVAILABLE)
		fetch_emit_store(c->program, out, 8);
	return close_part(c, from, value, why);
}

enum cairn_unavailable compile_kept(struct compiler *c, const struct expr *e, uint32_t reg,
				    uint32_t value)
{
	uint32_t from = c->program->n;

	fetch_barrier(c->program);
	enum cairn_unavailable why = operand_value(c, e, 0);
	if (why == CAIRN_AVAILABLE)
		fetch_emit(c->program, FETCH_SAVE)->reg = (uint8_t)reg;
	return close_part(c, from, value, why);
}

enum cairn_unavailable compile_key(struct compiler *c, const struct expr *e, uint32_t out,
				   uint32_t n_bytes, uint32_t value)
{
	const struct value_layout layout = {.out = (uint16_t)out, .n_bytes = (uint16_t)n_bytes};

	return e->bit_size ? compile_number(c, e, out, value)
			   : compile_value(c, e, false, &layout, value);
}

static enum cairn_unavailable store_key_string(struct compiler *c, const struct expr *e,
					       uint32_t out, uint32_t log)
{
	struct operand o = {0};

	c->temp = 0;
	TRY(operand_of_path(c, e, &o));
	if (o.state != SCALAR && is_array(c, o.type)) {
		TRY(operand_address(c, &o));
	} else {
		TRY(operand_load(c, &o, 8));
		fetch_emit(c->program, FETCH_SAVE)->reg = TEMP_POINTER;
		fetch_emit_imm(c->program, FETCH_EQ, 0);
		fetch_emit_store(c->program, out + offsetof(struct key_string, is_null), 1);
		fetch_emit(c->program, FETCH_REG)->reg = TEMP_POINTER;
	}
	struct fetch_op *op = fetch_emit(c->program, FETCH_STRING);
	op->out = (uint16_t)(out + offsetof(struct key_string, length));
	op->size = (uint8_t)log;
	return CAIRN_AVAILABLE;
}

enum cairn_unavailable compile_key_string(struct compiler *c, const struct expr *e, uint32_t out,
					  uint32_t log, uint32_t value)
{
	uint32_t from = c->program->n;

	fetch_barrier(c->program);
	return close_part(c, from, value, store_key_string(c, e, out, log));
}

bool compile_is_constant(const struct fetch_program *p, uint32_t from)
{
	for (uint32_t i = from; i < p->n; i++) {
		const struct fetch_op *op = &p->ops[i];
		switch (op->code) {
		case FETCH_STORE_REG:
		case FETCH_REG:
		case FETCH_LOAD:
		case FETCH_COPY:
		case FETCH_STRING:
		case FETCH_BYTES:
		case FETCH_DIV:
		case FETCH_MOD:
		case FETCH_UDIV:
		case FETCH_UMOD:
		case FETCH_STREQ:
		case FETCH_KNOWN:
			return false;
		}
		bool slot = op->reg >= FETCH_SLOT;
		if (op->flags & FETCH_F_FILE && !slot)
			return false;
	}
	return p->n > from;
}
