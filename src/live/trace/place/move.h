/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moving a user probe to a cheaper instruction of the same basic block, or off one with a hazard,
 * where that changes nothing.
 */
#ifndef TRACE_MOVE_H
#define TRACE_MOVE_H

#include "trace/trace.h"

struct mover;

/*
 * mover_new - get ready to move probes in a file
 *
 * Returns 0; -ENOMEM; or as cfi_open(), and then nothing can be moved. mover_free() takes NULL.
 */
int mover_new(const struct cairn_binary *bin, struct mover **ret, struct cairn_err *err);
void mover_free(struct mover *m);

/* As cfi_fde_at(). */
bool mover_fde_at(const struct mover *m, struct cairn_vaddr at, struct cairn_vaddr *ret_lo,
		  struct cairn_vaddr *ret_hi);

/*
 * mover_add - a site that may be moved, with the fetch program it has at its site's address
 *
 * Remembers the site when all facts about its own function allow moving. A site with a hazard may
 * also be moved to an instruction before it. Returns 0 or -ENOMEM.
 */
int mover_add(struct mover *m, struct trace_site *site, const struct fetch_program *program);

/*
 * mover_finish - search the file for jumps into the skipped windows, and move the sites without any
 *
 * Sets at, off, moved and emulated, and takes away the reason for which it was refused; the fetch
 * program must be made again for the new address. Forgets the sites. Returns the number of moved
 * ones.
 * Cost: one pass over the executable bytes, about 1 ms per MB.
 */
uint32_t mover_finish(struct mover *m);

#endif
