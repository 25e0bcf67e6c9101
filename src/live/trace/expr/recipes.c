/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiling values that are elsewhere, by a recipe: strings and vectors of C++, Rust and Go. */
#include "trace/expr/operand.h"

/* The byte at @off of the value's state says so. */
static void store_state(struct compiler *c, const struct value_layout *layout, uint32_t off)
{
	fetch_emit(c->program, FETCH_CONST)->imm = 1;
	fetch_emit_store(c->program, layout->state + off, 1);
}

/* acc = the word at @off of the value; one in memory is at temporary 0. */
static enum cairn_unavailable load_word(struct compiler *c, const struct operand *o, uint64_t off)
{
	struct operand word = *o;

	if (o->state == MEMORY) {
		fetch_emit(c->program, FETCH_REG)->reg = TEMP_VALUE;
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
	fetch_emit(c->program, FETCH_SAVE)->reg = TEMP_POINTER;
	TRY(load_word(c, o, at->off + recipe->count));
	if (recipe->count_is_end) {
		op = fetch_emit(c->program, FETCH_SUB);
		op->flags = FETCH_F_FILE;
		op->reg = TEMP_POINTER;
	} else if (recipe->element_bytes > 1) {
		fetch_emit_imm(c->program, FETCH_MUL, (int64_t)recipe->element_bytes);
	}
	fetch_emit(c->program, FETCH_SAVE)->reg = TEMP_COUNT;
	fetch_emit(c->program, FETCH_REG)->reg = TEMP_POINTER;
	return CAIRN_AVAILABLE;
}

static enum cairn_unavailable store_target(struct compiler *c, const struct operand *o,
					   const struct target_layout *t)
{
	TRY(load_target(c, o, &t->is));
	struct fetch_op *op = fetch_emit(c->program, FETCH_BYTES);
	op->reg = TEMP_COUNT;
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
	fetch_emit(c->program, FETCH_SAVE)->reg = TEMP_VALUE;
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
