/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <cairn/location.h>

#include "insn/insn.h"

static const struct {
	const char *id, *text;
} reasons[CAIRN_N_UNAVAILABLE] = {
	[CAIRN_AVAILABLE] = {"available", "available"},
	[CAIRN_UNAVAIL_NO_DESCRIPTION] = {"no-description", "optimised out: the compiler does not describe it here"},
	[CAIRN_UNAVAIL_OPTIMISED_OUT] = {"optimised-out", "optimised out"},
	[CAIRN_UNAVAIL_NOT_LIVE] = {"not-live", "not live here"},
	[CAIRN_UNAVAIL_PARTLY] = {"partly", "partly optimised out"},
	[CAIRN_UNAVAIL_ENTRY_VALUE] = {"entry-value", "needs the caller's frame: its register may have changed since entry"},
	[CAIRN_UNAVAIL_CALLER] = {"caller", "needs the caller's frame"},
	[CAIRN_UNAVAIL_IMPLICIT_POINTER] = {"implicit-pointer", "points to something that is not in memory"},
	[CAIRN_UNAVAIL_NO_CFA] = {"no-cfa", "no unwind row tells where the frame is"},
	[CAIRN_UNAVAIL_THREAD_LOCAL] = {"thread-local", "in thread-local storage"},
	[CAIRN_UNAVAIL_VECTOR_REGISTER] = {"vector-register", "in a register that a probe cannot read"},
	[CAIRN_UNAVAIL_AMBIGUOUS] = {"ambiguous", "several locations are given and they differ"},
	[CAIRN_UNAVAIL_NOT_STORED] = {"not-stored", "it may not have reached its place yet"},
	[CAIRN_UNAVAIL_MAY_HAVE_CHANGED] = {"may-have-changed", "the function may already have changed it"},
	[CAIRN_UNAVAIL_MAY_NOT_BE_PASSED] = {"may-not-be-passed", "not used here: callers may not have passed it"},
	[CAIRN_UNAVAIL_OTHER_PARAMETER] = {"other-parameter", "declared otherwise in the unit of this place"},
	[CAIRN_UNAVAIL_UNSUPPORTED] = {"unsupported", "its description uses an operation that is not supported"},
	[CAIRN_UNAVAIL_DAMAGED] = {"damaged", "its description is damaged"},
	[CAIRN_UNAVAIL_ANOTHER_CALL] = {"another-call", "may be the value of another call"},
	[CAIRN_UNAVAIL_PASSED_AGAIN] = {"passed-again", "the place may be reached without a call, too"},
	[CAIRN_UNAVAIL_MEMORY_WRITTEN] = {"memory-written", "computed from memory that may hold another value here"},
	[CAIRN_UNAVAIL_ANOTHER_MOMENT] = {"another-moment", "may be the value of another moment"},
	[CAIRN_UNAVAIL_NOT_KEPT] = {"not-kept", "was in a register that the callee did not keep"},
	[CAIRN_UNAVAIL_NOT_COPIED] = {"not-copied", "in memory that is not part of the stopped stacks, or not in the core"},
};

const char *cairn_unavailable_text(enum cairn_unavailable why)
{
	return why < CAIRN_N_UNAVAILABLE ? reasons[why].text : "unknown reason";
}

const char *cairn_unavailable_id(enum cairn_unavailable why)
{
	return why < CAIRN_N_UNAVAILABLE ? reasons[why].id : "unknown";
}

/* Text written as snprintf does: cut to the buffer, counted in full. */
struct text {
	char *buf;
	size_t size, len;
	bool (*symbol)(void *ctx, struct cairn_vaddr at, char *name, size_t size);
	void *symbol_ctx;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	size_t room = t->len < t->size ? t->size - t->len : 0;
	int n = vsnprintf(room ? t->buf + t->len : NULL, room, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
}

/* Room for one term; an expression of CAIRN_LOC_STEPS_MAX terms is cut, not overrun. */
enum { TERM_MAX = 512 };

static const char *const binary_text[] = {
	[CAIRN_LOC_ADD] = "+",	[CAIRN_LOC_SUB] = "-",	[CAIRN_LOC_MUL] = "*",	[CAIRN_LOC_AND] = "&",
	[CAIRN_LOC_OR] = "|",	[CAIRN_LOC_XOR] = "^",	[CAIRN_LOC_SHL] = "<<", [CAIRN_LOC_SHR] = ">>",
	[CAIRN_LOC_SAR] = ">>s", [CAIRN_LOC_EQ] = "==",	[CAIRN_LOC_NE] = "!=",	[CAIRN_LOC_LT] = "<",
	[CAIRN_LOC_LE] = "<=",	[CAIRN_LOC_GT] = ">",	[CAIRN_LOC_GE] = ">=",
};

static void reg_name(char *buf, size_t size, unsigned int reg)
{
	if (reg >= 17 && reg <= 32)
		snprintf(buf, size, "%%xmm%u", reg - 17);
	else if (insn_reg_name(reg))
		snprintf(buf, size, "%%%s", insn_reg_name(reg));
	else
		snprintf(buf, size, "%%dwarf%u", reg);
}

static void address_name(const struct text *t, int64_t at, char *buf, size_t size)
{
	char name[256];
	if (t->symbol && t->symbol(t->symbol_ctx, (struct cairn_vaddr){(uint64_t)at}, name, sizeof(name)))
		snprintf(buf, size, "&%s", name);
	else
		snprintf(buf, size, "&0x%" PRIx64, (uint64_t)at);
}

/* 0x18 and more in hexadecimal, as disassemblers write offsets; small numbers as they are. */
static void number(char *buf, size_t size, int64_t v)
{
	uint64_t magnitude = v < 0 ? -(uint64_t)v : (uint64_t)v;
	const char *sign = v < 0 ? "-" : "";
	if (magnitude < 10)
		snprintf(buf, size, "%s%" PRIu64, sign, magnitude);
	else
		snprintf(buf, size, "%s0x%" PRIx64, sign, magnitude);
}

/* Append "OP OPERAND" to the term in @acc. */
static void binary(const struct cairn_loc_step *s, char *acc, const char (*slots)[TERM_MAX])
{
	char operand[64], left[TERM_MAX];
	snprintf(left, sizeof(left), "%s", acc);
	if (s->operand == CAIRN_LOC_SLOT) {
		const char *slot = s->imm >= 0 && s->imm < CAIRN_LOC_SLOTS ? slots[s->imm] : "?";
		snprintf(acc, TERM_MAX, "%.200s%s(%.200s)", slot, binary_text[s->op], left);
		return;
	}
	if (s->operand == CAIRN_LOC_OPERAND_REG) {
		reg_name(operand, sizeof(operand), s->reg);
	} else if (s->op == CAIRN_LOC_ADD && s->imm < 0) {
		/* number() brings the minus. */
		number(operand, sizeof(operand), s->imm);
		snprintf(acc, TERM_MAX, "%.400s%s", left, operand);
		return;
	} else {
		number(operand, sizeof(operand), s->imm);
	}
	snprintf(acc, TERM_MAX, "%.400s%s%s", left, binary_text[s->op], operand);
}

static bool is_compound(const char *term)
{
	for (const char *p = term + 1; *term && *p; p++)
		if (*p == '+' || *p == '-' || *p == '<' || *p == '>' || *p == '&' || *p == '|')
			return true;
	return false;
}

static void step_text(struct text *t, const struct cairn_loc_step *s, char *acc, char (*slots)[TERM_MAX])
{
	char left[TERM_MAX];
	snprintf(left, sizeof(left), "%s", acc);
	switch ((enum cairn_loc_op)s->op) {
	case CAIRN_LOC_REG:
		reg_name(acc, TERM_MAX, s->reg);
		return;
	case CAIRN_LOC_ENTRY_REG:
		reg_name(left, sizeof(left), s->reg);
		snprintf(acc, TERM_MAX, "entry(%.400s)", left);
		return;
	case CAIRN_LOC_CONST:
		number(acc, TERM_MAX, s->imm);
		return;
	case CAIRN_LOC_ADDR:
		address_name(t, s->imm, acc, TERM_MAX);
		return;
	case CAIRN_LOC_LOAD:
		if (s->size == 8)
			snprintf(acc, TERM_MAX, "*(%.400s)", left);
		else
			snprintf(acc, TERM_MAX, "*(u%u *)(%.400s)", s->size * 8, left);
		return;
	case CAIRN_LOC_SEXT:
	case CAIRN_LOC_ZEXT:
		snprintf(acc, TERM_MAX, "(%c%u)(%.400s)", s->op == CAIRN_LOC_SEXT ? 's' : 'u', s->size * 8, left);
		return;
	case CAIRN_LOC_NEG:
	case CAIRN_LOC_NOT:
		snprintf(acc, TERM_MAX, "%c(%.400s)", s->op == CAIRN_LOC_NEG ? '-' : '~', left);
		return;
	case CAIRN_LOC_SAVE:
		if (s->imm >= 0 && s->imm < CAIRN_LOC_SLOTS)
			snprintf(slots[s->imm], TERM_MAX, is_compound(left) ? "(%.400s)" : "%.400s", left);
		return;
	default:
		/* Precedence is that of reading from left to right; parentheses keep it. */
		if (s->op != CAIRN_LOC_ADD && s->operand != CAIRN_LOC_SLOT && is_compound(left))
			snprintf(acc, TERM_MAX, "(%.400s)", left);
		binary(s, acc, (const char(*)[TERM_MAX])slots);
	}
}

static void piece_text(struct text *t, const struct cairn_piece *piece)
{
	char acc[TERM_MAX] = "", slots[CAIRN_LOC_SLOTS][TERM_MAX] = {{0}};
	for (uint32_t i = 0; i < piece->n_steps; i++)
		step_text(t, &piece->steps[i], acc, slots);
	switch (piece->kind) {
	case CAIRN_PIECE_VALUE:
		if (piece->n_steps == 1 && piece->steps[0].op == CAIRN_LOC_CONST)
			put(t, "const %" PRId64, piece->steps[0].imm);
		else
			put(t, "%s", acc);
		return;
	case CAIRN_PIECE_MEMORY:
		put(t, "*(%s)", acc);
		return;
	case CAIRN_PIECE_BYTES:
		put(t, "const 0x");
		for (uint32_t i = piece->size; i > 0; i--)
			put(t, "%02x", piece->bytes[i - 1]);
		return;
	case CAIRN_PIECE_MISSING:
		put(t, "optimised out");
		return;
	}
}

size_t cairn_location_text(const struct cairn_location *loc,
			   bool (*symbol)(void *ctx, struct cairn_vaddr at, char *name, size_t size),
			   void *ctx, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size, .symbol = symbol, .symbol_ctx = ctx};
	if (size)
		buf[0] = 0;
	bool many = loc->n_pieces > 1;
	if (many)
		put(&t, "{");
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		if (i)
			put(&t, ", ");
		piece_text(&t, &loc->pieces[i]);
	}
	if (many)
		put(&t, "}");
	if (loc->why != CAIRN_AVAILABLE)
		put(&t, "%sunavailable: %s", loc->n_pieces ? " " : "", cairn_unavailable_text(loc->why));
	return t.len;
}
