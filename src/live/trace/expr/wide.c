/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiling strings of wide characters: wchar_t, char16_t, char32_t
 *
 * No helper of the kernel reads one up to its end. So a value is fetched with the bytes after its
 * end, as many as its room has; they may be on a page that cannot be read. If not all can be read,
 * which is a fault of the value, those up to the end of the first page are. The reader finds the
 * end and makes text of it (read/decode.c, base/wide.h). In the record:
 *
 *	OFFSET  SIZE  MEANING
 *	0       8     the address; VALUE_NO_ADDRESS: it could not be computed
 *	8       8     of a fault: bytes that were read all the same
 *	16      ...   the bytes
 */
#include "trace/expr/operand.h"

enum { TEMP_ADDRESS = FETCH_TEMP, TEMP_BYTES, PAGE_BYTES = 4096 };

static void store_at(struct compiler *c, uint32_t out)
{
	/* Not as one operation with what is before, which would leave acc alone. */
	struct fetch_op *op = fetch_emit(c->program, FETCH_STORE);

	op->out = (uint16_t)out;
	op->size = 8;
}

static void load_temp(struct compiler *c, uint8_t reg)
{
	fetch_emit(c->program, FETCH_REG)->reg = reg;
}

/* The bytes from the address to the end of its page. */
static void store_first_page(struct compiler *c, const struct value_layout *layout)
{
	struct fetch_program *p = c->program;
	uint32_t out_n = layout->out + 8u;

	fetch_emit(p, FETCH_CONST)->imm = 0;
	store_at(c, out_n);
	load_temp(c, TEMP_ADDRESS);
	fetch_emit_imm(p, FETCH_AND, PAGE_BYTES - 1);
	struct fetch_op *op = fetch_emit(p, FETCH_SUB);
	op->flags = FETCH_F_SWAP;
	op->imm = PAGE_BYTES;
	fetch_emit(p, FETCH_SAVE)->reg = TEMP_BYTES;
	load_temp(c, TEMP_ADDRESS);
	op = fetch_emit(p, FETCH_BYTES);
	op->reg = TEMP_BYTES;
	op->out = layout->out + BYTES_HEAD;
	op->size = (uint8_t)__builtin_ctz(layout->n_bytes);
	load_temp(c, TEMP_BYTES);
	store_at(c, out_n);
}

/* acc = the address of the string. */
static enum cairn_unavailable load_string(struct compiler *c, const struct expr *e,
					  unsigned int temp)
{
	struct operand o = {0};

	c->temp = temp;
	TRY(operand_of_path(c, e, &o));
	return operand_base(c, &o);
}

/* The address. Where it needs memory, the record has an older one until then. */
static enum cairn_unavailable load_address(struct compiler *c, const struct expr *e,
					   const struct value_layout *layout)
{
	struct fetch_program *p = c->program;
	uint32_t from = p->n;

	TRY(load_string(c, e, 0));
	if (p->n == from + 1 && p->ops[from].code == FETCH_REG)
		return CAIRN_AVAILABLE;
	p->n = p->barrier = from;
	fetch_emit(p, FETCH_CONST)->imm = VALUE_NO_ADDRESS;
	store_at(c, layout->out);
	return load_string(c, e, 0);
}

enum cairn_unavailable wide_store(struct compiler *c, const struct expr *e,
				  const struct value_layout *layout, uint32_t value)
{
	struct fetch_program *p = c->program;
	uint32_t from = p->n;

	TRY(load_address(c, e, layout));
	store_at(c, layout->out);
	fetch_emit(p, FETCH_SAVE)->reg = TEMP_ADDRESS;
	fetch_barrier(p);
	uint32_t whole = p->n;
	fetch_emit_copy(p, layout->out + BYTES_HEAD, layout->n_bytes);
	fetch_emit(p, FETCH_CONST)->imm = 0;
	uint32_t to_end = fetch_begin_jump(c->program, FETCH_JZ), rest = p->n;
	store_first_page(c, layout);
	fetch_land(c->program, to_end);
	fetch_close_value(p, from, value);
	fetch_close_part(p, whole, rest);
	return CAIRN_AVAILABLE;
}

/* ---- conditions ---- */

/* acc = whether the character at @i is that one. */
static void compare_one(struct compiler *c, uint8_t reg, uint32_t i, uint8_t unit, uint32_t wanted)
{
	fetch_emit(c->program, FETCH_REG)->reg = reg;
	fetch_emit_imm(c->program, FETCH_ADD, (int64_t)i * unit);
	fetch_emit(c->program, FETCH_LOAD)->size = unit;
	fetch_emit_imm(c->program, FETCH_EQ, wanted);
}

/* Elements of an array that is compared; 0: it is a pointer, or their number is not known. */
static uint64_t n_elements(const struct compiler *c, const struct expr *e)
{
	if (!e->is_path || e->is_address)
		return 0;
	const struct cairn_type *t =
		cairn_types_get(c->types, cairn_types_resolve(c->types, e->type));
	return t->kind == CAIRN_T_ARRAY && t->has_count ? t->count : 0;
}

/*
 * One character after the other, up to the first that differs: nothing is read after the end. An
 * array that is full has no 0 at its end.
 */
enum cairn_unavailable wide_compare(struct compiler *c, const struct expr *e, unsigned int temp)
{
	uint32_t units[EXPR_WIDE_MAX + 1] = {0}, jumps[EXPR_WIDE_MAX + 1];
	int n = expr_wide_text(e->b, e->unit, units, EXPR_WIDE_MAX);
	uint8_t reg = (uint8_t)(FETCH_TEMP + temp);
	uint64_t room = n_elements(c, e->a);

	if (!operand_has_temp(c, temp))
		return CAIRN_AVAILABLE;
	if (n < 0)
		return CAIRN_UNAVAIL_UNSUPPORTED;
	TRY(load_string(c, e->a, temp));
	fetch_emit(c->program, FETCH_SAVE)->reg = reg;
	int last = room && (uint64_t)n >= room ? (int)room - 1 : n;
	for (int i = 0; i <= last; i++) {
		compare_one(c, reg, (uint32_t)i, e->unit, units[i]);
		jumps[i] = i < last ? fetch_begin_jump(c->program, FETCH_JZ) : 0;
	}
	for (int i = 0; i < last; i++)
		fetch_land(c->program, jumps[i]);
	fetch_barrier(c->program);
	/* A literal that is longer than the array is none of its strings. */
	if (room && (uint64_t)n > room)
		fetch_emit_imm(c->program, FETCH_AND, 0);
	if (e->op == FETCH_NE)
		fetch_emit_imm(c->program, FETCH_EQ, 0);
	return CAIRN_AVAILABLE;
}
