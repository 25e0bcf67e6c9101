/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of rules about what compilers get wrong. */
#include "sites/quirks/quirks.h"

#include "sites/quirks/hidden_difference.h"
#include "sites/quirks/loop_arithmetic.h"
#include "sites/quirks/stale_outer_variable.h"

/*
 * @check: NULL when the rule's file applies it itself. Rules with a check come first, as all sites
 * of a program are asked.
 */
static const struct quirk {
	struct cairn_quirk_rule rule;
	int (*check)(const struct quirk_query *q);
} quirks[CAIRN_N_QUIRKS] = {
	[CAIRN_QUIRK_STALE_OUTER_VARIABLE] =
		{{.id = "stale-outer-variable",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-value-before-loop",
		  .effect = "After a loop an argument is described by the value before the loop. "
			    "It is unavailable if a variable around the copy had that description "
			    "and has it no longer.",
		  .file = "sites/quirks/stale_outer_variable.c",
		  .why = CAIRN_UNAVAIL_STALE},
		 stale_outer_variable_check},
	[CAIRN_QUIRK_LOOP_ARITHMETIC] =
		{{.id = "loop-arithmetic",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-dead-name-shares-register",
		  .effect = "A register in a description may already hold the next turn's value. "
			    "An integer that is computed from registers in a loop is unavailable.",
		  .file = "sites/quirks/loop_arithmetic.c",
		  .why = CAIRN_UNAVAIL_STALE},
		 loop_arithmetic_check},
	[CAIRN_QUIRK_HIDDEN_DIFFERENCE] =
		{{.id = "hidden-difference",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-difference-of-one-register",
		  .effect =
			  "The difference of two variables is described as 0. Constants in a loop "
			  "are unavailable if the copy uses a difference that no argument "
			  "describes.",
		  .file = "sites/quirks/hidden_difference.c",
		  .why = CAIRN_UNAVAIL_STALE},
		 hidden_difference_check},
	[CAIRN_QUIRK_COUNTER_CONSTANT] =
		{{.id = "counter-constant",
		  .producers = "GCC 12",
		  .finding = "gcc-counter-described-as-constant",
		  .effect = "A counter of a loop is described as its first value. A constant that "
			    "an outer variable shares is unavailable in the loop, and so is an "
			    "address that may be made from it.",
		  .file = "sites/quirks/stale_outer_variable.c",
		  .why = CAIRN_UNAVAIL_STALE}},
	[CAIRN_QUIRK_REMOVED_PARAM] =
		{{.id = "removed-param",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-removed-parameter-value",
		  .effect = "A removed parameter may have the value of another call in the same "
			    "function. It is unavailable if there is another copy there.",
		  .file = "sites/quirks/removed_param.c",
		  .why = CAIRN_UNAVAIL_OTHER_CALL}},
	[CAIRN_QUIRK_MEMORY_AFTER_STORE] =
		{{.id = "memory-after-store",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-memory-read-after-store",
		  .effect =
			  "A lost value is computed from memory that a store may have changed. An "
			  "argument of a copy that loads memory outside of the frame is "
			  "unavailable.",
		  .file = "sites/args_check.c",
		  .why = CAIRN_UNAVAIL_MEMORY_WRITTEN}},
	[CAIRN_QUIRK_LOOP_HEAD_ENTRY] =
		{{.id = "loop-head-entry",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-entry-is-a-loop-head",
		  .effect = "The entry is hit again in a loop, or by code that is no call. Its "
			    "arguments are unavailable, as they describe the call alone.",
		  .file = "sites/args_check.c",
		  .why = CAIRN_UNAVAIL_WITHOUT_CALL}},
	[CAIRN_QUIRK_NO_VIEWS] =
		{{.id = "no-views",
		  .producers = "Clang 14 and 21, Go, GCC's lists without views",
		  .finding = "clang-value-of-which-moment",
		  .effect = "A location without views may describe a later statement at the same "
			    "address. A parameter that the function can assign to is unavailable.",
		  .file = "sites/args_check.c",
		  .why = CAIRN_UNAVAIL_MAY_HAVE_CHANGED}},
	[CAIRN_QUIRK_UNUSED_NOT_PASSED] =
		{{.id = "unused-not-passed",
		  .producers = "Clang 14 and 21",
		  .finding = "clang-value-of-which-moment",
		  .effect = "Callers do not set the register of an argument that the function does "
			    "not read. The argument is unavailable.",
		  .file = "sites/site.c",
		  .why = CAIRN_UNAVAIL_MAY_NOT_BE_PASSED}},
	[CAIRN_QUIRK_SPILL_ADDRESS] =
		{{.id = "spill-address",
		  .producers = "Clang 14",
		  .finding = "clang-spilled-value-without-load",
		  .effect = "A spilled value is described by its slot's address. A value that is "
			    "computed from the frame base is unavailable.",
		  .file = "loc/clang_spill.c",
		  .why = CAIRN_UNAVAIL_SLOT_ADDRESS}},
	[CAIRN_QUIRK_WHOLE_SCOPE_REGISTER] =
		{{.id = "whole-scope-register",
		  .producers = "GCC 12",
		  .finding = "gcc-register-for-the-whole-scope",
		  .effect =
			  "A parameter is described by one register for the whole function, and "
			  "gets there later. It is unavailable unless the code keeps the register.",
		  .file = "loc/argument.c",
		  .why = CAIRN_UNAVAIL_NOT_STORED_YET}},
	[CAIRN_QUIRK_STACK_ARG_BEFORE_PROLOGUE] =
		{{.id = "stack-arg-before-prologue",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-stack-argument-before-prologue",
		  .effect = "Before a prologue that moved, stack arguments are described at the "
			    "wrong offset. The argument is unavailable there.",
		  .file = "loc/stack_args.c",
		  .why = CAIRN_UNAVAIL_NO_CFA}},
	[CAIRN_QUIRK_REMOVED_STORE] =
		{{.id = "removed-store",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-removed-store-described",
		  .effect = "A variable is described in memory though the store to it was removed. "
			    "In a copy, and in the middle of a function, it is unavailable unless "
			    "the code is seen to store or read it.",
		  .file = "loc/removed_store.c",
		  .why = CAIRN_UNAVAIL_NOT_STORED_YET}},
	[CAIRN_QUIRK_HALF_PAIR] =
		{{.id = "half-pair",
		  .producers = "GCC 12",
		  .finding = "gcc-half-of-a-pair-is-written",
		  .effect = "A struct in two registers is described after one of them was written. "
			    "In the middle of a function it is unavailable then.",
		  .file = "loc/slot_init.c",
		  .why = CAIRN_UNAVAIL_NOT_STORED_YET}},
	[CAIRN_QUIRK_ICF_ARGS] =
		{{.id = "icf-args",
		  .producers = "linkers with --icf",
		  .no_finding = "each description is right for its own function",
		  .effect = "Merged sites describe an argument differently, and an event does not "
			    "show which one was called. The argument is unavailable.",
		  .file = "sites/quirks/icf_args.c",
		  .why = CAIRN_UNAVAIL_AMBIGUOUS}},
	[CAIRN_QUIRK_GO_PIECES] =
		{{.id = "go-pieces",
		  .producers = "Go 1.19",
		  .finding = "go-pieces-without-padding",
		  .effect = "The parts of a struct are described without its padding. A copy's "
			    "struct is unavailable if the parts do not add up to its size.",
		  .file = "sites/go.c",
		  .why = CAIRN_UNAVAIL_DAMAGED}},
	[CAIRN_QUIRK_CALL_VALUE_OVERWRITTEN] =
		{{.id = "call-value-overwritten",
		  .producers = "Clang 14",
		  .finding = "clang-call-site-value-overwritten",
		  .effect =
			  "A call site value names a register that is written before the call. It "
			  "is used only if the code keeps the register.",
		  .file = "sites/call_site_value.c"}},
	[CAIRN_QUIRK_BOOL_BITS] =
		{{.id = "bool-bits",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-bool-has-eight-bits",
		  .effect = "Arithmetic on a _Bool gives 254 or 255. The lowest bit is kept.",
		  .file = "sites/args_check.c"}},
	[CAIRN_QUIRK_NARROW_OPERAND] =
		{{.id = "narrow-operand",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-32-bit-operand-not-extended",
		  .effect = "Shifts and divisions of 32 bits are described in 64. The operand is "
			    "extended first.",
		  .file = "loc/expr.c"}},
	[CAIRN_QUIRK_SPLIT_VIEW_OFFSETS] =
		{{.id = "split-view-offsets",
		  .producers = "GCC 12",
		  .finding = "gcc-split-view-offsets",
		  .effect = "In a .dwo file the offset of views is 12 too small. It is corrected.",
		  .file = "dwarf/loclists.c"}},
	[CAIRN_QUIRK_WEB_REGISTER] =
		{{.id = "web-register",
		  .producers = "GCC 12 and 16 with -fweb, -funroll-loops or a profile",
		  .finding = "gcc-web-renames-registers",
		  .effect = "A description keeps a register's name after its value got another "
			    "one. What a copy, or the middle of a function, has in registers is "
			    "unavailable.",
		  .file = "sites/args_check.c",
		  .why = CAIRN_UNAVAIL_STALE}},
	[CAIRN_QUIRK_SPLIT_PART] =
		{{.id = "split-part",
		  .producers = "GCC 12",
		  .no_finding = "DWARF has no word for a part of a function that was put back",
		  .effect = "The rest of a split function is described as an inlined copy. It is "
			    "no call, and is left out.",
		  .file = "sites/quirks/split_part.c"}},
	[CAIRN_QUIRK_CLANG_ENTRY_LINES] =
		{{.id = "clang-entry-lines",
		  .producers = "Clang 14 and 21, GCC with -flto",
		  .no_finding = "DWARF demands no marker of a copy's entry",
		  .effect = "Copies have no marked entry. Lines show where calls begin, and calls "
			    "that bypass the site are a caveat.",
		  .file = "sites/quirks/clang_entry_lines.c"}},
	[CAIRN_QUIRK_TESTED_AFTER_CALL] =
		{{.id = "tested-after-call",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-arms-begin-alike",
		  .effect = "The entry of a call is placed before the condition that decides about "
			    "it. The site gets a caveat.",
		  .file = "sites/quirks/tested_after_call.c"}},
	[CAIRN_QUIRK_VECTOR_CALLS] =
		{{.id = "vector-calls",
		  .producers = "GCC 12",
		  .no_finding = "the code makes the calls together; there is one place to describe",
		  .effect = "One pass of vector code stands for several calls. The site gets a "
			    "caveat.",
		  .file = "sites/quirks/vectorised.c"}},
	[CAIRN_QUIRK_FULL_WIDTH_BIT_FIELD] =
		{{.id = "full-width-bit-field",
		  .producers = "Clang 14",
		  .finding = "clang-full-width-bit-field",
		  .effect = "A bit-field as wide as its type is described as a member at a wrong "
			    "offset. Its position is not known.",
		  .file = "dwarf/types_inside.c"}},
	[CAIRN_QUIRK_STORAGE_ORDER] =
		{{.id = "storage-order",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-storage-order",
		  .effect = "scalar_storage_order reverses enums, too, and the debug information "
			    "records numbers only. A reversed number shows it for the enums.",
		  .file = "dwarf/types_complete.c"}},
	[CAIRN_QUIRK_REALIGNED_EPILOGUE] =
		{{.id = "realigned-epilogue",
		  .producers = "GCC 12 and 16",
		  .finding = "gcc-realigned-epilogue",
		  .effect = "After leave, rows keep the saved rbp where it no longer is. The "
			    "register is lost in these rows.",
		  .file = "cfi/disprove.c"}},
};

const struct cairn_quirk_rule *cairn_quirk_rule(unsigned int quirk)
{
	return quirk && quirk < CAIRN_N_QUIRKS ? &quirks[quirk].rule : NULL;
}

int quirks_check_args(const struct quirk_query *q)
{
	int rc = 0;
	for (unsigned int i = 1; i < CAIRN_N_QUIRKS && quirks[i].check && !rc; i++)
		rc = quirks[i].check(q);
	return rc;
}
