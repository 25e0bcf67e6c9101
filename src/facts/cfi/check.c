/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares unwind rows with the instructions
 *
 * At a function's entry the CFA is at rsp + 8, and the registers are the caller's. From there the
 * instructions are followed along all direct jumps (simulate_frame.c). Each row on the way is
 * compared: if it counts from a register whose distance is known, the distances must be equal.
 *
 * An unknown is never reported: a row that counts from another register, rbp after a pop, rsp after
 * an "and". If both distances are lost, the walk ends. If a row after a call does not fit, the call
 * does not return: compilers put code of another path there, often after padding. A disagreement
 * ends the walk, too, so that each is reported where it begins.
 *
 * A register that the ABI has the callee save, and that has no rule in the row, must be the
 * caller's. It is reported if it was overwritten on a path to a return, or out of the function:
 * with the instruction that did it, once for each register of a function. A register that was
 * loaded from memory is not reported, as it may have been saved there. Rows that were silent before
 * a call must be silent after it; otherwise they belong to another path.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/unwind.h>

#include "base/err.h"
#include "cfi/convention.h"
#include "cfi/simulate_frame.h"
#include "cfi/index.h"
#include "cfi/rule.h"
#include "cfi/sframe_check.h"
#include "cfi/table.h"
#include "insn/insn.h"

enum { FP = 6, SP = 7 };

struct check {
	const struct cfi *cfi;
	struct unwind_table table;
	int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found);
	void *ctx;
	struct cairn_unwind_checked told;
	/* The FDE that is followed. */
	uint64_t lo, hi;
	const uint8_t *code;
	struct simulation simulation;
	VEC(uint64_t) told_at;
	VEC(uint8_t) is_followed; /* per byte of the function's code: it is counted */
	/* the instruction that is known to have overwritten the register; else 0 */
	uint64_t overwritten_by[16];
	uint16_t told_regs;
};

/* ---- the CFA ---- */

static bool is_told(const struct check *c, uint64_t at)
{
	for (size_t i = 0; i < c->told_at.n; i++)
		if (c->told_at.p[i] == at)
			return true;
	return false;
}

static int disagree(struct check *c, const struct sim_point *p,
		    const struct cairn_unwind_rule *rule)
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
	if (is_told(c, p->at))
		return SIM_END;
	if (!VEC_ADD(&c->told_at, p->at))
		return -ENOMEM;
	c->told.n_disagreements++;
	int rc = c->tell(c->ctx, &found);
	return rc ? rc : SIM_END;
}

/* ---- registers that a callee keeps ---- */

/* The registers that the row describes as the caller's, and that are not. */
static uint16_t overwritten(const struct cairn_unwind_rule *rule, const struct sim_state *s)
{
	uint16_t kept = (uint16_t)convention_of(EM_X86_64)->kept, ret = 0;
	for (unsigned int reg = 0; reg < 16; reg++)
		if (kept & 1u << reg && sim_overwritten(s, reg) && !rule_word_of(rule, reg))
			ret |= (uint16_t)(1u << reg);
	return ret;
}

static int hold_registers(struct check *c, const struct sim_point *p,
			  const struct cairn_unwind_rule *rule)
{
	const struct cairn_unwind_rule *before =
		unwind_table_find(&c->table, (struct cairn_vaddr){p->from});
	uint16_t lost = overwritten(rule, &p->state);
	for (unsigned int reg = 0; lost && reg < 16; reg++) {
		if (!(lost & 1u << reg))
			continue;
		if (p->is_after_call && rule_word_of(before, reg)) {
			c->told.n_ends++;
			return SIM_END;
		}
		if (!c->overwritten_by[reg])
			c->overwritten_by[reg] = p->from;
	}
	return 0;
}

static int leave(void *ctx, const struct sim_point *p, const struct insn_stack *insn)
{
	struct check *c = ctx;
	const struct cairn_unwind_rule *rule =
		unwind_table_find(&c->table, (struct cairn_vaddr){p->at});
	if (sim_compare(rule, &p->state) <= 0)
		return 0;
	uint16_t lost = overwritten(rule, &p->state) & (uint16_t)~c->told_regs;
	for (unsigned int reg = 0; lost && reg < 16; reg++) {
		struct cairn_unwind_disagreement found = {
			.kind = CAIRN_UNWIND_DOUBT_KEPT,
			.at = {p->at},
			.function = {c->lo},
			.from = {c->overwritten_by[reg]},
			.reg = reg,
		};
		if (!(lost & 1u << reg))
			continue;
		c->told_regs |= (uint16_t)(1u << reg);
		c->told.n_disagreements++;
		int rc = c->tell(c->ctx, &found);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- a function ---- */

/* Once each: a jump may lead into the middle of an instruction that another path goes through. */
static void count_followed(struct check *c, uint64_t off, unsigned int len)
{
	for (uint64_t i = off; i < off + len; i++) {
		c->told.followed_bytes += !c->is_followed.p[i];
		c->is_followed.p[i] = 1;
	}
}

static int arrive(void *ctx, const struct sim_point *p)
{
	struct check *c = ctx;
	const struct cairn_unwind_rule *rule =
		unwind_table_find(&c->table, (struct cairn_vaddr){p->at});
	struct insn_step insn;
	int fits = sim_compare(rule, &p->state);
	if (fits < 0 && !p->is_after_call)
		return disagree(c, p, rule);
	if (fits < 0) {
		c->told.n_ends++;
		return SIM_END;
	}
	if (fits > 0 && !sim_was_at(&c->simulation, p->at - c->lo) &&
	    insn_step(c->code + (p->at - c->lo), c->hi - p->at, p->at, &insn))
		count_followed(c, p->at - c->lo, insn.len);
	return fits > 0 ? hold_registers(c, p, rule) : 0;
}

static int follow_fde(struct check *c, const struct fde_item *item)
{
	static const struct sim_ops ops = {arrive, leave};
	const struct cairn_unwind_rule *rule =
		unwind_table_find(&c->table, (struct cairn_vaddr){item->lo});
	size_t n;
	c->told.n_fdes++;
	c->lo = item->lo;
	c->hi = item->hi;
	if (rule->cfa != CAIRN_UNWIND_CFA_REG || rule->reg != SP || rule->off != 8 ||
	    !elf_code_at(binary_main(c->cfi->bin), (struct cairn_vaddr){item->lo}, &c->code, &n) ||
	    n < item->hi - item->lo)
		return 0;
	c->is_followed.n = 0;
	if (!VEC_RESERVE(&c->is_followed, item->hi - item->lo))
		return -ENOMEM;
	memset(c->is_followed.p, 0, item->hi - item->lo);
	c->told_at.n = 0;
	c->told_regs = 0;
	memset(c->overwritten_by, 0, sizeof(c->overwritten_by));
	return sim_run(&c->simulation, item->lo, item->hi, c->code,
		       &(struct sim_entry){.at = item->lo}, &ops, c);
}

static bool has_frame_pointer(const struct cairn_unwind_rule *rule)
{
	return rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == FP && rule->off == 16 &&
	       rule->n_regs &&
	       rule_word_of(rule, FP) == ((uint32_t)-16 << 8 | CAIRN_UNWIND_AT_CFA << 5 | FP) &&
	       !rule_word_of(rule, 16);
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
		       int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found),
		       void *ctx, struct cairn_unwind_checked *ret, struct cairn_err *err)
{
	struct check c = {.tell = tell, .ctx = ctx};
	struct cfi *cfi = NULL;
	uint8_t *bytes = NULL;
	size_t size;
	if (elf_machine(binary_main(bin)) != EM_X86_64)
		return err_set(err, -EOPNOTSUPP,
			       "%s: not of x86-64, whose instructions alone can be followed",
			       cairn_binary_path(bin));
	int rc = cfi_open(bin, &cfi, err);
	if (rc >= 0)
		rc = unwind_table_build(cfi, UNWIND_AS_WRITTEN, 0, &bytes, &size, err);
	if (rc >= 0)
		rc = unwind_table_open(bytes, size, cairn_binary_path(bin), "unwind table",
				       &c.table, err);
	c.cfi = cfi;
	if (rc >= 0)
		rc = check_all(&c, err);
	c.told.n_ends += c.simulation.n_ends;
	*ret = c.told;
	sim_fini(&c.simulation);
	VEC_FREE(&c.told_at);
	VEC_FREE(&c.is_followed);
	cfi_close(cfi);
	free(bytes);
	return rc;
}
