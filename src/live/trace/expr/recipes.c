/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiling values that are elsewhere, by a recipe: strings and vectors of C++, Rust and Go
 *
 * Three temporaries hold such a value's address, if it is in memory, the number of bytes elsewhere,
 * and the pointer to them.
 */
#include "trace/expr/operand.h"

#include <string.h>

enum { HAS_VALUE, HAS_COUNT, HAS_POINTER, N_TEMPS };

static uint8_t temp_of(const struct compiler *c, unsigned int which)
{
	return (uint8_t)(FETCH_TEMP + c->temp + which);
}

static void save(struct compiler *c, unsigned int which)
{
	fetch_emit(c->program, FETCH_SAVE)->reg = temp_of(c, which);
}

static void restore(struct compiler *c, unsigned int which)
{
	fetch_emit(c->program, FETCH_REG)->reg = temp_of(c, which);
}

/* The byte at @off of the value's state says so. */
static void store_state(struct compiler *c, const struct value_layout *layout, uint32_t off)
{
	fetch_emit(c->program, FETCH_CONST)->imm = 1;
	fetch_emit_store(c->program, layout->state + off, 1);
}

/* acc = the word at @off of the value; one in memory is at HAS_VALUE. */
static enum cairn_unavailable load_word(struct compiler *c, const struct operand *o, uint64_t off)
{
	struct operand word = *o;

	if (o->state == MEMORY) {
		restore(c, HAS_VALUE);
		word.off = 0;
	}
	word.off += (int64_t)off;
	return operand_load(c, &word, 8);
}

/* The number of bytes in a temporary, the pointer in acc. */
static enum cairn_unavailable load_target(struct compiler *c, const struct operand *o,
					  const struct recipe_at *at)
{
	const struct recipe *recipe = &at->recipe;
	struct fetch_op *op;

	TRY(load_word(c, o, at->off + recipe->ptr));
	save(c, HAS_POINTER);
	TRY(load_word(c, o, at->off + recipe->count));
	if (recipe->count_is_end) {
		op = fetch_emit(c->program, FETCH_SUB);
		op->flags = FETCH_F_FILE;
		op->reg = temp_of(c, HAS_POINTER);
	} else if (recipe->element_bytes > 1) {
		fetch_emit_imm(c->program, FETCH_MUL, (int64_t)recipe->element_bytes);
	}
	save(c, HAS_COUNT);
	restore(c, HAS_POINTER);
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable store_target(struct compiler *c, const struct operand *o,
					   const struct target_layout *t)
{
	TRY(load_target(c, o, &t->is));
	struct fetch_op *op = fetch_emit(c->program, FETCH_BYTES);
	op->reg = temp_of(c, HAS_COUNT);
	op->out = t->out;
	op->size = t->log;
	return CAIRN_AVAILABLE;
}

/* The value, which goes into the record as any other. */
static enum cairn_unavailable store_around(struct compiler *c, struct operand *o,
					   const struct value_layout *layout)
{
	if (o->state == LOCATED)
		return operand_store(c, *o, layout);
	if (o->state == SCALAR)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	fetch_emit_imm(c->program, FETCH_ADD, o->off);
	o->off = 0;
	save(c, HAS_VALUE);
	fetch_emit_copy(c->program, layout->out, layout->n_bytes);
	return CAIRN_AVAILABLE;
}

/* A target that cannot be read leaves the others. */
enum cairn_unavailable recipes_store(struct compiler *c, const struct expr *e,
				     const struct value_layout *layout, uint32_t value)
{
	struct fetch_program *p = c->program;
	uint32_t from = p->n, begins[TARGETS_MAX + 1];
	struct operand o = {0};

	c->temp = 0;
	/* First of all: the path to the value may not be readable. */
	fetch_emit(p, FETCH_CONST);
	fetch_emit_store(p, layout->state, 8);
	TRY(operand_of_path(c, e, &o));
	TRY(store_around(c, &o, layout));
	store_state(c, layout, 0);
	for (uint32_t i = 0; i < layout->n_targets; i++) {
		begins[i] = p->n;
		fetch_barrier(p);
		TRY(store_target(c, &o, &layout->targets[i]));
		store_state(c, layout, 1 + i);
	}
	begins[layout->n_targets] = p->n;
	fetch_barrier(p);
	fetch_close_value(p, from, value);
	for (uint32_t i = 0; i < layout->n_targets; i++)
		fetch_close_part(p, begins[i], begins[i + 1]);
	return CAIRN_AVAILABLE;
}

/* ---- text, as a key and in conditions ---- */

/* A reference to text stands for it. */
static enum cairn_unavailable follow_reference(struct compiler *c, struct operand *o)
{
	const struct cairn_type *t =
		cairn_types_get(c->types, cairn_types_resolve(c->types, o->type));
	uint32_t target = t->ref;

	if (t->kind != CAIRN_T_REF && t->kind != CAIRN_T_RREF)
		return CAIRN_AVAILABLE;
	TRY(operand_load(c, o, 8));
	*o = (struct operand){.state = MEMORY, .type = target};
	return CAIRN_AVAILABLE;
}

/* Text that may be inside (recipe.h): a byte of the value says whether it is. */
static enum cairn_unavailable load_text_inside(struct compiler *c, const struct operand *o,
					       const struct recipe_at *at)
{
	struct fetch_program *p = c->program;

	restore(c, HAS_VALUE);
	fetch_emit_imm(p, FETCH_ADD, (int64_t)at->recipe.length);
	fetch_emit(p, FETCH_LOAD)->size = 1;
	save(c, HAS_COUNT);
	fetch_emit_imm(p, FETCH_AND, 1);
	uint32_t to_outside = fetch_begin_jump(c->program, FETCH_JNZ);
	restore(c, HAS_COUNT);
	fetch_emit_imm(p, FETCH_SHR, 1);
	save(c, HAS_COUNT);
	restore(c, HAS_VALUE);
	fetch_emit_imm(p, FETCH_ADD, (int64_t)at->recipe.inside);
	save(c, HAS_POINTER);
	fetch_emit(p, FETCH_CONST)->imm = 0;
	uint32_t to_end = fetch_begin_jump(c->program, FETCH_JZ);
	fetch_land(c->program, to_outside);
	TRY(load_target(c, o, at));
	fetch_land(c->program, to_end);
	return CAIRN_AVAILABLE;
}

/* More bytes than any memory has are no text: 1 / 0 has no result. */
static void check_count(struct compiler *c)
{
	restore(c, HAS_COUNT);
	fetch_emit_imm(c->program, FETCH_ULT, INT64_C(1) << 47);
	struct fetch_op *op = fetch_emit(c->program, FETCH_UDIV);
	op->imm = 1;
	op->flags = FETCH_F_SWAP;
	restore(c, HAS_COUNT);
	fetch_barrier(c->program);
}

/* The number of bytes and the pointer, each in its temporary; acc is the number. */
static enum cairn_unavailable load_text(struct compiler *c, const struct expr *e)
{
	struct recipe_at at = {0};
	struct operand o = {0};

	TRY(operand_of_path(c, e, &o));
	o.type = e->type;
	TRY(follow_reference(c, &o));
	if (!recipe_of(c->types, o.type, &at.recipe) || at.recipe.kind != RECIPE_TEXT)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	if (o.state != LOCATED || at.recipe.n_inside) {
		TRY(operand_address(c, &o));
		save(c, HAS_VALUE);
		o = (struct operand){.state = MEMORY, .type = o.type};
	}
	if (at.recipe.n_inside)
		TRY(load_text_inside(c, &o, &at));
	else
		TRY(load_target(c, &o, &at));
	check_count(c);
	return CAIRN_AVAILABLE;
}

/*
 * The bytes from HAS_POINTER on and their number, as FETCH_STRING writes a string: a NUL is
 * counted. acc is the number.
 */
static void store_key_text(struct compiler *c, uint32_t out, uint32_t log, uint32_t most)
{
	struct fetch_program *p = c->program;

	fetch_emit_imm(p, FETCH_UGT, most);
	fetch_emit_imm(p, FETCH_SHL, __builtin_ctz(TRACE_STRING_CUT));
	save(c, HAS_VALUE);
	uint32_t is_whole = fetch_begin_jump(c->program, FETCH_JZ);
	fetch_emit(p, FETCH_CONST)->imm = most;
	save(c, HAS_COUNT);
	fetch_land(c->program, is_whole);
	restore(c, HAS_COUNT);
	fetch_emit_imm(p, FETCH_ADD, 1);
	struct fetch_op *op = fetch_emit(p, FETCH_OR);
	op->flags = FETCH_F_FILE;
	op->reg = temp_of(c, HAS_VALUE);
	fetch_emit_store(p, out + offsetof(struct key_string, length), 2);
	restore(c, HAS_POINTER);
	op = fetch_emit(p, FETCH_BYTES);
	op->reg = temp_of(c, HAS_COUNT);
	op->out = (uint16_t)(out + offsetof(struct key_string, bytes));
	op->size = (uint8_t)log;
}

enum cairn_unavailable compile_key_text(struct compiler *c, const struct expr *e, uint32_t out,
					uint32_t log, uint32_t most, uint32_t value)
{
	uint32_t from = c->program->n;

	fetch_barrier(c->program);
	c->temp = 0;
	enum cairn_unavailable why = load_text(c, e);
	if (why == CAIRN_AVAILABLE) {
		store_key_text(c, out, log, most);
		fetch_close_value(c->program, from, value);
	} else {
		c->program->n = from;
	}
	return why;
}

/* acc = whether the bytes from HAS_POINTER on are these, which are as many as the text has. */
static void compare_bytes(struct compiler *c, const char *text, uint32_t n)
{
	uint32_t jumps[EXPR_TEXT_MAX / 8 + 1], n_jumps = 0;

	for (uint32_t at = 0, size; at < n; at += size) {
		uint64_t word = 0;
		size = n - at < 8 ? n - at : 8;
		memcpy(&word, text + at, size);
		jumps[n_jumps++] = fetch_begin_jump(c->program, FETCH_JZ);
		restore(c, HAS_POINTER);
		fetch_emit_imm(c->program, FETCH_ADD, at);
		fetch_emit(c->program, FETCH_LOAD)->size = (uint8_t)size;
		fetch_emit_imm(c->program, FETCH_EQ, (int64_t)word);
	}
	while (n_jumps)
		fetch_land(c->program, jumps[--n_jumps]);
}

enum cairn_unavailable text_compare(struct compiler *c, const struct expr *e, unsigned int temp)
{
	if (!operand_has_temp(c, temp + N_TEMPS - 1))
		return CAIRN_AVAILABLE;
	c->temp = temp;
	TRY(load_text(c, e->a));
	fetch_emit_imm(c->program, FETCH_EQ, e->b->n_bytes);
	compare_bytes(c, e->b->name, e->b->n_bytes);
	fetch_barrier(c->program);
	if (e->op == FETCH_NE)
		fetch_emit_imm(c->program, FETCH_EQ, 0);
	return CAIRN_AVAILABLE;
}
