/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/fetch/fetch.h"

#include <errno.h>
#include <string.h>

#include <cairn/kernel.h>

struct fetch_op *fetch_emit(struct fetch_program *p, enum fetch_code code)
{
	static __thread struct fetch_op spare;
	struct fetch_op *op = &spare;

	if (p->n < FETCH_OPS_MAX)
		op = &p->ops[p->n++];
	else
		p->full = true;
	*op = (struct fetch_op){.code = code, .value = FETCH_NO_VALUE};
	return op;
}

/* The last operation, when it may be changed. */
static struct fetch_op *last_op(struct fetch_program *p)
{
	return p->n > p->barrier && !p->full ? &p->ops[p->n - 1] : NULL;
}

/* The last operation when it is "add imm". */
static struct fetch_op *last_addition(struct fetch_program *p)
{
	struct fetch_op *op = last_op(p);

	return op && op->code == FETCH_ADD && !op->flags ? op : NULL;
}

void fetch_emit_imm(struct fetch_program *p, enum fetch_code code, int64_t imm)
{
	struct fetch_op *before = last_addition(p);

	if (code == FETCH_ADD && !imm)
		return;
	if (code == FETCH_ADD && before) {
		before->imm += (uint64_t)imm;
		return;
	}
	fetch_emit(p, code)->imm = (uint64_t)imm;
}

/* "reg; store" is one operation, by far the most frequent. */
static void emit_store_once(struct fetch_program *p, uint32_t out, uint32_t size, bool last)
{
	struct fetch_op *op = last_op(p);

	if (op && last && op->code == FETCH_REG)
		op->code = FETCH_STORE_REG;
	else
		op = fetch_emit(p, FETCH_STORE);
	op->out = (uint16_t)out;
	op->size = (uint8_t)size;
}

static uint32_t largest_power(uint32_t n)
{
	return 1u << (31 - __builtin_clz(n));
}

void fetch_emit_store(struct fetch_program *p, uint32_t out, uint32_t n)
{
	for (uint32_t size; n; out += size, n -= size) {
		size = largest_power(n < 8 ? n : 8);
		emit_store_once(p, out, size, n == size);
		if (n > size)
			fetch_emit_imm(p, FETCH_SHR, 8 * size);
	}
}

void fetch_emit_copy(struct fetch_program *p, uint32_t out, uint32_t n)
{
	struct fetch_op *before = last_addition(p);
	uint64_t from = 0;

	if (before) {
		from = before->imm;
		p->n--;
	}
	while (n) {
		uint32_t size = largest_power(n < 2048 ? n : 2048);
		struct fetch_op *op = fetch_emit(p, FETCH_COPY);
		op->size = (uint8_t)__builtin_ctz(size);
		op->out = (uint16_t)out;
		op->imm = from;
		out += size;
		from += size;
		n -= size;
	}
}

/* A jump's distance is its own, and the two operations after a comparison of strings are its text. */
static void close_operations(struct fetch_program *p, uint32_t from, uint32_t to, int value)
{
	for (uint32_t i = from; i < to && i < p->n; i++) {
		struct fetch_op *op = &p->ops[i];
		if (value >= 0)
			op->value = (uint8_t)value;
		if (op->code != FETCH_JZ && op->code != FETCH_JNZ)
			op->jump = (uint8_t)(to - i - 1);
		i += op->code == FETCH_STREQ ? 2 : 0;
	}
}

void fetch_close_value(struct fetch_program *p, uint32_t from, uint32_t value)
{
	close_operations(p, from, p->n, (int)value);
}

void fetch_close_part(struct fetch_program *p, uint32_t from, uint32_t to)
{
	close_operations(p, from, to, -1);
}

/* A kprobe's instruction pointer is not the site's. */
static bool has_register(const struct fetch_program *p, uint8_t reg, enum cairn_unavailable *why)
{
	*why = CAIRN_UNAVAIL_VECTOR_REGISTER;
	if (reg != FETCH_FILE_IP || !p->slide.is_of_kernel)
		return reg <= FETCH_FILE_IP;
	*why = CAIRN_UNAVAIL_UNSUPPORTED;
	return false;
}

static bool emit_register(struct fetch_program *p, uint8_t reg, enum cairn_unavailable *why)
{
	if (!has_register(p, reg, why))
		return false;
	fetch_emit(p, FETCH_REG)->reg = reg;
	return true;
}

static bool emit_binary(struct fetch_program *p, const struct cairn_loc_step *s,
			enum cairn_unavailable *why)
{
	static const uint8_t codes[] = {
		[CAIRN_LOC_ADD] = FETCH_ADD, [CAIRN_LOC_SUB] = FETCH_SUB,
		[CAIRN_LOC_MUL] = FETCH_MUL, [CAIRN_LOC_AND] = FETCH_AND,
		[CAIRN_LOC_OR] = FETCH_OR,   [CAIRN_LOC_XOR] = FETCH_XOR,
		[CAIRN_LOC_SHL] = FETCH_SHL, [CAIRN_LOC_SHR] = FETCH_SHR,
		[CAIRN_LOC_SAR] = FETCH_SAR, [CAIRN_LOC_EQ] = FETCH_EQ,
		[CAIRN_LOC_NE] = FETCH_NE,   [CAIRN_LOC_LT] = FETCH_LT,
		[CAIRN_LOC_LE] = FETCH_LE,   [CAIRN_LOC_GT] = FETCH_GT,
		[CAIRN_LOC_GE] = FETCH_GE,
	};
	uint8_t code = s->op < sizeof(codes) ? codes[s->op] : 0;

	*why = CAIRN_UNAVAIL_UNSUPPORTED;
	if (!code)
		return false;
	switch (s->operand) {
	case CAIRN_LOC_IMM:
		fetch_emit_imm(p, code, s->imm);
		return true;
	case CAIRN_LOC_OPERAND_REG:
		if (!has_register(p, s->reg, why))
			return false;
		break;
	case CAIRN_LOC_SLOT:
		if (s->imm < 0 || s->imm >= CAIRN_LOC_SLOTS)
			return false;
		break;
	default:
		return false;
	}
	struct fetch_op *op = fetch_emit(p, code);
	bool slot = s->operand == CAIRN_LOC_SLOT;
	op->flags = slot ? FETCH_F_FILE | FETCH_F_SWAP : FETCH_F_FILE;
	op->reg = slot ? (uint8_t)(FETCH_SLOT + s->imm) : s->reg;
	return true;
}

static bool emit_sized(struct fetch_program *p, enum fetch_code code, uint8_t size,
		       enum cairn_unavailable *why)
{
	*why = CAIRN_UNAVAIL_UNSUPPORTED;
	if (size < 1 || size > 8)
		return false;
	fetch_emit(p, code)->size = size;
	return true;
}

/* Per-processor variables have small addresses in some kernels, and stay there. */
#define KERNEL_IMAGE UINT64_C(0xffffffff80000000)

static bool emit_module_address(struct fetch_program *p, uint64_t address,
				enum cairn_unavailable *why)
{
	const struct cairn_vaddr at = {address};
	uint64_t to = 0;

	*why = CAIRN_UNAVAIL_UNSUPPORTED;
	if (!cairn_kernel_data_address(p->slide.kernel, at, &to) &&
	    !cairn_kernel_address(p->slide.kernel, at, &to))
		return false;
	fetch_emit(p, FETCH_CONST)->imm = to;
	return true;
}

static bool emit_address(struct fetch_program *p, uint64_t address, struct cairn_vaddr at,
			 enum cairn_unavailable *why)
{
	if (!p->slide.is_of_kernel) {
		/*
		 * The load address of the program does not matter: the distance to the probe is
		 * fixed.
		 */
		fetch_emit(p, FETCH_REG)->reg = FETCH_FILE_IP;
		fetch_emit_imm(p, FETCH_ADD, (int64_t)(address - at.v));
		return true;
	}
	if (p->slide.is_of_module)
		return emit_module_address(p, address, why);
	fetch_emit(p, FETCH_CONST)->imm = address < KERNEL_IMAGE ? address : address + p->slide.by;
	return true;
}

static bool emit_step(struct fetch_program *p, const struct cairn_loc_step *s,
		      struct cairn_vaddr at, enum cairn_unavailable *why)
{
	switch ((enum cairn_loc_op)s->op) {
	case CAIRN_LOC_REG:
		return emit_register(p, s->reg, why);
	case CAIRN_LOC_THREAD:
		fetch_emit(p, FETCH_KNOWN)->imm = FETCH_THREAD_POINTER;
		return true;
	case CAIRN_LOC_CONST:
		fetch_emit(p, FETCH_CONST)->imm = (uint64_t)s->imm;
		return true;
	case CAIRN_LOC_ADDR:
		return emit_address(p, (uint64_t)s->imm, at, why);
	case CAIRN_LOC_LOAD:
		return emit_sized(p, FETCH_LOAD, s->size, why);
	case CAIRN_LOC_SEXT:
		return emit_sized(p, FETCH_SEXT, s->size, why);
	case CAIRN_LOC_ZEXT:
		return emit_sized(p, FETCH_ZEXT, s->size, why);
	case CAIRN_LOC_NEG:
		fetch_emit(p, FETCH_NEG);
		return true;
	case CAIRN_LOC_NOT:
		fetch_emit(p, FETCH_NOT);
		return true;
	case CAIRN_LOC_SAVE:
		*why = CAIRN_UNAVAIL_UNSUPPORTED;
		if (s->imm < 0 || s->imm >= CAIRN_LOC_SLOTS)
			return false;
		fetch_emit(p, FETCH_SAVE)->reg = (uint8_t)(FETCH_SLOT + s->imm);
		return true;
	default:
		return emit_binary(p, s, why);
	}
}

bool fetch_emit_steps(struct fetch_program *p, const struct cairn_piece *piece,
		      struct cairn_vaddr at, enum cairn_unavailable *why)
{
	for (uint32_t i = 0; i < piece->n_steps; i++)
		if (!emit_step(p, &piece->steps[i], at, why))
			return false;
	return true;
}
