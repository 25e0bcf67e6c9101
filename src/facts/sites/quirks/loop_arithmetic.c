/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values computed in a loop
 *
 * GCC keeps one of the counters of a loop. It describes the others, and values made from them, by
 * arithmetic on the remaining ones:
 *
 *	for (int i = 0; i < n; i++, s += 3)
 *		f(i);				f's a	(%rsi - %r14 - 2) / 3
 *
 * GCC does not check which point of the program those registers belong to. A name in such a
 * description that the code does not need may share its register with the next value of the same
 * variable (docs/findings/gcc-dead-name-shares-register.md). Or the description is that of the
 * first pass (docs/findings/gcc-value-before-loop.md). The description contradicts neither itself
 * nor the code, but right descriptions of this kind are rare. So at a site inside a loop, an
 * integer computed from more than one register (width changes aside) is unavailable.
 *
 * The same unneeded name may be the whole description, `%rsi`, next to that of another argument,
 * which the register really holds. So if two integers are described as being in one register, both
 * are unavailable there.
 *
 * A computed pointer to a member is right: most of them are made as &p->list. Pointers are
 * believed.
 */
#include "sites/quirks/loop_arithmetic.h"

#include "sites/arg_type.h"

static bool is_width(int64_t mask)
{
	return mask == 0xff || mask == 0xffff || mask == 0xffffffff;
}

static bool is_imm(const struct cairn_loc_step *s, enum cairn_loc_op op)
{
	return s->op == op && s->operand == CAIRN_LOC_IMM;
}

/*
 * The number of leading operations that change only the width; 0: the first one does something
 * else.
 */
static uint32_t width_steps(const struct cairn_loc_step *s, uint32_t n)
{
	if (s->op == CAIRN_LOC_SEXT || s->op == CAIRN_LOC_ZEXT ||
	    (is_imm(s, CAIRN_LOC_AND) && is_width(s->imm)))
		return 1;
	bool both = n > 1 && is_imm(s, CAIRN_LOC_SHL) && s->imm == s[1].imm;
	return both && (is_imm(&s[1], CAIRN_LOC_SHR) || is_imm(&s[1], CAIRN_LOC_SAR)) ? 2 : 0;
}

/* True for the content of a register or a stack slot, with at most its width changed. */
static bool is_as_held(const struct cairn_piece *p)
{
	const struct cairn_loc_step *s = p->steps;
	uint32_t i = 1, n;
	if (p->n_steps > 2 && is_imm(&s[1], CAIRN_LOC_ADD) && s[2].op == CAIRN_LOC_LOAD)
		i = 3;
	else if (p->n_steps > 1 && s[1].op == CAIRN_LOC_LOAD)
		i = 2;
	while (i < p->n_steps && (n = width_steps(&s[i], p->n_steps - i)))
		i += n;
	return i == p->n_steps;
}

/* The register that holds it; -1: none. */
static int register_of(const struct cairn_location *loc)
{
	const struct cairn_piece *p = loc->pieces;
	bool held = loc->why == CAIRN_AVAILABLE && loc->n_pieces == 1 &&
		    p->kind == CAIRN_PIECE_VALUE && p->n_steps == 1 &&
		    p->steps->op == CAIRN_LOC_REG;
	return held ? p->steps->reg : -1;
}

static bool shares_register(const struct built_site *b, uint32_t arg)
{
	int reg = register_of(&b->args[arg].loc);
	for (uint32_t i = 0; reg >= 0 && i < b->formals.n; i++)
		if (i != arg && register_of(&b->args[i].loc) == reg)
			return true;
	return false;
}

static bool is_computed(const struct cairn_location *loc)
{
	for (uint32_t i = 0; loc->why == CAIRN_AVAILABLE && i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		if (p->kind == CAIRN_PIECE_VALUE && p->n_steps && p->steps->op == CAIRN_LOC_REG &&
		    !is_as_held(p))
			return true;
		if (p->kind == CAIRN_PIECE_MEMORY && p->n_steps && p->steps->op == CAIRN_LOC_ADDR)
			return true;
	}
	return false;
}

int loop_arithmetic_check(const struct quirk_query *q)
{
	struct built_site *b = q->site;
	uint64_t rejected = 0; /* arguments after the first 64 are believed */
	if (!q->cfg || q->at == GRAPH_NONE || cfg_is_straight(q->cfg, q->at))
		return 0;
	for (uint32_t i = 0; i < b->formals.n && i < 64; i++)
		if ((is_computed(&b->args[i].loc) || shares_register(b, i)) &&
		    !arg_is_pointer(b->die.unit, b->formals.die[i]))
			rejected |= (uint64_t)1 << i;
	int rc = rejected ? event_count_is_in_loop(q->cfg, q->container, q->at, q->scratch) : 0;
	for (uint32_t i = 0; rc > 0 && i < b->formals.n && i < 64; i++)
		if (rejected >> i & 1)
			quirk_reject(&b->args[i].loc, CAIRN_QUIRK_LOOP_ARITHMETIC);
	return rc < 0 ? rc : 0;
}
