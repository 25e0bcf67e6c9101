/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .eh_frame or .debug_frame of code made at run time: a copy of another process's bytes, indexed
 *
 * There is no file, no section header and no .eh_frame_hdr that could be believed: the entries are
 * walked over once, as far as they are sound.
 */
#ifndef CFI_EH_BLOCK_H
#define CFI_EH_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/err.h>

#include "cfi/rule.h"

struct eh_block;

/* The kind of the bytes. */
struct eh_block_kind {
	uint64_t addr; /* their address in the process: distances count from it */
	uint16_t machine;
	bool is_debug; /* .debug_frame; else .eh_frame */
	bool has_text; /* addresses may count from text */
	uint64_t text;
};

/*
 * eh_block_open - index the entries of a block
 *
 * @bytes  malloc()ed, the result's also after an error; ends at a terminator, at @size, or where it
 *         is damaged
 * Returns 0, also without any FDE; -ERANGE, -ENOMEM. Cost: one pass, a sort.
 */
int eh_block_open(uint8_t *bytes, size_t size, const struct eh_block_kind *kind,
		  struct eh_block **ret, struct cairn_err *err);
void eh_block_close(struct eh_block *b); /* takes NULL */

size_t eh_block_n_fdes(const struct eh_block *b);

/* An FDE by number, by address: the code [*@ret_lo, *@ret_hi) that it says it covers. */
void eh_block_fde(const struct eh_block *b, size_t i, uint64_t *ret_lo, uint64_t *ret_hi);

/* The rule at @at; undescribed where no FDE is, or one that is damaged. Threads: any. */
void eh_block_rule(const struct eh_block *b, uint64_t at, struct rule_words *ret);

/*
 * eh_block_rules - the rules of an FDE by number, in the order of their addresses
 *
 * @fn  called for each, [@lo, @hi); returns 0, or what ends it
 * Returns 0; the result of @fn; -EBADMSG and its like when the FDE is damaged: then none of them is
 * to be believed.
 */
int eh_block_rules(const struct eh_block *b, size_t i,
		   int (*fn)(void *ctx, uint64_t lo, uint64_t hi, const struct rule_words *rule),
		   void *ctx);

#endif
