/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetch operations as statements of another language
 *
 * Each operation is a line, by the tool's table. Jumps only lead forward:
 *
 *	jz over N              if (a) { ... N operations ... }
 *	jz over N, of which    if (a) { ... N - 2 operations ... } else { ... M operations ... }
 *	the last are
 *	const 0; jz over M
 */
#include <string.h>

#include "trace/emit/emit.h"

struct lift {
	const struct emit_language *language;
	const struct fetch_op *ops;
	FILE *out;
};

static void put_operand(const struct lift *l, const struct fetch_op *op, bool is_first)
{
	bool is_acc = is_first == !(op->flags & FETCH_F_SWAP);

	if (op->code == FETCH_CONST)
		l->language->put_number(op->imm, l->out);
	else if (op->code < FETCH_ADD)
		l->language->put_cell(op->reg, l->out);
	else if (is_acc)
		fputs(l->language->acc, l->out);
	else if (op->flags & FETCH_F_FILE)
		l->language->put_cell(op->reg, l->out);
	else
		l->language->put_number(op->imm, l->out);
}

static void put_mark(const struct lift *l, const struct fetch_op *op, char mark)
{
	switch (mark) {
	case 'a':
	case 'b':
		put_operand(l, op, mark == 'a');
		break;
	case 'n':
		fprintf(l->out, "%u", op->size);
		break;
	case 's':
		fprintf(l->out, "%u", 8u * op->size);
		break;
	case 'm':
		fprintf(l->out, "%u", 64 - 8u * op->size);
		break;
	case 'k':
		fputs(l->language->known[op->imm], l->out);
		break;
	default: /* t */
		l->language->put_cell(op->reg, l->out);
	}
}

static void put_template(const struct lift *l, const struct fetch_op *op)
{
	for (const char *c = l->language->ops[op->code]; *c; c++)
		if (*c == '@')
			put_mark(l, op, *++c);
		else
			fputc(*c, l->out);
	fputc('\n', l->out);
}

static void put_line(const struct lift *l, unsigned int depth, const char *line)
{
	if (!line)
		return;
	emit_tabs(depth, l->out);
	fprintf(l->out, "%s\n", line);
}

static void lift_range(const struct lift *l, uint32_t from, uint32_t to, unsigned int depth);

/* Operations of the other branch of the jump at @at, whose own branch ends at @end; 0: none. */
static uint32_t other_branch(const struct lift *l, uint32_t at, uint32_t end, uint32_t to)
{
	const struct fetch_op *last = &l->ops[end - 1];

	if (end - at < 4 || last->code != FETCH_JZ || last[-1].code != FETCH_CONST || last[-1].imm)
		return 0;
	return end + last->jump <= to ? last->jump : 0;
}

/* Returns the operation after it. */
static uint32_t lift_jump(const struct lift *l, uint32_t at, uint32_t to, unsigned int depth)
{
	const struct emit_language *language = l->language;
	uint32_t end = at + 1 + l->ops[at].jump;

	end = end < to ? end : to;
	uint32_t other = other_branch(l, at, end, to);
	put_line(l, depth, l->ops[at].code == FETCH_JZ ? language->if_true : language->if_false);
	lift_range(l, at + 1, other ? end - 2 : end, depth + 1);
	if (other) {
		put_line(l, depth, language->otherwise);
		lift_range(l, end, end + other, depth + 1);
	}
	put_line(l, depth, language->end);
	return end + other;
}

static void lift_range(const struct lift *l, uint32_t from, uint32_t to, unsigned int depth)
{
	while (from < to) {
		const struct fetch_op *op = &l->ops[from];
		char text[FETCH_STREQ_BYTES + 1] = "";

		if (op->code == FETCH_JZ || op->code == FETCH_JNZ) {
			from = lift_jump(l, from, to, depth);
			continue;
		}
		emit_tabs(depth, l->out);
		from++;
		if (op->code != FETCH_STREQ) {
			put_template(l, op);
			continue;
		}
		memcpy(text, op + 1, FETCH_STREQ_BYTES);
		l->language->put_streq(text, op->flags & FETCH_F_COMM, l->out);
		from += 2;
	}
}

void emit_lift(const struct emit_language *language, const struct emit_value *value,
	       unsigned int depth, FILE *out)
{
	const struct lift l = {language, value->ops, out};

	lift_range(&l, 0, value->n, depth);
}

static const char *refuses_op(const struct emit_language *language, const struct fetch_op *op)
{
	if (op->code == FETCH_JZ || op->code == FETCH_JNZ)
		return NULL;
	if (op->code == FETCH_KNOWN && (op->imm >= FETCH_N_KNOWN || !language->known[op->imm]))
		return "it has no such variable: $cpu, $uid, $gid, $cgroup or a thread-local one";
	if (op->code >= FETCH_N_CODES || (op->code != FETCH_STREQ && !language->ops[op->code]))
		return "it has no such operation";
	return language->refuses ? language->refuses(op) : NULL;
}

const char *emit_refuses(const struct emit_language *language, const struct emit_value *value)
{
	const char *why = NULL;

	for (uint32_t i = 0; i < value->n && !why; i++) {
		why = refuses_op(language, &value->ops[i]);
		i += value->ops[i].code == FETCH_STREQ ? 2 : 0;
	}
	return why;
}
