/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One argument, by instructions of BPF
 *
 * The operations of fetch programs become instructions one by one: the accumulator is r7, the slots
 * are r8 and r9, and r6 has the probe's registers. "the 4 bytes at %rbx + 8" is
 *
 *	r7 = *(u64 *)(r6 + 40)
 *	r1 = fp + at; r2 = 4; r3 = r7 + 8; call probe_read_kernel
 *	if r0 != 0 goto lost
 */
#include "cover/cover.h"

#define R0 0
#define R1 1
#define R2 2
#define R3 3
#define R6 6
#define R7 7
#define R8 8
#define FP 10

enum { SLOTS = 2 };

/* ---- instructions ---- */

void code_add(struct cover_code *c, uint8_t code, uint8_t dst, uint8_t src, int16_t off,
	      int32_t imm)
{
	struct bpf_insn insn = {.code = code, .off = off, .imm = imm};

	insn.dst_reg = dst & 15;
	insn.src_reg = src & 15;
	c->failed |= !VEC_ADD(&c->insns, insn);
}

void code_add_wide(struct cover_code *c, uint8_t dst, uint8_t src, uint64_t imm)
{
	code_add(c, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, (int32_t)(uint32_t)imm);
	code_add(c, 0, 0, 0, 0, (int32_t)(uint32_t)(imm >> 32));
}

void code_fini(struct cover_code *c)
{
	VEC_FREE(&c->insns);
	VEC_FREE(&c->faults);
}

static void load_word(struct cover_code *c, uint8_t dst, uint8_t dwarf_reg)
{
	code_add(c, BPF_LDX | BPF_MEM | BPF_DW, dst, R6,
		 (int16_t)(8 * trace_register_word(dwarf_reg)), 0);
}

static uint8_t size_code(uint32_t size)
{
	switch (size) {
	case 1:
		return BPF_B;
	case 2:
		return BPF_H;
	case 4:
		return BPF_W;
	default:
		return BPF_DW;
	}
}

static void shift_both(struct cover_code *c, uint8_t reg, uint32_t size, bool with_sign)
{
	int32_t by = 64 - 8 * (int32_t)size;

	if (!by)
		return;
	code_add(c, BPF_ALU64 | BPF_LSH | BPF_K, reg, 0, 0, by);
	code_add(c, BPF_ALU64 | (with_sign ? BPF_ARSH : BPF_RSH) | BPF_K, reg, 0, 0, by);
}

/* ---- memory ---- */

static void read_memory(struct cover_code *c, const struct cover_slot *slot, int16_t to,
			uint32_t size, uint64_t off)
{
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, R1, FP, 0, 0);
	code_add(c, BPF_ALU64 | BPF_ADD | BPF_K, R1, 0, 0, to);
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, (int32_t)size);
	code_add_wide(c, R3, 0, off);
	code_add(c, BPF_ALU64 | BPF_ADD | BPF_X, R3, R7, 0, 0);
	code_add(c, BPF_JMP | BPF_CALL, 0, 0, 0,
		 slot->of_kernel ? BPF_FUNC_probe_read_kernel : BPF_FUNC_probe_read_user);
	c->failed |= !VEC_ADD(&c->faults, (uint32_t)c->insns.n);
	code_add(c, BPF_JMP | BPF_JNE | BPF_K, R0, 0, 0, 0);
}

static void load(struct cover_code *c, const struct cover_slot *slot, uint32_t size)
{
	code_add(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, slot->spare, 0);
	read_memory(c, slot, slot->spare, size, 0);
	code_add(c, BPF_LDX | BPF_MEM | BPF_DW, R7, FP, slot->spare, 0);
}

/* ---- arithmetic ---- */

static bool is_register(uint8_t reg)
{
	return trace_register_word(reg) >= 0;
}

static bool is_slot(uint8_t reg)
{
	return reg >= FETCH_SLOT && reg < FETCH_SLOT + SLOTS;
}

static void load_operand(struct cover_code *c, const struct fetch_op *op)
{
	if (!(op->flags & FETCH_F_FILE))
		code_add_wide(c, R1, 0, op->imm);
	else if (is_slot(op->reg))
		code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, R1, (uint8_t)(R8 + op->reg - FETCH_SLOT),
			 0, 0);
	else
		load_word(c, R1, op->reg);
}

static uint8_t arithmetic_code(uint8_t code)
{
	switch (code) {
	case FETCH_ADD:
		return BPF_ADD;
	case FETCH_SUB:
		return BPF_SUB;
	case FETCH_MUL:
		return BPF_MUL;
	case FETCH_AND:
		return BPF_AND;
	case FETCH_OR:
		return BPF_OR;
	case FETCH_XOR:
		return BPF_XOR;
	case FETCH_SHL:
		return BPF_LSH;
	case FETCH_SHR:
		return BPF_RSH;
	default:
		return BPF_ARSH;
	}
}

static uint8_t compare_code(uint8_t code)
{
	switch (code) {
	case FETCH_EQ:
		return BPF_JEQ;
	case FETCH_NE:
		return BPF_JNE;
	case FETCH_LT:
		return BPF_JSLT;
	case FETCH_LE:
		return BPF_JSLE;
	case FETCH_GT:
		return BPF_JSGT;
	default:
		return BPF_JSGE;
	}
}

/* By 64 or more: 0, or all sign bits; a shift of BPF takes the lowest six bits. */
static void limit_shift(struct cover_code *c, uint8_t dst, uint8_t by, uint8_t code)
{
	code_add(c, BPF_JMP | BPF_JLE | BPF_K, by, 0, 2, 63);
	code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, by, 0, 0, 63);
	if (code == FETCH_SAR)
		code_add(c, BPF_ALU64 | BPF_ARSH | BPF_K, dst, 0, 0, 63);
	else
		code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, 0);
	code_add(c, BPF_ALU64 | BPF_AND | BPF_K, by, 0, 0, 63);
}

/* r7 = r7 OP r1; with F_SWAP r1 OP r7. */
static void add_binary(struct cover_code *c, const struct fetch_op *op)
{
	bool is_swapped = op->flags & FETCH_F_SWAP;
	uint8_t dst = is_swapped ? R1 : R7, by = is_swapped ? R7 : R1;

	load_operand(c, op);
	if (op->code >= FETCH_EQ) {
		code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, 1);
		code_add(c, BPF_JMP | BPF_X | compare_code(op->code), dst, by, 1, 0);
		code_add(c, BPF_ALU64 | BPF_MOV | BPF_K, R2, 0, 0, 0);
		code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, R7, R2, 0, 0);
		return;
	}
	if (op->code >= FETCH_SHL && op->code <= FETCH_SAR)
		limit_shift(c, dst, by, op->code);
	code_add(c, BPF_ALU64 | BPF_X | arithmetic_code(op->code), dst, by, 0, 0);
	if (is_swapped)
		code_add(c, BPF_ALU64 | BPF_MOV | BPF_X, R7, R1, 0, 0);
}

/* ---- operations ---- */

static bool is_in_slot(const struct trace_located_arg *arg, const struct fetch_op *op,
		       uint32_t size)
{
	uint32_t to = op->out - arg->out;

	return (size == 1 || size == 2 || size == 4 || size == 8) && to < 8 && to + size <= 8 &&
	       to % size == 0;
}

static bool op_is_known(const struct trace_located_arg *arg, const struct fetch_op *op)
{
	switch (op->code) {
	case FETCH_REG:
		return is_register(op->reg);
	case FETCH_STORE_REG:
		return is_register(op->reg) && is_in_slot(arg, op, op->size);
	case FETCH_STORE:
		return is_in_slot(arg, op, op->size);
	case FETCH_COPY:
		return op->size <= 3 && is_in_slot(arg, op, 1u << op->size);
	case FETCH_LOAD:
	case FETCH_SEXT:
	case FETCH_ZEXT:
		return op->size >= 1 && op->size <= 8;
	case FETCH_SAVE:
		return is_slot(op->reg);
	case FETCH_CONST:
	case FETCH_NEG:
	case FETCH_NOT:
		return true;
	}
	if ((op->code < FETCH_ADD || op->code > FETCH_SAR) &&
	    (op->code < FETCH_EQ || op->code > FETCH_GE))
		return false;
	return !(op->flags & FETCH_F_FILE) || is_slot(op->reg) || is_register(op->reg);
}

bool fetch_is_known(const struct trace_located_arg *arg)
{
	for (uint32_t i = 0; i < arg->n_ops; i++)
		if (!op_is_known(arg, &arg->ops[i]))
			return false;
	return arg->n_bytes >= 1 && arg->n_bytes <= 8 && (arg->constant || arg->n_ops);
}

static void add_op(struct cover_code *c, const struct trace_located_arg *arg,
		   const struct fetch_op *op, const struct cover_slot *slot)
{
	int16_t to = (int16_t)(slot->at + op->out - arg->out);

	switch (op->code) {
	case FETCH_REG:
		return load_word(c, R7, op->reg);
	case FETCH_STORE_REG:
		load_word(c, R1, op->reg);
		return code_add(c, BPF_STX | BPF_MEM | size_code(op->size), FP, R1, to, 0);
	case FETCH_STORE:
		return code_add(c, BPF_STX | BPF_MEM | size_code(op->size), FP, R7, to, 0);
	case FETCH_COPY:
		return read_memory(c, slot, to, 1u << op->size, op->imm);
	case FETCH_LOAD:
		return load(c, slot, op->size);
	case FETCH_SEXT:
	case FETCH_ZEXT:
		return shift_both(c, R7, op->size, op->code == FETCH_SEXT);
	case FETCH_SAVE:
		return code_add(c, BPF_ALU64 | BPF_MOV | BPF_X,
				(uint8_t)(R8 + op->reg - FETCH_SLOT), R7, 0, 0);
	case FETCH_CONST:
		return code_add_wide(c, R7, 0, op->imm);
	case FETCH_NEG:
		return code_add(c, BPF_ALU64 | BPF_NEG, R7, 0, 0, 0);
	case FETCH_NOT:
		return code_add(c, BPF_ALU64 | BPF_XOR | BPF_K, R7, 0, 0, -1);
	}
	add_binary(c, op);
}

static uint64_t constant_of(const struct trace_located_arg *arg)
{
	uint64_t value = 0;

	memcpy(&value, arg->constant, arg->n_bytes);
	return value;
}

void fetch_arg(struct cover_code *c, const struct trace_located_arg *arg,
	       const struct cover_slot *slot)
{
	if (arg->constant) {
		code_add_wide(c, R7, 0, constant_of(arg));
	} else {
		code_add(c, BPF_ST | BPF_MEM | BPF_DW, FP, 0, slot->at, 0);
		for (uint32_t i = 0; i < arg->n_ops; i++)
			add_op(c, arg, &arg->ops[i], slot);
		code_add(c, BPF_LDX | BPF_MEM | BPF_DW, R7, FP, slot->at, 0);
	}
	shift_both(c, R7, arg->n_bytes, arg->is_signed);
	code_add(c, BPF_STX | BPF_MEM | BPF_DW, FP, R7, slot->at, 0);
}
