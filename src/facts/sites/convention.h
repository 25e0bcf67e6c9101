/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports the certain facts about the calling convention of a function. */
#ifndef SITES_CONVENTION_H
#define SITES_CONVENTION_H

#include "dwarf/types.h"
#include "loc/loc.h"

/*
 * convention_is_certain - whether other files can call the code at @at, which makes its convention
 * the platform's
 *
 * A compiler may change the parameters of any other function.
 *
 * @code  the file with the instructions; without symbols nothing is certain
 * Cost: O(log symbols). Threads: any.
 */
bool convention_is_certain(struct elf *code, struct cairn_vaddr at);

/*
 * convention_is_all_gcc - whether every producer that .comment names is GCC: "GCC: (Debian
 * 12.2.0-14) 12.2.0"
 */
bool convention_is_all_gcc(struct elf *code);

/*
 * convention_is_silent - whether a function without recorded parameters and result has unknown ones
 *
 * An assembler describes names and addresses only, GCC's -g1 adds lines. Clang's -gline-tables-only
 * leaves out where a function is declared, too.
 *
 * @line  where the function is declared; 0 if the unit does not record it
 */
bool convention_is_silent(const struct dw_unit *u, uint64_t line);

/*
 * convention_is_word - whether every language of this platform but Go passes a value as C does: it
 * is a number or a pointer, of 8 bytes at most, or there is none
 */
bool convention_is_word(const struct cairn_types *types, uint32_t type);

/*
 * convention_is_foreign - whether the function's debug information names another convention than
 * the platform's, as Clang does for ms_abi, vectorcall and regcall
 *
 * Conventions that only save other registers are the platform's here.
 */
bool convention_is_foreign(const struct dw_die *body);

/*
 * convention_is_contradicted - whether a description by GCC, which names no convention, shows a
 * parameter where the platform's cannot put it (ms_abi)
 *
 * An argument that the platform passes in a register is in another one at the entry, or in the
 * caller's frame.
 *
 * @said  for the entry, as described
 * @abi   the same parameter by the platform's convention
 */
bool convention_is_contradicted(const struct cairn_location *said,
				const struct cairn_location *abi);

/*
 * convention_passing - how a value of @type is passed
 *
 * @unit  of the function
 * @type  from @reader; afterwards it is complete, or never will be
 * Returns 0 or -ENOMEM. Cost: as dwarf_type_passing().
 */
int convention_passing(struct dw_types *reader, const struct dw_unit *unit, uint32_t type,
		       struct abi_param *ret, struct cairn_err *err);

#endif
