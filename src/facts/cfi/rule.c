/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi/rule.h"

#include <errno.h>
#include <string.h>

#include "cfi/convention.h"
#include "cfi/expr.h"

enum { HEADER_WORDS = sizeof(struct cairn_unwind_rule) / 4 };

void rule_undescribed(struct rule_words *w)
{
	rule_cfa(w, CAIRN_UNWIND_UNDESCRIBED, 0, 0, 0, 0);
}

void rule_cfa(struct rule_words *w, enum cairn_unwind_cfa cfa, uint8_t flags, unsigned int reg,
	      int32_t off, int32_t add)
{
	struct cairn_unwind_rule r = {
		.cfa = cfa, .flags = flags, .reg = (uint8_t)reg, .off = off, .add = add};
	memcpy(w->words, &r, sizeof(r));
	w->n = HEADER_WORDS;
}

void rule_add(struct rule_words *w, unsigned int reg, enum cairn_unwind_saved saved, int64_t value)
{
	enum { VALUE_MAX = 1 << 23 };
	if (value < -VALUE_MAX || value >= VALUE_MAX) {
		saved = CAIRN_UNWIND_LOST;
		value = 0;
	}
	w->words[w->n++] = reg | (uint32_t)saved << 5 | (uint32_t)value << 8;
	/* The fourth byte of the header, on any host. */
	((uint8_t *)w->words)[3]++;
}

size_t rule_n_words(const uint32_t *words)
{
	return HEADER_WORDS + ((const uint8_t *)words)[3];
}

uint32_t rule_word_of(const struct cairn_unwind_rule *rule, unsigned int reg)
{
	for (uint32_t i = 0; i < rule->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(rule)[i]) == reg)
			return cairn_unwind_words(rule)[i];
	return 0;
}

static bool fits32(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* The header: the base of the CFA. */
static bool put_cfa(const struct program_rules *row, uint8_t flags, struct rule_words *w)
{
	struct expr_deref d;
	if (row->cfa == CFI_CFA_REG_OFFSET && row->cfa_reg < CFI_N_REGS && fits32(row->cfa_off)) {
		rule_cfa(w, CAIRN_UNWIND_CFA_REG, flags, (unsigned int)row->cfa_reg,
			 (int32_t)row->cfa_off, 0);
		return true;
	}
	if (row->cfa == CFI_CFA_EXPR && expr_is_deref(row->cfa_expr, row->cfa_expr_len, &d) &&
	    fits32(d.off) && fits32(d.add)) {
		rule_cfa(w, CAIRN_UNWIND_CFA_DEREF, flags, d.reg, (int32_t)d.off, (int32_t)d.add);
		return true;
	}
	return false;
}

static void put_reg(const struct convention *abi, const struct program_rules *row, unsigned int reg,
		    struct rule_words *w)
{
	const struct cfi_reg *r = &row->regs[reg];
	uint8_t base = ((const uint8_t *)w->words)[2];
	bool is_kept = abi->kept & UINT32_C(1) << reg || (reg == abi->ra && !abi->ra_at_cfa);
	switch (r->kind) {
	case CFI_REG_UNSPECIFIED:
		break;
	case CFI_REG_SAME:
		if (!is_kept)
			rule_add(w, reg, CAIRN_UNWIND_SAME, 0);
		break;
	case CFI_REG_AT_CFA:
		if (reg != abi->ra || !abi->ra_at_cfa || r->off != -8)
			rule_add(w, reg, CAIRN_UNWIND_AT_CFA, r->off);
		break;
	case CFI_REG_IS_CFA:
		if (reg != abi->sp || r->off != 0)
			rule_add(w, reg, CAIRN_UNWIND_IS_CFA, r->off);
		break;
	case CFI_REG_REGISTER:
		if (r->off < CFI_N_REGS)
			rule_add(w, reg, CAIRN_UNWIND_IN_REG, r->off);
		else
			rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
		break;
	case CFI_REG_AT_REG:
		if (r->base == base)
			rule_add(w, reg, CAIRN_UNWIND_AT_BASE, r->off);
		else if (r->base == abi->fp)
			rule_add(w, reg, CAIRN_UNWIND_AT_FP, r->off);
		else
			rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
		break;
	case CFI_REG_IS_REG:
		if (abi->ra_at_cfa && r->base == abi->ra)
			rule_add(w, reg, CAIRN_UNWIND_IS_PC, r->off);
		else if (r->off == 0)
			rule_add(w, reg, CAIRN_UNWIND_IN_REG, r->base);
		else
			rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
		break;
	case CFI_REG_UNDEFINED:
	case CFI_REG_EXPR:
	case CFI_REG_VAL_EXPR:
		rule_add(w, reg, CAIRN_UNWIND_LOST, 0);
		break;
	}
}

void rule_of(uint16_t machine, bool is_signal_frame, const struct program_rules *row,
	     struct rule_words *ret)
{
	const struct convention *abi = convention_of(machine);
	uint8_t flags = is_signal_frame ? CAIRN_UNWIND_SIGNAL : 0;
	if (row->ra_signed)
		flags |= CAIRN_UNWIND_RA_SIGNED;
	if (row->regs[abi->ra].kind == CFI_REG_UNDEFINED) {
		/* Such a frame needs no other rule. */
		rule_cfa(ret, CAIRN_UNWIND_CFA_REG, flags | CAIRN_UNWIND_OUTERMOST, abi->sp, 0, 0);
		return;
	}
	if (!put_cfa(row, flags, ret)) {
		rule_undescribed(ret);
		return;
	}
	for (uint32_t set = row->set; set; set &= set - 1)
		put_reg(abi, row, (unsigned int)__builtin_ctz(set), ret);
}

int rule_search_row(void *search, uint64_t lo, uint64_t hi, const struct program_rules *row)
{
	const struct rule_search *s = search;
	if (s->at < lo || s->at >= hi)
		return 0;
	rule_of(s->machine, s->is_signal_frame, row, s->ret);
	return 1;
}

/* ---- each once ---- */

int rule_set_init(struct rule_set *set)
{
	struct rule_words w;
	uint32_t number;
	*set = (struct rule_set){0};
	map_init(&set->by_hash);
	rule_undescribed(&w);
	return rule_set_put(set, w.words, w.n, &number);
}

void rule_set_fini(struct rule_set *set)
{
	VEC_FREE(&set->words);
	map_fini(&set->by_hash);
}

static bool is_rule(const struct rule_set *set, uint64_t number, const uint32_t *words, size_t n)
{
	const uint32_t *have = set->words.p + number;
	return rule_n_words(have) == n && memcmp(have, words, n * sizeof(*words)) == 0;
}

static uint64_t hash_words(const uint32_t *words, size_t n)
{
	uint64_t h = n;
	for (size_t i = 0; i < n; i++)
		h = (h ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

int rule_set_put(struct rule_set *set, const uint32_t *words, size_t n, uint32_t *ret)
{
	uint64_t hash = hash_words(words, n), number;
	while (map_get(&set->by_hash, hash, &number)) {
		if (is_rule(set, number, words, n)) {
			*ret = (uint32_t)number;
			return 0;
		}
		hash++;
	}
	number = set->words.n;
	for (size_t i = 0; i < n; i++)
		if (!VEC_ADD(&set->words, words[i]))
			return -ENOMEM;
	*ret = (uint32_t)number;
	return map_put(&set->by_hash, hash, number);
}
