/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information of a loaded object, read where the loader mapped it; the essay is in
 * eh_memory.c.
 */
#ifndef CFI_EH_MEMORY_H
#define CFI_EH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "cfi/rule.h"

/*
 * The bytes from .eh_frame_hdr to the end of the segment that holds it, and from that segment's
 * beginning.
 */
struct eh_memory {
	const uint8_t *hdr;
	const uint8_t *lo, *hi; /* the segment: the memory that may be read */
	uint16_t machine;       /* EM_* */
};

/*
 * eh_memory_rule - the rule at one address
 *
 * @at   run-time address, as that of the bytes
 * @ret  an undescribed rule when no FDE covers @at, or one that is damaged
 * Returns 0; -EBADMSG, -EOPNOTSUPP when the table of .eh_frame_hdr is damaged or of a kind that
 * linkers do not write.
 * Cost: O(log FDEs) + the FDE's program; about 11 KB of stack, no allocation. Threads: any.
 * Signals: safe.
 */
int eh_memory_rule(const struct eh_memory *eh, uint64_t at, struct rule_words *ret);

#endif
