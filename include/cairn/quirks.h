/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quirks: what compilers get wrong in their debug information, and what Cairn does about it
 *
 * Each rule has a row. The row names the producers in which the error was seen, the page of
 * docs/findings/ that reproduces it, and the effect: a value is unavailable, a description is
 * corrected, or a caveat is set. A location that a rule made unavailable names the rule
 * (struct cairn_location).
 *
 *	const struct cairn_quirk_rule *r = cairn_quirk_rule(arg->loc.quirk);
 *	if (r)
 *		printf("%s: docs/findings/%s.md\n", r->id, r->finding);
 */
#ifndef CAIRN_QUIRKS_H
#define CAIRN_QUIRKS_H

#include <cairn/api.h>
#include <cairn/location.h>

CAIRN_BEGIN_DECLS

enum cairn_quirk {
	CAIRN_QUIRK_NONE,
	/* Values */
	CAIRN_QUIRK_STALE_OUTER_VARIABLE,
	CAIRN_QUIRK_LOOP_ARITHMETIC,
	CAIRN_QUIRK_HIDDEN_DIFFERENCE,
	CAIRN_QUIRK_COUNTER_CONSTANT,
	CAIRN_QUIRK_REMOVED_PARAM,
	CAIRN_QUIRK_MEMORY_AFTER_STORE,
	CAIRN_QUIRK_LOOP_HEAD_ENTRY,
	CAIRN_QUIRK_NO_VIEWS,
	CAIRN_QUIRK_UNUSED_NOT_PASSED,
	CAIRN_QUIRK_SPILL_ADDRESS,
	CAIRN_QUIRK_WHOLE_SCOPE_REGISTER,
	CAIRN_QUIRK_STACK_ARG_BEFORE_PROLOGUE,
	CAIRN_QUIRK_REMOVED_STORE,
	CAIRN_QUIRK_HALF_PAIR,
	CAIRN_QUIRK_ICF_ARGS,
	CAIRN_QUIRK_GO_PIECES,
	CAIRN_QUIRK_CALL_VALUE_OVERWRITTEN,
	CAIRN_QUIRK_BOOL_BITS,
	CAIRN_QUIRK_NARROW_OPERAND,
	CAIRN_QUIRK_SPLIT_VIEW_OFFSETS,
	/* Counts of events */
	CAIRN_QUIRK_SPLIT_PART,
	CAIRN_QUIRK_CLANG_ENTRY_LINES,
	CAIRN_QUIRK_TESTED_AFTER_CALL,
	CAIRN_QUIRK_VECTOR_CALLS,
	/* Types and unwind rows */
	CAIRN_QUIRK_FULL_WIDTH_BIT_FIELD,
	CAIRN_QUIRK_STORAGE_ORDER,
	CAIRN_QUIRK_REALIGNED_EPILOGUE,
	CAIRN_N_QUIRKS /* how many there are; no quirk itself */
};

struct cairn_quirk_rule {
	const char *id;         /* "stale-outer-variable": the word in JSON */
	const char *producers;  /* "GCC 12 and 16": those in which it was seen */
	const char *finding;    /* the page docs/findings/FINDING.md; NULL: none */
	const char *no_finding; /* why there is none; NULL when there is one */
	const char *effect;     /* what goes wrong and what Cairn does: one or two sentences */
	const char *file;       /* of src/facts: the code that applies it */
	/* the reason that the rule gives; CAIRN_AVAILABLE: it makes no value unavailable */
	enum cairn_unavailable why;
};

/*
 * cairn_quirk_rule - the row of a quirk
 *
 * Returns NULL for CAIRN_QUIRK_NONE and for numbers that are no quirk. Static. Any thread.
 */
const struct cairn_quirk_rule *cairn_quirk_rule(unsigned int quirk);

CAIRN_END_DECLS
#endif
