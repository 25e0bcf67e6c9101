/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations as text
 *
 * A function may have thousands of sites, and their locations are most of the printed text. So
 * texts are put together from characters here, without printf().
 */
#include <string.h>

#include <cairn/location.h>

#include "insn/insn.h"

static const struct {
	const char *id, *text;
} reasons[CAIRN_N_UNAVAILABLE] = {
	[CAIRN_AVAILABLE] = {"available", "available"},
	[CAIRN_UNAVAIL_NO_DESCRIPTION] = {"no-description",
					  "optimised out: the compiler does not describe it here"},
	[CAIRN_UNAVAIL_OPTIMISED_OUT] = {"optimised-out", "optimised out"},
	[CAIRN_UNAVAIL_NOT_LIVE] = {"not-live", "not live here"},
	[CAIRN_UNAVAIL_PARTLY] = {"partly", "partly optimised out"},
	[CAIRN_UNAVAIL_ENTRY_VALUE] =
		{"entry-value",
		 "needs the caller's frame: its register may have changed since entry"},
	[CAIRN_UNAVAIL_CALLER] = {"caller", "needs the caller's frame"},
	[CAIRN_UNAVAIL_IMPLICIT_POINTER] = {"implicit-pointer",
					    "points to something that is not in memory"},
	[CAIRN_UNAVAIL_NO_CFA] = {"no-cfa", "no unwind row gives the frame's address"},
	[CAIRN_UNAVAIL_THREAD_LOCAL] = {"thread-local", "in thread-local storage"},
	[CAIRN_UNAVAIL_VECTOR_REGISTER] = {"vector-register",
					   "in a register that a probe cannot read"},
	[CAIRN_UNAVAIL_AMBIGUOUS] = {"ambiguous", "several locations are given and they differ"},
	[CAIRN_UNAVAIL_NOT_STORED_YET] = {"not-stored-yet",
					  "may not have been stored to its slot yet"},
	[CAIRN_UNAVAIL_MAY_HAVE_CHANGED] = {"may-have-changed",
					    "the function may already have changed it"},
	[CAIRN_UNAVAIL_MAY_NOT_BE_PASSED] = {"may-not-be-passed",
					     "not used here: callers may not have passed it"},
	[CAIRN_UNAVAIL_OTHER_PARAMETER] = {"other-parameter",
					   "declared otherwise in the unit of this site"},
	[CAIRN_UNAVAIL_UNSUPPORTED] = {"unsupported",
				       "its description uses an operation that is not supported"},
	[CAIRN_UNAVAIL_DAMAGED] = {"damaged", "its description is damaged"},
	[CAIRN_UNAVAIL_OTHER_CALL] = {"other-call", "may be the value of another call"},
	[CAIRN_UNAVAIL_WITHOUT_CALL] = {"without-call", "may be hit without a call"},
	[CAIRN_UNAVAIL_MEMORY_WRITTEN] = {"memory-written",
					  "computed from memory that may hold another value here"},
	[CAIRN_UNAVAIL_STALE] =
		{"stale", "may be stale: described by a value from another point in the function"},
	[CAIRN_UNAVAIL_NOT_KEPT] = {"not-kept", "was in a register that the callee did not keep"},
	[CAIRN_UNAVAIL_NOT_COPIED] =
		{"not-copied",
		 "in memory that is not part of the stopped stacks, or not in the core"},
	[CAIRN_UNAVAIL_NO_CONVENTION] =
		{"no-convention",
		 "no documented calling convention confirms it (--assume-unmodified takes it)"},
	[CAIRN_UNAVAIL_NOT_RECORDED] = {"not-recorded",
					"BTF has no location for it here, and does not record why"},
	[CAIRN_UNAVAIL_NO_SYMBOL] = {"no-symbol", "at a symbol that the symbol tables do not have"},
	[CAIRN_UNAVAIL_NO_END] = {"no-end", "where the inlined copy ends is not known"},
	[CAIRN_UNAVAIL_MAY_NOT_RETURN] =
		{"may-not-return",
		 "the compiler may have removed the result of this instance, which no other file "
		 "can call"},
	[CAIRN_UNAVAIL_OTHER_FILE] =
		{"other-file",
		 "exported by a library, so that the process may use another file's variable"},
	[CAIRN_UNAVAIL_SLOT_ADDRESS] =
		{"slot-address", "may be the address of its stack slot instead of its value"},
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

static void put_chars(struct text *t, const char *chars, size_t n)
{
	size_t room = t->len < t->size ? t->size - t->len - 1 : 0, fits = n < room ? n : room;
	if (t->len < t->size) {
		memcpy(t->buf + t->len, chars, fits);
		t->buf[t->len + fits] = 0;
	}
	t->len += n;
}

static void put(struct text *t, const char *chars)
{
	put_chars(t, chars, strlen(chars));
}

/* ---- terms ---- */

enum {
	/* Room for one term; an expression of CAIRN_LOC_STEPS_MAX terms is cut, not overrun. */
	TERM_MAX = 511,
	/* The length of a term inside another one; of each of two. */
	INNER_MAX = 400,
	HALF_MAX = 200,
};

struct term {
	size_t n;
	char text[TERM_MAX];
};

static void append_chars(struct term *t, const char *chars, size_t n)
{
	size_t fits = n < TERM_MAX - t->n ? n : TERM_MAX - t->n;
	memcpy(t->text + t->n, chars, fits);
	t->n += fits;
}

static void append(struct term *t, const char *chars)
{
	append_chars(t, chars, strlen(chars));
}

static void cut(struct term *t, size_t max)
{
	if (t->n > max)
		t->n = max;
}

/* Insert @before at the start, with at most @max of the old text kept. */
static void prepend_chars(struct term *t, const char *before, size_t n, size_t max)
{
	cut(t, max);
	memmove(t->text + n, t->text, t->n);
	memcpy(t->text, before, n);
	t->n += n;
}

/* @before has its own opening parenthesis. */
static void wrap(struct term *t, const char *before)
{
	prepend_chars(t, before, strlen(before), INNER_MAX);
	append_chars(t, ")", 1);
}

static void append_digits(struct term *t, uint64_t v, unsigned int base)
{
	char digits[20], *end = digits + sizeof(digits), *at = end;
	do
		*--at = "0123456789abcdef"[v % base];
	while (v /= base);
	append_chars(t, at, (size_t)(end - at));
}

/* clang-format off */
static const char *const binary_text[] = {
	[CAIRN_LOC_ADD] = "+",	[CAIRN_LOC_SUB] = "-",	[CAIRN_LOC_MUL] = "*",
	[CAIRN_LOC_AND] = "&",	[CAIRN_LOC_OR] = "|",	[CAIRN_LOC_XOR] = "^",
	[CAIRN_LOC_SHL] = "<<", [CAIRN_LOC_SHR] = ">>", [CAIRN_LOC_SAR] = ">>s",
	[CAIRN_LOC_EQ] = "==",	[CAIRN_LOC_NE] = "!=",	[CAIRN_LOC_LT] = "<",
	[CAIRN_LOC_LE] = "<=",	[CAIRN_LOC_GT] = ">",	[CAIRN_LOC_GE] = ">=",
};
/* clang-format on */

static void append_reg(struct term *t, unsigned int reg)
{
	const char *name = insn_reg_name(reg);
	bool is_vector = reg >= 17 && reg <= 32;
	append(t, is_vector ? "%xmm" : name ? "%" : "%dwarf");
	if (name && !is_vector)
		append(t, name);
	else
		append_digits(t, is_vector ? reg - 17 : reg, 10);
}

/* 0x18 and more in hexadecimal, as disassemblers write offsets; small numbers as they are. */
static void append_number(struct term *t, int64_t v)
{
	uint64_t magnitude = v < 0 ? -(uint64_t)v : (uint64_t)v;
	if (v < 0)
		append_chars(t, "-", 1);
	if (magnitude >= 10)
		append_chars(t, "0x", 2);
	append_digits(t, magnitude, 16);
}

static void append_address(struct term *t, const struct text *out, int64_t at)
{
	char name[256];
	bool named = out->symbol && out->symbol(out->symbol_ctx, (struct cairn_vaddr){(uint64_t)at},
						name, sizeof(name));
	append(t, named ? "&" : "&0x");
	if (named)
		append(t, name);
	else
		append_digits(t, (uint64_t)at, 16);
}

/* The bits of a value: "(u32)", "*(u32 *)". */
static void prepend_type(struct term *t, const char *before, char kind, unsigned int bytes,
			 const char *after)
{
	struct term type = {.n = 0};
	append(&type, before);
	append_chars(&type, &kind, 1);
	append_digits(&type, bytes * 8, 10);
	append(&type, after);
	prepend_chars(t, type.text, type.n, INNER_MAX);
	append_chars(t, ")", 1);
}

/* Append "OP OPERAND" to the term. */
static void binary(const struct cairn_loc_step *s, struct term *acc, const struct term *slots)
{
	if (s->operand == CAIRN_LOC_SLOT) {
		struct term slot = {.n = 0};
		if (s->imm >= 0 && s->imm < CAIRN_LOC_SLOTS)
			append_chars(&slot, slots[s->imm].text, slots[s->imm].n);
		else
			append(&slot, "?");
		cut(&slot, HALF_MAX);
		append(&slot, binary_text[s->op]);
		append(&slot, "(");
		prepend_chars(acc, slot.text, slot.n, HALF_MAX);
		append(acc, ")");
		return;
	}
	cut(acc, INNER_MAX);
	/* A number brings its minus. */
	if (s->operand == CAIRN_LOC_OPERAND_REG || s->op != CAIRN_LOC_ADD || s->imm >= 0)
		append(acc, binary_text[s->op]);
	if (s->operand == CAIRN_LOC_OPERAND_REG)
		append_reg(acc, s->reg);
	else
		append_number(acc, s->imm);
}

static bool is_compound(const struct term *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (strchr("+-<>&|", t->text[i]))
			return true;
	return false;
}

static void step_text(const struct text *t, const struct cairn_loc_step *s, struct term *acc,
		      struct term *slots)
{
	switch ((enum cairn_loc_op)s->op) {
	case CAIRN_LOC_REG:
		acc->n = 0;
		append_reg(acc, s->reg);
		return;
	case CAIRN_LOC_ENTRY_REG:
		acc->n = 0;
		append_reg(acc, s->reg);
		wrap(acc, "entry(");
		return;
	case CAIRN_LOC_ENTRY_PARAM:
		acc->n = 0;
		append_number(acc, s->imm);
		wrap(acc, "passed(");
		return;
	case CAIRN_LOC_THREAD:
		acc->n = 0;
		append(acc, "%fs");
		return;
	case CAIRN_LOC_CONST:
		acc->n = 0;
		append_number(acc, s->imm);
		return;
	case CAIRN_LOC_ADDR:
		acc->n = 0;
		append_address(acc, t, s->imm);
		return;
	case CAIRN_LOC_LOAD:
		if (s->size == 8)
			wrap(acc, "*(");
		else
			prepend_type(acc, "*(", 'u', s->size, " *)(");
		return;
	case CAIRN_LOC_SEXT:
	case CAIRN_LOC_ZEXT:
		prepend_type(acc, "(", s->op == CAIRN_LOC_SEXT ? 's' : 'u', s->size, ")(");
		return;
	case CAIRN_LOC_NEG:
	case CAIRN_LOC_NOT:
		wrap(acc, s->op == CAIRN_LOC_NEG ? "-(" : "~(");
		return;
	case CAIRN_LOC_SAVE:
		if (s->imm < 0 || s->imm >= CAIRN_LOC_SLOTS)
			return;
		slots[s->imm] = *acc;
		if (is_compound(acc))
			wrap(&slots[s->imm], "(");
		return;
	default:
		/* Precedence is that of reading from left to right; parentheses keep it. */
		if (s->op != CAIRN_LOC_ADD && s->operand != CAIRN_LOC_SLOT && is_compound(acc))
			wrap(acc, "(");
		binary(s, acc, slots);
	}
}

/* ---- locations ---- */

static void put_value(struct text *t, const struct cairn_piece *piece)
{
	/* Cleared by setting the lengths to 0: texts are long, and mostly unused. */
	struct term acc, slots[CAIRN_LOC_SLOTS];
	acc.n = 0;
	for (unsigned int i = 0; i < CAIRN_LOC_SLOTS; i++)
		slots[i].n = 0;
	for (uint32_t i = 0; i < piece->n_steps; i++)
		step_text(t, &piece->steps[i], &acc, slots);
	put_chars(t, acc.text, acc.n);
}

static void put_constant(struct text *t, int64_t v)
{
	struct term number = {.n = 0};
	append(&number, v < 0 ? "const -" : "const ");
	append_digits(&number, v < 0 ? -(uint64_t)v : (uint64_t)v, 10);
	put_chars(t, number.text, number.n);
}

static void put_bytes(struct text *t, const struct cairn_piece *piece)
{
	static const char digits[] = "0123456789abcdef";
	put(t, "const 0x");
	for (uint32_t i = piece->size; i > 0; i--) {
		uint8_t byte = piece->bytes[i - 1];
		put_chars(t, (char[]){digits[byte >> 4], digits[byte & 15]}, 2);
	}
}

static void piece_text(struct text *t, const struct cairn_piece *piece)
{
	switch (piece->kind) {
	case CAIRN_PIECE_VALUE:
		if (piece->n_steps == 1 && piece->steps[0].op == CAIRN_LOC_CONST)
			put_constant(t, piece->steps[0].imm);
		else
			put_value(t, piece);
		return;
	case CAIRN_PIECE_MEMORY:
		put(t, "*(");
		put_value(t, piece);
		put(t, ")");
		return;
	case CAIRN_PIECE_BYTES:
		put_bytes(t, piece);
		return;
	case CAIRN_PIECE_MISSING:
		put(t, "optimised out");
		return;
	}
}

size_t cairn_location_text(const struct cairn_location *loc,
			   bool (*symbol)(void *ctx, struct cairn_vaddr at, char *name,
					  size_t size),
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
	if (loc->why != CAIRN_AVAILABLE) {
		put(&t, loc->n_pieces ? " unavailable: " : "unavailable: ");
		put(&t, cairn_unavailable_text(loc->why));
	}
	return t.len;
}
