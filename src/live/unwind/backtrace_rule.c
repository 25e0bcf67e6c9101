/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/backtrace_rule.h"

enum { RBP = 6, RSP = 7, RA = 16 };

/* The position at which the rule's words save rbp; false when it does not fit into a word. */
static bool find_fp(const struct cairn_unwind_rule *rule, int32_t *ret)
{
	*ret = 0;
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(rule)[i];
		unsigned int reg = cairn_unwind_word_reg(word);
		int32_t value = cairn_unwind_word_value(word);
		if (reg == RA || reg == RSP)
			return false;
		if (reg != RBP)
			continue;
		if (cairn_unwind_word_saved(word) != CAIRN_UNWIND_AT_CFA || value >= 0 ||
		    value < INT16_MIN)
			return false;
		*ret = value;
	}
	return true;
}

backtrace_word backtrace_word_of(const struct cairn_unwind_rule *rule)
{
	int32_t fp;
	if (rule->flags & CAIRN_UNWIND_OUTERMOST)
		return SELF_OUTERMOST;
	if (rule->flags || rule->cfa != CAIRN_UNWIND_CFA_REG ||
	    (rule->reg != RSP && rule->reg != RBP) || !find_fp(rule, &fp))
		return SELF_NONE;
	return (uint64_t)(uint32_t)rule->off << 32 | (uint64_t)(uint16_t)fp << 16 |
	       (rule->reg == RBP ? SELF_FROM_FP : 0) | SELF_SIMPLE;
}
