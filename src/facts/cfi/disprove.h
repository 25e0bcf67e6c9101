/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows that the instructions of their function disprove; the essay is in disprove.c. Within this
 * module only.
 */
#ifndef CFI_DISPROVE_H
#define CFI_DISPROVE_H

#include "cfi/simulate_frame.h"
#include "cfi/rule.h"

/* One FDE of x86-64, and its rows as they are written. */
struct disprove_fde {
	uint64_t lo, hi;
	const uint8_t *code;
	uint32_t set; /* registers that a row has a rule for */
	/* a row has rbp in memory at a register that is not the CFA: at itself */
	bool is_realigned;
	size_t first; /* of its rows among the runs; they go on to the last one */
	/* NULL: from its beginning; else only the path from this jump */
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
	struct simulation simulation;
	VEC(uint16_t) marks; /* per byte of code */
	VEC(struct rule_run) mended;
};

/*
 * disprove_rows - weaken the rows of an FDE that its instructions disprove
 *
 * At addresses where they leave the CFA at another place, the rows become undescribed. A register
 * that the rows leave unchanged, and that may have been overwritten, is lost from there on. One
 * that is described in memory at rbp is lost once rbp is the caller's again.
 *
 * @runs, @rules   those of the FDE are replaced
 * @ret_bytes      the bytes of code that lose their description are added
 * @ret_tails      jumps out of it are added, to be followed at their targets
 * Returns 0, -ENOMEM. Cost: one pass over the rows; over the code, if they describe no saved
 * register; a decode or more per instruction of functions with rows to disprove.
 */
int disprove_rows(struct disprove *d, const struct disprove_fde *fde, struct rule_runs *runs,
		  struct rule_set *rules, uint64_t *ret_bytes, struct disprove_tails *ret_tails);
void disprove_fini(struct disprove *d);

#endif
