/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both are rules that hold from one address to the next, so they are the same everywhere when they
 * are the same wherever a row of either begins. The rows of a function of SFrame are gone through
 * together with those of the table.
 */
#include "cfi/sframe_check.h"

#include <errno.h>
#include <string.h>

#include <cairn/unwind.h>

#include "cfi/rule.h"

enum { FP = 6, RA = 16 };

struct sframe_checking {
	const struct unwind_table *table;
	int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found);
	void *ctx;
	struct cairn_unwind_checked *told;
	struct cairn_sframe_function function;
	uint32_t row; /* of the table: the first one that begins after the compared part */
	bool is_told; /* of this function */
	struct rule_words rule; /* of SFrame, from here on */
};

static bool is_same(const struct cairn_unwind_rule *a, const struct cairn_unwind_rule *b)
{
	if (a->flags & b->flags & CAIRN_UNWIND_OUTERMOST)
		return true;
	return a->cfa == b->cfa && a->reg == b->reg && a->off == b->off && a->add == b->add &&
	       !((a->flags ^ b->flags) & CAIRN_UNWIND_OUTERMOST) &&
	       rule_word_of(a, FP) == rule_word_of(b, FP) &&
	       rule_word_of(a, RA) == rule_word_of(b, RA);
}

static int differs(struct sframe_checking *c, uint64_t at)
{
	struct cairn_unwind_disagreement found = {.kind = CAIRN_UNWIND_DOUBT_SFRAME,
						  .at = {at},
						  .function = c->function.at,
						  .from = {at}};
	c->is_told = true;
	c->told->n_disagreements++;
	return c->tell(c->ctx, &found);
}

static int compare_at(struct sframe_checking *c, uint64_t at)
{
	const struct cairn_unwind_rule *rule = (const struct cairn_unwind_rule *)c->rule.words;
	if (c->is_told || is_same(rule, unwind_table_find(c->table, (struct cairn_vaddr){at})))
		return 0;
	return differs(c, at);
}

/* Rows of the table that begin before @end, under the rule of SFrame that holds until there. */
static int compare_until(struct sframe_checking *c, uint64_t end)
{
	struct cairn_vaddr lo, hi;
	int rc = 0;
	for (; !rc && c->row < c->table->n_rows; c->row++) {
		unwind_table_row(c->table, c->row, &lo, &hi);
		if (lo.v >= end)
			break;
		if (lo.v >= c->function.at.v && c->rule.n)
			rc = compare_at(c, lo.v);
	}
	return rc;
}

static int take_row(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule)
{
	struct sframe_checking *c = ctx;
	uint64_t at = c->function.at.v + off;
	int rc = compare_until(c, at);
	c->rule.n = rule_n_words((const uint32_t *)rule);
	memcpy(c->rule.words, rule, c->rule.n * sizeof(uint32_t));
	return rc ? rc : compare_at(c, at);
}

static int check_function(struct sframe_checking *c, const struct cairn_sframe *s, uint32_t number)
{
	uint64_t before = c->function.at.v;
	cairn_sframe_function(s, number, &c->function);
	if (c->function.refused)
		return differs(c, c->function.at.v);
	if (c->function.block_size)
		return 0;
	if (c->function.at.v < before) /* not sorted: from the beginning */
		c->row = 0;
	c->rule.n = 0;
	c->is_told = false;
	c->told->sframe_bytes += c->function.size;
	int rc = cairn_sframe_rows(s, number, take_row, c);
	return rc ? rc : compare_until(c, c->function.at.v + c->function.size);
}

int sframe_check(const struct cairn_binary *bin, const struct unwind_table *table,
		 int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found), void *ctx,
		 struct cairn_unwind_checked *told, struct cairn_err *err)
{
	struct sframe_checking c = {.table = table, .tell = tell, .ctx = ctx, .told = told};
	struct cairn_sframe_info info;
	struct cairn_err unused;
	struct cairn_sframe *s;
	int rc = cairn_sframe_open_binary(bin, &s, &unused);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0) {
		if (err)
			*err = unused;
		return rc;
	}
	cairn_sframe_info(s, &info);
	for (uint32_t i = 0; !rc && i < info.n_functions; i++)
		rc = check_function(&c, s, i);
	cairn_sframe_close(s);
	return rc;
}
