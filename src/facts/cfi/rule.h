/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the rules of an unwind table, each stored once
 *
 * A row of call frame information has 32 columns. An unwinder needs only a handful of words of it
 * (cairn/shared/unwind.h), and a large program has a few hundred different ones. Within this module
 * only.
 */
#ifndef CFI_RULE_H
#define CFI_RULE_H

#include <cairn/shared/unwind.h>

#include "base/map.h"
#include "base/vec.h"
#include "cfi/program.h"

/* The size of the largest rule: each of the registers has a word. */
enum { RULE_MAX_WORDS = sizeof(struct cairn_unwind_rule) / 4 + CFI_N_REGS };

/* A rule while it is made. */
struct rule_words {
	uint32_t words[RULE_MAX_WORDS];
	size_t n;
};

/* The undescribed rule, and a rule with a CFA only; a register's word is added. */
void rule_undescribed(struct rule_words *w);
void rule_cfa(struct rule_words *w, enum cairn_unwind_cfa cfa, uint8_t flags, unsigned int reg,
	      int32_t off, int32_t add);
/* A value beyond 24 bits is CAIRN_UNWIND_LOST. */
void rule_add(struct rule_words *w, unsigned int reg, enum cairn_unwind_saved saved, int64_t value);

/*
 * rule_of - the rule that one row amounts to; undescribed when it cannot be expressed
 *
 * The expression of a procedure linkage table is not one rule, see table_build.c: undescribed here.
 */
void rule_of(uint16_t machine, bool is_signal_frame, const struct program_rules *row,
	     struct rule_words *ret);

/* Looks for the row of an FDE that holds at an address. */
struct rule_search {
	uint64_t at;
	uint16_t machine;
	bool is_signal_frame;
	struct rule_words *ret;
};

/* A callback of program_run(): ends the run at the row that holds at the address. */
int rule_search_row(void *search, uint64_t lo, uint64_t hi, const struct program_rules *row);

/*
 * Rules by number: the distance of its first word from the beginning. Rule 0 is the undescribed
 * one.
 */
struct rule_set {
	VEC(uint32_t) words;
	struct map by_hash;
};

int rule_set_init(struct rule_set *set); /* 0 or -ENOMEM; then rule_set_fini() */
void rule_set_fini(struct rule_set *set);

/*
 * rule_set_put - the number of a rule, new or known
 *
 * Returns 0, -ENOMEM.
 */
int rule_set_put(struct rule_set *set, const uint32_t *words, size_t n, uint32_t *ret);

/* Words of the rule that begins at @words. */
size_t rule_n_words(const uint32_t *words);

/*
 * The word of a rule for a register; 0: it has none. No word of a rule is 0, but for rax at the
 * CFA.
 */
uint32_t rule_word_of(const struct cairn_unwind_rule *rule, unsigned int reg);

/* From @lo on the rule with number @rule holds, up to the next one. */
struct rule_run {
	uint64_t lo;
	uint32_t rule;
};

struct rule_runs {
	VEC(struct rule_run) v;
};

#endif
