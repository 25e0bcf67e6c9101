/* SPDX-License-Identifier: BSD-2-Clause */
/* Fetch programs for people: the output of --dry-run. */
#include <errno.h>
#include <inttypes.h>

#include <cairn/text.h>

#include "insn/insn.h"
#include "trace/fetch/fetch.h"

/* clang-format off */
static const char *const names[FETCH_N_CODES] = {
	[FETCH_END] = "end",	 [FETCH_FILTER] = "filter", [FETCH_STORE_REG] = "store-reg",
	[FETCH_REG] = "reg",	 [FETCH_CONST] = "const",   [FETCH_STORE] = "store",
	[FETCH_LOAD] = "load",	 [FETCH_COPY] = "copy",	    [FETCH_STRING] = "string",
	[FETCH_BYTES] = "bytes", [FETCH_KNOWN] = "known",
	[FETCH_STREQ] = "streq", [FETCH_SAVE] = "save",	    [FETCH_JZ] = "jz",
	[FETCH_JNZ] = "jnz",	 [FETCH_SEXT] = "sext",	    [FETCH_ZEXT] = "zext",
	[FETCH_NEG] = "neg",	 [FETCH_NOT] = "not",	    [FETCH_ADD] = "add",
	[FETCH_SUB] = "sub",	 [FETCH_MUL] = "mul",	    [FETCH_AND] = "and",
	[FETCH_OR] = "or",	 [FETCH_XOR] = "xor",	    [FETCH_SHL] = "shl",
	[FETCH_SHR] = "shr",	 [FETCH_SAR] = "sar",	    [FETCH_DIV] = "div",
	[FETCH_MOD] = "mod",	 [FETCH_UDIV] = "udiv",	    [FETCH_UMOD] = "umod",
	[FETCH_EQ] = "eq",	 [FETCH_NE] = "ne",	    [FETCH_LT] = "lt",
	[FETCH_LE] = "le",	 [FETCH_GT] = "gt",	    [FETCH_GE] = "ge",
	[FETCH_ULT] = "ult",	 [FETCH_ULE] = "ule",	    [FETCH_UGT] = "ugt",
	[FETCH_UGE] = "uge",
};
/* clang-format on */

static void put_cell(uint8_t reg, FILE *out)
{
	if (reg < FETCH_FILE_IP)
		fprintf(out, " %%%s", insn_reg_name(reg));
	else if (reg == FETCH_FILE_IP)
		fputs(" %rip", out);
	else if (reg >= FETCH_KEPT)
		fprintf(out, " kept%u", reg - FETCH_KEPT);
	else
		fprintf(out, " %s%u", reg < FETCH_TEMP ? "slot" : "temp",
			reg - (reg < FETCH_TEMP ? FETCH_SLOT : FETCH_TEMP));
}

static const char *const known[FETCH_N_KNOWN] = {
	[FETCH_PID] = "pid",
	[FETCH_TID] = "tid",
	[FETCH_CPU] = "cpu",
	[FETCH_UID] = "uid",
	[FETCH_GID] = "gid",
	[FETCH_CGROUP] = "cgroup",
	[FETCH_THREAD_POINTER] = "thread pointer",
};

static void put_op(const struct fetch_op *op, FILE *out)
{
	fputs(op->code < FETCH_N_CODES ? names[op->code] : "?", out);
	switch (op->code) {
	case FETCH_REG:
	case FETCH_SAVE:
		put_cell(op->reg, out);
		break;
	case FETCH_STORE_REG:
		put_cell(op->reg, out);
		/* fall through */
	case FETCH_STORE:
		fprintf(out, " -> record+%u, %s", op->out, cairn_counted(op->size, "byte").text);
		break;
	case FETCH_COPY:
		fprintf(out, " +0x%" PRIx64 " -> record+%u, %s", (uint64_t)op->imm, op->out,
			cairn_counted(1u << op->size, "byte").text);
		break;
	case FETCH_STRING:
		fprintf(out, " -> record+%u, at most %s", op->out,
			cairn_counted(1u << op->size, "byte").text);
		break;
	case FETCH_BYTES:
		fputs(" as many as", out);
		put_cell(op->reg, out);
		fprintf(out, " -> record+%u, at most %u", op->out, 1u << op->size);
		break;
	case FETCH_LOAD:
	case FETCH_SEXT:
	case FETCH_ZEXT:
		fprintf(out, " %s", cairn_counted(op->size, "byte").text);
		break;
	case FETCH_KNOWN:
		fprintf(out, " %s", op->imm < FETCH_N_KNOWN ? known[op->imm] : "?");
		break;
	case FETCH_STREQ:
		fputs(op->flags & FETCH_F_COMM ? " comm" : "", out);
		break;
	case FETCH_CONST:
		fprintf(out, " 0x%" PRIx64, (uint64_t)op->imm);
		break;
	case FETCH_JZ:
	case FETCH_JNZ:
		fprintf(out, " over %u", op->jump);
		break;
	}
	if (op->code >= FETCH_ADD && op->flags & FETCH_F_FILE)
		put_cell(op->reg, out);
	else if (op->code >= FETCH_ADD)
		fprintf(out, " 0x%" PRIx64, (uint64_t)op->imm);
	if (op->code >= FETCH_ADD && op->flags & FETCH_F_SWAP)
		fputs(", operands exchanged", out);
}

/* The two operations after a STREQ are its bytes. */
static void put_literal(const struct fetch_op *bytes, FILE *out)
{
	fprintf(out, " \"%.*s\"", FETCH_STREQ_BYTES, (const char *)bytes);
}

int fetch_print(const struct fetch_op *ops, uint32_t n, FILE *out)
{
	for (uint32_t i = 0; i < n; i++) {
		put_op(&ops[i], out);
		if (ops[i].code == FETCH_STREQ && n - i > 2) {
			put_literal(&ops[i + 1], out);
			i += 2;
		} else if (ops[i].value != FETCH_NO_VALUE) {
			fprintf(out, "\t(value %u)", ops[i].value);
		}
		fputc('\n', out);
	}
	return ferror(out) ? -EIO : 0;
}
