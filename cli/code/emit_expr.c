/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emit_expr.h"

/* DWARF's numbers of x86-64, as the kernel's fetch arguments and bpftrace's reg() call them. */
static const char *const reg_names[] = {
	"ax", "dx",  "cx",  "bx",  "si",  "di",  "bp",  "sp", "r8",
	"r9", "r10", "r11", "r12", "r13", "r14", "r15", "ip",
};

const struct c_dialect dialect_bpftrace = {
	.reg = "reg(\"%s\")",
	.pc = "reg(\"ip\")",
	.unsigned_type = {[1] = "uint8", [2] = "uint16", [4] = "uint32", [8] = "uint64"},
	.signed_type = {[1] = "int8", [2] = "int16", [4] = "int32", [8] = "int64"},
	.arithmetic_shift = false,
};

const struct c_dialect dialect_gdb = {
	.reg = "$%s",
	.pc = "$pc",
	.long_register_names = true,
	.unsigned_type = {[1] = "unsigned char",
			  [2] = "unsigned short",
			  [4] = "unsigned int",
			  [8] = "unsigned long"},
	.signed_type = {[1] = "signed char", [2] = "short", [4] = "int", [8] = "long"},
	.arithmetic_shift = true,
};

struct scalar scalar_of(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *type = cairn_types_get(types, cairn_types_resolve(types, id));
	const struct cairn_type *to;
	struct scalar scalar = {.size = (unsigned int)type->size};

	switch (type->kind) {
	case CAIRN_T_INT:
		scalar.known = true;
		scalar.is_signed = type->encoding == CAIRN_ENC_SIGNED ||
				   type->encoding == CAIRN_ENC_SIGNED_CHAR;
		break;
	case CAIRN_T_ENUM:
		scalar = type->ref ? scalar_of(types, type->ref) : scalar;
		scalar.known = true;
		scalar.size = (unsigned int)type->size;
		break;
	case CAIRN_T_PTR:
		to = cairn_types_get(types, cairn_types_resolve(types, type->ref));
		scalar.is_string = to->kind == CAIRN_T_INT && to->size == 1 &&
				   (to->encoding == CAIRN_ENC_SIGNED_CHAR ||
				    to->encoding == CAIRN_ENC_UNSIGNED_CHAR) &&
				   to->name && !strcmp(to->name, "char");
		/* fallthrough */
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		scalar.known = scalar.is_pointer = true;
		scalar.size = 8;
		break;
	default:
		break;
	}
	if (scalar.size != 1 && scalar.size != 2 && scalar.size != 4 && scalar.size != 8)
		scalar.known = false;
	return scalar;
}

/* The one piece that is all of the value, or NULL. */
static const struct cairn_piece *whole(const struct cairn_location *loc, struct scalar scalar)
{
	const struct cairn_piece *piece = loc->pieces;

	if (!scalar.known || loc->why != CAIRN_AVAILABLE || loc->n_pieces != 1)
		return NULL;
	if (piece->off || (piece->size && piece->size < scalar.size))
		return NULL;
	return piece;
}

static bool print(char ret[EXPR_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool print(char ret[EXPR_MAX], const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ret, EXPR_MAX, format, args);
	va_end(args);
	return n >= 0 && n < EXPR_MAX;
}

/* BYTES of at most 8: a constant. */
static bool constant_of(const struct cairn_piece *piece, struct scalar scalar, uint64_t *ret)
{
	*ret = 0;
	if (piece->kind != CAIRN_PIECE_BYTES || piece->size < scalar.size)
		return false;
	for (unsigned int i = 0; i < scalar.size; i++)
		*ret |= (uint64_t)piece->bytes[i] << (8 * i);
	return true;
}

/* ---- C's operators ---- */

struct c_state {
	const struct c_dialect *dialect;
	struct cairn_vaddr site;
	char acc[EXPR_MAX];
	char slots[CAIRN_LOC_SLOTS][EXPR_MAX];
};

static bool c_reg(const struct c_dialect *dialect, unsigned int reg, char ret[EXPR_MAX])
{
	char name[8];

	if (reg >= sizeof(reg_names) / sizeof(reg_names[0]))
		return false;
	snprintf(name, sizeof(name), "%s%s",
		 dialect->long_register_names && reg_names[reg][0] != 'r' ? "r" : "",
		 reg_names[reg]);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return print(ret, dialect->reg, name);
#pragma GCC diagnostic pop
}

/* Two's complement, as all arithmetic here wraps at 64 bits: "-8" reads better than 2^64-8. */
static bool c_const(int64_t value, char ret[EXPR_MAX])
{
	return print(ret, value < 0 ? "(%" PRId64 ")" : "%" PRId64, value);
}

static bool c_operand(struct c_state *s, const struct cairn_loc_step *step, char ret[EXPR_MAX])
{
	switch ((enum cairn_loc_operand)step->operand) {
	case CAIRN_LOC_IMM:
		return c_const(step->imm, ret);
	case CAIRN_LOC_OPERAND_REG:
		return c_reg(s->dialect, step->reg, ret);
	case CAIRN_LOC_SLOT:
		return false; /* the operand is on the other side: c_binary() */
	}
	return false;
}

static bool c_cast(struct c_state *s, const char *type, const char *format)
{
	char was[EXPR_MAX];

	if (!type)
		return false;
	memcpy(was, s->acc, sizeof(was));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return print(s->acc, format, type, was);
#pragma GCC diagnostic pop
}

/* %s left, operator, right; the cast says how both sides are read. */
static bool c_binary(struct c_state *s, const struct cairn_loc_step *step, const char *op,
		     const char *cast)
{
	char left[EXPR_MAX], right[EXPR_MAX];

	memcpy(left, s->acc, sizeof(left));
	if (step->operand == CAIRN_LOC_SLOT) {
		memcpy(right, s->acc, sizeof(right));
		memcpy(left, s->slots[step->imm & (CAIRN_LOC_SLOTS - 1)], sizeof(left));
	} else if (!c_operand(s, step, right)) {
		return false;
	}
	if (cast)
		return print(s->acc, "((%s)%s%s(%s)%s)", cast, left, op, cast, right);
	return print(s->acc, "(%s%s%s)", left, op, right);
}

static bool c_shift(struct c_state *s, const struct cairn_loc_step *step)
{
	bool left = step->op == CAIRN_LOC_SHL, arithmetic = step->op == CAIRN_LOC_SAR;

	/*
	 * A shift by 64 or more is defined here and not in C: a shift by an unknown amount cannot
	 * be expressed.
	 */
	if (step->operand != CAIRN_LOC_IMM || step->imm < 0 || step->imm > 63)
		return false;
	if (arithmetic && !s->dialect->arithmetic_shift)
		return false;
	return c_binary(s, step, left ? "<<" : ">>",
			arithmetic ? s->dialect->signed_type[8] : s->dialect->unsigned_type[8]);
}

static bool c_compare(struct c_state *s, const struct cairn_loc_step *step)
{
	static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">="};

	return c_binary(s, step, operators[step->op - CAIRN_LOC_EQ], s->dialect->signed_type[8]);
}

static bool c_step(struct c_state *s, const struct cairn_loc_step *step)
{
	const struct c_dialect *d = s->dialect;
	unsigned int size = step->size <= 8 ? step->size : 0;

	switch ((enum cairn_loc_op)step->op) {
	case CAIRN_LOC_REG:
		return c_reg(d, step->reg, s->acc);
	case CAIRN_LOC_ENTRY_REG: /* in the middle of functions only */
	case CAIRN_LOC_ENTRY_PARAM:
	case CAIRN_LOC_THREAD:
		return false;
	case CAIRN_LOC_CONST:
		return c_const(step->imm, s->acc);
	case CAIRN_LOC_ADDR:
		/* The probed address is known both ways, and their distance does not change. */
		return print(s->acc, "(%s+(%" PRId64 "))", d->pc,
			     (int64_t)((uint64_t)step->imm - s->site.v));
	case CAIRN_LOC_LOAD:
		return c_cast(s, d->unsigned_type[size], "(*(%s*)(%s))");
	case CAIRN_LOC_SEXT:
		return c_cast(s, d->signed_type[size], "((%s)%s)");
	case CAIRN_LOC_ZEXT:
		return c_cast(s, d->unsigned_type[size], "((%s)%s)");
	case CAIRN_LOC_NEG:
		return c_cast(s, d->signed_type[8], "(-(%s)%s)");
	case CAIRN_LOC_NOT:
		return c_cast(s, d->unsigned_type[8], "(~(%s)%s)");
	case CAIRN_LOC_SAVE:
		memcpy(s->slots[step->imm & (CAIRN_LOC_SLOTS - 1)], s->acc, sizeof(s->acc));
		return true;
	case CAIRN_LOC_ADD:
		return c_binary(s, step, "+", NULL);
	case CAIRN_LOC_SUB:
		return c_binary(s, step, "-", NULL);
	case CAIRN_LOC_MUL:
		return c_binary(s, step, "*", NULL);
	case CAIRN_LOC_AND:
		return c_binary(s, step, "&", NULL);
	case CAIRN_LOC_OR:
		return c_binary(s, step, "|", NULL);
	case CAIRN_LOC_XOR:
		return c_binary(s, step, "^", NULL);
	case CAIRN_LOC_SHL:
	case CAIRN_LOC_SHR:
	case CAIRN_LOC_SAR:
		return c_shift(s, step);
	case CAIRN_LOC_EQ:
	case CAIRN_LOC_NE:
	case CAIRN_LOC_LT:
	case CAIRN_LOC_LE:
	case CAIRN_LOC_GT:
	case CAIRN_LOC_GE:
		return c_compare(s, step);
	}
	return false;
}

bool expr_c(const struct c_dialect *dialect, const struct cairn_location *loc, struct scalar scalar,
	    struct cairn_vaddr site, char ret[EXPR_MAX])
{
	const struct cairn_piece *piece = whole(loc, scalar);
	struct c_state s = {.dialect = dialect, .site = site};
	const char *const *types = scalar.is_signed ? dialect->signed_type : dialect->unsigned_type;
	uint64_t constant;

	if (!piece)
		return false;
	if (constant_of(piece, scalar, &constant)) {
		if (!c_const((int64_t)constant, s.acc))
			return false;
	} else if (piece->kind != CAIRN_PIECE_VALUE && piece->kind != CAIRN_PIECE_MEMORY) {
		return false;
	}
	for (uint32_t i = 0; i < piece->n_steps && piece->kind != CAIRN_PIECE_BYTES; i++)
		if (!c_step(&s, &piece->steps[i]))
			return false;
	if (piece->kind == CAIRN_PIECE_MEMORY &&
	    !c_cast(&s, dialect->unsigned_type[scalar.size], "(*(%s*)(%s))"))
		return false;
	if (!c_cast(&s, types[scalar.size], "(%s)(%s)"))
		return false;
	memcpy(ret, s.acc, EXPR_MAX);
	return true;
}

/* ---- fetch arguments: %REG, \CONST, +OFF(FETCH), and nothing else ---- */

/*
 * A register or memory plus a displacement that no brackets hold yet: the value at 8 past %di has
 * no name, the memory at it is +8(%di).
 */
struct fetch {
	char base[EXPR_MAX];
	int64_t displacement;
	bool is_constant;    /* the displacement alone */
	unsigned int loaded; /* size of the load that base ends with; 0: no load */
};

static bool fetch_load(struct fetch *f, unsigned int size)
{
	char was[EXPR_MAX];

	/* A pointer on the way is read with 8 bytes; a narrower value can only be the last. */
	if (f->is_constant || (f->loaded && f->loaded != 8))
		return false;
	memcpy(was, f->base, sizeof(was));
	if (!print(f->base, "%+" PRId64 "(%s)", f->displacement, was))
		return false;
	f->displacement = 0;
	f->loaded = size;
	return true;
}

static bool fetch_step(struct fetch *f, const struct cairn_loc_step *step, struct cairn_vaddr site)
{
	switch ((enum cairn_loc_op)step->op) {
	case CAIRN_LOC_REG:
		return step->reg < sizeof(reg_names) / sizeof(reg_names[0]) &&
		       print(f->base, "%%%s", reg_names[step->reg]);
	case CAIRN_LOC_CONST:
		f->is_constant = true;
		f->displacement = step->imm;
		return true;
	case CAIRN_LOC_ADDR:
		f->displacement = (int64_t)((uint64_t)step->imm - site.v);
		return print(f->base, "%%ip");
	case CAIRN_LOC_ADD:
	case CAIRN_LOC_SUB:
		if (step->operand != CAIRN_LOC_IMM || (f->loaded && f->loaded != 8))
			return false;
		f->displacement =
			(int64_t)((uint64_t)f->displacement +
				  (uint64_t)(step->op == CAIRN_LOC_ADD ? step->imm : -step->imm));
		return true;
	case CAIRN_LOC_LOAD:
		return fetch_load(f, step->size);
	default:
		return false;
	}
}

bool expr_perf(const struct cairn_location *loc, struct scalar scalar, struct cairn_vaddr site,
	       char ret[EXPR_MAX])
{
	const struct cairn_piece *piece = whole(loc, scalar);
	struct fetch f = {0};
	uint64_t constant;
	/* perf script shows a negative s16 as 65534; its bits are not misread in hexadecimal. */
	bool narrow = scalar.is_signed && scalar.size < 4;
	const char *sign = scalar.is_pointer || narrow ? "x" : scalar.is_signed ? "s" : "u";

	if (!piece)
		return false;
	if (constant_of(piece, scalar, &constant)) {
		f.is_constant = true;
		f.displacement = (int64_t)constant;
	} else if (piece->kind != CAIRN_PIECE_VALUE && piece->kind != CAIRN_PIECE_MEMORY) {
		return false;
	}
	for (uint32_t i = 0; i < piece->n_steps && piece->kind != CAIRN_PIECE_BYTES; i++)
		if (!fetch_step(&f, &piece->steps[i], site))
			return false;
	if (f.is_constant)
		return piece->kind != CAIRN_PIECE_MEMORY &&
		       print(ret, "\\%" PRId64 ":%s%u", f.displacement,
			     scalar.is_signed ? "s" : sign, scalar.size < 4 ? 32 : scalar.size * 8);
	if (piece->kind == CAIRN_PIECE_MEMORY && !fetch_load(&f, scalar.size))
		return false;
	if (scalar.is_string)
		return fetch_load(&f, 1) && print(ret, "%s:string", f.base);
	/* A sum in a register has no name; a load narrower than the value would read too much. */
	if (f.displacement || (f.loaded && f.loaded < scalar.size))
		return false;
	return print(ret, "%s:%s%u", f.base, sign, scalar.size * 8);
}
