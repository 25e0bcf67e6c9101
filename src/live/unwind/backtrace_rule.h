/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rule in a word, for walks that follow pc, stack pointer and frame pointer only
 *
 *	bits 0-7    enum backtrace_kind
 *	bit  8      the CFA starts from rbp; else from rsp
 *	bits 16-31  where the caller's rbp is saved, from the CFA, in bytes; 0: it was not changed
 *	bits 32-63  CFA minus the register it starts from
 *
 * rbx and r12 to r15 are left out: code that needs them to find its CFA is rare, and makes the walk
 * begin again with all registers. A rule that does not fit has its number in bits 32-63 and is
 * looked up in the object's table. Within this module only.
 */
#ifndef UNWIND_BACKTRACE_RULE_H
#define UNWIND_BACKTRACE_RULE_H

#include "unwind/backtrace_object.h"

enum backtrace_kind { SELF_NONE, SELF_SIMPLE, SELF_OUTERMOST, SELF_IN_TABLE };

enum { SELF_FROM_FP = 1 << 8 };

/* SELF_NONE when it takes more than a word. */
backtrace_word backtrace_word_of(const struct cairn_unwind_rule *rule);

static inline enum backtrace_kind backtrace_word_kind(backtrace_word word)
{
	return (enum backtrace_kind)(word & 0xff);
}

static inline int64_t backtrace_word_off(backtrace_word word)
{
	return (int64_t)word >> 32;
}

static inline int64_t backtrace_word_fp(backtrace_word word)
{
	return (int16_t)(word >> 16);
}

#endif
