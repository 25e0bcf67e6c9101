/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes the instructions of one function, for checks of where values and control go in it. */
#ifndef LOC_CODE_H
#define LOC_CODE_H

#include "dwarf/dwarf.h"
#include "insn/insn.h"

/* Instructions of one function that are decoded; the longest function seen has some 100,000. */
enum { CODE_INSNS_MAX = 2000000 };

/*
 * Visits of a function's instructions by one question that goes round until nothing changes. Code
 * can be made in which each of many jumps adds a round: then there is no answer.
 */
enum { CODE_VISITS_MAX = 1 << 24 };

struct code_insn {
	uint64_t at;
	const uint8_t *bytes; /* step.len of them */
	struct insn_step step;
};

/* Several instructions, in order of address. */
struct code_run {
	uint64_t at;
	const uint8_t *bytes;
	const struct insn_step *steps;
	size_t n;
	size_t n_bytes;
};

/*
 * code_visit - every instruction of all ranges of a function, in order of address
 *
 * @function  its DIE
 * @visit     a negative result ends the walk and is returned
 * Returns 0. -EBADMSG: it has no ranges, one is not in executable code, or does not decode to its
 * end. -ERANGE: more than CODE_INSNS_MAX instructions. -ENOMEM. After an error the caller has to
 * forget the instructions that were visited.
 * Cost: one insn_step() per instruction.
 */
int code_visit(const struct elf *code, const struct dw_die *function,
	       int (*visit)(void *ctx, const struct code_insn *insn), void *ctx);

/* The same of one range, which is no more than CODE_INSNS_MAX instructions. */
int code_visit_range(const struct elf *code, struct dw_range range,
		     int (*visit)(void *ctx, const struct code_insn *insn), void *ctx);

/* code_visit_runs - the same, many at once, for callers that look at all of them */
int code_visit_runs(const struct elf *code, const struct dw_die *function,
		    int (*visit)(void *ctx, const struct code_run *run), void *ctx);

#endif
