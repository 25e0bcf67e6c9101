/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows that the instructions of their function disprove; the essay is in disprove.c. Within this
 * module only.
 */
#ifndef CFI_DISPROVE_H
#define CFI_DISPROVE_H

#include "cfi/simulate.h"
#include "cfi/rule.h"

/* One FDE of x86-64, and its rows as they are written. */
struct disprove_fde {
	uint64_t lo, hi;
	const uint8_t *code;
	uint32_t set; /* registers that a row says something of */
	/* a row has rbp in memory at a register that is not the CFA: at itself */
	bool is_realigned;
	size_t first; /* of its rows among the runs; they go on to the last one */
	/* NULL: from its beginning; else only what comes by this jump */
	const struct disprove_tail *tail;
};

/* A jump out of a function with registers overwritten, into another one. */
struct disprove_tail {
	uint64_t to;
	uint16_t regs; /* by number */
};

struct disprove_tails {
	VEC(struct disprove_tail) v;
};

/* Kept from one FDE to the next for its memory; {0} to begin with. */
struct disprove {
	struct follow follow;
	VEC(uint16_t) marks; /* per byte of code */
	VEC(struct rule_run) mended;
};

/*
 * disprove_rows - have the rows of an FDE say no more than its instructions leave of it
 *
 * Where they leave the CFA at another place, nothing is described. A register that the rows leave
 * unchanged, and that may have been overwritten, is lost from there on. One that is said to be in
 * memory at rbp is lost where rbp is the caller's again.
 *
 * @runs, @rules   those of the FDE are replaced
 * @ret_bytes      of code that is not described any more are added
 * @ret_tails      jumps out of it are added, to be followed where they lead
 * Returns 0, -ENOMEM. Cost: a look at the rows; at the code where they describe no saved register;
 * a decode or more per instruction of functions with something to disprove.
 */
int disprove_rows(struct disprove *d, const struct disprove_fde *fde, struct rule_runs *runs,
		  struct rule_set *rules, uint64_t *ret_bytes, struct disprove_tails *ret_tails);
void disprove_fini(struct disprove *d);

#endif
