/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Do the rows say what the instructions do?
 *
 * At a function's entry the CFA is at rsp + 8. From there the instructions are followed along all direct jumps, with what is
 * known: how far the CFA is from rsp, and, once rbp was made from rsp, how far from rbp. A push adds 8, "sub $N,%rsp" N,
 * "mov %rsp,%rbp" makes the two the same, leave goes back. At each instruction that is reached the row is held against it: when
 * it counts from a register whose distance is known, the distances must be the same.
 *
 * What is not known is never told: a row that counts from another register, rbp behind a pop, rsp behind an "and". Where both
 * distances are lost, following ends. Behind a call a row that does not fit means that the call does not return: compilers put
 * there what belongs to another path, often after padding. A disagreement ends following, too, so that each is told where it begins.
 *
 * Each instruction is followed once, and compared on every way to it; so the work is that of decoding the function.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include <cairn/unwind_check.h>

#include "base/err.h"
#include "cfi/index.h"
#include "cfi/sframe_check.h"
#include "cfi/table.h"
#include "insn/stack.h"

/* A larger FDE than compilers make is not followed. */
enum { FDE_MAX_BYTES = 1 << 26 };

enum { FP = 6, SP = 7 };

/* How far the CFA is from the two registers, in bytes. */
struct state {
	bool knows_sp, knows_fp;
	int64_t sp, fp;
};

struct place {
	uint64_t at, from; /* from: the instruction before */
	struct state state;
	bool is_behind_call;
};

struct check {
	const struct cfi *cfi;
	struct unwind_table table;
	int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found);
	void *ctx;
	struct cairn_unwind_checked told;
	/* The FDE that is followed. */
	uint64_t lo, hi;
	const uint8_t *code;
	VEC(struct place) todo;
	VEC(uint8_t) seen; /* one per byte of code: 1 followed, 2 told */
};

static void apply(struct state *s, const struct insn_stack *insn)
{
	const struct state before = *s;
	const struct {
		enum insn_stack_from from;
		int64_t add;
		bool *knows;
		int64_t *off;
	} to[] = {{insn->sp, insn->sp_add, &s->knows_sp, &s->sp}, {insn->fp, insn->fp_add, &s->knows_fp, &s->fp}};
	for (size_t i = 0; i < 2; i++) {
		if (to[i].from == STACK_KEPT)
			continue;
		bool is_sp = to[i].from == STACK_FROM_SP;
		*to[i].knows = to[i].from != STACK_UNKNOWN && (is_sp ? before.knows_sp : before.knows_fp);
		*to[i].off = (is_sp ? before.sp : before.fp) - to[i].add;
	}
}

/* 1 when the row fits, 0 when it cannot be compared, -1 when it does not fit. */
static int compare(const struct cairn_unwind_rule *rule, const struct state *s)
{
	if (rule->cfa != CAIRN_UNWIND_CFA_REG || rule->flags & (CAIRN_UNWIND_OUTERMOST | CAIRN_UNWIND_SIGNAL))
		return 0;
	if (rule->reg == SP && s->knows_sp)
		return rule->off == s->sp ? 1 : -1;
	if (rule->reg == FP && s->knows_fp)
		return rule->off == s->fp ? 1 : -1;
	return 0;
}

static int disagree(struct check *c, const struct place *p, const struct cairn_unwind_rule *rule)
{
	struct cairn_unwind_disagreement found = {
		.kind = CAIRN_UNWIND_DOUBT_INSN,
		.at = {p->at},
		.function = {c->lo},
		.from = {p->from},
		.reg = rule->reg,
		.row = rule->off,
		.found = rule->reg == SP ? p->state.sp : p->state.fp,
	};
	if (c->seen.p[p->at - c->lo] & 2)
		return 0;
	c->seen.p[p->at - c->lo] |= 2;
	c->told.n_disagreements++;
	return c->tell(c->ctx, &found);
}

static int add_place(struct check *c, const struct place *p)
{
	return p->at < c->lo || p->at >= c->hi || VEC_ADD(&c->todo, *p) ? 0 : -ENOMEM;
}

static int follow(struct check *c, const struct place *p)
{
	const struct cairn_unwind_rule *rule = unwind_table_find(&c->table, (struct cairn_vaddr){p->at});
	uint64_t off = p->at - c->lo;
	struct place next = {.from = p->at, .state = p->state};
	struct insn_stack insn;
	int fits = compare(rule, &p->state);
	if (fits < 0 && !p->is_behind_call)
		return disagree(c, p, rule);
	if (fits < 0 || (!p->state.knows_sp && !p->state.knows_fp)) {
		c->told.n_ends++;
		return 0;
	}
	if (c->seen.p[off] & 1)
		return 0;
	c->seen.p[off] |= 1;
	if (!insn_stack(c->code + off, c->hi - p->at, p->at, &insn)) {
		c->told.n_ends++;
		return 0;
	}
	c->told.followed_bytes += fits > 0 ? insn.len : 0;
	apply(&next.state, &insn);
	next.is_behind_call = insn.is_call || (insn.is_padding && p->is_behind_call);
	next.at = p->at + insn.len;
	int rc = insn.goes_on ? add_place(c, &next) : 0;
	next.at = insn.target;
	return rc || !insn.jumps ? rc : add_place(c, &next);
}

static int follow_fde(struct check *c, const struct fde_item *item)
{
	const struct cairn_unwind_rule *rule = unwind_table_find(&c->table, (struct cairn_vaddr){item->lo});
	/* A part of a function that only landing pads reach may begin with padding. */
	struct place p = {.at = item->lo, .from = item->lo, .is_behind_call = true, .state = {.knows_sp = true, .sp = 8}};
	size_t n;
	c->told.n_fdes++;
	c->lo = item->lo;
	c->hi = item->hi;
	if (rule->cfa != CAIRN_UNWIND_CFA_REG || rule->reg != SP || rule->off != 8 || item->hi - item->lo > FDE_MAX_BYTES ||
	    !elf_code_at(binary_main(c->cfi->bin), (struct cairn_vaddr){item->lo}, &c->code, &n) ||
	    n < item->hi - item->lo)
		return 0;
	c->seen.n = 0;
	for (uint64_t i = item->lo; i < item->hi; i++)
		if (!VEC_ADD(&c->seen, 0))
			return -ENOMEM;
	c->todo.n = 0;
	int rc = add_place(c, &p);
	while (!rc && c->todo.n) {
		p = c->todo.p[--c->todo.n];
		rc = follow(c, &p);
	}
	return rc;
}

static bool has_frame_pointer(const struct cairn_unwind_rule *rule)
{
	return rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == FP && rule->off == 16 && rule->n_regs &&
	       unwind_word_of(rule, FP) == ((uint32_t)-16 << 8 | CAIRN_UNWIND_AT_CFA << 5 | FP) && !unwind_word_of(rule, 16);
}

static void count_frame_pointers(struct check *c)
{
	for (uint32_t i = 0; i + 1 < c->table.n_rows; i++) {
		struct cairn_vaddr lo, hi;
		const struct cairn_unwind_rule *rule = unwind_table_row(&c->table, i, &lo, &hi);
		if (rule->cfa != CAIRN_UNWIND_UNDESCRIBED)
			c->told.text_bytes += hi.v - lo.v;
		if (has_frame_pointer(rule))
			c->told.fp_bytes += hi.v - lo.v;
	}
}

static int check_all(struct check *c, struct cairn_err *err)
{
	uint64_t end = 0;
	int rc = 0;
	count_frame_pointers(c);
	for (size_t i = 0; !rc && i < c->cfi->items.n; i++) {
		const struct fde_item *item = &c->cfi->items.p[i];
		if (item->lo >= end)
			rc = follow_fde(c, item);
		end = item->hi > end ? item->hi : end;
	}
	if (!rc)
		rc = sframe_check(c->cfi->bin, &c->table, c->tell, c->ctx, &c->told, err);
	return rc == -ENOMEM ? err_nomem(err, "following instructions") : rc;
}

int cairn_unwind_check(const struct cairn_binary *bin,
		       int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found), void *ctx,
		       struct cairn_unwind_checked *ret, struct cairn_err *err)
{
	struct check c = {.tell = tell, .ctx = ctx};
	struct cfi *cfi = NULL;
	uint8_t *bytes = NULL;
	size_t size;
	if (elf_machine(binary_main(bin)) != EM_X86_64)
		return err_set(err, -EOPNOTSUPP, "%s: not of x86-64, whose instructions alone can be followed",
			       cairn_binary_path(bin));
	int rc = cfi_open(bin, &cfi, err);
	if (rc >= 0)
		rc = unwind_table_build(cfi, 0, &bytes, &size, err);
	if (rc >= 0)
		rc = unwind_table_open(bytes, size, cairn_binary_path(bin), "unwind table", &c.table, err);
	c.cfi = cfi;
	if (rc >= 0)
		rc = check_all(&c, err);
	*ret = c.told;
	VEC_FREE(&c.todo);
	VEC_FREE(&c.seen);
	cfi_close(cfi);
	free(bytes);
	return rc;
}
