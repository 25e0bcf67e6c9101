/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Weakens rows that the instructions disprove
 *
 * Assemblers write rows on request by directives, and an author may forget them, or decide
 * otherwise. OpenSSL has functions that overwrite rbx, rbp and r12 to r15, for callers that have
 * saved them:
 *
 *	__bn_post4x_internal:       .cfi_startproc     rows: rsp+8, so rbx to r15 are unchanged
 *		mov  0(%rbp),%r12
 *		andn %rax,%r12,%r12                    r12 is computed: unknown from here on
 *		...
 *		ret                 .cfi_endproc
 *
 * The row is wrong and its author knows it. We weaken it: r12 becomes "lost". If the stack pointer
 * was moved without a directive, to another address or an unknown one, the row becomes undescribed.
 * A register that was loaded from memory may have been saved there. In such a function, whose
 * author describes no registers, that is not known, so it is lost, too.
 *
 * Following all functions would cost more than building their rows. Compilers write rows for their
 * own code, so only these are followed:
 *
 *	silent     no row has a rule for a callee-saved register, and the code, read from its
 *	           beginning to its end, writes one of them; or it moves rsp, though there is only
 *	           one row. Nearly all are small functions that write none (insn/sweep.c)
 *	at its     the last instruction is a return, and its own row is far from the caller's stack
 *	end        pointer: a sum with the wrong sign adds up to there. For such a function only the
 *	           CFA is compared with the rows, as the author described the others with care
 *	realigned  GCC's rows of functions that align their stack anew have rbp "in memory at rbp",
 *	           also after the epilogue has given rbp the caller's value back
 *	           (docs/findings/gcc-realigned-epilogue.md). Only that is checked: after leave, or
 *	           a pop while rsp is rbp, rbp is the caller's, as the row was true before. Other
 *	           registers described at rbp are lost
 *
 * Such functions jump into each other, with registers overwritten. If one jumps into the middle of
 * another, that one is followed from there, too, once all rows are joined. If it jumps to another's
 * beginning, that one is believed, as others call it.
 *
 * Errors in other functions are reported by cairn_unwind_check(), and believed here.
 */
#include "cfi/disprove.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/search.h"
#include "cfi/convention.h"
#include "insn/insn.h"
#include "insn/values.h"

enum { SP = 7, FP = 6, RBX = 3 };

/*
 * Marks of a byte of code: the bits of the callee-saved registers, and these, which are of no
 * register. The last two mean: rbp does not have the frame's value there; it has the caller's.
 */
enum { NOT_DESCRIBED = 1, FRAME_GONE = 2, FRAME_LEFT = 4 };

/*
 * A larger function is believed: the largest such one seen has 16,000 bytes, and a file may claim
 * anything.
 */
enum { MAX_BYTES = 1 << 17 };

struct disproof {
	struct disprove *d;
	const struct disprove_fde *fde;
	const struct rule_runs *runs;
	const struct rule_set *rules;
	struct disprove_tails *tails;
	bool is_silent, ends_far;
	bool has_marks;
};

static uint16_t kept(void)
{
	return (uint16_t)convention_of(EM_X86_64)->kept;
}

static const struct cairn_unwind_rule *rule_of_run(const struct rule_set *rules,
						   const struct rule_run *run)
{
	return (const struct cairn_unwind_rule *)(rules->words.p + run->rule);
}

static const struct cairn_unwind_rule *row_at(const struct disproof *p, uint64_t at)
{
	size_t lo =
		SEARCH(p->fde->first + 1, p->runs->v.n, middle, p->runs->v.p[middle].lo <= at) - 1;
	return rule_of_run(p->rules, &p->runs->v.p[lo]);
}

/* ---- which ones ---- */

static bool is_at_entry(const struct cairn_unwind_rule *rule)
{
	return rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == SP && rule->off == 8 &&
	       !(rule->flags & (CAIRN_UNWIND_OUTERMOST | CAIRN_UNWIND_SIGNAL));
}

static bool is_silent(const struct disprove_fde *fde, const struct rule_runs *runs)
{
	if (fde->set & kept())
		return false;
	bool has_one_row = runs->v.n - fde->first == 1;
	return insn_writes_any(fde->code, fde->hi - fde->lo,
			       (uint16_t)(kept() | (has_one_row ? 1u << SP : 0)));
}

/* "ret" or "repz ret", and a row for it. */
static bool ends_far(const struct disprove_fde *fde, const struct rule_runs *runs,
		     const struct rule_set *rules)
{
	const struct rule_run *last = &runs->v.p[runs->v.n - 1];
	const struct cairn_unwind_rule *rule = rule_of_run(rules, last);
	uint64_t n = fde->hi - last->lo;
	if (n > 2 || rule->cfa != CAIRN_UNWIND_CFA_REG || rule->reg != SP || rule->off == 8)
		return false;
	const uint8_t *end = fde->code + (fde->hi - fde->lo);
	return end[-1] == 0xc3 && (n == 1 || end[-2] == 0xf3);
}

/* ---- the disproved rows ---- */

static uint16_t lost_at(const struct disproof *p, const struct cairn_unwind_rule *rule,
			const struct sim_state *s)
{
	uint16_t lost = 0;
	if (rule->cfa == CAIRN_UNWIND_UNDESCRIBED ||
	    rule->flags & (CAIRN_UNWIND_OUTERMOST | CAIRN_UNWIND_SIGNAL))
		return 0;
	for (unsigned int reg = RBX; p->is_silent && reg < 16; reg++)
		if (kept() & 1u << reg && s->regs[reg] != 1u << reg && !rule_word_of(rule, reg))
			lost |= (uint16_t)(1u << reg);
	return lost;
}

/* The stack pointer came from somewhere: whether a row that counts from it is true is not known. */
static bool is_blind(const struct disproof *p, const struct cairn_unwind_rule *rule,
		     const struct sim_state *s)
{
	return p->is_silent && rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == SP && !s->knows_sp;
}

static bool is_at_fp(uint32_t word)
{
	return word && cairn_unwind_word_saved(word) == CAIRN_UNWIND_AT_FP;
}

/* rbp has been loaded anew, and the row has registers in memory at it. */
static uint16_t frame_at(const struct disproof *p, const struct cairn_unwind_rule *rule,
			 const struct sim_state *s)
{
	if (!p->fde->is_realigned || !(s->regs[FP] & (SIM_LOADED | SIM_LEFT)) ||
	    !is_at_fp(rule_word_of(rule, FP)))
		return 0;
	bool is_callers =
		s->regs[FP] == SIM_LEFT && cairn_unwind_word_value(rule_word_of(rule, FP)) == 0;
	return is_callers ? FRAME_LEFT : FRAME_GONE;
}

static uint16_t mark_of(const struct disproof *p, const struct cairn_unwind_rule *rule,
			const struct sim_state *s, int fits)
{
	/* _start moves the stack pointer as it likes: it has no caller. */
	if (rule->flags & CAIRN_UNWIND_OUTERMOST)
		return 0;
	if ((p->is_silent || p->ends_far) && (fits < 0 || is_blind(p, rule, s)))
		return NOT_DESCRIBED;
	return lost_at(p, rule, s) | frame_at(p, rule, s);
}

static int arrive(void *ctx, const struct sim_point *place)
{
	struct disproof *p = ctx;
	const struct cairn_unwind_rule *rule = row_at(p, place->at);
	uint64_t off = place->at - p->fde->lo, n = p->fde->hi - place->at;
	struct insn_step insn;
	int fits = sim_compare(rule, &place->state);
	if ((fits < 0 && place->is_after_call) || !insn_step(p->fde->code + off, n, 0, &insn))
		return SIM_END;
	uint16_t mark = mark_of(p, rule, &place->state, fits);
	p->has_marks |= mark != 0;
	for (uint64_t i = 0; mark && i < insn.len; i++)
		p->d->marks.p[off + i] |= mark;
	return 0;
}

static int leave(void *ctx, const struct sim_point *place, const struct insn_stack *insn)
{
	struct disproof *p = ctx;
	const struct cairn_unwind_rule *rule = row_at(p, place->at);
	uint16_t lost = lost_at(p, rule, &place->state);
	if (insn->is_return || !lost || sim_compare(rule, &place->state) <= 0)
		return 0;
	return VEC_ADD(&p->tails->v, ((struct disprove_tail){insn->target, lost})) ? 0 : -ENOMEM;
}

/* ---- rows that say less ---- */

/* @rule without its registers at rbp. */
static void drop_frame(const struct cairn_unwind_rule *rule, bool is_left, struct rule_words *w)
{
	rule_cfa(w, rule->cfa, rule->flags, rule->reg, rule->off, rule->add);
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(rule)[i];
		unsigned int reg = cairn_unwind_word_reg(word);
		if (!is_at_fp(word))
			rule_add(w, reg, cairn_unwind_word_saved(word),
				 cairn_unwind_word_value(word));
		else if (reg != FP || !is_left)
			rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
	}
}

static int put(struct disproof *p, struct rule_set *rules, uint64_t lo, uint32_t rule,
	       uint16_t mark)
{
	struct rule_words w;
	uint32_t number = rule;
	int rc = 0;
	w.n = rule_n_words(rules->words.p + rule);
	memcpy(w.words, rules->words.p + rule, w.n * sizeof(w.words[0]));
	if (mark & NOT_DESCRIBED)
		rule_undescribed(&w);
	else if (mark & (FRAME_GONE | FRAME_LEFT))
		drop_frame((const struct cairn_unwind_rule *)(rules->words.p + rule),
			   !(mark & FRAME_GONE), &w);
	for (unsigned int reg = RBX; !(mark & NOT_DESCRIBED) && reg < 16; reg++)
		if (mark & 1u << reg &&
		    !rule_word_of((const struct cairn_unwind_rule *)w.words, reg))
			rule_add(&w, reg, CAIRN_UNWIND_LOST, 0);
	if (mark)
		rc = rule_set_put(rules, w.words, w.n, &number);
	if (rc == 0 && !VEC_ADD(&p->d->mended, ((struct rule_run){lo, number})))
		rc = -ENOMEM;
	return rc;
}

static int put_run(struct disproof *p, struct rule_set *rules, uint64_t lo, uint64_t hi,
		   uint32_t rule, uint64_t *ret_bytes)
{
	int rc = 0;
	for (uint64_t at = lo, end; rc == 0 && at < hi; at = end) {
		uint16_t mark = p->d->marks.p[at - p->fde->lo];
		for (end = at + 1; end < hi && p->d->marks.p[end - p->fde->lo] == mark;)
			end++;
		*ret_bytes += mark & NOT_DESCRIBED ? end - at : 0;
		rc = put(p, rules, at, rule, mark);
	}
	return rc;
}

static int replace(struct disproof *p, struct rule_runs *runs, struct rule_set *rules,
		   uint64_t *ret_bytes)
{
	int rc = 0;
	p->d->mended.n = 0;
	for (size_t i = p->fde->first; rc == 0 && i < runs->v.n; i++) {
		uint64_t hi = i + 1 < runs->v.n ? runs->v.p[i + 1].lo : p->fde->hi;
		rc = put_run(p, rules, runs->v.p[i].lo, hi, runs->v.p[i].rule, ret_bytes);
	}
	runs->v.n = p->fde->first;
	for (size_t i = 0; rc == 0 && i < p->d->mended.n; i++)
		rc = VEC_ADD(&runs->v, p->d->mended.p[i]) ? 0 : -ENOMEM;
	return rc;
}

int disprove_rows(struct disprove *d, const struct disprove_fde *fde, struct rule_runs *runs,
		  struct rule_set *rules, uint64_t *ret_bytes, struct disprove_tails *ret_tails)
{
	static const struct sim_ops ops = {.arrive = arrive, .leave = leave, .goes_on_blind = true};
	struct disproof p = {.d = d, .fde = fde, .runs = runs, .rules = rules, .tails = ret_tails};
	struct sim_entry entry = {.at = fde->tail ? fde->tail->to : fde->lo,
				  .overwritten = fde->tail ? fde->tail->regs : 0};
	size_t n = fde->hi - fde->lo;
	if (fde->first == runs->v.n || n > MAX_BYTES ||
	    !is_at_entry(rule_of_run(rules, &runs->v.p[fde->first])))
		return 0;
	p.is_silent = fde->tail || is_silent(fde, runs);
	p.ends_far = !p.is_silent && ends_far(fde, runs, rules);
	if (!p.is_silent && !p.ends_far && !fde->is_realigned)
		return 0;
	d->marks.n = 0;
	if (!VEC_RESERVE(&d->marks, n))
		return -ENOMEM;
	memset(d->marks.p, 0, n * sizeof(*d->marks.p));
	d->marks.n = n;
	int rc = sim_run(&d->simulation, fde->lo, fde->hi, fde->code, &entry, &ops, &p);
	return rc || !p.has_marks ? rc : replace(&p, runs, rules, ret_bytes);
}

void disprove_fini(struct disprove *d)
{
	sim_fini(&d->simulation);
	VEC_FREE(&d->marks);
	VEC_FREE(&d->mended);
}
