/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles the particularities of functions that Go's own compiler made. */
#ifndef SITES_GO_H
#define SITES_GO_H

#include "dwarf/types.h"
#include "sites/site.h"

/*
 * go_believe - keep those of a body's arguments on which description and Go's convention agree
 *
 * @b  whose args have their types, from @reader; unproven ones become
 *     CAIRN_UNAVAIL_MAY_HAVE_CHANGED
 * Returns 0 or -ENOMEM.
 */
int go_believe(const struct site_env *env, struct dw_types *reader, struct built_site *b,
	       struct arena *arena, struct cairn_err *err);

/*
 * go_results - the type that several results of the function at @function are together
 *
 * Returns 0 with *@ret, which is untouched where its parameters are damaged; -ENOMEM.
 */
int go_results(const struct site_env *env, struct dw_types *types, dw_off function, uint32_t *ret,
	       struct cairn_err *err);

/*
 * go_check_pieces - reject a value whose parts are described without the padding between them
 *
 * @arg  of @b's formals; it becomes CAIRN_UNAVAIL_DAMAGED
 */
void go_check_pieces(struct built_site *b, uint32_t arg);

/*
 * go_grows_stack - whether a function enters itself again only after its stack was grown, as it was
 * entered before
 *
 * False if the code or the symbols do not show it. Cost: decodes the function.
 */
bool go_grows_stack(struct elf *code, const struct dw_die *body, struct cairn_vaddr entry);

#endif
