/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A difference that is described as constant
 *
 *	for (l1 = i1; a[i1 - 1]; i1--);		sub  %rbx,%rdx		l1 - i1
 *	for (l2 = i2; b[i2 - 1]; i2--);		sub  %rax,%rcx		l2 - i2
 *	add(i1, i2, l1 - i1, l2 - i2);		add's i1 %rbx, i2 %r12, both others: constant 0
 *
 * GCC describes the difference of two names. One of the names has no use in the code and was given
 * the register of the other, so the difference became 0
 * (docs/findings/gcc-difference-of-one-register.md). The code computes the real difference, and the
 * copy uses it. A copy uses its arguments, the memory that they point to, and data that is the same
 * for all calls. Suppose that, in a loop, a difference is computed before the site, the copy uses
 * it as a number, and no argument is described by it. Then an argument has a wrong description, and
 * constants are rejected there unless they hold for the whole copy (DW_AT_const_value).
 *
 * Values are followed in the order of addresses, not of paths. A missed value keeps its
 * description; a confused one costs a right value.
 */
#include "sites/quirks/hidden_difference.h"

#include <string.h>

#include "elf/elf.h"
#include "insn/carry.h"
#include "insn/insn.h"
#include "sites/arg_type.h"

enum {
	BEFORE = 48, /* instructions before the site that are checked */
	AFTER = 96,  /* instructions from the site on */
	GAP = 3,     /* of the caller's between two of the copy's */
	SLOTS = 8,   /* stack slots that are known at a time */
};

struct slot {
	uint8_t base;
	int64_t off;
	uint32_t value;
};

/* Code from an address to the end of its section. */
struct window {
	uint64_t at;
	const uint8_t *bytes;
	size_t n;
};

static bool window_at(struct window *w, const struct elf *code, uint64_t at, const uint8_t **ret,
		      size_t *ret_n)
{
	if (at < w->at || at - w->at >= w->n) {
		*w = (struct window){.at = at};
		if (!elf_code_at(code, (struct cairn_vaddr){at}, &w->bytes, &w->n))
			return false;
	}
	*ret = w->bytes + (at - w->at);
	*ret_n = w->n - (size_t)(at - w->at);
	return true;
}

/* A difference is named by the number of its instruction + 1; 0: something else. */
struct values {
	const struct cfg *g;
	const struct elf *code;
	struct window window;
	uint32_t reg[16];
	struct slot slots[SLOTS];
	unsigned int next;    /* slot to be used */
	bool is_after;        /* from the site on */
	bool is_inside;       /* the copy */
	uint32_t used[SLOTS]; /* differences that no argument describes, by the copy */
	unsigned int n_used;
};

static struct slot *slot_of(struct values *v, const struct insn_carry *c)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (v->slots[i].value && v->slots[i].base == c->base && v->slots[i].off == c->off)
			return &v->slots[i];
	return NULL;
}

static void save(struct values *v, const struct insn_carry *c)
{
	struct slot *slot = slot_of(v, c);
	if (!slot)
		slot = &v->slots[v->next++ % SLOTS];
	*slot = (struct slot){c->base, c->off, v->reg[c->from]};
}

static void carry(struct values *v, const struct insn_carry *c, uint32_t i)
{
	const struct slot *slot;
	switch (c->what) {
	case CARRY_DIFFERENCE:
		v->reg[c->to] = i + 1;
		break;
	case CARRY_COPY:
		v->reg[c->to] = v->reg[c->from];
		break;
	case CARRY_SAVE:
		save(v, c);
		break;
	case CARRY_RESTORE:
		slot = slot_of(v, c);
		v->reg[c->to] = slot ? slot->value : 0;
		break;
	case CARRY_NOTHING:
		break;
	}
}

static void note_used(struct values *v, uint32_t value)
{
	for (unsigned int i = 0; i < v->n_used; i++)
		if (v->used[i] == value)
			return;
	if (v->n_used < SLOTS)
		v->used[v->n_used++] = value;
}

/* Carrying it on is no use. */
static void note_uses(struct values *v, const struct insn *insn, const struct insn_carry *c)
{
	if (c->what == CARRY_COPY || c->what == CARRY_RESTORE || c->what == CARRY_SAVE)
		return;
	for (unsigned int r = 0; r < 16; r++)
		if (insn->reads >> r & 1 && v->reg[r])
			note_used(v, v->reg[r]);
}

static void forget(struct values *v, uint16_t regs)
{
	for (unsigned int r = 0; r < 16; r++)
		if (regs >> r & 1)
			v->reg[r] = 0;
}

/* Checked by the bytes, as most sites have none near: sub of two registers, of 32 or 64 bits. */
static bool is_difference(const uint8_t *bytes, size_t n)
{
	return n - 2 <= 1 && (bytes[n - 2] & 0xfd) == 0x29 && bytes[n - 1] >= 0xc0;
}

/* Registers that hold differences, or by which the slots are found that do. */
static uint16_t regs_held(const struct values *v)
{
	enum { BASES = 1 << 6 | 1 << 7 }; /* rbp, rsp */
	uint16_t ret = 0;
	for (unsigned int r = 0; r < 16; r++)
		ret |= (uint16_t)((v->reg[r] != 0) << r);
	for (unsigned int i = 0; i < SLOTS; i++)
		ret |= v->slots[i].value ? BASES : 0;
	return ret;
}

/* False: it is no instruction. */
static bool step(struct values *v, uint32_t i)
{
	const uint8_t *bytes;
	size_t n;
	uint8_t len;
	struct insn insn;
	struct insn_carry c;
	uint64_t at = v->g->v.p[i].at;
	if (!window_at(&v->window, v->code, at, &bytes, &n))
		return false;
	uint16_t named = insn_named_registers(bytes, n, &len);
	if (named != INSN_ANY_REGISTERS && !(named & regs_held(v)) && !is_difference(bytes, len))
		return true;
	if (!insn_carry(bytes, n, at, &insn, &c))
		return false;
	bool is_new = v->is_after && c.what == CARRY_DIFFERENCE;
	if (v->is_inside)
		note_uses(v, &insn, &c);
	if (c.what == CARRY_NOTHING || is_new)
		forget(v, v->g->v.p[i].is_call ? INSN_CALL_WRITES : insn.writes);
	else
		carry(v, &c, i);
	return true;
}

/* ---- the arguments ---- */

/* A number, constant by its location list. */
static bool is_constant(const struct built_site *b, uint32_t arg)
{
	const struct cairn_location *loc = &b->args[arg].loc;
	const struct cairn_piece *p = loc->pieces;
	return loc->why == CAIRN_AVAILABLE && loc->n_pieces == 1 && p->kind == CAIRN_PIECE_VALUE &&
	       p->n_steps == 1 && p->steps->op == CAIRN_LOC_CONST && b->exprs[arg].n;
}

enum { CONSTANTS_MAX = 64 }; /* bits of a mask; the constants after these are believed */

static bool has_constant(const struct built_site *b)
{
	for (uint32_t i = 0; i < b->formals.n && i < CONSTANTS_MAX; i++)
		if (is_constant(b, i))
			return true;
	return false;
}

/* The constant arguments that are no pointers, as a mask. */
static uint64_t constant_numbers(const struct built_site *b)
{
	uint64_t constants = 0;
	for (uint32_t i = 0; i < b->formals.n && i < CONSTANTS_MAX; i++)
		if (is_constant(b, i) && !arg_is_pointer(b->die.unit, b->formals.die[i]))
			constants |= UINT64_C(1) << i;
	return constants;
}

/* Records the values that the accumulator is made of: a register, or a stack slot. */
static void explain_piece(struct values *v, const struct cairn_piece *p)
{
	for (uint32_t i = 0; i < p->n_steps; i++) {
		const struct cairn_loc_step *s = &p->steps[i];
		if ((s->op == CAIRN_LOC_REG || s->operand == CAIRN_LOC_OPERAND_REG) && s->reg < 16)
			v->reg[s->reg] = 0;
		bool adds = i + 1 < p->n_steps && s[1].op == CAIRN_LOC_ADD &&
			    s[1].operand == CAIRN_LOC_IMM;
		struct insn_carry c = {.base = (uint8_t)s->reg, .off = adds ? s[1].imm : 0};
		struct slot *slot = s->op == CAIRN_LOC_REG ? slot_of(v, &c) : NULL;
		if (slot)
			slot->value = 0;
	}
}

/* A value that is kept twice has one explanation. */
static void explain(struct values *v, const struct built_site *b)
{
	uint32_t before[16];
	memcpy(before, v->reg, sizeof(before));
	for (uint32_t i = 0; i < b->formals.n; i++)
		for (uint32_t k = 0;
		     b->args[i].loc.why == CAIRN_AVAILABLE && k < b->args[i].loc.n_pieces; k++)
			explain_piece(v, &b->args[i].loc.pieces[k]);
	for (unsigned int r = 0; r < 16; r++)
		for (unsigned int k = 0; before[r] && !v->reg[r] && k < 16; k++)
			v->reg[k] = v->reg[k] == before[r] ? 0 : v->reg[k];
	for (unsigned int r = 0; r < 16; r++)
		for (unsigned int k = 0; before[r] && !v->reg[r] && k < SLOTS; k++)
			v->slots[k].value = v->slots[k].value == before[r] ? 0 : v->slots[k].value;
}

/* Integer arguments without a description; one of them may be the computed value. */
static unsigned int unknown_numbers(const struct built_site *b)
{
	unsigned int n = 0;
	for (uint32_t i = 0; i < b->formals.n; i++)
		n += b->args[i].loc.why != CAIRN_AVAILABLE &&
		     !arg_is_pointer(b->die.unit, b->formals.die[i]);
	return n;
}

static bool may_be_difference(struct values *v, const struct cfg_insn *insn)
{
	const uint8_t *p;
	size_t n;
	return insn->len - 2u <= 1 && window_at(&v->window, v->code, insn->at, &p, &n) &&
	       n >= insn->len && is_difference(p, insn->len);
}

/* Registers and slots that hold a difference: the copy cannot use more of them. */
static unsigned int n_held(const struct values *v)
{
	unsigned int n = 0;
	for (unsigned int r = 0; r < 16; r++)
		n += v->reg[r] != 0;
	for (unsigned int i = 0; i < SLOTS; i++)
		n += v->slots[i].value != 0;
	return n;
}

/* The first instruction from @i on, and before @at, that may compute a difference; @at: none. */
static uint32_t next_difference(struct values *v, uint32_t i, uint32_t at)
{
	while (i < at && !may_be_difference(v, &v->g->v.p[i]))
		i++;
	return i;
}

/* The place to look for differences that are computed before @at. */
static uint32_t first_before(uint32_t at)
{
	return at > BEFORE ? at - BEFORE : 0;
}

/*
 * Follows the values from the site at @i on, until the copy has used more than @known of them. The
 * scheduler mixes instructions of the caller into the copy (GCC 16). False: there is no
 * instruction.
 */
static bool follow_into(struct values *v, const struct built_site *b, uint32_t i,
			unsigned int known)
{
	unsigned int gap = 0;
	v->is_after = true;
	for (unsigned int n = 0; n < AFTER && i < v->g->v.n && v->n_used <= known && n_held(v);
	     n++, i++) {
		v->is_inside = site_has_code(b, v->g->v.p[i].at);
		gap = v->is_inside ? 0 : gap + 1;
		if (gap > GAP)
			break;
		if (!step(v, i))
			return false;
	}
	return true;
}

/*
 * The number of differences that the copy uses and no argument describes. Counting stops once it
 * exceeds @known. Without a value to follow no instruction is decoded.
 */
static unsigned int differences(const struct elf *code, const struct cfg *g,
				const struct built_site *b, uint32_t at, unsigned int known)
{
	struct values v = {.g = g, .code = code};
	uint32_t i = next_difference(&v, first_before(at), at);
	while (i < at) {
		if (!step(&v, i))
			return 0;
		i = n_held(&v) ? i + 1 : next_difference(&v, i + 1, at);
	}
	explain(&v, b);
	if (n_held(&v) <= known)
		return 0;
	return follow_into(&v, b, i, known) ? v.n_used : 0;
}

/* How many there are before @at at most, up to @max. */
static unsigned int differences_before(const struct elf *code, const struct cfg *g, uint32_t at,
				       unsigned int max)
{
	struct values v = {.g = g, .code = code};
	unsigned int n = 0;
	for (uint32_t i = first_before(at); n < max; i++) {
		i = next_difference(&v, i, at);
		if (i >= at)
			break;
		n++;
	}
	return n;
}

int hidden_difference_check(const struct quirk_query *q)
{
	struct cfg *g = q->cfg;
	struct built_site *b = q->site;
	uint32_t at = q->at;
	if (!g || at == GRAPH_NONE || cfg_is_straight(g, at) || !has_constant(b))
		return 0;
	/*
	 * Most sites have no subtraction near them, which takes less to see than the types of
	 * arguments, and these less than a loop.
	 */
	uint64_t constants = differences_before(q->code, g, at, 1) ? constant_numbers(b) : 0;
	int rc = constants ? cfg_may_come_back(g, at) : 0;
	unsigned int known = rc > 0 ? unknown_numbers(b) : 0;
	if (rc <= 0 || differences_before(q->code, g, at, known + 1) <= known ||
	    differences(q->code, g, b, at, known) <= known)
		return rc < 0 ? rc : 0;
	rc = event_count_is_in_loop(g, q->container, at, q->scratch);
	for (uint32_t i = 0; rc > 0 && i < CONSTANTS_MAX; i++)
		if (constants >> i & 1)
			quirk_reject(&b->args[i].loc, CAIRN_QUIRK_HIDDEN_DIFFERENCE);
	return rc < 0 ? rc : 0;
}
